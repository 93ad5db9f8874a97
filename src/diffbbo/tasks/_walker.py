"""What the two robot tasks share: a table of scored bodies, and an oracle that lets a body walk."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ..assets import load_arrays, load_weights
from ..robots.controller import Controller
from ..robots.drawing import draw_walk, write_film
from ..robots.robot import LEGS, Robot, Unstable, play
from ..spaces import Space
from ..task import Card, Task, quarter
from ..types import Array
from ..variables import Real

GRID = 1000  # the table's designs lie on a grid of a thousandth of each range
VISIBLE = 0.4  # the lowest scores
IDLE = 0.01  # half-width of a variable that the published bounds fix at 0 and the oracle ignores


class Walker(Task):
    """A robot's body as a design; its score is the return of one episode with a controller that sees the body."""

    robot: ClassVar[type[Robot]]
    table_file: ClassVar[tuple[str, str]]  # name and sha256
    controller_file: ClassVar[tuple[str, str]]
    failure: ClassVar[float]  # of a body that cannot be built or becomes unstable: the lowest published score
    published: ClassVar[str]
    costly = True
    table: Array

    def __init__(self) -> None:
        arrays = load_arrays(*self.table_file)
        self.x, self.table = self.robot.from_unit(arrays["grid"] / GRID), arrays["y"]
        self.maximum = float(self.table.max())
        self.range = float(self.table.min()), self.maximum
        self.space = Space(
            tuple(
                Real(f"leg{leg}_{part}", low, high) if high > low else Real(f"leg{leg}_{part}", -IDLE, IDLE)
                for leg in range(1, LEGS + 1)
                for part, (low, high) in self.robot.parts.items()
            )
        )
        self._controller: Controller | None = None

    def __reduce__(self) -> tuple[type[Task], tuple[()]]:
        return type(self), ()  # a worker process reads the files itself

    @property
    def controller(self) -> Controller:
        """Read when first needed: the start data can be had without the simulator."""
        if self._controller is None:
            self._controller = Controller.from_arrays(load_weights(*self.controller_file, extra="robots"))
        return self._controller

    def start(self, seed: int = 0) -> tuple[Array, Array]:
        """The 25th to 50th percentile of the visible designs, the same for every seed."""
        visible = np.argsort(self.table, kind="stable")[: int(VISIBLE * len(self.table))]
        rows = quarter(visible, self.table)
        return self.x[rows], self.table[rows]

    def evaluate(self, x: Array) -> Array:
        """Let every body walk, in as many threads as there are cores: the simulator runs outside of Python's lock."""
        rows = self.space.rows(x)
        _ = self.controller  # a missing package or a damaged file is said once, here
        with ThreadPoolExecutor(min(os.cpu_count() or 1, len(rows)) or 1) as pool:
            return np.array(list(pool.map(self.score, rows)))

    def score(self, design: Array, watch: Any = None) -> float:
        """The return of one body, or the failure score."""
        low, high = self.robot.bounds()
        try:
            return play(self.robot(np.clip(design, low, high)), self.controller, watch)
        except Unstable:
            return self.failure

    def illustrate(self, figure: Any) -> None:
        """Two bodies walking: the best of the start data and the best known."""
        start = self.start()[0][-1]
        best = self.x[int(self.table.argmax())]
        for panel, design, what in zip(
            figure.subplots(2, 1), (start, best), ("best start design", "best known"), strict=True
        ):
            draw_walk(panel, self.robot, self.score, design, what)

    def film(self, path: Path | str, design: Any = None) -> None:
        """Write a film (GIF) of a design walking; without one, of the best design of the table."""
        row = self.x[int(self.table.argmax())] if design is None else self.space.rows([design])[0]
        write_film(Path(path), self.robot, self.score, row, self.name)

    def card(self) -> Card:
        return Card(
            name=self.name,
            summary=self.summary,
            source=self.published,
            licence=self.licence,
            size=None,
            dimension=self.space.dimension,
            start=int(VISIBLE * len(self.table)) // 4,
            maximum=self.maximum,
            exact="body, simulator steps, reward, length of an episode and the recipe of the designs are the published "
            "ones",
            remade="the published controller and designs are lost: ours are a controller (scripts/robots) and "
            f"{len(self.table):,} scored designs, of which the lowest 40 % are visible. Scores cannot be compared with "
            "published ones. The maximum is the best of the table, not a bound",
        )

    licence: ClassVar[str] = "Apache-2.0"
