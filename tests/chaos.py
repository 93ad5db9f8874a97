"""Kill a running study at random moments, and prove that nothing is lost.

    python -m tests.chaos --kills 100                SQLite
    python -m tests.chaos --kills 100 --postgres     a PostgreSQL server of its own, which is killed as well

Each kill is a SIGKILL to the study's process, to all its processes at once, to one of its workers in the middle of an
evaluation, or to the database server. Then, from the study's log of what it did and from the storage itself:

1. no stored result is lost: whatever the storage confirmed or held before is there, with the same value;
2. no finished design is evaluated twice: none is begun after its result was stored;
3. only what was in flight is evaluated again: at most one design for each worker that a kill stopped;
4. the final table equals that of an undisturbed run, bit for bit.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from diffbbo import Storage
from diffbbo.export import designs
from diffbbo.types import StorageError
from tests.chaos_child import REFUSED, WORKERS
from tests.postgres import Server, server

ROOT = Path(__file__).parents[1]
PER_KILL = 10  # designs in the study for each kill: enough that it is still running at the last
BATCH = 40
EVENTS = 8  # a kill comes after so many evaluations at most
Key = tuple[float, ...]


class Chaos:
    """A study under attack, and what is known of it: all it did, by its own log, and all it stored."""

    def __init__(self, url: str, log: Path, kills: int, seed: int = 0, database: Server | None = None) -> None:
        self.url, self.log, self.database = url, log, database
        self.rounds = math.ceil(kills * PER_KILL / BATCH)
        self.chance = random.Random(seed)
        self.kills: Counter[str] = Counter()  # by what was killed
        self.moments: Counter[str] = Counter()  # by what the study was doing
        self.begun: Counter[Key] = Counter()
        self.last_begun: dict[Key, int] = {}  # line of the log
        self.confirmed: dict[int, tuple[int, float]] = {}  # by id of the design: line of the log, value
        self.stored: dict[Key, float] = {}  # as the storage said when last looked at
        self.doing, self.worker, self.errors = "starting", 0, 0
        self.spare = False  # a worker of this run was killed: its design, killed again, would rightly count as failed
        self.child: subprocess.Popen[bytes] | None = None
        self._read = self._line = 0
        log.touch()

    # ---- the attack ----------------------------------------------------------------------------------

    def kill(self) -> None:
        """Let the study go on for a random while, then kill something."""
        fresh = self.child is None
        child = self.start()
        events = self.chance.randint(0 if fresh else 1, EVENTS)
        enough = self.begun.total() + events
        while self.begun.total() < enough and child.poll() is None:
            time.sleep(0.002)
            self.follow()
        time.sleep(self.chance.uniform(0, 0.03 if events else 1.2))  # before the first: while it is starting
        self.follow()
        if child.poll() is not None:
            return self.ended(child.returncode)  # an earlier kill of the server has stopped it
        target = self.chance.choice(["study", "all", "worker", "worker", *(["server"] if self.database else [])])
        if target == "worker" and (self.spare or not self.works_for(child)):
            target = "study"
        self.kills[target] += 1
        self.moments[self.doing] += 1
        if target == "worker":
            self.spare = True
            os.kill(self.worker, signal.SIGKILL)
        elif target == "server" and self.database is not None:
            self.database.kill()
            self.database.start()
        else:
            os.killpg(child.pid, signal.SIGKILL) if target == "all" else child.kill()
            self.ended(child.wait())

    def works_for(self, child: subprocess.Popen[bytes]) -> bool:
        """Whether the worker is still the study's: no other process must be hit."""
        stat = Path(f"/proc/{self.worker}/stat")
        return self.worker > 0 and stat.exists() and int(stat.read_text().rpartition(")")[2].split()[1]) == child.pid

    def start(self) -> subprocess.Popen[bytes]:
        if self.child is None:
            command = [sys.executable, "-m", "tests.chaos_child", self.url, self.log, str(self.rounds), str(BATCH)]
            with self.log.with_suffix(".err").open("a") as errors:  # a worker killed while it starts says much
                self.child = subprocess.Popen(command, cwd=ROOT, start_new_session=True, stderr=errors)
            self.doing, self.worker, self.spare = "starting", 0, False
        return self.child

    def ended(self, code: int) -> None:
        """The study's process has ended: it was killed, or has said that the server was."""
        self.child = None
        self.follow()
        assert code == -signal.SIGKILL or (code == REFUSED and self.kills["server"]), f"it ended with exit code {code}"
        self.errors += code == REFUSED
        self.check()

    def finish(self) -> None:
        """Let it come to its end."""
        while (code := self.start().wait()) != 0:
            self.ended(code)
        self.follow()
        self.check()

    # ---- the proof -----------------------------------------------------------------------------------

    def follow(self) -> None:
        """Read what the study has noted since the last time."""
        with self.log.open() as handle:
            handle.seek(self._read)
            lines = handle.readlines()
            if lines and not lines[-1].endswith("\n"):
                lines.pop()  # it is being written
        self._read += sum(map(len, lines))
        for entry in map(json.loads, lines):
            self._line += 1
            if entry["event"] == "began":
                key = tuple(entry["design"])
                assert key not in self.stored, f"{key} was finished and is evaluated again"
                self.begun[key] += 1
                self.last_begun[key] = self._line
                self.worker = entry["pid"]
                self.doing = "evaluating"
            elif entry["event"] == "storing":
                self.doing = "storing"
            elif entry["event"] == "stored":
                self.confirmed |= {int(key): (self._line, value) for key, value in entry["results"].items()}
                self.doing = "evaluating"

    def check(self) -> None:
        """Nothing that was confirmed or seen before is missing, changed, or was evaluated again afterwards."""
        try:
            with Storage(self.url, create=False) as storage:
                studies = storage.studies()
                rounds = storage.rounds(studies[0].id) if studies else []
        except StorageError:  # killed before there were any tables
            rounds = []
        cells = [(entry, i) for entry in rounds for i, status in enumerate(entry.status) if status]
        now = {tuple(entry.x[i].tolist()): float(entry.value[i]) for entry, i in cells}
        keys = {entry.ids[i]: tuple(entry.x[i].tolist()) for entry, i in cells}
        assert self.stored.items() <= now.items(), "a stored result is lost or changed"
        for design, (line, value) in self.confirmed.items():
            assert design in keys and now[keys[design]] == value, f"the confirmed result {value} is lost or changed"
            assert self.last_begun[keys[design]] < line, f"{keys[design]} was finished and is evaluated again"
        self.stored = now

    def table(self) -> list[dict[str, Any]]:
        """Every design with its result, less the seconds it took."""
        with Storage(self.url, create=False) as storage:
            return [{key: cell for key, cell in row.items() if key != "seconds"} for row in designs(storage)]


