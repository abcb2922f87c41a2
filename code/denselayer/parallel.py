"""Dense layers split over several devices: a simulation that counts the bytes each device sends.

An array on P devices is a list of P arrays, one for each device. Either all are equal (`Devices.replicate`)
or each device has a piece (`Devices.split`), an empty one if there is nothing left for it. Whatever a device
needs from another goes through one of the four collectives of `Devices`, and these count.

Two names for one cut: Megatron-LM multiplies ``X @ A`` and stores A as (in, out), so its *column parallel*
layer cuts the outputs. PyTorch stores ``weight`` as (out, in); there the same cut takes whole rows, and other
books call it *row-wise*. The classes here carry Megatron's names, as PyTorch's ``ColwiseParallel`` and
``RowwiseParallel`` do, and say what they do to ``weight`` (out, in).
"""

from typing import NamedTuple

import numpy as np

from . import functional as F
from ._alpha_beta import AlphaBeta, all_reduce_seconds, fit_alpha_beta, paying_width
from ._devices import Call, Devices
from ._messages import (
    all_gather_bytes,
    all_reduce_bytes,
    data_parallel_bytes,
    reduce_scatter_bytes,
    tensor_parallel_bytes,
)
from ._validate import choice, complaint, describe, float_array, same_dtype

__all__ = [
    "AlphaBeta",
    "BlockGradients",
    "Call",
    "ColumnParallelLinear",
    "DataParallelMLP",
    "Devices",
    "ParallelMLP",
    "RowParallelLinear",
    "all_gather_bytes",
    "all_reduce_bytes",
    "all_reduce_seconds",
    "data_parallel_bytes",
    "fit_alpha_beta",
    "paying_width",
    "reduce_scatter_bytes",
    "tensor_parallel_bytes",
]

ACTIVATIONS = ("relu", "leaky_relu", "sigmoid", "tanh", "gelu", "silu", "softplus", "identity")


class ColumnParallelLinear:
    """A dense layer whose **outputs** are split: each device has some rows of ``weight`` (out, in).

    Called column parallel by Megatron-LM and PyTorch (``ColwiseParallel``), after the columns of the
    transposed weight. A device needs the whole input and makes whole outputs, those of its own units.
    Forward needs no exchange; backward adds up the input gradients, to which all units contribute.

    Args:
        devices: a `Devices`.
        weight: (out_features, in_features).
        bias: (out_features,) or None; split like the rows.
        gather_output: whether every device gets all outputs, by a `Devices.all_gather`.

    Raises:
        ValueError: shapes do not fit.
        TypeError: not float32 or float64, or two dtypes.

    Source:
        M. Shoeybi and others, "Megatron-LM: training multi-billion parameter language models using model
        parallelism" (2019).

    Notes:
        Equation: eq-scale-column-parallel.

    >>> weight = np.array([[0.5, -1.0, 2.0], [-0.25, 0.5, 1.0], [1.0, 0.25, -0.5]])
    >>> devices = Devices(3)
    >>> layer = ColumnParallelLinear(devices, weight, np.array([3.0, -1.0, -4.0]))
    >>> layer.forward(devices.replicate(np.array([[2.0, 4.0, 1.0]])))
    [array([[2.]]), array([[1.5]]), array([[-1.5]])]
    >>> layer.backward([np.array([[1.0]])] * 3).d_x[0]
    array([[ 1.25, -0.25,  2.5 ]])
    >>> [call.name for call in devices.calls]
    ['all_reduce']
    """

    def __init__(self, devices, weight, bias=None, *, gather_output=False):
        _check_layer("ColumnParallelLinear", weight, bias)
        self.devices = devices
        self.weight = _copies(devices.split(weight, 0))
        self.has_bias = bias is not None
        self.bias = _copies(devices.split(bias, 0)) if self.has_bias else [None] * devices.count
        self.gather_output = gather_output
        self._x = None

    def forward(self, x):
        """Outputs from ``x``, the whole input (N, in_features) on every device.

        Returns:
            A list of (N, units of the device), or of (N, out_features) with ``gather_output``.
        """
        self._x = self.devices.check("ColumnParallelLinear.forward", x)
        out = [F.linear(*part) for part in zip(x, self.weight, self.bias, strict=True)]
        return self.devices.all_gather(out, axis=-1) if self.gather_output else out

    def backward(self, d_out):
        """Gradients from ``d_out``, which has the form of the output.

        Returns:
            LinearGradients of lists: ``d_x`` is whole on every device, the others belong to the device's own
            rows.
        """
        x = _kept("ColumnParallelLinear", self._x)
        d_out = self.devices.check("ColumnParallelLinear.backward", d_out)
        if self.gather_output:
            d_out = self.devices.take(d_out, -1)
        parts = [F.linear_backward(*part) for part in zip(d_out, x, self.weight, strict=True)]
        d_x, d_weight, d_bias = (list(part) for part in zip(*parts, strict=True))
        return F.LinearGradients(self.devices.all_reduce(d_x), d_weight, d_bias if self.has_bias else None)


