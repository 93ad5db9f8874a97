"""Spaces: designs as dicts and rows, sampling, numbering, files, and what is refused."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diffbbo import Categorical, InputError, Integer, Real, Sequence, Space

from .spaces_for_tests import SPACES, designs, every_space, same_examples, seeds

MIXTURE = SPACES["mixture"]
GOOD = {"temperature": 20, "cycles": 3, "solvent": "thf", "dna": "GATC", "dose": 1e-3}
GOOD_ROW = [20, 3, 1, 2, 0, 3, 1, 1e-3]

# ---- dicts and rows --------------------------------------------------------------------------------


@every_space
@same_examples
@given(data=st.data())
def test_dicts_to_rows_and_back(space: Space, data: st.DataObject) -> None:
    """The identity, down to the type of every value: 1 stays 1, True stays True."""
    told = data.draw(designs(space))
    rows = space.rows(told)
    assert rows.shape == (len(told), space.dimension)
    back = space.dicts(rows)
    assert back == told
    assert [{k: type(v) for k, v in d.items()} for d in back] == [{k: type(v) for k, v in d.items()} for d in told]
    np.testing.assert_array_equal(space.rows(back), rows)


@every_space
@same_examples
@given(data=st.data())
def test_a_table_read_back_from_text_gives_the_same_rows(space: Space, data: st.DataObject) -> None:
    """Python writes a float with all the digits needed to read it back, so a CSV file loses nothing."""
    told = data.draw(designs(space, max_size=2))
    texts = [{name: str(value) for name, value in design.items()} for design in told]
    np.testing.assert_array_equal(space.rows(texts), space.rows(told))


def test_every_way_to_write_designs_gives_the_same_rows() -> None:
    """The row is written by hand: indices of thf and of G, A, T, C."""
    told = [GOOD, GOOD | {"solvent": "water"}]
    expected = [GOOD_ROW, [20, 3, 0, *GOOD_ROW[3:]]]
    frame = pd.DataFrame(told)
    forms = {
        "dicts": told,
        "frame": frame,
        "frame with other columns, in another order": frame.assign(extra="?")[[*reversed(frame.columns), "extra"]],
        "columns": frame.to_dict("list"),
        "rows": expected,
        "array": np.array(expected),
    }
    for form, given_ in forms.items():
        assert MIXTURE.rows(given_).tolist() == expected, form
    assert MIXTURE.rows(GOOD).tolist() == [GOOD_ROW]  # one design alone
    assert MIXTURE.rows([]).shape == (0, 8)


def test_a_frame_whose_columns_are_numbered() -> None:
    frame = pd.DataFrame([[1.0, 2.0], [3.0, 5.5]])
    assert Space.infer(frame).rows(frame).tolist() == frame.to_numpy().tolist()


# ---- sampling --------------------------------------------------------------------------------------


@every_space
@same_examples
@given(seed=seeds, n=st.integers(1, 20))
def test_samples_are_valid(space: Space, seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    for rows in (space.sample(n, rng), space.fill(n, rng)):
        assert rows.shape == (n, space.dimension)
        np.testing.assert_array_equal(space.check(rows), rows)


@every_space
@same_examples
@given(numbers=st.lists(st.floats() | st.floats(-10, 10), min_size=1, max_size=10))
def test_snap_makes_anything_valid_and_leaves_valid_designs_alone(space: Space, numbers: list[float]) -> None:
    rows = np.resize(np.array(numbers), (2, space.dimension))
    valid = space.snap(rows)
    np.testing.assert_array_equal(space.check(valid), valid)
    np.testing.assert_array_equal(space.snap(valid), valid)


@every_space
@pytest.mark.parametrize("n", [1, 7, 100])
def test_fill_is_a_latin_hypercube(space: Space, n: int, rng: np.random.Generator) -> None:
    """Cut each real column's scale into n equal parts: every part holds exactly one design."""
    rows = space.fill(n, rng)
    for variable, where in space.slices():
        if isinstance(variable, Real):
            part = np.floor(variable.to_unit(rows[:, where]) * n).ravel()
            assert sorted(part) == list(range(n))


def test_fill_of_a_discrete_column_is_balanced(rng: np.random.Generator) -> None:
    """12 strata over 3 values: each value 4 times."""
    rows = Space([Categorical("c", list("abc"))]).fill(12, rng)
    assert np.unique(rows, return_counts=True)[1].tolist() == [4, 4, 4]


# ---- facts and numbering ---------------------------------------------------------------------------

