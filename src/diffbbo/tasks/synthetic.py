"""Functions in closed form with a known optimum, of any size: for tests, and to compare methods quickly."""

from __future__ import annotations

from inspect import signature
from typing import Any, ClassVar

import numpy as np

from ..spaces import Space
from ..task import Card, Task, quarter
from ..types import Array, InputError
from ..variables import Categorical, Real, Variable

REFERENCE = 2_000  # random designs whose worst value is the 0 of the normalised scale
SURJANOVIC = "Surjanovic and Bingham, Virtual Library of Simulation Experiments, sfu.ca/~ssurjano"


def whole(what: str, value: Any, least: int, most: int | None = None) -> int:
    """`value` if it is a whole number in that range, or an error that names both."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least or (most is not None and value > most):
        limits = f"from {least} to {most}" if most is not None else f"of at least {least}"
        raise InputError(f"{what} = {value!r} is not a whole number {limits}.", f"Give, say, {what} = {least}.")
    return value


class Synthetic(Task):
    """A function whose best value is known. A subclass writes `value`, and `sample` where not every design is valid.

    `data` is the size of the random sample whose 25th to 50th percentile, counted from the worst, `start` gives away;
    0 starts from nothing. An instance's name holds every setting that is not the default: `ackley-60:data=0`.
    """

    minimize = True
    chunk = 10_000
    source: ClassVar[str] = SURJANOVIC
    exact: ClassVar[str] = "the function, its usual bounds and its optimum"
    optimum: Array  # a row (d,) where the best value is attained

    def __init__(self, space: Space, optimum: Array, maximum: float, **settings: Any) -> None:
        self.space, self.optimum, self.maximum = space, np.asarray(optimum, dtype=np.float64), maximum
        self.data = whole("data", settings["data"], 0)
        size = f"-{settings.pop('dimension')}" if "dimension" in settings else ""
        usual = signature(type(self)).parameters
        changed = ",".join(f"{key}={value}" for key, value in settings.items() if value != usual[key].default)
        self.name = f"{self.name}{size}{':' if changed else ''}{changed}"  # type: ignore[misc]
        self.range = self._worst(), maximum

    def value(self, x: Array) -> Array:
        """The values `(n,)` of valid rows `x` `(n, d)`; NaN where a design cannot be made."""
        raise NotImplementedError

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """`n` random designs that can be made."""
        return self.space.sample(n, rng)

    def start(self, seed: int = 0) -> tuple[Array, Array]:
        """Middling designs: the 25th to 50th percentile, counted from the worst, of a sample drawn with this seed."""
        x = self.sample(self.data, np.random.default_rng(seed))
        y = self.value(x)
        rows = quarter(np.arange(len(y)), -y if self.minimize else y)
        return x[rows], y[rows]

    def evaluate(self, x: Array) -> Array:
        return self.value(self.space.rows(x))

    def _worst(self) -> float:
        y = self.value(self.sample(REFERENCE, np.random.default_rng(0)))
        return float(y.max() if self.minimize else y.min())

    def card(self) -> Card:
        return Card(
            name=self.name,
            summary=self.summary,
            source=self.source,
            licence="none needed: a formula",
            size=self.space.size,
            dimension=self.space.dimension,
            start=self.data // 2 - self.data // 4,
            maximum=self.maximum,
            exact=self.exact,
            remade="the start data: the 25th to 50th percentile, counted from the worst, of a random sample",
        )


class _AnyDimension(Synthetic):
    """On the box `bounds`^dimension, with the optimum 0 where every coordinate is `best_at`.

    With `shift` above 0 the optimum lies elsewhere, at a random place (of that seed) in the middle 80 % of the box: the
    textbooks' lies in the middle or near it, which favours whoever looks there first.
    """

    bounds: ClassVar[tuple[float, float]]
    best_at: ClassVar[float]
    least: ClassVar[int] = 1

    def __init__(self, dimension: int = 10, data: int = 2_000, shift: int = 0) -> None:
        whole("dimension", dimension, self.least)
        lower, upper = self.bounds
        optimum = np.full(dimension, self.best_at)
        if whole("shift", shift, 0):
            optimum = lower + (upper - lower) * np.random.default_rng(shift).uniform(0.1, 0.9, size=dimension)
        self.offset = optimum - self.best_at
        super().__init__(
            Space(tuple(_reals(dimension, lower, upper))), optimum, 0.0, dimension=dimension, data=data, shift=shift
        )

    def value(self, x: Array) -> Array:
        return self.function(x - self.offset)

    def function(self, x: Array) -> Array:
        """The textbook's, of rows `(n, d)`."""
        raise NotImplementedError


class Ackley(_AnyDimension):
    """A flat, rippled plain with one deep hole in the middle."""

    name = "ackley"
    summary = "Ackley: a rippled plain with one deep hole"
    bounds = (-32.768, 32.768)
    best_at = 0.0

    def function(self, x: Array) -> Array:
        return _ackley(x)


class Rastrigin(_AnyDimension):
    """A bowl with a local minimum at every point of the integer grid."""

    name = "rastrigin"
    summary = "Rastrigin: a bowl with a dent at every integer point"
    bounds = (-5.12, 5.12)
    best_at = 0.0

    def function(self, x: Array) -> Array:
        return np.asarray((x**2 + 10 * (1 - np.cos(2 * np.pi * x))).sum(axis=1))


