"""Conditioning by adaptive sampling (CbAS): a generative model moved towards p(x | high value), step by step.

Algorithm of Brookes, Park & Listgarten (2019), with the settings of their GFP experiments:

    theta_0: fit the generative model p(x | theta) to the measured designs; the oracle p(y | x) to their values
    for t = 1, 2, ...:
        draw x_1 ... x_M from p(x | theta_t) and ask the oracle
        gamma_t = max(gamma_(t-1), Q-quantile of the oracle's values)
        w_i = p(x_i | theta_0) / p(x_i | theta_t) * P(y >= gamma_t | x_i)
        theta_(t+1) = argmax of sum_i w_i log p(x_i | theta)
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ..encoding import Encoder
from ..optimizer import Optimizer, Proposal
from ..progress import report
from ..spaces import Space
from ..types import Array, InputError, row_keys

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from ..autoencoder import VAE

WEIGHTINGS = ("cbas", "dbas", "none")
CUTOFF = 1e-6  # samples of less weight (as a share of the largest) are left out of the fit
BATCH = 100  # rows per step of the oracle and of the first fit; the authors take 10, in many more steps
REFIT_BATCH = 10  # rows per step of the weighted fits: the authors'
RATE = 3e-3  # of the oracle; three times the authors', in fewer steps
CHECK = 50  # steps between two looks at the held-out rows
PATIENCE = 5  # looks without progress of any member before the oracle's training stops


class CbAS(Optimizer):
    """Samples of a VAE conditioned on high values of an ensemble oracle, the best distinct ones by the oracle.

    `quantile` is Q, `samples` M, `iterations` the number of t, `epochs` the passes of each weighted fit, `members` the
    size of the oracle, `hidden` and `latent` the sizes of the networks; `vae_steps` and `oracle_steps` bound the
    training on the measured designs. `weighting` is "cbas", "dbas" (without the prior: Brookes & Listgarten 2018) or
    "none" (all weights 1: plain refits of the generative model).
    """

    name = "cbas"
    summary = "generative model (VAE) conditioned on high values by adaptive sampling"
    reference = "Brookes, Park & Listgarten 2019, Conditioning by adaptive sampling for robust design"
    supports = "10,000 rows and more; any batch"

    def __init__(
        self, space: Space, *, seed: int = 0, minimize: bool = False, quantile: float = 1.0, samples: int = 100,
        iterations: int = 50, epochs: int = 10, members: int = 20, hidden: int = 50, latent: int = 20,
        vae_steps: int = 2000, oracle_steps: int = 2000, weighting: str = "cbas",
    ) -> None:  # fmt: skip
        super().__init__(space, seed=seed, minimize=minimize)
        sizes = {
            "samples": samples, "iterations": iterations, "epochs": epochs, "members": members, "hidden": hidden,
            "latent": latent, "vae_steps": vae_steps, "oracle_steps": oracle_steps,
        }  # fmt: skip
        wrong = next((name for name, value in sizes.items() if value < 1), None)
        if wrong is not None:
            raise InputError(f"{wrong} = {sizes[wrong]} is too small.", "Use at least 1.")
        if not 0 <= quantile <= 1:
            raise InputError(f"quantile = {quantile} is not a share.", "Use a number from 0 to 1.")
        if weighting not in WEIGHTINGS:
            raise InputError(f"weighting = {weighting!r} is unknown.", f"Use one of {', '.join(WEIGHTINGS)}.")
        self.quantile, self.weighting, self.sizes = float(quantile), weighting, sizes

    def settings(self) -> dict[str, Any]:
        return super().settings() | self.sizes | {"quantile": self.quantile, "weighting": self.weighting}

    def propose(self, n: int, rng: np.random.Generator) -> Iterator[Proposal]:
        data = self.data.distinct()
        if data.flat:
            yield from self.fill(n, len(data), rng)
        import torch

        from ..autoencoder import VAE, Layout, fit

        clock = time.perf_counter()
        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        encoder = Encoder.fit(self.space, data.x)
        u = torch.as_tensor(encoder.encode(data.x), dtype=torch.float32)
        oracle = Oracle.fit(u, data.y, self.sizes, generator)
        prior = VAE.init(Layout.of(encoder), self.sizes["latent"], self.sizes["hidden"], generator)
        fit(prior, u, torch.ones(len(u)), self.sizes["vae_steps"], BATCH, generator, stage="generative model")
        train_s = time.perf_counter() - clock

        clock = time.perf_counter()
        model = prior.copy()
        rounds = list(self.condition(prior, model, encoder, oracle, generator))
        info = {
            "gamma": [step.gamma for step in rounds], "effective_samples": [step.effective for step in rounds],
            "train_s": train_s, "acquire_s": time.perf_counter() - clock,
        }  # fmt: skip
        # Every sample was judged by the same oracle: the best of all iterations, not of the last alone.
        x, mean = np.concatenate([step.x for step in rounds]), np.concatenate([step.mean for step in rounds])
        yield Proposal(ranked(x, mean), info=info)
        while True:
            draw = self.draw(model, encoder, oracle, max(n, self.sizes["samples"]), generator)
            yield Proposal(ranked(draw.x, draw.mean.double().numpy()), info=info)

    def draw(self, model: VAE, encoder: Encoder, oracle: Oracle, n: int, generator: torch.Generator) -> Draw:
        """`n` samples of the generative model, judged by the oracle as they will be made: rounded and clipped."""
        import torch

        z = torch.randn((n, model.latent), generator=generator)
        u = model.sample(z, generator)
        x = encoder.decode(u.double().numpy())
        mean, std = oracle.predict(torch.as_tensor(encoder.encode(x), dtype=torch.float32))
        return Draw(z, u, x, mean, std)

    def condition(
        self, prior: VAE, model: VAE, encoder: Encoder, oracle: Oracle, generator: torch.Generator
    ) -> Iterator[Step]:
        """The loop over t: moves `model` from the `prior` towards the conditional, and hands out every step."""
        import torch

        from ..autoencoder import fit

        gamma, sizes = -float("inf"), self.sizes
        for t in range(sizes["iterations"]):
            draw = self.draw(model, encoder, oracle, sizes["samples"], generator)
            gamma = max(gamma, float(draw.mean.quantile(self.quantile)))
            with torch.no_grad():
                # x and z are one sample of the joint model, whose prior of z cancels: no integral over z is needed.
                hot = model.layout.one_hot(draw.u)
                log_prior = prior.log_likelihood(draw.u, hot, draw.z)
                log_model = model.log_likelihood(draw.u, hot, draw.z)
                log_w = log_weights(log_prior, log_model, draw.mean, draw.std, gamma, self.weighting)
                w = (log_w - log_w.max()).exp()
            kept = w >= CUTOFF
            effective = float(w.sum() ** 2 / (w**2).sum()) if kept.any() else 0.0
            yield Step(draw.x, draw.mean.double().numpy(), gamma, effective)
            if not kept.any():  # not a number anywhere: the model stays as it is
                continue
            kept_w = w[kept] / w[kept].mean()
            batch = min(REFIT_BATCH, len(kept_w))
            steps = sizes["epochs"] * -(-len(kept_w) // batch)
            fit(model, draw.u[kept], kept_w, steps, batch, generator)
            report("adaptive sampling", (t + 1) / sizes["iterations"])


@dataclass(frozen=True)
class Draw:
    """Samples of a generative model: latents `z`, features `u`, designs `x`, the oracle's `mean` and `std`."""

    z: Tensor
    u: Tensor
    x: Array
    mean: Tensor
    std: Tensor