FINITE = {
    "letters": (Space([Sequence("s", 3, "ab")]), 2**3),
    "negative integers": (Space([Integer("a", -7, -2), Integer("b", -1, 1)]), 6 * 3),
    "all kinds": (
        Space([Categorical("c", [True, False, "x"]), Integer("n", -1, 2), Sequence("s", 2, "ACGT")]),
        3 * 4 * 4**2,
    ),
}
every_finite = pytest.mark.parametrize(("space", "size"), FINITE.values(), ids=FINITE)


@every_finite
def test_the_designs_of_a_finite_space_are_numbered(space: Space, size: int) -> None:
    """`size` is a product of levels; unrank lists every design once, and rank is its inverse."""
    assert space.size == size
    rows = space.check(space.unrank(np.arange(size)))
    assert len({tuple(row) for row in rows}) == size
    assert space.rank(rows).tolist() == list(range(size))


def test_rank_reads_letters_as_digits() -> None:
    """GATC with A, C, G, T = 0, 1, 2, 3 is 2031 in base 4: 2*64 + 0*16 + 3*4 + 1 = 141."""
    space = Space([Sequence("dna", 4, "ACGT")])
    assert space.rank(space.rows([{"dna": "GATC"}])).tolist() == [141]


def test_unrank_is_the_inverse_of_rank_in_a_large_space(rng: np.random.Generator) -> None:
    space = SPACES["integers"]
    rows = space.sample(100, rng)
    np.testing.assert_array_equal(space.unrank(space.rank(rows)), rows)


@pytest.mark.parametrize(
    ("name", "dimension", "size"),
    [
        ("continuous", 2, None),
        ("integers", 3, 6 * 8 * 1_000_001),
        ("categorical", 4, 3 * 3 * 2 * 4),
        ("sequence", 11, 4**8 * 3**3),
        ("mixture", 8, None),
        ("60 numbers", 60, None),
    ],
)
def test_dimension_and_size(name: str, dimension: int, size: int | None) -> None:
    assert (SPACES[name].dimension, SPACES[name].size) == (dimension, size)


# ---- files -----------------------------------------------------------------------------------------


@every_space
def test_a_space_survives_json_and_toml(space: Space, tmp_path: Path) -> None:
    description = json.loads(json.dumps(space.to_dict()))
    assert Space.from_dict(description) == space
    lines = []
    for entry in description["variable"]:
        # A JSON scalar, or a list of them, is also TOML; integers must stay integers and 1.0 stay 1.0.
        lines += ["[[variable]]", *(f"{key} = {json.dumps(value)}" for key, value in entry.items())]
    path = tmp_path / "space.toml"
    path.write_text("\n".join(lines), encoding="utf-8")
    assert Space.from_toml(path) == space


def test_the_documented_file(tmp_path: Path) -> None:
    """The example of the documentation, against the same space written in Python."""
    path = tmp_path / "space.toml"
    path.write_text(
        '[[variable]]\nname = "temperature"\ntype = "real"\nlower = 20\nupper = 120\nscale = "linear"\n'
        '[[variable]]\nname = "solvent"\ntype = "categorical"\nvalues = ["water", "thf"]\n'
        '[[variable]]\nname = "dna"\ntype = "sequence"\nlength = 8\nalphabet = "ACGT"\n'
    )
    assert Space.from_toml(path) == Space(
        [Real("temperature", 20, 120), Categorical("solvent", ["water", "thf"]), Sequence("dna", 8, "ACGT")]
    )


REAL = '[[variable]]\nname = "x"\ntype = "real"\nlower = 0\nupper = 1\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("", ["space.toml", "no variable", "[[variable]]"], id="empty"),
        pytest.param("[variable]\nname = 'x'\n", ["no variable", "[[variable]]"], id="one bracket"),
        pytest.param("variable = [1]", ["Variable 1", "1, not a table"], id="not a table"),
        pytest.param("name: x\n", ["not valid TOML", "line 1", "README"], id="not TOML"),
        pytest.param(REAL.replace("real", "float"), ["Variable 1", "'float'", "real, integer"], id="unknown type"),
        pytest.param(REAL.replace('"real"', '["real"]'), ["Variable 1", "['real']"], id="a list as type"),
        pytest.param(REAL.replace('type = "real"', ""), ["unknown type None"], id="no type"),
        pytest.param(REAL.replace("lower = 0", "lower = 2"), ["'x'", "lower = 2", "upper = 1"], id="bounds swapped"),
        pytest.param(REAL + REAL, ["Two variables", "'x'"], id="duplicate name"),
        pytest.param(REAL + "step = 1\n", ["'step'", "name, lower, upper, scale"], id="unknown key"),
        pytest.param(REAL.replace("upper = 1", ""), ["Variable 1", "lacks 'upper'"], id="missing key"),
        pytest.param(REAL.replace('name = "x"', ""), ["lacks 'name'"], id="missing name"),
    ],
)
def test_a_bad_file_is_refused(text: str, told: list[str], tmp_path: Path) -> None:
    path = tmp_path / "space.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        Space.from_toml(path)
    assert caught.value.remedy
    for words in told:
        assert words in str(caught.value)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.toml cannot be read.*No such file.*Check the path"):
        Space.from_toml(tmp_path / "nowhere.toml")
    (tmp_path / "latin.toml").write_bytes('name = "température"'.encode("latin-1"))
    with pytest.raises(InputError, match=r"latin\.toml cannot be read"):
        Space.from_toml(tmp_path / "latin.toml")


