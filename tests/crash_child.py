"""One run of a study that kills itself with SIGKILL at a chosen moment. Called by test_crash.py.

    python -m tests.crash_child STORAGE LOG ROUND STAGE COUNT

It dies at the COUNT-th report of STAGE in ROUND; the stage "oracle" is the middle of an evaluation. STAGE "never": it
lives. Every evaluation adds a line to LOG when it begins.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from diffbbo import Categorical, DiffBBO, EnsembleConfig, FunctionTask, Real, Space, Study
from diffbbo.progress import listening

SPACE = Space((Real("a", 0, 1), Real("b", 0, 1), Categorical("c", ("x", "y"))))
ROUNDS, BATCH = 3, 6


def value(design: Mapping[str, Any]) -> float:
    return float(design["a"] - (design["b"] - 0.3) ** 2 + (design["c"] == "y"))


def main(storage: str, log: str, round_number: str, stage: str, count: str) -> None:
    torch.set_num_threads(1)
    seen = {"round": 0, "hits": 0}

    def tick(name: str) -> None:
        if name == stage and seen["round"] == int(round_number):
            seen["hits"] += 1
            if seen["hits"] == int(count):
                os.kill(os.getpid(), signal.SIGKILL)

    def listener(name: str, fraction: float) -> None:
        if name == "round":
            seen["round"] = round(fraction * ROUNDS) + 1
        tick(name)

    def oracle(design: Mapping[str, Any]) -> float:
        with open(log, "a") as handle:  # noqa: PTH123
            handle.write(f"{dict(design)}\n")
        tick("oracle")
        return value(design)

    x = SPACE.sample(30, np.random.default_rng(0))
    y = [value(design) for design in SPACE.dicts(x)]
    task = FunctionTask(oracle, SPACE, name="crash", start=(x, y))
    config = EnsembleConfig(hidden=16, layers=2, max_steps=60, check_every=20, sampling_steps=6)
    optimizer = DiffBBO(SPACE, seed=1, config=config, device="cpu")
    with listening(listener):
        Study(task, optimizer, storage, "crash").run(ROUNDS, BATCH)


if __name__ == "__main__":
    main(*sys.argv[1:])
