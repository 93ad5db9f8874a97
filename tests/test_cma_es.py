"""CMA-ES: the package's own loop, number by number, whatever else is told or asked in between."""

from __future__ import annotations

import cmaes
import numpy as np
import pytest

from diffbbo import Categorical, InputError, Integer, Real, Sequence, Space
from diffbbo.baselines.cma_es import SIGMA, CmaEs, Start
from diffbbo.testing import check_optimizer

CUBE = Space(tuple(Real(f"x{k}", 0, 1) for k in range(3)))
UNIT = np.tile([0.0, 1.0], (3, 1))


def slope(x: np.ndarray) -> np.ndarray:
    """A badly scaled quadratic on the unit cube, to be maximised."""
    return -((x - [0.3, 0.7, 0.1]) ** 2 * [1, 10, 100]).sum(axis=1)


def run(optimizer: CmaEs, rounds: int, batch: int, f=slope) -> list[np.ndarray]:
    asked = []
    for _ in range(rounds):
        asked.append(optimizer.ask(batch).x)
        optimizer.tell(asked[-1], f(asked[-1]))
    return asked


# ---- equal to the package's loop ------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [7, 12, 50])  # 7 is the package's default population in 3 dimensions
def test_numbers_equal_the_packages_own_loop(batch: int) -> None:
    optimizer = CmaEs(CUBE, seed=5)
    package = cmaes.CMA(np.full(3, 0.5), SIGMA, UNIT, seed=5, population_size=batch)
    for generation in range(40):
        x = np.array([package.ask() for _ in range(batch)])
        asked = optimizer.ask(batch).x
        assert np.array_equal(asked, x), f"generation {generation}"
        optimizer.tell(asked, slope(asked))
        package.tell(list(zip(x, -slope(x), strict=True)))
    assert optimizer.best.value > -1e-3


def test_integers_equal_the_packages_loop_with_margin() -> None:
    space = Space((Real("a", 0, 1), Integer("k", 0, 4)))
    bounds, steps = np.tile([0.0, 1.0], (2, 1)), np.array([0.0, 0.25])
    optimizer = CmaEs(space, seed=1)
    package = cmaes.CMAwM(np.full(2, 0.5), SIGMA, bounds, steps, seed=1, population_size=10)
    for _ in range(25):
        drawn = [package.ask() for _ in range(10)]
        x = np.array([encoded for encoded, _ in drawn]) * [1, 4]
        asked = optimizer.ask(10).x
        assert np.array_equal(asked, np.round(x, 12) * [0, 1] + x * [1, 0])
        y = -((asked[:, 0] - 0.3) ** 2) - (asked[:, 1] - 3) ** 2
        optimizer.tell(asked, y)
        package.tell([(raw, -value) for (_, raw), value in zip(drawn, y, strict=True)])


def test_letters_and_numbers_equal_the_packages_catcma() -> None:
    space = Space((Sequence("dna", 4, "ACGT"), Real("a", 0, 1)))
    optimizer = CmaEs(space, seed=2)
    package = cmaes.CatCMAwM(x_space=[[0.0, 1.0]], c_space=[4] * 4, population_size=12, seed=2)
    for _ in range(25):
        drawn = [package.ask() for _ in range(12)]
        x = np.array([[*s.c.argmax(axis=1), *s.x] for s in drawn])
        asked = optimizer.ask(12).x
        if len(np.unique(x, axis=0)) < 12:
            break  # the same number twice, clipped at a bound: we ask for it once, the package measures it twice
        assert np.array_equal(asked, x)
        y = (asked[:, :4] == 2).sum(axis=1) - (asked[:, 4] - 0.4) ** 2
        optimizer.tell(asked, y)
        package.tell([(s, -value) for s, value in zip(drawn, y, strict=True)])
    assert optimizer.search().strategy.core._g >= 5


def test_small_batches_fill_up_a_generation() -> None:
    """Twice 6 designs are one generation of 12, as the package would draw them one after the other."""
    halves, whole = CmaEs(CUBE, seed=3, population=12), CmaEs(CUBE, seed=3, population=12)
    for batch in run(whole, 10, 12):
        assert np.array_equal(np.concatenate(run(halves, 2, 6)), batch)


# ---- the state is a function of what was told -----------------------------------------------------------


def test_asking_leaves_no_trace() -> None:
    curious, plain = CmaEs(CUBE, seed=3), CmaEs(CUBE, seed=3)
    x = CUBE.sample(40, np.random.default_rng(0))
    curious.ask(30)
    for optimizer in (curious, plain):
        optimizer.tell(x, slope(x))
    for _ in range(4):
        curious.ask(100)
        asked = curious.ask(20, pending=curious.ask(3))
        first = plain.ask(23).x
        assert np.array_equal(asked.x, first[3:])
        for optimizer in (curious, plain):
            optimizer.tell(first, slope(first))


