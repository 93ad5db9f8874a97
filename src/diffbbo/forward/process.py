"""A Gaussian process over a few hundred rows, small and quick enough to be fitted anew in every round.

Matérn-5/2 with a lengthscale per number, times exp(-sum of weights of the letters that differ); fitted by the largest
posterior density, under priors on lengthscales that grow with the dimension (Hvarfner et al. 2024).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from .layout import Layout

STEPS, RATE = 40, 0.1
JITTER = 1e-6
NOISE = math.log(1e-2)  # of standardised scores, where the prior has its middle


@dataclass(frozen=True)
class Kernel:
    """Logarithms of lengthscales `(numbers,)`, weights of letters `(letters,)`, signal and noise variance."""

    layout: Layout
    lengths: Tensor
    weights: Tensor
    signal: Tensor
    noise: Tensor

    def __call__(self, a: Tensor, b: Tensor) -> Tensor:
        """Covariances `(..., n, m)` of rows `a` `(..., n, d)` and `b` `(m, d)`."""
        value = self.signal.exp()
        if self.layout.numbers:
            scale = self.lengths.exp()
            p, q = self.layout.of_numbers(a) / scale, self.layout.of_numbers(b) / scale
            square = (p**2).sum(-1)[..., None] + (q**2).sum(-1) - 2 * p @ q.mT
            r = (5 * square.clamp(min=1e-12)).sqrt()
            value = value * (1 + r + r**2 / 3) * torch.exp(-r)
        if self.layout.letters:
            weight = self.weights.exp() / len(self.layout.letters)
            same = (self.layout.onehot(a) * self.layout.spread(weight)) @ self.layout.onehot(b).mT
            value = value * torch.exp(same - weight.sum())
        return value

    def minus_log_prior(self) -> Tensor:
        usual = math.sqrt(2) + math.log(max(1, len(self.layout.numbers))) / 2
        return (
            ((self.lengths - usual) ** 2).sum() / 6
            + (self.weights**2).sum() / 6
            + self.signal**2 / 2
            + (self.noise - NOISE) ** 2 / 8
        )


@dataclass(frozen=True)
class Process:
    """The posterior after rows `u` `(n, d)`; `loo` are the leave-one-out predictions of their scores."""

    kernel: Kernel
    u: Tensor
    factor: Tensor  # Cholesky factor of the covariance of the rows
    alpha: Tensor
    loo: Tensor

    @classmethod
    def fit(cls, layout: Layout, u: Tensor, score: Tensor) -> Process:
        """From float64 rows `(n, d)` and standardised scores `(n,)`."""
        numbers, letters = len(layout.numbers), len(layout.letters)
        start = math.sqrt(2) + math.log(max(1, numbers)) / 2 - 1
        first = ([start] * numbers, [0.0] * letters, 0.0, NOISE)
        parameters = [torch.tensor(value, dtype=u.dtype, device=u.device) for value in first]
        for parameter in parameters:
            parameter.requires_grad_()
        adam = torch.optim.Adam(parameters, lr=RATE)
        for step in range(STEPS):
            kernel = Kernel(layout, *parameters)
            factor = cls._factor(kernel, u)
            alpha = torch.cholesky_solve(score[:, None], factor)[:, 0]
            loss = score @ alpha / 2 + factor.diagonal().log().sum() + kernel.minus_log_prior()
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            adam.param_groups[0]["lr"] = RATE * (1 - step / STEPS) + RATE / 10
            adam.step()
        with torch.no_grad():
            kernel = Kernel(layout, *(parameter.detach() for parameter in parameters))
            factor = cls._factor(kernel, u)
            alpha = torch.cholesky_solve(score[:, None], factor)[:, 0]
            # Without row i, the prediction at i is y_i - alpha_i / (K^-1)_ii (Rasmussen & Williams 2006, eq. 5.12).
            loo = score - alpha / torch.cholesky_inverse(factor).diagonal()
        return cls(kernel, u, factor, alpha, loo)

    @staticmethod
    def _factor(kernel: Kernel, u: Tensor) -> Tensor:
        noise = (kernel.noise.exp() + JITTER) * torch.eye(len(u), dtype=u.dtype, device=u.device)
        factor: Tensor = torch.linalg.cholesky(kernel(u, u) + noise)
        return factor

    def predict(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of the score, each `(..., n)`, at rows `(..., n, d)`."""
        cross = self.kernel(u, self.u)
        half = torch.linalg.solve_triangular(self.factor, cross.mT, upper=False)
        variance = (self.kernel.signal.exp() - (half**2).sum(-2)).clamp(min=1e-10)
        return cross @ self.alpha, variance.sqrt()

    def functions(self, count: int, generator: torch.Generator) -> Callable[[Tensor], Tensor]:
        """`count` optimistic readings, mean + |N(0, 1)| deviations: rows `(count, n, d)` to values `(count, n)`."""
        hope = torch.randn(count, 1, generator=generator, dtype=self.u.dtype).abs().to(self.u.device)

        def read(u: Tensor) -> Tensor:
            mean, deviation = self.predict(u)
            return mean + hope * deviation

        return read
