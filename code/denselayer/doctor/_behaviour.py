"""Probes of what a layer does between two calls: caches, changed arrays, mixed rows, dtypes, dice."""

from dataclasses import dataclass

import numpy as np

from ._functions import FunctionSubject
from ._report import Finding
from ._shared import shared_weights

ROWS = 4
OUTPUT = "the output"
FLOAT32_ERROR = 6e-8
"""Half a unit in the last place of float32: what a number loses when it is rounded to it."""


class Stopped(Exception):
    """The person's code raised; carries the finding."""

    def __init__(self, where, error):
        super().__init__(where)
        self.finding = Finding("crash", (where,), {"other": f"{type(error).__name__}: {error}"})


@dataclass(frozen=True)
class Batch:
    """An input and an upstream gradient."""

    x: np.ndarray
    d_out: np.ndarray


def examine(subject) -> list[Finding]:
    """Find the defects that show in what a subject does, whatever numbers it computes.

    Args:
        subject: a `Subject`. It is run in clones only.

    Returns:
        Findings, each with all the facts that its templates need. A subject that stops or throws dice gets
        that one finding, since nothing else can be said of it.
    """
    try:
        batches = [_draw(subject, seed) for seed in (1, 2)]
        if _is_random(subject, batches[0]):
            return [Finding("random", ("the forward pass",))]
        findings = _not_finite(subject, *batches, _draw(subject, 3, rows=4 * ROWS))
    except Stopped as stopped:
        square = _square(subject)
        return examine(square) if square is not None else [stopped.finding]
    probes = (_changed, _kept_views, _caches, _mixed_rows, _whole_numbers, _digits, _large, shared_weights)
    for probe in probes[:2] if findings else probes:
        try:
            findings += probe(subject, *batches)
        except Exception:
            continue
    return findings


def _square(subject):
    """The same layer with as many outputs as inputs, if it stops otherwise and runs so; else None."""
    params = subject.params()
    if any(array.ndim == 2 and array.shape[0] == array.shape[1] for array in params.values()):
        return None
    square = subject.fresh(in_features=ROWS - 1, out_features=ROWS - 1)
    try:
        run(square.clone(), _draw(square, 1))
    except (AttributeError, Stopped):
        return None
    return square


def _forward(subject, x):
    try:
        return np.asarray(subject.forward(x))
    except Exception as error:
        raise Stopped("the forward pass", error) from error


def _backward(subject, d_out):
    try:
        return subject.backward(d_out)
    except Exception as error:
        raise Stopped("the backward pass", error) from error


def _draw(subject, seed, rows=ROWS):
    """Draw a batch; the subject is run once for the shape of its output."""
    rng = np.random.default_rng(seed)
    x = subject.draw_input(rows, rng)
    out = _forward(subject.clone(), x.copy())
    return Batch(x, rng.standard_normal(out.shape).astype(out.dtype if out.dtype.kind == "f" else np.float64))


def run(subject, batch):
    """Forward and backward on copies; return the output and copies of all gradients that are arrays."""
    out = np.array(_forward(subject, batch.x.copy()))
    return out, copies(_backward(subject, batch.d_out.copy()))


def copies(gradients):
    """Copies of the gradients that are arrays of floats."""
    arrays = {name: np.asarray(gradient) for name, gradient in gradients.items() if gradient is not None}
    return {name: np.array(array) for name, array in arrays.items() if array.dtype.kind in "fiu"}


def same(one, other):
    """Whether two arrays are equal up to rounding."""
    one, other = np.asarray(one), np.asarray(other)
    if one.shape != other.shape:
        return False
    coarse = np.float32 in (one.dtype, other.dtype)
    with np.errstate(invalid="ignore"):
        size = np.nanmax(np.abs(other), initial=0.0)
        size = size if np.isfinite(size) else 0.0
        close = np.allclose(one, other, rtol=0, atol=(1e-4 if coarse else 1e-9) * size, equal_nan=True)
    return bool(close)


