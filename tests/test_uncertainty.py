"""Proposition 1 and Theorem 1 against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from diffbbo.diffusion.sampling import Step, euler_maruyama, euler_maruyama_steps
from diffbbo.diffusion.sde import VPSDE
from diffbbo.uncertainty import decompose, propagate, trace

sde = VPSDE()


@pytest.mark.parametrize("measure", ["norm", "trace"])
def test_the_two_parts_add_up_to_the_variance_of_all(measure: str, rng: np.random.Generator) -> None:
    """The law of total variance, exact for population variances and equal n."""
    samples = rng.normal(size=(4, 5, 30, 7)) + rng.normal(size=(4, 5, 1, 7))
    found = decompose(samples, measure)
    pooled = samples.reshape(4, -1, 7)
    everything = np.linalg.norm(pooled, axis=-1).var(axis=1) if measure == "norm" else pooled.var(axis=1).sum(axis=-1)
    assert np.allclose(found.total, everything, rtol=1e-12)
    assert np.allclose(found.total, found.aleatoric + found.epistemic)


def test_hand_computed_decomposition() -> None:
    """Two members with norms {1, 3} and {5, 5}: variances 1 and 0, means 2 and 5."""
    samples = np.array([[[[1.0], [3.0]], [[5.0], [-5.0]]]])
    found = decompose(samples)
    assert found.aleatoric.tolist() == [0.5]
    assert found.epistemic.tolist() == [2.25]
    # the noise of a mean: unbiased variances 2 and 0, over n = 2: 1 and 0; of their mean 1/2, (M - 1)/M = 1/2
    assert found.corrected.tolist() == [2.25 - 0.25]


def test_the_monte_carlo_correction_is_unbiased(rng: np.random.Generator) -> None:
    """20,000 sets of 10 draws from 5 members whose true means are known: the corrected mean hits the truth.

    True epistemic: the population variance of the member means. The plain estimate is too high by (M - 1)/M s^2/n.
    Tolerance: 4 standard errors of the mean over the sets.
    """
    means, spread, n, sets = np.array([10.0, 10.2, 10.1, 9.9, 9.8]), 1.0, 10, 20_000
    draws = means[None, :, None, None] + spread * rng.normal(size=(sets, 5, n, 1))
    found = decompose(draws)
    error = 4 * found.corrected.std() / np.sqrt(sets)
    assert abs(found.corrected.mean() - means.var()) < error
    assert abs(found.epistemic.mean() - means.var() - 0.8 * spread**2 / n) < error
    assert found.epistemic.mean() > 4 * means.var(), "with few draws the plain estimate is mostly noise"


def test_the_standard_error_is_the_scatter_of_the_estimate(rng: np.random.Generator) -> None:
    """The delta method's figure within 5 % of the observed scatter over 20,000 repetitions."""
    means, n = np.array([10.0, 11.0, 12.0, 9.0, 8.0]), 200
    found = decompose(means[None, :, None, None] + rng.normal(size=(5_000, 5, n, 1)))
    assert abs(found.standard_error.mean() / found.corrected.std() - 1) < 0.05


def test_trace_form_of_known_members(rng: np.random.Generator) -> None:
    """Members N(m_i, I) in 3-D: aleatoric trace 3, epistemic trace = sum of the variances of the m_i."""
    centres = np.array([[0.0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 0], [0, 0, 1]])
    samples = centres[None, :, None, :] + rng.normal(size=(1, 5, 50_000, 3))
    found = decompose(samples, "trace")
    assert abs(found.aleatoric[0] - 3) < 0.03
    assert abs(found.corrected[0] - centres.var(axis=0).sum()) < 0.01


