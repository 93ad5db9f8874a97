"""The outer loop: resume, refuse, record; and two studies in one file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diffbbo import (
    Categorical,
    EnsembleConfig,
    FunctionTask,
    Integer,
    Processes,
    Real,
    Space,
    Storage,
    Study,
    make_optimizer,
)
from diffbbo.export import designs
from diffbbo.study import summaries
from diffbbo.types import ExhaustedError, InputError, SettingsError
from tests.oracles import LINE, difficult, square, task

ROOT = Path(__file__).parents[1]


def study(path: Path, method: str = "evolution", seed: int = 0, name: str | None = None, **settings: Any) -> Study:
    problem = task(start=([[1.0], [2.0]], [1.0, 4.0]))
    return Study(problem, make_optimizer(method, LINE, seed=seed, **settings), path / "a.db", name)


def test_run_again_goes_on(tmp_path: Path) -> None:
    first = study(tmp_path).run(rounds=2, batch=5)
    more = study(tmp_path).run(rounds=4, batch=5)
    whole = study(tmp_path, name="whole").run(rounds=4, batch=5)
    assert [s.best for s in more[:2]] == [s.best for s in first]
    drop = lambda s: {k: v for k, v in s.to_dict().items() if not k.endswith("_s")}  # noqa: E731
    assert [drop(s) for s in more] == [drop(s) for s in whole]


def test_the_same_object_goes_on_too(tmp_path: Path) -> None:
    mine = study(tmp_path)
    mine.run(rounds=1, batch=5)
    assert mine.finished == 1
    assert len(mine.run(rounds=3, batch=5)) == 3
    assert len(mine.optimizer.data) == 2 + 15, "start data and three rounds, each told once"
    assert mine.best is not None and mine.best.value == max(entry["value"] for entry in mine.optimizer.history)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"seed": 1}, "seed: 0 stored, 1 now"),
        ({"method": "random"}, "method: 'evolution' stored, 'random' now"),
        ({"population": 7}, "population: 100 stored, 7 now"),
    ],
    ids=["seed", "method", "setting"],
)
def test_resuming_with_other_settings_is_refused_by_name(tmp_path: Path, change: dict[str, Any], named: str) -> None:
    study(tmp_path, name="s").run(rounds=1, batch=5)
    with pytest.raises(SettingsError, match=named):
        study(tmp_path, name="s", **change).run(rounds=2, batch=5)


def test_other_batch_space_or_start_data_are_refused_by_name(tmp_path: Path) -> None:
    study(tmp_path, name="s").run(rounds=1, batch=5)
    with pytest.raises(SettingsError, match="batch: 5 stored, 6 now"):
        study(tmp_path, name="s").run(rounds=1, batch=6)
    other = FunctionTask(square, Space((Real("x", 0, 11),)), name="line", start=([[1.0], [2.0]], [1.0, 4.0]))
    with pytest.raises(SettingsError, match="space"):
        Study(other, make_optimizer("evolution", other.space), tmp_path / "a.db", "s").run(1, 5)
    with pytest.raises(SettingsError, match="start data"):
        Study(task(), make_optimizer("evolution", LINE), tmp_path / "a.db", "s").run(1, 5)


def test_settings_of_our_own_method_are_part_of_it(tmp_path: Path, tiny: EnsembleConfig) -> None:
    from dataclasses import replace

    study(tmp_path, "diffbbo", name="s", config=tiny, device="cpu").run(rounds=1, batch=3)
    with pytest.raises(SettingsError, match="hidden: 32 stored, 16 now"):
        study(tmp_path, "diffbbo", name="s", config=replace(tiny, hidden=16), device="cpu").run(rounds=1, batch=3)


def test_a_categorical_space_resumes(tmp_path: Path) -> None:
    """Tuples become lists in JSON; that must not look like another space."""
    space = Space((Categorical("c", ("a", "b", "c")), Real("x", 0, 1)))
    problem = FunctionTask(lambda d: d["x"], space, name="mixed")
    for rounds in (1, 2):
        found = Study(problem, make_optimizer("random", space), tmp_path / "a.db").run(rounds, 4)
        assert len(found) == rounds


def test_failures_are_stored_told_and_never_asked_again(tmp_path: Path) -> None:
    space = Space((Categorical("c", (1, 2, 3, 8, 9, 10)), Categorical("d", (0, 1))))
    problem = FunctionTask(lambda d: difficult({"x": d["c"]}), space, name="difficult")
    mine = Study(problem, make_optimizer("random", space), tmp_path / "a.db")
    mine.run(rounds=3, batch=4)
    assert len(mine.optimizer.data) == 12 and int(mine.optimizer.data.failed.sum()) == 4
    rows = designs(mine.storage)
    assert len({(row["c"], row["d"]) for row in rows}) == 12, "all twelve designs, each once"
    assert {row["c"]: row["status"] for row in rows} == {
        1: "ok", 2: "error", 3: "failed", 8: "ok", 9: "ok", 10: "ok"
    }  # fmt: skip
    assert sum(s.failures for s in summaries(mine.storage.rounds(1), minimize=False)) == 4


def test_an_oracle_that_hangs_or_kills_its_process_loses_only_that_design(tmp_path: Path) -> None:
    """All eight designs of a space through two workers: the study goes on to its end, and remembers who failed how."""
    space = Space((Integer("x", 1, 8),))
    problem = FunctionTask(difficult, space, name="difficult")
    mine = Study(problem, make_optimizer("random", space), tmp_path / "a.db", backend=Processes(2, timeout=3))
    mine.run(rounds=2, batch=4)
    rows = {row["x"]: (row["status"], row["value"]) for row in designs(mine.storage)}
    failed = {2: "error", 3: "failed", 4: "timeout", 5: "died", 6: "died", 7: "failed"}
    assert rows == {1: ("ok", 1.0), 8: ("ok", 64.0)} | {x: (status, None) for x, status in failed.items()}
    assert mine.best is not None and mine.best.value == 64.0
    assert int(mine.optimizer.data.failed.sum()) == 6


def test_a_round_of_failures_alone_has_no_numbers(tmp_path: Path) -> None:
    problem = FunctionTask(lambda d: float("nan"), LINE, name="nan")
    (only,) = Study(problem, make_optimizer("random", LINE), tmp_path / "a.db").run(1, 3)
    assert (only.best, only.batch_mean, only.batch_max, only.failures) == (None, None, None, 3)


def test_summary_numbers(tmp_path: Path) -> None:
    """Two hand-made rounds: best is by queries alone, gap is |y* - best of the batch|."""
    with Storage(tmp_path / "a.db") as storage:
        from diffbbo.schema import Outcome
        from tests.test_storage import add_study

        key = add_study(storage)
        for number, values, target in ((1, [1.0, 3.0], 5.0), (2, [2.0, 2.5], 2.0)):
            x = np.array([[0.0], [0.0 + number]]) if number == 1 else np.array([[7.0], [7.0]])
            storage.add_round(key, number, x, np.array([0, 1]), {"target": target, "weight": 0.9})
            entry = storage.rounds(key, number)[0]
            storage.add_results([(i, Outcome("ok", v)) for i, v in zip(entry.ids, values, strict=True)])
        up = summaries(storage.rounds(key), minimize=False)
        down = summaries(storage.rounds(key), minimize=True)
    assert [s.best for s in up] == [3.0, 3.0] and [s.best for s in down] == [1.0, 1.0]
    assert [s.batch_mean for s in up] == [2.0, 2.25] and [s.batch_max for s in down] == [1.0, 2.0]
    assert [s.gap for s in up] == [2.0, 0.5]
    assert [s.distinct for s in up] == [2, 1]


def test_minimised_studies_store_and_show_raw_values(tmp_path: Path) -> None:
    problem = task(minimize=True, start=([[9.0], [8.0]], [81.0, 64.0]))
    mine = Study(problem, make_optimizer("evolution", LINE, minimize=True), tmp_path / "a.db")
    found = mine.run(rounds=4, batch=10)
    assert [s.best for s in found] == sorted((s.best for s in found), reverse=True)
    assert mine.best is not None and mine.best.value == found[-1].best == min(r["value"] for r in designs(mine.storage))


def test_direction_and_space_must_agree(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="minimize"):
        Study(task(minimize=True), make_optimizer("random", LINE), tmp_path / "a.db")
    with pytest.raises(InputError, match="different spaces"):
        Study(task(), make_optimizer("random", Space((Real("x", 0, 2),))), tmp_path / "a.db")


@pytest.mark.parametrize(("rounds", "batch"), [(0, 5), (1, 0), (1.5, 5), (True, 5)])
def test_rounds_and_batch_must_be_positive(tmp_path: Path, rounds: Any, batch: Any) -> None:
    with pytest.raises(InputError, match="not a positive number"):
        study(tmp_path).run(rounds, batch)


def test_a_run_that_would_exhaust_the_space_is_refused_before_it_begins(tmp_path: Path) -> None:
    space = Space((Categorical("c", (1, 2, 3, 4)),))
    problem = FunctionTask(lambda d: d["c"], space, name="tiny")
    with pytest.raises(ExhaustedError, match=r"3 rounds of 2 need 6 designs.*4.*at most 2 rounds"):
        Study(problem, make_optimizer("random", space), tmp_path / "a.db").run(3, 2)
    assert len(Study(problem, make_optimizer("random", space), tmp_path / "a.db").run(2, 2)) == 2


def test_processes_give_the_serial_study(tmp_path: Path) -> None:
    tables = []
    for name, backend in (("serial", None), ("parallel", Processes(2))):
        mine = Study(task(), make_optimizer("evolution", LINE), tmp_path / f"{name}.db", "s", backend)
        mine.run(rounds=2, batch=6)
        tables.append([{k: v for k, v in row.items() if k != "seconds"} for row in designs(mine.storage)])
    assert tables[0] == tables[1]


def test_two_studies_in_one_file_do_not_disturb_each_other(tmp_path: Path) -> None:
    """Two processes write at the same time; each study equals the one run alone."""
    code = (
        "import sys; from tests.test_study import study; from pathlib import Path;"
        "study(Path(sys.argv[1]), seed=int(sys.argv[2])).run(rounds=10, batch=10)"
    )
    (tmp_path / "both").mkdir()
    both = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "both"), str(seed)], cwd=ROOT) for seed in (0, 1)
    ]
    assert [child.wait(timeout=300) for child in both] == [0, 0]
    for seed in (0, 1):
        alone = study(tmp_path, seed=seed)
        alone.run(rounds=10, batch=10)
        with Storage(tmp_path / "both" / "a.db", create=False) as storage:
            names = {row["study"] for row in designs(storage)}
            together = [{**row, "seconds": 0} for row in designs(storage, alone.name)]
        assert names == {"line-evolution-0", "line-evolution-1"}
        assert together == [{**row, "seconds": 0} for row in designs(alone.storage, alone.name)]


class Counted(FunctionTask):
    """Says of a batch how many of its designs are large."""

    def facts(self, x: np.ndarray) -> dict[str, float]:
        return {"large": float((x[:, 0] > 0.5).mean())}


def test_what_a_task_says_of_a_batch_is_stored_and_shown(tmp_path: Path) -> None:
    from diffbbo.terminal import round_line

    space = Space([Real("a", 0, 1)])
    for _ in range(2):  # run, and read back
        optimizer = make_optimizer("random", space, seed=0)
        (entry,) = Study(Counted(lambda design: design["a"], space), optimizer, tmp_path / "s.db").run(1, 8)
        assert entry.facts == {"large": (optimizer.data.x[:, 0] > 0.5).mean()}
        assert f"large {entry.facts['large']:.4g}" in round_line(entry, 1)
