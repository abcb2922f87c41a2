"""What the tests of the package measure with: random arrays of every kind, rounding units, differences."""

import numpy as np
import torch
from hypothesis import strategies as st

FLOATS = (np.float32, np.float64)

sizes = st.integers(0, 64)
dtypes = st.sampled_from(FLOATS)
seeds = st.integers(0, 2**32 - 1)
layouts = st.sampled_from(["plain", "transposed", "strided", "reversed", "read-only"])
scales = st.sampled_from([1.0, 1.0, 1e-12, 1e12])


def laid_out(values, layout):
    """The same values in another place of memory: not contiguous, backwards, or read-only."""
    if layout == "transposed":
        return np.array(values, order="F")
    if layout == "strided":
        room = np.full(tuple(2 * n for n in values.shape), 7, values.dtype)
        view = room[(..., *(slice(None, None, 2) for _ in values.shape))]
        view[...] = values
        return view
    if layout == "reversed":
        flip = (..., *(slice(None, None, -1) for _ in values.shape))
        return np.array(values[flip])[flip]
    result = np.array(values)
    result.flags.writeable = layout != "read-only"
    return result


def normal(rng, shape, dtype, layout="plain", scale=1.0):
    """Normal numbers of very different sizes around ``scale``."""
    values = rng.standard_normal(shape) * 10.0 ** rng.uniform(-2, 2, shape) * scale
    return laid_out(values.astype(dtype), layout)


def tensor(array, gradient=False):
    """A PyTorch tensor with a copy of the values."""
    return torch.tensor(np.array(array), requires_grad=gradient)


def error(actual, expected, scale=None):
    """Largest difference in units of eps times ``scale``, by default the largest entry of ``expected``.

    ``scale`` may be an array with one scale for each entry. NaN and infinities have to stand at the same
    places; they count as equal then.
    """
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(actual[~finite], expected[~finite])
    assert np.isfinite(actual[finite]).all()
    if not finite.any():
        return 0.0
    difference = np.abs(actual[finite].astype(np.longdouble) - expected[finite])
    if scale is None:
        scale = np.max(np.abs(expected[finite]))
    scale = np.broadcast_to(np.asarray(scale, np.longdouble), actual.shape)[finite]
    info = np.finfo(actual.dtype)
    return float(np.max(difference / (info.eps * scale + info.smallest_subnormal)))


def slopes(function, array, step=1e-5):
    """Central differences of a scalar function by every entry of a float64 array."""
    result = np.empty_like(array)
    for index in np.ndindex(array.shape):
        ahead, behind = array.copy(), array.copy()
        ahead[index] += step
        behind[index] -= step
        result[index] = (function(ahead) - function(behind)) / (2 * step)
    return result
