"""What the layers hand to each other: the told data D, a batch of designs, and errors that say what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
Design = Mapping[str, Any]


class DiffBBOError(Exception):
    """Something a user can mend: the message says what was given, the remedy what to do about it."""

    def __init__(self, message: str, remedy: str = "") -> None:
        self.message, self.remedy = message, remedy
        super().__init__(f"{message} {remedy}".strip())


class InputError(DiffBBOError, ValueError):
    """A value, file or option that cannot be used."""


class ExhaustedError(InputError):
    """A finite space has fewer designs left than were asked for."""


class SettingsError(DiffBBOError):
    """A stored study is resumed with other settings than it was begun with."""


class StorageError(DiffBBOError):
    """A storage that cannot be opened, read or written."""


class DeviceError(DiffBBOError):
    """A device that this machine does not have."""


class MissingExtraError(DiffBBOError, ImportError):
    """An optional package is needed and not installed."""


def need(module: str, extra: str, purpose: str) -> Any:
    """Import an optional package where it is used, or say how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"{purpose} needs the package {package!r}, which is not installed.",
            f'Install it with: pip install "diffbbo[{extra}]"',
        ) from error


def as_numbers(values: Any, what: str, remedy: str) -> Array:
    """`values` as a float64 array, or an error that names the first that is no number."""
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        wrong = next((value for value in np.array(values, dtype=object).ravel() if not _is_number(value)), values)
        raise InputError(f"{what}: {wrong!r:.80} is not a number.", remedy) from None


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def row_keys(x: Array) -> list[bytes]:
    """One hashable key per row of `x` `(n, d)`; equal designs have equal keys (-0.0 counts as 0.0)."""
    rows = np.ascontiguousarray(x + 0.0)
    keys: list[bytes] = rows.view(f"V{rows.itemsize * rows.shape[1]}").ravel().tolist()  # far quicker than row by row
    return keys


@dataclass(frozen=True)
class Distinct:
    """Distinct measured designs in order of first measurement: `x` `(n, d)`, mean `y` and `count` `(n,)`."""

    x: Array
    y: Array
    count: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.y)

    @property
    def flat(self) -> bool:
        """Whether there is nothing to learn: no design, or all of the same value."""
        return not len(self) or bool(self.y.min() == self.y.max())

    @property
    def phi(self) -> float:
        """The best mean value so far (line 9 of Algorithm 1)."""
        return float(self.y.max())


@dataclass(frozen=True)
class Dataset:
    """All that was told, in order: rows `x` `(n, d)` and values `y` `(n,)` to be maximised; NaN = failed."""

    x: Array
    y: Array

    @classmethod
    def empty(cls, dimension: int) -> Dataset:
        return cls(np.empty((0, dimension)), np.empty(0))

    def __len__(self) -> int:
        return len(self.y)

    def extended(self, x: Array, y: Array) -> Dataset:
        return Dataset(np.concatenate([self.x, x]), np.concatenate([self.y, y]))

    @property
    def failed(self) -> NDArray[np.bool_]:
        return np.isnan(self.y)

    @property
    def failure_share(self) -> float:
        return float(self.failed.mean()) if len(self) else 0.0

    def distinct(self) -> Distinct:
        """Replicates of one design become their mean; failures are left out."""
        ok = ~self.failed
        x, y = self.x[ok] + 0.0, self.y[ok]
        places: dict[bytes, int] = {}  # a dict and not np.unique, which would sort whole rows: slow for 10^6 of them
        group = np.fromiter((places.setdefault(key, len(places)) for key in row_keys(x)), np.intp, len(y))
        first = np.empty(len(places), np.intp)
        first[group[::-1]] = np.arange(len(y))[::-1]  # of a design's rows the first is written last
        count = np.bincount(group, minlength=len(places))
        # A sum of huge values can overflow where their mean does not: divide first.
        mean = np.bincount(group, weights=y / count[group], minlength=len(places)).astype(np.float64)
        mean[count == 1] = y[first[count == 1]]
        return Distinct(x[first], mean, count)


@dataclass(frozen=True)
class Best:
    """The best design so far: its mean value and how often it was measured."""

    design: dict[str, Any]
    value: float
    count: int


@dataclass(frozen=True)
class Batch(Sequence[dict[str, Any]]):
    """Designs to measure, in order of merit: iterates as dicts. Two batches of the same designs are equal.

    `x` `(n, d)` are the same designs as rows, `member` `(n,)` the ensemble member that drew each (-1: none),
    and `info` says how they came about (weight, epistemic, times, notes, ...).
    """

    designs: tuple[dict[str, Any], ...]
    x: Array = field(compare=False)
    member: NDArray[np.intp] = field(compare=False)
    info: dict[str, Any] = field(default_factory=dict, compare=False)

    def __len__(self) -> int:
        return len(self.designs)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.designs)

    def __getitem__(self, index: Any) -> Any:
        return self.designs[index]

    def frame(self) -> pd.DataFrame:
        """The designs as a pandas DataFrame, one column per variable."""
        pandas = need("pandas", "frames", "Batch.frame()")
        frame: pd.DataFrame = pandas.DataFrame(list(self.designs))
        return frame

    def __repr__(self) -> str:
        notes = "".join(f"\n  note: {note}" for note in self.info.get("notes", ()))
        head = "".join(f"\n  {design}" for design in self.designs[:3])
        more = f"\n  ... and {len(self) - 3} more" if len(self) > 3 else ""
        return f"Batch of {len(self)} designs{notes}{head}{more}"
