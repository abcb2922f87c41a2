"""Recognise a dense layer whose rows are mixed afterwards, as where a mean over the batch is taken off."""

import numpy as np

from ._affine import CLOSE, Dense, draw_weight, layouts, parts_of
from ._curves import KNOWN, known, leaky

SLOPES = (0.01, 0.1, 0.2)
ROWS = 3


def recognise_mixed(subject):
    """A `Dense` with ``mixing`` if the output is a fixed mix of the rows of a dense layer, else None."""
    params = subject.params()
    for layout in layouts(subject, params) if params and not subject.single else ():
        for curve in [*map(known, KNOWN), *map(leaky, SLOPES)]:
            dense = Dense(layout, curve, subject.batch_axis, False, np.dtype(subject.dtype), mixing=True)
            if _holds(subject, dense):
                return dense
    return None


def _holds(subject, dense):
    try:
        mix = mixing_matrix(subject, dense, ROWS)
        values, out = _runs(subject, dense, ROWS, np.random.default_rng(22), 1)
    except Exception:
        return False
    close = 10 * CLOSE[np.dtype(subject.dtype)] * np.abs(out).max(initial=1e-300)
    return mix is not None and np.abs(mix @ values - out).max() <= close


def mixing_matrix(subject, dense, n):
    """The matrix (n, n) that turns the rows of the activation into those of the output; None if none does."""
    params = subject.params()
    width = dense.sizes(params)[1]
    values, out = _runs(subject, dense, n, np.random.default_rng(21), -(-3 * n // width))
    mix = np.linalg.lstsq(values.T, out.T, rcond=None)[0].T
    close = 10 * CLOSE[np.dtype(subject.dtype)] * np.abs(out).max(initial=1e-300)
    return mix if np.abs(mix @ values - out).max() <= close else None


def _runs(subject, dense, n, rng, count):
    """Rows of the activation and of the output, the columns of several runs side by side."""
    pairs = [_one_run(subject, dense, n, rng) for _ in range(count)]
    values, outs = zip(*pairs, strict=True)
    return np.hstack(values), np.hstack(outs)


def _one_run(subject, dense, n, rng):
    layout, params = dense.layout, subject.params()
    shapes = {name: value.shape for name, value in params.items()}
    run = subject.clone()
    arrays = layout.join(*draw_weight(layout, params, rng), shapes)
    run.load({name: value.astype(subject.dtype) for name, value in arrays.items()})
    weight, bias = parts_of(layout, run.params())
    x = run.draw_input(n, rng)
    out = layout.rows(run.forward(x)).astype(np.float64)
    z = layout.rows(x).astype(np.float64) @ weight.T + bias
    return dense.curve.value(z), out
