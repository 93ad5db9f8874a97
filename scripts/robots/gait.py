"""Find an open-loop gait for the default design by CMA-ES: the first stage of a controller.

    python scripts/robots/gait.py ant out/ant_gait.npz --seed 0 --minutes 2 --workers 2

A sine per motor (offset, amplitude, phase) and one frequency: 37 numbers for the ant, 16 for D'Kitty, whose legs are
alike. The ant's cost of control is raised step by step, since doing nothing (99) beats clumsy first steps at full cost.
Writes the gait and its reward curve.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time

import numpy as np
from cmaes import CMA

from diffbbo.robots.ant import Ant
from diffbbo.robots.controller import Controller
from diffbbo.robots.dkitty import DKitty
from diffbbo.robots.robot import Robot, Unstable, play

ROBOTS: dict[str, type[Robot]] = {"ant": Ant, "dkitty": DKitty}
NUMBERS = {"ant": 37, "dkitty": 16}
FREQUENCY = {"ant": (0.5, 4.0), "dkitty": (0.2, 1.6)}


def decode(name: str, z: np.ndarray) -> Controller:
    """The gait that the numbers `z` stand for; the frequency is the last of them."""
    low, high = FREQUENCY[name]
    frequency = low + (high - low) / (1 + np.exp(-z[-1]))
    gait = trot(z) if name == "dkitty" else z[:36].reshape(3, 12) * np.array([[0.3], [0.3], [2.0]])
    return Controller(float(frequency), gait, np.zeros(1), np.ones(1), ())


def trot(z: np.ndarray) -> np.ndarray:
    """All legs alike but for their phases, hips mirrored, front and back with offsets of their own."""
    offset, amplitude, shift, front = z[:3], z[3:6], 2 * z[6:9], 0.5 * z[9:12]
    phases = np.pi * np.array([0, 1, 0, 1]) + np.array([0, *z[12:15]])  # a trot to begin with
    legs = []
    for side, end, phase in zip((1, -1, -1, 1), (1, 1, -1, -1), phases, strict=True):
        mirror = np.array([side, 1, 1])
        middle = 0.9 * np.tanh(offset + end * front)
        swing = np.tanh(amplitude) * (1 - np.abs(middle))  # within [-1, 1], so that a correction always has an effect
        legs.append([mirror * middle, mirror * swing, shift + phase])
    return np.concatenate(legs, axis=1)


class Gait:
    """The gait alone, without a network."""

    def __init__(self, name: str, z: np.ndarray) -> None:
        self.controller = decode(name, z)

    def __call__(self, observation: np.ndarray) -> np.ndarray:
        c = self.controller
        phase = 2 * np.pi * c.frequency * observation[0]
        return np.clip(c.gait[0] + c.gait[1] * np.sin(phase + c.gait[2]), -1, 1)


def score(job: tuple[str, np.ndarray, float]) -> tuple[float, float]:
    """What the search maximises, and the return."""
    name, z, cost = job
    robot = ROBOTS[name](ROBOTS[name].default)
    if isinstance(robot, Ant):
        robot.control_cost = cost
    heights: list[float] = []
    try:
        total = play(robot, Gait(name, z), lambda robot: heights.append(robot.data.qpos[2]))
    except Unstable:
        return -1000.0, -1000.0
    if isinstance(robot, DKitty):
        # Lying down upright returns more than clumsy steps do, so a gait is judged by the way it makes on its feet.
        way = 2 - float(np.linalg.norm(robot.to_goal()))
        lying = max(0.0, -0.1 - float(np.mean(heights)))
        return 100 * way + robot.step_number - 300 * lying + 0.1 * total, total
    return total, total


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("robot", choices=ROBOTS)
    parser.add_argument("out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--population", type=int, default=24)
    args = parser.parse_args()
    begun, curve = time.time(), []
    best, best_z = -np.inf, np.zeros(NUMBERS[args.robot])
    with multiprocessing.get_context("spawn").Pool(args.workers) as pool:
        size = NUMBERS[args.robot]
        search = CMA(mean=np.zeros(size), sigma=1.0, seed=args.seed, population_size=args.population)
        generation = 0
        while (share := (time.time() - begun) / (60 * args.minutes)) < 1:
            cost = 0.5 * min(1.0, 0.1 + 1.5 * share)
            zs = [search.ask() for _ in range(args.population)]
            merits, returns = np.array(pool.map(score, [(args.robot, z, cost) for z in zs], chunksize=2)).T
            search.tell([(z, -merit) for z, merit in zip(zs, merits, strict=True)])
            k = int(np.argmax(merits))
            if cost >= 0.5 and merits[k] > best:
                best, best_z = merits[k], zs[k]
            curve.append((generation, cost, float(np.mean(returns)), float(np.max(returns))))
            if generation % 10 == 0:
                print(f"{generation} cost {cost:.2f} merit {merits[k]:.1f} return {returns[k]:.1f}", flush=True)
            generation += 1
    found = decode(args.robot, best_z)
    np.savez(args.out, frequency=[found.frequency], gait=found.gait, curve=np.array(curve))
    print(f"best {best:.1f} at {found.frequency:.2f} Hz")


if __name__ == "__main__":
    main()
