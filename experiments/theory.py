"""Theorems 1 to 3 of the paper, looked at: `diffbbo-paper` in its `fast` size.

    python -m experiments.theory moments               Theorem 1: trains a network and traces its sampler; minutes
    python -m experiments.theory run|table|draw        Theorems 2 and 3, from the studies of the comparison

Theorem 1: mean and variance through the denoising, traced by the recursion (discrete time) and by the integral
(continuous time), each in the form that is right and as the paper prints it, against the samples' own. Theorems 2 and
3: the gap |y* - max f| of the designs that each member drew, and its variance over members beside the epistemic term
that is to bound it. The studies are those of `diffbbo-paper` in runs/comparison.db. Options: experiments/common.py.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from diffbbo import EnsembleConfig, make_optimizer, make_task
from diffbbo.compare import Cell
from diffbbo.figures import BLUE, GREY, OURS, new_figure, styled
from diffbbo.schema import RoundRecord, StudyRecord
from diffbbo.standings import Interval
from diffbbo.statistics import bootstrap
from diffbbo.terminal import interval, number, say
from diffbbo.types import Array

from .common import Experiment, Places, main, save
from .comparison import COMPARISON
from .page import NOTHING, markdown, picture
from .results import Results, Row, read_rows, write_rows

MOMENTS = ("tfbind8", "superconductor", "molecule")
SEEDS, SAMPLES, STEPS, SHOWN = range(3), 4000, 1000, 50
NEVER = 1e-9  # a variance of 0 on a logarithmic axis

# ---- Theorem 1 -------------------------------------------------------------------------------------------


def moments(task_name: str, seed: int, config: EnsembleConfig, samples: int = SAMPLES, steps: int = STEPS) -> list[Row]:
    """Train one member on the start data, and follow its moments at y = phi; means over features, at `SHOWN` times."""
    import torch

    from diffbbo.diffusion.ensemble import fit
    from diffbbo.encoding import Encoder, ObjectiveScale
    from diffbbo.uncertainty import trace

    task = make_task(task_name)
    x, y = task.start(seed)
    encoder, scale = Encoder.fit(task.space, x), ObjectiveScale.paper(y)
    ensemble = fit(encoder.encode(x), scale.condition(y), replace(config, members=1), seed, "cpu")
    target = float(scale.condition(scale.targets((1.0,)))[0])
    denoiser = ensemble.denoiser(torch.full((1, samples, 1), target))
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn((samples, encoder.features), generator=generator, dtype=torch.float64)
    with torch.no_grad():
        found = trace(
            lambda x, t: denoiser(x.float()[None], t)[0].double(), ensemble.network.sde, noise, steps, generator
        )
    error = np.abs(found.variance / found.empirical_variance - 1).max(axis=1)
    return [
        {
            "task": task_name, "seed": seed, "t": float(found.t[k]),
            "mean_empirical": float(found.empirical_mean[k].mean()), "mean_traced": float(found.mean[k].mean()),
            "variance_empirical": float(found.empirical_variance[k].mean()),
            "variance_traced": float(found.variance[k].mean()),
            "variance_printed": float(found.printed_variance[k].mean()),
            "largest_error": float(error[k]),  # over the features
            "continuous_full": float(found.continuous_full.mean()),
            "continuous_printed": float(found.continuous_printed.mean()),
        }
        for k in range(0, steps + 1, max(1, steps // SHOWN))
    ]  # fmt: skip


def complete_moments(results: Path) -> None:
    """Add what is missing to results/theory_moments.csv."""
    path = results / "theory_moments.csv"
    rows = read_rows(path)
    for task in MOMENTS:
        config = make_optimizer("diffbbo-paper", make_task(task).space, preset="fast", device="cpu").config  # type: ignore[attr-defined]
        for seed in SEEDS:
            if not any((row["task"], row["seed"]) == (task, seed) for row in rows):
                rows += moments(task, seed, config)
                write_rows(rows, path)
                say(f"theory: moments of {task}, seed {seed}")


def moments_table(rows: list[Row]) -> str:
    """The end of the denoising, t = 0; one line per task."""
    if not rows:
        return NOTHING
    lines = []
    for task in dict.fromkeys(row["task"] for row in rows):
        here = [row for row in rows if row["task"] == task]
        end = [row for row in here if row["t"] == min(other["t"] for other in here)]
        largest = max(row["largest_error"] for row in here)
        columns = ("variance_empirical", "variance_traced", "variance_printed", "continuous_full", "continuous_printed")
        values = [interval(Interval.of(np.array([row[name] for row in end])), len(end)) for name in columns]
        lines.append([task, str(len(end)), *values, f"{largest:.1%}"])
    header = ["task", "seeds", "of the samples", "traced", "as printed", "integral, in full", "integral, as printed",
              "largest error of the trace"]  # fmt: skip
    return markdown(header, lines)


def moments_figure(rows: list[Row], places: Places) -> str:
    looks: dict[str, dict[str, Any]] = {
        "variance_empirical": {"color": GREY, "linewidth": 3.0, "label": "of the samples"},
        "variance_traced": {"color": OURS, "linewidth": 1.2, "label": "traced"},
        "variance_printed": {"color": BLUE, "linestyle": (0, (4, 1.5)), "label": "as the paper prints it"},
    }
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    with styled():
        drawn = new_figure(max(3.5, 2.4 * len(tasks)), 2.4)
        panels = drawn.subplots(1, len(tasks), squeeze=False)[0]
        for panel, task in zip(panels, tasks, strict=True):
            here = [row for row in rows if row["task"] == task]
            for column, look in looks.items():
                _band(panel, here, "t", column, look)
            panel.set(title=task, yscale="log", xlabel="t, from noise to design", xlim=(1, 0))
        panels[0].set_ylabel("variance, mean over features")
        drawn.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        save(drawn, places, "theory_moments")
    return picture("theory_moments", "Variance through the denoising: samples, trace, and the printed formula")


# ---- Theorems 2 and 3 ------------------------------------------------------------------------------------


def gaps(cell: Cell, record: StudyRecord, rounds: list[RoundRecord]) -> list[Row]:
    """Per round: |y* - max f| of each member's designs, its mean and variance over members, and the epistemic term."""
    rows = []
    for entry in rounds:
        target, epistemic = entry.info.get("target"), entry.info.get("epistemic")
        ok = np.isfinite(entry.value) & (entry.member >= 0)
        if target is None or epistemic is None or not ok.any():
            continue
        best = np.min if record.minimize else np.max
        each = [abs(target - best(entry.value[ok & (entry.member == m)])) for m in np.unique(entry.member[ok])]
        rows.append({
            "task": cell.task, "method": cell.shown, "seed": cell.seed, "batch": cell.batch, "round": entry.number,
            "target": target, "epistemic": epistemic, "members": len(each), "gap": float(np.mean(each)),
            "gap_variance": float(np.var(each)),
        })  # fmt: skip
    return rows


