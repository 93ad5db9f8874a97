"""The functions in closed form, against numbers worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from diffbbo import InputError, Real, Space, Task, make_task
from diffbbo.tasks.ehrlich import Ehrlich
from diffbbo.tasks.synthetic import Hartmann6, Synthetic
from diffbbo.testing import check_task

ANY = ("ackley", "rastrigin", "levy", "rosenbrock")
NAMES = (
    "branin",
    "hartmann6",
    "ackley-mixed",
    "ehrlich-32",
    "levy-20:shift=3",
    "rosenbrock-2:shift=1",
    *(f"{name}-{d}" for name in ANY for d in (2, 20, 200)),
)


@pytest.fixture(params=NAMES)
def task(request: pytest.FixtureRequest) -> Any:
    return make_task(request.param)


# ---- values ----------------------------------------------------------------------------------------


def test_the_optimum_is_where_it_is_said_to_be(task: Synthetic) -> None:
    assert task.evaluate(task.optimum[None])[0] == pytest.approx(task.maximum, abs=1e-9)


def test_nothing_is_better_than_the_optimum(task: Synthetic, rng: np.random.Generator) -> None:
    """Neither anywhere, nor close to it."""
    near = task.space.snap(task.optimum + 1e-3 * rng.standard_normal((1_000, task.space.dimension)))
    y = task.evaluate(np.concatenate([task.sample(1_000, rng), near]))
    assert np.nanmin(y) >= task.maximum if task.minimize else np.nanmax(y) <= task.maximum


def test_a_shift_moves_the_function_and_nothing_else() -> None:
    plain, moved, other = (make_task(f"ackley-5{shift}") for shift in ("", ":shift=1", ":shift=2"))
    x = np.random.default_rng(0).uniform(-2, 2, size=(10, 5))
    assert np.allclose(moved.evaluate(moved.optimum + x), plain.evaluate(x))
    assert moved.name == "ackley-5:shift=1" and not np.allclose(moved.optimum, other.optimum)
    assert np.abs(moved.optimum).max() <= 0.8 * 32.768


def test_the_known_minima() -> None:
    assert make_task("branin").maximum == pytest.approx(0.39788735772973816, abs=1e-15)
    assert make_task("hartmann6").maximum == pytest.approx(-3.32237, abs=5e-6)
    assert {make_task(name).maximum for name in (*ANY, "ackley-mixed")} == {0.0}


@pytest.mark.parametrize(
    ("name", "coordinate", "by_hand"),
    [
        # rms 1 and every cosine 1, so only the first term is left
        pytest.param("ackley", 1.0, lambda d: 20 * (1 - math.exp(-0.2)), id="ackley(1, ...)"),
        # rms 1/2 and every cosine -1
        pytest.param("ackley", 0.5, lambda d: 20 * (1 - math.exp(-0.1)) + math.e - 1 / math.e, id="ackley(1/2, ...)"),
        pytest.param("rastrigin", 1.0, lambda d: d, id="rastrigin(1, ...)"),
        pytest.param("rastrigin", 0.5, lambda d: 20.25 * d, id="rastrigin(1/2, ...)"),
        # w = 2: 0 + (d - 1)(1 + 10 sin(2 pi + 1)^2) + 1
        pytest.param("levy", 5.0, lambda d: (d - 1) * (1 + 10 * math.sin(1) ** 2) + 1, id="levy(5, ...)"),
        # w = 3/2: 1 + (d - 1)/4 (1 + 10 sin(3 pi / 2 + 1)^2) + 1/4, and sin(3 pi / 2 + 1) = -cos 1
        pytest.param("levy", 3.0, lambda d: 1.25 + (d - 1) / 4 * (1 + 10 * math.cos(1) ** 2), id="levy(3, ...)"),
        pytest.param("rosenbrock", 0.0, lambda d: d - 1, id="rosenbrock(0, ...)"),
        pytest.param("rosenbrock", 2.0, lambda d: 401 * (d - 1), id="rosenbrock(2, ...)"),
    ],
)
@pytest.mark.parametrize("d", [2, 3, 60])
def test_points_on_the_diagonal(name: str, coordinate: float, by_hand: Any, d: int) -> None:
    assert make_task(name, dimension=d).evaluate(np.full((1, d), coordinate))[0] == pytest.approx(by_hand(d), rel=1e-12)


def test_one_dimension() -> None:
    """Ackley, Rastrigin and Levy exist on a line: at 1, 1 and 5 they are 20 (1 - e^-0.2), 1 and 1."""
    values = [make_task(f"{name}-1").evaluate(np.array([[at]]))[0] for name, at in zip(ANY, (1, 1, 5), strict=False)]
    assert values == pytest.approx([20 * (1 - math.exp(-0.2)), 1, 1])


def test_branin_by_hand() -> None:
    """Its three minima, and (0, 0): 6^2 + 10 (1 - 1 / (8 pi)) + 10."""
    x = np.array([[-math.pi, 12.275], [math.pi, 2.275], [3 * math.pi, 2.475], [0, 0]])
    expected = [10 / (8 * math.pi)] * 3 + [56 - 10 / (8 * math.pi)]
    assert make_task("branin").evaluate(x) == pytest.approx(expected, abs=1e-12)


def test_hartmann_is_the_sum_of_four_hills(rng: np.random.Generator) -> None:
    x = rng.random((20, 6))
    for row, value in zip(x, make_task("hartmann6").evaluate(x), strict=True):
        hills = [
            height * math.exp(-sum(a * (z - p) ** 2 for a, z, p in zip(sharp, row, centre, strict=True)))
            for height, sharp, centre in zip(Hartmann6.HEIGHT, Hartmann6.SHARPNESS, Hartmann6.CENTRE, strict=True)
        ]
        assert value == pytest.approx(-sum(hills), rel=1e-12)


def test_mixed_ackley_by_hand() -> None:
    """All 50 switches on and all numbers 0: rms sqrt(50 / 53), every cosine 1."""
    task = make_task("ackley-mixed")
    design = {v.name: 1 if v.type == "categorical" else 0.0 for v in task.space.variables}
    assert [v.type for v in task.space.variables] == ["categorical"] * 50 + ["real"] * 3
    (value,) = task.evaluate(task.space.rows(design))
    assert value == pytest.approx(20 * (1 - math.exp(-0.2 * math.sqrt(50 / 53))), rel=1e-12)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("ackley", -32.768, 32.768), ("rastrigin", -5.12, 5.12), ("levy", -10, 10), ("rosenbrock", -5, 10)],
)
def test_the_usual_bounds(name: str, low: float, high: float) -> None:
    task = make_task(name)
    assert task.space == Space([Real(f"x{i}", low, high) for i in range(1, 11)])
    with pytest.raises(InputError, match="Row 1, column 'x1'"):
        task.evaluate(np.full((1, 10), high + 0.1))


# ---- start data, scale, names ----------------------------------------------------------------------


def test_the_start_is_worse_than_the_median_but_not_the_worst(task: Synthetic) -> None:
    """Of 2,000 values, 500 are no better than all of the start data and 1,000 no worse; the seed draws the sample."""
    x, y = task.start(3)
    sign = -1 if task.minimize else 1
    values = sign * task.evaluate(task.sample(2_000, np.random.default_rng(3)))
    assert len(y) == 500
    assert (values <= sign * y[0]).sum() >= 500 and (values >= sign * y[-1]).sum() >= 1_000
    np.testing.assert_array_equal(np.sort(values)[500:1_000], sign * y)
    assert not np.array_equal(task.start(4)[0], x)


def test_from_nothing(task: Synthetic) -> None:
    cold = make_task(task.name, data=0)
    assert cold.start()[0].shape == (0, task.space.dimension)
    assert cold.card().start == 0


def test_the_scale_ends_at_the_optimum(task: Synthetic, rng: np.random.Generator) -> None:
    """0 for the worst of a sample, so that hardly any design is below, and 1 for the optimum."""
    assert task.range is not None and task.range[1] == task.maximum
    scaled = task.normalise(task.evaluate(task.sample(500, rng)))
    assert scaled.min() > -0.25 and scaled.max() < 1


def test_a_name_is_enough_to_make_the_same_task() -> None:
    odd = Ehrlich(12, vocabulary=5, motifs=2, motif_length=3, quantisation=2, banned=2, instance=7, data=40)
    for made in (make_task("ackley", dimension=3), make_task("branin", data=40), make_task("ehrlich-32"), odd):
        again = make_task(made.name)
        assert again.name == made.name and again.space == made.space
        assert all(np.array_equal(a, b) for a, b in zip(again.start(1), made.start(1), strict=True))
    assert odd.name == "ehrlich-12:vocabulary=5,motifs=2,motif_length=3,quantisation=2,banned=2,instance=7,data=40"
    assert [make_task(name).name for name in ("levy", "levy-60:data=0", "ehrlich", "hartmann6")] == [
        "levy-10", "levy-60:data=0", "ehrlich-32", "hartmann6"
    ]  # fmt: skip


@pytest.mark.parametrize(
    "name",
    ["ackley-200", "rosenbrock-2", "rastrigin-1:data=0", "levy-60:data=3", "ehrlich-64:banned=1", "ehrlich-32:data=0",
     "ehrlich-9:vocabulary=2,motifs=1", "ehrlich-16:vocabulary=62,quantisation=1"],
)  # fmt: skip
def test_other_sizes_behave_too(name: str) -> None:
    check_task(name, travels=False)


# ---- Ehrlich functions -----------------------------------------------------------------------------


def words(task: Ehrlich, *texts: str) -> Any:
    return task.space.rows([{"word": text} for text in texts])


def by_hand(motifs: list[list[int]], offsets: list[list[int]], length: int = 8, **settings: Any) -> Ehrlich:
    """A function with these motifs, and only D after A banned."""
    task = Ehrlich(length, vocabulary=4, motifs=len(motifs), motif_length=len(motifs[0]), banned=0, **settings)
    task.motifs, task.offsets = np.array(motifs), np.array(offsets)
    task.transition[0, 3] = 0
    return task


@pytest.mark.parametrize(
    ("quantisation", "values"), [(4, [0, 1 / 4, 1 / 2, 3 / 4, 1]), (2, [0, 0, 1 / 2, 1 / 2, 1]),
                                 (3, [0, 0, 1 / 3, 2 / 3, 1]), (1, [0, 0, 0, 0, 1])],
)  # fmt: skip
def test_quantisation_by_hand(quantisation: int, values: list[float]) -> None:
    """floor(q m / 4) / q for m = 0 to 4 letters of the motif BCDA in their places."""
    task = by_hand([[1, 2, 3, 0]], [[0, 1, 2, 3]], length=4, quantisation=quantisation)
    assert task.evaluate(words(task, "CBBB", "BBBB", "BCBB", "BCDB", "BCDA")).tolist() == values


def test_the_best_place_counts() -> None:
    """BCDA begins at the first, third and fifth letter; BC.. begins at the fifth; in the last word only A fits."""
    task = by_hand([[1, 2, 3, 0]], [[0, 1, 2, 3]])
    assert task.evaluate(words(task, "BCDABBBB", "CCBCDACC", "BBBBBCDA", "AAAABCCC", "CAAAAAAA")).tolist() == [
        1, 1, 1, 0.5, 0.25
    ]  # fmt: skip


def test_spaced_motifs_multiply() -> None:
    """Motif A.B (one letter between) and C..D; each letter found counts a half."""
    task = by_hand([[0, 1], [2, 3]], [[0, 2], [0, 3]])
    both = words(task, "ACBCBBDB", "ACBBBBBB", "ABCCCCCC", "BBBBBBBB")
    # A.B and C..D; A.B and the C; A or B, and the C; the B, and neither C nor D
    assert task.evaluate(both).tolist() == [1.0, 0.5, 0.25, 0.0]


def test_a_banned_pair_is_a_failed_experiment() -> None:
    task = by_hand([[0, 1], [2, 3]], [[0, 2], [0, 3]])
    assert np.isnan(task.evaluate(words(task, "ACBCBADB", "ADBBBBBB"))).all()
    assert np.isfinite(task.evaluate(words(task, "DAAAAAAA"))).all()  # the other way round is allowed


@pytest.mark.parametrize("instance", range(5))
def test_every_word_of_a_tiny_instance(instance: int) -> None:
    """All 4^8 words: the best is 1, and as many can be made as the allowed pairs have walks of 7 steps."""
    task = Ehrlich(8, vocabulary=4, motifs=2, motif_length=3, instance=instance)
    y = task.evaluate(task.space.unrank(np.arange(4**8)))
    assert np.nanmax(y) == 1.0 == task.evaluate(task.optimum[None])[0]
    assert np.nanmin(y) >= 0
    allowed = (task.transition > 0).astype(int)
    assert np.isfinite(y).sum() == np.linalg.matrix_power(allowed, 7).sum()
    assert set(np.unique(y[np.isfinite(y)])) <= {a * b / 9 for a in range(4) for b in range(4)}


@pytest.mark.parametrize("settings", [{}, {"dimension": 16}, {"vocabulary": 3, "banned": 1}, {"vocabulary": 2},
                                      {"dimension": 200, "motifs": 8, "motif_length": 8, "vocabulary": 32},
                                      {"vocabulary": 62, "banned": 60}])  # fmt: skip
def test_every_instance_can_be_solved(settings: dict[str, int], rng: np.random.Generator) -> None:
    for instance in range(10):
        task = Ehrlich(instance=instance, **settings)
        assert task.evaluate(task.optimum[None]).tolist() == [1.0]
        assert np.isfinite(task.evaluate(task.sample(200, rng))).all()
        allowed = task.transition > 0
        assert allowed.diagonal().all() and ((~allowed).sum(axis=1) == task.banned).all()
        assert (np.linalg.matrix_power(allowed.astype(float), len(allowed)) > 0).all()  # from each letter to each
        assert (task.offsets[:, 0] == 0).all() and (np.diff(task.offsets) > 0).all()
        assert (task.motifs[:, :-1] != task.motifs[:, 1:]).all()


def test_instances_differ() -> None:
    first, second = Ehrlich(), Ehrlich(instance=1)
    assert not np.array_equal(first.motifs, second.motifs) and not np.array_equal(first.transition, second.transition)


# ---- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "settings", "told"),
    [
        pytest.param("ackley", {"dimension": 0}, "dimension = 0 is not a whole number of at least 1", id="none"),
        pytest.param("rosenbrock-1", {}, "dimension = 1 is not a whole number of at least 2", id="no valley"),
        pytest.param("levy", {"dimension": 2.5}, "dimension = 2.5", id="half"),
        pytest.param("levy", {"dimension": True}, "dimension = True", id="bool"),
        pytest.param("branin", {"data": -1}, "data = -1", id="data"),
        pytest.param("ackley-mixed:data=few", {}, "data = 'few'", id="data as text"),
        pytest.param("ehrlich-15", {}, "4 motifs of 4 letters do not fit into a word of dimension = 15", id="short"),
        pytest.param("ehrlich", {"vocabulary": 63}, "vocabulary = 63 is not a whole number from 2 to 62", id="letters"),
        pytest.param("ehrlich", {"quantisation": 5}, "quantisation = 5 is not a whole number from 1 to 4", id="steps"),
        pytest.param("ehrlich", {"banned": 19}, "banned = 19 is not a whole number from 0 to 18", id="dead ends"),
        pytest.param("ehrlich", {"motif_length": 1}, "motif_length = 1", id="a motif of one letter"),
        pytest.param("ehrlich", {"motifs": 0}, "motifs = 0", id="no motif"),
        pytest.param("ehrlich", {"instance": -1}, "instance = -1", id="instance"),
    ],
)
def test_settings_that_make_no_task(name: str, settings: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as caught:
        make_task(name, **settings)
    assert told in str(caught.value)
    assert caught.value.remedy


# ---- the conformance suite notices -----------------------------------------------------------------


class Line(Synthetic):
    """|x| on a line, to be broken."""

    name = ""

    def __init__(self, data: int = 40) -> None:
        super().__init__(Space((Real("x", -1, 1),)), np.zeros(1), 0.0, data=data)

    def value(self, x: Any) -> Any:
        return np.abs(x[:, 0])


def broken(**attributes: Any) -> Task:
    task = Line()
    for key, value in attributes.items():
        setattr(task, key, value)
    return task


def test_the_suite_passes_what_is_right() -> None:
    check_task(broken(), travels=False)


@pytest.mark.parametrize(
    ("attributes", "told"),
    [
        pytest.param({"maximum": 0.9}, "better than the known best, 0.9", id="a start below the known minimum"),
        pytest.param({"range": (0.0, 1.0)}, "the first must be the worse value", id="a range upside down"),
        pytest.param({"evaluate": lambda x: np.full(len(x), np.inf)}, "value depends|never infinite", id="infinite"),
        pytest.param({"evaluate": lambda x: np.full(len(x), np.nan)}, "disagrees with the start", id="always failing"),
    ],
)
def test_the_suite_notices(attributes: dict[str, Any], told: str) -> None:
    with pytest.raises(AssertionError, match=told):
        check_task(broken(**attributes), travels=False)
