"""Does the default hold elsewhere? Fifteen synthetic problems, spread over dimension, budget, batch and start.

    python -m experiments.synthetic run|table|draw|again      (options: experiments/common.py)

Every function and every dimension meets every batch size. Budgets are rounded down to whole batches. The optimum is
shifted to a random place: the textbooks' lies in or near the middle, where some methods begin. A task named
`...:data=0` starts from nothing, the others from the 25th to 50th percentile of 2,000 random designs: the sequence
problems too, since no method would meet a single word without a banned pair by chance.
"""

from __future__ import annotations

from math import isnan

from diffbbo.compare import Cell
from diffbbo.standings import Standing, differences
from diffbbo.terminal import interval, number

from .common import Experiment, Places, main
from .comparison import SETTINGS, curves, standing_of, verdict
from .page import NOTHING, markdown
from .results import Results

# task, batch, evaluations
PROBLEMS = (
    ("ackley-20:data=0,shift=1", 10, 200), ("ackley-60:shift=1", 100, 1600), ("ackley-200:data=0,shift=1", 500, 1600),
    ("rastrigin-20:shift=1", 500, 1600), ("rastrigin-60:data=0,shift=1", 10, 200), ("rastrigin-200:shift=1", 100, 1600),
    ("levy-20:data=0,shift=1", 100, 200), ("levy-60:shift=1", 500, 1600), ("levy-200:shift=1", 10, 200),
    ("rosenbrock-20:shift=1", 10, 1600), ("rosenbrock-60:data=0,shift=1", 500, 1600),
    ("rosenbrock-200:data=0,shift=1", 100, 1600),
    ("ehrlich-32", 100, 200), ("ehrlich-64:motifs=2", 10, 200), ("ackley-mixed:data=0", 500, 1600),
)  # fmt: skip
TASKS = tuple(task for task, *_ in PROBLEMS)
OURS, RIVALS, SEEDS = "diffbbo", ("turbo", "cmaes", "evolution", "gp-ei"), range(100, 105)


def cells() -> tuple[Cell, ...]:
    return tuple(
        Cell(task, method, seed, evaluations // batch, batch, SETTINGS.get(method, "{}"))
        for seed in SEEDS
        for method in (OURS, *RIVALS)
        for task, batch, evaluations in PROBLEMS
    )


def draw(results: Results, places: Places) -> dict[str, str]:
    if not results.rows:
        return dict.fromkeys(("figure", "table", "sum"), NOTHING)
    standing = standing_of(results)
    lines = [_line(results, [e for e in standing if e.task == problem[0]], *problem) for problem in PROBLEMS]
    judged = [line[-1] for line in lines if line[-1] in ("better", "worse", "undecided")]
    first = sum(word != "worse" for word in judged)
    header = ["problem", "batch", "evaluations", *(OURS, *RIVALS), "best rival", "difference", ""]
    return {
        "figure": curves(results, places, "synthetic", "Best value found against evaluations, by problem and method"),
        "table": markdown(header, lines),
        "sum": f"First, or not significantly behind the best rival, on {first} of {len(judged)} problems judged so far "
        f"(of {len(PROBLEMS)}).",
    }


def _line(results: Results, standing: list[Standing], task: str, batch: int, evaluations: int) -> list[str]:
    """Mean areas ("nothing" where none could be made), and ours against the rival with the best one."""
    head = [task, str(batch), str(evaluations // batch * batch)]
    areas = {e.method: e.area.mean for e in standing if e.seeds}
    shown = ["-" if m not in areas else "nothing" if isnan(areas[m]) else number(areas[m]) for m in (OURS, *RIVALS)]
    rivals = [e for e in standing if e.seeds and e.method != OURS]
    if OURS not in areas or not rivals:
        return [*head, *shown, "-", "-", ""]
    best = min(rivals, key=lambda e: e.rank).method
    paired = next(d for d in differences(results.of_task(task), OURS) if d.rival == best)
    return [*head, *shown, best, interval(paired.area, paired.seeds), verdict(paired.area, paired.seeds)]


SYNTHETIC = Experiment("synthetic", TASKS, (OURS, *RIVALS), cells(), draw)

if __name__ == "__main__":
    main(SYNTHETIC)
