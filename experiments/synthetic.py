"""Does the default hold elsewhere? Fifteen synthetic problems, spread over dimension, budget, batch and start.

    python -m experiments.synthetic run|table|draw|again      (options: experiments/common.py)

Every function and every dimension meets every batch size. Budgets are rounded down to whole batches. The optimum is
shifted to a random place: the textbooks' lies in or near the middle, where some methods begin. A task named
`...:data=0` starts from nothing, the others from the 25th to 50th percentile of 2,000 random designs: the sequence
problems too, since no method would meet a single word without a banned pair by chance.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isnan

from diffbbo.compare import Cell
from diffbbo.standings import Difference, Standing, differences
from diffbbo.terminal import number

from .common import Experiment, Places, main
from .comparison import AGAINST_BEST, SETTINGS, VERDICTS, against_best, curves, standing_of
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
    paired = differences(results.rows, OURS)
    lines = [_line(paired, standing, *problem) for problem in PROBLEMS]
    header = ["problem", "batch", "evaluations", *(OURS, *RIVALS), *AGAINST_BEST]
    return {
        "figure": curves(results, places, "synthetic", "Best value found against evaluations, by problem and method"),
        "table": markdown(header, lines),
        "sum": f"First, or not significantly behind the best rival: by area on {_held(line[-4] for line in lines)}, "
        f"by best found on {_held(line[-1] for line in lines)} problems judged so far (of {len(PROBLEMS)}).",
    }


def _line(paired: list[Difference], standing: list[Standing], task: str, batch: int, evaluations: int) -> list[str]:
    """Mean areas ("nothing" where none could be made), and ours against the best rivals."""
    areas = {e.method: e.area.mean for e in standing if e.task == task and e.seeds}
    shown = ["-" if m not in areas else "nothing" if isnan(areas[m]) else number(areas[m]) for m in (OURS, *RIVALS)]
    against = against_best(paired, standing, task, OURS)
    return [task, str(batch), str(evaluations // batch * batch), *shown, *against]


def _held(verdicts: Iterable[str]) -> str:
    judged = [word for word in verdicts if word in VERDICTS]
    return f"{sum(word != 'worse' for word in judged)} of {len(judged)}"


SYNTHETIC = Experiment("synthetic", TASKS, (OURS, *RIVALS), cells(), draw)

if __name__ == "__main__":
    main(SYNTHETIC)
