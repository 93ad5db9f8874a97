"""Values that most designs share, by hand: 8 designs of two numbers, an integer and a letter."""

from __future__ import annotations

import numpy as np
import pytest

from diffbbo import Categorical, Integer, Real, Space
from diffbbo.usual import Usual

SPACE = Space((Real("iron", 0, 10), Real("heat", 0, 1), Integer("layers", 1, 5), Categorical("gas", ("air", "argon"))))
# Iron is 0 in six of eight, 4 and 6 in the others; heat is never the same; five have two layers; all are in air.
X = np.array([[0, 0.1, 2, 0], [0, 0.2, 2, 0], [0, 0.3, 2, 0], [0, 0.4, 2, 0], [0, 0.5, 2, 0], [0, 0.6, 1, 0],
              [4, 0.7, 5, 0], [6, 0.8, 3, 0]], dtype=float)  # fmt: skip


def test_what_more_than_half_share_is_usual_but_for_letters() -> None:
    usual = Usual.of(SPACE, X)
    assert usual.value[[0, 2]].tolist() == [0, 2] and np.isnan(usual.value[[1, 3]]).all()
    assert usual.part[[0, 2]].tolist() == [6 / 8, 5 / 8]
    assert usual.near[0] == pytest.approx(0.25)  # half of the median of 0.4 and 0.6 of the range
    assert usual.near[2] == pytest.approx(0.125)  # one, one and three layers away of four: the median is a quarter


def test_half_is_not_most() -> None:
    assert np.isnan(Usual.of(SPACE, X[[0, 1, 6, 7]]).value[0])


def test_as_many_get_the_value_as_have_it() -> None:
    """Of 4,000 draws 3/4 and 5/8, with standard errors below 0.008; heat and gas stay."""
    rng = np.random.default_rng(0)
    wild = np.tile([5.0, 0.5, 4.0, 1.0], (4000, 1))
    spread = Usual.of(SPACE, X).spread(wild, rng)
    assert (spread == [0, 0.5, 2, 1]).mean(axis=0).tolist() == pytest.approx([0.75, 1, 0.625, 1], abs=0.03)
    assert ((spread == wild) | (spread == [0, 0.5, 2, 1])).all()


def test_what_is_near_gets_the_value_and_at_least_as_many_as_of_the_parents() -> None:
    usual = Usual.of(SPACE, X)
    drawn = np.array([[2.4, 0.5, 4, 0], [2.6, 0.5, 3, 1], [9.0, 0.5, 5, 0], [8.0, 0.5, 2, 0]])
    none, half = X[6:7], X[[0, 6]]
    assert usual.restored(drawn, none)[:, 0].tolist() == [0, 2.6, 9.0, 8.0]  # a quarter of the range is near
    assert usual.restored(drawn, half)[:, 0].tolist() == [0, 0, 9.0, 8.0]  # two of four, the nearest
    assert np.array_equal(usual.restored(drawn, half)[:, [1, 3]], drawn[:, [1, 3]])


def test_a_number_that_nobody_ever_changed_is_restored_however_far() -> None:
    x = X.copy()
    x[:, 0] = 3.0
    assert Usual.of(SPACE, x).restored(np.array([[9.0, 0.5, 2, 0]]), X[6:7])[0, 0] == 3.0


def test_who_has_the_value_moves_as_seldom_as_others_lack_it() -> None:
    movable = Usual.of(SPACE, X).movable(np.tile(X[[0, 7]], (2000, 1, 1)).reshape(-1, 4), np.random.default_rng(0))
    assert movable[::2].mean(axis=0).tolist() == pytest.approx([0.25, 1, 0.375, 1], abs=0.04)
    assert movable[1::2].all()


def test_where_nothing_is_usual_designs_stay_as_they_are() -> None:
    rng, none = np.random.default_rng(0), Usual.none(SPACE)
    assert np.array_equal(none.spread(X, rng), X) and np.array_equal(none.restored(X, X), X)
    assert none.movable(X, rng).all()
