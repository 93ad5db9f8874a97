"""Figures: files that are what their suffix says, and the numbers behind the lines."""

import struct
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

import diffbbo as db
from diffbbo import plots
from diffbbo.types import InputError, MissingExtraError


def rows(methods=("diffbbo", "random"), seeds=3, rounds=4):
    return [
        {"task": task, "method": m, "seed": s, "batch": 10, "round": r, "best": k + 0.1 * s + r}
        for task in ("one", "two") for k, m in enumerate(methods) for s in range(seeds) for r in range(1, rounds + 1)
    ]  # fmt: skip


def png_size(path: Path) -> tuple[int, int]:
    head = path.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", head[16:24])


def lines(monkeypatch) -> dict[str, list]:
    """What `comparison` hands to matplotlib, per panel title: lines as (x, y)."""
    drawn: dict[str, list] = {}

    def keep(figure, path):
        for panel in figure.axes:
            if panel.get_visible():
                drawn[panel.get_title()] = [(*map(list, line.get_data()), line) for line in panel.lines]

    monkeypatch.setattr(plots, "save_figure", keep)
    return drawn


def test_comparison_writes_png_at_200_dpi_and_svg(tmp_path):
    plots.comparison(rows(), tmp_path / "new" / "figure.png", {"one": 5.0, "two": None})
    assert png_size(tmp_path / "new" / "figure.png")[0] == 2 * 2.4 * 200  # two panels of 2.4 inches
    plots.comparison(rows(), tmp_path / "figure.svg")
    assert ElementTree.parse(tmp_path / "figure.svg").getroot().tag.endswith("svg")
    first = (tmp_path / "figure.svg").read_bytes()
    plots.comparison(rows(), tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").read_bytes() == first


def test_a_line_is_the_mean_over_seeds_against_evaluations(monkeypatch, tmp_path):
    drawn = lines(monkeypatch)
    plots.comparison(rows(), tmp_path / "f.png")
    x, y, _ = drawn["one"][0]
    assert x == [10, 20, 30, 40]
    assert y == pytest.approx([1.1, 2.1, 3.1, 4.1])  # seeds add 0, 0.1 and 0.2


def test_a_mean_is_only_drawn_where_every_seed_has_a_value(monkeypatch, tmp_path):
    drawn = lines(monkeypatch)
    table = [row for row in rows(("random",)) if not (row["seed"] == 1 and row["round"] == 4)]
    for row in table:
        if row["seed"] == 2 and row["round"] == 1:
            row["best"] = None
    plots.comparison(table, tmp_path / "f.png")
    assert drawn["one"][0][0] == [20, 30]


def test_the_optimum_is_drawn_where_it_is_near(monkeypatch, tmp_path):
    drawn = lines(monkeypatch)
    plots.comparison(rows(), tmp_path / "f.png", {"one": 6.0, "two": 600.0})
    assert len(drawn["one"]) == 3 and drawn["one"][2][1] == [6.0, 6.0]
    assert len(drawn["two"]) == 2


def test_every_method_looks_different_and_ours_always_the_same(monkeypatch, tmp_path):
    methods = ["random", *(f"rival-{k}" for k in range(14)), "diffbbo-paper", "diffbbo"]
    styles = plots._styles(methods)
    assert next(iter(styles)) == "diffbbo" and [*styles][-1] == "random" and set(styles) == set(methods)
    assert len({(s["color"], str(s.get("linestyle"))) for s in styles.values()}) == len(methods)
    assert styles["diffbbo"] == plots._styles(["diffbbo"])["diffbbo"]
    assert styles["diffbbo"]["linewidth"] > max(s["linewidth"] for m, s in styles.items() if m != "diffbbo")
    drawn = lines(monkeypatch)
    plots.comparison(rows(methods, seeds=1), tmp_path / "f.png")
    looks = [[(line.get_color(), line.get_linestyle()) for *_, line in panel] for panel in drawn.values()]
    assert looks[0] == looks[1]


def test_bootstrap_of_the_mean():
    # Equal seeds leave no doubt; for n seeds of unit variance the interval is about ±1.96 / sqrt(n).
    assert np.array(plots.bootstrap(np.full((4, 2), 7.0))).tolist() == [[7, 7], [7, 7]]
    draws = np.random.default_rng(0).standard_normal((400, 1))
    low, high = plots.bootstrap(draws)
    assert (high - low)[0] == pytest.approx(2 * 1.96 * draws.std() / 20, rel=0.1)


def test_task_distribution(tmp_path):
    db.make_task("tfbind8").plot(tmp_path / "task.png")
    assert png_size(tmp_path / "task.png") == (700, 520)
    space = db.Space([db.Real("a", 0, 1)])
    x = space.sample(30, np.random.default_rng(0))
    task = db.FunctionTask(lambda d: d["a"], space, name="mine", start=(x, x[:, 0]), minimize=True, maximum=0.0)
    task.plot(tmp_path / "mine.svg")
    assert ElementTree.parse(tmp_path / "mine.svg").getroot().tag.endswith("svg")


def test_what_cannot_be_drawn_is_said(tmp_path):
    with pytest.raises(InputError, match="no rows"):
        plots.comparison([], tmp_path / "f.png")
    with pytest.raises(InputError, match="'best'"):
        plots.comparison([{"task": "t", "method": "m", "seed": 0, "batch": 1, "round": 1}], tmp_path / "f.png")
    with pytest.raises(InputError, match=r"\.png, \.svg"):
        plots.comparison(rows(), tmp_path / "figure.docx")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        plots.comparison(rows(), tmp_path / "file" / "figure.png")
    empty = db.FunctionTask(lambda d: 0.0, db.Space([db.Real("a", 0, 1)]), name="empty")
    with pytest.raises(InputError, match="no values"):
        empty.plot(tmp_path / "f.png")


def test_missing_matplotlib_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r'pip install "diffbbo\[plots\]"'):
        plots.comparison(rows(), tmp_path / "f.png")
