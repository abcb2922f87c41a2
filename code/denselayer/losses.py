"""Losses from predictions to one number, each with the gradient with respect to its first argument.

``reduction`` is ``"mean"`` (over all entries, for ``cross_entropy`` over the samples), ``"sum"`` or
``"none"``. The factor 1/N of a mean stands here and nowhere else: layers only add over the batch. Every
``<name>_backward`` multiplies by ``d_out``, the gradient with respect to the loss: a number for mean and sum,
an array of the loss's shape for none. The mean over an empty batch is NaN and its gradient empty, as in
PyTorch. Losses are in nats where logarithms occur.
"""

import math

import numpy as np

from ._validate import (
    REDUCTIONS,
    choice,
    complaint,
    describe,
    float_array,
    is_number,
    quiet,
    same_dtype,
    same_shape,
    scalar,
    upstream,
)
from .activations import _sigmoid


def _reduce(values, reduction, samples):
    if reduction == "none":
        return values[()]
    total = values.sum(dtype=values.dtype)
    return total / values.dtype.type(samples) if reduction == "mean" else total


def _weight(where, reduction, d_out, losses_shape, samples, reference_name, reference):
    """Factor that each sample's own gradient gets: ``d_out``, over the number of samples for a mean.

    Equation: eq-reduction.
    """
    if reduction == "none":
        if is_number(d_out):
            return np.full(losses_shape, d_out, dtype=reference.dtype)
        return upstream(where, "the loss", np.empty(losses_shape, dtype=reference.dtype), d_out)
    factor = scalar(where, "d_out", d_out, reference_name, reference)
    return factor / reference.dtype.type(samples) if reduction == "mean" else factor


def _same(where, first_name, first, target):
    first = float_array(where, first_name, first)
    target = float_array(where, "target", target)
    same_shape(where, first_name, first, "target", target)
    same_dtype(where, first_name, first, "target", target)
    return first, target


@quiet
def mse_loss(input, target, reduction="mean"):
    """Squared error ``(input - target)**2``, by default the mean over all entries.

    Args:
        input: predictions, any shape, float32 or float64.
        target: wanted values, same shape and dtype.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Returns:
        A NumPy scalar, or for ``"none"`` an array of the shape of ``input``.

    Raises:
        ValueError: shapes differ (nothing is broadcast), or the reduction is unknown.
        TypeError: not float32 or float64 arrays of one dtype.

    Source:
        Definition; PyTorch's ``mse_loss``.

    Notes:
        Equation: eq-mse.

    >>> mse_loss(np.array([1.0, 2.0]), np.array([0.0, 4.0])).item()
    2.5
    """
    choice("mse_loss", "reduction", reduction, REDUCTIONS)
    input, target = _same("mse_loss", "input", input, target)
    difference = np.subtract(input, target)
    return _reduce(np.asarray(difference * difference), reduction, input.size)


@quiet
def mse_loss_backward(input, target, reduction="mean", d_out=1.0):
    """Gradient of :func:`mse_loss`: ``2 (input - target) / m`` for the mean of m entries.

    Args:
        input, target, reduction: as in :func:`mse_loss`.
        d_out: gradient with respect to the loss.

    Returns:
        Array of the shape and dtype of ``input``.

    Notes:
        Equation: eq-mse-backward.

    >>> mse_loss_backward(np.array([1.0, 2.0]), np.array([0.0, 4.0]))
    array([ 1., -2.])
    """
    where = "mse_loss_backward"
    choice(where, "reduction", reduction, REDUCTIONS)
    input, target = _same(where, "input", input, target)
    weight = _weight(where, reduction, d_out, input.shape, input.size, "input", input)
    return ((2 * (input - target)) * weight)[()]


def _shifted(logits, axis):
    return logits - np.max(logits, axis=axis, keepdims=True, initial=-np.inf)


def _axis(where, logits, axis):
    logits = float_array(where, "logits", logits)
    if logits.ndim == 0:
        raise ValueError(complaint(where, "logits has shape ()", "an axis of classes", "Pass logits[None]."))
    if not isinstance(axis, int | np.integer) or not -logits.ndim <= axis < logits.ndim:
        expected = f"an int from {-logits.ndim} to {logits.ndim - 1} for logits {logits.shape}"
        raise ValueError(complaint(where, f"axis is {axis!r}", expected, "Pass axis=-1 for the last."))
    return logits


