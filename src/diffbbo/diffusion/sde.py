"""The variance-preserving SDE: dx = -beta(t)/2 x dt + sqrt(beta(t)) dw on t in [0, 1].

Its marginal is x_t = alpha(t) x_0 + sigma(t) eps with alpha^2 + sigma^2 = 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

T_MIN = 1e-3  # training and sampling stop here: at t = 0 the score of a finite data set is infinite


@dataclass(frozen=True)
class VPSDE:
    """beta(t) grows linearly from `beta_min` to `beta_max`."""

    beta_min: float = 0.1
    beta_max: float = 20.0

    def beta(self, t: Tensor) -> Tensor:
        return self.beta_min + t * (self.beta_max - self.beta_min)

    def log_alpha(self, t: Tensor) -> Tensor:
        """log alpha(t) = -1/2 * integral of beta from 0 to t."""
        return -0.25 * t**2 * (self.beta_max - self.beta_min) - 0.5 * t * self.beta_min

    def alpha(self, t: Tensor) -> Tensor:
        return torch.exp(self.log_alpha(t))

    def sigma(self, t: Tensor) -> Tensor:
        return torch.sqrt(-torch.expm1(2 * self.log_alpha(t)))

    def half_log_snr(self, t: Tensor) -> Tensor:
        """lambda(t) = log(alpha / sigma), the natural clock of the fast sampler."""
        return self.log_alpha(t) - torch.log(self.sigma(t))

    def time_of(self, half_log_snr: Tensor) -> Tensor:
        """The inverse of `half_log_snr`: with L = log(1 + exp(-2 lambda)), log alpha = -L / 2."""
        big_l = torch.nn.functional.softplus(-2 * half_log_snr)
        slope = self.beta_max - self.beta_min
        return 2 * big_l / (self.beta_min + torch.sqrt(self.beta_min**2 + 2 * slope * big_l))

    def grid(self, steps: int, spacing: str, device: torch.device, begin: float = 1.0) -> Tensor:
        """`steps + 1` times from `begin` down to T_MIN, even in t ("time") or in lambda ("snr"), float64."""
        ends = torch.tensor([begin, T_MIN], dtype=torch.float64, device=device)
        weight = torch.linspace(0, 1, steps + 1, dtype=torch.float64, device=device)
        if spacing == "time":
            return ends[0] + weight * (ends[1] - ends[0])
        ends = self.half_log_snr(ends)
        return self.time_of(ends[0] + weight * (ends[1] - ends[0])).clamp(T_MIN, begin)

    def time_of_noise(self, sigma: float) -> float:
        """The time at which the noise has this standard deviation, between 0 and 1."""
        return float(self.time_of(torch.tensor(math.log(math.sqrt(1 - sigma**2) / sigma), dtype=torch.float64)))

    @property
    def total(self) -> float:
        """The integral of beta over [T_MIN, 1]: how long the process runs on the clock where beta is 1."""
        ends = torch.tensor([1.0, T_MIN], dtype=torch.float64)
        first, last = (-2 * self.log_alpha(ends)).tolist()
        return float(first - last)
