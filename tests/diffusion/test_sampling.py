"""Samplers with analytic denoisers: the answer is known in closed form, so nothing here is trained."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from diffbbo import EnsembleConfig
from diffbbo.diffusion.network import Network
from diffbbo.diffusion.sampling import Denoiser, dpm_solver, euler_maruyama, guided
from diffbbo.diffusion.sde import T_MIN, VPSDE

sde = VPSDE()
N = 20_000


def gaussian(mean: Tensor, std: float) -> Denoiser:
    """The exact eps for data N(mean, std^2): x_t ~ N(alpha mean, v), v = alpha^2 std^2 + sigma^2, eps = -sigma s."""

    def eps(x: Tensor, t: Tensor) -> Tensor:
        alpha, sigma = sde.alpha(t).to(x), sde.sigma(t).to(x)
        return sigma * (x - alpha * mean) / (alpha**2 * std**2 + sigma**2)

    return eps


def draw(sampler: str, denoiser: Denoiser, features: int, steps: int, n: int = N) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn((n, features), generator=generator, dtype=torch.float64)
    if sampler == "euler-maruyama":
        return euler_maruyama(denoiser, sde, x, steps, generator)
    return dpm_solver(denoiser, sde, x, steps, generator if sampler == "dpm-solver++" else None)


@pytest.mark.parametrize(
    ("sampler", "steps"), [("euler-maruyama", 1000), ("dpm-solver++", 30), ("dpm-solver++ ode", 30)]
)
@pytest.mark.parametrize("y", [-1.0, 2.0])
def test_conditional_mean_and_variance_of_a_gaussian(sampler: str, steps: int, y: float) -> None:
    """p(x | y) = N(a y, s^2) with a = (1, -2), s = 0.5.

    Tolerances: 4 standard errors (a false alarm in 1 of 4,000 per number) plus 1 % for the finite steps.
    """
    mean, std = torch.tensor([1.0, -2.0], dtype=torch.float64) * y, 0.5
    x = draw(sampler, gaussian(mean, std), 2, steps)
    assert torch.allclose(x.mean(0), mean, atol=4 * std / math.sqrt(N) + 0.01 * std)
    assert torch.allclose(x.std(0), torch.full((2,), std, dtype=x.dtype), rtol=4 / math.sqrt(2 * N) + 0.01)


def test_euler_maruyama_follows_its_own_recursion() -> None:
    """With a linear score the sampler is linear, so its variance is known to the last step, finite steps included."""
    std, steps = 0.5, 100
    grid = sde.grid(steps, "time", torch.device("cpu"))
    variance = 1.0
    for t, after in zip(grid[:-1].tolist(), grid[1:].tolist(), strict=True):
        beta = float(sde.beta(torch.tensor(t)))
        alpha, sigma = (float(f(torch.tensor(t, dtype=torch.float64))) for f in (sde.alpha, sde.sigma))
        dt = t - after
        slope = 1 + beta * dt / 2 - beta * dt / (alpha**2 * std**2 + sigma**2)
        variance = slope**2 * variance + beta * dt
    x = draw("euler-maruyama", gaussian(torch.zeros(1), std), 1, steps)
    assert abs(float(x.var()) / variance - 1) < 4 * math.sqrt(2 / N)


def test_dpm_solver_is_of_second_order() -> None:
    """Halving the step must divide the error by about four.

    For Gaussian data the probability-flow ODE is solved exactly by x(t) = alpha m + sqrt(v(t)) c, so each end point is
    known. A first-order method would give a ratio of 2.
    """
    mean, std = torch.tensor([0.7], dtype=torch.float64), 0.3
    start = torch.linspace(-2, 2, 9, dtype=torch.float64)[:, None]

    def exact(x: Tensor) -> Tensor:
        one, end = torch.tensor([1.0, T_MIN], dtype=torch.float64)
        v = [sde.alpha(t) ** 2 * std**2 + sde.sigma(t) ** 2 for t in (one, end)]
        last = sde.alpha(end) * mean + torch.sqrt(v[1] / v[0]) * (x - sde.alpha(one) * mean)
        return (last - sde.sigma(end) * gaussian(mean, std)(last, end)) / sde.alpha(end)

    errors = [float((dpm_solver(gaussian(mean, std), sde, start, n) - exact(start)).abs().max()) for n in (40, 80, 160)]
    for coarse, fine in pairwise(errors):
        assert 3.3 < coarse / fine < 4.7


def test_temperature_scales_what_is_random_about_a_sample() -> None:
    """For Gaussian data the sampler is linear in its noise: a sample at temperature T lies T times as far from the
    mean as that with the same noise at 1. At 0 every sample is the mean."""
    mean, std = torch.tensor([0.7, -0.2], dtype=torch.float64), 0.3
    deviations = []
    for heat in (1.0, 0.4, 0.0):
        generator = torch.Generator().manual_seed(1)
        x = heat * torch.randn((50, 2), generator=generator, dtype=torch.float64)
        deviations.append(dpm_solver(gaussian(mean, std), sde, x, 30, generator, temperature=heat) - mean)
    centre = deviations[2]  # what 30 steps from 0 leave of the mean's distance: alike for all
    assert float(centre.std(0).max()) == pytest.approx(0.0, abs=1e-12) and float(centre.abs().max()) < 0.01
    assert torch.allclose(deviations[1] - centre, 0.4 * (deviations[0] - centre))


MODES = torch.tensor([[-1.5, 0.0], [1.5, 0.5], [0.0, -1.5]], dtype=torch.float64)
SHARES = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
WIDTH = 0.05


def mixture(x: Tensor, t: Tensor) -> Tensor:
    """The exact eps for a mixture of three Gaussians."""
    alpha, sigma = sde.alpha(t), sde.sigma(t)
    v = alpha**2 * WIDTH**2 + sigma**2
    offset = x[:, None] - alpha * MODES
    share = torch.softmax(torch.log(SHARES) - (offset**2).sum(-1) / (2 * v), dim=1)
    return sigma * (share[..., None] * offset).sum(1) / v


def energy_distance(a: Tensor, b: Tensor) -> float:
    """2 E|A - B| - E|A - A'| - E|B - B'|, zero only for equal distributions."""

    def mean_distance(u: Tensor, v: Tensor) -> float:
        return float(torch.cdist(u, v).mean())

    n = len(a)
    inner = (mean_distance(a, a) + mean_distance(b, b)) * n / (n - 1)
    return 2 * mean_distance(a, b) - inner


def test_thirty_fast_steps_equal_a_thousand_of_the_papers() -> None:
    """On a mixture with three narrow modes, measured against exact draws.

    Over the modes: energy distance, whose noise floor is that between two exact sets of the same size (the largest in
    20 tries). Within a mode: the root mean square distance to its centre, WIDTH * sqrt(2) in truth, with a standard
    error of 1.1 %. The paper's sampler at 30 steps must fail the second, else the test would show nothing.
    """
    n = 2000
    generator = torch.Generator().manual_seed(1)

    def exact() -> Tensor:
        which = torch.multinomial(SHARES, n, replacement=True, generator=generator)
        return MODES[which] + WIDTH * torch.randn((n, 2), generator=generator, dtype=torch.float64)

    def spread(x: Tensor) -> float:
        return float(torch.cdist(x, MODES).min(dim=1).values.square().mean().sqrt()) / (WIDTH * math.sqrt(2))

    floor = max(energy_distance(exact(), exact()) for _ in range(20))
    for sampler, steps in (("euler-maruyama", 1000), ("dpm-solver++", 30), ("dpm-solver++ ode", 30)):
        x = draw(sampler, mixture, 2, steps, n)
        assert energy_distance(x, exact()) < 2 * floor, sampler
        assert abs(spread(x) - 1) < 0.06, sampler
    assert spread(draw("euler-maruyama", mixture, 2, 30, n)) > 1.5


def test_guidance_is_the_papers_formula() -> None:
    """(1 + gamma) eps(x, t, y) - gamma eps(x, t, none), evaluated by hand from the network."""
    network = Network(3, EnsembleConfig(members=2, hidden=8))
    weights = network.init(torch.Generator().manual_seed(0))
    x, y = torch.randn(2, 5, 3), torch.randn(2, 5, 1)
    t = torch.tensor(0.4)
    time = t.expand_as(y)
    conditional = network(weights, x, time, y, torch.ones_like(y))
    free = network(weights, x, time, y, torch.zeros_like(y))
    expected = 3 * conditional - 2 * free
    assert torch.allclose(guided(network, weights, y, gamma=2.0)(x, t), expected, atol=1e-5)
    assert torch.allclose(guided(network, weights, y, gamma=0.0)(x, t), conditional, atol=1e-6)


@pytest.mark.parametrize("condition", ["keep", "zero"])
def test_without_condition_the_network_does_not_see_y(condition: str) -> None:
    network = Network(3, EnsembleConfig(members=2, hidden=8, condition=condition))
    weights = network.init(torch.Generator().manual_seed(0))
    x, t, none = torch.randn(2, 5, 3), torch.full((2, 5, 1), 0.3), torch.zeros(2, 5, 1)
    low, high = (network(weights, x, t, torch.full((2, 5, 1), y), none) for y in (-3.0, 3.0))
    assert torch.equal(low, high)
    zero = network(weights, x, t, none, torch.ones(2, 5, 1))
    assert torch.equal(low, zero) == (condition == "zero"), "only the paper confuses 'no condition' with y = 0"
