"""The variables of a design: what each may be, and how it is written in a row.

A real or integer variable is one column holding its value, a categorical one column holding the index of its
value, and a sequence one column per letter holding the index of that letter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

import numpy as np

from .types import Array, InputError

MAX_INTEGER = 2**53  # a float64 column holds every integer up to here exactly


def finite_number(value: Any) -> float:
    """`value` as a finite float, or ValueError with a reason that completes "value ..."."""
    if isinstance(value, bool | np.bool_) or (isinstance(value, str) and not value.strip()):
        raise ValueError("is not a number")
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError("is not a number") from None
    except OverflowError:
        raise ValueError("is too large") from None
    if not math.isfinite(number):
        raise ValueError("is not a finite number")
    return number


@dataclass(frozen=True)
class Variable:
    """One named part of a design. Subclasses define their columns in a row; all of them are frozen."""

    name: str
    type: ClassVar[str]

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise InputError(f"A variable needs a name, not {self.name!r}.", "Give it a non-empty text.")
        self._validate()

    def _validate(self) -> None:
        raise NotImplementedError

    def _reject(self, what: str, remedy: str) -> InputError:
        return InputError(f"Variable {self.name!r}: {what}", remedy)

    @property
    def width(self) -> int:
        """How many columns the variable takes in a row."""
        return 1

    @property
    def levels(self) -> int | None:
        """How many values one column can take; None for a continuous one."""
        raise NotImplementedError

    def parse(self, value: Any) -> list[float]:
        """`value` as row columns; ValueError completes the sentence "<value> ..."."""
        raise NotImplementedError

    def format(self, columns: Array) -> Any:
        """Row columns `(width,)` as the value people write."""
        raise NotImplementedError

    def from_unit(self, u: Array) -> Array:
        """Uniform numbers `u` in [0, 1) `(n, width)` as uniformly distributed columns."""
        raise NotImplementedError

    def snap(self, columns: Array) -> Array:
        """The nearest valid columns `(n, width)`."""
        raise NotImplementedError

    @property
    def expected(self) -> str:
        """What a valid value is, for messages."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        return {"type": self.type, **asdict(self)}


@dataclass(frozen=True)
class Real(Variable):
    """A number between `lower` and `upper`; `scale="log"` for one that varies over orders of magnitude."""

    lower: float
    upper: float
    scale: str = "linear"
    type: ClassVar[str] = "real"

    def _validate(self) -> None:
        for side in ("lower", "upper"):
            try:
                object.__setattr__(self, side, finite_number(getattr(self, side)))
            except ValueError as reason:
                raise self._reject(f"{side} = {getattr(self, side)!r} {reason}.", "Give a number.") from None
        if self.lower >= self.upper:
            raise self._reject(
                f"lower = {self.lower:.12g} is not below upper = {self.upper:.12g}.", "Swap or widen the bounds."
            )
        if not math.isfinite(self.upper - self.lower):
            raise self._reject("the range overflows.", "Choose narrower bounds.")
        if self.scale not in ("linear", "log"):
            raise self._reject(f"scale = {self.scale!r} is unknown.", "Use 'linear' or 'log'.")
        if self.scale == "log" and self.lower <= 0:
            raise self._reject(
                f"a log scale needs lower > 0, not {self.lower:.12g}.", "Raise lower, or use scale = 'linear'."
            )
        if self.scale == "log" and len(set(self._log_bounds())) == 1:
            raise self._reject("the range is too narrow for a log scale.", "Use scale = 'linear'.")

    @property
    def levels(self) -> None:
        return None

    def to_unit(self, columns: Array) -> Array:
        """The position of a value between lower (0) and upper (1) on its scale."""
        if self.scale == "log":
            low, high = self._log_bounds()
            position = (np.log(columns) - low) / (high - low)
        else:
            position = (columns - self.lower) / (self.upper - self.lower)
        return np.asarray(position, dtype=np.float64)

    def from_unit(self, u: Array) -> Array:
        if self.scale == "log":
            low, high = self._log_bounds()
            return self.snap(np.exp(low + u * (high - low)))
        return self.snap(self.lower + u * (self.upper - self.lower))

    def _log_bounds(self) -> tuple[float, float]:
        # Not log(upper / lower): that ratio overflows for 1e-300 to 1e300.
        return math.log(self.lower), math.log(self.upper)

    def parse(self, value: Any) -> list[float]:
        number = finite_number(value)
        if not self.lower <= number <= self.upper:
            raise ValueError(f"is outside its range {self.lower:.12g} to {self.upper:.12g}")
        return [number]

    def format(self, columns: Array) -> float:
        return float(columns[0])

    def snap(self, columns: Array) -> Array:
        return np.clip(columns, self.lower, self.upper)

    @property
    def expected(self) -> str:
        return f"a number between {self.lower:.12g} and {self.upper:.12g}"


