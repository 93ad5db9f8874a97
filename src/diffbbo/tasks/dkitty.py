"""D'Kitty: the body of a small four-legged robot that walks to its goal without falling."""

from __future__ import annotations

from ..robots.dkitty import DKitty as Body
from ._walker import Walker


class DKitty(Walker):
    """56 numbers: 14 for each leg; the height of a leg's root is one of them and, as published, fixed at 0."""

    name = "dkitty"
    summary = "body of a small four-legged robot that walks to a goal 2 m ahead without falling"
    robot = Body
    table_file = "dkitty.npz", "0c21c11bf82ae3cf785231d7a6756ce7507c861623ec39b31eafaabf50a21bab"
    controller_file = "dkitty.safetensors", "b928f01237e2d51ab97bc8f5c0a65c5cdc39a7baa29b6140eb56a7312e2ec5d2"
    failure = -880.4584961
    published = (
        "DKittyMorphology of Design-Bench (Trabucco et al., ICML 2022), on morphing-agents and ROBEL 0.1.2 (Ahn et "
        "al., CoRL 2019); published scores run from -880.5 to 340.9"
    )
