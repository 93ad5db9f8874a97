"""Diffusion-BBO: Algorithm 1 of the paper, beside its line numbers.

    1  initialise the conditional diffusion model p(x | y)
    2  for k = 1, 2, ... K:
    3      train the model with D
    4      construct a candidate set Y
    5      y* = argmax of alpha(y, D) over Y
    6      generate x_1 ... x_N ~ p(x | y*, D)
    7      query the oracle f(x_1) ... f(x_N)
    8      D <- D + {(x_j, f(x_j))}
    9      phi <- max of f(x) over D

`ask` is lines 3 to 6, `tell` is lines 8 and 9; lines 2 and 7 belong to whoever measures (`Study.run`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .acquisition import Acquisition, UaE
from .diffusion.config import PRESETS, EnsembleConfig, resolve_preset
from .encoding import Encoder, ObjectiveScale
from .optimizer import Optimizer, Proposal
from .spaces import Space
from .types import Array
from .uncertainty import Uncertainty, decompose

if TYPE_CHECKING:
    from .diffusion.ensemble import Ensemble


@dataclass(frozen=True)
class Inverse:
    """The trained p(x given y), with how designs and scores look to it."""

    scale: ObjectiveScale
    encoder: Encoder
    ensemble: Ensemble
    train_s: float


class Algorithm1(Optimizer):
    """An ensemble of conditional diffusion models proposes designs at the score that UaE chooses.

    `preset` is the size of network and training (`fast`, `paper`, or `auto` by hardware), `config` replaces it
    in full; `device` is `auto`, `cpu` or `cuda`.
    """

    supports = "10,000 rows and more; any batch"

    # What the paper leaves open, decided (docs/decisions.md); DiffBBOPaper decides otherwise.
    default_acquisition: ClassVar[Acquisition] = UaE()
    method: ClassVar[dict[str, Any]] = {}  # fields of EnsembleConfig that belong to the method, not the preset
    feature_floor: ClassVar[float] = 0.02
    draws: ClassVar[int | None] = 1000  # per candidate and member, for the uncertainty; None: as many as the batch

    def __init__(
        self,
        space: Space,
        *,
        seed: int = 0,
        minimize: bool = False,
        preset: str = "auto",
        device: str = "auto",
        acquisition: Acquisition | None = None,
        config: EnsembleConfig | None = None,
    ) -> None:
        super().__init__(space, seed=seed, minimize=minimize)
        self.acquisition = acquisition or self.default_acquisition
        self._preset, self._config, self._device = preset, config, device
        if preset != "auto":
            resolve_preset(preset, "cpu")  # an unknown name is refused at once

    @property
    def device(self) -> str:
        """The device in use: "cpu" or "cuda"."""
        from .diffusion.ensemble import resolve_device

        return resolve_device(self._device).type

    @property
    def config(self) -> EnsembleConfig:
        """The ensemble's settings, resolved for this machine."""
        if self._config is not None:
            return self._config
        return EnsembleConfig(**(PRESETS[resolve_preset(self._preset, self.device)] | self.method))

    def settings(self) -> dict[str, Any]:
        acquisition: dict[str, Any] = {"name": type(self.acquisition).__name__}
        if is_dataclass(self.acquisition):
            acquisition |= asdict(self.acquisition)
        return super().settings() | asdict(self.config) | {"acquisition": acquisition}

    @staticmethod
    def scale(y: Array) -> ObjectiveScale:
        """The objective as the model sees it."""
        return ObjectiveScale.robust(y)

    def propose(self, n: int, rng: np.random.Generator) -> Iterator[Proposal]:
        data = self.data.distinct()  # replicates are their mean, failures are left out
        if not len(data) or self.scale(data.y).flat:
            yield from self.fill(n, len(data), rng)
            return
        inverse = self.train(data.x, data.y, rng)  # line 3
        clock = time.perf_counter()
        target, info = self.aim(inverse, n, rng)  # lines 4 and 5
        # Line 6: generate designs at y*, a mixture over members, fresh draws, in order of merit.
        condition = float(inverse.scale.condition(np.array([target]))[0])
        while True:
            z, member = inverse.ensemble.sample_mixture(condition, n)
            x = inverse.encoder.decode(z)
            # A design is judged as it will be made, after rounding and clipping.
            order = np.argsort(-inverse.ensemble.evidence(inverse.encoder.encode(x), condition), kind="stable")
            yield Proposal(x[order], member[order], info | {"acquire_s": time.perf_counter() - clock})

    def train(self, x: Array, y: Array, rng: np.random.Generator) -> Inverse:
        """Line 3: train the conditional diffusion model with D."""
        from .diffusion.ensemble import fit

        clock = time.perf_counter()
        scale, encoder = self.scale(y), Encoder.fit(self.space, x, self.feature_floor)
        seed = int(rng.integers(2**62))
        ensemble = fit(encoder.encode(x), scale.condition(y), self.config, seed, self.device)
        return Inverse(scale, encoder, ensemble, time.perf_counter() - clock)

    def aim(self, inverse: Inverse, n: int, rng: np.random.Generator) -> tuple[float, dict[str, Any]]:
        """Lines 4 and 5: of the candidate set Y = {w * phi}, y* = argmax of alpha(y, D); and what to record of it."""
        scale, ensemble = inverse.scale, inverse.ensemble
        y = scale.targets(self.acquisition.weights)
        samples = ensemble.sample(scale.condition(y), self.draws or n)
        uncertainty = decompose(samples, self.acquisition.measure)
        alpha = self.acquisition.alpha(scale.height(y), uncertainty, rng)
        k = int(alpha.argmax())
        return float(y[k]), self._info(k, y, alpha, uncertainty) | {
            "train_s": inverse.train_s, "steps": ensemble.fitted.steps, "device": self.device,
            "validation_loss": ensemble.fitted.validation_loss.tolist(), "notes": _training_notes(ensemble),
        }  # fmt: skip

    def _info(self, k: int, y: Array, alpha: Array, uncertainty: Uncertainty) -> dict[str, Any]:
        """What a record of this round should hold: the choice, and every candidate beside it."""
        error = self.acquisition.standard_error(uncertainty)
        return {
            "weight": float(self.acquisition.weights[k]),
            "target": float(y[k]),
            "epistemic": float(uncertainty.epistemic[k]),
            "aleatoric": float(uncertainty.aleatoric[k]),
            "epistemic_corrected": float(uncertainty.corrected[k]),
            "candidates": {
                "weight": [float(w) for w in self.acquisition.weights],
                "alpha": alpha.tolist(),
                "alpha_standard_error": None if error is None else error.tolist(),
                "epistemic": uncertainty.epistemic.tolist(),
                "aleatoric": uncertainty.aleatoric.tolist(),
            },
        }


def _training_notes(ensemble: Ensemble) -> list[str]:
    """A word about members whose training never gave a finite loss: they draw plain noise."""
    lost = int((~ensemble.fitted.validation_loss.isfinite()).sum())
    return (
        [f"{lost} of {ensemble.config.members} members could not be trained: their loss is not finite."] if lost else []
    )


class DiffBBOPaper(Algorithm1):
    """The paper as literally as it can be read: its scale, its estimate, its sampler; repeats allowed."""

    name = "diffbbo-paper"
    summary = "the paper to the letter: raw targets, 1000-step sampler, repeats allowed"
    reference = "Wu et al. 2024, Diffusion-BBO"
    repeats = True
    default_acquisition = UaE(estimator="paper")
    method: ClassVar[dict[str, Any]] = {
        "condition": "zero", "time_features": 0, "residual": False, "predict": "eps", "learning_rate": 1e-3, "ema": 0.0,
        "sampler": "euler-maruyama", "sampling_steps": 1000,
    }  # fmt: skip
    feature_floor = 0.0
    draws = None

    @staticmethod
    def scale(y: Array) -> ObjectiveScale:
        return ObjectiveScale.paper(y)
