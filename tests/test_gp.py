"""Gaussian processes and the methods on them: every number against a closed form, a hand count, or BoTorch itself."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from diffbbo import Categorical, Integer, Real, Sequence, Space
from diffbbo.baselines.gp_ei import log_ei
from diffbbo.baselines.gp_jes import JointEntropy
from diffbbo.baselines.gp_ucb import srinivas_beta
from diffbbo.gp import GPMethod, choose_rows
from diffbbo.gp.model import Posterior, build_kernel, fit, hamming_kernel, package, quiet
from diffbbo.gp.search import Pool, best_batch, climb, greedy
from diffbbo.registry import make_optimizer, make_task
from diffbbo.testing import SPACES, objective
from diffbbo.types import InputError, MissingExtraError, row_keys
from diffbbo.variation import scaled, unscaled

METHODS = ("gp-ei", "gp-ucb", "gp-jes")
MIXED = SPACES["mixed"]
SQUARE = Space((Real("a", 0.0, 1.0), Real("b", 0.0, 1.0)))


def told(name: str, space: Space, count: int, **settings: Any) -> GPMethod:
    optimizer = make_optimizer(name, space, **({"effort": 0.1} | settings))
    x = space.sample(count, np.random.default_rng(0))
    optimizer.tell(x, objective(space, x))
    assert isinstance(optimizer, GPMethod)
    return optimizer


@pytest.fixture(scope="module")
def posterior() -> Posterior:
    """A GP of 30 mixed designs: numbers, a category and letters."""
    x = MIXED.sample(30, np.random.default_rng(1))
    return fit(MIXED, x, objective(MIXED, x))


@pytest.fixture(scope="module")
def square() -> Posterior:
    """A GP of 12 designs of two reals."""
    x = SQUARE.sample(12, np.random.default_rng(2))
    return fit(SQUARE, x, np.sin(6 * x[:, 0]) + x[:, 1])


# ---- the rows it sees ----------------------------------------------------------------------------------


def test_the_subset_is_the_best_half_and_a_seeded_sample_of_the_rest() -> None:
    """default_rng(0) draws .64 .27 .04 .02 .81 .91: of rows 1, 3, 4, 5 the smallest lots have 3 and 1."""
    y = np.array([5.0, 1.0, 4.0, 2.0, 3.0, 0.0])
    assert choose_rows(y, 4, seed=0).tolist() == [0, 1, 2, 3]
    assert choose_rows(y, 3, seed=0).tolist() == [0, 2, 3]  # an odd limit gives the best the larger half
    assert choose_rows(y, 6, seed=0).tolist() == [0, 1, 2, 3, 4, 5]
    assert choose_rows(np.zeros(6), 2, seed=0).tolist() == [0, 3]  # ties: the first told counts as the best


def test_the_sample_changes_little_when_worse_rows_are_told() -> None:
    y = np.arange(1000.0)[::-1].copy()
    before = set(choose_rows(y, 100, seed=3).tolist())
    after = set(choose_rows(np.append(y, np.full(20, -1.0)), 100, seed=3).tolist())
    assert len(before & after) >= 95 and set(range(50)) <= before & after


def test_features_and_designs_are_inverse() -> None:
    space = Space(
        (Real("r", 1e-3, 1e3, "log"), Integer("i", -2, 7), Categorical("c", ("x", "y", "z")), Sequence("s", 3, "AB"))
    )
    x = space.sample(50, np.random.default_rng(0))
    z = scaled(space, x)
    assert z[:, :2].min() >= 0 and z[:, :2].max() <= 1
    np.testing.assert_allclose(unscaled(space, z), x, rtol=1e-12)
    rounded = unscaled(space, np.array([[2.0, 0.54, 1.4, 0.6, -3.0, 9.0]]))
    assert rounded[0].tolist() == pytest.approx([1e3, 3.0, 1.0, 1.0, 0.0, 1.0], rel=1e-12)


def test_the_rows_used_are_in_the_record() -> None:
    optimizer = told("gp-ei", SPACES["sequence"], 50, rows=20)
    used = optimizer.ask(2).info["gp_rows"]
    data = optimizer.data.distinct()
    assert used == {"used": 20, "of": len(data), "rows": choose_rows(data.y, 20, 0).tolist()}
    assert told("gp-ei", SPACES["sequence"], 10).ask(2).info["gp_rows"] == {"used": 10, "of": 10, "rows": None}


# ---- kernel and posterior ------------------------------------------------------------------------------


def test_hamming_kernel_by_hand_and_as_botorch() -> None:
    kernel = hamming_kernel()(ard_num_dims=3).double()
    kernel.lengthscale = torch.tensor([[1.0, 2.0, 4.0]]).double()
    a = torch.tensor([[0.0, 1, 2]], dtype=torch.float64)
    b = torch.tensor([[0.0, 1, 3], [1, 1, 2], [1, 0, 0], [0, 1, 2]], dtype=torch.float64)
    by_hand = [math.exp(-0.25 / 3), math.exp(-1 / 3), math.exp(-1.75 / 3), 1.0]
    assert kernel(a, b).to_dense()[0].tolist() == pytest.approx(by_hand, abs=1e-12)

    theirs = package("botorch.models.kernels.categorical").CategoricalKernel(ard_num_dims=3).double()
    theirs.lengthscale = kernel.lengthscale
    x = torch.randint(4, (2, 6, 3), generator=torch.Generator().manual_seed(0)).double()
    torch.testing.assert_close(kernel(x, x[:, :4]).to_dense(), theirs(x, x[:, :4]).to_dense())
    torch.testing.assert_close(kernel(x, diag=True), theirs(x, diag=True))


def test_the_mixture_is_botorchs() -> None:
    x = torch.as_tensor(scaled(MIXED, MIXED.sample(8, np.random.default_rng(0))))
    prior = package("botorch.models.utils.gpytorch_modules").get_covar_module_with_dim_scaled_prior
    with quiet():
        ours = build_kernel(MIXED).double()
        theirs = package("botorch.models").MixedSingleTaskGP(
            x, x[:, :1], cat_dims=list(range(2, 7)), cont_kernel_factory=lambda **k: prior(use_rbf_kernel=False, **k)
        )
        for position, parameter in enumerate(ours.parameters()):
            parameter.data += 0.1 * position
        theirs.covar_module.load_state_dict(ours.state_dict())
        torch.testing.assert_close(ours(x).to_dense(), theirs.covar_module(x).to_dense())


def test_moments_are_botorchs(posterior: Posterior) -> None:
    z = torch.as_tensor(scaled(MIXED, MIXED.sample(9, np.random.default_rng(5))))
    mean, covariance = posterior.joint(z)
    with quiet(), torch.no_grad():
        theirs = posterior.model.posterior(z)
        torch.testing.assert_close(mean, theirs.mean[:, 0], atol=1e-8, rtol=1e-8)
        torch.testing.assert_close(covariance, theirs.mvn.covariance_matrix, atol=1e-7, rtol=1e-6)
    single = posterior.moments(z)
    torch.testing.assert_close(single[0], mean)
    torch.testing.assert_close(single[1], covariance.diagonal(), atol=1e-10, rtol=1e-8)
    torch.testing.assert_close(posterior.covariance(z[:3], z[3:]), covariance[:3, 3:], atol=1e-10, rtol=1e-8)


def test_samples_have_the_posterior_s_moments(square: Posterior) -> None:
    """40,000 draws: each mean within 5 standard errors, which chance alone breaks once in 300,000 runs."""
    z = torch.rand(5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    f = square.sample(z, 40_000, seed=1)
    mean, covariance = square.joint(z)
    assert ((f.mean(0) - mean).abs() < 5 * (covariance.diagonal() / 40_000).sqrt() + 1e-4).all()
    torch.testing.assert_close(torch.cov(f.T), covariance, atol=0.03 * float(covariance.diagonal().max()), rtol=0.05)
    assert torch.equal(f, square.sample(z, 40_000, seed=1))


def test_a_fit_is_the_same_every_time_and_at_any_scale() -> None:
    x = SQUARE.sample(20, np.random.default_rng(0))
    y = np.sin(5 * x[:, 0]) + x[:, 1]
    one, two, huge = fit(SQUARE, x, y), fit(SQUARE, x, y), fit(SQUARE, x, 1e300 * y)
    z = torch.rand(4, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert torch.equal(one.moments(z)[0], two.moments(z)[0])
    torch.testing.assert_close(one.moments(z)[0], huge.moments(z)[0], atol=1e-5, rtol=1e-5)
    assert np.isfinite([huge.centre, huge.scale]).all()


def test_a_missing_package_says_how_to_get_it() -> None:
    with pytest.raises(MissingExtraError, match=r"diffbbo\[rivals\]"):
        package("no_such_gp_package")


# ---- acquisitions --------------------------------------------------------------------------------------


def test_log_expected_improvement_in_closed_form() -> None:
    """At mean = best it is sigma phi(0); far above, mean - best; far below, log phi(u) - 2 log |u|."""
    mean, variance = torch.tensor([0.0, 50.0, -3e4]).double(), torch.tensor([4.0, 1.0, 1.0]).double()
    found = log_ei(mean, variance, torch.tensor(0.0))
    by_hand = [
        math.log(2 / math.sqrt(2 * math.pi)),
        math.log(50),
        -4.5e8 - 0.5 * math.log(2 * math.pi) - 2 * math.log(3e4),
    ]
    assert found.tolist() == pytest.approx(by_hand, rel=1e-12)


def test_log_expected_improvement_is_botorchs() -> None:
    testing, analytic = package("botorch.utils.testing"), package("botorch.acquisition.analytic")
    u = torch.cat([torch.linspace(-45, 8, 400), torch.tensor([-1.0, -999.0, -1001.0])]).double()
    mock = testing.MockPosterior(mean=u[:, None, None], variance=torch.ones_like(u)[:, None, None])
    theirs = analytic.LogExpectedImprovement(testing.MockModel(mock), best_f=0.0)(torch.empty(len(u), 1, 1))
    torch.testing.assert_close(log_ei(u, torch.ones_like(u), torch.tensor(0.0)), theirs, rtol=1e-6, atol=1e-9)


def test_a_batch_improves_by_the_best_of_its_members(square: Posterior) -> None:
    """Three draws of two designs against the best value b: the mean of max(f1, f2, b) - b, as BoTorch's qLogEI."""
    criterion: Any = told("gp-ei", SQUARE, 5).criterion(square, np.empty((0, 2)), np.random.default_rng(0))
    best = float(square.y.max())
    f = best + torch.tensor([[0.5, -1.0], [-2.0, -1.0], [0.2, 1.0]]).double()
    value = criterion.utility(f, f.mean(0)).amax(1).mean()
    assert float(value) == pytest.approx((0.5 + 0.0 + 1.0) / 3, abs=1e-5)
    testing, logei = package("botorch.utils.testing"), package("botorch.acquisition.logei")
    mock = testing.MockModel(testing.MockPosterior(samples=f[:, :, None]))  # three batches, one draw each
    sampler = package("botorch.sampling.normal").IIDNormalSampler(torch.Size([1]))
    theirs = logei.qLogExpectedImprovement(mock, best, sampler)(torch.empty(3, 2, 1).double()).exp().mean()
    assert float(theirs) == pytest.approx(float(value), rel=0.02)  # BoTorch's maximum over the batch is smooth