def in_range(rows: list[Row]) -> list[Row]:
    """Gaps as a share of the task's reference range, so that tasks can be compared."""
    found = []
    for task in dict.fromkeys(row["task"] for row in rows):
        low, high = make_task(task).range or (0.0, 1.0)
        width = abs(high - low)
        found += [
            row | {"gap": row["gap"] / width, "gap_variance": row["gap_variance"] / width**2}
            for row in rows if row["task"] == task
        ]  # fmt: skip
    return found


def rank_correlation(a: Array, b: Array) -> float:
    """Spearman's; NaN where one of them does not vary."""
    ranks = [np.argsort(np.argsort(values)).astype(float) for values in (a, b)]
    return float(np.corrcoef(np.stack(ranks))[0, 1]) if len(set(a)) > 1 and len(set(b)) > 1 else float("nan")


def gaps_table(results: Results, rows: list[Row]) -> str:
    if not rows:
        return NOTHING
    lines = []
    for task in results.tasks:
        here = [row for row in rows if row["task"] == task]
        why = results.holes.get((task, results.methods[0]), "")
        if not here:
            lines.append([task, "0", *["-"] * 6, why])
            continue
        seeds = sorted({row["seed"] for row in here})
        studies = [[row for row in here if row["seed"] == seed] for seed in seeds]
        pairs = [tuple(np.array([row[name] for row in study]) for name in ("epistemic", "gap_variance"))
                 for study in studies]  # fmt: skip
        rho = np.array([value for value in (rank_correlation(*pair) for pair in pairs) if np.isfinite(value)])
        first, last = (Interval.of(np.array([study[k]["gap"] for study in studies])) for k in (0, -1))
        middle = [number(float(np.median([row[name] for row in here]))) for name in ("epistemic", "gap_variance")]
        lines.append([task, str(len(seeds)), interval(first, len(seeds)), interval(last, len(seeds)), *middle,
                      interval(Interval.of(rho), len(rho)), _says(Interval.of(rho), len(rho)), why])  # fmt: skip
    header = ["task", "seeds", "gap, first round", "gap, last round", "epistemic, median",
              "variance of the gap, median", "rank correlation of the two", "", "missing"]  # fmt: skip
    return markdown(header, lines)


