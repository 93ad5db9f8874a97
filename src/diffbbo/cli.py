"""The command line: thin commands over the library. Results go to stdout, progress and notes to stderr."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from .terminal import (
    cell_line,
    live_bar,
    number,
    out,
    round_line,
    say,
    show_error,
    show_notes,
    show_standings,
    without_nan,
)
from .types import DiffBBOError, InputError, need

if TYPE_CHECKING:
    from .optimizer import Optimizer
    from .spaces import Space
    from .task import Task

app = typer.Typer(
    help="Find the next designs worth measuring, with an ensemble of conditional diffusion models.",
    no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False,
)  # fmt: skip

Problem = Annotated[
    str, typer.Argument(help="A name from `diffbbo tasks`, such as ackley-60, or a problem.toml with a command.")
]
Method = Annotated[str, typer.Option(help="A name from `diffbbo methods`.")]
Preset = Annotated[str, typer.Option(help="Size of network and training: auto, fast or paper.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Seed = Annotated[int, typer.Option(help="Seed of every random choice.")]
Batch = Annotated[int, typer.Option(help="Designs per round.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value on the last line of stdout.")]


def main() -> None:
    """Entry point: our own errors become one line and a remedy, never a traceback."""
    show_notes()
    try:
        app()
    except (DiffBBOError, OSError) as error:
        show_error(error)
        sys.exit(2)


@app.command()
def tasks(as_json: AsJson = False) -> None:
    """The problems that come with diffbbo."""
    from .registry import make_task
    from .registry import tasks as known

    made = [make_task(name) for name in known()]
    if as_json:
        print(json.dumps([task.card().to_dict() for task in made]))
        return
    table = Table("task", "what", "designs", "dim", "start", "best known", title="Tasks")
    for task in made:
        c = task.card()
        size = "∞" if c.size is None else f"{c.size:,}" if c.size < 1e9 else f"{c.size:.2g}"
        best = number(c.maximum) + (" (min)" if task.minimize else "")
        table.add_row(c.name, c.summary, size, str(c.dimension), f"{c.start:,}", best)
    out.print(table)


@app.command()
def task(
    name: Problem,
    plot: Annotated[Path | None, typer.Option(help="Draw its picture to this PNG or SVG file.")] = None,
    film: Annotated[Path | None, typer.Option(help="Write a film of a robot walking to this GIF file.")] = None,
    as_json: AsJson = False,
) -> None:
    """One problem: where it comes from, what is exact about it, and its picture."""
    found = _problem(name)
    if plot is not None:
        found.plot(plot)
        say(f"wrote {plot}")
    if film is not None:
        found.film(film)
        say(f"wrote {film}")
    if as_json:
        print(json.dumps(found.card().to_dict()))
        return
    table = Table(show_header=False, title=f"Task {name}")
    for key, value in found.card().to_dict().items():
        table.add_row(key, f"{value:,}" if isinstance(value, int) else str(value))
    out.print(table)


@app.command()
def methods(as_json: AsJson = False) -> None:
    """The optimizers: ours and its rivals."""
    from .registry import methods as known

    shown = ("summary", "reference", "supports", "repeats")
    rows = [{"name": name} | {key: getattr(cls, key) for key in shown} for name, cls in known().items()]
    if as_json:
        print(json.dumps(rows))
        return
    table = Table("method", "what", "reference", "good for", title="Methods: all take every type of variable")
    for row in rows:
        table.add_row(str(row["name"]), str(row["summary"]), str(row["reference"]), str(row["supports"]))
    out.print(table)


@app.command()
def run(
    task: Problem,
    method: Method = "diffbbo",
    preset: Preset = "auto",
    rounds: Annotated[int, typer.Option(help="Rounds in all, stored ones included.")] = 16,
    batch: Batch = 100,
    seed: Seed = 0,
    storage: Annotated[str, typer.Option(help="URL, or path of an SQLite file.")] = "runs/diffbbo.db",
    name: Annotated[str | None, typer.Option(help="Of the study; default TASK-METHOD-SEED.")] = None,
    device: Device = "auto",
    workers: Annotated[
        int | None, typer.Option(help="Evaluate in this many processes; 0: in this one; default: as the task needs.")
    ] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds per design before it counts as failed.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run a study. Run it again and it goes on where it stopped."""
    from .backends import Processes, Serial, default_backend
    from .study import Study

    problem = _problem(task)
    optimizer = _optimizer(method, problem.space, seed, problem.minimize, preset, device)
    if workers is None:
        backend = default_backend(problem, timeout)
    else:
        backend = Processes(workers, timeout) if workers else Serial(timeout)
    study = Study(problem, optimizer, storage, name, backend)
    before, done = study.finished, []
    try:
        with live_bar(rounds):
            for entry in study.steps(rounds, batch):
                done.append(entry)
                if entry.round > before:
                    say(round_line(entry, rounds))
    except KeyboardInterrupt:
        say(f"stopped; all results so far are in {study.storage.shown}: run the same command again and it goes on")
        raise typer.Exit(130) from None
    if before >= rounds:
        say(f"study {study.name!r} is complete: {rounds} rounds are stored, nothing was evaluated")
    best = study.best
    if as_json:
        found = None if best is None else {"design": best.design, "value": best.value}
        lines = [entry.to_dict() for entry in done]
        print(json.dumps({"task": task, "method": method, "seed": seed, "rounds": lines, "best": found}))
        return
    if best is not None:
        out.print(f"best value {best.value:.6g} after {rounds} rounds of {batch}:", highlight=False)
        out.print(best.design)
    say(f"stored in {study.storage.shown} as {study.name!r}")


