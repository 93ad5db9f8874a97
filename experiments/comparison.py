"""Figure 2: every method on every task, 16 rounds of 100, from the 25th to 50th percentile of the visible data.

    python -m experiments.comparison run|table|draw|again      (options: experiments/common.py)

Seeds from 100 up, which nothing was tuned on: ten for what costs seconds and for `diffbbo`, five for the others. Those
with ten have ten more, which no version before has seen. What a method would choose by hardware is fixed, so that cells
of different machines are the same experiment: our two methods have the preset `fast`, Gaussian processes see 500 rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import inf, isnan

from diffbbo import make_task
from diffbbo.compare import Cell
from diffbbo.plots import comparison
from diffbbo.standings import Difference, Interval, Rows, Standing, differences, mean_ranks, sign, standings
from diffbbo.terminal import interval, number

from .common import Experiment, Places, main
from .page import NOTHING, markdown, picture
from .results import Results

TASKS = ("tfbind8", "tfbind10", "tfbind10-clean", "superconductor", "ant", "dkitty", "molecule")
JUDGED = tuple(task for task in TASKS if task != "tfbind10")  # the raw lookup is mostly noise: reported, not ranked
ROUNDS, BATCH = 16, 100
FIRST, FRESH = range(100, 110), range(160, 170)  # with those in between earlier versions were measured
MANY = len(FIRST)  # seeds of what is cheap to ask, with as many fresh ones besides
# In the order of the figures: seeds, and roughly the seconds of a round, which only decide what runs first.
METHODS = {
    "diffbbo": (MANY, 20.0), "diffbbo-paper": (5, 60.0), "gp-ei": (5, 30.0), "gp-ucb": (5, 30.0), "gp-jes": (5, 40.0),
    "turbo": (5, 10.0), "lolbo": (5, 30.0), "lfbo-ei": (5, 3.0), "lfbo-pi": (5, 3.0), "cbas": (5, 10.0),
    "optuna-tpe": (5, 8.0), "cmaes": (MANY, 0.1), "evolution": (MANY, 0.02), "evolution-regularized": (MANY, 0.03),
    "random": (MANY, 0.01),
}  # fmt: skip
OURS = ("diffbbo", "diffbbo-paper")
GPS = ("gp-ei", "gp-ucb", "gp-jes", "turbo")
SETTINGS = dict.fromkeys(OURS, json.dumps({"preset": "fast"})) | dict.fromkeys(GPS, json.dumps({"rows": 500}))
VERDICTS = ("better", "undecided", "worse")
AGAINST_BEST = ("best rival by area", "difference", "", "best rival by best found", "difference", "")
Paired = Mapping[str, Sequence[Difference]]  # each of ours against everybody, on every task
ENOUGH = 3  # seeds that both must have before a difference is judged


def cells(tasks: Sequence[str] = TASKS, rounds: int = ROUNDS, batch: int = BATCH) -> tuple[Cell, ...]:
    """Seed by seed, cheap methods first: a grid that is stopped has seen every method and task."""
    every = [
        (seed, METHODS[method][1], Cell(task, method, seed, rounds, batch, SETTINGS.get(method, "{}")))
        for method in METHODS
        for task in tasks
        for seed in seeds_of(method)
    ]
    return tuple(cell for *_, cell in sorted(every, key=lambda entry: entry[:2]))


def seeds_of(method: str) -> list[int]:
    count = METHODS[method][0]
    return [*FIRST[:count], *(FRESH if count == MANY else ())]


def draw(results: Results, places: Places) -> dict[str, str]:
    """One panel and one table per task, a table of ranks, and our methods against the best rival and against all."""
    standing = standing_of(results)
    parts = {task: task_table(results, standing, task) for task in results.tasks}
    parts["ranks"] = rank_table(results, [entry for entry in standing if entry.task in JUDGED])
    paired = paired_of(results)
    parts["differences"] = difference_table(results, standing, paired)
    parts["everyone"] = everyone_table(paired) if results.rows else NOTHING
    parts |= fresh_parts(results)
    parts["figure"] = curves(results, places, "comparison", "Best value found against evaluations, by task and method")
    return parts


def standing_of(results: Results) -> list[Standing]:
    """Who stands where; methods without any complete seed come last, with the reason."""
    known = {(row["task"], row["method"]) for row in results.rows}
    return standings(results.rows, {pair: why for pair, why in results.holes.items() if pair not in known})


def paired_of(results: Results) -> Paired:
    return {ours: differences(results.rows, ours) for ours in OURS}


def curves(results: Results, places: Places, name: str, what: str) -> str:
    """Best-so-far curves as a figure, and the link to it."""
    if not results.rows:
        return NOTHING
    maxima = {task: make_task(task).maximum for task in results.tasks}
    for suffix in ("png", "svg"):
        comparison(results.rows, places.images / f"{name}.{suffix}", maxima)
    return picture(name, what)


def task_table(results: Results, standing: Sequence[Standing], task: str) -> str:
    here = [entry for entry in standing if entry.task == task]
    if not any(entry.seeds for entry in here):
        reasons = {why for (where, _), why in results.holes.items() if where == task}
        return NOTHING if reasons <= {"not run yet"} else f"*No result: {'; '.join(sorted(reasons))}.*"
    normalise = make_task(task).normalise
    lines = []
    for e in here:
        why = results.holes.get((task, e.method), "")
        if not e.seeds:
            lines.append(["-", e.method, "0", *["-"] * 6, why])
            continue
        score = Interval(*(float(normalise(value)) for value in (e.best.mean, e.best.low, e.best.high)))
        lines.append([
            str(e.rank), e.method, str(e.seeds), interval(e.best, e.seeds), interval(e.area, e.seeds),
            interval(score, e.seeds), number(e.batch_mean), f"{e.distinct:.0%}", f"{e.seconds:.2g}", why,
        ])  # fmt: skip
    header = ["rank", "method", "seeds", "best found", "area", "normalised best", "batch mean", "distinct",
              "s a round", "missing"]  # fmt: skip
    return markdown(header, lines)


def rank_table(results: Results, standing: Sequence[Standing]) -> str:
    """Ranks by area; a method that lacks a task has no mean."""
    if not any(entry.rank for entry in standing):
        return NOTHING
    tasks = [task for task in results.tasks if any(entry.task == task for entry in standing)]
    ranks = {(entry.task, entry.method): entry.rank for entry in standing if entry.rank}
    means = mean_ranks(standing)
    methods = [*means, *(method for method in results.methods if method not in means)]
    lines = []
    for method in methods:
        mean = f"{means[method]:.2f}" if method in means else "-"
        missing = [f"{task}: {results.holes.get((task, method), '')}" for task in tasks if (task, method) not in ranks]
        lines.append([method, mean, *(str(ranks.get((task, method), "-")) for task in tasks), "; ".join(missing)])
    return markdown(["method", "mean rank", *tasks, "missing"], lines)


def difference_table(results: Results, standing: Sequence[Standing], paired: Paired) -> str:
    """Each of ours against the best rival of each task."""
    lines = []
    for task in results.tasks:
        for ours in OURS:
            rank = next((e.rank for e in standing if (e.task, e.method) == (task, ours)), 0)
            lines.append([task, ours, str(rank or "-"), *against_best(paired[ours], standing, task, ours)])
    if all(line[2] == "-" for line in lines):
        return NOTHING
    return markdown(["task", "method", "rank", *AGAINST_BEST], lines)


def against_best(found: Sequence[Difference], standing: Sequence[Standing], task: str, ours: str) -> list[str]:
    """One of ours against the rival with the best mean on a task, once by area and once by the best found."""
    here = [e for e in standing if e.task == task and e.seeds]
    rivals = [e for e in here if e.method not in OURS]
    if not rivals or not any(e.method == ours for e in here):
        return ["-"] * len(AGAINST_BEST)
    paired = {d.rival: d for d in found if d.task == task}
    by_area = paired[min(rivals, key=lambda e: e.rank).method]
    by_best = paired[max(rivals, key=lambda e: -inf if isnan(e.best.mean) else sign(task) * e.best.mean).method]
    return [
        word
        for d, difference in ((by_area, by_area.area), (by_best, by_best.final))
        for word in (d.rival, interval(difference, d.seeds), verdict(difference, d.seeds))
    ]


def everyone_table(paired: Paired) -> str:
    """How often each of ours is surely better or worse than a rival, over all rivals and tasks."""
    lines = []
    for ours, found in paired.items():
        judged = [d for d in found if d.rival not in OURS and d.seeds >= ENOUGH]
        for name, measure in (("area", "area"), ("best found", "final")):
            words = [verdict(getattr(d, measure), d.seeds) for d in judged]
            above: dict[str, list[str]] = {}
            for d, word in zip(judged, words, strict=True):
                if word == "worse":
                    above.setdefault(d.task, []).append(d.rival)
            whom = "; ".join(f"on {task} {', '.join(rivals)}" for task, rivals in above.items()) or "nobody"
            lines.append([ours, name, *(str(words.count(word)) for word in VERDICTS), whom])
    return markdown(["method", "by", *VERDICTS, "worse than"], lines)


def fresh_parts(results: Results) -> dict[str, str]:
    """The default on seeds that no version before has seen: paired with the quick rivals, which were run on them, too;
    and beside all that was measured of everybody, where seeds differ and nothing is paired."""
    if not any(row["method"] == OURS[0] and row["seed"] in FRESH for row in results.rows):
        return dict.fromkeys(("fresh", "fresh-everyone", "fresh-counts", "fresh-ranks"), NOTHING)
    paired = [row for row in results.rows if row["seed"] in FRESH]
    everyone = [row for row in results.rows if row["method"] != OURS[0] or row["seed"] in FRESH]
    apart = differences(everyone, OURS[0], pair=False)
    ranks = mean_ranks([entry for entry in standings(everyone) if entry.task in JUDGED])
    return {
        "fresh": beside_table(results.tasks, paired, differences(paired, OURS[0])),
        "fresh-everyone": beside_table(results.tasks, everyone, apart),
        "fresh-counts": everyone_table({OURS[0]: apart}),
        "fresh-ranks": f"Mean ranks: {', '.join(f'`{method}` {rank:.2f}' for method, rank in ranks.items())}.",
    }


def beside_table(tasks: Sequence[str], rows: Rows, found: Sequence[Difference]) -> str:
    """The default's rank in `rows`, and against the best rivals, task by task."""
    standing = standings(rows)
    mine = {e.task: e for e in standing if e.method == OURS[0]}
    lines = [
        [task, str(mine[task].seeds), str(mine[task].rank), *against_best(found, standing, task, OURS[0])]
        for task in tasks
        if task in mine
    ]
    return markdown(["task", "seeds", f"rank among {len({e.method for e in standing})}", *AGAINST_BEST], lines)


def verdict(difference: Interval, seeds: int) -> str:
    """Better or worse only where the 95 % interval excludes 0."""
    if seeds < ENOUGH:
        return f"{seeds} common seeds: too few"
    return "better" if difference.low > 0 else "worse" if difference.high < 0 else "undecided"


COMPARISON = Experiment("comparison", TASKS, tuple(METHODS), cells(), draw)

if __name__ == "__main__":
    main(COMPARISON)
