"""`ask(100)` after 10^3 to 10^6 told rows: seconds, peak memory, and where the time goes.

Each in a process of its own, after an `ask` on 200 rows with a tiny model, which loads all packages. The functions that
encode, look for repeats and validate are timed, the outermost alone where one calls another; *validation* counts all of
`tell`, where it takes place. The rest is models, and what building sets of known designs takes.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np

import diffbbo as db
from diffbbo import encoding, optimizer, proposers, spaces, statistics, types, variation

from .common import TASK, Found, Machine, Row, Target, Times, child, peak_gib, told

# What is timed: functions of modules and methods of classes, by what they are for.
PARTS: dict[str, list[tuple[Any, str]]] = {
    "encoding": [
        (encoding.Encoder, "fit"), (encoding.Encoder, "encode"), (encoding.Encoder, "decode"),
        (encoding.ObjectiveScale, "robust"), (encoding.ObjectiveScale, "condition"),
        (variation, "scaled"), (variation, "unscaled"), (statistics, "normal_scores"),
    ],
    "duplicates": [
        (types, "row_keys"), (types.Dataset, "distinct"), (proposers, "_repeats"), (proposers.Round, "_next"),
    ],
    "validation": [(optimizer.Optimizer, "tell"), (spaces.Space, "rows"), (spaces.Space, "dicts")],
}  # fmt: skip


@dataclass(frozen=True)
class Size:
    rows: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000)
    repeats: int = 3
    repeats_largest: int = 1
    batch: int = 100
    task: str = TASK
    train: int = 0  # steps of training at most; 0: the default's


FULL = Size()


def measure(machine: Machine, size: Size = FULL) -> Found:
    rows, targets = [], []
    for count in size.rows:
        settings = {"rows": count, "batch": size.batch, "task": size.task, "train": size.train}
        repeats = size.repeats_largest if count == max(size.rows) else size.repeats
        answers = [child("rows", settings) for _ in range(repeats)]
        parts = {name: Times(tuple(answer["parts"][name] for answer in answers)) for name in PARTS}
        ask = Times(tuple(answer["ask_s"] for answer in answers))
        share = Times(tuple(sum(answer["parts"].values()) / answer["ask_s"] for answer in answers))
        peak = max(answer["peak_gib"] for answer in answers)
        rows.append({
            "rows": count, "task": size.task, "batch": size.batch, "ask_s": ask, "share": share, "peak_gib": peak,
            "start_gib": min(answer["start_gib"] for answer in answers),
            **{f"{name}_s": value for name, value in parts.items()},
        })  # fmt: skip
        if count == 10**5:
            targets.append(Target(f"encoding, repeats and validation as a part of ask, {count:,} rows",
                                  share.median, 0.25))  # fmt: skip
        if count == 10**6:
            targets.append(Target(f"peak memory, {count:,} rows", peak, 8.0, unit="GiB"))
    return Found(rows, targets)


class Stopwatch:
    """Adds up the time inside functions, by part; what one of them calls belongs to it."""

    def __init__(self) -> None:
        self.parts = dict.fromkeys(PARTS, 0.0)
        self._inside = False
        self._replaced: list[tuple[Any, str, Any]] = []

    def wrap(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def timed(*given: Any, **named: Any) -> Any:
            if self._inside:
                return function(*given, **named)
            self._inside, clock = True, time.perf_counter()
            try:
                return function(*given, **named)
            finally:
                self._inside = False
                self.parts[part] += time.perf_counter() - clock

        return timed

    def install(self) -> None:
        """Put a timed function in the place of each, also where another module of ours has imported it by name."""
        ours = [module for name, module in sys.modules.items() if name.startswith("diffbbo")]
        for part, functions in PARTS.items():
            for owner, name in functions:
                found = vars(owner)[name]
                inner = found.__func__ if isinstance(found, classmethod) else found
                timed: Any = self.wrap(part, inner)
                if isinstance(found, classmethod):
                    timed = classmethod(timed)
                for place in [owner] if isinstance(owner, type) else ours:
                    for label in [label for label, value in vars(place).items() if value is found]:
                        self._replaced.append((place, label, found))
                        setattr(place, label, timed)

    def uninstall(self) -> None:
        while self._replaced:
            setattr(*self._replaced.pop())


def ask_once(rows: int, batch: int, task: str, train: int) -> Row:
    """What a child process does: one `tell`, one `ask`."""

    def ready(steps: int) -> Any:
        made = db.make_task(task)
        config = db.DiffBBO(made.space).config
        config = db.EnsembleConfig(**(vars(config) | {"max_steps": steps or config.max_steps}))
        return db.make_optimizer("diffbbo", made.space, seed=0, minimize=made.minimize, config=config)

    _, x, y = told(200, task)
    warm = ready(5)
    warm.tell(x, y)
    warm.ask(10)
    _, x, y = told(rows, task)
    opt, watch, start = ready(train), Stopwatch(), peak_gib()
    watch.install()
    opt.tell(x, y)
    clock = time.perf_counter()
    asked = opt.ask(batch)
    ask_s = time.perf_counter() - clock
    assert np.isfinite(asked.x).all()
    return {"ask_s": ask_s, "parts": watch.parts, "peak_gib": peak_gib(), "start_gib": start}


if __name__ == "__main__":
    print(json.dumps(ask_once(**json.loads(sys.argv[1]))))