# ---- guessing from a table -------------------------------------------------------------------------

DNA = ["ACGT", "CCGT", "GAGT", "TTTT", "ACCC"]


@pytest.mark.parametrize(
    ("column", "variable"),
    [
        pytest.param([0.5, 2, -1.5], Real("c", -1.5, 2), id="numbers"),
        pytest.param([0.5, None, 2.5], Real("c", 0.5, 2.5), id="numbers, one missing"),
        pytest.param([7, -3, 2], Integer("c", -3, 7), id="integers"),
        pytest.param([7.0, float("nan"), 2.0], Integer("c", 2, 7), id="integers, one missing"),
        pytest.param(pd.array([7, None, 2], dtype="Int64"), Integer("c", 2, 7), id="integers, one pandas.NA"),
        pytest.param(["1.5", "20"], Real("c", 1.5, 20), id="numbers as text"),
        pytest.param([2.0**60, 1.0], Real("c", 1, 2.0**60), id="whole, but beyond what float64 counts"),
        pytest.param([True, False, True], Categorical("c", [False, True]), id="switches"),
        pytest.param([True, None, False], Categorical("c", [False, True]), id="switches, one missing"),
        pytest.param(["thf", "water", "thf"], Categorical("c", ["thf", "water"]), id="text"),
        pytest.param(["thf", None, "water"], Categorical("c", ["thf", "water"]), id="text, one missing"),
        pytest.param(["red", "tan", "red"], Categorical("c", ["red", "tan"]), id="words of one length, few of them"),
        pytest.param(["1", "two"], Categorical("c", ["1", "two"]), id="a number among texts"),
        pytest.param(DNA, Sequence("c", 4, "ACGT"), id="DNA"),
        pytest.param([*DNA, None], Sequence("c", 4, "ACGT"), id="DNA, one missing"),
    ],
)
def test_infer(column: Any, variable: Any) -> None:
    assert Space.infer(pd.DataFrame({"c": column})) == Space([variable])


@same_examples
@given(seed=seeds)
def test_infer_accepts_the_table_it_was_made_from(seed: int) -> None:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(MIXTURE.dicts(MIXTURE.sample(30, rng)))
    assert pd.DataFrame(Space.infer(frame).dicts(Space.infer(frame).rows(frame))).equals(frame)


@pytest.mark.parametrize(
    ("column", "told"),
    [
        pytest.param([3.0, 3.0], ["'c'", "1 different value", "Leave it out"], id="constant"),
        pytest.param([True, True], ["1 different value"], id="always true"),
        pytest.param([None, None], ["0 different value"], id="empty"),
        pytest.param([1.0, np.inf, 2.0], ["'c'", "inf", "Leave that row out"], id="infinite"),
    ],
)
def test_infer_refuses(column: Any, told: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        Space.infer(pd.DataFrame({"c": column}))
    for words in told:
        assert words in str(caught.value)


# ---- bad designs -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "told"),
    [
        pytest.param(
            {"temperature": "hot"}, ["'temperature'", "'hot'", "not a number", "between 20 and 120"], id="text"
        ),
        pytest.param({"temperature": ""}, ["'temperature'", "not a number"], id="blank"),
        pytest.param({"temperature": None}, ["'temperature'"], id="None"),  # pandas makes it NaN
        pytest.param({"temperature": True}, ["'temperature'", "True", "not a number"], id="a switch"),
        pytest.param(
            {"temperature": 120.0000001}, ["120.0000001", "outside its range 20 to 120"], id="hardly above its range"
        ),
        pytest.param({"temperature": float("nan")}, ["nan", "not a finite number"], id="NaN"),
        pytest.param({"temperature": float("inf")}, ["inf", "not a finite number"], id="inf"),
        pytest.param({"temperature": 10**400}, ["too large"], id="beyond float64"),
        pytest.param(
            {"cycles": 2.5}, ["'cycles'", "2.5", "not a whole number", "between -1 and 9"], id="half an integer"
        ),
        pytest.param({"cycles": 10}, ["'cycles'", "10", "outside its range -1 to 9"], id="integer above its range"),
        pytest.param({"cycles": float("nan")}, ["'cycles'", "nan", "not a finite number"], id="NaN as an integer"),
        pytest.param({"solvent": "Water"}, ["'solvent'", "'Water'", "one of water, thf"], id="wrong capital"),
        pytest.param({"solvent": 1}, ["'solvent'", "1", "one of water, thf"], id="a number as category"),
        pytest.param({"dna": "ACG"}, ["'dna'", "'ACG'", "3 letters instead of 4"], id="word too short"),
        pytest.param({"dna": "ACGU"}, ["'dna'", "'ACGU'", "'U'", "alphabet ACGT"], id="wrong letter"),
        pytest.param({"dna": 5}, ["'dna'", "5", "not a text"], id="a number as word"),
        pytest.param({"dose": 0}, ["'dose'", "0", "outside its range 1e-06 to 0.01"], id="zero on a log scale"),
    ],
)
def test_a_bad_value_is_named_with_its_row_and_column(change: dict[str, Any], told: list[str]) -> None:
    for form in (list, partial(pd.DataFrame, dtype=object)):
        with pytest.raises(InputError) as caught:
            MIXTURE.rows(form([GOOD, GOOD | change]))
        assert str(caught.value).startswith("Row 2, column ")
        assert caught.value.remedy.startswith("It must be ")
        for words in told:
            assert words in str(caught.value)


