"""One list of spaces drives every property test; here too are the designs and settings for them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st

from diffbbo import Categorical, Integer, Real, Sequence, Space
from diffbbo.variables import Variable

SPACES = {
    "continuous": Space([Real("a", -5, 5), Real("b", 0, 1e-3)]),
    "log": Space([Real("rate", 1e-4, 1, "log"), Real("whole", 1e-300, 1e300, "log"), Real("narrow", 9, 10, "log")]),
    "integers": Space([Integer("below", -7, -2), Integer("across", -3, 4), Integer("many", 0, 1_000_000)]),
    "categorical": Space(
        [
            Categorical("text", ["water", "thf", "ethyl acetate"]),
            Categorical("number", [0.5, 1, 20]),
            Categorical("switch", [False, True]),
            Categorical("alike", [1, True, "one", 1.5]),
        ]
    ),
    "sequence": Space([Sequence("dna", 8, "ACGT"), Sequence("spaced", 3, "ab ")]),
    "mixture": Space(
        [
            Real("temperature", 20, 120),
            Integer("cycles", -1, 9),
            Categorical("solvent", ["water", "thf"]),
            Sequence("dna", 4, "ACGT"),
            Real("dose", 1e-6, 1e-2, "log"),
        ]
    ),
    "60 numbers": Space([Real(f"x{k}", -1, 1) for k in range(60)]),
}
every_space = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)

# The same examples in every run, so that a failure can be repeated and none comes by chance.
same_examples = settings(derandomize=True, deadline=None, max_examples=30, database=None)

seeds = st.integers(0, 2**32 - 1)


def _values(variable: Variable) -> st.SearchStrategy[Any]:
    match variable:
        case Real():
            return st.floats(variable.lower, variable.upper)
        case Integer():
            return st.integers(variable.lower, variable.upper)
        case Categorical():
            return st.sampled_from(variable.values)
        case Sequence():
            return st.text(variable.alphabet, min_size=variable.length, max_size=variable.length)
    raise AssertionError(variable)


def designs(space: Space, max_size: int = 4) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Lists of designs as dicts."""
    one = st.fixed_dictionaries({variable.name: _values(variable) for variable in space.variables})
    return st.lists(one, min_size=1, max_size=max_size)
