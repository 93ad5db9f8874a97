"""Grids of studies: every method on every task with every seed, each cell a study in one storage."""

from __future__ import annotations

import csv
import json
import os
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from .acquisition import FixedWeight, RandomWeight, UaE
from .backends import Serial
from .diffusion.config import EnsembleConfig
from .registry import find, find_task, make_optimizer, make_task, methods
from .storage import Storage
from .study import RoundSummary, Study, in_words, summaries
from .types import DiffBBOError, InputError
from .workers import Lost, scatter

COLUMNS = ("task", "method", "seed", "batch", "round", "best", "distinct", "batch_mean", "batch_max", "weight",
           "epistemic", "aleatoric", "gap", "train_s", "acquire_s", "failures", "fallback", "facts")  # fmt: skip
WORDS = ("task", "method", "facts")  # columns that are not numbers


@dataclass(frozen=True)
class Cell:
    """One study of a grid. `label` is what tables call the method with these `settings` (JSON); by default its name.

    An acquisition or a config is described by its fields: `{"acquisition": {"name": "FixedWeight", "w": 1.2}}`.
    """

    task: str
    method: str
    seed: int
    rounds: int = 16
    batch: int = 100
    settings: str = "{}"
    label: str = ""

    @property
    def shown(self) -> str:
        return self.label or self.method

    @property
    def name(self) -> str:
        """Of the study."""
        return f"{self.task} {self.shown} {self.batch} {self.seed}"


@dataclass(frozen=True)
class CellResult:
    """What became of a cell: its rounds so far, or why it failed."""

    cell: Cell
    rounds: tuple[RoundSummary, ...]
    error: str = ""

    @property
    def complete(self) -> bool:
        return len(self.rounds) >= self.cell.rounds

    def rows(self) -> list[dict[str, Any]]:
        """Tidy rows, one per round, with the columns of `COLUMNS`."""
        cell = self.cell
        head = {"task": cell.task, "method": cell.shown, "seed": cell.seed, "batch": cell.batch}
        return [
            {key: (head | entry.to_dict() | {"facts": in_words(entry.facts)})[key] for key in COLUMNS}
            for entry in self.rounds
        ]


def grid(
    task_names: Sequence[str], method_names: Sequence[str], seeds: Sequence[int], rounds: int = 16, batch: int = 100,
    settings: Mapping[str, dict[str, Any]] | None = None,
) -> list[Cell]:  # fmt: skip
    """Every combination, seed by seed so that a stopped grid has seen every method; unknown names are refused.

    `settings` are those of a method's constructor, by its name.
    """
    for name in task_names:
        find_task(name)
    for name in method_names:
        find("method", name, methods())
    own = {name: json.dumps((settings or {}).get(name, {})) for name in method_names}
    return [
        Cell(task, method, seed, rounds, batch, own[method])
        for seed, task, method in product(seeds, task_names, method_names)
    ]


def run_grid(
    cells: Sequence[Cell], storage: Storage, workers: int = 1, minutes: float | None = None
) -> Iterator[CellResult]:
    """Run what is missing of each cell, in order or `workers` at a time. One that fails does not stop the rest.

    After `minutes` no round is begun: what is unfinished then comes back incomplete, and another run goes on with it.
    """
    if workers < 1:
        raise InputError(f"workers = {workers}.", "Use at least 1.")
    until = None if minutes is None else time.time() + 60 * minutes
    if workers == 1:
        yield from (_run(cell, storage, until) for cell in cells)
        return
    threads = max(1, (os.cpu_count() or 1) // workers)
    for position, result in scatter(partial(_run_there, storage.url, until, threads), cells, workers):
        yield CellResult(cells[position], (), result.error) if isinstance(result, Lost) else result


def _run_there(url: str, until: float | None, threads: int, cell: Cell) -> CellResult:
    """Run a cell in a worker process, which has `threads` threads to itself."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(threads)
    with Storage(url) as storage:
        return _run(cell, storage, until)


def _run(cell: Cell, storage: Storage, until: float | None) -> CellResult:
    done: list[RoundSummary] = []
    error = ""
    try:
        if until is None or time.time() < until:
            # Cells side by side keep the cores busy; within one, designs are evaluated one after the other.
            for entry in _study(cell, storage).steps(cell.rounds, cell.batch):
                done.append(entry)
                if until is not None and time.time() > until:
                    break
    except Exception as failure:  # whatever a method does, the others must run
        error = str(failure) if isinstance(failure, DiffBBOError) else f"{type(failure).__name__}: {failure}"
    return CellResult(cell, tuple(done), error)


def _study(cell: Cell, storage: Storage) -> Study:
    task = make_task(cell.task)
    settings = {key: _made(key, value) for key, value in json.loads(cell.settings).items()}
    optimizer = make_optimizer(cell.method, task.space, seed=cell.seed, minimize=task.minimize, **settings)
    return Study(task, optimizer, storage, cell.name, backend=Serial())


def _made(key: str, value: Any) -> Any:
    """A setting, made from its JSON where it is an object: `{"acquisition": {"name": "FixedWeight", "w": 1.2}}`,
    `{"config": {"hidden": 64}}`."""
    if not isinstance(value, dict) or key not in ("acquisition", "config"):
        return value
    known = {cls.__name__: cls for cls in (UaE, FixedWeight, RandomWeight)}
    cls = EnsembleConfig if key == "config" else find(key, str(value.get("name")), known)
    try:
        return cls(**{name: entry for name, entry in value.items() if name != "name"})
    except TypeError as error:
        raise InputError(f"The {key} cannot be made from {value}: {error}.", "Check its fields.") from error


def stored(cells: Sequence[Cell], storage: Storage) -> list[CellResult]:
    """What a storage holds of these cells, without running anything."""
    records = {record.name: record for record in storage.studies()}
    found = []
    for cell in cells:
        record = records.get(cell.name)
        if record is not None:
            rounds = summaries(storage.rounds(record.id), record.minimize)
            found.append(CellResult(cell, tuple(rounds[: cell.rounds])))
    return found


def failures(results: Sequence[CellResult]) -> dict[tuple[str, str], str]:
    """What went wrong, by task and method."""
    said: dict[tuple[str, str], list[str]] = {}
    for result in results:
        if result.error:
            pair = result.cell.task, result.cell.shown
            said.setdefault(pair, []).append(f"seed {result.cell.seed}: {result.error}")
    return {pair: "; ".join(errors) for pair, errors in said.items()}


def write_table(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Tidy rows as CSV."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as handle:
        table = csv.DictWriter(handle, COLUMNS)
        table.writeheader()
        table.writerows(rows)


def read_table(path: Path, words: Collection[str] = WORDS) -> list[dict[str, Any]]:
    """Rows of a CSV file whose columns are numbers but for `words`; an empty cell is None."""
    with path.open(newline="", encoding="utf-8") as handle:
        return [
            {name: text if name in words else _number(text) if text else None for name, text in row.items()}
            for row in csv.DictReader(handle)
        ]


def _number(text: str) -> float | int:
    """What is written without a point stays so."""
    return int(text) if text.removeprefix("-").isdigit() else float(text)
