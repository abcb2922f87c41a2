"""The pieces of a right layer, and for each defect the piece that a fault puts in their place."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from .. import activations

ACTIVATIONS = ("identity", "relu", "leaky_relu", "sigmoid", "tanh", "softplus", "gelu", "silu")
CURVED = ("leaky_relu", "sigmoid", "tanh", "softplus", "gelu", "silu")
OTHERS = {
    "hard tanh": (lambda z: np.clip(z, -1, 1), lambda z: np.abs(z) < 1),
    "relu6": (lambda z: np.clip(z, 0, 6), lambda z: (z > 0) & (z < 6)),
    "hard sigmoid": (lambda z: np.clip(z / 6 + 0.5, 0, 1), lambda z: (np.abs(z) < 3) / 6),
    "elu": (lambda z: np.where(z > 0, z, np.expm1(np.minimum(z, 0))), lambda z: np.exp(np.minimum(z, 0))),
    "softsign": (lambda z: z / (1 + np.abs(z)), lambda z: 1 / (1 + np.abs(z)) ** 2),
    "sine": (np.sin, np.cos),
    "squared relu": (lambda z: np.maximum(z, 0) ** 2, lambda z: 2 * np.maximum(z, 0)),
    "absolute": (np.abs, np.sign),
    "leaky relu 0.2": (lambda z: np.where(z > 0, z, 0.2 * z), lambda z: np.where(z > 0, 1, 0.2)),
}
"""Activations that the package does not have: their values and their derivatives."""
STORAGE = ("out_in", "in_out", "augmented")
LAYER_FORMS = ("class", "instance", "functions", "loss")
KEEPING = ("class", "instance")
LEARNING_RATE = 0.05
CONSTANT = 0.3
EPSILON = 0.01
FROM_OUTPUT = {"sigmoid": lambda a: a * (1 - a), "tanh": lambda a: 1 - a**2}


def value(activation, z):
    """The activation of z."""
    if activation in OTHERS:
        return _floating(OTHERS[activation][0](z), z)
    return getattr(activations, activation)(z)


def slope(activation, z):
    """The derivative of the activation at z."""
    if activation in OTHERS:
        return _floating(OTHERS[activation][1](z), z)
    return getattr(activations, f"{activation}_backward")(np.ones_like(z), z)


def _floating(result, z):
    """In the dtype of z; whole numbers become floats."""
    return result.astype(z.dtype if z.dtype.kind == "f" else np.float64)


@dataclass
class Pieces:
    """What a layer is made of; as it stands, a right one.

    Inside, a batch is rows and the weight is (out, in); the storage of the layer translates.
    """

    gate: Callable = lambda activation, d_out, z: d_out * slope(activation, z)
    weight: Callable = lambda d_z, x: d_z.T @ x
    bias: Callable = lambda d_z, x: d_z.sum(axis=0)
    input: Callable = lambda d_z, weight: d_z @ weight
    scale: dict = field(default_factory=dict)
    """For an array, the functions of the number of rows whose values its gradient is multiplied by."""
    shape: Callable = lambda d_weight: d_weight
    """What happens to the gradient of the weight as it is stored."""
    entering: Callable = lambda x: x
    """What happens to each array that comes in."""
    leaving: Callable = lambda out, x: out
    """What happens to the output."""
    mixing: float = 0.0
    """How much of the mean over the rows is taken away from the output."""
    cache: str = "each"
    """``"each"`` call, only the ``"first"``, ``"shared"`` by all instances, or a ``"queue"`` of all calls."""
    copies: bool = False
    """Whether the cache holds a copy of the input."""
    adds: bool = False
    clears: bool = False
    starts: str = "zeros"
    """What gradients are before the first backward pass, where they add up: ``"zeros"`` or ``"none"``."""
    buffer: str = ""
    """Which result lies in memory that the next call writes to: ``"out"`` or ``"x"``."""
    centres: bool = False
    """The forward pass takes 0.5 from its input, in place."""
    reuses_input: bool = False
    """The backward pass writes d_x over the input."""
    spoils_upstream: bool = False
    updates: bool = False
    """The backward pass changes the weight."""
    noise: float = 0.0
    breaks: bool = False

    def times(self, names, function):
        """Multiply the gradients of these arrays by a function of the number of rows."""
        for name in names:
            self.scale.setdefault(name, []).append(function)


@dataclass(frozen=True)
class Fault:
    """How a defect is put into a layer, and where that makes sense."""

    install: Callable
    """Takes Pieces and a random generator."""
    slots: frozenset
    """The pieces that it needs for itself: two faults that share one cannot occur together."""
    forms: tuple = LAYER_FORMS
    activations: tuple = ACTIVATIONS
    storage: tuple = STORAGE
    dtypes: tuple = (np.float32, np.float64)
    square: bool = False
    """Whether only a square layer can run it."""


FAULTS: dict[str, Fault] = {}


def fault(name, *slots, **options):
    """Register a function that installs the fault of this name."""

    def register(install):
        FAULTS[name] = Fault(install, frozenset(slots), **options)
        return install

    return register


ALL = ("weight", "bias", "x")
EVERY_SCALE = tuple(f"{name} scale" for name in ALL)
ROWS = ("out_in", "in_out")
NO_LOSS = ("class", "instance", "functions")


@fault("weight-transposed", "weight shape")
def _(pieces, rng):
    pieces.shape = lambda d_weight: d_weight.T


@fault("input-weight-transposed", "x", square=True)
def _(pieces, rng):
    pieces.input = lambda d_z, weight: d_z @ weight.T


@fault("weight-averaged", "weight n", "weight scale", forms=NO_LOSS, storage=ROWS)
def _(pieces, rng):
    pieces.times(["weight"], lambda n: 1 / n)


@fault("bias-averaged", "bias n", "bias scale", forms=NO_LOSS)
def _(pieces, rng):
    pieces.times(["bias"], lambda n: 1 / n)


@fault("all-averaged", "weight n", "bias n", "weight scale", "bias scale", forms=NO_LOSS)
def _(pieces, rng):
    pieces.times(["weight", "bias"], lambda n: 1 / n)


@fault("bias-times-batch", "bias n", "bias scale", forms=NO_LOSS)
def _(pieces, rng):
    pieces.times(["bias"], lambda n: n)


@fault("learning-rate-inside", "weight scale", "bias scale", forms=KEEPING)
def _(pieces, rng):
    pieces.times(["weight", "bias"], lambda n: LEARNING_RATE)


@fault("sign-flipped", "sign")
def _(pieces, rng):
    pieces.times(ALL, lambda n: -1.0)


@fault("factor", "weight scale", storage=ROWS)
def _(pieces, rng):
    pieces.times(["weight"], lambda n: CONSTANT)


@fault("bias-not-summed", "bias", "bias n", "bias scale", storage=ROWS)
def _(pieces, rng):
    pieces.bias = lambda d_z, x: d_z.copy()


@fault("bias-wrong-axis", "bias", "bias n", "bias scale", storage=ROWS)
def _(pieces, rng):
    pieces.bias = lambda d_z, x: d_z.sum(axis=1)


@fault("bias-times-input", "bias")
def _(pieces, rng):
    def by_entry(d_z, x):
        return (d_z * x).sum(axis=0) if d_z.shape == x.shape else by_sum(d_z, x)

    def by_sum(d_z, x):
        return d_z.T @ x.sum(axis=1)

    pieces.bias = by_entry if rng.integers(2) else by_sum


@fault("bias-zero", "bias", "bias n", "bias scale")
def _(pieces, rng):
    pieces.bias = lambda d_z, x: np.zeros(d_z.shape[1], d_z.dtype)


@fault("gradient-zero", "weight", "weight shape", "weight n", "weight scale", storage=ROWS)
def _(pieces, rng):
    pieces.weight = lambda d_z, x: np.zeros((d_z.shape[1], x.shape[1]), d_z.dtype)


@fault("wrong-shape", "weight shape")
def _(pieces, rng):
    pieces.shape = lambda d_weight: d_weight.ravel()


@fault("gate-on-upstream", "gate", activations=("relu", "leaky_relu"), forms=NO_LOSS)
def _(pieces, rng):
    pieces.gate = lambda activation, d_out, z: d_out * slope(activation, d_out)


@fault("gate-missing", "gate", activations=(*ACTIVATIONS[1:], *OTHERS), forms=NO_LOSS)
def _(pieces, rng):
    pieces.gate = lambda activation, d_out, z: d_out


@fault("gate-twice", "gate", activations=CURVED, forms=NO_LOSS)
def _(pieces, rng):
    pieces.gate = lambda activation, d_out, z: d_out * slope(activation, z) * slope(activation, z)


@fault("derivative-at-output", "gate", activations=("sigmoid", "tanh", "softplus"), forms=NO_LOSS)
def _(pieces, rng):
    pieces.gate = lambda activation, d_out, z: d_out * slope(activation, value(activation, z))


@fault("derivative-at-input", "gate", activations=tuple(FROM_OUTPUT), forms=NO_LOSS)
def _(pieces, rng):
    pieces.gate = lambda activation, d_out, z: d_out * FROM_OUTPUT[activation](z)


@fault("epsilon-in-derivative", "gate", activations=ACTIVATIONS[1:], forms=NO_LOSS)
def _(pieces, rng):
    pieces.gate = lambda activation, d_out, z: d_out * (slope(activation, z) + EPSILON)


@fault("upstream-ignored", "gate", "sign", activations=ACTIVATIONS[1:], forms=NO_LOSS)
def _(pieces, rng):
    pieces.gate = lambda activation, d_out, z: slope(activation, z)


@fault("activation-for-derivative", "gate", activations=ACTIVATIONS[1:], forms=NO_LOSS)
def _(pieces, rng):
    pieces.gate = lambda activation, d_out, z: d_out * value(activation, z)


@fault("other-derivative", "gate", activations=("relu", "sigmoid", "tanh"), forms=NO_LOSS)
def _(pieces, rng):
    others = {
        "relu": lambda z: slope("leaky_relu", z),
        "sigmoid": lambda z: FROM_OUTPUT["tanh"](value("sigmoid", z)),
        "tanh": lambda z: FROM_OUTPUT["sigmoid"](value("tanh", z)),
    }
    pieces.gate = lambda activation, d_out, z: d_out * others[activation](z)


@fault("not-cleared", "adds", forms=KEEPING)
def _(pieces, rng):
    pieces.adds, pieces.clears = True, False
    pieces.starts = ("zeros", "none")[rng.integers(2)]


@fault("stale-cache", "cache", forms=KEEPING)
def _(pieces, rng):
    pieces.cache = ("first", "shared", "queue")[rng.integers(3)]


@fault("input-changed", "input kept", forms=NO_LOSS)
def _(pieces, rng):
    if rng.integers(2):
        pieces.centres = True
    else:
        pieces.reuses_input = True


@fault("upstream-changed", "gate", "upstream kept", activations=ACTIVATIONS[1:], forms=NO_LOSS)
def _(pieces, rng):
    pieces.spoils_upstream = True


@fault("view-kept", "memory", forms=KEEPING)
def _(pieces, rng):
    pieces.buffer = ("out", "x")[rng.integers(2)]


@fault("parameter-changed", "parameters kept", forms=KEEPING)
def _(pieces, rng):
    pieces.updates = True


@fault("integer-arithmetic", "numbers in", forms=NO_LOSS)
def _(pieces, rng):
    def leaving(out, x):
        whole = np.zeros(out.shape, x.dtype)
        whole[:] = out
        return whole

    pieces.leaving = leaving


@fault("float32-arithmetic", "numbers in", forms=NO_LOSS, dtypes=(np.float64,))
def _(pieces, rng):
    pieces.entering = lambda array: array.astype(np.float32)
    if rng.integers(2):
        pieces.leaving = lambda out, x: out.astype(np.float64)


@fault("not-finite", "gate", *ALL, *EVERY_SCALE, "sign", "weight shape", "weight n", "bias n", "adds",
       "cache", "numbers in", "mixing", activations=("relu",), forms=NO_LOSS)  # fmt: skip
def _(pieces, rng):
    def gate(activation, d_out, z):
        with np.errstate(divide="ignore"):
            return d_out * (z / np.maximum(z, 0))

    pieces.gate = gate


@fault("batch-size-hides", "weight", "weight shape", "weight n", "weight scale", "sign", "gate", "mixing",
       storage=ROWS, forms=NO_LOSS)  # fmt: skip
def _(pieces, rng):
    pieces.weight = lambda d_z, x: np.outer(d_z[0], x[0])


@fault("batch-mixed", "mixing", forms=NO_LOSS)
def _(pieces, rng):
    pieces.mixing = (0.5, 1.0)[rng.integers(2)]


@fault("random", *ALL, *EVERY_SCALE, "weight shape", "weight n", "bias n", "sign", "gate", "adds", "cache",
       "input kept", "memory", "parameters kept", "numbers in", "mixing", "stop", forms=NO_LOSS)  # fmt: skip
def _(pieces, rng):
    pieces.noise = 0.1


@fault("crash", *ALL, *EVERY_SCALE, "weight shape", "weight n", "bias n", "sign", "gate", "adds", "cache",
       "input kept", "memory", "parameters kept", "numbers in", "mixing", "stop", forms=NO_LOSS)  # fmt: skip
def _(pieces, rng):
    pieces.breaks = True
