"""Turns the molecules of ZINC250k (SMILES) into SELFIES tokens and a few properties, for `train_vae.py`.

    python scripts/molecule/tokens.py zinc250k.smi.gz tokens.npz

Token 0 ends a molecule and pads it; tokens 1 to K are `alphabet`. A molecule with a token that fewer than `--rare`
molecules use is left out: the decoder could not learn it. Needs `diffbbo[molecules]`.
"""

from __future__ import annotations

import argparse
import gzip
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import selfies
from rdkit import Chem
from rdkit.Chem import Crippen, rdMolDescriptors

PROPERTIES = (
    ("heavy atoms", lambda m: m.GetNumHeavyAtoms()),
    ("rings", rdMolDescriptors.CalcNumRings),
    ("aromatic rings", rdMolDescriptors.CalcNumAromaticRings),
    ("rotatable bonds", rdMolDescriptors.CalcNumRotatableBonds),
    ("donors", rdMolDescriptors.CalcNumHBD),
    ("acceptors", rdMolDescriptors.CalcNumHBA),
    ("polar surface", rdMolDescriptors.CalcTPSA),
    ("logP", Crippen.MolLogP),
)


def read(path: Path) -> tuple[list[str], list[list[str]]]:
    """The molecules of a file, as SMILES and as lists of SELFIES tokens."""
    with gzip.open(path, "rt") as lines:
        smiles = [line.strip() for line in lines if line.strip()]
    return smiles, [list(selfies.split_selfies(selfies.encoder(molecule))) for molecule in smiles]


def properties(smiles: str) -> list[float]:
    molecule = Chem.MolFromSmiles(smiles)
    return [float(function(molecule)) for _, function in PROPERTIES]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--rare", type=int, default=25, help="least number of molecules that must use a token")
    options = parser.parse_args()

    smiles, split = read(options.source)
    used = Counter(token for tokens in split for token in set(tokens))
    alphabet = sorted(token for token, count in used.items() if count >= options.rare)
    number = {token: index for index, token in enumerate(alphabet, start=1)}
    kept = [row for row, tokens in enumerate(split) if all(token in number for token in tokens)]
    length = max(len(split[row]) for row in kept)
    print(f"{len(kept)} of {len(smiles)} molecules, {len(alphabet)} tokens, longest {length}", file=sys.stderr)

    tokens = np.zeros((len(kept), length), np.uint8)
    values = np.empty((len(kept), len(PROPERTIES)), np.float32)
    for index, row in enumerate(kept):
        tokens[index, : len(split[row])] = [number[token] for token in split[row]]
        values[index] = properties(smiles[row])
    names = np.array([name for name, _ in PROPERTIES])
    np.savez_compressed(
        options.target, tokens=tokens, alphabet=np.array(alphabet), properties=values, property_names=names
    )


if __name__ == "__main__":
    main()
