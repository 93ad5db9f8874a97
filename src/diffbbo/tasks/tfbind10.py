"""TFBind10: the DNA flanks that change the binding of the transcription factor Pho4 most; all 4^10 are measured."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..spaces import Space
from ..task import Card, Task, load_arrays, quarter
from ..types import Array
from ..variables import Sequence
from ._codes import decode

FILE = "tfbind10.npz"
SHA256 = "8c0a27814af0041ef6ea31e518cbeb525ca327f8721ba4ca5bf57a5314c72f2c"
SAMPLE = 10_000  # visible designs from which the first data come, as in Design-Bench


def replicates() -> tuple[Array, Array, Array]:
    """The measured ddG of every flank: replicate 3, replicate 4, and a value for the flanks that neither measured.

    Each `(1048576,)`, NaN where there is none; row c is the flank read as a base-4 number, first letter most
    significant: Space.rank.
    """
    arrays = load_arrays(FILE, SHA256)
    third, fourth = (decode(arrays["values"], arrays[name]).astype(np.float64) for name in ("third", "fourth"))
    earlier = np.full(len(third), np.nan)
    earlier[arrays["earlier_flank"]] = arrays["earlier_value"]
    return third, fourth, earlier


def _first(*choices: Array) -> Array:
    """Entry by entry the first of the `choices` that is a number."""
    value = choices[0]
    for other in choices[1:]:
        value = np.where(np.isnan(value), other, value)
    return value


class _Pho4(Task):
    """What the two tasks share: a table of every flank, and a seeded sample of its lower half to start from."""

    chunk = 10_000
    table: Array
    _stream: ClassVar[int]  # keeps the samples of the two tasks apart at the same seed

    def __init__(self) -> None:
        self.space = Space((Sequence("dna", 10, "ACGT"),))

    def __reduce__(self) -> tuple[type[Task], tuple[()]]:
        return type(self), ()  # a worker process reads the file itself: quicker than sending it 8 MB

    def start(self, seed: int = 0) -> tuple[Array, Array]:
        """The 25th to 50th percentile of 10,000 designs drawn from the visible half: 2,500, others for every seed."""
        visible = np.flatnonzero(self.table <= np.median(self.table))
        sample = np.random.default_rng([self._stream, seed]).choice(visible, SAMPLE, replace=False)
        rows = quarter(np.sort(sample), self.table)
        return self.space.unrank(rows.astype(np.int64)), self.table[rows]

    def evaluate(self, x: Array) -> Array:
        return self.table[self.space.rank(self.space.rows(x))]

    def _card(self, exact: str, remade: str) -> Card:
        return Card(
            name=self.name,
            summary=self.summary,
            source="Le, Shimko et al., PNAS 115 (2018) E3702-E3711, doi 10.1073/pnas.1715888115 (BET-seq, GEO "
            "GSE111936): ddG of yeast Pho4 for five letters either side of CACGTG, as in Design-Bench's arrays. A "
            "larger ddG is weaker binding; it is maximised as Design-Bench does",
            licence="public measurements (GEO); arrays as redistributed by SOO-Bench (GPL-3.0)",
            size=4**10,
            dimension=10,
            start=SAMPLE // 4,
            maximum=self.maximum,
            exact=exact,
            remade=remade,
        )


class TFBind10(_Pho4):
    """Design-Bench's own lookup, a single measurement per design: its top is noise.

    Its dictionary is filled with every replicate in turn, then with the same again under the letter-wise complement of
    each flank, later entries replacing earlier ones. So a design gets the last replicate of its *complement*.
    """

    name = "tfbind10"
    summary = "DNA flanks of CACGTG with the largest ddG of Pho4: Design-Bench's lookup, heavy noise in the tail"
    maximum = 2.128706693649292
    range = (-1.8585268259048462, 2.128706693649292)
    _stream = 10

    def __init__(self) -> None:
        super().__init__()
        third, fourth, earlier = replicates()
        self.table = _first(fourth, third, earlier)[::-1].copy()  # 4^10 - 1 - c is the complement of c

    def card(self) -> Card:
        return self._card(
            exact="oracle, range and maximum equal Design-Bench's lookup on all 1,048,576 designs: replicate 4 of the "
            "complementary flank (replicate 3 or 2 for the two flanks without). Noise: 99.99 % of designs lie below "
            "1.26; infinite ddG was set to the extremes, so 19 designs share the maximum, and replicate 3 gives these "
            "-1.04 to 0.90; replicates 3 and 4 correlate at 0.81",
            remade="visible are the 524,386 distinct designs at or below the median of the lookup (Design-Bench: "
            "4,161,482 of 8,321,066 rows, every replicate and complement counted); the 10,000-row sample is drawn "
            "by our own seed",
        )


class TFBind10Clean(_Pho4):
    """The mean of the two good replicates of the flank itself: a thinner tail, and the DNA that was measured."""

    name = "tfbind10-clean"
    summary = "DNA flanks of CACGTG with the largest ddG of Pho4: mean of the two good replicates"
    maximum = 1.5121522843837738
    range = (-1.8585268259048462, 1.5121522843837738)
    _stream = 11

    def __init__(self) -> None:
        super().__init__()
        third, fourth, earlier = replicates()
        self.table = _first((third + fourth) / 2, fourth, third, earlier)

    def card(self) -> Card:
        return self._card(
            exact="the measurements are the published ones; the oracle is exact on all 1,048,576 designs",
            remade="not a Design-Bench task: mean of replicates 3 and 4 of the flank itself (not of its complement); "
            "the other one where one is missing (15 flanks), replicate 2 where both are (CCCCCTCCCC: the minimum). "
            "Less noise, not none: 99.99 % lie below 0.97, but the maximum, at CCCCCAATCC, is the mean of 0.896 and a "
            "clipped 2.129, the replicates have their 1,118 minima in common, so they are not independent, and a "
            "flank agrees with its reverse complement, the same molecule, at 0.35 only, as in replicate 4 alone",
        )
