"""Which molecule 32 latent numbers stand for: the trained decoder, greedily, in plain numpy.

The most likely token is written at every place, so one row always gives the same molecule. SELFIES (Krenn et al. 2020)
make every string of tokens a valid molecule. Computed in float64, so that the company of a row in a batch cannot tip
a close choice between two tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..assets import load_arrays
from ..types import Array, InputError, need

FILE = "molecule_decoder.npz"
SHA256 = "0629a9c95a46ab3774acfb18dace26c4a46853847987aababde3eb0477f2f9ad"
LATENT = 32
LENGTH = 72  # tokens of the longest molecule in the training data


def smiles(z: Array) -> list[str]:
    """The molecules of latent rows `(n, 32)` as SMILES; "" where a row decodes to nothing."""
    selfies = need("selfies", "molecules", "Decoding molecules")
    weights, alphabet = load()
    written = tokens(z, weights)
    return [selfies.decoder("".join(alphabet[token] for token in row if token)) or "" for row in written.tolist()]


@lru_cache(maxsize=1)
def load() -> tuple[dict[str, Array], tuple[str, ...]]:
    """The decoder's weights, and the SELFIES token of every number (0 ends a molecule)."""
    stored = load_arrays(FILE, SHA256)
    alphabet = ("", *map(str, stored.pop("alphabet")))
    return {name: value.astype(np.float64) for name, value in stored.items()}, alphabet


def tokens(z: Array, weights: Mapping[str, Array], length: int = LENGTH) -> NDArray[np.intp]:
    """The token numbers `(n, length)` the decoder writes for latent rows `(n, 32)`; 0 from the end of a molecule on."""
    z = np.asarray(z, dtype=np.float64)
    if z.ndim != 2 or z.shape[1] != LATENT or not np.isfinite(z).all():
        raise InputError(f"Latent rows of shape {z.shape}.", f"Give finite rows of shape (n, {LATENT}).")
    written = np.zeros((len(z), length), np.intp)
    open_ = np.arange(len(z))  # the rows whose molecule is not finished
    state = np.tanh(_linear(z, weights, "first"))
    middle = _linear(z, weights, "sketch.0")
    sketch = _linear(middle * _sigmoid(middle), weights, "sketch.2")
    sketch = sketch.reshape(len(z), -1, weights["out.weight"].shape[1] - state.shape[1])
    token = np.full(len(z), len(weights["embed.weight"]) - 2)  # "start"
    for place in range(length):
        here = sketch[open_, place]
        state = _gru(np.concatenate([weights["embed.weight"][token], z[open_], here], axis=1), state, weights)
        token = _linear(np.concatenate([state, here], axis=1), weights, "out").argmax(axis=1)
        written[open_, place] = token
        going = token != 0
        if not going.any():
            break
        open_, token, state = open_[going], token[going], state[going]
    return written


def _linear(x: Array, weights: Mapping[str, Array], name: str) -> Array:
    return np.asarray(x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"])


def _gru(x: Array, h: Array, weights: Mapping[str, Array]) -> Array:
    """One step of a gated recurrent unit: gates in PyTorch's order (reset, update, new)."""
    from_x = x @ weights["gru.weight_ih_l0"].T + weights["gru.bias_ih_l0"]
    from_h = h @ weights["gru.weight_hh_l0"].T + weights["gru.bias_hh_l0"]
    (xr, xu, xn), (hr, hu, hn) = np.split(from_x, 3, axis=1), np.split(from_h, 3, axis=1)
    reset, update = _sigmoid(xr + hr), _sigmoid(xu + hu)
    new = np.tanh(xn + reset * hn)
    return np.asarray(new + update * (h - new))


def _sigmoid(x: Array) -> Array:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)))
