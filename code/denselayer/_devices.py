"""Simulated devices in a ring, and the four exchanges between them that are counted."""

import operator
from typing import NamedTuple

import numpy as np

from . import _ring
from ._validate import complaint, describe, float_array, same_dtype, same_shape
from ._validate import count as whole


class Call(NamedTuple):
    """One exchange between the devices: its name, the bytes that each device sent, and its steps.

    >>> devices = Devices(2)
    >>> _ = devices.all_reduce(devices.replicate(np.ones(4)))
    >>> devices.calls
    [Call(name='all_reduce', sent=(32, 32), steps=2)]
    """

    name: str
    sent: tuple
    steps: int


class Devices:
    """P simulated devices in a ring; ``calls`` lists what they exchanged.

    Args:
        count: how many, 1 or more.

    Raises:
        ValueError: fewer than one device.

    Source:
        P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
        Journal of Parallel and Distributed Computing 69 (2009).

    >>> devices = Devices(4)
    >>> total = devices.all_reduce([np.full(8, float(p)) for p in range(4)])
    >>> total[2]
    array([6., 6., 6., 6., 6., 6., 6., 6.])
    >>> devices.sent, devices.steps
    ((96, 96, 96, 96), 6)
    """

    def __init__(self, count):
        self.count = whole("Devices", "count", count)
        if self.count == 0:
            raise ValueError(complaint("Devices", "count is 0", "1 or more", "Pass the number of devices."))
        self.calls = []

    @property
    def sent(self):
        """Bytes sent by each device in all calls so far, a tuple."""
        totals = np.zeros(self.count, dtype=np.int64)
        for call in self.calls:
            totals += call.sent
        return tuple(totals.tolist())

    @property
    def steps(self):
        """Steps of all calls so far; in a step every device sends one message at most."""
        return sum(call.steps for call in self.calls)

    def clear(self):
        """Forget the calls."""
        self.calls.clear()

    def replicate(self, x):
        """The same array on every device, as it was before anything is counted."""
        return [float_array("replicate", "x", x)] * self.count

    def split(self, x, axis):
        """A piece of ``x`` for each device, in order, as equal as can be; the last may be empty."""
        x = float_array("split", "x", x)
        axis = _axis("split", axis, x)
        ends = np.cumsum(_ring.piece_sizes(x.shape[axis], self.count))[:-1]
        return np.split(x, ends, axis=axis)

    def take(self, arrays, axis):
        """The piece along ``axis`` that each device takes of the whole array that it has."""
        arrays = self._check_equal("take", arrays)
        axis = _axis("take", axis, arrays[0])
        ends = np.cumsum(_ring.piece_sizes(arrays[0].shape[axis], self.count))
        whole = (np.moveaxis(array, axis, 0) for array in arrays)
        pieces = [array[start:end] for array, start, end in zip(whole, [0, *ends[:-1]], ends, strict=True)]
        return [np.moveaxis(piece, 0, axis) for piece in pieces]

    def join(self, pieces, axis):
        """The pieces put together, for us who look on; no device gets the result."""
        pieces, axis = self._check_pieces("join", pieces, axis)
        return np.concatenate(pieces, axis=axis)

    def all_reduce(self, arrays):
        """The sum of the arrays, on every device: `reduce_scatter`, then `all_gather`.

        Args:
            arrays: P arrays of one shape.

        Returns:
            A list of P arrays with the same numbers, to the last bit.
        """
        self._check_equal("all_reduce", arrays)
        sizes = _ring.piece_sizes(arrays[0].size, self.count)
        held = _ring.pack(arrays, sizes)
        first, one = _ring.reduce_scatter(held, sizes)
        second, other = _ring.all_gather(held, sizes)
        self._note("all_reduce", first + second, one + other, held)
        return [row.reshape(arrays[0].shape) for row in _ring.unpack(held, sizes)]

    def reduce_scatter(self, arrays, axis=0):
        """The sum of the arrays, of which each device gets its piece along ``axis``.

        Args:
            arrays: P arrays of one shape.
            axis: the axis that is cut.

        Returns:
            A list of P arrays, as `split` would cut the sum.
        """
        self._check_equal("reduce_scatter", arrays)
        pieces = self.split(np.arange(arrays[0].size, dtype=float).reshape(arrays[0].shape), axis)
        sizes = np.array([piece.size for piece in pieces], dtype=np.int64)
        order = np.concatenate([piece.ravel() for piece in pieces]).astype(np.intp)
        held = _ring.pack([array.ravel()[order] for array in arrays], sizes)
        self._note("reduce_scatter", *_ring.reduce_scatter(held, sizes), held)
        own = enumerate(zip(sizes, pieces, strict=True))
        return [held[p, p, :size].reshape(piece.shape) for p, (size, piece) in own]

    def all_gather(self, pieces, axis=0):
        """All pieces put together, on every device.

        Args:
            pieces: P arrays that fit together along ``axis``.
            axis: the axis along which they are put together.

        Returns:
            A list of P equal arrays.
        """
        pieces, axis = self._check_pieces("all_gather", pieces, axis)
        whole = np.concatenate(pieces, axis=axis)
        sizes = np.array([piece.size for piece in pieces], dtype=np.int64)
        held = np.zeros((self.count, self.count, sizes.max()), whole.dtype)
        for p, piece in enumerate(pieces):
            held[p, p, : piece.size] = piece.ravel()
        self._note("all_gather", *_ring.all_gather(held, sizes), held)
        starts = np.cumsum(sizes) - sizes
        order = [start + np.arange(p.size).reshape(p.shape) for start, p in zip(starts, pieces, strict=True)]
        return list(_ring.unpack(held, sizes)[:, np.concatenate(order, axis=axis)])

    def broadcast(self, x, root=0):
        """What the device ``root`` has, on every device.

        Args:
            x: an array on the root.
            root: its number, from 0.

        Returns:
            A list of P equal arrays.
        """
        x = float_array("broadcast", "x", x)
        if whole("broadcast", "root", root) >= self.count:
            came = f"root is {root}, with {self.count} devices"
            raise ValueError(complaint("broadcast", came, f"0 to {self.count - 1}", "They count from 0."))
        arrays = [x if p == root else np.zeros_like(x) for p in range(self.count)]
        sizes = _ring.piece_sizes(x.size, self.count)
        held = _ring.pack(arrays, sizes)
        self._note("broadcast", *_ring.broadcast(held, sizes, root), held)
        return [row.reshape(x.shape) for row in _ring.unpack(held, sizes)]

    def check(self, where, arrays):
        """Return the arrays as a list; TypeError or ValueError unless there is one for each device."""
        if not isinstance(arrays, list | tuple):
            advice = "Make one with replicate or split."
            came = f"arrays is {describe(arrays)}"
            raise TypeError(complaint(where, came, f"a list of {self.count} arrays", advice))
        if len(arrays) != self.count:
            came, expected = f"{len(arrays)} arrays came", f"{self.count}, one for each device"
            raise ValueError(complaint(where, came, expected, "Make them with replicate or split."))
        arrays = [float_array(where, f"arrays[{p}]", array) for p, array in enumerate(arrays)]
        for p, array in enumerate(arrays):
            same_dtype(where, "arrays[0]", arrays[0], f"arrays[{p}]", array)
        return arrays

    def _check_equal(self, where, arrays):
        arrays = self.check(where, arrays)
        for p, array in enumerate(arrays):
            same_shape(where, "arrays[0]", arrays[0], f"arrays[{p}]", array)
        return arrays

    def _check_pieces(self, where, pieces, axis):
        """The pieces and the axis; ValueError unless they fit together along it."""
        pieces = self.check(where, pieces)
        axis = _axis(where, axis, pieces[0])
        for p, piece in enumerate(pieces):
            if _without(piece.shape, axis) != _without(pieces[0].shape, axis):
                came = f"arrays[{p}] has shape {piece.shape}, and arrays[0] has {pieces[0].shape}"
                expected = f"shapes that differ along axis {axis} alone"
                raise ValueError(complaint(where, came, expected, "Make the pieces with split."))
        return pieces, axis

    def _note(self, name, numbers, steps, held):
        self.calls.append(Call(name, tuple((numbers * held.itemsize).tolist()), steps))


def _axis(where, axis, array):
    """The axis, counted from the front; TypeError or ValueError unless the array has it."""
    if array.ndim == 0:
        came, advice = "an array has shape ()", "Replicate a single number."
        raise ValueError(complaint(where, came, "an array with axes", advice))
    try:
        number = operator.index(axis)
    except TypeError:
        came = f"axis is {describe(axis)}"
        raise TypeError(complaint(where, came, "a whole number", "Pass an int, such as 0.")) from None
    if not -array.ndim <= number < array.ndim:
        came, expected = f"axis is {number} and the shape {array.shape}", f"{-array.ndim} to {array.ndim - 1}"
        raise ValueError(complaint(where, came, expected, "Choose one of its axes."))
    return number % array.ndim


def _without(shape, axis):
    return len(shape), shape[:axis], shape[axis + 1 :]