@quiet
def softmax(logits, axis=-1):
    """Exponentials along ``axis``, scaled to sum to 1.

    Args:
        logits: array with at least one axis, float32 or float64, in nats.
        axis: the axis of the classes.

    Source:
        J. Bridle, "Probabilistic interpretation of feedforward classification network outputs", 1990. The
        largest entry is subtracted first, so nothing overflows.

    Notes:
        Equation: eq-softmax.
        Every output depends on every logit: with p for the result, output i changes with logit j at the rate
        ``p[i] * ((i == j) - p[j])``.

        Equation: eq-softmax-jacobian.

    >>> softmax(np.array([1000.0, 1000.0]))
    array([0.5, 0.5])
    """
    exponentials = np.exp(_shifted(_axis("softmax", logits, axis), axis))
    return exponentials / exponentials.sum(axis=axis, keepdims=True)


@quiet
def log_softmax(logits, axis=-1):
    """Logarithm of :func:`softmax`, in nats, computed without it.

    Args:
        logits: array with at least one axis, float32 or float64.
        axis: the axis of the classes.

    Source:
        ``logits - logsumexp(logits)``, with the largest entry subtracted first.

    >>> np.round(log_softmax(np.array([0.0, 0.0])), 4)
    array([-0.6931, -0.6931])
    """
    shifted = _shifted(_axis("log_softmax", logits, axis), axis)
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


def _class_target(where, logits, target):
    """Check logits of shape (N, C) or (C,) and their target; say whether the target holds class indices."""
    logits = float_array(where, "logits", logits)
    if logits.ndim not in (1, 2):
        came = f"logits has shape {logits.shape}"
        advice = "Reshape it: logits.reshape(-1, classes)."
        raise ValueError(complaint(where, came, "(N, C), or (C,) for one sample", advice))
    if isinstance(target, np.generic):
        target = np.asarray(target)
    if type(target) is np.ndarray and target.dtype.kind in "iu":
        return logits, _indices(where, logits, target), True
    if type(target) is np.ndarray and target.dtype.kind == "f" and target.ndim == logits.ndim:
        return logits, _same(where, "logits", logits, target)[1], False
    expected = (
        f"class indices (integers, shape {logits.shape[:-1]}) or class probabilities "
        f"({logits.dtype}, shape {logits.shape})"
    )
    advice = "For indices: np.asarray(target, dtype=np.int64)."
    raise TypeError(complaint(where, f"target is {describe(target)}", expected, advice))


def _indices(where, logits, target):
    classes = logits.shape[-1]
    if target.shape != logits.shape[:-1]:
        expected = f"{logits.shape[:-1]}, one class index for each row of logits {logits.shape}"
        advice = "Pass indices, not one-hot rows: target.argmax(-1)."
        raise ValueError(complaint(where, f"target has shape {target.shape}", expected, advice))
    outside = np.argwhere((target < 0) | (target >= classes))
    if len(outside):
        place = tuple(outside[0].tolist())
        came = f"target{list(place) if place else ''} is {target[place]}"
        expected = f"a class index from 0 to {classes - 1}, since logits has {classes} classes"
        raise ValueError(complaint(where, came, expected, "Count the classes from 0."))
    return target


@quiet
def cross_entropy(logits, target, reduction="mean"):
    """Negative log-likelihood of the target under ``softmax(logits)``, in nats.

    Args:
        logits: scores, (N, C), or (C,) for one sample; float32 or float64.
        target: class indices, integers of shape (N,) (or () for one sample); or class probabilities of the
            shape and dtype of ``logits``. Probabilities are not checked to sum to 1.
        reduction: ``"mean"`` over the N samples, ``"sum"`` or ``"none"``.

    Returns:
        A NumPy scalar, or for ``"none"`` an array of shape (N,).

    Raises:
        ValueError: wrong shape, class index outside 0..C-1, unknown reduction.
        TypeError: wrong kind of array.

    Source:
        PyTorch's ``cross_entropy`` (without class weights, label smoothing and ``ignore_index``).

    Notes:
        Equation: eq-train-cross-entropy.

    >>> logits = np.array([[2.0, 0.0], [0.0, 0.0]])
    >>> np.round(cross_entropy(logits, np.array([0, 1]), reduction="none"), 4)
    array([0.1269, 0.6931])
    """
    choice("cross_entropy", "reduction", reduction, REDUCTIONS)
    logits, target, is_index = _class_target("cross_entropy", logits, target)
    log_p = log_softmax(logits)
    if is_index:
        losses = -np.take_along_axis(log_p, target[..., None].astype(np.intp), axis=-1)[..., 0]
    else:
        losses = -(target * log_p).sum(axis=-1)
    losses = np.asarray(losses)
    return _reduce(losses, reduction, losses.size)


