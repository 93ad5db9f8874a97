"""Run the GP rivals on the problems of their own literature and print what docs/methods.md says of them.

    python scripts/rivals/gp.py branin        GP-EI, GP-UCB, GP-JES: 6 designs to start, then one at a time
    python scripts/rivals/gp.py hartmann6     the same, 12 designs to start, then 4 at a time
    python scripts/rivals/gp.py ackley        TuRBO-1, appendix A of its paper: 20 to start, 10 at a time, 500 in all
    python scripts/rivals/gp.py ackley-5      TuRBO-5, the same with 10 designs to start each region
    python scripts/rivals/gp.py tutorial      TuRBO-1 as in BoTorch's tutorial: 20 to start, 4 at a time, 220 in all

`--seeds 5` sets how many runs. Everything is minimised.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from diffbbo import Real, Space
from diffbbo.registry import make_optimizer, make_task

METHODS = ("gp-ei", "gp-ucb", "gp-jes")


@dataclass(frozen=True)
class Problem:
    """A function to minimise from `initial` designs in batches of `q`, up to `evaluations` designs."""

    space: Space
    f: Callable[[Any], Any]
    initial: int
    q: int
    evaluations: int
    said: str  # what the literature reports for that budget
    methods: tuple[str, ...] = METHODS
    settings: dict[str, Any] = field(default_factory=dict)


def box(dimension: int, low: float, high: float) -> Space:
    return Space(tuple(Real(f"x{i}", low, high) for i in range(dimension)))


def problem(name: str) -> Problem:
    if name in ("branin", "hartmann6"):
        task = make_task(name, data=0)
        initial, q, evaluations = (6, 1, 40) if name == "branin" else (12, 4, 80)
        said = f"optimum {task.maximum:.6f}; Kriging with EI needs on average " + (
            "21 to 25 evaluations to 1 %" if name == "branin" else "131 to 169 evaluations to 1 %"
        )
        return Problem(task.space, task.evaluate, initial, q, evaluations, said)
    ackley = make_task("ackley", dimension=10, data=0)  # the same formula on the paper's bounds
    if name == "tutorial":
        said = "one run by TuRBO's first author: 4.14 after 100, 0.817 after 200, 0.686 after 220 evaluations"
        return Problem(box(10, -10.0, 15.0), ackley.value, 20, 4, 220, said, ("turbo",))
    said = "optimum 0; 'consistently find solutions close to the global optimum' (appendix A, figure 8)"
    several = {"regions": 5, "initial": 10} if name == "ackley-5" else {"initial": 20}
    start = 50 if name == "ackley-5" else 20
    return Problem(box(10, -5.0, 10.0), ackley.value, start, 10, 500, said, ("turbo",), several)


def run(method: str, p: Problem, seed: int) -> list[float]:
    """The best value after every evaluation."""
    optimizer = make_optimizer(method, p.space, seed=seed, minimize=True, **p.settings)
    values: list[float] = []
    while len(values) < p.evaluations:
        batch = optimizer.ask(p.q if values else p.initial)
        y = p.f(batch.x)
        optimizer.tell(batch, y)
        values.extend(y)
    return [float(v) for v in np.minimum.accumulate(values)[: p.evaluations]]


def show(name: str, seeds: int) -> None:
    p = problem(name)
    print(f"{name}: {p.said}")
    for method in p.methods:
        started = time.perf_counter()
        curves = np.array([run(method, p, seed) for seed in range(seeds)])
        at = [n for n in (20, 30, 40, 50, 80, 100, 200, 220, 300, 400, 500) if n <= p.evaluations]
        for n in at:
            column = curves[:, n - 1]
            print(f"  {method} after {n}: median {np.median(column):.5g}, each {' '.join(f'{v:.4g}' for v in column)}")
        print(f"  {method}: {(time.perf_counter() - started) / seeds:.0f} s a run", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem", choices=["branin", "hartmann6", "ackley", "ackley-5", "tutorial"])
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    logging.getLogger("diffbbo").setLevel(logging.ERROR)
    show(options.problem, options.seeds)
