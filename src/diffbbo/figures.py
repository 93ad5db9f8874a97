"""The look of every figure (matplotlib): one style, colours the colour-blind tell apart, one way to save."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .types import Array, InputError, need

OURS, GREY, PALE, BLUE = "#D55E00", "#8C8C8C", "#CFCFCF", "#0072B2"
# Okabe and Ito's colours, which the colour-blind tell apart; without yellow, which white paper swallows.
COLOURS = (BLUE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLE = {
    "font.size": 8, "axes.titlesize": 8.5, "axes.labelsize": 8, "xtick.labelsize": 7, "ytick.labelsize": 7,
    "legend.fontsize": 7.5, "axes.linewidth": 0.6, "xtick.major.width": 0.6, "ytick.major.width": 0.6,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.linewidth": 0.4,
    "grid.color": "#E3E3E3", "axes.axisbelow": True, "legend.frameon": False, "svg.hashsalt": "diffbbo",
}  # fmt: skip


@contextmanager
def styled() -> Iterator[None]:
    """Everything drawn inside the block has our style."""
    matplotlib = need("matplotlib", "plots", "Drawing a figure")
    with matplotlib.rc_context(STYLE):
        yield


def new_figure(width: float, height: float) -> Any:
    """An empty figure of its own (no pyplot), in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def legend_below(figure: Any, columns: int) -> None:
    """One legend for all panels: everything they name, once."""
    named = [zip(*panel.get_legend_handles_labels(), strict=True) for panel in figure.axes]
    found = {label: handle for pairs in named for handle, label in pairs}
    figure.legend(found.values(), found, loc="outside lower center", ncols=columns)


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure; the suffix of `path` decides the format."""
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


def distribution(panel: Any, start: Array, everything: Array, best: tuple[str, float] | None) -> None:
    """Histogram of the values of the start data, before all values where they are known; `best` gets a line."""
    shown = np.concatenate([start, everything])
    # The same bins for both, so that the start data are seen as a part of the whole.
    edges = np.histogram_bin_edges(shown, bins=60 if len(shown) > 1000 else max(10, min(40, len(shown) // 5)))
    if len(everything):
        panel.hist(everything, edges, color=PALE, label=f"all known designs ({len(everything):,})")
        # The few designs worth finding are invisible beside the many others on a linear axis.
        panel.set_yscale("log")
        panel.set_ylim(bottom=0.7)
    if len(start):
        panel.hist(start, edges, color=BLUE, label=f"start data ({len(start):,})")
    if best is not None:
        what, value = best
        panel.axvline(value, color=OURS, linestyle=(0, (4, 2)), linewidth=1.2, label=f"{what} ({value:.4g})")
    panel.set_xlabel("value")
    panel.set_ylabel("designs (log scale)" if len(everything) else "designs")
    panel.grid(axis="x", visible=False)
