"""What each part of the default brings: removed in turn, on the six tasks and a smooth problem, 8 rounds of 100.

    python -m experiments.ablation_parts run|table|draw|again      (options: experiments/common.py)

On none of these a design fails: what is learnt from failures is removed on a problem of words where most do. Nor is
little known on any: picks are removed there, too, and on two problems in batches of 20 from nothing. On superconductor
seeds differ most: there all other seeds that the comparison has are run, too, and the whole's studies are the first
rounds of the comparison's.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from diffbbo.compare import Cell
from diffbbo.default import PARTS
from diffbbo.figures import BLUE, GREY, OURS, new_figure, styled
from diffbbo.proposers import USUAL
from diffbbo.standings import Difference, Interval, area_of, curves_of, differences, filled, final_of, paired, sign
from diffbbo.terminal import interval
from diffbbo.types import Array

from .common import Experiment, Places, main, save
from .comparison import COMPARISON, FIRST, FRESH, SETTINGS, verdict
from .page import NOTHING, markdown, picture
from .results import Measured, Results, Row

SMOOTH = "ackley-60:shift=1"  # the tasks are all rough
FAILING = "ehrlich-24:vocabulary=12,motifs=3,data=0"  # of the others no design ever fails
LITTLE = ("levy-20:data=0,shift=2", "ackley-mixed:data=0")  # is known there
WHOLLY = ("tfbind8", "tfbind10-clean", "superconductor", "ant", "dkitty", "molecule", SMOOTH)
TASKS = (*WHOLLY, FAILING, *LITTLE)
SEEDS, ROUNDS, BATCH = range(100, 105), 8, 100
OF_LITTLE = 10, 20  # rounds and batch
WHOLE = "diffbbo"
LESS = {f"without {part}": part for part in (*USUAL, *PARTS)}
MORE = tuple(seed for seed in (*FIRST, *FRESH) if seed not in SEEDS)
MEASURES = {"area": area_of, "final": final_of}
WHERE = {  # parts that do something on some tasks only
    "usual values": ("superconductor", "ant", "dkitty"),  # whose designs have numbers in common
    "lines": ("superconductor", "ant", "dkitty", "molecule", SMOOTH),  # whose designs have numbers
    "failures": (FAILING,),
    "picks": (FAILING, *LITTLE),  # of less than 500 rows
}
DIFFERENT = "superconductor"  # whose studies differ most
FURTHER = {(DIFFERENT, label): MORE for label, part in LESS.items() if DIFFERENT in WHERE.get(part, WHOLLY)}


def cells() -> tuple[Cell, ...]:
    first = [
        (seed, task, label) for seed in SEEDS for task in TASKS for label in (WHOLE, *LESS) if task in tasks_of(label)
    ]
    more = [(seed, *place) for place, seeds in FURTHER.items() for seed in seeds]
    return tuple(_cell(*which) for which in (*first, *more))


def tasks_of(label: str) -> tuple[str, ...]:
    """Where the whole, or the whole without a part, is run."""
    return TASKS if label == WHOLE else WHERE.get(LESS[label], WHOLLY)


def _cell(seed: int, task: str, label: str) -> Cell:
    whole = SETTINGS[WHOLE]
    settings = json.dumps(json.loads(whole) | {"without": [LESS[label]]}) if label in LESS else whole
    rounds, batch = OF_LITTLE if task in LITTLE else (ROUNDS, BATCH)
    return Cell(task, WHOLE, seed, rounds, batch, settings, label)


def draw(results: Results, places: Places) -> dict[str, str]:
    if not results.rows:
        return dict.fromkeys((*MEASURES, "figure"), NOTHING)
    rows = [*results.rows, *whole_elsewhere(Measured.read(places.results, COMPARISON.name))]
    found = {(d.task, d.rival): d for d in differences(rows, WHOLE) if d.seeds}
    tables = {measure: table(found, overall(rows, measure), measure) for measure in MEASURES}
    return tables | {"figure": figure(found, places)}


def whole_elsewhere(measured: Measured) -> list[Row]:
    """The whole's rows of more seeds, which the comparison has: studies with the same settings, in more rounds."""
    keys = dict.fromkeys((task, WHOLE, seed, BATCH) for (task, _), seeds in FURTHER.items() for seed in seeds)
    return [row for key in keys for row in measured.rows.get(key, []) if row["round"] <= ROUNDS]


