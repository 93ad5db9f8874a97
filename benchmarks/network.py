"""What the network's form brings at equal steps: the ablation of docs/decisions.md.

    python benchmarks/network.py

Validation loss (the same noise-prediction loss for all) after 2000 steps at hidden 128, mean over 5 members and 3
seeds, and on a ring of 800 points the share of draws within 0.2 of it, without and with guidance.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

import diffbbo as db
from diffbbo.diffusion.ensemble import Ensemble, fit
from diffbbo.diffusion.network import Network
from diffbbo.encoding import Encoder, ObjectiveScale
from diffbbo.types import Array

PLAIN = db.EnsembleConfig(residual=False, predict="eps", learning_rate=1e-3, check_every=100, patience=100)
FORMS = {
    "plain MLP, eps, 1e-3 (the paper's form)": PLAIN,
    "+ v instead of eps": replace(PLAIN, predict="v"),
    "+ residual layers": replace(PLAIN, residual=True),
    "+ both": replace(PLAIN, residual=True, predict="v"),
    "+ both, learning rate 2e-3 (the default)": replace(PLAIN, residual=True, predict="v", learning_rate=2e-3),
    "+ both, learning rate 4e-3": replace(PLAIN, residual=True, predict="v", learning_rate=4e-3),
}
SEEDS = range(3)


def ring() -> tuple[db.Space, Array, Array]:
    angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 800)
    x = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return db.Space((db.Real("a", -2, 2), db.Real("b", -2, 2))), x, x[:, 1]


def train(space: db.Space, x: Array, y: Array, config: db.EnsembleConfig, seed: int) -> tuple[Ensemble, Encoder, float]:
    encoder, scale = Encoder.fit(space, x), ObjectiveScale.robust(y)
    ensemble = fit(encoder.encode(x), scale.condition(y), config, seed, "cpu")
    return ensemble, encoder, float(scale.condition(scale.targets([0.6]))[0])


def on_ring(ensemble: Ensemble, encoder: Encoder, target: float, gamma: float) -> float:
    network = Network(2, replace(ensemble.config, gamma=gamma))
    z, _ = Ensemble(network, ensemble.fitted, ensemble.generator).sample_mixture(target, 1000)
    return float((np.abs(np.linalg.norm(encoder.decode(z), axis=1) - 1) < 0.2).mean())


def main() -> None:
    task = db.make_task("tfbind8")
    print(
        "| network | TFBind8 loss | ring loss | on the ring, gamma 0 | gamma 2 | seconds |\n|---|---|---|---|---|---|"
    )
    for name, config in FORMS.items():
        rows = []
        for seed in SEEDS:
            clock = time.perf_counter()
            dna, _, _ = train(task.space, *task.start(0), config, seed)
            seconds = time.perf_counter() - clock
            ensemble, encoder, target = train(*ring(), config, seed)
            losses = [float(e.fitted.validation_loss.mean()) for e in (dna, ensemble)]
            rows.append([*losses, *(on_ring(ensemble, encoder, target, gamma) for gamma in (0.0, 2.0)), seconds])
        dna_loss, ring_loss, free, led, seconds = np.mean(rows, axis=0)
        print(f"| {name} | {dna_loss:.3f} | {ring_loss:.3f} | {free:.0%} | {led:.0%} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
