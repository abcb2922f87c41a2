"""Finds a weight that is used in several places and whose gradient holds the share of only one of them."""

import numpy as np

from .._slopes import default_step
from ._report import Finding

COLUMNS = 3
"""How many random directions a gradient is looked at along; enough to tell rank 1 from 2."""
FLAT = 1e-5
"""Below this, in units of the largest singular value, there is no further rank."""
PLACES = {"x": "the use next to the input", "d_out": "the use next to the output", "": "one use"}


def shared_weights(subject, *_):
    """Findings for weights of which one use is missing in the gradient.

    For a single sample a weight that is used once has a gradient of rank 1, an outer product. A weight that
    is used twice has one of rank 2, the sum of two. If the gradient of the person has rank 1, and taking it
    away lowers the rank by one, it is one of the terms of that sum.
    """
    if subject.storage is not None:
        return []
    rng = np.random.default_rng(4)
    one = subject.clone()
    params = {name: array.astype(np.float64) for name, array in one.params().items()}
    one.load(params)
    x = subject.draw_input(1, rng).astype(np.float64)
    out = np.asarray(one.forward(x.copy()))
    d_out = rng.standard_normal(out.shape)
    gradients = one.backward(d_out.copy())
    findings = []
    for name, weight in params.items():
        gradient = gradients.get(name)
        if weight.ndim == 2 and min(weight.shape) > 1 and np.shape(gradient) == weight.shape:
            gradient = np.asarray(gradient, dtype=np.float64)
            if _is_one_share(subject, params, name, gradient, x, d_out, rng):
                findings.append(
                    Finding("shared-weight-overwritten", (name,), {"other": _place(gradient, x, d_out)})
                )
    return findings


def _is_one_share(subject, params, name, gradient, x, d_out, rng):
    directions = rng.standard_normal((gradient.shape[1], COLUMNS))
    true = _slopes_along(subject, params, name, directions, x, d_out)
    theirs = gradient @ directions
    if np.abs(true - theirs).max() <= FLAT * np.abs(true).max():
        return False
    return _rank(theirs) == 1 and _rank(true - theirs) == _rank(true) - 1


def _slopes_along(subject, params, name, directions, x, d_out):
    """The true gradient times each direction, by moving a row of the weight along it."""
    step = default_step(np.float64)
    worker = subject.clone()

    def value(row, direction, way):
        moved = params[name].copy()
        moved[row] += way * step * direction
        worker.load(params | {name: moved})
        return float((np.asarray(worker.forward(x.copy())) * d_out).sum())

    def slope(row, direction):
        return (value(row, direction, 1) - value(row, direction, -1)) / (2 * step)

    rows = range(params[name].shape[0])
    return np.array([[slope(row, direction) for direction in directions.T] for row in rows])


def _rank(matrix):
    values = np.linalg.svd(matrix, compute_uv=False)
    return int((values > FLAT * values[0]).sum()) if values[0] else 0


def _place(gradient, x, d_out):
    """Whether an outer product has the input, or the upstream gradient, as one of its factors."""
    left, _, right = np.linalg.svd(gradient)
    for name, array in (("x", x.ravel()), ("d_out", d_out.ravel())):
        for factor in (left[:, 0], right[0]):
            if factor.shape == array.shape and abs(abs(factor @ array) / np.linalg.norm(array) - 1) < FLAT:
                return PLACES[name]
    return PLACES[""]
