"""Numbers that most measured designs have in common: an element that most materials lack, a knob that few turn.

Models know nothing of it: they would move all such numbers a little, and so leave everything that was ever measured.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .spaces import Space
from .types import Array
from .variation import numbers, scaled


@dataclass(frozen=True)
class Usual:
    """Per column `(d,)` the value that more than half of the designs share; NaN where there is none, and for letters.

    `part` of the designs have it. `near` is half the median distance of the others, in the unit scale: nobody who is
    nearer means something else.
    """

    space: Space
    value: Array
    part: Array
    near: Array

    @classmethod
    def of(cls, space: Space, x: Array) -> Usual:
        """From measured designs `(n, d)`."""
        value, part, near = np.full((3, x.shape[1]), np.nan)
        u = scaled(space, x)
        for column in np.flatnonzero(numbers(space)):
            values, counts = np.unique(x[:, column], return_counts=True)
            if 2 * counts.max() > len(x):
                value[column], part[column] = values[counts.argmax()], counts.max() / len(x)
                same = x[:, column] == value[column]
                away = np.abs(u[~same, column] - u[same, column][0])
                near[column] = np.median(away) / 2 if len(away) else np.inf
        return cls(space, value, part, near)

    @classmethod
    def none(cls, space: Space) -> Usual:
        """No value is usual: everything below leaves designs as they are."""
        return cls(space, *np.full((3, space.dimension), np.nan))

    def spread(self, x: Array, rng: np.random.Generator) -> Array:
        """Designs `(n, d)`, of which as many get the value as of the measured ones have it."""
        return np.where(rng.random(x.shape) < self.part, self.value, x)

    def restored(self, x: Array, like: Array) -> Array:
        """Designs `(n, d)`, of which those near the value get it, and at least as many as of the designs `like`."""
        known = ~np.isnan(self.value)
        target = np.where(known, self.value, x)
        away = np.abs(scaled(self.space, x) - scaled(self.space, target))
        place = away.argsort(axis=0, kind="stable").argsort(axis=0, kind="stable")
        enough = place < (like == self.value).mean(axis=0) * len(x)
        return np.where(known & ((away < self.near) | enough), target, x)

    def movable(self, x: Array, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Which numbers of designs `(n, d)` may move: those that have the value as seldom as measured ones lack it."""
        return np.asarray((x != self.value) | (rng.random(x.shape) >= self.part))