class RowParallelLinear:
    """A dense layer whose **inputs** are split: each device has some columns of ``weight`` (out, in).

    Called row parallel by Megatron-LM and PyTorch (``RowwiseParallel``), after the rows of the transposed
    weight. A device needs its part of the input and makes a part of every sum. Forward adds up the partial
    sums; backward needs no exchange. The bias is on every device and added once, after the sum.

    Args:
        devices: a `Devices`.
        weight: (out_features, in_features).
        bias: (out_features,) or None.
        input_is_parallel: whether each device is given its part of the input; else it is given the whole, and
            takes its part.

    Raises:
        ValueError: shapes do not fit.
        TypeError: not float32 or float64, or two dtypes.

    Source:
        M. Shoeybi and others, "Megatron-LM: training multi-billion parameter language models using model
        parallelism" (2019).

    Notes:
        Equation: eq-scale-row-parallel.

    >>> weight = np.array([[0.5, -1.0, 2.0], [-0.25, 0.5, 1.0], [1.0, 0.25, -0.5]])
    >>> devices = Devices(3)
    >>> layer = RowParallelLinear(devices, weight, np.array([3.0, -1.0, -4.0]))
    >>> layer.forward(devices.split(np.array([[2.0, 4.0, 1.0]]), 1))[0]
    array([[ 2. ,  1.5, -1.5]])
    >>> layer.backward(devices.replicate(np.ones((1, 3)))).d_x
    [array([[1.25]]), array([[-0.25]]), array([[2.5]])]
    >>> [call.name for call in devices.calls]
    ['all_reduce']
    """

    def __init__(self, devices, weight, bias=None, *, input_is_parallel=True):
        _check_layer("RowParallelLinear", weight, bias)
        self.devices = devices
        self.weight = _copies(devices.split(weight, 1))
        self.has_bias = bias is not None
        self.bias = _copies(devices.replicate(bias)) if self.has_bias else None
        self.input_is_parallel = input_is_parallel
        self._x = None

    def forward(self, x):
        """Outputs from ``x``: a list of (N, inputs of the device), or of (N, in_features) if whole.

        Returns:
            A list of (N, out_features), whole on every device.
        """
        x = self.devices.check("RowParallelLinear.forward", x)
        if not self.input_is_parallel:
            x = self.devices.take(x, -1)
        self._x = x
        total = self.devices.all_reduce([F.linear(*part) for part in zip(x, self.weight, strict=True)])
        return [out + bias for out, bias in zip(total, self.bias, strict=True)] if self.has_bias else total

    def backward(self, d_out):
        """Gradients from ``d_out`` (N, out_features), whole on every device.

        Returns:
            LinearGradients of lists: ``d_weight`` belongs to the device's own columns, ``d_bias`` is whole on
            every device, and ``d_x`` has the form of the input.
        """
        x = _kept("RowParallelLinear", self._x)
        d_out = self.devices.check("RowParallelLinear.backward", d_out)
        parts = [F.linear_backward(*part) for part in zip(d_out, x, self.weight, strict=True)]
        d_x, d_weight, d_bias = (list(part) for part in zip(*parts, strict=True))
        if not self.input_is_parallel:
            d_x = self.devices.all_gather(d_x, axis=-1)
        return F.LinearGradients(d_x, d_weight, d_bias if self.has_bias else None)


