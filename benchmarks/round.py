"""One whole round of 100 designs after a task's start data: the default's on six tasks, and the paper's size on two.

*The default*: `ask(100)` of `diffbbo` as a user gets it. *The paper's size*: `diffbbo-paper` with all its steps of
training, on a GPU, for 2,500 rows of molecule (9,000 steps) and all of tfbind8 (29,000), the two problems whose times
the paper gives; early stopping is off, so that the number of steps is the stated one.
"""

from __future__ import annotations

from dataclasses import dataclass

import diffbbo as db
from diffbbo.algorithm import DiffBBOPaper
from diffbbo.diffusion.config import PRESETS

from .common import Found, Machine, Row, Target, Times

TASKS = ("tfbind8", "tfbind10", "superconductor", "ant", "dkitty", "molecule")
LIMIT = {"cpu": 15.0, "cuda": 1.5}  # seconds, of the default
PAPER = {"molecule": 69.44, "tfbind8": 136.29}  # seconds of a round on one NVIDIA A100 (its Table 2)
PAPER_LIMIT = {"molecule": 3.5, "tfbind8": 9.0}


@dataclass(frozen=True)
class Size:
    tasks: tuple[str, ...] = TASKS  # of the default
    paper: tuple[tuple[str, int], ...] = (("molecule", 2_500), ("tfbind8", 10**9))  # and how many rows at most
    repeats: int = 3
    batch: int = 100
    config: db.EnsembleConfig | None = None
    anywhere: bool = False  # the paper's size also without a GPU


FULL = Size()


def measure(machine: Machine, size: Size = FULL) -> Found:
    found = Found()
    for name in size.tasks:
        task = db.make_task(name)
        opt = db.make_optimizer("diffbbo", task.space, minimize=task.minimize, device=machine.device,
                                config=size.config)  # fmt: skip
        row = rounds(task, opt, size)
        found.rows.append({"method": "diffbbo", "task": name, **row, "paper_s": None})
        found.targets.append(Target(f"a round of the default on {name}, {row['rows']:,} rows", row["round_s"].median,
                                    LIMIT[machine.device], unit="s"))  # fmt: skip
    if machine.device != "cuda" and not size.anywhere:
        return found
    config = size.config or db.EnsembleConfig(**(PRESETS["paper"] | DiffBBOPaper.method | {"patience": 10**9}))
    for name, most in size.paper:
        task = db.make_task(name)
        opt = DiffBBOPaper(task.space, minimize=task.minimize, device=machine.device, config=config)
        row = rounds(task, opt, size, most)
        found.rows.append({"method": "diffbbo-paper", "task": name, **row, "paper_s": PAPER[name]})
        found.targets.append(Target(f"a round of the paper's size on {name}, {row['rows']:,} rows, "
                                    f"{row['steps']:,} steps", row["round_s"].median, PAPER_LIMIT[name],
                                    unit="s"))  # fmt: skip
    return found


def rounds(task: db.Task, opt: db.Optimizer, size: Size, most: int | None = None) -> Row:
    """Batches of the same data, one after the other; the first is a warm-up."""
    x, y = (part[:most] for part in task.start(0))
    opt.tell(x, y)
    infos = [opt.ask(size.batch).info for _ in range(size.repeats + 1)]
    times, train = (Times(tuple(info[what] for info in infos[1:])) for what in ("ask_s", "train_s"))
    return {"rows": len(x), "steps": max(info["steps"] for info in infos), "round_s": times, "train_s": train}
