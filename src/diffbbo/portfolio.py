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

MEMORY = 0.4  # how far one clear success moves the shares
CLEAR = 0.02  # a gain of this part of the way from the start data's median to the best is a clear success
FADE = 0.2  # what is forgotten in a round without a gain
LEADERS = 0.1  # as many best designs as this part of a batch decide who earns
STEP, FINEST = 0.1, 0.1 / 64  # of a number's range: where steps begin, and the smallest


def deal(shares: Array, n: int, owed: Array | None = None) -> NDArray[np.intp]:
    """Which proposer has each of `n` places: at every place the one that is furthest behind its share.

    `owed` is what each was behind before, in places: so that small batches come round to small shares. The deal for
    fewer places is the beginning of the deal for more, so a batch may be cut short.
    """
    behind = np.zeros(len(shares)) if owed is None else owed.copy()
    places = np.empty(n, dtype=np.intp)
    for place in range(n):
        behind += shares
        places[place] = int(behind.argmax())
        behind[places[place]] -= 1
    return places


def shares(y: Array, tells: Sequence[int], usual: Array, floor: float, learn: bool = True) -> tuple[Array, Array]:
    """The proposers' shares of the next batch and what they are owed (see `deal`), from all told values `y` (larger is
    better) in rounds of `tells` rows.

    The first tell is the start data. In every later one, of n rows, a proposer earns what its best n/10 designs exceed
    the best n/10 values before by: in a large batch, who made the best one alone is luck. Shares go from the `usual`
    ones to what was earned, as far as there is a clear new best, and never below `floor`. Without `learn` they stay the
    usual ones.
    """
    credit, owed = np.zeros(len(usual)), np.zeros(len(usual))
    now = _mixed(usual, credit, floor)
    before, middle = np.empty(0), np.nan  # what was known before, best first
    for index, values in enumerate(_rounds(y, tells)):
        known = values[np.isfinite(values)]
        if index:
            places = deal(now, len(values), owed)
            owed += now * len(values) - np.bincount(places, minlength=len(now))
        if index and learn and len(known) and len(before):
            lead, way = max(0.0, known.max() - before[0]), before[0] - middle
            clear = min(1.0, lead / (CLEAR * way)) if way > 0 else float(lead > 0)
            if lead > 0:
                count = ceil(LEADERS * len(values))
                excess = np.where(np.isfinite(values), np.maximum(0.0, values - before[:count].min()), 0.0)
                earned = np.array([np.sort(excess[places == arm])[-count:].sum() for arm in range(len(now))])
                credit += MEMORY * clear * (earned / earned.sum() - credit)
            credit *= 1 - FADE * (1 - clear)
            now = _mixed(usual, credit, floor)
        if len(known):
            middle = middle if len(before) else float(np.median(known))
            before = -np.sort(-np.concatenate([before, known]))
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


def _mixed(usual: Array, credit: Array, floor: float) -> Array:
    mixed = np.maximum(usual * (1 - credit.sum()) + credit, floor)
    return np.asarray(mixed / mixed.sum())


def _rounds(y: Array, tells: Sequence[int]) -> list[Array]:
    return np.split(y, np.cumsum(tells)[:-1]) if len(tells) else []
