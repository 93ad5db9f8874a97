"""Figures for a paper: methods compared task by task, and what a task's values look like."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .statistics import bootstrap
from .task import Task
from .types import Array, InputError, need

COLUMNS = ("task", "method", "seed", "batch", "round", "best")
OURS, GREY = "#D55E00", "#8C8C8C"
# Okabe and Ito's colours, which the colour-blind tell apart; without yellow, which white paper swallows.
COLOURS = ("#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES, MARKERS = ("-", (0, (4, 1.5)), (0, (1, 1.2))), "osD^vP"
OPTIMUM = "known optimum"
STYLE = {
    "font.size": 8, "axes.titlesize": 8.5, "axes.labelsize": 8, "xtick.labelsize": 7, "ytick.labelsize": 7,
    "legend.fontsize": 7.5, "axes.linewidth": 0.6, "xtick.major.width": 0.6, "ytick.major.width": 0.6,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.linewidth": 0.4,
    "grid.color": "#E3E3E3", "axes.axisbelow": True, "legend.frameon": False, "svg.hashsalt": "diffbbo",
}  # fmt: skip


def comparison(rows: list[dict[str, Any]], path: Path, maxima: Mapping[str, float | None] | None = None) -> None:
    """Draw best-so-far against evaluations: one panel per task, one line per method, mean and 95 % band over seeds.

    `rows` is the tidy table of a comparison (columns task, method, seed, batch, round, best); `maxima` gives a task's
    known optimum, drawn where it is near the lines. The suffix of `path` decides the format.
    """
    matplotlib = need("matplotlib", "plots", "Drawing a figure")
    if not rows:
        raise InputError("There are no rows to draw.", "Run a comparison first.")
    missing = [column for column in COLUMNS if column not in rows[0]]
    if missing:
        raise InputError(f"The rows have no column {missing[0]!r}.", f"Give {', '.join(COLUMNS)}.")
    tasks = list(dict.fromkeys(str(row["task"]) for row in rows))
    styles = _styles(list(dict.fromkeys(str(row["method"]) for row in rows)))
    across = len(tasks) if len(tasks) <= 3 else 2 if len(tasks) == 4 else 3
    down = -(-len(tasks) // across)
    width = 3.5 if across == 1 else 2.4 * across
    entries = len(styles) + 1  # the known optimum may get one
    legend_lines = -(-entries // max(1, int(width / (0.55 + 0.062 * max(map(len, [*styles, OPTIMUM]))))))
    with matplotlib.rc_context(STYLE):
        figure = _figure(width, (2.4 if across == 1 else 1.95) * down + 0.19 * legend_lines + 0.1)
        from matplotlib.lines import Line2D

        lines = {method: Line2D([], [], **style) for method, style in styles.items()}
        panels = figure.subplots(down, across, squeeze=False).ravel()
        for k, (panel, task) in enumerate(zip(panels, tasks, strict=False)):
            of_task = [row for row in rows if str(row["task"]) == task]
            for method, style in styles.items():
                _line(panel, [row for row in of_task if str(row["method"]) == method], style)
            if _near(panel, optimum := (maxima or {}).get(task)):
                lines[OPTIMUM] = panel.axhline(optimum, color="#404040", dashes=(4, 3), linewidth=0.8, zorder=0)
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
        _save(figure, path)


def task_distribution(task: Task, path: Path, seed: int = 0) -> None:
    """Draw what a method sees of a task: the values of its start data, before all values where they are known."""
    matplotlib = need("matplotlib", "plots", "Drawing a figure")
    start = _finite(task.start(seed)[1])
    table = getattr(task, "table", None)
    everything = _finite(table) if table is not None else np.empty(0)
    shown = np.concatenate([start, everything])
    if not len(shown):
        raise InputError(f"The task {task.name!r} has no values to draw.", "Give it start data.")
    # The same bins for both, so that the start data are seen as a part of the whole.
    edges = np.histogram_bin_edges(shown, bins=60 if len(shown) > 1000 else max(10, min(40, len(shown) // 5)))
    with matplotlib.rc_context(STYLE):
        figure = _figure(3.5, 2.6)
        panel = figure.subplots()
        if len(everything):
            panel.hist(everything, edges, color="#CFCFCF", label=f"all designs ({len(everything):,})")
            # The few designs worth finding are invisible beside the many others on a linear axis.
            panel.set_yscale("log")
            panel.set_ylim(bottom=0.7)
        if len(start):
            panel.hist(start, edges, color="#0072B2", label=f"start data ({len(start):,})")
        if task.maximum is not None:
            label = f"known {'minimum' if task.minimize else 'maximum'} ({task.maximum:.4g})"
            panel.axvline(task.maximum, color=OURS, linestyle=(0, (4, 2)), linewidth=1.2, label=label)
        panel.set_xlabel("value")
        panel.set_ylabel("designs (log scale)" if len(everything) else "designs")
        panel.grid(axis="x", visible=False)
        title = f"{task.name}: {task.summary}" if task.summary else task.name
        panel.set_title(title, loc="left", wrap=True)
        figure.legend(loc="outside lower center", ncols=2, handlelength=1.4, columnspacing=1.2)
        _save(figure, path)


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


def _finite(values: Any) -> Array:
    array = np.asarray(values, dtype=np.float64).ravel()
    return array[np.isfinite(array)]


def _figure(width: float, height: float) -> Any:
    """An empty figure of its own (no pyplot), in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _save(figure: Any, path: Path) -> None:
    path = Path(path)
    known = figure.canvas.get_supported_filetypes()
    if path.suffix.lstrip(".").lower() not in known:
        raise InputError(f"{path} does not end in a format of figures.", "Use .png, .svg or .pdf.")
    # No date inside: the same table gives the same file.
    undated = {"Date": None} if path.suffix.lower() == ".svg" else None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=200, metadata=undated)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error}.", "Choose another place.") from error
