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


def test_usual_shares_may_change_from_round_to_round_and_nothing_is_left_of_a_share_of_0() -> None:
    """Half of a first batch of four is the second's, nothing of the next one, though it is owed and made the one find.
    With a quarter instead: squares of ratios 4/9 and 16/9 (below), of these 3/4 and 1/4, in parts of their sum: 3/7 and
    4/7."""
    y, tells = np.array([0.0, 1, 2, 0, 3, 1, 0]), (3, 4)
    table = np.array([[1.0, 0.0], [0.5, 0.5], [1.0, 0.0]])
    now, owed = shares(y, tells, table, 0.05)
    assert now.tolist() == [1.0, 0.0] and deal(now, 3, np.array([-0.9, 0.9])).tolist() == [0, 0, 0]
    assert owed.tolist() == [0.0, 0.0]
    table[2] = [0.75, 0.25]
    assert share(y, tells, table, 0.05) == pytest.approx([3 / 7, 4 / 7])


def test_who_finds_the_better_design_gets_more() -> None:
    """Start data 0, 1, 2. In the next tell, of four rows, places 0 and 2 are the first's, 1 and 3 the second's. A tenth
    of four is one: the best, 3, is the only find. Half a find was expected of each, so with one more for everybody the
    ratios are 1 / 1.5 and 2 / 1.5, their squares 4/9 and 16/9: shares 0.2 and 0.8."""
    y = np.array([0.0, 1, 2, 0, 3, 1, 0])
    assert share(y, (3, 4), EQUAL, 0.05) == pytest.approx([0.2, 0.8])


def test_in_large_batches_a_tenth_of_the_designs_counts() -> None:
    """In a batch of 20 the best two count; before, of 0 to 19, the second is 18. Of 18, 21, 20, 17, 19, 18, 19 and 13
    zeros, places in turns, 21 and 20 are finds, one of each. Had the first 19 instead of 20, the best two would be 21
    and any 19, of which it has three, all of them above 18: finds 3 and 1, of which 2 were expected, squares of 4/3 and
    of 2/3."""
    y = np.concatenate([np.arange(20.0), [18, 21, 20, 17, 19, 18, 19], np.zeros(13)])
    assert share(y, (20, 20), EQUAL, 0.05) == pytest.approx([0.5, 0.5])
    y[20 + 2] = 19
    assert share(y, (20, 20), EQUAL, 0.05) == pytest.approx([0.8, 0.2])


def test_only_what_is_better_than_before_is_a_find() -> None:
    assert share(np.array([0.0, 1, 2, 2, 2, 2, 2]), (3, 4), EQUAL, 0.05).tolist() == [0.5, 0.5]


def test_finds_are_forgotten_little_by_little() -> None:
    """As above, then two more rows without a find. Both places are the second's (of 0.8, and nothing owed), so 0.8 of a
    find is left, 1.6 and 3.6 designs tried: expected 0.2462 and 0.5538, ratios 1 / 1.2462 and 1.8 / 1.5538, their
    squares 0.6440 and 1.3419, shares 0.3243 and 0.6757."""
    y = np.array([0.0, 1, 2, 0, 3, 1, 0, 0, 0])
    assert MEMORY == 0.8
    assert share(y, (3, 4, 2), EQUAL, 0.05) == pytest.approx([0.3243, 0.6757], abs=1e-4)


def test_nobody_falls_below_the_floor_and_failures_do_no_harm() -> None:
    y, tells = np.array([0.0, 1, 2]), [3]
    for best in range(3, 33):  # the second alone succeeds, the first always fails
        now, owed = shares(y, tells, EQUAL, 0.2)
        places = deal(now, 4, owed)
        y, tells = np.concatenate([y, np.where(places == 1, float(best), np.nan)]), [*tells, 4]
    low, high = share(y, tells, EQUAL, 0.2)
    assert 0.2 / 1.0 <= low / high < 0.2 / 0.9  # the floor beside nearly everything
    assert np.isfinite(share(np.array([1.0, np.nan, np.nan]), (1, 2), EQUAL, 0.05)).all()


def test_steps_are_halved_after_two_misses_and_doubled_by_a_success() -> None:
    assert step_length(np.array([1.0, 2, 3]), (1, 1, 1)) == STEP
    assert step_length(np.array([3.0, 2, 1]), (1, 1, 1)) == STEP / 2
    assert step_length(np.array([3.0, 2, 1, 4]), (1, 1, 1, 1)) == STEP
    assert step_length(np.array([3.0, 2, 1, 2, 4]), (1, 1, 1, 1, 1)) == STEP / 2  # a success after a miss keeps it
    assert step_length(np.zeros(100), (1,) * 100) == FINEST
