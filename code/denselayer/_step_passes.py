"""Forward and backward pass of a chain of modules for one batch size, in arrays that are made once."""

from functools import lru_cache

import numpy as np

from .nn import BCEWithLogitsLoss, CrossEntropyLoss, Linear, MSELoss, ReLU

_MOST_ROWS_BY_COLUMN = 256
_LEAST_WIDTH_BY_COLUMN = 64
_ONES = 16


class Pass:
    """The modules of a network, joined to a loss, for batches of ``rows`` rows.

    Args:
        modules: Linear and activation modules, first to last; at least one Linear.
        criterion: CrossEntropyLoss, MSELoss or BCEWithLogitsLoss.
        flat: the FlatParameters of the modules.
        memory: the Memory that holds the arrays.
        rows: the batch size.
        order: ``"C"``, or ``"F"`` to keep hidden values by column (see :func:`order_of`).
    """

    def __init__(self, modules, criterion, flat, memory, rows, order):
        dense = [module for module in modules if type(module) is Linear]
        self._stages = []
        for module, below in zip(modules, [None, *modules], strict=False):
            if type(module) is Linear:
                orders = (None if module is dense[0] else order, "C" if module is dense[-1] else order)
                self._stages.append(_Dense(module, flat, memory, rows, *orders))
            elif _rectifies(module, below):
                self._stages.append(_Rectifier(self._stages[-1].out, memory))
            else:
                self._stages.append(_Elementwise(module))
        kinds = {CrossEntropyLoss: _CrossEntropy, MSELoss: _SquaredError, BCEWithLogitsLoss: _AnyLoss}
        self._loss = kinds[type(criterion)](criterion, memory, rows, dense[-1].out_features)

    def accepts(self, target):
        """Whether the target is one that the loss can take without further checks."""
        return type(target) is np.ndarray and self._loss.accepts(target)

    def forward(self, x, target):
        """Return the loss."""
        for stage in self._stages:
            x = stage.forward(x)
        return self._loss.forward(x, target)

    def backward(self):
        """Write the gradients of all parameters into the flat buffer."""
        d_out = self._loss.backward()
        for stage in reversed(self._stages):
            d_out = stage.backward(d_out)
            if d_out is None:
                return


class Memory:
    """Arrays by name, made once for the largest batch; a smaller batch takes the first part of them."""

    def __init__(self, rows, dtype):
        self.rows, self.dtype = rows, dtype
        self._whole = {}

    def take(self, name, rows, width, order="C", dtype=None):
        """The array (rows, width) of this name, contiguous in the order asked for; zeros at first."""
        if name not in self._whole:
            self._whole[name] = np.zeros(self.rows * width, dtype or self.dtype)
        part = self._whole[name][: rows * width]
        return part.reshape(rows, width) if order == "C" else part.reshape(width, rows).T


def order_of(modules, rows, dtype):
    """The order in which these modules keep their hidden values; by column only where all of them are ReLUs.

    >>> from denselayer import nn
    >>> order_of([nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)], 8, np.dtype(np.float32))
    'C'
    """
    pairs = zip(modules, [None, *modules], strict=False)
    if any(type(module) is not Linear and not _rectifies(module, below) for module, below in pairs):
        return "C"
    dense = (module for module in modules if type(module) is Linear)
    return best_order(tuple((layer.in_features, layer.out_features) for layer in dense), rows, dtype)


def _rectifies(module, below):
    return type(module) is ReLU and type(below) is Linear


@lru_cache(maxsize=128)
def best_order(layers, rows, dtype):
    """``"F"`` where keeping hidden values by column is faster and gives the same bits, else ``"C"``.

    For ``x @ weight.T`` by row the library transposes the many weights while it packs them; by column, the
    few rows of the batch. Both orders ask for the same sums, yet a library may add them up differently: a
    trial on random numbers tells. Narrow hidden layers are left out: they gain nothing, and their few short
    sums may agree by chance.

    Args:
        layers: ((in_features, out_features), ...) of the dense layers, first to last.
        rows: the batch size.
        dtype: float32 or float64; there is no gain in float64.

    >>> best_order(((3, 4), (4, 2)), 8, np.dtype(np.float64))
    'C'
    """
    if dtype != np.float32 or not 2 <= rows <= _MOST_ROWS_BY_COLUMN or len(layers) < 2:
        return "C"
    if min(width for _, width in layers[:-1]) < _LEAST_WIDTH_BY_COLUMN:
        return "C"
    last = len(layers) - 1
    orders = [("C" if i == 0 else "F", "C" if i == last else "F") for i in range(len(layers))]
    same = all(_same_bits(*sizes, rows, dtype, *pair) for sizes, pair in zip(layers, orders, strict=True))
    return "F" if same else "C"


def _same_bits(in_features, out_features, rows, dtype, in_order, out_order):
    rng = np.random.default_rng(0)
    sizes = ((rows, in_features), (out_features, in_features), (rows, out_features))
    x, weight, d_out = (rng.random(size, dtype) - dtype.type(0.5) for size in sizes)
    x_, d_out_ = np.asarray(x, order=in_order), np.asarray(d_out, order=out_order)
    out = np.matmul(x_, weight.T, out=np.empty_like(d_out_))
    d_x = np.matmul(d_out_, weight, out=np.empty_like(x_))
    pairs = ((x @ weight.T, out), (d_out.T @ x, d_out_.T @ x_), (d_out @ weight, d_x))
    d_bias = _column_sums(d_out_, np.ones((rows, _ONES), dtype), np.empty(out_features, dtype))
    return all(np.array_equal(*pair) for pair in (*pairs, (d_out.sum(axis=0), d_bias)))


