"""The only training loop: M members under one optimiser, each with its own split, average and early stop."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..graphs import WARM_UP, captured
from ..mlp import Learner, Weights, cut
from ..progress import report
from .config import EnsembleConfig
from .loss import Lesson, Noise, denoising_loss
from .network import Network

VALIDATION_DRAWS = 4096  # (row, noise) pairs per look at the validation set: enough to rank snapshots
AHEAD, LARGEST = 50, 2**24  # steps whose lessons are drawn at once; fewer, if these would have more values than that


@dataclass(frozen=True)
class Fitted:
    """The best snapshot of every member, with its validation loss and the step it was taken at, `(M,)`."""

    weights: Weights
    validation_loss: Tensor
    best_step: Tensor
    steps: int


@dataclass(frozen=True)
class Trainer:
    """Weights in training: one Adam over the sum of the member losses equals M separate trainings."""

    network: Network
    learner: Learner
    average: Tensor

    @classmethod
    def start(cls, network: Network, weights: Weights) -> Trainer:
        learner = Learner(weights, network.config.batch, network.config.residual)
        return cls(network, learner, torch.zeros_like(learner.vector))

    @property
    def weights(self) -> Weights:
        return self.learner.weights

    def step(self, lesson: Lesson) -> None:
        self.learner.differentiate(lesson.inputs, lesson.slope, lesson.offset)
        self.learner.descend(self.network.config.learning_rate)
        if ema := self.network.config.ema:
            self.average.lerp_(self.learner.vector, 1 - ema)

    def averaged(self, steps: int) -> Weights:
        """The exponential moving average after `steps` steps, without its bias towards the zero start."""
        ema = self.network.config.ema
        return cut(self.average / (1 - ema**steps), self.weights) if ema else self.weights


def fit(network: Network, z: Tensor, y: Tensor, generator: torch.Generator) -> Fitted:
    """Train on features `z` `(n, f)` and standardised scores `y` `(n,)`."""
    config = network.config
    train, held = _split(len(z), config, generator)
    n_train = train.shape[1]
    steps = min(config.max_steps, config.epochs * math.ceil(n_train / config.batch))
    y = y[:, None]

    # The validation set is looked at through the same noise every time, so that looks can be compared.
    repeats = math.ceil(VALIDATION_DRAWS / held.shape[1])
    held = held.repeat(1, repeats)[:, :VALIDATION_DRAWS]
    shuffled = torch.rand(held.shape, generator=generator, device=z.device).argsort(dim=1)
    judges = held.gather(1, shuffled)  # shuffled: the times are stratified along the batch
    judging = Noise.draw((*judges.shape, z.shape[1]), config.p_uncond, generator)

    trainer = Trainer.start(network, network.init(generator))
    size = config.members * config.batch * (network.sizes[0] + network.sizes[-1] + 1)
    ahead = max(WARM_UP, min(AHEAD, LARGEST // size))

    def prepare() -> Lesson:
        shape = (ahead, config.members, config.batch)
        chosen = torch.randint(n_train, shape, generator=generator, device=z.device)
        rows = train.expand(ahead, -1, -1).gather(2, chosen)
        noise = Noise.draw((*shape, z.shape[1]), config.p_uncond, generator)
        lesson = Lesson.of(network, z[rows], y[rows], noise)
        return replace(lesson, inputs=lesson.inputs.to(trainer.learner.dtype))  # rounded here, not in every step

    lessons, turn = prepare(), torch.zeros(1, dtype=torch.long, device=z.device)

    def step() -> None:
        trainer.step(lessons.at(turn))
        turn.add_(1)

    advance, done = captured(step, z.device)
    steps = max(steps, done + 1)  # capturing has taken some already

    kept = Kept(trainer.weights)
    while done < steps:
        until = min(done + config.check_every, steps)
        for number in range(done, until):
            if number % ahead == 0 and number:
                lessons.overwrite(prepare())
                turn.zero_()
            advance()
        done = until
        with torch.no_grad():
            now = trainer.averaged(done)
            kept.look(now, denoising_loss(network, now, z[judges], y[judges], judging), done, config.patience)
        report("training", done / steps)
        if bool((kept.stale >= config.patience).all()):
            break
    return Fitted(kept.weights, kept.loss, kept.step, done)


class Kept:
    """Every member's best snapshot so far, and for how many looks it has not been bettered: `stale` `(M,)`."""

    def __init__(self, like: Weights) -> None:
        self.weights = [torch.zeros_like(w) for w in like]
        self.loss = like[0].new_full((len(like[0]),), math.inf)
        self.step = torch.zeros_like(self.loss, dtype=torch.long)
        self.stale = torch.zeros_like(self.step)

    def look(self, weights: Weights, loss: Tensor, step: int, patience: int) -> None:
        """A member that has stopped keeps its snapshot whatever its weights do after."""
        better = (self.stale < patience) & (loss < self.loss)
        for kept, now in zip(self.weights, weights, strict=True):
            kept.copy_(torch.where(better.view(-1, 1, 1), now, kept))
        self.loss = torch.where(better, loss, self.loss)
        self.step = torch.where(better, step, self.step)
        self.stale = torch.where(better, 0, self.stale + 1)


def _split(n: int, config: EnsembleConfig, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Row numbers to train on and to hold out, `(M, n_train)` and `(M, n_held)`, drawn for each member."""
    order = torch.rand((config.members, n), generator=generator, device=generator.device).argsort(dim=1)
    if n == 1:
        return order, order
    n_held = max(1, round(config.validation * n))
    return order[:, n_held:], order[:, :n_held]
