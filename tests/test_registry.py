"""Names to tasks and optimizers, and what is said about names that do not exist."""

from __future__ import annotations

from typing import Any

import pytest

from diffbbo import InputError, Optimizer, Real, Space, Task, make_optimizer, make_task
from diffbbo.registry import find_task, methods, tasks

SPACE = Space([Real("x", 0, 1)])

BEHIND = {
    "diffbbo": "diffbbo.default.DiffBBO",
    "diffbbo-paper": "diffbbo.algorithm.DiffBBOPaper",
    "random": "diffbbo.baselines.random.Random",
    "evolution": "diffbbo.baselines.evolution.Evolution",
    "evolution-regularized": "diffbbo.baselines.evolution_regularized.RegularizedEvolution",
    "cbas": "diffbbo.baselines.cbas.CbAS",
    "gp-ei": "diffbbo.baselines.gp_ei.GPEI",
    "gp-ucb": "diffbbo.baselines.gp_ucb.GPUCB",
    "gp-jes": "diffbbo.baselines.gp_jes.GPJES",
    "turbo": "diffbbo.baselines.turbo.Turbo",
    "lolbo": "diffbbo.baselines.lolbo.LOLBO",
    "lfbo-ei": "diffbbo.baselines.lfbo.LfboEI",
    "lfbo-pi": "diffbbo.baselines.lfbo.LfboPI",
    "cmaes": "diffbbo.baselines.cma_es.CmaEs",
    "optuna-tpe": "diffbbo.baselines.tpe.OptunaTPE",
}


def test_the_methods_and_tasks_of_this_release_are_there() -> None:
    assert set(BEHIND) == set(methods())
    assert next(iter(methods())) == "diffbbo"  # ours first
    assert {
        "tfbind8",
        "ackley",
        "ackley-mixed",
        "branin",
        "ehrlich",
        "hartmann6",
        "levy",
        "rastrigin",
        "rosenbrock",
    } <= set(tasks())


@pytest.mark.parametrize("name", methods())
def test_behind_each_method_is_the_class_of_that_name(name: str) -> None:
    """With the seed and the direction it was asked for."""
    cls = methods()[name]
    assert issubclass(cls, Optimizer)
    assert cls.name == name
    assert cls.summary and cls.reference and cls.supports
    made = make_optimizer(name, SPACE, seed=3, minimize=True)
    assert type(made) is cls
    assert f"{cls.__module__}.{cls.__qualname__}" == BEHIND[name]
    assert made.settings()["method"] == name
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
    searched = ("diffbbo.default", "diffbbo.algorithm", "diffbbo.baselines.", "diffbbo.tasks.")
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


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        pytest.param("ackley-60", {"dimension": 60}, id="a number is the dimension"),
        pytest.param("levy-20:data=0", {"dimension": 20, "data": 0}, id="settings follow a colon"),
        pytest.param("rosenbrock:dimension=3,data=40", {"dimension": 3, "data": 40}, id="several"),
        pytest.param("ackley-mixed:data=8", {"data": 8}, id="a dash of its own"),
    ],
)
def test_settings_in_a_name(name: str, settings: dict[str, Any]) -> None:
    cls, written = find_task(name)
    assert written == settings
    made = make_task(name)
    assert type(made) is cls is type(make_task(cls.name, **settings))
    assert made.name == make_task(cls.name, **settings).name


@pytest.mark.parametrize(
    ("make", "told"),
    [
        pytest.param(lambda: make_task("ackly-60"), "no task 'ackly-60'. Did you mean 'ackley'?", id="misspelt"),
        pytest.param(lambda: make_task("tfbind8-60"), "no task 'tfbind8-60'. Did you mean 'tfbind8'?", id="one size"),
        pytest.param(lambda: make_task("ackley-x"), "no task 'ackley-x'. Did you mean 'ackley'?", id="no number"),
        pytest.param(lambda: make_task("ackley-60", dimension=20), "dimension = 20, but the task's name", id="twice"),
        pytest.param(lambda: make_task("ackley-60:dimension=20"), "a second dimension", id="twice in the name"),
        pytest.param(lambda: make_task("ackley:cold"), "'cold' in the task name 'ackley:cold' is not", id="no value"),
        pytest.param(lambda: make_task("ackley:size=3"), "'size'. Check the settings' names", id="unknown setting"),
    ],
)
def test_names_with_settings_that_cannot_be_used(make: Any, told: str) -> None:
    with pytest.raises(InputError) as caught:
        make()
    assert told in str(caught.value)


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
