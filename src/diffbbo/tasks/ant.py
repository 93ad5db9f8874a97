"""Ant: the body of a four-legged robot that runs fastest."""

from __future__ import annotations

from ..robots.ant import Ant as Body
from ._walker import Walker


class Ant(Walker):
    """60 numbers: 15 for each leg."""

    name = "ant"
    summary = "body of a four-legged robot that runs far in 5 s and wastes no force"
    robot = Body
    table_file = "ant.npz", "25cc096e1420ec78185f1cf9cfd44a0f2cae33b10b460e0bd09f39cec991661e"
    controller_file = "ant.safetensors", "4acd68a6b9fbe77d44c256dde4091fa4012010c31ef7f7c18df9b267b4dd7931"
    failure = -386.9003601
    published = (
        "AntMorphology of Design-Bench (Trabucco et al., ICML 2022), on morphing-agents; published scores run from "
        "-386.9 to 590.2"
    )
