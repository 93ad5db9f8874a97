"""Design spaces: a list of variables, and the ways to write a design of it down.

A design is a dict for people (`{"solvent": "thf"}`) and a flat row of float64 for storage and oracles. Only this
module turns one into the other.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .types import Array, Batch, InputError, as_numbers
from .variables import (
    MAX_INTEGER,
    Categorical,
    Integer,
    Real,
    Sequence,
    Variable,
    finite_number,
    variable_from_dict,
)


@dataclass(frozen=True)
class Space:
    """A list of variables: every design that may be measured."""

    variables: tuple[Variable, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", tuple(self.variables))
        if not self.variables:
            raise InputError("A space needs at least one variable.", "Add a Real, Integer, Categorical or Sequence.")
        wrong = next((v for v in self.variables if not isinstance(v, Variable)), None)
        if wrong is not None:
            raise InputError(f"{wrong!r} is not a variable.", "Use Real, Integer, Categorical or Sequence.")
        repeated = next((name for name in self.names if self.names.count(name) > 1), None)
        if repeated is not None:
            raise InputError(f"Two variables are named {repeated!r}.", "Give each a name of its own.")

    # ---- reading and writing a space ----------------------------------------------------------------

    @classmethod
    def from_dict(cls, description: Mapping[str, Any], source: str = "the space") -> Space:
        """A space from `{"variable": [{"name": ..., "type": ..., ...}, ...]}`, the form of `space.toml`."""
        entries = description.get("variable")
        if not isinstance(entries, list) or not entries:
            raise InputError(f"{source} describes no variable.", "Add a [[variable]] table with name and type.")
        return cls(tuple(variable_from_dict(entry, position, source) for position, entry in enumerate(entries, 1)))

    @classmethod
    def from_toml(cls, path: str | Path) -> Space:
        """A space from a `space.toml` file."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path} cannot be read: {error}.", "Check the path.") from error
        try:
            description = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{path} is not valid TOML: {error}.", "See the example in the README.") from error
        return cls.from_dict(description, source=str(path))

    def to_dict(self) -> dict[str, Any]:
        return {"variable": [variable.to_dict() for variable in self.variables]}

    @classmethod
    def infer(cls, frame: Any) -> Space:
        """A first guess from a DataFrame's columns; look at it before you rely on it.

        Numbers become Real over their observed range (Integer where all are whole), texts of one common length
        (at least 3, made of at most 26 letters, more different words than letters) a Sequence, other texts
        and true/false Categorical.
        """
        return cls(tuple(_infer(str(name), [*column.dropna()]) for name, column in frame.items()))

    # ---- facts -------------------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        return [variable.name for variable in self.variables]

    @property
    def dimension(self) -> int:
        """The number of columns of a row."""
        return sum(variable.width for variable in self.variables)

    @property
    def levels(self) -> list[int | None]:
        """Per column of a row, how many values it can take; None for a continuous one."""
        return [variable.levels for variable in self.variables for _ in range(variable.width)]

    @property
    def size(self) -> int | None:
        """The number of different designs; None where it is infinite."""
        product = 1
        for level in self.levels:
            if level is None:
                return None
            product *= level
        return product

    def slices(self) -> Iterable[tuple[Variable, slice]]:
        """Each variable with the columns it takes in a row."""
        start = 0
        for variable in self.variables:
            yield variable, slice(start, start + variable.width)
            start += variable.width

    # ---- designs -----------------------------------------------------------------------------------

    def rows(self, designs: Any) -> Array:
        """Checked rows `(n, dimension)` from a Batch, a DataFrame, a list of dicts (or one dict), or rows."""
        if isinstance(designs, Batch):
            return self.check(designs.x)
        if isinstance(designs, Mapping) and any(np.isscalar(value) for value in designs.values()):
            return self._rows_from_dicts([designs])
        if hasattr(designs, "columns") or isinstance(designs, Mapping):
            return self._rows_from_columns(designs)
        if isinstance(designs, np.ndarray):
            return self.check(designs)
        if not isinstance(designs, Iterable):
            raise InputError(f"{designs!r} is not a list of designs.", "Give a Batch, a DataFrame, dicts or rows.")
        designs = list(designs)
        if designs and isinstance(designs[0], Mapping):
            return self._rows_from_dicts(designs)
        try:
            table = np.array(designs) if designs else np.empty((0, self.dimension))
        except ValueError:
            raise InputError("The rows have different lengths.", f"Give {self.dimension} numbers per row.") from None
        return self.check(table)

    def _rows_from_dicts(self, designs: list[Any]) -> Array:
        for row, design in enumerate(designs, 1):
            missing = [name for name in self.names if name not in design]
            if missing:
                raise InputError(
                    f"Row {row} has no {missing[0]!r}; it has {', '.join(map(str, design)) or 'nothing'}.",
                    "Give every variable of the space.",
                )
        return self._rows_from_columns({name: [design[name] for design in designs] for name in self.names})

    def _rows_from_columns(self, table: Any) -> Array:
        columns = {str(name): name for name in (table.columns if hasattr(table, "columns") else table)}
        missing = [name for name in self.names if name not in columns]
        if missing:
            raise InputError(
                f"The column {missing[0]!r} is missing; there are {', '.join(columns) or 'none'}.",
                "Add it, or correct its name in the space.",
            )
        parts = []
        for variable in self.variables:
            parsed = []
            for row, value in enumerate(table[columns[variable.name]], 1):
                try:
                    parsed.append(variable.parse(value))
                except ValueError as reason:
                    raise InputError(
                        f"Row {row}, column {variable.name!r}: {value!r} {reason}.",
                        f"It must be {variable.expected}.",
                    ) from None
            parts.append(np.array(parsed, dtype=np.float64).reshape(len(parsed), variable.width))
        if len({len(part) for part in parts}) > 1:
            lengths = ", ".join(f"{name!r} has {len(part)}" for name, part in zip(self.names, parts, strict=True))
            raise InputError(f"The columns have different lengths: {lengths}.", "Give one value per design in each.")
        return np.concatenate(parts, axis=1)

    def dicts(self, rows: Array) -> list[dict[str, Any]]:
        """Rows `(n, dimension)` as dicts."""
        parts = list(self.slices())
        return [{variable.name: variable.format(row[where]) for variable, where in parts} for row in rows]

    def check(self, rows: Any) -> Array:
        """`rows` as a float64 array `(n, dimension)` of valid designs, or an error naming row and column."""
        x = np.asarray(rows)
        if x.ndim != 2 or x.shape[1] != self.dimension:
            raise InputError(
                f"Rows of shape {x.shape} were given; this space needs (n, {self.dimension}).",
                "Give one row per design, or dicts.",
            )
        x = as_numbers(x, "Rows", "Give rows of numbers, or dicts by variable name.")
        for variable, where in self.slices():
            part = x[:, where]
            with np.errstate(invalid="ignore"):
                bad = ~(np.isfinite(part) & (variable.snap(part) == part))
            if bad.any():
                row, column = np.argwhere(bad)[0]
                letter = f", letter {column + 1}" if variable.width > 1 else ""
                value = f"{part[row, column]:.12g}"
                if variable.type in ("categorical", "sequence"):
                    wanted = f"an index from 0 to {(variable.levels or 1) - 1}"
                else:
                    wanted = variable.expected
                raise InputError(
                    f"Row {row + 1}, column {variable.name!r}{letter}: {value} is not {wanted}.",
                    "Correct the row, or widen the space.",
                )
        return x

    def snap(self, rows: Array) -> Array:
        """The nearest valid designs; NaN becomes the middle of its column."""
        x = np.array(rows, dtype=np.float64)
        for variable, where in self.slices():
            middle = variable.from_unit(np.full((1, variable.width), 0.5))
            part = np.where(np.isnan(x[:, where]), middle, x[:, where])
            x[:, where] = variable.snap(part)
        return x

    def from_unit(self, u: Array) -> Array:
        """Points `u` of the unit cube `(n, dimension)` as designs."""
        return np.concatenate([v.from_unit(u[:, where]) for v, where in self.slices()], axis=1)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """`n` designs drawn uniformly (on its scale for a log variable)."""
        return self.from_unit(rng.random((n, self.dimension)))

    def fill(self, n: int, rng: np.random.Generator) -> Array:
        """`n` designs that fill the space evenly: a Latin hypercube, each column stratified into `n`."""
        strata = rng.permuted(np.tile(np.arange(n)[:, None], (1, self.dimension)), axis=0)
        return self.from_unit((strata + rng.random((n, self.dimension))) / n)

    def rank(self, rows: Array) -> NDArray[np.int64]:
        """The number of each design in a finite space, 0 to size - 1 (last column varies fastest)."""
        number = np.zeros(len(rows), dtype=np.int64)
        for variable, where in self.slices():
            offset = variable.lower if isinstance(variable, Integer) else 0
            for column in (rows[:, where] - offset).T:
                number = number * (variable.levels or 1) + column.astype(np.int64)
        return number

    def unrank(self, numbers: NDArray[np.int64]) -> Array:
        """The inverse of `rank`."""
        columns: list[Array] = []
        rest = numbers
        for variable in reversed(self.variables):
            offset = variable.lower if isinstance(variable, Integer) else 0
            for _ in range(variable.width):
                rest, index = np.divmod(rest, variable.levels or 1)
                columns.append(index.astype(np.float64) + offset)
        return np.stack(columns[::-1], axis=1)


