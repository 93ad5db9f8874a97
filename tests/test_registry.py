"""Names to tasks and optimizers, and what is said about names that do not exist."""

from __future__ import annotations

from typing import Any

import pytest

from diffbbo import InputError, Optimizer, Real, Space, Task, make_optimizer, make_task
from diffbbo.registry import methods, tasks

SPACE = Space([Real("x", 0, 1)])


def test_the_methods_and_tasks_of_this_release_are_there() -> None:
    assert {"diffbbo", "diffbbo-paper", "random", "evolution"} <= set(methods())
    assert next(iter(methods())) == "diffbbo"  # ours first
    assert "tfbind8" in tasks()


@pytest.mark.parametrize("name", methods())
def test_behind_each_method_is_the_class_of_that_name(name: str) -> None:
    """With the seed and the direction it was asked for."""
    cls = methods()[name]
    assert issubclass(cls, Optimizer)
    assert cls.name == name
    assert cls.summary and cls.reference
    made = make_optimizer(name, SPACE, seed=3, minimize=True)
    assert type(made) is cls
    assert (made.seed, made.minimize, made.space) == (3, True, SPACE)


@pytest.mark.parametrize("name", tasks())
def test_behind_each_task_is_the_class_of_that_name(name: str) -> None:
    cls = tasks()[name]
    assert issubclass(cls, Task)
    assert cls.name == name
    assert cls.summary


def test_no_name_is_used_twice() -> None:
    """As many names as named classes in the places that are searched: a name used twice would hide a class."""
    assert methods() and tasks()  # all of them are imported now
    classes: list[Any] = []
    pending: list[Any] = [Optimizer, Task]
    while pending:
        pending += (children := pending.pop().__subclasses__())
        classes += children
    searched = ("diffbbo.algorithm", "diffbbo.baselines.", "diffbbo.tasks.")
    named = [cls for cls in classes if vars(cls).get("name") and cls.__module__.startswith(searched)]
    assert sorted(cls.name for cls in named) == sorted([*methods(), *tasks()])


@pytest.mark.parametrize(
    ("make", "nearest"),
    [
        pytest.param(lambda: make_task("tfbind9"), "tfbind8", id="tfbind9"),
        pytest.param(lambda: make_task("TFBind8"), "tfbind8", id="capitals"),
        pytest.param(lambda: make_optimizer("difbbo", SPACE), "diffbbo", id="difbbo"),
        pytest.param(lambda: make_optimizer("evolutoin", SPACE), "evolution", id="evolutoin"),
    ],
)
def test_an_unknown_name_gets_the_nearest_and_all_known(make: Any, nearest: str) -> None:
    with pytest.raises(InputError) as caught:
        make()
    assert f"Did you mean {nearest!r}?" in str(caught.value)
    known = tasks() if nearest in tasks() else methods()
    assert str(caught.value).endswith(f"Known: {', '.join(known)}.")


def test_a_name_like_nothing_known_is_not_guessed() -> None:
    with pytest.raises(InputError, match=r"There is no method 'zzz'\. Known: diffbbo, "):
        make_optimizer("zzz", SPACE)


@pytest.mark.parametrize(
    "make",
    [lambda: make_optimizer("random", SPACE, temperature=3), lambda: make_task("tfbind8", temperature=3)],
    ids=["method", "task"],
)
def test_an_unknown_setting_is_named(make: Any) -> None:
    with pytest.raises(InputError, match=r"(?s)(random|tfbind8).*'temperature'.*Check the settings"):
        make()


def test_settings_go_to_the_constructor() -> None:
    assert make_optimizer("evolution", SPACE, population=7).settings()["population"] == 7
