"""How long work says how far it is, without knowing who listens.

Deep code calls `report("training", 0.3)`; whoever wants to show it wraps the work in `listening(show)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, float], None]
_listener: ContextVar[Listener | None] = ContextVar("diffbbo_progress", default=None)


def report(stage: str, fraction: float) -> None:
    """Say that `stage` is done to `fraction` (0 to 1)."""
    listener = _listener.get()
    if listener is not None:
        listener(stage, fraction)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Hand every `report` made inside the block to `listener(stage, fraction)`."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
