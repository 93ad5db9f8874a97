"""A Gaussian process with inducing points, as a differentiable function of its latents, for end-to-end training.

Loading this module loads torch, so methods import it where they train.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def cholesky(matrix: Tensor) -> Tensor:
    """The lower root of a covariance, with as little added to its diagonal as makes it positive definite."""
    spare = matrix.diagonal().mean() * torch.eye(len(matrix), dtype=matrix.dtype)
    root: Tensor
    for jitter in (1e-8, 1e-6, 1e-4):
        root, failed = torch.linalg.cholesky_ex(matrix + jitter * spare, check_errors=jitter == 1e-4)
        if not failed:
            break
    return root


class Process:
    """A Gaussian process with inducing points at their optimal distribution (Titsias 2009).

    `z` `(n, l)` with values `y` `(n,)` of mean 0, `inducing` `(m, l)`; an RBF kernel of one lengthscale. `elbo` bounds
    the log marginal likelihood from below, and equals it where the inducing points are all of `z`.
    """

    def __init__(
        self, z: Tensor, y: Tensor, inducing: Tensor, lengthscale: Tensor, scale: Tensor, noise: Tensor
    ) -> None:
        self.inducing, self.lengthscale, self.scale = inducing, lengthscale, scale
        n, m = len(z), len(inducing)
        eye = torch.eye(m, dtype=z.dtype)
        self.root = cholesky(self.kernel(inducing, inducing))
        a = torch.linalg.solve_triangular(self.root, self.kernel(inducing, z), upper=False) / noise.sqrt()
        self.inner = torch.linalg.cholesky(eye + a @ a.T)
        self.c = torch.linalg.solve_triangular(self.inner, (a @ y)[:, None] / noise.sqrt(), upper=False)[:, 0]
        self.elbo = (
            -0.5 * n * (math.log(2 * math.pi) + noise.log()) - self.inner.diagonal().log().sum()
            - 0.5 * (y @ y) / noise + 0.5 * (self.c @ self.c) - 0.5 * n * scale / noise + 0.5 * (a * a).sum()
        )  # fmt: skip

    def kernel(self, a: Tensor, b: Tensor) -> Tensor:
        a, b = a / self.lengthscale, b / self.lengthscale
        square = (a * a).sum(dim=1)[:, None] + (b * b).sum(dim=1) - 2 * a @ b.T
        return self.scale * (-0.5 * square.clamp_min(0.0)).exp()

    def posterior(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Mean `(k,)` and covariance `(k, k)` at `z` `(k, l)`, without the noise."""
        first = torch.linalg.solve_triangular(self.root, self.kernel(self.inducing, z), upper=False)
        second = torch.linalg.solve_triangular(self.inner, first, upper=False)
        return second.T @ self.c, self.kernel(z, z) - first.T @ first + second.T @ second
