"""What every experiment shares: a grid of cells, and one command line.

    python -m experiments.NAME run [--workers N] [--minutes M] [--storage FILE] [--only WORD ...] [--limit K]
    python -m experiments.NAME table      what the storage holds, added to results/NAME.csv and results/NAME_cells.csv
    python -m experiments.NAME draw       the tables' figures in docs/images/results and tables in docs/results.md
    python -m experiments.NAME again      two complete cells chosen at random, run again: are their rows the same?

`run` does what is missing, neither in results/ nor in the storage. It can be stopped at any time and ends with `table`.
Results of two machines add up: run `table` on the second with the first one's files in results/, or `diffbbo merge` the
storages. To measure a method anew, delete its lines from both files and its storage.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from diffbbo import DiffBBOError, Storage
from diffbbo.compare import Cell, run_grid
from diffbbo.figures import save_figure
from diffbbo.terminal import cell_line, say, show_error

from .page import fill
from .results import Measured, Results, Row, RowsOf, collect, key_of_cell, tidy


@dataclass(frozen=True)
class Places:
    """Where an experiment keeps its files."""

    root: Path
    storage: Path

    @property
    def results(self) -> Path:
        return self.root / "results"

    @property
    def images(self) -> Path:
        return self.root / "docs" / "images" / "results"

    @property
    def page(self) -> Path:
        return self.root / "docs" / "results.md"


@dataclass(frozen=True)
class Experiment:
    """A grid of cells in the order in which they run; `tasks` and `methods` are the order in which they are shown.

    `draw` saves the figures and returns the parts of the page; `rows_of` are the rows of a cell in `NAME.csv`.
    """

    name: str
    tasks: tuple[str, ...]
    methods: tuple[str, ...]
    cells: tuple[Cell, ...]
    draw: Callable[[Results, Places], dict[str, str]]
    rows_of: RowsOf = tidy
    storage: str = ""  # the experiment whose studies it looks at; by default its own


@dataclass(frozen=True)
class Wanted:
    """Which cells to run, and how."""

    workers: int = 1
    minutes: float | None = None
    only: tuple[str, ...] = ()
    limit: int | None = None

    def chosen(self, cells: Sequence[Cell]) -> list[Cell]:
        return [cell for cell in cells if not self.only or any(word in cell.name for word in self.only)]


def run(experiment: Experiment, places: Places, wanted: Wanted) -> Measured:
    """Run what is missing, cheap cells first, and bring the tables up to date."""
    known = Measured.read(places.results, experiment.name)
    missing = [cell for cell in wanted.chosen(experiment.cells) if not known.complete(cell)]
    errors: dict[Cell, str] = {}
    with Storage(places.storage) as storage:
        stored = collect(missing, storage, experiment.rows_of, {})
        missing = [cell for cell in missing if not stored.complete(cell)][: wanted.limit]
        say(f"{experiment.name}: {len(experiment.cells)} cells, {len(missing)} of them to run now")
        try:
            for k, result in enumerate(run_grid(missing, storage, wanted.workers, wanted.minutes), 1):
                say(f"{k}/{len(missing)}  {cell_line(result)}{'' if result.complete else '  (not complete)'}")
                if result.error:
                    errors[result.cell] = result.error
        finally:
            measured = table(experiment, places, storage, errors)
    return measured


def table(
    experiment: Experiment, places: Places, storage: Storage | None, errors: Mapping[Cell, str] | None = None
) -> Measured:
    """Add what the storage holds to the result files."""
    known = Measured.read(places.results, experiment.name)
    if storage is not None:
        known = known.joined(collect(experiment.cells, storage, experiment.rows_of, errors or {}))
    known.write(places.results, experiment.name, experiment.tasks, experiment.methods)
    done = sum(known.complete(cell) for cell in experiment.cells)
    say(f"{experiment.name}: {done} of {len(experiment.cells)} cells complete in {places.results}")
    return known


def draw(experiment: Experiment, places: Places) -> None:
    """Figures and tables, from the result files alone."""
    measured = Measured.read(places.results, experiment.name)
    results = Results.of(measured, experiment.cells, experiment.tasks, experiment.methods)
    homeless = fill(places.page, experiment.name, experiment.draw(results, places))
    for part, content in homeless.items():
        print(f"\n{experiment.name}: {part}\n\n{content}")


def again(experiment: Experiment, places: Places, wanted: Wanted) -> bool:
    """Run complete cells again, two or `limit` of them chosen at random, and compare all but the times."""
    measured = Measured.read(places.results, experiment.name)
    cells = [cell for cell in wanted.chosen(experiment.cells) if measured.complete(cell)]
    cells = random.sample(cells, min(wanted.limit or 2, len(cells)))
    with tempfile.TemporaryDirectory() as folder, Storage(Path(folder) / "again.db") as storage:
        list(run_grid(cells, storage, wanted.workers))
        now = collect(cells, storage, experiment.rows_of, {})
    for cell in cells:
        key = key_of_cell(cell)
        new, old = now.cells.get(key, {}), measured.cells[key]
        here = all(new.get(what) == old[what] for what in ("versions", "machine", "threads", "gpu"))
        same = timeless(now.rows.get(key, [])) == timeless(measured.rows[key])
        word = "the same" if same else "DIFFERENT" if here else "different, with other versions, machine or threads"
        say(f"{cell.name}: {word}")
    return all(timeless(now.rows.get(key, [])) == timeless(measured.rows[key]) for key in map(key_of_cell, cells))


def timeless(rows: Sequence[Row]) -> list[Row]:
    """Rows without their times: what must come out the same again."""
    return [{name: value for name, value in row.items() if not name.endswith("_s")} for row in rows]


def save(figure: object, places: Places, name: str) -> None:
    for suffix in ("png", "svg"):
        save_figure(figure, places.images / f"{name}.{suffix}")


def main(experiment: Experiment, words: Sequence[str] | None = None) -> None:
    """The command line; our own errors become one line and a remedy."""
    parser = argparse.ArgumentParser(prog=f"python -m experiments.{experiment.name}")
    parser.add_argument("command", choices=["run", "table", "draw", "again"])
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="studies side by side")
    parser.add_argument("--minutes", type=float, help="after these no round is begun")
    parser.add_argument("--storage", type=Path, help="by default runs/NAME.db")
    parser.add_argument("--only", nargs="+", default=[], help="cells whose name has one of these words in it")
    parser.add_argument("--limit", type=int, help="at most so many cells")
    parser.add_argument("--root", type=Path, default=Path(), help="the folder that holds results/, runs/ and docs/")
    given = parser.parse_args(words)
    storage = given.storage or given.root / "runs" / f"{experiment.storage or experiment.name}.db"
    places = Places(given.root, storage)
    wanted = Wanted(given.workers, given.minutes, tuple(given.only), given.limit)
    try:
        if given.command == "run":
            run(experiment, places, wanted)
        elif given.command == "table":
            with _opened(storage) as opened:
                table(experiment, places, opened)
        elif given.command == "draw":
            draw(experiment, places)
        elif not again(experiment, places, wanted):
            sys.exit(1)
    except DiffBBOError as error:
        show_error(error)
        sys.exit(2)


@contextmanager
def _opened(path: Path) -> Iterator[Storage | None]:
    """The storage, if there is one: results of another machine come without."""
    if not path.exists():
        say(f"there is no storage {path}: the tables keep what they have")
        yield None
        return
    with Storage(path, create=False) as storage:
        yield storage