def _agree(gradients, others):
    return all(same(gradients[name], others[name]) for name in gradients if name in others)


def _is_random(subject, batch):
    """Whether one input gives two outputs; a layer that changes its parameters is no such thing."""
    one = subject.clone()
    params = one.params()
    first = np.array(_forward(one, batch.x.copy()))
    one.load(params)
    second = np.array(_forward(one, batch.x.copy()))
    return not same(second, first)


def _not_finite(subject, *batches):
    """NaN or infinity where ordinary numbers go in."""
    broken = {}
    for batch in batches:
        out, gradients = run(subject.clone(), batch)
        arrays = {OUTPUT: out} | {f"the gradient of {name}": array for name, array in gradients.items()}
        broken |= {name: True for name, array in arrays.items() if not np.isfinite(array).all()}
    return [Finding("not-finite", tuple(broken))] if broken else []


def _changed(subject, batch, _):
    """The input, the upstream gradient, or a parameter that is not what it was.

    The inputs are of several sizes and of both signs, since a gate that is open changes nothing.
    """
    wide = _draw(subject, 5, rows=4 * ROWS)
    found = {}
    for each in (batch, wide, Batch(-8 * wide.x, wide.d_out)):
        for finding in _changed_by(subject.clone(), each):
            found.setdefault((finding.defect, str(finding.facts)), finding)
    return list(found.values())


def _changed_by(one, batch):
    x, d_out = batch.x.copy(), batch.d_out.copy()
    before = one.params()
    one.forward(x)
    between = one.params()
    one.backward(d_out)
    after = one.params()
    if not np.array_equal(x, batch.x, equal_nan=True):
        yield Finding("input-changed", ("x",))
    if not np.array_equal(d_out, batch.d_out, equal_nan=True):
        yield Finding("upstream-changed", ("d_out",))
    for one_pass, then, now in (("forward", before, between), ("backward", between, after)):
        moved = tuple(name for name in then if not np.array_equal(then[name], now[name], equal_nan=True))
        if moved:
            yield Finding("parameter-changed", moved, {"other": one_pass})


def _kept_views(subject, first, second):
    """Results that change with the next call, and gradients that lie in an array of the caller."""
    one, d_out = subject.clone(), first.d_out.copy()
    out = one.forward(first.x.copy())
    out_then = np.array(out)
    gradients = one.backward(d_out)
    shapes = {name: value.shape for name, value in one.params().items()}
    found = _inside(gradients, shapes, d_out, "d_out")
    d_x = gradients.get("x")
    d_x_then = None if d_x is None else np.array(d_x)
    if _written_again(out, out_then, one.forward(second.x.copy())):
        found.append((OUTPUT, "the buffer of the layer"))
    again = one.backward(second.d_out.copy()).get("x")
    if d_x is not None and _written_again(d_x, d_x_then, again):
        found.append(("the gradient of x", "the buffer of the layer"))
    return [Finding("view-kept", (where,), {"other": other}) for where, other in found[:1]]


def _written_again(result, then, again):
    """Whether a result has changed since, or lies where a later one lies."""
    both = isinstance(result, np.ndarray) and isinstance(again, np.ndarray)
    return not np.array_equal(result, then, equal_nan=True) or (both and np.shares_memory(result, again))


def _inside(gradients, shapes, array, name):
    """Gradients of parameters, of the right shape, that share memory with an array."""
    return [
        (f"the gradient of {own}", name)
        for own, shape in shapes.items()
        if isinstance(gradients.get(own), np.ndarray)
        and gradients[own].shape == shape
        and np.shares_memory(gradients[own], array)
    ]


