"""The robots: bodies from designs, rewards, controllers that walk, failures that do not crash, pictures."""

from __future__ import annotations

import numpy as np
import pytest

import diffbbo as db
from diffbbo.robots.ant import Ant
from diffbbo.robots.controller import Controller
from diffbbo.robots.dkitty import DKitty
from diffbbo.robots.robot import Unstable, play
from diffbbo.testing import check_task

mujoco = pytest.importorskip("mujoco")
NAMES = ("ant", "dkitty")


def still(observation: np.ndarray) -> np.ndarray:
    return np.zeros(12)


@pytest.fixture(scope="module", params=NAMES)
def task(request: pytest.FixtureRequest) -> db.Task:
    return db.make_task(request.param)


def test_sizes(task) -> None:
    assert task.space.dimension == {"ant": 60, "dkitty": 56}[task.name]
    assert len(task.table) == 25_000 and len(np.unique(task.x, axis=0)) > 24_900
    visible = np.sort(task.table)[:10_000]
    x, y = task.start(0)
    assert np.array_equal(y, visible[2_500:5_000]) and len(x) == 2_500
    task.space.check(task.x)


def test_the_first_stored_design_is_the_default_one(task) -> None:
    low, high = task.robot.bounds()
    grain = (high - low) / 2000 + 1e-12  # half a step of the table's grid
    assert (np.abs(task.x[0] - np.clip(task.robot.default, low, high)) <= grain).all()


def come_again(task, seed: int, count: int) -> int:
    """How many of `count` stored designs have their score again, but for the rounding of a sum.

    Norms and products in a reward differ in their last bit from processor to processor (with fused multiply-add or
    without), and a hundred rewards of up to 40 add up to less than 1e-12 of that. An episode that really goes another
    way differs by far more than 1e-9, since a robot's contacts magnify whatever there is.
    """
    rows = np.random.default_rng(seed).choice(len(task.table), count, replace=False)
    return int((np.abs(task.evaluate(task.x[rows]) - task.table[rows]) < 1e-9).sum())


def test_stored_scores_come_again(task) -> None:
    """A few here, 50 in the slow test below."""
    assert come_again(task, seed=1, count=6) >= 5


@pytest.mark.slow
def test_45_of_50_stored_scores_come_again(task) -> None:
    assert come_again(task, seed=0, count=50) >= 45


def test_the_morphology_matters(task) -> None:
    low, high = np.percentile(task.table, [10, 90])
    assert high - low >= np.ptp(task.table) / 4


def test_the_ant_is_steered() -> None:
    task = db.make_task("ant")
    body = Ant(Ant.default)
    assert play(body, task.controller) >= 250
    assert body.data.qpos[0] >= 5.0  # metres in 5 s
    assert play(Ant(Ant.default), still) == pytest.approx(99.321, abs=0.01)  # 100 for living, less 0.68 for contact


def test_dkitty_is_steered() -> None:
    task, tilts = db.make_task("dkitty"), []
    body = DKitty(DKitty.default)
    assert play(body, task.controller, lambda body: tilts.append(body.upright())) > 0
    assert len(tilts) == 101 and min(tilts) > 0.9  # the whole episode
    assert np.linalg.norm(body.to_goal()) < 1.0


def test_the_default_bodies_are_the_published_ones() -> None:
    kitty = DKitty(DKitty.default)
    assert (kitty.model.nq, kitty.model.nu, kitty.model.opt.timestep) == (18, 12, 0.0025)
    assert kitty.model.body_mass.sum() == pytest.approx(1.834)
    ant = Ant(Ant.default)
    assert (ant.model.nq, ant.model.nu, ant.model.opt.timestep) == (7 + 12, 12, 0.01)
    # Density 5 times the volumes: a ball of 0.25, and capsules of radius 0.08 and the lengths of the twelve limbs.
    ball, cap = 4 / 3 * np.pi * 0.25**3, 4 / 3 * np.pi * 0.08**3
    limbs = sum(4 * (np.pi * 0.08**2 * side * 2**0.5 + cap) for side in (0.2, 0.2, 0.4))
    assert ant.model.body_mass.sum() == pytest.approx(5 * (ball + limbs))


def test_a_step_of_the_ant_is_paid_as_published() -> None:
    body = Ant(Ant.default)
    action = np.full(12, 0.5)
    reward, over = body.step(action)
    contact = 0.0005 * np.square(np.clip(body.data.cfrc_ext, -1, 1)).sum()
    assert reward == pytest.approx(body.data.qpos[0] / 0.05 - 0.5 * 12 * 0.25 - contact + 1)
    assert not over


