"""Whatever an oracle does, only its own design is lost."""

from __future__ import annotations

import time

import numpy as np
import pytest

from diffbbo import FunctionTask, Processes, Serial, make_task
from diffbbo.types import Array, InputError
from tests.oracles import LINE, difficult, square, task

X = np.arange(1.0, 9.0)[:, None]


def test_serial_captures_exceptions_and_values_that_are_none() -> None:
    found = dict(Serial().evaluate(task(difficult), X[[0, 1, 2, 6, 7]]))
    assert [found[i].status for i in range(5)] == ["ok", "error", "failed", "failed", "ok"]
    assert found[0].value == 1.0 and found[4].value == 64.0
    assert found[1].error == "RuntimeError: the pump is blocked"
    assert np.isnan(found[1].value) and "inf" in found[3].error


def test_processes_lose_only_the_design_that_hangs_or_dies() -> None:
    """Four of eight designs fail, each in its own way; the others have their values."""
    started = time.monotonic()
    found = dict(Processes(workers=2, timeout=3).evaluate(task(difficult), X))
    status = {int(x): found[i].status for i, (x,) in enumerate(X)}
    assert status == {1: "ok", 2: "error", 3: "failed", 4: "timeout", 5: "died", 6: "died", 7: "failed", 8: "ok"}
    assert found[0].value == 1.0 and found[7].value == 64.0
    assert "exit code -9" in found[4].error and "exit code 7" in found[5].error and "3 s" in found[3].error
    assert time.monotonic() - started < 600, "the hanging one was not waited for"


def test_a_serial_time_out_stops_a_hanging_call() -> None:
    found = dict(Serial(timeout=1).evaluate(task(difficult), X[[3, 0]]))
    assert [found[0].status, found[1].status] == ["timeout", "ok"]


def test_processes_give_what_serial_gives() -> None:
    serial = {i: o.value for i, o in Serial().evaluate(task(square), X)}
    parallel = {i: o.value for i, o in Processes(workers=3).evaluate(task(square), X)}
    assert serial == parallel


def test_a_vectorised_oracle_that_raises_takes_no_neighbour_with_it() -> None:
    class Batched(FunctionTask):
        chunk = 4

        def evaluate(self, x: Array) -> Array:
            if (x == 2).any():
                raise RuntimeError("bad row")
            return x[:, 0]

    found = dict(Serial().evaluate(Batched(square, LINE), X))
    assert [found[i].status for i in range(8)] == ["ok", "error", *["ok"] * 6]


def test_an_oracle_that_returns_the_wrong_shape_is_an_error() -> None:
    class Wrong(FunctionTask):
        def evaluate(self, x: Array) -> Array:
            return np.zeros(3)

    ((_, outcome),) = Serial().evaluate(Wrong(square, LINE), X[:1])
    assert outcome.status == "error" and "shape (3,) for 1 designs" in outcome.error


def test_a_task_that_cannot_travel_says_what_to_do() -> None:
    with pytest.raises(InputError, match="top level of a module"):
        list(Processes().evaluate(FunctionTask(lambda design: 1.0, LINE), X))


def test_real_tasks_travel() -> None:
    real = make_task("tfbind8")
    x, y = real.start(0)
    found = dict(Processes(workers=1).evaluate(real, x[:5]))
    assert [found[i].value for i in range(5)] == y[:5].tolist()


@pytest.mark.parametrize("settings", [{"workers": 0}, {"timeout": 0.0}, {"timeout": float("nan")}])
def test_bad_settings(settings: dict[str, float]) -> None:
    with pytest.raises(InputError):
        Processes(**settings)  # type: ignore[arg-type]
