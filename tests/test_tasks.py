"""The tasks: their tables against the published numbers, and your own function as one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from diffbbo import DiffBBOError, FunctionTask, InputError, Integer, Real, Space
from diffbbo.task import quarter
from diffbbo.tasks import tfbind8
from diffbbo.tasks.tfbind8 import TFBind8

# ---- tfbind8 ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def task() -> TFBind8:
    return TFBind8()


def reverse_complement(x: Any) -> Any:
    """A pairs with T and C with G: with A, C, G, T = 0, 1, 2, 3 the complement of a letter is 3 minus it."""
    return 3 - x[:, ::-1]


def test_evaluate_is_the_table(task: TFBind8) -> None:
    """All 4^8 designs, row c being the word read as a base-4 number."""
    assert task.space.size == 4**8 == len(task.table) == 65_536
    x = task.space.unrank(np.arange(65_536))
    np.testing.assert_array_equal(x @ 4.0 ** np.arange(7, -1, -1), np.arange(65_536))
    np.testing.assert_array_equal(task.evaluate(x), task.table)


def test_the_best_words(task: TFBind8) -> None:
    """The source's own check: the maximum is exactly 1.0, at AGGTATCA and its reverse complement; min-max scaled."""
    best = task.space.unrank(np.flatnonzero(task.table == 1.0))
    assert [design["dna"] for design in task.space.dicts(best)] == ["AGGTATCA", "TGATACCT"]
    assert (task.table.min(), task.table.max(), task.maximum) == (0.0, 1.0, 1.0)
    assert task.evaluate(task.space.rows([{"dna": "AGGTATCA"}, {"dna": "TGATACCT"}])).tolist() == [1.0, 1.0]


def test_a_word_and_its_reverse_complement_are_one_molecule(task: TFBind8) -> None:
    x = task.space.unrank(np.arange(65_536))
    np.testing.assert_array_equal(task.evaluate(reverse_complement(x)), task.table)


def test_the_visible_half_is_design_benchs(task: TFBind8) -> None:
    """32,768 words at or below the median. Design-Bench lists its 4^4 = 256 self-complementary words twice: the
    same rule on those 65,792 rows gives its published 32,898."""
    assert (task.table <= np.median(task.table)).sum() == 32_768
    x = task.space.unrank(np.arange(65_536))
    twice = task.table[(reverse_complement(x) == x).all(axis=1)]
    assert len(twice) == 256
    rows = np.concatenate([task.table, twice])
    assert (rows <= np.median(rows)).sum() == 32_898


def test_the_start_is_the_second_quarter_of_the_visible_half(task: TFBind8) -> None:
    """32,768 / 4 = 8,192 designs, between the 25th and the 50th percentile."""
    x, y = task.start(seed=0)
    assert x.shape == (8_192, 8)
    assert len({tuple(row) for row in x}) == 8_192
    np.testing.assert_array_equal(task.evaluate(x), y)
    visible = task.table[task.table <= np.median(task.table)]
    low, high = np.percentile(visible, [25, 50])
    assert low <= y.min() and y.max() <= high
    assert (visible < y.min()).sum() == 8_192  # as many lie below it as in it (no tie at the border)
    np.testing.assert_array_equal(task.start(seed=1)[0], x)  # the same for every seed


def test_the_card_says_what_is_there(task: TFBind8) -> None:
    card = task.card()
    assert (card.size, card.dimension, card.start) == (task.space.size, task.space.dimension, len(task.start()[1]))
    assert card.maximum == task.table.max()
    assert card.to_dict()["name"] == "tfbind8"


def test_normalise_on_the_tables_own_range(task: TFBind8) -> None:
    assert task.normalise([0.0, 0.25, 1.0]).tolist() == [0.0, 0.25, 1.0]


