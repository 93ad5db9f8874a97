"""How a batch is evaluated: in this process, or in worker processes that may hang or die alone."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from .schema import Outcome
from .task import Task
from .types import Array, InputError
from .workers import Lost, scatter


class Backend(Protocol):
    """Evaluates designs `x` `(n, d)` and yields (position, outcome) as each is done, in any order."""

    def evaluate(self, task: Task, x: Array) -> Iterator[tuple[int, Outcome]]: ...


@dataclass(frozen=True)
class Serial:
    """One after the other in this process. With a `timeout` (seconds per design), in one worker process.

    A hanging call can only be stopped from outside, so a time-out needs a process of its own.
    """

    timeout: float | None = None

    def evaluate(self, task: Task, x: Array) -> Iterator[tuple[int, Outcome]]:
        if self.timeout is not None:
            yield from Processes(workers=1, timeout=self.timeout).evaluate(task, x)
            return
        for start in range(0, len(x), task.chunk):
            part = x[start : start + task.chunk]
            outcomes = _evaluate(task, part)
            if len(part) > 1 and any(outcome.status == "error" for outcome in outcomes):
                # One bad design must not take its neighbours with it.
                outcomes = [_evaluate(task, row[None])[0] for row in part]
            yield from enumerate(outcomes, start)


@dataclass(frozen=True)
class Processes:
    """`workers` processes, one design each at a time, with an optional `timeout` in seconds per design.

    A worker that raises, hangs or dies loses its own design only; a new one takes its place. One that is killed from
    outside (SIGKILL) does not count against its design: that is tried a second time.
    """

    workers: int = 2
    timeout: float | None = None

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise InputError(f"workers = {self.workers}.", "Use at least 1.")
        if self.timeout is not None and not self.timeout > 0:
            raise InputError(f"timeout = {self.timeout} s.", "Use a positive number of seconds, or None.")

    def evaluate(self, task: Task, x: Array) -> Iterator[tuple[int, Outcome]]:
        for position, result in scatter(partial(_evaluate_one, task), list(x), self.workers, self.timeout):
            yield position, Outcome(**vars(result)) if isinstance(result, Lost) else result


def default_backend(task: Task, timeout: float | None = None) -> Backend:
    """One worker process per core where a design takes long, otherwise this process."""
    return Processes(os.cpu_count() or 1, timeout) if task.costly else Serial(timeout)


def _evaluate_one(task: Task, row: Array) -> Outcome:
    return _evaluate(task, row[None])[0]


def _evaluate(task: Task, x: Array) -> list[Outcome]:
    """One call of the oracle; whatever it raises becomes an outcome."""
    started = time.perf_counter()
    try:
        y = np.asarray(task.evaluate(x), dtype=np.float64)
        if y.shape != (len(x),):
            raise ValueError(f"the oracle returned values of shape {y.shape} for {len(x)} designs")
    except Exception as error:
        seconds = time.perf_counter() - started
        return [Outcome("error", error=f"{type(error).__name__}: {error}", seconds=seconds)] * len(x)
    each = (time.perf_counter() - started) / max(len(x), 1)
    return [
        Outcome("ok", float(value), seconds=each)
        if math.isfinite(value)
        else Outcome("failed", error=f"the oracle returned {value}", seconds=each)
        for value in y
    ]
