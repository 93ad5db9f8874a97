"""The laboratory's loop without any state: a table of what was tried in, a table of what to try next out."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .optimizer import Optimizer
from .spaces import Space
from .tables import read_table, result
from .types import Array, Batch, InputError

ROUND = "round"  # the column that says in which batch a row was asked for


@dataclass(frozen=True)
class History:
    """A read table: measured rows `x`, `y` (NaN = failed), `pending` rows, and the columns that were not used.

    Rows come round by round, `tells` of them in each; without rounds in the table it is all one. `next_round` is what
    to call the next batch, None without.
    """

    x: Array
    y: Array
    pending: Array
    ignored: tuple[str, ...]
    tells: tuple[int, ...]
    next_round: int | None = None

    def told_to(self, optimizer: Optimizer) -> None:
        """Tell all that was measured, round by round: a method may learn from what became of its batches."""
        ends = np.cumsum(self.tells)[:-1]
        for x, y in zip(np.split(self.x, ends), np.split(self.y, ends), strict=True):
            optimizer.tell(x, y)


def read_history(path: str | Path, space: Space, objective: str) -> History:
    """Read designs and results from a CSV file (comma, semicolon or tab; UTF-8).

    A blank result is pending, `failed` or `nan` is a failure. A column `round` of whole numbers says in which batch a
    row was asked for, rows of a batch in the order of merit; blank or 0 is what was known before. Other columns are
    ignored, and so is that one if it holds anything else.
    """
    header, rows = read_table(path)
    if objective in space.names:
        raise InputError(f"The objective {objective!r} is also a variable of the space.", "Rename one of them.")
    for needed in [*space.names, objective]:
        if needed not in header:
            raise InputError(
                f"{path} has no column {needed!r}; it has {', '.join(header)}.",
                "Add the column, or correct the name.",
            )
    columns = {name: [row[header.index(name)] for row in rows] for name in [*space.names, objective]}
    x = space.rows({name: columns[name] for name in space.names})
    y = [result(text, row, objective) for row, text in enumerate(columns[objective], 1)]
    told = np.array([value is not None for value in y], dtype=bool)
    values = np.array([value for value in y if value is not None], dtype=np.float64)
    shown = ROUND in header and ROUND not in columns
    rounds = [_round(row[header.index(ROUND)]) if shown else None for row in rows]
    known = shown and None not in rounds
    ignored = tuple(name for name in header if name and name not in columns and not (known and name == ROUND))
    if not known:
        return History(x[told], values, x[~told], ignored, (len(values),))
    of_row = np.array(rounds, dtype=np.int64)
    order = np.argsort(of_row[told], kind="stable")
    tells = tuple(np.unique(of_row[told], return_counts=True)[1].tolist())
    return History(x[told][order], values[order], x[~told], ignored, tells, int(of_row.max(initial=0)) + 1)


def _round(cell: str) -> int | None:
    """The round that a cell names, also as spreadsheets write it (`2.0`); None if that is no whole number."""
    try:
        number = float(cell or 0)
    except ValueError:
        return None
    return int(number) if number.is_integer() and 0 <= number < 1e9 else None


def write_batch(path: str | Path, batch: Batch, space: Space, objective: str, round_: int | None = None) -> None:
    """Write the designs in order of merit, with an empty column for the result: fill it in and append. With a `round_`
    there is a column for that, too."""
    target = Path(path)
    draft = target.with_name(target.name + ".part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("w", newline="", encoding="utf-8") as handle:
            table = csv.writer(handle)
            table.writerow([*space.names, objective, *([] if round_ is None else [ROUND])])
            table.writerows([[*design.values(), "", *([] if round_ is None else [round_])] for design in batch])
        draft.replace(target)  # whoever reads the file sees all of it or the old one
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error}.", "Choose a folder you can write to.") from error
