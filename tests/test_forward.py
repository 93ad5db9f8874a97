"""Forward models against closed forms: the kernel, leave-one-out, what a committee learns, where a climb ends."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from diffbbo.forward.committee import MEMBERS, Committee
from diffbbo.forward.layout import Layout
from diffbbo.forward.panel import OF_FEW, OPINIONS, Panel, greedy
from diffbbo.forward.process import JITTER, JOINT, Kernel, Process, usual_length

MIXED = Layout((None, 3, None))


def tensor(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_a_layout_knows_numbers_and_letters() -> None:
    u = torch.tensor([[0.0, 2.0, 0.75]])
    assert MIXED.numbers == [0, 2] and MIXED.letters == [1]
    assert MIXED.features(u).tolist() == [[-1.0, 0.5, 0.0, 0.0, 1.0]]


def test_the_kernel_by_hand() -> None:
    """Lengthscales 0.5 and 1, distance sqrt(0.2^2/0.25 + 0.3^2) = 0.5; letters differ: times exp(-w), w = 0.7."""
    kernel = Kernel(MIXED, tensor(math.log(0.5), 0.0), tensor(math.log(0.7)), tensor(math.log(2.0))[0], tensor(0.0)[0])
    a, b = torch.tensor([[0.1, 0.0, 0.2]]).double(), torch.tensor([[0.3, 1.0, 0.5], [0.3, 0.0, 0.5]]).double()
    r = math.sqrt(5) * 0.5
    matern = 2.0 * (1 + r + r**2 / 3) * math.exp(-r)
    assert kernel(a, b)[0].tolist() == pytest.approx([matern * math.exp(-0.7), matern])


def test_the_posterior_and_what_it_says_of_a_row_left_out() -> None:
    """Mean and leave-one-out prediction are those of a fit without the row, with the same kernel."""
    rng = np.random.default_rng(0)
    u, y = torch.as_tensor(rng.random((12, 2))), torch.as_tensor(rng.standard_normal(12))
    model = Process.fit(Layout((None, None)), u, y)
    k, noise = model.kernel(u, u), float(model.kernel.noise.exp()) + JITTER
    rest = np.arange(1, 12)
    without = k[0, rest] @ torch.linalg.solve(k[rest][:, rest] + noise * torch.eye(11).double(), y[rest])
    assert float(model.loo[0]) == pytest.approx(float(without), rel=1e-6)
    left = torch.linalg.solve(k[rest][:, rest] + noise * torch.eye(11).double(), k[rest, 0])
    normal = torch.distributions.Normal(without, (k[0, 0] + noise - k[0, rest] @ left).sqrt())
    assert float(model.density[0]) == pytest.approx(float(normal.log_prob(y[0])), rel=1e-6)
    mean, deviation = model.predict(u[:1])
    full = torch.linalg.solve(k + noise * torch.eye(12).double(), torch.stack([y, k[0]], dim=1))
    assert float(mean) == pytest.approx(float(k[0] @ full[:, 0]), rel=1e-6)
    assert float(deviation) ** 2 == pytest.approx(float(k[0, 0] - k[0] @ full[:, 1]), rel=1e-6)


def test_joint_draws_have_the_posterior_s_moments() -> None:
    """20,000 draws: a mean is known to 1/141 of a deviation, a variance and a covariance to 1 % of the variances; four
    times that is allowed, so that a false alarm is rarer than 1 in 1,000. The same row twice is drawn the same, up to
    what is added for stability."""
    rng = np.random.default_rng(1)
    u, y = torch.as_tensor(rng.random((12, 2))), torch.as_tensor(rng.standard_normal(12))
    model, rows = Process.fit(Layout((None, None)), u, y), torch.tensor([[0.5, 0.5], [0.55, 0.5], [0.5, 0.5]]).double()
    drawn = model.gains(rows, 20_000, torch.Generator().manual_seed(0))
    mean, deviation = model.predict(rows)
    assert drawn.mean(0) == pytest.approx(mean - model.predict(u)[0].max(), abs=4 / 141 * float(deviation.max()))
    assert drawn.std(0) == pytest.approx(deviation, rel=0.02 + JOINT)
    cross = model.kernel(rows, u)
    explained = cross @ torch.cholesky_solve(cross.mT, model.factor)
    covariance = float((model.kernel(rows, rows) - explained)[0, 1])
    assert float(torch.cov(drawn.T)[0, 1]) == pytest.approx(covariance, abs=0.04 * float(deviation.max()) ** 2)
    apart = (drawn[:, 0] - drawn[:, 2]).std()
    assert float(apart) == pytest.approx(math.sqrt(2 * JOINT * float(model.kernel.signal.exp())), rel=0.03)


def test_the_rough_prior_is_that_of_lengthscales_themselves() -> None:
    """A log-normal density with the parameters mu and sigma^2 = 3 has its mode at exp(mu - 3); without a word from the
    data (one row) lengthscales stay there, and the signal's variance is 1."""
    layout = Layout((None,) * 4)
    assert usual_length(layout, True) == pytest.approx(math.sqrt(2) + math.log(4) / 2 - 3)
    model = Process.fit(layout, torch.full((1, 4), 0.5).double(), torch.zeros(1).double(), rough=True)
    assert model.kernel.lengths.tolist() == pytest.approx([usual_length(layout, True)] * 4)
    assert float(model.kernel.signal) == 0.0


