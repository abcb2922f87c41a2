"""Layers put together from pieces: as a class, as two functions, in any storage and spelling."""

from dataclasses import dataclass

import numpy as np

from ._zoo_pieces import LEARNING_RATE, Pieces, slope, value

SPELLINGS = {
    "book": ("weight", "bias", "d_weight", "d_bias"),
    "short": ("W", "b", "dW", "db"),
    "long": ("weights", "bias", "grad_weights", "grad_bias"),
    "dict": ("W", "b", "grads", "grads"),
    "parameters": ("weight", "bias", "grad", "grad"),
    "returned": ("W", "b", "", ""),
}


@dataclass(frozen=True)
class Plan:
    """What a layer computes: its pieces, its activation, and how its arrays are laid out."""

    pieces: Pieces
    activation: str
    storage: str
    has_bias: bool = True
    zero_bias: bool = False
    """Whether the bias starts at zero; with an input of zeros the pre-activations are zero too."""

    def rows(self, array):
        """The same array with a sample in each row; its own inverse."""
        return array.T if self.storage == "augmented" else array

    def pack(self, weight, bias):
        """Lay out a weight (out, in) and a bias (out,) as the layer stores them."""
        if self.storage == "augmented":
            return {"weight": np.hstack([bias[:, None], weight])}
        stored = {"weight": weight.T.copy() if self.storage == "in_out" else weight}
        return stored | {"bias": bias} if self.has_bias else stored

    def unpack(self, stored):
        """The weight (out, in) and the bias (out,), as views."""
        weight = stored["weight"]
        if self.storage == "augmented":
            return weight[:, 1:], weight[:, 0]
        bias = stored["bias"] if self.has_bias else np.zeros((), weight.dtype)
        return weight.T if self.storage == "in_out" else weight, bias

    def draw_input(self, n, in_features, rng, dtype):
        """Draw an input; where the bias is zero, its first row is zero, at the kink of a ReLU."""
        x = rng.normal(size=(n, in_features)).astype(dtype)
        x[0] *= not self.zero_bias
        return self.rows(x)

    def draw(self, in_features, out_features, rng, dtype, scale=1.0):
        """Draw parameters."""
        weight = rng.normal(size=(out_features, in_features)) * scale / np.sqrt(in_features)
        bias = rng.uniform(0.2, 0.8, out_features) * rng.choice([-1.0, 1.0], out_features)
        bias *= not self.zero_bias
        return self.pack(weight.astype(dtype), bias.astype(dtype))

    def forward(self, x, stored, rng=None):
        """Return the output and the pre-activation, both as the layer hands them out."""
        pieces = self.pieces
        if pieces.centres:
            x -= 0.5
        weight, bias = (pieces.entering(array) for array in self.unpack(stored))
        z = self.rows(pieces.entering(x)) @ weight.T + bias
        out = value(self.activation, z)
        if pieces.mixing:
            out = out - pieces.mixing * out.mean(axis=0)
        if pieces.noise:
            out = out + pieces.noise * rng.normal(size=out.shape)
        return pieces.leaving(self.rows(out), x), self.rows(z)

    def backward(self, d_out, x, z, stored):
        """Return d_x and the gradients of the parameters, as the layer hands them out."""
        pieces = self.pieces
        if pieces.breaks:
            raise IndexError("list index out of range")
        d_z, rows = self._gated(d_out, z), self.rows(pieces.entering(x))
        weight, _ = self.unpack(stored)
        d_weight = self._scaled("weight", pieces.weight(d_z, rows), len(rows))
        d_bias = self._scaled("bias", pieces.bias(d_z, rows), len(rows))
        d_x = self._scaled("x", pieces.input(d_z, pieces.entering(weight)), len(rows))
        grads = self.pack(d_weight, d_bias)
        grads["weight"] = pieces.shape(grads["weight"])
        d_x = self.rows(d_x)
        if pieces.reuses_input:
            x[...] = d_x
        return d_x, grads

    def _gated(self, d_out, z):
        pieces = self.pieces
        upstream, z = self.rows(d_out), self.rows(z)
        if pieces.spoils_upstream:
            upstream *= slope(self.activation, z).astype(upstream.dtype)
            return upstream
        upstream = pieces.entering(upstream)
        if pieces.mixing:
            upstream = upstream - pieces.mixing * upstream.mean(axis=0)
        return pieces.gate(self.activation, upstream, z)

    def _scaled(self, name, gradient, n):
        for function in self.pieces.scale.get(name, ()):
            gradient = gradient * gradient.dtype.type(function(n))
        return gradient


