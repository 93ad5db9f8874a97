"""LOL-BO: its trust region by hand, its process in closed form, and what training VAE and process jointly brings."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import torch
from torch.quasirandom import SobolEngine

from diffbbo import Real, Sequence, Space
from diffbbo.baselines.lolbo import LOLBO, LatentModel, Region
from diffbbo.inducing import Process, cholesky
from diffbbo.registry import make_optimizer, make_task
from diffbbo.testing import check_optimizer
from diffbbo.types import Dataset, InputError, row_keys

SMALL = {
    "hidden": 16, "rows": 40, "inducing": 15, "vae_steps": 20, "gp_steps": 4, "joint_steps": 2, "candidates": 64,
}  # fmt: skip
PLANE = Space((Real("a", -1, 1), Real("b", 0, 10)))


def after(*tells: list[float]) -> Region:
    y = np.concatenate([np.array(values, dtype=np.float64) for values in tells])
    return Region.after(Dataset(np.zeros((len(y), 1)), y), tuple(len(values) for values in tells))


# ---- the trust region, by hand ---------------------------------------------------------------------


def test_start_data_move_nothing() -> None:
    assert after([1.0, 2.0] * 100) == Region(length=0.8)


def test_ten_batches_of_gains_double_the_region_up_to_its_largest() -> None:
    """Every tenth row is a new best: each tell of 100 rows is 10 successes in a row."""
    gains = [2.0 + k // 10 for k in range(100)]
    assert after([1.0], gains) == Region(length=1.6)
    assert after([1.0], gains[:90]) == Region(length=0.8, successes=9)
    assert after([1.0], gains, [y + 10 for y in gains]) == Region(length=1.6)


def test_failures_halve_the_region_after_32_batches_and_ask_for_joint_updates_after_10() -> None:
    """310 rows are 31 batches: 3 updates and 1 batch towards the next; the 32nd batch halves 0.8 to 0.4."""
    assert after([1.0], [0.0] * 310) == Region(length=0.8, failures=31, stalled=1, updates=3)
    assert after([1.0], [0.0] * 320) == Region(length=0.4, stalled=2, updates=3)
    assert after([1.0], *[[0.0]] * 32) == after([1.0], [0.0] * 320), "a tell of one row is a batch"
    assert after([1.0], [0.0] * 95).stalled == 0 and after([1.0], [0.0] * 95).updates == 1, "95 rows are 10 batches"


def test_a_gain_below_a_thousandth_is_a_failure_of_the_region_but_no_standstill() -> None:
    assert after([1.0], [1.0005]) == Region(failures=1)
    assert after([1.0], [1.002]) == Region(successes=1)


def test_failed_experiments_count_as_failures() -> None:
    assert after([1.0], [math.nan] * 20) == Region(failures=2, stalled=2)
    assert after([math.nan] * 5, [3.0]) == Region(successes=1), "the first success of all"


def test_a_region_below_its_smallest_starts_anew() -> None:
    """0.8 / 2^6 = 0.0125 is allowed, 0.8 / 2^7 = 0.00625 < 0.5^7 is not: after 7 * 32 batches of failures."""
    assert after([1.0], [0.0] * 10 * 6 * 32).length == pytest.approx(0.0125)
    anew = after([1.0], [0.0] * 10 * 7 * 32)
    assert (anew.length, anew.failures, anew.restarts) == (0.8, 0, 1)


# ---- the process, in closed form -------------------------------------------------------------------


def exact(
    z: torch.Tensor, y: torch.Tensor, at: torch.Tensor, ell: float, scale: float, noise: float
) -> tuple[float, torch.Tensor, torch.Tensor]:
    """Log marginal likelihood, mean and covariance of the Gaussian process without inducing points."""
    kernel = lambda a, b: scale * torch.exp(-0.5 * torch.cdist(a, b) ** 2 / ell**2)  # noqa: E731
    full = kernel(z, z) + noise * torch.eye(len(z)).double()
    evidence = torch.distributions.MultivariateNormal(torch.zeros(len(z)).double(), full).log_prob(y)
    weights = torch.linalg.solve(full, kernel(z, at))
    return float(evidence), weights.T @ y, kernel(at, at) - kernel(at, z) @ weights


def test_with_every_point_inducing_the_process_is_exact() -> None:
    g = torch.Generator().manual_seed(0)
    z, at = (torch.randn((n, 3), generator=g, dtype=torch.float64) for n in (30, 8))
    y = z.sum(dim=1).sin()
    values = [torch.tensor(v, dtype=torch.float64) for v in (1.3, 0.7, 0.1)]
    evidence, mean, covariance = exact(z, y, at, 1.3, 0.7, 0.1)
    process = Process(z, y, z, *values)
    assert float(process.elbo) == pytest.approx(evidence, abs=1e-4)
    got = process.posterior(at)
    torch.testing.assert_close(got[0], mean, atol=1e-5, rtol=0)
    torch.testing.assert_close(got[1], covariance, atol=1e-5, rtol=0)
    bounds = [float(Process(z, y, z[:m], *values).elbo) for m in (5, 10, 20, 30)]
    assert bounds == sorted(bounds) and bounds[0] < evidence - 1, "more inducing points, a tighter bound"


def test_a_root_is_found_for_a_singular_covariance() -> None:
    ones = torch.ones((5, 5), dtype=torch.float64)
    root = cholesky(ones)
    torch.testing.assert_close(root @ root.T, ones, atol=1e-3, rtol=0)


# ---- candidates and the choice among them ----------------------------------------------------------


def told(**settings: object) -> LOLBO:
    optimizer = LOLBO(PLANE, seed=3, **SMALL | settings)  # type: ignore[arg-type]
    x = PLANE.sample(60, np.random.default_rng(0))
    optimizer.tell(x, -(x[:, 0] ** 2) - (x[:, 1] - 3) ** 2)
    return optimizer


def model_of(optimizer: LOLBO) -> tuple[LatentModel, torch.Generator]:
    """The model that `ask` trains, and the generator as it stands afterwards."""
    rng = np.random.default_rng([optimizer.seed, len(optimizer.data), 0])
    generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
    data = optimizer.data.distinct()
    return optimizer.model(data.x, data.y, 0, generator), generator


def test_the_region_is_a_share_of_eight_standard_deviations_around_the_best() -> None:
    model, _ = model_of(told())
    z = model.latents()
    spread = z.std(dim=0, unbiased=False)
    centre, low, high = model.region(0.01)
    torch.testing.assert_close(centre, z[int(model.y.argmax())])
    torch.testing.assert_close(high - low, 0.01 * 8 * spread)
    _, low, high = model.region(1e9)
    torch.testing.assert_close(torch.stack([low, high]), z.mean(dim=0) + torch.tensor([[-4.0], [4.0]]) * spread)


def test_an_unbounded_region_is_latent_thompson_sampling_step_by_step() -> None:
    optimizer = told(length=1e9)
    asked = optimizer.ask(7)
    model, generator = model_of(optimizer)
    z = model.latents()
    # Candidates fill the whole latent box: with so few coordinates all of them are perturbed.
    seed = int(torch.randint(2**62, (), generator=generator))
    torch.rand((64, 2), generator=generator)
    torch.randint(2, (64,), generator=generator)
    unit = SobolEngine(2, scramble=True, seed=seed).draw(64, dtype=torch.float64)
    points = z.mean(dim=0) + 8 * (unit - 0.5) * z.std(dim=0, unbiased=False)
    # 7 functions from the posterior, each followed to its best point that is still free.
    mean, covariance = model.process(z, z[model.inducing]).posterior(points)
    noise = torch.randn((64, 7), generator=generator, dtype=torch.float64)
    chosen: list[int] = []
    for draw in (mean[:, None] + cholesky(covariance) @ noise).T:
        chosen.append(next(int(k) for k in draw.argsort(descending=True) if int(k) not in chosen))
    chosen.sort(key=lambda k: -float(mean[k]))
    expected = model.encoder.decode(model.vae.mode(points[chosen]).numpy())
    np.testing.assert_allclose(asked.x, expected, rtol=1e-9)


def test_only_some_coordinates_move_in_many_dimensions() -> None:
    """Each with probability 20 / 40 and at least one: of 4,000 candidates, half within 5 standard errors (1e-6)."""
    space = Space(tuple(Real(f"x{k}", 0, 1) for k in range(40)))
    optimizer = LOLBO(space, **SMALL)
    x = space.sample(60, np.random.default_rng(0))
    model = optimizer.model(x, x.sum(axis=1), 0, torch.Generator().manual_seed(0))
    box = model.region(0.8)
    moved = model.candidates(box, 4000, torch.Generator().manual_seed(1)) != box[0]
    assert moved.any(dim=1).all()
    expected = 0.5 + 0.5 / 40  # the one that always moves would have stayed with probability 1/2
    assert float(moved.double().mean()) == pytest.approx(expected, abs=5 * 0.5 / math.sqrt(160_000))


def test_joint_updates_follow_the_standstill() -> None:
    optimizer = told()
    assert optimizer.ask(4).info["updates"] == 0
    x = PLANE.sample(100, np.random.default_rng(1))
    optimizer.tell(x, np.full(100, -200.0))
    info = optimizer.ask(4).info
    assert info["updates"] == 1 and info["length"] == 0.8
    assert info["gp_rows"]["used"] == 40 and info["gp_rows"]["of"] == 160 and len(info["gp_rows"]["rows"]) == 40


# ---- joint training ---------------------------------------------------------------------------------


def held_out(updates: int, seed: int, train: int, test: int, steps: int) -> tuple[float, float]:
    """Rank correlation and log likelihood per design of the surrogate on unseen words of tfbind8."""
    task = make_task("tfbind8")
    x = task.space.sample(train + test, np.random.default_rng(seed))
    y = task.evaluate(x)
    optimizer = LOLBO(task.space, vae_steps=steps, inducing=150)
    model = optimizer.model(x[:train], y[:train], updates, torch.Generator().manual_seed(seed))
    z = model.vae.encode(torch.as_tensor(model.encoder.encode(x[train:])))[0]
    known = model.latents()
    mean, covariance = model.process(known, known[model.inducing]).posterior(z)
    spread = (covariance.diagonal() + model.gp[2].exp() + 1e-4).sqrt()
    truth = torch.as_tensor((y[train:] - y[:train].mean()) / y[:train].std())
    ranks = [np.argsort(np.argsort(values)) for values in (mean.numpy(), truth.numpy())]
    likelihood = torch.distributions.Normal(mean + model.gp[3], spread).log_prob(truth).mean()
    return float(np.corrcoef(*ranks)[0, 1]), float(likelihood)


def test_joint_training_makes_the_surrogate_better_than_a_frozen_vae() -> None:
    """The paper's pattern: both scores on held-out designs gain."""
    frozen, joint = (held_out(updates, seed=0, train=400, test=300, steps=400) for updates in (0, 3))
    assert joint[0] > frozen[0] + 0.03 and joint[1] > frozen[1] + 0.03, (frozen, joint)