def test_a_step_of_dkitty_is_paid_as_published() -> None:
    body = DKitty(DKitty.default)
    reward, over = body.step(np.zeros(12))
    distance = np.hypot(body.data.qpos[0], 2 - body.data.qpos[1])
    heading = body.heading()
    assert 0.9 < heading <= 1 and distance > 1.5 and not over
    expected = (body.upright() - 0.9) / 0.1 - 4 * distance + 20 * (heading - 0.9) + 5
    assert reward == pytest.approx(expected)


def test_a_fall_costs_500_and_ends_the_episode() -> None:
    body = DKitty(DKitty.default)
    body.data.qpos[3] = 0.6  # tilted by more than acos(0.9) = 0.45 rad
    reward, over = body.step(np.zeros(12))
    assert over and reward < -480


def test_dkitty_targets_are_capped_at_pi_per_second() -> None:
    body = DKitty(DKitty.default)
    before = body.data.qpos[6:].copy()
    body.step(np.ones(12))
    assert np.abs(body.data.ctrl - before).max() == pytest.approx(0.1 * np.pi)


def test_a_design_that_blows_up_gets_the_failure_score(task, monkeypatch) -> None:
    def explode(self) -> None:
        raise Unstable("the simulation became unstable")

    monkeypatch.setattr(task.robot, "advance", explode)
    assert task.evaluate(task.x[:2]).tolist() == [task.failure] * 2


def test_a_state_that_is_not_finite_is_noticed_and_leaves_no_file(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    body = Ant(Ant.default)
    body.data.qvel[:] = 1e12
    with pytest.raises(Unstable), np.errstate(all="ignore"):
        body.step(np.zeros(12))
    assert not list(tmp_path.iterdir())


def test_extreme_designs_get_a_score(task) -> None:
    low, high = (np.array([v.lower if side else v.upper for v in task.space.variables]) for side in (True, False))
    assert np.isfinite(task.evaluate(np.array([low, high, (low + high) / 2]))).all()


def test_actions_are_rounded_and_within_bounds() -> None:
    rng = np.random.default_rng(0)
    layers = ((rng.normal(size=(4, 3)), np.zeros(3)), (rng.normal(size=(3, 12)), np.zeros(12)))
    controller = Controller(1.0, rng.normal(size=(3, 12)), np.zeros(2), np.ones(2), layers)
    action = controller(np.array([0.3, 1.0]))
    assert (np.abs(action) <= 1).all() and np.array_equal(action, np.round(action, 6))
    again = Controller.from_arrays(controller.to_arrays())
    assert np.array_equal(again(np.array([0.3, 1.0])), action)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda x: np.where(np.arange(x.size) == 3, 1e3, x), "leg1_a"),
        (lambda x: np.where(np.arange(x.size) == 3, np.nan, x), "leg1_a"),
        (lambda x: x[:-1], r"needs \(n, "),
    ],
    ids=["out of range", "NaN", "wrong dimension"],
)
def test_bad_designs_are_refused_by_name(task, change, words) -> None:
    with pytest.raises(db.InputError, match=words):
        task.evaluate(change(task.x[0])[None])


def test_without_the_simulator_the_extra_is_named(monkeypatch) -> None:
    import sys

    task = db.make_task("ant")
    assert len(task.start()[1]) == 2_500  # the data need no simulator
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(db.DiffBBOError, match="mujoco") as raised:
        task.evaluate(task.x[:1])
    assert "diffbbo[robots]" in raised.value.remedy


def test_the_picture_and_the_film(task, tmp_path) -> None:
    task.plot(tmp_path / "task.png")
    assert (tmp_path / "task.png").stat().st_size > 20_000
    with pytest.raises(db.InputError, match=r"\.gif"):
        task.film(tmp_path / "film.mp4")


@pytest.mark.slow
def test_a_film_is_an_animated_gif(task, tmp_path) -> None:
    from PIL import Image

    task.film(tmp_path / "film.gif")
    with Image.open(tmp_path / "film.gif") as film:
        assert film.n_frames > 90


@pytest.mark.slow
def test_conformance(task) -> None:
    check_task(task)


def test_no_body_is_thrown() -> None:
    """Joints begin inside their range. From 0, whatever the range, one random body in a hundred flew 9 m high."""
    task = db.make_task("ant")
    for design in task.space.sample(40, np.random.default_rng(0)):
        heights: list[float] = []
        body = Ant(design)
        assert (np.abs(body.data.qpos[7:] - body.centre) <= body.reach / 2 + 1e-12).all()
        task.score(design, lambda body, heights=heights: heights.append(float(body.data.qpos[2])))
        assert max(heights) < 3.0