def _caches(subject, first, second):
    """What is left of an earlier call: in the cache, in the gradients, in another object of the class."""
    findings = []
    right = [run(subject.clone(), batch)[1] for batch in (first, second)]
    crossed = run(subject.clone(), Batch(first.x, second.d_out))[1]
    one = subject.clone()
    run(one, first)
    one.zero_grad()
    again = run(one, second)[1]
    names = [name for name in right[0] if name != "x"]
    kept = [name for name in names if _is_left_over(again, right, crossed, name)]
    if kept:
        again = {name: again[name] - right[0][name] if name in kept else again[name] for name in again}
    kept = kept or _stored_left_over(subject, first, second)
    if kept:
        findings.append(Finding("not-cleared", tuple(kept), {"factor": 2.0}))
    if not _agree(again, right[1]) and _agree(again, crossed):
        stale = tuple(name for name in again if not same(again[name], right[1][name]))
        return [*findings, Finding("stale-cache", stale, {"other": "the input of an earlier call"})]
    return findings + _queue(subject, first, second) + _shared_cache(subject, first, second, right[0])


def _stored_left_over(subject, *batches):
    """Names of gradients that are stored beside those that are returned, and add up from call to call."""
    right = []
    for batch in batches:
        one = subject.clone()
        run(one, batch)
        right.append(one.stored() if hasattr(one, "stored") else {})
    one = subject.clone()
    run(one, batches[0])
    one.zero_grad()
    run(one, batches[1])
    again = one.stored() if hasattr(one, "stored") else {}
    return [name for name in again if name in right[0] and _is_left_over(again, right, right[1], name)]


def _is_left_over(again, right, crossed, name):
    """Whether a gradient is its own plus that of the call before."""
    if name not in again or not np.any(right[0][name]) or again[name].shape != right[0][name].shape:
        return False
    if same(again[name], right[1][name]) or same(again[name], crossed[name]):
        return False
    return any(same(again[name], right[0][name] + own[name]) for own in (right[1], crossed))


def _queue(subject, first, second):
    """Two forward passes, then the backward pass of the second."""
    one = subject.clone()
    one.forward(first.x.copy())
    one.forward(second.x.copy())
    came = copies(one.backward(second.d_out.copy()))
    right = run(subject.clone(), second)[1]
    wrong = run(subject.clone(), Batch(first.x, second.d_out))[1]
    if _agree(came, right) or not _agree(came, wrong):
        return []
    stale = tuple(name for name in came if not same(came[name], right[name]))
    return [Finding("stale-cache", stale, {"other": "the input of an earlier call"})]


def _shared_cache(subject, first, second, right):
    """Two objects of the class, forward in turn, then backward of the first."""
    other = subject.another()
    if other is None or _share_a_closure(subject):
        return []
    one = subject.clone()
    one.forward(first.x.copy())
    other.forward(second.x.copy())
    came = copies(one.backward(first.d_out.copy()))
    wrong = run(subject.clone(), Batch(second.x, first.d_out))[1]
    if _agree(came, right) or not _agree(came, wrong):
        return []
    stale = tuple(name for name in came if not same(came[name], right[name]))
    functions = isinstance(subject, FunctionSubject)
    owner = "a call in between" if functions else "another object of the class"
    return [Finding("stale-cache", stale, {"other": f"the input of {owner}"})]


def _share_a_closure(subject):
    """Whether two functions keep things in variables of the function that made them, as an object would."""
    if not isinstance(subject, FunctionSubject):
        return False
    one, other = (getattr(function, "__closure__", None) or () for function in subject.sources())
    return any(cell in other for cell in one)


def _mixed_rows(subject, first, second):
    """Rows of the output, or of d_x, that change when another row is changed."""
    axis = subject.batch_axis
    moved = Batch(_with_row(first.x, second.x, axis), _with_row(first.d_out, second.d_out, axis))
    results = [run(subject.clone(), batch) for batch in (first, moved)]
    outs = [result[0] for result in results]
    d_xs = [result[1].get("x") for result in results]
    for where, (one, other) in ((OUTPUT, outs), ("the gradient of x", d_xs)):
        if one is None or other is None or np.shape(one) != np.shape(other) or np.ndim(one) == 0:
            continue
        row = _row_that_moved(one, other, axis)
        if row is not None:
            return [Finding("batch-mixed", (where,), {"other": row})]
    return []


