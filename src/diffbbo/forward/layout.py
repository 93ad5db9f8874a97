"""Which columns of a row are numbers and which are letters or categories: all that a forward model knows of a space."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Layout:
    """`levels` per column: None for a number, otherwise how many values a letter or category has."""

    levels: tuple[int | None, ...]

    @property
    def numbers(self) -> list[int]:
        return [column for column, level in enumerate(self.levels) if level is None]

    @property
    def letters(self) -> list[int]:
        return [column for column, level in enumerate(self.levels) if level is not None]

    def onehot(self, u: Tensor) -> Tensor:
        """The letters of rows `(..., d)` as indicators, `(..., sum of levels)`."""
        parts = [
            (u[..., column, None] == torch.arange(level, device=u.device)).to(u.dtype)
            for column, level in enumerate(self.levels)
            if level is not None
        ]
        return torch.cat(parts, dim=-1) if parts else u[..., :0]

    def features(self, u: Tensor) -> Tensor:
        """Numbers from -1 to 1 and letters one-hot, `(..., f)`."""
        return torch.cat([2 * u[..., self.numbers] - 1, self.onehot(u)], dim=-1)
