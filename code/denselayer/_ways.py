"""Ways to compute a dense layer with NumPy that are measured: forward, backward, and a training step.

Each is a ``make(shape, dtype, threads)`` that allocates everything and returns a closure; see `Variant`.
"""

from itertools import pairwise

import numpy as np

from . import fused, nn, optim
from .training_step import TrainingStep


def layer_shape(name):
    """``"64,784,256"`` as the shape of a job: batch, in_features, out_features."""
    batch, in_features, out_features = map(int, name.split(","))
    return {"batch": batch, "in_features": in_features, "out_features": out_features}


def layer(shape, dtype):
    """x (N, in), weight (out, in), bias (out,): about half of the outputs are negative."""
    rng = np.random.default_rng(20)
    batch, in_features, out_features = shape["batch"], shape["in_features"], shape["out_features"]
    x = rng.standard_normal((batch, in_features), dtype=dtype)
    weight = rng.standard_normal((out_features, in_features), dtype=dtype)
    weight *= np.asarray(in_features**-0.5, dtype)
    return x, weight, rng.standard_normal(out_features, dtype=dtype)


def upstream(shape, dtype):
    """d_out (N, out): the gradient that comes from above."""
    rng = np.random.default_rng(21)
    return rng.standard_normal((shape["batch"], shape["out_features"]), dtype=dtype)


def plain(shape, dtype, threads):
    """The expression as one writes it; every result is a new array."""
    x, weight, bias = layer(shape, dtype)
    return lambda: np.maximum(x @ weight.T + bias, 0)


def in_place(shape, dtype, threads):
    """The same three steps into one array that is there already."""
    x, weight, bias = layer(shape, dtype)
    out = np.empty((len(x), len(weight)), dtype)

    def run():
        np.matmul(x, weight.T, out=out)
        np.add(out, bias, out=out)
        return np.maximum(out, 0, out=out)

    return run


def product(shape, dtype, threads):
    """The product alone: what is left when the epilogue costs nothing."""
    x, weight, _ = layer(shape, dtype)
    out = np.empty((len(x), len(weight)), dtype)
    return lambda: np.matmul(x, weight.T, out=out)


def fused_forward(shape, dtype, threads):
    """`denselayer.fused.linear_act` with its plan, output and workspace made before."""
    x, weight, bias = layer(shape, dtype)
    out = np.empty((len(x), len(weight)), dtype)
    sizes = shape["batch"], shape["in_features"], shape["out_features"]
    plan = fused.plan(*sizes, activation="relu", dtype=dtype, threads=threads)
    workspace = fused.Workspace(plan)

    def run():
        return fused.linear_act(x, weight, bias, "relu", out=out, workspace=workspace, plan=plan)

    run.note = str(plan)
    return run


def _backward_inputs(shape, dtype):
    x, weight, bias = layer(shape, dtype)
    return x, weight, np.maximum(x @ weight.T + bias, 0), upstream(shape, dtype)


def plain_backward(shape, dtype, threads):
    """The backward pass as one writes it: d_x, d_weight, d_bias."""
    x, weight, out, d_out = _backward_inputs(shape, dtype)

    def run():
        d_z = d_out * (out > 0)
        return d_z @ weight, d_z.T @ x, d_z.sum(axis=0)

    return run


def in_place_backward(shape, dtype, threads):
    """The same steps into arrays that are there already."""
    x, weight, out, d_out = _backward_inputs(shape, dtype)
    mask, d_z = np.empty(out.shape, bool), np.empty_like(out)
    d_x, d_weight, d_bias = np.empty_like(x), np.empty_like(weight), np.empty(len(weight), dtype)

    def run():
        np.greater(out, 0, out=mask)
        np.multiply(d_out, mask, out=d_z)
        np.matmul(d_z, weight, out=d_x)
        np.matmul(d_z.T, x, out=d_weight)
        np.sum(d_z, axis=0, out=d_bias)
        return d_x, d_weight, d_bias

    return run


def backward_products(shape, dtype, threads):
    """The two products of the backward pass alone."""
    x, weight, _, d_out = _backward_inputs(shape, dtype)
    d_x, d_weight = np.empty_like(x), np.empty_like(weight)
    return lambda: (np.matmul(d_out, weight, out=d_x), np.matmul(d_out.T, x, out=d_weight))


def fused_backward(shape, dtype, threads):
    """`denselayer.fused.linear_act_backward` with its plan, outputs and workspace made before."""
    x, weight, out, d_out = _backward_inputs(shape, dtype)
    d_x, d_weight, d_bias = np.empty_like(x), np.empty_like(weight), np.empty(len(weight), dtype)
    sizes = shape["batch"], shape["in_features"], shape["out_features"]
    plan = fused.plan(*sizes, activation="relu", dtype=dtype, threads=threads)
    arrays = {"d_x": d_x, "d_weight": d_weight, "d_bias": d_bias, "workspace": fused.Workspace(plan)}
    return lambda: fused.linear_act_backward(d_out, x, weight, out, "relu", plan=plan, **arrays)


def plain_step(shape, dtype, threads):
    """A training step as one writes it: gradients to zero, forward, loss, backward, update."""
    network, criterion, optimizer, x, y = _training(shape, dtype)

    def run():
        optimizer.zero_grad()
        loss = criterion(network(x), y)
        network.backward(criterion.backward())
        optimizer.step()
        return loss

    return run


def fast_step(shape, dtype, threads):
    """The same step as a `TrainingStep`."""
    network, criterion, optimizer, x, y = _training(shape, dtype)
    step = TrainingStep(network, criterion, optimizer)
    return lambda: step(x, y)


def _training(shape, dtype):
    """An MLP with ReLU and cross-entropy, SGD, and one batch."""
    rng, widths = np.random.default_rng(22), shape["widths"]
    layers = []
    for ins, outs in pairwise(widths):
        layers += [nn.Linear(ins, outs, dtype=dtype, rng=rng), nn.ReLU()]
    network = nn.Sequential(*layers[:-1])
    network[0].input_gradient = False
    optimizer = optim.SGD(network.parameters(), lr=1e-3)
    x = rng.standard_normal((shape["batch"], widths[0]), dtype=dtype)
    return network, nn.CrossEntropyLoss(), optimizer, x, rng.integers(widths[-1], size=shape["batch"])