@app.command()
def suggest(
    space: Annotated[Path, typer.Option(help="What may vary: space.toml.")],
    data: Annotated[Path, typer.Option(help="What was tried: a CSV file with a column per variable.")],
    objective: Annotated[str, typer.Option(help="The column that holds the result.")],
    out_file: Annotated[Path, typer.Option("--out", help="Where to write what to try next.")],
    batch: Batch = 96,
    minimize: Annotated[bool, typer.Option("--minimize", help="Smaller is better.")] = False,
    method: Method = "diffbbo",
    preset: Preset = "auto",
    seed: Seed = 0,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """The laboratory's loop: history.csv in, next.csv out, in order of merit. No state is kept.

    A blank result is pending and not asked again; `failed` or `nan` is a failure.

    With a column `round` in the history (blank: known before) the method learns from what became of its batches.
    """
    from .laboratory import read_history, write_batch
    from .spaces import Space

    described = Space.from_toml(space)
    history = read_history(data, described, objective)
    if history.ignored:
        say(f"note: columns ignored: {', '.join(history.ignored)}")
    optimizer = _optimizer(method, described, seed, minimize, preset, device)
    history.told_to(optimizer)
    with live_bar(rounds=1):
        chosen = optimizer.ask(batch, pending=history.pending)
    write_batch(out_file, chosen, described, objective, history.next_round)
    failures = int(optimizer.data.failed.sum())
    say(
        f"read {len(history.y)} results ({failures} failed) and {len(history.pending)} pending; "
        f"wrote {len(chosen)} designs to {out_file}"
    )
    if as_json:
        print(json.dumps({"designs": list(chosen), "info": chosen.info}))


@app.command()
def compare(
    tasks: Annotated[list[str], typer.Argument(help="Names from `diffbbo tasks`.")],
    out_folder: Annotated[Path, typer.Option("--out", help="Folder for storage, table and figures.")],
    methods: Annotated[str, typer.Option(help="`all`, or names separated by commas.")] = "all",
    seeds: Annotated[int, typer.Option(help="How many seeds, from 0.")] = 3,
    rounds: Annotated[int, typer.Option(help="Rounds per study.")] = 16,
    batch: Batch = 100,
    preset: Preset = "auto",
    device: Device = "auto",
    workers: Annotated[int | None, typer.Option(help="Studies side by side; default: one per core.")] = None,
    as_json: AsJson = False,
) -> None:
    """Several methods on several tasks: curves as PNG and SVG, and a table. Run again, it does what is missing."""
    from . import registry
    from .compare import failures, grid, run_grid, write_table
    from .plots import comparison
    from .standings import standings
    from .storage import Storage

    need("matplotlib", "plots", "diffbbo compare")  # better now than after hours of running
    if seeds < 1:
        raise InputError(f"seeds = {seeds}.", "Use at least 1.")
    names = list(registry.methods()) if methods == "all" else [name.strip() for name in methods.split(",")]
    cells = grid(tasks, names, range(seeds), rounds, batch, {name: _settings(name, preset, device) for name in names})
    results = []
    out_folder.mkdir(parents=True, exist_ok=True)
    with Storage(out_folder / "compare.db") as storage, live_bar(rounds, len(cells)) as bar:
        for result in run_grid(cells, storage, min(workers or os.cpu_count() or 1, len(cells))):
            results.append(result)
            bar.finish_study(f"{len(results)}/{len(cells)}  {cell_line(result)}")
    place = {cell: k for k, cell in enumerate(cells)}
    results.sort(key=lambda result: place[result.cell])  # side by side they come as they are done
    rows = [row for result in results if not result.error for row in result.rows()]
    write_table(rows, out_folder / "comparison.csv")
    table = standings(rows, failures(results))
    if rows:
        maxima = {name: registry.make_task(name).maximum for name in tasks}
        for suffix in ("png", "svg"):
            comparison(rows, out_folder / f"comparison.{suffix}", maxima)
    show_standings(table)
    say(f"wrote comparison.csv{', .png and .svg' if rows else ''} to {out_folder}")
    if as_json:
        print(json.dumps(without_nan([asdict(entry) for entry in table])))


@app.command()
def report(
    storage: Annotated[str, typer.Argument(help="URL, or path of an SQLite file.")],
    out_file: Annotated[Path, typer.Option("--out", help="The HTML page to write.")],
    name: Annotated[str | None, typer.Option(help="Of the study; default: all that are stored.")] = None,
) -> None:
    """One self-contained HTML page about a stored study."""
    from .report import write_report
    from .storage import Storage

    with Storage(storage, create=False) as opened:
        write_report(opened, out_file, name)
    say(f"wrote {out_file}")


@app.command()
def merge(
    target: Annotated[str, typer.Argument(help="URL, or path of an SQLite file; made if there is none.")],
    sources: Annotated[list[str], typer.Argument(help="Storages whose finished rounds are copied into it.")],
) -> None:
    """Bring the studies of several machines together in one storage."""
    from .merge import merge as copy
    from .storage import Storage

    with Storage(target) as into:
        for source in sources:
            with Storage(source, create=False) as opened:
                say(f"{source}: {copy(into, opened)} rounds copied")


@app.command()
def export(
    storage: Annotated[str, typer.Argument(help="URL, or path of an SQLite file.")],
    out_file: Annotated[Path, typer.Option("--out", help="A .csv or .parquet file.")],
    name: Annotated[str | None, typer.Option(help="Of the study; default: all that are stored.")] = None,
) -> None:
    """Every stored design with its result, as one flat table."""
    from .export import export as write
    from .storage import Storage

    with Storage(storage, create=False) as opened:
        count = write(opened, out_file, name)
    say(f"wrote {count} designs to {out_file}")


# ---- helpers ---------------------------------------------------------------------------------------------


def _problem(name: str) -> Task:
    """The task of that name, or of that file."""
    from .own_tasks import CommandTask
    from .registry import make_task

    return CommandTask.from_toml(name) if name.endswith(".toml") else make_task(name)


def _settings(method: str, preset: str, device: str) -> dict[str, Any]:
    """Preset and device for the methods that have them."""
    from .algorithm import Algorithm1
    from .registry import find
    from .registry import methods as known

    if issubclass(find("method", method, known()), Algorithm1):
        return {"preset": preset, "device": device}
    return {}


def _optimizer(method: str, space: Space, seed: int, minimize: bool, preset: str, device: str) -> Optimizer:
    from .registry import make_optimizer

    settings = _settings(method, preset, device)
    made = make_optimizer(method, space, seed=seed, minimize=minimize, **settings)
    made.settings()  # a device that is not there is refused before anything is stored
    return made
