"""Bayesian optimisation with expected improvement, for batches by Monte Carlo, in log form."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ..gp import GPMethod
from ..types import Array
from ..variation import scaled

if TYPE_CHECKING:
    from torch import Tensor

    from ..gp.model import Posterior
    from ..gp.search import Criterion

SAMPLES = 128  # of BoTorch's Monte-Carlo estimate, quasi-random


class GPEI(GPMethod):
    """The batch with the highest expected improvement E[max(max_j f(x_j) - best, 0)] under a subset GP.

    BoTorch's qLogExpectedImprovement: chosen greedily from a pool, then improved together by its gradient.
    """

    name = "gp-ei"
    summary = "subset GP, log expected improvement of the batch by Monte Carlo"
    reference = "Jones et al. 1998; Balandat et al. 2020, BoTorch; Ament et al. 2023, LogEI"
    supports = "a subset of 500 rows (CPU); any batch"

    def criterion(self, posterior: Posterior, parents: Array, rng: np.random.Generator) -> Criterion:
        from torch import Size

        from ..gp.model import package
        from ..gp.search import MonteCarlo

        botorch = package("botorch.acquisition.logei")
        sampling = package("botorch.sampling.normal")
        smooth = package("botorch.utils.safe_math")
        best = posterior.y.max()
        pending = posterior.tensor(scaled(self.space, self.pending))
        seed, draw = (int(rng.integers(2**31)) for _ in range(2))

        def single(mean: Tensor, variance: Tensor) -> Tensor:
            return log_ei(mean, variance, best)

        def utility(f: Tensor, mean: Tensor) -> Tensor:
            return smooth.fatplus(f - best, tau=botorch.TAU_RELU)  # type: ignore[no-any-return]

        def batch() -> Callable[[Tensor], Tensor]:
            sampler = sampling.SobolQMCNormalSampler(Size([SAMPLES]), seed=seed)
            waiting = pending if len(pending) else None
            acquisition: Callable[[Tensor], Tensor] = botorch.qLogExpectedImprovement(
                posterior.model, best, sampler, X_pending=waiting
            )
            return acquisition

        return MonteCarlo(posterior, pending, draw, single, utility, batch)


def log_ei(mean: Tensor, variance: Tensor, best: Tensor) -> Tensor:
    """log E[max(f - best, 0)] for f ~ N(mean, variance): equation 9 of Ament et al., without underflow."""
    import torch

    sigma = variance.sqrt()
    u = (mean - best) / sigma
    near = u.clamp_min(-1.0)
    phi = torch.exp(-near.square() / 2) / math.sqrt(2 * math.pi)
    close = torch.log(phi + near * torch.special.ndtr(near))
    # Further out h(u) = phi(u) (1 - |u| sqrt(pi/2) erfcx(|u| / sqrt(2))), and beyond 1e6 that is phi(u) / u^2.
    far = (-u).clamp(1.0, 1e6)
    tail = torch.log1p(-far * math.sqrt(math.pi / 2) * torch.special.erfcx(far / math.sqrt(2)))
    tail = torch.where(far > 1e3, -2 * torch.log((-u).clamp_min(1.0)), tail)
    below = -u.square() / 2 - math.log(2 * math.pi) / 2 + tail
    return torch.where(u > -1, close, below) + torch.log(sigma)
