"""Finds a weight that is used in several places and whose gradient holds the share of only one of them."""

import numpy as np

from .._slopes import default_step
from ._report import Finding

COLUMNS = 3
"""How many random directions a gradient is looked at along; enough to tell rank 1 from 2."""
FLAT = 1e-5
"""Below this, in units of the largest singular value, there is no further rank."""
PLACES = {"x": "the use next to the input", "d_out": "the use next to the output"}


def shared_weights(subject, *_):
    """Findings for weights of which one use is missing in the gradient.

    For a single sample a weight that is used once has a gradient of rank 1, an outer product. A weight that
    is used twice has one of rank 2, the sum of two. If the gradient of the person has rank 1, and taking it
    away lowers the rank by one, it is one of the terms of that sum, if it also is an outer product that fits
    one end of the network. Of a use in the middle nothing is said.
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
                place = _place(subject, params, name, gradient, x, d_out)
                if place:
                    findings.append(Finding("shared-weight-overwritten", (name,), {"other": PLACES[place]}))
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


def _place(subject, params, name, gradient, x, d_out):
    """At which end of the network the use stands whose share an outer product is, or "".

    One factor is then the input, or the upstream gradient, and the other one goes through the weight: to the
    gradient of the input, or to what is added up in the output.
    """
    ends = {
        "x": (x.ravel(), _input_slopes(subject, params, x, d_out)),
        "d_out": (d_out.ravel(), _output_change(subject, params, x)),
    }
    for place, (factor, wanted) in ends.items():
        for turned in (False, True):
            outer, weight = (array.T if turned else array for array in (gradient, params[name]))
            if outer.shape[1] != len(factor):
                continue
            other = outer @ factor / (factor @ factor)
            if np.abs(outer - np.outer(other, factor)).max() > FLAT * np.abs(outer).max():
                continue
            if place == "d_out":
                other = other - _other_factor(subject, params, name, turned, x, d_out)
            through = other @ weight
            if (
                through.shape == wanted.shape
                and np.abs(through - wanted).max() <= 1e-4 * np.abs(wanted).max()
            ):
                return place
    return ""


def _close(one, other):
    return one.shape == other.shape and np.abs(one - other).max() <= 1e-4 * np.abs(other).max()


def _loaded(subject, params):
    one = subject.clone()
    one.load(params)
    return one


def _other_factor(subject, params, name, turned, x, d_out):
    """The factor beside the upstream gradient, for another input."""
    one, factor = _loaded(subject, params), d_out.ravel()
    one.forward(2 * x)
    outer = np.asarray(one.backward(d_out.copy())[name], dtype=np.float64)
    return (outer.T if turned else outer) @ factor / (factor @ factor)


def _output_change(subject, params, x):
    """What the output at x has more than that at another input; a bias is in both."""
    one = _loaded(subject, params)
    out = np.array(one.forward(x.copy()), dtype=np.float64)
    return (out - np.asarray(one.forward(2 * x), dtype=np.float64)).ravel()


def _input_slopes(subject, params, x, d_out):
    """The true gradient of the input."""
    one, step, slopes = _loaded(subject, params), default_step(np.float64), np.zeros(x.size)
    for position in range(x.size):
        values = []
        for way in (1, -1):
            moved = x.copy()
            moved.flat[position] += way * step
            values.append(float((np.asarray(one.forward(moved)) * d_out).sum()))
        slopes[position] = (values[0] - values[1]) / (2 * step)
    return slopes
