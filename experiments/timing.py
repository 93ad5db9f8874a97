"""Table 2: seconds of a round for training and acquisition, on tfbind8 and molecule, beside the paper's.

    python -m experiments.timing run --workers 1       on a machine with nothing else to do
    python -m experiments.timing table|draw

Four rounds of 100, three seeds; the first round of a study, which loads packages, does not count. Lines with "GPU" are
the paper's size on a CUDA device and stay a hole on a machine without one. Other options: experiments/common.py.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from diffbbo.compare import Cell
from diffbbo.figures import BLUE, COLOURS, GREY, legend_below, new_figure, styled
from diffbbo.standings import Interval
from diffbbo.terminal import interval

from .common import Experiment, Places, main, save
from .comparison import METHODS, SETTINGS
from .page import NOTHING, markdown, picture
from .results import Results, Row

TASKS = ("tfbind8", "molecule")
SEEDS, ROUNDS, BATCH = range(100, 103), 4, 100
GPU = {f"{method}, GPU": method for method in ("diffbbo", "diffbbo-paper")}
# Table 2 of the paper, one NVIDIA A100: seconds for TFBind8 and Molecular Discovery.
PAPER = {
    "gp-ei": (112.92, 53.14), "gp-ucb": (113.81, 53.82), "evolution": (0.0021, 0.0024), "lfbo-ei": (0.59, 1.93),
    "lfbo-pi": (1.44, 1.12), "cbas": (0.075, 0.023), "turbo": (67.23, 76.84), "diffbbo-paper": (136.29, 69.44),
    "diffbbo-paper, GPU": (136.29, 69.44),
}  # fmt: skip


def cells() -> tuple[Cell, ...]:
    here = [(name, name, SETTINGS.get(name, "{}")) for name in sorted(METHODS, key=lambda name: METHODS[name][1])]
    there = [(method, label, json.dumps({"preset": "paper", "device": "cuda"})) for label, method in GPU.items()]
    return tuple(
        Cell(task, method, seed, ROUNDS, BATCH, settings, label)
        for seed in SEEDS
        for method, label, settings in [*here, *there]
        for task in TASKS
    )


def draw(results: Results, places: Places) -> dict[str, str]:
    parts = {task: table(results, task) for task in results.tasks}
    parts["hardware"] = hardware(results)
    parts["figure"] = figure(results, places) if results.rows else NOTHING
    return parts


def seconds(rows: Sequence[Row]) -> tuple[int, Interval, Interval, Interval]:
    """Seeds, then training, acquisition and both, each the mean of a study's rounds after the first."""
    warm = [row for row in rows if row["round"] > 1]
    seeds = sorted({row["seed"] for row in warm})
    train, acquire = (
        np.array([np.mean([row[what] or 0.0 for row in warm if row["seed"] == seed]) for seed in seeds])
        for what in ("train_s", "acquire_s")
    )
    return len(seeds), Interval.of(train), Interval.of(acquire), Interval.of(train + acquire)


def table(results: Results, task: str) -> str:
    if not results.of_task(task):
        return NOTHING
    lines = []
    for method in results.methods:
        rows = [row for row in results.of_task(task) if row["method"] == method]
        why = results.holes.get((task, method), "")
        paper = f"{PAPER[method][TASKS.index(task)]:g}" if method in PAPER else "-"
        if not rows:
            lines.append([method, "0", "-", "-", "-", paper, why])
            continue
        seeds, train, acquire, both = seconds(rows)
        known = any(row["train_s"] is not None for row in rows)
        lines.append([method, str(seeds), interval(train, seeds) if known else "-", interval(acquire, seeds),
                      interval(both, seeds), paper, why])  # fmt: skip
    return markdown(["method", "seeds", "training", "acquisition", "a round", "paper, A100", "missing"], lines)


def hardware(results: Results) -> str:
    """What it was measured on."""
    said = set()
    for row in results.cells:
        threads = f"{row['threads']:g} thread{'s' if row['threads'] > 1 else ''}"
        said.add("; ".join(filter(None, [row["gpu"], row["machine"], threads, row["versions"]])))
    return "\n".join(f"- {line}" for line in sorted(said)) or NOTHING


def figure(results: Results, places: Places) -> str:
    """Seconds of a round by method, a panel per task, on a logarithmic axis; the paper's beside."""
    methods = [name for name in reversed(results.methods) if any(row["method"] == name for row in results.rows)]
    with styled():
        drawn = new_figure(7.2, 0.19 * len(methods) + 1.1)
        panels = drawn.subplots(1, len(results.tasks), sharey=True, squeeze=False)[0]
        for k, (panel, task) in enumerate(zip(panels, results.tasks, strict=True)):
            for y, method in enumerate(methods):
                rows = [row for row in results.of_task(task) if row["method"] == method]
                if rows:
                    both = seconds(rows)[3]
                    reach = [[both.mean - both.low], [both.high - both.mean]]
                    panel.errorbar(both.mean, y, xerr=reach, fmt="o", color=BLUE, markersize=4, capsize=2,
                                   label="here, 95 % interval")  # fmt: skip
                if method in PAPER:
                    panel.plot(PAPER[method][k], y, "D", color=COLOURS[3], markersize=4, label="the paper, A100")
            panel.set(title=task, xscale="log", xlabel="seconds a round, training and acquisition")
            panel.axvline(60, color=GREY, linewidth=0.7, linestyle=(0, (4, 2)), zorder=0, label="one minute")
            panel.set_yticks(range(len(methods)), methods)
        legend_below(drawn, columns=3)
        save(drawn, places, "timing")
    return picture("timing", "Seconds of a round by method, beside the paper's")


TIMING = Experiment("timing", TASKS, (*METHODS, *GPU), cells(), draw)

if __name__ == "__main__":
    main(TIMING)
