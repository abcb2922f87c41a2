"""Examines a whole training step by what it does to the parameters."""

import ast
import re

import numpy as np

from .._validate import complaint
from ._guard import guarded
from ._objects import CannotExamineError
from ._report import ArrayVerdict, Finding, Report, worst_entries
from ._step_calls import FunctionStep, ObjectStep, StepError, mean_squared_error
from ._step_explain import explain
from ._step_runs import take_steps
from ._subjects import subject_of

ORDER = {"stale-cache", "updated-weight-used", "not-cleared"}
"""Defects of the order in which things happen."""
NOT_SUMMED = re.compile(r"operand with shape (\(.*?\)) doesn't match the broadcast shape (\(.*?\))")
"""What NumPy says to an update in place with one row for each sample."""


@guarded
def diagnose_step(step, params=None, loss=None, x=None, t=None, *, predict=None) -> Report:
    """Examine a training step: which gradient must it have used, at which weights, how many times added?

    Args:
        step: a function ``step(params, x, t, lr)`` that returns new parameters or changes those it gets; or
            an object, or a class, with ``forward``, ``backward`` and ``step`` (and ``zero_grad``), or with a
            method ``train_step(x, t)``. Arguments are known by their names and else by their places. A
            function without a learning rate is examined too, but a factor cannot be told from it.
        params: a dict, list or tuple of arrays, where ``step`` is a function. They are not changed.
        loss: ``loss(params, x, t)`` for a function, ``loss(pred, t)`` for an object, by default the mean of
            the squares. Its slopes are taken for the truth.
        x: inputs, with a row (or a column) for each sample.
        t: targets. Batches of 5, 2, 1 and 3 are drawn from x and t.
        predict: ``predict(params, x)``, the outputs, so that gradients of other losses can be tried. For an
            object its forward pass is taken.

    Returns:
        A `Report`. Momentum, weight decay and the usual adaptive rules are no defects; what they hide is
        said in a note.

    Raises:
        ValueError: x or t is missing, or parameters or loss for a function.

    Source:
        The rules that are told from defects: those of ``optim``; T. Tieleman, G. Hinton, lecture 6.5 of
        "Neural networks for machine learning", 2012, for RMSProp.

    >>> def loss(params, x, t):
    ...     return np.mean((x @ params["w"] - t) ** 2)
    >>> def step(params, x, t, lr):
    ...     d_out = 2 * (x @ params["w"] - t) / t.size
    ...     return {"w": params["w"] - lr * x.T @ d_out / len(x)}
    >>> rng = np.random.default_rng(0)
    >>> w, x, t = rng.normal(size=(3, 2)), rng.normal(size=(6, 3)), rng.normal(size=(6, 2))
    >>> diagnose_step(step, {"w": w}, loss, x, t).defects
    ('averaged-twice',)
    """
    made = _adapter(step, params, loss, x, t)
    if isinstance(made, Report):
        return made
    predict = predict or getattr(made, "predict", None)
    try:
        runs = _run(made, np.asarray(x), np.asarray(t))
    except StepError as error:
        return _crashed(made, str(error))
    except Exception as error:
        return _crashed(made, f"{type(error).__name__}: {error}")
    findings, notes, theirs = explain(runs, made, predict)
    return _report(runs, findings, notes, theirs)


def _adapter(step, params, loss, x, t):
    for name, value in (("x", x), ("t", t)):
        if value is None:
            came, advice = f"{name} is None", "Pass a batch: diagnose_step(step, params, loss, x, t)."
            raise ValueError(complaint("diagnose_step", came, "inputs and targets", advice))
    if params is not None:
        if loss is None:
            advice = "Pass loss=loss; its slopes are what the step must follow."
            raise ValueError(complaint("diagnose_step", "loss is None", "loss(params, x, t)", advice))
        return FunctionStep(step, params, loss)
    if callable(step) and not isinstance(step, type) and not hasattr(step, "forward"):
        advice = "Pass the parameters that it starts from: diagnose_step(step, params, loss, x, t)."
        raise ValueError(complaint("diagnose_step", "params is None", "a dict, list or tuple", advice))
    try:
        made = ObjectStep(subject_of(step, x=np.asarray(x)), loss or mean_squared_error)
    except CannotExamineError as error:
        return Report("nothing could be run", notes=(str(error),), failed=True)
    if not made.can_train:
        return Report("an object without step, update or train_step", failed=True)
    return made


def _run(made, x, t):
    """Take all steps; where batches of other sizes do not run, with one size alone."""
    try:
        return take_steps(made, x, t)
    except StepError:
        return take_steps(made, x, t, sizes=(5, 5, 5, 5))


def _crashed(made, what):
    arrays = tuple(ArrayVerdict(name, "not checked") for name in made.names)
    finding = _not_summed(made, what) or Finding("crash", ("the step",), {"other": what})
    return Report("a training step", arrays, (finding,), failed=True)


def _not_summed(made, what):
    """The finding for an error that says that a gradient has a row for each sample, or None."""
    shapes = NOT_SUMMED.search(what)
    if not shapes:
        return None
    own, came = (ast.literal_eval(shape) for shape in shapes.groups())
    names = [name for name, array in made.start.items() if array.shape == own]
    if len(names) != 1 or came[-len(own) :] != own:
        return None
    return Finding("bias-not-summed", tuple(names), {"shape": came, "expected": own})


def _report(runs, findings, notes, theirs):
    findings = list(findings)
    for name, shape in runs.grown.items():
        facts = {"shape": shape, "expected": runs.shapes[name]}
        findings.append(Finding("bias-grown", (name,), facts))
    if runs.changed:
        findings.append(Finding("input-changed", runs.changed))
    order = {name for finding in findings if finding.defect in ORDER for name in finding.where}
    arrays = tuple(_verdict(runs, name, _shown(runs, name, theirs, order)) for name in runs.names)
    return Report("a training step", arrays, tuple(findings), tuple(notes))


def _shown(runs, name, theirs, order):
    """(place, the gradient that a step there must have used), or None.

    What is wrong with the order of steps shows at the first step from a new place, as it was taken.
    """
    if name in order and theirs is not None:
        place = runs.places[1]
        return place, place.updates[0][name] / place.rates[0]
    return None if theirs is None or name not in theirs else (runs.places[0], theirs[name])


def _verdict(runs, name, shown):
    """The verdict on one parameter."""
    total = int(np.prod(runs.shapes[name]))
    if shown is None or not np.isfinite(shown[0].slopes[name]).any():
        return ArrayVerdict(name, "cannot tell", (), 0, total)
    place, theirs = shown
    keep = np.isfinite(place.slopes[name])
    numeric, seen = place.slopes[name][keep], theirs[keep]
    entries = tuple(_place(runs, name, keep, entry) for entry in worst_entries(seen, numeric))
    size = max(np.nanmax(np.abs(array), initial=0.0) for array in place.slopes.values())
    right = np.abs(seen - numeric).max() <= (1e-2 if runs.is_float32 else 1e-4) * size
    verdict = "healthy" if right and name not in runs.grown else "wrong"
    return ArrayVerdict(name, verdict, entries, int(keep.sum()), total)


def _place(runs, name, keep, entry):
    """Give an entry its place in the parameter."""
    flat = runs.entries[name][keep][entry.index[0]]
    index = tuple(int(side) for side in np.unravel_index(flat, runs.shapes[name] or (1,)))
    return type(entry)(index, entry.theirs, entry.numeric)
