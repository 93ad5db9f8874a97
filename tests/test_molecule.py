"""The molecule tasks: the table, the surrogate, the decoder, docking for real, and what goes wrong."""

from __future__ import annotations

import lzma
import math
import shutil
import sys

import numpy as np
import pytest

import diffbbo as db
from diffbbo import assets
from diffbbo.chemistry import decoder, docking
from diffbbo.tasks import molecule
from diffbbo.testing import check_task

chem = pytest.importorskip("rdkit.Chem")
pytest.importorskip("selfies")
docks = pytest.mark.skipif(shutil.which("autodock4") is None, reason="the program autodock4 is not installed")


@pytest.fixture(scope="module")
def task() -> db.Task:
    return db.make_task("molecule")


def test_sizes(task) -> None:
    assert task.space.dimension == 32
    n = len(task.table)
    assert task.x.shape == (n, 32) and len(task.start()[1]) == n // 2 - n // 4
    assert task.docked.max() == 1.0 and task.docked.min() >= 0.0
    assert task.table.min() > 0 and task.table.max() <= 1


def test_scores_are_energies_over_the_best() -> None:
    assert molecule.scores(np.array([-8.0, -4.0, 0.0, 3.0]), -8.0).tolist() == [1.0, 0.5, 0.0, 0.0]
    assert np.isnan(molecule.scores(np.array([math.nan]), -8.0)).all()


def test_the_surrogate_is_the_network_of_the_file(task) -> None:
    """Layer by layer, written out for one design."""
    a, x = task.arrays, task.x[0]
    for k in (0, 1):
        x = x @ a[f"weight{k}"].astype(float) + a[f"bias{k}"]
        x = x / (1 + np.exp(-x))
    value = 1 / (1 + np.exp(-(x @ a["weight2"].astype(float) + a["bias2"])))
    assert task.evaluate(task.x[:1])[0] == pytest.approx(value[0], abs=1e-7)


def test_the_surrogate_follows_docking(task) -> None:
    """It was fitted to these rows, so it must do better here than on the held-out rows of the card."""
    ranks = [np.argsort(np.argsort(values)) for values in (task.table, task.docked)]
    assert np.corrcoef(*ranks)[0, 1] > task.arrays["held_out"][0] > 0
    assert f"{task.arrays['held_out'][0]:.2f}" in task.card().remade


def test_conformance(task) -> None:
    check_task(task)


def test_the_table_names_the_molecules_that_the_decoder_writes(task) -> None:
    names = lzma.decompress(task.arrays["smiles"].tobytes()).decode().split("\n")
    rows = np.arange(0, len(task.table), len(task.table) // 20)
    assert task.smiles(task.x[rows]) == [names[k] for k in task.arrays["molecule"][rows]]


def test_a_molecule_does_not_depend_on_its_batch(task) -> None:
    together = task.smiles(task.x[:8])
    assert [task.smiles(row[None])[0] for row in task.x[:8]] == together
    assert all(chem.MolFromSmiles(text) is not None for text in together)


def test_facts_count_the_usual_designs(task) -> None:
    near, far = np.zeros(32), np.full(32, 2.0)  # of lengths 0 and 11.3
    assert task.facts(np.array([near, near, near, far])) == {"usual": 0.75}
    assert task.facts(task.x)["usual"] > 0.99


def test_the_picture(task, tmp_path) -> None:
    task.plot(tmp_path / "molecule.png")
    assert (tmp_path / "molecule.png").stat().st_size > 20_000


# ---- docking ---------------------------------------------------------------------------------------------

LOG = """
DOCKED: USER    Estimated Free Energy of Binding    =  -6.25 kcal/mol  [=(1)+(2)+(3)-(4)]
DOCKED: USER    Estimated Free Energy of Binding    =  -7.10 kcal/mol  [=(1)+(2)+(3)-(4)]
DOCKED: USER    Estimated Free Energy of Binding    = ******* kcal/mol  [=(1)+(2)+(3)-(4)]
"""


def test_the_best_energy_of_a_log() -> None:
    assert docking.best_energy(LOG) == -7.10
    assert math.isnan(docking.best_energy("nothing"))


def test_parameters_hold_the_protocol() -> None:
    pdbqt = docking.prepare("CCO")
    assert pdbqt is not None
    text = docking.parameters(pdbqt, docking.Protocol(runs=3, evaluations=1234, seed=9))
    assert "ga_run 3\n" in text and "ga_num_evals 1234\n" in text and "seed 9 9\n" in text
    assert "ligand_types C HD OA\n" in text


@pytest.mark.parametrize("smiles", ["", "not a molecule", "CC.CC", "[Si](C)(C)(C)C"], ids=repr)
def test_what_cannot_be_built_is_none(smiles: str) -> None:
    assert docking.prepare(smiles) is None  # silicon has no grid map


def test_a_bad_protocol_is_refused() -> None:
    with pytest.raises(db.InputError, match="runs = 0"):
        docking.Protocol(runs=0)


def test_without_the_program_it_is_named(monkeypatch) -> None:
    task = db.make_task("molecule-dock")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(db.DiffBBOError, match="autodock4") as raised:
        task.evaluate(task.x[:1])
    assert "apt-get install autodock" in raised.value.remedy


@docks
def test_docking_is_repeatable_and_binds() -> None:
    quick = docking.Protocol(runs=1, evaluations=5_000)
    first = docking.dock("CCOc1ccccc1", quick)
    assert first == docking.dock("CCOc1ccccc1", quick)
    assert -12 < first < 0


@docks
@pytest.mark.slow
def test_docked_scores_come_again() -> None:
    """Of ten rows of the table; another build of the program may move a few."""
    task = db.make_task("molecule-dock")
    rows = np.random.default_rng(0).choice(len(task.table), 10, replace=False)
    assert (task.evaluate(task.x[rows]) == task.docked[rows]).sum() >= 8
    check_task(task)


# ---- bad input -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["molecule", "molecule-dock"])
@pytest.mark.parametrize(
    ("x", "words"),
    [
        (np.full((1, 32), 4.5), "z1"),
        (np.full((1, 32), np.nan), "z1"),
        (np.zeros((1, 31)), r"needs \(n, 32\)"),
    ],
    ids=["out of range", "NaN", "wrong dimension"],
)
def test_bad_designs_are_refused(name: str, x: np.ndarray, words: str) -> None:
    with pytest.raises(db.InputError, match=words):
        db.make_task(name).evaluate(x)


def test_bad_latent_rows_are_refused() -> None:
    with pytest.raises(db.InputError, match=r"\(2, 3\)"):
        decoder.smiles(np.zeros((2, 3)))


def test_a_damaged_file_is_named_with_its_checksum(monkeypatch) -> None:
    monkeypatch.setattr(molecule, "SHA256", "0" * 64)
    with pytest.raises(db.DiffBBOError, match=r"molecule\.npz is damaged: its sha256 is"):
        db.make_task("molecule")
    with pytest.raises(db.DiffBBOError, match=docking.MAPS):
        assets.load_bytes(docking.MAPS, "0" * 64)


@pytest.mark.parametrize("module", ["rdkit.Chem", "meeko"])
def test_without_the_extra_it_is_named(monkeypatch, module: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(db.DiffBBOError) as raised:
        docking.prepare("CCO")
    assert "diffbbo[molecules]" in raised.value.remedy