class Array:
    """A parameter as an object with ``data`` and ``grad``."""

    def __init__(self, data):
        self.data, self.grad = data, None


class Layer:
    """A layer as a class; `layer_class` gives it a plan, sizes and the names of its attributes."""

    plan: Plan
    spelling: str
    returns = False
    scale = 1.0
    shared = None

    def __init__(self, in_features, out_features, dtype=np.float64, seed=0):
        self._rng = np.random.default_rng(seed)
        self.lr = LEARNING_RATE
        self._kept = self._out = self._d_x = None
        self._queue = []
        for name, array in self.plan.draw(in_features, out_features, self._rng, dtype, self.scale).items():
            wrapped = Array(array) if self.spelling == "parameters" else array
            setattr(self, self._name(name), wrapped)
        if self.spelling == "dict":
            self.grads = {}
        if self.plan.pieces.adds:
            for name, array in self._stored().items():
                self._store(name, np.zeros_like(array) if self.plan.pieces.starts == "zeros" else None)

    def forward(self, x):
        out, z = self.plan.forward(x, self._stored(), self._rng)
        cache = self.plan.pieces.cache
        if self.plan.pieces.copies:
            x = x.copy()
        if cache == "shared":
            type(self).shared = (x, z)
        elif cache == "queue":
            self._queue.append((x, z))
        elif cache == "each" or self._kept is None:
            self._kept = (x, z)
        return self._in_buffer("out", out)

    def backward(self, d_out):
        pieces = self.plan.pieces
        x, z = self._cached()
        d_x, grads = self.plan.backward(d_out, x, z, self._stored())
        for name, gradient in grads.items():
            before = self._gradient(name) if pieces.adds else None
            self._store(name, gradient if before is None else before + gradient)
        if pieces.updates:
            weight, _ = self.plan.unpack(self._stored())
            weight *= 1 - self.lr
        d_x = self._in_buffer("x", d_x)
        return (d_x, *grads.values()) if self.returns or self.spelling == "returned" else d_x

    def _cached(self):
        cache = self.plan.pieces.cache
        if cache == "queue":
            return self._queue.pop(0)
        return self.shared if cache == "shared" else self._kept

    def _in_buffer(self, name, result):
        if self.plan.pieces.buffer != name:
            return result
        kept = self._out if name == "out" else self._d_x
        if kept is None or kept.shape != result.shape:
            kept = np.empty_like(result)
        kept[...] = result
        if name == "out":
            self._out = kept
        else:
            self._d_x = kept
        return kept

    def _name(self, name):
        return SPELLINGS[self.spelling][("weight", "bias").index(name)]

    def _stored(self):
        names = ("weight", "bias") if self.plan.has_bias and self.plan.storage != "augmented" else ("weight",)
        arrays = {name: getattr(self, self._name(name)) for name in names}
        if self.spelling == "parameters":
            return {name: wrapped.data for name, wrapped in arrays.items()}
        return arrays

    def _gradient(self, name):
        if self.spelling == "parameters":
            return getattr(self, self._name(name)).grad
        if self.spelling == "dict":
            return self.grads[self._name(name)]
        return getattr(self, SPELLINGS[self.spelling][2 + ("weight", "bias").index(name)])

    def _store(self, name, gradient):
        if self.spelling == "parameters":
            getattr(self, self._name(name)).grad = gradient
        elif self.spelling == "dict":
            self.grads[self._name(name)] = gradient
        elif self.spelling != "returned":
            setattr(self, SPELLINGS[self.spelling][2 + ("weight", "bias").index(name)], gradient)


