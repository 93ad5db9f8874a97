"""Ehrlich functions: words that must hold hidden, spaced motifs, where some letters may not follow each other."""

from __future__ import annotations

from string import ascii_lowercase, ascii_uppercase, digits

import numpy as np
from numpy.typing import NDArray

from ..spaces import Space
from ..types import Array, InputError
from ..variables import Sequence
from .synthetic import Synthetic, whole

LETTERS = ascii_uppercase + ascii_lowercase + digits


class Ehrlich(Synthetic):
    """The product over the motifs of the largest share of each found anywhere; NaN for a word with a banned pair.

    Named by its length, `ehrlich-32`; the other settings follow as in `ehrlich-32:vocabulary=4,motifs=2`. `dimension`
    is the word's length L, `vocabulary` the number of letters v, `motifs` their number c, `motif_length` k, and
    `quantisation` q counts a motif's found letters in q steps (default k: every letter counts). After each letter
    `banned` others may not come (default: one in five). `instance` is the seed of motifs, spacings and banned pairs.
    """

    name = "ehrlich"
    summary = "Ehrlich: words with hidden motifs and banned pairs"
    source = "Stanton et al., Closed-Form Test Functions for Biophysical Sequence Design Benchmarking, arXiv:2407.00236"
    exact = "the function's definition; its motifs always fit into one word without a banned pair, so 1 is attained"
    minimize = False

    def __init__(
        self,
        dimension: int = 32,
        vocabulary: int = 20,
        motifs: int = 4,
        motif_length: int = 4,
        quantisation: int | None = None,
        banned: int | None = None,
        instance: int = 0,
        data: int = 2_000,
    ) -> None:
        whole("vocabulary", vocabulary, 2, len(LETTERS))
        whole("motifs", motifs, 1)
        whole("motif_length", motif_length, 2)
        whole("dimension", dimension, 2)
        if motifs * motif_length > dimension:
            raise InputError(
                f"{motifs} motifs of {motif_length} letters do not fit into a word of dimension = {dimension}.",
                f"Use dimension = {motifs * motif_length} or more, or fewer or shorter motifs.",
            )
        # At most v - 2: a letter may follow itself, and one other must be able to, so that no letter is a dead end.
        most, usual = vocabulary - 2, min(max(1, vocabulary // 5), vocabulary - 2)
        self.banned = whole("banned", usual if banned is None else banned, 0, most)
        steps = motif_length if quantisation is None else quantisation
        self.quantisation = whole("quantisation", steps, 1, motif_length)
        rng = np.random.default_rng(whole("instance", instance, 0))
        self.transition = _transitions(vocabulary, self.banned, rng)
        self.motifs = _walk(_without_repeats(self.transition), motifs * motif_length, rng).reshape(motifs, motif_length)
        self.offsets = np.array([_spacing(motif_length, dimension // motifs, rng) for _ in range(motifs)])
        super().__init__(
            Space((Sequence("word", dimension, LETTERS[:vocabulary]),)),
            self._solution(dimension),
            1.0,
            dimension=dimension,
            vocabulary=vocabulary,
            motifs=motifs,
            motif_length=motif_length,
            quantisation=None if self.quantisation == motif_length else quantisation,
            banned=None if self.banned == usual else banned,
            instance=instance,
            data=data,
        )

    def value(self, x: Array) -> Array:
        words = x.astype(np.intp)
        product = np.ones(len(words))
        for motif, offsets in zip(self.motifs, self.offsets, strict=True):
            places = words.shape[1] - offsets[-1]
            found = sum((words[:, offset : offset + places] == letter).astype(np.intp)
                        for letter, offset in zip(motif, offsets, strict=True))  # fmt: skip
            most = np.max(found, axis=1)
            product *= self.quantisation * most // len(motif) / self.quantisation
        return np.where(self.feasible(words), product, np.nan)

    def feasible(self, words: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Which words `(n, L)` of letter indices have no banned pair of neighbours."""
        return np.asarray((self.transition[words[:, :-1], words[:, 1:]] > 0).all(axis=1))

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """`n` words drawn from the chain of allowed transitions: few words drawn letter by letter would be allowed."""
        (word,) = self.space.variables
        return _walks(self.transition, n, word.width, rng).astype(np.float64)

    def _worst(self) -> float:
        return 0.0  # a product with a motif of which not one step is found

    def _solution(self, length: int) -> Array:
        """The motifs one after another, each letter repeated until the next is due: allowed, as repeats always are."""
        word = np.full(length, self.motifs[-1, -1])
        begin = 0
        for motif, offsets in zip(self.motifs, self.offsets, strict=True):
            for letter, offset in zip(motif, offsets, strict=True):
                word[begin + offset :] = letter
            begin += int(offsets[-1]) + 1
        return word.astype(np.float64)


def _transitions(vocabulary: int, banned: int, rng: np.random.Generator) -> Array:
    """Random transition probabilities `(v, v)` with `banned` zeros per row, and a way from every letter to every other.

    A letter may always follow itself, and the next one of a random round trip through all letters may follow it.
    """
    weight = np.exp(2 * rng.standard_normal((vocabulary, vocabulary)))  # softmax at temperature 1/2, as published
    trip = rng.permutation(vocabulary)
    successor = np.empty(vocabulary, np.intp)
    successor[trip] = np.roll(trip, -1)
    for letter in range(vocabulary):
        others = np.setdiff1d(np.arange(vocabulary), [letter, successor[letter]])
        weight[letter, rng.permutation(others)[:banned]] = 0
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def _without_repeats(transition: Array) -> Array:
    """The same chain without staying: a motif of one letter repeated would be no motif."""
    moving = transition * ~np.eye(len(transition), dtype=bool)
    return np.asarray(moving / moving.sum(axis=1, keepdims=True))


def _walks(transition: Array, n: int, steps: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """`n` walks `(n, steps)` through the chain, from a letter drawn uniformly."""
    cumulative = transition.cumsum(axis=1)
    # The last allowed letter takes what rounding leaves of the sum, so that a draw never falls on a banned one.
    cumulative[cumulative >= cumulative[:, -1:]] = 1.0
    walks = np.empty((n, steps), np.intp)
    walks[:, 0] = rng.integers(len(transition), size=n)
    for step in range(1, steps):
        walks[:, step] = (cumulative[walks[:, step - 1]] <= rng.random((n, 1))).sum(axis=1)
    return walks


def _walk(transition: Array, steps: int, rng: np.random.Generator) -> NDArray[np.intp]:
    return np.asarray(_walks(transition, 1, steps, rng)[0])


def _spacing(motif_length: int, span: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Offsets `(k,)` of a motif's letters: the first 0, the others drawn from the `span` places it may take."""
    others = 1 + rng.permutation(span - 1)[: motif_length - 1]
    return np.concatenate([[0], np.sort(others)]).astype(np.intp)
