"""The frozen settings of an ensemble, and its presets (the size of network and training)."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ..types import InputError

SAMPLERS = ("euler-maruyama", "dpm-solver++")
CONDITIONS = ("keep", "zero")
PREDICTIONS = ("v", "eps")


@dataclass(frozen=True)
class EnsembleConfig:
    """Everything that decides how an ensemble is trained and sampled."""

    members: int = 5  # M
    hidden: int = 128
    layers: int = 3
    time_features: int = 8  # sine/cosine pairs of t; 0: t itself
    residual: bool = True  # hidden layers add to what they get
    predict: str = "v"  # what the network's output is: v = alpha eps - sigma x_0, or eps itself
    condition: str = "keep"  # "no condition" is a channel of its own, or ("zero") y = 0
    beta_min: float = 0.1
    beta_max: float = 20.0
    # training
    learning_rate: float = 2e-3
    batch: int = 256
    epochs: int = 1000
    max_steps: int = 2000  # whichever of the two is reached first
    p_uncond: float = 0.15
    validation: float = 0.1
    ema: float = 0.995  # 0: none
    check_every: int = 100  # steps between two looks at the validation set
    patience: int = 5  # looks without improvement after which a member has stopped
    # sampling
    gamma: float = 2.0
    sampler: str = "dpm-solver++"
    sampling_steps: int = 30

    def __post_init__(self) -> None:
        for name in ("members", "hidden", "layers", "batch", "epochs", "max_steps", "check_every", "patience",
                     "sampling_steps"):  # fmt: skip
            self._demand(name, getattr(self, name) >= 1, "at least 1")
        self._demand("time_features", self.time_features >= 0, "0 or more")
        self._demand("learning_rate", self.learning_rate > 0, "above 0")
        self._demand("beta_min", 0 < self.beta_min < self.beta_max, "above 0 and below beta_max")
        self._demand("p_uncond", 0 <= self.p_uncond < 1, "from 0 to below 1")
        self._demand("validation", 0 < self.validation < 1, "between 0 and 1")
        self._demand("ema", 0 <= self.ema < 1, "from 0 to below 1")
        self._demand("gamma", self.gamma >= 0, "0 or more")
        self._demand("sampler", self.sampler in SAMPLERS, f"one of {', '.join(SAMPLERS)}")
        self._demand("predict", self.predict in PREDICTIONS, f"one of {', '.join(PREDICTIONS)}")
        self._demand("condition", self.condition in CONDITIONS, f"one of {', '.join(CONDITIONS)}")

    def _demand(self, name: str, fine: bool, wanted: str) -> None:
        if not fine:
            raise InputError(f"{name} = {getattr(self, name)!r} is not {wanted}.", f"Give {name} {wanted}.")


# Only what differs from the fields above; `paper` is the paper's stated size (hidden 1024, about 1000 epochs).
PRESETS: dict[str, dict[str, int]] = {
    "fast": {},
    "paper": {"hidden": 1024, "max_steps": 1_000_000, "check_every": 500, "patience": 20},
}
assert all(key in {f.name for f in fields(EnsembleConfig)} for p in PRESETS.values() for key in p)


def resolve_preset(preset: str, device: str) -> str:
    """`auto` becomes `paper` on a GPU and `fast` on a CPU."""
    if preset == "auto":
        return "paper" if device == "cuda" else "fast"
    if preset not in PRESETS:
        raise InputError(f"There is no preset {preset!r}.", f"Use one of auto, {', '.join(PRESETS)}.")
    return preset
