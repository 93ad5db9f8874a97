"""Bayesian optimisation by joint entropy search: measure what tells most about the optimum and its value."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..gp import GPMethod
from ..gp.rows import columns_of
from ..spaces import Space
from ..types import Array, InputError
from ..variables import Real
from ..variation import scaled

if TYPE_CHECKING:
    from torch import Tensor

    from ..gp.model import Posterior
    from ..gp.search import Criterion

EXACT = 1e-4  # the noise with which a sampled optimum is known: BoTorch's smallest
STARTS, CLIMBERS = 1_024, 4  # random designs, and how many of them climb each path
LEAST = 1.1920928955078125e-07  # BoTorch's floor for probabilities and shares of variance (float32's epsilon)


class GPJES(GPMethod):
    """The batch that tells most about where the maximum lies and how high it is, under a subset GP.

    The value of BoTorch's qJointEntropySearch (lower bound, noiseless optima), given `optima` samples of (x*, f*): of
    functions drawn from the posterior, maximised by gradient on spaces of reals, over a pool of designs on others.
    """

    name = "gp-jes"
    summary = "subset GP, joint entropy search: what tells most about the optimum"
    reference = "Hvarfner et al. 2022; Tu et al. 2022; Balandat et al. 2020, BoTorch"
    supports = "a subset of 500 rows (CPU); any batch"

    def __init__(
        self, space: Space, *, seed: int = 0, minimize: bool = False, rows: int | None = None, device: str = "auto",
        effort: float = 1.0, optima: int = 16,
    ) -> None:  # fmt: skip
        super().__init__(space, seed=seed, minimize=minimize, rows=rows, device=device, effort=effort)
        if not isinstance(optima, int) or isinstance(optima, bool) or optima < 1:
            raise InputError(f"optima = {optima!r} is not a whole number of at least 1.", "Give, say, 16.")
        self.optima = optima

    def settings(self) -> dict[str, Any]:
        return super().settings() | {"optima": self.optima}

    def criterion(self, posterior: Posterior, parents: Array, rng: np.random.Generator) -> Criterion:
        real = len(columns_of(self.space, Real)) == self.space.dimension
        sample = self._from_paths if real else self._from_pool
        z, f = sample(posterior, parents, rng)
        pending = posterior.tensor(scaled(self.space, self.pending))
        return JointEntropy(posterior, pending, z, f)

    def _from_paths(self, posterior: Posterior, parents: Array, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Sampled optima `(p, d)` and their values `(p,)`: the maxima of posterior paths over the unit cube."""
        import torch

        from ..gp.model import package, quiet
        from ..gp.search import climb

        pathwise = package("botorch.sampling.pathwise.posterior_samplers")
        devices = [posterior.z.device] if posterior.z.is_cuda else []
        with torch.random.fork_rng(devices), quiet():
            torch.manual_seed(int(rng.integers(2**62)))
            paths = pathwise.get_matheron_path_model(posterior.model, torch.Size([self.optima]))
        # From anywhere, not from near the best: that would find its hill in every path.
        starts = posterior.tensor(scaled(self.space, self.space.sample(STARTS, rng)))
        with torch.no_grad():
            best = paths(starts)[..., 0].topk(CLIMBERS, dim=1).indices
        # All paths climb as one problem, so it takes more steps than one design would.
        z = climb(self.space, lambda z: paths(z)[..., 0], starts[best], 4 * self.effort, apart=False)
        with torch.no_grad():
            f, which = paths(z)[..., 0].max(dim=1)
        return z[torch.arange(len(z)), which], f

    def _from_pool(self, posterior: Posterior, parents: Array, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        """The same over designs of high confidence bounds, measured ones included: they may be the optimum."""
        from ..gp.search import POOL, gather

        def score(x: Array) -> Array:
            mean, variance = posterior.moments(posterior.tensor(scaled(self.space, x)))
            return np.asarray((mean + 2 * variance.sqrt()).cpu().numpy())

        pool = gather(self.space, score, parents, set(), rng, self.effort)
        z = posterior.tensor(scaled(self.space, np.concatenate([pool.mixed(POOL, rng), parents])))
        f, where = posterior.sample(z, self.optima, int(rng.integers(2**62))).max(dim=1)
        return z[where], f


@dataclass(frozen=True)
class JointEntropy:
    """The information in measurements about the optimum: H(y | data) - mean over optima of H(y | data, x*, f*).

    The first term is the entropy of the batch together, the second is bounded by the sum of its members' (Tu et al.,
    section 4): so the gain of one more design is its entropy given those chosen before, less its own second term.
    """

    posterior: Posterior
    pending: Tensor  # (m, d)
    z: Tensor  # (p, d), sampled optima
    f: Tensor  # (p,), their values

    def conditional(self, z: Tensor) -> Tensor:
        """The second term for single designs: `(n,)`."""
        import torch

        mean, variance = self.posterior.moments(z)
        at_mean, at_variance = self.posterior.moments(self.z)
        # Condition on f(x*) = f*: a rank-one update of mean and variance, one per sampled optimum, (n, p).
        cross = self.posterior.covariance(z, self.z)
        gain = cross / (at_variance + EXACT)
        given = (variance[:, None] - gain * cross).clamp_min(1e-12)
        # f cannot exceed f*: the variance of a normal truncated from above.
        u = (self.f - mean[:, None] - gain * (self.f - at_mean)) / given.sqrt()
        ratio = torch.exp(-u.square() / 2) / math.sqrt(2 * math.pi) / torch.special.ndtr(u).clamp_min(LEAST)
        truncated = given * (1 - (u + ratio) * ratio).clamp_min(LEAST)
        return torch.log(truncated + self.posterior.noise).mean(1) / 2

    def score(self, z: Tensor) -> Tensor:
        _, variance = self.posterior.moments(z)
        return (variance + self.posterior.noise).log() / 2 - self.conditional(z)

    def choose(self, pool: Tensor, n: int) -> list[int]:
        """Greedy: pivoted Cholesky keeps every design's variance given those chosen and those pending."""
        import torch

        second = self.conditional(pool)
        z = torch.cat([pool, self.pending])
        covariance = self.posterior.joint(z)[1]
        left = covariance.diagonal() + self.posterior.noise
        waiting = list(range(len(pool), len(z)))
        chosen: list[int] = []
        root = torch.empty(0, len(z)).to(z)
        for _ in range(min(n, len(pool)) + len(waiting)):
            if waiting:
                k = waiting.pop()
            else:
                value = left[: len(pool)].log() / 2 - second
                value[chosen] = -torch.inf
                k = int(value.argmax())
                chosen.append(k)
            row = (covariance[k] - root[:, k] @ root) / left[k].sqrt()
            row[k] = left[k].sqrt()
            root = torch.cat([root, row[None]])
            left = (left - row.square()).clamp_min(float(self.posterior.noise) / 2)
        return chosen

    def batch(self) -> Callable[[Tensor], Tensor]:
        """The same number as BoTorch's qJointEntropySearch, which updates `p` whole models instead of two moments."""
        import torch

        def value(z: Tensor) -> Tensor:
            return torch.stack([self._gain(part) for part in z])

        return value

    def _gain(self, z: Tensor) -> Tensor:
        """The information of one batch `(q, d)`, beyond that of the pending designs."""
        import torch

        together = torch.cat([z, self.pending])
        noise = torch.diag(self.posterior.noise.expand(len(together)))
        return torch.logdet(self.posterior.joint(together)[1] + noise) / 2 - self.conditional(z).sum()
