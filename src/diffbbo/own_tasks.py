"""Your own problem as a task: a finished table, or a program called once per design. For a function: FunctionTask."""

from __future__ import annotations

import difflib
import math
import shlex
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .command import Command
from .spaces import Space
from .tables import read_table, result
from .task import Card, FunctionTask, Task, quarter
from .types import Array, Dataset, InputError, row_keys

Columns = dict[str, list[Any]]


class TableTask(Task):
    """A table of designs and their values as a task: the oracle looks a design up; NaN where it is not there.

    `table` is the path of a CSV file, a DataFrame, a mapping of columns or a list of dicts; `objective` is its column
    of values, where blank, `failed` and NaN mean that there is none. Without a `space` it is guessed from all other
    columns (`Space.infer`); with one, columns it does not name are ignored. A design that is listed more than once has
    the mean of its values. `start` is what a method is shown first: by default the 25th to 50th percentile of the
    values, counted from the worst; a number draws so many designs, a list names rows of the table, from 0.
    """

    chunk = 10_000
    table: Array

    def __init__(
        self,
        table: Any,
        objective: str,
        space: Space | None = None,
        *,
        name: str = "",
        start: int | Sequence[int] | None = None,
        minimize: bool = False,
    ) -> None:
        columns = _columns(table)
        if objective not in columns:
            raise InputError(
                f"The table has no column {objective!r}; it has {', '.join(columns) or 'none'}.",
                "Add the column, or correct the objective's name.",
            )
        if space is not None and objective in space.names:
            raise InputError(f"The objective {objective!r} is also a variable of the space.", "Rename one of them.")
        designs = {column: cells for column, cells in columns.items() if column != objective}
        self.space = Space.infer({key: _Cells(cells) for key, cells in designs.items()}) if space is None else space
        self.name = name or (Path(table).stem if isinstance(table, str | Path) else "table")  # type: ignore[misc]
        self.minimize = minimize
        x = self.space.rows(designs)
        found = [result(cell, row, objective) for row, cell in enumerate(columns[objective], 1)]
        y = np.array([math.nan if value is None else value for value in found], dtype=np.float64)
        if len(x) != len(y):
            raise InputError(f"{len(x)} designs but {len(y)} values of {objective!r}.", "Give one value per design.")
        distinct = Dataset(x, y).distinct()
        if not len(distinct):
            raise InputError(f"The column {objective!r} holds no value.", "Give at least one measured design.")
        self.x, self.table = distinct.x, distinct.y
        self._place = {key: place for place, key in enumerate(row_keys(self.x))}
        worst, best = (self.table.max(), self.table.min()) if minimize else (self.table.min(), self.table.max())
        self.maximum = float(best)
        self.range = (float(worst), float(best)) if worst != best else None
        self._start = self._chosen(start, x)

    def _chosen(self, start: int | Sequence[int] | None, x: Array) -> int | list[int]:
        """How many designs to draw, or their places among the distinct ones."""
        if start is None:
            order = -self.table if self.minimize else self.table
            return [int(place) for place in quarter(np.arange(len(order)), order)]
        if isinstance(start, int):
            if isinstance(start, bool) or not 0 <= start <= len(self.table):
                raise InputError(f"start = {start!r}.", f"Use 0 to {len(self.table)}, the number of measured designs.")
            return start
        wrong = [row for row in start if not isinstance(row, int | np.integer) or not 0 <= row < len(x)]
        if wrong:
            raise InputError(f"start holds {wrong[0]!r}.", f"Name rows of the table, 0 to {len(x) - 1}.")
        keys = row_keys(x)
        unmeasured = [row for row in start if keys[row] not in self._place]
        if unmeasured:
            raise InputError(f"start holds row {unmeasured[0]}, which has no value.", "Name measured rows only.")
        return list(dict.fromkeys(self._place[keys[row]] for row in start))

    def start(self, seed: int = 0) -> tuple[Array, Array]:
        chosen: Any = self._start
        if isinstance(chosen, int):
            chosen = np.random.default_rng(seed).permutation(len(self.table))[:chosen]
        places = np.asarray(chosen, dtype=np.intp)
        return self.x[places], self.table[places]

    def evaluate(self, x: Array) -> Array:
        places = [self._place.get(key) for key in row_keys(self.space.rows(x))]
        return np.array([math.nan if place is None else self.table[place] for place in places], dtype=np.float64)

    def card(self) -> Card:
        start = self._start if isinstance(self._start, int) else len(self._start)
        return Card(self.name, f"a table of {len(self.table):,} designs", "user", "", self.space.size,
                    self.space.dimension, start, self.maximum, "the table", "")  # fmt: skip


class _Cells(list[Any]):
    """A column without pandas, as far as Space.infer needs one."""

    def dropna(self) -> list[Any]:
        return [cell for cell in self if cell is not None and not (isinstance(cell, str) and not cell)]


