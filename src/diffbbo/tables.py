"""Reading a table from a CSV file as a spreadsheet writes it, and what its cells of results mean."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import Any

from .types import InputError

FAILED = ("failed", "nan")
DELIMITERS = ",;\t"


def read_table(path: str | Path) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a CSV file (comma, semicolon or tab; UTF-8), every row as long as the header."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")  # spreadsheets put a byte order mark in front
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}.", "Check the path; save it as CSV in UTF-8.") from error
    if not text.strip():
        raise InputError(f"{path} is empty.", "It needs at least a header line with the columns' names.")
    first = text.lstrip().partition("\n")[0]
    delimiter = max(DELIMITERS, key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)
    lines = [line for line in reader if any(map(str.strip, line))]
    header = [name.strip() for name in lines[0]]
    repeated = next((name for name in header if name and header.count(name) > 1), None)
    if repeated is not None:
        raise InputError(f"{path} has two columns named {repeated!r}.", "Keep one of them.")
    rows: list[list[str]] = []
    for number, line in enumerate(lines[1:], 1):
        if len(line) > len(header):
            raise InputError(
                f"Row {number} of {path} has {len(line)} cells, the header {len(header)}.", "Quote texts with commas."
            )
        rows.append([cell.strip() for cell in line] + [""] * (len(header) - len(line)))
    return header, rows


def result(cell: Any, row: int, objective: str) -> float | None:
    """A cell of the objective's column: a number, NaN for a failure, None for a blank one."""
    if cell is None or (isinstance(cell, str) and not cell):
        return None
    if str(cell).lower() in FAILED:
        return math.nan
    try:
        value = float(cell)
    except (TypeError, ValueError, OverflowError):
        value = math.inf
    if not math.isfinite(value):
        raise InputError(
            f"Row {row}, column {objective!r}: {cell!r} is not a finite number.",
            "Write a number, leave it blank while pending, or write 'failed'.",
        )
    return value