def test_greedy_choice_complements_what_is_chosen() -> None:
    """Design 0 is best alone (mean 2), then 2 adds 4/3 where 1 adds none; with 2 reached before, 0 and 1 tie."""
    u = torch.tensor([[3.0, 3.0, 0.0], [3.0, 2.0, 0.0], [0.0, 0.0, 4.0]])
    nothing = torch.full((3,), -torch.inf)
    assert greedy(u, nothing, 2) == [0, 2]
    assert greedy(u, nothing, 9) == [0, 2, 1]
    assert greedy(u, u[:, 2], 1, [2, 0]) == [2, 0]
    assert greedy(u, torch.full((3,), 5.0), 2) == [0, 1]  # nothing can be gained: the first


def test_upper_confidence_bound_weight_by_hand() -> None:
    """2 log(pi^2 / 0.3) / 5 in round 1; 2 (3 log 3 + log(pi^2 / 0.3)) / 5 in round 3 of two dimensions."""
    assert srinivas_beta(1, 2) == pytest.approx(1.39737, abs=1e-5)
    assert srinivas_beta(3, 2) == pytest.approx(2.71571, abs=1e-5)
    optimizer: Any = told("gp-ucb", SQUARE, 4)
    assert optimizer.beta == srinivas_beta(1, 2) and optimizer.settings()["beta"] == "Srinivas"
    optimizer.tell(SQUARE.sample(1, np.random.default_rng(3)), [0.0])
    assert optimizer.beta == srinivas_beta(2, 2)


