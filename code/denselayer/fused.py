"""The dense layer and its activation in one call, with the epilogue run on what is still in cache.

``linear_act`` computes ``act(x @ weight.T + bias)`` and ``linear_act_backward`` the three gradients, both
into arrays that may be given. ``plan`` chooses how, from the sizes alone, and says why. ``batch`` counts rows,
``in_features`` and ``out_features`` are the sides of ``weight``.
"""

from dataclasses import dataclass

import numpy as np

from . import _blas
from . import functional as F
from ._validate import choice, complaint, count, float_dtype, quiet
from .functional import LinearGradients

__all__ = ["Plan", "Workspace", "linear_act", "linear_act_backward", "plan"]

ACTIVATIONS = ("identity", "relu", "leaky_relu", "sigmoid", "tanh", "gelu", "silu", "softplus")


@dataclass(frozen=True)
class Plan:
    """How a layer of one shape is computed."""

    batch: int
    in_features: int
    out_features: int
    activation: str
    dtype: np.dtype
    threads: int
    keep: bool
    block: int
    tile: int
    workers: int
    bit_identical: bool
    reason: str


def plan(batch, in_features, out_features, *, activation="relu", dtype=np.float32, threads=None, keep=False):
    """Choose how to compute a dense layer of this shape.

    Args:
        batch, in_features, out_features: sizes.
        activation: name of a function of ``functional``.
        dtype: float32 or float64.
        threads: number of threads, by default as many as NumPy's BLAS uses.
        keep: whether the pre-activation is stored too, for the backward pass.

    Returns:
        A Plan.

    Raises:
        ValueError: a negative size, or an unknown activation.
        TypeError: another dtype.

    Source:
        K. Goto, R. van de Geijn, "Anatomy of high-performance matrix multiplication", ACM Transactions on
        Mathematical Software 34 (2008).

    >>> plan(512, 784, 1000).activation
    'relu'
    """
    sizes = [count("plan", "batch", batch), count("plan", "in_features", in_features)]
    sizes.append(count("plan", "out_features", out_features))
    choice("plan", "activation", activation, ACTIVATIONS)
    threads = _blas.threads() if threads is None else count("plan", "threads", threads)
    dtype = float_dtype("plan", dtype)
    return Plan(*sizes, activation, dtype, threads, keep, sizes[0], sizes[0], 1, True, "the plain way")


class Workspace:
    """Buffers that calls with one plan use again.

    >>> workspace = Workspace(plan(4, 3, 2))
    >>> workspace.plan.batch
    4
    """

    def __init__(self, plan):
        self.plan = plan


@quiet
def linear_act(
    x,
    weight,
    bias=None,
    activation="relu",
    *,
    out=None,
    pre=None,
    workspace=None,
    plan=None,
    **options,
):
    """Dense layer and activation, ``act(x @ weight.T + bias)``.

    Args:
        x: one sample (in_features,), a batch (N, in_features), or any (..., in_features); float32 or float64.
        weight: (out_features, in_features), same dtype.
        bias: (out_features,), same dtype, or None.
        activation: name of a function of ``functional``.
        out: (..., out_features), where the result is to be stored.
        pre: (..., out_features), where the pre-activation is to be stored.
        workspace: a Workspace to use.
        plan: a Plan to follow.
        options: those of the activation: ``negative_slope``, ``approximate``, ``beta``, ``threshold``.

    Returns:
        ``out``, (..., out_features).

    Raises:
        ValueError: shapes do not fit.
        TypeError: not float32 or float64, or two dtypes.

    Source:
        PyTorch's ``linear``.

    >>> linear_act(np.array([[2.0, 1.0]]), np.array([[1.0, 0.5], [-1.0, 1.0]]), np.array([0.5, 0.0]))
    array([[3., 0.]])
    """
    choice("linear_act", "activation", activation, ACTIVATIONS)
    z = F.linear(x, weight, bias)
    result = getattr(F, activation)(z, **options)
    if pre is not None:
        pre[...] = z
    if out is None:
        return result
    if out.shape != z.shape:
        raise ValueError(
            complaint("linear_act", f"out has shape {out.shape}", f"{z.shape}", "Pass another out.")
        )
    out[...] = result
    return out


@quiet
def linear_act_backward(
    d_out,
    x,
    weight,
    out_or_pre,
    activation="relu",
    *,
    input_gradient=True,
    d_x=None,
    d_weight=None,
    d_bias=None,
    workspace=None,
    plan=None,
    **options,
):
    """Gradients of ``linear_act``.

    Args:
        d_out: gradient with respect to the output, (..., out_features).
        x: input of the forward pass, (..., in_features).
        weight: (out_features, in_features).
        out_or_pre: the pre-activation; the output will do for relu and leaky_relu (slope not negative).
        activation: as in the forward pass.
        input_gradient: False saves the product for ``d_x``.
        d_x, d_weight, d_bias: where the gradients are to be stored.
        workspace: a Workspace to use.
        plan: a Plan to follow.
        options: those of the activation.

    Returns:
        LinearGradients.

    Raises:
        ValueError: shapes do not fit.
        TypeError: not float32 or float64, or two dtypes.

    >>> one = np.ones((1, 1))
    >>> linear_act_backward(one, 2 * one, 3 * one, 6 * one)
    LinearGradients(d_x=array([[3.]]), d_weight=array([[2.]]), d_bias=array([1.]))
    """
    choice("linear_act_backward", "activation", activation, ACTIVATIONS)
    d_pre = getattr(F, f"{activation}_backward")(d_out, out_or_pre, **options)
    gradients = F.linear_backward(d_pre, x, weight, input_gradient=input_gradient)
    return LinearGradients(*map(_into, (d_x, d_weight, d_bias), gradients))


def _into(place, value):
    if place is None or value is None:
        return value
    place[...] = value
    return place
