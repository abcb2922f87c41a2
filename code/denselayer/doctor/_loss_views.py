"""What a loss takes for predictions and targets, probes in that form, and the slopes measured there."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._slopes import Probe
from ._loss_calls import CallError, LossCalls
from ._loss_library import softmax

SIZES = ((4, 3), (2, 5), (1, 3), (5, 2), (3, 4))
"""Samples and classes of the probes; their logarithms are independent, so that N and C can be told apart."""
KINK = 1e-3
COARSE = 2e-2


@dataclass(frozen=True)
class View:
    """How predictions and targets come: the kind of targets, the numbers in the predictions, the layout."""

    targets: str
    domain: str = "numbers"
    layout: str = "rows"

    @property
    def words(self):
        """The view in words."""
        kinds = {
            "labels": "labels as targets",
            "one-hot": "one-hot targets",
            "binary": "targets 0 and 1",
            "signs": "targets -1 and 1",
            "numbers": "numbers as targets",
        }
        layout = {"rows": "", "columns": ", a sample in each column", "flat": ", arrays of shape (N,)"}
        domain = "probabilities and " if self.domain == "probabilities" else ""
        return f"{domain}{kinds[self.targets]}{layout[self.layout]}"

    def draw(self, n, classes, rng):
        """Draw rows of predictions (n, classes) and of targets of the same shape."""
        z, t = self._predictions(n, classes, rng), self._targets(n, classes, rng)
        return z, t

    def _predictions(self, n, classes, rng):
        if self.domain == "numbers":
            return 1.5 * rng.standard_normal((n, classes))
        if self.targets in ("binary", "numbers"):
            return rng.uniform(0.1, 0.9, (n, classes))
        return softmax(rng.standard_normal((n, classes)))

    def _targets(self, n, classes, rng):
        if self.targets in ("labels", "one-hot"):
            return np.eye(classes)[rng.integers(classes, size=n)]
        if self.targets == "numbers":
            return rng.standard_normal((n, classes))
        bits = rng.integers(2, size=(n, classes)).astype(float)
        return bits if self.targets == "binary" else 2 * bits - 1

    def give(self, z, t):
        """Turn rows into what the loss takes."""
        if self.targets == "labels":
            return (z.T.copy() if self.layout == "columns" else z.copy()), t.argmax(axis=1)
        return self.lay(z), self.lay(t)

    def lay(self, rows):
        """Turn rows (N, C) into the layout of the loss."""
        if self.layout == "flat":
            return rows[:, 0].copy()
        return rows.T.copy() if self.layout == "columns" else rows.copy()

    def rows(self, array):
        """Turn an array in the layout of the loss back into rows."""
        if self.layout == "flat":
            return array[:, None]
        return array.T if self.layout == "columns" else array


@dataclass(frozen=True)
class Sample:
    """One probe: rows of predictions and targets, the measured slopes and what the person says they are."""

    z: np.ndarray
    t: np.ndarray
    slopes: np.ndarray
    """NaN at kinks."""
    theirs: object
    """In the layout of the loss, exactly what came."""
    shape: tuple
    """The shape of the predictions as they were given."""
    precise: bool
    rows: np.ndarray | None
    """What the person says, as rows; None if it has another shape."""

    @property
    def size(self):
        return self.z.shape

    @cached_property
    def tolerance(self):
        """How far a right gradient may be from the measured slopes."""
        largest = np.nanmax(np.abs(self.slopes), initial=0.0)
        return (1e-6 if self.precise else 1e-2) * largest + 1e-9

    @property
    def excess(self):
        """The largest difference, in units of what is tolerated."""
        if self.rows is None:
            return np.inf
        wrong = np.abs(self.rows - self.slopes)[np.isfinite(self.slopes)]
        return float(np.nan_to_num(wrong, nan=np.inf).max(initial=0.0) / self.tolerance)


def views(targets=None):
    """All views to try, the most telling first; ``targets`` keeps those of one kind."""
    every = [View(kind) for kind in ("labels", "one-hot", "numbers", "binary", "signs")]
    every += [View(kind, layout="columns") for kind in ("labels", "one-hot")]
    every += [View(kind, "probabilities") for kind in ("labels", "one-hot", "binary")]
    every += [View(kind, "probabilities", "columns") for kind in ("labels", "one-hot")]
    every += [View("numbers", layout="flat"), View("binary", layout="flat"), View("signs", layout="flat")]
    every += [View("binary", "probabilities", "flat")]
    return [view for view in every if targets in (None, view.targets)]


def sizes(view):
    """The sizes of the probes for a view."""
    return [(n, 1) for n, _ in SIZES] if view.layout == "flat" else SIZES


def runs(calls: LossCalls, view):
    """Whether the loss takes this view, and gives a finite number."""
    z, t = view.draw(*sizes(view)[0], np.random.default_rng(1))
    try:
        return bool(np.isfinite(calls.value(*view.give(z, t))))
    except CallError:
        return False


def study(calls: LossCalls, view, seed=0):
    """Measure all probes of a view."""
    rng = np.random.default_rng(seed)
    precise = not rounds_to_float32(calls, view)
    return [_measure(calls, view, *view.draw(n, classes, rng), precise) for n, classes in sizes(view)]


def rounds_to_float32(calls, view):
    """Whether the loss does not feel what lies beyond the digits of float32."""
    rng = np.random.default_rng(2)
    same = []
    for n, classes in sizes(view)[:3]:
        z, t = view.draw(n, classes, rng)
        rounded, moved = z.astype(np.float32).astype(np.float64), z * 1.01
        values = [calls.value(*view.give(each, t)) for each in (z, rounded, moved)]
        same.append(values[0] == values[1] and values[0] != values[2])
    return all(same)


def _measure(calls, view, z, t, precise):
    pred, target = view.give(z, t)
    probe = Probe(lambda moved: calls.value(moved, target), pred, None if precise else COARSE)
    slopes = np.array([_slope(probe, index) for index in np.ndindex(pred.shape)]).reshape(pred.shape)
    theirs = calls.gradient(pred, target)
    fits = _is_numeric(theirs) and np.shape(theirs) == pred.shape
    rows = view.rows(np.asarray(theirs, dtype=np.float64)) if fits else None
    return Sample(z, t, view.rows(slopes), theirs, pred.shape, precise, rows)


def _is_numeric(array):
    try:
        return np.asarray(array).dtype.kind in "fiub"
    except ValueError:
        return False


def _slope(probe, index):
    slopes = probe.slopes(index)
    at_kink = (
        slopes.jump > KINK * max(1.0, abs(slopes.left), abs(slopes.right)) and probe.precision == np.float64
    )
    if at_kink and slopes.step < COARSE:
        return np.nan
    return slopes.central
