"""The tables of a storage, how one of an older release becomes one of today, and the records read from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.engine import Connection

from .types import Array

SCHEMA_VERSION = 2

tables = sa.MetaData()
schema_table = sa.Table("diffbbo_schema", tables, sa.Column("version", sa.Integer, primary_key=True))
dataset_table = sa.Table(  # start data, stored once however many studies begin with them
    "dataset", tables,
    sa.Column("sha256", sa.String(64), primary_key=True),
    sa.Column("rows", sa.Integer, nullable=False),
    sa.Column("x", sa.LargeBinary, nullable=False),  # zlib of little-endian float64
    sa.Column("y", sa.LargeBinary, nullable=False),
)  # fmt: skip
study_table = sa.Table(
    "study", tables,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(200), nullable=False, unique=True),
    sa.Column("task", sa.String(200), nullable=False),
    sa.Column("method", sa.String(200), nullable=False),
    sa.Column("seed", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False),
    sa.Column("minimize", sa.Boolean, nullable=False),
    sa.Column("settings", sa.Text, nullable=False),  # JSON
    sa.Column("space", sa.Text, nullable=False),  # JSON, as in space.toml
    sa.Column("start", sa.ForeignKey("dataset.sha256"), nullable=False),
    sa.Column("environment", sa.Text, nullable=False),  # JSON: versions and hardware
    sa.Column("created", sa.DateTime(timezone=True), nullable=False),
)  # fmt: skip
round_table = sa.Table(
    "round", tables,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("study", sa.ForeignKey("study.id"), nullable=False),
    sa.Column("number", sa.Integer, nullable=False),  # 1, 2, ...
    sa.Column("info", sa.Text, nullable=False),  # JSON: weight, epistemic, times, ...
    sa.Column("created", sa.DateTime(timezone=True), nullable=False),
    sa.UniqueConstraint("study", "number"),
)  # fmt: skip
design_table = sa.Table(
    "design", tables,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("round", sa.ForeignKey("round.id"), nullable=False),
    sa.Column("position", sa.Integer, nullable=False),  # in order of merit, from 0
    sa.Column("member", sa.Integer, nullable=False),  # which member drew it; -1: none
    sa.Column("x", sa.LargeBinary, nullable=False),  # little-endian float64
    sa.UniqueConstraint("round", "position"),
)  # fmt: skip
result_table = sa.Table(
    "result", tables,
    sa.Column("design", sa.ForeignKey("design.id"), primary_key=True),  # one result for a design, ever
    sa.Column("status", sa.String(20), nullable=False),  # ok, failed, error, timeout, died
    sa.Column("value", sa.Float(53)),  # as the oracle gave it; NULL unless ok
    sa.Column("error", sa.Text, nullable=False),
    sa.Column("seconds", sa.Float, nullable=False),
    sa.Column("finished", sa.DateTime(timezone=True), nullable=False),
)  # fmt: skip


run_table = sa.Table(  # who ran a study, and from when: the last one is named to whoever comes second
    "run", tables,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("study", sa.ForeignKey("study.id"), nullable=False),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("pid", sa.Integer, nullable=False),
    sa.Column("started", sa.DateTime(timezone=True), nullable=False),
)  # fmt: skip


def _from_1(connection: Connection) -> None:
    """Version 2 knows who runs a study. (In PostgreSQL a seed had only 32 bits.)"""
    then = sa.MetaData()  # tables as they were made then: those above go on changing
    sa.Table("study", then, sa.Column("id", sa.Integer, primary_key=True))
    run = sa.Table(
        "run", then,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("study", sa.ForeignKey("study.id"), nullable=False),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("started", sa.DateTime(timezone=True), nullable=False),
    )  # fmt: skip
    run.create(connection)
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("ALTER TABLE study ALTER COLUMN seed TYPE BIGINT")


# UPGRADES[n] makes version n + 1 of version n. A step that was released is never changed, and only ever adds.
UPGRADES: dict[int, Callable[[Connection], None]] = {1: _from_1}


def upgrade(connection: Connection, version: int) -> None:
    """Bring a storage of an older release to today's version, step by step within the caller's transaction."""
    for number in range(version, SCHEMA_VERSION):
        UPGRADES[number](connection)
    connection.execute(schema_table.update().values(version=SCHEMA_VERSION))


@dataclass(frozen=True)
class Outcome:
    """What became of one evaluation. `status`: ok, failed (NaN), error (raised), timeout, died."""

    status: str
    value: float = float("nan")
    error: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class StudyRecord:
    """A stored study."""

    id: int
    name: str
    task: str
    method: str
    seed: int
    minimize: bool
    settings: dict[str, Any]
    space: dict[str, Any]
    start: str
    environment: dict[str, Any]
    created: datetime


@dataclass(frozen=True)
class RoundRecord:
    """A stored round: designs `x` `(n, d)`, and what is known of each; status "" = not evaluated yet."""

    number: int
    info: dict[str, Any]
    ids: list[int]
    x: Array
    member: NDArray[np.intp]
    value: Array
    status: list[str]
    error: list[str]
    seconds: Array

    @property
    def open(self) -> NDArray[np.intp]:
        """Positions of the designs without a result."""
        return np.flatnonzero([status == "" for status in self.status])
