"""A task that times all-reduces of many sizes, and blocks that are split against blocks that are not.

All ranks do everything in the same order, drawn anew in each round. While rank 0 computes a whole block the
others wait, so that the unsplit block has the machine to itself. Run it ``steady``: without it the times are
those of sleeping and waking up.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from denselayer._machine import Onlooker

from .block import Block, SplitBlock
from .steady import loop_seconds

Work = Callable[[], object]


def main(
    rank: int, ranks: int, sizes: list[int], blocks: list[list[int]], rounds: int, min_seconds: float
) -> dict[str, Any]:
    """Nanoseconds by name: ``["all-reduce", bytes]`` and ``[way, rows, width]``, and the others' share.

    Args:
        rank, ranks: who we are, and how many.
        sizes: bytes of the arrays that are added up, multiples of 4.
        blocks: rows and width of each block; the width between is four times as large.
        rounds: samples of each.
        min_seconds: how long a sample takes at least, by repetition.
    """
    works: dict[tuple, Work] = {("all-reduce", size): _all_reduce(size) for size in sizes}
    for rows, width in blocks:
        works |= _ways(rows, width, rank, ranks)
    loops = {name: _calibrate(name, work, rank, min_seconds) for name, work in works.items()}
    taken: dict[tuple, list[int]] = {name: [] for name in works}
    draw, others, onlooker = random.Random(0), [], Onlooker()
    for _ in range(rounds):
        start = time.process_time() + loop_seconds()
        for name in draw.sample(list(works), len(works)):
            taken[name].append(_sample(name, works[name], loops[name], rank))
        used = torch.tensor([time.process_time() + loop_seconds() - start], dtype=torch.float64)
        dist.all_reduce(used)
        others.append(onlooker.look(used.item()))
    return {"ns": [[list(name), times] for name, times in taken.items()], "others": others}


def _all_reduce(size: int) -> Work:
    numbers = torch.zeros(size // 4)
    return lambda: dist.all_reduce(numbers)


def _ways(rows: int, width: int, rank: int, ranks: int) -> dict[tuple, Work]:
    """Forward and backward: the whole block, the parts with their exchanges, and the parts without."""
    generator = torch.Generator().manual_seed(7)
    x, d_out = (torch.randn(rows, width, generator=generator) for _ in range(2))
    torch.manual_seed(7)
    block = Block(width, 4 * width)
    part = Block(width, 4 * width // ranks)
    modules = {"unsplit": block, "split": SplitBlock(block, rank, ranks), "parts alone": part}
    return {(name, rows, width): _both_passes(module, x, d_out) for name, module in modules.items()}


def _both_passes(module: torch.nn.Module, x: Tensor, d_out: Tensor) -> Work:
    wanted = [x.clone().requires_grad_(), *module.parameters()]
    return lambda: torch.autograd.grad(module(wanted[0]), wanted, d_out)


def _calibrate(name: tuple, work: Work, rank: int, min_seconds: float) -> int:
    """Repetitions that make a sample long enough; rank 0 decides for all."""
    _sample(name, work, 1, rank)
    once = torch.tensor([max(_sample(name, work, 3, rank), 1)])
    dist.broadcast(once, 0)
    return max(1, round(min_seconds * 1e9 / once.item()))


def _sample(name: tuple, work: Work, loops: int, rank: int) -> int:
    """Whole nanoseconds for one of ``loops`` repetitions, on this rank."""
    alone = name[0] == "unsplit" and rank != 0
    dist.barrier()
    start = time.perf_counter_ns()
    for _ in range(0 if alone else loops):
        work()
    spent = time.perf_counter_ns() - start
    dist.barrier()
    return round(spent / loops)
