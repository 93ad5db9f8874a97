"""Seconds per ask(100) of every method at 1,000 and 10,000 told rows, all in one run, as docs/methods.md shows them.

    OMP_NUM_THREADS=1 python scripts/rivals/seconds.py [METHOD ...]

Rows are drawn from the spaces of tfbind8 and superconductor. `diffbbo-paper` has its `fast` size.
"""

from __future__ import annotations

import logging
import sys
import time

import numpy as np

from diffbbo.registry import make_optimizer, make_task, methods

PROBLEMS, ROWS = ("tfbind8", "superconductor"), (1_000, 10_000)


def seconds(method: str, problem: str, rows: int) -> float:
    """Of asking once, model and all; the packages a method needs are loaded before."""
    task = make_task(problem)
    x, y = task.start(0)
    rng = np.random.default_rng(0)
    more = task.space.sample(max(0, rows - len(x)), rng)
    x, y = np.concatenate([x, more])[:rows], np.concatenate([y, task.evaluate(more)])[:rows]
    settings = {"preset": "fast"} if method == "diffbbo-paper" else {}
    warm, timed = (make_optimizer(method, task.space, seed=seed, **settings) for seed in range(2))
    warm.tell(x[:20], y[:20])
    warm.ask(2)
    timed.tell(x, y)
    begin = time.perf_counter()
    timed.ask(100)
    return time.perf_counter() - begin


def main() -> None:
    logging.disable(logging.WARNING)
    names = sys.argv[1:] or list(methods())
    columns = [(problem, rows) for problem in PROBLEMS for rows in ROWS]
    print("| method | " + " | ".join(f"{problem}, {rows:,} rows" for problem, rows in columns) + " |")
    print("|---|" + "---|" * len(columns))
    for name in names:
        print(f"| {name} | " + " | ".join(f"{seconds(name, *column):.3g}" for column in columns) + " |", flush=True)


if __name__ == "__main__":
    main()
