"""tfbind10 and tfbind10-clean: every design against the published numbers, and rows looked up in the source."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest

from diffbbo import DiffBBOError, InputError
from diffbbo.tasks import tfbind10
from diffbbo.tasks._codes import decode, encode
from diffbbo.tasks.tfbind10 import TFBind10, TFBind10Clean
from diffbbo.testing import check_task

SIZE = 4**10
EVERY = np.arange(SIZE)


@pytest.fixture(scope="module")
def lookup() -> TFBind10:
    return TFBind10()


@pytest.fixture(scope="module")
def clean() -> TFBind10Clean:
    return TFBind10Clean()


@pytest.fixture(scope="module", params=[TFBind10, TFBind10Clean], ids=["tfbind10", "tfbind10-clean"])
def task(request: pytest.FixtureRequest) -> Any:
    return request.param()


def value(task: Any, word: str) -> float:
    return float(task.evaluate([{"dna": word}])[0])


def test_the_oracle_is_the_table_on_all_designs(task: Any) -> None:
    """4^10 = 1,048,576 designs in chunks, row c being the word read as a base-4 number."""
    assert task.space.size == SIZE == len(task.table) == 1_048_576
    assert task.space.dimension == 10
    x = task.space.unrank(EVERY)
    np.testing.assert_array_equal(x @ 4.0 ** np.arange(9, -1, -1), EVERY)
    parts = [task.evaluate(x[start : start + task.chunk]) for start in range(0, SIZE, task.chunk)]
    np.testing.assert_array_equal(np.concatenate(parts), task.table)


def test_it_passes_the_conformance_suite(task: Any) -> None:
    check_task(task)


def test_range_and_maximum_are_those_of_the_table(task: Any) -> None:
    assert np.isfinite(task.table).all()
    assert task.range == (task.table.min(), task.table.max())
    assert task.maximum == task.card().maximum == task.table.max()


def test_a_task_travels_as_its_name_and_reads_its_file_there(task: Any) -> None:
    """A message longer than a pipe's 64 KiB would block for ever if the worker died while starting."""
    assert len(pickle.dumps(task)) < 200
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(task)).table, task.table)


# ---- tfbind10: Design-Bench's numbers --------------------------------------------------------------


def test_the_lookups_published_facts(lookup: TFBind10) -> None:
    """Maximum and minimum of Design-Bench's 8,321,066 rows (19 and 1,134 times here); the source's quartiles."""
    assert lookup.maximum == float(np.float32(2.1287067)) and lookup.range[0] == float(np.float32(-1.8585268))
    assert (lookup.table == lookup.table.max()).sum() == 19
    assert (lookup.table == lookup.table.min()).sum() == 1_134
    np.testing.assert_allclose(np.percentile(lookup.table, [25, 50, 75]), [-0.1614, 0.0037, 0.1699], atol=5e-5)
    assert (lookup.table < 1.26).mean() > 0.9999  # so far out is the maximum of 2.13


@pytest.mark.parametrize(
    ("word", "number"),
    [
        pytest.param("AAAAAAAAAA", 0.2629586458206177, id="replicate 4 of TTTTTTTTTT"),
        pytest.param("TTTTTTTTTT", 0.0741155818104744, id="replicate 4 of AAAAAAAAAA"),
        pytest.param("ACGTACGTAC", 0.03216032311320305, id="replicate 4 of TGCATGCATG"),
        pytest.param("GGGGGTTAGG", 2.128706693649292, id="one of the 19 best"),
        pytest.param("GGGGGAGGGG", -1.8585268259048462, id="replicate 2: its complement has neither 3 nor 4"),
    ],
)
def test_words_looked_up_in_the_source(lookup: TFBind10, word: str, number: float) -> None:
    """`values[lookup_index]` of the source at these words."""
    assert value(lookup, word) == number


def test_the_best_are_noise(lookup: TFBind10) -> None:
    """Replicate 3 of the 19 designs that share the maximum: from -1.04 to 0.90, as the card says."""
    third, fourth, _ = tfbind10.replicates()
    best = np.flatnonzero(lookup.table[::-1] == lookup.maximum)
    assert (round(third[best].min(), 2), round(third[best].max(), 2)) == (-1.04, 0.90)
    both = ~np.isnan(third + fourth)
    assert (~both).sum() == 15 + 2 - 1  # missing in replicate 3, in replicate 4, in both
    assert np.corrcoef(third[both], fourth[both])[0, 1] == pytest.approx(0.81, abs=0.005)


# ---- tfbind10-clean --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "number"),
    [
        pytest.param("AAAAAAAAAA", (-0.03869517892599106 + 0.0741155818104744) / 2, id="mean of both"),
        pytest.param("TGCATGCATG", (0.0735253244638443 + 0.03216032311320305) / 2, id="mean of both, again"),
        pytest.param("CCCCCAATCC", (0.8955978751182556 + 2.128706693649292) / 2, id="the maximum"),
        pytest.param("CCCCCTCCCC", -1.8585268259048462, id="neither: replicate 2"),
    ],
)
def test_clean_words_looked_up_in_the_source(clean: TFBind10Clean, word: str, number: float) -> None:
    """`values[replicate_index[2:]]` of the source at these words, by hand."""
    assert value(clean, word) == number


def test_where_one_replicate_is_missing_the_other_stands(lookup: TFBind10, clean: TFBind10Clean) -> None:
    """CCCCCCCCCC has no replicate 3, CCCCACCCCA no replicate 4. The lookup shows the remaining one, by complement."""
    third, fourth, _ = tfbind10.replicates()
    assert value(clean, "CCCCCCCCCC") == value(lookup, "GGGGGGGGGG") == fourth[int("1" * 10, 4)]
    assert value(clean, "CCCCACCCCA") == value(lookup, "GGGGTGGGGT") == third[int("1111011110", 4)]


