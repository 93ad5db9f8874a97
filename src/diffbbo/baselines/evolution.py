"""A genetic algorithm: tournament selection, uniform crossover, mutation per variable type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..optimizer import Optimizer, Proposal
from ..spaces import Space
from ..types import InputError
from ..variation import crossover, mutate, tournament


class Evolution(Optimizer):
    """Children of the `population` best designs so far (plus-selection: a good parent is never lost).

    Parents win tournaments of `tournament`; a child is a crossover with probability `crossover`, and is then mutated
    in each column with probability 1/d, at least once.
    """

    name = "evolution"
    summary = "genetic algorithm: tournament, crossover, mutation"
    reference = "Brindle 1980; Goldberg & Deb 1991"
    supports = "any amount of data; any batch"

    def __init__(
        self, space: Space, *, seed: int = 0, minimize: bool = False, population: int = 100,
        tournament: int = 3, crossover: float = 0.7,
    ) -> None:  # fmt: skip
        super().__init__(space, seed=seed, minimize=minimize)
        if population < 2 or tournament < 1 or not 0 <= crossover <= 1:
            raise InputError(
                f"population = {population}, tournament = {tournament}, crossover = {crossover} do not fit.",
                "Use population >= 2, tournament >= 1 and a crossover probability.",
            )
        self.population, self.tournament, self.crossover = population, tournament, crossover

    def settings(self) -> dict[str, Any]:
        own = {"population": self.population, "tournament": self.tournament, "crossover": self.crossover}
        return super().settings() | own

    def propose(self, n: int, rng: np.random.Generator) -> Iterator[Proposal]:
        data = self.data.distinct()
        best = np.argsort(-data.y, kind="stable")[: self.population]
        x, y = data.x[best], data.y[best]
        while True:
            if not len(y):
                note = "There is no measured design yet, so this batch fills the space evenly."
                yield Proposal(self.space.fill(n, rng), info={"notes": [note]})
                continue
            mother = x[tournament(y, n, self.tournament, rng)]
            father = x[tournament(y, n, self.tournament, rng)]
            mates = (rng.random(n) < self.crossover)[:, None]
            child = np.where(mates, crossover(mother, father, rng), mother)
            yield Proposal(mutate(self.space, child, rng, rate=1 / self.space.dimension))
