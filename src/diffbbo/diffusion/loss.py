"""The guided denoising loss (the paper's Eq. 2 with condition dropout), per member, and what its gradient needs."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..mlp import Weights
from .network import Network
from .sde import T_MIN


@dataclass(frozen=True)
class Noise:
    """The random part of one loss: times `t` `(..., B, 1)`, noise `eps` `(..., B, f)`, `keep` `(..., B, 1)`."""

    t: Tensor
    eps: Tensor
    keep: Tensor

    @classmethod
    def draw(cls, shape: tuple[int, ...], p_uncond: float, generator: torch.Generator) -> Noise:
        """t ~ U(T_MIN, 1) (stratified over the batch: the same law, less variance), lambda ~ Bernoulli."""
        batch = shape[-2]
        device, column = generator.device, (*shape[:-1], 1)
        u = torch.rand(column, generator=generator, device=device)
        t = T_MIN + (1 - T_MIN) * (torch.arange(batch, device=device)[:, None] + u) / batch
        eps = torch.randn(shape, generator=generator, device=device)
        keep = torch.rand(column, generator=generator, device=device) >= p_uncond
        return cls(t, eps, keep.to(eps.dtype))


def denoising_loss(network: Network, weights: Weights, x0: Tensor, y: Tensor, noise: Noise) -> Tensor:
    """E |eps - eps_theta(x_t, t, y or none)|^2 with w(t) = 1, as a mean over features; `(M,)`."""
    sde = network.sde
    x_t = sde.alpha(noise.t) * x0 + sde.sigma(noise.t) * noise.eps
    error = noise.eps - network(weights, x_t, noise.t, y, noise.keep)
    return error.square().mean(dim=(1, 2))


@dataclass(frozen=True)
class Lesson:
    """What a training step learns from: `inputs` `(M, B, in)`, `slope` `(M, B, 1)`, `offset` `(M, B, f)`.

    The loss is quadratic in the network's output h, the error being eps - sigma x_t - alpha h ("v") or eps - h ("eps"):
    its gradient there is slope * h + offset. All three depend on what was drawn alone, so that the lessons of many
    steps, in one more axis in front, are made at once.
    """

    inputs: Tensor
    slope: Tensor
    offset: Tensor

    @classmethod
    def of(cls, network: Network, x0: Tensor, y: Tensor, noise: Noise) -> Lesson:
        alpha, sigma = network.sde.alpha(noise.t), network.sde.sigma(noise.t)
        x_t = alpha * x0 + sigma * noise.eps
        scale = 2 / (x0.shape[-2] * x0.shape[-1])  # of a square, in a mean over rows and features
        if network.config.predict == "eps":
            slope, offset = torch.full_like(alpha, scale), -scale * noise.eps
        else:
            slope, offset = scale * alpha**2, scale * alpha * (sigma * x_t - noise.eps)
        return cls(network.inputs(x_t, noise.t, y, noise.keep), slope, offset)

    def at(self, turn: Tensor) -> Lesson:
        """Of the lessons of many steps that with the number `turn` `(1,)`; on CUDA without asking which that is."""
        parts = (self.inputs, self.slope, self.offset)
        if turn.is_cuda:
            return Lesson(*(part.index_select(0, turn)[0] for part in parts))
        return Lesson(*(part[int(turn)] for part in parts))

    def overwrite(self, other: Lesson) -> None:
        self.inputs.copy_(other.inputs)
        self.slope.copy_(other.slope)
        self.offset.copy_(other.offset)
