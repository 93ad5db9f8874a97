"""What a problem is: its space, its first data, its oracle, and a card that says where it comes from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .assets import load_arrays as load_arrays
from .figures import distribution, new_figure, save_figure, styled
from .spaces import Space
from .types import Array, InputError, as_numbers


@dataclass(frozen=True)
class Card:
    """A task's passport. `exact` says what is the published benchmark, `remade` what is ours."""

    name: str
    summary: str
    source: str
    licence: str
    size: int | None
    dimension: int
    start: int
    maximum: float | None
    exact: str
    remade: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class Task:
    """A black box to optimise. A subclass sets `space` and writes `start` and `evaluate`."""

    name: ClassVar[str] = ""  # under which make_task finds it
    summary: ClassVar[str] = ""
    space: Space
    minimize: bool = False
    maximum: float | None = None  # the best value there is or is known (the smallest, where the task is minimised)
    range: tuple[float, float] | None = None  # the values that `normalise` maps to 0 (the worst) and to 1 (the best)
    table: Array | None = None  # every value known, for the picture
    costly: bool = False  # a design takes long enough to be worth a worker process of its own
    chunk: int = 1  # how many designs one call of `evaluate` should get: many where it is cheap and vectorised

    def start(self, seed: int = 0) -> tuple[Array, Array]:
        """The data a method may see before its first round: rows `(n, d)` and their values `(n,)`."""
        return np.empty((0, self.space.dimension)), np.empty(0)

    def evaluate(self, x: Array) -> Array:
        """The oracle: values `(n,)` of the designs `x` `(n, d)`; NaN where the experiment failed."""
        raise NotImplementedError

    def normalise(self, y: Any) -> Array:
        """0 = the worst, 1 = the best value of the reference range."""
        if self.range is None:
            raise InputError(f"The task {self.name!r} has no reference range.", "Set its `range`.")
        low, high = self.range
        return np.asarray((np.asarray(y, dtype=np.float64) - low) / (high - low))

    def facts(self, x: Array) -> dict[str, float]:
        """Numbers about a batch `(n, d)` beside its values, such as a share; stored and shown with every round."""
        return {}

    def card(self) -> Card:
        raise NotImplementedError

    def plot(self, path: Path | str, seed: int = 0) -> None:
        """Draw what a method sees of the task: where the start data lie among all values, and what a design is.

        The suffix of `path` decides the format.
        """
        start = _finite(self.start(seed)[1])
        everything = _finite([] if self.table is None else self.table)
        if not len(start) and not len(everything):
            raise InputError(f"The task {self.name!r} has no values to draw.", "Give it start data.")
        best = None if self.maximum is None else ("best known", self.maximum)
        illustrated = type(self).illustrate is not Task.illustrate
        with styled():
            figure = new_figure(*((8.0, 3.0) if illustrated else (3.5, 2.6)))
            left, right = figure.subfigures(1, 2) if illustrated else (figure, None)
            panel = left.subplots()
            distribution(panel, start, everything, best)
            left.legend(loc="outside lower center", ncols=2, handlelength=1.4, columnspacing=1.2)
            title = f"{self.name}: {self.summary}" if self.summary else self.name
            panel.set_title(title, loc="left", wrap=True)
            if right is not None:
                self.illustrate(right)
            save_figure(figure, Path(path))

    def illustrate(self, figure: Any) -> None:
        """Draw what designs look like into a matplotlib (sub)figure, beside the distribution. A task may have none."""

    def film(self, path: Path | str) -> None:
        """Write a film of a design at work, where there is something to see."""
        raise InputError(f"The task {self.name!r} has nothing that moves.", "Use plot.")


class FunctionTask(Task):
    """Your own Python function of one design (a dict) as a task.

    `start` is what you have measured already, `(designs, values)`. To evaluate in processes, define the function at the
    top level of a module.
    """

    def __init__(
        self,
        function: Callable[[Mapping[str, Any]], float],
        space: Space,
        *,
        name: str = "",
        start: tuple[Any, Any] | None = None,
        minimize: bool = False,
        maximum: float | None = None,
    ) -> None:
        self.function, self.space, self.minimize, self.maximum = function, space, minimize, maximum
        self.name = name or getattr(function, "__name__", "function")  # type: ignore[misc]
        x = space.rows(start[0]) if start else np.empty((0, space.dimension))
        y = as_numbers(start[1] if start else [], "Start values", "Give numbers, and NaN for a failure.")
        if len(x) != len(y):
            raise InputError(f"{len(x)} start designs but {len(y)} values.", "Give one value per design.")
        self._start = x, y

    def start(self, seed: int = 0) -> tuple[Array, Array]:
        return self._start

    def evaluate(self, x: Array) -> Array:
        return np.array([float(self.function(design)) for design in self.space.dicts(self.space.rows(x))])

    def card(self) -> Card:
        return Card(self.name, (self.function.__doc__ or "").strip().partition("\n")[0], "user", "", self.space.size,
                    self.space.dimension, len(self._start[1]), self.maximum, "", "")  # fmt: skip


def quarter(visible: NDArray[np.intp], y: Array) -> NDArray[np.intp]:
    """Of the `visible` rows, those from the 25th to the 50th percentile of `y`, lowest first."""
    order = visible[np.argsort(y[visible], kind="stable")]
    return order[len(order) // 4 : len(order) // 2]


def _finite(values: Any) -> Array:
    array = np.asarray(values, dtype=np.float64).ravel()
    return array[np.isfinite(array)]
