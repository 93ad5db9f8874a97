"""Imports go strictly downward; importing diffbbo is quick and loads nothing heavy; no file grows without end."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src" / "diffbbo"

LAYERS = [
    ["__init__"],
    ["types", "progress"],
    ["variables", "schema", "statistics", "figures", "assets", "tables", "workers", "databases"],
    ["spaces"],
    ["encoding", "variation", "command", "graphs", "mlp"],
    ["diffusion", "forward", "usual"],
    ["uncertainty"],
    ["acquisition", "optimizer", "portfolio", "task", "robots", "chemistry", "autoencoder", "inducing"],
    ["gp"],
    ["algorithm", "baselines", "tasks", "own_tasks"],
    ["proposers"],
    ["default"],
    ["registry", "storage", "backends"],
    ["study"],
    ["compare", "plots", "charts", "logo", "export", "merge", "laboratory", "testing"],
    ["report", "standings"],
    ["terminal"],
    ["cli"],
    ["__main__"],
]
LAYER = {name: level for level, names in enumerate(LAYERS) for name in names}


def imports_of(path: Path) -> set[str]:
    """The rooms of the house that a file imports from, wherever in the file it does."""
    rooms = set()
    depth = len(path.relative_to(SRC).parts) - 1
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            full = [*path.relative_to(SRC).parts[: depth + 1 - node.level], *(node.module or "").split(".")]
            names = [part for part in full if part]
            rooms.update([names[0]] if names else [alias.name for alias in node.names])
    return {room if room in LAYER else "__init__" for room in rooms}


def room_of(path: Path) -> str:
    return path.relative_to(SRC).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", sorted(SRC.rglob("*.py")), ids=lambda path: str(path.relative_to(SRC)))
def test_imports_go_downward(path: Path) -> None:
    if path == SRC / "__init__.py":
        return  # it names everything and imports it lazily; see below
    here = room_of(path)
    upward = {room for room in imports_of(path) - {here} if LAYER[room] >= LAYER[here]}
    assert not upward, f"{here} (layer {LAYER[here]}) imports {upward}"


def test_rivals_do_not_import_each_other() -> None:
    for path in (SRC / "baselines").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            assert not (isinstance(node, ast.ImportFrom) and node.level == 1), f"{path.name} imports a sibling"


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def test_importing_diffbbo_loads_nothing_heavy() -> None:
    heavy = "{'torch', 'pandas', 'sqlalchemy', 'numpy', 'rich', 'typer', 'matplotlib', 'plotly', 'botorch', 'mujoco'}"
    assert run_python(f"import diffbbo, sys; print(sorted({heavy} & set(sys.modules)))").strip() == "[]"


def test_listing_methods_and_tasks_needs_no_torch() -> None:
    code = "import sys; from diffbbo.registry import methods, tasks; methods(); tasks(); print('torch' in sys.modules)"
    assert run_python(code).strip() == "False"


def test_every_public_name_loads() -> None:
    import diffbbo

    assert set(diffbbo.__all__) == set(diffbbo._HOME)
    for name in diffbbo.__all__:
        assert getattr(diffbbo, name).__name__ == name


def test_version_is_the_packages() -> None:
    import tomllib

    import diffbbo

    project = tomllib.loads((SRC.parents[1] / "pyproject.toml").read_text())["project"]
    assert diffbbo.__version__ == project["version"]
