"""What the command line shows: a live bar with the time left, lines per round, tables, notes."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from .progress import listening
from .types import DiffBBOError

if TYPE_CHECKING:
    from .compare import CellResult
    from .standings import Interval, Standing
    from .study import RoundSummary

out = Console(soft_wrap=True)
err = Console(stderr=True, soft_wrap=True)

# How much of a round each stage takes, roughly: it only has to make the time left a fair guess.
STAGES = {"training": (0.0, 0.75), "sampling": (0.75, 0.9), "evaluating": (0.9, 1.0)}


def say(line: str) -> None:
    """One plain line on stderr."""
    err.print(line, markup=False, highlight=False)


def show_error(error: Exception) -> None:
    """An error as a line and a remedy."""
    message, remedy = (error.message, error.remedy) if isinstance(error, DiffBBOError) else (str(error), "")
    err.print("[bold red]error:[/] ", end="")
    say(message)
    if remedy:
        say(remedy)


class Bar:
    """A live bar over `studies` studies of `rounds` rounds; feed it `report`s, and count finished studies."""

    def __init__(self, progress: Progress, studies: int, rounds: int) -> None:
        self.progress, self.rounds = progress, rounds
        self.job = progress.add_task("starting", total=studies * rounds)
        self.finished = 0  # studies
        self.current = 0.0  # rounds of the study now running

    def __call__(self, stage: str, fraction: float) -> None:
        within = 0.0
        if stage == "round":
            self.current = fraction * self.rounds
        elif stage in STAGES:
            low, high = STAGES[stage]
            within = low + (high - low) * fraction
        done = self.finished * self.rounds + self.current + within
        self.progress.update(self.job, completed=done, description=stage)

    def finish_study(self, line: str) -> None:
        self.finished, self.current = self.finished + 1, 0.0
        say(line)


@contextmanager
def live_bar(rounds: int, studies: int = 1) -> Iterator[Bar]:
    """Show how far the work inside the block is, and the time left."""
    columns = (
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        bar = Bar(progress, studies, rounds)
        with listening(bar):
            yield bar


def show_notes() -> None:
    """Let the library's notes (collapse, space-filling, fallback) appear as lines on stderr."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            say(f"note: {record.getMessage()}")

    logger = logging.getLogger("diffbbo")
    logger.handlers = [Handler()]
    logger.propagate = False


def number(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.4g}"


def round_line(entry: RoundSummary, rounds: int) -> str:
    parts = [f"round {entry.round}/{rounds}", f"best {number(entry.best)}", f"batch mean {number(entry.batch_mean)}"]
    if entry.weight is not None:
        parts.append(f"w {entry.weight:g}  epistemic {number(entry.epistemic)}")
    parts.append(f"{entry.distinct} distinct")
    if entry.facts:
        parts.append(", ".join(f"{name} {number(value)}" for name, value in entry.facts.items()))
    if entry.failures:
        parts.append(f"{entry.failures} failed")
    parts.append(f"{(entry.train_s or 0) + (entry.acquire_s or 0):.1f} s")
    return "  ".join(parts)


def cell_line(result: CellResult) -> str:
    """What became of one study of a grid."""
    cell, final = result.cell, result.rounds[-1].best if result.rounds else None
    word = f"failed: {result.error}" if result.error else f"best {number(final)}"
    return f"{cell.task}  {cell.shown}  seed {cell.seed}  {word}"


def interval(value: Interval, seeds: int) -> str:
    """A mean with its interval; one seed has none."""
    if seeds < 2:
        return number(value.mean)
    return f"{number(value.mean)} ({number(value.low)} to {number(value.high)})"


def show_standings(table: list[Standing]) -> None:
    """A table per task: its name would not fit into a column."""
    for task in dict.fromkeys(entry.task for entry in table):
        title = f"{task}: means and 95 % intervals"
        shown = Table("rank", "method", "best", "area", "distinct", "seeds", title=title)
        for e in (entry for entry in table if entry.task == task):
            if e.seeds == 0:
                shown.add_row("-", e.method, f"failed: {e.error}", "", "", "0")
                continue
            seeds = f"{e.seeds}" + (f", failed: {e.error}" if e.error else "")
            best, area = interval(e.best, e.seeds), interval(e.area, e.seeds)
            shown.add_row(str(e.rank), e.method, best, area, f"{e.distinct:.0%}", seeds)
        out.print(shown)


def without_nan(value: Any) -> Any:
    """A JSON value in which NaN, which JSON lacks, is null."""
    if isinstance(value, dict):
        return {key: without_nan(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