@dataclass(frozen=True)
class Integer(Variable):
    """A whole number between `lower` and `upper`, both included."""

    lower: int
    upper: int
    type: ClassVar[str] = "integer"

    def _validate(self) -> None:
        for side in ("lower", "upper"):
            try:
                bound = finite_number(getattr(self, side))
            except ValueError as reason:
                raise self._reject(f"{side} = {getattr(self, side)!r} {reason}.", "Give an integer.") from None
            if bound != int(bound) or abs(bound) > MAX_INTEGER:
                raise self._reject(
                    f"{side} = {getattr(self, side)!r} is not an integer within ±2^53.",
                    "Use whole numbers, or type 'real'.",
                )
            object.__setattr__(self, side, int(bound))
        if self.lower >= self.upper:
            raise self._reject(f"lower = {self.lower} is not below upper = {self.upper}.", "Swap or widen the bounds.")

    @property
    def levels(self) -> int:
        return self.upper - self.lower + 1

    def to_unit(self, columns: Array) -> Array:
        return (columns - self.lower) / (self.upper - self.lower)

    def from_unit(self, u: Array) -> Array:
        return self.snap(self.lower + np.floor(u * self.levels))

    def parse(self, value: Any) -> list[float]:
        number = finite_number(value)
        if number != int(number):
            raise ValueError("is not a whole number")
        if not self.lower <= number <= self.upper:
            raise ValueError(f"is outside its range {self.lower} to {self.upper}")
        return [number]

    def format(self, columns: Array) -> int:
        return int(columns[0])

    def snap(self, columns: Array) -> Array:
        return np.clip(np.rint(columns), self.lower, self.upper)

    @property
    def expected(self) -> str:
        return f"a whole number between {self.lower} and {self.upper}"


@dataclass(frozen=True)
class _Indexed(Variable):
    """Shared by variables whose columns hold indices into a list of values."""

    def from_unit(self, u: Array) -> Array:
        assert self.levels is not None
        return self.snap(np.floor(u * self.levels))

    def snap(self, columns: Array) -> Array:
        assert self.levels is not None
        return np.clip(np.rint(columns), 0, self.levels - 1)


@dataclass(frozen=True)
class Categorical(_Indexed):
    """One of a list of values without order."""

    values: tuple[Any, ...]
    type: ClassVar[str] = "categorical"

    def _validate(self) -> None:
        if isinstance(self.values, str) or not isinstance(self.values, Iterable):
            raise self._reject(f"values = {self.values!r} is not a list.", "Write values = ['a', 'b'].")
        # A numpy scalar, as from a DataFrame's column, could not be written as JSON.
        values = tuple(value.item() if isinstance(value, np.generic) else value for value in self.values)
        object.__setattr__(self, "values", values)
        if len(values) < 2:
            raise self._reject(f"{len(values)} value(s) leave nothing to choose.", "List at least two.")
        texts = [str(value).strip() for value in values]
        repeated = next((text for text in texts if texts.count(text) > 1), None)
        if repeated is not None:
            raise self._reject(f"the value {repeated!r} is listed twice.", "List each value once.")
        if "" in texts:
            raise self._reject("an empty value is listed.", "Give every value a name.")

    @property
    def levels(self) -> int:
        return len(self.values)

    def parse(self, value: Any) -> list[float]:
        # A table read from CSV holds text, so "1" stands for the listed value 1. Text comes first: True == 1.
        text, texts = str(value).strip(), [str(known).strip() for known in self.values]
        if text in texts:
            return [float(texts.index(text))]
        for index, known in enumerate(self.values):
            if value == known:
                return [float(index)]
        raise ValueError(f"is not one of {', '.join(map(str, self.values))}")

    def format(self, columns: Array) -> Any:
        return self.values[int(columns[0])]

    @property
    def expected(self) -> str:
        return f"one of {', '.join(map(str, self.values))}"