@quiet
def cross_entropy_backward(logits, target, reduction="mean", d_out=1.0):
    """Gradient of :func:`cross_entropy`: ``softmax(logits) - target`` for each sample.

    Args:
        logits, target, reduction: as in :func:`cross_entropy`.
        d_out: gradient with respect to the loss.

    Returns:
        Array of the shape and dtype of ``logits``.

    Notes:
        Equation: eq-train-softmax-gradient.

    >>> cross_entropy_backward(np.array([[0.0, 0.0]]), np.array([1]))
    array([[ 0.5, -0.5]])
    """
    where = "cross_entropy_backward"
    choice(where, "reduction", reduction, REDUCTIONS)
    logits, target, is_index = _class_target(where, logits, target)
    samples = logits.shape[:-1]
    weight = np.asarray(_weight(where, reduction, d_out, samples, math.prod(samples), "logits", logits))
    gradient = softmax(logits)
    if is_index:
        place = target[..., None].astype(np.intp)
        np.put_along_axis(gradient, place, np.take_along_axis(gradient, place, axis=-1) - 1, axis=-1)
    else:
        gradient = gradient * target.sum(axis=-1, keepdims=True) - target
    return gradient * weight[..., None]


@quiet
def bce_with_logits(logits, target, reduction="mean"):
    """Binary cross-entropy of ``sigmoid(logits)``, in nats, right for any logit.

    Args:
        logits: scores, any shape, float32 or float64.
        target: probabilities of the positive class, same shape and dtype; not checked to lie in [0, 1].
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Returns:
        A NumPy scalar, or for ``"none"`` an array of the shape of ``logits``.

    Source:
        PyTorch's ``binary_cross_entropy_with_logits`` (without weights).

    Notes:
        Computed as ``(1 - target) * softplus(logits) + target * softplus(-logits)``. A logit of -inf
        gives NaN, as it does in PyTorch.

    >>> bce_with_logits(np.array([1000.0, -1000.0]), np.array([1.0, 1.0]), reduction="none")
    array([   0., 1000.])
    """
    choice("bce_with_logits", "reduction", reduction, REDUCTIONS)
    logits, target = _same("bce_with_logits", "logits", logits, target)
    tail = np.log1p(np.exp(-np.abs(logits)))
    losses = (1 - target) * (np.maximum(logits, 0) + tail) + target * (np.maximum(-logits, 0) + tail)
    losses = np.where(np.isneginf(logits), logits.dtype.type(np.nan), losses)
    return _reduce(np.asarray(losses), reduction, logits.size)


@quiet
def bce_with_logits_backward(logits, target, reduction="mean", d_out=1.0):
    """Gradient of :func:`bce_with_logits`: ``sigmoid(logits) - target`` for each entry.

    Args:
        logits, target, reduction: as in :func:`bce_with_logits`.
        d_out: gradient with respect to the loss.

    Returns:
        Array of the shape and dtype of ``logits``.

    Notes:
        Computed as ``(1 - target) * sigmoid(logits) - target * sigmoid(-logits)``, which keeps its digits
        when the prediction is nearly right.

    >>> bce_with_logits_backward(np.array([0.0]), np.array([1.0]))
    array([-0.5])
    """
    where = "bce_with_logits_backward"
    choice(where, "reduction", reduction, REDUCTIONS)
    logits, target = _same(where, "logits", logits, target)
    weight = _weight(where, reduction, d_out, logits.shape, logits.size, "logits", logits)
    return (((1 - target) * _sigmoid(logits) - target * _sigmoid(-logits)) * weight)[()]
