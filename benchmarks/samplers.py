"""Does the fast sampler reach the quality of the paper's 1000 steps? The table of docs/decisions.md.

    python -m benchmarks.samplers

First on a mixture of three narrow Gaussians with its exact denoiser, where the truth is known; then on an ensemble
trained on TFBind8, where the reference is the 1000-step sampler itself. Distances are means over four reference sets,
the floor is the largest between two of those.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import combinations

import numpy as np
import torch
from torch import Tensor

import diffbbo as db
from diffbbo.diffusion.ensemble import fit
from diffbbo.diffusion.sampling import dpm_solver, euler_maruyama
from diffbbo.diffusion.sde import VPSDE
from diffbbo.encoding import Encoder, ObjectiveScale

from .draws import Problem, exact_denoiser, exact_draws

SETTINGS = [("euler-maruyama", 1000), ("euler-maruyama", 100), ("euler-maruyama", 30),
            ("dpm-solver++ ode", 20), ("dpm-solver++ ode", 50),
            ("dpm-solver++", 10), ("dpm-solver++", 20), ("dpm-solver++", 30), ("dpm-solver++", 50)]  # fmt: skip
N = 4000


def energy_distance(a: Tensor, b: Tensor) -> float:
    """Unbiased, so that it can be slightly negative for equal distributions."""
    within = sum(float(torch.cdist(u, u).sum()) / (len(u) * (len(u) - 1)) for u in (a, b))
    return 2 * float(torch.cdist(a, b).mean()) - within


def table(title: str, draw: Callable[[str, int], Tensor], reference: Callable[[], Tensor]) -> None:
    sets = [reference() for _ in range(4)]
    floor = max(abs(energy_distance(a, b)) for a, b in combinations(sets, 2))
    print(f"\n{title}\nnoise floor (largest of 6): {floor:.5f}\n")
    print("| sampler | steps | energy distance | seconds |\n|---|---|---|---|")
    for sampler, steps in SETTINGS:
        clock = time.perf_counter()
        x = draw(sampler, steps)
        seconds = time.perf_counter() - clock
        print(
            f"| {sampler} | {steps} | {np.mean([energy_distance(x, one) for one in sets]):.5f} | {seconds:.2f} |",
            flush=True,
        )


def mixture() -> None:
    sde, generator = VPSDE(), torch.Generator().manual_seed(0)
    eps = exact_denoiser(sde, "cpu")
    problem = Problem(eps, (N, 2), generator, sde, torch.float64)

    def draw(sampler: str, steps: int) -> Tensor:
        if sampler == "euler-maruyama":
            return problem.slow(steps)
        return dpm_solver(eps, sde, problem.noise(), steps, None if "ode" in sampler else generator)

    table("Mixture of three Gaussians, exact denoiser, against exact draws", draw, lambda: exact_draws(problem))


def trained() -> None:
    task = db.make_task("tfbind8")
    x, y = task.start(0)
    encoder, scale = Encoder.fit(task.space, x), ObjectiveScale.robust(y)
    ensemble = fit(encoder.encode(x), scale.condition(y), db.EnsembleConfig(), seed=0, device="cpu")
    target = scale.condition(scale.targets([1.0]))

    def draw(sampler: str, steps: int) -> Tensor:
        generator, y = ensemble.generator, torch.full((5, N // 5, 1), float(target[0]))
        x = torch.randn((5, N // 5, encoder.features), generator=generator)
        with torch.no_grad():
            if sampler == "euler-maruyama":
                x = euler_maruyama(ensemble.denoiser(y), ensemble.network.sde, x, steps, generator)
            else:
                x = dpm_solver(
                    ensemble.denoiser(y), ensemble.network.sde, x, steps, None if "ode" in sampler else generator
                )
        return x.reshape(-1, encoder.features)

    table("Ensemble trained on TFBind8's start data, y = phi, guidance 2, against 1000 steps", draw,
          lambda: draw("euler-maruyama", 1000))  # fmt: skip


if __name__ == "__main__":
    mixture()
    trained()
