"""The losses that the doctor knows, each as the gradient of its sum, and the mistakes made with them.

Everything here is a function of predictions ``z`` (N, C) and targets ``t`` of the same shape (labels as
one-hot rows) and returns an array of that shape, without any division by N or C.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class KnownLoss:
    """A loss: its name in words, its gradient, the targets and the predictions that it is made for."""

    name: str
    slope: Callable
    targets: str = "numbers"
    domain: str = "numbers"
    quadratic: bool = False
    layout: tuple | None = None
    """The only (targets, layout) in which it is told from others."""
    defect: str = ""
    """The defect that the loss itself is."""
    mistakes: tuple = field(default=())
    """(defect id, what was computed) for the ways in which its gradient goes wrong; no id where the loss's
    own defect has said it already, and a third part where the loss that it belongs to needs words."""


def softmax(z):
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def sigmoid(z):
    return np.exp(-np.logaddexp(0, -z))


def through_softmax(d_p, z):
    """Send a gradient back through the softmax."""
    p = softmax(z)
    return p * (d_p - (d_p * p).sum(axis=-1, keepdims=True))


def _bell(z):
    return sigmoid(z) * (1 - sigmoid(z))


def _hinge(z, t):
    """Gradient of ``sum_j max(0, z_j - z_right + 1)``."""
    right = (z * t).sum(axis=-1, keepdims=True)
    over = ((z - right + 1 > 0) & (t == 0)).astype(float)
    return over - t * over.sum(axis=-1, keepdims=True)


def _root(z, t):
    return (z - t) / np.sqrt(((z - t) ** 2).mean())


def _length(z, t):
    return (z - t) / np.sqrt(((z - t) ** 2).sum(axis=-1, keepdims=True))


def _softmax_of_all(z, t):
    e = np.exp(z - z.max())
    return e / e.sum() * t.sum() - t


def _softmax_of_columns(z, t):
    return softmax(z.T).T * t.sum(axis=0) - t


def _twice(z, t):
    return through_softmax(softmax(softmax(z)) - t, z)


DIAGONAL = (
    "a loss in which each probability depends on its own logit alone (of the Jacobian of the softmax only "
    "the diagonal is there)"
)
SQUARED = KnownLoss("the squared error", lambda z, t: 2 * (z - t), quadratic=True)
ABSOLUTE = KnownLoss("the absolute error", lambda z, t: np.sign(z - t))
CROSS_ENTROPY = KnownLoss(
    "the cross entropy of the softmax",
    lambda z, t: softmax(z) * t.sum(axis=-1, keepdims=True) - t,
    targets="one-hot",
    mistakes=(
        ("softmax-twice", lambda z, t: softmax(softmax(z)) - t),
        ("softmax-twice", _twice),
        ("softmax-jacobian-missing", lambda z, t: -t / softmax(z)),
        ("other-loss", lambda z, t: -t * (1 - softmax(z)), DIAGONAL),
    ),
)
TWICE = KnownLoss(
    "the cross entropy of the softmax of the softmax",
    _twice,
    targets="one-hot",
    defect="softmax-twice",
    mistakes=(("", CROSS_ENTROPY.slope), ("", lambda z, t: softmax(softmax(z)) - t)),
)
BINARY = KnownLoss(
    "the binary cross entropy of the sigmoid",
    lambda z, t: sigmoid(z) - t,
    targets="binary",
    mistakes=(
        ("gate-missing", lambda z, t: (sigmoid(z) - t) / _bell(z)),
        ("gate-twice", lambda z, t: (sigmoid(z) - t) * _bell(z)),
        ("derivative-at-output", lambda z, t: (sigmoid(z) - t) / _bell(z) * _bell(sigmoid(z))),
        ("derivative-at-input", lambda z, t: (sigmoid(z) - t) / _bell(z) * z * (1 - z)),
    ),
)
SQUARED_SOFTMAX = KnownLoss(
    "the squared error of the softmax",
    lambda z, t: through_softmax(2 * (softmax(z) - t), z),
    targets="one-hot",
    quadratic=True,
    mistakes=(
        ("softmax-jacobian-missing", lambda z, t: 2 * (softmax(z) - t)),
        ("other-loss", lambda z, t: 2 * (softmax(z) - t) * softmax(z) * (1 - softmax(z)), DIAGONAL),
    ),
)
SQUARED_SIGMOID = KnownLoss(
    "the squared error of the sigmoid",
    lambda z, t: 2 * (sigmoid(z) - t) * _bell(z),
    targets="binary",
    quadratic=True,
    mistakes=(
        ("gate-missing", lambda z, t: 2 * (sigmoid(z) - t)),
        ("gate-twice", lambda z, t: 2 * (sigmoid(z) - t) * _bell(z) ** 2),
        ("derivative-at-output", lambda z, t: 2 * (sigmoid(z) - t) * _bell(sigmoid(z))),
        ("derivative-at-input", lambda z, t: 2 * (sigmoid(z) - t) * z * (1 - z)),
    ),
)
OF_PROBABILITIES = KnownLoss(
    "the cross entropy of probabilities", lambda p, t: -t / p, targets="one-hot", domain="probabilities"
)
BINARY_OF_PROBABILITIES = KnownLoss(
    "the binary cross entropy of probabilities",
    lambda p, t: (p - t) / (p * (1 - p)),
    targets="binary",
    domain="probabilities",
)

KNOWN = (
    SQUARED,
    ABSOLUTE,
    CROSS_ENTROPY,
    BINARY,
    OF_PROBABILITIES,
    BINARY_OF_PROBABILITIES,
    SQUARED_SOFTMAX,
    SQUARED_SIGMOID,
    TWICE,
    KnownLoss("the root of the mean squared error", _root, quadratic=True),
    KnownLoss("the Euclidean distance", _length),
    KnownLoss("the Huber loss", lambda z, t: np.clip(z - t, -1, 1)),
    KnownLoss("the log-cosh loss", lambda z, t: np.tanh(z - t)),
    KnownLoss("the hinge loss over the classes", _hinge, targets="one-hot"),
    KnownLoss("the hinge loss", lambda z, t: -t * (t * z < 1), targets="signs"),
    KnownLoss("the negative log likelihood of log-probabilities", lambda z, t: -t, targets="one-hot"),
    KnownLoss("the Poisson loss", lambda z, t: np.exp(z) - t),
    KnownLoss("the log-sum-exp alone, without the target", lambda z, t: softmax(z), targets="one-hot"),
    KnownLoss("the softplus alone, without the target", lambda z, t: sigmoid(z)),
    KnownLoss(
        "the cross entropy of one softmax over the whole array",
        _softmax_of_all,
        targets="one-hot",
        defect="batch-mixed",
    ),
    KnownLoss(
        "the cross entropy of a softmax over the samples",
        _softmax_of_columns,
        targets="one-hot",
        layout=("labels", "rows"),
        defect="batch-mixed",
    ),
)
"""What the loss of a person is compared with, the most usual first."""
