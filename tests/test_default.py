"""The default: who proposes, what is recorded, and that it goes on where the data say it stopped."""

from __future__ import annotations

import numpy as np
import pytest

from diffbbo import DiffBBO, EnsembleConfig, InputError, Integer, Real, Sequence, Space, make_task
from diffbbo.default import PARTS
from diffbbo.proposers import FEW, PICK, PICKED, USUAL, _in_turns, usual_shares
from diffbbo.types import row_keys
from diffbbo.variation import apart, changes, scaled, unscaled

SQUARE = Space((Real("a", 0, 1), Real("b", 0, 1)))
CUBE = Space(tuple(Real(f"x{i}", 0, 1) for i in range(12)))
MIXED = Space((Real("t", 1e-3, 1e3, "log"), Integer("n", 1, 9), Sequence("dna", 4, "ACGT")))


def told(space: Space, config: EnsembleConfig, rows: int = 80, fixed: int = 0, **settings: object) -> DiffBBO:
    """Told of random designs, of which the first number of the first `fixed` is the same."""
    optimizer = DiffBBO(space, seed=1, config=config, device="cpu", **settings)  # type: ignore[arg-type]
    x = space.sample(rows, np.random.default_rng(0))
    x[:fixed, 0] = x[0, 0]
    optimizer.tell(x, value(space, x))
    return optimizer


def value(space: Space, x: np.ndarray) -> np.ndarray:
    return -np.asarray(((scaled(space, x) - 0.7) ** 2).sum(axis=1))


@pytest.mark.parametrize("space", [CUBE, MIXED], ids=["numbers", "mixed"])
def test_every_proposer_gets_its_share(tiny: EnsembleConfig, space: Space) -> None:
    info = told(space, tiny, without=("picks",)).ask(20).info
    assert info["shares"] == USUAL and sum(info["asked"].values()) == 20
    assert info["asked"] == {arm: round(20 * share) for arm, share in USUAL.items()}
    assert {"weight", "target", "epistemic", "skill", "step", "train_s", "acquire_s"} <= set(info)


def test_success_moves_the_shares(tiny: EnsembleConfig) -> None:
    """Of a batch of ten, place 0 is vary's (the largest share), as seven are; the others have one each. If the first
    alone is good, it is the one find: 0.1, 0.1, 0.1 and 0.7 were expected. With one more for everybody, usual shares
    times squared ratios are 0.15 / 1.21, 0.1 / 1.21, 0.05 / 1.21 and 0.7 x 4 / 2.89: 0.9689 of 1.2168 is vary's."""
    optimizer = told(SQUARE, tiny, without=("picks",))
    batch = optimizer.ask(10)
    assert batch.info["asked"] == {"inverse": 1, "climb": 1, "leap": 1, "vary": 7}
    optimizer.tell(batch, [5.0] + [-9.0] * 9)
    shares = optimizer.ask(10).info["shares"]
    assert shares["vary"] == pytest.approx(0.9689 / 1.2168, abs=1e-4)
    assert sum(shares.values()) == pytest.approx(1.0, abs=1e-3)


