"""Intervals for tables and figures, and normal scores, made in one place."""

from __future__ import annotations

import numpy as np

from .types import Array


def bootstrap(values: Array, level: float = 0.95, draws: int = 10_000) -> tuple[Array, Array]:
    """The percentile bootstrap interval of the mean over the first axis of `values` `(n, ...)`: low and high `(...)`.

    Whole entries (seeds) are drawn again, with a fixed seed; for fewer than two there is no interval but the mean.
    """
    if len(values) < 2:
        mean = values.mean(axis=0) if len(values) else np.full(values.shape[1:], np.nan)
        return np.asarray(mean), np.asarray(mean)
    again = np.random.default_rng(0).integers(len(values), size=(draws, len(values)))
    low, high = np.quantile(values[again].mean(axis=1), [(1 - level) / 2, (1 + level) / 2], axis=0)
    return np.asarray(low), np.asarray(high)


def bootstrap_difference(ours: Array, other: Array, level: float = 0.95, draws: int = 10_000) -> tuple[float, float]:
    """The same for the mean of `ours` `(n,)` less that of `other` `(m,)`, two samples that have nothing to do with each
    other: each is drawn again for itself."""
    if not (len(ours) and len(other)):
        return float("nan"), float("nan")
    rng = np.random.default_rng(0)
    ours, other = (part[rng.integers(len(part), size=(draws, len(part)))].mean(axis=1) for part in (ours, other))
    low, high = np.quantile(ours - other, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def normal_scores(values: Array) -> Array:
    """Every value as the quantile of N(0, 1) at its rank; equal values share their mean rank."""
    import torch  # here: whoever only draws a table need not load it

    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    rank = np.cumsum(counts) - (counts - 1) / 2  # mean rank of each distinct value, from 1
    quantiles = torch.special.ndtri(torch.as_tensor((rank - 0.5) / len(values))).numpy()
    return np.asarray(quantiles[place])
