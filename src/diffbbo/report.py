"""One self-contained HTML page about stored studies: it needs no network and no server, only a browser."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from .charts import Found, View, charts
from .logo import sequence_logo
from .registry import find
from .schema import StudyRecord
from .storage import Storage
from .study import in_words
from .types import InputError, StorageError, need
from .variables import Sequence

TOP = 20  # designs in the table and the logo


def write_report(storage: Storage, path: Path, name: str | None = None) -> None:
    """Write a page about the study `name`, or about every study of the storage, to `path`."""
    need("plotly", "report", "Writing a report")
    from plotly.offline import get_plotlyjs

    views = [View.of(storage, record) for record in _chosen(storage, name)]
    figures: list[dict[str, Any]] = []
    sections = [_section(view, f"study-{k}", figures) for k, view in enumerate(views)]
    title = views[0].record.name if len(views) == 1 else f"{len(views)} studies"
    overview = _overview(views) if len(views) > 1 else ""
    # "<" never appears in the data, so that no name can end the script it stands in.
    data = json.dumps(figures, allow_nan=False).replace("<", "\\u003c")
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" '
        f'content="{POLICY}"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)} · diffbbo</title><style>{STYLE}</style></head><body><main>"
        f"{overview}{''.join(sections)}</main><script>{get_plotlyjs()}</script>"
        f"<script>const charts = {data};{SCRIPT}</script></body></html>"
    )
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(page, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error}.", "Choose another place.") from error


def _chosen(storage: Storage, name: str | None) -> list[StudyRecord]:
    records = storage.studies()
    if not records:
        raise StorageError(f"The storage {storage.url!r} holds no study yet.", "Run one first: diffbbo run TASK.")
    if name is None:
        return records
    return [find("study", name, {record.name: record for record in records})]


# ---- the page --------------------------------------------------------------------------------------------


def _section(view: View, key: str, figures: list[dict[str, Any]]) -> str:
    """One study. Its charts are added to `figures`, and drawn by the page where their numbers stand."""
    record = view.record
    created = record.created.astimezone(UTC) if record.created.tzinfo else record.created
    places = ""
    for figure, wide in charts(view):
        style = f'class="card chart{" wide" if wide else ""}" style="height:{figure["layout"]["height"]}px"'
        places += f'<div {style} data-chart="{len(figures)}"></div>'
        figures.append(figure)
    goal = "minimised" if record.minimize else "maximised"
    facts = {"task": record.task, "method": record.method, "seed": record.seed, "objective": goal,
             "begun": f"{created:%Y-%m-%d %H:%M} UTC"}  # fmt: skip
    known = "".join(f"<span>{key} <b>{escape(str(value))}</b></span>" for key, value in facts.items())
    details = "".join(
        f"<details><summary>{title}</summary>{_table([], content.items())}</details>"
        for title, content in (("Settings", record.settings), ("Versions and machine", record.environment))
    )
    return (
        f'<section id="{key}"><h1>{escape(record.name)}</h1><p class="facts">{known}</p>{_state(view)}{_headline(view)}'
        f'<div class="grid">{places}</div>{_designs(view)}{_messages(view)}{details}</section>'
    )


def _state(view: View) -> str:
    """What is unfinished, in words."""
    says = []
    if not view.rounds:
        says.append("No round has been asked for yet.")
    for entry in view.rounds:
        if len(entry.open):
            done = len(entry.ids) - len(entry.open)
            says.append(f"Round {entry.number} is in progress: {done} of {len(entry.ids)} designs are evaluated.")
    if view.rounds and not view.best:
        says.append("No evaluation has succeeded yet." if not view.failures else "Every evaluation so far has failed.")
    return "".join(f'<p class="notice">{text}</p>' for text in says)


def _headline(view: View) -> str:
    evaluated = sum(status != "" for entry in view.rounds for status in entry.status)
    kinds = ", ".join(f"{escape(kind)}: {count}" for kind, count in view.failures.most_common())
    top = view.best[0] if view.best else None
    numbers = [
        ("best value", _text(top.value if top else None), f"found in round {top.round}" if top else "none yet"),
        ("best of the start data", _text(view.start_best), f"{len(view.start):,} measured designs"),
        ("finished rounds", str(len(view.done)), f"{len(view.rounds)} asked for"),
        ("evaluations", f"{evaluated:,}", f"different designs: {len(view.best):,}"),
        ("failures", f"{view.failures.total():,}", kinds or "none"),
    ]
    cards = "".join(f"<div class=card>{what}<strong>{number}</strong>{more}</div>" for what, number, more in numbers)
    return f'<div class="numbers">{cards}</div>'


def _designs(view: View) -> str:
    """Logos and the table of the best designs."""
    top = view.best[:TOP]
    if not top:
        return ""
    rows = np.stack([found.x for found in top])
    html = "<h2>Best designs</h2>"
    for variable, where in view.space.slices():
        if isinstance(variable, Sequence) and len(top) > 1:
            title = f"{variable.name}: what the best {len(top)} have in common"
            html += f'<div class="card scroll"><h3>{escape(title)}</h3>'
            html += sequence_logo(variable, rows[:, where]) + "</div>"
    facts: list[tuple[str, Callable[[Found], Any]]] = [
        ("value", lambda found: found.value),
        ("round", lambda found: found.round),
        ("position", lambda found: found.position + 1),
    ]
    if any(found.member >= 0 for found in top):
        facts.append(("member", lambda found: found.member if found.member >= 0 else None))
    if any(found.count > 1 for found in top):
        facts.append(("measured", lambda found: f"{found.count}×"))
    head = ["rank", *(name for name, _ in facts), *view.space.names]
    body = [
        [rank, *(read(found) for _, read in facts), *design.values()]
        for rank, (found, design) in enumerate(zip(top, view.space.dicts(rows), strict=True), 1)
    ]
    return html + f'<div class="card scroll">{_table(head, body)}</div>'


def _messages(view: View) -> str:
    """What the rounds noted, and what went wrong in evaluations, most frequent first."""
    notes = [f"Round {entry.number}: {note}" for entry in view.rounds for note in entry.info.get("notes", ())]
    errors = Counter(error for entry in view.rounds for error in entry.error if error).most_common(10)
    said = [(entry.number, in_words(entry.info.get("facts", {}))) for entry in view.rounds]
    facts = [f"Round {number}: {words}" for number, words in said if words]
    lists = {
        "What the task says of the batches": facts,
        "Notes": notes,
        "Errors of evaluations": [f"{count} × {error}" for error, count in errors],
    }
    return "".join(
        f"<h2>{title}</h2><ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"
        for title, lines in lists.items() if lines
    )  # fmt: skip


def _overview(views: list[View]) -> str:
    rows = ""
    for k, view in enumerate(views):
        record, best = view.record, view.best[0].value if view.best else None
        cells = (record.task, record.method, record.seed, len(view.done), best)
        rows += f'<tr><td><a href="#study-{k}">{escape(record.name)}</a>{_cells(cells)}'
    head = "<th>study<th>task<th>method<th>seed<th>rounds<th>best value"
    return f'<h1>{len(views)} studies</h1><div class="card scroll"><table><tr>{head}{rows}</table></div>'


def _table(head: list[str], rows: Iterable[Iterable[Any]]) -> str:
    titles = f"<tr>{''.join(f'<th>{escape(name)}' for name in head)}"
    return f"<table>{titles}{''.join(f'<tr>{_cells(row)}' for row in rows)}</table>"


def _cells(row: Iterable[Any]) -> str:
    return "".join(f"<td>{escape(_text(cell))}" for cell in row)


def _text(value: Any) -> str:
    """A value as a reader wants it: six digits are enough, a word stays itself."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.6g}"
    return value if isinstance(value, str) else json.dumps(value, default=str)


