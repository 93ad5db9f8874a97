"""Pack the Pho4 measurements into the data file of the tasks tfbind10 and tfbind10-clean.

    python scripts/tfbind10_data.py pho4_10mers.npz

The source holds `values` (the distinct ddG, float32), `replicate_index` (4, 4^10) into them with 65535 = not measured,
and `lookup_index` (4^10,), the value of Design-Bench's oracle; `src/diffbbo/data/README.md` says where it comes from.
Only replicates 3 and 4 are kept, which give both tasks. Prints the sha256 that `tasks/tfbind10.py` must hold.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import numpy as np

from diffbbo.tasks._codes import decode, encode

TARGET = Path(__file__).parents[1] / "src" / "diffbbo" / "data" / "tfbind10.npz"
MISSING = 65535


def main(source: Path) -> None:
    with np.load(source, allow_pickle=False) as arrays:
        values, index, lookup = arrays["values"], arrays["replicate_index"], arrays["lookup_index"]
    measured = np.full(MISSING + 1, np.nan, dtype=np.float32)
    measured[: len(values)] = values
    replicates = measured[index]  # (4, 4^10), NaN = not measured

    last = replicates[0].copy()
    for replicate in replicates[1:]:
        last = np.where(np.isnan(replicate), last, replicate)
    if not np.array_equal(last[::-1], values[lookup]):
        raise SystemExit("The lookup is not the last replicate of the complementary flank: is this the right file?")

    table, codes = encode(replicates[2:])
    third, fourth = codes.reshape(2, 2, -1).transpose(1, 0, 2)
    for name, replicate in (("third", 2), ("fourth", 3)):
        again = decode(table, third if name == "third" else fourth)
        assert np.array_equal(again, replicates[replicate], equal_nan=True), name
    rest = np.flatnonzero(np.isnan(replicates[2:]).all(axis=0))
    np.savez_compressed(TARGET, values=table, third=third, fourth=fourth, earlier_flank=rest, earlier_value=last[rest])
    content = TARGET.read_bytes()
    print(f"{TARGET}: {len(content):,} bytes, sha256 {hashlib.sha256(content).hexdigest()}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]))