def test_each_name_scores_by_its_own_acquisition(square: Posterior) -> None:
    z = torch.rand(6, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    mean, variance = square.moments(z)
    parents = SQUARE.sample(3, np.random.default_rng(0))

    def score(name: str, **settings: Any) -> torch.Tensor:
        return told(name, SQUARE, 5, **settings).criterion(square, parents, np.random.default_rng(0)).score(z)

    torch.testing.assert_close(score("gp-ei"), log_ei(mean, variance, square.y.max()))
    torch.testing.assert_close(score("gp-ucb", beta=4.0), mean + 2 * variance.sqrt())
    assert (score("gp-jes") > 0).all() and not torch.allclose(score("gp-jes"), score("gp-ucb", beta=4.0))


@pytest.mark.parametrize("pending", [0, 2])
def test_joint_entropy_is_botorchs(square: Posterior, pending: int) -> None:
    generator = torch.Generator().manual_seed(0)
    optima, waiting, batch = (torch.rand(n, 2, dtype=torch.float64, generator=generator) for n in (5, pending, 3))
    values = square.y.max() + torch.linspace(0.1, 1.0, 5).double()
    ours = JointEntropy(square, waiting, optima, values)
    search = package("botorch.acquisition.joint_entropy_search").qJointEntropySearch
    with quiet(), torch.no_grad():
        theirs = search(square.model, optima, values[:, None], X_pending=waiting if pending else None)
        expected = theirs(batch[None])[0] + ours.conditional(waiting).sum()  # which no choice of ours can change
        single = search(square.model, optima, values[:, None])(batch[:, None, :])
    assert float(ours.batch()(batch[None])[0]) == pytest.approx(float(expected), abs=1e-5)
    torch.testing.assert_close(ours.score(batch), single, atol=1e-5, rtol=1e-5)


def test_joint_entropy_chooses_greedily(square: Posterior) -> None:
    """Each design of the batch is the one that raises the batch's information most, the pending ones given."""
    generator = torch.Generator().manual_seed(1)
    optima, waiting, pool = (torch.rand(n, 2, dtype=torch.float64, generator=generator) for n in (4, 2, 30))
    criterion = JointEntropy(square, waiting, optima, square.y.max() + torch.ones(4).double())
    value = criterion.batch()
    chosen: list[int] = []
    for _ in range(4):
        gains = [float(value(pool[[*chosen, k]][None])[0]) if k not in chosen else -np.inf for k in range(30)]
        chosen.append(int(np.argmax(gains)))
    assert criterion.choose(pool, 4) == chosen


# ---- search --------------------------------------------------------------------------------------------


def test_a_pool_scores_every_new_design_once() -> None:
    calls: list[int] = []

    def score(x: Any) -> Any:
        calls.append(len(x))
        return x[:, 0]

    x = np.array([[1.0], [3.0], [1.0], [2.0]])
    pool = Pool(score, known=set(row_keys(np.array([[2.0]]))), dimension=1)
    assert pool.add(x) == 2 and pool.add(x) == 0 and calls == [2]
    assert pool.best(5).tolist() == [[3.0], [1.0]]


def test_gradients_move_reals_alone(posterior: Posterior) -> None:
    z = torch.as_tensor(scaled(MIXED, MIXED.sample(4, np.random.default_rng(3))))
    target = torch.full_like(z, 0.3)
    moved = climb(MIXED, lambda z: -(z - target).square().sum((-1, -2)), z[None])[0]
    torch.testing.assert_close(moved[:, 0], target[:, 0], atol=1e-5, rtol=0)
    assert torch.equal(moved[:, 1:], z[:, 1:])  # an integer, a category and letters stay on their grid


@pytest.mark.parametrize("name", METHODS)
def test_the_search_finds_what_botorchs_finds(name: str, square: Posterior) -> None:
    parents = SQUARE.sample(5, np.random.default_rng(0))
    optimizer = told(name, SQUARE, 5)
    rng = np.random.default_rng(0)
    criterion = optimizer.criterion(square, parents, rng)
    x, _ = best_batch(SQUARE, square, criterion, parents, set(), 1, rng)
    value = criterion.batch()
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]]).double()
    with torch.random.fork_rng(), quiet():
        torch.manual_seed(0)
        best = package("botorch.optim").optimize_acqf(value, bounds, q=1, num_restarts=4, raw_samples=64)[1]
    assert float(value(torch.as_tensor(scaled(SQUARE, x))[None])[0]) >= float(best) - 1e-3


