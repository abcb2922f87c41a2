"""The three ways in which books and libraries store a dense layer, and the way from each to each.

======================  ====================  ================  =================  =================
layout                  weight                bias              x                  output
======================  ====================  ================  =================  =================
``"out_in"``            ``(out, in)``         ``(out,)``        ``(N, in)``        ``(N, out)``
``"in_out"``            ``(in, out)``         ``(out,)``        ``(N, in)``        ``(N, out)``
``"augmented"``         ``(out, 1 + in)``     column 0          ``(in, N)``        ``(out, N)``
======================  ====================  ================  =================  =================

``"out_in"`` is PyTorch's layout and the one of this package. ``"in_out"`` is that of Keras and of most
hand-written NumPy. ``"augmented"`` is that of many lecture notes: the bias is column 0 of the matrix, the
input gets a 1 in front, and inputs are columns, so that the whole layer is one product. A single input is a
vector ``(in,)`` in all three.

In every layout the number that leads from input ``j`` to output ``i`` is the same one. It stands at ``[i,
j]``, at ``[j, i]`` and at ``[i, 1 + j]``.
"""

from typing import Literal, get_args

import numpy as np

from ._validate import choice, complaint, float_array, quiet, same_dtype, same_shape
from .functional import LinearGradients, linear, linear_backward

Layout = Literal["out_in", "in_out", "augmented"]
LAYOUTS: tuple[str, ...] = get_args(Layout)

_SHAPES = {"out_in": "(out, in)", "in_out": "(in, out)", "augmented": "(out, 1 + in)"}


def augment(x, *, axis=0):
    """Put a 1 in front of every input, so that the bias can be a weight like the others.

    Args:
        x: one input (in,), or N inputs as columns (in, N), float32 or float64.
        axis: the axis along which one input runs; inputs stored as rows (N, in) take ``axis=-1``.

    Returns:
        A new array, (1 + in,) or (1 + in, N), of the same dtype.

    Raises:
        ValueError: ``x`` has another rank, or no such axis.
        TypeError: not float32 or float64.

    Notes:
        With ``w_0 = bias`` and ``x_0 = 1``, the neuron ``w . x + bias`` is one dot product of longer vectors.

        Equation: eq-neuron-augmented.

    >>> x = np.array([2.0, 4.0, 1.0])
    >>> augment(x)
    array([1., 2., 4., 1.])
    >>> augmented_weight = np.array([3.0, 0.5, -1.0, 2.0])  # the bias 3, then the weights
    >>> float(augmented_weight @ augment(x))
    2.0
    """
    x = _ranked("augment", "x", x, (1, 2), "(in,) or (in, N)")
    if axis not in range(-x.ndim, x.ndim):
        expected = f"an axis of x, which has shape {x.shape}"
        advice = "Inputs as columns take axis=0, inputs as rows axis=-1."
        raise ValueError(complaint("augment", f"axis is {axis!r}", expected, advice))
    shape = list(x.shape)
    shape[axis] = 1
    return np.concatenate([np.ones(shape, dtype=x.dtype), x], axis=axis)


def convert(weight, bias, source: Layout, target: Layout):
    """Store the same layer, or the gradients of the same layer, in another layout.

    Args:
        weight: the weight as ``source`` stores it, or its gradient, which is laid out in the same way.
        bias: the bias (out,) or its gradient. None for a layer without bias, and for ``"augmented"``.
        source, target: ``"out_in"``, ``"in_out"`` or ``"augmented"``.

    Returns:
        (weight, bias), new arrays that share no memory with the old ones. ``bias`` is None when ``target`` is
        ``"augmented"``. A layer without bias gets a column of zeros there, so it returns with a zero bias.

    Raises:
        ValueError: an unknown layout, or shapes that are not those of ``source``.
        TypeError: not float32 or float64, or two dtypes.

    >>> weight = np.array([[0.5, -1.0, 2.0], [-0.25, 0.5, 1.0]])  # two outputs of three inputs
    >>> bias = np.array([3.0, -1.0])
    >>> convert(weight, bias, "out_in", "in_out")[0]
    array([[ 0.5 , -0.25],
           [-1.  ,  0.5 ],
           [ 2.  ,  1.  ]])
    >>> augmented, no_bias = convert(weight, bias, "out_in", "augmented")
    >>> augmented
    array([[ 3.  ,  0.5 , -1.  ,  2.  ],
           [-1.  , -0.25,  0.5 ,  1.  ]])
    >>> no_bias is None
    True
    """
    choice("convert", "source", source, LAYOUTS)
    choice("convert", "target", target, LAYOUTS)
    weight, bias, _ = _layer("convert", weight, bias, source)
    return _from_out_in(*_to_out_in(weight, bias, source), target)


