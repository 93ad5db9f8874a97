"""Crossover and mutation per variable type, on rows. Shared by every method that breeds designs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .spaces import Space
from .types import Array
from .variables import Integer, Real


def tournament(y: Array, n: int, size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """`n` parents: each the best of `size` drawn at random, as indices into `y`."""
    entrants = rng.integers(len(y), size=(n, size))
    winner = y[entrants].argmax(axis=1)
    return np.asarray(entrants[np.arange(n), winner])


def crossover(mother: Array, father: Array, rng: np.random.Generator) -> Array:
    """Uniform crossover of rows `(n, d)`: each column from either parent."""
    return np.where(rng.random(mother.shape) < 0.5, mother, father)


def mutate(space: Space, x: Array, rng: np.random.Generator, rate: float, step: float = 0.1) -> Array:
    """Change each column with probability `rate`, and at least one column of every row `(n, d)`.

    A number moves by a normal step of `step` of its range (on its scale), an integer by at least one; a letter or
    category becomes any other.
    """
    hit = rng.random(x.shape) < rate
    hit[np.arange(len(x)), rng.integers(x.shape[1], size=len(x))] = True
    new = x.copy()
    for variable, where in space.slices():
        old = x[:, where]
        if isinstance(variable, Real):
            position = variable.to_unit(old) + step * rng.standard_normal(old.shape)
            moved = variable.from_unit(_reflect(position))
        elif isinstance(variable, Integer):
            jump = step * (variable.upper - variable.lower) * rng.standard_normal(old.shape)
            jump = np.sign(jump) * np.maximum(1.0, np.rint(np.abs(jump)))
            # At a bound a step outwards would be no step.
            moved = variable.snap(np.where(variable.snap(old + jump) == old, old - jump, old + jump))
        else:
            levels = variable.levels or 1
            moved = (old + rng.integers(1, levels, size=old.shape)) % levels
        new[:, where] = np.where(hit[:, where], moved, old)
    return new


def _reflect(u: Array) -> Array:
    """Back into [0, 1] by reflection at its ends, so that no mass piles up on a bound."""
    return np.asarray(1 - np.abs(1 - np.mod(u, 2)))
