"""The fast sampler, DPM-Solver++ in the default's steps, against the paper's 1000 steps of Euler-Maruyama.

Time and quality by one trained ensemble: as the default trains it, on tfbind8, as many draws as it makes to choose y*.
Quality also where the truth is known in closed form: a mixture whose denoiser is exact. Quality is the energy distance
(unbiased: about 0 for equal distributions, and then as often below as above) to exact draws of the mixture, and for the
ensemble, whose truth nobody knows, to other draws in 1000 steps. The fast sampler counts as not worse if its mean
distance is above the slow one's by no more than two standard errors of the difference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

import diffbbo as db
from diffbbo.diffusion.ensemble import Ensemble, fit
from diffbbo.diffusion.sampling import Denoiser, dpm_solver, euler_maruyama
from diffbbo.diffusion.sde import VPSDE
from diffbbo.encoding import Encoder, ObjectiveScale
from diffbbo.types import Array

from .common import Found, Machine, Row, Target, in_turns, seconds

MODES = ((-1.5, 0.0), (1.5, 0.5), (0.0, -1.5))
SHARES, WIDTH = (0.5, 0.3, 0.2), 0.05
SLOW = 1000


@dataclass(frozen=True)
class Size:
    rows: int = 4000
    draws: int = 1000  # of each member at a time
    sets: int = 12  # timed of each sampler
    references: int = 6  # that each is compared with
    slow: int = SLOW  # steps
    train: int = 800  # steps at most


FULL = Size()


def measure(machine: Machine, size: Size = FULL) -> Found:
    ensemble, condition = trained(size, machine.device)
    steps = ensemble.config.sampling_steps
    y = torch.full((ensemble.config.members, size.draws, 1), condition, device=machine.device)
    sde = ensemble.network.sde
    by_network = Problem(ensemble.denoiser(y), (*y.shape[:2], ensemble.network.features), ensemble.generator, sde,
                         torch.float32)  # fmt: skip
    mixture = Problem(exact_denoiser(sde, machine.device), (ensemble.config.members * size.draws, 2),
                      torch.Generator(machine.device).manual_seed(0), sde, torch.float64)  # fmt: skip
    problems: dict[str, tuple[Problem, Callable[[], Tensor]]] = {
        "mixture of three Gaussians, exact denoiser": (mixture, partial(exact_draws, mixture)),
        "ensemble trained on tfbind8": (by_network, partial(by_network.slow, size.slow)),
    }
    rows: list[Row] = []
    targets: list[Target] = []
    for name, (problem, truth) in problems.items():
        drawn: dict[str, list[Tensor]] = {"slow": [], "fast": []}

        def work(which: str, count: int, problem: Problem = problem, into: dict[str, list[Tensor]] = drawn) -> float:
            draw = partial(getattr(problem, which), count)
            return seconds(lambda: into[which].append(draw()), machine.device)

        times = in_turns({"slow": partial(work, "slow", size.slow), "fast": partial(work, "fast", steps)}, size.sets)
        references = [truth() for _ in range(size.references)]
        # The warm-up's draws are as good as any.
        distances = {which: energy_distances(found, references) for which, found in drawn.items()}
        gap = float(distances["fast"].mean() - distances["slow"].mean())
        error = float(np.sqrt(sum(d.var(ddof=1) / len(d) for d in distances.values())))
        speedup = times["slow"].over(times["fast"])
        rows.append({
            "problem": name, "samples": int(np.prod(problem.shape[:-1])), "slow_steps": size.slow, "fast_steps": steps,
            "slow_s": times["slow"], "fast_s": times["fast"], "speedup": speedup,
            "slow_distance": float(distances["slow"].mean()), "fast_distance": float(distances["fast"].mean()),
            "gap": gap, "gap_error": error,
        })  # fmt: skip
        targets.append(Target(f"fast sampler's distance above the slow one's, in standard errors: {name}",
                              gap / error, 2.0))  # fmt: skip
        if problem is by_network and machine.device == "cpu":  # on a GPU both wait for launches, and neither is long
            targets.append(Target(f"{size.slow} steps / fast sampler: {name}", speedup.median, 20.0,
                                  at_least=True, unit="x"))  # fmt: skip
    return Found(rows, targets)


@dataclass(frozen=True)
class Problem:
    """A denoiser, and the shape of what is drawn through it."""

    denoiser: Denoiser
    shape: tuple[int, ...]
    generator: torch.Generator
    sde: VPSDE
    dtype: torch.dtype

    def noise(self) -> Tensor:
        return torch.randn(self.shape, generator=self.generator, device=self.generator.device, dtype=self.dtype)

    @torch.no_grad()
    def slow(self, steps: int) -> Tensor:
        return euler_maruyama(self.denoiser, self.sde, self.noise(), steps, self.generator).flatten(0, -2)

    @torch.no_grad()
    def fast(self, steps: int) -> Tensor:
        return dpm_solver(self.denoiser, self.sde, self.noise(), steps, self.generator).flatten(0, -2)


def trained(size: Size, device: str) -> tuple[Ensemble, float]:
    """The default's inverse model, and the condition that stands for phi."""
    task = db.make_task("tfbind8")
    x, y = task.start(0)
    best = np.argsort(-y, kind="stable")[: size.rows]
    encoder, scale = Encoder.fit(task.space, x[best]), ObjectiveScale.robust(y[best])
    config = db.DiffBBO(task.space, device=device).config
    config = db.EnsembleConfig(**(vars(config) | {"max_steps": min(size.train, config.max_steps)}))
    ensemble = fit(encoder.encode(x[best]), scale.condition(y[best]), config, 0, device)
    return ensemble, float(scale.condition(scale.targets([1.0]))[0])


def exact_denoiser(sde: VPSDE, device: str) -> Denoiser:
    """eps(x, t) of the mixture: x_t is a mixture of normals around alpha times the modes, of variance v."""
    modes = torch.tensor(MODES, dtype=torch.float64, device=device)
    shares = torch.tensor(SHARES, dtype=torch.float64, device=device)

    def eps(x: Tensor, t: Tensor) -> Tensor:
        alpha, sigma = sde.alpha(t), sde.sigma(t)
        v = alpha**2 * WIDTH**2 + sigma**2
        offset = x[:, None] - alpha * modes
        share = torch.softmax(torch.log(shares) - (offset**2).sum(-1) / (2 * v), dim=1)
        return sigma * (share[..., None] * offset).sum(1) / v

    return eps


def exact_draws(problem: Problem) -> Tensor:
    device = problem.generator.device
    shares = torch.tensor(SHARES, dtype=torch.float64, device=device)
    which = torch.multinomial(shares, problem.shape[0], replacement=True, generator=problem.generator)
    return torch.tensor(MODES, dtype=torch.float64, device=device)[which] + WIDTH * problem.noise()


def energy_distances(drawn: list[Tensor], references: list[Tensor]) -> Array:
    """Of each set drawn, the mean over references of 2 E|a - b| - E|a - a'| - E|b - b'|, unbiased."""

    def within(u: Tensor) -> float:
        return float(torch.cdist(u, u).sum()) / (len(u) * (len(u) - 1))

    spread = np.mean([within(b) for b in references])
    return np.array([2 * np.mean([float(torch.cdist(a, b).mean()) for b in references]) - within(a) - spread
                     for a in drawn])  # fmt: skip
