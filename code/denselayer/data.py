"""Data for training: hold samples back, shuffle and cut the others into mini-batches, mark classes by ones.

Samples are rows: ``x`` and ``y`` have shape (N, ...), and row n of both belongs to sample n. The arrays that
come in are never changed. ``rng`` is None (fresh entropy), an int seed, or a ``numpy.random.Generator``.
"""

from typing import NamedTuple

import numpy as np

from ._validate import complaint, count, describe, float_dtype, number
from .init import generator


class Split(NamedTuple):
    """Names that :func:`train_test_split` gives to the four arrays it returns."""

    x_train: np.ndarray
    x_test: np.ndarray
    y_train: np.ndarray
    y_test: np.ndarray


def train_test_split(x, y, test_size=0.2, rng=None):
    """Divide the samples at random into those to train on and those held out.

    Args:
        x, y: arrays with one row for each sample, any dtype.
        test_size: the fraction held out, from 0 to 1; the number of samples is rounded.
        rng: see the module.

    Returns:
        Split(x_train, x_test, y_train, y_test): copies of the rows, in shuffled order.

    Raises:
        ValueError: x and y have different numbers of rows, or the fraction is out of range.
        TypeError: not arrays.

    Source:
        The order of the results is that of scikit-learn's function of this name; the shuffling is not.

    >>> split = train_test_split(np.arange(10), np.arange(10) % 2, test_size=0.3, rng=0)
    >>> split.x_train.shape, split.x_test.shape
    ((7,), (3,))
    >>> np.sort(np.concatenate([split.x_train, split.x_test]))
    array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    """
    samples = _samples("train_test_split", x, y)
    fraction = number("train_test_split", "test_size", test_size, low=0)
    if fraction > 1:
        came = f"test_size is {fraction:g}"
        expected, advice = (
            "a fraction from 0 to 1",
            f"For a number of samples pass test_size=count / {samples}.",
        )
        raise ValueError(complaint("train_test_split", came, expected, advice))
    order = generator("train_test_split", rng).permutation(samples)
    held_out = round(fraction * samples)
    test, train = order[:held_out], order[held_out:]
    return Split(x[train], x[test], y[train], y[test])


def minibatches(x, y, batch_size, rng=None):
    """Yield the samples of one epoch in shuffled order, ``batch_size`` rows at a time.

    Every sample comes exactly once. Where ``batch_size`` does not divide N, the last batch is smaller.

    Args:
        x, y: arrays with one row for each sample, any dtype.
        batch_size: rows in a batch, 1 or more.
        rng: see the module. Pass one Generator to all epochs: an int seed gives every epoch the same order.

    Yields:
        (x, y) with copies of the rows of one batch.

    Raises:
        ValueError: x and y have different numbers of rows, or the batch size is 0.
        TypeError: not arrays, or the batch size is no whole number.

    Source:
        Sampling without replacement, as ``torch.utils.data.DataLoader(shuffle=True)`` does.

    >>> x = np.arange(10)
    >>> [len(batch) for batch, _ in minibatches(x, x, 4, rng=0)]
    [4, 4, 2]
    """
    samples = _samples("minibatches", x, y)
    size = count("minibatches", "batch_size", batch_size)
    if size == 0:
        raise ValueError(complaint("minibatches", "batch_size is 0", "1 or more", "Pass batch_size=32."))
    order = generator("minibatches", rng).permutation(samples)
    return ((x[rows], y[rows]) for rows in (order[at : at + size] for at in range(0, samples, size)))


def one_hot(labels, classes, dtype=np.float64):
    """Turn class indices into rows with a single 1, at the place of the class.

    Args:
        labels: integers from 0 to ``classes - 1``, any shape.
        classes: the number of classes.
        dtype: float32 or float64.

    Returns:
        Array of the shape of ``labels`` with one axis more, of length ``classes``.

    Raises:
        ValueError: a label outside 0..classes-1.
        TypeError: labels are no array of integers.

    Source:
        Definition; ``torch.nn.functional.one_hot``.

    >>> one_hot(np.array([2, 0]), 3)
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """
    classes, dtype = count("one_hot", "classes", classes), float_dtype("one_hot", dtype)
    if not isinstance(labels, np.ndarray) or labels.dtype.kind not in "iu":
        expected = "an array of integers"
        advice = "Convert it: np.asarray(labels, dtype=np.int64)."
        raise TypeError(complaint("one_hot", f"labels is {describe(labels)}", expected, advice))
    outside = labels[(labels < 0) | (labels >= classes)]
    if outside.size:
        expected = f"class indices from 0 to {classes - 1}"
        raise ValueError(
            complaint("one_hot", f"labels contains {outside[0]}", expected, "Count the classes from 0.")
        )
    return (labels[..., None] == np.arange(classes)).astype(dtype)


def _samples(where, x, y):
    for name, array in (("x", x), ("y", y)):
        if not isinstance(array, np.ndarray) or array.ndim == 0:
            expected = "an array with one row for each sample"
            came = f"{name} is {describe(array)}"
            raise TypeError(complaint(where, came, expected, f"Pass np.asarray({name})."))
    if len(x) != len(y):
        came = f"x has {len(x)} rows, but y has {len(y)}"
        raise ValueError(
            complaint(where, came, "one row of each for every sample", "Check what was cut off.")
        )
    return len(x)
