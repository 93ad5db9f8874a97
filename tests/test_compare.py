"""Grids of studies and the table made of them."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from diffbbo import Proposal, Storage, registry
from diffbbo.compare import COLUMNS, Cell, CellResult, grid, run_grid, standings, write_table
from diffbbo.optimizer import Optimizer
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
    cells = grid(["tfbind8"], ["random", "broken", "evolution"], range(2))
    with Storage(tmp_path / "a.db") as storage:
        results = list(run_grid(cells, storage, rounds=2, batch=10))
    assert [bool(r.error) for r in results] == [False, True, False] * 2
    table = standings(results)
    assert {entry.method for entry in table[:2]} == {"random", "evolution"}
    assert table[2].method == "broken" and table[2].seeds == 0
    assert "seed 0: RuntimeError: no licence" in table[2].error


def test_a_grid_does_what_is_missing(tmp_path: Path) -> None:
    with Storage(tmp_path / "a.db") as storage:
        few = list(run_grid(grid(["tfbind8"], ["random"], [0]), storage, rounds=2, batch=10))
        more = list(run_grid(grid(["tfbind8"], ["random"], [0, 1]), storage, rounds=3, batch=10))
        assert len(storage.studies()) == 2
    assert [e.best for e in more[0].rounds[:2]] == [e.best for e in few[0].rounds]


def test_unknown_names_are_refused_before_anything_runs() -> None:
    with pytest.raises(InputError, match="Did you mean 'tfbind8'"):
        grid(["tfbind"], ["random"], [0])
    with pytest.raises(InputError, match="Did you mean 'evolution'"):
        grid(["tfbind8"], ["evolutoin"], [0])


def curve(method: str, seed: int, best: list[float]) -> CellResult:
    counts = {"distinct": 5, "failures": 0, "fallback": 0, "facts": {}}
    nothing = dict.fromkeys(RoundSummary.__dataclass_fields__) | counts
    rounds = tuple(RoundSummary(**(nothing | {"round": k, "best": b, "notes": ()})) for k, b in enumerate(best, 1))
    return CellResult(Cell("tfbind8", method, seed), 10, rounds)


def test_standings_by_hand() -> None:
    """a: curves (1, 3) and (2, 2): final 2.5, area 2; b: (0, 4) twice: final 4, area 2... minus a hair."""
    results = [
        curve("a", 0, [1.0, 3.0]),
        curve("a", 1, [2.0, 2.0]),
        curve("b", 0, [0.0, 3.9]),
        curve("b", 1, [0.0, 3.9]),
    ]
    first, second = standings(results)
    assert (first.method, first.rank, first.best, first.area) == ("a", 1, 2.5, 2.0)
    assert (second.method, second.rank, second.best, second.area) == ("b", 2, 3.9, 1.95)
    assert second.best_interval == (3.9, 3.9) and first.best_interval == (2.0, 3.0)
    assert first.distinct == 0.5


def test_the_table_is_tidy(tmp_path: Path) -> None:
    write_table(curve("a", 0, [1.0, 3.0]).rows(), tmp_path / "comparison.csv")
    rows = list(csv.DictReader((tmp_path / "comparison.csv").read_text().splitlines()))
    assert list(rows[0]) == list(COLUMNS)
    assert [(r["task"], r["method"], r["seed"], r["batch"], r["round"], r["best"]) for r in rows] == [
        ("tfbind8", "a", "0", "10", "1", "1.0"), ("tfbind8", "a", "0", "10", "2", "3.0"),
    ]  # fmt: skip
