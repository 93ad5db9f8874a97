"""What a problem is: its space, its first data, its oracle, and a card that says where it comes from."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib import resources
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .spaces import Space
from .types import Array, DiffBBOError, InputError, as_numbers


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
    maximum: float | None = None  # the best value there is, where it is known
    range: tuple[float, float] | None = None  # smallest and largest value of the reference data
    chunk: int = 1  # how many designs one call of `evaluate` should get: many where it is cheap and vectorised

    def start(self, seed: int = 0) -> tuple[Array, Array]:
        """The data a method may see before its first round: rows `(n, d)` and their values `(n,)`."""
        return np.empty((0, self.space.dimension)), np.empty(0)

    def evaluate(self, x: Array) -> Array:
        """The oracle: values `(n,)` of the designs `x` `(n, d)`; NaN where the experiment failed."""
        raise NotImplementedError

    def normalise(self, y: Any) -> Array:
        """0 = the smallest, 1 = the largest value of the reference range."""
        if self.range is None:
            raise InputError(f"The task {self.name!r} has no reference range.", "Set its `range`.")
        low, high = self.range
        return np.asarray((np.asarray(y, dtype=np.float64) - low) / (high - low))

    def card(self) -> Card:
        raise NotImplementedError


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


def load_arrays(filename: str, sha256: str) -> dict[str, NDArray[Any]]:
    """The arrays of a data file carried in the package, after checking that it is whole."""
    content = resources.files("diffbbo").joinpath("data", filename).read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise DiffBBOError(
            f"The data file {filename} is damaged: its sha256 is {found}, not {sha256}.", "Reinstall diffbbo."
        )
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return dict(arrays)


def quarter(visible: NDArray[np.intp], y: Array) -> NDArray[np.intp]:
    """Of the `visible` rows, those from the 25th to the 50th percentile of `y`, lowest first."""
    order = visible[np.argsort(y[visible], kind="stable")]
    return order[len(order) // 4 : len(order) // 2]
