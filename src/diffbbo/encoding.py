"""Rows to feature vectors for the network and back, and the scale of the objective."""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass

import numpy as np

from .spaces import Space
from .types import Array
from .variables import Integer, Real

MIXING = 0.6  # of one-hot with uniform, before the logarithm (the paper's implementation details)


@dataclass(frozen=True)
class Encoder:
    """Row `x` `(n, d)` <-> standardised feature `z` `(n, f)`.

    A real or integer variable is one feature, its position between its bounds; a letter or category of k values
    is k logits, log(0.6 onehot + 0.4 / k). Every feature is then standardised by the data: `(raw - mean) / std`.
    """

    space: Space
    mean: Array
    std: Array

    @classmethod
    def fit(cls, space: Space, x: Array, floor: float = 0.02) -> Encoder:
        """Standardise by the designs `x`, with every spread at least `floor` of what the feature can span.

        Without the floor (`floor=0`) a constant column keeps its scale and can hardly move.
        """
        raw = _raw(space, x)
        std = np.maximum(raw.std(axis=0), floor * _spans(space))
        return cls(space, raw.mean(axis=0), np.where(std > 1e-12, std, 1.0))

    @property
    def features(self) -> int:
        return len(self.mean)

    def encode(self, x: Array) -> Array:
        return (_raw(self.space, x) - self.mean) / self.std

    def decode(self, z: Array) -> Array:
        """The designs nearest to any real features `(n, f)`: always valid, also for inf and NaN."""
        with np.errstate(over="ignore", invalid="ignore"):
            raw = np.nan_to_num(np.asarray(z, dtype=np.float64) * self.std + self.mean)
        columns, start = [], 0
        for variable, _ in self.space.slices():
            if isinstance(variable, Real):
                columns.append(variable.from_unit(np.clip(raw[:, start : start + 1], 0.0, 1.0)))
                start += 1
            elif isinstance(variable, Integer):
                unit = np.clip(raw[:, start : start + 1], 0.0, 1.0)
                columns.append(variable.snap(variable.lower + unit * (variable.upper - variable.lower)))
                start += 1
            else:
                width, levels = variable.width, variable.levels or 1
                logits = raw[:, start : start + width * levels].reshape(len(raw), width, levels)
                columns.append(logits.argmax(axis=2).astype(np.float64))
                start += width * levels
        return np.concatenate(columns, axis=1)


def _raw(space: Space, x: Array) -> Array:
    """Features before standardisation: positions in [0, 1] and logits."""
    parts = []
    for variable, where in space.slices():
        if isinstance(variable, Real | Integer):
            parts.append(variable.to_unit(x[:, where]))
        else:
            levels = variable.levels or 1
            onehot = np.eye(levels)[x[:, where].astype(np.intp)]
            logits = np.log(MIXING * onehot + (1 - MIXING) / levels)
            parts.append(logits.reshape(len(x), variable.width * levels))
    return np.concatenate(parts, axis=1)


def _spans(space: Space) -> Array:
    """How far apart two values of each feature can be."""
    spans: list[float] = []
    for variable in space.variables:
        if isinstance(variable, Real | Integer):
            spans.append(1.0)
        else:
            levels = variable.levels or 1
            gap = np.log((MIXING + (1 - MIXING) / levels) / ((1 - MIXING) / levels))
            spans.extend([float(gap)] * (variable.width * levels))
    return np.array(spans)


@dataclass(frozen=True)
class ObjectiveScale:
    """What the network is told instead of y, and the zero from which a target w * phi is measured.

    Everything goes through the share u(y) = (y - origin) / (phi - origin): 0 at the origin, 1 at the best value, so
    that a target w * phi is simply u = w. The network is conditioned on the standardised share.
    """

    unit: float  # y is divided by this first, so that no difference of values can overflow
    origin: float
    reach: float  # phi - origin, in that unit
    mean: float
    std: float
    raw: bool  # the paper's scale: no clipping, heights in the objective's own unit
    flat: bool  # all values are equal: there is nothing to aim for

    @classmethod
    def paper(cls, y: Array) -> ObjectiveScale:
        """The origin is 0 where all y >= 0, else the smallest y."""
        v = y / _largest(y)
        return cls._fit(y, origin=0.0 if v.min() >= 0 else float(v.min()), raw=True)

    @classmethod
    def robust(cls, y: Array, quantile: float = 0.05) -> ObjectiveScale:
        """The origin is a low quantile, so that a*y + b changes nothing and one terrible outlier little."""
        v = y / _largest(y)
        # The quantile is a value of the data: interpolated, it would follow the outlier up to 20 values.
        low = float(np.quantile(v, quantile, method="higher"))
        # More than 95 % of the values may be equal, with none above them.
        return cls._fit(y, origin=low if low < v.max() else float(v.min()), raw=False)

    @classmethod
    def _fit(cls, y: Array, origin: float, raw: bool) -> ObjectiveScale:
        unit = _largest(y)
        reach = float(y.max() / unit) - origin
        flat = bool(y.min() == y.max())
        u = cls(unit, origin, reach, 0.0, 1.0, raw, flat)._share(y)
        return cls(unit, origin, reach, float(u.mean()), float(u.std()) or 1.0, raw, flat)

    def _share(self, y: Array) -> Array:
        u = (np.asarray(y) / self.unit - self.origin) / (self.reach or 1.0)
        # A value far below the low quantile is just "bad": how bad must not squash the rest.
        return np.asarray(u if self.raw else np.maximum(u, -1.0))

    def condition(self, y: Array) -> Array:
        """`y` as the network sees it."""
        c = (self._share(y) - self.mean) / self.std
        # Below this grid y and (a*y + b - b) / a differ by rounding alone; the model must not see that.
        return c if self.raw else np.round(c * 2.0**20) / 2.0**20

    def targets(self, weights: SequenceOf[float]) -> Array:
        """The candidate set (line 4): y = w * phi for each w, measured from the origin."""
        return np.asarray(self.unit * (self.origin + np.asarray(weights) * self.reach))

    def height(self, y: Array) -> Array:
        """`y` above the origin, which UaE weighs against the epistemic term: raw, or as a share of phi."""
        share = self._share(y)
        return share * self.reach * self.unit if self.raw else share


def _largest(y: Array) -> float:
    return float(np.abs(y).max()) or 1.0
