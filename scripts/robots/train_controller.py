"""Train the design-conditioned controller of a robot by PPO on top of its gait.

    python scripts/robots/train_controller.py ant gait.npz out/ant --seed 0 --minutes 8 --workers 8

Every episode has a body of its own: the default design, or that design with Gaussian noise on every number. The network
sees the design, so one controller learns to walk with all of them. Writes `OUT.safetensors` (the weights of the best
test so far) and `OUT.json` (settings and reward curve) as it goes.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file
from torch import nn

from diffbbo.robots.ant import Ant
from diffbbo.robots.controller import Controller
from diffbbo.robots.dkitty import DKitty
from diffbbo.robots.robot import STEPS, Robot, Unstable, play

ROBOTS: dict[str, type[Robot]] = {"ant": Ant, "dkitty": DKitty}
REWARD_SCALE = {"ant": 0.1, "dkitty": 0.1}
FALL_COST = 30.0  # while learning: at the full 500 falls drown everything else
NOISE = {"ant": 0.075, "dkitty": 0.1}  # of the published designs, in normalised space [-1, 1]
HIDDEN, GAMMA, LAMBDA, CLIP, EPOCHS, MINIBATCH = 128, 0.99, 0.95, 0.2, 8, 4096


def draw_design(robot: type[Robot], noise: float, rng: np.random.Generator) -> np.ndarray:
    """A quarter are the default design; the others have noise of half to one and a half of the given size."""
    unit = robot.unit(robot.default)
    if rng.random() < 0.25:
        return robot.default
    size = rng.choice([0.5, 1.0, 1.0, 1.5]) * noise / 2  # [0, 1] is half as wide as [-1, 1]
    return robot.from_unit(unit + size * rng.standard_normal(len(unit)))


def rollout(robot: Robot, controller: Controller, std: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """One episode with exploration: observations, corrections drawn, rewards."""
    observations, drawn, rewards = [], [], []
    offset, amplitude, shift = controller.gait
    fell = False
    for _ in range(STEPS):
        observation = robot.observe()
        h = controller.features(observation)
        for weight, bias in controller.layers[:-1]:
            h = np.tanh(h @ weight + bias)
        weight, bias = controller.layers[-1]
        correction = h @ weight + bias + std * rng.standard_normal(12)
        phase = 2 * np.pi * controller.frequency * observation[0]
        action = np.clip(offset + amplitude * np.sin(phase + shift) + correction, -1, 1)
        try:
            reward, fell = robot.step(action)
        except Unstable:
            reward, fell = -50.0, True
        observations.append(observation)
        drawn.append(correction)
        rewards.append(reward)
        if fell:
            break
    return {
        "observation": np.array(observations, np.float32),
        "drawn": np.array(drawn, np.float32),
        "reward": np.array(rewards, np.float32),
    }


def serve(pipe: Connection, name: str, seed: int) -> None:
    """A worker: episodes with the weights it is sent, or tests without exploration."""
    rng, kind = np.random.default_rng(seed), ROBOTS[name]
    while True:
        job = pipe.recv()
        if job is None:
            return
        controller = Controller.from_arrays(job["arrays"])
        if "designs" in job:
            pipe.send([test(kind, design, controller) for design in job["designs"]])
            continue
        episodes = []
        for _ in range(job["episodes"]):
            try:
                robot = kind(draw_design(kind, job["noise"], rng))
            except Unstable:
                continue
            if isinstance(robot, Ant):
                robot.control_cost = job["cost"]
            if isinstance(robot, DKitty):
                robot.fall_cost = FALL_COST
            episodes.append(rollout(robot, controller, job["std"], rng))
        pipe.send(episodes)


def test(kind: type[Robot], design: np.ndarray, controller: Controller) -> tuple[float, float]:
    """Return, and how far it came (ant) or how near the goal it ended (D'Kitty)."""
    try:
        robot = kind(design)
        total = play(robot, controller)
    except Unstable:
        return -1000.0, np.nan
    place = robot.data.qpos[0] if isinstance(robot, Ant) else np.linalg.norm(robot.to_goal())  # type: ignore[attr-defined]
    return float(total), float(place)


def network(inputs: int, outputs: int, hidden: int, last: float) -> nn.Sequential:
    layers = nn.Sequential(
        nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, outputs)
    )
    for layer in layers:
        if isinstance(layer, nn.Linear):
            nn.init.orthogonal_(layer.weight, 2**0.5)
            nn.init.zeros_(layer.bias)
    with torch.no_grad():
        layers[-1].weight.mul_(last)
    return layers


