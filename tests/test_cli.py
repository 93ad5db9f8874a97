"""The command line as a user meets it: exit codes, the JSON, and never a traceback."""

from __future__ import annotations

import csv
import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from diffbbo import cli


@pytest.fixture(autouse=True)
def restore_logging() -> object:
    logger = logging.getLogger("diffbbo")
    before = logger.handlers, logger.propagate
    yield
    logger.handlers, logger.propagate = before


@pytest.fixture
def diffbbo(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> object:
    """Call the program; returns (exit code, stdout, stderr)."""

    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["diffbbo", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return int(stopped.value.code or 0), captured.out, captured.err

    return call


def last_json(text: str) -> object:
    return json.loads(text.strip().splitlines()[-1])


def test_tasks_and_methods(diffbbo) -> None:
    code, out, _ = diffbbo("tasks")
    assert code == 0 and "tfbind8" in out and "65,536" in out
    assert {"tfbind8"} <= {entry["name"] for entry in last_json(diffbbo("tasks", "--json")[1])}
    code, out, _ = diffbbo("methods", "--json")
    assert {"diffbbo", "diffbbo-paper", "random", "evolution"} <= {entry["name"] for entry in last_json(out)}
    code, out, _ = diffbbo("task", "tfbind8", "--json")
    assert code == 0 and last_json(out)["size"] == 65536


def test_run_resume_and_json(diffbbo, tmp_path: Path) -> None:
    words = ["run", "tfbind8", "--method", "evolution", "--batch", 10, "--storage", tmp_path / "a.db", "--json"]
    code, out, err = diffbbo(*words, "--rounds", 2)
    assert code == 0 and "round 2/2" in err
    found = last_json(out)
    assert set(found) == {"task", "method", "seed", "rounds", "best"}
    keys = {
        "round",
        "best",
        "batch_mean",
        "batch_max",
        "weight",
        "epistemic",
        "aleatoric",
        "gap",
        "train_s",
        "acquire_s",
    }
    assert keys <= set(found["rounds"][0]) and [entry["round"] for entry in found["rounds"]] == [1, 2]
    assert found["best"]["value"] == found["rounds"][-1]["best"] and len(found["best"]["design"]["dna"]) == 8
    code, out, err = diffbbo(*words, "--rounds", 2)
    assert code == 0 and "is complete" in err and "nothing was evaluated" in err and last_json(out) == found
    code, out, err = diffbbo(*words, "--rounds", 3)
    assert code == 0 and "round 3/3" in err and "round 2/3" not in err
    code, _, err = diffbbo("run", "tfbind8", "--method", "evolution", "--batch", 11, "--storage", tmp_path / "a.db")
    assert code == 2 and "batch: 10 stored, 11 now" in err


def test_report_and_export(diffbbo, tmp_path: Path) -> None:
    diffbbo("run", "tfbind8", "--method", "random", "--rounds", 1, "--batch", 5, "--storage", tmp_path / "a.db")
    assert diffbbo("report", tmp_path / "a.db", "--out", tmp_path / "r.html")[0] == 0
    assert "tfbind8" in (tmp_path / "r.html").read_text()
    assert diffbbo("export", tmp_path / "a.db", "--out", tmp_path / "e.csv")[0] == 0
    assert len(list(csv.DictReader((tmp_path / "e.csv").read_text().splitlines()))) == 5


def test_compare(diffbbo, tmp_path: Path) -> None:
    size = ["--seeds", 2, "--rounds", 2, "--batch", 10, "--out", tmp_path / "results"]
    code, out, err = diffbbo("compare", "tfbind8", "--methods", "random,evolution", *size, "--json")
    assert code == 0 and "4/4" in err
    assert [entry["rank"] for entry in last_json(out)] == [1, 2]
    rows = list(csv.DictReader((tmp_path / "results" / "comparison.csv").read_text().splitlines()))
    assert len(rows) == 2 * 2 * 2 and {"task", "method", "seed", "batch", "round", "best", "distinct"} <= set(rows[0])
    assert (tmp_path / "results" / "comparison.png").stat().st_size > 10_000
    assert (tmp_path / "results" / "comparison.svg").read_text().lstrip().startswith("<?xml")


def test_compare_without_matplotlib_says_so_before_it_runs(diffbbo, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, _, err = diffbbo("compare", "tfbind8", "--methods", "random", "--out", tmp_path / "results")
    assert code == 2 and 'pip install "diffbbo[plots]"' in err
    assert not (tmp_path / "results").exists(), "nothing was run"


SPACE = """
[[variable]]
name = "temperature"
type = "real"
lower = 20
upper = 120

[[variable]]
name = "solvent"
type = "categorical"
values = ["water", "thf"]
"""
HISTORY = """well,temperature,solvent,yield
A1,30,water,1.0
A2,50,thf,2.5
A3,70,thf,failed
A4,90,water,
"""


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    (tmp_path / "space.toml").write_text(SPACE)
    (tmp_path / "history.csv").write_text(HISTORY)
    return tmp_path


def suggest(diffbbo, lab: Path, *more: object) -> tuple[int, str, str]:
    words = ["--space", lab / "space.toml", "--data", lab / "history.csv", "--objective", "yield", "--batch", 6]
    return diffbbo("suggest", *words, "--out", lab / "next.csv", *more)


def test_the_laboratorys_loop(diffbbo, lab: Path) -> None:
    code, _, err = suggest(diffbbo, lab, "--method", "evolution")
    assert code == 0
    assert "columns ignored: well" in err and "3 results (1 failed) and 1 pending" in err
    rows = list(csv.DictReader((lab / "next.csv").read_text().splitlines()))
    assert len(rows) == 6 and list(rows[0]) == ["temperature", "solvent", "yield"]
    assert all(20 <= float(row["temperature"]) <= 120 and row["yield"] == "" for row in rows)
    asked = {(row["temperature"], row["solvent"]) for row in rows}
    assert not asked & {("70.0", "thf"), ("90.0", "water")}, "neither the failed nor the pending design"
    code, out, _ = suggest(diffbbo, lab, "--method", "evolution", "--json")
    assert [d["solvent"] for d in last_json(out)["designs"]] == [row["solvent"] for row in rows], "no state is kept"


def test_the_laboratorys_loop_with_rounds(diffbbo, lab: Path) -> None:
    plain = HISTORY.splitlines()
    lines = [f"{plain[0]},round", *(f"{line},{k}" for k, line in enumerate(plain[1:]))]
    (lab / "history.csv").write_text("\n".join(lines))
    code, _, err = suggest(diffbbo, lab, "--method", "evolution")
    assert code == 0 and "columns ignored: well\n" in err
    rows = list(csv.DictReader((lab / "next.csv").read_text().splitlines()))
    assert list(rows[0]) == ["temperature", "solvent", "yield", "round"] and {row["round"] for row in rows} == {"4"}


def test_suggest_with_our_own_method_and_a_direction(diffbbo, lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from diffbbo.diffusion import config

    monkeypatch.setitem(config.PRESETS, "fast", {"hidden": 16, "layers": 2, "max_steps": 40, "check_every": 20})
    up, down = (
        last_json(suggest(diffbbo, lab, *more, "--device", "cpu", "--json")[1]) for more in ([], ["--minimize"])
    )
    assert len(up["designs"]) == 6 and up["designs"] != down["designs"]
    assert up["info"]["weight"] in (0.8, 0.9, 1.0, 1.1, 1.2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "tfbind9"], "no task 'tfbind9'.*Did you mean 'tfbind8'"),
        (["run", "tfbind8", "--method", "difbbo"], "no method 'difbbo'.*Did you mean 'diffbbo'"),
        (["run", "tfbind8", "--batch", "0"], "batch = 0"),
        (["run", "tfbind8", "--rounds", "0"], "rounds = 0"),
        (["run", "tfbind8", "--batch", "60000"], "need 960000 designs"),
        (["run", "tfbind8", "--seed", "-1"], "seed = -1"),
        (["run", "tfbind8", "--preset", "huge"], "no preset 'huge'"),
        (["run", "tfbind8", "--storage", "nonsense://x/y"], "cannot be opened"),
        (["run", "tfbind8", "--storage", "/proc/a.db"], "cannot be created"),
        (["run", "tfbind8", "--method", "random", "--timeout", "0"], "timeout = 0"),
        (["report", "missing.db", "--out", "r.html"], "no storage at missing.db"),
        (["export", "missing.db", "--out", "r.csv"], "no storage at missing.db"),
        (["compare", "tfbind8", "--seeds", "0", "--out", "x"], "seeds = 0"),
        (["compare", "nothing", "--out", "x"], "no task 'nothing'"),
        (["suggest", "--space", "none.toml", "--data", "h.csv", "--objective", "y", "--out", "n.csv"], "none.toml"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_one_line_and_a_remedy(
    diffbbo, words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import re

    monkeypatch.chdir(tmp_path)
    code, out, err = diffbbo(*words)
    assert code == 2 and out == ""
    assert re.search(message, " ".join(err.split())), err


def test_cuda_where_there_is_none(diffbbo, tmp_path: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has CUDA")
    code, _, err = diffbbo("run", "tfbind8", "--device", "cuda", "--storage", tmp_path / "a.db")
    assert code == 2 and "no usable CUDA device" in err and "'cpu' or 'auto'" in err


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("space.toml", "", "describes no variable"),
        ("space.toml", "= not toml", "is not valid TOML"),
        ("space.toml", SPACE.replace('"real"', '"complex"'), "unknown type 'complex'"),
        ("space.toml", SPACE.replace("lower = 20", "lower = 120"), "lower = 120 is not below upper = 120"),
        ("space.toml", SPACE.replace('"solvent"', '"temperature"'), "Two variables are named 'temperature'"),
        ("history.csv", "", "is empty"),
        ("history.csv", HISTORY.replace("50,", "500,"), "Row 2, column 'temperature': '500' is outside its range"),
        ("history.csv", HISTORY.replace("temperature", "temp"), "no column 'temperature'"),
        ("history.csv", HISTORY.replace("2.5", "lots"), "Row 2, column 'yield': 'lots'"),
        ("history.csv", HISTORY.replace("2.5", "inf"), "Row 2, column 'yield': 'inf'"),
    ],
)
def test_bad_files_for_suggest(diffbbo, lab: Path, old: str, new: str, message: str) -> None:
    (lab / old).write_text(new)
    code, _, err = suggest(diffbbo, lab)
    assert code == 2 and message in " ".join(err.split())
    assert not (lab / "next.csv").exists()


def test_a_finite_space_with_too_few_designs_left(diffbbo, lab: Path) -> None:
    (lab / "space.toml").write_text(SPACE.replace('"real"', '"integer"').replace("120", "22"))
    (lab / "history.csv").write_text("temperature,solvent,yield\n20,water,1\n21,thf,\n")
    code, _, err = suggest(diffbbo, lab)
    assert code == 2 and "only 4 of the space's 6 designs are left" in err and "at most 4" in err


def test_help_is_quick_and_needs_no_torch() -> None:
    code = "import sys, diffbbo.cli; print('torch' in sys.modules or 'sqlalchemy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"


def test_python_dash_m_works() -> None:
    done = subprocess.run([sys.executable, "-m", "diffbbo", "methods", "--json"], capture_output=True, text=True)
    assert done.returncode == 0 and json.loads(done.stdout)
