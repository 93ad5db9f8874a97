"""Every optimizer and every task passes the conformance suite that we ship."""

from __future__ import annotations

from typing import Any

import pytest

from diffbbo import EnsembleConfig
from diffbbo.algorithm import Algorithm1
from diffbbo.optimizer import Optimizer
from diffbbo.registry import methods, tasks
from diffbbo.testing import check_optimizer, check_task

# Settings that make a method quick enough for a test.
SMALL: dict[str, dict[str, Any]] = {name: {"effort": 0.1} for name in ("gp-ei", "gp-ucb", "gp-jes", "turbo")}
SMALL["cbas"] = {"samples": 20, "iterations": 2, "epochs": 2, "members": 4, "vae_steps": 20, "oracle_steps": 20}
SMALL |= {name: {"steps": 60, "candidates": 200} for name in ("lfbo-ei", "lfbo-pi")}
SMALL["lolbo"] = {"inducing": 20, "vae_steps": 20, "gp_steps": 4, "joint_steps": 2, "candidates": 64}


@pytest.mark.parametrize("name", methods())
def test_optimizer(name: str, tiny: EnsembleConfig) -> None:
    ours = {"config": tiny, "device": "cpu"} if issubclass(methods()[name], Algorithm1) else {}
    check_optimizer(name, **(ours | SMALL.get(name, {})))


@pytest.mark.parametrize("name", tasks())
def test_task(name: str) -> None:
    if name == "molecule-dock":
        pytest.skip("docks for real: its slow sibling is in test_molecule.py")
    check_task(name)


def test_the_suite_notices_a_repeating_optimizer() -> None:
    """A suite that passes everything proves nothing."""

    class Forgetful(methods()["random"]):  # type: ignore[misc]
        def ask(self, n: int, pending: object = None) -> object:
            self.data = self.data.extended(self.space.sample(1, __import__("numpy").random.default_rng()), [0.0])
            return Optimizer.ask(self, n, pending)

    with pytest.raises(AssertionError, match="state"):
        check_optimizer(Forgetful)
