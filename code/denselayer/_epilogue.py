"""Activations and their slopes in place, on a piece that is in cache, with the bits of ``activations``.

Each takes the pre-activation ``z`` (for a slope also ``d``, the gradient with respect to the output), the
array ``out`` for the result, which may be ``z`` itself, a `Scratch` and the options. All arrays are flat, or
matrices whose rows are as long as the tiles. Numbers beside an array are slower in NumPy than an array of the
same number (``np.maximum``), and so is choosing by a mask (``np.where``, where the processor cannot guess
the mask): the first is answered with a tile of zeros, the second with integers, bit by bit.
"""

import contextvars

import numpy as np

from . import activations
from ._validate import FLOAT32, choice, number


class Scratch:
    """Buffers of one thread, made when they are first asked for and used again."""

    def __init__(self, dtype):
        self._dtype = dtype
        self.integer = np.dtype(np.int32 if dtype == FLOAT32 else np.int64)
        self._arrays = {}
        context = contextvars.Context()
        context.run(np.seterr, all="ignore")
        self.quietly = context.run
        """Call a function in which NumPy does not warn; a tenth of the cost of ``np.errstate``."""

    def get(self, name, size, make=np.empty, dtype=None):
        """The first ``size`` entries of a flat buffer; ``make`` fills it when it is made."""
        array = self._arrays.get(name)
        if array is None or array.size < size:
            array = self._arrays[name] = make(size, dtype or self._dtype)
        return array[:size]

    def like(self, name, z):
        """A buffer of the shape of ``z``."""
        return self.get(name, z.size).reshape(z.shape)

    def zeros(self, size):
        return self.get("zeros", size, np.zeros)

    def ones(self, size):
        return self.get("ones", size, np.ones)

    def flags(self, z):
        """A buffer of the shape of ``z`` for truth values."""
        return self.get("flags", z.size, dtype=np.dtype(bool)).reshape(z.shape)


def _by_rows(function):
    """Let a function that needs scratch see one row at a time, so that the scratch stays in cache."""

    def rows(*arguments, **options):
        *arrays, scratch = arguments
        if arrays[0].ndim == 1:
            function(*arrays, scratch, **options)
            return
        for pieces in zip(*arrays, strict=True):
            function(*pieces, scratch, **options)

    return rows


def _choose(flags, a, b, out, scratch):
    """``where(flags, a, b)`` by bits, without a branch; the flags are used up."""
    mask = flags.view(np.int8)
    np.negative(mask, out=mask)
    bits = scratch.get("bits", a.size, dtype=scratch.integer).reshape(a.shape)
    a, b, out = (array.view(scratch.integer) for array in (a, b, out))
    np.bitwise_xor(a, b, out=bits)
    np.bitwise_and(bits, mask, out=bits)
    np.bitwise_xor(b, bits, out=out)


def _exponential(z, e):
    """Store ``exp(-|z|)`` in ``e``."""
    np.absolute(z, out=e)
    np.negative(e, out=e)
    np.exp(e, out=e)


def _sigmoid(z, out, scratch):
    e, top, negative = scratch.like("e", z), scratch.like("top", z), scratch.flags(z)
    _exponential(z, e)
    np.less(z, 0, out=negative)
    np.logical_not(negative, out=negative)
    np.copyto(top, negative)
    np.maximum(e, top, out=top)
    np.add(e, 1, out=e)
    np.divide(top, e, out=out)


def _sigmoid_slope(z, out, scratch):
    e = scratch.like("e", z)
    _exponential(z, e)
    np.add(e, 1, out=out)
    np.multiply(out, out, out=out)
    np.divide(e, out, out=out)


def _identity(z, out, scratch):
    if out is not z:
        np.copyto(out, z)


def _relu(z, out, scratch):
    np.maximum(z, scratch.zeros(z.shape[-1]), out=out)


@_by_rows
def _leaky_relu(z, out, scratch, negative_slope):
    scaled = scratch.like("scaled", z)
    np.multiply(z, negative_slope, out=scaled)
    if 0 < negative_slope <= 1:
        np.maximum(z, scaled, out=out)
    else:
        _choose(np.greater(z, 0, out=scratch.flags(z)), z, scaled, out, scratch)


@_by_rows
def _logistic(z, out, scratch):
    _sigmoid(z, out, scratch)


def _tanh(z, out, scratch):
    np.tanh(z, out=out)


@_by_rows
def _silu(z, out, scratch):
    s = scratch.like("s", z)
    _sigmoid(z, s, scratch)
    np.multiply(z, s, out=out)


