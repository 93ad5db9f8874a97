"""Rows to features and back, and the scale of the objective."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from diffbbo import Integer, Real, Sequence, Space
from diffbbo.encoding import Encoder, ObjectiveScale

from .spaces_for_tests import designs, every_space, same_examples, seeds

# ---- rows to features ------------------------------------------------------------------------------


def assert_same_designs(space: Space, found: Any, expected: Any) -> None:
    """Exactly for what is counted; to 1e-9 of the range, or of the value on a log scale, for real numbers."""
    for variable, where in space.slices():
        if isinstance(variable, Real) and variable.scale == "log":
            np.testing.assert_allclose(found[:, where], expected[:, where], rtol=1e-9)
        elif isinstance(variable, Real):
            close = 1e-9 * (variable.upper - variable.lower)
            np.testing.assert_allclose(found[:, where], expected[:, where], rtol=0, atol=close)
        else:
            np.testing.assert_array_equal(found[:, where], expected[:, where])


@every_space
@pytest.mark.parametrize("floor", [0.02, 0.0])
@same_examples
@given(data=st.data())
def test_decode_is_the_inverse_of_encode(space: Space, floor: float, data: st.DataObject) -> None:
    """Also for designs the encoder was not fitted to."""
    fitted, others = space.rows(data.draw(designs(space))), space.rows(data.draw(designs(space)))
    encoder = Encoder.fit(space, fitted, floor)
    for x in (fitted, others):
        z = encoder.encode(x)
        assert z.shape == (len(x), encoder.features)
        assert_same_designs(space, encoder.decode(z), x)


EXTREMES = [math.nan, math.inf, -math.inf, 1e300, -1e300, 1.7e308, -1.7e308, 5e-324, 0.0, -0.0]


@every_space
@same_examples
@given(data=st.data(), seed=seeds)
def test_any_features_decode_to_valid_designs(space: Space, data: st.DataObject, seed: int) -> None:
    encoder = Encoder.fit(space, space.sample(5, np.random.default_rng(seed)))
    elements = st.sampled_from(EXTREMES) | st.floats()
    z = data.draw(hnp.arrays(np.float64, (3, encoder.features), elements=elements, fill=st.sampled_from(EXTREMES)))
    x = encoder.decode(z)
    np.testing.assert_array_equal(space.check(x), x)


@every_space
def test_nan_everywhere_decodes_to_a_valid_design(space: Space, rng: np.random.Generator) -> None:
    encoder = Encoder.fit(space, space.sample(5, rng))
    x = encoder.decode(np.full((1, encoder.features), math.nan))
    np.testing.assert_array_equal(space.check(x), x)


def test_decode_goes_to_the_nearest() -> None:
    """By hand, on unit features (mean 0, spread 1): 0.74 of the way from 0 to 4 is 2.96, so 3; the letter is the
    largest logit; a number beyond its range stops at the bound."""
    space = Space([Integer("n", 0, 4), Sequence("s", 1, "ACGT"), Real("x", -1, 1)])
    encoder = Encoder(space, np.zeros(6), np.ones(6))
    assert encoder.decode(np.array([[0.74, -3, -1, -2, -9, 7.5]])).tolist() == [[3, 1, 1]]


def test_the_logits_of_a_letter() -> None:
    """The paper: log(0.6 onehot + 0.4 / k). For k = 4 that is log 0.7 for the letter and log 0.1 for the others."""
    space = Space([Sequence("dna", 2, "ACGT")])
    encoder = Encoder(space, np.zeros(8), np.ones(8))
    yes, no = math.log(0.7), math.log(0.1)
    z = encoder.encode(space.rows([{"dna": "GA"}]))
    np.testing.assert_allclose(z, [[no, no, yes, no, yes, no, no, no]], rtol=1e-12)


def test_the_standardised_logits_of_a_letter() -> None:
    """A, A, A, C: the logit of A is log 0.7 three times and log 0.1 once. Two values with shares 3/4 and 1/4
    standardise to +1/sqrt(3) and -sqrt(3), whatever they are."""
    space = Space([Sequence("dna", 1, "ACGT")])
    x = np.array([[0.0], [0], [0], [1]])
    z = Encoder.fit(space, x).encode(x)
    np.testing.assert_allclose(z[:, 0], [3**-0.5] * 3 + [-(3**0.5)], rtol=1e-12)
    np.testing.assert_allclose(z[:, 1], [-(3**-0.5)] * 3 + [3**0.5], rtol=1e-12)


@every_space
def test_features_are_standardised(space: Space, rng: np.random.Generator) -> None:
    """Mean 0 and spread 1 over the data; 500 uniform designs vary in every feature, far above the floor."""
    x = space.sample(500, rng)
    z = Encoder.fit(space, x).encode(x)
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(z.std(axis=0), 1, rtol=1e-9)


@pytest.mark.parametrize("variable", [Real("x", 100, 200), Real("x", 1, 1e6, "log"), Integer("x", 0, 50)])
def test_a_constant_column_is_floored_at_two_percent_of_its_range(variable: Any) -> None:
    """So a step of 2 % of the range is one unit of its feature; without the floor the unit is the whole range."""
    space = Space([variable])
    x = variable.from_unit(np.full((5, 1), 0.5))
    assert Encoder.fit(space, x).std == pytest.approx([0.02], rel=1e-12)
    assert Encoder.fit(space, x, floor=0.0).std.tolist() == [1.0]
    assert Encoder.fit(space, x).encode(x).tolist() == [[0.0]] * 5


def test_a_constant_letter_is_floored_at_two_percent_of_its_logits() -> None:
    """The two logits of k = 4 are log 0.7 - log 0.1 = log 7 apart."""
    space = Space([Sequence("dna", 1, "ACGT")])
    np.testing.assert_allclose(Encoder.fit(space, np.zeros((3, 1))).std, 0.02 * math.log(7), rtol=1e-12)


def test_a_column_above_the_floor_is_not_touched() -> None:
    """Positions 0.1 and 0.3 have spread 0.1."""
    assert Encoder.fit(Space([Real("x", 0, 10)]), np.array([[1.0], [3.0]])).std == pytest.approx([0.1], rel=1e-12)


# ---- the objective, as the paper scales it ---------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "weights", "targets", "heights"),
    [
        pytest.param([1, 2, 4], (0.6, 0.8, 1.0), [2.4, 3.2, 4.0], [1, 2, 4], id="none negative: w phi"),
        pytest.param([0, 5], (0.6, 2.0), [3.0, 10.0], [0, 5], id="zero is not negative"),
        pytest.param([-2, 0, 8], (0.6, 1.0), [4.0, 8.0], [0, 2, 10], id="negative: min + w (phi - min)"),
        pytest.param([-9, -4], (0.6, 1.0), [-6.0, -4.0], [0, 5], id="all negative"),
    ],
)
def test_the_papers_targets_and_heights(y: Any, weights: Any, targets: Any, heights: Any) -> None:
    """By hand."""
    scale = ObjectiveScale.paper(np.array(y, dtype=float))
    np.testing.assert_allclose(scale.targets(weights), targets, rtol=1e-12)
    np.testing.assert_allclose(scale.height(np.array(y, dtype=float)), heights, rtol=1e-12, atol=1e-12)


@same_examples
@given(hnp.arrays(np.float64, st.integers(2, 30), elements=st.integers(-1000, 1000), unique=True))
def test_the_papers_condition_is_the_standardised_value(y: Any) -> None:
    """Dividing by phi first, or subtracting an origin, falls out of (y - mean) / std."""
    np.testing.assert_allclose(ObjectiveScale.paper(y).condition(y), (y - y.mean()) / y.std(), rtol=1e-9, atol=1e-9)


# ---- the objective, robustly -----------------------------------------------------------------------

GRID = 2.0**-20  # conditions are rounded to this


def closed_form(y: Any) -> Any:
    """The robust condition before rounding: shares of the way from the 5 % quantile (taken upwards) to the best,
    not below -1, standardised."""
    origin = np.sort(y)[math.ceil(0.05 * (len(y) - 1))]
    origin = origin if origin < y.max() else y.min()
    u = np.maximum((y - origin) / (y.max() - origin), -1)
    return (u - u.mean()) / u.std()


different_values = hnp.arrays(np.float64, st.integers(2, 40), elements=st.integers(-1000, 1000), unique=True)
gains, offsets = st.floats(1e-3, 1e3), st.floats(-1e3, 1e3)


@same_examples
@given(y=different_values)
def test_the_robust_condition_is_the_closed_form(y: Any) -> None:
    np.testing.assert_allclose(ObjectiveScale.robust(y).condition(y), closed_form(y), rtol=0, atol=0.51 * GRID)


@same_examples
@given(y=different_values, a=gains, b=offsets)
def test_units_of_the_objective_change_nothing(y: Any, a: float, b: float) -> None:
    """condition(a*y + b) == condition(y), bit for bit.

    Rounding to the grid takes away what a*y + b loses. The worst is a = 1e-3, b = 1e3: 2^-53 * 1e3 / 1e-3 = 1e-10
    in y, where values lie at least 1 apart; standardising 40 values multiplies it by at most sqrt(40), which is
    still below 0.001 of a grid step. So only a value on the very border between two grid points can fall either
    way: those within 1 % of it may differ by one step.
    """
    conditions, moved = ObjectiveScale.robust(y).condition(y), ObjectiveScale.robust(a * y + b).condition(a * y + b)
    distance = np.abs(np.mod(closed_form(y) / GRID, 1) - 0.5)
    border = distance < 0.01
    assert (conditions[~border] == moved[~border]).all()
    np.testing.assert_allclose(conditions[border], moved[border], rtol=0, atol=GRID)


@same_examples
@given(y=different_values, a=gains, b=offsets)
def test_targets_move_with_the_objective(y: Any, a: float, b: float) -> None:
    """targets(a*y + b) = a * targets(y) + b."""
    weights = (0.6, 1.0, 1.4)
    targets = ObjectiveScale.robust(y).targets(weights)
    moved = ObjectiveScale.robust(a * y + b).targets(weights)
    np.testing.assert_allclose(moved, a * targets + b, rtol=1e-12, atol=1e-12 * (a * 3000 + abs(b)))
    assert targets[1] == pytest.approx(y.max(), rel=1e-12)


@pytest.mark.parametrize("outlier", [-7.0, -1e3, -1e9, -1e300])
def test_one_terrible_outlier_leaves_the_others_apart(outlier: float) -> None:
    """1, 2, ... 9 and one outlier, by hand.

    The origin is the second smallest value, 1, and phi = 9, so the shares are 0, 1/8, ... 1 and -1 for the outlier
    however bad it is. Their mean is (4.5 - 1) / 10 = 0.35 and their mean square (204/64 + 1) / 10 = 0.41875, so
    their spread is sqrt(0.41875 - 0.1225) = 0.54429 and the nine lie 0.125 / 0.54429 = 0.22966 apart.
    """
    y = np.array([outlier, *range(1, 10)])
    c = ObjectiveScale.robust(y).condition(y)
    np.testing.assert_allclose(np.diff(c[1:]), 0.22966, atol=1e-5)
    assert c[0] == pytest.approx((-1 - 0.35) / 0.54429, abs=1e-4)
    assert ObjectiveScale.robust(y).targets([0.5, 1.0]) == pytest.approx([5, 9])


def test_the_paper_scale_is_squashed_by_the_same_outlier() -> None:
    """What the robust scale is for: on the paper's, nine values share 8e-9 of the range."""
    y = np.array([-1e9, *range(1, 10)])
    assert np.ptp(ObjectiveScale.paper(y).condition(y[1:])) < 1e-7


