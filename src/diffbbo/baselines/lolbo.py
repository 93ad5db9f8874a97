"""Local latent Bayesian optimisation (LOL-BO): a VAE and a Gaussian process trained jointly, a trust region in between.

Maus et al. (2022): designs become latents z by the encoder of a VAE, a Gaussian process with inducing points models
their values, Thompson sampling chooses among points of a trust region around the best latent, the decoder makes designs
of them. Whenever the search stalls, VAE and process are trained end to end on the best designs, which are encoded anew.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..encoding import Encoder
from ..gp import choose_rows
from ..optimizer import Optimizer, Proposal
from ..progress import report
from ..spaces import Space
from ..types import Array, Dataset, InputError, row_keys

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from ..autoencoder import VAE
    from ..inducing import Process

BATCH = 10  # the authors' batch: successes and failures are counted per 10 measured designs
SUCCESSES, FAILURES = 10, 32  # batches in a row before the region doubles, halves
STALLED = 10  # batches in a row without a new best before a joint update
LENGTH, SHORTEST, LONGEST = 0.8, 0.5**7, 1.6
WIDTH = 8.0  # the region's side at length 1, in standard deviations of the latents
KL = 0.1  # weight of the KL term per latent, against the log likelihood per letter or number
DOUBLINGS = 6  # of a region, for one batch, in search of designs not yet measured
CLIP = 1.0  # of the gradient's norm in joint training


@dataclass(frozen=True)
class Region:
    """Where the search stands: `length` of the trust region, and the `updates` (end to end) due so far."""

    length: float = LENGTH
    successes: int = 0
    failures: int = 0
    stalled: int = 0
    updates: int = 0
    restarts: int = 0

    @classmethod
    def after(cls, data: Dataset, tells: tuple[int, ...]) -> Region:
        """The state after all tells: the first is the start data, the others are walked through in batches of 10."""
        region, best, end = cls(), -math.inf, 0
        for count, size in enumerate(tells):
            start, end = end, end + size
            for first in range(start, end, BATCH if count else max(size, 1)):
                y = data.y[first : min(first + BATCH, end) if count else end]
                top = float(np.nanmax(y)) if not np.isnan(y).all() else -math.inf
                if count:
                    region = region.moved(top, best)
                best = max(best, top)
        return region

    def moved(self, top: float, best: float) -> Region:
        """The state after a batch whose best value is `top`, when `best` was the best before."""
        length, updates, restarts = self.length, self.updates, self.restarts
        # As in TuRBO, a success is a gain of more than a thousandth of the best value.
        success = top > (best + 1e-3 * abs(best) if math.isfinite(best) else best)
        successes = self.successes + 1 if success else 0
        failures = 0 if success else self.failures + 1
        if successes == SUCCESSES:
            length, successes = min(2 * length, LONGEST), 0
        elif failures == FAILURES:
            length, failures = length / 2, 0
        if length < SHORTEST:  # the region starts anew, around the same best
            length, successes, failures, restarts = LENGTH, 0, 0, restarts + 1
        stalled = 0 if top > best else self.stalled + 1
        if stalled == STALLED:
            stalled, updates = 0, updates + 1
        return Region(length, successes, failures, stalled, updates, restarts)


class LOLBO(Optimizer):
    """Thompson sampling in a trust region of a latent space that is trained with the surrogate.

    `latent` is the latent dimension (None: as many as the design has independent features, at most 256), `hidden` the
    width of encoder and decoder, `rows` how many designs the process sees (the best half, and a sample of the others),
    `inducing` its inducing points; `vae_steps`, `gp_steps` and `joint_steps` (per update, at most `joint_updates` of
    them) the steps of the three trainings, `candidates` the points that Thompson sampling chooses from, and `length`
    a fixed size for the trust region (None: as the authors grow and shrink it).
    """

    name = "lolbo"
    summary = "trust-region BO in the latent space of a VAE trained jointly with its GP"
    reference = "Maus et al. 2022, Local Latent Space Bayesian Optimization over Structured Inputs"
    supports = "10,000 rows and more, a subset of 1,000 in its GP; any batch"

    def __init__(
        self, space: Space, *, seed: int = 0, minimize: bool = False, latent: int | None = None, hidden: int = 128,
        rows: int = 1000, inducing: int = 200, vae_steps: int = 2000, gp_steps: int = 60, joint_steps: int = 10,
        joint_updates: int = 5, candidates: int = 2000, length: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(space, seed=seed, minimize=minimize)
        self.sizes = {
            "hidden": hidden, "rows": rows, "inducing": inducing, "vae_steps": vae_steps, "gp_steps": gp_steps,
            "joint_steps": joint_steps, "joint_updates": joint_updates, "candidates": candidates,
        }  # fmt: skip
        low = {"rows": 2, "joint_updates": 0}
        for name, value in (self.sizes | {"latent": 1 if latent is None else latent}).items():
            if value < low.get(name, 1):
                raise InputError(f"{name} = {value} is too small.", f"Use at least {low.get(name, 1)}.")
        if length is not None and not length > 0:
            raise InputError(f"length = {length} is no size.", "Use a positive number, or None for the authors' rule.")
        self.latent, self.length = latent, length

    def settings(self) -> dict[str, Any]:
        return super().settings() | self.sizes | {"latent": self.latent, "length": self.length}

    def propose(self, n: int, rng: np.random.Generator) -> Iterator[Proposal]:
        data = self.data.distinct()
        if data.flat:
            yield from self.fill(n, len(data), rng)
        import torch

        clock = time.perf_counter()
        state = Region.after(self.data, self.tells)
        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        model = self.model(data.x, data.y, min(state.updates, self.sizes["joint_updates"]), generator)
        used = model.used.tolist() if len(model.used) < len(data) else None
        info = {
            "length": state.length, "updates": state.updates, "restarts": state.restarts, "latent": model.vae.latent,
            "gp_rows": {"used": len(model.used), "of": len(data), "rows": used}, "train_s": time.perf_counter() - clock,
        }  # fmt: skip

        clock = time.perf_counter()
        known = set(row_keys(self.data.x))
        while True:
            z, x = self.unseen(model, state.length if self.length is None else self.length, n, known, generator)
            if not len(z):
                return
            chosen = model.thompson(z, n, generator)
            known.update(row_keys(x[chosen]))
            yield Proposal(x[chosen], info=info | {"acquire_s": time.perf_counter() - clock})

    def unseen(
        self, model: LatentModel, length: float, n: int, known: set[bytes], generator: torch.Generator
    ) -> tuple[Tensor, Array]:
        """Latents of the trust region that decode to designs not `known`, one for each, and these designs."""
        import torch

        latents, designs, seen = [], [], set(known)
        for doubling in range(DOUBLINGS):
            z = model.candidates(model.region(length * 2**doubling), max(self.sizes["candidates"], 2 * n), generator)
            # Where the likeliest designs are known already the decoder draws, as the authors' always does.
            x = model.encoder.decode((model.vae.sample(z, generator) if doubling else model.vae.mode(z)).numpy())
            # A latent whose design is known, or that of another, would waste a draw.
            keys = dict(reversed([(key, row) for row, key in enumerate(row_keys(x)) if key not in seen]))
            new = sorted(keys.values())
            seen.update(keys)
            latents.append(z[new])
            designs.append(x[new])
            if len(seen) - len(known) >= n:
                break  # in a finite space a region can hold fewer new designs than are asked for
        return torch.cat(latents), np.concatenate(designs)

    def model(self, x: Array, y: Array, updates: int, generator: torch.Generator) -> LatentModel:
        """VAE and process trained on the designs `x` `(n, d)` of values `y` `(n,)`, with `updates` end to end."""
        import torch

        from ..autoencoder import VAE, Layout, fit

        encoder = Encoder.fit(self.space, x)
        layout = Layout.of(encoder, torch.float64)
        latent = min(256, layout.freedom) if self.latent is None else self.latent
        vae = VAE.init(layout, latent, self.sizes["hidden"], generator)
        u = torch.as_tensor(encoder.encode(x))
        beta = KL * layout.tokens / latent
        fit(vae, u, torch.ones(len(u), dtype=u.dtype), self.sizes["vae_steps"], 128, generator, beta=beta, stage="VAE")
        used = choose_rows(y, self.sizes["rows"], self.seed)
        value = y[used] / np.abs(y).max()
        value = torch.as_tensor((value - value.mean()) / (value.std() or 1.0))
        inducing = torch.randperm(len(used), generator=generator)[: self.sizes["inducing"]]
        model = LatentModel(encoder, vae, used, u[used], value, inducing)
        model.train_gp(self.sizes["gp_steps"])
        if updates:
            model.train_jointly(updates * self.sizes["joint_steps"], beta, generator)
            model.train_gp(self.sizes["gp_steps"])  # on the latents where the designs are now
        return model


class LatentModel:
    """A VAE and a Gaussian process on its latents, which knows the designs `u` `(n, f)` and their values `y` `(n,)`.

    `used` are their places among all measured designs. The inducing points are encoded designs, so that they move with
    the encoder. `gp` holds the logs of an RBF kernel's lengthscale, its scale and the noise; and the mean.
    """

    def __init__(
        self, encoder: Encoder, vae: VAE, used: NDArray[np.intp], u: Tensor, y: Tensor, inducing: Tensor
    ) -> None:
        import torch

        self.encoder, self.vae, self.used, self.u, self.y, self.inducing = encoder, vae, used, u, y, inducing
        start = [0.5 * math.log(vae.latent), 0.0, math.log(0.1), 0.0]
        self.gp = [torch.tensor(value, dtype=torch.float64) for value in start]

    def latents(self) -> Tensor:
        """The encoder's means `(n, latent)` of the known designs: encoded anew after every change of the encoder."""
        return self.vae.encode(self.u)[0]

    # ---- training ----------------------------------------------------------------------------------

    def train_gp(self, steps: int) -> None:
        """Fit the process alone, the latents standing still."""
        z = self.latents().detach()
        self._adam(steps, self.gp, 0.05, lambda: -self.process(z, z[self.inducing]).elbo / len(z), "GP")

    def train_jointly(self, steps: int, beta: float, generator: torch.Generator) -> None:
        """Fit VAE and process end to end: the sum of both negative ELBOs, each per number measured."""
        import torch

        hot = self.vae.layout.one_hot(self.u)

        def loss() -> Tensor:
            noise = torch.randn((len(self.u), self.vae.latent), generator=generator, dtype=self.u.dtype)
            vae_loss, z = self.vae.loss(self.u, hot, noise, beta)
            elbo = self.process(z, self.vae.encode(self.u[self.inducing])[0]).elbo
            return torch.sub(vae_loss.mean() / self.vae.layout.tokens, elbo / len(z))

        self._adam(steps, [*self.vae.weights, *self.gp], 1e-3, loss, "joint training")

    def _adam(self, steps: int, weights: list[Tensor], rate: float, loss: Callable[[], Tensor], stage: str) -> None:
        import torch

        for w in weights:
            w.requires_grad_(True)
        adam = torch.optim.Adam(weights, lr=rate)
        for step in range(steps):
            adam.zero_grad()
            loss().backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(weights, CLIP)
            adam.step()
            report(stage, (step + 1) / steps)
        for w in weights:
            w.requires_grad_(False)

    def process(self, z: Tensor, inducing: Tensor) -> Process:
        from ..inducing import Process

        lengthscale, scale, noise, mean = self.gp
        return Process(z, self.y - mean, inducing, lengthscale.exp(), scale.exp(), noise.exp() + 1e-4)

    # ---- acquisition -------------------------------------------------------------------------------

    def region(self, length: float) -> tuple[Tensor, Tensor, Tensor]:
        """Centre, lower and upper corner `(latent,)` of the trust region around the latent of the best design."""
        import torch

        z = self.latents()
        middle, spread = z.mean(dim=0), z.std(dim=0, unbiased=False).clamp_min(1e-6)
        # No further out than where the latents of designs can be: beyond, the decoder has learnt nothing.
        low, high = middle - WIDTH / 2 * spread, middle + WIDTH / 2 * spread
        centre, half = z[int(self.y.argmax())], 0.5 * WIDTH * length * spread
        return centre, torch.maximum(centre - half, low), torch.minimum(centre + half, high)

    def candidates(self, box: tuple[Tensor, Tensor, Tensor], n: int, generator: torch.Generator) -> Tensor:
        """`n` points `(n, latent)` of the region: the centre with some coordinates replaced by Sobol points."""
        import torch
        from torch.quasirandom import SobolEngine

        centre, low, high = box
        seed = int(torch.randint(2**62, (), generator=generator))
        sobol = SobolEngine(len(centre), scramble=True, seed=seed)  # type: ignore[no-untyped-call]
        hit = torch.rand((n, len(centre)), generator=generator) < min(20 / len(centre), 1.0)
        hit[torch.arange(n), torch.randint(len(centre), (n,), generator=generator)] = True
        return torch.where(hit, low + (high - low) * sobol.draw(n, dtype=torch.float64), centre)

    def thompson(self, z: Tensor, n: int, generator: torch.Generator) -> NDArray[np.intp]:
        """Up to `n` different rows of `z`, each the best of one draw of the process; by the posterior mean."""
        import torch

        from ..inducing import cholesky

        known = self.latents()
        mean, covariance = self.process(known, known[self.inducing]).posterior(z)
        root = cholesky(covariance)
        noise = torch.randn((len(z), min(n, len(z))), generator=generator, dtype=torch.float64)
        draws = (mean[:, None] + root @ noise).numpy()
        free = np.ones(len(z), dtype=bool)
        for draw in draws.T:
            free[np.where(free, draw, -np.inf).argmax()] = False
        chosen = np.flatnonzero(~free)
        return np.asarray(chosen[np.argsort(-mean.numpy()[chosen], kind="stable")])
