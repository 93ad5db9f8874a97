"""Figure 3: UaE against a fixed weight w, on tfbind10 and dkitty; `diffbbo-paper` in its `fast` size.

python -m experiments.ablation_weight run|table|draw|again      (options: experiments/common.py)

dkitty has half the rounds: under a large w the bodies entangle their legs, and a walk takes ten times as long.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from diffbbo.compare import Cell
from diffbbo.figures import BLUE, OURS, new_figure, styled
from diffbbo.standings import Standing, differences, standings
from diffbbo.terminal import interval

from .common import Experiment, Places, main, save
from .comparison import verdict
from .page import NOTHING, markdown, picture
from .results import Results

TASKS = ("tfbind10", "dkitty")
WEIGHTS = (0.6, 0.8, 1.0, 1.2, 1.4, 2.0, 2.5, 3.0)
SEEDS, BATCH = range(100, 103), 100
ROUNDS = {"tfbind10": 16, "dkitty": 8}
METHODS = ("UaE", *(f"w = {w:g}" for w in WEIGHTS))


def cells() -> tuple[Cell, ...]:
    chosen: list[dict[str, Any]] = [{}, *({"acquisition": {"name": "FixedWeight", "w": w}} for w in WEIGHTS)]
    return tuple(
        Cell(task, "diffbbo-paper", seed, ROUNDS[task], BATCH, json.dumps({"preset": "fast"} | settings), label)
        for seed in SEEDS
        for task in TASKS
        for label, settings in zip(METHODS, chosen, strict=True)
    )


def draw(results: Results, places: Places) -> dict[str, str]:
    standing = standings(results.rows)
    parts = {task: table(results, standing, task) for task in results.tasks}
    parts["figure"] = figure(results, standing, places) if standing else NOTHING
    return parts


def table(results: Results, standing: Sequence[Standing], task: str) -> str:
    """In the order of the weights, with what UaE gains over each."""
    here = {entry.method: entry for entry in standing if entry.task == task}
    if not here:
        return NOTHING
    gains = {d.rival: d for d in differences(results.of_task(task), "UaE")}
    lines = []
    for method in results.methods:
        why = results.holes.get((task, method), "")
        if (e := here.get(method)) is None:
            lines.append([method, "0", *["-"] * 6, why])
            continue
        gain = gains.get(method)
        words = [interval(gain.area, gain.seeds), verdict(gain.area, gain.seeds)] if gain and gain.seeds else ["", ""]
        lines.append([
            method, str(e.seeds), str(e.rank), interval(e.best, e.seeds), interval(e.area, e.seeds),
            f"{e.distinct:.0%}", *words, why,
        ])  # fmt: skip
    header = ["aim", "seeds", "rank", "best found", "area", "distinct", "UaE gains (area)", "UaE is", "missing"]
    return markdown(header, lines)


def figure(results: Results, standing: Sequence[Standing], places: Places) -> str:
    """Area and best found by weight, each with its interval; UaE as a line with a band."""
    tasks = [task for task in results.tasks if any(entry.task == task for entry in standing)]
    with styled():
        drawn = new_figure(3.6 * len(tasks), 3.9)
        panels = drawn.subplots(2, len(tasks), squeeze=False, sharex=True)
        for column, task in zip(panels.T, tasks, strict=True):
            here = {entry.method: entry for entry in standing if entry.task == task}
            for panel, what, name in zip(column, ("area", "best"), ("area", "best value found"), strict=True):
                _weights(panel, here, what)
                panel.set_ylabel(name)
            column[0].set_title(task)
            column[-1].set_xlabel("w, the share of phi aimed for")
        handles, labels = panels[0, 0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside lower center", ncols=2)
        save(drawn, places, "ablation_weight")
    return picture("ablation_weight", "Area and best value found by fixed weight, beside UaE")


def _weights(panel: Any, here: dict[str, Standing], what: str) -> None:
    """Weights at even distances: most of them lie close together."""
    fixed = [(k, getattr(here[m], what)) for k, m in enumerate(METHODS[1:]) if m in here]
    if fixed:
        x, found = zip(*fixed, strict=True)
        mean = np.array([value.mean for value in found])
        reach = np.abs([[value.low, value.high] for value in found] - mean[:, None]).T
        panel.errorbar(x, mean, reach, fmt="o", color=BLUE, markersize=3.5, linewidth=1.2, capsize=2,
                       label="fixed w, 95 % interval")  # fmt: skip
    if "UaE" in here:
        value = getattr(here["UaE"], what)
        panel.axhline(value.mean, color=OURS, linewidth=1.8, label="UaE, 95 % interval", zorder=1)
        panel.axhspan(value.low, value.high, color=OURS, alpha=0.15, linewidth=0, zorder=0)
    panel.set_xticks(range(len(WEIGHTS)), [f"{w:g}" for w in WEIGHTS])


ABLATION = Experiment("ablation_weight", TASKS, METHODS, cells(), draw)

if __name__ == "__main__":
    main(ABLATION)
