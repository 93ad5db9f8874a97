"""Few distinct values, many entries: stored as a table of the values and a code per entry, compactly."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def encode(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    """The distinct `values`, most frequent first, and the code of each entry `(n,)` as its low and high byte `(2, n)`.

    Frequent values get small codes and the bytes lie apart, so a zip file squeezes the codes to near their entropy.
    """
    distinct, code, count = np.unique(values, return_inverse=True, return_counts=True)
    if len(distinct) > 2**16:
        raise ValueError(f"{len(distinct)} distinct values do not fit codes of two bytes")
    order = np.argsort(-count, kind="stable")
    rank = np.empty(len(distinct), dtype=np.uint16)
    rank[order] = np.arange(len(distinct))
    codes = rank[code.ravel()]
    return distinct[order], np.stack([codes & 255, codes >> 8]).astype(np.uint8)


def decode(table: NDArray[Any], codes: NDArray[np.uint8]) -> NDArray[Any]:
    """What `encode` was given."""
    low, high = codes
    values: NDArray[Any] = table[low + high.astype(np.uint16) * 256]
    return values