@quiet
def forward(x, weight, bias, layout: Layout):
    """Output of the layer whose weight is stored as ``layout`` says.

    Args:
        x: one input (in,); or N of them, as rows (N, in) for ``"out_in"`` and ``"in_out"``, as columns
            (in, N) for ``"augmented"``.
        weight: (out, in), (in, out) or (out, 1 + in).
        bias: (out,) or None; None for ``"augmented"``.
        layout: ``"out_in"``, ``"in_out"`` or ``"augmented"``.

    Returns:
        (out,) for one input; (N, out), or (out, N) for ``"augmented"``.

    Raises:
        ValueError: an unknown layout, or shapes that do not fit.
        TypeError: not float32 or float64, or two dtypes.

    Notes:
        The three products are ``x @ weight.T + bias``, ``x @ weight + bias`` and ``weight @ augment(x)``.

        Equation: eq-dense-in-out.
        Equation: eq-dense-augmented.

    >>> x = np.array([[2.0, 4.0, 1.0]])
    >>> weight, bias = np.array([[0.5, -1.0, 2.0], [-0.25, 0.5, 1.0]]), np.array([3.0, -1.0])
    >>> forward(x, weight, bias, "out_in")
    array([[2. , 1.5]])
    >>> forward(x, *convert(weight, bias, "out_in", "in_out"), "in_out")
    array([[2. , 1.5]])
    >>> forward(x.T, *convert(weight, bias, "out_in", "augmented"), "augmented")
    array([[2. ],
           [1.5]])
    """
    x, weight, bias, _ = _call("layouts.forward", x, weight, bias, layout)
    if layout == "out_in":
        return linear(x, weight, bias)
    if layout == "in_out":
        return x @ weight if bias is None else x @ weight + bias
    return weight @ augment(x)


@quiet
def backward(d_out, x, weight, bias, layout: Layout) -> LinearGradients:
    """Gradients of the layer, each stored as ``layout`` stores what it is the gradient of.

    Args:
        d_out: upstream gradient, of the shape of the output.
        x, weight, bias, layout: as `forward` took them.

    Returns:
        LinearGradients(d_x, d_weight, d_bias), of the shapes of ``x``, ``weight`` and ``bias``. ``d_bias`` is
        None when ``bias`` is; for ``"augmented"`` the gradient of the bias is column 0 of ``d_weight``.

    Raises:
        ValueError, TypeError: as `forward`, and for a ``d_out`` that has not the output's shape and dtype.

    Notes:
        Inputs as rows, weight (in, out): ``d_weight = x.T @ d_out`` and ``d_x = d_out @ weight.T``.

        Equation: eq-backward-in-out.

        Inputs as columns: ``d_weight = d_out @ augment(x).T``, for one input an outer product of two vectors,
        and ``d_x = weight[:, 1:].T @ d_out``. The 1 in front is a constant and gets no gradient.

        Equation: eq-backward-column.

    >>> x, d_out = np.array([[1.0, 2.0]]), np.array([[3.0]])
    >>> gradients = backward(d_out, x, np.array([[1.0], [-1.0]]), np.array([0.0]), "in_out")
    >>> gradients.d_weight
    array([[3.],
           [6.]])
    >>> gradients.d_bias
    array([3.])
    >>> gradients.d_x
    array([[ 3., -3.]])
    """
    where = "layouts.backward"
    x, weight, bias, output = _call(where, x, weight, bias, layout)
    d_out = float_array(where, "d_out", d_out)
    same_shape(where, "the output", output, "d_out", d_out)
    same_dtype(where, "x", x, "d_out", d_out)
    if layout == "out_in":
        gradients = linear_backward(d_out, x, weight)
        return gradients if bias is not None else gradients._replace(d_bias=None)
    if layout == "in_out":
        d_rows, rows = np.atleast_2d(d_out), np.atleast_2d(x)
        d_bias = None if bias is None else d_rows.sum(axis=0)
        return LinearGradients(d_out @ weight.T, rows.T @ d_rows, d_bias)
    d_columns, columns = (
        np.reshape(array, (-1, 1)) if x.ndim == 1 else array for array in (d_out, augment(x))
    )
    return LinearGradients(weight[:, 1:].T @ d_out, d_columns @ columns.T, None)


