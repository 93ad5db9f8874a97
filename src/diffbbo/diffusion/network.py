"""The conditional noise network eps(x, t, y) of all members at once: every weight has a leading member axis."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..mlp import Weights, run
from .config import EnsembleConfig
from .sde import VPSDE


@dataclass(frozen=True)
class Network:
    """A multilayer perceptron with SiLU; x, t and y are concatenated at its input (as in DDOM).

    With `residual` its hidden layers add to what they get, and with `predict="v"` it is asked only for what a
    linear guess leaves over: both make short trainings far better (docs/decisions.md); the paper has neither.

    The class holds the shape only; its weights are kept apart.
    """

    features: int
    config: EnsembleConfig

    @property
    def sde(self) -> VPSDE:
        return VPSDE(self.config.beta_min, self.config.beta_max)

    @property
    def sizes(self) -> list[int]:
        """Widths from the input to the output layer."""
        c = self.config
        time = 2 * c.time_features or 1
        condition = 2 if c.condition == "keep" else 1
        return [self.features + time + condition, *[c.hidden] * c.layers, self.features]

    def init(self, generator: torch.Generator) -> Weights:
        """Fresh weights, uniform in ±1/sqrt(in) like torch's own linear layer."""
        weights = []
        for n_in, n_out in zip(self.sizes[:-1], self.sizes[1:], strict=True):
            for shape in ((self.config.members, n_in, n_out), (self.config.members, 1, n_out)):
                u = torch.rand(shape, generator=generator, device=generator.device)
                weights.append((2 * u - 1) / math.sqrt(n_in))
        return weights

    def __call__(self, weights: Weights, x: Tensor, t: Tensor, y: Tensor, keep: Tensor) -> Tensor:
        """eps for `x` `(M, B, f)` at times `t`, scores `y` and keep flags `(M, B, 1)`; keep = 0: no condition."""
        h = run(weights, self.inputs(x, t, y, keep), self.config.residual)
        if self.config.predict == "eps":
            return h
        # x_t = alpha x_0 + sigma eps and v = alpha eps - sigma x_0 give eps = sigma x_t + alpha v.
        return self.sde.sigma(t) * x + self.sde.alpha(t) * h

    def inputs(self, x: Tensor, t: Tensor, y: Tensor, keep: Tensor) -> Tensor:
        """What the first layer sees, `(..., in)`."""
        # (1 - lambda) y + lambda * none: y is masked, and with "keep" the mask itself is told as well.
        condition = [y * keep, keep] if self.config.condition == "keep" else [y * keep]
        return torch.cat([x, self._time(t), *condition], dim=-1)

    def _time(self, t: Tensor) -> Tensor:
        if not self.config.time_features:
            return t
        angle = math.pi * t * torch.arange(1, self.config.time_features + 1, device=t.device, dtype=t.dtype)
        return torch.cat([torch.sin(angle), torch.cos(angle)], dim=-1)
