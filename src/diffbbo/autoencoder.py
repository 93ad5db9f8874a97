"""A small variational autoencoder (VAE) over encoded designs, for the methods that model or search a latent space.

Its decoder speaks the language of the space: a normal for every number, a categorical for every letter or category.
Loading this module loads torch, so methods import it where they train.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import elu, softplus

from .encoding import MIXING, Encoder
from .progress import report
from .variables import Integer, Real

Weights = list[Tensor]
FLOOR = 0.02  # the least spread of a number's normal, in standardised units: densities stay comparable
LOG_VARIANCE = 10.0  # bound of the encoder's log variance, so that no exponential overflows


@dataclass(frozen=True)
class Layout:
    """What the features of an encoded design are: numbers, and blocks of letters that share an alphabet's size."""

    numbers: Tensor  # (a,) the features that are numbers
    blocks: tuple[tuple[int, int, int], ...]  # (first feature, letters, levels)
    low: Tensor  # (f,) the standardised feature of a letter that is not there
    high: Tensor  # (f,) and of one that is

    @classmethod
    def of(cls, encoder: Encoder, dtype: torch.dtype = torch.float32) -> Layout:
        numbers: list[int] = []
        blocks: list[tuple[int, int, int]] = []
        low, high = torch.zeros(encoder.features), torch.ones(encoder.features)
        start = 0
        for variable in encoder.space.variables:
            if isinstance(variable, Real | Integer):
                numbers.append(start)
                start += 1
                continue
            letters, levels = variable.width, variable.levels or 1
            here = slice(start, start + letters * levels)
            low[here], high[here] = math.log((1 - MIXING) / levels), math.log(MIXING + (1 - MIXING) / levels)
            # Neighbours of one alphabet size form one block: one softmax for all of them.
            if blocks and blocks[-1][0] + blocks[-1][1] * levels == start and blocks[-1][2] == levels:
                blocks[-1] = (blocks[-1][0], blocks[-1][1] + letters, levels)
            else:
                blocks.append((start, letters, levels))
            start = here.stop
        mean, std = torch.as_tensor(encoder.mean), torch.as_tensor(encoder.std)
        standard = [((raw.double() - mean) / std).to(dtype) for raw in (low, high)]
        return cls(torch.tensor(numbers, dtype=torch.long), tuple(blocks), *standard)

    @property
    def features(self) -> int:
        return len(self.low)

    @property
    def tokens(self) -> int:
        """How many numbers and letters a design has."""
        return len(self.numbers) + sum(letters for _, letters, _ in self.blocks)

    @property
    def freedom(self) -> int:
        """How many independent features a design has: one per number, levels - 1 per letter."""
        return len(self.numbers) + sum(letters * (levels - 1) for _, letters, levels in self.blocks)

    def split(self, u: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """Each block's features, as `(n, letters, levels)`."""
        for start, letters, levels in self.blocks:
            here = slice(start, start + letters * levels)
            yield here, u[:, here].reshape(len(u), letters, levels)

    def one_hot(self, u: Tensor) -> Tensor:
        """Features `(n, f)` with every letter as 0 and 1; numbers are left out (0)."""
        hot = (u - self.low) / (self.high - self.low)
        hot[:, self.numbers] = 0.0
        return hot.round()


class VAE:
    """p(u | z) and q(z | u) with one hidden layer each; `weights` are plain tensors, so copies are cheap."""

    def __init__(self, layout: Layout, latent: int, weights: Weights) -> None:
        self.layout, self.latent, self.weights = layout, latent, weights

    @classmethod
    def init(cls, layout: Layout, latent: int, hidden: int, generator: torch.Generator) -> VAE:
        """Fresh weights, uniform in ±1/sqrt(in) like torch's own linear layer."""
        f, dtype = layout.features, layout.low.dtype
        weights: Weights = []
        for n_in, n_out in ((f, hidden), (hidden, 2 * latent), (latent, hidden), (hidden, f)):
            for shape in ((n_in, n_out), (n_out,)):
                weights.append((2 * torch.rand(shape, generator=generator, dtype=dtype) - 1) / math.sqrt(n_in))
        weights.append(torch.zeros(len(layout.numbers), dtype=dtype))  # spread of the numbers, before softplus
        return cls(layout, latent, weights)

    def copy(self) -> VAE:
        return VAE(self.layout, self.latent, [w.detach().clone() for w in self.weights])

    def encode(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log variance `(n, latent)` of q(z | u)."""
        w = self.weights
        mean, log_variance = torch.addmm(w[3], elu(torch.addmm(w[1], u, w[0])), w[2]).chunk(2, dim=1)
        return mean, log_variance.clamp(-LOG_VARIANCE, LOG_VARIANCE)

    def decode(self, z: Tensor) -> Tensor:
        """Parameters `(n, f)` of p(u | z): the mean of a number, the logits of a letter."""
        w = self.weights
        return torch.addmm(w[7], elu(torch.addmm(w[5], z, w[4])), w[6])

    @property
    def spread(self) -> Tensor:
        """Standard deviation `(a,)` of every number, the same for all z."""
        return FLOOR + softplus(self.weights[8])

    def log_likelihood(self, u: Tensor, hot: Tensor, z: Tensor) -> Tensor:
        """log p(u | z) `(n,)`; `hot` is `layout.one_hot(u)`."""
        parameters = self.decode(z)
        total = u.new_zeros(len(u))
        for here, logits in self.layout.split(parameters):
            total = total + (hot[:, here] * logits.log_softmax(dim=2).flatten(1)).sum(dim=1)
        if len(self.layout.numbers):
            spread = self.spread
            scaled = (u[:, self.layout.numbers] - parameters[:, self.layout.numbers]) / spread
            log_density = -0.5 * scaled**2 - spread.log() - 0.5 * math.log(2 * math.pi)
            total = total + log_density.sum(dim=1)
        return total

    def loss(self, u: Tensor, hot: Tensor, noise: Tensor, beta: float) -> tuple[Tensor, Tensor]:
        """The negative ELBO `(n,)` with the KL term times `beta`, and the latents `(n, latent)` drawn for it."""
        mean, log_variance = self.encode(u)
        z = mean + noise * (0.5 * log_variance).exp()
        kl = 0.5 * (mean**2 + log_variance.exp() - log_variance - 1).sum(dim=1)
        return beta * kl - self.log_likelihood(u, hot, z), z

    @torch.no_grad()
    def sample(self, z: Tensor, generator: torch.Generator) -> Tensor:
        """Features `(n, f)` drawn from p(u | z)."""
        parameters = self.decode(z)
        for here, logits in self.layout.split(parameters):
            # The largest of logits plus Gumbel noise is a draw from their softmax.
            uniform = torch.rand(logits.shape, generator=generator, dtype=logits.dtype)
            parameters[:, here] = logits.flatten(1) - (-uniform.clamp_min(1e-30).log()).log().flatten(1)
        noise = torch.randn((len(z), len(self.layout.numbers)), generator=generator, dtype=z.dtype)
        parameters[:, self.layout.numbers] += noise * self.spread
        return self._settled(parameters)

    @torch.no_grad()
    def mode(self, z: Tensor) -> Tensor:
        """The most likely features `(n, f)` of each z."""
        return self._settled(self.decode(z))

    def _settled(self, parameters: Tensor) -> Tensor:
        """Features with the largest letter of each place chosen."""
        low, high = self.layout.low, self.layout.high
        u = parameters.clone()
        for here, logits in self.layout.split(parameters):
            hot = torch.zeros_like(logits).scatter_(2, logits.argmax(dim=2, keepdim=True), 1.0).flatten(1)
            u[:, here] = torch.where(hot > 0, high[here], low[here])
        return u


def fit(
    vae: VAE, u: Tensor, weights: Tensor, steps: int, batch: int, generator: torch.Generator, *,
    beta: float = 1.0, rate: float = 1e-3, stage: str = "",
) -> None:  # fmt: skip
    """Weighted maximum likelihood: `steps` of Adam on the mean of `weights` `(n,)` times the negative ELBO of `u`.

    Weights of 1 give plain maximum likelihood. Every row is seen once before any is seen again.
    """
    hot = vae.layout.one_hot(u)
    for w in vae.weights:
        w.requires_grad_(True)
    adam = torch.optim.Adam(vae.weights, lr=rate)
    for step, rows in enumerate(batches(len(u), min(batch, len(u)), steps, generator)):
        noise = torch.randn((len(rows), vae.latent), generator=generator, dtype=u.dtype)
        loss, _ = vae.loss(u[rows], hot[rows], noise, beta)
        adam.zero_grad()
        (weights[rows] * loss).mean().backward()  # type: ignore[no-untyped-call]
        adam.step()
        if stage and step % 50 == 0:
            report(stage, step / steps)
    for w in vae.weights:
        w.requires_grad_(False)


def batches(n: int, size: int, steps: int, generator: torch.Generator) -> Iterator[Tensor]:
    """`steps` sets of `size` rows out of `n`, going through all in a fresh order each time."""
    order = torch.empty(0, dtype=torch.long)
    for _ in range(steps):
        if len(order) < size:
            order = torch.cat([order, torch.randperm(n, generator=generator)])
        yield order[:size]
        order = order[size:]