def test_a_process_finds_out_which_number_matters() -> None:
    u = torch.as_tensor(np.random.default_rng(1).random((80, 3)))
    model = Process.fit(Layout((None,) * 3), u, torch.sin(6 * u[:, 1]))
    assert model.kernel.lengths.argmin() == 1
    mean, _ = model.predict(torch.tensor([[0.5, 0.2, 0.5]]).double())
    assert float(mean) == pytest.approx(math.sin(1.2), abs=0.1)


def test_a_committee_learns_and_knows_what_it_was_not_shown() -> None:
    u = torch.as_tensor(np.random.default_rng(2).random((600, 2)))
    y = (u[:, 0] - u[:, 1]) * math.sqrt(6)  # variance 1
    model = Committee.fit(Layout((None, None)), u, y, torch.Generator().manual_seed(0))
    assert float((model.left_out - y).square().mean()) < 0.02
    read = model.functions(MEMBERS, torch.Generator().manual_seed(0))
    corner = read(torch.tensor([[[1.0, 0.0]]]).double().expand(MEMBERS, -1, -1))
    assert corner.flatten().tolist() == pytest.approx([math.sqrt(6)] * MEMBERS, abs=0.4)


def test_fewer_rows_than_members_are_no_trouble() -> None:
    u = torch.rand((3, 2)).double()
    model = Committee.fit(Layout((None, None)), u, u[:, 0], torch.Generator().manual_seed(0))
    assert torch.isfinite(model.left_out).all()


def panel(layout: Layout, u: np.ndarray, y: np.ndarray) -> Panel:
    return Panel.fit(layout, u, (y - y.mean()) / y.std(), y, np.random.default_rng(0))


def test_every_model_knows_a_hill() -> None:
    u = np.random.default_rng(3).random((300, 2))
    judges = panel(Layout((None, None)), u, -((u[:, 0] - 0.5) ** 2) - (u[:, 1] - 0.5) ** 2)
    pool = np.array([[0.0, 0.0], [0.5, 0.5], [1.0, 1.0], [0.5, 0.5], [0.45, 0.5]])
    assert all(set(order[:3]) == {1, 3, 4} for order in judges.ranked(pool))
    assert len(judges.skill) == 3 and min(judges.skill) > 0.95


def test_a_climb_ends_at_the_top_or_at_its_reach_and_leaves_letters_alone() -> None:
    rng = np.random.default_rng(4)
    u = np.column_stack([rng.random(400), rng.integers(2, size=400), rng.random(400)])
    judges = panel(Layout((None, 2, None)), u, -((u[:, 0] - 0.6) ** 2) - (u[:, 2] - 0.4) ** 2 + 0.1 * u[:, 1])
    start = np.tile([0.5, 0.0, 0.5], (sum(OPINIONS), 3, 1))
    top, values = judges.ascend(start, np.full(start.shape, 0.4))
    assert np.abs(top[..., [0, 2]] - [0.6, 0.4]).max() < 0.15 and (top[..., 1] == 0).all()
    reach = np.tile([0.01, 0.01, 0.0], (*start.shape[:2], 1))
    near, lower = judges.ascend(start, reach)
    assert (np.abs(near - start).max(axis=(0, 1)) <= [0.01 + 1e-12, 0, 0]).all() and (lower <= values + 1e-9).all()


