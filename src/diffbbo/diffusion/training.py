"""The only training loop: M members under one optimiser, each with its own split, average and early stop."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ..progress import report
from .config import EnsembleConfig
from .loss import Noise, denoising_loss
from .network import Network, Weights

VALIDATION_DRAWS = 4096  # (row, noise) pairs per look at the validation set: enough to rank snapshots


@dataclass(frozen=True)
class Fitted:
    """The best snapshot of every member, with its validation loss and the step it was taken at, `(M,)`."""

    weights: Weights
    validation_loss: Tensor
    best_step: Tensor
    steps: int


@dataclass(frozen=True)
class Minibatch:
    """Rows and noise of one step, member by member: `x0` `(M, B, f)`, `y` `(M, B, 1)`."""

    x0: Tensor
    y: Tensor
    noise: Noise


@dataclass(frozen=True)
class Trainer:
    """Weights in training: one Adam over the sum of the member losses equals M separate trainings."""

    network: Network
    weights: Weights
    average: Weights
    adam: torch.optim.Adam

    @classmethod
    def start(cls, network: Network, weights: Weights) -> Trainer:
        weights = [w.clone().requires_grad_() for w in weights]
        adam = torch.optim.Adam(weights, lr=network.config.learning_rate, fused=True,
                                capturable=weights[0].is_cuda)  # fmt: skip
        return cls(network, weights, [torch.zeros_like(w) for w in weights], adam)

    def step(self, batch: Minibatch) -> None:
        self.adam.zero_grad()
        loss = denoising_loss(self.network, self.weights, batch.x0, batch.y, batch.noise).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        self.adam.step()
        with torch.no_grad():
            torch._foreach_lerp_(self.average, self.weights, 1 - self.network.config.ema)

    def averaged(self, steps: int) -> Weights:
        """The exponential moving average after `steps` steps, without its bias towards the zero start."""
        bias = 1 - self.network.config.ema**steps
        return [w / bias for w in self.average]


def fit(network: Network, z: Tensor, y: Tensor, generator: torch.Generator) -> Fitted:
    """Train on features `z` `(n, f)` and standardised scores `y` `(n,)`."""
    config = network.config
    train, held = _split(len(z), config, generator)
    n_train = train.shape[1]
    steps = min(config.max_steps, config.epochs * math.ceil(n_train / config.batch))
    y = y[:, None]

    def draw(index: Tensor) -> Minibatch:
        noise = Noise.draw((*index.shape, z.shape[1]), config.p_uncond, generator)
        return Minibatch(z[index], y[index], noise)

    # The validation set is looked at through the same noise every time, so that looks can be compared.
    repeats = math.ceil(VALIDATION_DRAWS / held.shape[1])
    held = held.repeat(1, repeats)[:, :VALIDATION_DRAWS]
    shuffled = torch.rand(held.shape, generator=generator, device=z.device).argsort(dim=1)
    judge = draw(held.gather(1, shuffled))  # shuffled: the times are stratified along the batch

    trainer = Trainer.start(network, network.init(generator))
    shape = (config.members, config.batch)

    def step() -> None:
        chosen = torch.randint(n_train, shape, generator=generator, device=z.device)
        trainer.step(draw(train.gather(1, chosen)))

    advance, done = _captured(step, generator)
    steps = max(steps, done + 1)  # capturing has taken some already

    best = [torch.zeros_like(w) for w in trainer.weights]
    best_loss = torch.full((config.members,), math.inf, device=z.device)
    best_step = torch.zeros(config.members, dtype=torch.long, device=z.device)
    stale = torch.zeros_like(best_step)
    while done < steps:
        until = min(done + config.check_every, steps)
        for _ in range(done, until):
            advance()
        done = until
        with torch.no_grad():
            current = trainer.averaged(done)
            loss = denoising_loss(network, current, judge.x0, judge.y, judge.noise)
            # A member that has stopped keeps its snapshot whatever its weights do after.
            running = stale < config.patience
            better = running & (loss < best_loss)
            for kept, now in zip(best, current, strict=True):
                kept.copy_(torch.where(better.view(-1, 1, 1), now, kept))
            best_loss = torch.where(better, loss, best_loss)
            best_step = torch.where(better, done, best_step)
            stale = torch.where(better, 0, stale + 1)
        report("training", done / steps)
        if bool((stale >= config.patience).all()):
            break
    return Fitted(best, best_loss, best_step, done)


def _split(n: int, config: EnsembleConfig, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Row numbers to train on and to hold out, `(M, n_train)` and `(M, n_held)`, drawn for each member."""
    order = torch.rand((config.members, n), generator=generator, device=generator.device).argsort(dim=1)
    if n == 1:
        return order, order
    n_held = max(1, round(config.validation * n))
    return order[:, n_held:], order[:, :n_held]


def _captured(step: Callable[[], None], generator: torch.Generator) -> tuple[Callable[[], None], int]:
    """`step` itself on a CPU; on CUDA its replay as one graph, and how many steps warming up took."""
    if generator.device.type != "cuda":
        return step, 0
    warm_up = 3
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(warm_up):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(generator)  # every replay draws new numbers
    with torch.cuda.graph(graph):
        step()
    return graph.replay, warm_up
