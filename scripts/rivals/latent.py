"""What the papers of `cbas` and `lolbo` show, shown again with the code of this package.

python scripts/rivals/latent.py            # all of it, about 10 minutes on one core
python scripts/rivals/latent.py toy        # CbAS on a rare event of one number, where the answer is known (seconds)
python scripts/rivals/latent.py rounds     # CbAS and DbAS, round by round, from poor start data
python scripts/rivals/latent.py search     # LOL-BO, round by round
python scripts/rivals/latent.py joint      # LOL-BO: surrogate on held-out designs, VAE frozen or trained jointly
"""

from __future__ import annotations

import sys

import numpy as np
import torch

from diffbbo.baselines.cbas import log_weights
from diffbbo.baselines.lolbo import LOLBO, LatentModel
from diffbbo.registry import make_optimizer, make_task
from diffbbo.types import Array

# ---- CbAS: Brookes, Park & Listgarten 2019, a rare event of one number, where the conditional is known ------------


def toy(weighting: str, goal: float = 4.0, noise: float = 0.5, iterations: int = 100, samples: int = 1000) -> None:
    """Prior x ~ N(0, 1), oracle y ~ N(x, noise), and p(x | y >= goal) approached by a normal.

    Weighted maximum likelihood is the weighted mean and spread; exact are the moments of a truncated normal.
    """
    rng = np.random.default_rng(0)
    mu, sigma, gamma = 0.0, 1.0, -np.inf
    for _ in range(iterations):
        x = rng.normal(mu, sigma, samples)
        gamma = min(max(gamma, float(np.quantile(x, 0.9))), goal)
        at = torch.as_tensor(x)
        logs = [torch.distributions.Normal(*pair).log_prob(at) for pair in ((0.0, 1.0), (mu, sigma))]
        w = log_weights(*logs, at, torch.full_like(at, noise), gamma, weighting).softmax(dim=0).numpy()
        mu = float(w @ x)
        sigma = float(np.sqrt(w @ (x - mu) ** 2))
    mean, std = conditional(goal, noise)
    print(f"{weighting}: mean {mu:.3f}, spread {sigma:.3f}; the conditional has {mean:.3f}, {std:.3f}")


def conditional(goal: float, noise: float) -> tuple[float, float]:
    """Mean and spread of p(x | y >= goal): y is N(0, s^2), truncated, and x given y is linear in it."""
    s = np.hypot(1, noise)
    a = goal / s
    mills = np.exp(-0.5 * a**2) / np.sqrt(2 * np.pi) / float(torch.special.ndtr(torch.tensor(-a)))
    return float(mills / s), float(np.sqrt(1 - mills * (mills - a) / s**2))


# ---- either, round by round -----------------------------------------------------------------------------------------


def rounds(task_name: str, method: str, count: int = 4, batch: int = 100, **settings: str) -> None:
    task = make_task(task_name)
    x, y = task.start(0)
    optimizer = make_optimizer(method, task.space, seed=0, minimize=task.minimize, **settings)
    optimizer.tell(x, y)
    start = optimizer.best
    assert start is not None
    means, bests = [], []
    for _ in range(count):
        asked = optimizer.ask(batch)
        values = task.evaluate(asked.x)
        optimizer.tell(asked, values)
        means.append(f"{np.nanmean(values):.3f}")
        bests.append(f"{optimizer.best.value:.3f}" if optimizer.best else "none")
    label = " ".join([task_name, method, *settings.values()])
    print(f"{label}: start mean {y.mean():.3f}, best {start.value:.3f};", end=" ")
    print(f"batch means {', '.join(means)}; best so far {', '.join(bests)}", flush=True)


# ---- LOL-BO: Maus et al. 2022, joint training against a frozen VAE -----------------------------------------------


def held_out(model: LatentModel, x: Array, y: Array) -> tuple[float, float]:
    """Rank correlation and negative log likelihood per design of the surrogate at new designs."""
    z = model.vae.encode(torch.as_tensor(model.encoder.encode(x)))[0]
    known = model.latents()
    mean, covariance = model.process(known, known[model.inducing]).posterior(z)
    variance = covariance.diagonal() + model.gp[2].exp() + 1e-4
    error = torch.as_tensor(y) - mean - model.gp[3]
    ranks = [np.argsort(np.argsort(values)) for values in (mean.numpy(), y)]
    nll = 0.5 * (2 * np.pi * variance).log() + 0.5 * error**2 / variance
    return float(np.corrcoef(*ranks)[0, 1]), float(nll.mean())


def joint(task_name: str, seeds: int = 3, train: int = 800, test: int = 400) -> None:
    """The surrogate on `test` held-out designs, after 0 (frozen VAE), 1, 3 and 5 joint updates."""
    task = make_task(task_name)
    for updates in (0, 1, 3, 5):
        scores = []
        for seed in range(seeds):
            x = task.space.sample(train + test, np.random.default_rng(seed))
            y = task.evaluate(x) * (-1 if task.minimize else 1)
            generator = torch.Generator().manual_seed(seed)
            model = LOLBO(task.space, seed=seed).model(x[:train], y[:train], updates, generator)
            scores.append(held_out(model, x[train:], (y[train:] - y[:train].mean()) / y[:train].std()))
        rank, nll = np.mean(scores, axis=0)
        print(f"{task_name} {updates} joint updates: rank correlation {rank:.3f}, negative log likelihood {nll:.3f}")


if __name__ == "__main__":
    parts = sys.argv[1:] or ["toy", "rounds", "search", "joint"]
    if "toy" in parts:
        toy("cbas")
        toy("dbas")
    if "rounds" in parts:
        for task_name in ("tfbind8", "ackley-20"):
            for weighting in ("cbas", "dbas"):
                rounds(task_name, "cbas", weighting=weighting)
    if "search" in parts:
        for task_name in ("tfbind8", "ackley-20", "ehrlich-32:vocabulary=4,motifs=2"):
            rounds(task_name, "lolbo")
    if "joint" in parts:
        joint("tfbind8")
