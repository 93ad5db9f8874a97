"""Storages of two machines become one, and what cannot be one study is refused whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from diffbbo import Storage, Study, make_optimizer, make_task
from diffbbo.compare import grid, run_grid
from diffbbo.merge import merge
from diffbbo.types import StorageError


def run(path: Path, name: str, rounds: int, seed: int = 0, batch: int = 5) -> None:
    task = make_task("tfbind8")
    with Storage(path) as storage:
        Study(task, make_optimizer("random", task.space, seed=seed), storage, name).run(rounds, batch)


def test_every_round_arrives_with_its_results(tmp_path: Path) -> None:
    run(tmp_path / "a.db", "one", 2)
    run(tmp_path / "b.db", "two", 3, seed=1)
    with Storage(tmp_path / "a.db") as a, Storage(tmp_path / "b.db") as b:
        assert merge(a, b) == 3
        assert merge(a, b) == 0  # again: nothing is missing
        assert [s.name for s in a.studies()] == ["one", "two"]
        ours, theirs = a.rounds(a.study("two").id), b.rounds(b.study("two").id)  # type: ignore[union-attr]
        assert [e.value.tolist() for e in ours] == [e.value.tolist() for e in theirs]
        assert a.study("two").environment == b.study("two").environment  # type: ignore[union-attr]


def test_a_longer_part_of_the_same_study_is_appended_and_goes_on(tmp_path: Path) -> None:
    run(tmp_path / "a.db", "one", 1)
    run(tmp_path / "b.db", "one", 3)
    with Storage(tmp_path / "a.db") as a, Storage(tmp_path / "b.db") as b:
        assert merge(a, b) == 2
    run(tmp_path / "a.db", "one", 4)
    run(tmp_path / "b.db", "one", 4)
    with Storage(tmp_path / "a.db") as a, Storage(tmp_path / "b.db") as b:
        last = [s.rounds(s.studies()[0].id)[-1] for s in (a, b)]
        assert np.array_equal(last[0].x, last[1].x)


def test_two_different_studies_of_one_name_are_refused(tmp_path: Path) -> None:
    run(tmp_path / "a.db", "one", 2)
    run(tmp_path / "b.db", "one", 2, seed=1)
    with Storage(tmp_path / "a.db") as a, Storage(tmp_path / "b.db") as b:
        with pytest.raises(StorageError, match="'one' have different settings"):
            merge(a, b)
        assert len(a.rounds(a.studies()[0].id)) == 2


def test_cells_of_a_grid_run_on_two_machines(tmp_path: Path) -> None:
    cells = grid(["tfbind8"], ["random"], range(2), rounds=1, batch=5)
    with Storage(tmp_path / "a.db") as a, Storage(tmp_path / "b.db") as b:
        list(run_grid(cells[:1], a))
        list(run_grid(cells[1:], b))
        assert merge(a, b) == 1
        assert all(result.complete for result in run_grid(cells, a))
        assert len(a.studies()) == 2