class BlockGradients(NamedTuple):
    """Gradients of a loss with respect to the input of a block of two layers, and those of its layers.

    >>> BlockGradients(d_x=1, up=2, down=3).up
    2
    """

    d_x: list
    up: F.LinearGradients
    down: F.LinearGradients


class ParallelMLP:
    """Linear, activation, linear on several devices, with one all-reduce forward and one backward.

    The first layer is split by its outputs, the second by its inputs: what a device makes in the first is
    what it needs in the second, activation included.

    Args:
        devices: a `Devices`.
        up, down: ``(weight, bias)`` of the first and the second layer; a bias may be None.
        activation: one of the names in ``ACTIVATIONS``.

    Raises:
        ValueError: shapes do not fit, or an unknown activation.
        TypeError: a layer that is no pair, not float32 or float64, or two dtypes.

    Source:
        M. Shoeybi and others, "Megatron-LM: training multi-billion parameter language models using model
        parallelism" (2019).

    Notes:
        Equation: eq-scale-tensor-parallel.

    >>> devices = Devices(2)
    >>> block = ParallelMLP(devices, (np.ones((4, 3)), None), (np.ones((3, 4)), np.ones(3)))
    >>> out = block.forward(devices.replicate(np.ones((5, 3))))
    >>> d_x = block.backward(devices.replicate(np.ones((5, 3)))).d_x
    >>> out[1][0], d_x[1][0]
    (array([13., 13., 13.]), array([12., 12., 12.]))
    >>> [call.name for call in devices.calls]
    ['all_reduce', 'all_reduce']
    """

    def __init__(self, devices, up, down, activation="relu"):
        up, down = _layers("ParallelMLP", up, down)
        self.up, self.down = ColumnParallelLinear(devices, *up), RowParallelLinear(devices, *down)
        self._activation = _activation("ParallelMLP", activation)
        self._z = None

    def forward(self, x):
        """Outputs (N, out_features), whole on every device, from the whole ``x`` on every device."""
        activation, _ = self._activation
        self._z = self.up.forward(x)
        return self.down.forward([activation(z) for z in self._z])

    def backward(self, d_out):
        """`BlockGradients` from ``d_out``, whole on every device; ``d_x`` is whole on every device."""
        _, slope = self._activation
        down = self.down.backward(d_out)
        up = self.up.backward([slope(*part) for part in zip(down.d_x, self._z, strict=True)])
        return BlockGradients(up.d_x, up, down._replace(d_x=None))


