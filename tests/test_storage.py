"""What is stored comes back exactly, and what cannot be opened says so."""

from __future__ import annotations

import csv
import os
import sqlite3
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from diffbbo import Space, Storage, Study, make_optimizer
from diffbbo.export import export
from diffbbo.schema import Outcome
from diffbbo.types import InputError, StorageError
from diffbbo.variables import Categorical, Integer, Real, Sequence
from tests.oracles import task


def add_study(storage: Storage, name: str = "s", space: Space | None = None) -> int:
    space = space or Space((Real("x", 0, 10),))
    start = storage.add_dataset(np.array([[1.0]]), np.array([2.0]))
    storage.add_study(name, task="t", method="m", seed=0, minimize=False, settings={"a": 1}, space=space.to_dict(),
                      start=start, environment={})  # fmt: skip
    record = storage.study(name)
    assert record is not None
    return record.id


def test_designs_and_results_come_back_bit_for_bit(tmp_path: Path, rng: np.random.Generator) -> None:
    x = rng.normal(size=(5, 3)) * 10.0 ** rng.integers(-300, 300, size=(5, 3))
    with Storage(tmp_path / "a.db") as storage:
        study = add_study(storage)
        storage.add_round(study, 1, x, np.array([0, 1, 2, -1, 4]), {"weight": 0.8, "notes": ["é"]})
        (entry,) = storage.rounds(study)
        assert entry.status == [""] * 5 and entry.open.tolist() == [0, 1, 2, 3, 4]
        value = float(np.nextafter(0.1, 1))
        storage.add_results([(entry.ids[3], Outcome("ok", value, seconds=0.5)), (entry.ids[1], Outcome("died"))])
    with Storage(tmp_path / "a.db") as storage:
        (entry,) = storage.rounds(study)
    assert np.array_equal(entry.x, x)
    assert entry.member.tolist() == [0, 1, 2, -1, 4]
    assert entry.info == {"weight": 0.8, "notes": ["é"]}
    assert entry.value[3] == value and np.isnan(entry.value[1])
    assert entry.status == ["", "died", "", "ok", ""] and entry.open.tolist() == [0, 2, 4]


def test_a_design_has_one_result_ever(tmp_path: Path) -> None:
    with Storage(tmp_path / "a.db") as storage:
        study = add_study(storage)
        storage.add_round(study, 1, np.array([[1.0]]), np.array([-1]), {})
        (entry,) = storage.rounds(study)
        storage.add_results([(entry.ids[0], Outcome("ok", 1.0))])
        with pytest.raises(StorageError, match=r"The result 2\.0 of design 1 .* there is one already"):
            storage.add_results([(entry.ids[0], Outcome("ok", 2.0))])
        with pytest.raises(StorageError, match=r"Round 1 of 1 designs .* there is one already"):
            storage.add_round(study, 1, np.array([[2.0]]), np.array([-1]), {})
        assert storage.rounds(study)[0].value.tolist() == [1.0]


def test_start_data_are_stored_once(tmp_path: Path, rng: np.random.Generator) -> None:
    x, y = rng.normal(size=(100, 4)), rng.normal(size=100)
    with Storage(tmp_path / "a.db") as storage:
        assert storage.add_dataset(x, y) == storage.add_dataset(x.copy(), y.copy())
        assert storage.add_dataset(x, y + 1) != storage.add_dataset(x, y)
        back = storage.dataset(storage.add_dataset(x, y))
        assert np.array_equal(back[0], x) and np.array_equal(back[1], y)
        with storage.engine.connect() as connection:
            assert connection.execute(sa.text("select count(*) from dataset")).scalar() == 2


def test_sqlite_runs_in_wal_mode_and_waits_for_the_disk(tmp_path: Path) -> None:
    with Storage(tmp_path / "a.db") as storage, storage.engine.connect() as connection:
        assert connection.execute(sa.text("pragma journal_mode")).scalar() == "wal"
        assert connection.execute(sa.text("pragma synchronous")).scalar() == 2  # FULL


