"""How well a molecule binds the oestrogen receptor ESR1 (PDB 1ERR): its docking energy from AutoDock4, in kcal/mol.

SMILES -> 3-D (RDKit) -> PDBQT (Meeko) -> Lamarckian genetic algorithm (AutoDock4) -> the best energy of some runs. The
lower, the better. What cannot be docked is NaN; only a missing program is an error.
"""

from __future__ import annotations

import io
import math
import re
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..assets import load_bytes
from ..types import DiffBBOError, InputError, need

MAPS = "esr1_1err_autodock.tar.gz"
MAPS_SHA256 = "f5173bc8e9481a8204af67fba12d0ee7eb9801e75467856e2aa726f2067c72bd"
# The atom types that have a grid map.
TYPES = frozenset(("HD", "C", "A", "N", "NA", "OA", "F", "P", "SA", "S", "Cl", "Br", "I"))

ENERGY = re.compile(r"Estimated Free Energy of Binding\s*=\s*(\S+) kcal/mol")


@dataclass(frozen=True)
class Protocol:
    """What defines a docking energy, apart from molecule and protein. All else is AutoDock 4.2's default."""

    runs: int = 2  # independent searches, the best counts
    evaluations: int = 250_000  # energy evaluations a run
    population: int = 150
    seed: int = 7  # of the 3-D structure and of the search; AutoDock4 takes 2 and above
    timeout: float = 600.0  # seconds a molecule, some 300 times the usual; beyond it, the docking has failed

    def __post_init__(self) -> None:
        for name in ("runs", "evaluations", "population", "seed", "timeout"):
            if not getattr(self, name) > 0:
                raise InputError(f"Docking: {name} = {getattr(self, name)!r}.", "Give a positive number.")


PROTOCOL = Protocol()


def dock(smiles: str, protocol: Protocol = PROTOCOL) -> float:
    """The docking energy of a molecule in kcal/mol; NaN where it cannot be built or docked."""
    program = find_program()
    pdbqt = prepare(smiles, protocol.seed)
    return math.nan if pdbqt is None else search(pdbqt, protocol, program)


def find_program(name: str = "autodock4") -> str:
    """Where AutoDock4 is, or an error that says how to get it."""
    path = shutil.which(name)
    if path is None:
        raise DiffBBOError(
            f"Docking needs the program {name!r}, which is not on the PATH.",
            "Install it, on Debian or Ubuntu with: apt-get install autodock",
        )
    return str(Path(path).resolve())  # it is run from another folder


def prepare(smiles: str, seed: int = PROTOCOL.seed) -> str | None:
    """The molecule in 3-D with atom types, charges and torsions, as PDBQT text; None where that fails."""
    chem = need("rdkit.Chem", "molecules", "Docking")
    all_chem = need("rdkit.Chem.AllChem", "molecules", "Docking")
    meeko = need("meeko", "molecules", "Docking")
    quiet = need("rdkit.rdBase", "molecules", "Docking").BlockLogs()  # noqa: F841 - silent while it lives
    molecule = chem.MolFromSmiles(smiles)
    if molecule is None or not molecule.GetNumHeavyAtoms() or "." in smiles:
        return None
    molecule = chem.AddHs(molecule)
    embedding = all_chem.ETKDGv3()
    embedding.randomSeed = seed
    embedding.maxIterations = 50
    if all_chem.EmbedMolecule(molecule, embedding) != 0:
        return None
    try:
        all_chem.MMFFOptimizeMolecule(molecule, maxIters=500)  # on without it where MMFF lacks a parameter
        setups = meeko.MoleculePreparation(rigid_macrocycles=True).prepare(molecule)
        text, whole, _ = meeko.PDBQTWriterLegacy.write_string(setups[0])
    except Exception:  # RDKit and Meeko raise whatever they meet; a molecule they cannot build is a failed experiment
        return None
    return compact(text) if whole and atom_types(text) <= TYPES else None


def compact(pdbqt: str) -> str:
    """The same without remarks."""
    return "".join(line for line in pdbqt.splitlines(keepends=True) if not line.startswith("REMARK"))


