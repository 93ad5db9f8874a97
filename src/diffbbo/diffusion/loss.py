"""The guided denoising loss (the paper's Eq. 2 with condition dropout), per member."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .network import Network, Weights
from .sde import T_MIN


@dataclass(frozen=True)
class Noise:
    """The random part of one loss: times `t` `(M, B, 1)`, noise `eps` `(M, B, f)`, `keep` `(M, B, 1)`."""

    t: Tensor
    eps: Tensor
    keep: Tensor

    @classmethod
    def draw(cls, shape: tuple[int, int, int], p_uncond: float, generator: torch.Generator) -> Noise:
        """t ~ U(T_MIN, 1) (stratified over the batch: the same law, less variance), lambda ~ Bernoulli."""
        members, batch, _ = shape
        device = generator.device
        u = torch.rand((members, batch, 1), generator=generator, device=device)
        stratum = torch.arange(batch, device=device).view(1, batch, 1)
        t = T_MIN + (1 - T_MIN) * (stratum + u) / batch
        eps = torch.randn(shape, generator=generator, device=device)
        keep = torch.rand((members, batch, 1), generator=generator, device=device) >= p_uncond
        return cls(t, eps, keep.to(eps.dtype))


def denoising_loss(network: Network, weights: Weights, x0: Tensor, y: Tensor, noise: Noise) -> Tensor:
    """E |eps - eps_theta(x_t, t, y or none)|^2 with w(t) = 1, as a mean over features; `(M,)`."""
    sde = network.sde
    x_t = sde.alpha(noise.t) * x0 + sde.sigma(noise.t) * noise.eps
    error = noise.eps - network(weights, x_t, noise.t, y, noise.keep)
    return error.square().mean(dim=(1, 2))