def test_every_opinion_ranks_the_pool() -> None:
    u = np.random.default_rng(6).random((300, 2))
    order = panel(Layout((None, None)), u, u[:, 0]).ranked(np.array([[0.2, 0.5], [0.9, 0.5], [0.5, 0.5]]))
    assert order.shape == (sum(OPINIONS), 3) and (order[:, 0] == 1).mean() > 0.8


def test_the_model_that_ranks_good_designs_best_is_heard_first() -> None:
    """A fast wave: both processes follow it, the committee hardly."""
    u = np.random.default_rng(7).random((400, 1))
    y = np.sin(15 * u[:, 0])
    judges = panel(Layout((None,)), u, y)
    on_ranks, on_values, committee = judges.skill
    assert min(on_ranks, on_values) > 0.9 > committee
    with torch.no_grad():
        opinions = judges.read(torch.as_tensor(u).expand(sum(OPINIONS), -1, -1)).numpy()
    fit = np.corrcoef(np.vstack([y, opinions]))[0, 1:]
    assert fit[: sum(OPINIONS[:2])].min() > fit[sum(OPINIONS[:2]) :].max()


def test_what_raises_the_best_most_by_hand() -> None:
    """Four draws of three designs: alone they bring 1.5, 1.25 and 0.5 on average. Beside the first, the second brings
    nothing (it is good in the same draws), the third 2 in one draw of four; then nothing is left to gain.

    Where nothing is above 0 the highest mean begins (-4.25), and beside it the second gains 4 and 3, the first 1 and 1.
    """
    gains = torch.tensor([[3.0, 3.0, -1.0], [3.0, 2.0, -5.0], [0.0, 0.0, 2.0], [-4.0, -9.0, -1.0]])
    assert greedy(gains, 3).tolist() == [0, 2, 1]
    assert greedy(gains, 2).tolist() == [0, 2] and len(greedy(gains, 9)) == 3
    assert greedy(-gains.abs() - torch.tensor([3.0, 1.0, 2.0]), 3).tolist() == [2, 1, 0]


def test_with_few_rows_there_are_rough_processes_and_as_many_opinions() -> None:
    assert sum(OF_FEW) == sum(OPINIONS)
    u = np.random.default_rng(8).random((60, 2))
    y = -((u - 0.4) ** 2).sum(axis=1)
    judges = Panel.fit(Layout((None, None)), u, (y - y.mean()) / y.std(), y, np.random.default_rng(0), few=True)
    assert [process.kernel.rough for process in judges.processes] == [False, False, True, True]
    assert len(judges.skill) == 5 and judges.ranked(u).shape == (sum(OPINIONS), 60)


def test_of_a_pool_the_designs_are_chosen_that_may_be_better_than_the_best() -> None:
    """The hill's top was not among the rows: of a pool on a grid the first choice is next to it. The values are known
    so well that nothing can be gained then; what comes next has the next highest means."""
    rng = np.random.default_rng(9)
    u = rng.random((200, 2))
    u = u[((u - 0.4) ** 2).sum(axis=1) > 0.15**2]
    y = -((u - 0.4) ** 2).sum(axis=1)
    for few in (False, True):
        judges = Panel.fit(Layout((None, None)), u, (y - y.mean()) / y.std(), y, np.random.default_rng(0), few=few)
        grid = np.stack(np.meshgrid(np.linspace(0, 1, 11), np.linspace(0, 1, 11)), axis=-1).reshape(-1, 2)
        chosen = grid[judges.together(grid, 3, rng)]
        assert len(np.unique(chosen, axis=0)) == 3
        assert np.linalg.norm(chosen - 0.4, axis=1).max() < 0.3 and np.linalg.norm(chosen[0] - 0.4) < 0.15
