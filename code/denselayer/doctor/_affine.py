"""Recognise a dense layer by running it: where weight and bias are, how they are stored, which activation."""

from dataclasses import dataclass
from itertools import product

import numpy as np

from ._curves import Curve, measured, recognise_points
from ._spellings import family

CLOSE = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 3e-5}
"""How closely the outputs must be those of a dense layer, in units of the largest."""
POINTS, REACH = 32, 3.0
"""How many samples an activation is looked at with, and how large: each unit must come to both sides of 0."""
SOME, FAR = np.linspace(-3.7, 3.8, 16), np.array([-9.0, -6.5, 6.5, 9.0])


@dataclass(frozen=True)
class Layout:
    """How a dense layer stores its arrays.

    ``axis`` is the axis of the weight that belongs to the inputs. ``place`` is where the bias stands in an
    augmented weight, 0 or -1, and None elsewhere. Inside the doctor all arrays are as in the book.
    """

    weight: str
    bias: str | None
    axis: int
    place: int | None
    batch_axis: int
    single: bool = False

    @property
    def storage(self):
        if self.place is not None:
            return "augmented"
        return "out_in" if self.axis == 1 else "in_out"

    @property
    def has_bias(self):
        return self.bias is not None or self.place is not None

    def rows(self, array):
        """An input or output with a sample in each row; a single sample becomes the only row."""
        array = np.asarray(array)
        if self.single:
            return array.reshape(1, -1)
        if array.ndim == 1:
            return array[:, None]
        return array.T if self.batch_axis else array

    def like(self, rows, shape):
        """The inverse of `rows`, in a given shape."""
        return (rows.T if self.batch_axis and not self.single else rows).reshape(shape)

    def split(self, weight):
        """The weight (out, in), and the bias (out,) if it is a part of it, of a stored array."""
        weight = np.atleast_2d(weight)
        weight = weight if self.axis == 1 else weight.T
        if self.place is None:
            return weight, None
        return (weight[:, 1:], weight[:, 0]) if self.place == 0 else (weight[:, :-1], weight[:, -1])

    def join(self, weight, bias, shapes):
        """Store a weight (out, in) and a bias (out,): the arrays of the layer under their names."""
        if self.place is not None:
            parts = [bias[:, None], weight] if self.place == 0 else [weight, bias[:, None]]
            weight = np.hstack(parts)
        stored = {self.weight: (weight if self.axis == 1 else weight.T).reshape(shapes[self.weight])}
        if self.bias is not None:
            stored[self.bias] = bias.reshape(shapes[self.bias])
        return stored


@dataclass(frozen=True)
class Dense:
    """A dense layer with an activation, or an activation alone, whose layout is None."""

    layout: Layout | None
    curve: Curve
    batch_axis: int
    single: bool
    precision: np.dtype
    """float32 where it computes in that, whatever comes in."""
    mixing: bool = False
    """Whether the output is a fixed mix of the rows."""

    @property
    def description(self):
        """What was found out about it, in words."""
        words = []
        if self.layout is not None:
            stored = {"out_in": "(out, in)", "in_out": "(in, out)", "augmented": "augmented with the bias"}
            words.append(f"weight stored {stored[self.layout.storage]}")
        words.append(
            "one sample at a time" if self.single else f"batch as {('rows', 'columns')[self.batch_axis]}"
        )
        if self.curve.name != "identity" or self.layout is None:
            name = self.curve.name.replace("_", " ")
            words.append(
                f"activation {name}" if self.curve.exact else "an activation that is not a usual one"
            )
        if self.mixing:
            words.append("with its rows mixed")
        return ", ".join(words)

    def rows(self, array):
        """A sample in each row."""
        if self.layout is not None:
            return self.layout.rows(array)
        array = np.asarray(array)
        return np.atleast_2d(array).T if self.batch_axis else np.atleast_2d(array)

    def sizes(self, params):
        """(in, out) for these parameters."""
        weight, _ = self.layout.split(params[self.layout.weight])
        return weight.shape[::-1]


