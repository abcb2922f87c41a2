"""Takes a row of training steps that tell defects apart, and measures the true gradients beside them."""

from dataclasses import dataclass, field

import numpy as np

from .._slopes import Probe
from ._step_calls import StepError

ROWS = (5, 2, 1, 3)
"""Batch sizes, one for each place at which steps are taken."""
SHRINK = (1.0, 0.5, 0.25)
"""The learning rates at each place, in units of the largest."""
ENTRIES = 120
"""How many entries of each array are looked at; of larger arrays a sample."""
KINK = 1e-3


@dataclass
class Place:
    """One place: parameters and a batch, the true gradient there, and the steps that were taken from it."""

    params: dict
    x: np.ndarray
    t: np.ndarray
    rows: int
    slopes: dict
    rates: tuple
    updates: list = field(default_factory=list)
    """For each learning rate ``{name: parameters before minus after}``, at the entries that are looked at."""


@dataclass
class Runs:
    """All places, and what was seen on the way."""

    places: list
    entries: dict
    """For each parameter the flat positions of the entries that are looked at."""
    shapes: dict
    grown: dict
    """Parameters that came out with another shape, and that shape."""
    first: tuple = ()
    """The rate and the updates of one step before all others, at the first place."""
    changed: tuple = ()
    """Which of x and t the step changed."""
    is_float32: bool = False

    @property
    def names(self):
        return tuple(self.shapes)

    @property
    def tolerance(self):
        """The relative error of a step that is right."""
        return 2e-3 if self.is_float32 else 1e-6


def batch_axis(x, t):
    """The axis on which x and t have a row for each sample."""
    if np.ndim(t) == 0 or np.shape(x)[0] == np.shape(t)[0]:
        return 0
    return 1 if np.ndim(x) == 2 and np.shape(x)[1] == np.shape(t)[-1] else 0


def _take(array, rows, axis):
    return np.take(array, rows, axis=min(axis, array.ndim - 1))


def take_steps(step, x, t, sizes=ROWS, seed=0):
    """Take steps from several places, with batches and learning rates of several sizes."""
    rng = np.random.default_rng(seed)
    x, t, axis = np.asarray(x), np.asarray(t), batch_axis(x, t)
    is_float32 = any(array.dtype == np.float32 for array in step.start.values())
    largest = 0.1 if is_float32 else 0.02
    entries = {name: _sample(array.size, rng) for name, array in step.start.items()}
    shapes = {name: array.shape for name, array in step.start.items()}
    runs = Runs([], entries, shapes, {}, is_float32=is_float32)
    for number, rows in enumerate(sizes):
        chosen = rng.permutation(np.resize(rng.permutation(x.shape[axis]), rows))
        params = _moved(step.start, rng) if number else {k: v.copy() for k, v in step.start.items()}
        batch = _take(x, chosen, axis), _take(t, chosen, axis)
        slopes = measure(step.loss, params, *batch, entries)
        place = Place(params, *batch, rows, slopes, tuple(largest * part for part in SHRINK))
        runs.places.append(place)
        if not number:
            runs.first = place.rates[0], _one_step(step, runs, place, place.rates[0])
        for rate in place.rates:
            place.updates.append(_one_step(step, runs, place, rate))
    return runs


def _sample(size, rng):
    return np.arange(size) if size <= ENTRIES else np.sort(rng.choice(size, ENTRIES, replace=False))


def _moved(params, rng):
    """Parameters a little away from those that came, so that two places have two gradients."""
    moved = {}
    for name, array in params.items():
        size = 0.1 * (np.std(array) + 0.1)
        moved[name] = (array + size * rng.standard_normal(array.shape)).astype(array.dtype)
    return moved


def _one_step(step, runs, place, rate):
    x, t = place.x.copy(), place.t.copy()
    new = step.run(place.params, x, t, rate)
    runs.changed = tuple(
        name
        for name, now, then in (("x", x, place.x), ("t", t, place.t))
        if name in runs.changed or not np.array_equal(now, then, equal_nan=True)
    )
    return {name: _update(runs, name, place.params[name], np.asarray(new[name])) for name in runs.names}


def _update(runs, name, before, after):
    """Before minus after; of a parameter that has grown, added over what it has grown by."""
    difference = np.subtract(before, after, dtype=np.float64)
    if after.shape != before.shape:
        runs.grown.setdefault(name, after.shape)
        extra = tuple(range(difference.ndim - before.ndim))
        difference = difference.sum(axis=extra)
        wide = tuple(
            axis for axis, side in enumerate(before.shape) if side == 1 and difference.shape[axis] > 1
        )
        difference = difference.sum(axis=wide, keepdims=True)
    if difference.shape != before.shape:
        raise StepError(ValueError(f"{name} came back with shape {after.shape}, it had {before.shape}"))
    return difference.ravel()[runs.entries[name]]


def measure(loss, params, x, t, entries):
    """The slopes of ``loss(params, x, t)``, ``{name: at the chosen entries}``; NaN at kinks."""
    exact = {name: array.astype(np.float64) for name, array in params.items()}
    x, t = (array.astype(np.float64) if array.dtype == np.float32 else array for array in (x, t))
    return {name: _slopes_of(loss, exact, name, x, t, chosen) for name, chosen in entries.items()}


def _slopes_of(loss, params, name, x, t, chosen):
    shape = params[name].shape

    def moved(array):
        with np.errstate(all="ignore"):
            return loss(params | {name: array}, x.copy(), t.copy())

    probe = Probe(moved, params[name], None)
    slopes = [probe.slopes(np.unravel_index(position, shape)) for position in chosen]
    size = max([1e-8, *(abs(one.central) for one in slopes)])
    return np.array([np.nan if one.jump > KINK * size else one.central for one in slopes])
