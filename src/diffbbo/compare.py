"""Grids of studies: every method on every task with every seed, each cell a study in one storage."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from .registry import find, find_task, make_optimizer, make_task, methods
from .statistics import bootstrap
from .storage import Storage
from .study import RoundSummary, Study, in_words
from .types import Array, DiffBBOError

COLUMNS = ("task", "method", "seed", "batch", "round", "best", "distinct", "batch_mean", "batch_max", "weight",
           "epistemic", "aleatoric", "gap", "train_s", "acquire_s", "failures", "fallback", "facts")  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One study of a grid."""

    task: str
    method: str
    seed: int


@dataclass(frozen=True)
class CellResult:
    """What became of a cell: its rounds, or why it failed."""

    cell: Cell
    batch: int
    rounds: tuple[RoundSummary, ...]
    error: str = ""

    def rows(self) -> list[dict[str, Any]]:
        """Tidy rows, one per round, with the columns of `COLUMNS`."""
        head = {"task": self.cell.task, "method": self.cell.method, "seed": self.cell.seed, "batch": self.batch}
        return [
            {key: (head | entry.to_dict() | {"facts": in_words(entry.facts)})[key] for key in COLUMNS}
            for entry in self.rounds
        ]


def grid(task_names: Sequence[str], method_names: Sequence[str], seeds: Sequence[int]) -> list[Cell]:
    """Every combination, seed by seed so that a stopped grid has seen every method; unknown names are refused."""
    for name in task_names:
        find_task(name)
    for name in method_names:
        find("method", name, methods())
    return [Cell(task, method, seed) for seed, task, method in product(seeds, task_names, method_names)]


def run_grid(
    cells: Sequence[Cell], storage: Storage, rounds: int, batch: int, settings: dict[str, dict[str, Any]] | None = None
) -> Iterator[CellResult]:
    """Run what is missing of each cell. One that fails does not stop the rest. `settings` are per method."""
    for cell in cells:
        done: list[RoundSummary] = []
        error = ""
        try:
            task = make_task(cell.task)
            own = (settings or {}).get(cell.method, {})
            optimizer = make_optimizer(cell.method, task.space, seed=cell.seed, minimize=task.minimize, **own)
            name = f"{cell.task}-{cell.method}-{cell.seed}"
            for entry in Study(task, optimizer, storage, name).steps(rounds, batch):
                done.append(entry)
        except Exception as failure:  # whatever a method does, the others must run
            error = str(failure) if isinstance(failure, DiffBBOError) else f"{type(failure).__name__}: {failure}"
        yield CellResult(cell, batch, tuple(done), error)


def write_table(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Tidy rows as CSV."""
    with path.open("w", newline="", encoding="utf-8") as handle:
        table = csv.DictWriter(handle, COLUMNS)
        table.writeheader()
        table.writerows(rows)


@dataclass(frozen=True)
class Standing:
    """A method on a task: means over seeds, 95 % bootstrap intervals; `area` is the mean of the best-so-far curve."""

    task: str
    method: str
    seeds: int
    best: float
    best_interval: tuple[float, float]
    area: float
    area_interval: tuple[float, float]
    distinct: float  # share of different designs in a batch
    rank: int  # by area, 1 = best
    error: str = ""


def standings(results: Sequence[CellResult]) -> list[Standing]:
    """The table of a comparison, best method first within each task; failed methods last, with their error."""
    table: list[Standing] = []
    for task in dict.fromkeys(result.cell.task for result in results):
        sign = -1 if find_task(task)[0].minimize else 1
        entries: list[Standing] = []
        for method in dict.fromkeys(result.cell.method for result in results if result.cell.task == task):
            mine = [r for r in results if r.cell.task == task and r.cell.method == method]
            entries.append(_standing(task, method, mine))
        ok = sorted((e for e in entries if not np.isnan(e.area)), key=lambda e: -sign * e.area)
        table.extend(Standing(**(vars(e) | {"rank": rank})) for rank, e in enumerate(ok, 1))
        table.extend(e for e in entries if np.isnan(e.area))
    return table


def _standing(task: str, method: str, results: list[CellResult]) -> Standing:
    complete = [r for r in results if not r.error]
    curves = [np.array([e.best if e.best is not None else np.nan for e in r.rounds]) for r in complete]
    final = np.array([curve[-1] for curve in curves])
    area = np.array([np.nanmean(curve) if np.isfinite(curve).any() else np.nan for curve in curves])
    share = [e.distinct / r.batch for r in complete for e in r.rounds]
    error = "; ".join(dict.fromkeys(f"seed {r.cell.seed}: {r.error}" for r in results if r.error))
    return Standing(
        task, method, len(complete), _mean(final), _interval(final), _mean(area), _interval(area),
        float(np.mean(share)) if share else float("nan"), 0, error,
    )  # fmt: skip


def _mean(values: Array) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def _interval(values: Array) -> tuple[float, float]:
    low, high = bootstrap(values)
    return float(low), float(high)
