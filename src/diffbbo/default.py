"""The default: an inverse model, variation and forward models share every batch by their success.

A batch is shared by five proposers (docs/method.md):

    inverse   draws of p(x | y), each at a score and a temperature of its own, and the best designs part-noised and
              denoised under a high score
    judged    what a panel of forward models likes best among many of those draws and many children of the best designs
    climb     where each opinion of the panel ends when it climbs from the best designs
    leap      what the panel likes best anywhere in the space, and where it ends when it climbs from there
    vary      children of the best designs, unjudged: crossover and mutation

Each has its usual share; who finds better designs gets more of the next batch (portfolio.py).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from . import portfolio
from .acquisition import Acquisition, UaE
from .algorithm import Algorithm1, DiffBBOPaper
from .diffusion.config import EnsembleConfig
from .optimizer import Proposal
from .spaces import Space
from .statistics import normal_scores
from .types import Array, Distinct, InputError, row_keys
from .variation import apart, breed, changes, choices, mutate, numbers, scaled, tournament, unscaled

if TYPE_CHECKING:
    from .forward.panel import Panel

USUAL = {"inverse": 0.2, "judged": 0.15, "climb": 0.05, "leap": 0.1, "vary": 0.5}  # shares before anything is known
JUDGED = {"judged", "climb", "leap"}  # those that ask the panel
PARTS = ("shares by success", "temperature", "smoothing")  # what can be left out beside a proposer
FLOOR = 0.03  # nobody's share falls below
PARENTS = 20
POOL = 20  # designs judged per design asked for
GOOD = 0.1  # part of the measured designs whose scores half of the draws are aimed at
TARGETS = (1.0, 1.2)  # scores that refined designs are denoised under, as parts of phi
NOISE = (0.2, 0.4, 0.6)  # standard deviations to which designs are noised for refinement
STEPS = 800  # of training at most, with the preset `fast`
LEARNT = 4000  # rows that the inverse model learns from: the best ones
GENERATIONS, CROWD = 8, 24  # of the climb over letters and categories


class DiffBBO(Algorithm1):
    """An inverse model, variation and judges share every batch by their success.

    `without` leaves out proposers or other parts; with the proposer `inverse` alone it is Algorithm 1. The other
    settings are those of Algorithm 1: `preset`, `config`, `device`, `acquisition`. `DiffBBO.paper(space)` is the paper
    to the letter.
    """

    name = "diffbbo"
    summary = "inverse diffusion ensemble, variation and forward judges share a batch by success"
    reference = "ours, after Wu et al. 2024, Diffusion-BBO: docs/method.md"
    default_acquisition: ClassVar[Acquisition] = UaE(weights=(0.8, 0.9, 1.0, 1.1, 1.2))
    method: ClassVar[dict[str, Any]] = {"learning_rate": 4e-3, "ema": 0.98, "sampling_steps": 40, "gamma": 0.5}
    draws: ClassVar[int | None] = 200

    def __init__(
        self, space: Space, *, seed: int = 0, minimize: bool = False, preset: str = "auto", device: str = "auto",
        acquisition: Acquisition | None = None, config: EnsembleConfig | None = None,
        without: Sequence[str] = (),
    ) -> None:  # fmt: skip
        preset = "fast" if preset == "auto" else preset  # on any hardware: more brings nothing here
        super().__init__(
            space, seed=seed, minimize=minimize, preset=preset, device=device, acquisition=acquisition, config=config
        )
        unknown = [part for part in without if part not in (*USUAL, *PARTS)]
        self.without = tuple(without)
        self.arms = tuple(arm for arm in USUAL if arm not in without)
        if unknown or not self.arms:
            raise InputError(
                f"without = {self.without} {f'has an unknown {unknown[0]!r}' if unknown else 'leaves no proposer'}.",
                f"Leave out some of {', '.join((*USUAL, *PARTS))}.",
            )

    @classmethod
    def paper(cls, space: Space, **settings: Any) -> DiffBBOPaper:
        """The method as published, with all its choices."""
        return DiffBBOPaper(space, **settings)

    @property
    def config(self) -> EnsembleConfig:
        full = super().config
        if self._config is None and self._preset == "fast":
            return EnsembleConfig(**(vars(full) | {"max_steps": min(STEPS, full.max_steps)}))
        return full

    def settings(self) -> dict[str, Any]:
        return super().settings() | {"without": list(self.without)}

    def fill(self, n: int, told: int, rng: np.random.Generator) -> Iterator[Proposal]:
        """As usual, but of a first batch half is drawn towards the middle, some more and some less: in many dimensions
        nearly all of a space is corners, and from the middle it is less far to wherever the best design lies."""
        if told:
            yield from super().fill(n, told, rng)
            return
        number = numbers(self.space)
        for proposal in super().fill(n, told, rng):
            u = scaled(self.space, proposal.x)
            kept = np.where(rng.random(len(u)) < 0.5, rng.random(len(u)), 1.0)[:, None]
            yield replace(proposal, x=unscaled(self.space, np.where(number, 0.5 + kept * (u - 0.5), u)))

    def propose(self, n: int, rng: np.random.Generator) -> Iterator[Proposal]:
        data = self.data.distinct()
        if self.arms == ("inverse",) or data.flat:
            yield from super().propose(n, rng)
            return
        clock = time.perf_counter()
        round_ = Round(self, data, n, rng)
        usual = np.array([USUAL[arm] for arm in self.arms])
        learn = "shares by success" not in self.without
        shares, owed = portfolio.shares(self.data.y, self.tells, usual / usual.sum(), min(FLOOR, 1 / len(usual)), learn)
        places = [self.arms[k] for k in portfolio.deal(shares, n, owed)]
        x, member, origin = round_.dealt(places)
        asked = {arm: origin.count(arm) for arm in self.arms}
        info = round_.info | {
            "shares": dict(zip(self.arms, shares.round(4).tolist(), strict=True)), "asked": asked,
            "step": round_.step, "acquire_s": time.perf_counter() - clock - round_.info.get("train_s", 0.0),
        }  # fmt: skip
        yield Proposal(x, member, info)
        while True:
            yield Proposal(round_.children(n))


class Round:
    """One batch in the making: parents, models as they are needed, and what each proposer has to offer, best first."""

    def __init__(self, method: DiffBBO, data: Distinct, n: int, rng: np.random.Generator) -> None:
        self.method, self.space, self.n, self.rng = method, method.space, n, rng
        order = np.argsort(-data.y, kind="stable")
        self.x, self.y = data.x[order], data.y[order]  # best first
        self.scores = normal_scores(self.y)
        self.step = portfolio.step_length(method.data.y, method.tells)
        # A batch keeps apart, but no further than half of what as many designs are that fill the space.
        self.gap = min(self.step, 0.5 * n ** (-1 / max(1, int(numbers(self.space).sum()))))
        self.known = set(row_keys(method.data.x)) | set(row_keys(method.pending))
        self.info: dict[str, Any] = {}
        self.parents, self.values = self._chosen()

    def _chosen(self) -> tuple[Array, Array]:
        """The parents and their normal scores: half of them have the best measured values, half the best ones after the
        panel has smoothed them, since the best of many noisy values is mostly luck."""
        measured = np.arange(min(len(self.y), 20 * PARENTS))  # best first
        if "smoothing" in self.method.without or not set(self.method.arms) & JUDGED:
            first = apart(self.space, self.x[measured], PARENTS, self.step)
            return self.x[first], self.scores[first]
        order = np.argsort(-self.panel.smoothed, kind="stable")
        lists = [(measured, self.scores), (self.panel.seen[order], self.panel.smoothed[order])]
        kept = [apart(self.space, self.x[rows], PARENTS // 2, self.step) for rows, _ in lists]
        rows = np.concatenate([rows[k] for (rows, _), k in zip(lists, kept, strict=True)])
        return self.x[rows], np.concatenate([values[k] for (_, values), k in zip(lists, kept, strict=True)])

    # ---- models, made when first needed ------------------------------------------------------------------

    @cached_property
    def panel(self) -> Panel:
        from .forward.layout import Layout
        from .forward.panel import Panel

        layout = Layout(tuple(choices(self.space)))
        panel = Panel.fit(layout, scaled(self.space, self.x), self.scores, self.rng, self.method.device)
        self.info["skill"] = list(panel.skill)
        return panel

    @cached_property
    def drawn(self) -> tuple[Array, NDArray[np.intp]]:
        """Draws of the inverse model, half at scores from y* upwards and half at those of good designs, each at a
        temperature of its own; and refinements of the best designs; mixed."""
        rng = self.rng
        inverse = self.method.train(self.x[:LEARNT], self.y[:LEARNT], rng)
        aimed, found = self.method.aim(inverse, self.n, rng)
        self.info |= found
        top = float(inverse.scale.targets([TARGETS[1]])[0])
        high = aimed + (max(top, aimed) - aimed) * rng.random(self.n)
        good = rng.choice(self.y[: max(1, int(GOOD * len(self.y)))], self.n)
        scores = np.where(rng.random(self.n) < 0.5, good, high)
        heat = None if "temperature" in self.method.without else rng.random(self.n)
        drawn = [inverse.ensemble.sample_each(inverse.scale.condition(scores), temperature=heat)]
        for noise in NOISE:
            scores = inverse.scale.targets(rng.uniform(*TARGETS, size=-(-self.n // len(NOISE))).tolist())
            starts = inverse.encoder.encode(self.parents[tournament(self.values, len(scores), 2, rng)])
            drawn.append(inverse.ensemble.sample_each(inverse.scale.condition(scores), starts, noise))
        rows, members = (np.concatenate(parts) for parts in zip(*drawn, strict=True))
        order = rng.permutation(len(rows))
        return inverse.encoder.decode(rows)[order], members[order]

    # ---- proposers: rows and the member that drew each ---------------------------------------------------

    def inverse(self) -> tuple[Array, NDArray[np.intp]]:
        """What the inverse model drew, unjudged."""
        return self.drawn

    def judged(self) -> tuple[Array, NDArray[np.intp]]:
        """The panel's favourites among children of the best designs and the inverse model's draws."""
        rows, member = self.children(POOL * self.n), np.full(POOL * self.n, -1)
        if "inverse" in self.method.arms:
            drawn, by = self.drawn
            rows, member = np.concatenate([rows, drawn]), np.concatenate([member, by])
        fresh = np.array([key not in self.known for key in row_keys(rows)])
        rows, member = rows[fresh], member[fresh]
        if not len(rows):
            return rows, member
        best = self.panel.favourites(scaled(self.space, rows), 4 * self.n)
        return rows[best], member[best]

    def climb(self) -> tuple[Array, NDArray[np.intp]]:
        """Where every opinion of the panel ends when it climbs from the best designs."""
        each = max(CROWD, -(-2 * self.n // self.panel.opinions))
        rows = self.parents[tournament(self.values, self.panel.opinions * each, 2, self.rng)]
        if not self.panel.layout.letters:
            columns = min(1.0, max(0.2, 20 / self.space.dimension))
            rows = mutate(self.space, rows, self.rng, columns, 0.3 * self.step)
        return self._climbed(rows, 4 * self.step)

    def leap(self) -> tuple[Array, NDArray[np.intp]]:
        """Every opinion's favourites among designs from all over the space, and where it ends when it climbs from
        them, in turns."""
        wild = self.space.sample(POOL * self.n, self.rng)
        liked = self.panel.ranked(scaled(self.space, wild))[:, : max(CROWD, -(-self.n // self.panel.opinions))]
        climbed, member = self._climbed(wild[liked.ravel()], 1.0)
        picked = wild[liked.T.ravel()]
        return np.stack([climbed, picked], axis=1).reshape(-1, self.space.dimension), np.repeat(member, 2)

    def vary(self) -> tuple[Array, NDArray[np.intp]]:
        """Children of the best designs, as they come."""
        return self.children(2 * self.n), np.full(2 * self.n, -1)

    def children(self, n: int) -> Array:
        return breed(self.space, self.parents, self.values, n, self.step, self.rng)

    def _climbed(self, rows: Array, reach: float) -> tuple[Array, NDArray[np.intp]]:
        """Each opinion climbs from its own rows `(opinions * each, d)`, first over letters and categories, then over
        numbers, these at most `reach` away; everyone's best first."""
        count, dimension = self.panel.opinions, self.space.dimension
        if self.panel.layout.letters:
            rows = self._exchange(rows, count, len(rows) // count)
        u, values = self.panel.ascend(scaled(self.space, rows).reshape(count, -1, dimension), reach)
        order = np.argsort(-values, axis=1, kind="stable")
        turns = u[np.arange(count)[:, None], order].transpose(1, 0, 2).reshape(-1, dimension)
        return unscaled(self.space, turns), np.full(len(turns), -1)

    def _exchange(self, rows: Array, count: int, each: int) -> Array:
        """Every opinion breeds its own crowd towards what it likes: rows `(count * each, d)`."""
        import torch

        def read(rows: Array) -> Array:
            u = torch.as_tensor(scaled(self.space, rows), device=self.panel.device).view(count, -1, rows.shape[1])
            with torch.no_grad():
                return np.asarray(self.panel.read(u).cpu())

        crowd = rows.reshape(count, each, -1)
        liking = read(rows)
        for _ in range(GENERATIONS):
            pick = self.rng.integers(each, size=(2, count, each))
            father, mother = (crowd[np.arange(count)[:, None], index] for index in pick)
            cross = self.rng.random(crowd.shape) < 0.5 * (self.rng.random((count, each, 1)) < 0.5)
            child = np.where(cross, mother, father).reshape(count * each, -1)
            child = mutate(self.space, child, self.rng, 1 / crowd.shape[2], self.step)
            both = np.concatenate([crowd, child.reshape(crowd.shape)], axis=1)
            liked = np.concatenate([liking, read(child)], axis=1)
            # Of equal ones the first stays, so that a crowd keeps what it has; a repeat would only take a place.
            again = np.array([_repeats(group) for group in both])
            best = np.argsort(-np.where(again, -np.inf, liked), axis=1, kind="stable")[:, :each]
            crowd = np.take_along_axis(both, best[..., None], axis=1)
            liking = np.take_along_axis(liked, best, axis=1)
        return crowd.reshape(count * each, -1)

    # ---- the batch ---------------------------------------------------------------------------------

    def dealt(self, places: Sequence[str]) -> tuple[Array, NDArray[np.intp], list[str]]:
        """Fill every place from its proposer with new designs apart from each other; `vary` helps out."""
        queues = {arm: iter(zip(*getattr(self, arm)(), strict=True)) for arm in USUAL if arm in places}
        spare = iter(zip(*self.vary(), strict=True))
        rows: list[Array] = []
        members: list[int] = []
        origin: list[str] = []
        taken = np.empty((0, self.space.dimension))
        known = set(self.known)
        for place in places:
            for queue, arm in ((queues[place], place), (spare, "vary")):
                found = self._next(queue, known, taken)
                if found is not None:
                    row, member = found
                    rows.append(row)
                    members.append(int(member))
                    origin.append(arm)
                    taken = np.concatenate([taken, scaled(self.space, row[None])])
                    break
        if not rows:
            return self.children(self.n), np.full(self.n, -1), []
        return np.stack(rows), np.array(members, dtype=np.intp), origin

    def _next(self, queue: Iterator[tuple[Array, Any]], known: set[bytes], taken: Array) -> tuple[Array, Any] | None:
        """The queue's next new design that is apart from those taken; if none is left, the first new one."""
        crowded: tuple[Array, Any] | None = None
        for row, member in queue:
            if row_keys(row[None])[0] in known:
                continue
            if len(taken) and changes(self.space, taken, scaled(self.space, row[None])[0], self.gap).min() < 1.0:
                crowded = crowded or (row, member)
                continue
            crowded = row, member
            break
        if crowded is not None:
            known.add(row_keys(crowded[0][None])[0])
        return crowded


def _repeats(rows: Array) -> NDArray[np.bool_]:
    """Which rows have occurred before in the list."""
    _, first = np.unique(rows, axis=0, return_index=True)
    again = np.ones(len(rows), dtype=bool)
    again[first] = False
    return again