def test_an_open_reader_does_not_block_the_study(tmp_path: Path) -> None:
    """A read transaction held open all the while: every write goes through, and the reader sees its old snapshot."""
    storage = Storage(tmp_path / "a.db")
    optimizer = make_optimizer("random", task().space)
    reader = sqlite3.connect(tmp_path / "a.db", timeout=0)
    reader.execute("begin")
    assert reader.execute("select count(*) from result").fetchone() == (0,)
    Study(task(), optimizer, storage, "s").run(rounds=2, batch=5)
    assert reader.execute("select count(*) from result").fetchone() == (0,)
    reader.rollback()
    assert reader.execute("select count(*) from result").fetchone() == (10,)
    reader.close()
    storage.close()


def assert_refused(url: object, match: str, **settings: bool) -> None:
    with pytest.raises(StorageError, match=match) as caught:
        Storage(url, **settings)  # type: ignore[arg-type]
    assert caught.value.remedy


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("yield was 3 %")
    assert_refused(tmp_path / "notes.txt", "is not a database")
    assert (tmp_path / "notes.txt").read_text() == "yield was 3 %", "it is left as it was"
    assert_refused(tmp_path, "is a folder")
    assert_refused(tmp_path / "notes.txt" / "a.db", "cannot be created")
    assert_refused("nonsense://host/db", "cannot be opened")
    assert_refused(tmp_path / "missing.db", "no storage at", create=False)
    assert not (tmp_path / "missing.db").exists(), "looking for it does not make it"


def test_a_damaged_database(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    path.write_bytes(b"SQLite format 3\x00" + b"garbage" * 1000)
    assert_refused(path, "failed")


def test_somebody_elses_database(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("create table samples (id integer)")
    connection.close()
    assert_refused(tmp_path / "other.db", "not one of diffbbo")


def test_a_schema_from_the_future(tmp_path: Path) -> None:
    Storage(tmp_path / "a.db").close()
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("update diffbbo_schema set version = 99")
    connection.close()
    assert_refused(tmp_path / "a.db", r"version 99.*knows version 2.*upgrade")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a file system that refuses new files")
def test_a_folder_that_cannot_be_written() -> None:
    """/proc refuses new files even to root."""
    assert_refused("/proc/diffbbo.db", "cannot be created")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        assert_refused(tmp_path / "a.db", "cannot be created")
    finally:
        tmp_path.chmod(0o700)


MIXED = Space((Real("t", 0, 1), Integer("value", 1, 9), Categorical("s", ("water", "thf")), Sequence("dna", 3, "ACGT")))


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_export_holds_every_design_with_its_result(tmp_path: Path, suffix: str) -> None:
    import pandas as pd

    x = MIXED.fill(3, np.random.default_rng(0))
    with Storage(tmp_path / "a.db") as storage:
        study = add_study(storage, space=MIXED)
        storage.add_round(study, 1, x, np.array([0, 1, -1]), {})
        ids = storage.rounds(study)[0].ids
        storage.add_results([(ids[0], Outcome("ok", 1.25, seconds=2.0)), (ids[2], Outcome("error", error="a, b"))])
        assert export(storage, tmp_path / f"out{suffix}") == 3
    path = tmp_path / f"out{suffix}"
    # pandas rounds a CSV's last digit in some of its versions, so that is read as it stands.
    csv_rows = csv.DictReader(path.read_text().splitlines()) if suffix == ".csv" else []
    rows = list(csv_rows) or pd.read_parquet(path).to_dict("records")
    assert [row["status"] for row in rows] == ["ok", "asked", "error"]
    assert [str(row["value"]) for row in rows] == ["1.25", *([""] * 2 if suffix == ".csv" else ["nan"] * 2)]
    assert rows[2]["error"] == "a, b"
    designs = MIXED.dicts(x)
    assert [int(row["design.value"]) for row in rows] == [d["value"] for d in designs], "a variable called 'value'"
    assert [float(row["t"]) for row in rows] == [d["t"] for d in designs], "to the last bit"
    assert [row["dna"] for row in rows] == [d["dna"] for d in designs]


def test_export_of_an_unknown_study_names_the_nearest(tmp_path: Path) -> None:
    with Storage(tmp_path / "a.db") as storage:
        add_study(storage, "tfbind8-random-0")
        with pytest.raises(InputError, match="Did you mean 'tfbind8-random-0'"):
            export(storage, tmp_path / "out.csv", "tfbind8-random-1")


def test_export_to_an_unknown_format(tmp_path: Path) -> None:
    with Storage(tmp_path / "a.db") as storage, pytest.raises(InputError, match=r"\.csv or \.parquet"):
        export(storage, tmp_path / "out.xlsx")
