"""How long it takes before anything happens: `import diffbbo`, `diffbbo --help`, beside Python itself and torch."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from functools import partial

from .common import Found, Machine, in_turns, seconds

COMMANDS = {
    "python alone": ["-c", "pass"],
    "import numpy": ["-c", "import numpy"],
    "import diffbbo": ["-c", "import diffbbo"],
    "diffbbo --help": ["-m", "diffbbo", "--help"],
    "import torch": ["-c", "import torch"],
}


@dataclass(frozen=True)
class Size:
    repeats: int = 11
    commands: tuple[str, ...] = tuple(COMMANDS)


FULL = Size()


def measure(machine: Machine, size: Size = FULL) -> Found:
    def once(words: list[str]) -> float:
        return seconds(lambda: subprocess.run([sys.executable, *words], check=True, capture_output=True))

    times = in_turns({name: partial(once, COMMANDS[name]) for name in size.commands}, size.repeats)
    alone = times["python alone"]
    return Found([{"command": name, "seconds": found, "over_python": found.over(alone)}
                  for name, found in times.items()])  # fmt: skip