def recognise(subject):
    """Find out whether a subject is a dense layer with an activation on each unit, or an activation alone.

    Returns:
        A `Dense`, or None for everything else, such as a network or a normalisation.
    """
    params = subject.params()
    if not params:
        return _activation(subject)
    found = [(layout, fit) for layout in layouts(subject, params) if (fit := _fits(subject, layout))]
    if len(found) > 1:
        found = [(layout, fit) for layout, fit in found if _fits_elsewhere(subject, layout)] or found
    for layout, (curve, dtype) in found[:1]:
        return Dense(layout, curve, subject.batch_axis, subject.single, dtype)
    return None


def _fits_elsewhere(subject, layout):
    """Whether the layout holds for other widths too: one by one, a weight may be stored either way."""
    trial = subject.clone()
    trial.layout = layout
    other = trial.fresh(in_features=3, out_features=2)
    return other is not None and _fits(other, layout) is not None


def layouts(subject, params):
    """The layouts that the shapes allow."""
    batch = {"batch_axis": subject.batch_axis, "single": subject.single}
    weights = [name for name, value in params.items() if value.ndim == 2 and family(name) != "bias"]
    weights = weights or [
        name for name, value in params.items() if value.ndim == 1 and family(name) != "bias"
    ]
    if len(params) > 2 or len(weights) == 0:
        return
    for weight in weights:
        bias = next((name for name in params if name != weight), None)
        shape = np.atleast_2d(params[weight]).shape
        for axis in (1, 0):
            if shape[axis] == subject.in_features and _bias_fits(params, bias, shape[1 - axis]):
                yield Layout(weight, bias, axis, None, **batch)
        if bias is None:
            for axis, place in product((1, 0), (0, -1)):
                if shape[axis] == subject.in_features + 1:
                    yield Layout(weight, None, axis, place, **batch)


def _bias_fits(params, bias, out_features):
    return bias is None or params[bias].size == out_features


def _fits(subject, layout):
    """(curve, precision) if the subject is a dense layer in this layout, else None."""
    try:
        return _fitting(subject, layout, subject.params())
    except Exception:
        return None


def _fitting(subject, layout, params):
    rng = np.random.default_rng(11)
    shapes = {name: value.shape for name, value in params.items()}
    weight, bias = draw_weight(layout, params, rng)
    run = subject.clone()
    run.load({name: value.astype(subject.dtype) for name, value in layout.join(weight, bias, shapes).items()})
    weight, bias = parts_of(layout, run.params())
    x = REACH * subject.draw_input(POINTS, rng)
    out = layout.rows(run.forward(x)).astype(np.float64)
    z = layout.rows(x).astype(np.float64) @ weight.T + bias
    if z.shape != out.shape or not np.isfinite(out).all():
        return None
    points = points_of(subject, layout, shapes)
    pairs = [(z, out), points(FAR)] + ([points(SOME)] if layout.single else [])
    found = _known(*(np.concatenate([one.ravel() for one in side]) for side in zip(*pairs, strict=True)))
    if found is not None:
        return found
    wrong = np.max(np.abs(points(z)[1] - out)) > CLOSE[subject.dtype] * np.max(np.abs(out), initial=1e-300)
    return None if wrong else (_measured(subject, layout, shapes, points), subject.dtype)


def _measured(subject, layout, shapes, points):
    """A curve with measured slopes, in float64 if the same layer computes in that with float64 arrays."""
    twin = subject.fresh(dtype=np.float64) if subject.dtype == np.float32 else None
    if twin is not None:
        finer, here = points_of(twin, layout, shapes), points(SOME)[1]
        out = np.asarray(twin.clone().forward(twin.draw_input(2, np.random.default_rng(0))))
        far = np.abs(finer(SOME)[1] - here).max()
        if out.dtype == np.float64 and far <= CLOSE[subject.dtype] * np.abs(here).max():
            return measured(lambda z: finer(z)[1], np.float64)
    return measured(lambda z: points(z)[1], subject.dtype)


def _known(z, out):
    """(curve, precision) of the known activation through these points, or None."""
    for dtype, close in CLOSE.items():
        curve = recognise_points(z, out, close)
        if curve is not None:
            return curve, dtype
    return None