def test_local_search_finds_the_best_word() -> None:
    """Of 4^12 words, by exchanges of one letter: the score counts letters equal to a hidden word, in pairs."""
    space = Space((Sequence("dna", 12, "ACGT"),))
    from diffbbo.gp.search import gather

    def score(x: Any) -> Any:
        hit = x == 2
        return hit.sum(1) + (hit[:, :-1] & hit[:, 1:]).sum(1)

    rng = np.random.default_rng(0)
    pool = gather(space, score, space.sample(10, rng), set(), rng)
    assert pool.best(1).tolist() == [[2.0] * 12]


# ---- the methods ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METHODS)
def test_a_pending_design_counts_as_chosen(name: str) -> None:
    """The next design lies elsewhere than the best one, which is on its way."""
    optimizer = told(name, SQUARE, 10)
    first = optimizer.ask(1)
    second = optimizer.ask(1, pending=first)
    assert np.abs(first.x - second.x).max() > 0.02
    assert not len(optimizer.pending)


@pytest.mark.parametrize("name", METHODS)
def test_a_thousand_rows_and_a_large_batch(name: str) -> None:
    optimizer = told(name, SPACES["sequence"], 1000, rows=60, effort=0.05)
    batch = optimizer.ask(150)
    assert batch.info["fallback"] == 0 and batch.info["gp_rows"]["used"] == 60