class Learner:
    """The actor and the critic, and one PPO update of both."""

    def __init__(self, width: int, gait: np.ndarray, frequency: float, seed: int, minutes: float) -> None:
        torch.manual_seed(seed)
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.gait, self.frequency = gait, frequency
        self.mean, self.variance, self.count = np.zeros(width), np.ones(width), 1e-4
        self.actor = network(width + 2, 12, HIDDEN, 0.0).to(self.device)
        self.critic = network(width + 2, 1, 256, 0.1).to(self.device)
        self.log_std = nn.Parameter(torch.full((12,), -1.6, device=self.device))
        self.parameters = [*self.actor.parameters(), *self.critic.parameters(), self.log_std]
        self.optimizer = torch.optim.Adam(self.parameters, lr=3e-4, eps=1e-5)

    def controller(self) -> Controller:
        layers = tuple(
            (m.weight.detach().double().cpu().numpy().T.copy(), m.bias.detach().double().cpu().numpy())
            for m in self.actor if isinstance(m, nn.Linear)
        )  # fmt: skip
        return Controller(self.frequency, self.gait, self.mean.copy(), self.scale(), layers)

    def scale(self) -> np.ndarray:
        return np.sqrt(self.variance) + 1e-2

    def see(self, observations: np.ndarray) -> None:
        """Update the running mean and variance of the observations."""
        n, mean, variance = len(observations), observations.mean(axis=0), observations.var(axis=0)
        total, delta = self.count + n, mean - self.mean
        self.variance = (self.variance * self.count + variance * n + delta**2 * self.count * n / total) / total
        self.mean, self.count = self.mean + delta * n / total, min(total, 2e6)

    def features(self, observation: torch.Tensor) -> torch.Tensor:
        mean = torch.as_tensor(self.mean, dtype=torch.float32, device=self.device)
        scale = torch.as_tensor(self.scale(), dtype=torch.float32, device=self.device)
        phase = 2 * np.pi * self.frequency * observation[:, :1]
        return torch.cat([phase.sin(), phase.cos(), ((observation - mean) / scale).clamp(-5, 5)], dim=1)

    def update(self, episodes: list[dict[str, np.ndarray]], reward_scale: float) -> float:
        observation = torch.as_tensor(np.concatenate([e["observation"] for e in episodes]), device=self.device)
        drawn = torch.as_tensor(np.concatenate([e["drawn"] for e in episodes]), device=self.device)
        features = self.features(observation)
        with torch.no_grad():
            value = self.critic(features)[:, 0].cpu().numpy()
            old = self.log_density(features, drawn)
        advantage, target = self.advantages(episodes, value, reward_scale)
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
        n, kl = len(observation), 0.0
        for _ in range(EPOCHS):
            for rows in torch.randperm(n, device=self.device).split(MINIBATCH):
                density = self.log_density(features[rows], drawn[rows])
                ratio = (density - old[rows]).exp()
                a = advantage[rows]
                gain = torch.minimum(ratio * a, ratio.clamp(1 - CLIP, 1 + CLIP) * a).mean()
                error = (self.critic(features[rows])[:, 0] - target[rows]).square().mean()
                self.optimizer.zero_grad(set_to_none=True)
                (0.5 * error - gain).backward()
                nn.utils.clip_grad_norm_(self.parameters, 0.5)
                self.optimizer.step()
            with torch.no_grad():
                kl = float((old - self.log_density(features, drawn)).mean())
            if kl > 0.03:
                break
        self.see(observation.double().cpu().numpy())
        return kl

    def log_density(self, features: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
        z = (drawn - self.actor(features)) / self.log_std.exp()
        return -(0.5 * z.square() + self.log_std).sum(dim=1)

    def advantages(self, episodes, value, reward_scale):
        """Generalised advantage estimates; every episode ends for good after its last step."""
        advantage, start = np.zeros(len(value), np.float32), 0
        for episode in episodes:
            reward, end, running, after = episode["reward"] * reward_scale, start + len(episode["reward"]), 0.0, 0.0
            for k in range(end - 1, start - 1, -1):
                running = reward[k - start] + GAMMA * after - value[k] + GAMMA * LAMBDA * running
                advantage[k], after = running, value[k]
            start = end
        as_tensor = lambda array: torch.as_tensor(array, device=self.device)  # noqa: E731
        return as_tensor(advantage), as_tensor(advantage + value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("robot", choices=ROBOTS)
    parser.add_argument("gait")
    parser.add_argument("out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=8)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--episodes", type=int, default=160, help="per update")
    args = parser.parse_args()
    torch.set_num_threads(1)
    kind, found = ROBOTS[args.robot], np.load(args.gait)
    width = len(kind(kind.default).observe())
    learner = Learner(width, found["gait"], float(found["frequency"][0]), args.seed, args.minutes)
    context = multiprocessing.get_context("spawn")
    pipes = []
    for k in range(args.workers):
        ours, theirs = context.Pipe()
        context.Process(target=serve, args=(theirs, args.robot, 1000 * args.seed + k), daemon=True).start()
        pipes.append(ours)
    rng = np.random.default_rng(args.seed + 77)
    unit, spread = kind.unit(kind.default), NOISE[args.robot] / 2
    probes = [kind.default] + [kind.from_unit(unit + spread * rng.standard_normal(len(unit))) for _ in range(47)]
    log = {"settings": vars(args), "torch": torch.__version__, "gait": found["curve"].round(2).tolist()}
    begun, curve, best, update, steps = time.time(), [], -np.inf, 0, 0
    while True:
        share = (time.time() - begun) / (60 * args.minutes)
        arrays = learner.controller().to_arrays()
        if update % 20 == 0 or share >= 1:
            results: list[tuple[float, float]] = [(0.0, 0.0)] * len(probes)
            for k, pipe in enumerate(pipes):
                pipe.send({"arrays": arrays, "designs": probes[k :: len(pipes)]})
            for k, pipe in enumerate(pipes):
                results[k :: len(pipes)] = pipe.recv()
            returns = np.array([r for r, _ in results])
            entry = {
                "update": update, "steps": steps, "seconds": round(time.time() - begun, 1),
                "default": round(float(returns[0]), 2), "place": round(results[0][1], 3),
                "noisy_mean": round(float(returns[1:].mean()), 2),
                "noisy_p10": round(float(np.percentile(returns[1:], 10)), 2),
                "noisy_p90": round(float(np.percentile(returns[1:], 90)), 2),
                "std": round(float(learner.log_std.detach().exp().mean()), 3),
            }  # fmt: skip
            curve.append(entry)
            print(args.robot, json.dumps(entry), flush=True)
            merit = 0.5 * returns[0] + 0.5 * returns[1:].mean()
            if merit > best and (share > 0.3 or update == 0):
                best = merit
                single = {name: np.ascontiguousarray(array, dtype=np.float32) for name, array in arrays.items()}
                save_file(single, f"{args.out}.safetensors")
            Path(f"{args.out}.json").write_text(json.dumps(log | {"curve": curve}, indent=1))
        if share >= 1:
            break
        cost = 0.5 * min(1.0, 0.4 + 1.2 * share)  # of control; the full one from the middle on
        noise = NOISE[args.robot] * min(1.2, 0.2 + 1.5 * share)  # bodies grow apart as walking is learnt
        for group in learner.optimizer.param_groups:
            group["lr"] = 3e-4 * (1 - 0.9 * share)
        std = learner.log_std.detach().double().exp().cpu().numpy()
        for pipe in pipes:
            job = {
                "arrays": arrays,
                "std": std,
                "cost": cost,
                "noise": noise,
                "episodes": args.episodes // args.workers,
            }
            pipe.send(job)
        episodes = [episode for pipe in pipes for episode in pipe.recv()]
        steps += sum(len(e["reward"]) for e in episodes)
        learner.update(episodes, REWARD_SCALE[args.robot])
        update += 1
    for pipe in pipes:
        pipe.send(None)


if __name__ == "__main__":
    main()
