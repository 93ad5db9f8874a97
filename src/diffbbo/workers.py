"""Worker processes that may raise, hang or die alone: `scatter` calls a function on many items at once."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pickle import PicklingError
from typing import Any

from .types import DiffBBOError, InputError

# Exit code after SIGKILL: sent by a system short of memory or by a person, so not the fault of what was running.
KILLED = -9


@dataclass(frozen=True)
class Lost:
    """An item that brought no result: its process "died", or was stopped after a "timeout"."""

    status: str
    error: str
    seconds: float


def scatter(
    function: Callable[[Any], Any], items: Sequence[Any], workers: int, timeout: float | None = None
) -> Iterator[tuple[int, Any]]:
    """(position, function(item)) for every item as it is done, in `workers` processes; `Lost` where none came back.

    The function must travel (be defined at the top level of a module) and must not raise. A worker that hangs longer
    than `timeout` seconds or dies loses its own item only; a new one takes its place. Killed from outside, its item has
    a second chance.
    """
    waiting = deque(range(len(items)))
    tried: set[int] = set()
    idle: list[_Worker] = []
    busy: dict[Connection, tuple[_Worker, int, float]] = {}
    try:
        while waiting or busy:
            while waiting and len(busy) < workers:
                worker = idle.pop() if idle else _Worker(function)
                position = waiting.popleft()
                busy[worker.pipe] = worker, position, time.monotonic()
                with suppress(ConnectionError):  # it died while it was idle: `receive` will say so
                    worker.pipe.send(items[position])
            for pipe in wait(list(busy), timeout=_patience(busy, timeout)):
                worker, position, since = busy.pop(pipe)  # type: ignore[call-overload]
                result = worker.receive(time.monotonic() - since)
                if not isinstance(result, Lost):
                    idle.append(worker)
                elif worker.process.exitcode == KILLED and position not in tried:
                    tried.add(position)
                    waiting.appendleft(position)
                    continue
                yield position, result
            for pipe, (worker, position, since) in list(busy.items()):
                seconds = time.monotonic() - since
                if timeout is not None and seconds >= timeout and not pipe.poll():
                    del busy[pipe]
                    worker.kill()
                    yield position, Lost("timeout", f"took over {timeout:g} s", seconds)
    finally:
        for worker in idle + [entry[0] for entry in busy.values()]:
            worker.kill()


def _patience(busy: dict[Connection, tuple[_Worker, int, float]], timeout: float | None) -> float | None:
    """Seconds until the first time-out; None: wait for ever."""
    if timeout is None:
        return None
    return max(0.0, min(since for _, _, since in busy.values()) + timeout - time.monotonic())


class _Worker:
    """One process with a pipe: an item goes in, a result comes out."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        context = multiprocessing.get_context("spawn")  # threads of torch do not survive a fork
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        try:
            # Through our own pipe: what is handed over at the start could block for ever if the process dies early.
            self.pipe.send(function)
            self.pipe.recv()  # it is up: a time-out counts from here, not from the start of Python
        except (PicklingError, AttributeError, TypeError) as error:
            self.kill()
            raise InputError(
                f"What is to run cannot be sent to a worker process: {error}.",
                "Define its function at the top level of a module, or evaluate serially.",
            ) from error
        except (EOFError, ConnectionError):
            code = self._exit_code()
            raise DiffBBOError(
                f"A worker process died while it was starting (exit code {code}).",
                "It was killed from outside, perhaps for want of memory: use fewer workers, and run again."
                if code == KILLED
                else 'In a script, start studies under `if __name__ == "__main__":`.',
            ) from None

    def receive(self, seconds: float) -> Any:
        try:
            return self.pipe.recv()
        except (EOFError, ConnectionError):
            return Lost("died", f"its process ended with exit code {self._exit_code()}", seconds)

    def _exit_code(self) -> int | None:
        self.process.join()
        return self.process.exitcode

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _serve(pipe: Connection[Any, Any]) -> None:
    """The worker's side. It ends with its parent, even in the middle of a call."""

    def follow_parent() -> None:
        parent = multiprocessing.parent_process()
        assert parent is not None
        parent.join()
        os._exit(1)

    threading.Thread(target=follow_parent, daemon=True).start()
    try:
        function: Callable[[Any], Any] = pipe.recv()
        pipe.send("ready")
        while True:
            pipe.send(function(pipe.recv()))
    except (EOFError, ConnectionError):
        return
