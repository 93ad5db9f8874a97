"""Makes the table of docked molecules: draws from N(0, I), decoded, built in 3-D, docked with AutoDock4.

    python scripts/molecule/dock_table.py decoder results/decoder.safetensors src/diffbbo/data/molecule_decoder.npz
    python scripts/molecule/dock_table.py prepare ligands.npz --count 10240 --processes 2
    python scripts/molecule/dock_table.py dock ligands.npz energies.jsonl --processes 16 --minutes 9
    python scripts/molecule/dock_table.py pack ligands.npz energies.jsonl table.npz

`decoder` packs the trained decoder for the package and prints the checksum that belongs into `chemistry/decoder.py`;
`prepare` needs `diffbbo[molecules]`; `dock` only the standard library, numpy, this package (PYTHONPATH=src will do) and
the program (`--program`). `dock` adds one line a molecule as it goes, skips what is done, and stops at its time limit:
call it again, on whatever machine, until nothing is left. Draws that decode to one molecule are docked once.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import math
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from diffbbo.chemistry import decoder, docking

SEED = 0
BLOCK = 256  # rows decoded at a time


def read_ligands(path: Path) -> tuple[dict[str, np.ndarray], list[str]]:
    """The arrays of a `prepare` file, and the PDBQT text of every distinct molecule ("" where it cannot be built)."""
    with np.load(path, allow_pickle=False) as arrays:
        data = dict(arrays)
    texts = json.loads(lzma.decompress(data.pop("pdbqt").tobytes()))
    return data, texts


def pack_decoder(source: Path, target: Path) -> None:
    """The decoder's weights and alphabet, from `train_vae.py`'s safetensors, as one npz."""
    from safetensors import safe_open

    with safe_open(source, "numpy") as stored:
        weights = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118 - not a mapping
        alphabet = np.array(json.loads(stored.metadata()["alphabet"]))
    np.savez(target, alphabet=alphabet, **weights)
    print(f'SHA256 = "{hashlib.sha256(target.read_bytes()).hexdigest()}"')


def prepare(target: Path, count: int, processes: int) -> None:
    """Draw, decode and build `count` molecules."""
    z = np.random.default_rng(SEED).standard_normal((count, decoder.LATENT))
    z = np.clip(z, -4.0, 4.0).astype(np.float32).astype(np.float64)
    smiles = [s for first in range(0, count, BLOCK) for s in decoder.smiles(z[first : first + BLOCK])]
    number = {molecule: index for index, molecule in enumerate(dict.fromkeys(smiles))}
    distinct = list(number)
    with multiprocessing.Pool(processes) as pool:
        texts = [text or "" for text in pool.imap(docking.prepare, distinct, chunksize=16)]
    index = np.array([number[molecule] for molecule in smiles], np.int32)
    packed = np.frombuffer(lzma.compress(json.dumps(texts).encode(), preset=6), np.uint8)
    np.savez(target, z=z.astype(np.float32), molecule=index, smiles=np.array(distinct), pdbqt=packed)
    print(f"{count} draws, {len(distinct)} molecules, {sum(map(bool, texts))} of them built")


def read_energies(path: Path) -> dict[int, float]:
    """Energy by molecule number; a line cut short by a kill is passed over."""
    energies = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            number, energy = json.loads(line)[:2]
        except ValueError:
            continue
        energies[number] = math.nan if energy is None else energy
    return energies


def dock_share(job: tuple[list[tuple[int, str]], str, float]) -> list[tuple[int, float | None, float]]:
    """Dock some molecules one after the other, until the deadline: number, energy (None: failed), seconds."""
    ligands, program, deadline = job
    done: list[tuple[int, float | None, float]] = []
    with tempfile.TemporaryDirectory(prefix="diffbbo-dock-") as folder:
        docking.unpack_maps(Path(folder))
        for number, text in ligands:
            begin = time.time()
            if begin > deadline:
                break
            energy = docking.search_in(Path(folder), text, docking.PROTOCOL, program) if text else math.nan
            done.append((number, None if math.isnan(energy) else energy, round(time.time() - begin, 2)))
    return done


def shares(todo: Iterable[tuple[int, str]], size: int = 8) -> Iterator[list[tuple[int, str]]]:
    ligands = list(todo)
    for first in range(0, len(ligands), size):
        yield ligands[first : first + size]


def dock(source: Path, target: Path, processes: int, minutes: float, program: str, part: str, last: bool) -> None:
    """Dock what is not in `target` yet."""
    deadline = time.time() + 60 * minutes
    path = docking.find_program(program)
    _, texts = read_ligands(source)
    done = read_energies(target)
    share, of = map(int, part.split("/"))
    todo = [(number, text) for number, text in enumerate(texts) if number not in done and number % of == share - 1]
    todo = todo[::-1] if last else todo
    count = 0
    with multiprocessing.Pool(processes) as pool, target.open("a") as lines:
        jobs = ((ligands, path, deadline) for ligands in shares(todo))
        for results in pool.imap_unordered(dock_share, jobs):
            lines.writelines(json.dumps(result) + "\n" for result in results)
            lines.flush()
            count += len(results)
    print(f"{count} docked now, {len(todo) - count} of this part left, {len(texts)} molecules in all", file=sys.stderr)


def pack(source: Path, energies: list[Path], target: Path) -> None:
    """The table of all draws whose molecule has been tried: latent rows, molecules, energies (NaN: failed)."""
    data, _ = read_ligands(source)
    known = {number: energy for path in energies for number, energy in read_energies(path).items()}
    energy = np.array([known.get(number, np.inf) for number in range(len(data["smiles"]))], np.float32)
    tried = np.flatnonzero(energy[data["molecule"]] != np.inf)
    used, molecule = np.unique(data["molecule"][tried], return_inverse=True)
    smiles = np.frombuffer(lzma.compress("\n".join(data["smiles"][used]).encode()), np.uint8)
    np.savez_compressed(
        target, z=data["z"][tried], molecule=molecule.astype(np.int32), energy=energy[used], smiles=smiles
    )
    failed = np.isnan(energy[used]).sum()
    print(f"{len(tried)} of {len(data['z'])} draws, {len(used)} molecules, {failed} of them failed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    zero = commands.add_parser("decoder")
    zero.add_argument("source", type=Path)
    zero.add_argument("target", type=Path)
    one = commands.add_parser("prepare")
    one.add_argument("target", type=Path)
    one.add_argument("--count", type=int, default=10_240)
    one.add_argument("--processes", type=int, default=2)
    two = commands.add_parser("dock")
    two.add_argument("source", type=Path)
    two.add_argument("target", type=Path)
    two.add_argument("--processes", type=int, default=2)
    two.add_argument("--minutes", type=float, default=9.0)
    two.add_argument("--program", default="autodock4")
    two.add_argument("--part", default="1/1", help="i/n: only every n-th molecule, from the i-th on")
    two.add_argument("--last", action="store_true", help="begin with the last molecule: for a second machine")
    three = commands.add_parser("pack")
    three.add_argument("source", type=Path)
    three.add_argument("energies", type=Path, nargs="+")
    three.add_argument("target", type=Path)
    options = parser.parse_args()

    if options.command == "decoder":
        pack_decoder(options.source, options.target)
    elif options.command == "prepare":
        prepare(options.target, options.count, options.processes)
    elif options.command == "dock":
        dock(
            *(
                getattr(options, name)
                for name in ("source", "target", "processes", "minutes", "program", "part", "last")
            )
        )
    else:
        pack(options.source, options.energies, options.target)


if __name__ == "__main__":
    main()
