"""The training loop: forward, backward and update for every batch, and what to write down meanwhile."""

from dataclasses import dataclass, field

import numpy as np

from ._validate import complaint, count, describe
from .data import minibatches
from .init import generator
from .training_step import TrainingStep


@dataclass
class History:
    """What :func:`fit` writes down: the loss of every step, and after every epoch how the network does.

    >>> history = History(losses=[2.0, 1.0])
    >>> history.losses[-1], history.held_out
    (1.0, [])
    """

    losses: list = field(default_factory=list)
    """The loss of each batch, before the step that it leads to."""
    train: list = field(default_factory=list)
    """(loss, accuracy) on all training samples after each epoch."""
    held_out: list = field(default_factory=list)
    """(loss, accuracy) on the held-out samples after each epoch; empty if there are none."""


def fit(network, criterion, optimizer, x, y, *, batch_size, epochs, rng=None, held_out=None):
    """Train a network on shuffled mini-batches.

    Args:
        network: a Module; its parameters are changed by ``optimizer`` alone.
        criterion: a loss module such as ``nn.CrossEntropyLoss()``, a mean over the batch.
        optimizer: one of ``optim``, made over ``network.parameters()``.
        x: inputs, one row for each sample.
        y: class indices (N,).
        batch_size: rows in a batch; the last batch of an epoch may be smaller.
        epochs: how often every sample is seen.
        rng: None, an int seed, or a ``numpy.random.Generator``; it shuffles.
        held_out: (x, y) to measure on after every epoch. Nothing is learned from it.

    Returns:
        A History.

    Raises:
        FloatingPointError: a loss is not finite; the message says at which step.

    Source:
        The loop of PyTorch's tutorials, in their order: zero the gradients, forward, backward, step. Where
        it can, ``training_step`` takes the steps faster, with the same numbers.

    >>> from denselayer import nn, optim
    >>> x, y = np.array([[-1.0], [-2.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
    >>> net = nn.Linear(1, 2, rng=0)
    >>> sgd = optim.SGD(net.parameters(), lr=1.0)
    >>> history = fit(net, nn.CrossEntropyLoss(), sgd, x, y, batch_size=3, epochs=5, rng=0)
    >>> len(history.losses), history.train[-1][1]
    (10, 1.0)
    """
    rng, history = generator("fit", rng), History()
    step = TrainingStep(network, criterion, optimizer)
    try:
        for _ in range(count("fit", "epochs", epochs)):
            for batch in minibatches(x, y, batch_size, rng):
                loss = float(step.forward(*batch))
                if not np.isfinite(loss):
                    came = f"the loss is {loss} at step {len(history.losses)}"
                    advice = "Try a smaller learning rate."
                    raise FloatingPointError(complaint("fit", came, "a number", advice))
                history.losses.append(loss)
                step.update()
            history.train.append(evaluate(network, criterion, x, y))
            if held_out is not None:
                history.held_out.append(evaluate(network, criterion, *held_out))
    finally:
        step.release()
    return history


def evaluate(network, criterion, x, y):
    """Run the network forward on all samples, without learning, and say how well it does.

    Args:
        network, criterion, x, y: as in :func:`fit`.

    Returns:
        (loss, accuracy), two floats.

    Source:
        Definition.

    >>> from denselayer import nn
    >>> net = nn.Linear.from_arrays(np.array([[0.0], [0.0]]))
    >>> loss, right = evaluate(net, nn.CrossEntropyLoss(), np.ones((4, 1)), np.array([0, 0, 0, 1]))
    >>> round(loss, 4), right
    (0.6931, 0.75)
    """
    scores = network(x)
    return float(criterion(scores, y)), accuracy(scores, y)


def accuracy(scores, labels):
    """Fraction of samples whose largest score is that of the right class.

    Args:
        scores: (N, classes), floating point.
        labels: class indices (N,).

    Returns:
        A float from 0 to 1, NaN for no samples. Of equal scores the first counts as the largest.

    Raises:
        ValueError: the shapes do not fit.

    Source:
        Definition.

    >>> accuracy(np.array([[2.0, 1.0], [0.0, 3.0]]), np.array([0, 0]))
    0.5
    """
    if np.ndim(scores) != 2 or np.shape(labels) != np.shape(scores)[:1]:
        came = f"scores has shape {np.shape(scores)} and labels {np.shape(labels)}"
        raise ValueError(
            complaint("accuracy", came, "(N, classes) and (N,)", "Pass class indices as labels.")
        )
    return float(np.mean(np.argmax(scores, axis=1) == labels)) if len(scores) else float("nan")


def confusion(predicted, labels, classes):
    """Count for each class what its samples were taken for.

    Args:
        predicted: class indices (N,) that a network gave.
        labels: the right ones (N,).
        classes: the number of classes.

    Returns:
        Integers (classes, classes): entry (i, j) counts the samples of class i taken for class j.

    Raises:
        ValueError: the shapes differ, or an index is outside 0..classes-1.

    Source:
        Definition; scikit-learn's ``confusion_matrix``.

    >>> confusion(np.array([0, 1, 1]), np.array([0, 0, 1]), 2)
    array([[1, 1],
           [0, 1]])
    """
    predicted, labels, classes = (
        np.asarray(predicted),
        np.asarray(labels),
        count("confusion", "classes", classes),
    )
    if predicted.shape != labels.shape or predicted.ndim != 1:
        came = f"predicted is {describe(predicted)} and labels {describe(labels)}"
        raise ValueError(complaint("confusion", came, "two arrays (N,)", "Pass scores.argmax(axis=1)."))
    for name, indices in (("predicted", predicted), ("labels", labels)):
        if indices.size and (indices.min() < 0 or indices.max() >= classes):
            came = f"{name} has indices from {indices.min()} to {indices.max()}"
            expected = f"0 to {classes - 1}"
            raise ValueError(complaint("confusion", came, expected, "Count the classes from 0."))
    counts = np.zeros((classes, classes), dtype=np.int64)
    np.add.at(counts, (labels, predicted), 1)
    return counts
