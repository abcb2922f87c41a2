"""Losses made to order: right ones of every kind, and the faults of their gradients."""

from dataclasses import dataclass, replace

import numpy as np


def _softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def _log_softmax(z):
    shifted = z - z.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def _hot(target, z):
    return target if np.ndim(target) == 2 else np.eye(z.shape[1], dtype=z.dtype)[target]


def _sigmoid(z):
    return np.exp(-np.logaddexp(0, -z))


@dataclass(frozen=True)
class Loss:
    """Values for each row or entry, their gradient, and how both are reduced.

    ``family`` is ``"difference"`` (pred - target), ``"softmax"`` (logits and labels or one-hot rows) or
    ``"sigmoid"`` (logits and zeros and ones). ``reduction`` is ``"mean"`` over all entries, ``"rows"`` (sum
    over units, mean over rows) or ``"sum"``.
    """

    family: str
    entries: object
    slopes: object
    reduction: str = "mean"
    targets: str = "numbers"
    factor: object = None
    """Takes the shape of the predictions; what a faulty gradient is multiplied by."""

    def divisor(self, shape):
        """What the loss divides by."""
        if self.reduction == "sum":
            return 1
        return shape[0] if self.reduction == "rows" else int(np.prod(shape))

    def value(self, pred, target):
        """The loss."""
        return self.entries(pred, target).sum() / self.divisor(pred.shape)

    def gradient(self, pred, target):
        """The gradient that the person wrote, with respect to the predictions."""
        gradient = self.slopes(pred, target) / self.divisor(pred.shape)
        return gradient if self.factor is None else gradient * self.factor(pred.shape)


def _cross_entropy(z, target):
    return -(_hot(target, z) * _log_softmax(z))


def _cross_entropy_slopes(z, target):
    return _softmax(z) - _hot(target, z)


KINDS = {
    "squared": Loss("difference", lambda y, t: (y - t) ** 2, lambda y, t: 2 * (y - t)),
    "half": Loss("difference", lambda y, t: 0.5 * (y - t) ** 2, lambda y, t: y - t),
    "absolute": Loss("difference", lambda y, t: np.abs(y - t), lambda y, t: np.sign(y - t)),
    "labels": Loss("softmax", _cross_entropy, _cross_entropy_slopes, "rows", "labels"),
    "one-hot": Loss("softmax", _cross_entropy, _cross_entropy_slopes, "rows", "one-hot"),
    "binary": Loss(
        "sigmoid", lambda z, t: np.logaddexp(0, z) - t * z, lambda z, t: _sigmoid(z) - t, "mean", "binary"
    ),
}
EVERY_KIND = KINDS | {
    "huber": Loss(
        "difference",
        lambda y, t: np.where(np.abs(y - t) < 1, 0.5 * (y - t) ** 2, np.abs(y - t) - 0.5),
        lambda y, t: np.clip(y - t, -1, 1),
    ),
    "log-cosh": Loss("difference", lambda y, t: np.log(np.cosh(y - t)), lambda y, t: np.tanh(y - t)),
    "fourth": Loss("difference", lambda y, t: (y - t) ** 4, lambda y, t: 4 * (y - t) ** 3),
}
"""With three that are there to be healthy only."""
SQUARED = ("squared", "half")
SOFTMAX = ("labels", "one-hot")
ANY = tuple(KINDS)


def _other(loss, kind):
    gradients = {
        "squared": lambda y, t: np.sign(y - t),
        "half": lambda y, t: np.sign(y - t),
        "absolute": lambda y, t: 2 * (y - t),
        "labels": lambda z, t: 2 * (z - _hot(t, z)),
        "one-hot": lambda z, t: 2 * (z - t),
        "binary": lambda z, t: 2 * (z - t),
    }
    return replace(loss, slopes=gradients[kind])


def _twice_in_gradient(loss, kind):
    return replace(loss, slopes=lambda z, t: _softmax(_softmax(z)) - _hot(t, z))


def _twice_in_loss(loss, kind):
    return replace(loss, entries=lambda z, t: _cross_entropy(_softmax(z), t))


def _no_jacobian(loss, kind):
    return replace(loss, slopes=lambda z, t: -_hot(t, z) / _softmax(z))


def _naive_softmax(z):
    return np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)


def _naive(loss, kind):
    if loss.family == "sigmoid":
        return replace(loss, entries=lambda z, t: np.log(1 + np.exp(z)) - t * z)
    return replace(
        loss,
        entries=lambda z, t: (np.log(np.exp(z).sum(axis=1, keepdims=True)) - z) * _hot(t, z),
        slopes=lambda z, t: _naive_softmax(z) - _hot(t, z),
    )


def _picked(values, target):
    if np.ndim(target) == 2:
        return values[target.astype(bool)]
    return values[np.arange(len(values)), target]


def _log_of_zero(loss, kind):
    if loss.family == "sigmoid":

        def entries(z, t):
            p = _sigmoid(z)
            return -np.where(t > 0, np.log(p), np.log(1 - p))

        return replace(loss, entries=entries)
    return replace(loss, entries=lambda z, t: -np.log(_picked(_softmax(z), t)))


def _log_with_epsilon(loss, kind):
    if loss.family == "sigmoid":
        return replace(
            loss,
            entries=lambda z, t: (
                -(t * np.log(_sigmoid(z) + 1e-12) + (1 - t) * np.log(1 - _sigmoid(z) + 1e-12))
            ),
        )
    return replace(loss, entries=lambda z, t: -np.log(_picked(_softmax(z), t) + 1e-12))


def _times(factor):
    return lambda loss, kind: replace(loss, factor=factor)


def _two(loss, kind):
    return replace(loss, factor=lambda shape: 0.5 if kind == "squared" else 2.0)


def _summed(loss, kind):
    return replace(loss, factor=loss.divisor)


def _averaged(loss, kind):
    return replace(loss, factor=lambda shape: 1 / loss.divisor(shape))


LOSS_FAULTS = {
    "averaged-twice": ("factor", ANY, (_averaged,)),
    "summed-not-averaged": ("factor", ANY, (_summed,)),
    "factor-two": ("factor", SQUARED, (_two,)),
    "sign-flipped": ("factor", ANY, (_times(lambda shape: -1.0),)),
    "factor": ("factor", ANY, (_times(lambda shape: 0.3),)),
    "other-loss": ("slopes", ANY, (_other,)),
    "softmax-twice": ("entries slopes", SOFTMAX, (_twice_in_gradient, _twice_in_loss)),
    "softmax-jacobian-missing": ("slopes", SOFTMAX, (_no_jacobian,)),
    "unstable-softmax": ("entries slopes", (*SOFTMAX, "binary"), (_naive,)),
    "unstable-log": ("entries", (*SOFTMAX, "binary"), (_log_of_zero, _log_with_epsilon)),
}
"""For each defect the pieces that it takes, the kinds of loss that can have it, and ways to install it."""


def loss_functions(loss):
    """``loss(pred, target)`` and ``gradient(pred, target)``."""

    def value(pred, target):
        with np.errstate(all="ignore"):
            return loss.value(pred, target)

    def gradient(pred, target):
        with np.errstate(all="ignore"):
            return loss.gradient(pred, target)

    return value, gradient


def loss_class(loss):
    """A class with ``forward(pred, target)`` and ``backward()``."""
    value, slopes = loss_functions(loss)

    class Criterion:
        def forward(self, pred, target):
            self.pred, self.target = pred, target
            return value(pred, target)

        def backward(self):
            return slopes(self.pred, self.target)

    return Criterion
