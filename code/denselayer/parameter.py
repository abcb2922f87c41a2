"""A parameter: an array that is learned, with the gradient that belongs to it."""

import numpy as np

from ._validate import complaint, describe, float_array, same_dtype, same_shape


class Parameter:
    """An array and its gradient; gradients add up until :meth:`zero_grad`.

    Args:
        data: initial values, float32 or float64, any shape; copied.

    Attributes:
        data: the values. Assigning copies into the same array, whose shape and dtype never change.
        grad: the gradient of the loss, same shape and dtype, or None if there is none yet, as in PyTorch.

    Raises:
        TypeError: not float32 or float64.
        ValueError: a gradient, or new values, of another shape.

    Source:
        ``torch.nn.Parameter``; here nothing is recorded, the backward passes call :meth:`accumulate`.

    Notes:
        Equation: eq-backward-tied. Where a parameter is used twice, the two gradients add.

    >>> weight = Parameter(np.array([1.0, 2.0]))
    >>> weight.accumulate(np.array([0.5, 0.5]))
    >>> weight.accumulate(np.array([1.0, 0.0]))
    >>> weight.grad
    array([1.5, 0.5])
    >>> weight.zero_grad()
    >>> weight.grad is None
    True
    """

    __slots__ = ("__weakref__", "_data", "_grad")

    def __init__(self, data):
        self._data = np.array(float_array("Parameter", "data", data), order="C")
        self._grad = None

    @property
    def data(self):
        """The values."""
        return self._data

    @data.setter
    def data(self, value):
        if value is not self._data:
            self._data[...] = self._like("data", value)

    @property
    def grad(self):
        """The gradient, or None."""
        return self._grad

    @grad.setter
    def grad(self, value):
        self._grad = None if value is None else self._like("grad", value)

    @property
    def shape(self):
        """Shape of the values and of the gradient."""
        return self._data.shape

    @property
    def dtype(self):
        """float32 or float64."""
        return self._data.dtype

    @property
    def size(self):
        """Number of values."""
        return self._data.size

    def _move(self, array):
        """Keep the values in ``array`` from now on, of the same shape and dtype."""
        array[...] = self._data
        self._data = array

    def zero_grad(self):
        """Forget the gradient: ``grad`` becomes None."""
        self._grad = None

    def accumulate(self, gradient):
        """Add ``gradient``, an array of the parameter's shape and dtype, to ``grad``."""
        gradient = self._like("gradient", gradient)
        with np.errstate(all="ignore"):
            self._grad = gradient.copy() if self._grad is None else self._grad + gradient

    def _like(self, name, value):
        value = float_array("Parameter", name, value)
        same_shape("Parameter", "data", self._data, name, value)
        same_dtype("Parameter", "data", self._data, name, value)
        return value

    def __repr__(self):
        state = "no grad" if self._grad is None else "grad"
        return f"Parameter(shape={self.shape}, dtype={self.dtype}, {state})"


def require_parameter(where, name, value):
    """Return ``value`` if it is a Parameter, else raise TypeError."""
    if not isinstance(value, Parameter):
        advice = f"Wrap the array: nn.Parameter({name})."
        raise TypeError(complaint(where, f"{name} is {describe(value)}", "a Parameter", advice))
    return value
