"""CMA-ES and its kin for integers and letters, by the `cmaes` package, replayed from what was told.

Numbers alone: CMA-ES (Hansen 2016); with integers: CMA-ES with margin (Hamano et al. 2022); with letters or categories:
CatCMA with margin (Hamano et al. 2025). Every number is its position between its bounds, 0 to 1.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..optimizer import MAX_BLOCKS, Optimizer, Proposal
from ..spaces import Space
from ..types import Array, Dataset, InputError, need, row_keys
from ..variables import Integer, Real

SIGMA = 0.2  # a fifth of the range, as the package's examples start
NEW = 0.2  # a run is over when fewer of its samples are new: of letters alone the package cannot say so
MAX_LEVELS = 10_000  # an integer of more values is treated as a real number and rounded
# What the package derives from the population size, under its own names.
PARAMETERS = ("_popsize", "_mu", "_mu_eff", "_weights", "_c1", "_cmu", "_cc", "_c_sigma", "_d_sigma")


class CmaEs(Optimizer):
    """The package's own loop, where a generation is what was told since the last one, at least `population` designs.

    So a batch at least as large as the package's default population is one generation, and smaller batches fill one
    up. If the first designs told were not asked here, the search starts at the best of them, as wide as their best
    quarter. Later designs from elsewhere are injected (Hansen 2011). When the package says stop, the search starts
    anew at a random place with twice the population (IPOP, Auger & Hansen 2005).
    """

    name = "cmaes"
    summary = "covariance matrix adaptation; margin for integers, CatCMA for letters"
    reference = "Hansen 2016; Hamano et al. 2022, 2025; package cmaes"
    supports = "any amount of data; any batch, best from 4 + 3 ln d up"

    def __init__(self, space: Space, *, seed: int = 0, minimize: bool = False, population: int | None = None) -> None:
        super().__init__(space, seed=seed, minimize=minimize)
        if population is not None and population < 4:
            raise InputError(f"population = {population} is too small.", "Use at least 4, or None for the default.")
        if seed >= 2**32:
            raise InputError(f"seed = {seed} is too large for the package cmaes.", "Use one below 2^32.")
        self.population = population or 4 + math.floor(3 * math.log(space.dimension))  # (48) of the tutorial
        self._search: Search | None = None
        self._replayed = 0  # tells that the search knows

    def settings(self) -> dict[str, Any]:
        return super().settings() | {"population": self.population}

    def search(self) -> Search:
        """The search as it stands after all tells: a function of the told sequence, kept between asks for speed."""
        if self._search is None:
            self._search = Search(self.space, self.seed, self.population)
        end = np.cumsum([0, *self.tells])
        for k in range(self._replayed, len(self.tells)):
            told = slice(end[k], end[k + 1])
            self._search.tell(self.data.x[told], self.data.y[told])
            self._replayed = k + 1
        return self._search

    def propose(self, n: int, rng: np.random.Generator) -> Iterator[Proposal]:
        search = self.search()
        info = {"generation": search.strategy.core._g, "population": search.population, "restarts": search.restarts}
        start, stop = 0, len(search.generation) + n  # what was told of this generation comes again, and is known
        while True:
            yield Proposal(np.stack([draw.row for draw in search.sample(stop)[start:stop]]), info=info)
            start, stop = stop, stop + n


class Draw(NamedTuple):
    """One sample of the search distribution: as a design, as the package wants it back, and the randomness after."""

    row: Array
    key: bytes
    raw: Any
    after: Any


class Search:
    """Draws from the package's strategy and feeds it generation by generation, run after run."""

    def __init__(self, space: Space, seed: int, population: int) -> None:
        self.layout, self.seed, self.population = Layout.of(space), seed, population
        self.rng = np.random.RandomState(seed)
        self.values: dict[bytes, float] = {}  # all that was told: a design drawn again need not be measured again
        self.generation: dict[bytes, Array] = {}  # told since the last update
        self.restarts = 0
        self._begin(Start())

    def _begin(self, start: Start) -> None:
        self.start, self.strategy = start, Strategy(self.layout, start, self.population, self.rng)
        self.draws: list[Draw] = []

    def sample(self, count: int) -> list[Draw]:
        """At least `count` samples of the current generation; asking for them again gives the same."""
        while len(self.draws) < count:
            row, raw = self.strategy.draw()
            self.draws.append(Draw(row, row_keys(row[None])[0], raw, self.rng.get_state()))
        return self.draws

    def tell(self, x: Array, y: Array) -> None:
        """Take in the rows of one tell, and update the distribution if they complete a generation."""
        first = not self.values
        self.values.update(zip(row_keys(x), y.tolist(), strict=True))
        self.generation.update(zip(row_keys(x), x, strict=True))
        if first and not self._own():
            self.generation, data = {}, Dataset(x, y).distinct()
            self.rng.seed(self.seed)  # whatever was drawn in vain
            self._begin(Start.at(self.layout, data.x, data.y) if len(data) else Start())
        elif len(self.generation) >= self.population:
            self._update()

    def _own(self) -> bool:
        """Were the told designs asked here? Then most of the first samples that were new are among them."""
        count = min(self.population, len(self.generation))
        first = [draw.key for draw in self.sample(count)[:count]]
        return sum(key in self.generation for key in first) > sum(key not in self.values for key in first)

    def _reach(self) -> int:
        """How many samples were drawn up to the last that is in the told generation; 0 if none is."""
        missing, last, size = set(self.generation), 0, len(self.generation)
        if not self._own():
            return 0
        for count in range(1, MAX_BLOCKS * size + 1):  # an ask draws no further
            if not missing or count > last + 2 * size:
                break
            key = self.sample(count)[count - 1].key
            if key in missing:
                missing.remove(key)
                last = count
        return last

    def _update(self) -> None:
        """One turn of the package's loop, with all members whose value is known."""
        told, reach = len(self.generation), self._reach()
        sample = self.draws[: reach or self.population]
        new = {draw.key for draw in sample if draw.key in self.generation or draw.key not in self.values}
        members = [(draw.raw, self.values[draw.key]) for draw in sample[:reach] if draw.key in self.values]
        for draw in sample[:reach]:
            self.generation.pop(draw.key, None)  # what is left came from elsewhere
        members += [(self.strategy.inject(row), self.values[key]) for key, row in self.generation.items()]
        # Asks may have drawn further: the stream goes on after the last sample that was measured.
        self.rng.set_state(sample[-1].after)
        self.generation, self.draws = {}, []
        y = np.array([value for _, value in members])
        if np.isnan(y).all():
            return
        y[np.isnan(y)] = np.nanmin(y)  # a failure ranks last
        fresh = Strategy(self.layout, self.start, len(members), self.rng)
        if self.strategy.core._g == 0:
            self.strategy, self.population = fresh, told
        else:
            self.strategy.resize(fresh)
        self.strategy.tell([(raw, -value) for (raw, _), value in zip(members, y.tolist(), strict=True)])
        if self.strategy.stopped or len(new) < NEW * len(sample):
            self.population, self.restarts = 2 * self.population, self.restarts + 1
            self._begin(Start(mean=self.rng.random_sample(self.layout.space.dimension)))


