"""Fits the oracle of the task `molecule` to the table of docked molecules, and packs both for the package.

    python scripts/molecule/train_surrogate.py table.npz src/diffbbo/data/molecule.npz

A feed-forward network from the 32 latent numbers to the docking score, trained until it gets no better on a tenth of
the table that it does not learn from; what it is worth is measured on another tenth that takes no part in anything. The
oracle is then fitted to the whole table for that number of epochs. (Trained until it knows its own rows by heart, the
same network is worth nothing elsewhere.) Prints the checksum for `tasks/molecule.py`.
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path

import numpy as np
import torch
from torch import nn

from diffbbo.tasks.molecule import scores

SEED, WIDTH, RATE, DECAY, DROPOUT, BATCH, EPOCHS, PATIENCE = 0, 128, 3e-4, 0.1, 0.3, 128, 300, 30


def fit(x: torch.Tensor, y: torch.Tensor, epochs: int, watch: tuple[torch.Tensor, torch.Tensor] | None = None):
    """The network after `epochs` and their number; with rows to `watch`, as it was when it was best on them."""
    torch.manual_seed(SEED)
    model = nn.Sequential(
        nn.Linear(32, WIDTH), nn.SiLU(), nn.Dropout(DROPOUT), nn.Linear(WIDTH, WIDTH), nn.SiLU(), nn.Dropout(DROPOUT),
        nn.Linear(WIDTH, 1), nn.Sigmoid(),
    )  # fmt: skip
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=DECAY)
    least, best, kept = np.inf, epochs, None
    for epoch in range(1, epochs + 1):
        model.train()
        for rows in torch.randperm(len(x)).split(BATCH):
            loss = (model(x[rows])[:, 0] - y[rows]).square().mean()
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
        model.eval()
        if watch is not None:
            error = float(((predict(model, watch[0]) - watch[1].numpy()) ** 2).mean())
            if error < least:
                least, best, kept = error, epoch, {name: value.clone() for name, value in model.state_dict().items()}
            if epoch - best >= PATIENCE:
                break
    if kept is not None:
        model.load_state_dict(kept)
    return model, best


def predict(model: nn.Sequential, x: torch.Tensor) -> np.ndarray:
    with torch.no_grad():
        return model(x)[:, 0].numpy()


def rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    ranks = [np.argsort(np.argsort(values)) for values in (a, b)]
    return float(np.corrcoef(*ranks)[0, 1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("target", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with np.load(options.table, allow_pickle=False) as arrays:
        table = dict(arrays)
    energy = table["energy"][table["molecule"]].astype(np.float64)
    docked = np.flatnonzero(np.isfinite(energy))
    z, energy = table["z"][docked], energy[docked]
    best = float(energy.min())
    x, y = torch.tensor(z), torch.tensor(scores(energy, best), dtype=torch.float32)

    order = np.random.default_rng(SEED).permutation(len(x))
    test, watch, train = np.split(order, [len(x) // 10, len(x) // 5])
    model, epochs = fit(x[train], y[train], EPOCHS, (x[watch], y[watch]))
    guess, truth = predict(model, x[test]), y[test].numpy()
    spearman = rank_correlation(guess, truth)
    r2 = 1 - float(((guess - truth) ** 2).mean() / truth.var())
    oracle, _ = fit(x, y, epochs)
    fitted = rank_correlation(predict(oracle, x), y.numpy())
    print(
        f"{len(x)} docked, {epochs} epochs; Spearman {spearman:.3f}, R2 {r2:.3f} held out; {fitted:.3f} on its own rows"
    )

    weights = {}
    for k, layer in enumerate(layer for layer in oracle if isinstance(layer, nn.Linear)):
        weights |= {f"weight{k}": layer.weight.detach().numpy().T, f"bias{k}": layer.bias.detach().numpy()}
    smiles = table["smiles"]
    np.savez_compressed(
        options.target, z=z, energy=energy.astype(np.float32), molecule=table["molecule"][docked], smiles=smiles,
        held_out=np.array([spearman, r2, fitted]), **weights,
    )  # fmt: skip
    print(f'SHA256 = "{hashlib.sha256(options.target.read_bytes()).hexdigest()}"')


if __name__ == "__main__":
    main()
