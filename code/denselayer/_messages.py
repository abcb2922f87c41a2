"""Formulas of what devices in a ring send: exact Python ints, in bytes, one for each device."""

import numpy as np

from ._validate import complaint, count, float_dtype


def all_reduce_bytes(numbers, devices, dtype=np.float32):
    """Bytes that each device sends so that all have the sum of arrays of ``numbers`` entries.

    Args:
        numbers: entries of each array.
        devices: how many devices P.
        dtype: of the arrays.

    Returns:
        A tuple of P ints. Their sum is ``2 * (P - 1) * numbers * itemsize``.

    Source:
        P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
        Journal of Parallel and Distributed Computing 69 (2009).

    Notes:
        Equation: eq-scale-all-reduce.

    >>> all_reduce_bytes(1000, 4), all_reduce_bytes(10, 4)
    ((6000, 6000, 6000, 6000), (56, 60, 64, 60))
    """
    scattered = reduce_scatter_bytes(numbers, devices, dtype)
    return tuple(map(sum, zip(scattered, all_gather_bytes(numbers, devices, dtype), strict=True)))


def reduce_scatter_bytes(numbers, devices, dtype=np.float32):
    """Bytes that each device sends so that it has its piece of the sum of arrays of ``numbers`` entries.

    Args:
        numbers: entries of each array.
        devices: how many devices P.
        dtype: of the arrays.

    Returns:
        A tuple of P ints.

    Source:
        P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
        Journal of Parallel and Distributed Computing 69 (2009).

    Notes:
        A device sends all pieces but its own.

    >>> reduce_scatter_bytes(10, 4)
    (28, 28, 32, 32)
    """
    numbers, pieces, size = _pieces("reduce_scatter_bytes", numbers, devices, dtype)
    return tuple((numbers - piece) * size for piece in pieces)


def all_gather_bytes(numbers, devices, dtype=np.float32, rows=1):
    """Bytes that each device sends so that all have an array of which each had a piece.

    Args:
        numbers: entries along the axis that is cut.
        devices: how many devices P.
        dtype: of the array.
        rows: how often the axis is there: the rows of the batch, where the columns are cut.

    Returns:
        A tuple of P ints.

    Source:
        P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
        Journal of Parallel and Distributed Computing 69 (2009).

    Notes:
        A device passes on all pieces but that of the next device.

    >>> all_gather_bytes(10, 4)
    (28, 32, 32, 28)
    """
    numbers, pieces, size = _pieces("all_gather_bytes", numbers, devices, dtype)
    size *= count("all_gather_bytes", "rows", rows)
    return tuple((numbers - piece) * size for piece in (*pieces[1:], pieces[0]))


def tensor_parallel_bytes(batch, in_features, out_features, devices, dtype=np.float32):
    """Bytes that each device sends in a forward and backward pass of a `ParallelMLP`.

    Args:
        batch: number of rows N.
        in_features, out_features: widths of the block at its two ends; the width between does not count.
        devices: how many devices P.
        dtype: of the arrays.

    Returns:
        A tuple of P ints.

    Source:
        An all-reduce of the output, and one of the input gradient.

    Notes:
        Equation: eq-scale-tensor-parallel.

    >>> tensor_parallel_bytes(64, 512, 512, devices=4)
    (393216, 393216, 393216, 393216)
    """
    where = "tensor_parallel_bytes"
    batch = count(where, "batch", batch)
    ends = count(where, "in_features", in_features), count(where, "out_features", out_features)
    parts = [all_reduce_bytes(batch * width, devices, dtype) for width in ends]
    return tuple(map(sum, zip(*parts, strict=True)))


def data_parallel_bytes(parameters, devices, dtype=np.float32):
    """Bytes that each device sends in a step of data parallel training, whatever the batch.

    Args:
        parameters: of the whole network.
        devices: how many devices P.
        dtype: of the gradients.

    Returns:
        A tuple of P ints.

    Source:
        An all-reduce of the gradients of all parameters.

    Notes:
        Equation: eq-scale-data-parallel.

    >>> data_parallel_bytes(1000, devices=4)
    (6000, 6000, 6000, 6000)
    """
    return all_reduce_bytes(parameters, devices, dtype)


def _pieces(where, numbers, devices, dtype):
    numbers, devices = count(where, "numbers", numbers), count(where, "devices", devices)
    if devices == 0:
        raise ValueError(complaint(where, "devices is 0", "1 or more", "Pass the number of devices."))
    each, longer = divmod(numbers, devices)
    pieces = [each + 1] * longer + [each] * (devices - longer)
    return numbers, pieces, float_dtype(where, dtype).itemsize
