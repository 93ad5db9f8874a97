"""Which columns of a row are numbers and which are letters or categories: all that a forward model knows of a space."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Protocol

import torch
from torch import Tensor


class Features(Protocol):
    """What a committee sees of rows `(..., d)`."""

    def features(self, u: Tensor) -> Tensor: ...


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

    def of_numbers(self, u: Tensor) -> Tensor:
        """The numbers of rows `(..., d)`."""
        return u[..., _places(self, u.device).numbers]

    def onehot(self, u: Tensor) -> Tensor:
        """The letters of rows `(..., d)` as indicators, `(..., sum of levels)`."""
        places = _places(self, u.device)
        return (u[..., places.column] == places.value).to(u.dtype)

    def spread(self, weights: Tensor) -> Tensor:
        """A weight per letter `(letters,)` as one per indicator, `(sum of levels,)`."""
        return weights[_places(self, weights.device).letter]

    def features(self, u: Tensor) -> Tensor:
        """Numbers from -1 to 1 and letters one-hot, `(..., f)`."""
        return torch.cat([2 * self.of_numbers(u) - 1, self.onehot(u)], dim=-1)


@dataclass(frozen=True)
class _Places:
    """Index tensors on one device: lists would travel there anew with every call."""

    numbers: Tensor
    column: Tensor  # of each indicator: its column, which letter that is, and the value it stands for
    letter: Tensor
    value: Tensor


@cache
def _places(layout: Layout, device: torch.device) -> _Places:
    each = [
        (column, letter, value)
        for letter, column in enumerate(layout.letters)
        for value in range(layout.levels[column] or 0)
    ]
    column, letter, value = (torch.tensor([entry[k] for entry in each], dtype=torch.long) for k in range(3))
    numbers = torch.tensor(layout.numbers, dtype=torch.long)
    return _Places(*(part.to(device) for part in (numbers, column, letter, value)))
