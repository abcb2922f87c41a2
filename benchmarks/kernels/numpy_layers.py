"""A dense layer with ReLU in NumPy: plain, in place, the bare product, and fused; forward and backward."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks import inputs
from denselayer import fused

Closure = Callable[[], object]


def plain(shape: dict, dtype: str, threads: int) -> Closure:
    """The expression as one writes it; every result is a new array."""
    x, weight, bias = inputs.layer(shape, dtype)
    return lambda: np.maximum(x @ weight.T + bias, 0)


def in_place(shape: dict, dtype: str, threads: int) -> Closure:
    """The same three steps into one array that is there already."""
    x, weight, bias = inputs.layer(shape, dtype)
    out = np.empty((len(x), len(weight)), dtype)

    def run() -> np.ndarray:
        np.matmul(x, weight.T, out=out)
        np.add(out, bias, out=out)
        return np.maximum(out, 0, out=out)

    return run


def product(shape: dict, dtype: str, threads: int) -> Closure:
    """The product alone: what is left when the epilogue costs nothing."""
    x, weight, _ = inputs.layer(shape, dtype)
    out = np.empty((len(x), len(weight)), dtype)
    return lambda: np.matmul(x, weight.T, out=out)


def fused_forward(shape: dict, dtype: str, threads: int) -> Closure:
    """`denselayer.fused.linear_act` with its plan, output and workspace made before."""
    x, weight, bias = inputs.layer(shape, dtype)
    out = np.empty((len(x), len(weight)), dtype)
    sizes = shape["batch"], shape["in_features"], shape["out_features"]
    plan = fused.plan(*sizes, activation="relu", dtype=dtype, threads=threads)
    workspace = fused.Workspace(plan)

    def run() -> np.ndarray:
        return fused.linear_act(x, weight, bias, "relu", out=out, workspace=workspace, plan=plan)

    run.note = str(plan)
    return run


def _backward_inputs(shape: dict, dtype: str) -> tuple[np.ndarray, ...]:
    x, weight, bias = inputs.layer(shape, dtype)
    return x, weight, np.maximum(x @ weight.T + bias, 0), inputs.upstream(shape, dtype)


def plain_backward(shape: dict, dtype: str, threads: int) -> Closure:
    """The backward pass as one writes it: d_x, d_weight, d_bias."""
    x, weight, out, d_out = _backward_inputs(shape, dtype)

    def run() -> tuple[np.ndarray, ...]:
        d_z = d_out * (out > 0)
        return d_z @ weight, d_z.T @ x, d_z.sum(axis=0)

    return run


def in_place_backward(shape: dict, dtype: str, threads: int) -> Closure:
    """The same steps into arrays that are there already."""
    x, weight, out, d_out = _backward_inputs(shape, dtype)
    mask, d_z = np.empty(out.shape, bool), np.empty_like(out)
    d_x, d_weight, d_bias = np.empty_like(x), np.empty_like(weight), np.empty(len(weight), dtype)

    def run() -> tuple[np.ndarray, ...]:
        np.greater(out, 0, out=mask)
        np.multiply(d_out, mask, out=d_z)
        np.matmul(d_z, weight, out=d_x)
        np.matmul(d_z.T, x, out=d_weight)
        np.sum(d_z, axis=0, out=d_bias)
        return d_x, d_weight, d_bias

    return run


def backward_products(shape: dict, dtype: str, threads: int) -> Closure:
    """The two products of the backward pass alone."""
    x, weight, _, d_out = _backward_inputs(shape, dtype)
    d_x, d_weight = np.empty_like(x), np.empty_like(weight)
    return lambda: (np.matmul(d_out, weight, out=d_x), np.matmul(d_out.T, x, out=d_weight))


def fused_backward(shape: dict, dtype: str, threads: int) -> Closure:
    """`denselayer.fused.linear_act_backward` with its plan, outputs and workspace made before."""
    x, weight, out, d_out = _backward_inputs(shape, dtype)
    d_x, d_weight, d_bias = np.empty_like(x), np.empty_like(weight), np.empty(len(weight), dtype)
    sizes = shape["batch"], shape["in_features"], shape["out_features"]
    plan = fused.plan(*sizes, activation="relu", dtype=dtype, threads=threads)
    arrays = {"d_x": d_x, "d_weight": d_weight, "d_bias": d_bias, "workspace": fused.Workspace(plan)}
    return lambda: fused.linear_act_backward(d_out, x, weight, out, "relu", plan=plan, **arrays)