def test_designs_are_picked_as_long_as_few_are_known(tiny: EnsembleConfig) -> None:
    """PICKED of a batch up to half of FEW rows, half of it at three quarters, nothing from FEW on; the rest is shared
    as ever."""
    arms = (*USUAL, PICK)
    rows = np.array([0, FEW // 2, 3 * FEW // 4, FEW, 10 * FEW])
    assert usual_shares(arms, rows)[:, -1] == pytest.approx([PICKED, PICKED, PICKED / 2, 0, 0])
    assert usual_shares(arms, rows)[-1, :-1].tolist() == list(USUAL.values())
    assert usual_shares(arms, rows).sum(axis=1) == pytest.approx([1.0] * 5)
    assert usual_shares(tuple(USUAL), rows).tolist() == [list(USUAL.values())] * 5
    floored = [max(0.03, share * (1 - PICKED)) for share in USUAL.values()] + [PICKED]
    info = told(MIXED, tiny, rows=80).ask(20).info
    assert list(info["shares"].values()) == pytest.approx([share / sum(floored) for share in floored], abs=1e-4)
    assert info["asked"][PICK] in (15, 16) and sum(info["asked"].values()) == 20  # 15.5 of 20
    many = told(MIXED, tiny, rows=FEW).ask(20).info
    assert many["shares"] == USUAL and len(many["skill"]) == 3


def test_what_is_picked_is_new_and_keeps_its_member(tiny: EnsembleConfig) -> None:
    """With the inverse model alone to pick from, every design but those that variation fills in is one of its draws."""
    optimizer = told(MIXED, tiny, without=only("inverse", "vary"))
    batch = optimizer.ask(40)
    known = set(row_keys(optimizer.data.x))
    assert not known & set(row_keys(batch.x)) and len(set(row_keys(batch.x))) == 40
    assert (batch.member >= 0).sum() > 10


def only(*arms: str) -> tuple[str, ...]:
    """What must be left out so that only these proposers stay."""
    return tuple(arm for arm in USUAL if arm not in arms)


@pytest.mark.parametrize("arm", USUAL)
def test_each_proposer_alone_fills_a_batch(tiny: EnsembleConfig, arm: str) -> None:
    batch = told(MIXED, tiny, without=only(arm)).ask(12)
    assert len(set(row_keys(batch.x))) == 12
    MIXED.check(batch.x)


def test_inverse_alone_is_algorithm_1(tiny: EnsembleConfig) -> None:
    info = told(SQUARE, tiny, without=only("inverse")).ask(5).info
    assert "shares" not in info and {"weight", "candidates"} <= set(info)


def test_members_are_recorded_for_what_the_inverse_model_drew(tiny: EnsembleConfig) -> None:
    """Seven or eight of 50 places are the inverse model's; one in five of its draws may be known or too near."""
    member = told(SQUARE, tiny, without=("picks",)).ask(50).member
    assert (member >= 0).sum() >= 6 and (member < tiny.members).all() and (member == -1).sum() >= 20


@pytest.mark.parametrize(("without", "why"), [(tuple(USUAL), "leaves no proposer"), (("oracle",), "unknown 'oracle'")])
def test_parts_that_cannot_be_left_out(without: tuple[str, ...], why: str) -> None:
    with pytest.raises(InputError, match=f"{why}.*Leave out some of inverse, climb, leap, vary, shares"):
        DiffBBO(SQUARE, without=without)


@pytest.mark.parametrize("part", [part for part in PARTS if part != "failures"])  # these are in test_failures.py
def test_a_part_left_out_makes_a_difference_and_is_recorded(tiny: EnsembleConfig, part: str) -> None:
    both = () if part == "picks" else ("picks",)
    whole, less = told(SQUARE, tiny, fixed=60, without=both), told(SQUARE, tiny, fixed=60, without=(part, *both))
    assert less.settings()["without"] == [part, *both]
    for optimizer in (whole, less):
        optimizer.tell(optimizer.ask(20), np.linspace(0.0, 1.0, 20))
    assert not np.array_equal(whole.ask(20).x, less.ask(20).x)
    if part == "shares by success":
        assert less.ask(20).info["shares"] == USUAL != whole.ask(20).info["shares"]


def test_a_first_batch_is_half_drawn_to_the_middle(tiny: EnsembleConfig) -> None:
    """Uniform: |u - 1/2| has the mean 1/4 in every column. Half of the designs keep a uniform part of it, 1/8 on
    average, so 3/16 in all (standard error below 0.004 over 2,400 numbers). Letters stay uniform."""
    assert np.abs(DiffBBO(CUBE, config=tiny).ask(200).x - 0.5).mean() == pytest.approx(3 / 16, abs=0.012)
    letters = DiffBBO(MIXED, config=tiny).ask(200).x[:, 2:]
    assert [(letters == k).mean() for k in range(4)] == pytest.approx([0.25] * 4, abs=0.06)


def test_a_batch_keeps_apart(tiny: EnsembleConfig) -> None:
    """Any two designs differ in a letter, or by a step's worth of their numbers, summed: half of what 40 designs that
    fill a square are apart, 0.5 / sqrt(40) = 0.079 of a range, which is less than the first step."""
    batch = told(MIXED, tiny).ask(40)
    u = scaled(MIXED, batch.x)
    nearest = [np.sort(changes(MIXED, u, row, 0.5 / np.sqrt(40)))[1] for row in u]  # the first is itself
    assert min(nearest) >= 1.0


def test_apart_and_the_unit_scale() -> None:
    x = np.array([[1.0, 5, 0, 0, 0, 0], [1.0, 5, 0, 0, 0, 1], [1.001, 5, 0, 0, 0, 0], [1e3, 5, 0, 0, 0, 0]])
    assert apart(MIXED, x, 10, 0.1).tolist() == [0, 1, 3]  # 1.001 is next to 1; 1e3 is half of the range away
    assert np.allclose(unscaled(MIXED, scaled(MIXED, x)), x)
    assert scaled(MIXED, x)[0].tolist() == pytest.approx([0.5, 0.5, 0, 0, 0, 0])


def test_it_finds_the_top_of_a_hill(tiny: EnsembleConfig) -> None:
    """Four rounds of 20 on a quadratic in ten dimensions. A uniform design comes within sqrt(0.15) of the top with
    probability below 2e-4, the volume of that ball, so one of the 120 told here with less than 2.4 %."""
    space = Space(tuple(Real(f"x{i}", 0, 1) for i in range(10)))
    optimizer = DiffBBO(space, seed=0, config=tiny, device="cpu")
    x = space.sample(40, np.random.default_rng(0))
    optimizer.tell(x, value(space, x))
    for _ in range(4):
        batch = optimizer.ask(20)
        optimizer.tell(batch, value(space, batch.x))
    assert optimizer.best is not None and optimizer.best.value > -0.15


def test_a_leap_goes_where_no_design_has_been(tiny: EnsembleConfig) -> None:
    """The data lie in [0, 0.3]^6 of a slope that rises everywhere; a climb from its best design reaches 0.4 further."""
    space = Space(tuple(Real(f"x{i}", 0, 1) for i in range(6)))
    optimizer = DiffBBO(space, seed=0, config=tiny, device="cpu", without=only("leap"))
    x = 0.3 * space.sample(100, np.random.default_rng(0))
    optimizer.tell(x, x.sum(axis=1))
    assert optimizer.ask(20).x.sum(axis=1).max() > 4.0  # a uniform design reaches it with less than 8 %


def test_what_most_designs_lack_most_proposals_lack(tiny: EnsembleConfig) -> None:
    """Mixtures of 3 of 30 components: a model that moves every number would put in all 30. Children may add one or two
    columns to what two parents have, 6 or 7 components; without the rule half of the draws alone have more."""
    space = Space(tuple(Real(f"x{i}", 0, 1) for i in range(30)))
    rng = np.random.default_rng(0)
    x = np.where(rng.random((200, 30)).argsort(axis=1) < 3, rng.random((200, 30)), 0.0)
    components = {}
    for without in ((), ("usual values",)):
        optimizer = DiffBBO(space, seed=0, config=tiny, device="cpu", without=without)
        optimizer.tell(x, x[:, :10].sum(axis=1))
        components[without] = (optimizer.ask(100).x > 0).sum(axis=1)
    assert np.quantile(components[()], 0.9) <= 8 < 15 < np.quantile(components["usual values",], 0.9)


def test_turns_take_the_first_of_every_group_first() -> None:
    order = _in_turns(np.array([1, 0, 0, 2, 1, 0]), np.random.default_rng(0))
    assert sorted(order[:3]) == [0, 1, 3] and sorted(order[3:5]) == [2, 4] and order[5] == 5


@pytest.mark.slow
def test_on_a_real_task_it_beats_random_search() -> None:
    """TFBind8, five rounds of 100: random search has 0.97 on average."""
    task = make_task("tfbind8")
    optimizer = DiffBBO(task.space, seed=0, device="cpu")
    optimizer.tell(*task.start(0))
    for _ in range(5):
        batch = optimizer.ask(100)
        optimizer.tell(batch, task.evaluate(batch.x))
    assert optimizer.best is not None and optimizer.best.value > 0.98
