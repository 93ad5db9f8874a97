"""Random search: what every method must beat."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..optimizer import Optimizer, Proposal


class Random(Optimizer):
    """Designs drawn uniformly, without repeats."""

    name = "random"
    summary = "uniform draws without repeats"
    reference = "Bergstra & Bengio 2012"
    supports = "any amount of data; any batch"

    def propose(self, n: int, rng: np.random.Generator) -> Iterator[Proposal]:
        while True:
            yield Proposal(self.space.sample(n, rng))
