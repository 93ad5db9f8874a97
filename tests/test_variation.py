"""Selection, crossover and mutation. Chi-square limits are the quantiles with a false alarm in 100,000."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given

from diffbbo import Categorical, Integer, Real, Sequence, Space
from diffbbo.types import Array
from diffbbo.variation import BEYOND, LINED, SHIFTED, breed, crossover, line, mutate, numbers, scaled, shift, tournament

from .spaces_for_tests import every_space, same_examples, seeds


def designs_and_corners(space: Space, rng: np.random.Generator) -> Array:
    """Random designs, and those with every column at its lower or at its upper end."""
    ends = space.from_unit(np.array([[0.0], [1.0]]).repeat(space.dimension, axis=1))
    return np.concatenate([space.sample(20, rng), ends, ends])


@every_space
@same_examples
@given(seed=seeds)
def test_rate_zero_changes_exactly_one_column(space: Space, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = designs_and_corners(space, rng)
    child = mutate(space, x, rng, rate=0.0)
    np.testing.assert_array_equal(space.check(child), child)
    assert (child != x).sum(axis=1).tolist() == [1] * len(x)


@every_space
@same_examples
@given(seed=seeds)
def test_rate_one_changes_every_column(space: Space, seed: int) -> None:
    """A letter becomes another letter and an integer another integer, also at its bounds."""
    rng = np.random.default_rng(seed)
    x = designs_and_corners(space, rng)
    child = mutate(space, x, rng, rate=1.0)
    np.testing.assert_array_equal(space.check(child), child)
    assert (child != x).all()


def test_the_parents_are_left_alone(rng: np.random.Generator) -> None:
    space = Space([Real("x", 0, 1), Sequence("s", 3, "ab")])
    x = space.sample(10, rng)
    before = x.copy()
    mutate(space, x, rng, rate=1.0)
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize(
    "variable", [Real("x", -10, 10), Real("x", 1e-8, 1e8, "log")], ids=lambda variable: variable.scale
)
def test_the_step_of_a_number(variable: Real, rng: np.random.Generator) -> None:
    """From the middle (a bound is 5 steps away) a number moves by a normal step of 0.1 of its range, on its scale.

    Mean and spread of 10,000 steps have standard errors 0.1 / 100 and 0.1 / sqrt(20,000); 4.5 of them are
    exceeded with probability 7e-6.
    """
    x = variable.from_unit(np.full((10_000, 1), 0.5))
    moved = variable.to_unit(mutate(Space([variable]), x, rng, rate=1.0)) - 0.5
    assert moved.mean() == pytest.approx(0, abs=4.5 * 0.1 / 100)
    assert moved.std() == pytest.approx(0.1, abs=4.5 * 0.1 / math.sqrt(20_000))


def test_no_mass_piles_up_on_a_bound(rng: np.random.Generator) -> None:
    """From 0 a step of 0.1 is reflected: |normal|, whose mean is 0.1 sqrt(2/pi) and which is 0 with probability 0.

    Standard error 0.1 sqrt(1 - 2/pi) / 100; 4.5 of them.
    """
    moved = mutate(Space([Real("x", 0, 1)]), np.zeros((10_000, 1)), rng, rate=1.0)
    assert (moved > 0).all()
    half_normal = 0.1 * math.sqrt(2 / math.pi)
    assert moved.mean() == pytest.approx(half_normal, abs=4.5 * 0.1 * math.sqrt(1 - 2 / math.pi) / 100)


def test_a_letter_becomes_any_other(rng: np.random.Generator) -> None:
    """Each of the 3 others with probability 1/3: chi-square with 2 degrees of freedom, limit 2 log(1e5) = 23.0."""
    space = Space([Categorical("c", list("abcd"))])
    child = mutate(space, np.full((9_000, 1), 1.0), rng, rate=1.0)
    values, counts = np.unique(child, return_counts=True)
    assert values.tolist() == [0, 2, 3]
    assert ((counts - 3000) ** 2 / 3000).sum() < 23.0


def test_an_integer_between_its_bounds_moves_either_way(rng: np.random.Generator) -> None:
    """Of three values the middle one goes down or up with probability 1/2: 4.5 standard deviations of 50."""
    child = mutate(Space([Integer("n", -1, 1)]), np.zeros((10_000, 1)), rng, rate=1.0)
    assert set(child.ravel()) == {-1, 1}
    assert (child == 1).sum() == pytest.approx(5000, abs=4.5 * 50)


def test_the_rate_is_the_share_of_changed_columns(rng: np.random.Generator) -> None:
    """One column of d always, the others with the rate: (1 + (d - 1) r) / d = 0.352 for d = 10, r = 0.28.

    Binomial over 9 * 5,000 free columns: standard deviation sqrt(45,000 * 0.28 * 0.72) = 95.2.
    """
    space = Space([Sequence("s", 10, "ACGT")])
    x = space.sample(5_000, rng)
    assert (mutate(space, x, rng, rate=0.28) != x).sum() == pytest.approx(0.352 * 50_000, abs=4.5 * 95.2)


def test_a_shift_takes_a_letter_out_and_puts_one_in(rng: np.random.Generator) -> None:
    """What is left of the word without either letter is the same, in the same order; all else stays as it was."""
    space = Space((Real("a", 0, 1), Sequence("w", length=6, alphabet="ACGT"), Categorical("c", ("x", "y"))))
    x = space.sample(300, rng)
    before = x.copy()
    child = shift(space, x, rng)
    np.testing.assert_array_equal(x, before)
    np.testing.assert_array_equal(space.check(child), child)
    np.testing.assert_array_equal(child[:, [0, 7]], x[:, [0, 7]])
    moved = set()
    for old, new in zip(x[:, 1:7], child[:, 1:7], strict=True):
        fits = {(i, j) for i in range(6) for j in range(6) if np.array_equal(np.delete(old, i), np.delete(new, j))}
        assert fits
        moved |= {j - i for i, j in fits if len(fits) == 1}
    assert {-5, -1, 1, 5} <= moved, "letters move either way, by any distance"


def test_children_of_words_are_partly_shifted(rng: np.random.Generator) -> None:
    """Of words of eight letters the last seven come to stand first in 1 of 64 shifts; no mutation of one or two letters
    does that."""
    space = Space((Sequence("w", length=8, alphabet="ABCDEFGHIJKLMNOPQRST"),))
    father = np.arange(8.0)[None]
    child = breed(space, father, np.zeros(1), 20_000, 0.1, rng)
    whole = (child[:, :7] == father[:, 1:]).all(axis=1).mean()  # the first letter out, any in at the end
    assert abs(whole - SHIFTED / 64) < 4 * (SHIFTED / 64 / 20_000) ** 0.5


@every_space
@same_examples
@given(seed=seeds)
def test_a_line_goes_through_both_parents(space: Space, seed: int) -> None:
    """Numbers stay within half the parents' distance beyond them, columns that they agree on stay, and a letter is of
    either. A step of the grid on an integer's scale is what rounding can add."""
    rng = np.random.default_rng(seed)
    father, mother = (rng.permutation(designs_and_corners(space, rng)) for _ in range(2))
    child = line(space, father, mother, rng)
    np.testing.assert_array_equal(space.check(child), child)
    same = father == mother
    np.testing.assert_array_equal(child[same], father[same])
    letters = ~numbers(space)
    assert ((child == father) | (child == mother))[:, letters].all()
    one, other, new = (scaled(space, rows) for rows in (father, mother, child))
    low, high, way = np.minimum(one, other), np.maximum(one, other), np.abs(one - other)
    grid = np.array([
        1 / (variable.upper - variable.lower) if isinstance(variable, Integer) else 1e-9
        for variable, where in space.slices()
        for _ in range(where.stop - where.start)
    ])  # fmt: skip
    beyond = BEYOND * way + grid
    assert ((low - beyond <= new) & (new <= high + beyond))[:, ~letters].all()


