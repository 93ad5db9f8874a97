"""A storage of an older release becomes one of today, all of it or nothing."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from diffbbo import Storage, Study, make_optimizer, schema, storage
from diffbbo.types import StorageError
from tests.oracles import LINE, task

VERSION_1 = Path(__file__).with_name("version1.sql")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A file as release 0.1.0 wrote it."""
    connection = sqlite3.connect(tmp_path / "old.db")
    connection.executescript(VERSION_1.read_text())
    connection.close()
    return tmp_path / "old.db"


def dump(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    lines = list(connection.iterdump())
    connection.close()
    return lines


def shape(engine: sa.Engine) -> dict[str, Any]:
    """Every table with all that constrains it."""
    look = sa.inspect(engine)
    return {
        table: {
            "columns": [{**column, "type": str(column["type"])} for column in look.get_columns(table)],
            "key": look.get_pk_constraint(table)["constrained_columns"],
            "unique": sorted(entry["column_names"] for entry in look.get_unique_constraints(table)),
            "foreign": sorted(
                (entry["constrained_columns"], entry["referred_table"]) for entry in look.get_foreign_keys(table)
            ),
        }
        for table in look.get_table_names()
    }


def test_every_older_version_has_a_step() -> None:
    assert sorted(schema.UPGRADES) == list(range(1, schema.SCHEMA_VERSION))


def test_an_old_file_becomes_one_of_today_with_all_it_held(old: Path, tmp_path: Path) -> None:
    before = [line for line in dump(old) if line.startswith("INSERT") and "diffbbo_schema" not in line]
    with Storage(old, create=False) as upgraded, Storage(tmp_path / "new.db") as new:
        assert shape(upgraded.engine) == shape(new.engine)
        first, second = upgraded.rounds(1)
        assert len(first.open) == 0 and second.open.tolist() == [1, 2]
        assert np.array_equal(first.value, first.x[:, 0] ** 2)
    after = dump(old)
    assert [line for line in after if line.startswith("INSERT") and "diffbbo_schema" not in line] == before
    assert f'INSERT INTO "diffbbo_schema" VALUES({schema.SCHEMA_VERSION});' in after


def test_a_study_of_an_old_release_goes_on(old: Path) -> None:
    with Storage(old) as opened:
        first, second = opened.rounds(1)
        problem = task(start=([[1.0], [2.0]], [1.0, 4.0]))
        Study(problem, make_optimizer("random", LINE), opened, "old").run(rounds=3, batch=3)
        rounds = opened.rounds(1)
    assert np.array_equal(rounds[0].x, first.x) and np.array_equal(rounds[1].x, second.x)
    assert all(np.array_equal(entry.value, entry.x[:, 0] ** 2) for entry in rounds) and len(rounds) == 3


def test_steps_go_one_after_the_other_and_a_failed_one_leaves_the_file_as_it_was(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version 4 of tomorrow, whose last step fails at first."""
    before = dump(old)

    def to_3(connection: Connection) -> None:
        connection.exec_driver_sql("ALTER TABLE run ADD COLUMN note TEXT")  # needs the table of step 1

    def broken(connection: Connection) -> None:
        connection.exec_driver_sql("ALTER TABLE run ADD COLUMN twice TEXT")
        connection.exec_driver_sql("ALTER TABLE run ADD COLUMN twice TEXT")

    monkeypatch.setattr(schema, "SCHEMA_VERSION", 4)
    monkeypatch.setattr(storage, "SCHEMA_VERSION", 4)
    monkeypatch.setattr(schema, "UPGRADES", {1: schema.UPGRADES[1], 2: to_3, 3: broken})
    with pytest.raises(StorageError, match=r"duplicate column.*nothing stored so far is lost"):
        Storage(old)
    assert dump(old) == before
    monkeypatch.setattr(schema, "UPGRADES", {1: schema.UPGRADES[1], 2: to_3, 3: lambda connection: None})
    with Storage(old) as upgraded:
        assert [column["name"] for column in shape(upgraded.engine)["run"]["columns"]][-1] == "note"
