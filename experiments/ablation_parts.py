"""What each part of the default brings: removed in turn, on the six tasks and a smooth problem, 8 rounds of 100.

python -m experiments.ablation_parts run|table|draw|again      (options: experiments/common.py)
"""

from __future__ import annotations

import json

from diffbbo.compare import Cell
from diffbbo.default import PARTS
from diffbbo.figures import BLUE, GREY, OURS, new_figure, styled
from diffbbo.proposers import USUAL
from diffbbo.standings import Difference, differences
from diffbbo.terminal import interval

from .common import Experiment, Places, main, save
from .comparison import verdict
from .page import NOTHING, markdown, picture
from .results import Results

SMOOTH = "ackley-60:shift=1"  # the tasks are all rough
TASKS = ("tfbind8", "tfbind10-clean", "superconductor", "ant", "dkitty", "molecule", SMOOTH)
SEEDS, ROUNDS, BATCH = range(100, 105), 8, 100
WHOLE = "diffbbo"
LESS = {f"without {part}": part for part in (*USUAL, *PARTS)}


def cells() -> tuple[Cell, ...]:
    return tuple(
        Cell(task, WHOLE, seed, ROUNDS, BATCH, json.dumps({"preset": "fast", "without": without}), label)
        for seed in SEEDS
        for task in TASKS
        for label, without in [(WHOLE, []), *((label, [part]) for label, part in LESS.items())]
    )


def draw(results: Results, places: Places) -> dict[str, str]:
    if not results.rows:
        return {"table": NOTHING, "figure": NOTHING}
    paired = {(d.task, d.rival): d for d in differences(results.rows, WHOLE) if d.seeds}
    return {"table": table(paired), "figure": figure(paired, places)}


def table(paired: dict[tuple[str, str], Difference]) -> str:
    """By how much the whole is better than without a part, in area, and whether that is sure."""
    lines = []
    for label in LESS:
        found = [paired.get((task, label)) for task in TASKS]
        lines.append(
            [label, *(f"{interval(d.area, d.seeds)}, {verdict(d.area, d.seeds)}" if d else "-" for d in found)]
        )
    return markdown(["", *TASKS], lines)


def figure(paired: dict[tuple[str, str], Difference], places: Places) -> str:
    """One panel per task: what is lost without each part, with its interval."""
    with styled():
        drawn = new_figure(7.2, 4.2)
        panels = drawn.subplots(2, 4, sharey=True)
        for spare in panels.flat[len(TASKS) :]:
            spare.set_axis_off()
        for panel, task in zip(panels.flat, TASKS, strict=False):
            panel.axvline(0, color=GREY, linewidth=0.8)
            for place, label in enumerate(LESS):
                d = paired.get((task, label))
                if d is not None:
                    sure = verdict(d.area, d.seeds) in ("better", "worse")
                    panel.plot([d.area.low, d.area.high], [place, place], color=OURS if sure else BLUE, linewidth=1.2)
                    panel.plot([d.area.mean], [place], "o", color=OURS if sure else BLUE, markersize=3.5)
            if not any(where == task for where, _ in paired):
                panel.text(0.5, 0.5, "not run yet", transform=panel.transAxes, ha="center", color=GREY)
            panel.set_title(task)
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
