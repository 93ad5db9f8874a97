"""Figure 4: batch sizes at 1,600 evaluations in all, on superconductor; both of our methods in their `fast` size.

python -m experiments.ablation_batch run|table|draw|again      (options: experiments/common.py)
"""

from __future__ import annotations

import numpy as np

from diffbbo.compare import Cell
from diffbbo.plots import comparison
from diffbbo.standings import Interval
from diffbbo.terminal import interval

from .common import Experiment, Places, main
from .comparison import SETTINGS
from .page import NOTHING, markdown, picture
from .results import Results

TASK, EVALUATIONS = "superconductor", 1600
BATCHES, WHO, SEEDS = (25, 50, 100, 200, 400), ("diffbbo", "diffbbo-paper"), range(100, 103)
POINTS = (400, 800, 1200, 1600)  # evaluations at which every batch size has finished a round
METHODS = tuple(f"{method}, N = {batch}" for method in WHO for batch in BATCHES)


def cells() -> tuple[Cell, ...]:
    """Large batches first: they need the fewest rounds."""
    return tuple(
        Cell(TASK, method, seed, EVALUATIONS // batch, batch, SETTINGS[method], f"{method}, N = {batch}")
        for seed in SEEDS
        for batch in reversed(BATCHES)
        for method in WHO
    )


def draw(results: Results, places: Places) -> dict[str, str]:
    parts = {"table": table(results), "figure": NOTHING}
    if results.rows:
        rows = [row | dict(zip(("task", "method"), row["method"].split(", "), strict=True)) for row in results.rows]
        rows = [row | {"task": f"{TASK}, {row['task']}"} for row in rows]
        for suffix in ("png", "svg"):
            comparison(rows, places.images / f"ablation_batch.{suffix}")
        parts["figure"] = picture("ablation_batch", "Best value found against evaluations, by batch size")
    return parts


def table(results: Results) -> str:
    """The best value found after the same number of evaluations."""
    if not results.rows:
        return NOTHING
    lines = []
    for method in results.methods:
        rows = [row for row in results.rows if row["method"] == method]
        why = results.holes.get((TASK, method), "")
        if not rows:
            lines.append([method, "0", *["-"] * (len(POINTS) + 2), why])
            continue
        found = [[row["best"] for row in rows if row["round"] * row["batch"] == point] for point in POINTS]
        distinct = np.mean([row["distinct"] / row["batch"] for row in rows])
        seconds = sum((row["train_s"] or 0) + (row["acquire_s"] or 0) for row in rows)
        seeds = len(found[-1])
        best = [interval(Interval.of(np.array(values, dtype=float)), seeds) for values in found]
        lines.append([method, str(seeds), *best, f"{distinct:.0%}", f"{seconds / seeds:.3g}", why])
    header = ["method", "seeds", *(f"after {point}" for point in POINTS), "distinct", "s of asking in all", "missing"]
    return markdown(header, lines)


ABLATION = Experiment("ablation_batch", (TASK,), METHODS, cells(), draw)

if __name__ == "__main__":
    main(ABLATION)
