"""Several proposers share a batch by their recent success, all of it read from the told rounds alone.

Which proposer a design came from is known by its place in the batch: the places are dealt out by `deal`, which gives
the same answer whenever it is asked again. Whoever tells rows in another order merely blurs the shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import numpy as np
from numpy.typing import NDArray

from .types import Array

MEMORY = 0.8  # of what was found in a round, how much counts in the next
LEADERS = 0.1  # a design is a find when it is among as many best ones as this part of a batch
KEEN = 2  # how strongly shares follow finds, as a power
DOUBT = 1.0  # finds that everyone is credited with, and expected to have, beforehand
STEP, FINEST = 0.1, 0.1 / 64  # of a number's range: where steps begin, and the smallest


def deal(shares: Array, n: int, owed: Array | None = None) -> NDArray[np.intp]:
    """Which proposer has each of `n` places: at every place the one that is furthest behind its share.

    `owed` is what each was behind before, in places: so that small batches come round to small shares. The deal for
    fewer places is the beginning of the deal for more, so a batch may be cut short.
    """
    behind = np.where(shares > 0, 0.0 if owed is None else owed, -np.inf)
    places = np.empty(n, dtype=np.intp)
    for place in range(n):
        behind += shares
        places[place] = int(behind.argmax())
        behind[places[place]] -= 1
    return places


def shares(y: Array, tells: Sequence[int], usual: Array, floor: float, learn: bool = True) -> tuple[Array, Array]:
    """The proposers' shares of the next batch and what they are owed (see `deal`), from all told values `y` (larger is
    better) in rounds of `tells` rows.

    The first tell is the start data. In every later one, of n rows, a design is a find when it is new among the best
    n/10: in a large batch, who made the best one alone is luck. Each proposer's share is its `usual` one times the
    square of how many finds it has made to how many it should have had, had all been equally good; never below `floor`,
    unless its usual share is 0. What is long ago counts for less. Without `learn` shares stay the usual ones.

    Usual shares are `(arms,)`, or one line before every round and one for the next, `(rounds + 1, arms)`.
    """
    usual = np.broadcast_to(usual, (len(tells) + 1, usual.shape[-1]))
    finds, tried, owed = np.zeros((3, usual.shape[1]))
    now = _floored(usual[0], floor)
    before = np.empty(0)  # what was known before, best first
    for index, values in enumerate(_rounds(y, tells)):
        after = -np.sort(-np.concatenate([before, values[np.isfinite(values)]]))
        if index:
            places = deal(now, len(values), owed)
            owed += now * len(values) - np.bincount(places, minlength=len(now))
        if index and learn and len(values) and len(before):
            last = ceil(LEADERS * len(values)) - 1
            found = values >= after[min(last, len(after) - 1)]
            if last < len(before):
                found &= values > before[last]
            finds = MEMORY * finds + np.bincount(places[found], minlength=len(now))
            tried = MEMORY * tried + np.bincount(places, minlength=len(now))
        expected = finds.sum() * tried / max(tried.sum(), 1.0)
        now = _floored(usual[index + 1] * ((finds + DOUBT) / (expected + DOUBT)) ** KEEN, floor)
        before = after
    return now, owed


def step_length(y: Array, tells: Sequence[int]) -> float:
    """How far a number may move, as a part of its range: halved after two rounds in a row without a new best, doubled
    (up to where it began) by a round with one."""
    length, best, misses = STEP, -np.inf, 0
    for index, values in enumerate(_rounds(y, tells)):
        known = values[np.isfinite(values)]
        top = float(known.max()) if len(known) else -np.inf
        if index and top > best:
            length, misses = min(STEP, 2 * length) if not misses else length, 0
        elif index:
            misses += 1
            if misses == 2:
                length, misses = max(FINEST, length / 2), 0
        best = max(best, top)
    return length


def troubled(y: Array, tells: Sequence[int]) -> NDArray[np.bool_]:
    """Which of all told values `y` came together with failures."""
    return np.repeat([bool(np.isnan(values).any()) for values in _rounds(y, tells)], tells)


def _floored(shares: Array, floor: float) -> Array:
    raised = np.where(shares > 0, np.maximum(shares / shares.sum(), floor), 0.0)
    return np.asarray(raised / raised.sum())


def _rounds(y: Array, tells: Sequence[int]) -> list[Array]:
    return np.split(y, np.cumsum(tells)[:-1]) if len(tells) else []
