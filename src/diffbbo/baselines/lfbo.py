"""Likelihood-free Bayesian optimisation: a weighted classifier is the acquisition function.

Designs whose value is above a threshold tau are told from the others; their weights decide what the classifier's
output means. Weighted by y - tau, its odds are the expected improvement (`lfbo-ei`, Song et al. 2022); unweighted, its
probability is the probability of improvement (`lfbo-pi`, which is BORE, Tiao et al. 2021).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..optimizer import Optimizer, Proposal
from ..progress import report
from ..spaces import Space
from ..types import Array, InputError, row_keys
from ..variables import Integer, Real
from ..variation import mutate

if TYPE_CHECKING:
    from torch import Generator, Tensor

INITIAL = 10  # random designs before the first classifier, as the authors have it
BATCH, RATE = 64, 1e-3  # the authors' minibatch and Adam's learning rate
FEWEST = 1000  # training steps from scratch: the authors' example takes 500 epochs of the smallest sets
STARTS = 5  # climbs per classifier, as in the authors' example
CLIMB, NEIGHBOURS = 20, 50  # steps of the local search over letters, and changes tried in each
ASCENT, STEP = 200, 0.02  # steps of the gradient ascent over numbers


class LfboEI(Optimizer):
    """The classifiers' own local maxima, then the best of many random candidates by their mean acquisition.

    `gamma` is the share of designs above the threshold, `members` the number of classifiers (networks of `layers`
    layers of `hidden` units, trained from scratch for at most `steps` steps), `candidates` the random designs
    compared, all but `members` and `steps` as the authors have them. A quarter of a batch are local maxima, each
    climbed on one classifier: by gradient over numbers, by the best of single changes where there are letters,
    categories or integers.
    """

    name = "lfbo-ei"
    summary = "likelihood-free BO: a classifier weighted to expected improvement"
    reference = "Song et al. 2022"
    supports = "10,000 rows and more; any batch"

    def __init__(
        self, space: Space, *, seed: int = 0, minimize: bool = False, gamma: float = 0.33, members: int = 5,
        hidden: int = 32, layers: int = 3, steps: int = 4000, candidates: int = 5000,
    ) -> None:  # fmt: skip
        super().__init__(space, seed=seed, minimize=minimize)
        if not 0 < gamma < 1 or min(members, hidden, layers, steps, candidates) < 1:
            raise InputError(
                f"gamma = {gamma}, members = {members}, hidden = {hidden}, layers = {layers}, steps = {steps}, "
                f"candidates = {candidates} do not fit.",
                "Use gamma between 0 and 1, and at least 1 of all others.",
            )
        self.gamma, self.members, self.hidden, self.layers = gamma, members, hidden, layers
        self.steps, self.candidates = steps, candidates

    def settings(self) -> dict[str, Any]:
        own = ("gamma", "members", "hidden", "layers", "steps", "candidates")
        return super().settings() | {name: getattr(self, name) for name in own}

    @staticmethod
    def examples(y: Array, tau: float) -> tuple[NDArray[np.intp], Array, Array]:
        """Rows, labels and weights of the classification whose odds are EI(x) over the mean EI.

        The paper's loss is E[-u log C(x) - log(1 - C(x))], u = (y - tau)+: every row is a negative, those above tau
        are positives too, and both classes weigh the same in all, as the authors have it.
        """
        above = np.flatnonzero(y > tau)
        improvement = y[above] - tau
        n1, n0 = len(above), len(y)
        weight = np.concatenate([improvement / improvement.mean() / n1, np.full(n0, 1 / n0)])
        rows = np.concatenate([above, np.arange(n0)])
        return rows, np.repeat([1.0, 0.0], [n1, n0]), weight / weight.mean()

    @staticmethod
    def utility(logit: Tensor) -> Tensor:
        """Log of the acquisition, up to a constant, from a classifier's logit: EI is its odds."""
        return logit

    def propose(self, n: int, rng: np.random.Generator) -> Iterator[Proposal]:
        data = self.data.distinct()
        if len(data) < INITIAL or data.flat:
            note = (
                f"{len(data)} designs are measured; it takes {INITIAL} that differ in value, so this batch is random."
            )
            while True:
                yield Proposal(self.space.sample(n, rng), info={"notes": [note]})
        import torch

        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        exponent = math.frexp(float(np.abs(data.y).max()))[1]
        y = np.ldexp(data.y, -exponent)  # exact, and no difference of values can overflow
        tau = threshold(y, self.gamma)
        rows, label, weight = self.examples(y, tau)
        sizes = [features(self.space, data.x[:1]).shape[1], *[self.hidden] * self.layers, 1]
        network = Ensemble(sizes, self.members, generator)
        # The authors train one network on, 100 steps per new design; from scratch that is as many, and never few.
        steps = min(self.steps, max(FEWEST, 100 * (len(data) - INITIAL + 1)))
        network.fit(features(self.space, data.x)[rows], label, weight, steps, generator)

        def log_acquisition(x: Array) -> Array:
            """Of every classifier, `(members, n)`."""
            with torch.no_grad():
                return np.asarray(self.utility(network(features(self.space, x))).double())

        known = set(row_keys(np.concatenate([self.data.x, self.pending])))
        pending = features(self.space, self.pending)
        info = {"threshold": self._outside(math.ldexp(tau, exponent)), "rows": len(data), "above": int(label.sum())}
        while True:
            count, size = max(self.candidates, 50 * n), self.space.size
            x = self.space.unrank(np.arange(size)) if size and size <= count else self.space.sample(count, rng)
            optima, visited = self._climb(x, network, log_acquisition, rng)
            x = _new(np.concatenate([optima, x, visited]), known)
            value = np.logaddexp.reduce(log_acquisition(x), axis=0)  # EI or PI of the mixture, up to a constant
            among = set(row_keys(optima))
            top = np.array([key in among for key in row_keys(x)])
            yield Proposal(x[spread(features(self.space, x), value, top, n, pending)], info=info)

    def _climb(
        self, x: Array, network: Ensemble, log_acquisition: Callable[[Array], Array], rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """Local maxima, each climbed on one classifier from its best candidates `x`, and all visited on the way."""
        value = log_acquisition(x)
        start = np.argsort(-value, axis=1, kind="stable")[:, :STARTS]  # (members, starts)
        if any(level is not None for level in self.space.levels):
            own = np.repeat(np.arange(len(value)), start.shape[1])
            return _local_search(self.space, x[start.ravel()], own, log_acquisition, rng)
        u = network.ascend(features(self.space, x[start.ravel()]).reshape(*start.shape, -1))
        top = self.space.from_unit(u.reshape(-1, x.shape[1]))
        return top, top[:0]


class LfboPI(LfboEI):
    """As `lfbo-ei`, with all weights equal: the probability of improvement. This is BORE."""

    name = "lfbo-pi"
    summary = "likelihood-free BO: a classifier of the best third (BORE)"
    reference = "Tiao et al. 2021; Song et al. 2022"

    @staticmethod
    def examples(y: Array, tau: float) -> tuple[NDArray[np.intp], Array, Array]:
        """Rows, labels and weights of the classification whose probability is PI(x)."""
        return np.arange(len(y)), (y > tau).astype(np.float64), np.ones(len(y))

    @staticmethod
    def utility(logit: Tensor) -> Tensor:
        from torch.nn.functional import logsigmoid

        return logsigmoid(logit)


def threshold(y: Array, gamma: float) -> float:
    """The value that a share `gamma` of `y` is above; where as many are equally best, the next value below them."""
    tau = float(np.quantile(y, 1 - gamma))
    return tau if tau < y.max() else float(y[y < y.max()].max())


def features(space: Space, x: Array) -> NDArray[np.float32]:
    """Rows `(n, d)` as the classifier sees them: numbers between 0 and 1, letters and categories one-hot."""
    parts: list[NDArray[Any]] = []
    for variable, where in space.slices():
        if isinstance(variable, Real | Integer):
            parts.append(variable.to_unit(x[:, where]))
        else:
            levels = variable.levels or 1
            onehot = np.eye(levels)[x[:, where].astype(np.intp)]
            parts.append(onehot.reshape(len(x), variable.width * levels))
    return np.concatenate(parts, axis=1, dtype=np.float32)


def spread(u: NDArray[Any], value: Array, optima: NDArray[np.bool_], n: int, pending: NDArray[Any]) -> NDArray[np.intp]:
    """`n` of the candidates by value, a quarter of them optima, none close to another or to a pending design.

    Every design chosen multiplies the acquisition by 1 - exp(-distance² / (2 width²)), a local penalisation. The width
    is half of the distance of `n` points that fill that share of the unit cube where the acquisition is: in few
    dimensions the best candidates are all closer than that, in many none are.
    """
    width = 0.5 * (share(value) / n) ** (1 / u.shape[1])
    u = u.astype(np.float64)
    square = (u**2).sum(axis=1)
    merit, chosen = value.copy(), []

    def penalise(at: NDArray[Any]) -> None:
        distance = np.maximum(square + at @ at - 2 * (u @ at), 0)
        with np.errstate(divide="ignore"):
            np.add(merit, np.log(-np.expm1(-distance / (2 * width**2))), out=merit)

    for at in pending.astype(np.float64):
        penalise(at)
    for k in range(min(n, len(u))):
        allowed = np.where(optima, merit, -np.inf) if k < -(-n // 4) else merit
        pick = int((allowed if np.isfinite(allowed).any() else merit).argmax())
        chosen.append(pick)
        penalise(u[pick])
        merit[pick] = -np.inf
    return np.array(chosen, dtype=np.intp)


def share(value: Array) -> float:
    """Of a set with log acquisition `value`, the share that matters: k/n if k of n are alike and the others nothing."""
    a = np.exp(value - value.max())
    return float(a.mean() ** 2 / (a**2).mean())


def _new(x: Array, known: set[bytes]) -> Array:
    """The rows of `x` not in `known`, each once; if there are none, `x`, and the base class looks for what is left."""
    first = {key: row for row, key in reversed([*enumerate(row_keys(x))]) if key not in known}
    return x[sorted(first.values())] if first else x


def _local_search(
    space: Space, x: Array, own: NDArray[np.intp], log_acquisition: Callable[[Array], Array], rng: np.random.Generator
) -> tuple[Array, Array]:
    """Climb from rows `x` `(k, d)`, each on its `own` classifier, by the best of random single changes."""
    x, each = x.copy(), np.arange(len(x))
    value = log_acquisition(x)[own, each]
    visited = []
    for _ in range(CLIMB):
        changed = mutate(space, np.repeat(x, NEIGHBOURS, axis=0), rng, rate=0.0)
        visited.append(changed)
        reached = log_acquisition(changed)[np.repeat(own, NEIGHBOURS), np.arange(len(changed))]
        best = reached.reshape(len(x), NEIGHBOURS).argmax(axis=1) + NEIGHBOURS * each
        better = reached[best] > value
        if not better.any():
            break
        x[better], value[better] = changed[best][better], reached[best][better]
    return x, np.concatenate(visited)


class Ensemble:
    """Classifiers that differ in first weights and minibatches, as one program: weights are `(members, in, out)`."""

    def __init__(self, sizes: list[int], members: int, generator: Generator) -> None:
        import torch

        self.weights: list[Tensor] = []
        for n_in, n_out in pairwise(sizes):
            limit = math.sqrt(6 / (n_in + n_out))  # Glorot's uniform start, the default where the authors work
            u = torch.rand((members, n_in, n_out), generator=generator)
            self.weights += [(2 * u - 1) * limit, torch.zeros((members, 1, n_out))]

    def logit(self, u: Tensor) -> Tensor:
        """`(members, n)` for features `(members, n, f)`."""
        h = u
        for layer in range(0, len(self.weights), 2):
            weight, bias = self.weights[layer : layer + 2]
            h = bias.baddbmm(h.relu() if layer else h, weight)
        return h[..., 0]

    def __call__(self, u: NDArray[np.float32]) -> Tensor:
        """`(members, n)` for features `(n, f)`."""
        import torch

        return self.logit(torch.from_numpy(u).expand(len(self.weights[0]), -1, -1))

    def fit(self, u: NDArray[np.float32], label: Array, weight: Array, steps: int, generator: Generator) -> None:
        """Minimise the weighted cross-entropy; the sum over members under one Adam equals as many trainings."""
        import torch

        x, z, w = (torch.from_numpy(part.astype(np.float32)) for part in (u, label, weight))
        for p in self.weights:
            p.requires_grad_(True)
        adam = torch.optim.Adam(self.weights, lr=RATE, fused=True)
        members = len(self.weights[0])
        for step in range(steps):
            i = torch.randint(len(z), (members, min(BATCH, len(z))), generator=generator)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(self.logit(x[i]), z[i], w[i], reduction="none")
            adam.zero_grad()
            loss.mean(dim=1).sum().backward()  # type: ignore[no-untyped-call]
            adam.step()
            if step % 100 == 0:
                report("training", step / steps)
        for p in self.weights:
            p.requires_grad_(False)

    def ascend(self, start: NDArray[np.float32]) -> Array:
        """Local maxima within the unit cube, from features `(members, starts, f)`, each on its own classifier."""
        import torch

        u = torch.from_numpy(start.copy()).requires_grad_(True)
        adam = torch.optim.Adam([u], lr=STEP)
        for _ in range(ASCENT):
            adam.zero_grad()
            (-self.logit(u).sum()).backward()  # type: ignore[no-untyped-call]
            adam.step()
            with torch.no_grad():
                u.clamp_(0, 1)
        return np.asarray(u.detach().double())