class ClearingLayer(Layer):
    """A layer that adds to its gradients, and has a method that clears them."""

    def zero_grad(self):
        for name, array in self._stored().items():
            self._store(name, np.zeros_like(array))


def layer_class(plan, spelling="book", in_features=3, out_features=4, dtype=np.float64, returns=False,
                scale=1.0):  # fmt: skip
    """Make a class of layers that can be built with ``Class()`` or ``Class(in_features, out_features)``."""
    base = ClearingLayer if plan.pieces.clears else Layer
    default = np.dtype(dtype).type

    def __init__(self, in_features=in_features, out_features=out_features, dtype=default, seed=0):
        base.__init__(self, in_features, out_features, dtype, seed)

    members = {"plan": plan, "spelling": spelling, "returns": returns, "scale": scale, "__init__": __init__}
    return type("Dense", (base,), members)


def layer_functions(plan, style="cache"):
    """Make ``(forward, backward)`` in one of the styles of `STYLES`."""
    parts = ("weight", "bias") if plan.has_bias and plan.storage != "augmented" else ("weight",)
    rng = np.random.default_rng()

    def run_forward(x, *arrays):
        stored = dict(zip(parts, arrays, strict=True))
        out, z = plan.forward(x, stored, rng)
        return out, (x, z, stored)

    def run_backward(d_out, x, z, stored):
        d_x, grads = plan.backward(d_out, x, z, stored)
        return (d_x, *(grads[part] for part in parts))

    return STYLES[style](plan, run_forward, run_backward, len(parts) == 2)


def _with_cache(plan, run_forward, run_backward, has_bias):
    """``forward(x, weight, bias)`` with a cache, and ``backward(d_out, cache)`` with a tuple."""

    def backward(d_out, cache):
        return run_backward(d_out, *cache)

    def forward(x, weight, bias):
        return run_forward(x, weight, bias)

    def forward_without(x, weight):
        return run_forward(x, weight)

    return forward if has_bias else forward_without, backward


def _with_dict(plan, run_forward, run_backward, has_bias):
    """``forward(X, W, b)`` with a dict as cache, and ``backward(dY, cache)`` with a dict of gradients."""

    def backward(dY, cache):
        names = ("dX", "dW", "db") if has_bias else ("dX", "dW")
        return dict(zip(names, run_backward(dY, *cache["all"]), strict=True))

    def forward(X, W, b):
        out, kept = run_forward(X, W, b)
        return out, {"all": kept}

    def forward_without(X, W):
        out, kept = run_forward(X, W)
        return out, {"all": kept}

    return forward if has_bias else forward_without, backward


def _given(plan, run_forward, run_backward, has_bias):
    """``forward(x, weight, bias)`` and ``backward(d_out, x, weight, bias)``: all arrays are given again."""

    def again(d_out, x, *arrays):
        stored = dict(zip(("weight", "bias")[: len(arrays)], arrays, strict=True))
        weight, bias = plan.unpack(stored)
        z = plan.rows(plan.rows(x) @ weight.T + bias)
        return run_backward(d_out, x, z, stored)

    def forward(x, weight, bias):
        return run_forward(x, weight, bias)[0]

    def backward(d_out, x, weight, bias):
        return again(d_out, x, weight, bias)

    def forward_without(x, weight):
        return run_forward(x, weight)[0]

    def backward_without(d_out, x, weight):
        return again(d_out, x, weight)

    return (forward, backward) if has_bias else (forward_without, backward_without)


STYLES = {"cache": _with_cache, "dict": _with_dict, "given": _given}
