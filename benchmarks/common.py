"""What every benchmark shares: repeats taken in turns, targets, the machine, work in a process of its own."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import diffbbo as db
from diffbbo.types import Array

Row = dict[str, Any]
TASK = "levy-20"  # 20 real variables, smooth enough for a Gaussian process: no method is at a loss here


# ---- times -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Times:
    """One measurement, repeated: seconds, or ratios of them."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return float(np.median(self.values))

    def over(self, other: Times) -> Times:
        """How many times as long as `other`, repeat by repeat: what slowed both does not count."""
        return Times(tuple(a / b for a, b in zip(self.values, other.values, strict=True)))

    def record(self) -> Row:
        """The median and the quartiles, which are the spread."""
        low, high = np.quantile(self.values, [0.25, 0.75])
        return {"median": self.median, "low": float(low), "high": float(high), "repeats": len(self.values)}


def in_turns(works: Mapping[str, Callable[[], float]], repeats: int, warm_up: bool = True) -> dict[str, Times]:
    """Each work returns what it measured. They take turns, so that noise hits all; the first turn is a warm-up."""
    found: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(repeats + warm_up):
        for name, work in works.items():
            value = work()
            if turn or not warm_up:
                found[name].append(value)
    return {name: Times(tuple(values)) for name, values in found.items()}


def seconds(work: Callable[[], object], device: str = "cpu") -> float:
    """How long one call takes, until the device has finished."""
    _finish(device)
    clock = time.perf_counter()
    work()
    _finish(device)
    return time.perf_counter() - clock


def _finish(device: str) -> None:
    if device == "cuda":
        import torch

        torch.cuda.synchronize()


# ---- what a subject found ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    """A measured value beside what it ought to be: shown, never enforced."""

    what: str
    value: float
    limit: float
    at_least: bool = False
    unit: str = ""

    def record(self) -> Row:
        met = self.value >= self.limit if self.at_least else self.value <= self.limit
        return {**vars(self), "met": bool(met)}


@dataclass(frozen=True)
class Found:
    """The rows of a subject's table and its targets; `missing` says why there are none."""

    rows: list[Row] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    missing: str = ""

    def record(self) -> Row:
        rows = [{key: v.record() if isinstance(v, Times) else v for key, v in row.items()} for row in self.rows]
        return {"rows": rows, "targets": [target.record() for target in self.targets], "missing": self.missing}


# ---- the machine -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Machine:
    """What it was measured on. `kind` names the result file: `cpu2` for two cores, `h200` for that GPU."""

    kind: str
    device: str
    cores: int
    processor: str
    memory_gib: float
    gpu: str
    versions: str

    @classmethod
    def here(cls) -> Machine:
        import torch

        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else ""
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
        names = {"diffbbo": db.__version__, "python": platform.python_version(), "torch": version("torch"),
                 "numpy": version("numpy")}  # fmt: skip
        return cls(kind_of(gpu, cores), "cuda" if gpu else "cpu", cores, _processor(), round(memory, 1), gpu,
                   ", ".join(f"{name} {number}" for name, number in names.items()))  # fmt: skip


def kind_of(gpu: str, cores: int) -> str:
    """A short word: the GPU's model (the first part of its name with a digit), or how many cores there are."""
    model = re.search(r"[A-Za-z]*\d\w*", gpu)
    return model.group().lower() if model else f"cpu{cores}"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*:\s*(.+)", info.read_text()) if info.exists() else None
    return found.group(1).strip() if found else platform.machine()


# ---- work in a process of its own --------------------------------------------------------------------


def child(module: str, settings: Row) -> Row:
    """Run `python -m benchmarks.MODULE SETTINGS`, and read the JSON value on the last line of what it prints."""
    command = [sys.executable, "-m", f"benchmarks.{module}", json.dumps(settings)]
    root = Path(__file__).parents[1]
    ran = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise RuntimeError(f"benchmarks.{module} ended with {ran.returncode}: {ran.stderr[-2000:]}")
    answer: Row = json.loads(ran.stdout.strip().splitlines()[-1])
    return answer


def peak_gib() -> float:
    """The most memory this process has held so far."""
    import resource

    unit = 1 if sys.platform == "darwin" else 2**10  # of ru_maxrss: bytes on a Mac, KiB on Linux
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30


# ---- data --------------------------------------------------------------------------------------------


def told(rows: int, task: str = TASK) -> tuple[db.Task, Array, Array]:
    """A task, and random designs of it with their values."""
    made = db.make_task(task)
    x = made.space.sample(rows, np.random.default_rng(0))
    # In parts: the function's own temporary arrays must not be the peak of memory that is measured.
    y = np.concatenate([made.evaluate(part) for part in np.array_split(x, -(-rows // 10_000))])
    return made, x, y
