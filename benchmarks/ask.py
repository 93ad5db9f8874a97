"""One whole `ask(100)` of `diffbbo` against a batch step of a Gaussian process with expected improvement.

*BoTorch* is what its manual recommends: SingleTaskGP on all rows, fitted by its marginal likelihood, then
qLogExpectedImprovement by `optimize_acqf`, one point after the other given those before (sequential greedy), with the
restarts, raw samples and steps of BoTorch's own tutorial on closed loops, but all restarts at once and half of its
Monte-Carlo samples, which is quicker. *gp-ei* is ours on the same acquisition: it sees at most 500 rows on a CPU and
chooses the batch from a pool. BoTorch takes minutes, so it is run once, after a small warm-up.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

import diffbbo as db
from diffbbo.gp.model import package, quiet
from diffbbo.types import Array
from diffbbo.variation import scaled

from .common import TASK, Found, Machine, Row, Target, Times, in_turns, seconds, told

RESTARTS, RAW, SAMPLES, STEPS = 10, 512, 128, 200


@dataclass(frozen=True)
class Size:
    rows: tuple[int, ...] = (500, 1000)
    batch: int = 100
    repeats: int = 5
    task: str = TASK
    config: db.EnsembleConfig | None = None
    effort: float = 1.0  # of gp-ei, and of BoTorch's restarts and steps


FULL = Size()


def measure(machine: Machine, size: Size = FULL) -> Found:
    package("botorch")  # refused at once where it is not installed
    rows, targets = [], []
    for count in size.rows:
        task, x, y = told(count, size.task)

        asking = partial(_asking, task, x, y, size.batch, machine.device)
        times = in_turns({"diffbbo": partial(asking, "diffbbo", {"config": size.config}),
                          "gp-ei": partial(asking, "gp-ei", {"effort": size.effort})}, size.repeats)  # fmt: skip
        z, values = scaled(task.space, x), -y if task.minimize else y
        botorch_step(z[:20], values[:20], 1, size.effort, machine.device)
        step = partial(botorch_step, z, values, size.batch, size.effort, machine.device)
        botorch = Times((seconds(step, machine.device),))
        speedup = Times((botorch.median / times["diffbbo"].median,))
        rows.append({
            "rows": count, "task": size.task, "batch": size.batch, "diffbbo_s": times["diffbbo"],
            "gp_ei_s": times["gp-ei"], "botorch_s": botorch, "botorch_speedup": speedup,
            "gp_ei_speedup": times["gp-ei"].over(times["diffbbo"]),
        })  # fmt: skip
        if count == max(size.rows):
            targets.append(Target(f"BoTorch's batch step / ask({size.batch}), {count} rows", speedup.median, 10.0,
                                  at_least=True, unit="x"))  # fmt: skip
    return Found(rows, targets)


def _asking(task: db.Task, x: Array, y: Array, batch: int, device: str, method: str, settings: Row) -> float:
    # A new optimizer each time: gp-ei keeps its fit.
    opt = db.make_optimizer(method, task.space, seed=0, minimize=task.minimize, device=device, **settings)
    opt.tell(x, y)
    return seconds(lambda: opt.ask(batch), device)


def botorch_step(z: Array, y: Array, batch: int, effort: float, device: str) -> Array:
    """Fit and choose: rows `(batch, d)` of the unit cube for rows `z` `(n, d)` and values `y` to be maximised."""
    models, transforms = package("botorch.models"), package("botorch.models.transforms")
    train, target = (torch.as_tensor(part, dtype=torch.float64, device=device) for part in (z, y[:, None]))
    torch.manual_seed(0)  # of BoTorch's raw samples
    with quiet():
        gp = models.SingleTaskGP(train, target, outcome_transform=transforms.Standardize(1))
        package("botorch.fit").fit_gpytorch_mll(package("gpytorch.mlls").ExactMarginalLogLikelihood(gp.likelihood, gp))
        sampler = package("botorch.sampling").SobolQMCNormalSampler(torch.Size([SAMPLES]), seed=0)
        ei = package("botorch.acquisition.logei").qLogExpectedImprovement(gp, target.max(), sampler)
        bounds = torch.tensor([[0.0], [1.0]], dtype=torch.float64, device=device).expand(2, z.shape[1])
        part = [max(1, round(effort * count)) for count in (RESTARTS, RAW, STEPS)]
        chosen, _ = package("botorch.optim").optimize_acqf(
            ei, bounds, q=batch, num_restarts=part[0], raw_samples=part[1], sequential=True,
            options={"maxiter": part[2]},
        )  # fmt: skip
    return np.asarray(chosen.cpu().numpy())
