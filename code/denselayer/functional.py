"""Neuron and dense layer as functions, forward and backward; with the activations and losses.

One convention throughout, PyTorch's: a batch is rows, ``x (N, in_features)``, ``weight (out_features,
in_features)``, ``bias (out_features,)``. ``d_out`` is the gradient of a scalar loss with respect to the
output, and every gradient returned has the shape of what it is the gradient of. float32 stays float32, NaN
and infinities pass through, inputs are never changed. Numbers are without unit.
"""

import math
from typing import NamedTuple

import numpy as np

from ._validate import complaint, float_array, quiet, same_dtype, scalar
from .activations import (
    gelu,
    gelu_backward,
    identity,
    identity_backward,
    leaky_relu,
    leaky_relu_backward,
    relu,
    relu_backward,
    sigmoid,
    sigmoid_backward,
    silu,
    silu_backward,
    softplus,
    softplus_backward,
    tanh,
    tanh_backward,
)
from .losses import (
    bce_with_logits,
    bce_with_logits_backward,
    cross_entropy,
    cross_entropy_backward,
    log_softmax,
    mse_loss,
    mse_loss_backward,
    softmax,
)

__all__ = [
    "LinearGradients",
    "bce_with_logits",
    "bce_with_logits_backward",
    "cross_entropy",
    "cross_entropy_backward",
    "gelu",
    "gelu_backward",
    "identity",
    "identity_backward",
    "leaky_relu",
    "leaky_relu_backward",
    "linear",
    "linear_backward",
    "log_softmax",
    "mse_loss",
    "mse_loss_backward",
    "neuron",
    "neuron_backward",
    "relu",
    "relu_backward",
    "sigmoid",
    "sigmoid_backward",
    "signed_distance",
    "silu",
    "silu_backward",
    "softmax",
    "softplus",
    "softplus_backward",
    "tanh",
    "tanh_backward",
]


class LinearGradients(NamedTuple):
    """Gradients of a loss with respect to the input, the weight and the bias of an affine map."""

    d_x: np.ndarray | None
    d_weight: np.ndarray
    d_bias: np.ndarray


def _check_neuron(where, x, weight):
    x = float_array(where, "x", x)
    weight = float_array(where, "weight", weight)
    if weight.ndim != 1:
        came = f"weight has shape {weight.shape}"
        advice = "For several neurons use linear."
        raise ValueError(complaint(where, came, "(in_features,), the weights of one neuron", advice))
    width = weight.shape[0]
    if x.ndim not in (1, 2) or x.shape[-1] != width:
        came = f"x has shape {x.shape}, but weight has shape {weight.shape}"
        advice = "Give each input one weight."
        raise ValueError(complaint(where, came, f"x of shape ({width},) or (N, {width})", advice))
    same_dtype(where, "x", x, "weight", weight)
    return x, weight


@quiet
def neuron(x, weight, bias=None):
    """Weighted sum of the inputs plus a bias, ``x @ weight + bias``: one neuron without activation.

    Args:
        x: one sample (in_features,) or a batch (N, in_features), float32 or float64.
        weight: (in_features,), same dtype.
        bias: a number, an array of shape (), or None.

    Returns:
        A NumPy scalar for one sample, (N,) for a batch.

    Raises:
        ValueError: shapes do not fit.
        TypeError: not float32 or float64, or two dtypes.

    Source:
        F. Rosenblatt, "The perceptron", Psychological Review 65 (1958), 386-408.

    Notes:
        Equation: eq-neuron.

    >>> neuron(np.array([2.0, 4.0, 1.0]), np.array([0.5, -1.0, 2.0]), 3.0).item()
    2.0
    """
    x, weight = _check_neuron("neuron", x, weight)
    if bias is None:
        return x @ weight
    return x @ weight + scalar("neuron", "bias", bias, "x", x)


