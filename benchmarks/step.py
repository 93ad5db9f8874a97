"""The batched training step of M members against M plain PyTorch loops, and against the work it must do.

Each way trains on the same rows with the same batch, network, Adam (fused) and moving average, and draws its own
minibatches and noise. A batched step is what `diffusion.training.fit` spends on one: a long training less a short one,
so that setting up, capturing and the looks at the validation set cancel.

The floor has two parts, both measured here. *Products*: the matrix products of a step and nothing else, as `torch.bmm`
of the shapes concerned into buffers at hand. A layer from a to b features multiplies and adds M B a b times forward,
as often for the gradient of its weights, and again for the gradient of its input, which the first layer does not need.
*Memory*: Adam reads a weight, its gradient and two moments and writes all but the gradient back (7 values); the moving
average, where there is one, is read and written and reads the weight (3); at the rate of copying a large array.

Networks are the default's, but at hidden 1024 the paper's: only its size is that large.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor, nn

from diffbbo import DiffBBO, EnsembleConfig, Space
from diffbbo.diffusion.network import Network
from diffbbo.diffusion.sde import T_MIN
from diffbbo.diffusion.training import fit
from diffbbo.encoding import Encoder, ObjectiveScale
from diffbbo.graphs import tensor_cores

from .common import Found, Machine, Row, Target, Times, in_turns, seconds, told

ADAM, AVERAGE = 7, 3  # values that they move per parameter, see above
PAPER_SIZE = 1024
SQUARE = 2048  # of the large matrix product whose rate is shown beside


@dataclass(frozen=True)
class Size:
    """How much is measured: steps a repeat (`steps_gpu` of what is captured), and hidden sizes for a CPU and a GPU."""

    hidden: tuple[int, ...] = (128, 256)
    hidden_gpu: tuple[int, ...] = (128, 256, 1024)
    steps: int = 100
    steps_gpu: int = 1000
    rows: int = 4000
    repeats: int = 7
    square: int = SQUARE


FULL = Size()


def measure(machine: Machine, size: Size = FULL) -> Found:
    on_gpu = machine.device == "cuda"
    steps = size.steps_gpu if on_gpu else size.steps
    rows, targets = [], []
    task, x, y = told(size.rows)
    z = torch.as_tensor(Encoder.fit(task.space, x).encode(x), dtype=torch.float32, device=machine.device)
    c = torch.as_tensor(ObjectiveScale.robust(y).condition(y), dtype=torch.float32, device=machine.device)
    for hidden in size.hidden_gpu if on_gpu else size.hidden:
        config = network_of(task.space, hidden, machine.device)
        network = Network(z.shape[1], config)
        shapes = products(network.sizes, config.batch)
        bare = partial(bare_products, shapes, config.members, steps, machine.device)
        works = {
            "batched": partial(batched, network, z, c, steps),
            "loops": partial(plain_loops, network, z, c, size.steps),
            "products": bare,
            "copy": partial(copy_rate, machine.device),
            "square": partial(square_rate, size.square, machine.device),
        }
        if on_gpu:
            works["products_tf32"] = partial(_with_tf32, bare, machine.device)
        times = in_turns(works, size.repeats)
        operations = 2 * multiply_adds(shapes, config.members)
        values = ADAM + (AVERAGE if config.ema else 0)
        moved = 4 * values * parameters(network.sizes, config.members)
        memory = Times(tuple(moved / rate for rate in times["copy"].values))
        floor = Times(tuple(a + b for a, b in zip(times["products"].values, memory.values, strict=True)))
        at_square = Times(tuple(operations / rate for rate in times["square"].values))
        speedup, over_products = times["loops"].over(times["batched"]), times["batched"].over(times["products"])
        row: Row = {
            "hidden": hidden, "members": config.members, "batch": config.batch, "features": z.shape[1],
            "batched_s": times["batched"], "loops_s": times["loops"], "speedup": speedup,
            "operations": operations, "bytes": moved, "products_s": times["products"], "memory_s": memory,
            "over_products": over_products, "over_floor": times["batched"].over(floor),
            "over_square": times["batched"].over(at_square),
            "rate_products": operations / times["products"].median, "rate_square": times["square"],
            "rate_copy": times["copy"],
        }  # fmt: skip
        if on_gpu:
            row["products_tf32_s"] = times["products_tf32"]
        rows.append(row)
        prototype = {128: " (a prototype: 2.0)", 256: " (a prototype: 1.45)"}.get(hidden, "")
        targets.append(Target(f"five plain loops / batched step, hidden {hidden}{prototype}",
                              speedup.median, 1.0, at_least=True, unit="x"))  # fmt: skip
        if not on_gpu:
            targets.append(Target(f"batched step / its matrix products, hidden {hidden}",
                                  over_products.median, 1.4, unit="x"))  # fmt: skip
        elif hidden == PAPER_SIZE:
            targets.append(Target("batched step, hidden 1024", times["batched"].median * 1e6, 260, unit="us"))
    return Found(rows, targets)


def network_of(space: Space, hidden: int, device: str) -> EnsembleConfig:
    if hidden == PAPER_SIZE:
        return DiffBBO.paper(space, preset="paper", device=device).config
    return replace(DiffBBO(space, device=device).config, hidden=hidden)


# ---- counting ----------------------------------------------------------------------------------------


def products(sizes: Sequence[int], batch: int) -> list[tuple[int, int, int]]:
    """The matrix products of one member's step, `(m, k)` times `(k, n)`, as (m, k, n); see the head of this file."""
    layers = list(pairwise(sizes))
    forward = [(batch, a, b) for a, b in layers]
    of_weights = [(a, batch, b) for a, b in layers]
    of_inputs = [(batch, b, a) for a, b in layers[1:]]
    return forward + of_weights + of_inputs


