"""A study killed with SIGKILL and resumed equals the undisturbed one, bit for bit."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from diffbbo import Storage
from diffbbo.export import designs
from tests.crash_child import BATCH, ROUNDS

ROOT = Path(__file__).parents[1]

# (round, stage, count): ten moments, in the order in which one run after the other meets them.
MOMENTS = [
    (1, "training", 2), (1, "sampling", 1), (1, "oracle", 1), (1, "evaluating", 2), (1, "oracle", 4),
    (2, "training", 1), (2, "evaluating", 1), (2, "oracle", 5), (3, "sampling", 1), (3, "evaluating", 6),
]  # fmt: skip


def command(folder: Path, moment: tuple[int, str, int]) -> list[str]:
    where = [str(folder / "study.db"), str(folder / "log")]
    return [sys.executable, "-m", "tests.crash_child", *where, *map(str, moment)]


def run(folder: Path, moment: tuple[int, str, int]) -> int:
    return subprocess.run(command(folder, moment), cwd=ROOT, timeout=300).returncode


def table(folder: Path) -> list[dict[str, Any]]:
    """Every stored design with its result, less the seconds it took."""
    with Storage(folder / "study.db", create=False) as storage:
        return [{k: v for k, v in row.items() if k != "seconds"} for row in designs(storage)]


def evaluations(folder: Path) -> Counter[str]:
    return Counter((folder / "log").read_text().splitlines())


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("undisturbed")
    assert run(folder, (0, "never", 0)) == 0
    assert evaluations(folder).total() == ROUNDS * BATCH
    return table(folder)


def test_killed_at_ten_moments_and_resumed(tmp_path: Path, undisturbed: list[dict[str, Any]]) -> None:
    for moment in MOMENTS:
        assert run(tmp_path, moment) == -signal.SIGKILL, f"the run did not reach {moment}"
    assert run(tmp_path, (0, "never", 0)) == 0
    assert table(tmp_path) == undisturbed
    # Only a design in flight at a kill is evaluated again: one for each kill inside the oracle.
    again = sum(count - 1 for count in evaluations(tmp_path).values())
    assert again == sum(stage == "oracle" for _, stage, _ in MOMENTS)


def test_running_a_complete_study_evaluates_nothing(tmp_path: Path, undisturbed: list[dict[str, Any]]) -> None:
    for _ in range(2):
        assert run(tmp_path, (0, "never", 0)) == 0
    assert table(tmp_path) == undisturbed and evaluations(tmp_path).total() == ROUNDS * BATCH


@pytest.mark.slow
def test_killed_at_fifty_random_instants(tmp_path: Path, undisturbed: list[dict[str, Any]]) -> None:
    """Wherever the clock happens to hit: imports, training, a write."""
    chance = random.Random(0)
    for _ in range(50):
        child = subprocess.Popen(command(tmp_path, (0, "never", 0)), cwd=ROOT)
        time.sleep(chance.uniform(0, 6))
        child.kill()
        child.wait()
    assert run(tmp_path, (0, "never", 0)) == 0
    assert table(tmp_path) == undisturbed
    assert all(count <= 50 for count in evaluations(tmp_path).values())
