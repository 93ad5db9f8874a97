"""A Gaussian process over any space: its kernel, its fit, and its posterior."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..spaces import Space
from ..types import Array, need
from ..variables import Integer, Real
from ..variation import scaled
from .rows import columns_of

STEPS = 100  # of L-BFGS on the marginal likelihood, at most: once on a quarter of the rows, once on all
COARSE = 200  # rows from which on the quarter comes first
CHUNK = 2_000  # designs whose moments are computed at once


def package(name: str) -> Any:
    """A module of BoTorch or GPyTorch, or a word on how to install them; they warn while being loaded."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return need(name, "rivals", "A Gaussian process")


@contextmanager
def quiet() -> Iterator[None]:
    """Exact Cholesky factors at any size (deterministic), and no warnings about the input's scale or jitter."""
    settings = package("gpytorch").settings
    # Recorded, not ignored: BoTorch switches some of its warnings back on.
    with (
        warnings.catch_warnings(record=True),
        settings.max_cholesky_size(10**6),
        settings.fast_computations(False, False, False),
    ):
        warnings.simplefilter("ignore")
        yield


@cache
def hamming_kernel() -> Any:
    """The class of the kernel exp(-mean over letters of [they differ] / lengthscale): BoTorch's CategoricalKernel.

    BoTorch's own forms an array (n, m, letters); as one product of one-hot matrices it takes (n, m) alone.
    """
    base = package("botorch.models.kernels.categorical").CategoricalKernel

    class Hamming(base):  # type: ignore[misc, valid-type]
        def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **_: Any) -> Tensor:
            weight = (1 / self.lengthscale / x1.shape[-1]).squeeze(-2)
            if diag:
                return torch.exp(-((x1 != x2) * weight).sum(-1))
            levels = 1 + int(max(x1.max(), x2.max()))
            one, two = (torch.nn.functional.one_hot(x.long(), levels).to(x.dtype) for x in (x1, x2))
            equal = (one * weight[..., None]).flatten(-2) @ two.flatten(-2).transpose(-1, -2)
            return torch.exp(equal - weight.sum(-1))

    return Hamming


def build_kernel(space: Space, local: bool = False) -> Any:
    """Matern-5/2 with a lengthscale per number, Hamming with one per letter or category, mixed by sum and product.

    The mixture is CoCaBO's as BoTorch's MixedSingleTaskGP has it; the lengthscales of numbers have BoTorch's
    priors, which grow with the dimension. `local` is TuRBO's kernel instead: no priors, bounds (its appendix C).
    """
    kernels = package("gpytorch.kernels")
    constraints = package("gpytorch.constraints")
    modules = package("botorch.models.utils.gpytorch_modules")
    numbers = columns_of(space, Real, Integer)
    others = [column for column in range(space.dimension) if column not in numbers]

    def scaled(kernel: Any) -> Any:
        bounds = constraints.Interval(0.05, 20.0, transform=None, initial_value=1.0) if local else None
        return kernels.ScaleKernel(kernel, outputscale_constraint=bounds)

    def matern() -> Any:
        if not local:
            return modules.get_covar_module_with_dim_scaled_prior(
                ard_num_dims=len(numbers), use_rbf_kernel=False, active_dims=numbers
            )
        bounds = constraints.Interval(0.005, 2.0, transform=None, initial_value=0.5)
        return kernels.MaternKernel(
            nu=2.5, ard_num_dims=len(numbers), active_dims=numbers, lengthscale_constraint=bounds
        )

    def hamming() -> Any:
        above = constraints.GreaterThan(1e-6)
        return hamming_kernel()(ard_num_dims=len(others), active_dims=others, lengthscale_constraint=above)

    if not others:
        return scaled(matern()) if local else matern()
    if not numbers:
        return scaled(hamming())
    return scaled(matern() + scaled(hamming())) + scaled(matern() * hamming())


def _model(space: Space, z: Tensor, y: Tensor, local: bool) -> Any:
    """BoTorch's GP on features `z` `(n, d)` and standardised values `y` `(n,)`, before any fit."""
    models = package("botorch.models")
    likelihood = None  # BoTorch's: noise with a log-normal prior, at least 1e-4
    if local:
        constraint = package("gpytorch.constraints").Interval
        noise = constraint(5e-4, 0.1, transform=None, initial_value=5e-3)
        likelihoods = package("gpytorch.likelihoods")
        likelihood = likelihoods.GaussianLikelihood(noise_constraint=noise)
    kernel = build_kernel(space, local)
    model = models.SingleTaskGP(z, y[:, None], covar_module=kernel, likelihood=likelihood, outcome_transform=None)
    return model.to(z)


def _maximise_likelihood(model: Any, steps: int) -> None:
    """A bounded number of L-BFGS steps from where the hyperparameters stand; a step that fails changes nothing."""
    mlls = package("gpytorch.mlls")
    optim = package("botorch.optim.fit")
    before = {name: value.clone() for name, value in model.state_dict().items()}
    mll = mlls.ExactMarginalLogLikelihood(model.likelihood, model).train()
    try:
        optim.fit_gpytorch_mll_scipy(mll, options={"maxiter": steps})
    except (RuntimeError, ValueError):  # a matrix that is not positive definite, a likelihood that is not finite
        model.load_state_dict(before)
    if not all(bool(value.isfinite().all()) for value in model.parameters()):
        model.load_state_dict(before)
    model.eval()


