"""superconductor: the recorded data against the published numbers, the forest against scikit-learn, absurd designs."""

from __future__ import annotations

import importlib.util
import math
import pickle
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diffbbo import DiffBBOError, InputError
from diffbbo.tasks import superconductor
from diffbbo.tasks.superconductor import ELEMENTS, LEAF, Forest, Superconductor, possible
from diffbbo.testing import check_task

SCRIPT = Path(__file__).parents[1] / "scripts" / "superconductor_forest.py"


@pytest.fixture(scope="module")
def task() -> Superconductor:
    return Superconductor()


def formula(**atoms: float) -> Any:
    """A composition as a row: formula(H=2, S=1)."""
    row = np.zeros((1, 86))
    for symbol, count in atoms.items():
        row[0, ELEMENTS.index(symbol)] = count
    return row


def rows_of(task: Superconductor, **atoms: float) -> Any:
    """Where exactly that composition is recorded."""
    return np.flatnonzero((task.x == formula(**atoms)).all(axis=1))


# ---- the recorded data -----------------------------------------------------------------------------


def test_the_published_sizes(task: Superconductor) -> None:
    """21,263 rows of 86 numbers, 15,309 distinct; the 80th percentile is 74.0 K with 17,014 rows at or below."""
    assert task.x.shape == (21_263, 86)
    assert len(np.unique(task.x, axis=0)) == 15_309
    assert np.percentile(task.recorded, 80) == 74.0
    assert (task.recorded <= 74.0).sum() == 17_014
    assert (task.recorded.min(), task.recorded.max()) == task.range == (0.00021, 185.0)
    assert task.maximum == task.card().maximum == 185.0


def test_rows_looked_up_in_the_source(task: Superconductor) -> None:
    """The first row; H2S twice; the typing error; an element; the forest's favourite."""
    assert task.recorded[rows_of(task, Ba=0.2, La=1.8, Cu=1, O=4)[0]] == 29 == task.recorded[0]
    assert rows_of(task, H=2, S=1).tolist() == [20_572, 20_573]
    assert task.recorded[[20_572, 20_573]].tolist() == [60, 185]
    assert task.recorded[rows_of(task, Pr=185, Ce=0.15, Cu=1, O=4)].tolist() == [20]
    assert task.recorded[rows_of(task, Nb=1)[0]] == 9.2
    best = rows_of(task, Hg=0.66, Pb=0.34, Ba=2, Ca=1.98, Cu=2.9, O=8.4)
    assert best.tolist() == [3_985] == np.flatnonzero(task.table == task.table.max()).tolist()
    assert task.recorded[3_985] == 143 and task.table[3_985] == pytest.approx(138.265, abs=1e-3)


def test_every_recorded_row_is_inside_the_space(task: Superconductor) -> None:
    task.space.check(task.x)
    assert task.space.names == list(ELEMENTS) and len(ELEMENTS) == 86
    bounds = {variable.name: (variable.lower, variable.upper) for variable in task.space.variables}  # type: ignore[attr-defined]
    assert bounds["Pr"] == (0, 185) and bounds["O"] == (0, 66) and bounds["H"] == (0, 14)
    never = [symbol for symbol, high in zip(ELEMENTS, task.x.max(axis=0), strict=True) if high == 0]
    assert (
        never == ["He", "Ne", "Ar", "Kr", "Xe", "Pm", "Po", "At", "Rn"] == [ELEMENTS[i] for i in superconductor.NEVER]
    )
    assert {bounds[symbol] for symbol in never} == {(0, 1)}


def test_the_start_is_the_second_quarter_of_the_visible_rows(task: Superconductor) -> None:
    """Rows 17,014 // 4 = 4,253 up to 17,014 // 2 = 8,507 by the forest's value: 4,254, with repeated compositions."""
    x, y = task.start(seed=0)
    assert x.shape == (4_254, 86)
    np.testing.assert_array_equal(task.evaluate(x), y)
    visible = np.sort(task.table[task.recorded <= 74.0])
    np.testing.assert_array_equal(y, visible[4_253:8_507])
    assert len(np.unique(x, axis=0)) == 3_064
    np.testing.assert_array_equal(task.start(seed=1)[0], x)  # the same for every seed


def test_it_passes_the_conformance_suite(task: Superconductor) -> None:
    check_task(task)


def test_a_task_travels_as_its_name_and_reads_its_file_there(task: Superconductor) -> None:
    """A message longer than a pipe's 64 KiB would block for ever if the worker died while starting."""
    assert len(pickle.dumps(task)) < 200
    there = pickle.loads(pickle.dumps(task))
    assert there.evaluate(task.x[:5]).tolist() == task.table[:5].tolist()