class DataParallelMLP:
    """Linear, activation, linear with the whole weights on every device, and the batch split.

    Nothing is exchanged forward. Backward, the gradients of all parameters are added up in one all-reduce.
    They are added, not averaged: as everywhere here, ``d_out`` holds the loss's division by the batch, the
    whole batch, and so the devices may have different numbers of rows.

    Args:
        devices: a `Devices`.
        up, down: ``(weight, bias)`` of the first and the second layer; a bias may be None.
        activation: one of the names in ``ACTIVATIONS``.

    Raises:
        ValueError: shapes do not fit, or an unknown activation.
        TypeError: a layer that is no pair, not float32 or float64, or two dtypes.

    Source:
        S. Li and others, "PyTorch Distributed: experiences on accelerating data parallel training" (2020),
        which averages.

    Notes:
        Equation: eq-scale-data-parallel.

    >>> devices = Devices(2)
    >>> block = DataParallelMLP(devices, (np.ones((4, 3)), None), (np.ones((3, 4)), np.ones(3)))
    >>> out = block.forward(devices.split(np.ones((5, 3)), 0))
    >>> gradients = block.backward(devices.split(np.ones((5, 3)), 0))
    >>> [part.shape for part in out], gradients.down.d_bias[1]
    ([(3, 3), (2, 3)], array([5., 5., 5.]))
    """

    def __init__(self, devices, up, down, activation="relu"):
        self.devices = devices
        self.layers = _layers("DataParallelMLP", up, down)
        self._activation = _activation("DataParallelMLP", activation)
        self._kept = None

    def forward(self, x):
        """Outputs of each device's rows, from ``x``, a list of (rows of the device, in_features)."""
        x = self.devices.check("DataParallelMLP.forward", x)
        activation, _ = self._activation
        up, down = self.layers
        z = [F.linear(rows, *up) for rows in x]
        hidden = [activation(rows) for rows in z]
        self._kept = x, z, hidden
        return [F.linear(rows, *down) for rows in hidden]

    def backward(self, d_out):
        """`BlockGradients` from ``d_out``: ``d_x`` of each device's rows, all others whole and summed."""
        x, z, hidden = _kept("DataParallelMLP", self._kept)
        d_out = self.devices.check("DataParallelMLP.backward", d_out)
        _, slope = self._activation
        (up, _), (down, _) = self.layers
        second = [F.linear_backward(d, rows, down) for d, rows in zip(d_out, hidden, strict=True)]
        d_z = [slope(part.d_x, rows) for part, rows in zip(second, z, strict=True)]
        first = [F.linear_backward(d, rows, up) for d, rows in zip(d_z, x, strict=True)]
        summed = self._sum([[*a[1:], *b[1:]] for a, b in zip(first, second, strict=True)])
        up, down = F.LinearGradients(None, *summed[:2]), F.LinearGradients(None, *summed[2:])
        return BlockGradients([part.d_x for part in first], up, down)

    def _sum(self, gradients):
        """Four lists, one for each parameter, of the sums on the devices; None where there is no bias."""
        has = [parameter is not None for layer in self.layers for parameter in layer]
        sizes = [gradient.size if there else 0 for gradient, there in zip(gradients[0], has, strict=True)]
        flat = [
            np.concatenate([g.ravel() for g, there in zip(own, has, strict=True) if there])
            for own in gradients
        ]
        cut = [np.split(total, np.cumsum(sizes)[:-1]) for total in self.devices.all_reduce(flat)]
        return [
            [part[at].reshape(gradient.shape) for part in cut] if there else None
            for at, (gradient, there) in enumerate(zip(gradients[0], has, strict=True))
        ]


def _copies(arrays):
    """An array of its own for each device, so that one may be updated in place."""
    return [array.copy() for array in arrays]


def _check_layer(where, weight, bias):
    weight = float_array(where, "weight", weight)
    if weight.ndim != 2:
        came = f"weight has shape {weight.shape}"
        raise ValueError(complaint(where, came, "(out_features, in_features)", "Pass a matrix."))
    if bias is not None:
        F._check_bias(where, bias, weight, "weight", weight)


def _layers(where, up, down):
    """Both layers as pairs (weight, bias) that fit together."""
    for name, layer in (("up", up), ("down", down)):
        if not isinstance(layer, tuple | list) or len(layer) != 2:
            advice = f"Pass {name}=(weight, None) for a layer without bias."
            raise TypeError(complaint(where, f"{name} is {describe(layer)}", "a pair (weight, bias)", advice))
        _check_layer(f"{where}, {name}", *layer)
    first, second = up[0], down[0]
    same_dtype(where, "up[0]", first, "down[0]", second)
    if second.shape[1] != len(first):
        came = f"the weights of up and down have shapes {first.shape} and {second.shape}"
        expected = f"(out_features, {len(first)}) for down"
        raise ValueError(complaint(where, came, expected, "The inputs of down are the outputs of up."))
    return tuple(up), tuple(down)


def _activation(where, name):
    choice(where, "activation", name, ACTIVATIONS)
    return getattr(F, name), getattr(F, f"{name}_backward")


def _kept(where, kept):
    if kept is None:
        came = "backward was called before forward"
        raise RuntimeError(complaint(f"{where}.backward", came, "forward first", "Call forward(x) first."))
    return kept
