"""Every optimizer and every task passes the conformance suite that we ship."""

from __future__ import annotations

import pytest

from diffbbo import EnsembleConfig
from diffbbo.algorithm import DiffBBO
from diffbbo.optimizer import Optimizer
from diffbbo.registry import methods, tasks
from diffbbo.testing import check_optimizer, check_task


@pytest.mark.parametrize("name", methods())
def test_optimizer(name: str, tiny: EnsembleConfig) -> None:
    check_optimizer(name, **({"config": tiny, "device": "cpu"} if issubclass(methods()[name], DiffBBO) else {}))


@pytest.mark.parametrize("name", tasks())
def test_task(name: str) -> None:
    check_task(name)


def test_the_suite_notices_a_repeating_optimizer() -> None:
    """A suite that passes everything proves nothing."""

    class Forgetful(methods()["random"]):  # type: ignore[misc]
        def ask(self, n: int, pending: object = None) -> object:
            self.data = self.data.extended(self.space.sample(1, __import__("numpy").random.default_rng()), [0.0])
            return Optimizer.ask(self, n, pending)

    with pytest.raises(AssertionError, match="state"):
        check_optimizer(Forgetful)
