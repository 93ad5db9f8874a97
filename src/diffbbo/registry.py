"""Names to tasks and optimizers. Whatever lies in `baselines/` and `tasks/` is found by listing the folder."""

from __future__ import annotations

import difflib
import json
import pkgutil
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from inspect import isclass, signature
from typing import Any

from .optimizer import Optimizer
from .spaces import Space
from .task import Task
from .types import InputError


def _named(module_names: Iterable[str], base: type) -> dict[str, Any]:
    """Classes of `base` with a `name` of their own, from the modules that define them."""
    found: dict[str, Any] = {}
    for module_name in module_names:
        for cls in vars(import_module(module_name)).values():
            if isclass(cls) and issubclass(cls, base) and cls.__module__ == module_name:
                name = vars(cls).get("name")
                if name:
                    found[name] = cls
    return found


def _modules(folder: str) -> list[str]:
    package = import_module(f"diffbbo.{folder}")
    return sorted(f"{package.__name__}.{entry.name}" for entry in pkgutil.iter_modules(package.__path__))


@cache
def methods() -> dict[str, type[Optimizer]]:
    """Every optimizer by name, ours first."""
    return _named(["diffbbo.default", "diffbbo.algorithm", *_modules("baselines")], Optimizer)


@cache
def tasks() -> dict[str, type[Task]]:
    """Every task by name."""
    return _named(_modules("tasks"), Task)


def find(kind: str, name: str, known: dict[str, Any]) -> Any:
    """`known[name]`, or an error that lists the names and the nearest of them."""
    if name in known:
        return known[name]
    near = difflib.get_close_matches(str(name).lower(), known, n=1, cutoff=0.4)
    guess = f"Did you mean {near[0]!r}? " if near else ""
    raise InputError(f"There is no {kind} {name!r}.", f"{guess}Known: {', '.join(known)}.")


def find_task(name: str) -> tuple[type[Task], dict[str, Any]]:
    """The class a task's name stands for, and the settings written in it.

    A number is the dimension and a colon begins further settings: `ackley-60` is `ackley` with `dimension=60`,
    `ackley-60:data=0` has `data=0` too.
    """
    known = tasks()
    head, _, tail = str(name).partition(":")
    base, _, number = head.rpartition("-")
    settings: dict[str, Any] = {}
    if head not in known and base in known and number.isdecimal() and "dimension" in signature(known[base]).parameters:
        head, settings["dimension"] = base, int(number)
    cls = find("task", head, known)
    for part in filter(None, tail.split(",")):
        key, equals, value = part.partition("=")
        if not equals or key in settings:
            raise InputError(
                f"{part!r} in the task name {name!r} is {'a second ' + key if equals else 'not a setting'}.",
                f"Write {head}:setting=value,setting=value, each once.",
            )
        settings[key] = _value(value)
    return cls, settings


def _value(text: str) -> Any:
    """A number or true/false written in a name; anything else stays text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def make_task(name: str, **settings: Any) -> Task:
    """The task of that name, which may hold settings (see `find_task`); `settings` go to its constructor."""
    cls, written = find_task(name)
    twice = sorted(written.keys() & settings.keys())
    if twice:
        raise InputError(
            f"{twice[0]} = {settings[twice[0]]!r}, but the task's name is {name!r}.", "Say it in one of the two places."
        )
    return _make(cls, f"task {name!r}", **written, **settings)  # type: ignore[no-any-return]


def make_optimizer(name: str, space: Space, *, seed: int = 0, minimize: bool = False, **settings: Any) -> Optimizer:
    """The optimizer of that name for a space; `settings` go to its constructor."""
    cls = find("method", name, methods())
    return _make(cls, f"method {name!r}", space, seed=seed, minimize=minimize, **settings)  # type: ignore[no-any-return]


def _make(cls: Any, what: str, *args: Any, **settings: Any) -> Any:
    try:
        return cls(*args, **settings)
    except TypeError as error:
        raise InputError(
            f"The {what} cannot be made with {settings}: {error}.", "Check the settings' names."
        ) from error
