"""Oracles for worker processes: they must be importable, so they live in a module of their own."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from typing import Any

from diffbbo import FunctionTask, Real, Space

LINE = Space((Real("x", 0, 10),))


def square(design: Mapping[str, Any]) -> float:
    return float(design["x"]) ** 2


def difficult(design: Mapping[str, Any]) -> float:
    """2 raises, 3 is NaN, 4 hangs, 5 kills its process, 6 exits, 7 is infinite, all else is squared."""
    x = design["x"]
    if x == 2:
        raise RuntimeError("the pump is blocked")
    if x == 3:
        return float("nan")
    if x == 4:
        time.sleep(3600)
    if x == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    if x == 6:
        raise SystemExit(7)
    if x == 7:
        return float("inf")
    return float(x) ** 2


def task(function: Any = square, **settings: Any) -> FunctionTask:
    return FunctionTask(function, LINE, name="line", **settings)
