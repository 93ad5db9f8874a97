"""TuRBO: Thompson sampling with local Gaussian processes in trust regions that grow, shrink and start afresh."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..gp import GPMethod
from ..gp.rows import columns_of
from ..optimizer import Proposal
from ..progress import report
from ..spaces import Space
from ..types import Array, Dataset, InputError, row_keys
from ..variables import Categorical, Integer, Real, Sequence
from ..variation import scaled, unscaled

if TYPE_CHECKING:
    from ..gp.model import Posterior

# Appendix D of the paper; the margin and the smallest tolerances are those of the authors' release.
FIRST_LENGTH, LEAST_LENGTH, MOST_LENGTH = 0.8, 0.5**7, 1.6
SUCCESSES = 3  # in a row, before a region grows
MARGIN = 1e-3  # of the best value, by which a success is better


@dataclass
class Region:
    """A box around the best design of its own measurements, and how it has fared."""

    design: Array  # (k, d), with which it starts
    rows: list[int] = field(default_factory=list)  # told rows since it started
    best: float = -math.inf
    length: float = FIRST_LENGTH
    successes: int = 0
    failures: int = 0
    restarts: int = 0
    active: bool = False  # past its initial design


class Turbo(GPMethod):
    """TuRBO-m: `regions` trust regions, each with a subset GP of its own, share the batch by Thompson sampling.

    `initial` designs (2 d by default) start each region. `unbounded` turns the regions off: what is left is plain
    Thompson sampling over the whole space. Letters and categories have a region too: the number of them that may
    differ from the centre's.
    """

    name = "turbo"
    summary = "subset GP in trust regions, Thompson sampling; one region or several"
    reference = "Eriksson et al. 2019"
    supports = "a subset of 500 rows (CPU) per region; any batch"

    def __init__(
        self, space: Space, *, seed: int = 0, minimize: bool = False, rows: int | None = None, device: str = "auto",
        effort: float = 1.0, regions: int = 1, initial: int | None = None, unbounded: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(space, seed=seed, minimize=minimize, rows=rows, device=device, effort=effort)
        for what, value, least in (("regions", regions, 1), ("initial", initial, 2)):
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
                raise InputError(f"{what} = {value!r} is not a whole number of at least {least}.", "Give, say, 5.")
        self.regions, self.initial, self.unbounded = regions, initial or 2 * space.dimension, bool(unbounded)

    def settings(self) -> dict[str, Any]:
        own = {"regions": self.regions, "initial": self.initial, "unbounded": self.unbounded}
        return super().settings() | own

    # ---- the state of the regions, from the told rounds ---------------------------------------------

    def replay(self) -> list[Region]:
        """The regions after every told round: a function of the told rows and their rounds alone."""
        regions = [Region(self._design(k, 0)) for k in range(self.regions)]
        told: dict[bytes, int] = {}
        keys = row_keys(self.data.x)
        start = 0
        for size in self.tells:
            rows = np.arange(start, start + size)
            owner = self._owners(regions, rows, keys)
            told.update({keys[row]: int(row) for row in rows})
            for k, region in enumerate(regions):
                mine = rows[owner == k]
                if len(mine):
                    self._update(region, mine)
                if self._spent(region, told):
                    regions[k] = self._restart(k, region, told)
                regions[k].active |= self._started(regions[k], told)
            start += size
        return regions

    def _design(self, region: int, restarts: int) -> Array:
        return self.space.fill(self.initial, np.random.default_rng([self.seed, region, restarts]))

    def _started(self, region: Region, told: dict[bytes, int]) -> bool:
        """Its initial design is measured, or as many other designs in its place."""
        enough = len(region.rows) >= self.initial or all(key in told for key in row_keys(region.design))
        return enough and math.isfinite(region.best)

    def _spent(self, region: Region, told: dict[bytes, int]) -> bool:
        """It has shrunk away, or its whole initial design failed."""
        lost = not math.isfinite(region.best) and all(key in told for key in row_keys(region.design))
        return region.length < LEAST_LENGTH or lost

    def _restart(self, k: int, region: Region, told: dict[bytes, int]) -> Region:
        """A new region with a design of its own; what is measured of that already counts."""
        new = Region(self._design(k, region.restarts + 1), restarts=region.restarts + 1)
        new.rows = sorted({told[key] for key in row_keys(new.design) if key in told})
        new.best = self._top(np.array(new.rows, dtype=np.intp))
        return new

    def _owners(self, regions: list[Region], rows: NDArray[np.intp], keys: list[bytes]) -> NDArray[np.intp]:
        """Which region each told row counts for: that whose design it is of, else the likeliest one at work."""
        if len(regions) == 1:
            return np.zeros(len(rows), dtype=np.intp)
        active = [k for k, region in enumerate(regions) if region.active]
        starting = [k for k, region in enumerate(regions) if not region.active]
        if active:
            unlikely = np.stack([self._unlikely(regions[k], self.data.x[rows]) for k in active])
            owner = np.array(active)[unlikely.argmin(axis=0)]
        else:
            owner = np.array(starting)[np.arange(len(rows)) % len(starting)]
        by_design = {key: k for k in starting for key in row_keys(regions[k].design)}
        return np.array([by_design.get(keys[row], o) for row, o in zip(rows, owner, strict=True)], dtype=np.intp)

    def _unlikely(self, region: Region, x: Array) -> Array:
        """How unlikely it is that the region drew `x`, up to a constant: -log density of a normal of its size.

        A design uniform in a box of side L has variance L^2 / 12 in each column; a letter that differs counts as half
        the cube.
        """
        gap = scaled(self.space, x) - scaled(self.space, self._centre(region)[None])
        others = columns_of(self.space, Categorical, Sequence)
        gap[:, others] = 0.5 * (gap[:, others] != 0)
        return np.asarray(math.log(region.length) + 6 * (gap**2).mean(axis=1) / region.length**2)

    def _top(self, rows: NDArray[np.intp]) -> float:
        return float(np.fmax.reduce(self.data.y[rows], initial=-np.inf))  # NaN, a failure, never wins

    def _centre(self, region: Region) -> Array:
        y = self.data.y[region.rows]
        return np.asarray(self.data.x[region.rows[int(np.nanargmax(y))]])

    def _update(self, region: Region, rows: NDArray[np.intp]) -> None:
        """Section 2: `tau_succ` successes in a row double the side, `tau_fail` failures in a row halve it."""
        top = self._top(rows)
        if region.active and not self.unbounded:
            if top > region.best + MARGIN * abs(region.best):
                region.successes, region.failures = region.successes + 1, 0
            else:
                region.successes, region.failures = 0, region.failures + len(rows)
            # tau_fail is ceil(d / q) batches of q: the same as d designs, whatever the sizes of the rounds.
            tolerance = max(4 if self.regions == 1 else 5, self.space.dimension)
            if region.successes == SUCCESSES:
                region.length, region.successes = min(2 * region.length, MOST_LENGTH), 0
            elif region.failures >= tolerance:
                region.length, region.failures = region.length / 2, 0
        region.rows.extend(int(row) for row in rows)
        region.best = max(region.best, top)

    # ---- asking ------------------------------------------------------------------------------------

    def propose(self, n: int, rng: np.random.Generator) -> Iterator[Proposal]:
        regions = self.replay()
        state = [
            {"length": r.length, "successes": r.successes, "failures": r.failures, "restarts": r.restarts,
             "active": r.active} for r in regions
        ]  # fmt: skip
        known = set(row_keys(self.data.x)) | set(row_keys(self.pending))
        starting = [(k, region.design) for k, region in enumerate(regions) if not region.active]
        first = np.concatenate([design for _, design in starting] or [np.empty((0, self.space.dimension))])
        member = np.concatenate([np.full(len(x), k) for k, x in starting] or [np.empty(0)]).astype(np.intp)
        new = np.array([key not in known for key in row_keys(first)], dtype=bool)
        first, member = first[new], member[new]
        if len(starting) == len(regions):
            note = f"{len(self.data)} designs are measured: a region starts from {self.initial} that fill the space."
            while True:
                x = np.concatenate([first, self.space.fill(n, rng)])
                yield Proposal(x, np.concatenate([member, np.full(n, -1)]), {"regions": state, "notes": [note]})

        clock = time.perf_counter()
        at_work = [k for k, region in enumerate(regions) if region.active]
        fitted, used = [], []
        for count, k in enumerate(at_work):
            report("training", count / len(at_work))
            told = regions[k].rows
            posterior, rows = self.fit(Dataset(self.data.x[told], self.data.y[told]).distinct(), local=True, region=k)
            fitted.append(posterior)
            used.append(rows)
        info = {
            "regions": state, "gp_rows": used[0] if self.regions == 1 else used, "device": self.device,
            "train_s": time.perf_counter() - clock,
        }  # fmt: skip
        while True:
            clock = time.perf_counter()
            sets = [self._candidates(regions[k], p, known, rng) for k, p in zip(at_work, fitted, strict=True)]
            if sum(map(len, sets)) < n:  # the regions hold too little that is new: look around them
                sets[0] = self._elsewhere(np.concatenate(sets), known, rng)
                sets[1:] = [x[:0] for x in sets[1:]]
            x, owner = self._thompson(sets, fitted, n, rng)
            who = np.array(at_work, dtype=np.intp)[owner]
            info["acquire_s"] = time.perf_counter() - clock
            yield Proposal(np.concatenate([first, x]), np.concatenate([member, who]), dict(info))
            first, member = first[:0], member[:0]

    def _box(self, region: Region, centre: Array, posterior: Posterior) -> tuple[Array, Array]:
        """Section 2: sides in proportion to the lengthscales, of volume L^d, clipped to the unit cube."""
        numbers = columns_of(self.space, Real, Integer)
        low, high = np.zeros(self.space.dimension), np.ones(self.space.dimension)
        if numbers and not self.unbounded:
            log_scale = np.log(posterior.lengthscales())
            half = np.exp(log_scale - log_scale.mean()) * region.length / 2
            grid = [0.0 if levels is None else 1 / (levels - 1) for levels in self.space.levels]
            half = np.maximum(half, np.array(grid)[numbers])  # an integer can always take one step
            low[numbers] = np.clip(centre[numbers] - half, 0.0, 1.0)
            high[numbers] = np.clip(centre[numbers] + half, 0.0, 1.0)
        return low, high

    def _candidates(self, region: Region, posterior: Posterior, known: set[bytes], rng: np.random.Generator) -> Array:
        """Appendix D: min(100 d, 5000) Sobol points in the region, of which each column with probability
        min(1, 20 / d) replaces the centre's."""
        from torch import float64
        from torch.quasirandom import SobolEngine

        d = self.space.dimension
        engine = SobolEngine(d, scramble=True, seed=int(rng.integers(2**31)))  # type: ignore[no-untyped-call]
        u = engine.draw(min(100 * d, 5_000), dtype=float64).numpy()
        centre = scaled(self.space, self._centre(region)[None])[0]
        low, high = self._box(region, centre, posterior)
        moved = low + (high - low) * u
        others = columns_of(self.space, Categorical, Sequence)
        levels = np.array([level or 1 for level in self.space.levels])
        moved[:, others] = np.minimum(np.floor(u * levels), levels - 1)[:, others]

        mask = rng.random(u.shape) < min(1.0, 20 / d)
        mask[np.arange(len(u)), rng.integers(d, size=len(u))] |= ~mask.any(axis=1)
        if others and not self.unbounded:
            most = math.ceil(min(1.0, region.length) * len(others))
            lot = np.where(mask[:, others], rng.random((len(u), len(others))), np.inf)
            mask[:, others] &= lot.argsort(axis=1).argsort(axis=1) < most
        x = unscaled(self.space, np.where(mask, moved, centre))
        fresh = {key: row for row, key in enumerate(row_keys(x)) if key not in known}
        return x[sorted(fresh.values())]

    def _elsewhere(self, x: Array, known: set[bytes], rng: np.random.Generator) -> Array:
        """`x` and what is new of the whole space: all of it where it is small, else a sample."""
        size, count = self.space.size, min(100 * self.space.dimension, 5_000)
        every = self.space.unrank(np.arange(size)) if size and size <= count else self.space.sample(count, rng)
        both = np.concatenate([x, every])
        fresh = {key: row for row, key in enumerate(row_keys(both)) if key not in known}
        return both[sorted(fresh.values())]

    def _thompson(
        self, sets: list[Array], fitted: list[Posterior], n: int, rng: np.random.Generator
    ) -> tuple[Array, NDArray[np.intp]]:
        """For each design of the batch, a function drawn in every region; the best candidate of all wins."""
        draws = []
        for x, posterior in zip(sets, fitted, strict=True):
            seed = int(rng.integers(2**62))
            if len(x):
                f = posterior.sample(posterior.tensor(scaled(self.space, x)), n, seed).cpu().numpy()
                draws.append(posterior.centre + posterior.scale * f)
        x = np.concatenate(sets)
        owner = np.concatenate([np.full(len(part), k, dtype=np.intp) for k, part in enumerate(sets)])
        if not draws:
            return x, owner
        values = np.concatenate(draws, axis=1)
        chosen: list[int] = []
        for i in range(min(n, len(x))):
            chosen.append(int(values[i].argmax()))
            values[:, chosen[-1]] = -np.inf
        return x[chosen], owner[chosen]
