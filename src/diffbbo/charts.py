"""What a study looks like: its charts, as plain plotly figures (dicts of `data` and `layout`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .schema import RoundRecord, StudyRecord
from .spaces import Space
from .storage import Storage
from .study import RoundSummary, summaries
from .types import Array, Dataset, row_keys
from .variables import Categorical, Integer, Real, Sequence

POINTS = 300  # per round, in a chart
LINES, AXES = 2000, 16  # of the parallel coordinates
# All of them can be seen on white and on black.
OURS, BLUE, GREEN, AMBER, GREY = "#D55E00", "#2E86C8", "#009E73", "#E69F00", "#8C98A5"


@dataclass(frozen=True)
class Found:
    """A measured design: its mean value, where it first succeeded, how often it was measured, its row `(d,)`."""

    value: float
    round: int
    position: int
    member: int
    count: int
    x: Array


@dataclass(frozen=True)
class View:
    """A stored study with what a page says about it."""

    record: StudyRecord
    space: Space
    rounds: list[RoundRecord]
    done: list[RoundSummary]
    start: Array

    @classmethod
    def of(cls, storage: Storage, record: StudyRecord) -> View:
        rounds, (_, start) = storage.rounds(record.id), storage.dataset(record.start)
        space = Space.from_dict(record.space)
        return cls(record, space, rounds, summaries(rounds, record.minimize), start[np.isfinite(start)])

    @property
    def sign(self) -> int:
        return -1 if self.record.minimize else 1

    @property
    def finished(self) -> list[int]:
        """The numbers of the finished rounds."""
        return [summary.round for summary in self.done]

    def series(self, name: str) -> list[float | None]:
        """One number of every finished round, None where it has none."""
        values = [getattr(summary, name) for summary in self.done]
        return [value if value is not None and np.isfinite(value) else None for value in values]

    def has(self, name: str) -> bool:
        return any(value is not None for value in self.series(name))

    @property
    def start_best(self) -> float | None:
        return float(self.sign * (self.sign * self.start).max()) if len(self.start) else None

    @cached_property
    def best(self) -> list[Found]:
        """Different designs, best first. A round in progress counts: the page says what is known now."""
        data = Dataset.empty(self.space.dimension)
        first: dict[bytes, tuple[int, int, int]] = {}
        for entry in self.rounds:
            data = data.extended(entry.x, self.sign * entry.value)
            for position, key in enumerate(row_keys(entry.x)):
                if np.isfinite(entry.value[position]):
                    first.setdefault(key, (entry.number, position, int(entry.member[position])))
        found = data.distinct()
        keys = row_keys(found.x)
        order = np.argsort(-found.y, kind="stable")
        return [Found(float(self.sign * found.y[k]), *first[keys[k]], int(found.count[k]), found.x[k]) for k in order]

    @cached_property
    def failures(self) -> Counter[str]:
        return Counter(status for entry in self.rounds for status in entry.status if status not in ("", "ok"))


def _figure(view: View, title: str, traces: list[dict[str, Any]], y: str = "", **layout: Any) -> dict[str, Any]:
    """A figure over the rounds. `layout` adds to the common one, axis by axis."""
    axis = {"gridcolor": "rgba(128,128,128,.2)", "zeroline": False, "automargin": True}
    ticks = {"tick0": 1, "dtick": -(-len(view.rounds) // 16) or 1}
    base: dict[str, Any] = {
        "title": {"text": title, "font": {"size": 14}, "x": 0.01, "xanchor": "left", "y": 0.97, "yanchor": "top"},
        "margin": {"l": 56, "r": 14, "t": 62, "b": 40},
        "height": 310,
        "font": {"size": 12},
        "legend": {"orientation": "h", "x": 1, "xanchor": "right", "y": 1.01, "yanchor": "bottom"},
        "xaxis": axis | ticks | {"title": {"text": "round"}},
        "yaxis": axis | {"title": {"text": y}},
        "hovermode": "closest",
    }  # fmt: skip
    for key, value in layout.items():
        base[key] = (axis if "axis" in key else {}) | base.get(key, {}) | value if isinstance(value, dict) else value
    return {"data": traces, "layout": base}


def _lines(x: list[Any], y: list[Any], name: str, colour: str, **more: Any) -> dict[str, Any]:
    look = {"line": {"color": colour, "width": 2}, "marker": {"color": colour, "size": 6}}
    return {"type": "scatter", "mode": "lines+markers", "x": x, "y": y, "name": name} | look | more


def _bars(x: list[int], y: list[Any], name: str, colour: str) -> dict[str, Any]:
    return {"type": "bar", "x": x, "y": y, "name": name, "marker": {"color": colour}}


# ---- the charts: each is None where there is nothing to draw -----------------------------------------------


def _progress(view: View) -> dict[str, Any] | None:
    x: list[float] = []
    y: list[float] = []
    for entry in view.rounds:
        values = _thinned(np.sort(entry.value[np.isfinite(entry.value)]), POINTS)
        # Spread sideways by rank, not by chance: the page of a study is always the same.
        x += (entry.number + 0.3 * (np.arange(len(values)) * 0.618034 % 1 - 0.5)).round(3).tolist()
        y += values.tolist()
    if not y:
        return None
    dots = {
        "type": "scatter", "mode": "markers", "x": x, "y": y, "name": "one design",
        "marker": {"color": BLUE, "size": 5, "opacity": 0.45}, "hovertemplate": "%{y:.6g}<extra></extra>",
    }  # fmt: skip
    traces = [dots]
    if view.start_best is not None:
        dashed = {"color": GREY, "width": 1.5, "dash": "dash"}
        ends = [0.5, view.rounds[-1].number + 0.5]
        traces.append(_lines(ends, [view.start_best] * 2, "best of the start data", GREY, line=dashed, mode="lines"))
    traces.append(_lines(view.finished, view.series("batch_mean"), "batch mean", BLUE))
    traces.append(_lines(view.finished, view.series("best"), "best so far", OURS, line={"color": OURS, "width": 3}))
    return _figure(view, "Progress", traces, "value", height=400)


def _distribution(view: View) -> dict[str, Any] | None:
    batches = [(entry.number, entry.value[np.isfinite(entry.value)]) for entry in view.rounds[: len(view.done)]]
    batches = [(number, values) for number, values in batches if len(values)]
    if not batches:
        return None
    low, q1, median, q3, high = np.array([np.quantile(v, [0, 0.25, 0.5, 0.75, 1]) for _, v in batches]).T.tolist()
    box = {
        "type": "box", "x": [number for number, _ in batches], "lowerfence": low, "q1": q1, "median": median,
        "q3": q3, "upperfence": high, "marker": {"color": BLUE}, "name": "batch", "showlegend": False,
    }  # fmt: skip
    return _figure(view, "Values of each batch: range, quartiles, median", [box], "value")


def _weight(view: View) -> dict[str, Any] | None:
    if not view.has("weight"):
        return None
    title, traces = "Chosen w (y* = w · φ)", [_lines(view.finished, view.series("weight"), "w", OURS, showlegend=False)]
    terms = [name for name in ("epistemic", "aleatoric") if view.has(name)]
    if not terms:
        return _figure(view, title, traces, "w")
    for name in terms:
        colour = GREEN if name == "epistemic" else AMBER
        traces.append(_lines(view.finished, view.series(name), name, colour, yaxis="y2"))
    terms_shown = [term for name in terms for term in view.series(name) if term]
    decades = np.log10(max(terms_shown) / min(terms_shown)) if terms_shown else 0.0
    below = {"title": {"text": "variance"}, "domain": [0, 0.55], "type": "log", "exponentformat": "power",
             "dtick": 1 if decades > 1 else "D2"}  # fmt: skip
    axes = {"yaxis": {"domain": [0.66, 1], "nticks": 4}, "yaxis2": below, "xaxis": {"anchor": "y2"}}
    return _figure(view, f"{title} and its uncertainty", traces, "w", **axes)


def _gap(view: View) -> dict[str, Any] | None:
    if not view.has("gap"):
        return None
    bars = _bars(view.finished, view.series("gap"), "gap", BLUE)
    return _figure(view, "Gap between y* and the best of the batch", [bars], "|y* − best|")


def _distinct(view: View) -> dict[str, Any] | None:
    if not view.done:
        return None
    share = [s.distinct / len(entry.ids) for s, entry in zip(view.done, view.rounds, strict=False)]
    counts = [f"{s.distinct} designs" for s in view.done]
    traces = [_lines(view.finished, share, "asked", BLUE, text=counts)]
    if view.has("distinct_drawn"):
        drawn = view.series("distinct_drawn")
        traces.append(_lines(view.finished, drawn, "drawn, before repeats were removed", AMBER))
    return _figure(view, "Distinct designs per batch", traces, "share", yaxis={"range": [0, 1.05], "tickformat": ".0%"})


def _times(view: View) -> dict[str, Any] | None:
    traces = []
    if view.has("train_s"):
        traces.append(_bars(view.finished, view.series("train_s"), "training", BLUE))
    if view.has("acquire_s"):
        label = "choosing and drawing" if traces else "asking"
        traces.append(_bars(view.finished, view.series("acquire_s"), label, AMBER))
    if not traces:
        return None
    more = {"yaxis": {"exponentformat": "none"}, "legend": {"traceorder": "normal"}, "barmode": "stack"}
    return _figure(view, "Time to ask for a batch", traces, "seconds", **more)


def _parallel(view: View) -> dict[str, Any] | None:
    parts = [(variable, where.start) for variable, where in view.space.slices() if not isinstance(variable, Sequence)]
    if len(parts) < 2 or not view.best:
        return None
    shown = [view.best[k] for k in _thinned(np.arange(len(view.best)), LINES)[::-1]]  # the best come last, on top
    x, value = np.stack([found.x for found in shown]), np.array([found.value for found in shown])
    title = "Measured designs, coloured by value; drag along an axis to select"
    if len(parts) > AXES:
        title += f" ({AXES} of {len(parts)} variables, those most associated with the value)"
        parts = sorted(parts, key=lambda part: -_association(x[:, part[1]], value))[:AXES]
    axes: list[dict[str, Any]] = []
    for variable, column in parts:
        values = x[:, column]
        axis: dict[str, Any] = {"label": escape(variable.name)}
        if isinstance(variable, Categorical):
            names = [str(value) for value in variable.values]
            axis |= {"range": [0, len(names) - 1], "tickvals": [*range(len(names))], "ticktext": names}
        elif isinstance(variable, Real) and variable.scale == "log":
            ticks = np.geomspace(variable.lower, variable.upper, 5)
            places, values = np.log10(ticks).tolist(), np.log10(values)
            axis |= {"range": places[:: len(places) - 1], "tickvals": places, "ticktext": [f"{t:.3g}" for t in ticks]}
        elif isinstance(variable, Real | Integer):
            axis["range"] = [variable.lower, variable.upper]
        axes.append(axis | {"values": values.tolist()})
    axes.append({"label": "value", "values": value.tolist()})
    scale = [[0, GREY], [0.6, AMBER], [1, OURS]]
    line = {"color": value.tolist(), "colorscale": scale, "reversescale": view.record.minimize}
    trace = {"type": "parcoords", "dimensions": axes, "line": line, "labelfont": {"size": 13}}
    return _figure(view, title, [trace], height=420, margin={"l": 70, "r": 50, "t": 90, "b": 30})


def _association(x: Array, value: Array) -> float:
    """The absolute rank correlation; 0 for a column that never varies."""
    a, b = (np.unique(v, return_inverse=True)[1].astype(np.float64) for v in (x, value))
    return float(abs(np.corrcoef(a, b)[0, 1])) if a.max() > 0 and b.max() > 0 else 0.0


def _thinned(values: NDArray[Any], most: int) -> NDArray[Any]:
    """At most that many of `values`, evenly spaced, first and last included."""
    return values if len(values) <= most else values[np.linspace(0, len(values) - 1, most).round().astype(int)]


WIDE = (_progress, _parallel)
CHARTS: tuple[Callable[[View], dict[str, Any] | None], ...] = (
    _progress, _distribution, _weight, _gap, _distinct, _times, _parallel,
)  # fmt: skip


def charts(view: View) -> list[tuple[dict[str, Any], bool]]:
    """Every figure there is something to draw for, and whether it takes the full width of two columns."""
    drawn = [(figure, chart in WIDE) for chart in CHARTS if (figure := chart(view)) is not None]
    narrow = [k for k, (_, wide) in enumerate(drawn) if not wide]
    if len(narrow) % 2:  # the last one would leave a hole beside it
        drawn[narrow[-1]] = drawn[narrow[-1]][0], True
    return drawn
