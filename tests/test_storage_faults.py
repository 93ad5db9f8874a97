"""Whatever happens to a storage while a study runs: a clear error that says what to do, and nothing stored is lost."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from diffbbo import Storage, Study, databases, make_optimizer
from diffbbo.export import designs
from diffbbo.merge import merge
from diffbbo.schema import Outcome
from diffbbo.types import MissingExtraError, StorageError
from tests.chaos_child import REFUSED
from tests.oracles import LINE, task
from tests.postgres import Server, missing, server
from tests.test_storage import add_study
from tests.test_storage_upgrade import VERSION_1

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    if missing():
        pytest.skip(missing())
    with server() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new storage in each kind of database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'a.db'}"
    database: Server = request.getfixturevalue("postgres")
    return database.database(f"test{time.monotonic_ns()}")


def study(storage: Storage, name: str = "s") -> Study:
    problem = task(start=([[1.0], [2.0]], [1.0, 4.0]))
    return Study(problem, make_optimizer("evolution", LINE), storage, name)


def table(storage: Storage) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if key != "seconds"} for row in designs(storage)]


@pytest.fixture(scope="module")
def undisturbed() -> list[dict[str, Any]]:
    """Three rounds of ten that nothing happened to."""
    with Storage("sqlite://") as storage:
        study(storage).run(3, 10)
        return table(storage)


# ---- two processes run the same study by mistake ---------------------------------------------------


@contextmanager
def running(url: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that runs a study for long, from when its first result is stored."""
    command = [sys.executable, "-m", "tests.chaos_child", url, str(log), "1000", "40"]
    child = subprocess.Popen(command, cwd=ROOT)
    try:
        while not (log.exists() and '"stored"' in log.read_text()):
            assert child.poll() is None, f"it ended with exit code {child.returncode}"
            time.sleep(0.05)
        yield child
    finally:
        child.kill()
        child.wait()


def second(url: str, log: Path) -> str:
    """What a second process is told."""
    command = [sys.executable, "-m", "tests.chaos_child", url, str(log), "1000", "40"]
    assert subprocess.run(command, cwd=ROOT, timeout=300).returncode == REFUSED
    (said,) = [entry["text"] for entry in map(json.loads, log.read_text().splitlines())]  # it evaluated nothing
    return str(said)


def test_a_second_process_is_refused_by_name_and_a_killed_one_holds_nothing(url: str, tmp_path: Path) -> None:
    with running(url, tmp_path / "first.log") as first:
        said = second(url, tmp_path / "second.log")
        named = f"'chaos' in .* is being run by process {first.pid} on {platform.node()!r} since (.*) UTC"
        found = re.search(named, said)
        assert found, said
        with Storage(url) as storage, storage.engine.connect() as connection:
            (started,) = connection.execute(sa.text("SELECT started FROM run")).one()
        assert found[1] == str(started)[:19] and "another name" in said
        first.send_signal(signal.SIGKILL)
        first.wait()
        with running(url, tmp_path / "third.log") as third:  # at once, and nothing had to be cleaned up
            with Storage(url) as storage, storage.engine.connect() as connection:
                owners = connection.execute(sa.text("SELECT pid FROM run ORDER BY id")).scalars().all()
            assert owners == [first.pid, third.pid]


