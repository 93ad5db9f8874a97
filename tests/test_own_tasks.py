"""A user's own problem: a table, and a program called once per design."""

from __future__ import annotations

import json
import logging
import math
import os
import pickle
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from diffbbo import (
    CommandTask,
    DiffBBOError,
    InputError,
    Integer,
    Processes,
    Real,
    Serial,
    Space,
    Study,
    TableTask,
    make_optimizer,
)
from diffbbo.testing import check_task
from diffbbo.variables import Categorical, Sequence

ROWS = [{"t": 10 * k, "solvent": "thf" if k % 2 else "water", "yield": float(k)} for k in range(8)]
SPACE = Space((Integer("t", 0, 70), Categorical("solvent", ("thf", "water"))))

# ---- a table ---------------------------------------------------------------------------------------


@pytest.fixture(params=["csv", "frame", "dicts", "columns"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    frame = pd.DataFrame(ROWS)
    path = tmp_path / "reactions.csv"
    frame.to_csv(path, index=False)
    columns = {name: list(frame[name]) for name in frame.columns}
    return {"csv": path, "frame": frame, "dicts": ROWS, "columns": columns}[request.param]


def test_a_table_is_looked_up(table: Any) -> None:
    """Eight designs with the values 0 to 7: the third and fourth from below are the start, the rest is not measured."""
    task = TableTask(table, "yield")
    assert task.space == SPACE
    designs = [{"t": 30, "solvent": "thf"}, {"t": 30, "solvent": "water"}, {"t": 31, "solvent": "thf"}]
    np.testing.assert_array_equal(task.evaluate(task.space.rows(designs)), [3, math.nan, math.nan])
    x, y = task.start()
    assert y.tolist() == [2, 3] and task.space.dicts(x)[0] == {"t": 20, "solvent": "water"}
    assert (task.maximum, task.range, task.card().start) == (7, (0, 7), 2)
    check_task(task, travels=False)


def test_smaller_is_better() -> None:
    """From the worst, 7, the third and fourth are 5 and 4; the scale runs from 7 to 0."""
    task = TableTask(ROWS, "yield", minimize=True)
    assert task.start()[1].tolist() == [5, 4]
    assert (task.maximum, task.normalise([7, 0]).tolist()) == (0, [0, 1])
    check_task(task)  # also in a worker process


def test_a_design_listed_twice_has_the_mean_and_a_failed_one_has_no_value() -> None:
    """2 and 4 have the mean 3; blank, None, 'failed' and NaN are not measured."""
    cells = [2, 4, 7, "", None, "failed", math.nan]
    rows = [{"n": n, "y": y} for n, y in zip([1, 1, 2, 3, 4, 5, 6], cells, strict=True)]
    task = TableTask(rows, "y", start=0)
    assert task.table.tolist() == [3, 7]
    np.testing.assert_array_equal(task.evaluate(np.arange(1.0, 7)[:, None]), [3, 7] + [math.nan] * 4)


def test_a_chosen_start() -> None:
    """A number is drawn anew by every seed; rows are the table's own, each design once."""
    drawn = TableTask(ROWS, "yield", start=5)
    assert len(set(drawn.start(1)[1])) == 5 == drawn.card().start
    assert drawn.start(1)[1].tolist() == drawn.start(1)[1].tolist() != drawn.start(2)[1].tolist()
    assert TableTask(ROWS, "yield", start=[6, 0, 6]).start()[1].tolist() == [6, 0]
    assert len(TableTask(ROWS, "yield", start=0).start()[1]) == 0


def test_a_space_of_ones_own_ignores_other_columns(tmp_path: Path) -> None:
    """With semicolons and a byte order mark, as spreadsheets write it."""
    path = tmp_path / "dna.csv"
    path.write_text("well;dna;y\nA1;ACG;1\nA2;TTT;2.5\n", encoding="utf-8-sig")
    task = TableTask(path, "y", Space((Sequence("dna", 3, "ACGT"),)))
    assert (task.name, task.space.size) == ("dna", 64)
    np.testing.assert_array_equal(task.evaluate(task.space.rows([{"dna": "TTT"}, {"dna": "AAA"}])), [2.5, math.nan])


@pytest.mark.parametrize(
    ("make", "told"),
    [
        pytest.param(lambda: TableTask(ROWS, "yeild"), "no column 'yeild'; it has t, solvent, yield", id="objective"),
        pytest.param(lambda: TableTask("none.csv", "y"), "none.csv cannot be read", id="no file"),
        pytest.param(lambda: TableTask(7, "y"), "7 is not a table", id="no table"),
        pytest.param(lambda: TableTask([1], "y"), "Row 1 is 1, not a dict", id="a row of numbers"),
        pytest.param(lambda: TableTask([{"a": 1, "y": 1}, {"y": 2}], "y"), "Row 2 has no 'a'", id="a gap"),
        pytest.param(lambda: TableTask({"a": [1, 2], "y": [1]}, "y"), "2 designs but 1 values", id="a short column"),
        pytest.param(
            lambda: TableTask([{"a": 1, "y": "high"}, {"a": 2, "y": 1}], "y"), "Row 1, column 'y': 'high'", id="text"
        ),
        pytest.param(
            lambda: TableTask([{"a": 1, "y": math.inf}, {"a": 2, "y": 1}], "y"), "column 'y': inf", id="infinite"
        ),
        pytest.param(
            lambda: TableTask([{"a": 1, "y": ""}, {"a": 2, "y": ""}], "y"), "'y' holds no value", id="nothing measured"
        ),
        pytest.param(
            lambda: TableTask(ROWS, "yield", LINE), "The column 'x' is missing; there are t, solvent", id="space"
        ),
        pytest.param(lambda: TableTask(ROWS, "t", SPACE), "'t' is also a variable", id="objective in the space"),
        pytest.param(lambda: TableTask(ROWS, "yield", start=9), "start = 9. Use 0 to 8", id="too many"),
        pytest.param(lambda: TableTask(ROWS, "yield", start=[8]), "start holds 8. Name rows", id="row"),
        pytest.param(
            lambda: TableTask([*ROWS, {"t": 5, "solvent": "thf", "yield": "failed"}], "yield", start=[8]),
            "row 8, which has no value", id="a failed row",
        ),
    ],
)  # fmt: skip
def test_tables_that_cannot_be_used(make: Any, told: str) -> None:
    with pytest.raises(InputError) as caught:
        make()
    assert told in str(caught.value)
    assert caught.value.remedy


# ---- a program -------------------------------------------------------------------------------------

LINE = Space((Real("x", 0, 10), Categorical("mode", ("fast", "slow"))))
SQUARE = "import sys; print('simulating'); print(float(sys.argv[1]) ** 2); print()"
DIFFICULT = """
import json, sys, time
x = json.load(sys.stdin)["x"]
if x == 1: sys.exit("the pump is blocked")
if x == 2: print("no idea")
if x == 3: print("nan")
if x == 4: time.sleep(60)
if x == 5: print("inf")
if x == 6: import os; os.kill(os.getpid(), 9)
if x not in (2, 3, 4, 5): print(x ** 2)
"""


def python(code: str, *words: str, **settings: Any) -> CommandTask:
    """A task that runs Python code; its braces are no placeholders."""
    return CommandTask([sys.executable, "-c", code.replace("{", "{{").replace("}", "}}"), *words], LINE, **settings)


def rows(*x: float) -> Any:
    return LINE.rows([{"x": value, "mode": "fast"} for value in x])


def test_placeholders_are_filled_in() -> None:
    """The last line that is not empty counts."""
    assert python(SQUARE, "{x}").evaluate(rows(3, 0.1)).tolist() == [9, 0.1**2]


def test_values_arrive_exactly_and_as_formatted() -> None:
    """Braces doubled are braces, a format is Python's, and no shell looks at the words."""
    code = "import sys; print(float(sys.argv[1:] == ['x=0.1,{fast}', '0.10', '$HOME; exit 3']))"
    task = python(code, "x={x},{{{mode}}}", "{x:.2f}", "$HOME; exit 3")
    assert task.evaluate(rows(0.1)).tolist() == [1.0]


def test_without_placeholders_the_design_comes_as_json() -> None:
    code = "import json, sys; d = json.load(sys.stdin); print(d['x'] + (d['mode'] == 'fast'))"
    assert python(code).evaluate(rows(2)).tolist() == [3.0]


def test_a_program_passes_the_suite() -> None:
    check_task(python(SQUARE, "{x}", name="square", start=(rows(1, 2), [1, 4]), minimize=True, maximum=0.0))


@pytest.mark.parametrize("backend", [Serial(), Processes(2)], ids=["serial", "processes"])
def test_what_goes_wrong_becomes_an_outcome(backend: Any) -> None:
    task = python(DIFFICULT, timeout=3)
    outcome = dict(backend.evaluate(task, rows(0, 1, 2, 3, 4, 5, 6, 7)))
    assert [outcome[k].status for k in range(8)] == ["ok", "error", "error", "failed", "error", "error", "error", "ok"]
    assert (outcome[0].value, outcome[7].value) == (0, 49)
    assert "ended with exit code 1: the pump is blocked. Run it by hand" in outcome[1].error
    assert "printed 'no idea' as its last line, not a number" in outcome[2].error
    assert "took over 3 s" in outcome[4].error
    assert "printed 'inf'" in outcome[5].error
    assert "was ended by signal 9" in outcome[6].error


def test_a_study_goes_on_after_errors(tmp_path: Path) -> None:
    """Every second mode fails; the failures are stored and the rest is found."""
    task = python("import sys; sys.argv[1] == 'slow' and sys.exit('too slow'); print(sys.argv[2])", "{mode}", "{x}")
    study = Study(task, make_optimizer("random", LINE), tmp_path / "study.db")
    study.run(rounds=2, batch=8)
    assert study.best is not None and study.best.design["mode"] == "fast"
    assert study.best.value == study.best.design["x"]
    assert 0 < np.isnan(study.optimizer.data.y).sum() < 16


def test_nothing_printed_is_shown_as_such() -> None:
    with pytest.raises(DiffBBOError, match="printed '' as its last line, not a number"):
        python("pass").evaluate(rows(1))


def test_a_time_out_also_stops_what_the_program_started(tmp_path: Path) -> None:
    """The grandchild holds the pipe open: waiting for it would take a minute."""
    code = f"""
import pathlib, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
pathlib.Path({str(tmp_path / "pid")!r}).write_text(str(child.pid))
child.wait()
"""
    began = time.monotonic()
    with pytest.raises(DiffBBOError, match=r"took over 1 s\. Give it a longer timeout"):
        python(code, timeout=1).evaluate(rows(1))
    assert time.monotonic() - began < 20
    pid = int((tmp_path / "pid").read_text())
    for _ in range(100):
        try:
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat").read_text().split()[2] if Path("/proc").is_dir() else ""
        except (ProcessLookupError, FileNotFoundError):
            return
        if state == "Z":  # dead, and waiting for somebody to notice
            return
        time.sleep(0.05)
    raise AssertionError("the grandchild lives on")


def test_a_program_that_vanishes_is_an_error_of_that_design(tmp_path: Path) -> None:
    script = tmp_path / "measure"
    script.write_text("#!/bin/sh\necho $1\n")
    script.chmod(0o755)
    task = CommandTask(["./measure", "{x}"], LINE, folder=tmp_path)
    assert (task.name, task.evaluate(rows(2.5)).tolist()) == ("measure", [2.5])
    script.unlink()
    ((_, outcome),) = Serial().evaluate(task, rows(2.5))
    assert outcome.status == "error" and "'./measure' was not found" in outcome.error


def test_it_travels() -> None:
    again = pickle.loads(pickle.dumps(python(SQUARE, "{x}", timeout=5)))
    assert again.evaluate(rows(2)).tolist() == [4]


@pytest.mark.parametrize(
    ("command", "settings", "told"),
    [
        pytest.param("sim {x}", {}, "Give a list of words: ['sim', '{x}']", id="one text"),
        pytest.param([], {}, "command = [] is not a list of texts", id="nothing"),
        pytest.param(["sim", 3], {}, "command = ['sim', 3]", id="a number"),
        pytest.param([sys.executable, "{y}"], {}, "{y} in '{y}' is no variable; there are x, mode", id="unknown"),
        pytest.param([sys.executable, "{"], {}, "'{' cannot be filled in", id="half a brace"),
        pytest.param([sys.executable, "{mode:.2f}"], {}, "'{mode:.2f}' cannot be filled in", id="a text as a number"),
        pytest.param([sys.executable], {"timeout": 0}, "timeout = 0", id="no time"),
        pytest.param([sys.executable], {"timeout": "long"}, "timeout = 'long'", id="time as text"),
        pytest.param([sys.executable], {"folder": "nowhere"}, "folder = 'nowhere' is not a folder", id="folder"),
        pytest.param([sys.executable], {"start": (rows(1), [1, 2])}, "1 start designs but 2 values", id="start"),
    ],
)
def test_commands_that_cannot_be_used(command: Any, settings: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as caught:
        CommandTask(command, LINE, **settings)
    assert told in str(caught.value)
    assert caught.value.remedy


def test_a_missing_program_is_noticed_before_anything_runs() -> None:
    with pytest.raises(DiffBBOError, match=r"'simulate-nothing' was not found.*Install it, or correct its path"):
        CommandTask(["simulate-nothing", "{x}"], LINE)


# ---- a problem in a file ---------------------------------------------------------------------------

VARIABLES = """
[[variable]]
name = "x"
type = "real"
lower = 0
upper = 10
"""


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    """The program lies beside the file and is called by a relative path."""
    (tmp_path / "simulate.py").write_text("import sys\nprint((float(sys.argv[1]) - 3) ** 2)\n")
    (tmp_path / "data.csv").write_text("x,well,loss\n1,A1,4\n5,A2,\n9,A3,failed\n")
    command = json.dumps([sys.executable, "simulate.py", "{x}"])
    text = f'command = {command}\nstart = "data.csv"\nobjective = "loss"\nminimize = true\ntimeout = 30\n{VARIABLES}'
    (tmp_path / "valley.toml").write_text(text)
    return tmp_path / "valley.toml"


def test_a_problem_file(problem: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """(x - 3)^2 from any folder; of the data, 1 is measured, 5 pending and 9 failed."""
    monkeypatch.chdir("/")
    task = CommandTask.from_toml(problem)
    assert (task.name, task.minimize, task.function.timeout) == ("valley", True, 30)
    assert task.evaluate(np.array([[5.0]])).tolist() == [4]
    x, y = task.start()
    assert x.tolist() == [[1], [9]]
    np.testing.assert_array_equal(y, [4, math.nan])
    assert task.card().summary.endswith("simulate.py '{x}'")


def test_the_command_line_takes_a_problem_file(
    problem: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from diffbbo import cli

    logger = logging.getLogger("diffbbo")  # the command line shows notes itself, and later tests must not
    monkeypatch.setattr(logger, "handlers", logger.handlers)
    monkeypatch.setattr(logger, "propagate", logger.propagate)

    def call(*words: object) -> tuple[Any, str, str]:
        monkeypatch.setattr(sys, "argv", ["diffbbo", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        shown = capsys.readouterr()
        return stopped.value.code, shown.out, shown.err

    method = ["--method", "random", "--rounds", 1, "--batch", 4, "--storage", problem.parent / "runs.db", "--json"]
    code, shown, _ = call("run", problem, *method)
    best = json.loads(shown.strip().splitlines()[-1])["best"]
    assert not code and best["value"] == (best["design"]["x"] - 3) ** 2
    code, shown, _ = call("task", problem, "--json")
    assert not code and json.loads(shown.strip().splitlines()[-1])["name"] == "valley"
    code, _, shown = call("run", problem.with_name("none.toml"))
    assert code == 2 and "none.toml cannot be read" in shown


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(VARIABLES, "has no command. Write, say, command = [", id="no command"),
        pytest.param("comand = []" + VARIABLES, "unknown key 'comand'. Did you mean 'command'?", id="misspelt"),
        pytest.param('command = "sim"' + VARIABLES, "command = 'sim' cannot be used", id="one text"),
        pytest.param('command = ["true"]\ntimeout = true' + VARIABLES, "timeout = True cannot be used", id="time"),
        pytest.param('command = ["true"]\nstart = "a.csv"' + VARIABLES, "start data but no objective", id="objective"),
        pytest.param(
            'command = ["true"]\nobjective = "y"\nstart = "a.csv"' + VARIABLES, "a.csv cannot be read", id="no data"
        ),
        pytest.param(
            'command = ["true"]\nobjective = "y"\nstart = "data.csv"' + VARIABLES, "has no column 'y'", id="column"
        ),
        pytest.param('command = ["true"]', "describes no variable", id="no space"),
        pytest.param("command = ", "is not valid TOML", id="no TOML"),
    ],
)
def test_problem_files_that_cannot_be_used(problem: Path, text: str, told: str) -> None:
    problem.write_text(text)
    with pytest.raises(InputError) as caught:
        CommandTask.from_toml(problem)
    assert told in str(caught.value)
    assert caught.value.remedy
