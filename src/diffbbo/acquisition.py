"""Acquisition functions over scores: which y to aim for (line 5 of Algorithm 1).

Adding one is one small class, and it need not live here: pass an instance to `DiffBBO(acquisition=...)`. If it is
a dataclass, a study records its fields.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .types import Array, InputError
from .uncertainty import Uncertainty

W = (0.6, 0.7, 0.8, 0.9, 1.0)


class Acquisition:
    """A function of y. Subclass it, say which `weights` are candidates, and write `alpha`."""

    weights: tuple[float, ...] = W
    measure: str = "norm"  # what `uncertainty` is taken of: the norm of x, or ("trace") x itself

    def alpha(self, height: Array, uncertainty: Uncertainty, rng: np.random.Generator) -> Array:
        """The value of every candidate, `(Y,)`: the largest wins. `height` `(Y,)` is y above its origin."""
        raise NotImplementedError

    def standard_error(self, uncertainty: Uncertainty) -> Array | None:
        """How far sampling noise alone moves alpha, `(Y,)`, where that is known."""
        return None


@dataclass(frozen=True)
class UaE(Acquisition):
    """Uncertainty-aware Exploration: alpha(y) = y - epistemic(y), both under a logarithm if `form="log"`.

    `estimator="paper"` takes the epistemic term as it is; `"corrected"` takes the Monte-Carlo part off and floors it at
    `floor` of the aleatoric term, else a collapsed ensemble is rewarded without bound. `weight` scales the term.
    """

    form: str = "log"
    estimator: str = "corrected"
    measure: str = "norm"
    weight: float = 1.0
    floor: float = 1e-3
    weights: tuple[float, ...] = W

    def __post_init__(self) -> None:
        for name, allowed in (("form", ("log", "plain")), ("estimator", ("corrected", "paper")),
                              ("measure", ("norm", "trace"))):  # fmt: skip
            if getattr(self, name) not in allowed:
                raise InputError(f"UaE: {name} = {getattr(self, name)!r}.", f"Use {' or '.join(allowed)}.")
        check_weights(self.weights)

    def epistemic(self, uncertainty: Uncertainty) -> Array:
        """The epistemic term that enters alpha."""
        if self.estimator == "paper":
            return uncertainty.epistemic
        return np.maximum(uncertainty.corrected, self.floor * uncertainty.aleatoric)

    def alpha(self, height: Array, uncertainty: Uncertainty, rng: np.random.Generator) -> Array:
        epistemic = self.epistemic(uncertainty)
        if self.form == "plain":
            return height - self.weight * epistemic
        tiny = np.finfo(np.float64).tiny
        return np.log(np.maximum(height, tiny)) - self.weight * np.log(np.maximum(epistemic, tiny))

    def standard_error(self, uncertainty: Uncertainty) -> Array:
        if self.form == "plain":
            return self.weight * uncertainty.standard_error
        return self.weight * uncertainty.standard_error / np.maximum(self.epistemic(uncertainty), 1e-300)


@dataclass(frozen=True)
class FixedWeight(Acquisition):
    """Always y = w * phi (the paper's ablation, Figure 3)."""

    w: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", (self.w,))
        check_weights(self.weights)

    def alpha(self, height: Array, uncertainty: Uncertainty, rng: np.random.Generator) -> Array:
        return np.zeros_like(height)


@dataclass(frozen=True)
class RandomWeight(Acquisition):
    """A weight drawn at random in every round: what UaE must beat to be worth its draws."""

    weights: tuple[float, ...] = W

    def __post_init__(self) -> None:
        check_weights(self.weights)

    def alpha(self, height: Array, uncertainty: Uncertainty, rng: np.random.Generator) -> Array:
        return rng.random(height.shape)


def check_weights(weights: tuple[float, ...]) -> None:
    if not weights or not all(np.isfinite(w) and w > 0 for w in weights):
        raise InputError(f"The weights {weights!r} are not positive numbers.", "Give, say, (0.6, 0.8, 1.0).")