@pytest.mark.slow
def test_joint_training_makes_the_surrogate_better_on_every_seed() -> None:
    for seed in range(3):
        frozen, joint = (held_out(updates, seed, train=800, test=400, steps=2000) for updates in (0, 3))
        assert joint[0] > frozen[0] + 0.03 and joint[1] > frozen[1] + 0.03, (seed, frozen, joint)


# ---- the method -------------------------------------------------------------------------------------


def test_the_name_is_the_method() -> None:
    assert type(make_optimizer("lolbo", PLANE)) is LOLBO


def test_conformance() -> None:
    check_optimizer(partial(make_optimizer, "lolbo", **SMALL), told=40, batch=6)


@pytest.mark.parametrize("batch", [1, 1000])
def test_batches_of_one_and_of_a_thousand(batch: int) -> None:
    space = Space((Sequence("dna", 6, "ACGT"),))
    optimizer = LOLBO(space, **SMALL)
    x = space.unrank(np.arange(0, 4096, 41))
    optimizer.tell(x, x.sum(axis=1))
    assert len(set(row_keys(optimizer.ask(batch).x))) == batch


@pytest.mark.parametrize(
    "settings", [{"latent": 0}, {"rows": 1}, {"joint_updates": -1}, {"length": 0.0}], ids=lambda s: next(iter(s))
)
def test_bad_settings_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(InputError, match=next(iter(settings))):
        LOLBO(PLANE, **settings)  # type: ignore[arg-type]


def test_no_global_seed_is_touched() -> None:
    optimizer = told()
    before = torch.random.get_rng_state()
    optimizer.ask(3)
    assert torch.equal(before, torch.random.get_rng_state())
