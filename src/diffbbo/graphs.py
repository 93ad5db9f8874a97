"""On CUDA a step that is taken many times is captured once and replayed as one graph: no launch waits for Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

WARM_UP = 3  # steps before a capture: libraries allocate their workspaces in them

Step = Callable[[], None]  # touches tensors of one device alone, changes them in place, never asks for their values


def captured(step: Step, device: torch.device, generator: torch.Generator | None = None) -> tuple[Step, int]:
    """`step` itself on a CPU; on CUDA its replay, and how many steps warming up took.

    A step that draws random numbers draws them from `generator`.
    """
    if device.type != "cuda":
        return step, 0
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM_UP):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    if generator is not None:
        graph.register_generator_state(generator)  # every replay draws new numbers
    with torch.cuda.graph(graph):
        step()
    return graph.replay, WARM_UP


def repeat(step: Step, count: int, device: torch.device, generator: torch.Generator | None = None) -> None:
    """Take a step `count` times, captured where that is possible and worth it."""
    advance, done = (step, 0) if count <= WARM_UP else captured(step, device, generator)
    for _ in range(done, count):
        advance()


@contextmanager
def tensor_cores(device: torch.device) -> Iterator[None]:
    """Float32 products on CUDA in TF32: ten bits of mantissa, sums in float32 (docs/performance.md has what it costs).

    Elsewhere nothing changes, nor does anything outside of the block.
    """
    if device.type != "cuda":
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
