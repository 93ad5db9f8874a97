"""The variables: positions on their scale, what they accept, and what they refuse."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diffbbo import Categorical, InputError, Integer, Real, Sequence
from diffbbo.variables import Variable

from .spaces_for_tests import same_examples


@pytest.mark.parametrize(
    ("variable", "unit", "value"),
    [
        (Real("x", -5, 15), 0.25, 0.0),  # -5 + 20 / 4
        (Real("x", 1e-4, 1, "log"), 0.5, 1e-2),  # the geometric mean of the bounds
        (Real("x", 1e-300, 1e300, "log"), 0.5, 1.0),
        (Real("x", 1e-300, 1e300, "log"), 0.75, 1e150),
        (Real("x", 2, 32, "log"), 0.25, 4.0),  # 2 * 16^(1/4)
    ],
)
def test_positions_on_the_scale(variable: Real, unit: float, value: float) -> None:
    np.testing.assert_allclose(variable.from_unit(np.array([[unit]])), value, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(variable.to_unit(np.array([[value]])), unit, rtol=1e-12)


@pytest.mark.parametrize("scale", ["linear", "log"])
@same_examples
@given(
    lower=st.floats(1e-6, 1e6),
    factor=st.floats(1.001, 1e6),
    u=st.floats(0, 1),
)
def test_position_and_value_are_inverse(scale: str, lower: float, factor: float, u: float) -> None:
    """from_unit after to_unit and back; the bounds are positions 0 and 1."""
    variable = Real("x", lower, lower * factor, scale)
    value = variable.from_unit(np.array([[u]]))
    assert variable.lower <= value.item() <= variable.upper
    assert variable.to_unit(value).item() == pytest.approx(u, abs=1e-9)
    ends = variable.to_unit(np.array([[variable.lower], [variable.upper]]))
    assert ends.ravel() == pytest.approx([0, 1], abs=1e-15)


def test_the_median_on_a_log_scale() -> None:
    """log10 x is uniform on [-4, 0], so its median is -2.

    The median of n draws has standard deviation 4 / (2 sqrt(n)) = 0.02 for n = 10,000; 4.5 of them are
    exceeded with probability 7e-6.
    """
    u = np.random.default_rng(0).random((10_000, 1))
    median = np.median(Real("rate", 1e-4, 1, "log").from_unit(u))
    assert math.log10(median) == pytest.approx(-2, abs=0.09)


@pytest.mark.parametrize(
    "variable",
    [Integer("n", -2, 3), Categorical("c", list("abcdef")), Sequence("s", 1, "abcdef")],
    ids=["integer", "categorical", "sequence"],
)
def test_discrete_values_are_equally_likely(variable: Variable) -> None:
    """600 evenly spaced numbers give each of 6 values exactly 100 times."""
    u = (np.arange(600) + 0.5)[:, None] / 600
    _, counts = np.unique(variable.from_unit(u), return_counts=True)
    assert counts.tolist() == [100] * 6


@pytest.mark.parametrize(
    ("variable", "value", "columns"),
    [
        pytest.param(Real("x", 0, 1), "0.5", [0.5], id="a number as text, as in a CSV file"),
        pytest.param(Real("x", 0, 1), np.float32(0.5), [0.5], id="a numpy number"),
        pytest.param(Integer("n", -5, 5), " -3 ", [-3.0], id="an integer as text"),
        pytest.param(Integer("n", -5, 5), 4.0, [4.0], id="a whole float"),
        pytest.param(Categorical("c", [1, 2]), "2", [1.0], id="a listed number as text"),
        pytest.param(Categorical("c", [1, 2]), 2.0, [1.0], id="a listed integer as float"),
        pytest.param(Categorical("c", ["a", "b"]), " b ", [1.0], id="text with spaces around it"),
        pytest.param(Categorical("c", [False, True]), "True", [1.0], id="a switch as text"),
        pytest.param(Categorical("c", [1, True]), True, [1.0], id="True is not 1"),
        pytest.param(Categorical("c", [1, 1.5, 1.0]), 1.0, [2.0], id="1.0 is not 1, where both are listed"),
        pytest.param(Sequence("s", 4, "ACGT"), " GATC\n", [2.0, 0.0, 3.0, 1.0], id="a word with space around it"),
        pytest.param(Sequence("s", 3, "ab "), " b ", [2.0, 1.0, 2.0], id="a space that is a letter"),
    ],
)
def test_what_people_write(variable: Variable, value: Any, columns: list[float]) -> None:
    assert variable.parse(value) == columns


@pytest.mark.parametrize(
    ("variable", "given_", "nearest"),
    [
        (Real("x", -1, 1), [-3.0, 0.25, 7.0], [-1.0, 0.25, 1.0]),
        (Integer("n", -7, -2), [-9.0, -4.4, -4.6, math.inf], [-7.0, -4.0, -5.0, -2.0]),
        (Categorical("c", list("abc")), [-1.0, 1.2, 9.0], [0.0, 1.0, 2.0]),
    ],
)
def test_snap_gives_the_nearest_value(variable: Variable, given_: list[float], nearest: list[float]) -> None:
    assert variable.snap(np.array(given_)[:, None]).ravel().tolist() == nearest


def test_values_from_numpy_become_plain_python() -> None:
    """A space is stored as JSON, which knows no numpy numbers."""
    variable = Categorical("c", np.array([3, 1, 2]))
    assert json.dumps(variable.to_dict()) == '{"type": "categorical", "name": "c", "values": [3, 1, 2]}'


@pytest.mark.parametrize(
    ("make", "told"),
    [
        pytest.param(lambda: Real("x", "cold", 1), ["'x'", "lower = 'cold'", "not a number"], id="text as a bound"),
        pytest.param(lambda: Real("x", 0, math.inf), ["upper = inf", "finite"], id="an infinite bound"),
        pytest.param(lambda: Real("x", math.nan, 1), ["lower = nan", "finite"], id="NaN as a bound"),
        pytest.param(lambda: Real("x", 0, 10**400), ["upper = 1000", "too large"], id="a bound beyond float64"),
        pytest.param(lambda: Real("x", False, 1), ["lower = False", "not a number"], id="a switch as a bound"),
        pytest.param(lambda: Real("x", np.False_, 1), ["not a number"], id="a numpy switch as a bound"),
        pytest.param(lambda: Real("x", 2, 1), ["lower = 2", "upper = 1", "Swap"], id="bounds swapped"),
        pytest.param(lambda: Real("x", 1234567, 1234567), ["lower = 1234567 ", "widen"], id="bounds equal"),
        pytest.param(lambda: Real("x", -1e308, 1e308), ["overflows", "narrower"], id="a range beyond float64"),
        pytest.param(lambda: Real("x", 0, 1, "cubic"), ["'cubic'", "'linear' or 'log'"], id="an unknown scale"),
        pytest.param(lambda: Real("x", 0, 1, "log"), ["lower > 0", "not 0", "linear"], id="a log scale from 0"),
        pytest.param(lambda: Real("x", -1, 1, "log"), ["lower > 0", "not -1"], id="a log scale from below 0"),
        pytest.param(
            lambda: Real("x", 1e10, math.nextafter(1e10, 2e10), "log"), ["too narrow", "linear"],
            id="a log scale over one ulp",
        ),
        pytest.param(lambda: Integer("n", 1, 2.5), ["upper = 2.5", "whole numbers"], id="a bound that is not whole"),
        pytest.param(lambda: Integer("n", 0, 2**60), ["2^53"], id="an integer that float64 cannot hold"),
        pytest.param(lambda: Integer("n", 3, 3), ["lower = 3", "upper = 3"], id="one integer"),
        pytest.param(lambda: Integer("n", "few", 3), ["'few'", "Give an integer"], id="text as an integer bound"),
        pytest.param(lambda: Categorical("c", ["a"]), ["1 value(s)", "at least two"], id="one value"),
        pytest.param(lambda: Categorical("c", []), ["0 value(s)", "at least two"], id="no value"),
        pytest.param(lambda: Categorical("c", ["a", "b", "a"]), ["'a'", "twice", "once"], id="a value twice"),
        pytest.param(lambda: Categorical("c", [1, "1"]), ["'1'", "twice"], id="a value twice, once as text"),
        pytest.param(lambda: Categorical("c", ["a", "a "]), ["'a'", "twice"], id="values that differ by a space"),
        pytest.param(lambda: Categorical("c", ["a", " "]), ["empty value", "name"], id="a blank value"),
        pytest.param(lambda: Categorical("c", "abc"), ["'abc'", "not a list"], id="text instead of a list"),
        pytest.param(lambda: Categorical("c", 3), ["3 is not a list"], id="a number instead of a list"),
        pytest.param(lambda: Sequence("s", 0, "AC"), ["'s'", "length = 0"], id="length 0"),
        pytest.param(lambda: Sequence("s", 2.5, "AC"), ["length = 2.5"], id="half a letter"),
        pytest.param(lambda: Sequence("s", True, "AC"), ["length = True"], id="a switch as length"),
        pytest.param(lambda: Sequence("s", 4, "A"), ["'A'", "at least two"], id="one letter"),
        pytest.param(lambda: Sequence("s", 4, "ACCA"), ["'ACCA'", "each once"], id="a letter twice"),
        pytest.param(lambda: Sequence("s", 4, ["A", "CG"]), ["'CG'", "single letters"], id="a letter of two"),
        pytest.param(lambda: Sequence("s", 4, 5), ["alphabet = 5"], id="a number as alphabet"),
        pytest.param(lambda: Real("", 0, 1), ["name", "''"], id="no name"),
        pytest.param(lambda: Real(3, 0, 1), ["name", "3"], id="a number as name"),
    ],
)  # fmt: skip
def test_refused_with_what_was_given_and_what_to_do(make: Any, told: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        make()
    assert caught.value.remedy
    for words in told:
        assert words in str(caught.value)
