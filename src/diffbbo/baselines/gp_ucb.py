"""Bayesian optimisation by upper confidence bounds, for batches by Monte Carlo."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..gp import GPMethod
from ..spaces import Space
from ..types import Array, InputError
from ..variation import scaled

if TYPE_CHECKING:
    from torch import Tensor

    from ..gp.model import Posterior
    from ..gp.search import Criterion

SAMPLES = 128  # of BoTorch's Monte-Carlo estimate, quasi-random
DELTA = 0.1  # the bound fails with this probability (Srinivas et al., section 6)


class GPUCB(GPMethod):
    """The batch with the highest upper confidence bound E[max_j mu_j + sqrt(beta pi / 2) |f_j - mu_j|].

    BoTorch's qUpperConfidenceBound under a subset GP. `beta` weighs the variance: a number, or None for the authors'
    2 log(t^(d/2 + 2) pi^2 / (3 delta)) in round t, scaled down by five as in their experiments.
    """

    name = "gp-ucb"
    summary = "subset GP, upper confidence bound of the batch by Monte Carlo"
    reference = "Srinivas et al. 2010; Wilson et al. 2017; Balandat et al. 2020, BoTorch"
    supports = "a subset of 500 rows (CPU); any batch"

    def __init__(
        self, space: Space, *, seed: int = 0, minimize: bool = False, rows: int | None = None, device: str = "auto",
        effort: float = 1.0, beta: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(space, seed=seed, minimize=minimize, rows=rows, device=device, effort=effort)
        if beta is not None and not 0 <= beta < math.inf:
            raise InputError(f"beta = {beta!r} is not a number from 0 up.", "Give, say, 2, or None for the authors'.")
        self._beta = beta

    def settings(self) -> dict[str, Any]:
        return super().settings() | {"beta": self._beta if self._beta is not None else "Srinivas"}

    @property
    def beta(self) -> float:
        """The weight of the variance in the coming round."""
        return srinivas_beta(max(1, len(self.tells)), self.space.dimension) if self._beta is None else self._beta

    def criterion(self, posterior: Posterior, parents: Array, rng: np.random.Generator) -> Criterion:
        from torch import Size

        from ..gp.model import package
        from ..gp.search import MonteCarlo

        botorch = package("botorch.acquisition.monte_carlo")
        sampling = package("botorch.sampling.normal")
        beta = self.beta
        pending = posterior.tensor(scaled(self.space, self.pending))
        seed, draw = (int(rng.integers(2**31)) for _ in range(2))

        def single(mean: Tensor, variance: Tensor) -> Tensor:
            return mean + (beta * variance).sqrt()

        def utility(f: Tensor, mean: Tensor) -> Tensor:
            return mean + math.sqrt(beta * math.pi / 2) * (f - mean).abs()

        def batch() -> Callable[[Tensor], Tensor]:
            sampler = sampling.SobolQMCNormalSampler(Size([SAMPLES]), seed=seed)
            waiting = pending if len(pending) else None
            acquisition: Callable[[Tensor], Tensor] = botorch.qUpperConfidenceBound(
                posterior.model, beta, sampler, X_pending=waiting
            )
            return acquisition

        return MonteCarlo(posterior, pending, draw, single, utility, batch)


def srinivas_beta(t: int, d: int) -> float:
    """beta_t of GP-UCB in round `t` and `d` dimensions (Brochu et al. 2010, section 2.3.3), scaled down by five."""
    return 2 * ((d / 2 + 2) * math.log(t) + math.log(math.pi**2 / (3 * DELTA))) / 5
