"""A round of the paper's size, whole: `ask(100)` of `diffbbo-paper` with all its steps of training, on a GPU.

2,500 rows of molecule's start data (9,000 steps of training) and all of tfbind8's (29,000): the two problems whose
times the paper gives. Early stopping is off, so that the number of steps is the stated one.
"""

from __future__ import annotations

from dataclasses import dataclass

import diffbbo as db
from diffbbo.algorithm import DiffBBOPaper
from diffbbo.diffusion.config import PRESETS

from .common import Found, Machine, Target, Times

PAPER = {"molecule": 69.44, "tfbind8": 136.29}  # seconds of a round on one NVIDIA A100 (its Table 2)
LIMITS = {"molecule": 3.5, "tfbind8": 9.0}


@dataclass(frozen=True)
class Size:
    tasks: tuple[tuple[str, int], ...] = (("molecule", 2_500), ("tfbind8", 10**9))  # and how many rows at most
    repeats: int = 3
    batch: int = 100
    config: db.EnsembleConfig | None = None
    anywhere: bool = False  # also without a GPU


FULL = Size()


def measure(machine: Machine, size: Size = FULL) -> Found:
    if machine.device != "cuda" and not size.anywhere:
        return Found(missing="needs a GPU")
    config = size.config or db.EnsembleConfig(**(PRESETS["paper"] | DiffBBOPaper.method | {"patience": 10**9}))
    rows, targets = [], []
    for name, most in size.tasks:
        task = db.make_task(name)
        x, y = (part[:most] for part in task.start(0))
        opt = DiffBBOPaper(task.space, minimize=task.minimize, device=machine.device, config=config)
        opt.tell(x, y)
        infos = [opt.ask(size.batch).info for _ in range(size.repeats + 1)]
        times, train = (Times(tuple(info[what] for info in infos[1:])) for what in ("ask_s", "train_s"))
        steps = infos[0]["steps"]
        rows.append({"task": name, "rows": len(x), "steps": steps, "round_s": times, "train_s": train,
                     "paper_s": PAPER[name]})  # fmt: skip
        targets.append(Target(f"a round of the paper's size on {name}, {len(x):,} rows, {steps:,} steps",
                              times.median, LIMITS[name], unit="s"))  # fmt: skip
    return Found(rows, targets)