def _same(one, other):
    return np.allclose(one, other, rtol=1e-6, atol=0)


def draw_weight(layout, params, rng):
    """A random weight (out, in) and bias (out,) for which z is about 1 in size."""
    shape = layout.split(params[layout.weight])[0].shape
    weight = rng.uniform(0.5, 1.5, shape) * rng.choice([-1.2, 1.2], shape) / np.sqrt(shape[1])
    bias = rng.uniform(0.2, 0.8, shape[0]) * rng.choice([-1.0, 1.0], shape[0])
    return weight, bias if layout.has_bias else np.zeros(shape[0])


def parts_of(layout, stored):
    """The weight (out, in) and the bias (out,) of stored arrays, as float64."""
    weight, bias = layout.split(stored[layout.weight].astype(np.float64))
    if layout.bias is not None:
        bias = stored[layout.bias].astype(np.float64).ravel()
    return weight, np.zeros(weight.shape[0]) if bias is None else bias


def points_of(subject, layout, shapes):
    """The activation at values of z: unit k sees input k alone, so that each row of x holds many values.

    They come from different samples of z, so that what mixes units, as a softmax does, gives other outputs.

    Returns:
        A function of z that returns z and the outputs; z is read after the forward pass, which may change
        its input.
    """
    weight = np.zeros(layout.split(np.zeros(shapes[layout.weight]))[0].shape)
    many = min(weight.shape)
    weight[range(many), range(many)] = 1
    arrays = layout.join(weight, np.zeros(len(weight)), shapes)
    arrays = {name: value.astype(subject.dtype) for name, value in arrays.items()}

    def function(z):
        z = np.asarray(z, dtype=np.float64)
        run = subject.clone()
        run.load(arrays)
        rows = np.zeros((-(-z.size // many), many))
        rows.ravel()[: z.size] = z.T.ravel()
        parts = rows[:, None, :] if layout.single else [rows]
        pairs = [_diagonal(layout, run, part, subject) for part in parts]
        here, out = (np.concatenate(side).ravel()[: z.size] for side in zip(*pairs, strict=True))
        return here.reshape(z.T.shape).T, out.reshape(z.T.shape).T

    return function


def _diagonal(layout, run, values, subject):
    """The first features of an input, and the units of its output that see one each."""
    many = values.shape[1]
    x = np.zeros((len(values), subject.in_features))
    x[:, :many] = values
    shape = (subject.in_features,) if layout.single else (x.T if layout.batch_axis else x).shape
    x = np.ascontiguousarray(layout.like(x, shape)).astype(subject.dtype)
    out = layout.rows(run.forward(x)).astype(np.float64)
    return layout.rows(x).astype(np.float64)[:, :many], out[:, :many]


def _activation(subject):
    """An activation alone: an entry of the output depends on its own input and on nothing else."""
    rng = np.random.default_rng(12)
    try:
        x = 2 * subject.draw_input(6, rng)
        moved = np.where(rng.random(x.shape) < 0.5, x, subject.draw_input(6, rng))
        out, after, turned = (
            np.array(subject.clone().forward(each.copy())) for each in (x, moved, x[::-1].copy())
        )
    except Exception:
        return None
    if out.shape != x.shape or not np.isfinite(out).all():
        return None
    if not (_same(out[moved == x], after[moved == x]) and _same(turned[::-1], out)):
        return None

    def function(z):
        z = np.asarray(z, dtype=np.float64)
        flat = np.zeros((-(-z.size // subject.in_features), subject.in_features))
        flat.ravel()[: z.size] = z.ravel()
        values = subject.clone().forward((flat.T if subject.batch_axis else flat).astype(subject.dtype))
        values = np.asarray(values, dtype=np.float64)
        return (values.T if subject.batch_axis else values).ravel()[: z.size].reshape(z.shape)

    points = [(x.astype(np.float64), out.astype(np.float64)), (FAR, function(FAR))]
    found = _known(*(np.concatenate([one.ravel() for one in side]) for side in zip(*points, strict=True)))
    curve, dtype = found or (measured(function, subject.dtype), subject.dtype)
    return Dense(None, curve, subject.batch_axis, subject.single, dtype)
