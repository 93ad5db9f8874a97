"""Where studies live: SQLAlchemy 2, SQLite by default, other databases by URL.

Everything is only ever added, never changed: a study, its rounds, their designs before they are evaluated, and every
result as it arrives. Only the study writes; a reader never blocks it (SQLite runs in WAL mode).
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
import weakref
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.engine import Connection, make_url

from .schema import (
    SCHEMA_VERSION,
    Outcome,
    RoundRecord,
    StudyRecord,
    dataset_table,
    design_table,
    result_table,
    round_table,
    schema_table,
    study_table,
    tables,
)
from .types import Array, StorageError

PATIENCE = 60  # seconds to wait for another writer of the same file
SQLITE_HEADER = b"SQLite format 3\x00"


class Storage:
    """A database of studies, from a URL (`sqlite:///runs.db`) or the path of a SQLite file."""

    def __init__(self, url: str | Path, *, create: bool = True) -> None:
        self.url = _url(url)
        try:
            parsed = make_url(self.url)
            self.engine = sa.create_engine(parsed, connect_args={"timeout": PATIENCE} if _is_sqlite(parsed) else {})
        except (sa.exc.ArgumentError, ImportError) as error:
            raise StorageError(f"The storage {self.url!r} cannot be opened: {error}.",
                               "Use a URL such as sqlite:///runs.db, and install its driver.") from error  # fmt: skip
        if _is_sqlite(parsed):
            _check_file(parsed.database, create)
            sa.event.listen(self.engine, "connect", _configure_sqlite)
        weakref.finalize(self, self.engine.dispose)  # whoever forgets to close leaves no open file behind
        self._check_schema(create)

    def close(self) -> None:
        self.engine.dispose()

    def __enter__(self) -> Storage:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _connect(self, write: bool = False) -> Iterator[Connection]:
        """A transaction, with the database's own errors turned into ours."""
        try:
            with self.engine.begin() if write else self.engine.connect() as connection:
                yield connection
        except sa.exc.IntegrityError:
            raise
        except sa.exc.DBAPIError as error:
            raise StorageError(f"The storage {self.url!r} failed: {error.orig}.",
                               "Check that it is a writable diffbbo database; nothing stored so far is lost.",
                               ) from error  # fmt: skip

    def _check_schema(self, create: bool) -> None:
        """Make the tables of a new storage, all or none; refuse a database that is not ours or too new."""
        with self._connect() as connection:
            found = self._version(connection)
        if found is None and create:
            with self._connect(write=True) as connection:
                if self.engine.dialect.name == "sqlite":
                    # Python's sqlite3 would commit every table by itself; and another process may be at it too.
                    connection.exec_driver_sql("BEGIN IMMEDIATE")
                found = self._version(connection)
                if found is None:
                    tables.create_all(connection)
                    connection.execute(schema_table.insert().values(version=SCHEMA_VERSION))
                    found = SCHEMA_VERSION
        if found is None:
            raise StorageError(f"{self.url!r} holds no studies.", "Check the path, or run a study first.")
        if found != SCHEMA_VERSION:
            raise StorageError(
                f"{self.url!r} has schema version {found}; this diffbbo knows version {SCHEMA_VERSION}.",
                "It was written by a newer release: upgrade diffbbo.",
            )

    def _version(self, connection: Connection) -> int | None:
        """The schema version; None for an empty database."""
        names = sa.inspect(connection).get_table_names()
        if schema_table.name in names:
            return int(connection.execute(sa.select(schema_table.c.version)).scalar_one())
        if names:
            raise StorageError(f"{self.url!r} is a database, but not one of diffbbo.", "Choose another file.")
        return None

    # ---- writing -----------------------------------------------------------------------------------

    def add_study(
        self, name: str, *, task: str, method: str, seed: int, minimize: bool, settings: dict[str, Any],
        space: dict[str, Any], start: str, environment: dict[str, Any],
    ) -> None:  # fmt: skip
        row = {
            "name": name, "task": task, "method": method, "seed": seed, "minimize": minimize, "start": start,
            "settings": json.dumps(settings), "space": json.dumps(space), "environment": json.dumps(environment),
            "created": _now(),
        }  # fmt: skip
        try:
            with self._connect(write=True) as connection:
                connection.execute(study_table.insert().values(row))
        except sa.exc.IntegrityError as error:
            raise StorageError(f"A study named {name!r} was begun here at the same moment.",
                               "Run it once, or give this one another name.") from error  # fmt: skip

    def add_dataset(self, x: Array, y: Array) -> str:
        """Store start data, and return the name under which a study refers to them."""
        content = _bytes(x), _bytes(y)
        sha256 = hashlib.sha256(b"%d " % len(y) + content[0] + content[1]).hexdigest()
        with self._connect() as connection:
            if connection.execute(sa.select(dataset_table.c.rows).filter_by(sha256=sha256)).first():
                return sha256
        row = {"sha256": sha256, "rows": len(y), "x": zlib.compress(content[0]), "y": zlib.compress(content[1])}
        try:
            with self._connect(write=True) as connection:
                connection.execute(dataset_table.insert().values(row))
        except sa.exc.IntegrityError:  # another study stored the same data meanwhile
            pass
        return sha256

    def add_round(self, study: int, number: int, x: Array, member: NDArray[np.intp], info: dict[str, Any]) -> None:
        """Store a whole batch, all or nothing, before any of it is evaluated."""
        with self._connect(write=True) as connection:
            row = {"study": study, "number": number, "info": json.dumps(info), "created": _now()}
            (key,) = connection.execute(round_table.insert().values(row)).inserted_primary_key or (None,)
            connection.execute(
                design_table.insert(),
                [{"round": key, "position": i, "member": int(member[i]), "x": _bytes(row)} for i, row in enumerate(x)],
            )

    def add_results(self, outcomes: list[tuple[int, Outcome]]) -> None:
        """Store results as (design id, outcome)."""
        rows = [
            {
                "design": key, "status": outcome.status, "error": outcome.error, "seconds": outcome.seconds,
                "value": outcome.value if outcome.status == "ok" else None, "finished": _now(),
            }
            for key, outcome in outcomes
        ]  # fmt: skip
        with self._connect(write=True) as connection:
            connection.execute(result_table.insert(), rows)

    # ---- reading -----------------------------------------------------------------------------------

    def studies(self, name: str | None = None) -> list[StudyRecord]:
        """Every study (or the one of that name), oldest first."""
        query = sa.select(study_table).order_by(study_table.c.id)
        with self._connect() as connection:
            rows = connection.execute(query if name is None else query.filter_by(name=name)).mappings().all()
        return [
            StudyRecord(**{
                **row, **{key: json.loads(row[key]) for key in ("settings", "space", "environment")}
            })
            for row in rows
        ]  # fmt: skip

    def study(self, name: str) -> StudyRecord | None:
        return next(iter(self.studies(name)), None)

    def dataset(self, sha256: str) -> tuple[Array, Array]:
        with self._connect() as connection:
            row = connection.execute(sa.select(dataset_table).filter_by(sha256=sha256)).mappings().one()
        y = np.frombuffer(zlib.decompress(row["y"]), dtype="<f8")
        x = np.frombuffer(zlib.decompress(row["x"]), dtype="<f8")
        return x.reshape(len(y), -1) if len(y) else x.reshape(0, 0), y

    def rounds(self, study: int, number: int | None = None) -> list[RoundRecord]:
        """The rounds of a study (or the one with that number), in order, with all that is known of their designs."""
        which = round_table.c.study == study
        if number is not None:
            which &= round_table.c.number == number
        with self._connect() as connection:
            heads = connection.execute(sa.select(round_table).where(which).order_by(round_table.c.number)).all()
            rows = connection.execute(
                sa.select(design_table, result_table)
                .outerjoin(result_table, result_table.c.design == design_table.c.id)
                .join(round_table, round_table.c.id == design_table.c.round)
                .where(which)
                .order_by(design_table.c.round, design_table.c.position)
            ).all()
        grouped: dict[int, list[Any]] = {head.id: [] for head in heads}
        for row in rows:
            grouped.setdefault(row.round, []).append(row)
        return [_round(head, grouped[head.id]) for head in heads]


