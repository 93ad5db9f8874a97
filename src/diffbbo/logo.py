"""A sequence logo as inline SVG: what the best designs have in common, letter by letter."""

from __future__ import annotations

from html import escape

import numpy as np

from .types import Array
from .variables import Sequence

HEIGHT, WIDTH, LEFT, TOP = 170, 40, 44, 12  # of the stacks, of one letter, and the margins, in pixels
CAPITAL = 0.716  # height of a capital letter of Arial and its metric twins, in units of the font size
NUCLEOTIDES = {"A": "#009E73", "C": "#0072B2", "G": "#E69F00", "T": "#D55E00", "U": "#D55E00"}
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A7A7A", "#8C6BB1")


def information(columns: Array, letters: int) -> tuple[Array, Array]:
    """Frequencies `(length, letters)` and information content `(length,)` in bits of letter indices `(n, length)`.

    The content of a position is log2(letters) minus its entropy: 0 where all letters are equally frequent,
    log2(letters) where one is certain.
    """
    share = (columns[:, :, None] == np.arange(letters)).mean(axis=0)
    entropy = -(share * np.log2(np.where(share > 0, share, 1.0))).sum(axis=1)
    return share, np.log2(letters) - entropy


def sequence_logo(variable: Sequence, columns: Array) -> str:
    """The logo of some designs' columns `(n, length)`: a letter is as high as its share of the position's bits."""
    share, bits = information(columns, len(variable.alphabet))
    full = float(np.log2(len(variable.alphabet)))
    width, height = LEFT + WIDTH * variable.length + 4, TOP + HEIGHT + 24
    parts = [
        f'<svg class="logo" role="img" aria-label="Sequence logo of {escape(variable.name)}" width="{width}" '
        f'height="{height}" viewBox="0 0 {width} {height}">'
    ]
    for tick in range(int(full) + 1):
        y = TOP + HEIGHT * (1 - tick / full)
        parts.append(f'<line class="tick" x1="{LEFT - 4}" x2="{width}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="axis" x="{LEFT - 9}" y="{y + 4:.1f}" text-anchor="end">{tick}</text>')
    middle = TOP + HEIGHT / 2
    parts.append(f'<text class="axis" transform="translate(12 {middle}) rotate(-90)" text-anchor="middle">bits</text>')
    for position in range(variable.length):
        x, y = LEFT + WIDTH * position, float(TOP + HEIGHT)
        for k in np.argsort(share[position], kind="stable"):  # the most frequent on top
            tall = HEIGHT * share[position, k] * bits[position] / full
            if tall >= 0.5:
                parts.append(_letter(variable.alphabet, int(k), x, y, tall, share[position, k], bits[position]))
                y -= tall
        parts.append(
            f'<text class="axis" x="{x + WIDTH / 2}" y="{TOP + HEIGHT + 17}" text-anchor="middle">{position + 1}</text>'
        )
    return "".join(parts) + "</svg>"


def _letter(alphabet: str, k: int, x: float, y: float, tall: float, share: float, bits: float) -> str:
    """One letter, stretched to fill its box of `tall` pixels above the line `y`."""
    letter = alphabet[k]
    colour = NUCLEOTIDES[letter] if set(alphabet) <= set(NUCLEOTIDES) else COLOURS[k % len(COLOURS)]
    size = 100
    stretch = tall / (CAPITAL * size)
    # A thin letter stretched to the full width would be a mere block.
    wide = WIDTH * 0.35 if letter in "Iijl1|" else WIDTH - 2
    place = f"translate({x + (WIDTH - wide) / 2} {y:.2f}) scale(1 {stretch:.4f})"
    return (
        f'<text class="letter" fill="{colour}" font-size="{size}" textLength="{wide}" '
        f'lengthAdjust="spacingAndGlyphs" transform="{place}">'
        f"{escape(letter)}<title>{escape(letter)}: {share:.0%} at a position of {bits:.2f} bits</title></text>"
    )
