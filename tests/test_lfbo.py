"""Likelihood-free BO: what its weights make of a classifier, how a batch is spread, and what it does at the edges."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch

from diffbbo import Categorical, InputError, Integer, Real, Sequence, Space
from diffbbo.baselines.lfbo import RATE, Ensemble, LfboEI, LfboPI, features, share, spread, threshold
from diffbbo.registry import make_optimizer
from diffbbo.testing import check_optimizer
from diffbbo.types import row_keys

SQUARE = Space((Real("a", 0, 1), Real("b", 0, 1)))
MIXED = Space((Real("t", 1e-3, 1e3, "log"), Integer("n", 1, 9), Categorical("s", ("water", "thf")),
               Sequence("dna", 2, "ACG")))  # fmt: skip
SMALL = {"steps": 60, "candidates": 200}
BOTH = pytest.mark.parametrize("method", [LfboEI, LfboPI], ids=["ei", "pi"])

# Three designs, measured 3, 2 and 4 times. Above tau = 3 they are 1, 1 and 3 times, by 2; 1; 3, 5, 4.
DESIGN = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2])
VALUE = np.array([1.0, 5, 3, 0, 4, 6, 8, 2, 7])
EI = np.array([2 / 3, 1 / 2, 12 / 4])
PI = np.array([1 / 3, 1 / 2, 3 / 4])


def best_odds(method: type[LfboEI], design: np.ndarray, y: np.ndarray, tau: float) -> np.ndarray:
    """The odds per design that minimise the weighted cross-entropy: a free parameter for each has a closed form."""
    rows, label, weight = method.examples(y, tau)
    share = np.array([np.bincount(design[rows], weights=weight * (label == z)) for z in (1, 0)])
    return share[0] / share[1]


def told(method: type[LfboEI], space: Space = SQUARE, rows: int = 60, **settings: object) -> LfboEI:
    optimizer = method(space, **(SMALL | settings))
    x = space.sample(rows, np.random.default_rng(0))
    optimizer.tell(x, value(x))
    return optimizer


def value(x: np.ndarray) -> np.ndarray:
    return -((x[:, 0] - 0.7) ** 2) - (x[:, 1] - 0.3) ** 2


# ---- what the classifiers learn --------------------------------------------------------------------


def test_the_odds_are_the_expected_improvement_over_its_mean() -> None:
    """The mean EI of all nine rows is (2 + 1 + 12) / 9."""
    assert best_odds(LfboEI, DESIGN, VALUE, 3.0) == pytest.approx(EI / (15 / 9), rel=1e-12)


def test_without_weights_the_probability_is_that_of_improvement() -> None:
    odds = best_odds(LfboPI, DESIGN, VALUE, 3.0)
    assert odds / (1 + odds) == pytest.approx(PI, rel=1e-12)


def test_positives_weigh_as_much_as_negatives() -> None:
    """As the authors normalise: both classes sum to the same, and the mean weight is 1."""
    _, label, weight = LfboEI.examples(VALUE, 3.0)
    assert weight[label == 1].sum() == pytest.approx(weight[label == 0].sum())
    assert weight.mean() == pytest.approx(1)


def test_equal_improvements_make_ei_the_same_as_pi(rng: np.random.Generator) -> None:
    """With all improvements 1, E[(y - tau)+ | x] = P(y > tau | x): the odds of one are the probability of the other
    over the share above tau, so both rank designs alike."""
    design = np.arange(400) % 20
    y = (rng.random(400) < design / 20).astype(float)
    pi = best_odds(LfboPI, design, y, 0.0)
    assert best_odds(LfboEI, design, y, 0.0) == pytest.approx(pi / (1 + pi) / y.mean())


@pytest.mark.parametrize(("method", "expected"), [(LfboEI, np.log(EI / (15 / 9))), (LfboPI, np.log(PI))])
def test_trained_networks_find_these_odds(method: type[LfboEI], expected: np.ndarray) -> None:
    """Minibatches with replacement leave an error: over five seeds it was at most 0.03 for the mean of 20 networks."""
    rows, label, weight = method.examples(VALUE, 3.0)
    u = np.eye(3, dtype=np.float32)
    generator = torch.Generator().manual_seed(0)
    network = Ensemble([3, 32, 1], 20, generator)
    network.fit(u[DESIGN[rows]], label, weight, 1500, generator)
    assert np.asarray(method.utility(network(u))).mean(axis=0) == pytest.approx(expected, abs=0.06)


def test_members_together_equal_members_apart() -> None:
    """One Adam on the sum of the losses is as many Adams: each member on its own minibatches, by plain PyTorch."""
    rng = np.random.default_rng(0)
    u, label, weight = rng.random((90, 4), dtype=np.float32), (rng.random(90) < 0.4).astype(float), rng.random(90)
    together, apart = (Ensemble([4, 8, 8, 1], 3, torch.Generator().manual_seed(1)) for _ in range(2))
    together.fit(u, label, weight, 40, torch.Generator().manual_seed(2))
    generator = torch.Generator().manual_seed(2)
    batches = [torch.randint(90, (3, 64), generator=generator) for _ in range(40)]
    x, z, w = (torch.from_numpy(part.astype(np.float32)) for part in (u, label, weight))
    for m in range(3):
        layers = [torch.nn.Linear(4, 8), torch.nn.Linear(8, 8), torch.nn.Linear(8, 1)]
        for k, layer in enumerate(layers):
            layer.weight.data = apart.weights[2 * k][m].T.clone()
            layer.bias.data = apart.weights[2 * k + 1][m, 0].clone()
        net = torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1], torch.nn.ReLU(), layers[2])
        adam = torch.optim.Adam(net.parameters(), lr=RATE)
        for batch in batches:
            i = batch[m]
            adam.zero_grad()
            torch.nn.BCEWithLogitsLoss(weight=w[i])(net(x[i])[:, 0], z[i]).backward()
            adam.step()
        with torch.no_grad():
            assert torch.allclose(together(u)[m], net(x)[:, 0], atol=1e-5)


def test_the_ascent_finds_the_top_of_a_classifier() -> None:
    """One hidden unit is a plane, highest in a corner of the square."""
    network = Ensemble([2, 1], 1, torch.Generator().manual_seed(0))
    network.weights = [torch.tensor([[[2.0], [-1.0]]]), torch.zeros((1, 1, 1))]
    assert network.ascend(np.full((1, 3, 2), 0.5, dtype=np.float32)).tolist() == [[[1, 0]] * 3]


# ---- threshold, features, spread -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "tau"),
    [
        ([*range(10)], 6.03),  # 0.67 of the way from 0 to 9: three of ten are above
        ([0, 1, 2, 2, 2], 1.0),  # more than a third are best: the next below
        ([3, 3, 3, 3, 5], 3.0),  # less than a third are above the rest
    ],
)
def test_threshold(y: list[float], tau: float) -> None:
    assert threshold(np.array(y, dtype=float), 0.33) == pytest.approx(tau)


def test_features_of_every_type() -> None:
    x = MIXED.rows([{"t": 1, "n": 3, "s": "thf", "dna": "CA"}, {"t": 1e3, "n": 9, "s": "water", "dna": "GG"}])
    expected = [[0.5, 0.25, 0, 1, 0, 1, 0, 1, 0, 0], [1, 1, 1, 0, 0, 0, 1, 0, 0, 1]]
    assert features(MIXED, x) == pytest.approx(np.array(expected), abs=1e-7)
    assert features(MIXED, x[:0]).shape == (0, 10)


NONE = np.empty((0, 1))


@pytest.mark.parametrize(("far", "second"), [(0.86, 2), (0.87, 3)])
def test_spread_penalises_by_distance(far: float, second: int) -> None:
    """Two of four on a line, all about as good: they fill 0.996 of it, and the width is 0.5 * 0.996 / 2. After 0, the
    point at 0.01 keeps 0.0008 of its value, that at 0.5 1 - e^-2.01 = 0.866, that at 1 all but e^-8: so the last
    wins from 0.998 * 0.866 = 0.864 up."""
    u, y = np.array([[0], [0.01], [0.5], [1]]), np.log([1, 0.999, 0.998, far])
    assert spread(u, y, np.zeros(4, bool), 2, NONE).tolist() == [0, second]


def test_the_share_that_matters() -> None:
    """k of n alike and the others nothing; and a = x on [0, 1]: (1/2)² / (1/3) = 3/4."""
    assert share(np.array([5.0, 5, 5, -900, -900])) == pytest.approx(3 / 5)
    assert share(np.log(np.arange(1, 10_001) / 10_000)) == pytest.approx(3 / 4, abs=1e-4)


def test_a_batch_gathers_where_the_acquisition_is(rng: np.random.Generator) -> None:
    """Eight of a square where only a disc of radius 0.1 is any good: all lie in it."""
    u = rng.random((5000, 2))
    far = np.linalg.norm(u - 0.6, axis=1)
    chosen = spread(u, np.where(far < 0.1, 0.0, -20.0), np.zeros(5000, bool), 8, NONE[:, [0, 0]])
    assert (far[chosen] < 0.1).all()
    apart = np.linalg.norm(u[chosen][:, None] - u[chosen], axis=2)[np.triu_indices(8, 1)]
    assert apart.min() > 0.05, "and fill it: eight of a hexagonal lattice there are 0.067 apart"


def test_spread_begins_with_a_quarter_of_optima_and_keeps_off_pending_designs() -> None:
    u, y = np.linspace(0, 1, 9)[:, None], np.log(np.linspace(2, 1, 9))
    optima = np.arange(9) == 4
    assert spread(u, y, optima, 4, NONE).tolist()[:2] == [4, 0], "of four the first is an optimum, then the best"
    assert spread(u, y, optima, 4, u[:1]).tolist()[1] != 0, "the best is pending"
    assert sorted(spread(u, y, optima, 9, NONE)) == [*range(9)], "all of them, each once"
    assert len(spread(u, y, optima, 20, NONE)) == 9


# ---- the optimizer ---------------------------------------------------------------------------------


@BOTH
def test_it_climbs(method: type[LfboEI]) -> None:
    """PI asks above the threshold, and does not care how far; EI does: 0.16 of the square is above -0.05, and of eight
    uniform designs five are with probability 0.004."""
    batch = told(method, rows=200, steps=2000, candidates=1000).ask(8)
    y = value(batch.x)
    assert (y > batch.info["threshold"]).sum() >= 6
    assert method is LfboPI or (y > -0.05).sum() >= 5


@BOTH
def test_the_batch_is_distinct_new_and_reproducible(method: type[LfboEI]) -> None:
    optimizer = told(method, MIXED)
    batch = optimizer.ask(30)
    assert np.array_equal(batch.x, told(method, MIXED).ask(30).x)
    assert not np.array_equal(batch.x, told(method, MIXED, seed=1).ask(30).x)
    after = optimizer.ask(30, pending=batch)
    keys = [*row_keys(optimizer.data.x), *row_keys(batch.x), *row_keys(after.x)]
    assert len(set(keys)) == 60 + 30 + 30


def test_ei_and_pi_differ() -> None:
    assert not np.array_equal(told(LfboEI).ask(4).x, told(LfboPI).ask(4).x)
    assert make_optimizer("lfbo-ei", SQUARE).settings()["method"] == "lfbo-ei"
    assert type(make_optimizer("lfbo-pi", SQUARE)) is LfboPI


@pytest.mark.parametrize("scale", [2.0**-900, 2.0**40, 2.0**1000], ids=["tiny", "large", "huge"])
def test_only_ratios_of_values_matter(scale: float) -> None:
    """Powers of two scale without rounding, and a difference of the largest of these would overflow."""
    x = SQUARE.sample(30, np.random.default_rng(0))
    y = 1e7 * value(x) + 3e6
    asked = []
    for factor in (1.0, scale):
        optimizer = LfboEI(SQUARE, **SMALL)
        optimizer.tell(x, y * factor)
        asked.append(optimizer.ask(5))
        assert asked[-1].info["threshold"] == factor * threshold(y, 0.33)
    assert np.array_equal(asked[0].x, asked[1].x)


def test_failures_are_left_out() -> None:
    optimizer = told(LfboEI)
    x = SQUARE.sample(5, np.random.default_rng(1))
    optimizer.tell(x, np.full(5, np.nan))
    batch = optimizer.ask(4)
    assert batch.info["rows"] == 60 and batch.info["above"] == 20
    assert not set(row_keys(batch.x)) & set(row_keys(x))


@pytest.mark.parametrize(("rows", "y"), [(9, None), (40, 1.0)], ids=["too few", "constant"])
def test_without_a_better_part_the_batch_is_random(rows: int, y: float | None) -> None:
    optimizer = LfboEI(SQUARE, seed=5)
    x = SQUARE.sample(rows, np.random.default_rng(0))
    optimizer.tell(x, value(x) if y is None else np.full(rows, y))
    batch = optimizer.ask(3)
    assert "this batch is random" in batch.info["notes"][0]
    assert np.array_equal(batch.x, SQUARE.sample(3, np.random.default_rng([5, rows, 0])))


@BOTH
def test_a_small_space_is_searched_to_its_end(method: type[LfboEI]) -> None:
    """Of 36 designs the last is asked too, though hardly any candidate is new."""
    space = Space((Integer("i", 0, 5), Categorical("c", tuple("abcdef"))))
    optimizer = method(space, **SMALL)
    x = space.unrank(np.arange(35))
    optimizer.tell(x, x[:, 0])
    batch = optimizer.ask(1)
    assert batch.info["fallback"] == 0 and space.rank(batch.x).tolist() == [35]


def test_a_batch_of_a_thousand() -> None:
    batch = told(LfboEI, Space((Sequence("dna", 8, "ACGT"), Real("b", 0, 1)))).ask(1000)
    assert len(set(row_keys(batch.x))) == 1000 and batch.info["fallback"] == 0


@pytest.mark.parametrize("name", ["lfbo-ei", "lfbo-pi"])
def test_conformance(name: str) -> None:
    check_optimizer(name, told=30, batch=4, steps=20, candidates=100)


def test_settings_are_json_and_bad_ones_are_refused() -> None:
    assert json.loads(json.dumps(LfboPI(SQUARE, gamma=0.25).settings()))["gamma"] == 0.25
    for settings in ({"gamma": 0.0}, {"gamma": 1.0}, {"members": 0}, {"steps": 0}, {"candidates": 0}):
        with pytest.raises(InputError, match="do not fit"):
            LfboEI(SQUARE, **settings)
    assert math.isclose(LfboEI(SQUARE).gamma, 0.33), "the authors' default"