def test_all_numbers_of_a_child_move_together(rng: np.random.Generator) -> None:
    """Parents at 0.4 and 0.6, or at 10^-1 and 10 between 10^-5 and 10^5: the child is as far along in either, anywhere
    from 0.3 to 0.7 with the same probability. Of 10,000, the mean's standard error is 0.4 / sqrt(12) / 100."""
    space = Space([Real("x", 0, 1), Real("k", 1e-5, 1e5, "log"), Real("same", 0, 1)])
    father, mother = (np.tile(row, (10_000, 1)) for row in ([0.4, 1e-1, 0.2], [0.6, 1e1, 0.2]))
    child = line(space, father, mother, rng)
    np.testing.assert_allclose(np.log10(child[:, 1]) / 10 + 0.5, child[:, 0], atol=1e-9)
    assert (child[:, 2] == 0.2).all()
    assert child[:, 0].mean() == pytest.approx(0.5, abs=4.5 * 0.4 / math.sqrt(12) / 100)
    assert 0.3 <= child[:, 0].min() < 0.301
    assert 0.699 < child[:, 0].max() <= 0.7


def test_how_many_children_lie_on_a_line(rng: np.random.Generator) -> None:
    """Of one parent twice a line has a single point, and every other child is changed: binomial over 10,000."""
    space = Space([Real("x", 0, 1), Real("z", 0, 1)])
    parents = np.tile(space.sample(1, rng), (2, 1))
    for lined in (0.0, LINED):
        unchanged = (breed(space, parents, np.zeros(2), 10_000, 0.1, rng, lined) == parents[0]).all(axis=1).sum()
        assert unchanged == pytest.approx(10_000 * lined, abs=4.5 * math.sqrt(10_000 * lined * (1 - lined)))