def test_one_step_of_theorem_1_is_exact_for_a_linear_score() -> None:
    """s = k x + m: then x' = (a + b k) x + b m + c e, with moments known by heart."""
    step = Step(*(torch.tensor(v, dtype=torch.float64) for v in (0.5, 0.1, 0.5, 1.0, 1.0)))  # the paper's a, b, c
    mean, variance, k, m = (torch.tensor(v, dtype=torch.float64) for v in (0.3, 2.0, -0.7, 0.4))
    new_mean, new_variance = propagate(step, mean, variance, k * mean + m, k**2 * variance, k * variance)
    assert torch.isclose(new_mean, (0.5 + k) * mean + m)
    assert torch.isclose(new_variance, (0.5 + k) ** 2 * variance + 1)
    # As printed, with half the covariance, it is wrong:
    printed = variance / 4 + k**2 * variance + k * variance / 2 + 1
    assert not torch.isclose(printed, (0.5 + k) ** 2 * variance + 1)


MEAN, STD = 1.5, 0.4


def linear_eps(x: Tensor, t: Tensor) -> Tensor:
    """The exact denoiser of N(MEAN, STD^2): a linear score."""
    alpha, sigma = sde.alpha(t).to(x), sde.sigma(t).to(x)
    return sigma * (x - alpha * MEAN) / (alpha**2 * STD**2 + sigma**2)


def closed_form(steps: int) -> tuple[list[float], list[float]]:
    """Moments of the linear sampler, by its scalar recursion in double precision."""
    mean, variance = [0.0], [1.0]
    for t, _, a, b, c in euler_maruyama_steps(sde, steps, torch.device("cpu")):
        v = float(sde.alpha(t) ** 2 * STD**2 + sde.sigma(t) ** 2)
        slope = float(a) - float(b) / v
        mean.append(slope * mean[-1] + float(b) * float(sde.alpha(t)) * MEAN / v)
        variance.append(slope**2 * variance[-1] + float(c) ** 2)
    return mean, variance


def test_the_trace_is_exact_for_a_linear_score() -> None:
    """Traced moments equal the closed form at every step to rounding, with as few as 50 samples."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn((50, 1), generator=generator, dtype=torch.float64)
    found = trace(linear_eps, sde, x, 200, generator)
    mean, variance = closed_form(200)
    assert np.allclose(found.mean[:, 0], mean, rtol=1e-8, atol=1e-10)
    assert np.allclose(found.variance[:, 0], variance, rtol=1e-8)
    assert len(found.t) == 201 and found.covariance.shape == (200, 1)
    # As printed, with half of a large negative covariance, the variance comes out far too large.
    assert found.printed_variance[-1, 0] > 2 * variance[-1]


def test_the_trace_matches_the_samples_of_a_score_that_is_not_linear() -> None:
    """Two modes at ±1: traced and empirical variance, 20,000 samples, within 4 standard errors (4 %) at every step."""

    def eps(x: Tensor, t: Tensor) -> Tensor:
        alpha, sigma = sde.alpha(t), sde.sigma(t)
        v = alpha**2 * 0.3**2 + sigma**2
        return sigma * (x - alpha * torch.tanh(alpha * x / v)) / v  # E[mode | x] = tanh(alpha x / v)

    generator = torch.Generator().manual_seed(0)
    x = torch.randn((20_000, 1), generator=generator, dtype=torch.float64)
    found = trace(eps, sde, x, 300, generator)
    assert np.abs(found.variance / found.empirical_variance - 1).max() < 0.04
    assert abs(found.variance[-1, 0] - (1 + 0.3**2)) < 0.04


def test_the_continuous_form_needs_its_cross_terms() -> None:
    """x_0 = x_T + integral + noise: with the covariances between them it is the variance of the samples, exactly."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn((5_000, 1), generator=generator, dtype=torch.float64)
    found = trace(linear_eps, sde, x, 200, generator)
    assert np.allclose(found.continuous_full, found.empirical_variance[-1], rtol=1e-9)
    assert found.continuous_printed[0] > sde.total + 1 > 10 > found.continuous_full[0]


def test_the_trace_walks_the_samplers_own_path() -> None:
    """Same noise, same coefficients: the last empirical moments are those of `euler_maruyama`."""
    x = torch.randn((500, 2), generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    end = euler_maruyama(linear_eps, sde, x, 50, torch.Generator().manual_seed(2))
    found = trace(linear_eps, sde, x, 50, torch.Generator().manual_seed(2))
    assert np.allclose(found.empirical_mean[-1], end.mean(0).numpy(), rtol=1e-9)
