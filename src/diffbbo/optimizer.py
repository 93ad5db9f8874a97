"""The ask/tell base class: told data, pending designs, repeats, failures and seeds. Subclasses write propose()."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .progress import report
from .spaces import Space
from .types import Array, Batch, Best, Dataset, ExhaustedError, InputError, as_numbers, row_keys

log = logging.getLogger("diffbbo")

MAX_BLOCKS = 20  # proposals drawn in search of new designs before the fallback takes over
ENUMERABLE = 2**22  # finite spaces up to this size are listed to find what is left of them
MAX_TRIES = 10_000  # draws in search of unseen designs, before a space counts as exhausted
COLLAPSED = 0.5  # a share of distinct designs below this is worth a word


@dataclass(frozen=True)
class Proposal:
    """Designs in order of merit: rows `x` `(k, d)`, the member that drew each (-1: none), and how they came about."""

    x: Array
    member: NDArray[np.intp] | None = None
    info: dict[str, Any] = field(default_factory=dict)


class Optimizer:
    """Tell it designs and their values, ask it for the next batch.

    `ask` does not change state: what it returns depends on the seed, the told rows and the pending ones alone, so
    replaying the same tells restores an optimizer exactly. A subclass writes `propose`.
    """

    name: ClassVar[str] = ""  # under which make_optimizer finds it
    summary: ClassVar[str] = ""
    reference: ClassVar[str] = ""
    supports: ClassVar[str] = ""  # how many rows and which batches it is good for; variables: all types, unless said
    repeats: ClassVar[bool] = False  # may a measured design be asked again?

    def __init__(self, space: Space, *, seed: int = 0, minimize: bool = False) -> None:
        if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or seed < 0:
            raise InputError(f"seed = {seed!r} is not a whole number from 0 up.", "Give, say, 0.")
        self.space, self.seed, self.minimize = space, int(seed), bool(minimize)
        self.data = Dataset.empty(space.dimension)
        self.tells: tuple[int, ...] = ()  # how many rows each tell brought, for methods that go round by round
        self.pending = np.empty((0, space.dimension))  # while an ask runs: designs asked before and not measured yet

    def propose(self, n: int, rng: np.random.Generator) -> Iterator[Proposal]:
        """Blocks of designs, best first, for as long as the caller wants more; at least `n` in the first."""
        raise NotImplementedError

    def settings(self) -> dict[str, Any]:
        """All that decides what this optimizer asks, as JSON: a study refuses to resume with another."""
        return {"method": self.name or type(self).__name__, "seed": self.seed, "minimize": self.minimize}

    # ---- told data ---------------------------------------------------------------------------------

    def tell(self, designs: Any, values: Any) -> None:
        """Add measurements: `values` `(n,)` in the order of `designs`; NaN says that the experiment failed."""
        x = self.space.rows(designs)
        y = as_numbers(values, "Told values", "Give numbers, and NaN for a failure.").reshape(-1)
        if len(y) != len(x):
            raise InputError(
                f"{len(x)} designs but {len(y)} values were told.", "Give one value per design, NaN for a failure."
            )
        if np.isinf(y).any():
            row = int(np.flatnonzero(np.isinf(y))[0])
            raise InputError(f"Value {row + 1} is {y[row]}.", "Give a finite number, or NaN for a failure.")
        self.data = self.data.extended(x, -y if self.minimize else y)
        self.tells = (*self.tells, len(y))

    @property
    def failed(self) -> Array:
        """Designs that failed and never succeeded, `(k, d)`."""
        failed = self.data.failed
        rows = self.data.x[failed]
        if not len(rows):
            return rows
        succeeded = set(row_keys(self.data.x[~failed]))
        return rows[[key not in succeeded for key in row_keys(rows)]]

    @property
    def best(self) -> Best | None:
        """The best design so far by the mean of its measurements; None before the first success."""
        return best_of(self.data, self.space, self.minimize)

    @property
    def history(self) -> list[dict[str, Any]]:
        """All that was told, in order: `{"design": {...}, "value": ...}`; NaN for failures."""
        designs = self.space.dicts(self.data.x)
        values = [self._outside(y) for y in self.data.y]
        return [{"design": d, "value": v} for d, v in zip(designs, values, strict=True)]

    def _outside(self, y: float) -> float:
        """A value in the user's own direction."""
        return float(-y if self.minimize else y)

    # ---- asking ------------------------------------------------------------------------------------

    def ask(self, n: int, pending: Any = None) -> Batch:
        """The next `n` designs to measure, in order of merit, none of them among the `pending` ones."""
        if not isinstance(n, int | np.integer) or isinstance(n, bool) or n < 1:
            raise InputError(f"A batch of {n!r} was asked for.", "Ask for at least 1 design.")
        started = time.perf_counter()
        nothing = np.empty((0, self.space.dimension))
        self.pending = nothing if pending is None else self.space.rows(pending)
        known = set(row_keys(self.pending))
        known.update(row_keys(self.data.x if not self.repeats else self.failed))
        self._check_left(n, len(known))
        rng = np.random.default_rng([self.seed, len(self.data), len(self.pending)])
        try:
            chosen, members, info = self._gather(n, known, rng)
        finally:
            self.pending = nothing
        info["failure_share"] = self.data.failure_share
        info["ask_s"] = time.perf_counter() - started
        if info.get("target") is not None:
            info["target"] = self._outside(info["target"])
        for note in info["notes"]:
            log.warning("%s", note)
        return Batch(tuple(self.space.dicts(chosen)), chosen, members, info)

    def fill(self, n: int, told: int, rng: np.random.Generator) -> Iterator[Proposal]:
        """Designs that fill the space evenly, for as long as the `told` distinct designs give nothing to learn."""
        why = "There is no measured design yet"
        if told:
            why = "There is only 1 measured design" if told == 1 else f"All {told} measured designs have the same value"
        note = f"{why}, so this batch fills the space instead of asking a model."
        report("space-filling", 1.0)
        while True:
            yield Proposal(self.space.fill(n, rng), info={"notes": [note]})

    def _check_left(self, n: int, known: int) -> None:
        size = self.space.size
        if size is not None and n > size - known and not (self.repeats and size > known):
            left = size - known
            raise ExhaustedError(
                f"A batch of {n} was asked for, but only {left} of the space's {size} designs are left.",
                f"Ask for at most {left}." if left else "Every design is measured or pending: you are done.",
            )

    def _gather(
        self, n: int, known: set[bytes], rng: np.random.Generator
    ) -> tuple[Array, NDArray[np.intp], dict[str, Any]]:
        """The first `n` usable designs from the proposals, filled up by chance where those run dry."""
        rows: list[Array] = []
        members: list[int] = []
        info: dict[str, Any] = {}
        notes: list[str] = []
        for count, block in enumerate(islice(self.propose(n, rng), MAX_BLOCKS)):
            keys = row_keys(block.x)
            if count == 0:
                info, notes = dict(block.info), list(block.info.get("notes", ()))
                distinct = len(set(keys[:n]))
                info["distinct"] = distinct / min(n, len(keys))
                if distinct < COLLAPSED * min(n, self.space.size or n):
                    notes.append(f"The model has collapsed: {distinct} different designs among the first {n} drawn.")
            for row, key in enumerate(keys):
                if key in known or len(rows) == n:
                    continue
                if not self.repeats:
                    known.add(key)
                rows.append(block.x[row])
                members.append(-1 if block.member is None else int(block.member[row]))
            if len(rows) == n:
                break
        missing = n - len(rows)
        info["fallback"] = missing
        if missing:
            notes.append(f"{missing} of {n} designs were drawn at random: the model proposed no more new ones.")
            rows.extend(self._unseen(missing, known, rng))
            members.extend([-1] * missing)
        info["notes"] = notes
        return np.stack(rows), np.array(members, dtype=np.intp), info

    def _unseen(self, n: int, known: set[bytes], rng: np.random.Generator) -> Array:
        """`n` random designs whose keys are not in `known`."""
        size = self.space.size
        if size is not None and size <= ENUMERABLE:
            taken = np.zeros(size, dtype=bool)
            if known:
                told = np.frombuffer(b"".join(sorted(known)), dtype=np.float64).reshape(len(known), -1)
                taken[self.space.rank(told)] = True
            free = np.flatnonzero(~taken)
            return self.space.unrank(rng.choice(free, n, replace=n > len(free)).astype(np.int64))
        found: dict[bytes, Array] = {}
        for _ in range(MAX_TRIES):
            x = self.space.sample(2 * n, rng)
            found.update({key: row for key, row in zip(row_keys(x), x, strict=True) if key not in known})
            if len(found) >= n:
                return np.stack(list(found.values())[:n])
        raise ExhaustedError(f"Only {len(found)} new designs could be found, {n} were asked for.", "Widen the space.")


def best_of(data: Dataset, space: Space, minimize: bool) -> Best | None:
    """The best design of `data` by the mean of its measurements, its value in the user's own direction."""
    distinct = data.distinct()
    if not len(distinct):
        return None
    k = int(distinct.y.argmax())
    value = -distinct.y[k] if minimize else distinct.y[k]
    return Best(space.dicts(distinct.x[k : k + 1])[0], float(value), int(distinct.count[k]))
