"""TPE: Optuna's own study, value by value; pending designs run, failures fail, large data are sampled."""

from __future__ import annotations

import numpy as np
import optuna
import pytest

from diffbbo import Categorical, InputError, Integer, Real, Sequence, Space
from diffbbo.baselines.tpe import OptunaTPE
from diffbbo.testing import check_optimizer

SPACE = Space(
    (Real("b", -5, 10), Real("a", 1e-3, 1e3, "log"), Integer("n", 1, 9), Categorical("s", ("w", "t", "z")),
     Sequence("q", 2, "ab"))
)  # fmt: skip
D = optuna.distributions
DISTRIBUTIONS = {
    "b": D.FloatDistribution(-5, 10),
    "a": D.FloatDistribution(1e-3, 1e3, log=True),
    "n": D.IntDistribution(1, 9),
    "s": D.CategoricalDistribution((0, 1, 2)),
    "q[0]": D.CategoricalDistribution((0, 1)),
    "q[1]": D.CategoricalDistribution((0, 1)),
}


def value(x: np.ndarray) -> np.ndarray:
    return -((x[:, 0] - 1) ** 2) - np.log(x[:, 1]) ** 2 - 0.1 * (x[:, 2] - 4) ** 2 + (x[:, 3] == 1) + x[:, 4] * x[:, 5]


def own_study(seed: int, direction: str = "maximize") -> optuna.Study:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True)
    return optuna.create_study(direction=direction, sampler=sampler)


def ask(study: optuna.Study, n: int) -> tuple[list[optuna.Trial], np.ndarray]:
    trials = [study.ask(DISTRIBUTIONS) for _ in range(n)]
    return trials, np.array([[trial.params[name] for name in DISTRIBUTIONS] for trial in trials], dtype=float)


@pytest.mark.parametrize(("batch", "rounds"), [(1, 40), (7, 8), (25, 3)])
def test_equals_optunas_own_study(batch: int, rounds: int) -> None:
    optimizer, study = OptunaTPE(SPACE, seed=3), own_study(3)
    for _ in range(rounds):
        trials, x = ask(study, batch)
        asked = optimizer.ask(batch)
        assert np.array_equal(asked.x, x)
        for trial, y in zip(trials, value(x), strict=True):
            study.tell(trial, y)
        optimizer.tell(asked, value(x))
    assert optimizer.best.value == study.best_value


def test_minimising_equals_optunas_own_study() -> None:
    optimizer, study = OptunaTPE(SPACE, seed=1, minimize=True), own_study(1, "minimize")
    for _ in range(25):
        (trial,), x = ask(study, 1)
        assert np.array_equal(optimizer.ask(1).x, x)
        study.tell(trial, -value(x)[0])
        optimizer.tell(x, -value(x))


def test_failures_are_failed_trials() -> None:
    optimizer, study = OptunaTPE(SPACE, seed=5), own_study(5)
    for round_ in range(12):
        trials, x = ask(study, 3)
        asked = optimizer.ask(3)
        assert np.array_equal(asked.x, x)
        y = value(x)
        y[round_ % 3] = np.nan
        for trial, outcome in zip(trials, y, strict=True):
            failed = np.isnan(outcome)
            study.tell(trial, state=optuna.trial.TrialState.FAIL) if failed else study.tell(trial, outcome)
        optimizer.tell(asked, y)


def test_pending_designs_are_running_trials() -> None:
    optimizer, study = OptunaTPE(SPACE, seed=2), own_study(2)
    trials, x = ask(study, 15)
    for trial, y in zip(trials, value(x), strict=True):
        study.tell(trial, y)
    optimizer.tell(x, value(x))
    _, first = ask(study, 4)
    _, second = ask(study, 4)  # the first four still run
    assert np.array_equal(optimizer.ask(4).x, first)
    assert np.array_equal(optimizer.ask(4, pending=first).x, second)
    assert np.array_equal(optimizer.ask(4).x, first), "asking with pending designs leaves nothing behind"


def test_large_data_are_the_best_and_a_sample_in_order() -> None:
    optimizer = OptunaTPE(SPACE, seed=0, max_rows=60)
    x = SPACE.sample(300, np.random.default_rng(0))
    y = value(x)
    y[:20] = np.nan
    optimizer.tell(x, y)
    used = optimizer._subset()
    assert len(used) == 60 == len(set(used)) and (np.diff(used) > 0).all()
    assert set(np.argsort(-np.nan_to_num(y, nan=-np.inf))[:30]) <= set(used)
    batch = optimizer.ask(3)
    assert batch.info["rows"] == 60 and batch.info["told"] == 300
    assert np.array_equal(optimizer._subset(), used), "the sample is seeded"


def test_it_finds_the_good_region() -> None:
    optimizer = OptunaTPE(SPACE, seed=0)
    for _ in range(6):
        x = optimizer.ask(25).x
        optimizer.tell(x, value(x))
    late = value(x)
    assert late.mean() > np.quantile(value(SPACE.sample(10_000, np.random.default_rng(0))), 0.8)


def test_conformance() -> None:
    check_optimizer("optuna-tpe", told=30, batch=6)


def test_bad_settings_are_refused() -> None:
    with pytest.raises(InputError, match="max_rows = 5"):
        OptunaTPE(SPACE, max_rows=5)
    with pytest.raises(InputError, match="too large"):
        OptunaTPE(SPACE, seed=2**32)
