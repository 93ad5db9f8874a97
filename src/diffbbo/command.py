"""A command line program as a function of one design: how its words are filled in and what it printed is read."""

from __future__ import annotations

import json
import math
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Any

import numpy as np

from .spaces import Space
from .types import DiffBBOError, InputError
from .variables import finite_number


@dataclass(frozen=True)
class Command:
    """A program that measures one design: called with a dict, it returns the number that was printed."""

    words: tuple[str, ...]
    timeout: float | None
    folder: Path

    @classmethod
    def checked(cls, command: Any, space: Space, timeout: float | None, folder: Path) -> Command:
        """The command, after everything that can be known before the first call."""
        if isinstance(command, str):
            raise InputError(f"command = {command!r} is one text.", f"Give a list of words: {shlex.split(command)}.")
        words = tuple(command) if isinstance(command, Iterable) else ()
        if not words or not all(isinstance(word, str) for word in words):
            raise InputError(f"command = {command!r} is not a list of texts.", 'Write ["program", "--x={x}"].')
        if timeout is not None:
            try:
                positive = finite_number(timeout) > 0
            except ValueError:
                positive = False
            if not positive:
                raise InputError(f"timeout = {timeout!r}.", "Use a positive number of seconds, or None.")
        if not folder.is_dir():
            raise InputError(f"folder = {str(folder)!r} is not a folder.", "Name the folder to run the command in.")
        made = cls(words, timeout, folder)
        made.fill(space.dicts(space.sample(1, np.random.default_rng(0)))[0])
        made.program()
        return made

    def __call__(self, design: Mapping[str, Any]) -> float:
        words, asks = self.fill(design)
        code, out, err = self._run([self.program(), *words[1:]], "" if asks else json.dumps(design))
        if code:
            what = f"ended with exit code {code}" if code > 0 else f"was ended by signal {-code}"
            raise self._error(
                f"{what}: {_last_line(err) or 'it wrote nothing to stderr'}", "Run it by hand to see why."
            )
        printed = _last_line(out)
        try:
            value = float(printed)
        except ValueError:
            value = math.inf
        if math.isinf(value):
            raise self._error(
                f"printed {printed!r:.200} as its last line, not a number", "Print the value last, or nan."
            )
        return value

    def fill(self, design: Mapping[str, Any]) -> tuple[list[str], bool]:
        """The words with the design's values in them, and whether they asked for any."""
        filled, asks = [], False
        for word in self.words:
            text = ""
            try:
                for literal, field, spec, _ in Formatter().parse(word):
                    text += literal
                    if field is not None:
                        asks = True
                        text += format(design[field], spec or "")
            except KeyError as unknown:
                raise InputError(
                    f"The command's {{{unknown.args[0]}}} in {word!r} is no variable; there are {', '.join(design)}.",
                    "Correct the name, or write {{ and }} for braces.",
                ) from None
            except (ValueError, TypeError) as error:
                raise InputError(f"The command's {word!r} cannot be filled in: {error}.", "Write {name} or {name:.3f}, "
                                 "and {{ and }} for braces.") from None  # fmt: skip
            filled.append(text)
        return filled, asks

    def program(self) -> str:
        """The full path of the program; a relative path counts from the folder."""
        word = self.words[0]
        here = self.folder / word if Path(word).parent != Path() or word.startswith(".") else word
        found = shutil.which(here)
        if found is None:
            raise DiffBBOError(
                f"The program {word!r} was not found or may not be executed.", "Install it, or correct its path."
            )
        return str(Path(found).absolute())

    def _run(self, words: list[str], text: str) -> tuple[int, str, str]:
        """Exit code, stdout and stderr of one call. What the program started is stopped with it."""
        try:
            process = subprocess.Popen(
                words, cwd=self.folder, text=True, encoding="utf-8", errors="replace", start_new_session=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )  # fmt: skip
        except OSError as error:
            raise self._error(f"could not be started: {error}", "Run it by hand to see why.") from error
        with process:
            try:
                out, err = process.communicate(text, timeout=self.timeout)
            except BaseException as error:
                # A child of the program would keep the pipes open, and this call waiting.
                os.killpg(process.pid, signal.SIGKILL) if os.name == "posix" else process.kill()
                if isinstance(error, subprocess.TimeoutExpired):
                    raise self._error(f"took over {self.timeout:g} s", "Give it a longer timeout.") from None
                raise
        return process.returncode, out, err

    def _error(self, what: str, remedy: str) -> DiffBBOError:
        return DiffBBOError(f"The program {self.words[0]!r} {what}.", remedy)


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