@dataclass(frozen=True)
class Layout:
    """Which columns of a row are real, whole, and choices (letters, categories), and the number of these' values."""

    space: Space
    real: NDArray[np.intp]
    whole: NDArray[np.intp]
    choice: NDArray[np.intp]
    levels: tuple[int, ...]

    @classmethod
    def of(cls, space: Space) -> Layout:
        whole = [w.start for v, w in space.slices() if isinstance(v, Integer) and v.levels <= MAX_LEVELS]
        real = [w.start for v, w in space.slices() if isinstance(v, Real | Integer) and w.start not in whole]
        choice = np.setdiff1d(np.arange(space.dimension), [*real, *whole])
        levels = tuple(space.levels[column] or 0 for column in choice)
        return cls(space, np.array(real, np.intp), np.array(whole, np.intp), choice, levels)

    @property
    def number(self) -> NDArray[np.intp]:
        """The columns of the Gaussian, in the order of the package: real, then whole."""
        return np.concatenate([self.real, self.whole])

    def to_unit(self, x: Array) -> Array:
        """Rows `(n, d)` with every number as its position between its bounds."""
        parts = [v.to_unit(x[:, w]) if isinstance(v, Real | Integer) else x[:, w] for v, w in self.space.slices()]
        return np.concatenate(parts, axis=1)

    def from_unit(self, u: Array) -> Array:
        """The inverse of `to_unit`, whole numbers rounded."""
        parts = [v.from_unit(u[:, w]) if isinstance(v, Real) else u[:, w] for v, w in self.space.slices()]
        for k, v in enumerate(self.space.variables):
            if isinstance(v, Integer):
                parts[k] = v.snap(v.lower + parts[k] * (v.upper - v.lower))
        return np.concatenate(parts, axis=1)


