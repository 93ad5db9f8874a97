"""The default: an inverse model, variation and forward models share every batch by their success.

Each of four proposers (proposers.py) has its usual share; who finds better designs gets more of the next batch
(portfolio.py). As long as few designs are known most of a batch is picked from what all of them offer. docs/method.md
explains and measures the parts.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from . import portfolio
from .acquisition import Acquisition, UaE
from .algorithm import Algorithm1, DiffBBOPaper
from .diffusion.config import EnsembleConfig
from .optimizer import Proposal
from .proposers import PICK, USUAL, Round, usual_shares
from .spaces import Space
from .types import InputError
from .variation import numbers, scaled, unscaled

PARTS = ("shares by success", "temperature", "usual values", "lines", "failures", "picks")  # can be left out, too
FLOOR = 0.03  # nobody's share falls below
STEPS = 800  # of training at most, with the preset `fast`


class DiffBBO(Algorithm1):
    """An inverse model, variation and forward models share every batch by their success.

    `without` leaves out proposers or other parts; with the proposer `inverse` alone it is Algorithm 1. The other
    settings are those of Algorithm 1: `preset`, `config`, `device`, `acquisition`. `DiffBBO.paper(space)` is the paper
    to the letter.
    """

    name = "diffbbo"
    summary = "inverse diffusion ensemble, variation and forward models share a batch by success"
    reference = "ours, after Wu et al. 2024, Diffusion-BBO: docs/method.md"
    default_acquisition: ClassVar[Acquisition] = UaE(weights=(0.8, 0.9, 1.0, 1.1, 1.2))
    method: ClassVar[dict[str, Any]] = {"learning_rate": 4e-3, "ema": 0.98, "sampling_steps": 40, "gamma": 0.5}
    draws: ClassVar[int | None] = 200

    def __init__(
        self, space: Space, *, seed: int = 0, minimize: bool = False, preset: str = "auto", device: str = "auto",
        acquisition: Acquisition | None = None, config: EnsembleConfig | None = None,
        without: Sequence[str] = (),
    ) -> None:  # fmt: skip
        preset = "fast" if preset == "auto" else preset  # on any hardware: more brings nothing here
        super().__init__(
            space, seed=seed, minimize=minimize, preset=preset, device=device, acquisition=acquisition, config=config
        )
        unknown = [part for part in without if part not in (*USUAL, *PARTS)]
        self.without = tuple(without)
        self.arms = tuple(arm for arm in USUAL if arm not in without)
        if unknown or not self.arms:
            raise InputError(
                f"without = {self.without} {f'has an unknown {unknown[0]!r}' if unknown else 'leaves no proposer'}.",
                f"Leave out some of {', '.join((*USUAL, *PARTS))}.",
            )

    @classmethod
    def paper(cls, space: Space, **settings: Any) -> DiffBBOPaper:
        """The method as published, with all its choices."""
        return DiffBBOPaper(space, **settings)

    @property
    def config(self) -> EnsembleConfig:
        full = super().config
        if self._config is None and self._preset == "fast":
            return EnsembleConfig(**(vars(full) | {"max_steps": min(STEPS, full.max_steps)}))
        return full

    def settings(self) -> dict[str, Any]:
        return super().settings() | {"without": list(self.without)}

    def fill(self, n: int, told: int, rng: np.random.Generator) -> Iterator[Proposal]:
        """As usual, but of a first batch half is drawn towards the middle, some more and some less: in many dimensions
        nearly all of a space is corners, and from the middle it is less far to wherever the best design lies."""
        if told:
            learn = len(self.failed) and "failures" not in self.without
            yield from self.grown(n, told, rng) if learn else super().fill(n, told, rng)
            return
        number = numbers(self.space)
        for proposal in super().fill(n, told, rng):
            u = scaled(self.space, proposal.x)
            kept = np.where(rng.random(len(u)) < 0.5, rng.random(len(u)), 1.0)[:, None]
            yield replace(proposal, x=unscaled(self.space, np.where(number, 0.5 + kept * (u - 0.5), u)))

    def grown(self, n: int, told: int, rng: np.random.Generator) -> Iterator[Proposal]:
        """Where some designs fail and the others are all as good: every other one is a child of what could be made."""
        round_ = Round(self, self.without, self.data.distinct(), n, rng)
        note = "Some designs failed, so half of this batch are children of those that could be made."
        for proposal in super().fill(n, told, rng):
            x = np.stack([round_.children(n), proposal.x], axis=1).reshape(2 * n, -1)
            info = proposal.info | round_.info | {"notes": [*proposal.info["notes"], note]}
            yield replace(proposal, x=x[round_.hopeful(x)], info=info)

    def propose(self, n: int, rng: np.random.Generator) -> Iterator[Proposal]:
        data = self.data.distinct()
        if self.arms == ("inverse",) or data.flat:
            yield from super().propose(n, rng)
            return
        clock = time.perf_counter()
        round_ = Round(self, self.without, data, n, rng)
        arms = self.arms if "picks" in self.without else (*self.arms, PICK)
        usual = usual_shares(arms, np.cumsum([0, *self.tells]))
        learn = "shares by success" not in self.without
        shares, owed = portfolio.shares(self.data.y, self.tells, usual, min(FLOOR, 1 / len(self.arms)), learn)
        places = [arms[k] for k in portfolio.deal(shares, n, owed)]
        x, member, origin = round_.dealt(places)
        share = {arm: round(float(part), 4) for arm, part in zip(arms, shares, strict=True) if part}
        info = round_.info | {
            "shares": share, "asked": {arm: origin.count(arm) for arm in share},
            "step": round_.step, "acquire_s": time.perf_counter() - clock - round_.info.get("train_s", 0.0),
        }  # fmt: skip
        yield Proposal(x, member, info)
        while True:
            yield Proposal(round_.children(n))
