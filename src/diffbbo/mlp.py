"""Multilayer perceptrons, M at a time: every weight has a leading member axis.

Weights are a plain list [W_1 (M, in, out), b_1 (M, 1, out), W_2, ...], so that averages and snapshots of them are
evaluated by the same function. Between layers stands SiLU; with `residual` a hidden layer adds to what it gets.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.optim.adamw import adamw

Weights = list[Tensor]


def run(weights: Weights, h: Tensor, residual: bool = False) -> Tensor:
    """Outputs `(M, B, out)` for inputs `(M, B, in)`."""
    last = len(weights) - 2
    for layer in range(0, len(weights), 2):
        before = h
        if layer:
            h = torch.nn.functional.silu(h)
        h = torch.baddbmm(weights[layer + 1], h, weights[layer])
        if residual and 0 < layer < last:
            h = h + before
    return h


def cut(vector: Tensor, like: Sequence[Tensor]) -> Weights:
    """A vector as weights of known shapes, without a copy."""
    pieces = torch.split(vector, [w.numel() for w in like])
    return [piece.view(w.shape) for piece, w in zip(pieces, like, strict=True)]


class Learner:
    """Perceptrons in training on batches of one size, and the gradient of their loss.

    All weights lie in one vector, and so do their gradients and Adam's moments. What a step writes lies ready: nothing
    is allocated in it. On CUDA the factors of products are bfloat16, as is usual in training; weights, their gradients
    and the sums within a product stay float32 (docs/performance.md).
    """

    def __init__(self, weights: Weights, batch: int, residual: bool = False) -> None:
        self.residual = residual
        self.vector = torch.cat([w.flatten() for w in weights])
        self.gradient, self._first, self._second = (torch.zeros_like(self.vector) for _ in range(3))
        self._steps = torch.zeros((), device=self.vector.device)
        self.weights, self.gradients = cut(self.vector, weights), cut(self.gradient, weights)
        self._rounded = self.vector.to(_factors(self.vector))  # the vector itself where nothing is rounded
        self._factors = cut(self._rounded, weights)
        self._sums = [w.new_empty((w.shape[0], batch, w.shape[2])) for w in self._factors[::2]]  # of each layer,
        self._bent = [torch.empty_like(total) for total in self._sums]  # what SiLU makes of them,
        self._slopes = [torch.empty_like(total) for total in self._sums]  # the loss's gradient there,
        self._behind = [torch.empty_like(total) for total in self._sums]  # and behind SiLU
        self._ones = self._rounded.new_ones((weights[0].shape[0], 1, batch))

    @property
    def dtype(self) -> torch.dtype:
        """Of the factors: inputs that have it already need not be rounded again."""
        return self._rounded.dtype

    @torch.no_grad()
    def differentiate(self, h: Tensor, slope: Tensor, offset: Tensor) -> None:
        """For inputs `(M, B, in)` and a loss whose gradient at the outputs is slope * output + offset, as that of any
        loss is that is quadratic in them: its gradient by the weights, into `gradient`.

        It is what autograd finds, with fewer and larger operations.
        """
        if self._rounded is not self.vector:
            self._rounded.copy_(self.vector)
        h = h.to(self.dtype)
        last = len(self._sums) - 1
        for layer, total in enumerate(self._sums):
            w, b = self._factors[2 * layer : 2 * layer + 2]
            if self.residual and 0 < layer < last:
                torch.add(self._sums[layer - 1], b, out=total)
            else:
                total.copy_(b.expand_as(total))
            total.baddbmm_(self._bent[layer - 1] if layer else h, w)
            if layer < last:
                torch.ops.aten.silu.out(total, out=self._bent[layer])
        torch.addcmul(offset, self._sums[-1], slope, out=self._slopes[-1])
        for layer in range(last, -1, -1):
            g = self._slopes[layer]
            _product((self._bent[layer - 1] if layer else h).mT, g, self.gradients[2 * layer])
            _product(self._ones, g, self.gradients[2 * layer + 1])
            if layer:
                behind, before = self._behind[layer - 1], self._slopes[layer - 1]
                torch.bmm(g, self._factors[2 * layer].mT, out=behind)
                torch.ops.aten.silu_backward.grad_input(behind, self._sums[layer - 1], grad_input=before)
                if self.residual and layer < last:
                    before.add_(g)

    @torch.no_grad()
    def descend(self, rate: float | Tensor, decay: float = 0.0) -> None:
        """A step of AdamW along the gradient."""
        adamw(
            [self.vector], [self.gradient], [self._first], [self._second], [], [self._steps], fused=True,
            capturable=self.vector.is_cuda, lr=rate, weight_decay=decay, beta1=0.9, beta2=0.999, eps=1e-8,
            amsgrad=False, maximize=False,
        )  # fmt: skip


def _factors(vector: Tensor) -> torch.dtype:
    """bfloat16 on CUDA, if both the hardware and this torch can multiply it into float32."""
    able = vector.is_cuda and torch.cuda.is_bf16_supported() and hasattr(torch.ops.aten.bmm, "dtype_out")
    return torch.bfloat16 if able and vector.dtype == torch.float32 else vector.dtype


def _product(a: Tensor, b: Tensor, into: Tensor) -> None:
    if a.dtype == into.dtype:
        torch.bmm(a, b, out=into)
    else:
        torch.ops.aten.bmm.dtype_out(a, b, into.dtype, out=into)
