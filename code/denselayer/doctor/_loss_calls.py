"""Calls a loss and its hand-written gradient, however they are written: functions, a pair, a class."""

import copy
import inspect
import warnings

import numpy as np

from .._validate import describe
from ._objects import quietly

TARGET_NAMES = ("target", "label", "true", "truth", "gold", "wanted", "onehot", "one_hot", "expected")
TARGET_LETTERS = ("t", "y", "ys", "ts", "actual", "tgt")
UNSURE = ("y", "ys")
"""Names that some give to the targets and others to the outputs."""
OUTPUT_NAMES = ("output", "out", "probs", "p", "softmax", "y_hat", "a", "probabilities")
GRADIENT_NAMES = (
    "grad", "gradient", "d_pred", "dpred", "d_input", "dinputs", "dinput", "grad_input", "d_x", "dx",
    "d_logits", "dlogits", "d_z", "dz", "d_y", "dy", "d_out", "dout", "delta",
)  # fmt: skip


class CallError(Exception):
    """What the person's code raised, with the name of the part that raised it."""

    def __init__(self, where, error):
        super().__init__(f"{type(error).__name__}: {error}")
        self.where = where


class NoNumberError(CallError):
    """A loss returned something that is no number."""

    def __init__(self, came):
        super().__init__("the loss", TypeError(f"it returned {describe(came)} in place of a number"))
        self.note = f"The loss returned {describe(came)}, and a number is needed."


class LossCalls:
    """A loss as two calls, ``value(pred, target)`` and ``gradient(pred, target)``, both given copies.

    Args:
        loss: a function of prediction and target that returns the loss, or the loss and its gradient; or a
            class, or an object, with ``forward`` (or ``__call__``) and ``backward``.
        gradient: a function of prediction and target, or None where ``loss`` has its own.
    """

    def __init__(self, loss, gradient=None):
        self._loss = loss() if inspect.isclass(loss) else _copy_of(loss)
        self._gradient = gradient
        self.is_object = hasattr(self._loss, "backward")
        self._untouched = copy.deepcopy(self._loss) if self.is_object else None
        self._forward = getattr(self._loss, "forward", self._loss)
        names = _positional(self._forward)
        self.swapped = _target_first(names)
        self.name = _prediction_name(names, self.swapped)
        self.per_sample = False
        self.takes_mean = False
        """Whether a loss for each sample is averaged in place of added up."""

    def has_gradient(self, pred, target):
        """Whether there is a gradient: a function, a backward pass, or a second part of what is returned."""
        if self._gradient is not None or self.is_object:
            return True
        result = self.forward(pred.copy(), _copy(target))
        return isinstance(result, tuple) and len(result) > 1

    def value(self, pred, target):
        """The loss as a float; a loss for each sample is added up, and ``per_sample`` becomes True."""
        return self.total(self.forward(pred.copy(), _copy(target)))

    def forward(self, pred, target):
        """What the loss returns for these very arrays."""
        return _call("the loss", self._forward, self._ordered(pred, target, self.swapped))

    def total(self, result):
        """The number in what the loss returned."""
        if isinstance(result, tuple):
            result = result[0]
        came, result = result, np.asarray(result)
        if result.dtype.kind not in "iufb":
            raise NoNumberError(came)
        self.per_sample = self.per_sample or result.size > 1
        return float(result.mean() if self.takes_mean else result.sum())

    def gradient(self, pred, target):
        """What the person says is the gradient with respect to the prediction, as it came."""
        return self.backward(pred.copy(), _copy(target))

    def backward(self, pred, target):
        """Run forward and backward with these very arrays; return the gradient."""
        if self._gradient is not None:
            if self.is_object:
                self.forward(pred, target)
            swapped = _target_first(_positional(self._gradient))
            return _call("the gradient", self._gradient, self._ordered(pred, target, swapped))
        result = self.forward(pred, target)
        if not self.is_object:
            return result[1] if isinstance(result, tuple) and len(result) > 1 else None
        return self.backward_only(pred, target)

    def backward_only(self, pred, target):
        """Run the backward pass of an object, after its latest forward pass."""
        returned = _call("the gradient", self._loss.backward, self._backward_arguments(pred, target))
        if returned is not None:
            return returned[0] if isinstance(returned, tuple) else returned
        stored = [getattr(self._loss, name, None) for name in GRADIENT_NAMES]
        return next((array for array in stored if isinstance(array, np.ndarray)), None)

    def another(self):
        """A second object like the first one before its first call."""
        return LossCalls(copy.deepcopy(self._untouched), self._gradient)

    def _backward_arguments(self, pred, target):
        names = _positional(self._loss.backward, required=True)
        if len(names) >= 2:
            first = self._kept_output(pred) if _is_upstream(names[0]) else pred
            return self._ordered(first, target, _target_first(names))
        if len(names) == 1:
            return (target,) if _is_target(names[0]) else (1.0,)
        return ()

    def _kept_output(self, pred):
        """What ``backward(dvalues, target)`` is given: the probabilities that the object keeps, or pred."""
        kept = [getattr(self._loss, name, None) for name in OUTPUT_NAMES]
        fit = (array for array in kept if isinstance(array, np.ndarray) and array.shape == pred.shape)
        return next(fit, pred).copy()

    def _ordered(self, pred, target, swapped):
        return (target, pred) if swapped else (pred, target)


def _copy_of(loss):
    """A copy of an object, which keeps things of its own; a function as it is."""
    try:
        return copy.deepcopy(loss)
    except Exception:
        return loss


def _copy(target):
    return np.array(target)


def _call(where, function, arguments):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return quietly(function, *arguments)
    except Exception as error:
        raise CallError(where, error) from error


def _positional(function, required=False):
    """Names of the arguments that a function takes by position."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    taken = [p for p in parameters if p.kind in kinds and not (required and p.default is not p.empty)]
    return tuple(p.name for p in taken)


def _is_target(name):
    name = name.lower()
    return name in TARGET_LETTERS or any(word in name for word in TARGET_NAMES)


def _target_first(names):
    """Whether a signature has the target before the prediction, as in ``(y_true, y_pred)`` or ``(t, y)``."""
    if len(names) < 2 or not _is_target(names[0]):
        return False
    return not _is_target(names[1]) or (names[0] not in UNSURE and names[1] in UNSURE)


def _is_upstream(name):
    """Whether an argument is the gradient, or the output, of what follows."""
    return name.lower() in ("dvalues", "dvalue", "d_out", "dout", "d", "output", "outputs")


def _prediction_name(names, swapped):
    """The name that the loss itself gives to the prediction."""
    return names[1 if swapped else 0] if len(names) >= 2 else "pred"