def _columns(table: Any) -> Columns:
    """Any table as lists by column name."""
    if isinstance(table, str | Path):
        header, rows = read_table(table)
        return {name: [row[k] for row in rows] for k, name in enumerate(header) if name}
    if hasattr(table, "columns"):
        return {str(name): [*table[name]] for name in table.columns}
    if isinstance(table, Mapping):
        return {str(name): [*cells] for name, cells in table.items()}
    if not isinstance(table, Iterable):
        raise InputError(f"{table!r} is not a table.", "Give the path of a CSV file, a DataFrame, or a list of dicts.")
    dicts = [*table]
    for number, row in enumerate(dicts, 1):
        if not isinstance(row, Mapping):
            raise InputError(f"Row {number} is {row!r:.80}, not a dict.", "Give a dict by column name per row.")
        missing = [name for name in dicts[0] if name not in row]
        if missing:
            raise InputError(f"Row {number} has no {missing[0]!r}.", "Give every row the same columns.")
    return {str(name): [row[name] for row in dicts] for name in (dicts[0] if dicts else ())}


# ---- a program per design --------------------------------------------------------------------------------


class CommandTask(FunctionTask):
    """A command line program as a task: it is called once per design and prints the value as its last line.

    `command` is a list of words, started without a shell in `folder`. `{temperature}` stands for that variable's value
    and `{temperature:.2f}` for it in Python's format; write `{{` for a brace. Without any placeholder the design comes
    as one JSON object on stdin. The program prints a number, or `nan` for a failed experiment. A call that ends with
    an error, prints no number or takes longer than `timeout` seconds is an error of that design alone: the study
    stores it and goes on. `start` is what you have measured already, `(designs, values)`.
    """

    function: Command

    def __init__(
        self,
        command: Sequence[str],
        space: Space,
        *,
        name: str = "",
        start: tuple[Any, Any] | None = None,
        minimize: bool = False,
        maximum: float | None = None,
        timeout: float | None = None,
        folder: str | Path = ".",
    ) -> None:
        program = Command.checked(command, space, timeout, Path(folder))
        super().__init__(
            program, space, name=name or Path(program.words[0]).stem, start=start, minimize=minimize, maximum=maximum
        )

    def card(self) -> Card:
        return replace(super().card(), summary=shlex.join(self.function.words))

    @classmethod
    def from_toml(cls, path: str | Path) -> CommandTask:
        """A problem from a file: the `[[variable]]` tables of a space.toml, and above them

        `command = ["python", "simulate.py", "{temperature}"]` and, as needed, `start = "data.csv"` with `objective`
        (its column of values), `minimize`, `name` and `timeout`. Paths count from the file's own folder.
        """
        space = Space.from_toml(path)
        given = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        del given["variable"]
        for key, value in given.items():
            if key not in _KEYS:
                near = difflib.get_close_matches(key, _KEYS, n=1)
                guess = f"Did you mean {near[0]!r}? " if near else ""
                raise InputError(f"{path} has the unknown key {key!r}.", f"{guess}Known: {', '.join(_KEYS)}.")
            if not isinstance(value, _KEYS[key][0]) or (isinstance(value, bool) and key != "minimize"):
                raise InputError(f"{path}: {key} = {value!r} cannot be used.", f"Write, say, {_KEYS[key][1]}.")
        if "command" not in given:
            raise InputError(f"{path} has no command.", f"Write, say, {_KEYS['command'][1]}.")
        folder = Path(path).resolve().parent
        file, objective = given.pop("start", None), given.pop("objective", None)
        if file is not None and objective is None:
            raise InputError(
                f"{path} has start data but no objective.", 'Name their column of values: objective = "yield".'
            )
        start = None if file is None else _measured(folder / file, space, objective)
        return cls(space=space, start=start, folder=folder, **({"name": Path(path).stem} | given))


_KEYS: dict[str, tuple[Any, str]] = {
    "command": (list, 'command = ["python", "simulate.py", "{temperature}"]'),
    "start": (str, 'start = "data.csv"'),
    "objective": (str, 'objective = "yield"'),
    "minimize": (bool, "minimize = true"),
    "name": (str, 'name = "reactor"'),
    "timeout": (int | float, "timeout = 60"),
}


def _measured(path: Path, space: Space, objective: str) -> tuple[Array, Array]:
    """The rows of a CSV file that have a result; NaN where the result is a failure."""
    columns = _columns(path)
    if objective not in columns:
        raise InputError(f"{path} has no column {objective!r}; it has {', '.join(columns)}.", "Correct the name.")
    x = space.rows(columns)
    y = [result(cell, row, objective) for row, cell in enumerate(columns[objective], 1)]
    told = np.array([value is not None for value in y], dtype=bool)
    return x[told], np.array([value for value in y if value is not None], dtype=np.float64)
