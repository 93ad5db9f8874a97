"""Tree-structured Parzen estimator: Optuna's own sampler behind ask and tell, number by number."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..optimizer import Optimizer, Proposal
from ..progress import report
from ..spaces import Space
from ..types import Array, InputError, need
from ..variables import Integer, Real
from ..variation import choices

CANDIDATES, STARTUP = 24, 10  # Optuna's defaults: n_ei_candidates, n_startup_trials


class OptunaTPE(Optimizer):
    """Every told row is a finished trial of an Optuna study, in order; pending designs and batch-mates are running.

    Multivariate kernels and the constant liar are on, as Optuna recommends for batches. Beyond `max_rows` told
    rows the study holds the best half of that many and a seeded sample of the rest, for time's sake.
    """

    name = "optuna-tpe"
    summary = "Optuna's TPE sampler: multivariate, constant liar"
    reference = "Bergstra et al. 2011; Akiba et al. 2019; Watanabe 2023"
    supports = "a subset of 2,000 rows; any batch"

    def __init__(self, space: Space, *, seed: int = 0, minimize: bool = False, max_rows: int = 2000) -> None:
        super().__init__(space, seed=seed, minimize=minimize)
        if max_rows < 2 * STARTUP:
            raise InputError(f"max_rows = {max_rows} is too few.", f"Use at least {2 * STARTUP}.")
        if seed >= 2**32:
            raise InputError(f"seed = {seed} is too large for Optuna.", "Use one below 2^32.")
        self.max_rows = max_rows

    def settings(self) -> dict[str, Any]:
        return super().settings() | {"max_rows": self.max_rows}

    def propose(self, n: int, rng: np.random.Generator) -> Iterator[Proposal]:
        optuna = need("optuna", "rivals", "The method 'optuna-tpe'")
        distributions = self._distributions(optuna)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # before Optuna 5 these two were called experimental
            sampler = optuna.samplers.TPESampler(seed=self.seed, multivariate=True, constant_liar=True)
        self._wind(sampler, distributions)
        used = self._subset()
        study = self._study(optuna, sampler, distributions, used)
        block = n
        while True:
            rows = np.empty((block, self.space.dimension))
            for k in range(block):
                trial = study.ask(distributions)  # and it stays running: the constant liar sees it
                rows[k] = list(trial.params.values())
                report("sampling", (k + 1) / block)
            yield Proposal(self.space.snap(rows), info={"rows": len(used), "told": len(self.data)})
            block = max(8, n // 5)  # only repeats are left to replace, and each draw costs

    def _distributions(self, optuna: Any) -> dict[str, Any]:
        """One Optuna parameter per column of a row, in order."""
        d = optuna.distributions
        found: dict[str, Any] = {}
        for variable in self.space.variables:
            if isinstance(variable, Real):
                found[variable.name] = d.FloatDistribution(variable.lower, variable.upper, log=variable.scale == "log")
            elif isinstance(variable, Integer):
                found[variable.name] = d.IntDistribution(variable.lower, variable.upper)
            else:
                letter = d.CategoricalDistribution(tuple(range(variable.levels or 1)))
                names = (
                    [variable.name] if variable.width == 1 else [f"{variable.name}[{i}]" for i in range(variable.width)]
                )
                found |= dict.fromkeys(names, letter)
        return found

    def _study(self, optuna: Any, sampler: Any, distributions: dict[str, Any], used: NDArray[np.intp]) -> Any:
        """An Optuna study that holds the told rows `used` as finished trials and the pending ones as running."""
        quiet = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        optuna.logging.set_verbosity(quiet)
        state = optuna.trial.TrialState
        for row, y in zip(self.data.x[used], self.data.y[used], strict=True):
            done = {"state": state.FAIL} if np.isnan(y) else {"state": state.COMPLETE, "value": float(y)}
            study.add_trial(_trial(optuna, distributions, row, **done))
        for row in self.pending:
            study.add_trial(_trial(optuna, distributions, row, state=state.RUNNING))
        return study

    def _subset(self) -> NDArray[np.intp]:
        """The told rows that Optuna sees, in the order of telling: all, or the best and a seeded sample of the rest."""
        everything = np.arange(len(self.data))
        if len(everything) <= self.max_rows:
            return everything
        best = np.argsort(-np.nan_to_num(self.data.y, nan=-np.inf), kind="stable")[: self.max_rows // 2]
        rest = np.setdiff1d(everything, best)
        rng = np.random.default_rng([self.seed, len(everything)])
        return np.sort(np.concatenate([best, rng.choice(rest, self.max_rows - len(best), replace=False)]))

    def _wind(self, sampler: Any, distributions: dict[str, Any]) -> None:
        """Bring the sampler's two random streams to where they stand after all trials told or pending.

        A random trial takes one number per parameter (a choice: one per value), any other one candidates' worth
        of kernels and of each parameter; which kind it was hangs on how many trials had succeeded when it was
        asked. So what is asked next hangs on the told rows alone, as `ask` must, and equals Optuna's own study.
        """
        per_random = sum(1 if level is None else level for level in choices(self.space))
        per_model = CANDIDATES * (1 + len(distributions))
        succeeded = np.concatenate([[0], np.cumsum(~self.data.failed)])
        asked_after = np.cumsum([0, *self.tells])  # rows told when each tell, and last the pending, was asked
        for size, before in zip((*self.tells, len(self.pending)), asked_after, strict=True):
            if succeeded[before] < STARTUP:
                sampler._random_sampler._rng.rng.random_sample(per_random * size)
            else:
                sampler._rng.rng.random_sample(per_model * size)


def _trial(optuna: Any, distributions: dict[str, Any], row: Array, **outcome: Any) -> Any:
    params = {
        name: float(value) if isinstance(dist, optuna.distributions.FloatDistribution) else int(value)
        for (name, dist), value in zip(distributions.items(), row, strict=True)
    }
    return optuna.trial.create_trial(params=params, distributions=distributions, **outcome)