@quiet
def neuron_backward(d_out, x, weight):
    """Gradients of one neuron: ``d_out * weight``, ``d_out * x`` and ``d_out``, added over the batch.

    Args:
        d_out: gradient with respect to the output, a number for one sample, (N,) for a batch.
        x: one sample (in_features,) or a batch (N, in_features), float32 or float64.
        weight: (in_features,).

    Returns:
        LinearGradients with the shapes of ``x``, ``weight`` and ().

    Raises:
        ValueError: shapes do not fit.
        TypeError: not float32 or float64, or two dtypes.

    Source:
        D. Rumelhart, G. Hinton, R. Williams, "Learning representations by back-propagating errors", Nature
        323 (1986).

    Notes:
        Equation: eq-neuron-gradient.

    >>> g = neuron_backward(2.0, np.array([2.0, 4.0, 1.0]), np.array([0.5, -1.0, 2.0]))
    >>> g.d_x, g.d_weight, g.d_bias.item()
    (array([ 1., -2.,  4.]), array([4., 8., 2.]), 2.0)
    """
    where = "neuron_backward"
    x, weight = _check_neuron(where, x, weight)
    if x.ndim == 1:
        d_out = scalar(where, "d_out", d_out, "x", x)
        return LinearGradients(d_out * weight, d_out * x, d_out)
    d_out = float_array(where, "d_out", d_out)
    if d_out.shape != x.shape[:1]:
        expected = f"{x.shape[:1]}, one number for each row of x {x.shape}"
        advice = "Pass the gradient with respect to the neuron's output."
        raise ValueError(complaint(where, f"d_out has shape {d_out.shape}", expected, advice))
    same_dtype(where, "x", x, "d_out", d_out)
    return LinearGradients(d_out[:, None] * weight, d_out @ x, d_out.sum())


@quiet
def signed_distance(x, weight, bias):
    """Distance of ``x`` from the hyperplane ``weight @ x + bias == 0``, positive where ``weight`` points.

    Args:
        x: one point (in_features,) or several (N, in_features), float32 or float64.
        weight: (in_features,), not all zero.
        bias: a number or an array of shape ().

    Returns:
        A NumPy scalar or (N,), in the unit of ``x``.

    Raises:
        ValueError: shapes do not fit, or ``weight`` is zero and there is no hyperplane.
        TypeError: not float32 or float64, or two dtypes.

    Source:
        C. Bishop, "Pattern Recognition and Machine Learning", Springer 2006, section 4.1.1.

    Notes:
        Equation: eq-neuron-distance.
        Scaled by a power of two first, so that huge and tiny weights neither overflow nor vanish.

    >>> signed_distance(np.array([3.0, 4.0]), np.array([3.0, 4.0]), -10.0).item()
    3.0
    """
    where = "signed_distance"
    x, weight = _check_neuron(where, x, weight)
    bias = scalar(where, "bias", bias, "x", x)
    largest = np.max(np.abs(weight), initial=0)
    if largest == 0:
        came = f"weight is zero in all {weight.size} entries"
        expected = "a weight that is not zero, since it is the normal of the hyperplane"
        raise ValueError(complaint(where, came, expected, "Pass another weight."))
    exponent = np.frexp(largest)[1]
    normal = np.ldexp(weight, -exponent)
    return (x @ normal + np.ldexp(bias, -exponent)) / np.sqrt(normal @ normal)


def _check_linear(where, x, weight):
    x = float_array(where, "x", x)
    weight = float_array(where, "weight", weight)
    if weight.ndim != 2 or x.ndim == 0 or x.shape[-1] != weight.shape[1]:
        raise ValueError(_explain_shapes(where, x, weight))
    if x.dtype != weight.dtype:
        same_dtype(where, "x", x, "weight", weight)
    return x, weight


def _check_bias(where, bias, weight, like_name, like):
    bias = float_array(where, "bias", bias)
    if bias.ndim != 1 or bias.shape[0] != weight.shape[0]:
        expected = f"({weight.shape[0]},), one entry for each row of weight {weight.shape}"
        advice = "Pass a bias of that shape, or None."
        raise ValueError(complaint(where, f"bias has shape {bias.shape}", expected, advice))
    if bias.dtype != like.dtype:
        same_dtype(where, like_name, like, "bias", bias)
    return bias


