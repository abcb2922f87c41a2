"""One training step of an MLP in PyTorch: as one writes it, with other optimisers, by hand, compiled."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F

from benchmarks import mlp

Closure = Callable[[], tuple]


def _start(shape: dict, dtype: str, threads: int) -> tuple:
    torch.set_num_threads(threads)
    weights, biases, x, y = mlp.start(shape, dtype)
    tensors = ([torch.from_numpy(array) for array in arrays] for arrays in (weights, biases))
    return *tensors, torch.from_numpy(x), torch.from_numpy(y)


def _with_optimiser(shape: dict, dtype: str, threads: int, *, compiled: bool = False, **options) -> Closure:
    weights, biases, x, y = _start(shape, dtype, threads)
    modules = []
    for weight, bias in zip(weights, biases, strict=True):
        layer = torch.nn.Linear(weight.shape[1], weight.shape[0], dtype=x.dtype)
        layer.weight.data, layer.bias.data = weight, bias
        modules += [layer, torch.nn.ReLU()]
    network = torch.nn.Sequential(*modules[:-1])
    sgd = torch.optim.SGD(network.parameters(), lr=mlp.LEARNING_RATE, **options)
    parameters = list(network.parameters())

    def loss_of() -> torch.Tensor:
        return F.cross_entropy(network(x), y)

    compute = torch.compile(loss_of) if compiled else loss_of

    def call() -> tuple:
        sgd.zero_grad()
        loss = compute()
        loss.backward()
        sgd.step()
        return loss, parameters

    return call


def eager(shape: dict, dtype: str, threads: int) -> Closure:
    """Five lines, as one writes them."""
    return _with_optimiser(shape, dtype, threads)


def foreach(shape: dict, dtype: str, threads: int) -> Closure:
    """The optimiser takes all parameters in one call."""
    return _with_optimiser(shape, dtype, threads, foreach=True)


def fused(shape: dict, dtype: str, threads: int) -> Closure:
    """The optimiser is one kernel."""
    return _with_optimiser(shape, dtype, threads, fused=True)


def compiled(shape: dict, dtype: str, threads: int) -> Closure:
    """Forward and backward through ``torch.compile``, the optimiser one kernel. Needs a C++ compiler."""
    return _with_optimiser(shape, dtype, threads, compiled=True, fused=True)


def manual(shape: dict, dtype: str, threads: int) -> Closure:
    """Forward, backward and update by hand, into tensors that are there; gradients are kept."""
    weights, biases, x, y = _start(shape, dtype, threads)
    rows, last = len(x), len(weights) - 1
    outs = [torch.empty(rows, len(weight), dtype=x.dtype) for weight in weights]
    d_outs = [torch.empty_like(out) for out in outs]
    d_weights, d_biases = ([torch.empty_like(one) for one in group] for group in (weights, biases))
    targets = F.one_hot(y, len(biases[-1])).to(x.dtype)
    parameters = [one for pair in zip(weights, biases, strict=True) for one in pair]
    gradients = [one for pair in zip(d_weights, d_biases, strict=True) for one in pair]

    def forward() -> torch.Tensor:
        below = x
        for weight, bias, out in zip(weights, biases, outs, strict=True):
            torch.addmm(bias, below, weight.T, out=out)
            below = out if out is outs[-1] else out.relu_()
        return torch.log_softmax(below, 1)

    def backward(log_p: torch.Tensor) -> None:
        torch.exp(log_p, out=d_outs[-1]).sub_(targets).div_(rows)
        for i in range(last, -1, -1):
            torch.mm(d_outs[i].T, outs[i - 1] if i else x, out=d_weights[i])
            torch.sum(d_outs[i], 0, out=d_biases[i])
            if i:
                torch.mm(d_outs[i], weights[i], out=d_outs[i - 1]).mul_(outs[i - 1] > 0)

    def call() -> tuple:
        with torch.inference_mode():
            log_p = forward()
            loss = F.nll_loss(log_p, y)
            backward(log_p)
            torch._foreach_add_(parameters, gradients, alpha=-mlp.LEARNING_RATE)
        return loss, parameters

    return call
