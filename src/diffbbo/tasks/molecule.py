"""Molecule: the point of a molecule space whose molecule binds the oestrogen receptor best."""

from __future__ import annotations

import lzma
from typing import Any

import numpy as np

from ..assets import load_arrays
from ..chemistry import decoder, docking
from ..chemistry.drawing import draw_molecules
from ..spaces import Space
from ..task import Card, Task, quarter
from ..types import Array
from ..variables import Real

FILE = "molecule.npz"
SHA256 = "b708dff5d4bd035d43ef944d4730b3636a3081f646a06d980f31bf4bcdae8df9"
BOUND = 4.0  # of a latent number; draws from N(0, 1) beyond it are one in 16,000
USUAL = 8.0  # length of a latent row that one draw from N(0, I) in 1,000 exceeds
SOURCE = (
    "latent space of a SELFIES autoencoder trained on ZINC250k (Gomez-Bombarelli et al., ACS Central Science 4 (2018) "
    "268); receptor ESR1, PDB 1ERR, with the AutoDock4 maps of LIMO (Eckmann et al., ICML 2022)"
)
LICENCE = "MIT-style (LIMO, ZINC250k of mol_opt); the rest is ours, Apache-2.0"


def scores(energy: Array, best: float) -> Array:
    """Docking energies in kcal/mol as scores: 1 for the `best` known, 0 for what does not bind at all."""
    return np.asarray(np.maximum(energy / best, 0.0))


class MoleculeSpace(Task):
    """What both molecule tasks share: draws from N(0, I), each decoded and docked."""

    table: Array
    docked: Array  # scores by docking
    maximum = 1.0
    range = (0.0, 1.0)

    def __init__(self) -> None:
        arrays = load_arrays(FILE, SHA256)
        self.arrays = arrays
        self.x = arrays["z"].astype(np.float64)
        hundredths = np.rint(100 * arrays["energy"].astype(np.float64))  # AutoDock prints two digits
        self.energy: Array = hundredths / 100
        self.best_energy = float(self.energy.min())
        self.docked = scores(self.energy, self.best_energy)
        self.space = Space(tuple(Real(f"z{k}", -BOUND, BOUND) for k in range(1, decoder.LATENT + 1)))

    def __reduce__(self) -> tuple[type[Task], tuple[()]]:
        return type(self), ()  # a worker process reads the file itself

    def start(self, seed: int = 0) -> tuple[Array, Array]:
        """The 25th to 50th percentile of the docked draws, the same for every seed."""
        rows = quarter(np.arange(len(self.table)), self.table)
        return self.x[rows], self.table[rows]

    def facts(self, x: Array) -> dict[str, float]:
        """`usual`: the share of designs no further from the middle than draws of N(0, I) are, where the models hold."""
        return {"usual": float((np.linalg.norm(x, axis=1) <= USUAL).mean())} if len(x) else {}

    def smiles(self, x: Any) -> list[str]:
        """The molecules of some designs."""
        return decoder.smiles(self.space.rows(x))

    def illustrate(self, figure: Any) -> None:
        """The best docked molecules above, some of the start data below."""
        names = lzma.decompress(self.arrays["smiles"].tobytes()).decode().split("\n")
        order = np.argsort(-self.table)
        middle = len(order) // 8 * np.array([4, 5, 6])  # of the start data: worse than the median
        chosen = [*order[:3], *order[middle]]
        captions = [
            f"{'best of these' if k < 3 else 'start data'}: {self.table[row]:.2f}" for k, row in enumerate(chosen)
        ]
        draw_molecules(figure, [names[self.arrays["molecule"][row]] for row in chosen], captions)

    def described(self, exact: str, remade: str) -> Card:
        return Card(
            name=self.name,
            summary=self.summary,
            source=SOURCE,
            licence=LICENCE,
            size=None,
            dimension=decoder.LATENT,
            start=len(self.table) // 2 - len(self.table) // 4,
            maximum=self.maximum,
            exact=exact,
            remade=remade,
        )


class Molecule(MoleculeSpace):
    """The oracle is a feed-forward network fitted to the docking scores; it cannot exceed 1, the best docked score."""

    name = "molecule"
    summary = "32 latent numbers of the molecule that binds the oestrogen receptor best, by a surrogate of docking"
    chunk = 10_000

    def __init__(self) -> None:
        super().__init__()
        depth = sum(name.startswith("weight") for name in self.arrays)
        self._layers = [
            (self.arrays[f"weight{k}"].astype(np.float64), self.arrays[f"bias{k}"].astype(np.float64))
            for k in range(depth)
        ]
        self.table = self._surrogate(self.x)

    def evaluate(self, x: Array) -> Array:
        return self._surrogate(self.space.rows(x))

    def _surrogate(self, x: Array) -> Array:
        h = x
        for weight, bias in self._layers[:-1]:
            h = h @ weight + bias
            h = h * _sigmoid(h)
        weight, bias = self._layers[-1]
        # Rounded, because the last bits of a matrix product depend on how many rows it has.
        return np.asarray(np.round(_sigmoid(h @ weight + bias)[:, 0], 8))

    def card(self) -> Card:
        spearman, _, fitted = self.arrays["held_out"]
        return self.described(
            exact="nothing: the published embedding, decoder and surrogate were never released",
            remade=f"all of it, on {len(self.table):,} docked draws. Rank correlation of the surrogate with docking: "
            f"{fitted:.2f} on these, {spearman:.2f} on held-out ones. A score of 1 is the best docked energy, "
            f"{self.best_energy:.2f} kcal/mol",
        )


class MoleculeDock(MoleculeSpace):
    """The oracle is AutoDock4 itself: decode, build in 3-D, dock. A molecule that cannot be built is a failure."""

    name = "molecule-dock"
    summary = "32 latent numbers of the molecule that binds the oestrogen receptor best, docked for real"
    costly = True

    def __init__(self, protocol: docking.Protocol = docking.PROTOCOL) -> None:
        super().__init__()
        self.protocol = protocol
        self.table = self.docked

    def evaluate(self, x: Array) -> Array:
        rows = self.space.rows(x)
        docking.find_program()  # said once, before anything is decoded
        energy = np.array([docking.dock(smiles, self.protocol) for smiles in decoder.smiles(rows)])
        return scores(energy, self.best_energy)

    def card(self) -> Card:
        return self.described(
            exact="the docking: AutoDock 4.2 against 1ERR, "
            f"{self.protocol.runs} runs of {self.protocol.evaluations:,} evaluations",
            remade=f"latent space and decoder. A score of 1 is {self.best_energy:.2f} kcal/mol, the best of the table: "
            "it can be passed",
        )


def _sigmoid(x: Array) -> Array:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)))
