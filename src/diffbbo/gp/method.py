"""What the methods with a global GP share: data policy, cold start, one fit, one batch."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..optimizer import Optimizer, Proposal
from ..progress import report
from ..spaces import Space
from ..types import Array, Distinct, InputError, row_keys
from .rows import ROWS, choose_rows

if TYPE_CHECKING:
    from .model import Posterior
    from .search import Criterion

PARENTS = 100  # of the best measured designs, near which the acquisition is searched too


class GPMethod(Optimizer):
    """Asks where the acquisition of one GP is best. A subclass writes `criterion`.

    `rows`: of more measured designs than this the GP sees a subset (default 500 on a CPU, 4,000 on a GPU);
    `device`: `auto`, `cpu` or `cuda`; `effort`: a share of the usual steps and candidates, for a quick look.
    """

    def __init__(
        self, space: Space, *, seed: int = 0, minimize: bool = False, rows: int | None = None, device: str = "auto",
        effort: float = 1.0,
    ) -> None:  # fmt: skip
        super().__init__(space, seed=seed, minimize=minimize)
        if not 0 < effort <= 10:
            raise InputError(f"effort = {effort!r} is not above 0 and at most 10.", "Give 1 for the usual search.")
        if rows is not None and (not isinstance(rows, int) or isinstance(rows, bool) or rows < 2):
            raise InputError(f"rows = {rows!r} is not a whole number of at least 2.", "Give, say, 500.")
        self._rows, self._device, self.effort = rows, device, float(effort)
        self._fits: dict[tuple[int, int], Any] = {}  # by told rows and region: asking again need not fit again

    @property
    def device(self) -> str:
        """The device in use: "cpu" or "cuda"."""
        from ..diffusion.ensemble import resolve_device

        return resolve_device(self._device).type

    @property
    def rows(self) -> int:
        """How many measured designs the GP sees at most."""
        return self._rows or ROWS[self.device]

    def settings(self) -> dict[str, Any]:
        return super().settings() | {"rows": self.rows, "effort": self.effort}

    def criterion(self, posterior: Posterior, parents: Array, rng: np.random.Generator) -> Criterion:
        """The acquisition under this posterior; `parents` `(k, d)` are measured designs, best first."""
        raise NotImplementedError

    def propose(self, n: int, rng: np.random.Generator) -> Iterator[Proposal]:
        data = self.data.distinct()
        if data.flat:
            yield from self.fill(n, len(data), rng)
        from .search import best_batch

        clock = time.perf_counter()
        report("training", 0.0)
        posterior, gp_rows = self.fit(data)
        train_s = time.perf_counter() - clock

        clock = time.perf_counter()
        parents = data.x[np.argsort(-data.y, kind="stable")[:PARENTS]]
        known = set(row_keys(self.data.x)) | set(row_keys(self.pending))
        criterion = self.criterion(posterior, parents, rng)
        x, pool = best_batch(self.space, posterior, criterion, parents, known, n, rng, self.effort)
        info = {
            "gp_rows": gp_rows, "noise": float(posterior.noise), "device": self.device,
            "train_s": train_s, "acquire_s": time.perf_counter() - clock,
        }  # fmt: skip
        # A nearly exhausted space may hold nothing new that the search came across.
        yield Proposal(x if len(x) else self.space.sample(n, rng), info=info)
        if len(pool.x):
            yield Proposal(pool.best(len(pool.x)))  # should designs of the batch coincide after rounding
        while True:
            yield Proposal(self.space.sample(n, rng))

    def fit(self, data: Distinct, local: bool = False, region: int = 0) -> tuple[Posterior, dict[str, Any]]:
        """The subset GP of these designs, and for the record which of them, in order of measurement, it saw."""
        from .model import fit

        key = (len(self.data), region)
        if key not in self._fits:
            used = choose_rows(data.y, self.rows, self.seed)
            posterior = fit(self.space, data.x[used], data.y[used], self.device, local, self.effort)
            rows = None if len(used) == len(data) else used.tolist()
            current = {k: v for k, v in self._fits.items() if k[0] == len(self.data)}
            self._fits = current | {key: (posterior, {"used": len(used), "of": len(data), "rows": rows})}
        found: tuple[Posterior, dict[str, Any]] = self._fits[key]
        return found
