"""The complex step: slopes of analytic functions to the last digit, and a refusal of all others.

For an analytic function ``Im f(x + ih) / h`` is the slope at x, up to ``h**2``. No two values are
subtracted, so h can be as small as one likes. For a function that compares, takes absolute values or drops
the imaginary part the quotient is wrong without a sign of it. Such functions are recognised in three ways:
the array that they are given refuses the operations, the result must be complex, and the slopes must fit a
real step.
"""

import warnings

import numpy as np

from ._slopes import COMPLEX_STEP, NOISE, default_step, plain_number

_REFUSED = (
    "absolute",
    "clip",
    "conjugate",
    "equal",
    "fmax",
    "fmin",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "not_equal",
    "sign",
)


class NotAnalyticError(ValueError):
    """The complex step met a function for which it would give a wrong slope."""


def complex_slopes(f, point, indices, step=None):
    """Slopes of ``f`` at a float64 array, one for each index; NotAnalyticError where they would be wrong."""
    step = step or COMPLEX_STEP
    slopes = [_complex_value(f, point, index, step).imag / step for index in indices]
    if slopes:
        _check_analytic(f, point, indices, np.array(slopes))
    return slopes


def _complex_value(f, point, index, step):
    moved = point.astype(np.complex128)
    moved[index] += 1j * step
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            value = plain_number(_plain(f(moved.view(_AnalyticArray))))
    except np.exceptions.ComplexWarning as error:
        raise NotAnalyticError(_refusal("drops the imaginary part on the way")) from error
    except NotAnalyticError:
        raise
    except TypeError as error:
        raise NotAnalyticError(_refusal("raises a TypeError for complex numbers")) from error
    if not np.iscomplexobj(value):
        raise NotAnalyticError(_refusal("drops the imaginary part: its result is real"))
    return complex(value)


def _check_analytic(f, point, indices, slopes):
    """Compare with a real step along a random direction: a part that was lost without a trace shows there."""
    signs = np.random.default_rng(0).standard_normal(len(indices))
    direction = np.zeros_like(point)
    for index, sign in zip(indices, signs, strict=True):
        direction[index] = sign * max(1.0, abs(point[index]))
    terms = slopes * np.array([direction[index] for index in indices])

    def value(step):
        return float(plain_number(f(point + step * direction)))

    def slope(step):
        return (value(step) - value(-step)) / (2 * step)

    step = default_step(np.float64)
    size = np.abs(terms).sum()
    noise = NOISE * np.finfo(np.float64).eps * (abs(value(0.0)) + size) / step
    truncation = 2 * abs(slope(step) - slope(step / 2))
    if abs(slope(step) - terms.sum()) > 1e-4 * size + noise + truncation:
        raise NotAnalyticError(_refusal("changes along real numbers as its imaginary part does not tell"))


def _refusal(what):
    return f"the function {what}, so the complex step would be wrong: use method='central'"


class _AnalyticArray(np.ndarray):
    """A complex array that refuses operations which are not analytic, also inside of others' functions."""

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **kwargs):
        if ufunc.__name__ in _REFUSED:
            raise NotAnalyticError(_refusal(f"uses np.{ufunc.__name__}, which is not analytic"))
        if out is not None:
            kwargs["out"] = tuple(_plain(array) for array in out)
        result = getattr(ufunc, method)(*map(_plain, inputs), **kwargs)
        if np.iscomplexobj(result):
            return np.asarray(result).view(_AnalyticArray)
        return result

    def __getitem__(self, index):
        return np.asarray(super().__getitem__(index)).view(_AnalyticArray)

    @property
    def real(self):
        raise NotAnalyticError(_refusal("uses the real part, which is not analytic"))

    @property
    def imag(self):
        raise NotAnalyticError(_refusal("uses the imaginary part, which is not analytic"))


def _plain(array):
    return array.view(np.ndarray) if isinstance(array, _AnalyticArray) else array
