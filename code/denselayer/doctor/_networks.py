"""Examine anything else with a forward and a backward pass, by slopes: networks, softmax, normalisations."""

from dataclasses import replace

import numpy as np

from ._measured import Context, as_array, judge, measure, merged
from ._objects import attempt
from ._spellings import learning_rates
from ._structure import ONE_ROW, Outcome, crashed, theirs

BATCHES = (3, 1, 2, 5)


def examine_any(subject) -> Outcome:
    """Compare all gradients with measured slopes, for several batch sizes, and explain what differs."""
    measured, errors, coarse = {}, [], _forgets_digits(subject)
    softmax = not subject.names and _is_softmax(subject)
    for n in (1,) if subject.single else BATCHES:
        try:
            rng = np.random.default_rng(200 + n)
            for name, result in _measure(subject, n, rng, softmax, coarse).items():
                measured.setdefault(name, []).append(result)
        except Exception as error:
            errors.append(theirs(error))
    if not measured:
        return crashed(subject, errors)
    rates = lambda: learning_rates(subject)  # noqa: E731
    context = Context((subject.batch_axis,), rates, subject.single, subject.dtype.type, coarse, subject.lost)
    arrays, findings, sure = [], [], None
    for name in (*subject.names, "x"):
        if name in measured:
            verdict, found = judge(name, measured[name], context)
            if any(finding.defect == "batch-size-hides" for finding in found):
                sure = _one_row(subject, softmax, coarse) if sure is None else sure
                if name not in sure:
                    verdict, found = replace(verdict, verdict="cannot tell"), []
            arrays.append(verdict)
            findings += found
    return Outcome(tuple(arrays), merged(findings))


def _one_row(subject, softmax, coarse):
    """The arrays whose gradients are right for several further samples, each on its own."""
    runs = [_measure(subject, 1, np.random.default_rng(500 + k), softmax, coarse) for k in range(ONE_ROW)]
    return {name for name in runs[0] if all(run[name].right for run in runs)}


def _measure(subject, n, rng, softmax, coarse):
    """``{name: Measured}`` for one batch."""
    run = subject.clone()
    params = {name: spread(value, rng) for name, value in run.params().items()}
    run.load(params)
    x = run.draw_input(n, rng)
    out = np.array(run.forward(x.copy()))
    d_out = rng.standard_normal(out.shape).astype(run.dtype)
    came = {name: as_array(gradient) for name, gradient in run.backward(d_out.copy()).items()}
    arrays = {name: value for name, value in (params | {"x": x}).items() if value.dtype.kind == "f"}
    worker = subject.clone()

    def loss(moved):
        worker.load({name: value for name, value in moved.items() if name in params})
        return np.sum(np.asarray(worker.forward(moved["x"].copy())) * d_out)

    measured = measure(loss, arrays, came, n, coarse)
    if softmax:
        measured["x"] = replace(measured["x"], guesses=(("softmax-jacobian-missing", d_out),))
    return measured


def _forgets_digits(subject):
    """Whether the digits of a float64 input beyond float32 make no difference."""
    x = subject.draw_input(3, np.random.default_rng(6))
    if x.dtype != np.float64:
        return False
    inputs = (x, x.astype(np.float32).astype(np.float64), 1.01 * x)
    out, rounded, moved = (np.array(attempt(subject.clone().forward, each.copy())) for each in inputs)
    return np.array_equal(out, rounded) and not np.array_equal(out, moved)


def spread(value, rng):
    """Parameters as they are, or spread a little where they are all the same, or symmetric, or orthogonal."""
    if value.dtype.kind != "f" or value.size == 0 or (np.ptp(value) > 0 and not _hides_transposes(value)):
        return value
    return (value + 0.3 * rng.standard_normal(value.shape)).astype(value.dtype)


def _hides_transposes(value):
    """Whether a matrix is its own transpose, or its transpose its inverse."""
    if value.ndim != 2 or value.shape[0] != value.shape[1] or value.shape[0] < 2:
        return False
    return np.array_equal(value, value.T) or np.allclose(value @ value.T, np.eye(len(value)), atol=1e-6)


def _is_softmax(subject):
    """Whether the output is the softmax of each sample."""
    x = subject.draw_input(3, np.random.default_rng(5))
    out = np.asarray(subject.clone().forward(x.copy()))
    if out.shape != x.shape or x.ndim != 2:
        return False
    shifted = np.exp(x - x.max(axis=1 - subject.batch_axis, keepdims=True))
    return bool(
        np.allclose(out, shifted / shifted.sum(axis=1 - subject.batch_axis, keepdims=True), rtol=1e-5)
    )