def test_the_same_study_twice_in_one_process(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(databases, "GRACE", 0.1)
    with Storage(url) as storage, Storage(url) as other:
        steps = study(storage).steps(3, 10)
        next(steps)
        for place in (storage, other):
            with pytest.raises(StorageError, match=f"run by process {os.getpid()} on"):
                study(place).run(3, 10)
        study(other, "another").run(1, 5)  # beside it, another one may run
        steps.close()  # whoever stops in the middle lets go
        assert len(study(other).run(3, 10)) == 3


def test_a_lock_leaves_no_file_behind(tmp_path: Path) -> None:
    (tmp_path / "a.db-study1.lock").touch()  # of a process that was killed
    with Storage(tmp_path / "a.db") as storage:
        study(storage).run(1, 5)
    assert [path.name for path in tmp_path.iterdir()] == ["a.db"]


def test_a_storage_in_memory_needs_no_lock(undisturbed: list[dict[str, Any]]) -> None:
    with Storage("sqlite://") as storage:
        study(storage).run(3, 10)
        assert table(storage) == undisturbed


def test_merging_into_a_study_that_is_running_is_refused(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databases, "GRACE", 0.1)
    with Storage(url) as target, Storage(tmp_path / "b.db") as source:
        study(source).run(3, 10)
        steps = study(target).steps(3, 10)
        next(steps)
        with pytest.raises(StorageError, match=r"'s' in .* is being run by process"):
            merge(target, source)
        steps.close()
        assert merge(target, source) == 2


def test_a_round_is_merged_with_its_results_or_not_at_all(tmp_path: Path, undisturbed: list[dict[str, Any]]) -> None:
    """Stopped between the two, designs that have results elsewhere would be evaluated again."""
    with Storage(tmp_path / "a.db") as target, Storage(tmp_path / "b.db") as source:
        study(source).run(3, 10)
        with failing(target, "INSERT INTO result"), pytest.raises(StorageError, match="Round 1 of 10 designs"):
            merge(target, source)
        assert table(target) == []
        assert merge(target, source) == 3
        assert table(target) == undisturbed


@contextmanager
def failing(storage: Storage, statement: str) -> Iterator[None]:
    """The database fails at the first such statement."""

    def fail(connection: Any, cursor: Any, text: str, parameters: Any, *_: Any) -> None:
        if text.startswith(statement):
            raise sa.exc.OperationalError(text, parameters, sqlite3.OperationalError("disk I/O error"))

    sa.event.listen(storage.engine, "before_cursor_execute", fail)
    yield
    sa.event.remove(storage.engine, "before_cursor_execute", fail)


# ---- a full disk -----------------------------------------------------------------------------------


def fill_up(storage: Storage, undisturbed: list[dict[str, Any]]) -> None:
    """Run until there is no room, and check what is said and what is left."""
    with pytest.raises(StorageError) as caught:
        for number in range(1000):
            study(storage, f"filler-{number}").run(3, 10)
    assert "disk is full" in caught.value.message and "could not be stored" in caught.value.message
    assert "Free some space" in caught.value.remedy and "nothing stored so far is lost" in caught.value.remedy
    rows = table(storage)
    assert rows[:30] == [{**row, "study": "filler-0"} for row in undisturbed]


def finish(storage: Storage, undisturbed: list[dict[str, Any]]) -> None:
    """There is room again: the one that was stopped goes on to the same end."""
    last = storage.studies()[-1].name
    study(storage, last).run(3, 10)
    assert table(storage)[-30:] == [{**row, "study": last} for row in undisturbed]


def test_a_file_that_may_not_grow(tmp_path: Path, undisturbed: list[dict[str, Any]]) -> None:
    """What SQLite says on a full disk, without one: a limit on its pages."""
    with Storage(tmp_path / "a.db") as storage:
        limit = lambda connection, _: connection.execute("PRAGMA max_page_count = 40")  # noqa: E731
        sa.event.listen(storage.engine, "connect", limit)
        storage.engine.dispose()
        fill_up(storage, undisturbed)
        sa.event.remove(storage.engine, "connect", limit)
        storage.engine.dispose()
        finish(storage, undisturbed)


@contextmanager
def small_disk(size: str) -> Iterator[Path]:
    """A file system of its own."""
    with tempfile.TemporaryDirectory() as folder:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder]
        if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
            pytest.skip("only root can mount a small disk, and not everywhere")
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_disk_that_is_full(undisturbed: list[dict[str, Any]]) -> None:
    with small_disk("500k") as folder:
        (folder / "other").write_bytes(bytes(100_000))
        with Storage(folder / "a.db") as storage:
            fill_up(storage, undisturbed)
            (folder / "other").unlink()
            finish(storage, undisturbed)


def test_a_server_whose_disk_is_full(undisturbed: list[dict[str, Any]]) -> None:
    if missing():
        pytest.skip(missing())
    with small_disk("16m") as folder, server() as own:
        shutil.chown(folder, own.folder.owner(), own.folder.group())
        own.execute(f"CREATE TABLESPACE small LOCATION '{folder}'")
        own.execute("CREATE DATABASE small TABLESPACE small")
        with Storage(own.url("small")) as storage:
            study(storage, "filler-0").run(3, 10)
            other = folder / "other"
            with other.open("wb", buffering=0) as handle, pytest.raises(OSError, match="No space left"):
                while True:  # all that is left, to the last byte
                    handle.write(bytes(4096))
            fill_up(storage, undisturbed)
            other.unlink()
            finish(storage, undisturbed)


# ---- what may only be read -------------------------------------------------------------------------


@pytest.fixture
def ordinary() -> Iterator[Path]:
    """A folder of an ordinary user, as whom the test runs: root may write anywhere."""
    folder = Path(tempfile.mkdtemp())
    root = os.geteuid() == 0
    if root:
        os.chown(folder, 65534, 65534)
        os.seteuid(65534)
    try:
        yield folder
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(0o700)
        shutil.rmtree(folder)