def test_letters_have_no_lines() -> None:
    space = Space([Sequence("s", 8, "ACGT"), Categorical("c", list("xyz"))])
    parents, y = space.sample(20, np.random.default_rng(0)), np.arange(20.0)
    children = [breed(space, parents, y, 200, 0.1, np.random.default_rng(1), lined) for lined in (0.0, 1.0)]
    np.testing.assert_array_equal(*children)


def test_crossover_takes_every_column_from_a_parent(rng: np.random.Generator) -> None:
    """From either with probability 1/2: 20,000 columns, standard deviation sqrt(20,000) / 2 = 70.7."""
    mother, father = rng.random((1000, 20)), rng.random((1000, 20)) + 1
    child = crossover(mother, father, rng)
    from_mother = child == mother
    assert (from_mother | (child == father)).all()
    assert from_mother.sum() == pytest.approx(10_000, abs=4.5 * 70.7)


@pytest.mark.parametrize(
    ("size", "limit"), [(1, 39.3), (2, 39.3), (3, 39.3)], ids=["one entrant: uniform", "two", "three"]
)
def test_how_often_each_rank_wins_a_tournament(size: int, limit: float, rng: np.random.Generator) -> None:
    """The k-th worst of 10 wins with probability (k^s - (k-1)^s) / 10^s: all entrants are among the k worst, not
    all among the k - 1 worst. Chi-square with 9 degrees of freedom exceeds 39.3 once in 100,000."""
    y = rng.permutation(10).astype(float)
    won = np.bincount(y[tournament(y, 50_000, size, rng)].astype(int), minlength=10)
    k = np.arange(1, 11)
    expected = 50_000 * (k**size - (k - 1) ** size) / 10**size
    assert ((won - expected) ** 2 / expected).sum() < limit


def test_a_large_tournament_picks_the_best(rng: np.random.Generator) -> None:
    """The best of 5 is missed by 400 entrants with probability 0.8^400 = 2e-39."""
    assert set(tournament(np.array([1.0, 7.0, 3.0, -2.0, 0.0]), 1000, 400, rng)) == {1}