# Nothing may be loaded, whatever a name or the chart library should try. (parcoords compiles its shaders: eval.)
POLICY = "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:"
STYLE = """
:root { color-scheme: light dark; --ink: #1d2430; --soft: #667085; --page: #f5f6f8; --card: #fff; --line: #e2e5ea }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e8ec; --soft: #98a1b0; --page: #14171c; --card: #1d2127; --line: #313740 } }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, sans-serif }
main { max-width: 1160px; margin: auto; padding: 24px 20px 60px }
section { margin-bottom: 64px } h1 { font-size: 26px; margin: 12px 0 4px; overflow-wrap: anywhere }
h2 { font-size: 18px; margin: 28px 0 10px } h3 { font-size: 14px; margin: 4px 0 8px } a { color: inherit }
.facts span { margin-right: 20px; color: var(--soft) } .facts b { color: var(--ink); font-weight: 600 }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 12px; min-width: 0 }
.notice { border-left: 4px solid #e69f00; background: var(--card); padding: 8px 14px }
.numbers { display: grid; grid-template-columns: repeat(auto-fit, minmax(170px, 1fr)); gap: 14px; margin: 18px 0 }
.numbers, .logo .axis { color: var(--soft); fill: var(--soft); font-size: 13px }
.numbers strong { display: block; font-size: 25px; color: var(--ink); line-height: 1.35 }
.grid { display: grid; grid-template-columns: 1fr 1fr; gap: 14px } .wide { grid-column: 1 / -1 }
@media (max-width: 800px) { .grid { grid-template-columns: 1fr } .wide { grid-column: auto } }
.scroll { overflow-x: auto; margin-bottom: 14px } .logo .tick { stroke: var(--line) }
.letter { font-family: Arial, Helvetica, "Liberation Sans", sans-serif; font-weight: 700 }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; width: 100% }
td { font-family: ui-monospace, monospace }
th, td { text-align: left; padding: 4px 12px 4px 4px; border-bottom: 1px solid var(--line); white-space: nowrap }
th { color: var(--soft); font-weight: 600 } details { margin-top: 14px } summary { cursor: pointer; font-weight: 600 }
details td { white-space: normal } details td, li { overflow-wrap: anywhere }
"""
SCRIPT = """
const draw = place => {
  const {data, layout} = charts[place.dataset.chart], css = getComputedStyle(document.documentElement);
  layout.font.color = css.getPropertyValue("--ink");
  layout.paper_bgcolor = layout.plot_bgcolor = css.getPropertyValue("--card");
  place.drawn = true;
  Plotly.newPlot(place, data, layout, {responsive: true, displaylogo: false, modeBarButtons: [["toImage"]]});
};
const places = [...document.querySelectorAll(".chart")];
const watch = new IntersectionObserver(seen => seen.filter(entry => entry.isIntersecting && !entry.target.drawn)
  .forEach(entry => draw(entry.target)), {rootMargin: "800px"});
places.forEach(place => watch.observe(place));
addEventListener("beforeprint", () => places.filter(place => !place.drawn).forEach(draw));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change",
  () => places.filter(place => place.drawn).forEach(draw));
"""