def _explain_shapes(where, x, weight):
    if weight.ndim != 2:
        advice = "For one neuron pass weight[None, :]."
        came = f"weight has shape {weight.shape}"
        return complaint(where, came, "(out_features, in_features)", advice)
    out_features, in_features = weight.shape
    advice = "Give each input feature one column of weight."
    if x.ndim and x.shape[-1] == out_features:
        advice = "It looks stored as (in_features, out_features): pass weight.T."
    came = f"x has shape {x.shape}, but weight has shape {weight.shape}"
    expected = f"x of shape ({in_features},) or (N, {in_features}), as wide as weight"
    return complaint(where, came, expected, advice)


def linear(x, weight, bias=None):
    """Dense layer, ``x @ weight.T + bias``.

    Args:
        x: one sample (in_features,), a batch (N, in_features), or any (..., in_features); float32 or float64.
        weight: (out_features, in_features), same dtype.
        bias: (out_features,), same dtype, or None.

    Returns:
        (..., out_features), same dtype.

    Raises:
        ValueError: shapes do not fit.
        TypeError: not float32 or float64, or two dtypes.

    Source:
        PyTorch's ``linear``.

    Notes:
        Equation: eq-dense-entry.
        Equation: eq-dense-forward.
        Equation: eq-dense-shift.
        Adding c to every row of ``x`` adds ``weight @ c`` to every row of the output.

    >>> weight = np.array([[0.5, -1.0, 2.0], [-0.25, 0.5, 1.0], [1.0, 0.25, -0.5]])
    >>> linear(np.array([[2.0, 4.0, 1.0]]), weight, np.array([3.0, -1.0, -4.0]))
    array([[ 2. ,  1.5, -1.5]])
    """
    x, weight = _check_linear("linear", x, weight)
    if bias is not None:
        bias = _check_bias("linear", bias, weight, "x", x)
    with np.errstate(all="ignore"):
        out = x @ weight.T if x.ndim < 3 else _rows(x) @ weight.T
        if bias is not None:
            out += bias
    return out if x.ndim < 3 else out.reshape(*x.shape[:-1], weight.shape[0])


def _rows(x):
    """View of (..., n) as a matrix (N, n); sizes are given, since -1 is not defined for n = 0."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


@quiet
def linear_backward(d_out, x, weight, *, input_gradient=True):
    """Gradients of a dense layer: ``d_out @ weight``, ``d_out.T @ x`` and ``d_out.sum(axis=0)``.

    Args:
        d_out: gradient with respect to the output, (..., out_features), float32 or float64.
        x: input of the forward pass, (..., in_features), same dtype.
        weight: (out_features, in_features), same dtype.
        input_gradient: False saves the product for ``d_x``, which the bottom layer does not need.

    Returns:
        LinearGradients with the shapes of ``x``, ``weight`` and ``(out_features,)``; ``d_x`` is None without
        ``input_gradient``. Nothing is divided by N: that factor belongs to the loss.

    Raises:
        ValueError: shapes do not fit.
        TypeError: not float32 or float64, or two dtypes.

    Source:
        D. Rumelhart, G. Hinton, R. Williams, "Learning representations by back-propagating errors", Nature
        323 (1986).

    Notes:
        Equation: eq-backward-entry.
        Equation: eq-backward-weight.
        Equation: eq-backward-bias.
        Equation: eq-backward-input.

    >>> g = linear_backward(np.array([[3.0]]), np.array([[1.0, 2.0]]), np.array([[1.0, -1.0]]))
    >>> g.d_x, g.d_weight, g.d_bias
    (array([[ 3., -3.]]), array([[3., 6.]]), array([3.]))
    """
    where = "linear_backward"
    x, weight = _check_linear(where, x, weight)
    d_out = float_array(where, "d_out", d_out)
    expected = (*x.shape[:-1], weight.shape[0])
    if d_out.shape != expected:
        came = f"d_out has shape {d_out.shape}"
        origin = f"{expected}, the shape of the output for x {x.shape} and weight {weight.shape}"
        raise ValueError(complaint(where, came, origin, "Pass the gradient with respect to the output."))
    same_dtype(where, "x", x, "d_out", d_out)
    rows, d_rows = _rows(x), _rows(d_out)
    d_x = (d_rows @ weight).reshape(x.shape) if input_gradient else None
    return LinearGradients(d_x, d_rows.T @ rows, d_rows.sum(axis=0))
