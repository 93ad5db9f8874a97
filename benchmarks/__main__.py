"""The command line.

    python -m benchmarks run [--only WORD ...] [--out FILE]    measures, into results/benchmark_<kind of machine>.json
    python -m benchmarks draw        all such files as docs/images/results/benchmark.* and tables in docs/performance.md

Subjects: step, draws, ask, round, rows, imports, storing; `--only` takes some, and the file keeps the others.
Run it on a machine with nothing else to do. BoTorch's step takes most of the time.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from diffbbo.terminal import say
from diffbbo.types import MissingExtraError
from experiments.page import fill

from . import ask, draws, figure, imports, rows, step, storing
from . import round as round_
from .common import Found, Machine, Row

Subjects = Mapping[str, Callable[[Machine], Found]]
SUBJECTS: Subjects = {
    "step": step.measure, "draws": draws.measure, "round": round_.measure, "rows": rows.measure,
    "imports": imports.measure, "storing": storing.measure, "ask": ask.measure,
}  # fmt: skip


def run(out: Path | None, root: Path, only: Sequence[str], subjects: Subjects) -> Path:
    """Measure one subject after the other; the file is written after each, so that a stopped run keeps what it has."""
    machine = Machine.here()
    path = out or root / "results" / f"benchmark_{machine.kind}.json"
    result: Row = json.loads(path.read_text()) if path.exists() else {"subjects": {}}
    result["machine"] = asdict(machine)
    for name, measure in subjects.items():
        if only and not any(word in name for word in only):
            continue
        load, clock = os.getloadavg()[0], time.perf_counter()
        try:
            found = measure(machine)
        except MissingExtraError as error:
            found = Found(missing=error.message)
        result["subjects"][name] = found.record() | {"load": round(load, 2)}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        say(f"{name}: {found.missing or 'measured'} ({time.perf_counter() - clock:.0f} s)")
        for target in result["subjects"][name]["targets"]:
            side = "at least" if target["at_least"] else "at most"
            word = "met" if target["met"] else "NOT MET"
            say(f"  {target['what']}: {target['value']:.3g} {target['unit']} ({side} {target['limit']:g}: {word})")
    return path


def draw(root: Path) -> None:
    """Figure and tables, from the result files alone."""
    paths = sorted((root / "results").glob("benchmark_*.json"))
    results = {path.stem.removeprefix("benchmark_"): json.loads(path.read_text()) for path in paths}
    parts = {"machines": figure.machines(results), "targets": figure.targets(results)}
    parts |= {subject: figure.table(results, subject) for subject in figure.TABLES}
    parts["figure"] = figure.figure(results, root / "docs" / "images" / "results")
    for part, content in fill(root / "docs" / "performance.md", "benchmark", parts).items():
        print(f"\nbenchmark: {part}\n\n{content}")


def main(words: Sequence[str] | None = None, subjects: Subjects = SUBJECTS) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("command", choices=["run", "draw"])
    parser.add_argument("--only", nargs="+", default=[], help="subjects whose name has one of these words in it")
    parser.add_argument("--out", type=Path, help="by default results/benchmark_<kind of machine>.json")
    parser.add_argument("--root", type=Path, default=Path(), help="the folder that holds results/ and docs/")
    given = parser.parse_args(words)
    if given.command == "draw":
        draw(given.root)
    elif not any(word in name for name in subjects for word in given.only or [""]):
        sys.exit(f"There is no subject like {', '.join(given.only)}. Use some of {', '.join(subjects)}.")
    else:
        run(given.out, given.root, given.only, subjects)


if __name__ == "__main__":
    main()
