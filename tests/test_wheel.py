"""The built wheel holds what a user needs, and works outside the checkout."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, timeout=600)
    (path,) = folder.glob("diffbbo-*.whl")
    return path


@pytest.mark.slow
def test_the_wheel_holds_code_data_and_types(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {
        "diffbbo/py.typed",
        "diffbbo/data/tfbind8.npz",
        "diffbbo/data/README.md",
        "diffbbo/tasks/tfbind8.py",
    } <= names
    assert not any(name.startswith(("tests", "benchmarks", "docs")) for name in names)


@pytest.mark.slow
def test_the_wheel_runs_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    """Only the core is installed: no pandas, no matplotlib, no plotly."""
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", wheel]
    subprocess.run(install, check=True, timeout=1800)
    run = [python, "-m", "diffbbo", "run", "tfbind8", "--rounds", "2", "--batch", "20", "--json"]
    done = subprocess.run(run, check=True, capture_output=True, text=True, timeout=600, cwd=tmp_path)
    assert len(json.loads(done.stdout.splitlines()[-1])["rounds"]) == 2
    report = [python, "-m", "diffbbo", "report", "runs/diffbbo.db", "--out", "r.html"]
    refused = subprocess.run(report, capture_output=True, text=True, cwd=tmp_path)
    assert refused.returncode == 2 and 'pip install "diffbbo[report]"' in refused.stderr