@pytest.mark.cuda
@pytest.mark.parametrize("name", [*METHODS, "turbo"])
def test_on_a_gpu(name: str) -> None:
    for space in (MIXED, SQUARE):
        batch = told(name, space, 30, device="cuda").ask(4)
        assert len(batch) == 4 and batch.info["device"] == "cuda"


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        pytest.param("gp-ei", {"rows": 1}, "rows = 1", id="one row"),
        pytest.param("gp-ei", {"rows": 2.5}, "rows = 2.5", id="part of a row"),
        pytest.param("gp-ei", {"effort": 0}, "effort = 0", id="no effort"),
        pytest.param("gp-ucb", {"beta": -1.0}, "beta = -1.0", id="negative weight"),
        pytest.param("gp-jes", {"optima": 0}, "optima = 0", id="no optima"),
    ],
)
def test_settings_are_checked(name: str, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        make_optimizer(name, SQUARE, **settings)


def minimise(name: str, task_name: str, initial: int, q: int, evaluations: int, **settings: Any) -> float:
    task = make_task(task_name, data=0)
    optimizer = make_optimizer(name, task.space, minimize=True, **settings)
    while len(optimizer.data) < evaluations:
        batch = optimizer.ask(q if len(optimizer.data) else initial)
        optimizer.tell(batch, task.evaluate(batch.x))
    assert optimizer.best is not None
    return optimizer.best.value


def test_gp_ei_finds_branins_minimum() -> None:
    """Within 0.01 of 0.397887 in 40 evaluations; the literature's Kriging methods take 21 to 25 to 1 % (0.004)."""
    assert minimise("gp-ei", "branin", 6, 1, 40, effort=0.2) < 0.397887 + 0.01


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_gp_ei_reproduces_the_literature(seed: int) -> None:
    """Branin as above with all effort; within 5 % of Hartmann's -3.32237 in 80, where those take 131 to 169 to 1 %."""
    assert minimise("gp-ei", "branin", 6, 1, 40, seed=seed) < 0.397887 + 0.01
    assert minimise("gp-ei", "hartmann6", 12, 4, 80, seed=seed) < 0.95 * -3.32237
