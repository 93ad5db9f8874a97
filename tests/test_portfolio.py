"""Shares of a batch and the length of a step, from told rounds worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from diffbbo.portfolio import FINEST, MEMORY, STEP, deal, shares, step_length

EQUAL = np.array([0.5, 0.5])


def share(*told: Any) -> np.ndarray:
    return shares(*told)[0]


def test_places_follow_the_shares_and_a_batch_may_be_cut_short() -> None:
    half = deal(np.array([0.5, 0.25, 0.25]), 8)
    assert np.bincount(half).tolist() == [4, 2, 2]
    assert deal(np.array([0.5, 0.25, 0.25]), 3).tolist() == half[:3].tolist()
    assert deal(EQUAL, 4).tolist() == [0, 1, 0, 1]


def test_small_batches_come_round_to_small_shares() -> None:
    """With shares of 0.9 and 0.1 a place in ten is the second's, also when batches have two places."""
    usual = np.array([0.9, 0.1])
    y, tells, places = np.zeros(1), [1], []
    for _ in range(10):
        now, owed = shares(y, tells, usual, 0.05)
        places.append(deal(now, 2, owed))
        y, tells = np.concatenate([y, [0.0, 0.0]]), [*tells, 2]
        assert owed.sum() == pytest.approx(0.0) and np.abs(owed).max() < 1
    assert np.bincount(np.concatenate(places)).tolist() == [18, 2]


def test_without_learning_shares_stay() -> None:
    assert shares(np.array([0.0, 1, 2, 0, 3, 1, 0]), (3, 4), EQUAL, 0.05, learn=False)[0].tolist() == [0.5, 0.5]


def test_before_anything_is_known_shares_are_the_usual_ones() -> None:
    assert share(np.array([1.0, 2.0, 3.0]), (3,), EQUAL, 0.05).tolist() == [0.5, 0.5]
    assert share(np.empty(0), (), EQUAL, 0.05).tolist() == [0.5, 0.5]


def test_who_finds_the_better_design_gets_more() -> None:
    """Start data 0, 1, 2: median 1, best 2. In the next tell places 0 and 2 are the first's, 1 and 3 the second's,
    whose best gains 1, far more than 0.02 (2 - 1): clear. A tenth of four rows is one leader, the best, above whom is
    nobody else: credit (0, 0.4), so shares 0.5 (1 - 0.4) = 0.3 and 0.7."""
    y = np.array([0.0, 1, 2, 0, 3, 1, 0])
    assert share(y, (3, 4), EQUAL, 0.05) == pytest.approx([0.5 * (1 - MEMORY), 0.5 * (1 - MEMORY) + MEMORY])


def test_in_large_batches_a_tenth_of_the_designs_counts() -> None:
    """In a batch of 20 the best two count, of 0 to 19 before the second is 18. Of 18, 21, 20, 17, 19, 18, 19 and 13
    zeros, places in turns, the first earns its best two, 2 + 1 (and not another 1), the second 3 + 0; the new best of 2
    is clear, since 0.02 (19 - 9.5) is less. Credit 0.4 (3/6, 3/6)."""
    y = np.concatenate([np.arange(20.0), [18, 21, 20, 17, 19, 18, 19], np.zeros(13)])
    assert share(y, (20, 20), EQUAL, 0.05) == pytest.approx([0.5, 0.5])
    y[20 + 2] = 19  # now the first has 1 + 1: credit 0.4 (2/5, 3/5)
    assert share(y, (20, 20), EQUAL, 0.05) == pytest.approx([0.3 + MEMORY * 2 / 5, 0.3 + MEMORY * 3 / 5])


def test_a_gain_that_is_not_clear_counts_in_part() -> None:
    """A gain of 0.01 is half of 0.02 (2 - 1): credit 0.4 / 2 = 0.2, of which 0.2 / 2 is forgotten: 0.18."""
    y = np.array([0.0, 1, 2, 0, 2.01, 0, 0])
    assert share(y, (3, 4), EQUAL, 0.05) == pytest.approx([0.5 * 0.82, 0.5 * 0.82 + 0.18])


def test_without_a_gain_shares_go_back_to_the_usual_ones() -> None:
    """Credit 0.4, then 0.4 x 0.8 = 0.32: shares 0.34 and 0.66."""
    y = np.array([0.0, 1, 2, 0, 3, 1, 0, 0, 0])
    assert share(y, (3, 4, 2), EQUAL, 0.05) == pytest.approx([0.34, 0.66])


def test_nobody_falls_below_the_floor_and_failures_do_no_harm() -> None:
    y, tells = np.array([0.0, 1, 2]), [3]
    for best in range(3, 33):  # the second alone succeeds, the first always fails
        now, owed = shares(y, tells, EQUAL, 0.2)
        places = deal(now, 4, owed)
        y, tells = np.concatenate([y, np.where(places == 1, float(best), np.nan)]), [*tells, 4]
    low, high = share(y, tells, EQUAL, 0.2)
    assert low / high == pytest.approx(0.2 / 1.0, abs=1e-3)  # the floor beside all there is to earn
    assert np.isfinite(share(np.array([1.0, np.nan, np.nan]), (1, 2), EQUAL, 0.05)).all()


def test_steps_are_halved_after_two_misses_and_doubled_by_a_success() -> None:
    assert step_length(np.array([1.0, 2, 3]), (1, 1, 1)) == STEP
    assert step_length(np.array([3.0, 2, 1]), (1, 1, 1)) == STEP / 2
    assert step_length(np.array([3.0, 2, 1, 4]), (1, 1, 1, 1)) == STEP
    assert step_length(np.array([3.0, 2, 1, 2, 4]), (1, 1, 1, 1, 1)) == STEP / 2  # a success after a miss keeps it
    assert step_length(np.zeros(100), (1,) * 100) == FINEST
