"""What a dense layer costs: parameters, arithmetic operations, bytes.

All counts are exact Python ints. A multiplication and an addition count as two operations. TypeError for a
size that is not whole, ValueError for a negative one.
"""

import numpy as np

from ._validate import count as whole


def linear_parameters(in_features, out_features, bias=True):
    """Number of parameters, ``out_features * (in_features + 1)`` with bias.

    Args:
        in_features, out_features: widths of the layer.
        bias: whether the layer has one.

    Source:
        Size of ``weight`` plus size of ``bias``.

    Notes:
        Equation: eq-dense-parameters.

    >>> linear_parameters(784, 1000)
    785000
    """
    in_features = whole("linear_parameters", "in_features", in_features)
    out_features = whole("linear_parameters", "out_features", out_features)
    return out_features * (in_features + bool(bias))


def linear_operations(batch, in_features, out_features):
    """Operations of the forward pass, ``2 * batch * in_features * out_features``.

    Args:
        batch: number of rows N.
        in_features, out_features: widths of the layer.

    Source:
        Each of the N * out outputs takes ``in`` multiplications and, with the bias, ``in`` additions.

    Notes:
        Equation: eq-dense-operations.

    >>> linear_operations(128, 8192, 8192)
    17179869184
    """
    batch = whole("linear_operations", "batch", batch)
    in_features = whole("linear_operations", "in_features", in_features)
    return 2 * batch * in_features * whole("linear_operations", "out_features", out_features)


def linear_backward_operations(batch, in_features, out_features, input_gradient=True):
    """Operations of the two products of the backward pass; twice the forward pass, once without
    ``input_gradient``.

    Args:
        batch: number of rows N.
        in_features, out_features: widths of the layer.
        input_gradient: False for the bottom layer, which needs no ``d_x``.

    Source:
        ``d_out.T @ x`` and ``d_out @ weight`` take 2 * N * in * out each. The sum for the bias, N * out
        additions, is of lower order and not counted.

    Notes:
        Equation: eq-backward-operations.

    >>> linear_backward_operations(32, 784, 256) == 2 * linear_operations(32, 784, 256)
    True
    """
    products = 2 if input_gradient else 1
    return products * linear_operations(batch, in_features, out_features)


def nbytes(count, dtype=np.float32):
    """Bytes that ``count`` numbers of ``dtype`` take.

    Args:
        count: how many numbers.
        dtype: anything that ``numpy.dtype`` understands.

    Source:
        ``numpy.dtype.itemsize``.

    >>> nbytes(785_000, np.float32) / 2**20 == 785_000 * 4 / 1_048_576
    True
    """
    return whole("nbytes", "count", count) * np.dtype(dtype).itemsize
