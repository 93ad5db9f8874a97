"""The experiments end to end on tiny grids, and what their tables say of numbers worked out by hand."""

from __future__ import annotations

import csv
import json
import shutil
import struct
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from diffbbo import EnsembleConfig, Storage, cli, compare, make_task, plots
from diffbbo.compare import COLUMNS, Cell, grid, run_grid
from diffbbo.schema import RoundRecord, StudyRecord
from diffbbo.standings import Interval, differences
from diffbbo.terminal import interval
from diffbbo.types import InputError
from experiments import ablation_batch, ablation_parts, ablation_weight, comparison, ladder, synthetic, theory, timing
from experiments.common import Experiment, Places, Wanted, again, draw, main, table, timeless
from experiments.page import NOTHING, fill, markdown
from experiments.results import Measured, Results, Row, collect, key_of_cell, tidy

METHODS = ("evolution", "random")
PAGE = "# Page\n\n<!-- comparison:tfbind8 -->\nold\n<!-- end -->\n\nkept\n"


def tiny(seeds: tuple[int, ...] = (0, 1), methods: tuple[str, ...] = METHODS, rounds: int = 2) -> Experiment:
    cells = grid(["tfbind8"], ["random", "evolution"], seeds, rounds=rounds, batch=10)
    return Experiment("comparison", ("tfbind8",), methods, tuple(cells), comparison.draw)


def command(root: Path, *words: str, experiment: Experiment | None = None) -> None:
    main(experiment or tiny(), [*words, "--root", str(root), "--workers", "1"])


def places(root: Path) -> Places:
    return Places(root, root / "runs" / "comparison.db")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("ran")
    command(root, "run")
    return root


@pytest.fixture
def copy(ran: Path, tmp_path: Path) -> Iterator[Path]:
    yield shutil.copytree(ran, tmp_path / "copy")