def prove(attacked: Chaos, undisturbed: Chaos, kills: int) -> str:
    """Run both, one of them under `kills` kills, compare, and say what happened."""
    started = time.monotonic()
    undisturbed.finish()
    alone = time.monotonic() - started
    started = time.monotonic()
    while attacked.kills.total() < kills:
        attacked.kill()
    attacked.finish()
    seconds = time.monotonic() - started
    total = attacked.rounds * BATCH
    assert undisturbed.begun.total() == len(undisturbed.stored) == total
    assert len(attacked.stored) == total
    assert attacked.table() == undisturbed.table(), "the final table differs"
    again = attacked.begun.total() - total
    stopped = WORKERS * (attacked.kills.total() - attacked.kills["worker"]) + attacked.kills["worker"]
    assert 0 <= again <= stopped, f"{again} evaluations again, at most {stopped} were in flight"
    of = ", ".join(f"{count} {name}" for name, count in sorted(attacked.kills.items()))
    during = ", ".join(f"{count} {name}" for name, count in sorted(attacked.moments.items()))
    return (
        f"{kills} kills ({of}) at random moments ({during}): {total} designs in {attacked.rounds} rounds, "
        f"{attacked.begun.total()} evaluations, {again} of them again (at most {stopped} in flight), "
        f"{len(attacked.confirmed)} results confirmed and none lost, {attacked.errors} runs ended with an error of the "
        f"storage; the table equals the undisturbed one. {seconds:.0f} s, undisturbed {alone:.0f} s."
    )


def sqlite(folder: Path, kills: int, seed: int = 0) -> str:
    two = [Chaos(str(folder / f"{name}.db"), folder / f"{name}.log", kills, seed) for name in ("attacked", "alone")]
    return prove(two[0], two[1], kills)


def postgres(folder: Path, kills: int, seed: int = 0) -> str:
    with server() as database:
        attacked = Chaos(database.database("attacked"), folder / "attacked.log", kills, seed, database)
        return prove(attacked, Chaos(database.database("alone"), folder / "alone.log", kills, seed), kills)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Kill a running study at random moments; prove that nothing is lost.")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--postgres", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as where:
        print((postgres if given.postgres else sqlite)(Path(where), given.kills, given.seed))