def atom_types(pdbqt: str) -> frozenset[str]:
    return frozenset(line[77:].strip() for line in pdbqt.splitlines() if line.startswith(("ATOM", "HETATM")))


def search(pdbqt: str, protocol: Protocol, program: str) -> float:
    """The best energy AutoDock4 finds for a prepared molecule; NaN where it finds none. Standard library only."""
    with tempfile.TemporaryDirectory(prefix="diffbbo-dock-") as folder:
        unpack_maps(Path(folder))
        return search_in(Path(folder), pdbqt, protocol, program)


def unpack_maps(folder: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(load_bytes(MAPS, MAPS_SHA256))) as archive:
        # Python 3.11.0 to 3.11.3 have no filters and ignore this; the archive is ours, and its sum was checked.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(folder)


def search_in(folder: Path, pdbqt: str, protocol: Protocol, program: str) -> float:
    """As `search`, in a folder that holds the maps already."""
    maps = folder / "1err"
    (maps / "ligand.pdbqt").write_text(pdbqt)
    (maps / "ligand.dpf").write_text(parameters(pdbqt, protocol))
    command = [program, "-p", "ligand.dpf", "-l", "ligand.dlg"]
    (maps / "ligand.dlg").unlink(missing_ok=True)
    try:
        subprocess.run(command, cwd=maps, capture_output=True, timeout=protocol.timeout, check=False)
    except subprocess.TimeoutExpired:
        return math.nan
    try:
        return best_energy((maps / "ligand.dlg").read_text(errors="replace"))
    except FileNotFoundError:
        return math.nan


def best_energy(log: str) -> float:
    """The lowest energy of binding in the text of AutoDock4's log; NaN where there is none."""
    energies = [number for number in map(_as_float, ENERGY.findall(log)) if math.isfinite(number)]
    return min(energies, default=math.nan)


def _as_float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def parameters(pdbqt: str, protocol: Protocol) -> str:
    """AutoDock4's docking parameter file: Lamarckian genetic algorithm with pseudo-Solis-Wets local search."""
    types = sorted(atom_types(pdbqt))
    points = [_position(line) for line in pdbqt.splitlines() if line.startswith(("ATOM", "HETATM"))]
    centre = " ".join(f"{sum(axis) / len(points):.4f}" for axis in zip(*points, strict=True))
    freedom = next((line.split()[1] for line in pdbqt.splitlines() if line.startswith("TORSDOF")), "0")
    lines = [
        "autodock_parameter_version 4.2",
        "outlev 0",
        "intelec",
        f"seed {protocol.seed} {protocol.seed}",
        f"ligand_types {' '.join(types)}",
        "fld 1err.maps.fld",
        *(f"map 1err.{kind}.map" for kind in types),
        "elecmap 1err.e.map",
        "desolvmap 1err.d.map",
        "move ligand.pdbqt",
        f"about {centre}",
        "tran0 random",
        "quaternion0 random",
        "dihe0 random",
        f"torsdof {freedom}",
        "rmstol 2.0",
        "extnrg 1000.0",
        "e0max 0.0 10000",
        f"ga_pop_size {protocol.population}",
        f"ga_num_evals {protocol.evaluations}",
        "ga_num_generations 27000",
        "ga_elitism 1",
        "ga_mutation_rate 0.02",
        "ga_crossover_rate 0.8",
        "ga_window_size 10",
        "ga_cauchy_alpha 0.0",
        "ga_cauchy_beta 1.0",
        "set_ga",
        "sw_max_its 300",
        "sw_max_succ 4",
        "sw_max_fail 4",
        "sw_rho 1.0",
        "sw_lb_rho 0.01",
        "ls_search_freq 0.06",
        "set_psw1",
        "unbound_model bound",
        f"ga_run {protocol.runs}",
        "analysis",
    ]
    return "\n".join(lines) + "\n"


def _position(line: str) -> tuple[float, float, float]:
    return float(line[30:38]), float(line[38:46]), float(line[46:54])
