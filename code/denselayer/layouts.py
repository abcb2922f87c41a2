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

from denselayer.functional import LinearGradients, linear, linear_backward

Layout = Literal["out_in", "in_out", "augmented"]

LAYOUTS: tuple[str, ...] = get_args(Layout)


def augment(x, *, axis=0):
    """Put a 1 in front of every input, so that the bias can be a weight like the others.

    Parameters
    ----------
    x : ndarray, ``(in,)`` or ``(in, N)``, float32 or float64
        One input, or N inputs as columns.
    axis : int
        The axis along which one input runs. Inputs stored as rows, ``(N, in)``, take ``axis=-1``.

    Returns
    -------
    ndarray, ``(1 + in,)`` or ``(1 + in, N)``
        A new array of the same dtype; entry 0 of every input is 1.

    Notes
    -----
    With ``w_0 = bias`` and ``x_0 = 1``, the neuron ``w . x + bias`` is the plain dot product of two longer
    vectors.

    Equation: eq-neuron-augmented.

    Examples
    --------
    >>> x = np.array([2.0, 4.0, 1.0])
    >>> augment(x)
    array([1., 2., 4., 1.])
    >>> augmented_weight = np.array([3.0, 0.5, -1.0, 2.0])  # the bias 3, then the weights
    >>> float(augmented_weight @ augment(x))
    2.0
    """
    _check_array("x", x, (1, 2), "(in,) or (in, N)")
    if axis not in range(-x.ndim, x.ndim):
        raise ValueError(
            f"axis is {axis}, but x has shape {x.shape}: pass an axis from {-x.ndim} to {x.ndim - 1}"
        )
    shape = list(x.shape)
    shape[axis] = 1
    return np.concatenate([np.ones(shape, dtype=x.dtype), x], axis=axis)


def convert(weight, bias, source: Layout, target: Layout):
    """Store the same layer, or the gradients of the same layer, in another layout.

    Parameters
    ----------
    weight : ndarray
        The weight as ``source`` stores it, or its gradient: both are laid out in the same way.
    bias : ndarray ``(out,)`` or None
        The bias, or its gradient. None for a layer without bias, and None for ``"augmented"``, whose column
        0 holds it.
    source, target : {"out_in", "in_out", "augmented"}

    Returns
    -------
    (weight, bias)
        New arrays that share no memory with the old ones. ``bias`` is None when ``target`` is
        ``"augmented"``. A layer without bias gets a column of zeros there, so it comes back with a bias of
        zeros.

    Raises
    ------
    ValueError
        For an unknown layout, or arrays whose shapes are not those of ``source``.
    TypeError
        For anything but float32 or float64 arrays of one dtype.

    Examples
    --------
    Two outputs of three inputs:

    >>> weight = np.array([[0.5, -1.0, 2.0], [-0.25, 0.5, 1.0]])
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
    _check_layout("source", source)
    _check_layout("target", target)
    _check_layer(weight, bias, source)
    return _from_out_in(*_to_out_in(weight, bias, source), target)


def forward(x, weight, bias, layout: Layout):
    """Compute the layer's output with the weight as ``layout`` stores it.

    Parameters
    ----------
    x : ndarray
        One input ``(in,)``; or N of them, as rows ``(N, in)`` for ``"out_in"`` and ``"in_out"`` and as
        columns ``(in, N)`` for ``"augmented"``.
    weight : ndarray
        ``(out, in)``, ``(in, out)`` or ``(out, 1 + in)``.
    bias : ndarray ``(out,)`` or None
        Must be None for ``"augmented"``.
    layout : {"out_in", "in_out", "augmented"}

    Returns
    -------
    ndarray
        ``(out,)`` for one input; ``(N, out)``, or ``(out, N)`` for ``"augmented"``.

    Raises
    ------
    ValueError, TypeError
        For an unknown layout, shapes that do not fit, and dtypes other than one of float32 and float64.

    Notes
    -----
    The three products are ``x @ weight.T + bias``, ``x @ weight + bias`` and ``weight @ augment(x)``.

    Equation: eq-dense-in-out.
    Equation: eq-dense-augmented.

    Examples
    --------
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
    _check_call(x, weight, bias, layout)
    if layout == "out_in":
        return linear(x, weight, bias)
    if layout == "in_out":
        return x @ weight if bias is None else x @ weight + bias
    return weight @ augment(x)


def backward(d_out, x, weight, bias, layout: Layout) -> LinearGradients:
    """Compute the layer's gradients, each laid out as ``layout`` stores what it is the gradient of.

    Parameters
    ----------
    d_out : ndarray
        The upstream gradient, of the output's shape.
    x, weight, bias, layout
        As `forward` took them.

    Returns
    -------
    LinearGradients
        ``(d_x, d_weight, d_bias)``, of the shapes of ``x``, ``weight`` and ``bias``. ``d_bias`` is None
        when ``bias`` is None; for ``"augmented"`` the gradient of the bias is column 0 of ``d_weight``.

    Raises
    ------
    ValueError, TypeError
        As `forward`, and for a ``d_out`` whose shape or dtype is not the output's.

    Notes
    -----
    With inputs as rows and (in, out) storage: ``d_weight = x.T @ d_out`` and ``d_x = d_out @ weight.T``.
    With inputs as columns: ``d_weight = d_out @ augment(x).T``, for one input the outer product of the two
    vectors, and ``d_x = weight[:, 1:].T @ d_out``: the 1 in front is a constant and gets no gradient.

    Equation: eq-backward-in-out.
    Equation: eq-backward-column.

    Examples
    --------
    >>> gradients = backward(
    ...     np.array([[3.0]]), np.array([[1.0, 2.0]]), np.array([[1.0], [-1.0]]), np.array([0.0]), "in_out"
    ... )
    >>> gradients.d_weight
    array([[3.],
           [6.]])
    >>> gradients.d_bias
    array([3.])
    >>> gradients.d_x
    array([[ 3., -3.]])
    """
    out = _check_call(x, weight, bias, layout)
    _check_upstream(d_out, x, out, layout)
    if layout == "out_in":
        gradients = linear_backward(d_out, x, weight)
        return gradients if bias is not None else gradients._replace(d_bias=None)
    if layout == "in_out":
        d_rows, rows = np.atleast_2d(d_out), np.atleast_2d(x)
        d_bias = None if bias is None else d_rows.sum(axis=0)
        return LinearGradients(d_out @ weight.T, rows.T @ d_rows, d_bias)
    columns = augment(x).reshape(weight.shape[1], -1)
    return LinearGradients(weight[:, 1:].T @ d_out, d_out.reshape(out, columns.shape[1]) @ columns.T, None)


