"""Draw how the controllers learnt: python scripts/robots/plot_curves.py docs/images/controllers.png"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from diffbbo.figures import BLUE, OURS, new_figure, save_figure, styled

CURVES = Path(__file__).parent / "curves"


def main(out: str) -> None:
    with styled():
        figure = new_figure(7.2, 2.5)
        for panel, name in zip(figure.subplots(1, 2), ("ant", "dkitty"), strict=True):
            curve = json.loads((CURVES / f"{name}.json").read_text())["curve"]
            steps = [entry["steps"] / 1e6 for entry in curve]
            low, high = ([entry[key] for entry in curve] for key in ("noisy_p10", "noisy_p90"))
            panel.fill_between(steps, low, high, color=BLUE, alpha=0.15, linewidth=0)
            panel.plot(steps, [e["noisy_mean"] for e in curve], color=BLUE, label="47 noisy bodies (10 to 90 %)")
            panel.plot(steps, [e["default"] for e in curve], color=OURS, label="default body")
            panel.set_title(name)
            panel.set_xlabel("control steps (millions)")
            panel.set_ylabel("return of an episode")
        handles, labels = panel.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
        save_figure(figure, Path(out))


if __name__ == "__main__":
    main(sys.argv[1])
