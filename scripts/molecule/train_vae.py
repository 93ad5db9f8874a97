"""Trains the molecule autoencoder: SELFIES tokens <-> 32 latent numbers. Needs torch, numpy and safetensors only.

    python scripts/molecule/train_vae.py tokens.npz results/ --minutes 7

An encoder (bidirectional GRU, read at every place) gives a Gaussian over z; a decoder (a sketch of every place, made
from z alone, then a GRU over the places) writes the tokens. The loss is

    -log p(tokens | z)  +  beta KL(q(z | tokens) || N(0, I))  +  |properties - linear(z)|^2 / 2 sigma^2  +  moments

A decoder that sees all tokens before a place hardly reads z, and then most latent numbers mean nothing. So a share of
the tokens is hidden from it, another share for every molecule, at first 0.7 to 1, in the end 0 to 1; the run begins as
a plain autoencoder (`beta` 0, a narrow posterior) and only then does `beta` rise; and below `free` nats a latent number
costs nothing. The weak linear property head (after Gomez-Bombarelli et al., ACS Central Science 4 (2018) 268) gives the
space directions of size, rings and polarity. `moments` holds mean and covariance of all z at 0 and I, so that draws
from N(0, I) fall where the decoder was trained. The number of steps that fit into `--minutes` is measured at the start
and recorded: `--steps` repeats a run.

Writes decoder.safetensors and encoder.safetensors (float16) and curve.json, again and again while it goes.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor, nn

END = 0
LATENT = 32


@dataclass(frozen=True)
class Settings:
    """What defines a run, apart from the data."""

    seed: int = 0
    beta: float = 1.0  # final weight of the KL term
    free: float = 0.5  # nats of KL, on average over a batch, that a latent number may cost for nothing
    sigma: float = 0.4  # error, in standard deviations, at which a property is known well enough
    moments: float = 0.3  # weight of the squared distance of the moments of z from those of N(0, I)
    hidden: int = 512  # of the decoder
    sketch: int = 24  # numbers a place in the decoder's sketch
    sketch_hidden: int = 384
    encoder_hidden: int = 320
    readout: int = 24  # numbers a place that the encoder's head reads
    embedding: int = 48
    batch: int = 1024
    rate: float = 1.5e-3
    held_out: int = 8192


class Encoder(nn.Module):
    """Tokens `(n, t)` -> mean and log-variance of z `(n, 32)`."""

    def __init__(self, tokens: int, places: int, settings: Settings) -> None:
        super().__init__()
        self.places, width = places, settings.encoder_hidden
        self.embed = nn.Embedding(tokens + 1, settings.embedding)
        self.gru = nn.GRU(settings.embedding, width, batch_first=True, bidirectional=True)
        self.read = nn.Linear(2 * width, settings.readout)
        self.head = nn.Sequential(
            nn.Linear(4 * width + places * settings.readout, 768), nn.SiLU(), nn.Linear(768, 2 * LATENT)
        )
        with torch.no_grad():  # a narrow posterior, so that the decoder finds z worth reading from the first step on
            self.head[-1].bias[LATENT:] = -4.0

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        states, _ = self.gru(self.embed(tokens))
        real = (tokens != END).unsqueeze(-1)
        forward, backward = states.chunk(2, 2)
        last = real.sum(1, keepdim=True).clamp(max=tokens.shape[1] - 1)  # the first END
        final = forward.gather(1, last.expand(-1, 1, forward.shape[2]))[:, 0]
        mean = (states * real).sum(1) / real.sum(1)
        by_place = F.pad(self.read(states) * real, (0, 0, 0, self.places - tokens.shape[1])).flatten(1)
        mean, log_variance = self.head(torch.cat([final, backward[:, 0], mean, by_place], 1)).chunk(2, 1)
        return mean, log_variance.clamp(-10.0, 4.0)


class Decoder(nn.Module):
    """z `(n, 32)` -> logits over tokens. Inputs K + 1 and K + 2 mean "start" and "hidden"."""

    def __init__(self, tokens: int, places: int, settings: Settings) -> None:
        super().__init__()
        self.tokens, self.places = tokens, places
        self.embed = nn.Embedding(tokens + 3, settings.embedding)
        self.first = nn.Linear(LATENT, settings.hidden)
        self.sketch = nn.Sequential(
            nn.Linear(LATENT, settings.sketch_hidden),
            nn.SiLU(),
            nn.Linear(settings.sketch_hidden, places * settings.sketch),
        )
        self.gru = nn.GRU(settings.embedding + LATENT + settings.sketch, settings.hidden, batch_first=True)
        self.out = nn.Linear(settings.hidden + settings.sketch, tokens + 1)

    def plan(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """What follows from z alone: the GRU's first state `(1, n, h)` and the sketch `(n, places, s)`."""
        return torch.tanh(self.first(z)).unsqueeze(0), self.sketch(z).view(len(z), self.places, -1)

    def forward(self, z: Tensor, tokens: Tensor, hide: Tensor | None = None) -> Tensor:
        """Logits `(n, t, K + 1)` for every place, given the true tokens before it that are not hidden."""
        before = F.pad(tokens[:, :-1], (1, 0), value=self.tokens + 1)
        if hide is not None:
            before = torch.where(hide, self.tokens + 2, before)
        state, sketch = self.plan(z)
        sketch = sketch[:, : tokens.shape[1]]
        inputs = torch.cat([self.embed(before), z.unsqueeze(1).expand(-1, tokens.shape[1], -1), sketch], 2)
        return self.out(torch.cat([self.gru(inputs, state)[0], sketch], 2))

    @torch.no_grad()
    def greedy(self, z: Tensor, length: int) -> Tensor:
        """The most likely token at every place, one after the other: `(n, length)`."""
        (state, sketch), token = self.plan(z), torch.full((len(z),), self.tokens + 1, device=z.device)
        open_, places = torch.ones(len(z), dtype=torch.bool, device=z.device), []
        for place in range(length):
            inputs = torch.cat([self.embed(token), z, sketch[:, place]], 1)
            output, state = self.gru(inputs.unsqueeze(1), state)
            token = self.out(torch.cat([output[:, 0], sketch[:, place]], 1)).argmax(1) * open_
            open_ = open_ & (token != END)
            places.append(token)
        return torch.stack(places, 1)


