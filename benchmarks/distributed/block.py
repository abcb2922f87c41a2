"""An MLP block split over processes, written by hand: one all-reduce forward, one backward."""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn


class ToAll(torch.autograd.Function):
    """Forward nothing happens: every process has the input. Backward the input gradients are added up."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx, d_out: Tensor) -> Tensor:
        total = d_out.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return total


class Sum(torch.autograd.Function):
    """Forward the partial sums are added up. Backward nothing happens: every process has the gradient."""

    @staticmethod
    def forward(ctx, partial: Tensor) -> Tensor:
        total = partial.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, d_out: Tensor) -> Tensor:
        return d_out


class Block(nn.Module):
    """Linear, ReLU, linear in one process."""

    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.relu(self.up(x)))


class SplitBlock(nn.Module):
    """The part of a `Block` that process ``rank`` of ``ranks`` holds.

    The first weight (hidden, width) is cut by its rows, the second (width, hidden) by its columns. The last
    bias is on every process and added after the sum, so that it counts once.
    """

    def __init__(self, block: Block, rank: int, ranks: int):
        super().__init__()
        self.up_weight = _part(block.up.weight, rank, ranks, 0)
        self.up_bias = _part(block.up.bias, rank, ranks, 0)
        self.down_weight = _part(block.down.weight, rank, ranks, 1)
        self.down_bias = nn.Parameter(block.down.bias.detach().clone())

    def forward(self, x: Tensor) -> Tensor:
        hidden = F.relu(F.linear(ToAll.apply(x), self.up_weight, self.up_bias))
        return Sum.apply(F.linear(hidden, self.down_weight)) + self.down_bias


def _part(whole: Tensor, rank: int, ranks: int, axis: int) -> nn.Parameter:
    return nn.Parameter(whole.detach().tensor_split(ranks, axis)[rank].contiguous())
