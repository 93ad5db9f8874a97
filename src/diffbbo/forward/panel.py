"""The forward models as one panel: sampled opinions of a design, and the designs that each opinion likes best."""

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

OPINIONS = (4, 4, 8)  # of the process on ranks, the process on values, and the committee
OF_FEW = (3, 3, 3, 3, 4)  # with few rows: of these two processes, the rough ones, and the committee
DRAWS = 256  # of the scores of a pool, from which designs are chosen together
ROWS = 400  # that a Gaussian process sees
CHUNK = 2048  # designs judged at once: more would only cost memory
ASCENT = 40  # steps of the climb over numbers

Opinions = Callable[[Tensor], Tensor]  # rows (K, n, d), each opinion its own -> values (K, n)


@dataclass(frozen=True)
class Panel:
    """K sampled functions of a design, those of the model that ranks good designs best first."""

    layout: Layout
    read: Opinions
    processes: tuple[Process, ...]  # on ranks, on values; with few rows also the rough ones
    device: str
    skill: tuple[float, ...]  # of each model: how well it ranks the best rows when they are left out

    @classmethod
    def fit(
        cls, layout: Layout, u: Array, score: Array, y: Array, rng: np.random.Generator, device: str = "cpu",
        few: bool = False,
    ) -> Panel:  # fmt: skip
        """From rows `(n, d)` in the unit scale, their normal scores `(n,)` and their values `(n,)`.

        The process on ranks sees the best rows and a sample of the others, the one on values the best rows alone: how
        far apart the values of good designs are says where to go, and the others would drown it. Where rows are `few`
        each has a rough twin, since they do not say how fast the function varies.
        """
        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        rows, scores = (torch.as_tensor(part, dtype=torch.float64, device=device) for part in (u, score))
        order = np.argsort(-score, kind="stable")
        half = min(len(order), ROWS) // 2
        used = np.concatenate([order[:half], rng.permutation(order[half:])[: ROWS - half]])
        top = order[:ROWS]
        values = torch.as_tensor((y[top] - y[top].mean()) / (y[top].std() or 1.0), dtype=torch.float64, device=device)
        processes = tuple(
            Process.fit(layout, rows[which], what, rough)
            for rough in ((False, True) if few else (False,))
            for which, what in ((used, scores[used]), (top, values))
        )
        committee = Committee.fit(layout, rows, scores, generator)
        best = scores[order[:half]]  # rows that all were shown, and are asked about as if they were not
        left_out = (*(process.loo[:half] for process in processes), committee.left_out[order[:half]])
        skill = tuple(_rank_correlation(prediction, best) for prediction in left_out)
        models: tuple[Process | Committee, ...] = *processes, committee
        opinions = OF_FEW if few else OPINIONS
        first = sorted(range(len(models)), key=lambda m: -skill[m])
        functions = [models[m].functions(opinions[m], generator) for m in first]
        ends = np.cumsum([opinions[m] for m in first])[:-1].tolist()

        def read(u: Tensor) -> Tensor:
            parts = u.tensor_split(ends)
            return torch.cat([function(part) for function, part in zip(functions, parts, strict=True)])

        return cls(layout, read, processes, device, skill)

    @property
    def opinions(self) -> int:
        """K, the same for few rows and many."""
        return sum(OPINIONS)

    @torch.no_grad()
    def ranked(self, u: Array) -> NDArray[np.intp]:
        """Row numbers of a pool `(n, d)` in every opinion's order, best first: `(K, n)`."""
        pool = torch.as_tensor(u, device=self.device)
        parts = (pool[k : k + CHUNK].expand(self.opinions, -1, -1) for k in range(0, len(pool), CHUNK))
        values = torch.cat([self.read(part) for part in parts], dim=1).cpu().numpy()
        return np.argsort(-values, axis=1, kind="stable")

    @torch.no_grad()
    def together(self, u: Array, n: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """Row numbers of up to `n` designs of a pool `(m, d)`, each the one that raises the expected best most, given
        those before it.

        On ranks or on values, whichever process ranks good designs better; of the smooth and the rough one that under
        which good designs were more likely when they were left out.
        """
        skilled = max(range(len(self.processes)), key=lambda m: self.skill[m])
        half = (len(self.processes[0].loo) + 1) // 2
        judge = max(self.processes[skilled % 2 :: 2], key=lambda process: float(process.density[:half].mean()))
        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        gains = judge.gains(torch.as_tensor(u, device=self.device), DRAWS, generator)
        return np.asarray(greedy(gains, n).cpu())

    def ascend(self, u: Array, reach: Array) -> tuple[Array, Array]:
        """Climb every opinion from its own rows `(K, n, d)` over the numbers, each at most its `reach` (of the same
        shape) away; rows and values."""
        start, far = (torch.as_tensor(part, device=self.device) for part in (u, reach))
        far = far * torch.tensor([level is None for level in self.layout.levels], device=self.device)
        low, high = ((bound - start) / far.clamp(min=1e-12) for bound in (0.0, 1.0))
        low, high = low.clamp(min=-1), high.clamp(max=1)
        way = torch.zeros_like(start, requires_grad=True)  # in parts of the reach
        adam = torch.optim.Adam([way], lr=1 / 12, capturable=start.is_cuda)
        best, highest = start.clone(), torch.full(start.shape[:2], -torch.inf, dtype=start.dtype, device=self.device)

        def step() -> None:
            moved = start + far * way
            values = self.read(moved)
            with torch.no_grad():
                better = values > highest
                highest.copy_(torch.where(better, values, highest))
                best.copy_(torch.where(better[..., None], moved, best))
            adam.zero_grad()
            (-values.sum()).backward()  # type: ignore[no-untyped-call]
            adam.step()
            with torch.no_grad():
                way.copy_(torch.minimum(torch.maximum(way, low), high))

        repeat(step, ASCENT, start.device)
        return best.cpu().numpy(), highest.cpu().numpy()


def greedy(gains: Tensor, n: int) -> Tensor:
    """Up to `n` columns of joint draws `(s, m)`, each the one that most raises the mean of the best so far, which
    begins at 0.

    Where no draw gains anything more, it begins again with what is left, from the highest mean.
    """
    lowest = gains.amin(1, keepdim=True)
    reached, free = torch.zeros_like(lowest), torch.zeros_like(gains[0])
    chosen = []
    for _ in range(min(n, gains.shape[1])):
        more = (gains - reached).clamp(min=0).mean(0) + free
        nothing = more.amax() <= 0
        k = torch.where(nothing, (gains - lowest).mean(0) + free, more).argmax(keepdim=True)
        chosen.append(k)
        free.index_fill_(0, k, -torch.inf)
        taken = gains.index_select(1, k)
        reached = torch.where(nothing, taken, torch.maximum(reached, taken))
    return torch.cat(chosen)


def _rank_correlation(a: Tensor, b: Tensor) -> float:
    """Spearman's; 0 where one of them does not vary."""
    if len(a) < 2:
        return 0.0
    ranks = torch.stack([part.argsort().argsort().double() for part in (a, b)])
    return float(torch.corrcoef(ranks)[0, 1].nan_to_num(0.0))