def _to_out_in(weight, bias, source):
    if source == "augmented":
        return weight[:, 1:], weight[:, 0]
    return (weight.T if source == "in_out" else weight), bias


def _from_out_in(weight, bias, target):
    if target == "augmented":
        column = np.zeros(len(weight), weight.dtype) if bias is None else bias
        return np.column_stack([column, weight]), None
    weight = weight.T if target == "in_out" else weight
    return weight.copy(order="C"), None if bias is None else bias.copy()


def _check_layout(name, layout):
    if layout not in LAYOUTS:
        raise ValueError(f"{name} is {layout!r}: choose one of {', '.join(map(repr, LAYOUTS))}")


def _check_array(name, array, ranks, shapes):
    if not isinstance(array, np.ndarray):
        raise TypeError(
            f"{name} is a {type(array).__name__}, expected an array: convert it with np.array({name}, float)"
        )
    if array.dtype not in (np.float32, np.float64):
        raise TypeError(
            f"{name} is {array.dtype}, expected float32 or float64: convert it with {name}.astype(float)"
        )
    if array.ndim not in ranks:
        raise ValueError(f"{name} has shape {array.shape}, expected {shapes}: reshape it")


def _check_layer(weight, bias, layout):
    """Return (in, out) of a layer whose arrays fit the layout and each other."""
    shapes = {"out_in": "(out, in)", "in_out": "(in, out)", "augmented": "(out, 1 + in)"}
    _check_array("weight", weight, (2,), f"{shapes[layout]} in the layout {layout!r}")
    if layout == "augmented":
        return _check_augmented(weight, bias)
    inputs, outputs = weight.shape[:: 1 if layout == "in_out" else -1]
    if bias is None:
        return inputs, outputs
    _check_array("bias", bias, (1,), "(out,)")
    if len(bias) != outputs:
        hint = "give one bias per output"
        if len(bias) == inputs:
            other = "in_out" if layout == "out_in" else "out_in"
            hint += f"; if the weight is stored as {shapes[other]}, pass {other!r}"
        raise ValueError(
            f"bias has shape {bias.shape}, expected ({outputs},), because weight has shape {weight.shape} "
            f"and the layout {layout!r} stores it as {shapes[layout]}: {hint}"
        )
    _check_dtype("bias", bias, weight)
    return inputs, outputs


def _check_augmented(weight, bias):
    if bias is not None:
        raise ValueError(
            "bias came beside an augmented weight, expected None: column 0 of an augmented weight is the "
            "bias; pass None, or build the weight with convert(weight, bias, 'out_in', 'augmented')"
        )
    if weight.shape[1] == 0:
        raise ValueError(
            f"weight has shape {weight.shape}, expected (out, 1 + in): an augmented weight has at least "
            "column 0, which holds the bias; use np.zeros((out, 1)) for a layer without inputs"
        )
    return weight.shape[1] - 1, weight.shape[0]


def _check_call(x, weight, bias, layout):
    """Return the number of outputs, once x, weight and bias fit together."""
    _check_layout("layout", layout)
    inputs, outputs = _check_layer(weight, bias, layout)
    columns = layout == "augmented"
    _check_array("x", x, (1, 2), f"(in,) or {'(in, N)' if columns else '(N, in)'} in the layout {layout!r}")
    width_axis = 0 if columns else -1
    if x.shape[width_axis] != inputs:
        where = "columns, (in, N)" if columns else "rows, (N, in)"
        hint = "pass x.T" if x.ndim == 2 and x.shape[-1 - width_axis] == inputs else "make the widths agree"
        raise ValueError(
            f"x has shape {x.shape}, expected {inputs} numbers in each input, because weight has shape "
            f"{weight.shape} in the layout {layout!r}, which takes inputs as {where}: {hint}"
        )
    _check_dtype("x", x, weight)
    return outputs


def _check_upstream(d_out, x, outputs, layout):
    _check_array("d_out", d_out, (x.ndim,), f"{x.ndim} axes as x")
    expected = (outputs, *x.shape[1:]) if layout == "augmented" else (*x.shape[:-1], outputs)
    if d_out.shape != expected:
        raise ValueError(
            f"d_out has shape {d_out.shape}, expected {expected}, the shape of the output in the layout "
            f"{layout!r}: pass the gradient of the loss with respect to the output"
        )
    _check_dtype("d_out", d_out, x)


def _check_dtype(name, array, other):
    if array.dtype != other.dtype:
        raise TypeError(
            f"{name} is {array.dtype} but the weight is {other.dtype}: "
            f"convert one, for instance with {name}.astype({other.dtype.name!r})"
        )
