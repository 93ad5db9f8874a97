"""UaE and its rivals on mock uncertainties: every value is computed by hand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from diffbbo import Acquisition, DiffBBO, EnsembleConfig, FixedWeight, RandomWeight, Real, Space, UaE
from diffbbo.types import Array, InputError
from diffbbo.uncertainty import Uncertainty, decompose

MOCK = Uncertainty(
    aleatoric=np.array([10.0, 10.0, 10.0]),
    epistemic=np.array([0.5, 0.2, 1.0]),
    corrected=np.array([0.4, -0.1, 0.9]),
    standard_error=np.array([0.1, 0.1, 0.3]),
)
HEIGHT = np.array([0.6, 0.8, 1.0])


def test_the_paper_in_plain_and_log_form(rng: np.random.Generator) -> None:
    plain = UaE(form="plain", estimator="paper").alpha(HEIGHT, MOCK, rng)
    assert np.allclose(plain, [0.1, 0.6, 0.0])
    log = UaE(form="log", estimator="paper").alpha(HEIGHT, MOCK, rng)
    assert np.allclose(log, [np.log(0.6 / 0.5), np.log(0.8 / 0.2), np.log(1.0 / 1.0)])


def test_the_corrected_estimate_is_floored(rng: np.random.Generator) -> None:
    """A negative estimate becomes 1e-3 of the aleatoric term, here 0.01."""
    alpha = UaE().alpha(HEIGHT, MOCK, rng)
    assert np.allclose(alpha, np.log(HEIGHT / np.array([0.4, 0.01, 0.9])))
    assert np.allclose(UaE().standard_error(MOCK), [0.1 / 0.4, 0.1 / 0.01, 0.3 / 0.9])


def test_the_weight_scales_the_term(rng: np.random.Generator) -> None:
    assert np.allclose(UaE(form="plain", weight=2.0).alpha(HEIGHT, MOCK, rng), HEIGHT - 2 * np.array([0.4, 0.01, 0.9]))
    assert np.allclose(UaE(weight=0.0).alpha(HEIGHT, MOCK, rng), np.log(HEIGHT))


def test_on_samples_it_is_the_formula(rng: np.random.Generator) -> None:
    """From draws to alpha in one go, against numpy's own mean and variance."""
    samples = rng.normal(size=(3, 5, 40, 6)) * np.array([1.0, 1.5, 2.0])[:, None, None, None]
    norms = np.linalg.norm(samples, axis=-1)
    alpha = UaE(estimator="paper").alpha(HEIGHT, decompose(samples), rng)
    assert np.allclose(alpha, np.log(HEIGHT) - np.log(norms.mean(axis=2).var(axis=1)))


def test_a_collapsed_ensemble_is_not_rewarded_without_bound(rng: np.random.Generator) -> None:
    """All members alike: the paper's estimate of alpha is huge, ours is bounded by the floor."""
    same = np.repeat(rng.normal(size=(3, 1, 50, 2)), 5, axis=1)
    found = decompose(same)
    assert (UaE(estimator="paper").alpha(HEIGHT, found, rng) > 50).all()
    assert np.allclose(UaE().alpha(HEIGHT, found, rng), np.log(HEIGHT / (1e-3 * found.aleatoric)))


def test_fixed_and_random_weights(rng: np.random.Generator) -> None:
    assert FixedWeight(1.4).weights == (1.4,)
    assert FixedWeight(1.4).alpha(HEIGHT[:1], MOCK, rng).argmax() == 0
    chosen = [int(RandomWeight().alpha(np.ones(5), MOCK, rng).argmax()) for _ in range(5000)]
    # each of five weights 1000 times, within 4 standard deviations of a binomial
    assert np.abs(np.bincount(chosen) - 1000).max() < 4 * np.sqrt(5000 * 0.2 * 0.8)


@pytest.mark.parametrize(
    "make",
    [lambda: UaE(form="cubic"), lambda: UaE(estimator="mine"), lambda: UaE(measure="max"), lambda: UaE(weights=()),
     lambda: FixedWeight(-1.0), lambda: RandomWeight((0.5, float("nan")))],
    ids=["form", "estimator", "measure", "no weights", "negative weight", "NaN weight"],
)  # fmt: skip
def test_bad_settings_are_refused(make: object) -> None:
    with pytest.raises(InputError):
        make()  # type: ignore[operator]


@dataclass(frozen=True)
class Boldest(Acquisition):
    """From outside the package: always the largest of three weights."""

    weights: tuple[float, ...] = (0.5, 1.0, 1.5)

    def alpha(self, height: Array, uncertainty: Uncertainty, rng: np.random.Generator) -> Array:
        return height


def test_one_small_class_from_outside_is_enough(tiny: EnsembleConfig, rng: np.random.Generator) -> None:
    space = Space((Real("a", 0, 1), Real("b", 0, 1)))
    optimizer = DiffBBO(space, acquisition=Boldest(), config=tiny, device="cpu")
    x = space.sample(30, rng)
    optimizer.tell(x, x.sum(axis=1))
    assert optimizer.ask(4).info["weight"] == 1.5
    assert optimizer.settings()["acquisition"] == {"name": "Boldest", "weights": (0.5, 1.0, 1.5)}