@pytest.mark.parametrize("closed", ["file", "folder"])
def test_a_storage_that_may_only_be_read(ordinary: Path, closed: str, undisturbed: list[dict[str, Any]]) -> None:
    path = ordinary / "a.db"
    with Storage(path) as storage:
        study(storage).run(2, 10)
        path.chmod(0o444)
        if closed == "folder":
            ordinary.chmod(0o555)
        with Storage(path, create=False) as reader:
            assert table(reader) == undisturbed[:20], "reading goes on"
            with pytest.raises(StorageError, match=r"may only be read.*writable") as caught:
                study(reader).run(3, 10)
            assert str(path) in caught.value.message
            with pytest.raises(StorageError, match=r"may only be read.*Start data of 1 rows.*writable"):
                reader.add_dataset(np.array([[3.0]]), np.array([9.0]))
        ordinary.chmod(0o755)
        path.chmod(0o644)
    with Storage(path) as storage:
        study(storage).run(3, 10)
        assert table(storage) == undisturbed


def test_an_old_file_that_may_only_be_read_says_so(ordinary: Path) -> None:
    path = ordinary / "old.db"
    connection = sqlite3.connect(path)
    connection.executescript(VERSION_1.read_text())
    connection.close()
    path.chmod(0o444)
    with pytest.raises(StorageError, match=r"may only be read.*Schema version 2 could not be stored"):
        Storage(path, create=False)


def test_a_server_that_may_only_be_read(postgres: Server, undisturbed: list[dict[str, Any]]) -> None:
    """As a standby is."""
    url = postgres.database("standby")
    with Storage(url) as storage:
        study(storage).run(2, 10)
    postgres.execute("ALTER DATABASE standby SET default_transaction_read_only = on")
    with Storage(url) as storage:
        with pytest.raises(StorageError, match=r"may only be read.*That 's' is run here could not be stored"):
            study(storage).run(3, 10)
        assert table(storage) == undisturbed[:20]


# ---- lost connections ------------------------------------------------------------------------------


CUT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = '{}'"


def test_a_connection_lost_during_a_write(postgres: Server, undisturbed: list[dict[str, Any]]) -> None:
    """Cut after the fourth result of the second round was sent, before it is committed."""
    with Storage(postgres.database("lost")) as storage:
        written = 0

        def cut(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
            nonlocal written
            written += statement.startswith("INSERT INTO result")
            if written == 14:
                written += 1
                postgres.execute(CUT.format("lost"))

        sa.event.listen(storage.engine, "after_cursor_execute", cut)
        mine = study(storage)
        with pytest.raises(StorageError, match=r"connection was lost.*The result .* of design 14 may not") as caught:
            mine.run(3, 10)
        assert repr(undisturbed[13]["value"]) in caught.value.message, "what was measured is not lost either"
        assert "run again" in caught.value.remedy
        assert table(storage)[:13] == undisturbed[:13]
        assert [row["status"] for row in table(storage)[13:]] == ["asked"] * 7
        mine.run(3, 10)
        assert table(storage) == undisturbed


def test_a_server_restarted_between_two_writes_is_waited_for(
    postgres: Server, undisturbed: list[dict[str, Any]]
) -> None:
    with Storage(postgres.database("restarted")) as storage:
        for entry in study(storage).steps(3, 10):
            postgres.kill() if entry.round == 1 else postgres.stop()
            postgres.start()
        assert table(storage) == undisturbed


def test_who_lost_the_study_with_the_connection_is_refused(postgres: Server, undisturbed: list[dict[str, Any]]) -> None:
    url = postgres.database("taken")
    with Storage(url) as first, Storage(url) as other:
        ours = study(first).steps(3, 10)
        next(ours)
        postgres.execute(CUT.format("taken"))
        theirs = study(other).steps(3, 10)
        next(theirs)
        with pytest.raises(StorageError, match=r"'s' in .* is being run by process"):
            next(ours)
        assert [entry.round for entry in theirs] == [2, 3]
        assert table(first) == undisturbed


def test_a_server_that_does_not_answer(tmp_path: Path) -> None:
    if missing():
        pytest.skip(missing())
    for url in (f"postgresql://someone:secret@/x?host={tmp_path}", "postgresql+psycopg://someone:secret@127.0.0.1:1/x"):
        with pytest.raises(StorageError, match=r"there is no answer.*server is running") as caught:
            Storage(url)
        assert "secret" not in str(caught.value) and "someone:***@" in caught.value.message


def test_a_database_that_is_not_there(postgres: Server) -> None:
    with pytest.raises(StorageError, match=r'no such database or user.*"nowhere" does not exist.*createdb'):
        Storage(postgres.url("nowhere"))


# ---- PostgreSQL is as good as SQLite ---------------------------------------------------------------


def test_a_study_in_postgresql_equals_the_one_in_sqlite(postgres: Server, undisturbed: list[dict[str, Any]]) -> None:
    with Storage(postgres.database("same")) as storage:
        study(storage).run(2, 10)
        study(storage).run(3, 10)
        assert table(storage) == undisturbed


def test_numbers_and_texts_come_back_exactly(url: str, rng: np.random.Generator) -> None:
    x = rng.normal(size=(4, 3)) * 10.0 ** rng.integers(-300, 300, size=(4, 3))
    value, seed = float(np.nextafter(0.1, 1)), 2**40
    with Storage(url) as storage:
        key = add_study(storage, "é" * 200)
        start = storage.studies()[0].start
        storage.add_study("big", task="t", method="m", seed=seed, minimize=True, settings={}, space={}, start=start,
                          environment={})  # fmt: skip
        storage.add_round(key, 1, x, np.array([0, 1, 2, -1]), {"notes": ["\x00é"]})
        ids = storage.rounds(key)[0].ids
        # Half a character and a zero, as a program's output may hold them: neither can be stored.
        storage.add_results([(ids[0], Outcome("ok", value)), (ids[2], Outcome("error", error="a\x00b\udc80 é"))])
        (entry,) = storage.rounds(key)
        assert storage.studies()[1].seed == seed and storage.studies()[1].minimize is True
        assert np.array_equal(storage.dataset(start)[0], [[1.0]])
    assert np.array_equal(entry.x, x) and entry.member.tolist() == [0, 1, 2, -1]
    assert entry.value[0] == value and entry.status == ["ok", "", "error", ""]
    assert entry.error[2] == "a?b? é" and entry.info == {"notes": ["\x00é"]}


def test_processes_that_open_a_new_storage_at_once_make_it_once(url: str) -> None:
    code = f"from diffbbo import Storage; print(Storage({url!r}).studies())"
    several = [subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE) for _ in range(4)]
    assert [child.communicate(timeout=300)[0].strip() for child in several] == [b"[]"] * 4


