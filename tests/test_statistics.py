"""Intervals against textbook widths."""

from __future__ import annotations

import numpy as np

from diffbbo.statistics import bootstrap


def test_the_bootstrap_interval_has_its_width(rng: np.random.Generator) -> None:
    """For n = 400 values the 95 % interval of the mean is about ±1.96 s / 20, per column."""
    values = rng.standard_normal((400, 2)) * np.array([1.0, 3.0])
    low, high = bootstrap(values)
    assert np.allclose((high - low) / 2, 1.96 * values.std(axis=0) / 20, rtol=0.05)
    assert np.all((low < values.mean(axis=0)) & (values.mean(axis=0) < high))


def test_one_value_is_its_own_interval_and_none_has_none() -> None:
    assert bootstrap(np.array([2.0])) == (2.0, 2.0)
    assert np.isnan(bootstrap(np.empty(0))).all()
