"""What differs between the databases a storage may live in: how one is opened, who holds a study, faults in words."""

from __future__ import annotations

import os
import sqlite3
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine, make_url

from .types import StorageError, need

PATIENCE = 60  # seconds to wait for another writer of the same file, or for a server that is being restarted
GRACE = 2  # seconds to wait for the lock of a process that may just have died
SQLITE_HEADER = b"SQLite format 3\x00"
NAMESPACE = 0x0D1FFBB0  # our advisory locks in a PostgreSQL database are (NAMESPACE, study); (NAMESPACE, 0): the tables
# A vanished server or client would otherwise be noticed after hours, and a firewall would cut a line that is idle.
KEEPALIVE = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
CONNECT = KEEPALIVE | {"connect_timeout": 10, "tcp_user_timeout": 1000 * PATIENCE}

# (what the database says, what that means, what to do); the first that fits
FAULTS = (
    (("disk is full", "no space left", "quota exceeded"), "its disk is full", "Free some space there"),
    (("readonly", "read-only", "permission denied"), "it may only be read",
     "Make it (a file: and its folder) writable, or copy it to where you can write"),
    (("unable to open",), "it cannot be opened", "Check the permissions of the file and its folder"),
    (("is locked",), f"another process has been writing for over {PATIENCE} s", "Wait until that process is done"),
    (("disk i/o error",), "its disk failed", "Check the disk or the network drive"),
    (("does not exist",), "there is no such database or user", "Create it first (createdb NAME), or correct the URL"),
    (("connection to server", "connection timeout", "failed to resolve"), "there is no answer",
     "Check the address and that the server is running"),
)  # fmt: skip


def open_engine(url: str, create: bool) -> Engine:
    """The database behind a URL; a SQLite file is made if it is not there and may be, a server is not asked yet."""
    try:
        parsed = make_url(url)
        if parsed.drivername in ("postgresql", "postgres"):
            parsed = parsed.set(drivername="postgresql+psycopg")  # SQLAlchemy's own choice changes with its version
        kind, driver = parsed.get_backend_name(), parsed.get_driver_name()
    except (sa.exc.ArgumentError, ImportError) as error:
        raise StorageError(f"The storage {url!r} cannot be opened: {error}.",
                           "Use a path, or a URL such as sqlite:///runs.db or postgresql+psycopg://user@host/name.",
                           ) from error  # fmt: skip
    if (kind, driver) == ("sqlite", "pysqlite"):
        _check_file(parsed.database, create)
        engine = sa.create_engine(parsed, connect_args={"timeout": PATIENCE})
        sa.event.listen(engine, "connect", _configure_sqlite)
        return engine
    if (kind, driver) == ("postgresql", "psycopg"):
        need("psycopg", "postgres", "A PostgreSQL storage")
        settings = {key: value for key, value in CONNECT.items() if key not in parsed.query}
        # Pinged before use: the server may have been restarted since the last time.
        return sa.create_engine(parsed, connect_args=settings, pool_pre_ping=True)
    raise StorageError(f"The storage {parsed.render_as_string()!r} cannot be opened: its kind is {parsed.drivername}.",
                       "Use sqlite:///... or postgresql+psycopg://...")  # fmt: skip


def full_url(url: str | Path) -> str:
    """A path becomes a SQLite URL."""
    text = str(url)
    return text if "://" in text else f"sqlite:///{text}"


def shown(engine: Engine, url: str) -> str:
    """The URL as a message may show it: a file by its path, a server without the password."""
    return url.removeprefix("sqlite:///") if engine.dialect.name == "sqlite" else engine.url.render_as_string()


def fault(error: sa.exc.DBAPIError) -> tuple[str, str]:
    """What went wrong, and what to do about it, in the user's words."""
    said = " ".join(str(error.orig).split()).rstrip(".")
    for words, meaning, remedy in FAULTS:
        if any(word in said.lower() for word in words):
            return f"{meaning} ({said})", remedy
    if error.connection_invalidated:
        return f"the connection was lost ({said})", "Check the network and that the server is running"
    return said, "Check that it is a whole diffbbo database that you may write"


def alone(connection: Connection) -> None:
    """Let nobody else make or upgrade tables until this transaction ends."""
    if connection.dialect.name == "sqlite":
        # Python's sqlite3 would begin no transaction for a table, and so commit every one by itself.
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(NAMESPACE, 0)))


# ---- one process at a time runs a study --------------------------------------------------------------
# The lock is one that ends with its holder, even one killed with -9: the operating system's on a file beside the
# SQLite database, the session's in PostgreSQL. There the session that holds a study also writes it, so whoever lost
# the lock with the connection cannot write.

Held = IO[str] | Connection


def lock(engine: Engine, study: int) -> Held | None:
    """Hold a study until `unlock` or the end of this process; None if another does."""
    deadline = time.monotonic() + GRACE
    while True:
        held = _lock_file(engine.url.database, study) if engine.dialect.name == "sqlite" else _session(engine, study)
        if held is not None or time.monotonic() > deadline:
            return held
        time.sleep(0.05)


def unlock(held: Held) -> None:
    if isinstance(held, Connection):
        with suppress(sa.exc.SQLAlchemyError):  # a session that is lost holds nothing any more
            held.rollback()
            held.execute(sa.select(sa.func.pg_advisory_unlock_all()))
            held.commit()
    elif isinstance(held.name, str):
        with suppress(OSError):  # Windows does not remove an open file; left behind, it holds nothing
            Path(held.name).unlink()
    held.close()


def lock_again(engine: Engine, study: int, held: Connection) -> Connection | None:
    """The session that holds a study: the same, or a new one if the server was restarted since; None if it is lost."""
    if not held.invalidated:
        with suppress(sa.exc.DBAPIError):
            held.execute(sa.select(1))
            held.rollback()
            return held
    held.close()
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return _session(engine, study)
        except sa.exc.DBAPIError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def _session(engine: Engine, study: int) -> Connection | None:
    """A connection with the study's advisory lock; None if another has it."""
    connection = engine.connect()
    try:
        for setting, value in KEEPALIVE.items():  # the server's side: it must notice that our machine is gone
            connection.exec_driver_sql(f"SET tcp_{setting} = {value}")
        held = connection.execute(sa.select(sa.func.pg_try_advisory_lock(NAMESPACE, study))).scalar()
        connection.commit()
        if held:
            return connection
    except BaseException:
        connection.close()
        raise
    connection.close()
    return None


def _lock_file(database: str | None, study: int) -> IO[str] | None:
    """An open lock file of our own; None if another process has it."""
    if database in (None, "", ":memory:"):
        return tempfile.TemporaryFile("w")  # nobody else can see this database
    path = Path(f"{Path(str(database)).resolve()}-study{study}.lock")
    try:
        handle = path.open("a")
    except OSError as error:
        raise StorageError(f"The storage may only be read: its lock {path} cannot be made ({error.strerror}).",
                           "Make it and its folder writable; nothing stored so far is lost.") from error  # fmt: skip
    try:
        # Its last holder may have removed the file after we opened it: then what we hold is not what others see.
        if _flock(handle) and os.path.samestat(os.fstat(handle.fileno()), path.stat()):
            return handle
    except FileNotFoundError:
        pass
    except OSError as error:
        handle.close()
        raise StorageError(
            f"{path} cannot be locked: {error.strerror}.", "Keep the storage on a local disk."
        ) from error
    handle.close()
    return None


def _flock(handle: IO[str]) -> bool:
    """The operating system's lock on an open file, not waited for."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


# ---- SQLite ------------------------------------------------------------------------------------------


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
