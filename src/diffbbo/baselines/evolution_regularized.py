"""Regularized evolution: the population ages, and the oldest dies rather than the worst."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..optimizer import Optimizer, Proposal
from ..spaces import Space
from ..types import InputError
from ..variation import mutate, tournament


class RegularizedEvolution(Optimizer):
    """Mutants of the best of `sample` designs drawn from the `population` youngest (Algorithm 1 of the paper).

    A design is as old as its tell: those of one tell are measured together, so where only some of them still fit
    into the population the best do, and a large table of start data enters with its best designs. Until
    `population` designs are told, designs are random. A mutant differs from its parent in one column, and in each
    other one with probability `rate`. With `ageing=False` the worst die instead of the oldest.
    """

    name = "evolution-regularized"
    summary = "ageing evolution: tournament, mutation only, the oldest die"
    reference = "Real et al. 2019"
    supports = "any amount of data; any batch"

    def __init__(
        self, space: Space, *, seed: int = 0, minimize: bool = False, population: int = 100,
        sample: int = 25, rate: float = 0.0, ageing: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(space, seed=seed, minimize=minimize)
        if population < 1 or sample < 1 or not 0 <= rate <= 1:
            raise InputError(
                f"population = {population}, sample = {sample}, rate = {rate} do not fit.",
                "Use population >= 1, sample >= 1 and a probability as rate.",
            )
        self.population, self.sample, self.rate, self.ageing = population, sample, rate, ageing

    def settings(self) -> dict[str, Any]:
        own = {"population": self.population, "sample": self.sample, "rate": self.rate, "ageing": self.ageing}
        return super().settings() | own

    def alive(self) -> NDArray[np.intp]:
        """The population: indices of told rows, the last told first. A failure was never alive."""
        told = np.flatnonzero(~self.data.failed)
        worst_first = self.data.y[told]
        if self.ageing:
            tell = np.repeat(np.arange(len(self.tells)), self.tells)[told]
            order = np.lexsort((told, worst_first, tell))  # by tell, within a tell by value
        else:
            order = np.lexsort((told, worst_first))
        survivors = told[order[-self.population :]]
        return np.asarray(np.sort(survivors)[::-1])

    def propose(self, n: int, rng: np.random.Generator) -> Iterator[Proposal]:
        alive = self.alive()
        x, y = self.data.x[alive], self.data.y[alive]
        missing = min(n, self.population - len(alive))
        info = {"population": len(alive), "oldest": int(alive.min()) if len(alive) else None, "random": missing}
        while True:
            first = self.space.sample(missing, rng)  # "while |population| < P: random"
            if missing == n:
                yield Proposal(first, info=info)
                continue
            # "sample of size S, each drawn with replacement; the parent is the best of it"
            parent = x[tournament(y, n - missing, self.sample, rng)]
            child = mutate(self.space, parent, rng, rate=self.rate)
            yield Proposal(np.concatenate([first, child]), info=info)
