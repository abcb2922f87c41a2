"""Slopes of a function of one array, measured by moving one entry a little to either side."""

from dataclasses import dataclass

import numpy as np

from ._validate import choice, complaint, describe, float_dtype, number

METHODS = ("central", "forward", "complex")
COMPLEX_STEP = 1e-20
NOISE = 64
"""How many units of rounding the loss and the gradients are granted: the noise floor is NOISE * eps."""


def default_step(dtype, method="central") -> float:
    """Step for a number of magnitude 1, at which truncation and rounding balance.

    Args:
        dtype: float32 or float64, the precision in which the function is evaluated.
        method: ``"central"``, ``"forward"`` or ``"complex"``.

    Raises:
        ValueError: an unknown method.
        TypeError: another dtype.

    Notes:
        Equations: eq-check-error and eq-check-step, the latter for a function with ``|f'''| = 3 |f|``, since
        neither is known. (For forward differences ``|f''| = 4 |f|``.)

    >>> print(f"{default_step('float64'):.1e}  {default_step('float32'):.1e}")
    6.1e-06  4.9e-03
    """
    choice("default_step", "method", method, METHODS)
    dtype = float_dtype("default_step", dtype)
    if method == "complex":
        return COMPLEX_STEP
    return float(np.finfo(dtype).eps) ** (1 / 3 if method == "central" else 1 / 2)


@dataclass(frozen=True)
class Slopes:
    """The slopes of three secants at one entry, and how they were measured."""

    left: float
    right: float
    central: float
    step: float
    height: float
    """The largest magnitude of the three values of the loss."""

    @property
    def jump(self):
        return abs(self.right - self.left)


class Probe:
    """Measures slopes of a function of one array; the entries move in copies of it.

    A float32 array is converted to float64, so that the rounding of ``f`` does not drown the slopes. Where
    ``f`` refuses that with a TypeError, or returns float32 all the same, ``precision`` is float32 and the
    step larger.
    """

    def __init__(self, f, x, step, method="central"):
        self._f = f
        self._point, result = self._evaluable(x)
        self.value = float(result)
        self.precision = np.float32 if np.float32 in (self._point.dtype, result.dtype) else np.float64
        self._step = step or default_step(self.precision, method)

    def slopes(self, index, shrink=1):
        """Slopes at one entry, with the step divided by ``shrink``."""
        here, above, below = self._places(index, shrink)
        up, down = self._value_at(index, above), self._value_at(index, below)
        with np.errstate(all="ignore"):
            return Slopes(
                left=float(np.subtract(self.value, down) / (here - below)),
                right=float(np.subtract(up, self.value) / (above - here)),
                central=float(np.subtract(up, down) / (above - below)),
                step=(above - below) / 2,
                height=max(map(abs, (self.value, up, down))),
            )

    def right_slope(self, index):
        """The forward difference at one entry, with one evaluation."""
        here, above, _ = self._places(index)
        with np.errstate(all="ignore"):
            return float(np.subtract(self._value_at(index, above), self.value) / (above - here))

    def _places(self, index, shrink=1):
        """The entry, and the numbers a step above and below it, after rounding, as float64."""
        kind = self._point.dtype.type
        here = float(self._point[index])
        step = self._step / shrink * max(1.0, abs(here))
        with np.errstate(over="ignore"):
            return tuple(np.float64(kind(place)) for place in (here, here + step, here - step))

    def _evaluable(self, x):
        """Return a float64 copy of x, or a float32 copy if f takes nothing else, and the value of f there."""
        try:
            point = np.array(x, dtype=np.float64)
            return point, plain_number(self._f(point.copy()))
        except TypeError:
            if x.dtype == np.float64:
                raise
            point = np.array(x)
            return point, plain_number(self._f(point.copy()))

    def _value_at(self, index, value):
        moved = self._point.copy()
        moved[index] = value
        return float(plain_number(self._f(moved)))


def plain_number(result):
    """Return what a function returned as a NumPy scalar; ValueError unless it is one number."""
    array = np.asarray(result)
    if array.size != 1 or array.dtype.kind not in "iufc":
        advice = "Sum its entries, or take their mean."
        came = f"the function returned {describe(result)}"
        raise ValueError(complaint("gradcheck", came, "one number", advice))
    return array.reshape(())[()]


def check_step(where, step):
    """Return a step that is positive, or None."""
    return None if step is None else number(where, "step", step, above=0.0)


def check_rtol(where, rtol):
    """Return a tolerance that is not negative, or None."""
    return None if rtol is None else number(where, "rtol", rtol, low=0.0)
