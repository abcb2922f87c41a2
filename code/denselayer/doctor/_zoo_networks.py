"""Activations alone and small networks, as classes and functions, with pieces that a fault replaces."""

import numpy as np

from ._zoo_pieces import slope, value


def activation_class(activation, gate, spoils=False):
    """Make the class of an activation with ``forward(z)`` and ``backward(d_out)``."""

    class Activation:
        def forward(self, z):
            self.z = z
            return value(activation, z)

        def backward(self, d_out):
            if spoils:
                d_out *= slope(activation, self.z)
                return d_out
            return gate(activation, d_out, self.z)

    return Activation


def activation_functions(activation, gate, spoils=False):
    """Make ``forward(z)`` and ``backward(d_out, z)``."""

    def forward(z):
        return value(activation, z)

    def backward(d_out, z):
        if spoils:
            d_out *= slope(activation, z)
            return d_out
        return gate(activation, d_out, z)

    return forward, backward


def tied_class(in_features, out_features, dtype=np.float64, overwritten=False, activation="tanh"):
    """Make an autoencoder that uses one weight twice: x to ``out_features`` and back to ``in_features``."""

    class Tied:
        def __init__(self):
            rng = np.random.default_rng(3)
            self.W = (rng.normal(size=(out_features, in_features)) / np.sqrt(in_features)).astype(dtype)
            self.b1 = rng.normal(size=out_features).astype(dtype)
            self.b2 = rng.normal(size=in_features).astype(dtype)

        def forward(self, x):
            self.x = x
            self.z = x @ self.W.T + self.b1
            self.h = value(activation, self.z)
            return self.h @ self.W + self.b2

        def backward(self, d_out):
            self.dW = self.h.T @ d_out
            self.db2 = d_out.sum(axis=0)
            d_z = (d_out @ self.W.T) * slope(activation, self.z)
            first = d_z.T @ self.x
            self.dW = first if overwritten else self.dW + first
            self.db1 = d_z.sum(axis=0)
            return d_z @ self.W

    return Tied


def network_class(in_features, hidden, out_features, dtype=np.float64, activation="relu", scale=1.0):
    """Make a network of two layers with ``W1, b1, W2, b2`` and their gradients in ``grads``."""

    class Network:
        def __init__(self):
            rng = np.random.default_rng(5)
            self.W1 = (scale * rng.normal(size=(in_features, hidden)) / np.sqrt(in_features)).astype(dtype)
            self.b1 = (scale * rng.normal(size=hidden)).astype(dtype)
            self.W2 = (rng.normal(size=(hidden, out_features)) / np.sqrt(hidden)).astype(dtype)
            self.b2 = rng.normal(size=out_features).astype(dtype)
            self.grads = {}

        def forward(self, x):
            self.x, self.z = x, x @ self.W1 + self.b1
            self.h = value(activation, self.z)
            return self.h @ self.W2 + self.b2

        def backward(self, d_out):
            d_z = (d_out @ self.W2.T) * slope(activation, self.z)
            self.grads = {
                "W1": self.x.T @ d_z,
                "b1": d_z.sum(axis=0),
                "W2": self.h.T @ d_out,
                "b2": d_out.sum(axis=0),
            }
            return d_z @ self.W1.T

    return Network
