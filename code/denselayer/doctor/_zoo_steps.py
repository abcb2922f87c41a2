"""Training steps made to order: a small network, a loss and an update, with the faults of their order."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ._zoo_pieces import slope, value


@dataclass
class Order:
    """What happens in a step; as it stands, what should."""

    d_out: Callable = lambda y, t: 2 * (y - t) / y.size
    factor: Callable = lambda y: 1.0
    """What all gradients are multiplied by, from the outputs."""
    rate: Callable = lambda lr: lr
    """The step length that the update makes of the learning rate."""
    keeps_sum: bool = False
    clears: str = "before"
    """``"before"`` the backward pass, or ``"too early"``: between it and the update."""
    updates_first: bool = False
    """The upper weight is updated before the gradient is sent back through it."""
    bias_rows: bool = False
    """The bias is updated with a row for each sample."""
    decay: float = 0.0
    memory: str = "none"
    """What the update remembers: ``"none"``, ``"momentum"`` or ``"adam"``."""


def _install(**changes):
    def install(order):
        for name, piece in changes.items():
            setattr(order, name, piece)

    return install


STEP_FAULTS = {
    "averaged-twice": ("factor", _install(factor=lambda y: 1 / len(y))),
    "summed-not-averaged": ("factor", _install(factor=lambda y: y.size)),
    "factor-two": ("factor", _install(factor=lambda y: 0.5)),
    "sign-flipped": ("factor", _install(factor=lambda y: -1.0)),
    "learning-rate-inside": ("rate", _install(rate=lambda lr: lr * lr)),
    "other-loss": ("d_out", _install(d_out=lambda y, t: np.sign(y - t) / y.size)),
    "not-cleared": ("clearing", _install(keeps_sum=True)),
    "cleared-too-early": (
        "clearing factor rate d_out updates_first bias_rows",
        _install(clears="too early"),
    ),
    "updated-weight-used": ("updates_first", _install(updates_first=True)),
    "bias-grown": ("bias_rows", _install(bias_rows=True)),
}
"""For each defect the pieces that it takes, and how it is installed."""
OF_THE_LOSS = ("summed-not-averaged", "factor-two", "other-loss")
"""Defects of the part that an object with forward, backward and step leaves to others."""


class Network:
    """Two layers, ``W1, b1, W2, b2``, the weights (in, out), with a mean squared error."""

    def __init__(self, order, activation="tanh"):
        self.order, self.activation = order, activation
        self.sums, self.first, self.second, self.count = {}, {}, {}, 0

    def predict(self, params, x):
        """The outputs."""
        return self.forward(params, x)[0]

    def forward(self, params, x):
        """The outputs, with what the backward pass needs."""
        z = x @ params["W1"] + params["b1"]
        h = value(self.activation, z)
        return h @ params["W2"] + params["b2"], (z, h)

    def loss(self, params, x, t):
        """The mean squared error, over all entries."""
        return np.mean((self.predict(params, x) - t) ** 2)

    def backward(self, params, x, kept, d_out, lr):
        """The gradients that the person computes from the gradient of the outputs."""
        order, (z, h) = self.order, kept
        d_out = (d_out * order.factor(d_out)).astype(h.dtype)
        upper = params["W2"]
        d_upper = h.T @ d_out
        if order.updates_first:
            upper = upper - order.rate(lr) * d_upper
        d_z = (d_out @ upper.T) * slope(self.activation, z)
        return {
            "W1": x.T @ d_z,
            "b1": d_z.sum(axis=0),
            "W2": d_upper,
            "b2": d_out if order.bias_rows else d_out.sum(axis=0),
        }

    def directions(self, params, x, t, lr):
        """What is subtracted from the parameters, before the learning rate."""
        y, kept = self.forward(params, x)
        return self.update(params, self.backward(params, x, kept, self.order.d_out(y, t), lr))

    def update(self, params, grads):
        """What the update makes of the gradients."""
        order = self.order
        if order.keeps_sum:
            grads = {name: self.sums.get(name, 0) + gradient for name, gradient in grads.items()}
            self.sums = grads
        if order.clears == "too early":
            grads = {name: np.zeros_like(gradient) for name, gradient in grads.items()}
        if order.decay:
            grads = {name: gradient + order.decay * params[name] for name, gradient in grads.items()}
        if order.memory == "momentum":
            self.first = grads = {n: 0.9 * self.first.get(n, 0) + g for n, g in grads.items()}
        return self._adam(grads) if order.memory == "adam" else grads

    def _adam(self, grads):
        self.count += 1
        self.first = {n: 0.9 * self.first.get(n, 0) + 0.1 * g for n, g in grads.items()}
        self.second = {n: 0.999 * self.second.get(n, 0) + 0.001 * g**2 for n, g in grads.items()}
        slow, fast = 1 - 0.9**self.count, 1 - 0.999**self.count
        return {n: self.first[n] / slow / (np.sqrt(self.second[n] / fast) + 1e-8) for n in grads}


def returning_step(network):
    """``step(params, x, t, lr)`` that returns new parameters."""

    def step(params, x, t, lr):
        directions = network.directions(params, x, t, lr)
        rate = network.order.rate(lr)
        return {name: params[name] - rate * directions[name] for name in params}

    return step


def changing_step(network):
    """``step(params, x, t, lr)`` that changes the dict of parameters and returns the loss."""

    def step(params, x, t, lr):
        loss = network.loss(params, x, t)
        rate = network.order.rate(lr)
        for name, direction in network.directions(params, x, t, lr).items():
            params[name] = params[name] - rate * direction
        return loss

    return step


def model_class(network, params):
    """A class with ``forward``, ``backward``, ``step`` and, where nothing is forgotten, ``zero_grad``."""
    order = network.order

    class Model:
        def __init__(self):
            self.lr, self.grads = 0.1, {name: np.zeros_like(array) for name, array in params.items()}
            for name, array in params.items():
                setattr(self, name, array.copy())

        def _params(self):
            return {name: getattr(self, name) for name in params}

        def forward(self, x):
            out, self.kept = network.forward(self._params(), x)
            self.x = x
            return out

        def backward(self, d_out):
            new = network.backward(self._params(), self.x, self.kept, d_out, self.lr)
            self.grads = {name: self.grads[name] + gradient for name, gradient in new.items()}

        def step(self):
            rate = order.rate(self.lr)
            if order.clears == "too early":
                self.grads = {name: np.zeros_like(array) for name, array in self.grads.items()}
            for name, gradient in self.grads.items():
                setattr(self, name, getattr(self, name) - rate * gradient)

    class Clearing(Model):
        def zero_grad(self):
            self.grads = {name: np.zeros_like(array) for name, array in params.items()}

    return Model if order.keeps_sum else Clearing


def draw(seed, dtype=np.float64, inputs=3, hidden=4, outputs=2, n=8):
    """Draw parameters and a batch."""
    rng = np.random.default_rng(seed)
    params = {
        "W1": rng.normal(size=(inputs, hidden)),
        "b1": rng.normal(size=hidden),
        "W2": rng.normal(size=(hidden, outputs)),
        "b2": rng.normal(size=outputs),
    }
    x, t = rng.normal(size=(n, inputs)), rng.normal(size=(n, outputs))
    return {name: array.astype(dtype) for name, array in params.items()}, x.astype(dtype), t.astype(dtype)
