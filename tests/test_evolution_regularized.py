"""Regularized evolution: who is alive, who is chosen, who dies; and without ageing a plain tournament."""

from __future__ import annotations

import numpy as np
import pytest

from diffbbo import Categorical, InputError, Integer, Real, Sequence, Space
from diffbbo.baselines.evolution_regularized import RegularizedEvolution
from diffbbo.testing import check_optimizer
from diffbbo.variation import mutate, tournament

SPACE = Space((Real("t", 20, 120), Integer("n", 1, 9), Categorical("s", ("water", "thf")), Sequence("dna", 6, "ACGT")))


def value(x: np.ndarray) -> np.ndarray:
    return np.round(x[:, 0] / 10) - (x[:, 1] - 4) ** 2 + x[:, 3:].sum(axis=1)  # with many ties


def next_child(population: list[tuple[np.ndarray, float]], rng: np.random.Generator) -> np.ndarray:
    """One cycle of Algorithm 1 of the paper, as it is written there."""
    if len(population) < 10:
        return SPACE.sample(1, rng)
    youngest_first = population[::-1]
    winner = tournament(np.array([fitness for _, fitness in youngest_first]), 1, 4, rng)[0]
    return mutate(SPACE, youngest_first[winner][0], rng, rate=0.0)


@pytest.mark.parametrize("ageing", [True, False])
def test_step_by_step_equal_to_the_algorithm_on_a_queue(ageing: bool) -> None:
    """With ageing the left of the queue leaves; without, the worst, which is plain tournament selection."""
    optimizer = RegularizedEvolution(SPACE, seed=7, population=10, sample=4, ageing=ageing)
    population: list[tuple[np.ndarray, float]] = []
    seen: set[bytes] = set()
    for told in range(80):
        rng = np.random.default_rng([7, told, 0])  # as the base class seeds an ask
        child = next_child(population, rng)
        while child.tobytes() in seen:
            child = next_child(population, rng)
        asked = optimizer.ask(1)
        assert np.array_equal(asked.x, child)
        optimizer.tell(asked, value(child))
        seen.add(child.tobytes())
        population.append((child, float(value(child)[0])))
        if len(population) > 10:
            fitness = [entry[1] for entry in population]
            population.pop(0 if ageing else fitness.index(min(fitness)))  # of equals the oldest


def test_the_oldest_die_however_good() -> None:
    optimizer = RegularizedEvolution(SPACE, population=5)
    x = SPACE.sample(12, np.random.default_rng(0))
    for row, y in zip(x, [99, *range(11)], strict=True):
        optimizer.tell(row[None], [y])
    assert optimizer.alive().tolist() == [11, 10, 9, 8, 7], "the five youngest, though 99 was the best"
    unaged = RegularizedEvolution(SPACE, population=5, ageing=False)
    for row, y in zip(x, [99, *range(11)], strict=True):
        unaged.tell(row[None], [y])
    assert unaged.alive().tolist() == [11, 10, 9, 8, 0]


def test_designs_of_one_tell_are_of_one_age() -> None:
    """Start data enter with their best, whatever order they come in; then each batch displaces them."""
    x = SPACE.sample(1000, np.random.default_rng(0))
    y = np.random.default_rng(1).permutation(1000).astype(float)
    optimizer = RegularizedEvolution(SPACE, population=100)
    optimizer.tell(x, y)
    assert sorted(y[optimizer.alive()]) == list(range(900, 1000))
    more = SPACE.sample(30, np.random.default_rng(2))
    optimizer.tell(more, np.full(30, -5.0))
    alive = optimizer.alive()
    assert set(alive[:30]) == set(range(1000, 1030)), "the young live, though they are worse"
    assert sorted(y[alive[30:]]) == list(range(930, 1000))


def test_failures_never_live() -> None:
    optimizer = RegularizedEvolution(SPACE, population=10)
    x = SPACE.sample(20, np.random.default_rng(0))
    optimizer.tell(x, np.where(np.arange(20) % 2, np.nan, 1.0))
    assert optimizer.alive().tolist() == [*range(18, -1, -2)]


def test_a_child_differs_from_a_living_parent_in_one_column() -> None:
    optimizer = RegularizedEvolution(SPACE, population=20, seed=3)
    x = SPACE.sample(50, np.random.default_rng(0))
    optimizer.tell(x, value(x))
    living = optimizer.data.x[optimizer.alive()]
    changed = (optimizer.ask(40).x[:, None] != living[None]).sum(axis=2).min(axis=1)
    assert (changed == 1).all()


def test_a_large_sample_always_chooses_the_best() -> None:
    """Of 5000 draws from 10 the best is missing with probability 0.9^5000 < 1e-228."""
    optimizer = RegularizedEvolution(SPACE, population=10, sample=5000)
    x = SPACE.sample(10, np.random.default_rng(0))
    optimizer.tell(x, np.arange(10.0))
    assert ((optimizer.ask(20).x != x[9]).sum(axis=1) == 1).all()


def test_designs_are_random_until_the_population_is_full() -> None:
    optimizer = RegularizedEvolution(SPACE, population=10, seed=1)
    x = SPACE.sample(7, np.random.default_rng(0))
    optimizer.tell(x, value(x))
    batch = optimizer.ask(5)
    assert batch.info["random"] == 3 and batch.info["population"] == 7
    changed = (batch.x[:, None] != x[None]).sum(axis=2).min(axis=1)
    assert (changed[3:] == 1).all() and (changed[:3] > 1).all()


def test_it_climbs() -> None:
    """OneMax of 30 letters from nothing: the all-T word needs 30 right letters, chance gives 7.5."""
    space = Space((Sequence("word", 30, "ACGT"),))
    optimizer = RegularizedEvolution(space, seed=0)
    for _ in range(30):
        x = optimizer.ask(100).x
        optimizer.tell(x, (x == 3).sum(axis=1))
    assert optimizer.best.value >= 28


def test_conformance() -> None:
    check_optimizer("evolution-regularized", told=1000)
    check_optimizer("evolution-regularized", told=20, population=10, sample=3, ageing=False)


def test_bad_settings_are_refused() -> None:
    for settings in ({"population": 0}, {"sample": 0}, {"rate": 1.5}):
        with pytest.raises(InputError, match="do not fit"):
            RegularizedEvolution(SPACE, **settings)
