"""A storage of 10^6 designs in rounds of 1,000, written and read, beside Python's own sqlite3 with one bare table.

Both keep a design as 20 float64 in a blob, with its value, on disk before the call returns (`synchronous = FULL`,
write-ahead log, one transaction a round). Rounds are written in turns. Ours also holds what a study needs: position,
member, status, time, unique keys.
"""

from __future__ import annotations

import sqlite3
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from diffbbo import Storage
from diffbbo.schema import Outcome, RoundRecord
from diffbbo.types import Array

from .common import Found, Machine, Row, Times, in_turns, peak_gib, seconds

DIMENSION = 20


@dataclass(frozen=True)
class Size:
    rounds: int = 1000
    batch: int = 1000
    single: int = 200  # results that arrive one at a time


FULL = Size()


def measure(machine: Machine, size: Size = FULL) -> Found:
    with tempfile.TemporaryDirectory() as folder, Storage(Path(folder) / "ours.db") as ours:
        plain = Plain(Path(folder) / "plain.db")
        try:
            rows = _measure(ours, plain, size, Path(folder))
        finally:
            plain.close()
    return Found(rows)


def _measure(ours: Storage, plain: Plain, size: Size, folder: Path) -> list[Row]:
    start = ours.add_dataset(np.empty((0, DIMENSION)), np.empty(0))
    ours.add_study("benchmark", task="none", method="none", seed=0, minimize=False, settings={}, space={}, start=start,
                   environment={})  # fmt: skip
    record = ours.study("benchmark")
    assert record is not None
    rng = np.random.default_rng(0)
    nobody = np.full(size.batch, -1)
    with ours.claim(record):
        done = 0
        batch, values = np.empty((size.batch, DIMENSION)), np.empty(size.batch)

        def into_ours() -> float:
            nonlocal done, batch, values
            done += 1
            batch, values = rng.random((size.batch, DIMENSION)), rng.random(size.batch)
            outcomes = [Outcome("ok", float(value)) for value in values]
            return seconds(lambda: ours.add_round(record.id, done, batch, nobody, {}, outcomes))

        def into_plain() -> float:  # the same round
            return seconds(lambda: plain.write(batch, values))

        written = in_turns({"ours": into_ours, "plain": into_plain}, size.rounds, warm_up=False)
        total = size.rounds * size.batch
        before = peak_gib()
        read = in_turns({"ours": lambda: seconds(lambda: _count(ours.rounds(record.id), total)),
                         "plain": lambda: seconds(lambda: plain.read(total))}, 1, warm_up=False)  # fmt: skip
        peak = peak_gib()
        # As a study does it: the whole batch before it is evaluated, then each result as it arrives.
        ours.add_round(record.id, done + 1, batch, nobody, {})
        (last,) = ours.rounds(record.id, done + 1)
        add = [partial(ours.add_results, [(key, Outcome("ok", 0.5))], record.id) for key in last.ids[: size.single]]
        single = Times(tuple(seconds(work) for work in add))
    tenth = max(1, size.rounds // 10)
    first, late = (Times(times) for times in (written["ours"].values[:tenth], written["ours"].values[-tenth:]))
    common = {"designs": total, "batch": size.batch}
    return [
        common | {"what": "write a round", "ours_s": written["ours"], "plain_s": written["plain"],
                  "ratio": written["ours"].over(written["plain"]), "per_second": size.batch / written["ours"].median},
        common | {"what": "write a round, the first tenth", "ours_s": first, "per_second": size.batch / first.median},
        common | {"what": "write a round, the last tenth", "ours_s": late, "per_second": size.batch / late.median},
        common | {"what": "read all", "ours_s": read["ours"], "plain_s": read["plain"],
                  "ratio": read["ours"].over(read["plain"]), "per_second": total / read["ours"].median,
                  "peak_gib": peak, "before_gib": before},
        common | {"what": "write one result", "ours_s": single, "per_second": 1 / single.median},
        common | {"what": "bytes a design on disk", "ours_bytes": _bytes(folder / "ours.db") / total,
                  "plain_bytes": _bytes(folder / "plain.db") / total},
    ]  # fmt: skip


def _count(rounds: list[RoundRecord], total: int) -> None:
    found = sum(len(one.x) for one in rounds)
    assert found == total, f"{found} designs came back of {total}"


def _bytes(path: Path) -> int:
    return sum(part.stat().st_size for part in path.parent.glob(path.name + "*"))


class Plain:
    """Designs and values in one table, by the sqlite3 module."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = FULL")
        self.connection.execute("CREATE TABLE design (id INTEGER PRIMARY KEY, x BLOB, value REAL)")

    def write(self, x: Array, y: Array) -> None:
        with self.connection:
            pairs = zip((row.tobytes() for row in x), y.tolist(), strict=True)
            self.connection.executemany("INSERT INTO design (x, value) VALUES (?, ?)", pairs)

    def read(self, total: int) -> tuple[Array, Array]:
        rows = self.connection.execute("SELECT x, value FROM design ORDER BY id").fetchall()
        assert len(rows) == total, f"{len(rows)} designs came back of {total}"
        return np.stack([np.frombuffer(x) for x, _ in rows]), np.array([value for _, value in rows])

    def close(self) -> None:
        self.connection.close()
