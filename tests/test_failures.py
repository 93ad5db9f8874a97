"""What designs that failed teach: features and bounds by hand, rules learnt, and what a batch makes of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from diffbbo import Categorical, DiffBBO, EnsembleConfig, Real, Sequence, Space
from diffbbo.forward.failures import DOUBT, Failures, Rules, best_bound, by_chance
from diffbbo.portfolio import troubled

WORDS = Space((Sequence("word", 10, "ABCD"),))
KITCHEN = Space(
    (Real("t", 0, 1), Categorical("salt", list("abc")), Sequence("w", 3, "AB"), Categorical("p", list("xy")))
)


def banned(x: np.ndarray) -> np.ndarray:
    """Words with an A before a B. Without one are a(n) = 4 a(n-1) - a(n-2) words, a(0) = 1 and a(1) = 4, so of all
    words of ten letters 0.461 have one."""
    return np.asarray(((x[:, :-1] == 0) & (x[:, 1:] == 1)).any(axis=1))


def value(x: np.ndarray) -> np.ndarray:
    """How many A and B a word has, so that the best designs invite the failure."""
    return np.where(banned(x), np.nan, (x < 2).sum(axis=1))


def told(config: EnsembleConfig, rows: int = 200, **settings: object) -> DiffBBO:
    optimizer = DiffBBO(WORDS, seed=1, config=config, device="cpu", **settings)  # type: ignore[arg-type]
    x = WORDS.sample(rows, np.random.default_rng(0))
    optimizer.tell(x, value(x))
    return optimizer


# ---- what is looked at -----------------------------------------------------------------------------------


def test_rules_see_categories_and_neighbours_but_no_numbers() -> None:
    """b of a, b, c; y of x, y; the word ABB has the pairs AB (1 of AA, AB, BA, BB) and BB (3)."""
    row = torch.tensor([[0.3, 1.0, 0.0, 1.0, 1.0, 1.0]])
    assert Rules.of(KITCHEN).features(row).tolist() == [[0, 1, 0, 0, 1, 0, 1, 0, 1]]
    assert Rules.of(KITCHEN).features(row.expand(5, 2, 6)).shape == (5, 2, 9)


def test_a_letter_alone_has_no_neighbour() -> None:
    single = Space((Sequence("w", 1, "AB"),))
    assert Rules.of(single).features(torch.tensor([[1.0]])).tolist() == [[0, 0, 0, 0]]


def test_the_best_bound_by_hand() -> None:
    """From 0.4 on all three that succeeded pass and one of four that failed: 1 - 1/4. From 0.6 on: 2/3 - 1/4."""
    value = np.array([0.9, 0.6, 0.4, 0.7, 0.3, 0.1, 0.1])
    succeeded = np.array([True, True, True, False, False, False, False])
    assert best_bound(value, succeeded) == pytest.approx((0.4, 0.75))


def test_chance_alone_exceeds_its_limit_as_often_as_said() -> None:
    """Values that say nothing, 40 of each kind: Smirnov's limit is an upper bound for few values, so at most 5 % of
    2,000 draws may exceed it (standard error 0.5 %; four of them are allowed: false alarms below 1 in 10,000)."""
    rng = np.random.default_rng(0)
    kinds = np.arange(80) < 40
    over = [best_bound(rng.random(80), kinds)[1] > by_chance(40, 40) for _ in range(2000)]
    assert 0.02 < np.mean(over) < DOUBT + 0.02


# ---- what is learnt --------------------------------------------------------------------------------------


def fitted(x: np.ndarray, failed: np.ndarray, space: Space = WORDS, asked: bool = True) -> Failures | None:
    mask = np.full(int((~failed).sum()), asked)
    return Failures.fit(space, x[~failed], x[failed], mask, np.random.default_rng(0))


def test_a_rule_is_learnt_and_holds_for_new_designs(rng: np.random.Generator) -> None:
    x, new = WORDS.sample(300, rng), WORDS.sample(1000, rng)
    found = fitted(x, banned(x))
    assert found is not None and found.told_apart > 0.8
    likely = found.likely(new)
    assert likely[banned(new)].mean() > 0.9 and likely[~banned(new)].mean() < 0.1


def test_categories_that_do_not_go_together_are_learnt(rng: np.random.Generator) -> None:
    x = KITCHEN.sample(300, rng)
    failed = (x[:, 1] == 2) & (x[:, 5] == 0)
    found = fitted(x, failed, KITCHEN)
    assert found is not None and np.array_equal(found.likely(x), failed)


@pytest.mark.parametrize("seed", range(3))
def test_chance_teaches_nothing(seed: int) -> None:
    """A third fails whatever it is. A false alarm has a probability of 5 % at most, in three seeds 14 %: seeds are
    fixed, and these have none."""
    rng = np.random.default_rng(seed)
    assert fitted(WORDS.sample(150, rng), rng.random(150) < 1 / 3) is None


def test_where_numbers_decide_nothing_is_told_apart(rng: np.random.Generator) -> None:
    square = Space((Real("a", 0, 1), Real("b", 0, 1)))
    x = square.sample(200, rng)
    assert fitted(x, x[:, 0] > 0.5, square) is None


def test_a_history_of_successes_alone_is_no_comparison(rng: np.random.Generator) -> None:
    x = WORDS.sample(200, rng)
    assert fitted(x, banned(x), asked=False) is None


@pytest.mark.parametrize(("made", "failed"), [(4, 3), (1, 0), (0, 20)])
def test_too_little_to_learn_from(made: int, failed: int) -> None:
    rows = WORDS.sample(made + failed, np.random.default_rng(0))
    assert fitted(rows, np.arange(made + failed) >= made) is None


def test_which_values_came_with_failures() -> None:
    y = np.array([1.0, 2.0, np.nan, 3.0, 4.0])
    assert troubled(y, (2, 2, 1)).tolist() == [False, False, True, True, False]
    assert troubled(np.empty(0), ()).tolist() == []


# ---- what a batch makes of it ----------------------------------------------------------------------------


def test_a_batch_avoids_what_failed(tiny: EnsembleConfig) -> None:
    """The best designs have many A and B, so of 50 that are asked for blindly about as many fail as of all, 0.461."""
    whole, less = told(tiny).ask(50), told(tiny, without=("failures",)).ask(50)
    assert banned(whole.x).mean() < 0.15 < 0.3 < banned(less.x).mean()
    assert whole.info["told_apart"] > 0.8 and "told_apart" not in less.info


def test_where_nothing_fails_nothing_changes(tiny: EnsembleConfig) -> None:
    batches = []
    for without in ((), ("failures",)):
        optimizer = DiffBBO(WORDS, seed=1, config=tiny, device="cpu", without=without)
        x = WORDS.sample(60, np.random.default_rng(0))
        optimizer.tell(x, (x < 2).sum(axis=1))
        batches.append(optimizer.ask(20).x)
    assert np.array_equal(*batches)


def test_a_failure_that_succeeded_once_is_none(tiny: EnsembleConfig) -> None:
    optimizer = DiffBBO(WORDS, config=tiny, device="cpu")
    x = WORDS.sample(3, np.random.default_rng(0))
    optimizer.tell(x[[0, 1, 1, 2]], [np.nan, np.nan, 1.0, 2.0])
    assert optimizer.failed.tolist() == x[:1].tolist()


def test_where_the_made_are_all_as_good_half_are_their_children(tiny: EnsembleConfig) -> None:
    """Two words could be made, of no value yet: a child differs from one of them in few letters, a word drawn evenly
    from both in 7.5 of ten on average, and in less than five with probability 0.04 (two binomials of 10 and 3/4)."""
    optimizers = [DiffBBO(WORDS, seed=1, config=tiny, device="cpu", without=w) for w in ((), ("failures",))]
    near = []
    for optimizer in optimizers:
        x = np.array([[2.0] * 10, [3.0] * 10, [0.0, 1.0] * 5])
        optimizer.tell(x, [0.0, 0.0, np.nan])
        batch = optimizer.ask(60)
        assert "space" in batch.info["notes"][0]
        assert ("children" in batch.info["notes"][-1]) == ("failures" not in optimizer.without)
        near.append((np.minimum((batch.x != 2).sum(1), (batch.x != 3).sum(1)) < 5).mean())
    assert near[0] > 0.4 and near[1] < 0.2
