"""Intervals against textbook widths."""

from __future__ import annotations

import numpy as np

from diffbbo.statistics import bootstrap, bootstrap_difference


def test_the_bootstrap_interval_has_its_width(rng: np.random.Generator) -> None:
    """For n = 400 values the 95 % interval of the mean is about ±1.96 s / 20, per column."""
    values = rng.standard_normal((400, 2)) * np.array([1.0, 3.0])
    low, high = bootstrap(values)
    assert np.allclose((high - low) / 2, 1.96 * values.std(axis=0) / 20, rtol=0.05)
    assert np.all((low < values.mean(axis=0)) & (values.mean(axis=0) < high))


def test_one_value_is_its_own_interval_and_none_has_none() -> None:
    assert bootstrap(np.array([2.0])) == (2.0, 2.0)
    assert np.isnan(bootstrap(np.empty(0))).all()


def test_the_difference_of_two_samples_has_its_width(rng: np.random.Generator) -> None:
    """For 400 and 100 values with deviations 1 and 3 it is about ±1.96 sqrt(1/400 + 9/100)."""
    ours, other = rng.standard_normal(400), 3 * rng.standard_normal(100) + 1.0
    low, high = bootstrap_difference(ours, other)
    assert np.isclose((high - low) / 2, 1.96 * np.sqrt(ours.var() / 400 + other.var() / 100), rtol=0.05)
    assert low < ours.mean() - other.mean() < high
    assert np.isnan(bootstrap_difference(ours, np.empty(0))).all()