@dataclass(frozen=True)
class Posterior:
    """A fitted GP on standardised values: `y = centre + scale * f`. Features `z` have shape `(m, d)`.

    `model` is BoTorch's; the methods here give the same moments, differentiable in `z`, at less cost per call.
    """

    model: Any
    z: Tensor  # (n, d), the rows it has seen
    y: Tensor  # (n,), their standardised values
    root: Tensor  # (n, n), Cholesky factor of K + noise
    weights: Tensor  # (n,), (K + noise)^-1 (y - mean)
    centre: float
    scale: float

    @property
    def noise(self) -> Tensor:
        """The variance of the noise, on the standardised scale."""
        return self.model.likelihood.noise.detach().squeeze()  # type: ignore[no-any-return]

    def lengthscales(self) -> Array:
        """One per number `(k,)`; where several kernels see the numbers, their geometric mean."""
        kernel = package("gpytorch.kernels").MaternKernel
        found = [
            k.lengthscale.detach().squeeze(0).log() for k in self.model.covar_module.modules() if type(k) is kernel
        ]
        return np.asarray(torch.stack(found).mean(0).exp().cpu().numpy()) if found else np.empty(0)

    def tensor(self, z: Array) -> Tensor:
        return torch.as_tensor(z, dtype=self.z.dtype, device=self.z.device)

    def _kernel(self, a: Tensor, b: Tensor) -> Tensor:
        return self.model.covar_module(a, b).to_dense()  # type: ignore[no-any-return]

    def _whitened(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """The mean `(m,)` and L^-1 k(rows, z) `(n, m)`."""
        cross = self._kernel(self.z, z)
        mean = self.model.mean_module(z) + cross.T @ self.weights
        return mean, torch.linalg.solve_triangular(self.root, cross, upper=False)

    def moments(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of f at each of `z`, both `(m,)`."""
        parts = []
        with quiet():
            for part in torch.split(z, CHUNK):
                mean, white = self._whitened(part)
                prior = self.model.covar_module(part, diag=True)
                parts.append((mean, (prior - white.square().sum(0)).clamp_min(1e-12)))
        mean, variance = (torch.cat(column) for column in zip(*parts, strict=True))
        return mean, variance

    def joint(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Mean `(m,)` and covariance `(m, m)` of f at all of `z` together."""
        with quiet():
            mean, white = self._whitened(z)
            return mean, self._kernel(z, z) - white.T @ white

    def covariance(self, a: Tensor, b: Tensor) -> Tensor:
        """Posterior covariance of f between `a` and `b` `(len(a), len(b))`."""
        with quiet():
            return self._kernel(a, b) - self._whitened(a)[1].T @ self._whitened(b)[1]

    def sample(self, z: Tensor, draws: int, seed: int) -> Tensor:
        """Functions f drawn from the posterior, at `z`: `(draws, m)`."""
        mean, covariance = self.joint(z)
        root = cholesky(covariance)
        generator = torch.Generator("cpu").manual_seed(seed)  # the same draws on every device
        normal = torch.randn(len(z), draws, dtype=z.dtype, generator=generator).to(z.device)
        return mean + (root @ normal).T


def cholesky(matrix: Tensor) -> Tensor:
    """The lower factor, with as much jitter on the diagonal as it takes."""
    safe = package("linear_operator.utils.cholesky")
    with quiet():
        return safe.psd_safe_cholesky(matrix, max_tries=8)  # type: ignore[no-any-return]


def fit(space: Space, x: Array, y: Array, device: str = "cpu", local: bool = False, effort: float = 1.0) -> Posterior:
    """The GP of designs `x` `(n, d)` and finite values `y` `(n,)`: the same rows always give the same fit.

    `local` fits TuRBO's GP (bounds instead of priors); `effort` scales the number of steps.
    """
    steps = max(1, round(effort * STEPS))
    unit = float(np.abs(y).max()) or 1.0  # huge values must not overflow in the variance
    centre, scale = float((y / unit).mean()) * unit, float((y / unit).std()) * unit or 1.0
    z = torch.as_tensor(scaled(space, x), dtype=torch.float64, device=device)
    v = torch.as_tensor(y / scale - centre / scale, dtype=torch.float64, device=device)
    with quiet():
        model = _model(space, z, v, local)
        if len(y) >= COARSE:
            coarse = _model(space, z[::4], v[::4], local)
            _maximise_likelihood(coarse, steps)
            model.load_state_dict(coarse.state_dict())
        _maximise_likelihood(model, steps)
        model.requires_grad_(False)  # from here on only designs are differentiated
        covariance = model.covar_module(z).to_dense() + model.likelihood.noise * torch.eye(len(v)).to(z)
        root = cholesky(covariance)
        weights = torch.cholesky_solve((v - model.mean_module(z))[:, None], root)[:, 0]
    return Posterior(model, z, v, root, weights, centre, scale)