def test_robust_heights_are_shares() -> None:
    """Origin 1 (second smallest of ten), phi 9: 5 lies half way."""
    scale = ObjectiveScale.robust(np.array([-50.0, *range(1, 10)]))
    assert scale.height(np.array([1.0, 5.0, 9.0, 13.0])).tolist() == [0, 0.5, 1, 1.5]
    assert scale.height(scale.targets([0.6, 0.9])) == pytest.approx([0.6, 0.9])


def test_nearly_all_values_equal() -> None:
    """The low quantile is the best value itself; then the smallest is the origin, and there is something to aim for."""
    y = np.array([0.0] + [1.0] * 99)
    scale = ObjectiveScale.robust(y)
    assert not scale.flat
    assert scale.targets([0.6]) == pytest.approx([0.6])


both_scales = pytest.mark.parametrize("make", [ObjectiveScale.paper, ObjectiveScale.robust], ids=["paper", "robust"])


@both_scales
@pytest.mark.parametrize(
    "y",
    [
        [1e-300, 2e-300, 3e-300],
        [5e-324, 1e-323],
        [-3e-300, 1e-300],
        [1e300, 2e300, 3e300],
        [-1e308, 0.0, 1e308],
        [-1e308, 1e-308],
        [1.0, 1.0 + 2**-52],
    ],
    ids=str,
)
def test_extreme_values_stay_finite(make: Any, y: list[float]) -> None:
    """And in order: the best value has the largest condition, and w = 1 aims at it."""
    values = np.array(y)
    scale = make(values)
    assert not scale.flat
    targets, conditions = scale.targets([0.6, 0.8, 1.0]), scale.condition(values)
    assert np.isfinite(targets).all() and np.isfinite(conditions).all()
    assert np.isfinite(scale.condition(targets)).all()
    assert (np.diff(conditions) > 0).all()
    assert targets[-1] == pytest.approx(values.max(), rel=1e-12)


@both_scales
@pytest.mark.parametrize("value", [0.0, 5.0, -5.0, 0.1, 1e-300, 1e308, -1e308])
@pytest.mark.parametrize("n", [1, 3, 50])
def test_equal_values_are_flat(make: Any, value: float, n: int) -> None:
    """Nothing to aim for: every condition is 0 and w = 1 is the value itself."""
    y = np.full(n, value)
    scale = make(y)
    assert scale.flat
    assert scale.condition(y).tolist() == [0.0] * n
    assert scale.targets([1.0]) == pytest.approx([value], rel=1e-12)