def _column_sums(array, ones, out):
    """Sum over the rows, one after the other; by column a product with ones is the quick way to that."""
    if array.flags.c_contiguous:
        return np.add.reduce(array, axis=0, out=out)
    out[...] = np.matmul(array.T, ones)[:, 0]
    return out


def _line(array):
    """A contiguous array of either order as one line."""
    return (array if array.flags.c_contiguous else array.T).reshape(-1)


class _Dense:
    """A Linear; ``in_order`` None says that nobody needs the gradient of its input."""

    def __init__(self, layer, flat, memory, rows, in_order, out_order):
        self._layer, self._flat, self._x = layer, flat, None
        self._ones = np.ones((rows, _ONES), memory.dtype)
        self.out = memory.take((id(layer), "out"), rows, layer.out_features, out_order)
        self._d_x = None
        if in_order is not None:
            self._d_x = memory.take((id(layer), "d_x"), rows, layer.in_features, in_order)

    def forward(self, x):
        self._x = x
        np.matmul(x, self._layer.weight.data.T, out=self.out)
        if self._layer.bias is not None:
            np.add(self.out, self._layer.bias.data, out=self.out)
        return self.out

    def backward(self, d_out):
        layer, gradients = self._layer, self._flat.grad_of
        np.matmul(d_out.T, self._x, out=gradients[id(layer.weight)])
        self._x = None
        if layer.bias is not None:
            _column_sums(d_out, self._ones, gradients[id(layer.bias)])
        return None if self._d_x is None else np.matmul(d_out, layer.weight.data, out=self._d_x)


class _Rectifier:
    """ReLU in place on the output of a dense layer; an array of zeros is quicker than the number 0."""

    def __init__(self, out, memory):
        rows, width = out.shape
        self._out, self._line = out, _line(out)
        self._zeros = _line(memory.take(("zeros", width), rows, width))
        self._open = _line(memory.take(("open", width), rows, width, dtype=bool))
        self._bits = np.dtype(f"u{memory.dtype.itemsize}")

    def forward(self, x):
        np.maximum(self._line, self._zeros, out=self._line)
        return self._out

    def backward(self, d_out):
        np.not_equal(self._line, self._zeros, out=self._open)
        bits = _line(d_out).view(self._bits)
        np.multiply(bits, self._open, out=bits)
        return d_out


class _Elementwise:
    """Any other activation, as it stands in ``functional``."""

    def __init__(self, module):
        self._module, self._z = module, None

    def forward(self, x):
        self._z = x
        return type(self._module)._forward(x, **self._module._options)

    def backward(self, d_out):
        z, self._z = self._z, None
        return type(self._module)._backward(d_out, z, **self._module._options)


class _AnyLoss:
    """A loss of two arrays of one shape, as it stands in ``functional``."""

    def __init__(self, criterion, memory, rows, width):
        self._criterion, self._shape, self._dtype = criterion, (rows, width), memory.dtype
        self._mean = criterion.reduction == "mean"

    def accepts(self, target):
        fits = target.shape == self._shape and target.dtype == self._dtype
        return fits and target.flags.c_contiguous

    def forward(self, out, target):
        self._kept = (out, target, self._criterion.reduction)
        return type(self._criterion)._forward(*self._kept)

    def backward(self):
        return type(self._criterion)._backward(*self._kept)


class _SquaredError(_AnyLoss):
    """``mse_loss`` with its gradient, in arrays of its own."""

    def __init__(self, criterion, memory, rows, width):
        super().__init__(criterion, memory, rows, width)
        self._difference = memory.take(("loss", 0), rows, width)
        self._square = memory.take(("loss", 1), rows, width)
        self._scale = memory.dtype.type(1) / memory.dtype.type(rows * width)

    def forward(self, out, target):
        np.subtract(out, target, out=self._difference)
        np.multiply(self._difference, self._difference, out=self._square)
        total = np.add.reduce(self._square, axis=None)
        return total / self._dtype.type(self._square.size) if self._mean else total

    def backward(self):
        d_out = np.multiply(self._difference, 2, out=self._square)
        return np.multiply(d_out, self._scale, out=d_out) if self._mean else d_out


class _CrossEntropy(_AnyLoss):
    """``cross_entropy`` of class indices with its gradient; both share the exponentials."""

    def __init__(self, criterion, memory, rows, width):
        super().__init__(criterion, memory, rows, width)
        self._shifted = memory.take(("loss", 0), rows, width)
        self._exp = memory.take(("loss", 1), rows, width)
        self._column, self._sums = np.empty((2, rows, 1), memory.dtype)
        self._starts = np.arange(0, rows * width, width)
        self._scale = memory.dtype.type(1) / memory.dtype.type(rows)

    def accepts(self, target):
        rows, classes = self._shape
        if target.shape != (rows,) or target.dtype.kind not in "iu":
            return False
        return np.minimum.reduce(target) >= 0 and np.maximum.reduce(target) < classes

    def forward(self, logits, target):
        column, sums, shifted = self._column, self._sums, self._shifted
        np.maximum.reduce(logits, axis=1, keepdims=True, out=column, initial=-np.inf)
        np.subtract(logits, column, out=shifted)
        np.add.reduce(np.exp(shifted, out=self._exp), axis=1, keepdims=True, out=sums)
        self._places = self._starts + target.astype(np.intp, copy=False)
        np.log(sums, out=column)
        losses = column[:, 0] - shifted.reshape(-1).take(self._places)
        total = np.add.reduce(losses)
        return total / self._dtype.type(len(losses)) if self._mean else total

    def backward(self):
        p = np.divide(self._exp, self._sums, out=self._exp)
        p.reshape(-1)[self._places] -= 1
        return np.multiply(p, self._scale, out=p) if self._mean else p
