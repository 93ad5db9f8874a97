"""The data files carried in the package: read only after checking that they are whole."""

from __future__ import annotations

import hashlib
import io
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .types import DiffBBOError, need


def load_bytes(filename: str, sha256: str) -> bytes:
    """The content of a data file."""
    content = resources.files("diffbbo").joinpath("data", filename).read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise DiffBBOError(
            f"The data file {filename} is damaged: its sha256 is {found}, not {sha256}.", "Reinstall diffbbo."
        )
    return content


def load_arrays(filename: str, sha256: str) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz file."""
    with np.load(io.BytesIO(load_bytes(filename, sha256)), allow_pickle=False) as arrays:
        return dict(arrays)


def load_weights(filename: str, sha256: str, extra: str) -> dict[str, NDArray[Any]]:
    """The arrays of a .safetensors file; reading it needs `extra`."""
    reader = need("safetensors.numpy", extra, f"Reading {filename}")
    weights: dict[str, NDArray[Any]] = reader.load(load_bytes(filename, sha256))
    return weights
