"""What could not be measured teaches, too: a committee learns which letters and categories make a design fail."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..spaces import Space
from ..types import Array
from ..variables import Categorical, Sequence
from .committee import MEMBERS, Committee
from .layout import Layout

DOUBT = 0.05  # a difference that chance makes as often as this is none


@dataclass(frozen=True)
class Rules:
    """What decides whether a design can be made: which letters stand side by side anywhere in a word (a cutting site,
    two bulky residues in a row), and which categories come together.

    Numbers are left out: where they limit what can be made the best design often lies at the limit, and who keeps clear
    of it never gets there.
    """

    columns: tuple[int, ...]  # of categories
    categories: Layout
    words: tuple[tuple[int, int, int], ...]  # first column, end, and how many letters there are

    @classmethod
    def of(cls, space: Space) -> Rules:
        categories, words = {}, []
        for variable, where in space.slices():
            if isinstance(variable, Categorical):
                categories[where.start] = variable.levels
            elif isinstance(variable, Sequence):
                words.append((where.start, where.stop, variable.levels))
        return cls(tuple(categories), Layout(tuple(categories.values())), tuple(words))

    def features(self, u: Tensor) -> Tensor:
        """Of rows `(..., d)`, `(..., f)`: a category one-hot, and of every pair of letters whether a word has it."""
        parts = [self.categories.features(u[..., self.columns])]
        for start, stop, letters in self.words:
            pairs = (letters * u[..., start : stop - 1] + u[..., start + 1 : stop]).long()
            parts.append(u.new_zeros((*u.shape[:-1], letters**2)).scatter(-1, pairs, 1.0))
        return torch.cat(parts, dim=-1)


@dataclass(frozen=True)
class Failures:
    """Tells designs that look more like those that failed from others.

    `told_apart` is how well it does when each is judged by the member that never saw it: the part of what could be made
    that it lets pass, less that of what failed.
    """

    committee: Committee
    bound: float
    told_apart: float
    device: str

    @classmethod
    def fit(
        cls, space: Space, made: Array, failed: Array, asked: NDArray[np.bool_], rng: np.random.Generator,
        device: str = "cpu",
    ) -> Failures | None:  # fmt: skip
        """From designs `(n, d)` that could be measured and others `(k, d)` that could not; None as long as chance would
        tell them apart as well.

        All are learnt from, but of the made only those `asked` for together with others that failed, a mask `(n,)`, are
        compared with these: histories often hold what could be measured alone, and that what has been asked for since
        looks different from them says nothing.
        """
        rules = Rules.of(space)
        if not (rules.columns or rules.words) or not asked.any() or not len(failed):
            return None
        if len(made) + len(failed) < MEMBERS:
            return None
        succeeded = np.repeat([1.0, 0.0], [len(made), len(failed)])
        rows = torch.as_tensor(np.concatenate([made, failed]), device=device)
        score = torch.as_tensor((succeeded - succeeded.mean()) / succeeded.std(), device=device)
        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        committee = Committee.fit(rules, rows, score, generator)
        compared = np.concatenate([asked, np.ones(len(failed), dtype=bool)])
        bound, apart = best_bound(committee.left_out.cpu().numpy()[compared], succeeded[compared] > 0)
        return cls(committee, bound, apart, device) if apart > by_chance(int(asked.sum()), len(failed)) else None

    @torch.no_grad()
    def likely(self, x: Array) -> NDArray[np.bool_]:
        """Which of the designs `(n, d)` are likely to fail."""
        rows = torch.as_tensor(x, device=self.device)
        return np.asarray(self.committee.everyone(rows).mean(0).cpu().numpy() < self.bound)


def best_bound(value: Array, succeeded: NDArray[np.bool_]) -> tuple[float, float]:
    """The bound on values `(n,)` that lets the largest part of what succeeded pass, less that of what failed, and that
    difference (Youden's J)."""
    bounds, which = np.unique(value, return_inverse=True)
    made, failed = (np.bincount(which, weights=group, minlength=len(bounds)) for group in (succeeded, ~succeeded))
    kept, passed = (counts[::-1].cumsum()[::-1] / counts.sum() for counts in (made, failed))
    best = int((kept - passed).argmax())
    return float(bounds[best]), float(kept[best] - passed[best])


def by_chance(made: int, failed: int) -> float:
    """The difference that values which say nothing reach with probability `DOUBT`: the largest difference between two
    empirical distributions, by Smirnov's one-sided limit."""
    return sqrt(-log(DOUBT) / 2 * (made + failed) / (made * failed))