def _round(head: Any, rows: list[Any]) -> RoundRecord:
    return RoundRecord(
        number=head.number,
        info=json.loads(head.info),
        ids=[row.id for row in rows],
        x=np.stack([np.frombuffer(row.x, dtype="<f8") for row in rows]),
        member=np.array([row.member for row in rows], dtype=np.intp),
        value=np.array([np.nan if row.value is None else row.value for row in rows]),
        status=[row.status or "" for row in rows],
        error=[row.error or "" for row in rows],
        seconds=np.array([np.nan if row.seconds is None else row.seconds for row in rows]),
    )


def _bytes(array: Array) -> bytes:
    return np.ascontiguousarray(array, dtype="<f8").tobytes()


def _now() -> datetime:
    return datetime.now(UTC)


def _url(url: str | Path) -> str:
    """A path becomes a SQLite URL."""
    text = str(url)
    return text if "://" in text else f"sqlite:///{text}"


def _is_sqlite(url: sa.URL) -> bool:
    return url.get_backend_name() == "sqlite"


def _check_file(path: str | None, create: bool) -> None:
    """A SQLite file that can be opened, or an error that says why not."""
    if path in (None, "", ":memory:"):
        return
    file = Path(str(path))
    if file.is_dir():
        raise StorageError(f"{path} is a folder.", "Name a file, such as runs/study.db.")
    if file.exists():
        try:
            with file.open("rb") as handle:
                head = handle.read(len(SQLITE_HEADER))
        except OSError as error:
            raise StorageError(f"{path} cannot be read: {error}.", "Check its permissions.") from error
        if head and head != SQLITE_HEADER:
            raise StorageError(f"{path} is not a database.", "Name another file; this one is left as it is.")
        return
    if not create:
        raise StorageError(f"There is no storage at {path}.", "Check the path, or run a study first.")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    except OSError as error:
        raise StorageError(f"{path} cannot be created: {error}.", "Choose a folder you can write to.") from error


def _configure_sqlite(connection: Any, _: Any) -> None:
    """Write-ahead log, and wait for the disk. Opening may meet another process that opens or closes the same file,
    for which SQLite has no waiting of its own."""
    cursor = connection.cursor()
    deadline = time.monotonic() + PATIENCE
    for setting in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        while True:
            try:
                cursor.execute(f"PRAGMA {setting}")
                break
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
    cursor.close()
