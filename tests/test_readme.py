"""What the documents show is what happens: their code is run, with a small network."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from diffbbo import Space
from diffbbo.diffusion import config
from diffbbo.laboratory import read_history

ROOT = Path(__file__).parents[1]


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md", "docs/tasks.md"])
def test_the_python_of_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(config.PRESETS, "fast", {"hidden": 16, "layers": 2, "max_steps": 40, "check_every": 20})
    names: dict[str, object] = {"__name__": "__main__"}  # dataclasses look their module up
    exec("\n".join(blocks(page, "python")), names)
    assert names["opt"].best is not None and names["study"].finished >= 2  # type: ignore[attr-defined]


def test_the_laboratory_files_of_the_readme_are_valid(tmp_path: Path) -> None:
    (toml,) = blocks("README.md", "toml")
    (tmp_path / "space.toml").write_text(toml)
    (table,) = blocks("README.md", "csv")
    (tmp_path / "history.csv").write_text(table)
    space = Space.from_toml(tmp_path / "space.toml")
    history = read_history(tmp_path / "history.csv", space, "yield")
    assert (len(history.y), len(history.pending), history.ignored) == (2, 1, ("well",))


def test_every_command_of_the_readme_exists() -> None:
    shown = set(re.findall(r"^diffbbo (\w+)", (ROOT / "README.md").read_text(), re.MULTILINE))
    done = subprocess.run([sys.executable, "-m", "diffbbo", "--help"], capture_output=True, text=True, check=True)
    assert shown == {"tasks", "task", "run", "suggest", "compare", "report", "export", "merge"}
    assert all(name in done.stdout for name in {*shown, "methods"})


def test_links_between_the_documents_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
