"""Grids of studies and the table made of them."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from diffbbo import Proposal, Storage, registry
from diffbbo.compare import COLUMNS, Cell, CellResult, failures, grid, read_table, run_grid, stored, write_table
from diffbbo.optimizer import Optimizer
from diffbbo.standings import standings
from diffbbo.study import RoundSummary
from diffbbo.types import InputError


class Broken(Optimizer):
    name = "broken"

    def propose(self, n: int, rng: np.random.Generator) -> Iterator[Proposal]:
        raise RuntimeError("no licence")


def test_one_method_failing_does_not_stop_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = {**registry.methods(), "broken": Broken}
    monkeypatch.setattr("diffbbo.registry.methods", lambda: known)
    monkeypatch.setattr("diffbbo.compare.methods", lambda: known)
    cells = grid(["tfbind8"], ["random", "broken", "evolution"], range(2), rounds=2, batch=10)
    with Storage(tmp_path / "a.db") as storage:
        results = list(run_grid(cells, storage))
    assert [bool(r.error) for r in results] == [False, True, False] * 2
    table = standings([row for r in results for row in r.rows()], failures(results))
    assert {entry.method for entry in table[:2]} == {"random", "evolution"}
    assert table[2].method == "broken" and table[2].seeds == 0 and table[2].rank == 0
    assert table[2].error == "seed 0: RuntimeError: no licence; seed 1: RuntimeError: no licence"


def test_a_grid_does_what_is_missing(tmp_path: Path) -> None:
    with Storage(tmp_path / "a.db") as storage:
        few = list(run_grid(grid(["tfbind8"], ["random"], [0], rounds=2, batch=10), storage))
        cells = grid(["tfbind8"], ["random"], [0, 1], rounds=3, batch=10)
        assert [len(r.rounds) for r in stored(cells, storage)] == [2]  # nothing runs for a look
        more = list(run_grid(cells, storage))
        assert len(storage.studies()) == 2
        assert [r.rows() for r in stored(cells, storage)] == [r.rows() for r in more]
    assert [e.best for e in more[0].rounds[:2]] == [e.best for e in few[0].rounds]


def test_side_by_side_is_the_same_as_one_after_the_other(tmp_path: Path) -> None:
    cells = grid(["tfbind8"], ["random", "evolution"], range(2), rounds=2, batch=10)
    with Storage(tmp_path / "a.db") as one, Storage(tmp_path / "b.db") as two:
        alone = {r.cell: r for r in run_grid(cells, one)}
        together = {r.cell: r for r in run_grid(cells, two, workers=2)}
    assert [e.best for cell in cells for e in alone[cell].rounds] == [
        e.best for cell in cells for e in together[cell].rounds
    ]


def test_out_of_time_nothing_more_is_begun(tmp_path: Path) -> None:
    cells = grid(["tfbind8"], ["random"], [0], rounds=2, batch=10)
    with Storage(tmp_path / "a.db") as storage:
        (result,) = run_grid(cells, storage, minutes=0.0)
    assert not result.complete and not result.rounds and not result.error


def test_settings_and_labels_make_cells_of_their_own(tmp_path: Path) -> None:
    """The same method twice: with 10 survivors and as it comes."""
    cells = [
        Cell("tfbind8", "evolution", 0, 2, 10),
        Cell("tfbind8", "evolution", 0, 2, 10, '{"population": 10}', "evolution, 10"),
    ]
    with Storage(tmp_path / "a.db") as storage:
        results = list(run_grid(cells, storage))
        assert [s.settings["population"] for s in storage.studies()][1] == 10
    assert [row["method"] for r in results for row in r.rows()] == ["evolution"] * 2 + ["evolution, 10"] * 2


def test_unknown_names_are_refused_before_anything_runs() -> None:
    with pytest.raises(InputError, match="Did you mean 'tfbind8'"):
        grid(["tfbind"], ["random"], [0])
    with pytest.raises(InputError, match="Did you mean 'evolution'"):
        grid(["tfbind8"], ["evolutoin"], [0])


def curve(method: str, seed: int, best: list[float]) -> CellResult:
    counts = {"distinct": 5, "failures": 0, "fallback": 0, "facts": {}}
    nothing = dict.fromkeys(RoundSummary.__dataclass_fields__) | counts
    rounds = tuple(RoundSummary(**(nothing | {"round": k, "best": b, "notes": ()})) for k, b in enumerate(best, 1))
    return CellResult(Cell("tfbind8", method, seed, batch=10), rounds)


def test_the_table_is_tidy_and_reads_back(tmp_path: Path) -> None:
    rows = curve("a", 0, [1.0, 3.0]).rows()
    write_table(rows, tmp_path / "new" / "comparison.csv")
    text = list(csv.DictReader((tmp_path / "new" / "comparison.csv").read_text().splitlines()))
    assert list(text[0]) == list(COLUMNS)
    assert [(r["task"], r["method"], r["seed"], r["batch"], r["round"], r["best"]) for r in text] == [
        ("tfbind8", "a", "0", "10", "1", "1.0"), ("tfbind8", "a", "0", "10", "2", "3.0"),
    ]  # fmt: skip
    assert read_table(tmp_path / "new" / "comparison.csv") == rows
