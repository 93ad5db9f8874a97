"""How a batch is evaluated: in this process, or in worker processes that may hang or die alone."""

from __future__ import annotations

import math
import multiprocessing
import os
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pickle import PicklingError
from typing import Any, Protocol

import numpy as np

from .schema import Outcome
from .task import Task
from .types import Array, DiffBBOError, InputError


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

    A worker that raises, hangs or dies loses its own design only; a new one takes its place.
    """

    workers: int = 2
    timeout: float | None = None

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise InputError(f"workers = {self.workers}.", "Use at least 1.")
        if self.timeout is not None and not self.timeout > 0:
            raise InputError(f"timeout = {self.timeout} s.", "Use a positive number of seconds, or None.")

    def evaluate(self, task: Task, x: Array) -> Iterator[tuple[int, Outcome]]:
        waiting = deque(range(len(x)))
        idle: list[_Worker] = []
        busy: dict[Connection, tuple[_Worker, int, float]] = {}
        try:
            while waiting or busy:
                while waiting and len(busy) < self.workers:
                    worker = idle.pop() if idle else _Worker(task)
                    position = waiting.popleft()
                    busy[worker.pipe] = worker, position, time.monotonic()
                    worker.pipe.send(x[position])
                for pipe in wait(list(busy), timeout=self._patience(busy)):
                    worker, position, since = busy.pop(pipe)  # type: ignore[call-overload]
                    outcome = worker.receive(time.monotonic() - since)
                    if outcome.status != "died":
                        idle.append(worker)
                    yield position, outcome
                for pipe, (worker, position, since) in list(busy.items()):
                    seconds = time.monotonic() - since
                    if self.timeout is not None and seconds >= self.timeout and not pipe.poll():
                        del busy[pipe]
                        worker.kill()
                        yield position, Outcome("timeout", error=f"took over {self.timeout:g} s", seconds=seconds)
        finally:
            for worker in idle + [entry[0] for entry in busy.values()]:
                worker.kill()

    def _patience(self, busy: dict[Connection, tuple[_Worker, int, float]]) -> float | None:
        """Seconds until the first time-out; None: wait for ever."""
        if self.timeout is None:
            return None
        return max(0.0, min(since for _, _, since in busy.values()) + self.timeout - time.monotonic())


class _Worker:
    """One process with a pipe: a row goes in, an Outcome comes out."""

    def __init__(self, task: Task) -> None:
        context = multiprocessing.get_context("spawn")  # threads of torch do not survive a fork
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        try:
            # Through our own pipe: what is handed over at the start could block for ever if the process dies early.
            self.pipe.send(task)
            self.pipe.recv()  # it is up: a time-out counts from here, not from the start of Python
        except (PicklingError, AttributeError, TypeError) as error:
            self.kill()
            raise InputError(
                f"The task cannot be sent to a worker process: {error}.",
                "Define its function at the top level of a module, or evaluate serially.",
            ) from error
        except (EOFError, ConnectionError):
            raise DiffBBOError(
                f"A worker process died while it was starting (exit code {self._exit_code()}).",
                'In a script, start studies under `if __name__ == "__main__":`.',
            ) from None

    def receive(self, seconds: float) -> Outcome:
        try:
            outcome: Outcome = self.pipe.recv()
            return outcome
        except (EOFError, ConnectionError):
            return Outcome("died", error=f"its process ended with exit code {self._exit_code()}", seconds=seconds)

    def _exit_code(self) -> int | None:
        self.process.join()
        return self.process.exitcode

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def default_backend(task: Task, timeout: float | None = None) -> Backend:
    """One worker process per core where a design takes long, otherwise this process."""
    return Processes(os.cpu_count() or 1, timeout) if task.costly else Serial(timeout)


def _serve(pipe: Connection[Any, Any]) -> None:
    """The worker's side. It ends with its parent, even in the middle of an evaluation."""

    def follow_parent() -> None:
        parent = multiprocessing.parent_process()
        assert parent is not None
        parent.join()
        os._exit(1)

    threading.Thread(target=follow_parent, daemon=True).start()
    try:
        task: Task = pipe.recv()
        pipe.send("ready")
        while True:
            pipe.send(_evaluate(task, pipe.recv()[None])[0])
    except (EOFError, ConnectionError):
        return


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
