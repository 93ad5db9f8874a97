"""The table of a comparison: who is best, by how much, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Any

import numpy as np

from .registry import find_task
from .statistics import bootstrap, bootstrap_difference
from .types import Array

Rows = Sequence[Mapping[str, Any]]  # tidy rows, one per round, as `compare.COLUMNS` names them


@dataclass(frozen=True)
class Interval:
    """A mean over seeds with its 95 % bootstrap interval."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Array) -> Interval:
        if not len(values):
            return cls(float("nan"), float("nan"), float("nan"))
        low, high = bootstrap(values)
        return cls(float(np.mean(values)), float(low), float(high))

    @classmethod
    def between(cls, ours: Array, other: Array) -> Interval:
        """Of the difference of two means, neither paired with the other."""
        if not (len(ours) and len(other)):
            return cls.of(np.empty(0))
        return cls(float(np.mean(ours) - np.mean(other)), *bootstrap_difference(ours, other))


@dataclass(frozen=True)
class Standing:
    """A method on a task, over seeds; `area` is the mean of the best-so-far curve."""

    task: str
    method: str
    seeds: int
    best: Interval
    area: Interval
    batch_mean: float
    distinct: float  # share of different designs in a batch
    seconds: float  # of asking, per round: the median, since the first loads packages and a machine may pause
    rank: int = 0  # by area, 1 = best; 0 = no result
    error: str = ""


def standings(rows: Rows, errors: Mapping[tuple[str, str], str] | None = None) -> list[Standing]:
    """Best method first within each task; last those without a result, with their error by (task, method)."""
    failed = dict(errors or {})
    pairs = list(dict.fromkeys([*((row["task"], row["method"]) for row in rows), *failed]))
    rows = filled(rows)
    table: list[Standing] = []
    for task in dict.fromkeys(task for task, _ in pairs):
        entries = [
            _standing([r for r in rows if (r["task"], r["method"]) == pair], *pair, failed.get(pair, ""))
            for pair in pairs
            if pair[0] == task
        ]
        # Whoever found no design that can be made has no area, and comes last.
        ok = sorted((e for e in entries if e.seeds), key=lambda e: (isnan(e.area.mean), -sign(task) * e.area.mean))
        table.extend(replace(e, rank=rank) for rank, e in enumerate(ok, 1))
        table.extend(e for e in entries if not e.seeds)
    return table


def filled(rows: Rows) -> Rows:
    """Rows in which a study that has found nothing yet has the worst value that any study on its task was ever at: not
    to count those rounds would reward a late first success. A method that never found anything keeps its holes."""
    found: dict[str, list[float]] = {}
    for row in rows:
        if row["best"] is not None:
            found.setdefault(row["task"], []).append(row["best"])
    worst = {task: min(values, key=lambda value: sign(task) * value) for task, values in found.items()}
    able = {(row["task"], row["method"]) for row in rows if row["best"] is not None}
    return [
        {**row, "best": worst[row["task"]]} if row["best"] is None and (row["task"], row["method"]) in able else row
        for row in rows
    ]


def sign(task: str) -> int:
    """1 where more is better, -1 where less is."""
    return -1 if find_task(task)[0].minimize else 1


def _standing(rows: Rows, task: str, method: str, error: str) -> Standing:
    curves = curves_of(rows)
    final, area = final_of(curves), area_of(curves)
    seconds = [(row["train_s"] or 0) + (row["acquire_s"] or 0) for row in rows]
    return Standing(
        task, method, len(curves), Interval.of(np.array(list(final.values()))),
        Interval.of(np.array(list(area.values()))),
        batch_mean=_mean(row["batch_mean"] for row in rows),
        distinct=_mean(row["distinct"] / row["batch"] for row in rows),
        seconds=float(np.median(seconds)) if seconds else float("nan"),
        error=error,
    )  # fmt: skip


def curves_of(rows: Rows) -> dict[int, Array]:
    """Best value so far, round by round, by seed."""
    found: dict[int, dict[int, float]] = {}
    for row in rows:
        best = row["best"]
        found.setdefault(int(row["seed"]), {})[int(row["round"])] = float("nan") if best is None else float(best)
    return {seed: np.array([curve[k] for k in sorted(curve)]) for seed, curve in sorted(found.items())}


def final_of(curves: Mapping[int, Array]) -> dict[int, float]:
    return {seed: float(curve[-1]) for seed, curve in curves.items()}


def area_of(curves: Mapping[int, Array]) -> dict[int, float]:
    return {seed: float(np.mean(curve)) for seed, curve in curves.items()}


def _mean(values: Any) -> float:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else float("nan")


@dataclass(frozen=True)
class Difference:
    """How much better `method` is than `rival` on a task, in the task's unit, seed by seed; above 0 = better."""

    task: str
    method: str
    rival: str
    seeds: int
    area: Interval
    final: Interval


def differences(rows: Rows, method: str, pair: bool = True) -> list[Difference]:
    """Against every rival on every task: paired over the seeds that both have, or else all seeds of either."""
    found = []
    rows = filled(rows)
    for task in dict.fromkeys(row["task"] for row in rows):
        here = [row for row in rows if row["task"] == task]
        mine = curves_of([row for row in here if row["method"] == method])
        for rival in dict.fromkeys(row["method"] for row in here if row["method"] != method):
            theirs = curves_of([row for row in here if row["method"] == rival])
            common = [seed for seed in mine if seed in theirs]
            seeds = len(common) if pair else min(len(mine), len(theirs))
            area, final = (
                _difference(measure(mine), measure(theirs), sign(task), pair) for measure in (area_of, final_of)
            )
            found.append(Difference(task, method, rival, seeds, area, final))
    return found


def _difference(ours: Mapping[int, float], other: Mapping[int, float], sign: int, pair: bool) -> Interval:
    if pair:
        return Interval.of(sign * paired(ours, other))
    return Interval.between(*(sign * np.array(list(values.values())) for values in (ours, other)))


def paired(ours: Mapping[int, float], other: Mapping[int, float]) -> Array:
    """By how much ours is more, seed by seed, over the seeds that both have."""
    return np.array([ours[seed] - other[seed] for seed in ours if seed in other])


def mean_ranks(table: Sequence[Standing]) -> dict[str, float]:
    """The mean over tasks of the rank by area, best first; only of methods with a result on every task."""
    tasks = {entry.task for entry in table}
    ranks: dict[str, list[int]] = {}
    for entry in table:
        if entry.rank:
            ranks.setdefault(entry.method, []).append(entry.rank)
    whole = {method: float(np.mean(found)) for method, found in ranks.items() if len(found) == len(tasks)}
    return dict(sorted(whole.items(), key=lambda item: item[1]))
