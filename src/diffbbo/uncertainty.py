"""How sure the ensemble is: Proposition 1 (two kinds of variance) and Theorem 1 (moments through denoising)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .types import Array

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from .diffusion.sampling import Denoiser, Step
    from .diffusion.sde import VPSDE


@dataclass(frozen=True)
class Uncertainty:
    """The decomposition at every candidate score, each `(Y,)`, from `n` draws of each of M members.

    `epistemic` is the plain variance over members (the paper's estimate); `corrected` is the same without the part
    that comes from having only n draws; `standard_error` is that of `corrected`.
    """

    aleatoric: Array
    epistemic: Array
    corrected: Array
    standard_error: Array

    @property
    def total(self) -> Array:
        return self.aleatoric + self.epistemic


def decompose(samples: Array, measure: str = "norm") -> Uncertainty:
    """Proposition 1 on `samples` `(Y, M, n, f)`.

    aleatoric = mean over members of the variance of |x|, epistemic = variance over members of the mean of |x|, with
    population variances, so that the two add up to the variance of all. `measure="trace"` takes the trace of the
    covariance of x itself instead of the variance of its norm (what the proof of Theorem 3 works with).
    """
    v = np.linalg.norm(samples, axis=-1, keepdims=True) if measure == "norm" else samples
    m, n = v.shape[1], v.shape[2]
    means = v.mean(axis=2)  # (Y, M, k)
    within = v.var(axis=2)  # (Y, M, k)
    aleatoric = within.sum(axis=-1).mean(axis=1)
    deviation = means - means.mean(axis=1, keepdims=True)
    epistemic = (deviation**2).sum(axis=-1).mean(axis=1)
    # A mean of n draws scatters by within / n even if all members agree. Of that, the variance over M members
    # shows (M - 1) / M; n - 1 makes the variance itself unbiased.
    noise = within / max(n - 1, 1)  # (Y, M, k)
    corrected = epistemic - (m - 1) / m * noise.sum(axis=-1).mean(axis=1)
    # Delta method: deviations of the member means move the estimate, and so does their own noise.
    variance = (4 * deviation**2 * noise + 2 * (m - 1) / m * noise**2).sum(axis=(1, 2)) / m**2
    return Uncertainty(aleatoric, epistemic, corrected, np.sqrt(variance))


def propagate(
    step: Step, mean: Tensor, variance: Tensor, score_mean: Tensor, score_variance: Tensor, covariance: Tensor
) -> tuple[Tensor, Tensor]:
    """Theorem 1, one step with the sampler's own coefficients: moments of x' = a x + b s + c e, per feature.

    The covariance enters as 2ab Cov(x, s), that is once for a = 1/2, b = 1; the paper prints half of it.
    """
    a, b, c = step.a, step.b, step.c
    return (
        a * mean + b * score_mean,
        a**2 * variance + b**2 * score_variance + 2 * a * b * covariance + c**2,
    )


@dataclass(frozen=True)
class Trace:
    """Theorem 1 along one reverse process of S steps; moments per feature, the first at t = 1.

    `mean`, `variance` `(S + 1, f)` are traced by the recursion, `printed_variance` by the formula as printed (half
    the covariance), `empirical_mean`, `empirical_variance` are the moments of the samples themselves.
    `continuous_printed` `(f,)` is the theorem's (T + 1) + Var(integral), `continuous_full` the same with the
    covariances between start, integral and noise that the paper drops.
    """

    t: Array
    mean: Array
    variance: Array
    printed_variance: Array
    empirical_mean: Array
    empirical_variance: Array
    covariance: Array
    continuous_printed: Array
    continuous_full: Array


def trace(denoiser: Denoiser, sde: VPSDE, x: Tensor, steps: int, generator: torch.Generator) -> Trace:
    """Follow E[x_t], Var[x_t] and Cov(x_t, s) through Euler-Maruyama from noise `x` `(n, f)` at t = 1.

    The samples say how the score depends on x, s = k x + m + rest, and the theorem's terms follow from the traced
    moments: Cov(x, s) = k Var(x), Var(s) = k^2 Var(x) + Var(rest). The sampled terms put in directly would not do:
    the step alone stretches, a > 1, so their error would grow by exp(integral of beta), 22,000 times. For a
    linear score the rest is 0 and the trace exact.
    """
    import torch

    from .diffusion.sampling import Step, euler_maruyama_steps, score

    def variance_of(v: Tensor) -> Tensor:
        return v.var(dim=0, correction=0)

    start = x
    mean, variance = torch.zeros_like(x[0]), torch.ones_like(x[0])
    printed = variance
    integral, brownian = torch.zeros_like(x), torch.zeros_like(x)
    times, covariances = [1.0], []
    rows = [(mean, variance, printed, x.mean(dim=0), variance_of(x))]
    for step in euler_maruyama_steps(sde, steps, x.device):
        step = Step(*(value.to(x) for value in step))
        s = score(denoiser, sde, x, step.t)
        k = ((x - x.mean(dim=0)) * (s - s.mean(dim=0))).mean(dim=0) / variance_of(x)
        m = s.mean(dim=0) - k * x.mean(dim=0)
        rest = variance_of(s - k * x)
        _, printed = propagate(step, mean, printed, k * mean + m, k**2 * printed + rest, k * printed / 2)
        covariances.append(k * variance)
        mean, variance = propagate(step, mean, variance, k * mean + m, k**2 * variance + rest, k * variance)
        noise = step.c * torch.randn(x.shape, generator=generator, device=x.device, dtype=x.dtype)
        drift = (step.a - 1) * x + step.b * s
        integral, brownian = integral + drift, brownian + noise
        x = x + drift + noise
        times.append(float(step.t - step.dt))
        rows.append((mean, variance, printed, x.mean(dim=0), variance_of(x)))
    columns = [torch.stack(column).double().cpu().numpy() for column in zip(*rows, strict=True)]
    mean_t, variance_t, printed_t, empirical_mean, empirical_variance = columns
    return Trace(
        t=np.array(times),
        mean=mean_t,
        variance=variance_t,
        printed_variance=printed_t,
        empirical_mean=empirical_mean,
        empirical_variance=empirical_variance,
        covariance=torch.stack(covariances).double().cpu().numpy(),
        continuous_printed=(sde.total + 1 + variance_of(integral)).double().cpu().numpy(),
        continuous_full=variance_of(start + integral + brownian).double().cpu().numpy(),
    )