@_by_rows
def _gelu(z, out, scratch, approximate):
    if approximate == "none":
        np.copyto(out, activations.gelu(z))
        return
    inner, _ = activations._gelu_tanh_argument(z)
    _sigmoid(inner, inner, scratch)
    np.multiply(z, inner, out=out)


@_by_rows
def _softplus(z, out, scratch, beta, threshold):
    scaled, e, smooth = (scratch.like(name, z) for name in ("scaled", "e", "smooth"))
    np.multiply(z, beta, out=scaled)
    _exponential(scaled, e)
    np.log1p(e, out=e)
    np.maximum(scaled, scratch.zeros(z.size), out=smooth)
    np.add(smooth, e, out=smooth)
    np.divide(smooth, beta, out=smooth)
    far = np.greater(scaled, threshold, out=scratch.flags(z))
    if far.any():
        _choose(far, z, smooth, out, scratch)
    else:
        np.copyto(out, smooth)


def _relu_slope(d, z, out, scratch):
    stopped = np.less_equal(z, 0, out=scratch.flags(z)).view(np.int8)
    np.subtract(stopped, 1, out=stopped)
    np.bitwise_and(d.view(scratch.integer), stopped, out=out.view(scratch.integer))


def _identity_slope(d, z, out, scratch):
    np.copyto(out, d)


@_by_rows
def _leaky_relu_slope(d, z, out, scratch, negative_slope):
    scaled = scratch.like("scaled", z)
    np.multiply(d, negative_slope, out=scaled)
    _choose(np.greater(z, 0, out=scratch.flags(z)), d, scaled, out, scratch)


@_by_rows
def _logistic_slope(d, z, out, scratch):
    s = scratch.like("s", z)
    _sigmoid_slope(z, s, scratch)
    np.multiply(d, s, out=out)


@_by_rows
def _tanh_slope(d, z, out, scratch):
    twice, s = scratch.like("scaled", z), scratch.like("s", z)
    np.multiply(z, 2, out=twice)
    _sigmoid_slope(twice, s, scratch)
    np.multiply(s, 4, out=s)
    np.multiply(d, s, out=out)


@_by_rows
def _silu_slope(d, z, out, scratch):
    s, slope = scratch.like("s", z), scratch.like("slope", z)
    _sigmoid(z, s, scratch)
    _sigmoid_slope(z, slope, scratch)
    np.multiply(z, slope, out=slope)
    np.add(s, slope, out=s)
    np.multiply(d, s, out=out)


@_by_rows
def _gelu_slope(d, z, out, scratch, approximate):
    if approximate == "none":
        np.copyto(out, activations.gelu_backward(d, z))
        return
    inner, derivative = activations._gelu_tanh_argument(z)
    slope = scratch.like("slope", z)
    _sigmoid_slope(inner, slope, scratch)
    np.multiply(slope, derivative, out=slope)
    np.multiply(z, slope, out=slope)
    _sigmoid(inner, inner, scratch)
    np.add(inner, slope, out=slope)
    np.multiply(d, slope, out=out)


@_by_rows
def _softplus_slope(d, z, out, scratch, beta, threshold):
    scaled, s = scratch.like("scaled", z), scratch.like("s", z)
    np.multiply(z, beta, out=scaled)
    _sigmoid(scaled, s, scratch)
    np.multiply(d, s, out=s)
    _choose(np.greater(scaled, threshold, out=scratch.flags(z)), d, s, out, scratch)


FUNCTIONS = {
    "identity": (_identity, _identity_slope),
    "relu": (_relu, _relu_slope),
    "leaky_relu": (_leaky_relu, _leaky_relu_slope),
    "sigmoid": (_logistic, _logistic_slope),
    "tanh": (_tanh, _tanh_slope),
    "gelu": (_gelu, _gelu_slope),
    "silu": (_silu, _silu_slope),
    "softplus": (_softplus, _softplus_slope),
}
"""Each activation and its slope."""


def _leaky_options(where, negative_slope=0.01):
    return {"negative_slope": number(where, "negative_slope", negative_slope)}


def _gelu_options(where, approximate="none"):
    return {"approximate": choice(where, "approximate", approximate, ("none", "tanh"))}


def _softplus_options(where, beta=1.0, threshold=20.0):
    return {
        "beta": number(where, "beta", beta, above=0),
        "threshold": number(where, "threshold", threshold),
    }


OPTIONS = {"leaky_relu": _leaky_options, "gelu": _gelu_options, "softplus": _softplus_options}
"""The options of the activations that have any, checked, with their defaults."""
