"""The numbers that every variant of a job computes with: the same for all, from a fixed seed."""

from __future__ import annotations

import numpy as np

SHAPES = {
    "1,784,1000": (1, 784, 1000),
    "64,784,256": (64, 784, 256),
    "512,784,1000": (512, 784, 1000),
    "4096,512,512": (4096, 512, 512),
    "4096,1024,4096": (4096, 1024, 4096),
    "8192,64,64": (8192, 64, 64),
    "65536,64,64": (65536, 64, 64),
    "65536,256,16": (65536, 256, 16),
}
"""The shapes of the table of targets by name: N, in, out."""


def layer_shape(name: str) -> dict[str, int]:
    """``"64,784,256"`` as the shape of a job: batch, in_features, out_features."""
    batch, in_features, out_features = map(int, name.split(","))
    return {"batch": batch, "in_features": in_features, "out_features": out_features}


def layer(shape: dict[str, int], dtype: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x (N, in), weight (out, in), bias (out,): about half of the outputs are negative."""
    rng = np.random.default_rng(20)
    batch, in_features, out_features = shape["batch"], shape["in_features"], shape["out_features"]
    x = rng.standard_normal((batch, in_features), dtype=dtype)
    weight = rng.standard_normal((out_features, in_features), dtype=dtype)
    weight *= np.asarray(in_features**-0.5, dtype)
    return x, weight, rng.standard_normal(out_features, dtype=dtype)


def upstream(shape: dict[str, int], dtype: str) -> np.ndarray:
    """d_out (N, out): the gradient that comes from above."""
    rng = np.random.default_rng(21)
    return rng.standard_normal((shape["batch"], shape["out_features"]), dtype=dtype)
