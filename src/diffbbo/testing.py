"""Conformance that anyone can run on an optimizer or a task of their own; every optimizer and task here passes it.

    from diffbbo.testing import check_optimizer, check_task
    check_optimizer(MyOptimizer)
    check_task(MyTask())

A failed check raises AssertionError with a sentence that says which rule was broken.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .backends import Processes
from .optimizer import Optimizer
from .registry import make_optimizer, make_task
from .spaces import Space
from .task import Task
from .types import Array, ExhaustedError, InputError, row_keys
from .variables import Categorical, Integer, Real, Sequence

Make = Callable[..., Optimizer]

SPACES: dict[str, Space] = {
    "continuous 2-D": Space((Real("a", -1.0, 1.0), Real("b", 1e-3, 1e3, "log"))),
    "continuous 60-D": Space(tuple(Real(f"x{i}", 0.0, 1.0) for i in range(60))),
    "mixed": Space(
        (Real("t", 20, 120), Integer("n", 1, 9), Categorical("s", ("water", "thf")), Sequence("dna", 4, "ACGT"))
    ),
    "sequence": Space((Sequence("dna", 8, "ACGT"),)),
}
TINY = Space((Categorical("c", ("x", "y")), Integer("i", 0, 5)))


def objective(space: Space, x: Array) -> Array:
    """A smooth function on any space, for checks: high where every column is near the top of its range."""
    columns = []
    for variable, where in space.slices():
        part = x[:, where]
        unit = variable.to_unit(part) if isinstance(variable, Real | Integer) else part / ((variable.levels or 2) - 1)
        columns.append(unit)
    u = np.concatenate(columns, axis=1)
    return np.asarray(1 - ((u - 0.8) ** 2).mean(axis=1))


def check_optimizer(make: Make | str, *, told: int = 100, batch: int = 8, **settings: Any) -> None:
    """Check an optimizer on every kind of space, on `told` rows, once on 1,000, and in batches of `batch`.

    `make` is its class, any `make(space, seed=..., minimize=...)`, or a name from `diffbbo methods`; `settings` are
    passed on to it.
    """
    make = partial(make_optimizer, make, **settings) if isinstance(make, str) else partial(make, **settings)
    for name, space in SPACES.items():
        _check_rounds(make, name, space, told, batch)
    space = SPACES["mixed"]
    _check_cold_start(make, space, batch)
    _check_many_rows(make, space, batch)
    _check_failures(make, space, told, batch)
    _check_minimize(make, space, told, batch)
    _check_bad_input(make, space)
    _check_exhaustion(make)


def _told(make: Make, space: Space, rows: int, **settings: Any) -> Optimizer:
    optimizer = make(space, seed=1, **settings)
    x = space.sample(rows, np.random.default_rng(0))
    y = objective(space, x)
    optimizer.tell(x, -y if settings.get("minimize") else y)
    return optimizer


def _check_rounds(make: Make, name: str, space: Space, rows: int, batch: int) -> None:
    optimizer, twin = _told(make, space, rows), _told(make, space, rows)
    for _ in range(2):
        first, again, other = optimizer.ask(batch), optimizer.ask(batch), twin.ask(batch)
        assert len(first) == batch, f"{name}: ask({batch}) returned {len(first)} designs"
        space.check(first.x)
        assert space.dicts(first.x) == list(first), f"{name}: rows and dicts of a batch differ"
        assert list(first) == list(again), f"{name}: ask changed the state: the same question, another answer"
        assert list(first) == list(other), f"{name}: replaying the tells does not restore the optimizer"
        if not optimizer.repeats:
            known = set(row_keys(optimizer.data.x))
            keys = row_keys(first.x)
            assert len(set(keys)) == batch, f"{name}: a batch repeats a design"
            assert not known & set(keys), f"{name}: a measured design was asked again"
        pending = optimizer.ask(batch, pending=first)
        assert not set(row_keys(first.x)) & set(row_keys(pending.x)), f"{name}: a pending design was asked again"
        y = objective(space, first.x)
        optimizer.tell(first, y)
        twin.tell(list(other), y)  # as dicts: the form must not matter
    assert optimizer.best is not None
    best = max(entry["value"] for entry in optimizer.history)
    assert math.isclose(optimizer.best.value, best), f"{name}: best is not the best told value"


def _check_cold_start(make: Make, space: Space, batch: int) -> None:
    row = space.sample(1, np.random.default_rng(0))
    for told, what in ((0, "nothing"), (1, "one row"), (5, "constant values")):
        optimizer = make(space, seed=0)
        if told:
            optimizer.tell(np.repeat(row, told, axis=0) if told == 1 else space.sample(told, np.random.default_rng(1)),
                           np.full(told, 3.0))  # fmt: skip
        assert len(optimizer.ask(batch)) == batch, f"cannot start from {what}"


def _check_many_rows(make: Make, space: Space, batch: int) -> None:
    optimizer = _told(make, space, 1000)
    asked = optimizer.ask(batch)
    space.check(asked.x)
    assert len(set(row_keys(asked.x))) == batch or optimizer.repeats, "a batch repeats a design after 1,000 rows"


def _check_failures(make: Make, space: Space, rows: int, batch: int) -> None:
    optimizer = _told(make, space, rows)
    first = optimizer.ask(batch)
    y = objective(space, first.x)
    y[::2] = np.nan
    optimizer.tell(first, y)
    after = optimizer.ask(batch)
    failed = set(row_keys(first.x[::2]))
    assert not failed & set(row_keys(after.x)), "a failed design was asked again"
    assert math.isclose(after.info["failure_share"], np.isnan(y).sum() / (rows + batch)), "failure share not reported"
    only_failures = make(space, seed=0)
    only_failures.tell(first, np.full(batch, np.nan))
    assert only_failures.best is None and len(only_failures.ask(batch)) == batch, "cannot go on after failures alone"


def _check_minimize(make: Make, space: Space, rows: int, batch: int) -> None:
    up, down = _told(make, space, rows), _told(make, space, rows, minimize=True)
    assert list(up.ask(batch)) == list(down.ask(batch)), "minimising y is not maximising -y"
    assert up.best is not None and down.best is not None
    assert up.best.value == -down.best.value and up.best.design == down.best.design, "best in the wrong direction"


def _check_bad_input(make: Make, space: Space) -> None:
    optimizer = make(space, seed=0)
    x = space.sample(2, np.random.default_rng(0))
    for what, call in (
        ("a batch of 0", lambda: optimizer.ask(0)),
        ("values of another length", lambda: optimizer.tell(x, [1.0])),
        ("an infinite value", lambda: optimizer.tell(x, [1.0, math.inf])),
        ("rows outside the space", lambda: optimizer.tell(x + 1e6, [1.0, 2.0])),
    ):
        try:
            call()
        except InputError:
            assert len(optimizer.data) == 0, f"{what} was refused, but something of it was kept"
        else:
            raise AssertionError(f"{what} was accepted")


def _check_exhaustion(make: Make) -> None:
    """A tiny finite space is asked to its end, every design once; then the end is said."""
    optimizer = make(TINY, seed=0)
    size = TINY.size or 0
    if optimizer.repeats:
        return
    for _ in range(size // 4):
        asked = optimizer.ask(4)
        optimizer.tell(asked, objective(TINY, asked.x))
    assert len(optimizer.data.distinct()) == size, "a finite space was not searched without repeats"
    try:
        optimizer.ask(1)
    except ExhaustedError:
        return
    raise AssertionError("an exhausted space was asked further")


def check_task(task: Task | str, *, exact: bool = True, travels: bool = True) -> None:
    """Check a task, or the one of that name.

    `exact`: the oracle gives the very values of the start data; where an evaluation is costly, of a few of them, and
    one in five may differ (a simulator can be chaotic). `travels`: it can be evaluated in worker processes.
    """
    task = make_task(task) if isinstance(task, str) else task
    space = task.space
    x, y = task.start(0)
    space.check(x)
    assert len(x) == len(y) and np.isfinite(y).all(), "start data: every row needs a finite value"
    assert all(np.array_equal(a, b) for a, b in zip(task.start(0), (x, y), strict=True)), "start(0) varies"

    rng = np.random.default_rng(0)
    few = 5 if task.costly else 50
    probe = x[:few] if len(x) else space.sample(few, rng)
    before = probe.copy()
    values = task.evaluate(probe)
    assert values.shape == (len(probe),), f"evaluate returned shape {values.shape} for {len(probe)} designs"
    assert np.array_equal(probe, before), "evaluate changed its input"
    assert np.array_equal(values[:1], task.evaluate(probe[:1]), equal_nan=True), "a value depends on its batch"
    anywhere = task.evaluate(space.sample(5, rng))  # designs unlike the start data may fail, but must be answered
    assert not np.isinf([*values, *anywhere]).any(), "a failed experiment is NaN, never infinite"
    if exact and len(x):
        agrees = values == y[:few] if task.costly else task.evaluate(x) == y
        assert agrees.mean() >= (0.8 if task.costly else 1.0), "the oracle disagrees with the start data"
    for bad, what in ((np.full((1, space.dimension), np.nan), "NaN"), (np.zeros((1, space.dimension + 1)), "width")):
        try:
            task.evaluate(bad)
        except InputError:
            continue
        raise AssertionError(f"a design with the wrong {what} was evaluated")

    sign = -1 if task.minimize else 1
    if task.maximum is not None:
        seen = np.array([*y, *values])
        better = sign * seen > sign * task.maximum  # never true of a NaN
        assert not better.any(), f"the value {seen[better][:1]} is better than the known best, {task.maximum}"
    if task.range is not None:
        low, high = task.range
        assert sign * low < sign * high, f"range = {task.range}: the first must be the worse value"
        assert task.normalise([low, high]).tolist() == [0.0, 1.0], "normalise must map the range to 0 and 1"
    card = task.card()
    assert card.name == task.name and card.dimension == space.dimension and card.size == space.size
    assert card.start == len(y), f"the card says {card.start} start designs, there are {len(y)}"
    if travels:
        ((_, outcome),) = Processes(workers=1).evaluate(task, probe[:1])
        assert np.array_equal([outcome.value], values[:1], equal_nan=True), f"in a worker process: {outcome}"