def lines(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


# ---- a grid end to end -----------------------------------------------------------------------------------


def test_run_leaves_tidy_tables(ran: Path) -> None:
    rows, cells = (lines(ran / "results" / f"comparison{part}.csv") for part in ("", "_cells"))
    assert list(rows[0]) == list(COLUMNS) and len(rows) == 2 * 2 * 2
    assert [(c["method"], c["seed"], c["rounds"]) for c in cells] == [  # in the order of the experiment, not of the run
        ("evolution", "0", "2"), ("evolution", "1", "2"), ("random", "0", "2"), ("random", "1", "2"),
    ]  # fmt: skip
    assert json.loads(cells[0]["settings"])["method"] == "evolution" and cells[0]["versions"].startswith("diffbbo ")
    assert float(cells[0]["ask_s"]) > 0 and cells[0]["threads"] and not cells[0]["error"]


def test_draw_fills_its_places_and_leaves_the_rest(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (copy / "docs").mkdir()
    (copy / "docs" / "results.md").write_text(PAGE)
    command(copy, "draw")
    page = (copy / "docs" / "results.md").read_text()
    assert page.startswith("# Page\n\n<!-- comparison:tfbind8 -->\n| rank |") and page.endswith(
        "<!-- end -->\n\nkept\n"
    )
    assert "old" not in page and "| 1 | " in page
    assert "comparison: ranks" in capsys.readouterr().out, "a part without a place is printed"
    for suffix in ("png", "svg"):
        assert (copy / "docs" / "images" / "results" / f"comparison.{suffix}").stat().st_size > 10_000
    command(copy, "draw")
    assert (copy / "docs" / "results.md").read_text() == page


def test_a_stopped_run_goes_on_and_a_complete_one_does_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command(tmp_path, "run", "--limit", "1")
    command(tmp_path, "run", "--only", "evolution", "--limit", "1")
    assert {c["method"] for c in lines(tmp_path / "results" / "comparison_cells.csv")} == set(METHODS)
    command(tmp_path, "run", "--minutes", "0")
    assert len(lines(tmp_path / "results" / "comparison.csv")) == 4
    command(tmp_path, "run")
    (tmp_path / "runs" / "comparison.db").unlink()  # results of another machine come without
    capsys.readouterr()
    command(tmp_path, "run")
    assert "4 cells, 0 of them to run now" in capsys.readouterr().err


def test_results_of_two_machines_add_up(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    command(one, "run", experiment=tiny((0,)))
    command(two, "run", experiment=tiny((1,)))
    shutil.copytree(one / "results", two / "results", dirs_exist_ok=True)
    command(two, "table")
    assert [c["seed"] for c in lines(two / "results" / "comparison_cells.csv")] == ["0", "1", "0", "1"]
    assert len(lines(two / "results" / "comparison.csv")) == 8


def test_of_two_versions_of_a_cell_the_longer_is_kept(copy: Path) -> None:
    known = Measured.read(copy / "results", "comparison")
    short = Measured(
        {key: row | {"rounds": 1.0} for key, row in known.cells.items()},
        {key: rows[:1] for key, rows in known.rows.items()},
    )
    assert short.joined(known) == known and known.joined(short) == known
    other = Measured({key: row | {"settings": "{}"} for key, row in short.cells.items()}, short.rows)
    assert known.joined(other) == other, "with other settings it is another experiment: the newer one"
    failed = replace(short, cells={key: row | {"error": "no licence"} for key, row in short.cells.items()})
    assert failed.joined(short).cells == failed.cells, "why it stopped is not forgotten"


def test_cells_run_again_give_the_same_rows(copy: Path) -> None:
    assert again(tiny(), places(copy), Wanted(limit=2))
    path = copy / "results" / "comparison.csv"
    rows = lines(path)
    known = Measured.read(copy / "results", "comparison")
    key = next(iter(known.rows))
    assert "best" in timeless(known.rows[key])[0] and not any(
        name.endswith("_s") for name in timeless(known.rows[key])[0]
    )
    for row in rows:
        row["best"] = str(float(row["best"]) + 1e-12)
    with path.open("w", newline="") as handle:
        writer = csv.DictWriter(handle, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    with pytest.raises(SystemExit):
        command(copy, "again", "--limit", "1")


# ---- holes -----------------------------------------------------------------------------------------------


def test_what_is_missing_is_a_visible_hole(copy: Path) -> None:
    """Of three seeds one has not run, and of a third method nothing but an error is known."""
    experiment = tiny((0, 1, 2), ("evolution", "random", "broken"))
    broken = tuple(Cell("tfbind8", "broken", seed, 2, 10) for seed in (0, 1))
    experiment = replace(experiment, cells=(*experiment.cells, *broken))
    with Storage(places(copy).storage) as storage:
        measured = table(experiment, places(copy), storage, {broken[0]: "no licence"})
    results = Results.of(measured, experiment.cells, experiment.tasks, experiment.methods)
    assert results.holes == {
        ("tfbind8", "evolution"): "seed 2 not run yet", ("tfbind8", "random"): "seed 2 not run yet",
        ("tfbind8", "broken"): "seed 0 failed: no licence; seed 1 not run yet",
    }  # fmt: skip
    parts = comparison.draw(results, places(copy))
    assert f"| - | broken | 0 |{' - |' * 6} seed 0 failed: no licence; seed 1 not run yet |" in parts["tfbind8"]
    assert "| seed 2 not run yet |" in parts["tfbind8"]
    assert "| broken | - | - | tfbind8: seed 0 failed" in parts["ranks"]


def test_a_half_finished_cell_does_not_count(copy: Path) -> None:
    results = Results.of(Measured.read(copy / "results", "comparison"), tiny(rounds=3).cells, ("tfbind8",), METHODS)
    assert not results.rows and set(results.holes.values()) == {"2 of 3 rounds so far"}
    assert comparison.draw(results, places(copy))["tfbind8"] == "*No result: 2 of 3 rounds so far.*"


def test_who_is_surely_better_over_all_rivals() -> None:
    """By area ours is 1 above `random` with every seed, 1 below `cmaes`, and now above, now below `turbo`."""
    levels = {"diffbbo": [5.0, 5.0, 5.0], "random": [4.0] * 3, "cmaes": [6.0] * 3, "turbo": [4.0, 6.0, 5.0]}
    rows = [
        dict.fromkeys(COLUMNS)
        | {"task": "tfbind8", "method": method, "seed": seed, "batch": 10, "round": 1, "best": best, "distinct": 10}
        for method, found in levels.items()
        for seed, best in enumerate(found)
    ]
    table = comparison.everyone_table({"diffbbo": differences(rows, "diffbbo")})
    assert "| diffbbo | area | 1 | 1 | 1 | on tfbind8 cmaes |" in table.splitlines()


EVERY = [comparison.COMPARISON, ablation_weight.ABLATION, ablation_batch.ABLATION, timing.TIMING, theory.THEORY,
         synthetic.SYNTHETIC, ablation_parts.ABLATION]  # fmt: skip


@pytest.mark.parametrize("experiment", EVERY, ids=lambda e: e.name)
def test_every_experiment_has_its_places_on_the_page(experiment: Experiment, tmp_path: Path) -> None:
    """Without any result: a page of "not run yet", and nothing homeless."""
    shutil.copy(Path(__file__).parents[1] / "docs" / "results.md", tmp_path / "results.md")
    measured = Measured.read(tmp_path, experiment.name)
    results = Results.of(measured, experiment.cells, experiment.tasks, experiment.methods)
    parts = experiment.draw(results, places(tmp_path))
    assert set(parts.values()) == {"*Not run yet.*"} and not fill(tmp_path / "results.md", experiment.name, parts)
    assert not (tmp_path / "docs").exists()


@pytest.mark.parametrize("experiment", EVERY[1:], ids=lambda e: e.name)
def test_every_experiment_draws(experiment: Experiment, tmp_path: Path) -> None:
    """Made-up results of one seed: every figure is written, every table has a line per method."""
    measured = Measured()
    for cell in experiment.cells:
        if cell.seed != 100:
            continue
        key = key_of_cell(cell)
        head = dict(zip(("task", "method", "seed", "batch"), key, strict=True))
        measured.cells[key] = head | {"rounds": cell.rounds, "threads": 1, "gpu": "", "machine": "", "versions": ""}
        extra = {"epistemic": 0.1, "gap": 1.0, "gap_variance": 0.5, "distinct": 1.0, "train_s": 1.0, "acquire_s": 2.0}
        measured.rows[key] = [
            dict.fromkeys(COLUMNS)
            | head
            | extra
            | {"round": k, "best": float(k), "batch_mean": 0.0, "epistemic": 1.0 / k}
            for k in range(1, cell.rounds + 1)
        ]
    results = Results.of(measured, experiment.cells, experiment.tasks, experiment.methods)
    parts = experiment.draw(results, places(tmp_path))
    figures = {path.stem for path in (tmp_path / "docs" / "images" / "results").glob("*.png")}
    linked = {part.split("results/")[1].removesuffix(".png)") for part in parts.values() if part.startswith("![")}
    assert figures == linked and figures
    shown = {"synthetic": len(synthetic.PROBLEMS), "ablation_parts": len(ablation_parts.LESS)}
    for part, text in parts.items():
        if text.startswith("|") and experiment is not theory.THEORY:
            assert len(text.splitlines()) == 2 + shown.get(experiment.name, len(experiment.methods)), part


def test_what_a_part_brings_over_all_problems() -> None:
    """The whole has areas 1, 2, 3 on one task and 10, 30 on another where less is better: deviations of 1 and 14.142.
    Without a part they are 0, 1, 2 and 24.142, 44.142: it brings one deviation everywhere. Without another part the
    areas 1, 2, 3 become nothing, which counts as the worst, 1, and 1 and 2: 0, 1 and 1 deviations."""
    smooth = ablation_parts.SMOOTH
    made = {("tfbind8", "diffbbo"): [1, 2, 3], ("tfbind8", "without leap"): [0, 1, 2],
            (smooth, "diffbbo"): [10, 30], (smooth, "without leap"): [24.142, 44.142],
            (ablation_parts.FAILING, "diffbbo"): [1, 2, 3],
            (ablation_parts.FAILING, "without failures"): [None, 1, 2]}  # fmt: skip
    rows = [
        {"task": task, "method": method, "seed": seed, "round": 1, "best": best}
        for (task, method), values in made.items()
        for seed, best in enumerate(values)
    ]
    for measure in ablation_parts.MEASURES:  # after one round area and best found are the same
        found = ablation_parts.overall(rows, measure)["without leap"]
        assert (found.mean, found.low, found.high) == pytest.approx((1.0, 1.0, 1.0), abs=1e-4)
        assert ablation_parts.overall(rows, measure)["without failures"].mean == pytest.approx(2 / 3)


def test_over_all_problems_each_weighs_the_same(rng: np.random.Generator) -> None:
    """Of problems with 20 seeds at 0 and 2 seeds at 2 the mean is 1; of two with variances a and b of their means the
    interval is about 1.96 sqrt(a + b) / 2 to either side."""
    sure = ablation_parts.mean_over([np.zeros(20), np.full(2, 2.0)])
    assert (sure.mean, sure.low, sure.high) == (1.0, 1.0, 1.0)
    one, other = rng.standard_normal(400), 3 * rng.standard_normal(100)
    found = ablation_parts.mean_over([one, other])
    width = 1.96 * np.hypot(one.std() / 20, other.std() / 10) / 2
    assert found.mean == pytest.approx((one.mean() + other.mean()) / 2)
    assert (found.high - found.low) / 2 == pytest.approx(width, rel=0.05)


def test_more_studies_of_the_whole_are_the_comparisons_first_rounds() -> None:
    key = ("superconductor", "diffbbo", 105, 100)
    rows = [{"task": "superconductor", "method": "diffbbo", "seed": 105, "round": k} for k in range(1, 17)]
    others = {("superconductor", "random", 105, 100): rows, ("superconductor", "diffbbo", 104, 100): rows}
    assert ablation_parts.whole_elsewhere(Measured(rows={key: rows} | others)) == rows[:8]
    own = {(cell.task, cell.seed): cell for cell in ablation_parts.cells() if cell.shown == ablation_parts.WHOLE}
    elsewhere = {(cell.task, cell.seed): cell for cell in comparison.cells() if cell.method == ablation_parts.WHOLE}
    without = {(cell.task, cell.seed) for cell in ablation_parts.cells()} - set(own)
    assert len(own) == 35 + 5 + 10 and len(without) == 15 and without <= set(elsewhere)
    same = [cell for cell in own.values() if cell.task not in ablation_parts.LITTLE]
    settings = {(cell.batch, cell.settings) for cell in (*same, *(elsewhere[key] for key in without))}
    assert settings == {(ablation_parts.BATCH, comparison.SETTINGS["diffbbo"])}


# ---- the grids -------------------------------------------------------------------------------------------


def test_the_comparison_sees_everything_before_it_begins_a_second_seed() -> None:
    cells = comparison.cells()
    first = [cell for cell in cells if cell.seed == 100]
    assert {(cell.task, cell.method) for cell in first} == {
        (t, m) for t in comparison.TASKS for m in comparison.METHODS
    }
    assert cells[: len(first)] == tuple(first) and cells[0].method == "random" and len(set(cells)) == len(cells)
    seeds = {m: {cell.seed for cell in cells if cell.method == m} for m in comparison.METHODS}
    for method in ("random", "evolution", "evolution-regularized", "cmaes", "diffbbo"):
        assert seeds[method] == {*range(100, 110), *range(160, 170)}, "more where it is cheap"
    assert min(map(len, seeds.values())) == 5 and min(map(min, seeds.values())) == 100
    assert set(comparison.METHODS) >= {c.method for c in grid(["tfbind8"], list(comparison.METHODS), [0])}


def test_the_ablations_are_the_papers() -> None:
    weights = [json.loads(cell.settings).get("acquisition", {}).get("w") for cell in ablation_weight.cells()[:9]]
    assert weights == [None, 0.6, 0.8, 1.0, 1.2, 1.4, 2.0, 2.5, 3.0]
    assert {cell.batch * cell.rounds for cell in ablation_batch.cells()} == {1600}


def test_the_synthetic_problems_are_spread() -> None:
    """Every function and every dimension meets every batch size; half of the problems start from nothing."""
    assert len(synthetic.PROBLEMS) == 15 and {n // batch for _, batch, n in synthetic.PROBLEMS} == {2, 3, 16, 20, 160}
    plain = [(task.split(":")[0].split("-"), batch) for task, batch, _ in synthetic.PROBLEMS[:12]]
    for k in (0, 1):
        for value in {words[k] for words, _ in plain}:
            assert {batch for words, batch in plain if words[k] == value} == {10, 100, 500}
    assert sum("data=0" in task for task in synthetic.TASKS) == 7
    assert all(make_task(task).name == task for task in synthetic.TASKS)


def test_a_ladder_of_methods_and_variants(tmp_path: Path) -> None:
    found = ladder.variants_of("random", [("small", "evolution", '{"population": 10}')], tmp_path)
    assert found == [("random", "random", "{}"), ("small", "evolution", '{"population": 10}')]
    experiment = ladder.ladder(found)
    assert experiment.methods == ("random", "small") and len(experiment.cells) == 5 * 3 * 2
    assert [name for name, *_ in ladder.variants_of("", [], tmp_path)] == ["diffbbo", "evolution", "random"]


def test_a_cell_can_describe_an_acquisition_and_a_network(tmp_path: Path, tiny: EnsembleConfig) -> None:
    settings = {"config": asdict(tiny), "acquisition": {"name": "FixedWeight", "w": 1.2}}
    cells = [Cell("tfbind8", "diffbbo-paper", 0, 1, 10, json.dumps(settings), "w = 1.2")]
    wrong = [
        Cell("tfbind8", "diffbbo-paper", 0, 1, 10, json.dumps({"acquisition": acquisition}), label)
        for label, acquisition in (("name", {"name": "FixedWait"}), ("field", {"name": "FixedWeight", "v": 1}))
    ]
    with Storage(tmp_path / "a.db") as storage:
        (result, *errors) = run_grid([*cells, *wrong], storage)
        (study,) = storage.studies()
        rows = collect(cells, storage, theory.gaps, {}).rows[key_of_cell(cells[0])]
        usual = collect(cells, storage, tidy, {}).rows[key_of_cell(cells[0])]
    assert not result.error and result.rounds[0].weight == 1.2
    assert (
        study.settings["acquisition"] == {"name": "FixedWeight", "w": 1.2} and study.settings["hidden"] == tiny.hidden
    )
    assert "no acquisition 'FixedWait'" in errors[0].error
    assert "cannot be made" in errors[1].error
    assert rows[0]["members"] == 5 and rows[0]["epistemic"] == usual[0]["epistemic"]


# ---- theory ----------------------------------------------------------------------------------------------


def test_gaps_of_members_by_hand() -> None:
    """Aimed at 5: the best of member 0 is 3, of member 1 is 4, a design of no member does not count."""
    entry = RoundRecord(
        1, {"target": 5.0, "epistemic": 0.1}, [1, 2, 3, 4, 5], np.zeros((5, 1)), np.array([0, 0, 1, 1, -1]),
        np.array([1.0, 3.0, 4.0, np.nan, 9.0]), ["ok"] * 5, [""] * 5, np.zeros(5),
    )  # fmt: skip
    study = StudyRecord(1, "s", "tfbind8", "diffbbo-paper", 0, False, {}, {}, "", {}, None)  # type: ignore[arg-type]
    (row,) = theory.gaps(Cell("tfbind8", "diffbbo-paper", 0), study, [entry])
    assert (row["members"], row["gap"], row["gap_variance"]) == (2, 1.5, 0.25)
    filled = replace(entry, info={"notes": []})  # a batch that filled the space was not aimed at anything
    assert theory.gaps(Cell("tfbind8", "diffbbo-paper", 0), study, [filled]) == []


def test_gaps_in_range_and_rank_correlation() -> None:
    """tfbind10 spans 3.98723: a gap of that is 1."""
    row: Row = {"task": "tfbind10", "gap": 3.98723351955414, "gap_variance": 3.98723351955414**2}
    (found,) = theory.in_range([row])
    assert found["gap"] == pytest.approx(1.0) and found["gap_variance"] == pytest.approx(1.0)
    a = np.array([1.0, 5.0, 2.0, 9.0])
    assert theory.rank_correlation(a, -(a**3)) == pytest.approx(-1.0)
    assert theory.rank_correlation(a, np.array([1.0, 2.0, 5.0, 9.0])) == pytest.approx(0.8)  # 1 - 6 * 2 / (4 * 15)
    assert np.isnan(theory.rank_correlation(a, np.ones(4)))


def test_moments_of_a_trained_network(tiny: EnsembleConfig) -> None:
    """The integral in full is the samples' variance exactly, the recursion within 4 standard errors of sqrt(2 / n)."""
    rows = theory.moments("tfbind8", 0, tiny, samples=1000, steps=50)
    assert len(rows) == 51 and rows[0]["t"] == 1.0
    assert rows[-1]["continuous_full"] == pytest.approx(rows[-1]["variance_empirical"], rel=1e-9)
    assert max(row["largest_error"] for row in rows) < 4 * np.sqrt(2 / 1000)
    assert rows[-1]["variance_printed"] > 2 * rows[-1]["variance_empirical"]
    assert theory.moments_table(rows).splitlines()[-1].startswith("| tfbind8 | 1 |")


# ---- small things ----------------------------------------------------------------------------------------


def test_a_verdict_needs_seeds_and_an_interval_without_0() -> None:
    assert comparison.verdict(Interval(1.0, 0.1, 2.0), 3) == "better"
    assert comparison.verdict(Interval(1.0, -0.1, 2.0), 10) == "undecided"
    assert comparison.verdict(Interval(-1.0, -2.0, -0.1), 5) == "worse"
    assert comparison.verdict(Interval(1.0, 1.0, 1.0), 1) == "1 common seeds: too few"


def test_fresh_seeds_have_tables_of_their_own() -> None:
    """On the fresh seeds diffbbo (2) is 1 ahead of random; on the others, which do not count there, 9 behind. Random's
    seeds all together have (10 + 1) / 2, which is 3.5 more than diffbbo's fresh ones."""
    rows = [
        dict.fromkeys(COLUMNS)
        | {"task": "tfbind8", "method": m, "seed": s, "batch": 1, "round": 1, "best": b, "distinct": 1}
        for m, old, fresh in (("diffbbo", 1.0, 2.0), ("random", 10.0, 1.0))
        for seeds, b in ((comparison.FIRST, old), (comparison.FRESH, fresh)) for s in seeds
    ]  # fmt: skip
    parts = comparison.fresh_parts(Results(("tfbind8", "ant"), ("diffbbo", "random"), rows, [], {}))
    table = parts["fresh"].splitlines()
    assert table[0].startswith("| task | seeds | rank among 2 |") and len(table) == 3
    assert table[2] == "| tfbind8 | 10 | 1 | random | 1 (1 to 1) | better | random | 1 (1 to 1) | better |"
    assert parts["fresh-everyone"].splitlines()[2].startswith("| tfbind8 | 10 | 2 | random | -3.5 (")
    assert parts["fresh-counts"].splitlines()[2] == "| diffbbo | area | 0 | 0 | 1 | on tfbind8 random |"
    old = [row for row in rows if row["seed"] in comparison.FIRST]
    assert comparison.fresh_parts(Results(("tfbind8",), ("diffbbo",), old, [], {}))["fresh"] == NOTHING


def test_ours_is_paired_with_the_best_rival() -> None:
    """evolution has the best area (2.5), random the best end (4): diffbbo (1, 3) loses 0.5 and 1 in each of 3 seeds."""
    curves = {"diffbbo": [1.0, 3.0], "evolution": [2.5, 2.5], "random": [0.0, 4.0]}
    rows = [
        dict.fromkeys(COLUMNS)
        | {"task": "tfbind8", "method": m, "seed": s, "batch": 1, "round": k, "best": b, "distinct": 1}
        for m, curve in curves.items() for s in range(3) for k, b in enumerate(curve, 1)
    ]  # fmt: skip
    results = Results(("tfbind8",), tuple(curves), rows, [], {})
    found = comparison.difference_table(results, comparison.standings(rows), comparison.paired_of(results)).splitlines()
    assert found[2].startswith("| tfbind8 | diffbbo | 2 | evolution | -0.5 (-0.5 to -0.5) | worse | random | -1 (")
    assert found[3].startswith("| tfbind8 | diffbbo-paper | - |")


def test_markdown_and_an_interval_of_one_seed() -> None:
    assert markdown(["a", "b"], [["1|2", ""]]) == "| a | b |\n| --- | --- |\n| 1/2 |  |"
    assert (
        interval(Interval(0.5, 0.25, 0.75), 2) == "0.5 (0.25 to 0.75)" and interval(Interval(0.5, 0.5, 0.5), 1) == "0.5"
    )


def test_one_panel_with_many_methods_is_wider(tmp_path: Path) -> None:
    for count, width in ((6, 700), (7, 920)):
        rows = [{"task": "one", "method": f"m{k}", "seed": 0, "batch": 1, "round": 1, "best": k} for k in range(count)]
        plots.comparison(rows, tmp_path / "f.png")
        assert struct.unpack(">I", (tmp_path / "f.png").read_bytes()[16:20])[0] == width


def test_compare_shows_the_order_of_its_grid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However the studies end: here the last first."""
    monkeypatch.setattr(compare, "run_grid", lambda cells, storage, workers: list(run_grid(cells, storage))[::-1])
    cli.compare(["tfbind8"], tmp_path, "random,evolution", seeds=2, rounds=1, batch=5, workers=2)
    rows = lines(tmp_path / "comparison.csv")
    assert [(row["method"], row["seed"]) for row in rows] == [
        ("random", "0"), ("evolution", "0"), ("random", "1"), ("evolution", "1"),
    ]  # fmt: skip


def test_errors_of_the_command_line_are_two_lines(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(tiny(), ["run", "--root", str(copy), "--workers", "0"])
    assert "workers = 0" in capsys.readouterr().err
    with pytest.raises(InputError):
        list(run_grid([], None, workers=0))  # type: ignore[arg-type]
    draw(tiny(), places(copy))
