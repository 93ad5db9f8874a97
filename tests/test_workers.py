"""A worker killed from outside costs its item nothing; one that ends by itself loses it."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path

from diffbbo.workers import Lost, scatter


def fragile(folder: Path, item: tuple[str, int]) -> tuple[int, int]:
    """(calls of this item, process id); its process is ended during the first so many calls."""
    how, times = item
    calls = len(list(folder.glob(f"{how}-{times}-*"))) + 1
    (folder / f"{how}-{times}-{calls}").touch()
    if calls <= times:
        os.kill(os.getpid(), signal.SIGKILL if how == "killed" else signal.SIGTERM)
    return calls, os.getpid()


def test_who_is_killed_has_a_second_chance_and_no_third(tmp_path: Path) -> None:
    items = [("killed", 0), ("killed", 1), ("killed", 2), ("ended", 1), ("ended", 0)]
    found = dict(scatter(partial(fragile, tmp_path), items, workers=2))
    assert [found[k][0] for k in (0, 1, 4)] == [1, 2, 1]
    for k, code in ((2, -signal.SIGKILL), (3, -signal.SIGTERM)):
        assert isinstance(found[k], Lost) and found[k].status == "died" and f"exit code {int(code)}" in found[k].error
    assert len(list(tmp_path.iterdir())) == 1 + 2 + 2 + 1 + 1, "so many calls"


def test_a_worker_killed_while_it_is_idle_is_replaced(tmp_path: Path) -> None:
    items = [("killed", 0), ("ended", 0), ("other", 0)]
    pids = []
    for _, (calls, pid) in scatter(partial(fragile, tmp_path), items, workers=1):
        assert calls == 1
        pids.append(pid)
        os.kill(pid, signal.SIGKILL)  # between two items
    assert len(set(pids)) == 3
