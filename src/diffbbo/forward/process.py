"""A Gaussian process over a few hundred rows, small and quick enough to be fitted anew in every round.

Matérn-5/2 with a lengthscale per number, times exp(-sum of weights of the letters that differ); fitted by the largest
posterior density, under priors on lengthscales that grow with the dimension (Hvarfner et al. 2024).

Read as a density of the lengthscales' logarithms, as usual here, that prior prefers smooth functions; as a density of
the lengthscales themselves (`rough`) its mode is e^3 times shorter. With few rows the data hardly decide between them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from .layout import Layout

STEPS, RATE = 40, 0.1
JITTER, JOINT = 1e-6, 1e-5  # of the rows' variance, and of the signal's for joint draws
SPREAD = 3.0  # variance of a lengthscale's logarithm under the prior, which also is how far apart the two modes are
NOISE = math.log(1e-2)  # of standardised scores, where the prior has its middle


@dataclass(frozen=True)
class Kernel:
    """Logarithms of lengthscales `(numbers,)`, weights of letters `(letters,)`, signal and noise variance."""

    layout: Layout
    lengths: Tensor
    weights: Tensor
    signal: Tensor
    noise: Tensor
    rough: bool = False

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
        return (
            ((self.lengths - usual_length(self.layout, self.rough)) ** 2).sum() / (2 * SPREAD)
            + (self.weights**2).sum() / 6
            + self.signal**2 / 2
            + (self.noise - NOISE) ** 2 / 8
        )


@dataclass(frozen=True)
class Process:
    """The posterior after rows `u` `(n, d)`; `loo` are the leave-one-out predictions of their scores, `density` how
    likely these scores were, as logarithms."""

    kernel: Kernel
    u: Tensor
    factor: Tensor  # Cholesky factor of the covariance of the rows
    alpha: Tensor
    loo: Tensor
    density: Tensor

    @classmethod
    def fit(cls, layout: Layout, u: Tensor, score: Tensor, rough: bool = False) -> Process:
        """From float64 rows `(n, d)` and standardised scores `(n,)`. A `rough` one keeps the scores' own variance as
        its signal's."""
        numbers, letters = len(layout.numbers), len(layout.letters)
        start = usual_length(layout, rough) - (0 if rough else 1)
        first = ([start] * numbers, [0.0] * letters, 0.0, NOISE)
        lengths, weights, signal, noise = (torch.tensor(value, dtype=u.dtype, device=u.device) for value in first)
        learnt = [lengths, weights, noise] if rough else [lengths, weights, signal, noise]
        for parameter in learnt:
            parameter.requires_grad_()
        adam = torch.optim.Adam(learnt, lr=RATE)
        for step in range(STEPS):
            kernel = Kernel(layout, lengths, weights, signal, noise, rough)
            factor = cls._factor(kernel, u)
            alpha = torch.cholesky_solve(score[:, None], factor)[:, 0]
            loss = score @ alpha / 2 + factor.diagonal().log().sum() + kernel.minus_log_prior()
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            adam.param_groups[0]["lr"] = RATE * (1 - step / STEPS) + RATE / 10
            adam.step()
        for parameter in learnt:
            parameter.requires_grad_(False)
        with torch.no_grad():
            kernel = Kernel(layout, lengths, weights, signal, noise, rough)
            factor = cls._factor(kernel, u)
            alpha = torch.cholesky_solve(score[:, None], factor)[:, 0]
            # Without row i, the prediction at i is y_i - alpha_i / (K^-1)_ii, its variance 1 / (K^-1)_ii (Rasmussen &
            # Williams 2006, eq. 5.12).
            precision = torch.cholesky_inverse(factor).diagonal()
            loo = score - alpha / precision
            density = (precision.log() - precision * (score - loo) ** 2 - math.log(2 * math.pi)) / 2
        return cls(kernel, u, factor, alpha, loo, density)

    @staticmethod
    def _factor(kernel: Kernel, u: Tensor) -> Tensor:
        noise = (kernel.noise.exp() + JITTER) * torch.eye(len(u), dtype=u.dtype, device=u.device)
        factor: Tensor = torch.linalg.cholesky(kernel(u, u) + noise)
        return factor

    def predict(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of the score, each `(..., n)`, at rows `(..., n, d)`."""
        cross, half = self._explained(u)
        variance = (self.kernel.signal.exp() - (half**2).sum(-2)).clamp(min=1e-10)
        return cross @ self.alpha, variance.sqrt()

    def gains(self, u: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """`count` joint draws of how far the scores of rows `(m, d)` lie above the best mean of the rows it has seen:
        `(count, m)`."""
        cross, half = self._explained(u)
        jitter = JOINT * self.kernel.signal.exp() * torch.eye(len(u), dtype=u.dtype, device=u.device)
        root = torch.linalg.cholesky(self.kernel(u, u) - half.mT @ half + jitter)
        normal = torch.randn(count, len(u), generator=generator, dtype=u.dtype).to(u.device)
        best = (self.kernel(self.u, self.u) @ self.alpha).max()
        gains: Tensor = cross @ self.alpha + normal @ root.mT - best
        return gains

    def _explained(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """Covariances of rows `(..., n, d)` with those seen, `(..., n, seen)`, and what these explain: the transpose of
        it, `(..., seen, n)`, in units of their own."""
        cross = self.kernel(u, self.u)
        return cross, torch.linalg.solve_triangular(self.factor, cross.mT, upper=False)

    def functions(self, count: int, generator: torch.Generator) -> Callable[[Tensor], Tensor]:
        """`count` optimistic readings, mean + |N(0, 1)| deviations: rows `(count, n, d)` to values `(count, n)`."""
        hope = torch.randn(count, 1, generator=generator, dtype=self.u.dtype).abs().to(self.u.device)

        def read(u: Tensor) -> Tensor:
            mean, deviation = self.predict(u)
            return mean + hope * deviation

        return read


def usual_length(layout: Layout, rough: bool) -> float:
    """Where the prior of a lengthscale's logarithm has its mode."""
    return math.sqrt(2) + math.log(max(1, len(layout.numbers))) / 2 - (SPREAD if rough else 0)