def test_an_old_database_in_postgresql_is_upgraded(postgres: Server) -> None:
    from tests.test_storage_upgrade import shape

    url = postgres.database("old")
    with Storage(url) as storage:
        add_study(storage)
        today = shape(storage.engine)
        with storage.engine.begin() as connection:  # back to version 1
            connection.exec_driver_sql("DROP TABLE run")
            connection.exec_driver_sql("ALTER TABLE study ALTER COLUMN seed TYPE INTEGER")
            connection.exec_driver_sql("UPDATE diffbbo_schema SET version = 1")
        assert shape(storage.engine) != today
    with Storage(url, create=False) as storage:
        assert shape(storage.engine) == today and storage.studies()[0].name == "s"


def test_a_missing_driver_and_an_unknown_kind_say_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtraError, match=r'pip install "diffbbo\[postgres\]"'):
        Storage("postgresql://host/name")
    with pytest.raises(StorageError, match=r"mysql.*Use sqlite:///"):
        Storage("mysql+pymysql://host/name")


# ---- readers ---------------------------------------------------------------------------------------


def test_a_reader_that_polls_ten_times_a_second(url: str, undisturbed: list[dict[str, Any]]) -> None:
    """It sees whole rounds and ever more results, each as it will stay; the study does not notice it."""
    seen: list[list[dict[str, Any]]] = []
    over = threading.Event()

    def poll() -> None:
        while not over.wait(0.1):
            with Storage(url, create=False) as reader:  # a new one each time, as a command line would
                seen.append(table(reader))
            with Storage(url, create=False) as reader:
                seen.append(table(reader))

    with Storage(url) as storage:
        slow = Study(task(slow_square, start=([[1.0], [2.0]], [1.0, 4.0])), make_optimizer("evolution", LINE), storage,
                     "s")  # fmt: skip
        thread = threading.Thread(target=poll)
        thread.start()
        try:
            slow.run(3, 10)
        finally:
            over.set()
            thread.join()
        assert table(storage) == undisturbed
    assert len({sum(row["status"] == "ok" for row in rows) for rows in seen}) > 3, "it looked while the study ran"
    for rows, later in pairwise(seen):
        assert len(rows) % 10 == 0, "a round is there with all its designs or not at all"
        for row, last in zip(rows, later, strict=False):
            assert row == last or (row["status"] == "asked" and last["status"] == "ok")
        assert len(later) >= len(rows)


def slow_square(design: Any) -> float:
    time.sleep(0.05)
    return float(design["x"]) ** 2