# ---- the forest ------------------------------------------------------------------------------------


def test_the_oracle_gives_every_stored_value_exactly(task: Superconductor) -> None:
    np.testing.assert_array_equal(task.evaluate(task.x), task.table)


def test_a_value_does_not_depend_on_its_neighbours(task: Superconductor) -> None:
    alone = np.concatenate([task.evaluate(row[None]) for row in task.x[:100]])
    np.testing.assert_array_equal(alone, task.table[:100])
    np.testing.assert_array_equal(task.evaluate(task.x[299::-1]), task.table[299::-1])
    assert task.evaluate(np.empty((0, 86))).shape == (0,)


def test_a_hundred_designs_take_well_under_a_second(task: Superconductor) -> None:
    x = task.space.sample(100, np.random.default_rng(0))
    started = time.process_time()
    task.evaluate(x)
    assert time.process_time() - started < 0.5


def test_the_forest_is_design_benchs_size_and_good(task: Superconductor) -> None:
    """100 trees; at least 0.93 held out; on its own training rows it follows the record still closer."""
    assert len(task._forest._roots) == 100
    by_row, by_composition = task._held_out
    assert 0.93 <= by_composition <= by_row < 1
    assert f"{by_row:.3f}" in task.card().remade and f"{by_composition:.3f}" in task.card().remade
    ranks = [np.argsort(np.argsort(values)) for values in (task.table, task.recorded)]
    assert np.corrcoef(*ranks)[0, 1] > by_row


def test_no_design_can_pass_the_mean_of_the_largest_leaves(task: Superconductor) -> None:
    """151.2 K, as the card says, so the recorded 185 K are out of reach."""
    forest = task._forest
    leaves = np.where(forest._is_leaf, forest._number, 0.0)
    assert np.maximum.reduceat(leaves, forest._roots).mean() == pytest.approx(151.24, abs=0.01)


def test_a_forest_by_hand() -> None:
    """Tree 1 asks x0 <= 1, then x1 <= 2 on the left; tree 2 asks x1 <= 0, twice on the right. Means by hand."""
    forest = Forest(
        np.array([0, 1, LEAF, LEAF, LEAF, 1, LEAF, 0, LEAF, LEAF], dtype=np.uint8),
        np.array([1.0, 2.0, 0.0, 5.0], dtype=np.float32),
        np.array([10.0, 20.0, 30.0, 1.0, 2.0, 3.0], dtype=np.float32),
        np.array([5, 5], dtype=np.int32),
    )
    x = np.array([[1.0, 2.0], [1.0, 2.5], [1.5, 0.0], [6.0, 1.0]])  # a number on a threshold goes left
    assert forest(x).tolist() == [(10 + 2) / 2, (20 + 2) / 2, (30 + 1) / 2, (30 + 3) / 2]


def test_a_tree_of_one_leaf() -> None:
    forest = Forest(np.array([LEAF, LEAF], dtype=np.uint8), np.empty(0, np.float32), np.array([4.0, 8.0], np.float32),
                    np.array([1, 1], dtype=np.int32))  # fmt: skip
    assert forest(np.zeros((3, 86))).tolist() == [6, 6, 6]


