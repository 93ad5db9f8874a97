"""Both forward models as one panel: sampled opinions of a design, and the designs that each opinion likes best."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..graphs import repeat
from ..types import Array
from .committee import Committee
from .layout import Layout
from .process import Process

OPINIONS = 8  # of each model
ROWS = 400  # that the Gaussian process sees: the best half and a sample of the others
CHUNK = 2048  # designs judged at once: more would only cost memory
ASCENT = 40  # steps of the climb over numbers

Opinions = Callable[[Tensor], Tensor]  # rows (K, n, d), each opinion its own -> values (K, n)


@dataclass(frozen=True)
class Panel:
    """K = 2 x OPINIONS sampled functions of a design."""

    layout: Layout
    read: Opinions
    device: str
    seen: NDArray[np.intp]  # rows that the process was fitted to,
    smoothed: Array  # and what it makes of their scores: noise and luck taken off
    skill: tuple[float, float]  # how well rows left out were ranked, by the process and by the committee

    @classmethod
    def fit(cls, layout: Layout, u: Array, score: Array, rng: np.random.Generator, device: str = "cpu") -> Panel:
        """From rows `(n, d)` in the unit scale and their standardised scores `(n,)`."""
        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        rows, values = (torch.as_tensor(part, dtype=torch.float64, device=device) for part in (u, score))
        order = np.argsort(-score, kind="stable")
        half = min(len(order), ROWS) // 2
        used = torch.as_tensor(np.concatenate([order[:half], rng.permutation(order[half:])[: ROWS - half]]))
        process = Process.fit(layout, rows[used], values[used])
        committee = Committee.fit(layout, rows, values, generator)
        first, second = (model.functions(OPINIONS, generator) for model in (process, committee))

        def read(u: Tensor) -> Tensor:
            return torch.cat([first(u[:OPINIONS]), second(u[OPINIONS:])])

        skill = _rank_correlation(process.loo, values[used]), _rank_correlation(committee.left_out, values)
        with torch.no_grad():
            smoothed = process.predict(rows[used])[0].cpu().numpy()
        return cls(layout, read, device, used.numpy(), smoothed, skill)

    @property
    def opinions(self) -> int:
        """K."""
        return 2 * OPINIONS

    @torch.no_grad()
    def ranked(self, u: Array) -> NDArray[np.intp]:
        """Row numbers of a pool `(n, d)` in every opinion's order, best first: `(K, n)`."""
        pool = torch.as_tensor(u, device=self.device)
        parts = (pool[k : k + CHUNK].expand(self.opinions, -1, -1) for k in range(0, len(pool), CHUNK))
        values = torch.cat([self.read(part) for part in parts], dim=1)
        return np.asarray(values.argsort(dim=1, descending=True, stable=True).cpu())

    def favourites(self, u: Array, count: int) -> NDArray[np.intp]:
        """Row numbers of a pool `(n, d)`: everyone's best, then everyone's second best, and so on, without repeats."""
        turns = self.ranked(u)[:, :count].T.ravel()
        _, first = np.unique(turns, return_index=True)
        return turns[np.sort(first)][:count]

    def ascend(self, u: Array, reach: float) -> tuple[Array, Array]:
        """Climb every opinion from its own rows `(K, n, d)` over the numbers, at most `reach` away; rows and values."""
        start = torch.as_tensor(u, device=self.device)
        free = torch.zeros(start.shape[-1], dtype=start.dtype, device=self.device)
        free[self.layout.numbers] = 1.0
        low, high = (start - reach * free).clamp(min=0), (start + reach * free)
        high = torch.where(free > 0, high.clamp(max=1), start)
        low = torch.where(free > 0, low, start)
        moving = start.clone().requires_grad_()
        adam = torch.optim.Adam([moving], lr=reach / 12, capturable=start.is_cuda)
        best, highest = start.clone(), torch.full(start.shape[:2], -torch.inf, dtype=start.dtype, device=self.device)

        def step() -> None:
            values = self.read(moving)
            with torch.no_grad():
                better = values > highest
                highest.copy_(torch.where(better, values, highest))
                best.copy_(torch.where(better[..., None], moving, best))
            adam.zero_grad()
            (-values.sum()).backward()  # type: ignore[no-untyped-call]
            adam.step()
            with torch.no_grad():
                moving.copy_(torch.minimum(torch.maximum(moving, low), high))

        repeat(step, ASCENT, start.device)
        return best.cpu().numpy(), highest.cpu().numpy()


def _rank_correlation(a: Tensor, b: Tensor) -> float:
    """Spearman's; 0 where one of them does not vary."""
    if len(a) < 2:
        return 0.0
    ranks = torch.stack([part.argsort().argsort().double() for part in (a, b)])
    return float(torch.corrcoef(ranks)[0, 1].nan_to_num(0.0))