def test_replaying_the_tells_restores_the_search() -> None:
    optimizer, twin = CmaEs(CUBE, seed=3), CmaEs(CUBE, seed=3)
    for x in run(optimizer, 8, 15):
        twin.tell(x, slope(x))
    assert np.array_equal(optimizer.ask(15).x, twin.ask(15).x)


# ---- where it starts, and starts anew -------------------------------------------------------------------


def test_start_data_give_mean_and_width() -> None:
    optimizer = CmaEs(CUBE, seed=0)
    rng = np.random.default_rng(0)
    x = np.clip(0.6 + 0.05 * rng.standard_normal((400, 3)), 0, 1)
    y = slope(x)
    optimizer.tell(x, y)
    best = x[np.argsort(-y)[:100]]
    core = optimizer.search().strategy.core
    assert np.array_equal(core._mean, best[0])
    assert core._sigma == pytest.approx(np.sqrt(best.var(axis=0).mean())) and core._sigma < SIGMA


def test_letters_start_half_at_the_best_design() -> None:
    space = Space((Sequence("dna", 2, "ACGT"),))
    x = np.array([[0, 0], [1, 2], [1, 3], [3, 3]] * 2, dtype=float)
    start = Start.at(CmaEs(space).search().layout, x, np.array([9.0, 1, 1, 1, 8, 1, 1, 1]))
    # The best quarter is AA twice: (2 + 1) / (2 + 4) by Laplace's rule for A, 1/6 for each other letter.
    assert np.allclose(start.shares, [[0.5 + 0.25, 1 / 12, 1 / 12, 1 / 12]] * 2)


def test_a_converged_run_starts_anew_with_twice_the_population() -> None:
    optimizer = CmaEs(Space((Sequence("dna", 3, "ACGT"), Integer("k", 0, 1))), seed=0)
    search = optimizer.search()
    populations = [search.population]
    for _ in range(12):
        x = optimizer.ask(8).x
        optimizer.tell(x, x.sum(axis=1))
        populations.append(optimizer.search().population)
    assert search.restarts >= 1 and max(populations) == 8 * 2**search.restarts
    assert len(optimizer.data.distinct()) == 96, "no design twice, though most samples are known by the end"


def test_a_design_from_elsewhere_is_pulled_in() -> None:
    """An injected step of any length counts as one of length sqrt(d) + 2d / (d + 2) (Hansen 2011)."""
    optimizer = CmaEs(CUBE, seed=0)
    x = np.clip(0.1 + 0.01 * np.random.default_rng(0).standard_normal((40, 3)), 0, 1)
    optimizer.tell(x, slope(x))
    strategy = optimizer.search().strategy
    mean, sigma = strategy.core._mean, strategy.core._sigma
    far = strategy.inject(np.ones(3))
    assert np.linalg.norm(far - mean) / sigma == pytest.approx(np.sqrt(3) + 6 / 5)
    near = mean + sigma * np.array([0.5, 0, 0])
    assert np.allclose(strategy.inject(near), near)


def test_failures_rank_last() -> None:
    """A failed half on one side moves the mean to the other, as the worst values there would."""
    failing, poor = CmaEs(CUBE, seed=4), CmaEs(CUBE, seed=4)
    for _ in range(5):
        x = failing.ask(20).x
        assert np.array_equal(x, poor.ask(20).x)
        good = x[:, 0] > np.median(x[:, 0])
        failing.tell(x, np.where(good, slope(x), np.nan))
        poor.tell(x, np.where(good, slope(x), slope(x[good]).min()))
    only = CmaEs(CUBE, seed=4)
    first = only.ask(20).x
    only.tell(first, np.full(20, np.nan))
    assert only.search().strategy.core._g == 0 and not np.array_equal(only.ask(20).x, first)


# ---- any space ------------------------------------------------------------------------------------------


def test_conformance() -> None:
    check_optimizer("cmaes", told=50)


@pytest.mark.parametrize(
    "space",
    [
        Space((Integer("k", 0, 2**50), Integer("j", 0, 3))),
        Space((Categorical("c", ("x", "y")), Integer("k", 0, 10**6))),
    ],
    ids=["many integers", "with a category"],
)
def test_integers_of_any_range(space: Space) -> None:
    optimizer = CmaEs(space, seed=0)
    for _ in range(5):
        x = optimizer.ask(12).x
        optimizer.tell(x, x.sum(axis=1))
    space.check(x)
    assert x.shape == (12, 2)


def test_one_number_and_two_letters_are_spaces_too() -> None:
    for space in (Space((Real("a", 0, 1),)), Space((Sequence("s", 2, "ab"), Real("a", 1, 2, "log")))):
        optimizer = CmaEs(space, seed=0)
        for _ in range(20):
            x = optimizer.ask(10).x
            optimizer.tell(x, x[:, -1])
        assert optimizer.best.value == pytest.approx(space.variables[-1].upper, rel=1e-3)


def test_bad_settings_are_refused() -> None:
    with pytest.raises(InputError, match="population = 3"):
        CmaEs(CUBE, population=3)
    with pytest.raises(InputError, match="too large"):
        CmaEs(CUBE, seed=2**32)
