"""fit(z, y) -> Ensemble: M conditional diffusion models as one tensor program, and what can be drawn from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..graphs import tensor_cores
from ..progress import report
from ..types import Array, DeviceError
from .config import EnsembleConfig
from .loss import Noise
from .network import Network
from .sampling import Denoiser, dpm_solver, euler_maruyama, guided
from .sde import T_MIN
from .training import Fitted
from .training import fit as fit_weights

CHUNK = 8192  # samples per member drawn at once: more would only cost memory


def resolve_device(device: str) -> torch.device:
    """`auto`, `cpu` or `cuda` as a torch device that this machine has."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device not in ("cpu", "cuda"):
        raise DeviceError(f"There is no device {device!r}.", "Use auto, cpu or cuda.")
    if device == "cuda" and not torch.cuda.is_available():
        raise DeviceError("CUDA was asked for, but this machine has no usable CUDA device.",
                          "Use device 'cpu' or 'auto'.")  # fmt: skip
    return torch.device(device)


def fit(z: Array, y: Array, config: EnsembleConfig, seed: int, device: str = "auto") -> Ensemble:
    """Train M members on features `z` `(n, f)` and standardised scores `y` `(n,)`."""
    where = resolve_device(device)
    generator = torch.Generator(where).manual_seed(seed)
    network = Network(z.shape[1], config)
    features = torch.as_tensor(z, dtype=torch.float32, device=where)
    scores = torch.as_tensor(y, dtype=torch.float32, device=where)
    with tensor_cores(where):
        return Ensemble(network, fit_weights(network, features, scores, generator), generator)


@dataclass(frozen=True)
class Ensemble:
    """A trained p(x given y). Its generator moves on with every draw."""

    network: Network
    fitted: Fitted
    generator: torch.Generator

    @property
    def config(self) -> EnsembleConfig:
        return self.network.config

    @torch.no_grad()
    def sample(self, ys: Array, n: int) -> Array:
        """`n` designs from every member at every score `ys` `(Y,)`: features `(Y, M, n, f)`."""
        members, features = self.config.members, self.network.features
        y = torch.as_tensor(ys, dtype=torch.float32, device=self.generator.device)
        columns = y.repeat_interleave(n).expand(members, -1)[..., None]  # (M, Y * n, 1)
        blocks, total = [], columns.shape[1]
        for start in range(0, total, CHUNK):
            blocks.append(self._draw(columns[:, start : start + CHUNK]))
            report("sampling", min(1.0, (start + CHUNK) / total))
        x = torch.cat(blocks, dim=1).view(members, len(y), n, features).transpose(0, 1)
        return x.double().cpu().numpy()

    @torch.no_grad()
    def sample_mixture(self, y: float, n: int) -> tuple[Array, NDArray[np.intp]]:
        """`n` fresh designs at score `y` from the mixture over members: features `(n, f)`, member `(n,)`.

        The members' shares differ by at most one, and which of them draws more is left to chance.
        """
        members = self.config.members
        each = -(-n // members)
        z = self.sample(np.array([y]), each)[0]  # (M, each, f)
        turn = torch.rand(members, generator=self.generator, device=self.generator.device).argsort()
        order = turn.cpu().numpy()
        member = np.tile(order, each)[:n]
        draw = np.repeat(np.arange(each), members)[:n]
        return z[member, draw], member

    @torch.no_grad()
    def sample_each(
        self, ys: Array, z: Array | None = None, noise: float = 1.0, temperature: Array | None = None
    ) -> tuple[Array, NDArray[np.intp]]:
        """One design at each score `ys` `(n,)`, the members taking turns: features `(n, f)`, member `(n,)`.

        With designs `z` `(n, f)` these are noised to a standard deviation of `noise` and denoised again: the less
        noise, the closer they stay. Noise is scaled by the `temperature` `(n,)` of each design: 1 draws from the
        model, less draws closer to what is typical of the score.
        """
        members, sde, device = self.config.members, self.network.sde, self.generator.device
        each = -(-len(ys) // members)
        member = np.arange(each * members) % members
        order = member.argsort(kind="stable").reshape(members, each)  # (M, each): which of the n a member draws
        within = np.minimum(order, len(ys) - 1)  # a few are drawn in vain to make the members' blocks equal
        y = torch.as_tensor(ys[within], dtype=torch.float32, device=device)[..., None]
        heat = np.ones(len(ys)) if temperature is None else temperature
        warm = torch.as_tensor(heat[within], dtype=torch.float32, device=device)[..., None]
        x = warm * torch.randn((members, each, self.network.features), generator=self.generator, device=device)
        begin = 1.0
        if z is not None:
            begin = sde.time_of_noise(noise)
            kept = torch.as_tensor(z[within], dtype=torch.float32, device=device)
            x = (1 - noise**2) ** 0.5 * kept + noise * x
        with tensor_cores(device):
            x = dpm_solver(self.denoiser(y), sde, x, self.config.sampling_steps, self.generator, begin, warm)
        found = np.empty((each * members, self.network.features))
        found[order.ravel()] = x.flatten(0, 1).double().cpu().numpy()
        return found[: len(ys)], member[: len(ys)]

    def denoiser(self, y: Tensor) -> Denoiser:
        """The guided eps(x, t) of all members for scores `y` `(M, B, 1)`."""
        return guided(self.network, self.fitted.weights, y, self.config.gamma)

    def _draw(self, y: Tensor) -> Tensor:
        shape = (*y.shape[:2], self.network.features)
        x = torch.randn(shape, generator=self.generator, device=y.device)
        sampler = euler_maruyama if self.config.sampler == "euler-maruyama" else dpm_solver
        with tensor_cores(y.device):
            return sampler(self.denoiser(y), self.network.sde, x, self.config.sampling_steps, self.generator)

    @torch.no_grad()
    def evidence(self, z: Array, y: float, levels: int = 64) -> Array:
        """How much more likely each design `z` `(n, f)` is at score `y` than at any: an estimate of log p(y | x).

        By Bayes' rule log p(y | x) = log p(x | y) - log p(x) + a constant, and both are bounded by denoising
        losses: -log p(x) = integral of |eps - eps_theta|^2 d lambda + a constant (Kingma et al. 2021). Every design
        is judged through the same noise at the same `levels`, even in lambda; the members' mean is taken.
        """
        device, members, sde = self.generator.device, self.config.members, self.network.sde
        x0 = torch.as_tensor(z, dtype=torch.float32, device=device)
        ends = sde.half_log_snr(torch.tensor([1.0, T_MIN], dtype=torch.float64, device=device))
        times = sde.time_of(torch.linspace(float(ends[0]), float(ends[1]), levels, dtype=torch.float64))
        noise = Noise.draw((members, levels, x0.shape[1]), 0.0, self.generator)
        gain = torch.zeros(len(x0), device=device)
        for level, t in enumerate(times.to(device)):
            eps = noise.eps[:, level : level + 1]  # (M, 1, f), shared by all designs
            x_t = sde.alpha(t).float() * x0 + sde.sigma(t).float() * eps
            time = torch.full((*x_t.shape[:2], 1), float(t), device=device)
            losses = [
                (eps - self.network(self.fitted.weights, x_t, time, torch.full_like(time, y), keep))
                .square().sum(dim=2).mean(dim=0)
                for keep in (torch.ones_like(time), torch.zeros_like(time))
            ]  # fmt: skip
            gain += losses[1] - losses[0]
        return (gain * float(ends[1] - ends[0]) / levels).double().cpu().numpy()
