"""Run the rivals without a GP on problems of their own literature and print what docs/methods.md says of them.

    python scripts/rivals/simple.py lfbo          LFBO with EI and with PI (BORE) against random search
    python scripts/rivals/simple.py cmaes         CMA-ES against the figures documented for two packages
    python scripts/rivals/simple.py tpe           TPE against random search, 200 evaluations one at a time
    python scripts/rivals/simple.py regularized   ageing, non-ageing evolution and random search under noise

`--seeds 5` sets how many runs, `--first 10` the first seed. Everything but `regularized` is minimised.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from diffbbo import Real, Sequence, Space
from diffbbo.registry import make_optimizer, make_task


@dataclass(frozen=True)
class Problem:
    """A function to minimise from `initial` designs in batches of `q`; shown after each number of evaluations `at`."""

    space: Space
    f: Callable[[Any], Any]
    optimum: float
    at: tuple[int, ...]
    q: int = 1
    initial: int = 10


def box(dimension: int, low: float, high: float) -> Space:
    return Space(tuple(Real(f"x{i}", low, high) for i in range(dimension)))


def known(name: str, at: tuple[int, ...], **settings: Any) -> Problem:
    task = make_task(name, data=0)
    return Problem(task.space, task.evaluate, float(task.maximum or 0.0), at, **settings)


def run(method: str, p: Problem, seed: int) -> np.ndarray:
    """All values in the order of measurement."""
    optimizer = make_optimizer(method, p.space, seed=seed, minimize=True)
    values: list[float] = []
    while len(values) < p.at[-1]:
        batch = optimizer.ask(p.q if values else p.initial)
        y = p.f(batch.x)
        optimizer.tell(batch, y)
        values.extend(y)
    return np.array(values)


def regrets(title: str, p: Problem, methods: tuple[str, ...], seeds: range) -> None:
    """A table of the simple regret: mean, standard error and median over the runs."""
    print(title)
    for method in methods:
        started = time.perf_counter()
        regret = np.array([np.minimum.accumulate(run(method, p, seed)) for seed in seeds]) - p.optimum
        for n in p.at:
            r = regret[:, n - 1]
            error = r.std(ddof=1) / np.sqrt(len(seeds)) if len(seeds) > 1 else np.nan
            each = " ".join(f"{v:.2g}" for v in r)
            print(f"  {method:<10} after {n:>3}: {r.mean():.4f} ± {error:.4f}, median {np.median(r):.4f}, each {each}")
        print(f"  {method:<10} {(time.perf_counter() - started) / len(seeds):.1f} s a run", flush=True)


def forrester(x: np.ndarray) -> np.ndarray:
    """On [0, 1]: the smallest value is -6.020740 at 0.757249, a local one -0.986 at 0.143."""
    return np.asarray(((6 * x - 2) ** 2 * np.sin(12 * x - 4))[:, 0])


def lfbo(seeds: range) -> None:
    methods = ("lfbo-ei", "lfbo-pi", "random")
    line = Problem(box(1, 0.0, 1.0), forrester, -6.020740, at=(12, 15, 20))
    regrets("Forrester, the function of the authors' synthetic example, one at a time", line, methods, seeds)
    regrets("Branin, 5 at a time", known("branin", (20, 30, 40), q=5), methods, seeds)
    regrets("Hartmann6, 15 at a time", known("hartmann6", (40, 70, 100), q=15), methods, seeds)


def ellipsoid(x: np.ndarray) -> np.ndarray:
    d = x.shape[1]
    return np.asarray(((1000 ** (np.arange(d) / (d - 1)) * x) ** 2).sum(axis=1))


def rosenbrock(x: np.ndarray) -> np.ndarray:
    return np.asarray((100 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (x[:, :-1] - 1) ** 2).sum(axis=1))


def cmaes(seeds: range) -> None:
    """The box is such that our start, its middle and a fifth of its range, is the documented mean and step size."""
    forty = box(40, -2.0, 8.0)  # mean 3, step size 2
    said = {3000: 179337.3, 6000: 16318.3, 9000: 3089.9, 12000: 1697.1, 15000: 717.8, 18000: 254.0, 21000: 97.7}
    print("ellipsoid in 40-D, one value at each number of evaluations, as documented: ", said)
    _show_cmaes(Problem(forty, ellipsoid, 0.0, (*said,), q=15, initial=15), seeds)
    print("sphere in 40-D, as documented: ", {3000: 0.00051})
    _show_cmaes(Problem(forty, lambda x: (x**2).sum(axis=1), 0.0, (3000,), q=15, initial=15), seeds)
    print("Rosenbrock in 10-D from 0.1: pycma's documentation asserts 1e-12 within 8,000 evaluations (step size 0.3)")
    ten = Problem(box(10, -1.4, 1.6), rosenbrock, 0.0, (8000,), q=10, initial=10)
    for seed in seeds:
        best = np.minimum.accumulate(run("cmaes", ten, seed))
        reached = int(np.argmax(best < 1e-12)) + 1 if best[-1] < 1e-12 else None
        print(f"  seed {seed}: below 1e-12 after {reached}, at last {best[-1]:.2g}", flush=True)


def _show_cmaes(p: Problem, seeds: range) -> None:
    """The median of the last generation's values, which stands for the one value that the documentation prints."""
    started = time.perf_counter()
    curves = [run("cmaes", p, seed) for seed in seeds]
    for n in p.at:
        middle = [np.median(values[n - p.q : n]) for values in curves]
        print(f"  after {n}: " + " ".join(f"{v:.5g}" for v in middle))
    print(f"  {(time.perf_counter() - started) / len(seeds):.0f} s a run", flush=True)


def tpe(seeds: range) -> None:
    for name in ("branin", "hartmann6"):
        p = known(name, (50, 100, 200))
        regrets(f"{name}, one at a time", p, ("optuna-tpe", "random"), seeds)


def regularized(seeds: range) -> None:
    """Bit strings whose value is their share of ones, measured with noise: the simulation of the paper's appendix."""
    for bits, noise, cycles in ((100, 0.01, 1000), (100, 0.05, 1000), (200, 0.05, 2000)):
        print(f"{bits} bits, noise {noise}, {cycles} evaluations one at a time: true value of the best measured")
        space = Space((Sequence("bits", bits, "01"),))
        methods: dict[str, dict[str, Any]] = {
            "ageing": {"name": "evolution-regularized", "sample": 10},
            "non-ageing": {"name": "evolution-regularized", "sample": 10, "ageing": False},
            "random": {"name": "random"},
        }
        for label, settings in methods.items():
            found = []
            for seed in seeds:
                optimizer = make_optimizer(space=space, seed=seed, **settings)
                rng = np.random.default_rng(seed)
                for _ in range(cycles):
                    batch = optimizer.ask(1)
                    optimizer.tell(batch, batch.x.mean(axis=1) + noise * rng.standard_normal())
                best = optimizer.data.x[optimizer.data.y.argmax()]
                found.append(best.mean())
            print(
                f"  {label:<10} mean {np.mean(found):.4f} ± {np.std(found, ddof=1) / np.sqrt(len(seeds)):.4f}, "
                f"each {' '.join(f'{v:.3f}' for v in found)}",
                flush=True,
            )


if __name__ == "__main__":
    shows = {"lfbo": lfbo, "cmaes": cmaes, "tpe": tpe, "regularized": regularized}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("method", choices=[*shows])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    logging.getLogger("diffbbo").setLevel(logging.ERROR)
    shows[options.method](range(options.first, options.first + options.seeds))
