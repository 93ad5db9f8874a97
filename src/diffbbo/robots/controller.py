"""The controller of a robot: a gait, corrected at every step by a network that sees the state and the design."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..types import Array


@dataclass(frozen=True)
class Controller:
    """action = clip(gait(time) + network(clock, normalised observation), -1, 1), in float64.

    `gait` `(3, 12)` holds offset, amplitude and phase of a sine per motor, `frequency` its cycles per second; `mean`
    and `scale` normalise an observation; `layers` are weight `(in, out)` and bias `(out,)`, with tanh between them.
    """

    frequency: float
    gait: Array
    mean: Array
    scale: Array
    layers: tuple[tuple[Array, Array], ...]

    def __call__(self, observation: Array) -> Array:
        phase = 2 * np.pi * self.frequency * observation[0]
        offset, amplitude, shift = self.gait
        h = self.features(observation)
        for weight, bias in self.layers[:-1]:
            h = np.tanh(h @ weight + bias)
        weight, bias = self.layers[-1]
        action = offset + amplitude * np.sin(phase + shift) + h @ weight + bias
        # Rounded, because the last bits of a matrix product depend on the machine, and a stumble depends on them.
        return np.asarray(np.round(np.clip(action, -1, 1), 6))

    def features(self, observation: Array) -> Array:
        """What the network gets: the gait's clock and the normalised observation, without outliers."""
        phase = 2 * np.pi * self.frequency * observation[0]
        normal = np.clip((observation - self.mean) / self.scale, -5, 5)
        return np.concatenate([[np.sin(phase), np.cos(phase)], normal])

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Controller:
        """From the named arrays of a weights file."""
        doubles = {name: np.asarray(array, dtype=np.float64) for name, array in arrays.items()}
        depth = sum(name.startswith("weight") for name in doubles)
        layers = tuple((doubles[f"weight{k}"], doubles[f"bias{k}"]) for k in range(depth))
        return cls(float(doubles["frequency"][0]), doubles["gait"], doubles["mean"], doubles["scale"], layers)

    def to_arrays(self) -> dict[str, Array]:
        arrays = {"frequency": np.array([self.frequency]), "gait": self.gait, "mean": self.mean, "scale": self.scale}
        for k, (weight, bias) in enumerate(self.layers):
            arrays |= {f"weight{k}": weight, f"bias{k}": bias}
        return arrays
