"""One run of the study that tests/chaos.py kills. It notes in LOG, line by line, what it does and what was confirmed.

python -m tests.chaos_child STORAGE LOG ROUNDS BATCH
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from diffbbo import DiffBBOError, FunctionTask, Processes, Real, Space, Storage, Study, make_optimizer
from diffbbo.schema import Outcome

SPACE = Space((Real("a", 0, 1), Real("b", 0, 1)))
WORKERS = 2
REFUSED = 3  # exit code of a run that ended with an error of ours


def note(log: str, event: str, **facts: Any) -> None:
    """One whole line at the end of the log, whoever else is writing and whatever happens next."""
    with Path(log).open("a") as handle:
        handle.write(json.dumps({"event": event, **facts}) + "\n")


def value(design: Mapping[str, Any]) -> float:
    return float(design["a"] - (design["b"] - 0.3) ** 2)


def oracle(log: str, design: Mapping[str, Any]) -> float:
    note(log, "began", design=list(design.values()), pid=os.getpid())
    time.sleep(0.01)
    return value(design)


class Witnessed(Storage):
    """Says when it writes results, and when the database has confirmed them."""

    log = ""

    def add_results(self, outcomes: list[tuple[int, Outcome]], study: int | None = None) -> None:
        note(self.log, "storing")
        super().add_results(outcomes, study)
        note(self.log, "stored", results={key: outcome.value for key, outcome in outcomes})


def main(url: str, log: str, rounds: str, batch: str) -> int:
    task = FunctionTask(partial(oracle, log), SPACE, name="chaos", start=([[0.5, 0.5], [0.1, 0.9]], [0.46, -0.26]))
    try:
        with Witnessed(url) as storage:
            storage.log = log
            optimizer = make_optimizer("evolution", SPACE, seed=1)
            Study(task, optimizer, storage, "chaos", Processes(WORKERS)).run(int(rounds), int(batch))
    except DiffBBOError as error:
        note(log, "error", text=str(error))
        return REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