def test_what_the_mean_brings_and_what_not(lookup: TFBind10, clean: TFBind10Clean) -> None:
    """The card's figures. The tail is thinner and has one top. Yet replicates 3 and 4 are not independent (no input
    reads: the same minima), and CACGTG being a palindrome, a flank and its reverse complement are one molecule, on
    which the mean agrees with itself no better than replicate 4 alone."""
    assert np.percentile(lookup.table, 99.99) == pytest.approx(1.256, abs=5e-4)
    assert np.percentile(clean.table, 99.99) == pytest.approx(0.967, abs=5e-4)
    best = clean.space.unrank(np.flatnonzero(clean.table == clean.maximum))
    assert clean.space.dicts(best) == [{"dna": "CCCCCAATCC"}]
    third, fourth, _ = tfbind10.replicates()
    both = ~np.isnan(third + fourth)
    np.testing.assert_array_equal(third[both] == clean.range[0], fourth[both] == clean.range[0])
    assert (third[both] == clean.range[0]).sum() == 1_118
    same_molecule = clean.space.rank(3 - clean.space.unrank(EVERY)[:, ::-1])
    assert np.corrcoef(clean.table, clean.table[same_molecule])[0, 1] == pytest.approx(0.35, abs=0.005)
    assert np.corrcoef(lookup.table, lookup.table[same_molecule])[0, 1] == pytest.approx(0.35, abs=0.005)


# ---- the first data --------------------------------------------------------------------------------


def test_the_visible_half(lookup: TFBind10) -> None:
    """Half of 1,048,576 is 524,288; 98 more share the median."""
    median = np.median(lookup.table)
    assert (lookup.table <= median).sum() == 524_386
    assert (lookup.table < median).sum() <= 524_288


def test_the_start_is_the_second_quarter_of_a_sample_of_the_visible_half(task: Any) -> None:
    """2,500 of 10,000 sampled designs. The 25th and 50th percentiles of the lower half are the 12.5th and 25th of the
    table. A sample's rank there has a standard deviation of sqrt(p (1 - p) / 10,000) <= 0.005 of the visible half, so
    the borders stay within 0.03 of it: six deviations."""
    x, y = task.start(seed=0)
    assert x.shape == (2_500, 10)
    assert len({tuple(row) for row in x}) == 2_500
    np.testing.assert_array_equal(task.evaluate(x), y)
    visible = task.table[task.table <= np.median(task.table)]
    assert (visible <= y.min()).mean() == pytest.approx(0.25, abs=0.03)
    assert (visible <= y.max()).mean() == pytest.approx(0.5, abs=0.03)
    assert (np.diff(y) >= 0).all()


def test_the_sample_varies_with_the_seed_only(task: Any) -> None:
    """Two samples of 10,000 from 524,000 share 2 % on average: 48 of 2,500 rows, or fewer."""
    (first, _), (again, _), (other, _) = task.start(7), task.start(7), task.start(8)
    np.testing.assert_array_equal(first, again)
    assert len({tuple(row) for row in first} & {tuple(row) for row in other}) < 125


# ---- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "told"),
    [
        pytest.param(np.full((1, 10), 4.0), "Row 1, column 'dna', letter 1: 4 ", id="a fifth letter"),
        pytest.param(np.full((1, 10), -1.0), "letter 1: -1", id="a negative letter"),
        pytest.param(np.full((1, 10), math.nan), "letter 1: nan", id="NaN"),
        pytest.param(np.zeros((1, 8)), "(n, 10)", id="eight letters"),
        pytest.param([{"dna": "ACGUACGUAC"}], "'U'", id="RNA"),
    ],
)
def test_the_oracle_refuses_what_is_no_word(lookup: TFBind10, x: Any, told: str) -> None:
    with pytest.raises(InputError) as caught:
        lookup.evaluate(x)
    assert told in str(caught.value)


@pytest.mark.parametrize("cls", [TFBind10, TFBind10Clean])
def test_a_damaged_file_is_noticed(cls: type, monkeypatch: pytest.MonkeyPatch) -> None:
    right = tfbind10.SHA256
    monkeypatch.setattr(tfbind10, "SHA256", "0" * 64)
    with pytest.raises(DiffBBOError, match=rf"tfbind10\.npz is damaged.*{right}, not {'0' * 64}.*Reinstall"):
        cls()


def test_the_cards_warn_of_the_sign_and_the_noise(lookup: TFBind10, clean: TFBind10Clean) -> None:
    for card in (lookup.card(), clean.card()):
        assert "larger ddG is weaker binding" in card.source
        assert (card.size, card.dimension, card.start) == (SIZE, 10, 2_500)
    assert "noise" in lookup.card().exact.lower() and "noise" in clean.card().remade.lower()


# ---- the packing of many entries with few values ---------------------------------------------------


def test_codes_by_hand() -> None:
    """2 is the most frequent and gets code 0, then 7 and 9 in ascending order; NaN is a value like others."""
    table, codes = encode(np.array([9.0, 2, 2, 7, np.nan, 2]))
    np.testing.assert_array_equal(table, [2, 7, 9, np.nan])
    assert codes.tolist() == [[2, 0, 0, 1, 3, 0], [0] * 6]


def test_codes_of_two_bytes_come_back() -> None:
    """65,536 values are as many as two bytes tell apart; one more is refused."""
    values = np.random.default_rng(0).permutation(2**16).astype(np.float32)
    table, codes = encode(values)
    assert codes.shape == (2, 2**16)
    np.testing.assert_array_equal(decode(table, codes), values)
    with pytest.raises(ValueError, match="65537 distinct"):
        encode(np.arange(2**16 + 1))
