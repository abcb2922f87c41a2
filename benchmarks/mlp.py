"""The network, the batch and the learning rate of the measured training step."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from denselayer import cost

NAME = "784-512-256-10, batch 128"
SHAPE = {"batch": 128, "in": 784, "hidden 1": 512, "hidden 2": 256, "out": 10}
LEARNING_RATE = 0.01


def widths(shape: dict) -> list[int]:
    """The widths of a shape, from the input to the scores."""
    return [width for name, width in shape.items() if name != "batch"]


def start(shape: dict, dtype: str) -> tuple[list, list, np.ndarray, np.ndarray]:
    """Weights drawn after He, biases, the inputs and the classes of one batch: the same in every process."""
    rng = np.random.default_rng(0)
    sizes = widths(shape)
    pairs = list(pairwise(sizes))
    weights = [rng.standard_normal((out, width)) * math.sqrt(2 / width) for width, out in pairs]
    biases = [rng.standard_normal(out) * 0.1 for _, out in pairs]
    x, y = rng.standard_normal((shape["batch"], sizes[0])), rng.integers(0, sizes[-1], shape["batch"])
    weights, biases = ([array.astype(dtype) for array in arrays] for arrays in (weights, biases))
    return weights, biases, x.astype(dtype), y


def operations(shape: dict) -> int:
    """Operations of the products of one step; the bottom layer needs no input gradient."""
    sizes, batch = widths(shape), shape["batch"]
    pairs = list(pairwise(sizes))
    forward = sum(cost.linear_operations(batch, *pair) for pair in pairs)
    bottom = cost.linear_backward_operations(batch, *pairs[0], input_gradient=False)
    return forward + bottom + sum(cost.linear_backward_operations(batch, *pair) for pair in pairs[1:])
