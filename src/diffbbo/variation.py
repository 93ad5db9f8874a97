"""Crossover and mutation per variable type, on rows. Shared by every method that breeds designs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .spaces import Space
from .types import Array
from .variables import Integer, Real, Sequence

SHIFTED = 0.15  # of the children, where there are words
LINED = 0.4  # of the children, where there are numbers
SINGLE = 0.5  # of the other children, with one parent and one column changed
BEYOND = 0.5  # how far a line goes on behind either parent, in parts of the way between the two


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


def shift(space: Space, x: Array, rng: np.random.Generator) -> Array:
    """From every word of rows `(n, d)` a letter is taken out and another put in elsewhere; those between move by one.

    What a word means often lies in letters that stand side by side, wherever in the word they do.
    """
    new = x.copy()
    for variable, where in space.slices():
        if not isinstance(variable, Sequence):
            continue
        out, into = rng.integers(variable.width, size=(2, len(x), 1))
        place = np.arange(variable.width)
        source = place + ((out <= place) & (place < into)) - ((into < place) & (place <= out))
        word = np.take_along_axis(x[:, where], source, axis=1)
        np.put_along_axis(word, into, rng.integers(variable.levels, size=into.shape).astype(float), axis=1)
        new[:, where] = word
    return new


def line(space: Space, father: Array, mother: Array, rng: np.random.Generator) -> Array:
    """Children anywhere on the lines through their parents `(n, d)`, beyond them too; letters are of either.

    All numbers move together, and no further than the parents are apart: what they agree on stays.
    """
    one, other = scaled(space, father), scaled(space, mother)
    along = rng.uniform(-BEYOND, 1 + BEYOND, size=(len(father), 1))
    moved = numbers(space) & (father != mother)
    return np.where(moved, unscaled(space, one + along * (other - one)), crossover(mother, father, rng))


def breed(
    space: Space, x: Array, y: Array, n: int, step: float, rng: np.random.Generator, lined: float = LINED
) -> Array:
    """`n` children of parents `x` with values `y`: a father with up to half of a mother, mutated in some columns.

    How much of the mother differs from child to child, and half have nothing of her and one column changed: some
    designs bear an exchange, others are spoilt by it. Half move numbers by a tenth of the range, half by `step` or
    less.

    Where there are words, some children are their father with words shifted; where there are numbers, a part `lined`
    lies on the line through both parents.
    """
    father, mother = (x[tournament(y, n, 3, rng)] for _ in range(2))
    single = rng.random(n) < SINGLE
    taken = np.where(single, 0.0, 0.5 * rng.random(n))[:, None]
    child = np.where(rng.random(father.shape) < taken, mother, father)
    kind = rng.integers(4, size=n)
    for k, (columns, size) in enumerate(((1, 0.1), (2, 0.1), (1, step), (2, step / 2))):
        for these, more in (((kind == k) & single, 0.0), ((kind == k) & ~single, columns / x.shape[1])):
            child[these] = mutate(space, child[these], rng, more, size)
    if any(isinstance(variable, Sequence) for variable in space.variables):
        shifted = rng.random(n) < SHIFTED
        child[shifted] = shift(space, father[shifted], rng)
    if numbers(space).any():
        drawn = rng.random(n) < lined
        child[drawn] = line(space, father[drawn], mother[drawn], rng)
    return child


def scaled(space: Space, x: Array) -> Array:
    """Rows with every number from 0 to 1 on its scale; letters and categories stay their index."""
    return np.concatenate(
        [v.to_unit(x[:, where]) if isinstance(v, Real | Integer) else x[:, where] for v, where in space.slices()],
        axis=1,
    )


def unscaled(space: Space, u: Array) -> Array:
    """The designs nearest to rows `u`: the inverse of `scaled`, rounded to each variable's grid."""
    parts = []
    for variable, where in space.slices():
        part = u[:, where]
        if isinstance(variable, Real):
            parts.append(variable.from_unit(np.clip(part, 0.0, 1.0)))
        elif isinstance(variable, Integer):
            parts.append(variable.snap(variable.lower + part * (variable.upper - variable.lower)))
        else:
            parts.append(variable.snap(part))
    return np.concatenate(parts, axis=1)


def changes(space: Space, u: Array, row: Array, step: float) -> Array:
    """In how many columns rows `u` `(n, d)` differ from `row` `(d,)`; a number counts in full from `step` apart on."""
    apart = np.abs(u - row)
    return np.asarray(np.where(numbers(space), np.minimum(apart / step, 1.0), apart > 0).sum(axis=1))


def choices(space: Space) -> list[int | None]:
    """Per column, how many values a letter or category has; None for a number, real or integer."""
    return [
        None if isinstance(variable, Real | Integer) else variable.levels
        for variable, where in space.slices()
        for _ in range(where.stop - where.start)
    ]


def numbers(space: Space) -> NDArray[np.bool_]:
    """Which columns are numbers, real or integer."""
    return np.array([level is None for level in choices(space)])


def apart(space: Space, x: Array, n: int, step: float, least: float = 1.0) -> NDArray[np.intp]:
    """Up to `n` of the rows `x`, in order, each at least `least` changes (see `changes`) from those before it."""
    u, chosen = scaled(space, x), []
    free = np.ones(len(u), dtype=bool)
    for index in range(len(u)):
        if free[index]:
            chosen.append(index)
            if len(chosen) == n:
                break
            free &= changes(space, u, u[index], step) >= least
    return np.array(chosen, dtype=np.intp)


def _reflect(u: Array) -> Array:
    """Back into [0, 1] by reflection at its ends, so that no mass piles up on a bound."""
    return np.asarray(1 - np.abs(1 - np.mod(u, 2)))
