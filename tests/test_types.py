"""The told data D, batches, and errors that say what to do."""

from __future__ import annotations

import math
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diffbbo.types import Batch, Dataset, InputError, MissingExtraError, need, row_keys

from .spaces_for_tests import same_examples

NAN = math.nan


def dataset(*told: tuple[float, float]) -> Dataset:
    """One-column designs and their values."""
    return Dataset(np.array([[x] for x, _ in told]), np.array([y for _, y in told]))


def test_replicates_become_their_mean_and_failures_are_left_out() -> None:
    """By hand: 7 is measured 1, 2, 6 (mean 3, three times), 4 once and failed once, 9 only failed."""
    distinct = dataset((7, 1), (4, 5), (7, 2), (9, NAN), (4, NAN), (7, 6)).distinct()
    assert distinct.x.tolist() == [[7], [4]]  # in order of first measurement, not of value
    assert distinct.y.tolist() == [3, 5]
    assert distinct.count.tolist() == [3, 1]
    assert distinct.phi == 5


@same_examples
@given(st.lists(st.tuples(st.integers(-3, 3), st.floats(-1e6, 1e6) | st.just(NAN)), max_size=40))
def test_distinct_equals_grouping_by_hand(told: list[tuple[int, float]]) -> None:
    """Against a dict of lists, which keeps the order of first appearance."""
    groups: dict[int, list[float]] = {}
    for x, y in told:
        if not math.isnan(y):
            groups.setdefault(x, []).append(y)
    data = Dataset(np.array([[x] for x, _ in told], dtype=float).reshape(-1, 1), np.array([y for _, y in told]))
    distinct = data.distinct()
    assert distinct.x.ravel().tolist() == list(groups)
    assert distinct.count.tolist() == [len(group) for group in groups.values()]
    np.testing.assert_allclose(distinct.y, [fmean(group) for group in groups.values()], rtol=1e-12, atol=1e-9)


def test_a_design_measured_once_keeps_its_value_to_the_last_bit() -> None:
    """No division and multiplication in between: 0.1 and the smallest number there is stay what they are."""
    assert dataset((1, 0.1), (2, 5e-324)).distinct().y.tolist() == [0.1, 5e-324]


def test_minus_zero_is_zero() -> None:
    """IEEE 754: -0.0 == 0.0, though their bytes differ."""
    distinct = dataset((0.0, 1), (-0.0, 3)).distinct()
    assert (len(distinct), distinct.y.tolist(), distinct.count.tolist()) == (1, [2], [2])
    assert row_keys(np.array([[0.0, 1.0]])) == row_keys(np.array([[-0.0, 1.0]]))


@pytest.mark.parametrize("sign", [1, -1], ids=["large", "small"])
def test_the_mean_of_huge_values_does_not_overflow(sign: int) -> None:
    """1e308 + 1e308 is infinite in float64, their mean is 1e308."""
    distinct = dataset(*[(0, sign * 1e308)] * 3).distinct()
    assert distinct.y == pytest.approx([sign * 1e308], rel=1e-15)


def test_nothing_told_and_only_failures() -> None:
    assert len(Dataset.empty(3).distinct()) == 0
    assert Dataset.empty(3).failure_share == 0.0
    failures = dataset((1, NAN), (2, NAN))
    assert len(failures.distinct()) == 0
    assert failures.failure_share == 1.0
    assert failures.extended(np.ones((2, 1)), np.ones(2)).failure_share == 0.5


@same_examples
@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 1)), min_size=1, max_size=30))
def test_row_keys_tell_rows_apart(rows: list[tuple[int, int]]) -> None:
    """Keys are equal exactly where rows are: as many different keys as different tuples, in the same places."""
    keys = row_keys(np.array(rows, dtype=float))
    assert [keys.index(key) for key in keys] == [rows.index(row) for row in rows]


def batch(n: int, **info: object) -> Batch:
    designs = tuple({"x": k, "letter": "ab"[k % 2]} for k in range(n))
    return Batch(designs, np.zeros((n, 2)), np.full(n, -1), dict(info))


def test_a_batch_is_a_sequence_of_dicts() -> None:
    b = batch(3)
    assert len(b) == 3
    assert [design["x"] for design in b] == [0, 1, 2]
    assert b[1] == {"x": 1, "letter": "b"}
    assert b == batch(3, weight=0.8)  # the designs are what counts
    assert b != batch(2)


def test_a_batch_as_a_frame() -> None:
    frame = batch(3).frame()
    assert list(frame.columns) == ["x", "letter"]
    assert frame["x"].tolist() == [0, 1, 2]
    assert frame["letter"].tolist() == ["a", "b", "a"]


def test_a_batch_prints_its_notes_and_its_first_three_designs() -> None:
    text = repr(batch(5, notes=["The model has collapsed."]))
    assert text.splitlines() == [
        "Batch of 5 designs",
        "  note: The model has collapsed.",
        "  {'x': 0, 'letter': 'a'}",
        "  {'x': 1, 'letter': 'b'}",
        "  {'x': 2, 'letter': 'a'}",
        "  ... and 2 more",
    ]


def test_a_missing_package_says_how_to_install_it() -> None:
    with pytest.raises(MissingExtraError) as caught:
        need("no_such_package.part", "frames", "Batch.frame()")
    assert str(caught.value) == (
        "Batch.frame() needs the package 'no_such_package', which is not installed. "
        'Install it with: pip install "diffbbo[frames]"'
    )
    assert isinstance(caught.value, ImportError)  # so that `except ImportError` catches it


def test_an_error_is_its_message_and_its_remedy() -> None:
    error = InputError("3 was given.", "Give 4.")
    assert (str(error), error.message, error.remedy) == ("3 was given. Give 4.", "3 was given.", "Give 4.")
    assert isinstance(error, ValueError)
