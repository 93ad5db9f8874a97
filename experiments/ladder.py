"""The cheap ladder for judging ideas, below the full comparison: three cheap tasks, 8 rounds of 100, seeds 0 to 4.

    python -m experiments.ladder run --methods diffbbo,evolution [--variant NAME METHOD JSON ...]
    python -m experiments.ladder draw [--methods ...]          prints the tables; by default of all that was measured

A variant is a method with settings of its own, such as `--variant "diffbbo, w = 1" diffbbo
'{"preset": "fast", "acquisition": {"name": "FixedWeight", "w": 1.0}}'`. Other options: experiments/common.py.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from diffbbo.compare import Cell

from .common import Experiment, Places, main
from .comparison import METHODS, SETTINGS, curves, difference_table, paired_of, rank_table, standing_of, task_table
from .results import Measured, Results

TASKS = ("tfbind8", "superconductor", "molecule")
SEEDS, ROUNDS, BATCH = range(5), 8, 100
USUAL = ("diffbbo", "evolution", "random")


def ladder(variants: Sequence[tuple[str, str, str]]) -> Experiment:
    """The experiment of these variants: what tables call it, the method, its settings."""
    cells = [
        Cell(task, method, seed, ROUNDS, BATCH, settings, label)
        for seed, (label, method, settings), task in product(SEEDS, variants, TASKS)
    ]
    return Experiment("ladder", TASKS, tuple(label for label, *_ in variants), tuple(cells), draw)


def draw(results: Results, places: Places) -> dict[str, str]:
    standing = standing_of(results)
    parts = {task: task_table(results, standing, task) for task in results.tasks}
    parts["ranks"] = rank_table(results, standing)
    parts["differences"] = difference_table(results, standing, paired_of(results))
    parts["figure"] = curves(results, places, "ladder", "The ladder: best value found against evaluations")
    return parts


def variants_of(names: str, own: Sequence[Sequence[str]], root: Path) -> list[tuple[str, str, str]]:
    """Named methods with the settings of the comparison, and variants; without either, all that was measured."""
    found = [(name, name, SETTINGS.get(name, "{}")) for name in filter(None, names.split(","))]
    found += [(label, method, json.dumps(json.loads(settings))) for label, method, settings in own]
    if found:
        return found
    measured = dict.fromkeys(method for _, method, *_ in Measured.read(root / "results", "ladder").cells)
    return [(name, name, SETTINGS.get(name, "{}")) for name in sorted(measured or USUAL, key=_place)]


def _place(name: str) -> int:
    return [*METHODS, name].index(name)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--methods", default="")
    parser.add_argument("--variant", nargs=3, action="append", default=[])
    parser.add_argument("--root", type=Path, default=Path())
    given, rest = parser.parse_known_args()
    main(ladder(variants_of(given.methods, given.variant, given.root)), [*rest, "--root", str(given.root)])
