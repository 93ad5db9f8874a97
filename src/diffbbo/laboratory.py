"""The laboratory's loop without any state: a table of what was tried in, a table of what to try next out."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .spaces import Space
from .tables import read_table, result
from .types import Array, Batch, InputError


@dataclass(frozen=True)
class History:
    """A read table: measured rows `x`, `y` (NaN = failed), `pending` rows, and the columns that were not used."""

    x: Array
    y: Array
    pending: Array
    ignored: tuple[str, ...]


def read_history(path: str | Path, space: Space, objective: str) -> History:
    """Read designs and results from a CSV file (comma, semicolon or tab; UTF-8).

    A blank result is pending, `failed` or `nan` is a failure; columns that are neither a variable nor the
    objective are ignored.
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
    ignored = tuple(name for name in header if name and name not in columns)
    return History(x[told], values, x[~told], ignored)


def write_batch(path: str | Path, batch: Batch, space: Space, objective: str) -> None:
    """Write the designs in order of merit, with an empty column for the result: fill it in and append."""
    target = Path(path)
    draft = target.with_name(target.name + ".part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("w", newline="", encoding="utf-8") as handle:
            table = csv.writer(handle)
            table.writerow([*space.names, objective])
            table.writerows([[*design.values(), ""] for design in batch])
        draft.replace(target)  # whoever reads the file sees all of it or the old one
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error}.", "Choose a folder you can write to.") from error