def _infer(name: str, values: list[Any]) -> Variable:
    """A guess at the variable behind one column of a table (see `Space.infer`)."""
    different = list(dict.fromkeys(values))
    if len(different) < 2:
        raise InputError(
            f"Column {name!r} has {len(different)} different value(s), so its range cannot be guessed.",
            "Leave it out, or write the space by hand.",
        )
    infinite = next((v for v in values if isinstance(v, float) and not isfinite(v)), None)
    if infinite is not None:
        raise InputError(f"Column {name!r} contains {infinite}.", "Leave that row out, or write the space by hand.")
    if all(isinstance(v, bool | np.bool_) for v in values):
        return Categorical(name, (False, True))
    try:
        numbers = [finite_number(value) for value in values]
    except ValueError:
        texts = [str(value) for value in values]
        letters = sorted(set("".join(texts)))
        length = len(texts[0])
        words = {len(text) for text in texts} == {length} and length >= 3
        if words and len(letters) <= 26 and len(different) > len(letters):
            return Sequence(name, length, "".join(letters))
        return Categorical(name, tuple(sorted(map(str, different))))
    low, high = min(numbers), max(numbers)
    if all(number == int(number) and abs(number) <= MAX_INTEGER for number in numbers):
        return Integer(name, int(low), int(high))
    return Real(name, low, high)