@dataclass(frozen=True)
class Start:
    """Where a run starts: the mean `(d,)` in unit positions, the step size, and the letters' shares; None: default."""

    mean: Array | None = None
    sigma: float = SIGMA
    shares: Array | None = None

    @classmethod
    def at(cls, layout: Layout, x: Array, y: Array) -> Start:
        """At the best design, as wide as the best quarter of them, though not wider than from nothing."""
        best = x[np.argsort(-y, kind="stable")[: max(1, len(y) // 4)]]
        u = layout.to_unit(best)
        spread = np.sqrt(u[:, layout.number].var(axis=0).mean()) if len(layout.number) and len(u) > 1 else SIGMA
        # Letters: half of the mass on the best design, half on the best quarter by Laplace's rule.
        shares = np.zeros((len(layout.choice), max(layout.levels, default=0)))
        for k, (column, levels) in enumerate(zip(layout.choice, layout.levels, strict=True)):
            count = np.bincount(best[:, column].astype(np.intp), minlength=levels)
            shares[k, :levels] = 0.5 * (count + 1) / (len(best) + levels)
            shares[k, int(best[0, column])] += 0.5
        return cls(u[0], float(np.clip(spread, SIGMA / 20, SIGMA)), shares)


class Strategy:
    """One of the package's three strategies, the simplest that covers the space."""

    def __init__(self, layout: Layout, start: Start, population: int, rng: np.random.RandomState) -> None:
        self.layout = layout
        self.package = need("cmaes", "rivals", "The method 'cmaes'")
        mean = np.full(len(layout.number), 0.5) if start.mean is None else start.mean[layout.number]
        bounds = np.tile([0.0, 1.0], (len(mean), 1))
        if len(layout.choice):
            self.model = self._with_choices(start, mean, population)
        elif len(layout.whole):
            steps = np.array([0.0] * len(layout.real) + self._steps())
            self.model = self.package.CMAwM(mean, start.sigma, bounds, steps, population_size=population)
        else:
            self.model = self.package.CMA(mean, start.sigma, bounds, population_size=population)
        self.core = getattr(self.model, "_cma", self.model)  # CMAwM wraps a CMA
        self.core._rng = rng

    def _steps(self) -> list[float]:
        """Between two neighbouring whole numbers, in unit positions."""
        return [1 / ((self.layout.space.levels[column] or 2) - 1) for column in self.layout.whole]

    def _with_choices(self, start: Start, mean: Array, population: int) -> Any:
        whole = [np.arange(round(1 / step) + 1) * step for step in self._steps()]
        given: dict[str, Any] = {"cat_param": None if start.shares is None else start.shares.copy()}
        if len(mean) and start.mean is not None:
            given |= {"mean": mean, "sigma": start.sigma, "cov": np.eye(len(mean))}
        x_space = [[0.0, 1.0]] * len(self.layout.real) or None
        return self.package.CatCMAwM(x_space, whole or None, self.layout.levels, population, **given)

    def draw(self) -> tuple[Array, Any]:
        """A design `(d,)`, and the same as the package wants it back."""
        u = np.zeros((1, self.layout.space.dimension))
        drawn = self.model.ask()
        if len(self.layout.choice):
            u[0, self.layout.number] = np.concatenate([part for part in (drawn.x, drawn.z) if part is not None] or [[]])
            u[0, self.layout.choice] = drawn.c.argmax(axis=1)
            return self.layout.from_unit(u)[0], drawn
        u[0, self.layout.number], raw = drawn if len(self.layout.whole) else (drawn, drawn)
        return self.layout.from_unit(u)[0], raw

    def inject(self, row: Array) -> Any:
        """A design from elsewhere as if drawn here, with steps too long renormalised (Hansen 2011)."""
        u = self.layout.to_unit(row[None])[0]
        raw, d = None, len(self.layout.number)
        if d:
            core, scale = self.core, getattr(self.model, "_A", np.ones(d))
            b, diag = core._eigen_decomposition()
            y = (u[self.layout.number] - core._mean) / (core._sigma * scale)
            length = float(np.linalg.norm(b.T @ y / np.maximum(diag, 1e-300)))
            y *= min(1.0, (math.sqrt(d) + 2 * d / (d + 2)) / max(length, 1e-300))
            raw = core._mean + core._sigma * y * (scale if len(self.layout.choice) else 1.0)
        if not len(self.layout.choice):
            return raw
        choice = u[self.layout.choice, None] == np.arange(max(self.layout.levels))
        return self.package.CatCMAwM.Solution(u[self.layout.real], u[self.layout.whole], choice, raw)

    def tell(self, members: list[tuple[Any, float]]) -> None:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # equal values have no spread, of which CatCMA takes the median
            self.model.tell(members)

    def resize(self, other: Strategy) -> None:
        """Go on with the population of `other`, and all that the package derives from it."""
        for name in PARAMETERS:
            if hasattr(self.core, name):
                setattr(self.core, name, getattr(other.core, name))
        if hasattr(self.model, "margin"):
            self.model.margin = other.model.margin

    @property
    def stopped(self) -> bool:
        """Does the package say that this run is over? It cannot say so of letters alone."""
        return bool(len(self.layout.number) and self.model.should_stop())
