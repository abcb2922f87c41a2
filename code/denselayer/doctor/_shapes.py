"""When a gradient of another shape than its array does no harm."""

import numpy as np


def harmless(came, expected):
    """Whether a gradient can be taken off an array of this shape without changing it.

    >>> harmless((3,), (1, 3)), harmless((1, 3), (3,)), harmless((3,), (3, 1))
    (True, False, False)
    """
    try:
        return bool(np.prod(came) == np.prod(expected)) and np.broadcast_shapes(came, expected) == expected
    except ValueError:
        return False


def settled(gradient, shape):
    """The gradient in the shape of its array, where a difference of the two does no harm."""
    if gradient is None or gradient.shape == shape or not harmless(gradient.shape, shape):
        return gradient
    return gradient.reshape(shape)