def overall(rows: list[Row], measure: str = "area") -> dict[str, Interval]:
    """What each part brings over all problems, in standard deviations of the whole between seeds: in the unit of no
    task. Every problem weighs the same, however many seeds it has.
    """
    found: dict[str, list[Array]] = {label: [] for label in LESS}
    known = filled(rows)
    for task in TASKS:
        here = [row for row in known if row["task"] == task]
        curves = {m: curves_of([row for row in here if row["method"] == m]) for m in (WHOLE, *LESS)}
        read = {m: MEASURES[measure](curve) for m, curve in curves.items()}
        spread = float(np.std(list(read[WHOLE].values()), ddof=1)) if len(read[WHOLE]) > 1 else 0.0
        for label, problems in found.items():
            gains = paired(read[WHOLE], read[label])
            if spread and len(gains):
                problems.append(sign(task) * gains / spread)
    return {label: mean_over(problems) for label, problems in found.items()}


def mean_over(problems: Sequence[Array], draws: int = 10_000) -> Interval:
    """The mean of the problems' means, and its 95 % bootstrap interval: the seeds of each are drawn again."""
    if not problems:
        return Interval.of(np.empty(0))
    rng = np.random.default_rng(0)
    again = [values[rng.integers(len(values), size=(draws, len(values)))].mean(axis=1) for values in problems]
    low, high = np.quantile(np.mean(again, axis=0), [0.025, 0.975])
    return Interval(float(np.mean([values.mean() for values in problems])), float(low), float(high))


def table(found: dict[tuple[str, str], Difference], together: dict[str, Interval], measure: str) -> str:
    """By how much the whole is better than without a part, and whether that is sure."""
    lines = []
    for label in LESS:
        here = [found.get((task, label)) for task in TASKS]
        seeds = [d.seeds for d in here if d]
        gains = [(getattr(d, measure), d.seeds) if d else None for d in here] + [(together[label], sum(seeds))]
        lines.append([
            label,
            *(f"{interval(*gain)}, {verdict(*gain)}" if gain else "-" for gain in gains),
            f"{min(seeds)} to {max(seeds)}" if seeds else "-",
        ])  # fmt: skip
    return markdown(["", *TASKS, "all, in deviations", "seeds"], lines)


def figure(found: dict[tuple[str, str], Difference], places: Places) -> str:
    """One panel per task: what is lost without each part, with its interval."""
    with styled():
        drawn = new_figure(7.2, 7.8)
        panels = drawn.subplots(4, 3, sharey=True)
        for spare in panels.flat[len(TASKS) :]:
            spare.set_axis_off()
        for panel, task in zip(panels.flat, TASKS, strict=False):
            panel.axvline(0, color=GREY, linewidth=0.8)
            for place, label in enumerate(LESS):
                d = found.get((task, label))
                if d is not None:
                    sure = verdict(d.area, d.seeds) in ("better", "worse")
                    panel.plot([d.area.low, d.area.high], [place, place], color=OURS if sure else BLUE, linewidth=1.2)
                    panel.plot([d.area.mean], [place], "o", color=OURS if sure else BLUE, markersize=3.5)
            if not any(where == task for where, _ in found):
                panel.text(0.5, 0.5, "not run yet", transform=panel.transAxes, ha="center", color=GREY)
            panel.set_title(task.replace(":", "\n", 1))
            panel.locator_params(axis="x", nbins=3)
            panel.grid(axis="y", visible=False)
        panels.flat[0].set_yticks(range(len(LESS)), list(LESS))
        panels.flat[0].invert_yaxis()
        drawn.supxlabel(
            "area with everything less that without the part (95 % interval; orange excludes 0)", fontsize=8
        )
        save(drawn, places, "ablation_parts")
    return picture("ablation_parts", "What is lost without each part, by task")


ABLATION = Experiment("ablation_parts", TASKS, (WHOLE, *LESS), cells(), draw)

if __name__ == "__main__":
    main(ABLATION)