def load_script() -> Any:
    pytest.importorskip("sklearn")
    spec = importlib.util.spec_from_file_location("superconductor_forest", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_packed_forest_equals_scikit_learn(task: Superconductor) -> None:
    """Three deep trees on 2,000 rows, asked at recorded designs, at random ones, and with a count on a threshold."""
    script = load_script()
    model = script.fit(task.x[:2_000], task.recorded[:2_000], trees=3)
    packed = Forest.from_arrays(script.pack_forest(model))
    tree = model.estimators_[0].tree_
    splits = np.flatnonzero(tree.feature >= 0)[:1_000]
    border = task.x[: len(splits)].copy()
    border[np.arange(len(splits)), tree.feature[splits]] = tree.threshold[splits]
    x = np.concatenate([task.x[:4_000], task.space.sample(500, np.random.default_rng(0)), border])
    np.testing.assert_allclose(packed(x), model.predict(x), rtol=1e-6)


def test_thresholds_are_rounded_down_to_single_precision() -> None:
    """0.1 is above its neighbour 0.09999999403953552 in single precision and below float32(0.1)."""
    below = load_script().round_down(np.array([0.1, 0.5, -0.1]))
    assert below.dtype == np.float32
    assert below.astype(np.float64).tolist() == [0.09999999403953552, 0.5, -0.10000000149011612]


@pytest.mark.slow
def test_the_stored_forest_is_the_one_the_script_grows(task: Superconductor) -> None:
    sklearn = pytest.importorskip("sklearn")
    script = load_script()
    fitted_with = str(superconductor.load_arrays(superconductor.FILE, superconductor.SHA256)["fitted_with"])
    if sklearn.__version__ != fitted_with:
        pytest.skip(f"grown with scikit-learn {fitted_with}; {sklearn.__version__} may grow other trees")
    model = script.fit(task.x, task.recorded)
    np.testing.assert_allclose(task.table, model.predict(task.x), rtol=1e-6)
    x = task.space.sample(1_000, np.random.default_rng(0))
    np.testing.assert_allclose(task.evaluate(x), model.predict(x), rtol=1e-6)


# ---- physically possible ---------------------------------------------------------------------------

NINE = {"Y": 1.0, "Ba": 2.0, "Cu": 3.0, "O": 7.0, "Ca": 0.5, "Sr": 0.5, "La": 0.1, "Pr": 0.1, "F": 0.1}


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        pytest.param(formula(H=2, S=1), True, id="H2S"),
        pytest.param(formula(Nb=1), True, id="a metal"),
        pytest.param(formula(**NINE), True, id="nine elements"),
        pytest.param(formula(**NINE, Zn=0.01), False, id="ten elements"),
        pytest.param(formula(**NINE, Zn=0.009), True, id="nine, and a trace"),
        pytest.param(formula(**NINE, He=0.009), True, id="nine, and a trace of helium"),
        pytest.param(formula(Mg=1, B=2, He=0.5), False, id="helium"),
        pytest.param(formula(Pm=1), False, id="promethium"),
        pytest.param(formula(H=2, S=-1), False, id="minus one atom"),
        pytest.param(np.zeros((1, 86)), False, id="nothing"),
        pytest.param(np.full((1, 86), 0.009), False, id="traces only"),
        pytest.param(np.ones((1, 86)), False, id="one of everything"),
    ],
)
def test_possible_by_hand(row: Any, verdict: bool) -> None:
    assert possible(row).tolist() == [verdict]


def test_all_recorded_compositions_are_possible(task: Superconductor) -> None:
    """The rule is drawn from them: one to nine elements, as recorded."""
    assert (task.x > 0).sum(axis=1).min() == 1 and (task.x > 0).sum(axis=1).max() == superconductor.MOST_ELEMENTS
    assert task.facts(task.x) == {"possible": 1.0}


def test_facts_are_the_share_in_a_batch(task: Superconductor) -> None:
    """One of four is possible; a uniform draw from the space names all 86 elements and never is."""
    batch = np.concatenate([formula(H=2, S=1), np.ones((1, 86)), formula(Xe=1), np.zeros((1, 86))])
    assert task.facts(batch) == {"possible": 0.25}
    assert task.facts(task.space.dicts(batch)) == {"possible": 0.25}  # type: ignore[arg-type]
    assert task.facts(task.space.sample(50, np.random.default_rng(0))) == {"possible": 0.0}
    assert task.facts(np.empty((0, 86))) == {}


# ---- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "told"),
    [
        pytest.param(formula(H=-0.1), "Row 1, column 'H': -0.1 ", id="minus a tenth of hydrogen"),
        pytest.param(formula(Pr=186), "column 'Pr': 186 is not a number between 0 and 185", id="above the bound"),
        pytest.param(formula(Xe=1.5), "column 'Xe': 1.5 is not a number between 0 and 1", id="xenon"),
        pytest.param(formula(Cu=math.nan), "column 'Cu': nan", id="NaN"),
        pytest.param(formula(Cu=math.inf), "column 'Cu': inf", id="infinity"),
        pytest.param(np.zeros((1, 85)), "(n, 86)", id="85 numbers"),
        pytest.param([{"H": 2}], "'He'", id="elements left out"),
    ],
)
def test_the_oracle_refuses_what_is_outside(task: Superconductor, x: Any, told: str) -> None:
    with pytest.raises(InputError) as caught:
        task.evaluate(x)
    assert told in str(caught.value)


def test_a_damaged_file_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = superconductor.SHA256
    monkeypatch.setattr(superconductor, "SHA256", "0" * 64)
    with pytest.raises(DiffBBOError, match=rf"superconductor\.npz is damaged.*{right}, not {'0' * 64}.*Reinstall"):
        Superconductor()


def test_the_card_says_what_is_there(task: Superconductor) -> None:
    card = task.card()
    assert (card.size, card.dimension, card.start) == (None, 86, 4_254)
    assert f"{task.table.max():.1f} K" in card.remade and "138.3 K" in card.remade