def _with_row(array, other, axis):
    """Take the last row from another array."""
    if array.ndim <= axis or array.shape[axis] != ROWS:
        return array
    mixed = array.copy()
    np.moveaxis(mixed, axis, 0)[-1] = np.moveaxis(other, axis, 0)[-1]
    return mixed


def _row_that_moved(one, other, axis):
    """The first row but the last that differs, or None."""
    one, other = (np.moveaxis(array, min(axis, array.ndim - 1), 0) for array in (one, other))
    if len(one) != ROWS:
        return None
    size = max(np.abs(one).max(), 1e-300)
    tolerance = (1e-4 if np.float32 in (one.dtype, other.dtype) else 1e-9) * size
    return next((row for row in range(ROWS - 1) if np.abs(one[row] - other[row]).max() > tolerance), None)


def _whole_numbers(subject, first, _):
    """The same whole numbers as int and as float must give the same."""
    whole = np.random.default_rng(3).integers(-4, 5, first.x.shape)
    right = run(subject.clone(), Batch(whole.astype(first.x.dtype), first.d_out))
    try:
        came = run(subject.clone(), Batch(whole, first.d_out))
    except Stopped:
        return []
    arrays = {OUTPUT: (came[0], right[0])}
    arrays |= {f"the gradient of {name}": (came[1].get(name), right[1][name]) for name in right[1]}
    for where, (array, wanted) in arrays.items():
        if array is not None and array.shape == wanted.shape and not _rounds_to(array, wanted):
            return [Finding("integer-arithmetic", (where,), {"other": str(array.dtype)})]
    return []


def _large(subject, first, second):
    """NaN for inputs around 1,000; an exponential that is infinite there may be right, NaN never is."""
    broken = {}
    for sign in (1, -1):
        large = sign * 1000 * np.sign(first.x) + second.x
        out, gradients = run(subject.clone(), Batch(large.astype(first.x.dtype), first.d_out))
        arrays = {"output": out, "gradient": gradients.get("x", np.zeros(1))}
        broken |= {name: True for name, array in arrays.items() if np.isnan(array).any()}
    return [Finding("unstable-softmax", tuple(broken), {"other": "1,000 or -1,000"})] if broken else []


def _rounds_to(array, wanted):
    """Whether two arrays differ by no more than rounding; what is not finite is another matter."""
    if not (np.isfinite(array).all() and np.isfinite(wanted).all()):
        return True
    return bool(np.allclose(array, wanted, rtol=1e-3, atol=1e-3 * max(np.abs(wanted).max(initial=0.0), 1.0)))


def _digits(subject, first, _):
    """float64 in, and no more than the digits of float32 out."""
    params = subject.params()
    exact = [array.dtype == np.float64 for array in params.values() if array.dtype.kind == "f"]
    if first.x.dtype != np.float64 or not all(exact):
        return []
    out, gradients = run(subject.clone(), first)
    coarse = [OUTPUT] if out.dtype in (np.float32, np.float16) or _forgets_digits(subject, first, out) else []
    if not coarse:
        coarse = [
            f"the gradient of {name}"
            for name, array in gradients.items()
            if array.dtype in (np.float32, np.float16)
        ]
    return [Finding("float32-arithmetic", tuple(coarse), {"factor": FLOAT32_ERROR})] if coarse else []


def _forgets_digits(subject, batch, out):
    """Whether the digits beyond float32, of the input or of the parameters, make no difference."""
    rounded = batch.x.astype(np.float32).astype(np.float64)
    moved = np.array(subject.clone().forward(batch.x * 1.01))
    if np.array_equal(moved, out):
        return False
    return np.array_equal(np.array(subject.clone().forward(rounded)), out)