def multiply_adds(shapes: Sequence[tuple[int, int, int]], members: int) -> int:
    return members * sum(m * k * n for m, k, n in shapes)


def parameters(sizes: Sequence[int], members: int) -> int:
    """Weights and biases."""
    return members * sum(a * b + b for a, b in pairwise(sizes))


# ---- ways to train, each in seconds a step -----------------------------------------------------------


def batched(network: Network, z: Tensor, y: Tensor, steps: int) -> float:
    short = 10
    # A look at the validation set only at the end, of both.
    never = replace(network.config, epochs=10**9, check_every=10**9)

    def train(count: int) -> float:
        generator = torch.Generator(z.device).manual_seed(0)
        shape = Network(network.features, replace(never, max_steps=count))
        return seconds(lambda: fit(shape, z, y, generator), z.device.type)

    spent = -train(short)
    return (spent + train(short + steps)) / steps


class Plain(nn.Module):
    """One member as anybody would write it: the network of `diffusion/network.py` without an axis for members."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.shape = network
        self.layers = nn.ModuleList([nn.Linear(a, b) for a, b in pairwise(network.sizes)])

    def forward(self, x: Tensor, t: Tensor, y: Tensor, keep: Tensor) -> Tensor:
        """eps for `x` `(B, f)` at times `t`, scores `y` and keep flags `(B, 1)`."""
        config, sde = self.shape.config, self.shape.sde
        h: Tensor = self.layers[0](self.shape.inputs(x, t, y, keep))
        for layer in self.layers[1:-1]:
            more = layer(nn.functional.silu(h))
            h = h + more if config.residual else more
        h = self.layers[-1](nn.functional.silu(h))
        return h if config.predict == "eps" else sde.sigma(t) * x + sde.alpha(t) * h


def plain_loops(network: Network, z: Tensor, y: Tensor, steps: int) -> float:
    """M trainings one after the other; seconds for one step of all."""
    config = network.config
    spent = 0.0
    for member in range(config.members):
        torch.manual_seed(member)
        model = Plain(network).to(z.device)
        adam = torch.optim.Adam(model.parameters(), lr=config.learning_rate, fused=True)
        average = [torch.zeros_like(w) for w in model.parameters()]
        step = partial(plain_step, model, adam, average, z, y[:, None], config)
        for _ in range(3):
            step()
        spent += seconds(partial(repeated, step, steps), z.device.type)
    return spent / steps


def repeated(work: Callable[[], None], count: int) -> None:
    for _ in range(count):
        work()


def plain_step(
    model: Plain, adam: torch.optim.Adam, average: list[Tensor], z: Tensor, y: Tensor, config: EnsembleConfig
) -> None:
    drawn = torch.randint(len(z), (config.batch,), device=z.device)
    x0, score = z[drawn], y[drawn]
    t = T_MIN + (1 - T_MIN) * torch.rand_like(score)
    eps = torch.randn_like(x0)
    keep = (torch.rand_like(score) >= config.p_uncond).to(x0.dtype)
    sde = model.shape.sde
    loss = (eps - model(sde.alpha(t) * x0 + sde.sigma(t) * eps, t, score, keep)).square().mean()
    adam.zero_grad()
    loss.backward()
    adam.step()
    if config.ema:
        with torch.no_grad():
            for kept, now in zip(average, model.parameters(), strict=True):
                kept.lerp_(now, 1 - config.ema)


# ---- what the machine can do -------------------------------------------------------------------------


def bare_products(shapes: Sequence[tuple[int, int, int]], members: int, steps: int, device: str) -> float:
    """Seconds for all matrix products of one step."""
    ready = [
        (torch.randn(members, m, k, device=device), torch.randn(members, k, n, device=device),
         torch.empty(members, m, n, device=device))
        for m, k, n in shapes
    ]  # fmt: skip

    def once() -> None:
        for a, b, into in ready:
            torch.bmm(a, b, out=into)

    once()
    return seconds(partial(repeated, once, steps), device) / steps


def square_rate(size: int, device: str) -> float:
    """Operations a second of one large float32 matrix product."""
    a, b = torch.randn(2, size, size, device=device)
    into = torch.empty_like(a)
    torch.mm(a, b, out=into)
    return 2 * size**3 / seconds(lambda: torch.mm(a, b, out=into), device)


def copy_rate(device: str, values: int = 2**25) -> float:
    """Bytes a second, read and written, of copying a large array."""
    a = torch.ones(values, device=device)
    b = torch.empty_like(a)
    b.copy_(a)
    return 2 * 4 * values / seconds(lambda: b.copy_(a), device)


def _with_tf32(work: Callable[[], float], device: str) -> float:
    with tensor_cores(torch.device(device)):
        return work()