class Levy(_AnyDimension):
    """Waves along every axis over a shallow bowl."""

    name = "levy"
    summary = "Levy: waves over a shallow bowl"
    bounds = (-10.0, 10.0)
    best_at = 1.0

    def function(self, x: Array) -> Array:
        u = (x - 1) / 4  # w = 1 + u in the textbooks; sin(pi w)^2 = sin(pi u)^2, which is exactly 0 at the optimum
        first = np.sin(np.pi * u[:, 0]) ** 2
        inner = u[:, :-1] ** 2 * (1 + 10 * np.sin(np.pi * (1 + u[:, :-1]) + 1) ** 2)
        last = u[:, -1] ** 2 * (1 + np.sin(2 * np.pi * u[:, -1]) ** 2)
        return np.asarray(first + inner.sum(axis=1) + last)


class Rosenbrock(_AnyDimension):
    """A narrow curved valley: easy to find, hard to follow."""

    name = "rosenbrock"
    summary = "Rosenbrock: a narrow curved valley"
    bounds = (-5.0, 10.0)
    best_at = 1.0
    least = 2

    def function(self, x: Array) -> Array:
        here, following = x[:, :-1], x[:, 1:]
        return np.asarray((100 * (following - here**2) ** 2 + (1 - here) ** 2).sum(axis=1))


class Branin(Synthetic):
    """Two variables, three equal minima; the one kept as `optimum` is (pi, 2.275)."""

    name = "branin"
    summary = "Branin: two variables, three equal minima"

    def __init__(self, data: int = 2_000) -> None:
        space = Space((Real("x1", -5, 10), Real("x2", 0, 15)))
        super().__init__(space, np.array([np.pi, 2.275]), 10 / (8 * np.pi), data=data)

    def value(self, x: Array) -> Array:
        first, second = x.T
        valley = second - 5.1 / (4 * np.pi**2) * first**2 + 5 / np.pi * first - 6
        # 10 (1 - t) cos + 10 with t = 1 / (8 pi), in an order that gives exactly 10 t where the cosine is -1.
        return np.asarray(valley**2 + 10 * (1 + np.cos(first)) - 10 / (8 * np.pi) * np.cos(first))


class Hartmann6(Synthetic):
    """Six variables in the unit cube, six local minima."""

    name = "hartmann6"
    summary = "Hartmann: six variables, six local minima"
    # Published to five digits (-3.32237); ours are Newton's steps from the published place until nothing changed.
    PLACE = (0.2016895110067054, 0.150010691823458, 0.476873974221897,
             0.2753324304940561, 0.3116516166001133, 0.6573005340656204)  # fmt: skip
    LOWEST = -3.322368011415515

    HEIGHT = np.array([1.0, 1.2, 3.0, 3.2])
    SHARPNESS = np.array([[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14],
                          [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]])  # fmt: skip
    CENTRE = np.array([[1312, 1696, 5569, 124, 8283, 5886], [2329, 4135, 8307, 3736, 1004, 9991],
                       [2348, 1451, 3522, 2883, 3047, 6650], [4047, 8828, 8732, 5743, 1091, 381]]) / 10_000  # fmt: skip

    def __init__(self, data: int = 2_000) -> None:
        super().__init__(Space(tuple(_reals(6, 0, 1))), np.array(self.PLACE), self.LOWEST, data=data)

    def value(self, x: Array) -> Array:
        away = (self.SHARPNESS * (x[:, None] - self.CENTRE) ** 2).sum(axis=2)  # (n, 4)
        return np.asarray(-(self.HEIGHT * np.exp(-away)).sum(axis=1))


class AckleyMixed(Synthetic):
    """Ackley's function of 50 switches (0 or 1) and 3 numbers in [-1, 1]; best where all are 0."""

    name = "ackley-mixed"
    summary = "Ackley of 50 binary and 3 continuous variables"
    source = "Bliek et al., MVRSM (GECCO 2021); as in Wan et al., Casmopolitan (ICML 2021)"
    exact = "the function, the 50 binary and 3 continuous variables and the optimum; without their noise of 1e-6"

    def __init__(self, data: int = 2_000) -> None:
        switches: list[Variable] = [Categorical(f"b{i}", (0, 1)) for i in range(1, 51)]
        super().__init__(Space((*switches, *_reals(3, -1, 1))), np.zeros(53), 0.0, data=data)

    def value(self, x: Array) -> Array:
        return _ackley(x)  # a switch's column holds the index of its value, which is the value


def _reals(count: int, lower: float, upper: float) -> list[Variable]:
    return [Real(f"x{i}", lower, upper) for i in range(1, count + 1)]


def _ackley(x: Array) -> Array:
    """20 + e - 20 exp(-0.2 rms(x)) - exp(mean cos(2 pi x)), in an order that gives exactly 0 at 0 and never less."""
    spread = np.sqrt((x**2).mean(axis=1))
    ripple = np.cos(2 * np.pi * x).mean(axis=1)
    return np.asarray(-20 * np.expm1(-0.2 * spread) - np.e * np.expm1(ripple - 1))