def batches(lengths: np.ndarray, size: int, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, int]]:
    """Rows of endless shuffled batches, each of similar lengths so that little is spent on padding."""
    while True:
        order = rng.permutation(len(lengths))
        groups: list[np.ndarray] = []
        for pool in np.array_split(order, max(1, len(order) // (size * 16))):
            by_length = pool[np.argsort(lengths[pool], kind="stable")]
            groups += [by_length[i : i + size] for i in range(0, len(by_length) - size + 1, size)]
        for index in rng.permutation(len(groups)):
            yield groups[index], int(lengths[groups[index]].max()) + 1


class Trainer:
    """The networks, their data and one optimiser step at a time."""

    def __init__(self, data: dict[str, np.ndarray], settings: Settings, device: torch.device) -> None:
        torch.manual_seed(settings.seed)
        self.settings, self.device, self.alphabet = settings, device, data["alphabet"]
        order = np.random.default_rng(settings.seed).permutation(len(data["tokens"]))
        held = min(settings.held_out, len(order) // 10)
        tokens = np.pad(data["tokens"], ((0, 0), (0, 1)))
        values = (data["properties"] - data["properties"].mean(0)) / data["properties"].std(0)
        self.tokens, self.test = (torch.tensor(tokens[i], device=device) for i in (order[held:], order[:held]))
        self.values = torch.tensor(values[order[held:]], dtype=torch.float32, device=device)
        self.lengths = (tokens[order[held:]] != END).sum(1)
        self.batch = min(settings.batch, len(self.lengths))
        self.stream = batches(self.lengths, self.batch, np.random.default_rng(settings.seed + 1))
        shape = (len(self.alphabet), tokens.shape[1])
        self.encoder, self.decoder = Encoder(*shape, settings).to(device), Decoder(*shape, settings).to(device)
        self.property_head = nn.Linear(LATENT, values.shape[1]).to(device)
        self.first, self.second = torch.zeros(LATENT, device=device), torch.eye(LATENT, device=device)
        modules = (self.encoder, self.decoder, self.property_head)
        self.parameters = [parameter for module in modules for parameter in module.parameters()]
        self.optimiser = torch.optim.AdamW(self.parameters, lr=settings.rate, weight_decay=1e-4)

    def losses(self, tokens: Tensor, values: Tensor, shown: float) -> dict[str, Tensor]:
        """Each in nats a molecule, averaged over the batch; up to `shown` of a molecule's tokens are not hidden."""
        mean, log_variance = self.encoder(tokens)
        z = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        hidden_share = 1 - shown * torch.rand(len(tokens), 1, device=self.device)
        hide = torch.rand(tokens.shape, device=self.device) < hidden_share
        logits = self.decoder(z, tokens, hide)
        counted = F.pad((tokens != END), (1, 0), value=True)[:, :-1]  # every token and the END after the last one
        entropy = F.cross_entropy(logits.transpose(1, 2), tokens, reduction="none")
        kl = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).mean(0)
        error = (self.property_head(z) - values) ** 2
        # A batch holds molecules of one length, so it is the moments over some 20 batches that are to be 0 and I; the
        # term has the gradient of their squared distance from that, and is 0 where they are right.
        first, second = z.mean(0), z.T @ z / len(z)
        self.first = 0.95 * self.first + 0.05 * first.detach()
        self.second = 0.95 * self.second + 0.05 * second.detach()
        off = self.second - torch.eye(LATENT, device=self.device)
        moments = 2 * (self.first * first).sum() + 2 * (off * second).sum()
        return {
            "reconstruction": (entropy * counted).sum() / len(tokens),
            "kl": kl.sum(),
            "kl_above_free": (kl - self.settings.free).clamp(min=0).sum(),
            "properties": error.sum(1).mean() / (2 * self.settings.sigma**2),
            "moments": moments,
        }

    def step(self, progress: float) -> dict[str, Tensor]:
        """One step of AdamW; `progress` in [0, 1] sets the learning rate (cosine) and the weight of the KL term."""
        warm = min(1.0, progress / 0.02 + 0.01)
        for group in self.optimiser.param_groups:
            group["lr"] = self.settings.rate * warm * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(1, progress))))
        beta = self.settings.beta * min(1.0, max(0.02, (progress - 0.1) / 0.5))
        shown = 0.3 + 0.7 * min(1.0, progress / 0.5)
        rows, length = next(self.stream)
        index = torch.from_numpy(rows).to(self.device, non_blocking=True)
        parts = self.losses(self.tokens[index, :length].long(), self.values[index], shown)
        moments = self.settings.moments * min(1.0, progress / 0.5)
        loss = (
            parts["reconstruction"] + beta * parts["kl_above_free"] + parts["properties"] + moments * parts["moments"]
        )
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.parameters, 20.0)
        self.optimiser.step()
        return {"loss": loss.detach(), **{name: part.detach() for name, part in parts.items()}}

    @torch.no_grad()
    def held_out(self) -> dict[str, float]:
        """Teacher-forced accuracy, exact reconstruction by the greedy decoder, and what draws from N(0, I) give.

        `used_latents` counts the numbers whose mean varies; `strong_latents` those known to a third of their spread.
        `prior_pairs` is the total variation distance of neighbouring tokens between draws and data.
        """
        tokens = self.test.long()
        means, variances, right, total = [], [], 0.0, 0.0
        for part in tokens.split(2048):
            mean, log_variance = self.encoder(part)
            logits = self.decoder(mean, part)
            counted = F.pad((part != END), (1, 0), value=True)[:, :-1]
            right += float(((logits.argmax(2) == part) & counted).sum())
            total += float(counted.sum())
            means.append(mean)
            variances.append(log_variance.exp())
        mean, variance = torch.cat(means), torch.cat(variances)
        first = tokens[:2048]
        exact = (self.decoder.greedy(mean[:2048], tokens.shape[1]) == first).all(1).float().mean()
        generator = torch.Generator().manual_seed(0)
        drawn = torch.randn(2048, LATENT, generator=generator).to(self.device)
        noisy = mean[:2048] + drawn[: len(first)] * variance[:2048].sqrt()
        written = self.decoder.greedy(drawn, tokens.shape[1])
        pairs = [self.pairs(part) for part in (written, tokens)]
        return {
            "token_accuracy": right / total,
            "exact_reconstruction": float(exact),
            "aggregate_std_min": float((mean.var(0) + variance.mean(0)).sqrt().min()),
            "aggregate_std_max": float((mean.var(0) + variance.mean(0)).sqrt().max()),
            "used_latents": int((mean.var(0) > 0.05).sum()),
            "strong_latents": int((variance.mean(0) < mean.var(0) / 9).sum()),
            "noisy_exact": float((self.decoder.greedy(noisy, tokens.shape[1]) == first).all(1).float().mean()),
            "prior_unique": len(torch.unique(written, dim=0)) / len(written),
            "prior_pairs": float((pairs[0] - pairs[1]).abs().sum() / 2),
            "prior_length": float((written != END).sum(1).float().mean()),
            "data_length": float((tokens != END).sum(1).float().mean()),
        }

    def pairs(self, tokens: Tensor) -> Tensor:
        """How often each pair of neighbours occurs in rows of tokens, as shares of 1."""
        count, real = len(self.alphabet) + 1, tokens[:, :-1] != END
        codes = (tokens[:, :-1] * count + tokens[:, 1:])[real]
        return torch.bincount(codes, minlength=count**2) / max(1, len(codes))

    def save(self, folder: Path, curve: list[dict[str, float]], steps: int) -> None:
        note = {"alphabet": json.dumps(self.alphabet.tolist()), "settings": json.dumps(asdict(self.settings))}
        for name, module in (("decoder", self.decoder), ("encoder", self.encoder)):
            weights = {key: value.detach().half().cpu().contiguous() for key, value in module.state_dict().items()}
            save_file(weights, folder / f"{name}.safetensors", metadata=note)
        log = {"settings": asdict(self.settings), "torch": torch.__version__, "steps": steps, "curve": curve}
        (folder / "curve.json").write_text(json.dumps(log, indent=1))


