"""Figures for a paper: methods compared task by task."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .figures import COLOURS, GREY, OURS, new_figure, save_figure, styled
from .statistics import bootstrap
from .types import InputError

COLUMNS = ("task", "method", "seed", "batch", "round", "best")
DASHES, MARKERS = ("-", (0, (4, 1.5)), (0, (1, 1.2))), "osD^vP"
BEST_KNOWN = "best known before"


def comparison(rows: list[dict[str, Any]], path: Path, maxima: Mapping[str, float | None] | None = None) -> None:
    """Draw best-so-far against evaluations: one panel per task, one line per method, mean and 95 % band over seeds.

    `rows` is the tidy table of a comparison (columns task, method, seed, batch, round, best); `maxima` gives a task's
    best value known before, drawn where it is near the lines. The suffix of `path` decides the format.
    """
    if not rows:
        raise InputError("There are no rows to draw.", "Run a comparison first.")
    missing = [column for column in COLUMNS if column not in rows[0]]
    if missing:
        raise InputError(f"The rows have no column {missing[0]!r}.", f"Give {', '.join(COLUMNS)}.")
    tasks = list(dict.fromkeys(str(row["task"]) for row in rows))
    styles = _styles(list(dict.fromkeys(str(row["method"]) for row in rows)))
    across = len(tasks) if len(tasks) <= 3 else 2 if len(tasks) == 4 else 3
    down = -(-len(tasks) // across)
    # A panel alone with many lines is made wider, so that its legend has more than one column.
    width = 2.4 * across if across > 1 else 3.5 if len(styles) <= 6 else 4.6
    entries = len(styles) + 1  # the best value known before may get one
    legend_lines = -(-entries // max(1, int(width / (0.55 + 0.062 * max(map(len, [*styles, BEST_KNOWN]))))))
    with styled():
        figure = new_figure(width, (2.4 if across == 1 else 1.95) * down + 0.19 * legend_lines + 0.1)
        from matplotlib.lines import Line2D

        lines = {method: Line2D([], [], **style) for method, style in styles.items()}
        panels = figure.subplots(down, across, squeeze=False).ravel()
        for k, (panel, task) in enumerate(zip(panels, tasks, strict=False)):
            of_task = [row for row in rows if str(row["task"]) == task]
            for method, style in styles.items():
                _line(panel, [row for row in of_task if str(row["method"]) == method], style)
            if _near(panel, optimum := (maxima or {}).get(task)):
                lines[BEST_KNOWN] = panel.axhline(optimum, color="#404040", dashes=(4, 3), linewidth=0.8, zorder=0)
            panel.set_title(task)
            panel.set_xlim(left=0)
            panel.locator_params(axis="y", nbins=5)
            panel.locator_params(axis="x", nbins=5)
            panel.set_xlabel("evaluations")
            if k % across == 0:
                panel.set_ylabel("best value found")
        for panel in panels[len(tasks) :]:
            panel.set_visible(False)
        columns = -(-len(lines) // legend_lines)
        figure.legend(
            lines.values(), lines, loc="outside lower center", ncols=columns, handlelength=3, columnspacing=1.5
        )
        save_figure(figure, path)


def _styles(methods: list[str]) -> dict[str, dict[str, Any]]:
    """A look per method, in the order of the legend: ours first, chance last."""
    fixed = {
        "diffbbo": {"color": OURS, "linewidth": 2.2, "zorder": 4, "markersize": 4},
        "diffbbo-paper": {"color": OURS, "linestyle": DASHES[1], "zorder": 3, "marker": "s"},
        "random": {"color": GREY, "linestyle": DASHES[0], "zorder": 1, "marker": "x"},
    }
    rivals = [method for method in methods if method not in fixed]
    looks: dict[str, dict[str, Any]] = {m: fixed[m] for m in ("diffbbo", "diffbbo-paper") if m in methods}
    for k, method in enumerate(rivals):
        turn, colour = divmod(k, len(COLOURS))
        looks[method] = {
            "color": COLOURS[colour],
            "linestyle": DASHES[turn % len(DASHES)],
            "marker": MARKERS[(colour + turn) % len(MARKERS)],
        }
    if "random" in methods:
        looks["random"] = fixed["random"]
    common = {"linewidth": 1.2, "marker": "o", "markersize": 3, "markeredgewidth": 0.8, "zorder": 2}
    return {method: common | look for method, look in looks.items()}


def _line(panel: Any, rows: list[dict[str, Any]], style: dict[str, Any]) -> None:
    """One method on one task."""
    curves: dict[Any, dict[float, float]] = {}
    for row in rows:
        if row["best"] is not None and np.isfinite(row["best"]):
            curves.setdefault(row["seed"], {})[float(row["round"]) * float(row["batch"])] = float(row["best"])
    if not curves:
        return
    # Only where every seed has a value: a mean over other seeds at each point would rise and fall by itself.
    x = np.array(sorted(set.intersection(*(set(curve) for curve in curves.values()))))
    if not len(x):
        return
    best = np.array([[curve[point] for point in x] for curve in curves.values()])
    panel.plot(x, best.mean(axis=0), markevery=max(1, len(x) // 5), **style)
    if len(best) > 1:
        low, high = bootstrap(best)
        panel.fill_between(x, low, high, color=style["color"], alpha=0.13, linewidth=0, zorder=style["zorder"] - 0.5)


def _near(panel: Any, value: float | None) -> bool:
    """Whether a line at `value` fits the panel without squeezing the methods together."""
    low, high = panel.get_ylim()
    return value is not None and bool(low - 0.5 * (high - low) <= value <= high + 0.5 * (high - low))