@dataclass(frozen=True)
class Sequence(_Indexed):
    """A word of `length` letters from `alphabet`, such as DNA."""

    length: int
    alphabet: str
    type: ClassVar[str] = "sequence"

    def _validate(self) -> None:
        if isinstance(self.length, bool) or not isinstance(self.length, int) or self.length < 1:
            raise self._reject(f"length = {self.length!r} is not a positive integer.", "Give, say, 8.")
        letters = tuple(self.alphabet) if isinstance(self.alphabet, Iterable) else ()
        if any(not isinstance(letter, str) or len(letter) != 1 for letter in letters):
            raise self._reject(f"alphabet = {self.alphabet!r} has entries that are not single letters.",
                               "Write alphabet = 'ACGT'.")  # fmt: skip
        if len(set(letters)) != len(letters) or len(letters) < 2:
            raise self._reject(
                f"alphabet = {self.alphabet!r} needs at least two letters, each once.", "Write, say, 'ACGT'."
            )
        object.__setattr__(self, "alphabet", "".join(letters))

    @property
    def width(self) -> int:
        return self.length

    @property
    def levels(self) -> int:
        return len(self.alphabet)

    def parse(self, value: Any) -> list[float]:
        if not isinstance(value, str):
            raise ValueError("is not a text")
        word = value if len(value) == self.length else value.strip()  # a space may be a letter
        if len(word) != self.length:
            raise ValueError(f"has {len(word)} letters instead of {self.length}")
        unknown = next((letter for letter in word if letter not in self.alphabet), None)
        if unknown is not None:
            raise ValueError(f"contains {unknown!r}, which is not in the alphabet {self.alphabet}")
        return [float(self.alphabet.index(letter)) for letter in word]

    def format(self, columns: Array) -> str:
        return "".join(self.alphabet[int(index)] for index in columns)

    @property
    def expected(self) -> str:
        return f"a word of {self.length} letters from {self.alphabet}"


_TYPES: dict[str, type[Variable]] = {cls.type: cls for cls in (Real, Integer, Categorical, Sequence)}


def variable_from_dict(entry: Any, position: int, source: str) -> Variable:
    """One `[[variable]]` table as a Variable."""
    where = f"Variable {position} of {source}"
    if not isinstance(entry, Mapping):
        raise InputError(f"{where} is {entry!r}, not a table.", "Write [[variable]] with name and type.")
    given = dict(entry)
    kind = given.pop("type", None)
    if not isinstance(kind, str) or kind not in _TYPES:
        raise InputError(f"{where} has the unknown type {kind!r}.", f"Use one of {', '.join(_TYPES)}.")
    cls = _TYPES[kind]
    known = [field.name for field in fields(cls)]
    unknown = [key for key in given if key not in known]
    if unknown:
        raise InputError(f"{where} has the unknown key {unknown[0]!r}.", f"A {kind} has {', '.join(known)}.")
    required = [key for key in known if key != "scale"]
    missing = [key for key in required if key not in given]
    if missing:
        raise InputError(f"{where} lacks {missing[0]!r}.", f"A {kind} needs {', '.join(required)}.")
    return cls(**given)
