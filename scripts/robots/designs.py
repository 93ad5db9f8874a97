"""Make the table of scored designs of a robot by the published recipe.

    python scripts/robots/designs.py ant ant.safetensors ant.npz
    python scripts/robots/designs.py dkitty dkitty.safetensors dkitty.npz --generations 20

CMA-ES restarts (step 0.02, at most 250 generations as published, population 16) from the default design plus Gaussian
noise (0.075 for the ant, 0.1 for D'Kitty), all in the space where every number runs from -1 to 1, until 25,000 designs
are scored; the first is the default design. Designs are rounded to a thousandth of each range before they are scored,
so that the table is small and exact. Every restart has a seed of its own. D'Kitty's are ended after 20 generations:
with our controller the search is over after some 15, and a table of near-copies of six bodies would serve nobody. One
whose first three generations all fall is given up and left out: a quarter of them never leave that plateau.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from multiprocessing.connection import Connection, wait
from pathlib import Path

import numpy as np
from cmaes import CMA
from safetensors.numpy import load_file

from diffbbo.robots.ant import Ant
from diffbbo.robots.controller import Controller
from diffbbo.robots.dkitty import DKitty
from diffbbo.robots.robot import Robot, Unstable, play

ROBOTS: dict[str, type[Robot]] = {"ant": Ant, "dkitty": DKitty}
NOISE = {"ant": 0.075, "dkitty": 0.1}
FAILURE = {"ant": -386.9003601, "dkitty": -880.4584961}  # the lowest published scores
STEP, POPULATION, GRID = 0.02, 16, 1000
HOPELESS = {"ant": -np.inf, "dkitty": -480.0}  # a restart whose first PATIENCE generations stay below is given up
PATIENCE = 3


def score(name: str, grid: np.ndarray, controller: Controller) -> float:
    kind = ROBOTS[name]
    try:
        return play(kind(kind.from_unit(grid / GRID)), controller)
    except Unstable:
        return FAILURE[name]


def restart(pipe: Connection, name: str, weights: str, seed: int, number: int, generations: int) -> None:
    """One restart: sends (grid, score) of every generation, then whether it is to be kept."""
    kind, controller = ROBOTS[name], Controller.from_arrays(load_file(weights))
    rng = np.random.default_rng([seed, number])
    golden = 2 * kind.unit(kind.default) - 1
    begin = golden + NOISE[name] * rng.standard_normal(len(golden))
    search = CMA(mean=begin, sigma=STEP, seed=int(rng.integers(2**31)), population_size=POPULATION)
    highest = -np.inf
    for generation in range(1, generations + 1):
        asked = [search.ask() for _ in range(POPULATION)]
        grids = [np.rint(GRID * np.clip((x + 1) / 2, 0, 1)).astype(np.uint16) for x in asked]
        scores = [score(name, grid, controller) for grid in grids]
        pipe.send((np.array(grids), np.array(scores)))
        search.tell([(x, -y) for x, y in zip(asked, scores, strict=True)])
        highest = max(highest, *scores)
        if search.should_stop() or (generation == PATIENCE and highest < HOPELESS[name]):
            break
    pipe.send(highest >= HOPELESS[name])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("robot", choices=ROBOTS)
    parser.add_argument("weights")
    parser.add_argument("out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--samples", type=int, default=25_000)
    parser.add_argument("--generations", type=int, default=250, help="at most, of a restart")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=1e9)
    args = parser.parse_args()
    kind = ROBOTS[args.robot]
    first = np.rint(GRID * kind.unit(kind.default)).astype(np.uint16)
    found: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}
    running: dict[Connection, int] = {}
    context, begun, saved, number, ended = multiprocessing.get_context("spawn"), time.time(), 0.0, 0, False

    def total() -> int:
        return 1 + sum(len(y) for blocks in found.values() for _, y in blocks)

    def save() -> None:
        ordered = [block for k in sorted(found) for block in found[k]]
        controller = Controller.from_arrays(load_file(args.weights))
        x = np.concatenate([first[None], *[x for x, _ in ordered]])[: args.samples]
        y = np.concatenate([[score(args.robot, first, controller)], *[y for _, y in ordered]])[: args.samples]
        np.savez_compressed(args.out, grid=x, y=y)
        low, high = np.percentile(y, [10, 90])
        facts = {
            "designs": len(y), "restarts": len(found), "default": y[0], "low": y.min(), "p10": low,
            "p50": np.median(y), "p90": high, "high": y.max(), "seconds": round(time.time() - begun, 1),
        }  # fmt: skip
        Path(args.out).with_suffix(".json").write_text(json.dumps(facts | {"seed": args.seed}))
        print(args.robot, json.dumps(facts), flush=True)

    while running or not ended:
        if time.time() - begun > 60 * args.minutes:
            break
        ended = total() >= args.samples
        while not ended and len(running) < args.workers:
            ours, theirs = context.Pipe()
            job = theirs, args.robot, args.weights, args.seed, number, args.generations
            context.Process(target=restart, args=job, daemon=True).start()
            running[ours], found[number], number = number, [], number + 1
        for pipe in wait(list(running), timeout=5):
            block = pipe.recv()  # type: ignore[union-attr]
            if isinstance(block, bool | np.bool_):
                restarted = running.pop(pipe)  # type: ignore[arg-type]
                if not block:
                    del found[restarted]
            else:
                found[running[pipe]].append(block)  # type: ignore[index]
        if time.time() - saved > 40:
            save()
            saved = time.time()
    save()


if __name__ == "__main__":
    main()