def test_a_damaged_file_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message holds both checksums: what the file has, and what it should have."""
    right = tfbind8.SHA256
    monkeypatch.setattr(tfbind8, "SHA256", "0" * 64)
    with pytest.raises(DiffBBOError, match=rf"tfbind8\.npz is damaged.*{right}, not {'0' * 64}.*Reinstall"):
        TFBind8()


@pytest.mark.parametrize(
    ("x", "told"),
    [
        pytest.param(np.full((1, 8), 4.0), "Row 1, column 'dna', letter 1: 4 ", id="a fifth letter"),
        pytest.param(np.full((1, 8), 0.5), "letter 1: 0.5", id="half a letter"),
        pytest.param(np.full((1, 8), math.nan), "letter 1: nan", id="NaN"),
        pytest.param(np.zeros((1, 7)), "(n, 8)", id="seven letters"),
    ],
)
def test_the_oracle_refuses_what_is_no_word(task: TFBind8, x: Any, told: str) -> None:
    with pytest.raises(InputError) as caught:
        task.evaluate(x)
    assert told in str(caught.value)


# ---- what tasks share ------------------------------------------------------------------------------


def test_quarter_by_hand() -> None:
    """Of the eight visible rows 0 to 7, sorted by value, the third and fourth; row 8 is not visible."""
    y = np.array([5.0, 1, 8, 3, 2, 7, 4, 6, 2.5])
    assert quarter(np.arange(8), y).tolist() == [3, 6]


# ---- your own function -----------------------------------------------------------------------------

PLANE = Space([Real("x", -5, 5), Integer("n", 0, 3)])


def paraboloid(design: Mapping[str, Any]) -> float:
    """A bowl with its lowest point at x = 1, n = 2.

    More text that the card leaves out.
    """
    return (design["x"] - 1) ** 2 + (design["n"] - 2) ** 2


def test_a_function_task_hands_dicts_to_the_function() -> None:
    """(x - 1)^2 + (n - 2)^2 by hand."""
    task = FunctionTask(paraboloid, PLANE, minimize=True)
    assert task.evaluate(np.array([[1.0, 2], [-1, 0], [4, 3]])).tolist() == [0, 8, 10]
    assert (task.name, task.minimize) == ("paraboloid", True)
    assert task.card().summary == "A bowl with its lowest point at x = 1, n = 2."
    assert task.start()[0].shape == (0, 2)


def test_a_function_task_with_measurements() -> None:
    task = FunctionTask(paraboloid, PLANE, start=([{"x": 1, "n": 0}, {"x": 0, "n": 2}], [4, 1]))
    x, y = task.start()
    assert x.tolist() == [[1, 0], [0, 2]]
    assert y.tolist() == task.evaluate(x).tolist() == [4, 1]
    assert task.card().start == 2


@pytest.mark.parametrize(
    ("start", "told"),
    [
        pytest.param(([[0, 0]], [1, 2]), "1 start designs but 2 values", id="a value too many"),
        pytest.param(([[9, 0]], [1]), "Row 1, column 'x': 9 ", id="a design outside the space"),
        pytest.param(([[0, 0]], ["high"]), "'high' is not a number", id="text"),
    ],
)
def test_bad_start_data_are_refused(start: Any, told: str) -> None:
    with pytest.raises(InputError) as caught:
        FunctionTask(paraboloid, PLANE, start=start)
    assert told in str(caught.value)
    assert caught.value.remedy


def test_a_function_never_sees_an_invalid_design() -> None:
    with pytest.raises(InputError, match=r"Row 1, column 'n': 0\.5"):
        FunctionTask(paraboloid, PLANE).evaluate(np.array([[0, 0.5]]))


def test_normalise_needs_a_range() -> None:
    """(5 - 1) / (9 - 1) = 0.5 on a range from 1 to 9; without one there is nothing to divide by."""
    task = FunctionTask(paraboloid, PLANE)
    with pytest.raises(InputError, match="'paraboloid' has no reference range"):
        task.normalise([5])
    task.range = (1.0, 9.0)
    assert task.normalise([1, 5, 9]).tolist() == [0, 0.5, 1]
