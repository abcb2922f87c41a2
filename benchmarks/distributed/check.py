"""A task that proves: split over processes, a block gives what it gives in one, forward and backward.

Whole numbers make every sum exact in any order, so that equal means equal. With real numbers the differences
are reported in units of the rounding of the largest gradient.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

from .block import Block, SplitBlock

ROWS, WIDTH = 8, 6
HIDDEN = {"by hand": 11, "library": 10, "data parallel": 11}
"""`parallelize_module` wants a width that the processes divide."""
Gradients = dict[str, Tensor]


def main(rank: int, ranks: int) -> dict[str, Any]:
    """For each way to split and each kind of numbers: is it equal, or how far off; and the exchanges."""
    report: dict[str, Any] = {}
    for kind in ("whole", "real"):
        ways = {"by hand": by_hand, "library": library, "data parallel": data_parallel}
        for name, way in ways.items():
            block, x, d_out = _data(kind, HIDDEN[name])
            true = _single(block, x, d_out)
            found, exchanges = way(block, x, d_out, rank, ranks)
            wanted = {key: true[key] for key in found} if name != "by hand" else _parts(true, rank, ranks)
            report[f"{name}, {kind}"] = _compare(found, wanted, kind) | {"exchanges": exchanges}
    report["uneven averages"] = uneven_averages(rank, ranks)
    report["uneven library"] = uneven_library(rank, ranks)
    return report


def _data(kind: str, hidden: int) -> tuple[Block, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(4)
    block = Block(WIDTH, hidden)

    def fill(*shape: int) -> Tensor:
        if kind == "whole":
            return torch.randint(-4, 5, shape, generator=generator).float()
        return torch.randn(shape, generator=generator)

    with torch.no_grad():
        for parameter in block.parameters():
            parameter.copy_(fill(*parameter.shape))
    return block, fill(ROWS, WIDTH), fill(ROWS, WIDTH)


def _single(block: Block, x: Tensor, d_out: Tensor) -> Gradients:
    """Output and gradients in this process alone, nothing split."""
    block.zero_grad()
    x = x.clone().requires_grad_()
    out = block(x)
    out.backward(d_out)
    gradients = {name: parameter.grad for name, parameter in block.named_parameters()}
    return {"out": out.detach(), "x": x.grad} | {name: grad.clone() for name, grad in gradients.items()}


def _parts(true: Gradients, rank: int, ranks: int) -> Gradients:
    """What this rank is to have of the gradients: its rows of the first layer, its columns of the second."""
    axes = {"up.weight": 0, "up.bias": 0, "down.weight": 1}
    return {
        name: grad.tensor_split(ranks, axes[name])[rank] if name in axes else grad
        for name, grad in true.items()
    }


def by_hand(block: Block, x: Tensor, d_out: Tensor, rank: int, ranks: int) -> tuple[Gradients, dict]:
    """The two autograd functions of `SplitBlock`."""
    split = SplitBlock(block, rank, ranks)
    x = x.clone().requires_grad_()
    out, exchanges = _counted(split, x, d_out)
    grads = {name.replace("_", "."): parameter.grad for name, parameter in split.named_parameters()}
    return {"out": out, "x": x.grad} | grads, exchanges


def library(block: Block, x: Tensor, d_out: Tensor, rank: int, ranks: int) -> tuple[Gradients, dict]:
    """`parallelize_module`: ColwiseParallel cuts rows of weight (out, in), RowwiseParallel cuts columns."""
    mesh = init_device_mesh("cpu", (ranks,))
    whole = copy.deepcopy(block)
    whole.zero_grad()
    split = parallelize_module(whole, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    x = x.clone().requires_grad_()
    out, exchanges = _counted(split, x, d_out)
    grads = {name: parameter.grad.full_tensor() for name, parameter in split.named_parameters()}
    return {"out": _plain(out), "x": _plain(x.grad)} | grads, exchanges


def data_parallel(block: Block, x: Tensor, d_out: Tensor, rank: int, ranks: int) -> tuple[Gradients, dict]:
    """DistributedDataParallel averages the gradients; times the number of ranks that is their sum."""
    whole = copy.deepcopy(block)
    whole.zero_grad()
    mine = [tensor.tensor_split((ROWS - 3,) if ranks == 2 else ranks)[rank] for tensor in (x, d_out)]
    _, exchanges = _counted(DistributedDataParallel(whole), *mine)
    return {name: parameter.grad * ranks for name, parameter in whole.named_parameters()}, exchanges


def uneven_averages(rank: int, ranks: int) -> float:
    """How far the average of the ranks' mean gradients is off when the ranks have 1 row and 3 rows."""
    layer = nn.Linear(1, 1, bias=False)
    rows = torch.tensor([[1.0], [5.0], [5.0], [5.0]])
    mine = rows[:1] if rank == 0 else rows[1:]
    wrapped = DistributedDataParallel(layer)
    wrapped(mine).mean().backward()
    return (layer.weight.grad - rows.mean()).item()


def uneven_library(rank: int, ranks: int) -> str:
    """What `parallelize_module` says to a hidden width that the processes do not divide; "" if it works."""
    try:
        library(*_data("whole", HIDDEN["by hand"]), rank, ranks)
    except RuntimeError as error:
        return str(error).splitlines()[0]
    return ""


def _counted(module: nn.Module, x: Tensor, d_out: Tensor) -> tuple[Tensor, dict]:
    """Run forward and backward; the output, and how many exchanges of each kind each pass took."""
    counts = []
    with CommDebugMode() as mode:
        out = module(x)
        out = out.full_tensor() if isinstance(out, DTensor) else out
    counts.append(_names(mode))
    with CommDebugMode() as mode:
        out.backward(d_out)
    counts.append(_names(mode))
    return out.detach(), dict(zip(("forward", "backward"), counts, strict=True))


def _names(mode: CommDebugMode) -> dict[str, int]:
    return {str(operation): times for operation, times in mode.get_comm_counts().items()}


def _plain(tensor: Tensor) -> Tensor:
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def _compare(found: Gradients, true: Gradients, kind: str) -> dict[str, Any]:
    assert found.keys() == true.keys(), (found.keys(), true.keys())
    off = max((found[name] - true[name]).abs().max().item() for name in true)
    size = max(tensor.abs().max().item() for tensor in true.values())
    units = off / (size * torch.finfo(torch.float32).eps)
    return {"equal": all(torch.equal(found[name], true[name]) for name in true), "units": units}