@dataclass(frozen=True)
class Step:
    """One iteration t: its designs, the oracle's means, gamma_t, and how many samples the weights leave."""

    x: Array
    mean: Array
    gamma: float
    effective: float


def log_weights(
    log_prior: Tensor, log_model: Tensor, mean: Tensor, std: Tensor, gamma: float, weighting: str = "cbas"
) -> Tensor:
    """log of p(x | theta_0) / p(x | theta_t) * P(y >= gamma | x), for an oracle with normal errors; all `(n,)`."""
    import torch

    if weighting == "none":
        return torch.zeros_like(mean)
    survival: Tensor = torch.special.log_ndtr((mean - gamma) / std)
    return survival if weighting == "dbas" else log_prior - log_model + survival


def ranked(x: Array, mean: Array) -> Array:
    """Distinct designs, the best by the oracle first."""
    rows = x[np.argsort(-mean, kind="stable")]
    return np.stack(list(dict(zip(row_keys(rows), rows, strict=True)).values()))


def normal_scores(y: Array) -> Tensor:
    """The normal quantile of each value's rank, ties at their middle; in float64."""
    import torch

    _, group, count = np.unique(y, return_inverse=True, return_counts=True)
    middle = np.cumsum(count) - count / 2
    scores: Tensor = torch.special.ndtri(torch.as_tensor(middle[group] / len(y)))
    return scores


