"""Where studies live: SQLAlchemy 2, SQLite by default, PostgreSQL by URL.

Everything is only ever added, never changed: a study, its rounds, their designs before they are evaluated, and every
result as it arrives. Only the study writes, in one process at a time; a reader never blocks it.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import weakref
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.engine import Connection

from .databases import Held, alone, fault, full_url, lock, lock_again, open_engine, shown, unlock
from .schema import (
    SCHEMA_VERSION,
    Outcome,
    RoundRecord,
    StudyRecord,
    dataset_table,
    design_table,
    result_table,
    round_table,
    run_table,
    schema_table,
    study_table,
    tables,
    upgrade,
)
from .types import Array, StorageError


class Storage:
    """A database of studies: the path of a SQLite file, or a URL (`sqlite:///runs.db`, `postgresql://host/name`)."""

    def __init__(self, url: str | Path, *, create: bool = True) -> None:
        self.url = full_url(url)
        self.engine = open_engine(self.url, create)
        self.shown = shown(self.engine, self.url)  # the URL without its password
        self._held: dict[int, Held] = {}  # by study, while it is run from here
        weakref.finalize(self, self.engine.dispose)  # whoever forgets to close leaves no open file behind
        self._check_schema(create)

    def close(self) -> None:
        self.engine.dispose()

    def __enter__(self) -> Storage:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _connect(self, write: bool = False, study: int | None = None, what: str = "") -> Iterator[Connection]:
        """A transaction. `what` is written in it; of a `study` that is held here, on the connection that holds it."""
        with self._faults(what):
            held = None if study is None else self._held.get(study)
            if study is not None and isinstance(held, Connection):
                connection = self._holding(study, held)
                with connection.begin():
                    yield connection
            else:
                with self.engine.begin() if write else self.engine.connect() as connection:
                    yield connection

    @contextmanager
    def _faults(self, what: str = "") -> Iterator[None]:
        """Turn the database's own errors into ours."""
        try:
            yield
        except sa.exc.IntegrityError:
            raise
        except sa.exc.DBAPIError as error:
            meaning, remedy = fault(error)
            verb = "may not have been" if error.connection_invalidated else "could not be"  # cut off: nobody knows
            lost = f" {what} {verb} stored." if what else ""
            raise StorageError(f"The storage {self.shown!r} failed: {meaning}.{lost}",
                               f"{remedy}, then run again; nothing stored so far is lost.") from error  # fmt: skip

    def _check_schema(self, create: bool) -> None:
        """Make the tables of a new storage or upgrade those of an older release, all or none; refuse what is not ours
        or too new."""
        with self._connect() as connection:
            found = self._version(connection)
        if (found is None and create) or (found is not None and found < SCHEMA_VERSION):
            with self._connect(write=True, what=f"Schema version {SCHEMA_VERSION}") as connection:
                alone(connection)
                found = self._version(connection)  # another process may have been quicker
                if found is None:
                    tables.create_all(connection)
                    connection.execute(schema_table.insert().values(version=SCHEMA_VERSION))
                elif found < SCHEMA_VERSION:
                    upgrade(connection, found)
                found = self._version(connection)
        if found is None:
            raise StorageError(f"{self.shown!r} holds no studies.", "Check the path, or run a study first.")
        if found != SCHEMA_VERSION:
            raise StorageError(
                f"{self.shown!r} has schema version {found}; this diffbbo knows version {SCHEMA_VERSION}.",
                "It was written by a newer release: upgrade diffbbo.",
            )

    def _version(self, connection: Connection) -> int | None:
        """The schema version; None for an empty database."""
        names = sa.inspect(connection).get_table_names()
        if schema_table.name in names:
            return int(connection.execute(sa.select(schema_table.c.version)).scalar_one())
        if names:
            raise StorageError(
                f"{self.shown!r} is a database, but not one of diffbbo.", "Choose another, or a new one."
            )
        return None

    # ---- one process at a time runs a study ----------------------------------------------------------

    @contextmanager
    def claim(self, study: StudyRecord) -> Iterator[None]:
        """Hold a study while it is written. A second process is refused and told who does; a dead one holds nothing."""
        with self._faults():
            held = lock(self.engine, study.id)
        if held is None:
            raise self._refusal(study.id)
        self._held[study.id] = held
        try:
            with self._connect(write=True, study=study.id, what=f"That {study.name!r} is run here") as connection:
                row = {"study": study.id, "host": platform.node(), "pid": os.getpid(), "started": _now()}
                connection.execute(run_table.insert().values(row))
            yield
        finally:
            unlock(self._held.pop(study.id))

    def _holding(self, study: int, held: Connection) -> Connection:
        """The connection that holds a study, renewed if the server was restarted since the last write."""
        renewed = lock_again(self.engine, study, held)
        if renewed is None:
            raise self._refusal(study)
        self._held[study] = renewed
        return renewed

    def _refusal(self, study: int) -> StorageError:
        query = sa.select(study_table.c.name, run_table.c.host, run_table.c.pid, run_table.c.started)
        query = query.join(run_table, isouter=True).where(study_table.c.id == study).order_by(run_table.c.id.desc())
        with self._connect() as connection:
            name, host, pid, started = connection.execute(query.limit(1)).one()
        who = f"process {pid} on {host!r} since {_utc(started):%Y-%m-%d %H:%M:%S} UTC" if pid else "another process"
        return StorageError(
            f"The study {name!r} in {self.shown!r} is being run by {who}.",
            "Wait until it ends or stop it, then run again; or give this study another name.",
        )

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
            with self._connect(write=True, what=f"The study {name!r}") as connection:
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
            with self._connect(write=True, what=f"Start data of {len(y)} rows") as connection:
                connection.execute(dataset_table.insert().values(row))
        except sa.exc.IntegrityError:  # another study stored the same data meanwhile
            pass
        return sha256

    def add_round(
        self, study: int, number: int, x: Array, member: NDArray[np.intp], info: dict[str, Any],
        outcomes: list[Outcome] | None = None,
    ) -> None:  # fmt: skip
        """Store a whole batch before any of it is evaluated, or with all its outcomes; all or nothing."""
        head = {"study": study, "number": number, "info": json.dumps(info), "created": _now()}
        with self._adding(study, f"Round {number} of {len(x)} designs") as connection:
            (key,) = connection.execute(round_table.insert().values(head)).inserted_primary_key or (None,)
            connection.execute(
                design_table.insert(),
                [{"round": key, "position": i, "member": int(member[i]), "x": _bytes(row)} for i, row in enumerate(x)],
            )
            if outcomes is not None:
                query = sa.select(design_table.c.id).filter_by(round=key).order_by(design_table.c.position)
                ids = connection.execute(query).scalars().all()
                connection.execute(result_table.insert(), _results(zip(ids, outcomes, strict=True)))

    def add_results(self, outcomes: list[tuple[int, Outcome]], study: int | None = None) -> None:
        """Store results as (design id, outcome), of a study that is claimed here."""
        what = ", ".join(f"{outcome.value!r} of design {key}" for key, outcome in outcomes[:3])
        what = f"The result {what}" if len(outcomes) == 1 else f"{len(outcomes)} results ({what}, ...)"
        with self._adding(study, what) as connection:
            connection.execute(result_table.insert(), _results(outcomes))

    @contextmanager
    def _adding(self, study: int | None, what: str) -> Iterator[Connection]:
        """A transaction that adds what must not be there yet."""
        try:
            with self._connect(write=True, study=study, what=what) as connection:
                yield connection
        except sa.exc.IntegrityError as error:
            raise StorageError(f"{what} cannot be stored in {self.shown!r}: there is one already.",
                               "Another process runs this study too: end one of them.") from error  # fmt: skip

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


def _results(outcomes: Iterable[tuple[int, Outcome]]) -> list[dict[str, Any]]:
    """Rows of the result table."""
    return [
        {
            "design": key, "status": outcome.status, "error": _text(outcome.error), "seconds": outcome.seconds,
            "value": outcome.value if outcome.status == "ok" else None, "finished": _now(),
        }
        for key, outcome in outcomes
    ]  # fmt: skip


def _text(text: str) -> str:
    """What an oracle said, less what a database cannot hold: half characters and zeros must not stop a study."""
    return text.encode("utf-8", "replace").decode().replace("\x00", "?")


def _bytes(array: Array) -> bytes:
    return np.ascontiguousarray(array, dtype="<f8").tobytes()


def _now() -> datetime:
    return datetime.now(UTC)


def _utc(moment: datetime) -> datetime:
    """A stored moment as it was written: SQLite forgets the zone, PostgreSQL answers in its own."""
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
