"""The package's own layers, networks and optimisers as they are, and three ways to a product of few rows."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakValueDictionary

import numpy as np

from denselayer import functional as F
from denselayer import nn, optim
from denselayer.checkpoint import checkpointed

Closure = Callable[[], object]
_weights: WeakValueDictionary[tuple, np.ndarray] = WeakValueDictionary()


def network(width: int, depth: int, dtype: str, *, activation: bool = True) -> nn.Sequential:
    """``depth`` square layers of ``width``, each with a ReLU, all needing the gradient of their input."""
    rng, modules = np.random.default_rng(30), []
    for _ in range(depth):
        modules.append(nn.Linear(width, width, rng=rng, dtype=dtype))
        modules += [nn.ReLU()] if activation else []
    return nn.Sequential(*modules)


def rows(batch: int, width: int, dtype: str, seed: int = 31) -> np.ndarray:
    """A batch of random rows."""
    return np.random.default_rng(seed).standard_normal((batch, width), dtype=dtype)


def _sizes(shape: dict, size: dict) -> tuple[int, int, int]:
    sizes = {"depth": 1} | shape | size
    return sizes["batch"], sizes["width"], sizes["depth"]


def forward(shape: dict, dtype: str, threads: int, **size: int) -> Closure:
    """Forward pass; a network of one layer has no activation."""
    batch, width, depth = _sizes(shape, size)
    model, x = (
        network(width, depth, dtype, activation=depth > 1 or "depth" in size),
        rows(batch, width, dtype),
    )
    return lambda: model(x)


def backward(shape: dict, dtype: str, threads: int, **size: int) -> Closure:
    """Backward pass after one forward pass: all gradients, as in the first step after `zero_grad`."""
    batch, width, depth = _sizes(shape, size)
    model, x = (
        network(width, depth, dtype, activation=depth > 1 or "depth" in size),
        rows(batch, width, dtype),
    )
    d_out = rows(batch, width, dtype, seed=32)
    model(x)

    def run() -> list[np.ndarray]:
        model.zero_grad()
        return [model.backward(d_out), *(parameter.grad for parameter in model.parameters())]

    return run


def relu_backward(shape: dict, dtype: str, threads: int, *, signs: str) -> Closure:
    """Backward pass of ReLU, whose input has signs drawn for every entry, or alike in all rows."""
    z = rows(shape["batch"], shape["width"], dtype)
    z = {"drawn": z, "alike": np.tile(z[:1], (len(z), 1))}[signs]
    d_out = rows(shape["batch"], shape["width"], dtype, seed=32)
    return lambda: F.relu_backward(d_out, z)


def update(shape: dict, dtype: str, threads: int, *, optimizer: str, **size: int) -> Closure:
    """One step of an optimiser, with a rate so small that the weights stay ordinary numbers."""
    _, width, depth = _sizes({"batch": 1} | shape, size)
    model = network(width, depth, dtype)
    for parameter in model.parameters():
        parameter.grad = np.full(parameter.shape, 0.01, dtype)
    step = {"sgd": optim.SGD, "adam": optim.Adam}[optimizer](model.parameters(), lr=1e-9).step

    def run() -> list[np.ndarray]:
        step()
        return [parameter.data for parameter in model.parameters()]

    return run


def training_step(shape: dict, dtype: str, threads: int, *, every: int) -> Closure:
    """Forward, backward and update of a deep network with checkpoints; ``every`` of 0 is without them."""
    batch, width, depth = _sizes(shape, {})
    plain = network(width, depth, dtype)
    model = checkpointed(plain, every) if every else plain
    optimizer = optim.SGD(model.parameters(), lr=1e-9)
    x, d_out = rows(batch, width, dtype), rows(batch, width, dtype, seed=32)

    def run() -> list[np.ndarray]:
        optimizer.zero_grad()
        out = model(x)
        d_x = model.backward(d_out)
        optimizer.step()
        return [out, d_x, *(parameter.grad for parameter in model.parameters())]

    return run


def _weight(width: int, dtype: str) -> np.ndarray:
    """A square weight; the variants of one process share it."""
    weight = _weights.get((width, dtype))
    if weight is None:
        weight = _weights[width, dtype] = rows(width, width, dtype, seed=33)
    return weight


def product(shape: dict, dtype: str, threads: int, *, batch: int) -> Closure:
    """``x @ weight.T``, as the layer computes it."""
    weight, x = _weight(shape["width"], dtype), rows(batch, shape["width"], dtype)
    return lambda: x @ weight.T


def weight_first(shape: dict, dtype: str, threads: int, *, batch: int) -> Closure:
    """``(weight @ x.T).T``: the same numbers, with the large matrix as the first operand."""
    weight, x = _weight(shape["width"], dtype), rows(batch, shape["width"], dtype)
    return lambda: (weight @ x.T).T


def row_by_row(shape: dict, dtype: str, threads: int, *, batch: int) -> Closure:
    """A product of matrix and vector for each row: the weights are read once for every row."""
    weight, x = _weight(shape["width"], dtype), rows(batch, shape["width"], dtype)
    out = np.empty_like(x)

    def run() -> np.ndarray:
        for row, result in zip(x, out, strict=True):
            np.matmul(weight, row, out=result)
        return out

    return run
