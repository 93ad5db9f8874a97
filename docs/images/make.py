"""Draw the picture of the README from a real run: python docs/images/make.py runs/demo.db"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

import diffbbo as db
from diffbbo.figures import OURS, STYLE
from diffbbo.study import summaries

COLOURS = {0.6: "#56B4E9", 0.8: "#0072B2", 1.0: OURS}


def ring() -> tuple[db.Space, np.ndarray, np.ndarray]:
    """Valid designs lie on a ring, higher is better; only the lower two thirds were measured."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 900)
    radius = 1 + 0.05 * rng.standard_normal(900)
    x = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    x = x[x[:, 1] < 0.6]
    return db.Space((db.Real("a", -1.5, 1.5), db.Real("b", -1.5, 1.5))), x, x[:, 1]


def main(storage: str) -> None:
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 2.5), layout="constrained")
        told, drawn, run = figure.subplots(1, 3, width_ratios=[1, 1, 1.35])
        space, x, y = ring()
        points = told.scatter(*x.T, c=y, s=5, cmap="viridis")
        figure.colorbar(points, ax=told, label="score", fraction=0.05)
        told.set_title("designs tried")
        drawn.scatter(*x.T, color="#DDDDDD", s=3)
        for w, colour in COLOURS.items():
            others = ("climb", "leap", "vary")
            opt = db.DiffBBO(space, seed=0, acquisition=db.FixedWeight(w), without=others, device="cpu")
            opt.tell(x, y)
            batch = opt.ask(60)
            drawn.scatter(*batch.x.T, color=colour, s=7)
            target = batch.info["target"]
            drawn.axhline(target, color=colour, linewidth=0.7, linestyle=(0, (4, 2)))
            drawn.text(0, target - 0.04, f"aimed at w = {w:g}", color=colour, ha="center", va="top", fontsize=7)
        drawn.set_title("what the ensemble draws")
        for panel in (told, drawn):
            panel.set(xlim=(-1.4, 1.4), ylim=(-1.4, 1.4), aspect="equal", xticks=[], yticks=[])
        with db.Storage(storage, create=False) as opened:
            (record,) = opened.studies()
            rounds = opened.rounds(record.id)
            _, start = opened.dataset(record.start)
        rng = np.random.default_rng(0)
        for entry in rounds:
            run.scatter(entry.number + rng.uniform(-0.25, 0.25, len(entry.value)), entry.value, s=4, color="#9CC6E5")
        done = summaries(rounds, minimize=False)
        run.plot([s.round for s in done], [s.best for s in done], "o-", color=OURS, markersize=4, label="best so far")
        run.axhline(start.max(), color="#666666", linestyle=(0, (4, 2)), linewidth=0.9, label="best of the start data")
        run.set(title=f"{record.task}: {len(rounds)} rounds of {len(rounds[0].ids)}", xlabel="round", ylabel="binding")
        run.legend(loc="lower right", frameon=True, framealpha=0.95, edgecolor="none")
        figure.savefig(Path(__file__).with_name("overview.png"), dpi=200)


if __name__ == "__main__":
    main(sys.argv[1])