def _says(rho: Interval, seeds: int) -> str:
    if seeds < 2:
        return "too few seeds"
    return "rise together" if rho.low > 0 else "run against each other" if rho.high < 0 else "no connection seen"


def gaps_figure(results: Results, rows: list[Row], places: Places, name: str, what: str) -> str:
    """Small panels by task: the gap round by round (`theory_gap`), or its variance against the epistemic term."""
    tasks = [task for task in results.tasks if any(row["task"] == task for row in rows)]
    across = min(len(tasks), 4 if len(tasks) > 6 else 3)
    down = -(-len(tasks) // across)
    with styled():
        drawn = new_figure(max(3.5, min(7.2, 2.4 * across)), 1.95 * down + 0.1)
        panels = drawn.subplots(down, across, squeeze=False).ravel()
        for k, (panel, task) in enumerate(zip(panels, tasks, strict=False)):
            here = [row for row in rows if row["task"] == task]
            if name == "theory_gap":
                _band(panel, here, "round", "gap", {"color": OURS, "marker": "o", "markersize": 3})
                panel.set(title=task, xlabel="round", ylim=(0, None))
            else:
                points = _scatter(panel, here)
                panel.set(title=task, xlabel="epistemic term at y*", xscale="log", yscale="log")
                panel.tick_params(which="minor", labelbottom=False, labelleft=False)  # they would overlap
            if k % across == 0:
                panel.set_ylabel("gap, share of the range" if name == "theory_gap" else "variance of the gap")
        for panel in panels[len(tasks) :]:
            panel.set_visible(False)
        if name != "theory_gap":
            drawn.colorbar(points, ax=list(panels), label="round", fraction=0.03)
        save(drawn, places, name)
    return picture(name, what)


def _scatter(panel: Any, rows: list[Row]) -> Any:
    x, y, rounds = (np.array([row[name] for row in rows]) for name in ("epistemic", "gap_variance", "round"))
    return panel.scatter(np.maximum(x, NEVER), np.maximum(y, NEVER), c=rounds, s=7, cmap="viridis", vmin=1)


def _band(panel: Any, rows: list[Row], x: str, y: str, look: dict[str, Any]) -> None:
    """Mean and 95 % interval over the seeds that have every point."""
    points = sorted({row[x] for row in rows})
    curves = {seed: {row[x]: row[y] for row in rows if row["seed"] == seed} for seed in {row["seed"] for row in rows}}
    values = np.array([[curve[point] for point in points] for curve in curves.values() if len(curve) == len(points)])
    panel.plot(points, values.mean(axis=0), **look)
    if len(values) > 1:
        panel.fill_between(points, *bootstrap(values), color=look["color"], alpha=0.15, linewidth=0)


# ---- the experiment --------------------------------------------------------------------------------------


def draw(results: Results, places: Places) -> dict[str, str]:
    traced, rows = read_rows(places.results / "theory_moments.csv"), in_range(results.rows)
    return {
        "moments": moments_table(traced),
        "moments-figure": moments_figure(traced, places) if traced else NOTHING,
        "gaps": gaps_table(results, rows),
        "gap-figure": gaps_figure(results, rows, places, "theory_gap", "The gap round by round") if rows else NOTHING,
        "variance-figure": gaps_figure(results, rows, places, "theory_variance",
                                       "Variance of the gap against the epistemic term") if rows else NOTHING,
    }  # fmt: skip


CELLS = tuple(cell for cell in COMPARISON.cells if cell.method == "diffbbo-paper")
THEORY = Experiment("theory", COMPARISON.tasks, ("diffbbo-paper",), CELLS, draw, gaps, storage="comparison")

if __name__ == "__main__":
    if sys.argv[1:2] == ["moments"]:
        parser = argparse.ArgumentParser(prog="python -m experiments.theory moments")
        parser.add_argument("--root", type=Path, default=Path())
        complete_moments(parser.parse_args(sys.argv[2:]).root / "results")
    else:
        main(THEORY)
