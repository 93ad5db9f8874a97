"""Which measured rows a Gaussian process sees, and which columns are of what kind. Numpy only."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..spaces import Space
from ..types import Array

ROWS = {"cpu": 500, "cuda": 4_000}  # the size of the subset, where none is given


def choose_rows(y: Array, limit: int, seed: int) -> NDArray[np.intp]:
    """Which of the values `y` a GP of at most `limit` rows sees: the best half, and a seeded sample of the others.

    Every row keeps the lot it drew when it was told, so the sample changes little from round to round.
    """
    if len(y) <= limit:
        return np.arange(len(y))
    order = np.argsort(-y, kind="stable")
    half = limit - limit // 2
    best, rest = order[:half], order[half:]
    lot = np.random.default_rng(seed).random(len(y))
    sample = rest[np.argsort(lot[rest], kind="stable")[: limit // 2]]
    return np.sort(np.concatenate([best, sample]))


def columns_of(space: Space, *kinds: type) -> list[int]:
    """The columns of a row that belong to variables of these kinds."""
    return [i for v, where in space.slices() if isinstance(v, kinds) for i in range(where.start, where.stop)]
