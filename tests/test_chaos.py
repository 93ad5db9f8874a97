"""A study killed at random moments, again and again (tests/chaos.py says what is proved)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import chaos
from tests.postgres import missing

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds worker processes in /proc")
needs_postgres = pytest.mark.skipif(bool(missing()), reason=missing())


def test_a_few_kills(tmp_path: Path) -> None:
    assert chaos.sqlite(tmp_path, kills=5).startswith("5 kills")


@needs_postgres
def test_a_few_kills_of_study_and_server(tmp_path: Path) -> None:
    assert chaos.postgres(tmp_path, kills=4, seed=3).startswith("4 kills")


@pytest.mark.slow
def test_a_hundred_kills(tmp_path: Path) -> None:
    assert chaos.sqlite(tmp_path, kills=100).startswith("100 kills")


@pytest.mark.slow
@needs_postgres
def test_a_hundred_kills_of_study_and_server(tmp_path: Path) -> None:
    assert chaos.postgres(tmp_path, kills=100).startswith("100 kills")