def planned_steps(trainer: Trainer, seconds: float) -> int:
    """How many steps fit into the time, from the speed of the last 60 of 80 steps at a near-zero learning rate."""
    for index in range(80):
        if index == 20:
            if trainer.device.type == "cuda":
                torch.cuda.synchronize()
            begin = time.monotonic()
        trainer.step(0.0)
    if trainer.device.type == "cuda":
        torch.cuda.synchronize()
    return int(0.92 * seconds * 60 / (time.monotonic() - begin))  # the rest is for the held-out checks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tokens", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--minutes", type=float, default=7.0)
    parser.add_argument("--steps", type=int, help="instead of what fits into --minutes")
    parser.add_argument("--beta", type=float, default=Settings.beta)
    parser.add_argument("--sigma", type=float, default=Settings.sigma)
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument("--rows", type=int, help="use only so many molecules (for a test)")
    parser.add_argument("--checks", type=int, default=14, help="held-out checks in a run")
    options = parser.parse_args()

    begin = time.monotonic()
    torch.set_float32_matmul_precision("high")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    with np.load(options.tokens, allow_pickle=False) as arrays:
        data = dict(arrays)
    for name in ("tokens", "properties"):
        data[name] = data[name][: options.rows]
    options.results.mkdir(parents=True, exist_ok=True)
    trainer = Trainer(data, Settings(seed=options.seed, beta=options.beta, sigma=options.sigma), device)
    deadline = begin + 60 * options.minutes
    fitting = planned_steps(trainer, deadline - time.monotonic())  # also with --steps, so that the run is the same
    steps = options.steps or fitting
    print(f"{len(trainer.lengths)} molecules, {len(trainer.alphabet)} tokens, {steps} steps on {device}", flush=True)

    every, curve, sums = max(1, steps // options.checks), [], {}
    for step in range(1, steps + 1):
        for name, value in trainer.step(step / steps).items():
            sums[name] = sums.get(name, 0.0) + value
        # The clock stops a run that became slower than planned, at a check, so that what it has learnt is kept.
        late = not options.steps and step % 50 == 0 and time.monotonic() > deadline
        if step % every == 0 or step == steps or late:
            count = (step - 1) % every + 1
            entry = {"step": step, "epoch": step * trainer.batch / len(trainer.lengths)}
            entry |= {name: float(value) / count for name, value in sums.items()} | trainer.held_out()
            curve.append(entry | {"seconds": time.monotonic() - begin})
            print({name: round(value, 4) for name, value in curve[-1].items()}, flush=True)
            trainer.save(options.results, curve, steps)
            sums = {}
        if late:
            break


if __name__ == "__main__":
    main()
