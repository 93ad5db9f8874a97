"""Fit the oracle of the task superconductor and pack it with its data.

    python scripts/superconductor_forest.py unique_m.csv.gz

The source is a table of 86 element counts, `critical_temp` and `material` for 21,263 superconductors;
`src/diffbbo/data/README.md` says where it comes from. Needs scikit-learn; another version of it may grow other trees.
Prints what was measured and the sha256 that `tasks/superconductor.py` must hold. Takes about a minute.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from scipy.stats import spearmanr
from sklearn.ensemble import RandomForestRegressor

from diffbbo.tasks._codes import encode
from diffbbo.tasks.superconductor import ELEMENTS, LEAF, Forest

TARGET = Path(__file__).parents[1] / "src" / "diffbbo" / "data" / "superconductor.npz"
SEED = 0


def fit(x: Any, y: Any, trees: int = 100) -> RandomForestRegressor:
    """Design-Bench's settings: 100 trees, depth at most 100, every split looks at all features."""
    return RandomForestRegressor(trees, max_depth=100, max_features=1.0, random_state=SEED, n_jobs=2).fit(x, y)


def read(path: Path) -> tuple[Any, Any]:
    """Counts `(n, 86)` and temperatures `(n,)`."""
    with gzip.open(path, "rt", newline="") as file:
        header, *rows = csv.reader(file)
    if tuple(header[:86]) != ELEMENTS or header[86] != "critical_temp":
        raise SystemExit(f"{path} does not begin with the 86 elements and critical_temp: is this the right file?")
    numbers = np.array([row[:87] for row in rows], dtype=np.float64)
    return numbers[:, :86], numbers[:, 86]


def held_out(x: Any, y: Any) -> tuple[float, float]:
    """Spearman on a fifth that a forest fitted on the rest has not seen: a fifth of the rows, of the compositions."""
    rng = np.random.default_rng(SEED)
    composition = np.unique(x, axis=0, return_inverse=True)[1].ravel()
    found = []
    for group in (np.arange(len(x)), composition):
        names = rng.permutation(group.max() + 1)
        test = np.isin(group, names[: len(names) // 5])
        found.append(float(spearmanr(fit(x[~test], y[~test]).predict(x[test]), y[test])[0]))
    return found[0], found[1]


def pack_forest(model: RandomForestRegressor) -> dict[str, Any]:
    """The model as the arrays from which `Forest.from_arrays` rebuilds it."""
    trees = [estimator.tree_ for estimator in model.estimators_]
    for tree in trees:
        splits = np.flatnonzero(tree.children_left >= 0)
        assert np.array_equal(tree.children_left[splits], splits + 1), "the nodes are not in preorder"
    feature = np.concatenate([tree.feature for tree in trees])
    is_leaf = feature < 0
    thresholds, threshold = encode(round_down(np.concatenate([tree.threshold for tree in trees])[~is_leaf]))
    leaves, leaf = encode(np.concatenate([tree.value[:, 0, 0] for tree in trees])[is_leaf].astype(np.float32))
    return {
        "feature": np.where(is_leaf, LEAF, feature).astype(np.uint8),
        "sizes": np.array([tree.node_count for tree in trees], dtype=np.int32),
        "thresholds": thresholds,
        "threshold": threshold,
        "leaves": leaves,
        "leaf": leaf,
    }


def round_down(numbers: Any) -> Any:
    """The largest float32 not above each number: a float32 is <= the one exactly when it is <= the other."""
    near = numbers.astype(np.float32)
    return np.where(near > numbers, np.nextafter(near, np.float32(-np.inf)), near)


def pack_data(x: Any, y: Any) -> dict[str, Any]:
    """Counts row by row without the zeros, and the recorded temperatures."""
    row, element = np.nonzero(x)
    counts, count = encode(x[row, element])
    temperatures, temperature = encode(y)
    return {
        "elements": np.bincount(row, minlength=len(x)).astype(np.uint8),
        "element": element.astype(np.uint8),
        "counts": counts,
        "count": count,
        "temperatures": temperatures,
        "temperature": temperature,
    }


def main(source: Path) -> None:
    x, y = read(source)
    spearman = held_out(x, y)
    print(f"held-out Spearman: {spearman[0]:.4f} by rows, {spearman[1]:.4f} by compositions")
    model = fit(x, y)
    arrays = pack_forest(model)
    predicted = Forest.from_arrays(arrays)(x)
    np.testing.assert_allclose(predicted, model.predict(x), rtol=1e-6)
    np.savez_compressed(
        TARGET, **arrays, **pack_data(x, y), predicted=predicted, held_out=spearman, fitted_with=sklearn.__version__
    )
    content = TARGET.read_bytes()
    print(f"values of the recorded compositions: {predicted.min():.5f} to {predicted.max():.3f} K")
    print(f"{TARGET}: {len(content):,} bytes, sha256 {hashlib.sha256(content).hexdigest()}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]))
