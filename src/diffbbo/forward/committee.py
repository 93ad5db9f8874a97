"""A committee of small networks, each trained without a part of the rows: quick on ten thousand of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from ..graphs import repeat
from ..mlp import Learner, Weights, run
from .layout import Features

MEMBERS, HIDDEN, LAYERS = 8, 64, 2
STEPS, EPOCHS, BATCH, RATE, DECAY = (150, 500), 200, 256, 3e-3, 1e-3  # steps at least and at most


@dataclass(frozen=True)
class Committee:
    """Eight perceptrons; `left_out` predicts a row's score by the member that never saw it."""

    layout: Features
    mean: Tensor
    std: Tensor
    weights: Weights
    left_out: Tensor

    @classmethod
    def fit(cls, layout: Features, u: Tensor, score: Tensor, generator: torch.Generator) -> Committee:
        """From rows `(n, d)` and standardised scores `(n,)`. The sum of the losses trains every member by itself."""
        device = u.device
        raw = layout.features(u).float()
        mean, std = raw.mean(0), raw.std(0, correction=0).clamp(min=0.05)
        z, n = (raw - mean) / std, len(u)
        y = score.float()[:, None]
        fold = torch.randperm(n, generator=generator).to(device) % MEMBERS
        if n < MEMBERS:
            fold = fold + MEMBERS  # too few to leave any out
        seen = [torch.nonzero(fold != m)[:, 0] for m in range(MEMBERS)]
        shortest = min(len(rows) for rows in seen)
        rows = torch.stack([each[:shortest] for each in seen])  # folds differ by one row at most
        weights = []
        for n_in, n_out in pairwise([z.shape[1], *[HIDDEN] * LAYERS, y.shape[1]]):
            start = (2 * torch.rand((MEMBERS, n_in, n_out), generator=generator) - 1) * math.sqrt(3 / max(1, n_in))
            weights += [start.to(device), torch.zeros((MEMBERS, 1, n_out), device=device)]
        steps, batch = min(STEPS[1], max(STEPS[0], EPOCHS * n // BATCH)), min(BATCH, shortest)
        # All that differs from step to step lies ready, so that a step can be replayed as a graph.
        drawn = torch.randint(shortest, (steps, MEMBERS, batch), generator=generator).to(device)
        wave = torch.cos(torch.arange(steps, device=device) * (math.pi / steps))
        rates, rate = RATE * (1 + wave) / 2 + RATE / 300, torch.full((), RATE, device=device)
        turn = torch.zeros(1, dtype=torch.long, device=device)
        learner, slope = Learner(weights, batch), torch.full((), 2 / batch, device=device)

        def step() -> None:
            rate.copy_(rates.index_select(0, turn)[0])
            index = rows.gather(1, drawn.index_select(0, turn)[0])
            learner.differentiate(z[index], slope, -slope * y[index])
            learner.descend(rate, DECAY)
            turn.add_(1)

        repeat(step, steps, device)
        weights = learner.weights
        left_out = torch.empty_like(score)
        with torch.no_grad():
            for m in range(MEMBERS):
                mine = fold % MEMBERS == m
                left_out[mine] = run([w[m : m + 1] for w in weights], z[mine][None])[0, :, 0].to(score)
        return cls(layout, mean, std, weights, left_out)

    def functions(self, count: int, generator: torch.Generator) -> Callable[[Tensor], Tensor]:
        """`count` members: rows `(count, n, d)` to scores `(count, n)`."""
        chosen = torch.randperm(MEMBERS, generator=generator).repeat(-(-count // MEMBERS))[:count]
        weights = [w[chosen.to(w.device)] for w in self.weights]
        return lambda u: self._read(weights, u)

    def everyone(self, u: Tensor) -> Tensor:
        """Every member's scores `(M, n)` of the same rows `(n, d)`."""
        return self._read(self.weights, u.expand(MEMBERS, -1, -1))

    def _read(self, weights: Weights, u: Tensor) -> Tensor:
        return run(weights, (self.layout.features(u).float() - self.mean) / self.std)[..., 0].to(u.dtype)
