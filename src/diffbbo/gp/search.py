"""The best batch under an acquisition: a pool by local search, greedy choice from it, gradients on what is real."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from ..progress import report
from ..spaces import Space
from ..types import Array, row_keys
from ..variables import Real
from ..variation import crossover, mutate, scaled, tournament, unscaled
from .model import Posterior, package, quiet
from .rows import columns_of

LISTED = 2**12  # finite spaces up to this size are scored as a whole
RAW = 2_048  # random designs, and as many children of the best, from which local search begins
STARTS, NEIGHBOURS, ROUNDS = 32, 48, 10  # local search: so many at once, neighbours of each, exchanges at most
POOL = 1_024  # designs from which a batch is chosen, or twice the batch
ASCENTS = 8  # single designs that climb the gradient before the batch is chosen
CLIMB = 60  # steps of L-BFGS for one design, and for the batch
POLISHED = 200  # designs of a batch that climb together; those after them stay as they were chosen
DRAWS = 256  # Monte-Carlo samples of the batch while it is chosen


def part(count: int, effort: float) -> int:
    """That share of a count, at least 1."""
    return max(1, round(effort * count))


class Criterion(Protocol):
    """An acquisition: the score of single designs, the greedy choice of a batch, its value for gradients."""

    def score(self, z: Tensor) -> Tensor:
        """The acquisition of every one of `z` `(m, d)` on its own: `(m,)`."""

    def choose(self, pool: Tensor, n: int) -> list[int]:
        """Indices of `n` members of `pool` `(m, d)`, chosen greedily as a batch, best first."""

    def batch(self) -> Callable[[Tensor], Tensor]:
        """The acquisition of whole batches, differentiable: `(b, q, d)` to `(b,)`."""


@dataclass(frozen=True)
class MonteCarlo:
    """The criteria whose batch value is E[max over the batch of u(f)]: sequential greedy on joint samples of f.

    `utility(f, mean)` maps samples `(s, m)` and means `(m,)` to u `(s, m)`.
    """

    posterior: Posterior
    pending: Tensor  # (p, d), chosen before and not measured yet
    seed: int
    single: Callable[[Tensor, Tensor], Tensor]  # mean and variance (m,) to the acquisition (m,)
    utility: Callable[[Tensor, Tensor], Tensor]
    batch: Callable[[], Callable[[Tensor], Tensor]]  # BoTorch's own acquisition

    def score(self, z: Tensor) -> Tensor:
        return self.single(*self.posterior.moments(z))

    def choose(self, pool: Tensor, n: int) -> list[int]:
        f = self.posterior.sample(torch.cat([pool, self.pending]), DRAWS, self.seed)
        u = self.utility(f, f.mean(0))
        if len(self.pending):
            return greedy(u[:, : len(pool)], u[:, len(pool) :].amax(1), n)
        first = int(self.score(pool).argmax())  # the first choice needs no samples
        return greedy(u, u[:, first], n, [first])


def greedy(u: Tensor, reached: Tensor, n: int, chosen: Sequence[int] = ()) -> list[int]:
    """`n` columns of `u` `(s, m)`, each the one that raises the mean of max(reached, u) most; ties to the first."""
    chosen = list(chosen)
    free = torch.zeros(u.shape[1], dtype=u.dtype, device=u.device)
    free[chosen] = -torch.inf
    while len(chosen) < min(n, u.shape[1]):
        value = torch.maximum(u, reached[:, None]).mean(0) + free
        k = int(value.argmax())
        chosen.append(k)
        free[k] = -torch.inf
        reached = torch.maximum(reached, u[:, k])
    return chosen


class Pool:
    """Designs that have been scored, each once and none of them known; best first on request."""

    def __init__(self, score: Callable[[Array], Array], known: set[bytes], dimension: int) -> None:
        self._score, self._seen = score, set(known)
        self.x, self.value = np.empty((0, dimension)), np.empty(0)

    def add(self, x: Array) -> int:
        """Score what is new of `x`; how many that were."""
        fresh = []
        for row, key in enumerate(row_keys(x)):
            if key not in self._seen:
                self._seen.add(key)
                fresh.append(row)
        if fresh:
            self.x = np.concatenate([self.x, x[fresh]])
            self.value = np.concatenate([self.value, self._score(x[fresh])])
        return len(fresh)

    def best(self, n: int) -> Array:
        return np.asarray(self.x[np.argsort(-self.value, kind="stable")[:n]])

    def mixed(self, n: int, rng: np.random.Generator) -> Array:
        """The best half of `n` and a sample of the others, best first: a batch needs more than one hill."""
        order = np.argsort(-self.value, kind="stable")
        half = n - n // 2
        rest = order[half:]
        keep = np.concatenate([order[:half], rng.permutation(rest)[: n - half]])
        return np.asarray(self.x[keep[np.argsort(-self.value[keep], kind="stable")]])


def gather(
    space: Space, score: Callable[[Array], Array], parents: Array, known: set[bytes], rng: np.random.Generator,
    effort: float = 1.0,
) -> Pool:  # fmt: skip
    """A pool of scored designs: all of a small space; else random ones, children of the best, and local search.

    Local search exchanges one column of the best designs at a time: a letter or category for another, a number by
    a step that shrinks from round to round. `parents` `(k, d)` are measured designs, best first.
    """
    pool = Pool(score, known, space.dimension)
    if space.size is not None and space.size <= LISTED:
        pool.add(space.unrank(np.arange(space.size)))
        return pool
    raw, starts = part(RAW, effort), part(STARTS, effort)
    pool.add(space.sample(raw, rng))
    rank = -np.arange(len(parents), dtype=np.float64)
    mother, father = (parents[tournament(rank, raw, 2, rng)] for _ in range(2))
    pool.add(mutate(space, crossover(mother, father, rng), rng, rate=1 / space.dimension))
    for exchange in range(ROUNDS):
        report("sampling", 0.5 * exchange / ROUNDS)
        top = pool.best(starts)
        step = max(0.2 * 0.5**exchange, 1e-3)
        near = mutate(space, np.repeat(top, NEIGHBOURS, axis=0), rng, rate=0.0, step=step)
        pool.add(near)
        if np.array_equal(pool.best(starts), top):  # no single exchange is better
            break
    return pool


def climb(
    space: Space, value: Callable[[Tensor], Tensor], z: Tensor, effort: float = 1.0, apart: bool = True
) -> Tensor:
    """`z` `(b, q, d)` after an L-BFGS ascent of `value` `(b,)` in the real columns; all other columns stay.

    `apart`: each of the `b` climbs at its own pace, which needs a `value` that treats all alike.
    """
    real = columns_of(space, Real)
    if not real:
        return z
    generation = package("botorch.generation.gen")
    start = z.clone()
    start[..., real] = start[..., real].clamp(0.0, 1.0)  # rounding may have left the cube by 1e-16
    fixed = {column: z[..., column] for column in range(space.dimension) if column not in real}
    low, high = torch.zeros_like(z[0, 0]), torch.ones_like(z[0, 0])
    options = {"maxiter": part(CLIMB, effort)}
    with quiet():
        try:
            moved, _ = generation.gen_candidates_scipy(
                start, value, low, high, options=options, fixed_features=fixed or None, use_parallel_mode=apart
            )
        except (RuntimeError, ValueError):  # a covariance that cannot be factorised: the start is a fair answer
            return z
    return torch.where(moved.isfinite(), moved, z).detach()


def best_batch(
    space: Space, posterior: Posterior, criterion: Criterion, parents: Array, known: set[bytes], n: int,
    rng: np.random.Generator, effort: float = 1.0,
) -> tuple[Array, Pool]:  # fmt: skip
    """`n` designs that are best together under the criterion, in the order of choice, and the pool they come from."""

    def score(x: Array) -> Array:
        with torch.no_grad():
            return np.asarray(criterion.score(posterior.tensor(scaled(space, x))).cpu().numpy())

    pool = gather(space, score, parents, known, rng, effort)
    if not len(pool.x):
        return pool.x, pool
    z = posterior.tensor(scaled(space, pool.best(part(ASCENTS, effort))))
    report("sampling", 0.5)
    value = criterion.batch()
    single = climb(space, value, z[:, None, :], effort)[:, 0]
    pool.add(unscaled(space, single.cpu().numpy()))

    candidates = pool.mixed(max(part(POOL, effort), 2 * n), rng)
    z = posterior.tensor(scaled(space, candidates))
    chosen = criterion.choose(z, n)
    report("sampling", 0.8)
    together = climb(space, value, z[chosen[:POLISHED]][None], effort)[0]
    moved = unscaled(space, together.cpu().numpy())
    report("sampling", 1.0)
    return np.concatenate([moved, candidates[chosen[POLISHED:]]]), pool
