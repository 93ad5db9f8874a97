"""Samplers: free functions from noise to samples over one denoiser, a callable eps(x, t).

`x` is `(..., f)` and `t` a scalar tensor; a sampler never asks what stands behind the denoiser.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from ..graphs import repeat
from ..mlp import Weights
from .network import Network
from .sde import VPSDE

Denoiser = Callable[[Tensor, Tensor], Tensor]


def guided(network: Network, weights: Weights, y: Tensor, gamma: float) -> Denoiser:
    """Classifier-free guidance: (1 + gamma) eps(x, t, y) - gamma eps(x, t, none), for `y` `(M, B, 1)`."""
    both = torch.cat([y, y], dim=1)
    keep = torch.cat([torch.ones_like(y), torch.zeros_like(y)], dim=1)

    def eps(x: Tensor, t: Tensor) -> Tensor:
        if gamma == 0:
            return network(weights, x, t.to(x).expand_as(y), y, torch.ones_like(y))
        # Both halves in one pass: one larger matrix product instead of two.
        conditional, free = network(weights, torch.cat([x, x], dim=1), t.to(x).expand_as(both), both, keep).chunk(
            2, dim=1
        )
        return conditional + gamma * (conditional - free)

    return eps


class Step(NamedTuple):
    """One step of the Euler-Maruyama sampler, x' = a x + b s + c e, from time `t` on; `dt` > 0."""

    t: Tensor
    dt: Tensor
    a: Tensor
    b: Tensor
    c: Tensor


def euler_maruyama_steps(sde: VPSDE, steps: int, device: torch.device) -> Iterator[Step]:
    """The coefficients of the reverse SDE dx = (-beta x / 2 - beta s) dt + sqrt(beta) dw, run backwards."""
    return (Step(*row) for row in _coefficients(sde, steps, device))


def _coefficients(sde: VPSDE, steps: int, device: torch.device) -> Tensor:
    """The fields of `Step` as columns of a table, float64."""
    grid = sde.grid(steps, "time", device)
    t, dt = grid[:-1], grid[:-1] - grid[1:]
    change = sde.beta(t) * dt
    return torch.stack([t, dt, 1 + change / 2, change, torch.sqrt(change)], dim=1)


def score(denoiser: Denoiser, sde: VPSDE, x: Tensor, t: Tensor) -> Tensor:
    """s = -eps / sigma(t)."""
    return -denoiser(x, t) / sde.sigma(t).to(x)


def euler_maruyama(denoiser: Denoiser, sde: VPSDE, x: Tensor, steps: int, generator: torch.Generator) -> Tensor:
    """The paper's sampler: the reverse SDE in `steps` equal steps of time, from noise `x` at t = 1."""
    table, turn = _coefficients(sde, steps, x.device).to(x), torch.zeros(1, dtype=torch.long, device=x.device)
    x = x.clone()

    def step() -> None:
        t, _, a, b, c = table.index_select(0, turn)[0]
        noise = torch.randn(x.shape, generator=generator, device=x.device, dtype=x.dtype)
        x.copy_(a * x + b * score(denoiser, sde, x, t) + c * noise)
        turn.add_(1)

    repeat(step, steps, x.device, generator)
    return x


def dpm_solver(
    denoiser: Denoiser,
    sde: VPSDE,
    x: Tensor,
    steps: int,
    generator: torch.Generator | None = None,
    begin: float = 1.0,
    temperature: Tensor | float = 1.0,
) -> Tensor:
    """DPM-Solver++(2M) (Lu et al. 2022), second order with one evaluation a step, from noise `x` at t = `begin`.

    Without a generator it solves the probability-flow ODE (eta = 0), with one the reverse SDE (eta = 1), whose fresh
    noise also mends the errors of a trained network; it is scaled by `temperature`, and cold samples are typical ones.
    Steps are even in lambda = log(alpha / sigma). With D the prediction of x_0, extrapolated from this and the last
    step, and h the step in lambda,

        x' = sigma'/sigma e^(-eta h) x + alpha' (1 - e^(-(1 + eta) h)) D + sigma' sqrt(1 - e^(-2 eta h)) noise.

    The last value is D itself: the little noise left at T_MIN is taken off.
    """
    eta = 0.0 if generator is None else 1.0
    grid = sde.grid(steps, "snr", x.device, begin)
    alpha, sigma, lam = sde.alpha(grid), sde.sigma(grid), sde.half_log_snr(grid)
    previous: Tensor | None = None
    for i in range(steps):
        clean = (x - sigma[i].to(x) * denoiser(x, grid[i])) / alpha[i].to(x)
        h = lam[i + 1] - lam[i]
        if previous is None:
            direction = clean
        else:
            ratio = (lam[i] - lam[i - 1]) / h
            direction = clean + (clean - previous) / (2 * ratio).to(x)
        keep = sigma[i + 1] / sigma[i] * torch.exp(-eta * h)
        x = keep.to(x) * x - (alpha[i + 1] * torch.expm1(-(1 + eta) * h)).to(x) * direction
        if generator is not None:
            noise = torch.randn(x.shape, generator=generator, device=x.device, dtype=x.dtype)
            x = x + (sigma[i + 1] * torch.sqrt(-torch.expm1(-2 * h))).to(x) * temperature * noise
        previous = clean
    return (x - sigma[-1].to(x) * denoiser(x, grid[-1])) / alpha[-1].to(x)