class Oracle:
    """An ensemble of networks that each give a mean and a variance (Lakshminarayanan et al. 2017).

    One hidden layer with ELU; every weight has a leading member axis: `(M, in, out)`.
    """

    def __init__(self, weights: list[Tensor]) -> None:
        self.weights = weights

    @classmethod
    def fit(cls, u: Tensor, y: Array, sizes: dict[str, int], generator: torch.Generator) -> Oracle:
        """Maximum likelihood of `y` `(n,)` at features `u` `(n, f)`; each member keeps its best on its own tenth."""
        import torch

        # y >= gamma is the same event in any increasing scale. In this one, new values far above the start data are
        # not outliers that a network can explain away by its variance.
        target = normal_scores(y).float()
        members, n = sizes["members"], len(u)
        oracle = cls(_init(members, (u.shape[1], sizes["hidden"], 2), generator))
        order = torch.stack([torch.randperm(n, generator=generator) for _ in range(members)])
        held = n // 10 if n >= 20 else 0
        train, check = order[:, held:], order[:, :held] if held else order
        best, least = [w.clone() for w in oracle.weights], torch.full((members,), float("inf"))
        for w in oracle.weights:
            w.requires_grad_(True)
        adam = torch.optim.Adam(oracle.weights, lr=RATE)
        waited = 0
        for step in range(sizes["oracle_steps"]):
            # The same places of every member's own order: rows differ between members without a loop over them.
            places = torch.randint(train.shape[1], (BATCH,), generator=generator)
            adam.zero_grad()
            oracle.loss(u, target, train[:, places]).sum().backward()  # type: ignore[no-untyped-call]
            adam.step()
            if (step + 1) % CHECK and step + 1 < sizes["oracle_steps"]:
                continue
            with torch.no_grad():
                now = oracle.loss(u, target, check)
                better = now < least
                least = torch.where(better, now, least)
                keep = better[:, None, None]
                best = [torch.where(keep, w, b) for w, b in zip(oracle.weights, best, strict=True)]
            report("oracle", (step + 1) / sizes["oracle_steps"])
            waited = 0 if better.any() else waited + 1
            if waited == PATIENCE:
                break
        return cls(best)

    def __call__(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance `(M, n)` of every member at `u` `(M, n, f)`."""
        import torch
        from torch.nn.functional import elu, softplus

        w = self.weights
        out = torch.baddbmm(w[3], elu(torch.baddbmm(w[1], u, w[0])), w[2])
        return out[..., 0], softplus(out[..., 1]) + 1e-6

    def loss(self, u: Tensor, y: Tensor, rows: Tensor) -> Tensor:
        """Negative log likelihood `(M,)` of every member on its own `rows` `(M, b)`."""
        mean, variance = self(u[rows])
        return (0.5 * variance.log() + 0.5 * (y[rows] - mean) ** 2 / variance).mean(dim=1)

    def predict(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation `(n,)` of the equal mixture of all members."""
        import torch

        with torch.no_grad():
            mean, variance = self(u.expand(len(self.weights[0]), *u.shape))
            centre = mean.mean(dim=0)
            return centre, (variance.mean(dim=0) + mean.var(dim=0, unbiased=False)).sqrt()


def _init(members: int, sizes: tuple[int, ...], generator: torch.Generator) -> list[Tensor]:
    """Fresh weights, uniform in ±1/sqrt(in) like torch's own linear layer."""
    import torch

    weights = []
    for n_in, n_out in pairwise(sizes):
        for shape in ((members, n_in, n_out), (members, 1, n_out)):
            weights.append((2 * torch.rand(shape, generator=generator) - 1) / n_in**0.5)
    return weights
