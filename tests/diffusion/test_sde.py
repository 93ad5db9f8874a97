"""The variance-preserving SDE against its own definition."""

from __future__ import annotations

import torch

from diffbbo.diffusion.sde import T_MIN, VPSDE

sde = VPSDE(0.1, 20.0)
t = torch.linspace(T_MIN, 1, 101, dtype=torch.float64)


def test_variance_is_preserved() -> None:
    assert torch.allclose(sde.alpha(t) ** 2 + sde.sigma(t) ** 2, torch.ones_like(t), atol=1e-14)


def test_log_alpha_is_minus_half_the_integral_of_beta() -> None:
    """d log alpha / dt = -beta / 2."""
    at = t.clone().requires_grad_()
    (slope,) = torch.autograd.grad(sde.log_alpha(at).sum(), at)
    assert torch.allclose(slope, -sde.beta(t) / 2, atol=1e-12)


def test_time_of_inverts_half_log_snr() -> None:
    assert torch.allclose(sde.time_of(sde.half_log_snr(t)), t, rtol=1e-9)


def test_grids_run_from_one_to_the_end() -> None:
    for spacing in ("time", "snr"):
        grid = sde.grid(30, spacing, torch.device("cpu"))
        assert len(grid) == 31 and bool((grid.diff() < 0).all())
        assert torch.allclose(grid[[0, -1]], torch.tensor([1.0, T_MIN], dtype=torch.float64))


def test_total_is_the_integral_of_beta() -> None:
    """Over [T_MIN, 1]: 0.1 (1 - T_MIN) + 19.9 (1 - T_MIN^2) / 2."""
    assert abs(sde.total - (0.1 * (1 - T_MIN) + 19.9 * (1 - T_MIN**2) / 2)) < 1e-12
