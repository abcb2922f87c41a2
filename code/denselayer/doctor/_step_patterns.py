"""Gradients that a training step may follow instead of its own: of another loss, of a part of the batch."""

import numpy as np

from ._loss_library import KNOWN
from ._step_runs import batch_axis, measure

DIFFERENCES = (
    ("the absolute error", np.sign),
    ("the Huber loss", lambda r: np.clip(r, -1, 1)),
    ("the log-cosh loss", np.tanh),
    ("the fourth power of the error", lambda r: 4 * r**3),
)
"""Losses of the difference of prediction and target, by their derivatives."""


def other_losses(runs, step, predict):
    """Yield (name, gradients at all places) of other losses of the same network.

    With ``predict`` these are all that the doctor knows. Without it, a loss that is a parabola in the targets
    tells the predictions, and losses of the difference can be tried.
    """
    if predict is not None:
        yield from _by_predictions(runs, predict)
    elif runs.places[0].t.dtype.kind == "f":
        yield from _by_targets(runs, step)


def _by_predictions(runs, predict):
    for known in KNOWN:
        patterns = []
        for place in runs.places:
            exact = {name: array.astype(np.float64) for name, array in place.params.items()}
            out = np.asarray(predict(exact, place.x), dtype=np.float64)
            target = _target_like(out, place.t)
            if target is None or out.ndim != 2:
                return
            with np.errstate(all="ignore"):
                way = known.slope(out, target)

            def value(params, x, t, way=way):
                return float((np.asarray(predict(params, x)) * way).sum())

            if not np.isfinite(way).all():
                break
            patterns.append(measure(value, place.params, place.x, place.t, runs.entries))
        if len(patterns) == len(runs.places):
            yield known.name, patterns


def _target_like(out, t):
    """Targets of the shape of the predictions; labels become one-hot rows."""
    if t.shape == out.shape:
        return t.astype(np.float64)
    if t.ndim == 1 and t.dtype.kind in "iu" and len(t) == len(out) and t.max(initial=0) < out.shape[-1]:
        return np.eye(out.shape[-1])[t]
    return None


def _by_targets(runs, step):
    """From the slopes of a squared error with respect to its targets."""
    places = [_Parabola(step, place) for place in runs.places]
    if not all(place.sound for place in places):
        return
    for name, derivative in DIFFERENCES:
        ways = [derivative(place.difference) for place in places]
        yield (
            name,
            [
                measure(parabola.along(way), place.params, place.x, place.t, runs.entries)
                for parabola, way, place in zip(places, ways, runs.places, strict=True)
            ],
        )


class _Parabola:
    """A loss ``c * ((y - t)**2).sum()``: its c, and the differences y - t."""

    def __init__(self, step, place):
        self._step = step
        params = {name: array.astype(np.float64) for name, array in place.params.items()}
        x, t = (array.astype(np.float64) for array in (place.x, place.t))

        def loss(moved):
            return float(step.loss(params, x, moved))

        here = loss(t)
        way = np.random.default_rng(0).standard_normal(t.shape)
        bends = [loss(t + far * way) + loss(t - far * way) - 2 * here for far in (1, 2)]
        self.constant = bends[0] / (2 * (way**2).sum())
        self.sound = self.constant > 0 and abs(bends[1] / bends[0] / 4 - 1) < 1e-6
        self.difference = np.zeros_like(t)
        for index in np.ndindex(t.shape) if self.sound else ():
            unit = np.zeros_like(t)
            unit[index] = 1.0
            self.difference[index] = -(loss(t + unit) - loss(t - unit)) / (4 * self.constant)

    def along(self, way):
        """The sum of the predictions times ``way``, as a function of the parameters, up to a constant."""

        def value(params, x, t):
            apart = self._step.loss(params, x, t + way) - self._step.loss(params, x, t - way)
            return -float(apart) / (4 * self.constant)

        return value


def parts_of_the_batch(runs, step):
    """Yield the gradients of the last row, of the last half, and of the same from the front."""
    for first, last in ((-1, None), (0, 1), (None, None)):
        patterns = []
        for place in runs.places:
            rows = np.arange(place.rows)
            chosen = rows[place.rows // 2 :] if first is None else rows[first:last]
            axis = batch_axis(place.x, place.t)
            x, t = (np.take(array, chosen, axis=min(axis, array.ndim - 1)) for array in (place.x, place.t))
            patterns.append(measure(step.loss, place.params, x, t, runs.entries))
        yield patterns
