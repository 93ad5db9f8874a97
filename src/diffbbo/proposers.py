"""One batch of the default in the making: its parents, its models, and what each proposer has to offer.

inverse   draws of p(x | y), each at a score and a temperature of its own, and the best designs part-noised and
          denoised under a high score
climb     where each opinion of the panel ends when it climbs from the best designs
leap      what the panel likes best anywhere in the space, and where it ends when it climbs from there
vary      children of the best designs, by crossover, mutation, and on the lines through two of them
pick      as long as few designs are known: of what all others offer, what is expected to raise the best most together
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from . import portfolio
from .algorithm import Algorithm1
from .statistics import normal_scores
from .types import Array, Distinct, row_keys
from .usual import Usual
from .variation import LINED, apart, breed, changes, choices, mutate, numbers, scaled, tournament, unscaled

if TYPE_CHECKING:
    from .forward.failures import Failures
    from .forward.panel import Panel

USUAL = {"inverse": 0.15, "climb": 0.1, "leap": 0.05, "vary": 0.7}  # shares before anything is known
PICK, PICKED, FEW = "pick", 0.8, 500  # its share while less than half of so many rows are known; then it fades to 0
POOLED = 2000  # designs that are picked from, at most
PARENTS = 10
POOL = 20  # designs that leaps begin from per design asked for
GOOD = 0.1  # part of the measured designs whose scores half of the draws are aimed at
TARGETS = (1.0, 1.2)  # scores that refined designs are denoised under, as parts of phi
NOISE = (0.2, 0.4, 0.6)  # standard deviations to which designs are noised for refinement
SPARE = 8  # children per place of a batch where designs fail
LEARNT = 4000  # rows that the inverse model and usual values are learnt from: the best ones
GENERATIONS, CROWD = 8, 24  # of the climb over letters and categories
REACHES = (4.0, 2.0, 1.0, 0.5)  # how far a number may climb, in steps


def usual_shares(proposers: Sequence[str], told: NDArray[np.intp]) -> Array:
    """What each has of a batch before anybody has found anything, after so many rows `(k,)`: `(k, proposers)`."""
    shares = np.array([USUAL.get(arm, 0.0) for arm in proposers])
    picks = np.array([arm == PICK for arm in proposers])
    picked = (PICK in proposers) * PICKED * np.clip(2 * (1 - told / FEW), 0.0, 1.0)[:, None]
    return np.asarray((1 - picked) * shares / shares.sum() + picked * picks)


class Round:
    """Every proposer is a method of its name: rows, best first, and which member drew each (-1: none).

    `without` are the parts left out. A model is made when first needed.
    """

    def __init__(
        self, method: Algorithm1, without: Sequence[str], data: Distinct, n: int, rng: np.random.Generator
    ) -> None:
        self.method, self.space, self.without, self.n, self.rng = method, method.space, without, n, rng
        order = np.argsort(-data.y, kind="stable")
        self.x, self.y = data.x[order], data.y[order]  # best first
        self.scores = normal_scores(self.y)
        self.step = portfolio.step_length(method.data.y, method.tells)
        # A batch keeps apart, but no further than half of what as many designs are that fill the space.
        self.gap = min(self.step, 0.5 * n ** (-1 / max(1, int(numbers(self.space).sum()))))
        self.known = set(row_keys(method.data.x)) | set(row_keys(method.pending))
        self.info: dict[str, Any] = {}
        self._offered: dict[str, tuple[Array, NDArray[np.intp]]] = {}
        first = apart(self.space, self.x[: 20 * PARENTS], PARENTS, self.step)
        self.parents, self.values = self.x[first], self.scores[first]

    # ---- models ------------------------------------------------------------------------------------------

    @cached_property
    def usual(self) -> Usual:
        left_out = "usual values" in self.without
        return Usual.none(self.space) if left_out else Usual.of(self.space, self.x[:LEARNT])

    @cached_property
    def panel(self) -> Panel:
        from .forward.layout import Layout
        from .forward.panel import Panel

        layout = Layout(tuple(choices(self.space)))
        few = "picks" not in self.without and len(self.method.data) < FEW
        panel = Panel.fit(layout, scaled(self.space, self.x), self.scores, self.y, self.rng, self.method.device, few)
        self.info["skill"] = list(panel.skill)
        return panel

    @cached_property
    def failures(self) -> Failures | None:
        """None where nothing failed, or where nothing is known yet of why."""
        method, failed = self.method, self.method.failed
        if "failures" in self.without or not len(failed):
            return None
        from .forward.failures import Failures

        together = set(row_keys(method.data.x[portfolio.troubled(method.data.y, method.tells)]))
        asked = np.array([key in together for key in row_keys(self.x)], dtype=bool)
        found = Failures.fit(self.space, self.x, failed, asked, self.rng, method.device)
        if found:
            self.info["told_apart"] = round(found.told_apart, 4)
        return found

    def hopeful(self, rows: Array) -> NDArray[np.intp]:
        """Row numbers in order, but those of designs that are likely to fail last."""
        likely = self.failures.likely(rows) if self.failures else np.zeros(len(rows), dtype=bool)
        return np.argsort(likely, kind="stable")

    # ---- proposers ---------------------------------------------------------------------------------------

    def inverse(self) -> tuple[Array, NDArray[np.intp]]:
        """Draws of the inverse model, half at scores from y* upwards and half at those of good designs, each at a
        temperature of its own; and refinements of the best designs; mixed."""
        rng = self.rng
        inverse = self.method.train(self.x[:LEARNT], self.y[:LEARNT], rng)
        aimed, found = self.method.aim(inverse, self.n, rng)
        self.info |= found
        top = float(inverse.scale.targets([TARGETS[1]])[0])
        high = aimed + (max(top, aimed) - aimed) * rng.random(self.n)
        good = rng.choice(self.y[: max(1, int(GOOD * len(self.y)))], self.n)
        scores = np.where(rng.random(self.n) < 0.5, good, high)
        heat = None if "temperature" in self.without else rng.random(self.n)
        drawn = [inverse.ensemble.sample_each(inverse.scale.condition(scores), temperature=heat)]
        for noise in NOISE:
            scores = inverse.scale.targets(rng.uniform(*TARGETS, size=-(-self.n // len(NOISE))).tolist())
            starts = inverse.encoder.encode(self.parents[tournament(self.values, len(scores), 2, rng)])
            drawn.append(inverse.ensemble.sample_each(inverse.scale.condition(scores), starts, noise))
        rows, members = (np.concatenate(parts) for parts in zip(*drawn, strict=True))
        order = rng.permutation(len(rows))
        return self.usual.restored(inverse.encoder.decode(rows)[order], self.parents), members[order]

    def climb(self) -> tuple[Array, NDArray[np.intp]]:
        """Where every opinion of the panel ends when it climbs from the best designs, some far and some near: how far
        a model can be followed differs from problem to problem."""
        count = self.panel.opinions
        each = max(CROWD, -(-2 * self.n // count))
        rows = self.parents[tournament(self.values, count * each, 2, self.rng)]
        movable = self.usual.movable(rows, self.rng)
        if not self.panel.layout.letters:
            columns = min(1.0, max(0.2, 20 / self.space.dimension))
            rows = np.where(movable, mutate(self.space, rows, self.rng, columns, 0.3 * self.step), rows)
        groups = self.rng.permuted(np.tile(np.arange(each) % len(REACHES), (count, 1)), axis=1)
        reach = self.step * np.array(REACHES)[groups]
        return self._climbed(rows, movable * reach.reshape(-1, 1), groups)

    def leap(self) -> tuple[Array, NDArray[np.intp]]:
        """Every opinion's favourites among designs from all over the space, and where it ends when it climbs from
        them, in turns."""
        wild = self.usual.spread(self.space.sample(POOL * self.n, self.rng), self.rng)
        liked = self.panel.ranked(scaled(self.space, wild))[:, : max(CROWD, -(-self.n // self.panel.opinions))]
        rows = wild[liked.ravel()]
        reach = self.usual.movable(rows, self.rng).astype(float)
        climbed, member = self._climbed(rows, reach, np.zeros(liked.shape, dtype=np.intp))
        picked = wild[liked.T.ravel()]
        return np.stack([climbed, picked], axis=1).reshape(-1, self.space.dimension), np.repeat(member, 2)

    def vary(self) -> tuple[Array, NDArray[np.intp]]:
        """Children of the best designs, as they come: what no model can know is tried. Where designs fail there are
        more of them, since many will not be asked for."""
        n = (SPARE if self.failures else 2) * self.n
        return self.children(n), np.full(n, -1)

    def pick(self) -> tuple[Array, NDArray[np.intp]]:
        """Of all that the others offer and that is new, designs that are expected to raise the best most, one given the
        others: what Bayesian optimisation would ask for, from a pool that knows more than where its model is high."""
        parts = [self.offered(arm) for arm in USUAL if arm not in self.without]
        rows, member = (np.concatenate(part) for part in zip(*parts, strict=True))
        _, first = np.unique(rows, axis=0, return_index=True)
        new = first[[key not in self.known for key in row_keys(rows[first])]]
        pool = self.rng.permutation(new)[:POOLED]
        if self.failures:
            pool = pool[~self.failures.likely(rows[pool])]
        chosen = pool[self.panel.together(scaled(self.space, rows[pool]), 2 * self.n, self.rng)] if len(pool) else pool
        return rows[chosen], member[chosen]

    def children(self, n: int) -> Array:
        lined = 0.0 if "lines" in self.without else LINED
        return breed(self.space, self.parents, self.values, n, self.step, self.rng, lined)

    def _climbed(self, rows: Array, reach: Array, groups: NDArray[np.intp]) -> tuple[Array, NDArray[np.intp]]:
        """Each opinion climbs from its own rows `(opinions * each, d)`, first over letters and categories, then over
        numbers, these at most `reach` (of the same shape) away.

        Everyone's best comes first, in turns over the `groups` `(opinions, each)` of its rows: values of climbs of
        different lengths do not compare.
        """
        count, dimension = self.panel.opinions, self.space.dimension
        if self.panel.layout.letters:
            rows = self._exchange(rows, count, len(rows) // count)
        shape = count, -1, dimension
        u, values = self.panel.ascend(scaled(self.space, rows).reshape(shape), reach.reshape(shape))
        order = np.argsort(-values, axis=1, kind="stable")
        order = np.stack([mine[_in_turns(group[mine], self.rng)] for mine, group in zip(order, groups, strict=True)])
        turns = u[np.arange(count)[:, None], order].transpose(1, 0, 2).reshape(-1, dimension)
        return unscaled(self.space, turns), np.full(len(turns), -1)

    def _exchange(self, rows: Array, count: int, each: int) -> Array:
        """Every opinion breeds its own crowd towards what it likes: rows `(count * each, d)`."""
        import torch

        def read(rows: Array) -> Array:
            u = torch.as_tensor(scaled(self.space, rows), device=self.panel.device).view(count, -1, rows.shape[1])
            with torch.no_grad():
                return np.asarray(self.panel.read(u).cpu())

        crowd = rows.reshape(count, each, -1)
        liking = read(rows)
        for _ in range(GENERATIONS):
            pick = self.rng.integers(each, size=(2, count, each))
            father, mother = (crowd[np.arange(count)[:, None], index] for index in pick)
            cross = self.rng.random(crowd.shape) < 0.5 * (self.rng.random((count, each, 1)) < 0.5)
            child = np.where(cross, mother, father).reshape(count * each, -1)
            child = mutate(self.space, child, self.rng, 1 / crowd.shape[2], self.step)
            both = np.concatenate([crowd, child.reshape(crowd.shape)], axis=1)
            liked = np.concatenate([liking, read(child)], axis=1)
            # Of equal ones the first stays, so that a crowd keeps what it has; a repeat would only take a place.
            again = np.array([_repeats(group) for group in both])
            best = np.argsort(-np.where(again, -np.inf, liked), axis=1, kind="stable")[:, :each]
            crowd = np.take_along_axis(both, best[..., None], axis=1)
            liking = np.take_along_axis(liked, best, axis=1)
        return crowd.reshape(count * each, -1)

    # ---- the batch ---------------------------------------------------------------------------------

    def dealt(self, places: Sequence[str]) -> tuple[Array, NDArray[np.intp], list[str]]:
        """Fill every place from its proposer with new designs apart from each other; `vary` helps out."""
        queues = {arm: self._queue(self.offered(arm)) for arm in (*USUAL, PICK) if arm in places}
        spare = self._queue(self.vary())
        rows: list[Array] = []
        members: list[int] = []
        origin: list[str] = []
        taken = np.empty((0, self.space.dimension))
        known = set(self.known)
        for place in places:
            for queue, arm in ((queues[place], place), (spare, "vary")):
                found = self._next(queue, known, taken)
                if found is not None:
                    row, member = found
                    rows.append(row)
                    members.append(int(member))
                    origin.append(arm)
                    taken = np.concatenate([taken, scaled(self.space, row[None])])
                    break
        if not rows:
            return self.children(self.n), np.full(self.n, -1), []
        return np.stack(rows), np.array(members, dtype=np.intp), origin

    def _queue(self, offered: tuple[Array, NDArray[np.intp]]) -> Iterator[tuple[Array, Any]]:
        """What a proposer offers; what is likely to fail comes last."""
        rows, member = offered
        order = self.hopeful(rows)
        return zip(rows[order], member[order], strict=True)

    def offered(self, arm: str) -> tuple[Array, NDArray[np.intp]]:
        """What a proposer has to offer, made when first asked for."""
        if arm not in self._offered:
            self._offered[arm] = getattr(self, arm)()
        return self._offered[arm]

    def _next(self, queue: Iterator[tuple[Array, Any]], known: set[bytes], taken: Array) -> tuple[Array, Any] | None:
        """The queue's next new design that is apart from those taken; if none is left, the first new one."""
        crowded: tuple[Array, Any] | None = None
        for row, member in queue:
            if row_keys(row[None])[0] in known:
                continue
            if len(taken) and changes(self.space, taken, scaled(self.space, row[None])[0], self.gap).min() < 1.0:
                crowded = crowded or (row, member)
                continue
            crowded = row, member
            break
        if crowded is not None:
            known.add(row_keys(crowded[0][None])[0])
        return crowded


def _in_turns(groups: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.intp]:
    """An order of the entries that takes the first of every group, then the second of every group, and so on; which
    group begins is drawn."""
    nth = np.empty(len(groups), dtype=np.intp)
    for group in np.unique(groups):
        nth[groups == group] = np.arange((groups == group).sum())
    return np.lexsort((rng.permutation(groups.max() + 1)[groups], nth))


def _repeats(rows: Array) -> NDArray[np.bool_]:
    """Which rows have occurred before in the list."""
    _, first = np.unique(rows, axis=0, return_index=True)
    again = np.ones(len(rows), dtype=bool)
    again[first] = False
    return again
