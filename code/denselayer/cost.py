"""What dense layers and networks of them cost: parameters, arithmetic, memory, bytes moved.

All counts are exact Python ints. A multiplication and an addition count as two operations. Traffic is
compulsory: every product, sum and activation reads each of its operands once and writes its result once.
TypeError for a size that is not whole, ValueError for a negative one.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from . import nn
from ._parts import kept_widths, parts_of_module, parts_of_widths
from ._table import html_table, text_table
from ._validate import choice, complaint, describe, float_dtype, number
from ._validate import count as whole

_STATE = {"sgd": 0, "momentum": 1, "adam": 2}
_LIBRARIES = ("pytorch", "denselayer")


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


def linear_traffic(batch, in_features, out_features, bias=True, dtype=np.float32):
    """Bytes that the forward pass must move: input, weight and bias read once, output written once.

    Args:
        batch: number of rows N.
        in_features, out_features: widths of the layer.
        bias: whether the layer has one.
        dtype: of all arrays.

    Source:
        Sizes of the four arrays; S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual
        performance model for multicore architectures", CACM 52 (2009).

    Notes:
        Equation: eq-scale-bytes.
        A lower bound for a program that reads its operands from memory: what is read twice, because it was
        dropped in between, comes on top.

    >>> linear_traffic(1, 3, 3)
    72
    """
    weight = linear_parameters(in_features, out_features, bias)
    batch = whole("linear_traffic", "batch", batch)
    return nbytes(batch * in_features + weight + batch * out_features, dtype)


def linear_backward_traffic(
    batch, in_features, out_features, bias=True, input_gradient=True, dtype=np.float32
):
    """Bytes that the backward pass must move, when its two products and its sum are three steps.

    Args:
        batch: number of rows N.
        in_features, out_features: widths of the layer.
        bias: whether the layer has one.
        input_gradient: False for the bottom layer, which needs no ``d_x``.
        dtype: of all arrays.

    Source:
        ``d_out.T @ x``, ``d_out @ weight`` and ``d_out.sum(0)``: each reads its operands and writes its
        result.

    Notes:
        Equation: eq-scale-backward-bytes.

    >>> linear_backward_traffic(1, 3, 3)
    144
    """
    product = linear_traffic(batch, in_features, out_features, bias=False, dtype=dtype)
    row_sum = nbytes((batch + 1) * out_features, dtype) if bias else 0
    return product * (2 if input_gradient else 1) + row_sum


def fused_backward_traffic(
    batch, in_features, out_features, bias=True, input_gradient=True, dtype=np.float32
):
    """Bytes that a dense layer with a pointwise activation must move backward, done in one go.

    Args:
        batch: number of rows N.
        in_features, out_features: widths of the layer.
        bias: whether the layer has one.
        input_gradient: False for the bottom layer, which needs no ``d_x``.
        dtype: of all arrays.

    Source:
        The upstream gradient, what the activation has kept, ``x`` and ``weight`` are read once; ``d_x``,
        ``d_weight`` and ``d_bias`` are written once. The gradient of the pre-activation never gets to memory.

    Notes:
        Equation: eq-fused-backward-bytes.
        Step by step it is the traffic of the activation, 3 * N * out numbers, and `linear_backward_traffic`.

    >>> fused_backward_traffic(1, 3, 3), 4 * 3 * 3 + linear_backward_traffic(1, 3, 3)
    (132, 180)
    """
    rows = whole("fused_backward_traffic", "batch", batch)
    weight = linear_parameters(in_features, out_features, bias=False)
    passes = 2 if input_gradient else 1
    numbers = 2 * rows * whole("fused_backward_traffic", "out_features", out_features)
    numbers += passes * (rows * in_features + weight)
    return nbytes(numbers + (out_features if bias else 0), dtype)


def blocked_traffic(batch, in_features, out_features, rows, columns, dtype=np.float32):
    """Bytes that a product moves when it makes one block of its result after the other.

    Args:
        batch: number of rows N.
        in_features, out_features: widths of the layer.
        rows, columns: size of a block of the result. One block stays close to the processor until it is
            finished; the inputs for it are fetched again.
        dtype: of all arrays.

    Returns:
        Bytes: ``x`` once for each column of blocks, ``weight`` once for each row of blocks, and the result.

    Raises:
        ValueError: a block without rows or columns.

    Source:
        K. Goto, R. van de Geijn, "Anatomy of high-performance matrix multiplication", ACM Transactions on
        Mathematical Software 34 (2008); counted by hand here.

    Notes:
        Equation: eq-fused-blocked-bytes.
        One block of the whole result gives `linear_traffic` without the bias.

    >>> [blocked_traffic(1024, 1024, 1024, size, size) / 2**20 for size in (1, 32, 1024)]
    [8196.0, 260.0, 12.0]
    """
    where = "blocked_traffic"
    sizes = {"rows": whole(where, "rows", rows), "columns": whole(where, "columns", columns)}
    for name, size in sizes.items():
        if size == 0:
            raise ValueError(complaint(where, f"{name} is 0", "1 or more", "Choose a larger block."))
    batch = whole(where, "batch", batch)
    in_features = whole(where, "in_features", in_features)
    out_features = whole(where, "out_features", out_features)
    x_read = -(-out_features // columns) * batch * in_features
    weight_read = -(-batch // rows) * in_features * out_features
    return nbytes(x_read + weight_read + batch * out_features, dtype)


def linear_intensity(batch, in_features, out_features, bias=True, dtype=np.float32):
    """Operations per byte of the forward pass, ``linear_operations / linear_traffic``.

    Args:
        batch: number of rows N.
        in_features, out_features: widths of the layer.
        bias: whether the layer has one.
        dtype: of all arrays.

    Raises:
        ValueError: nothing is moved, so there is no ratio.

    Source:
        S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model for
        multicore architectures", CACM 52 (2009).

    Notes:
        Equation: eq-scale-intensity.
        Equation: eq-scale-intensity-limit.

    >>> linear_intensity(1, 3, 3)
    0.25
    """
    work = Work(
        linear_operations(batch, in_features, out_features),
        linear_traffic(batch, in_features, out_features, bias, dtype),
    )
    return work.intensity


def network_parameters(widths, bias=True):
    """Parameters of dense layers in a row.

    Args:
        widths: inputs of the network, then the units of each layer, such as ``[784, 1000, 10]``.
        bias: whether the layers have one.

    Source:
        The sum of `linear_parameters`.

    Notes:
        Equation: eq-scale-parameters.

    >>> network_parameters([10, 20, 5, 1])
    331
    """
    return sum(linear_parameters(i, o, bias) for i, o in pairwise(_widths("network_parameters", widths)))


def network_activations(batch, widths):
    """Values that the dense layers of a network keep for the backward pass: the input of each.

    Args:
        batch: number of rows N.
        widths: inputs of the network, then the units of each layer.

    Source:
        ``d_weight = d_out.T @ x`` needs ``x``.

    Notes:
        Equation: eq-scale-activations.
        ReLU, sigmoid and tanh between the layers add nothing: they need their output, which is the input of
        the next layer. `network` counts other activations too.

    >>> network_activations(32, [10, 20, 5, 1])
    1120
    """
    batch = whole("network_activations", "batch", batch)
    return batch * sum(_widths("network_activations", widths)[:-1])


def crossing_batch(widths, bias=True, copies=1):
    """Batch at which the kept activations take as much memory as ``copies`` times the parameters.

    Args:
        widths: inputs of the network, then the units of each layer.
        bias: whether the layers have one.
        copies: how many numbers are held for each parameter: 1 for the parameters alone, 4 for training with
            Adam.

    Returns:
        A float; smaller batches leave the parameters in the lead, larger ones the activations.

    Raises:
        ValueError: the layers have no inputs, so nothing is ever kept.

    Source:
        ``copies * network_parameters`` and `network_activations` set equal.

    Notes:
        Equation: eq-scale-crossing.

    >>> crossing_batch([512, 512]), crossing_batch([512, 512], copies=4)
    (513.0, 2052.0)
    """
    per_row = network_activations(1, widths)
    if per_row == 0:
        came = f"widths is {list(widths)}, so no values are kept"
        raise ValueError(complaint("crossing_batch", came, "inputs", "Choose widths above 0."))
    return whole("crossing_batch", "copies", copies) * network_parameters(widths, bias) / per_row


def training_values(parameters, activations, optimizer="adam"):
    """Numbers that a training step needs room for.

    Args:
        parameters: how many.
        activations: how many values are kept.
        optimizer: ``"sgd"`` remembers nothing, ``"momentum"`` one number for each parameter, ``"adam"`` two.

    Source:
        Parameters, one gradient each, the state of the optimiser, activations. Adam's step counters, buffers
        of libraries and what a step uses for a moment are not counted. A program that frees its gradients
        after each step does not hold all four parts at once.

    Notes:
        Equation: eq-scale-state.

    >>> [training_values(100, 50, name) for name in ("sgd", "momentum", "adam")]
    [250, 350, 450]
    """
    choice("training_values", "optimizer", optimizer, tuple(_STATE))
    parameters = whole("training_values", "parameters", parameters)
    copies = 2 + _STATE[optimizer]
    return copies * parameters + whole("training_values", "activations", activations)


def update_traffic(parameters, optimizer="adam", dtype=np.float32):
    """Bytes that a step of an optimiser must move.

    Args:
        parameters: how many.
        optimizer: ``"sgd"``, ``"momentum"`` or ``"adam"``.
        dtype: of all arrays.

    Source:
        Parameter, gradient and what the optimiser remembers are read; the parameter and what it remembers are
        written back. A program that makes arrays in between moves more.

    Notes:
        Equation: eq-scale-update.

    >>> [update_traffic(100, name) for name in ("sgd", "momentum", "adam")]
    [1200, 2000, 2800]
    """
    choice("update_traffic", "optimizer", optimizer, tuple(_STATE))
    return (3 + 2 * _STATE[optimizer]) * nbytes(whole("update_traffic", "parameters", parameters), dtype)


def checkpoint_values(batch, width, layers, every, arrays=1):
    """Values that equal layers keep at the worst moment, with a checkpoint every ``every`` layers.

    Args:
        batch: number of rows N.
        width: inputs and units of every layer.
        layers: how many layers there are, 1 or more.
        every: layers in a segment, 1 or more; with ``layers`` there is a single segment.
        arrays: arrays of ``batch * width`` values that a layer keeps with its activation: 1 where the input
            of the layer is enough, 2 in this package with ReLU.

    Raises:
        ValueError: no layers, or segments of none.

    Source:
        T. Chen, B. Xu, C. Zhang, C. Guestrin, "Training deep nets with sublinear memory cost", 2016: the
        input of every segment, and all but the input of the one that was computed again.

    Notes:
        Equation: eq-scale-checkpoint.

    >>> [checkpoint_values(1, 1, 64, every) for every in (1, 8, 64)]
    [64, 15, 64]
    """
    one = whole("checkpoint_values", "batch", batch) * whole("checkpoint_values", "width", width)
    layers, every, arrays = _some("checkpoint_values", layers=layers, every=every, arrays=arrays)
    return one * (-(-layers // every) + arrays * min(every, layers) - 1)


def best_segment(layers, arrays=1):
    """Layers between two checkpoints for which equal layers keep the fewest values; the smaller of two.

    Args:
        layers: how many layers there are, 1 or more.
        arrays: arrays that a layer keeps with its activation, as in `checkpoint_values`.

    Raises:
        ValueError: no layers, or no arrays.

    Source:
        The least of ``layers / every + arrays * every`` lies at the root of ``layers / arrays``; the best
        whole number is found by trying all.

    Notes:
        Equation: eq-scale-best-segment.

    >>> best_segment(64), best_segment(72, arrays=2)
    (8, 6)
    """
    layers, arrays = _some("best_segment", layers=layers, arrays=arrays)
    return min(range(1, layers + 1), key=lambda every: checkpoint_values(1, 1, layers, every, arrays))


def least_seconds(operations, traffic, peak, bandwidth):
    """Shortest time for a piece of work on a machine that computes and moves bytes at the same time.

    Args:
        operations: how many.
        traffic: bytes to move.
        peak: operations per second that the machine can do at most.
        bandwidth: bytes per second that it can move at most.

    Source:
        S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model for
        multicore architectures", CACM 52 (2009).

    Notes:
        Equation: eq-scale-time.

    >>> least_seconds(8e12, 1e11, peak=2e13, bandwidth=1e12)
    0.4
    """
    operations = number("least_seconds", "operations", operations, low=0)
    traffic = number("least_seconds", "traffic", traffic, low=0)
    peak = number("least_seconds", "peak", peak, above=0)
    return max(operations / peak, traffic / number("least_seconds", "bandwidth", bandwidth, above=0))


def attainable(intensity, peak, bandwidth):
    """Operations per second that the roofline allows at an intensity.

    Args:
        intensity: operations per byte.
        peak: operations per second that the machine can do at most.
        bandwidth: bytes per second that it can move at most.

    Source:
        S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model for
        multicore architectures", CACM 52 (2009).

    Notes:
        Equation: eq-scale-roofline.

    >>> attainable(0.5, peak=2e13, bandwidth=1e12), attainable(100, peak=2e13, bandwidth=1e12)
    (500000000000.0, 20000000000000.0)
    """
    intensity = number("attainable", "intensity", intensity, low=0)
    bandwidth = number("attainable", "bandwidth", bandwidth, above=0)
    return min(number("attainable", "peak", peak, above=0), intensity * bandwidth)


def ridge_point(peak, bandwidth):
    """Intensity, in operations per byte, at which a machine is limited by arithmetic and traffic alike.

    Args:
        peak: operations per second that the machine can do at most.
        bandwidth: bytes per second that it can move at most.

    Source:
        S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model for
        multicore architectures", CACM 52 (2009).

    Notes:
        Equation: eq-scale-ridge.

    >>> ridge_point(peak=2e13, bandwidth=1e12)
    20.0
    """
    peak = number("ridge_point", "peak", peak, above=0)
    return peak / number("ridge_point", "bandwidth", bandwidth, above=0)


def epilogue_share(in_features, peak, rates):
    """Time of separate passes over the output of a product, as a part of the time of the product itself.

    Args:
        in_features: inputs of the layer; each output of the product takes ``2 * in_features`` operations.
        peak: operations per second that the product reaches.
        rates: numbers per second of each pass, such as one for adding the bias and one for ReLU. A pass that
            reads and writes memory at ``bandwidth`` has the rate ``bandwidth / (2 * itemsize)``.

    Returns:
        A float; 0.5 means that the passes take half as long as the product.

    Raises:
        ValueError: no inputs, or a rate that is not positive.

    Source:
        Seconds for one output: ``sum(1 / rate)`` for the passes, ``2 * in_features / peak`` for the product.

    Notes:
        Equation: eq-fused-share.
        Neither the batch nor the outputs occur: both sides are proportional to them.

    >>> epilogue_share(64, peak=2**37, rates=[2**31, 2**31]), epilogue_share(1024, 2**37, [2**31, 2**31])
    (1.0, 0.0625)
    """
    where = "epilogue_share"
    inputs = number(where, "in_features", whole(where, "in_features", in_features), above=0)
    product = 2 * inputs / number(where, "peak", peak, above=0)
    return sum(1 / number(where, "rates", rate, above=0) for rate in rates) / product


class Work(NamedTuple):
    """Arithmetic and traffic of a pass.

    >>> work = Work(operations=18, traffic=72)
    >>> work.multiply_adds, work.intensity
    (9, 0.25)
    """

    operations: int
    """Of the products; a multiplication and an addition are two."""
    traffic: int
    """In bytes."""

    @property
    def multiply_adds(self):
        """Multiplications, each with an addition."""
        return self.operations // 2

    @property
    def intensity(self):
        """Operations per byte."""
        if self.traffic == 0:
            raise ValueError("intensity: no bytes are moved; expected some. Choose sizes above 0.")
        return self.operations / self.traffic


@dataclass(frozen=True)
class Step:
    """One module of a network in a `Cost`.

    >>> network([3, 3], batch=1).steps[0].name
    'Linear 3 → 3'
    """

    name: str
    parameters: int
    """Those that no module before it has."""
    kept: int
    """Values kept for the backward pass that no other step keeps."""
    forward: Work
    backward: Work


@dataclass(frozen=True)
class Cost:
    """What a network costs for one batch, made by `network`; prints as tables.

    ``kept`` and ``values`` count numbers, ``nbytes`` and traffic count bytes. In the first table stand the
    parameters, the kept values, and for each pass the operations, the bytes moved and their ratio.

    >>> cost = network([784, 1000, 10], batch=64)
    >>> cost.parameters, cost.forward.operations, cost.kept
    (795010, 101632000, 114176)
    >>> print(network([3, 3], batch=1))
    1 row, float32, Adam, PyTorch keeps what backward needs
    step          params  kept  forward  bytes  ops/B  backward  bytes  ops/B
    ------------  ------  ----  -------  -----  -----  --------  -----  -----
    Linear 3 → 3      12     3       18     72   0.25        18     84   0.21
    together          12     3       18     72   0.25        18     84   0.21
    <BLANKLINE>
    memory while training  numbers  bytes
    ---------------------  -------  -----
    parameters                  12     48
    gradients                   12     48
    optimiser state             24     96
    activations                  3     12
    together                    51    204
    """

    batch: int
    dtype: str
    optimizer: str
    library: str
    steps: tuple

    @property
    def parameters(self):
        """Number of parameters, a shared one counted once."""
        return sum(step.parameters for step in self.steps)

    @property
    def gradients(self):
        """Numbers in the gradients of the parameters."""
        return self.parameters

    @property
    def state(self):
        """Numbers that the optimiser remembers from step to step."""
        return _STATE[self.optimizer] * self.parameters

    @property
    def kept(self):
        """Values kept from the forward pass for the backward pass."""
        return sum(step.kept for step in self.steps)

    @property
    def forward(self):
        """Work of the forward pass."""
        return _together(step.forward for step in self.steps)

    @property
    def backward(self):
        """Work of the backward pass."""
        return _together(step.backward for step in self.steps)

    @property
    def training(self):
        """Work of both passes."""
        return _together((self.forward, self.backward))

    @property
    def values(self):
        """Numbers that a training step needs room for: parameters, gradients, state, activations."""
        return training_values(self.parameters, self.kept, self.optimizer)

    @property
    def nbytes(self):
        """The same in bytes."""
        return nbytes(self.values, self.dtype)

    def __str__(self):
        work, memory = self._tables()
        return f"{self._title}\n{text_table(*work)}\n\n{text_table(*memory)}"

    def __repr__(self):
        return f"<Cost of {len(self.steps)} steps: {self.parameters} parameters, {self.batch} rows>"

    def _repr_markdown_(self):
        work, memory = self._tables()
        return f"{html_table('cost', self._title, *work)}\n{html_table('cost', 'Memory', *memory)}"

    @property
    def _title(self):
        rows = "1 row" if self.batch == 1 else f"{self.batch:,} rows"
        optimizer = {"sgd": "SGD", "momentum": "SGD with momentum", "adam": "Adam"}[self.optimizer]
        keeper = {
            "pytorch": "PyTorch keeps what backward needs",
            "denselayer": "every module keeps its input",
        }[self.library]
        return f"{rows}, {self.dtype}, {optimizer}, {keeper}"

    def _tables(self):
        header = ["step", "params", "kept", "forward", "bytes", "ops/B", "backward", "bytes", "ops/B"]
        total = Step("together", self.parameters, self.kept, self.forward, self.backward)
        work = [
            [step.name, _short(step.parameters), _short(step.kept), *_cells(step.forward, step.backward)]
            for step in (*self.steps, total)
        ]
        parts = {
            "parameters": self.parameters,
            "gradients": self.gradients,
            "optimiser state": self.state,
            "activations": self.kept,
            "together": self.values,
        }
        memory = [[name, _short(n), _short(nbytes(n, self.dtype))] for name, n in parts.items()]
        return (header, work), (["memory while training", "numbers", "bytes"], memory)


def layer(
    batch,
    in_features,
    out_features,
    bias=True,
    *,
    input_gradient=True,
    dtype=np.float32,
    optimizer="adam",
):
    """Cost of one dense layer.

    Args:
        batch: number of rows N.
        in_features, out_features: widths of the layer.
        bias: whether the layer has one.
        input_gradient: False for the bottom layer, which needs no ``d_x``.
        dtype: float32 or float64, of all arrays.
        optimizer: ``"sgd"``, ``"momentum"`` or ``"adam"``.

    Returns:
        A Cost.

    Source:
        The functions of this module.

    >>> layer(64, 784, 1000).backward.operations == 2 * layer(64, 784, 1000).forward.operations
    True
    """
    return network(
        [in_features, out_features],
        batch,
        bias=bias,
        input_gradient=input_gradient,
        dtype=dtype,
        optimizer=optimizer,
    )


def network(
    model,
    batch,
    *,
    activation="relu",
    bias=True,
    input_gradient=False,
    dtype=np.float32,
    optimizer="adam",
    library="pytorch",
):
    """Cost of a network for one batch, forward and backward.

    Args:
        model: widths such as ``[784, 1000, 10]``, or an `nn.Module`: a layer, an activation, or a
            `nn.Sequential` of them, nested as you like.
        batch: number of rows N.
        activation: for widths, what stands between the layers: ``"relu"``, ``"sigmoid"``, ``"tanh"``,
            ``"gelu"``, ``"silu"``, ``"softplus"``, ``"leaky_relu"`` or ``"identity"``.
        bias: for widths, whether the layers have one.
        input_gradient: whether the gradient with respect to the input of the network is wanted.
        dtype: float32 or float64, of all arrays; a module's own dtype is not looked at.
        optimizer: ``"sgd"``, ``"momentum"`` or ``"adam"``.
        library: ``"pytorch"`` keeps what the backward pass needs, each array once; ``"denselayer"``, the
            package of this book, keeps the input of every module.

    Returns:
        A Cost.

    Raises:
        TypeError: a module whose cost is not known.
        ValueError: widths that do not meet, or an unknown name.

    Source:
        Compared with ``torch.utils.flop_counter`` and ``torch.autograd.graph.saved_tensors_hooks``.

    Notes:
        The operations are those of the products. Activations count as traffic, read once and written once,
        and as kept values. Loss, optimiser step and the sum of the gradients of a shared parameter are not
        counted.

    >>> model = nn.Sequential(nn.Linear(64, 32, rng=0), nn.GELU(), nn.Linear(32, 10, rng=0))
    >>> [step.name for step in network(model, batch=16).steps]
    ['Linear 64 → 32', 'GELU', 'Linear 32 → 10']
    >>> network(model, batch=16).kept == 16 * (64 + 32 + 32)
    True
    """
    batch = whole("network", "batch", batch)
    dtype = float_dtype("network", dtype)
    choice("network", "optimizer", optimizer, tuple(_STATE))
    choice("network", "library", library, _LIBRARIES)
    if isinstance(model, nn.Module):
        parts = parts_of_module(model)
    else:
        parts = parts_of_widths(_widths("network", model), bias, activation)
    steps, seen, needed = [], set(), bool(input_gradient)
    for part, width in zip(parts, kept_widths(parts, input_gradient, library), strict=True):
        fresh = {key: size for key, size in part.parameters.items() if key not in seen}
        seen |= set(fresh)
        forward, backward = _work(part, batch, needed, dtype)
        steps.append(Step(part.name, sum(fresh.values()), batch * width, forward, backward))
        needed = needed or part.kind is nn.Linear
    return Cost(batch, str(dtype), optimizer, library, tuple(steps))


def _widths(where, widths):
    if isinstance(widths, str) or not hasattr(widths, "__iter__"):
        advice = "Pass a list such as [784, 1000, 10]."
        raise TypeError(complaint(where, f"widths is {describe(widths)}", "a list of widths", advice))
    widths = [whole(where, f"widths[{at}]", width) for at, width in enumerate(widths)]
    if len(widths) < 2:
        advice = "Pass the inputs first, then the units of each layer."
        raise ValueError(complaint(where, f"widths is {widths}", "two widths or more", advice))
    return widths


def _some(where, **sizes):
    """Whole numbers of 1 or more."""
    for name, size in sizes.items():
        if whole(where, name, size) == 0:
            raise ValueError(complaint(where, f"{name} is 0", "1 or more", f"Choose another {name}."))
    return [whole(where, name, size) for name, size in sizes.items()]


def _work(part, batch, needed, dtype):
    """Work of a part, forward and backward; ``needed`` says whether anything below wants a gradient."""
    if part.kind is nn.Linear:
        sizes = batch, part.ins, part.outs
        forward = Work(linear_operations(*sizes), linear_traffic(*sizes, part.bias, dtype))
        operations = linear_backward_operations(*sizes, needed)
        return forward, Work(operations, linear_backward_traffic(*sizes, part.bias, needed, dtype))
    if part.kind is nn.Identity:
        return Work(0, 0), Work(0, 0)
    one = nbytes(batch * part.ins, dtype)
    return Work(0, 2 * one), Work(0, 3 * one if needed else 0)


def _together(works):
    works = list(works)
    return Work(sum(work.operations for work in works), sum(work.traffic for work in works))


def _cells(*works):
    for work in works:
        yield _short(work.operations)
        yield _short(work.traffic)
        yield f"{work.intensity:.2f}" if work.traffic else "-"


def _short(value):
    """Write a count exactly below 100,000, and with three digits and a suffix above.

    >>> _short(99_999), _short(785_000), _short(17_179_869_184), _short(999_999)
    ('99,999', '785 k', '17.2 G', '1.00 M')
    """
    if value < 100_000:
        return f"{value:,}"
    power, scaled = 0, float(value)
    while scaled >= 999.5 and power < 6:
        scaled, power = scaled / 1000, power + 1
    digits = 2 if scaled < 9.995 else 1 if scaled < 99.95 else 0
    return f"{scaled:.{digits}f} {'_kMGTPE'[power]}"