def row(**change: float) -> list[list[float]]:
    """Two rows, the second with its `c3` or the like changed."""
    second = [change.get(f"c{k}", value) for k, value in enumerate(GOOD_ROW)]
    return [GOOD_ROW, second]


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        pytest.param(row(c0=19), ["Row 2, column 'temperature': 19 ", "between 20 and 120"], id="below its range"),
        pytest.param(row(c1=2.5), ["Row 2, column 'cycles': 2.5", "whole number"], id="half an integer"),
        pytest.param(row(c2=2), ["Row 2, column 'solvent': 2", "index from 0 to 1"], id="an unknown index"),
        pytest.param(row(c4=-1), ["Row 2, column 'dna', letter 2: -1", "index from 0 to 3"], id="an unknown letter"),
        pytest.param(row(c0=np.nan), ["Row 2, column 'temperature': nan"], id="NaN"),
        pytest.param(row(c1=np.inf), ["Row 2, column 'cycles': inf"], id="inf"),
        pytest.param(row(c7=0.0100000001), ["'dose': 0.0100000001 "], id="hardly above its range"),
        pytest.param([GOOD_ROW[:-1]], ["shape (1, 7)", "(n, 8)"], id="a column too few"),
        pytest.param(GOOD_ROW, ["shape (8,)", "(n, 8)"], id="one row without brackets"),
        pytest.param([GOOD_ROW, GOOD_ROW[:-1]], ["different lengths", "8 numbers"], id="rows of different lengths"),
        pytest.param([["thf", *GOOD_ROW[1:]]], ["'thf'", "not a number"], id="text in a row"),
        pytest.param([[None, *GOOD_ROW[1:]]], ["Row 1, column 'temperature'"], id="None in a row"),
        pytest.param([[10**400, *GOOD_ROW[1:]]], ["1000", "not a number"], id="a number beyond float64"),
        pytest.param(np.zeros((2, 2, 8)), ["shape (2, 2, 8)"], id="three axes"),
        pytest.param(7, ["7 is not a list of designs"], id="a number"),
        pytest.param([{"temperature": 20}], ["Row 1 has no 'cycles'", "it has temperature"], id="a dict lacks one"),
        pytest.param([GOOD, {}], ["Row 2 has no 'temperature'", "nothing"], id="an empty dict"),
        pytest.param({"temperature": [20]}, ["column 'cycles' is missing", "temperature"], id="a column is missing"),
        pytest.param(
            {name: [value] * (1 + (name == "dna")) for name, value in GOOD.items()},
            ["different lengths", "'cycles' has 1", "'dna' has 2"], id="columns of different lengths",
        ),
    ],
)  # fmt: skip
def test_bad_rows_are_refused(rows: Any, told: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        MIXTURE.rows(rows)
    assert caught.value.remedy
    for words in told:
        assert words in str(caught.value)


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        pytest.param([], ["at least one variable"], id="none"),
        pytest.param([Real("x", 0, 1), Integer("x", 0, 1)], ["Two variables", "'x'"], id="a name twice"),
        pytest.param([("x", 0, 1)], ["('x', 0, 1)", "not a variable"], id="not a variable"),
    ],
)
def test_a_bad_list_of_variables_is_refused(variables: Any, told: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        Space(variables)
    for words in told:
        assert words in str(caught.value)