def _to_out_in(weight, bias, source):
    if source == "augmented":
        return weight[:, 1:], weight[:, 0]
    return (weight.T if source == "in_out" else weight), bias


def _from_out_in(weight, bias, target):
    if target == "augmented":
        column = np.zeros(len(weight), weight.dtype) if bias is None else bias
        return np.ascontiguousarray(np.column_stack([column, weight])), None
    weight = weight.T if target == "in_out" else weight
    return weight.copy(order="C"), None if bias is None else bias.copy()


def _ranked(where, name, value, ranks, shapes):
    value = float_array(where, name, value)
    if value.ndim not in ranks:
        advice = f"Reshape it: {name}.reshape(...)."
        raise ValueError(complaint(where, f"{name} has shape {value.shape}", shapes, advice))
    return value


def _layer(where, weight, bias, layout):
    """Return (weight, bias, (in, out)) as arrays that fit the layout and each other."""
    weight = _ranked(where, "weight", weight, (2,), f"{_SHAPES[layout]} in the layout {layout!r}")
    if layout == "augmented":
        _check_augmented(where, weight, bias)
        return weight, None, (weight.shape[1] - 1, weight.shape[0])
    widths = weight.shape if layout == "in_out" else weight.shape[::-1]
    if bias is None:
        return weight, None, widths
    bias = _ranked(where, "bias", bias, (1,), "(out,)")
    if len(bias) != widths[1]:
        came = f"bias has shape {bias.shape}, and weight {weight.shape} is {_SHAPES[layout]}, {layout!r}"
        other = "in_out" if layout == "out_in" else "out_in"
        advice = (
            f"If the weight is {_SHAPES[other]}, pass {other!r}." if len(bias) == widths[0] else "Check both."
        )
        raise ValueError(complaint(where, came, f"({widths[1]},), one bias per output", advice))
    same_dtype(where, "weight", weight, "bias", bias)
    return weight, bias, widths


def _check_augmented(where, weight, bias):
    if bias is not None:
        advice = "Pass None, or make such a weight with convert(weight, bias, 'out_in', 'augmented')."
        expected = "None, since column 0 of an augmented weight is the bias"
        raise ValueError(complaint(where, "a bias came beside an augmented weight", expected, advice))
    if weight.shape[1] == 0:
        expected = "(out, 1 + in), since column 0 of an augmented weight is the bias"
        advice = "A layer without inputs has the weight np.zeros((out, 1))."
        raise ValueError(complaint(where, f"weight has shape {weight.shape}", expected, advice))


def _call(where, x, weight, bias, layout):
    """Return (x, weight, bias, an empty array like the output) once they all fit together."""
    choice(where, "layout", layout, LAYOUTS)
    weight, bias, (inputs, outputs) = _layer(where, weight, bias, layout)
    columns = layout == "augmented"
    x = _ranked(
        where, "x", x, (1, 2), f"(in,) or {'(in, N)' if columns else '(N, in)'} in the layout {layout!r}"
    )
    width_axis = 0 if columns else -1
    if x.shape[width_axis] != inputs:
        came = f"x has shape {x.shape}, and weight {weight.shape} is {_SHAPES[layout]}, {layout!r}"
        expected = f"x of shape ({inputs},) or {f'({inputs}, N)' if columns else f'(N, {inputs})'}"
        turned = x.ndim == 2 and x.shape[-1 - width_axis] == inputs
        advice = "Pass x.T." if turned else "Give each input of the layer one number, or check the layout."
        raise ValueError(complaint(where, came, expected, advice))
    same_dtype(where, "weight", weight, "x", x)
    shape = (outputs, *x.shape[1:]) if columns else (*x.shape[:-1], outputs)
    return x, weight, bias, np.broadcast_to(x.dtype.type(0), shape)
