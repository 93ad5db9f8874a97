"""The ask/tell base: what every method inherits, on two real ones and on tiny ones made for the purpose."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diffbbo import InputError, Optimizer, Proposal, Real, Sequence, Space
from diffbbo.baselines.evolution import Evolution
from diffbbo.baselines.random import Random
from diffbbo.types import ExhaustedError, row_keys

from .spaces_for_tests import SPACES, every_space, same_examples, seeds

MIXTURE = SPACES["mixture"]
WORDS = Space([Sequence("word", 4, "ab")])  # 2^4 = 16 designs
LINE = Space([Real("x", 0, 10)])
NAN = math.nan

every_method = pytest.mark.parametrize("method", [Random, Evolution])


class Fixed(Optimizer):
    """Proposes the designs of `order`, again and again."""

    order: ClassVar[list[list[float]]] = [[3.0], [1.0], [4.0], [1.5], [9.0]]

    def propose(self, n: int, rng: np.random.Generator) -> Iterator[Proposal]:
        rows = np.array(self.order)
        while True:
            yield Proposal(rows[np.arange(max(n, len(rows))) % len(rows)], np.arange(max(n, len(rows))) % len(rows))


class FixedWithRepeats(Fixed):
    repeats = True


class Stuck(Optimizer):
    """Proposes one design only: a collapsed model."""

    def propose(self, n: int, rng: np.random.Generator) -> Iterator[Proposal]:
        while True:
            yield Proposal(np.full((n, self.space.dimension), 1.0), np.full(n, 2))


class StuckWithRepeats(Stuck):
    repeats = True


def told(method: type[Optimizer], space: Space, seed: int = 0, n: int = 12, **settings: Any) -> Optimizer:
    """An optimizer that was told the same n designs whatever its seed."""
    rng = np.random.default_rng(99)
    optimizer = method(space, seed=seed, **settings)
    optimizer.tell(space.sample(n, rng), rng.standard_normal(n))
    return optimizer


# ---- asking is a function of the seed and of what was told -----------------------------------------


@every_method
@every_space
def test_ask_gives_new_valid_designs_and_changes_nothing(method: type[Optimizer], space: Space) -> None:
    optimizer = told(method, space)
    before = optimizer.data
    batch = optimizer.ask(8)
    assert optimizer.data is before
    assert optimizer.ask(8) == batch
    np.testing.assert_array_equal(space.check(batch.x), batch.x)
    np.testing.assert_array_equal(space.rows(list(batch)), batch.x)
    assert len(set(row_keys(batch.x)) | set(row_keys(before.x))) == 8 + len(set(row_keys(before.x)))


@every_method
@same_examples
@given(seed=seeds, cut=st.integers(0, 12))
def test_replaying_the_tells_restores_the_optimizer(method: type[Optimizer], seed: int, cut: int) -> None:
    """However they are cut into tells, and whatever was asked in between."""
    whole = told(method, MIXTURE, seed)
    pieces = method(MIXTURE, seed=seed)
    pieces.tell(whole.data.x[:cut], whole.data.y[:cut])
    pieces.ask(3)
    pieces.tell(whole.data.x[cut:], whole.data.y[cut:])
    assert pieces.ask(5) == whole.ask(5)


@every_method
def test_what_is_asked_depends_on_seed_told_and_pending(method: type[Optimizer]) -> None:
    """Among infinitely many designs, five draws are not the same five by chance."""
    batch = told(method, MIXTURE, seed=0).ask(5)
    others = [
        told(method, MIXTURE, seed=1).ask(5),
        told(method, MIXTURE, seed=0, n=13).ask(5),
        told(method, MIXTURE, seed=0).ask(5, pending=MIXTURE.sample(1, np.random.default_rng(5))),
    ]
    assert batch not in others


def test_order_of_merit_is_kept_and_known_designs_are_skipped() -> None:
    """Proposed 3, 1, 4, 1.5, 9; 1 is measured and 4 pending, so 3, 1.5, 9 are left, in this order."""
    optimizer = Fixed(LINE)
    optimizer.tell([[1.0]], [0.0])
    batch = optimizer.ask(3, pending=[{"x": 4}])
    assert [design["x"] for design in batch] == [3.0, 1.5, 9.0]
    assert batch.member.tolist() == [0, 3, 4]  # who drew which goes along
    assert batch.info["fallback"] == 0 and batch.info["notes"] == []


def test_minus_zero_is_the_same_design_as_zero() -> None:
    class Zero(Fixed):
        order: ClassVar[list[list[float]]] = [[-0.0], [5.0]]

    optimizer = Zero(LINE)
    optimizer.tell([[0.0]], [1.0])
    assert [design["x"] for design in optimizer.ask(1)] == [5.0]


# ---- finite spaces ---------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [Random, Evolution, Stuck])
def test_a_finite_space_is_asked_without_repeats_to_its_end(method: type[Optimizer]) -> None:
    """5 + 5 + 5 + 1 = 16 different words, then no more."""
    optimizer = method(WORDS)
    words: list[str] = []
    for n in (5, 5, 5):
        batch = optimizer.ask(n)
        words += [design["word"] for design in batch]
        optimizer.tell(batch, [float(word.count("b")) for word in words[-n:]])
    with pytest.raises(ExhaustedError, match=r"batch of 2 .* only 1 of the space's 16 .* at most 1\."):
        optimizer.ask(2)
    last = optimizer.ask(1)
    words += [design["word"] for design in last]
    assert len(words) == len(set(words)) == 16
    optimizer.tell(last, [NAN])
    with pytest.raises(ExhaustedError, match=r"only 0 of the space's 16 .* you are done"):
        optimizer.ask(1)


@every_method
def test_pending_designs_are_never_asked(method: type[Optimizer]) -> None:
    """10 pending of 16 leave the other 6."""
    optimizer = method(WORDS)
    pending = optimizer.ask(10)
    rest = optimizer.ask(6, pending=pending)
    assert len(set(row_keys(pending.x)) | set(row_keys(rest.x))) == 16
    with pytest.raises(ExhaustedError, match="only 6"):
        optimizer.ask(7, pending=pending)


def test_all_sixteen_at_once() -> None:
    assert len({design["word"] for design in Random(WORDS).ask(16)}) == 16


# ---- collapse and repeats --------------------------------------------------------------------------


@pytest.mark.parametrize("space", [WORDS, SPACES["60 numbers"]], ids=["finite", "infinite"])
def test_a_collapsed_model_is_reported_and_made_up_for(space: Space) -> None:
    """It proposes one design: that one is taken, the other 7 of 8 are drawn at random, and it is said."""
    batch = Stuck(space).ask(8)
    assert batch.x[0].tolist() == [1.0] * space.dimension
    assert len(set(row_keys(batch.x))) == 8
    assert batch.member.tolist() == [2] + [-1] * 7
    assert batch.info["fallback"] == 7
    assert batch.info["distinct"] == 1 / 8
    collapse, fallback = batch.info["notes"]
    assert "collapsed: 1 different designs among the first 8" in collapse
    assert "7 of 8 designs were drawn at random" in fallback


def test_the_fallback_is_uniform_over_what_is_left() -> None:
    """Told 14 of 16 words, the random filling must be the other two, whatever the seed."""
    left = {"aaaa", "abab"}
    known = [design for design in WORDS.dicts(WORDS.unrank(np.arange(16))) if design["word"] not in left]
    for seed in range(5):
        optimizer = Stuck(WORDS, seed=seed)
        optimizer.tell(known, np.zeros(14))
        assert {design["word"] for design in optimizer.ask(2)} == left


def test_repeats_are_allowed_where_the_method_allows_them() -> None:
    optimizer = StuckWithRepeats(WORDS)
    optimizer.tell([{"word": "bbbb"}], [1.0])
    batch = optimizer.ask(20)  # more than the space has
    assert {design["word"] for design in batch} == {"bbbb"}
    assert batch.info["fallback"] == 0


# ---- failures --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [Fixed, FixedWithRepeats])
def test_a_failed_design_is_never_asked_again(method: type[Optimizer]) -> None:
    """Of 3, 1, 4, 1.5, 9 the second failed."""
    optimizer = method(LINE)
    optimizer.tell([[1.0], [7.0], [7.5], [8.0]], [NAN, 1.0, 2.0, 3.0])
    batch = optimizer.ask(4)
    assert [design["x"] for design in batch] == [3.0, 4.0, 1.5, 9.0]
    assert batch.info["failure_share"] == 0.25
    assert math.isnan(optimizer.history[0]["value"])


def test_a_design_that_also_succeeded_may_be_repeated() -> None:
    optimizer = FixedWithRepeats(LINE)
    optimizer.tell([[1.0], [1.0]], [NAN, 2.0])
    assert [design["x"] for design in optimizer.ask(6)] == [3.0, 1.0, 4.0, 1.5, 9.0, 3.0]


def test_a_model_stuck_on_a_failure_is_made_up_for() -> None:
    """With repeats allowed a batch may be larger than the space; only the failed word is barred."""
    optimizer = StuckWithRepeats(WORDS)
    optimizer.tell([{"word": "bbbb"}], [NAN])
    batch = optimizer.ask(20)
    assert len(batch) == batch.info["fallback"] == 20
    assert "bbbb" not in {design["word"] for design in batch}


def test_nothing_but_failures() -> None:
    optimizer = Evolution(LINE)
    optimizer.tell([[1.0], [2.0]], [NAN, NAN])
    assert optimizer.best is None
    batch = optimizer.ask(3)
    assert batch.info["failure_share"] == 1.0
    assert "fills the space evenly" in batch.info["notes"][0]


# ---- what is told ----------------------------------------------------------------------------------


def test_best_is_by_the_mean_of_replicates() -> None:
    """By hand: 1 is measured 1 and 3 (mean 2), 2 is measured 2.5; then 1 again with 5 (mean 3)."""
    optimizer = Random(LINE)
    assert optimizer.best is None
    optimizer.tell([[1.0], [1.0], [2.0], [3.0]], [1, 3, 2.5, NAN])
    assert optimizer.best is not None
    assert (optimizer.best.design, optimizer.best.value, optimizer.best.count) == ({"x": 2.0}, 2.5, 1)
    optimizer.tell({"x": 1}, 5)
    assert (optimizer.best.design, optimizer.best.value, optimizer.best.count) == ({"x": 1.0}, 3.0, 3)


@every_method
@same_examples
@given(seed=seeds)
def test_minimising_y_is_maximising_minus_y(method: type[Optimizer], seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = MIXTURE.sample(10, rng), rng.standard_normal(10)
    y[3] = NAN
    low, high = method(MIXTURE, seed=seed, minimize=True), method(MIXTURE, seed=seed)
    low.tell(x, y)
    high.tell(x, -y)
    assert low.ask(6) == high.ask(6)
    # Outside, everything has the user's own sign.
    assert low.best is not None and high.best is not None
    assert low.best.value == np.nanmin(y) == -high.best.value
    assert low.best.design == high.best.design
    np.testing.assert_array_equal([entry["value"] for entry in low.history], y)


def test_a_target_is_reported_in_the_users_own_sign() -> None:
    class Aiming(Random):
        def propose(self, n: int, rng: np.random.Generator) -> Iterator[Proposal]:
            yield Proposal(self.space.sample(n, rng), info={"target": 5.0})

    assert Aiming(LINE).ask(1).info["target"] == 5.0
    assert Aiming(LINE, minimize=True).ask(1).info["target"] == -5.0


def test_every_way_to_tell_is_the_same() -> None:
    batch = Random(MIXTURE).ask(4)
    values = [1.0, NAN, -2.5, 0.0]
    forms = {
        "batch": (batch, values),
        "frame": (batch.frame(), pd.Series(values, index=[9, 8, 7, 6])),
        "dicts": (list(batch), tuple(values)),
        "rows": (batch.x, np.array(values)),
        "lists": (batch.x.tolist(), [1, None, "-2.5", 0]),
        "a column of values": (batch.x, np.array(values)[:, None]),
    }
    for form, (designs, told_values) in forms.items():
        optimizer = Random(MIXTURE)
        optimizer.tell(designs, told_values)
        np.testing.assert_array_equal(optimizer.data.x, batch.x, err_msg=form)
        np.testing.assert_array_equal(optimizer.data.y, values, err_msg=form)
    assert [entry["design"] for entry in optimizer.history] == list(batch)


def test_what_was_told_cannot_be_changed_from_outside() -> None:
    x, y = np.array([[1.0]]), np.array([2.0])
    optimizer = Random(LINE)
    optimizer.tell(x, y)
    x[0], y[0] = 9.0, 9.0
    assert optimizer.history == [{"design": {"x": 1.0}, "value": 2.0}]


@pytest.mark.parametrize(
    ("designs", "values", "words"),
    [
        pytest.param([[1.0], [2.0]], [1.0], ["2 designs but 1 values", "NaN"], id="a value too few"),
        pytest.param([[1.0]], [1.0, 2.0], ["1 designs but 2 values"], id="a value too many"),
        pytest.param([[1.0], [2.0]], [0.0, math.inf], ["Value 2 is inf", "NaN"], id="inf"),
        pytest.param([[1.0]], [-math.inf], ["Value 1 is -inf", "NaN"], id="minus inf"),
        pytest.param([[1.0]], ["high"], ["'high' is not a number", "NaN"], id="text"),
        pytest.param([[1.0]], [10**400], ["is not a number"], id="beyond float64"),
        pytest.param([[1.0]], [{}], ["{} is not a number"], id="a dict"),
        pytest.param([[11.0]], [1.0], ["Row 1, column 'x': 11"], id="a design outside the space"),
    ],
)
def test_bad_measurements_are_refused_whole(designs: Any, values: Any, words: list[str]) -> None:
    optimizer = Random(LINE)
    with pytest.raises(InputError) as caught:
        optimizer.tell(designs, values)
    for word in words:
        assert word in str(caught.value)
    assert len(optimizer.data) == 0  # nothing of it was kept


@pytest.mark.parametrize("n", [0, -1, True, 1.5, "3", None], ids=repr)
def test_a_bad_batch_size_is_refused(n: Any) -> None:
    with pytest.raises(InputError) as caught:
        Random(LINE).ask(n)
    assert f"A batch of {n!r}" in str(caught.value) and "at least 1" in caught.value.remedy


@pytest.mark.parametrize("seed", [-1, 1.5, True, "0", None], ids=repr)
def test_a_bad_seed_is_refused(seed: Any) -> None:
    with pytest.raises(InputError) as caught:
        Random(LINE, seed=seed)
    assert f"seed = {seed!r}" in str(caught.value)


def test_a_numpy_seed_is_its_number() -> None:
    assert Random(LINE, seed=np.int64(7)).ask(3) == Random(LINE, seed=7).ask(3)


def test_bad_pending_designs_are_refused() -> None:
    with pytest.raises(InputError, match="Row 1, column 'x': 11"):
        Random(LINE).ask(1, pending=[{"x": 11}])


@pytest.mark.parametrize(
    "setting", [{"population": 1}, {"tournament": 0}, {"crossover": 1.5}, {"crossover": -0.1}], ids=str
)
def test_evolution_refuses_settings_that_make_no_sense(setting: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=str(next(iter(setting.values())))):
        Evolution(LINE, **setting)


# ---- the two methods themselves --------------------------------------------------------------------


def test_random_is_uniform() -> None:
    """Mean of 10,000 uniform numbers on [0, 10]: standard error 10 / sqrt(12) / 100, 4.5 of them (7e-6)."""
    batch = Random(LINE).ask(10_000)
    assert batch.x.mean() == pytest.approx(5, abs=4.5 * 10 / math.sqrt(12) / 100)
    assert batch.info["notes"] == []


def test_evolution_climbs() -> None:
    """Count the b's of a word of 12. 300 random words of 4,096 contain the best with probability 7 %, so in all of
    5 seeds with probability 2e-6; selection and mutation find it in every one."""
    space = Space([Sequence("word", 12, "ab")])
    for seed in range(5):
        optimizer = Evolution(space, seed=seed, population=10)
        for _ in range(10):
            batch = optimizer.ask(30)
            optimizer.tell(batch, [design["word"].count("b") for design in batch])
        assert optimizer.best is not None
        assert optimizer.best.design == {"word": "b" * 12}


def test_a_continuous_space_of_three_numbers_comes_to_its_end() -> None:
    """Between 1 and its second successor lie three float64 numbers: after them the end is said, not waited for."""
    space = Space([Real("x", 1.0, math.nextafter(math.nextafter(1.0, 2), 2))])
    optimizer = Random(space)
    batch = optimizer.ask(3)
    assert len({design["x"] for design in batch}) == 3
    with pytest.raises(ExhaustedError, match="Only 0 new designs"):
        optimizer.ask(1, pending=batch)
