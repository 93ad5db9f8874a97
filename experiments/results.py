"""The result files of an experiment: `NAME.csv` (tidy rows), `NAME_cells.csv` (a row per cell), and what is missing."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from diffbbo import Storage
from diffbbo.compare import Cell, CellResult, read_table
from diffbbo.schema import RoundRecord, StudyRecord
from diffbbo.study import summaries

Row = dict[str, Any]
Key = tuple[str, str, int, int]  # task, method, seed, batch
RowsOf = Callable[[Cell, StudyRecord, list[RoundRecord]], list[Row]]
WORDS = {"task", "method", "facts", "versions", "machine", "gpu", "settings", "error"}  # columns that are not numbers


def key_of(row: Mapping[str, Any]) -> Key:
    return str(row["task"]), str(row["method"]), int(row["seed"]), int(row["batch"])


def key_of_cell(cell: Cell) -> Key:
    return cell.task, cell.shown, cell.seed, cell.batch


def tidy(cell: Cell, record: StudyRecord, rounds: list[RoundRecord]) -> list[Row]:
    """One row per round, as `diffbbo compare` writes them."""
    return CellResult(cell, tuple(summaries(rounds, record.minimize))).rows()


def read_rows(path: Path) -> list[Row]:
    """What `write_rows` wrote; no file is no rows."""
    return read_table(path, WORDS) if path.exists() else []


def write_rows(rows: Sequence[Row], path: Path) -> None:
    if not rows and not path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as handle:
        table = csv.DictWriter(handle, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


@dataclass(frozen=True)
class Measured:
    """What is known of an experiment's cells: a row about each, and its own rows."""

    cells: dict[Key, Row] = field(default_factory=dict)
    rows: dict[Key, list[Row]] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path, name: str) -> Measured:
        rows: dict[Key, list[Row]] = {}
        for row in read_rows(folder / f"{name}.csv"):
            rows.setdefault(key_of(row), []).append(row)
        return cls({key_of(row): row for row in read_rows(folder / f"{name}_cells.csv")}, rows)

    def write(self, folder: Path, name: str, tasks: Sequence[str], methods: Sequence[str]) -> None:
        """In the order of the experiment, so that the files of two machines differ only in what they hold."""

        def place(key: Key) -> tuple[Any, ...]:
            task, method, seed, batch = key
            known = [order.index(word) if word in order else len(order) for word, order in
                     ((task, tasks), (method, methods))]  # fmt: skip
            return *known, task, method, batch, seed

        keys = sorted(self.cells, key=place)
        write_rows([row for key in keys for row in self.rows.get(key, [])], folder / f"{name}.csv")
        write_rows([self.cells[key] for key in keys], folder / f"{name}_cells.csv")

    def rounds(self, cell: Cell) -> int:
        """How many rounds of a cell are finished."""
        return int(self.cells.get(key_of_cell(cell), {}).get("rounds") or 0)

    def complete(self, cell: Cell) -> bool:
        return self.rounds(cell) >= cell.rounds

    def joined(self, newer: Measured) -> Measured:
        """Both together. Of a cell in both, the one with more rounds; at a tie or with other settings, the newer."""
        cells, rows = dict(self.cells), dict(self.rows)
        for key, row in newer.cells.items():
            old = self.cells.get(key)
            other_settings = bool(old and old["settings"] and row["settings"] and old["settings"] != row["settings"])
            if old is None or other_settings or (row["rounds"] or 0) >= (old["rounds"] or 0):
                said = row["error"] or (old["error"] if old and old["rounds"] == row["rounds"] else "")
                cells[key] = row | {"error": said}
                rows[key] = newer.rows.get(key, [])
        return Measured(cells, rows)


def collect(cells: Iterable[Cell], storage: Storage, rows_of: RowsOf, errors: Mapping[Cell, str]) -> Measured:
    """What a storage holds of these cells, and which of them failed just now."""
    found = Measured()
    records = {record.name: record for record in storage.studies()}
    for cell in cells:
        record, error = records.get(cell.name), errors.get(cell, "")
        if record is None and not error:
            continue
        rounds = storage.rounds(record.id) if record else []
        rounds = [entry for entry in rounds if not len(entry.open)][: cell.rounds]
        key = key_of_cell(cell)
        found.cells[key] = _about(cell, record, rounds) | {"error": error}
        found.rows[key] = rows_of(cell, record, rounds) if record and rounds else []
    return found


def _about(cell: Cell, record: StudyRecord | None, rounds: Sequence[RoundRecord]) -> Row:
    """A cell's row: how far it is, what it cost, and where and with what it ran."""
    place = record.environment if record else {}
    versions = [f"{name} {place[name]}" for name in ("diffbbo", "python", "torch", "numpy") if name in place]
    machine = f"{place['machine']} {place['system']}, {place['cores']} cores" if place else ""
    return {
        "task": cell.task, "method": cell.shown, "seed": cell.seed, "batch": cell.batch, "rounds": len(rounds),
        "ask_s": round(sum(entry.info.get("ask_s", 0.0) for entry in rounds), 3),
        "evaluate_s": round(sum(float(entry.seconds.sum()) for entry in rounds), 3),
        "versions": ", ".join(versions), "machine": machine, "threads": place.get("threads"),
        "gpu": place.get("gpu", ""), "settings": json.dumps(record.settings, sort_keys=True) if record else "",
    }  # fmt: skip


@dataclass(frozen=True)
class Results:
    """What tables and figures are made of: rows of complete cells in the order of the experiment, and the holes."""

    tasks: tuple[str, ...]
    methods: tuple[str, ...]
    rows: list[Row]
    cells: list[Row]
    holes: dict[tuple[str, str], str]  # why seeds are missing, by task and method

    @classmethod
    def of(cls, measured: Measured, cells: Sequence[Cell], tasks: Sequence[str], methods: Sequence[str]) -> Results:
        order = sorted(cells, key=lambda cell: (tasks.index(cell.task), methods.index(cell.shown), cell.seed))
        whole = [cell for cell in order if measured.complete(cell)]
        missing: dict[tuple[str, str], dict[str, list[int]]] = {}
        seeds: dict[tuple[str, str], int] = {}
        for cell in order:
            pair = cell.task, cell.shown
            seeds[pair] = seeds.get(pair, 0) + 1
            if not measured.complete(cell):
                missing.setdefault(pair, {}).setdefault(_reason(cell, measured), []).append(cell.seed)
        return cls(
            tuple(tasks), tuple(methods),
            [row for cell in whole for row in measured.rows[key_of_cell(cell)]],
            [measured.cells[key_of_cell(cell)] for cell in whole],
            {pair: _in_words(reasons, seeds[pair]) for pair, reasons in missing.items()},
        )  # fmt: skip

    def of_task(self, task: str) -> list[Row]:
        return [row for row in self.rows if row["task"] == task]


def _reason(cell: Cell, measured: Measured) -> str:
    error = measured.cells.get(key_of_cell(cell), {}).get("error")
    if error:
        return f"failed: {error}"
    rounds = measured.rounds(cell)
    return f"{rounds} of {cell.rounds} rounds so far" if rounds else "not run yet"


def _in_words(reasons: Mapping[str, list[int]], seeds: int) -> str:
    """The seeds are named where the others have a result or another reason."""
    parts = []
    for reason, which in reasons.items():
        named = f"seed{'s' if len(which) > 1 else ''} {', '.join(map(str, which))} {reason}"
        parts.append(reason if len(which) == seeds else named)
    return "; ".join(parts)
