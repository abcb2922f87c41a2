"""Examine a loss and its hand-written gradient: whether it is that of this loss, and else of which other."""

from dataclasses import replace

import numpy as np

from .._validate import choice, complaint, describe
from ._guard import guarded
from ._loss_calls import CallError, LossCalls, NoNumberError
from ._loss_explain import Reading, explain, with_epsilon
from ._loss_library import KNOWN
from ._loss_probes import behaviour, stale
from ._loss_views import View, runs, sizes, study, views
from ._report import ArrayVerdict, Finding, Report, worst_entries

TARGETS = ("labels", "one-hot", "numbers", "binary", "signs")
NOT_FINITE = (
    "The loss is NaN or infinite for all kinds of targets that were tried: numbers, labels, one-hot rows, "
    "0 and 1, -1 and 1. Where it needs others, the doctor cannot examine it."
)


@guarded
def diagnose_loss(loss, gradient=None, *, targets=None) -> Report:
    """Examine a loss and the gradient that someone wrote for it by hand.

    Args:
        loss: a function ``loss(pred, target)`` that returns a number, or the number and its gradient; or a
            class, or an object, with ``forward(pred, target)`` and ``backward``. The target may come first
            if its name says that it is one, as in ``(y_true, y_pred)``.
        gradient: a function ``gradient(pred, target)``; None if ``loss`` has its own.
        targets: ``"labels"``, ``"one-hot"``, ``"numbers"``, ``"binary"`` (0 and 1) or ``"signs"`` (-1 and 1).
            By default this is found out by trying.

    Returns:
        A Report. The gradient is compared with measured slopes of the loss; what differs is explained by
        the losses that the doctor knows, by their usual mistakes, and by powers of the batch size.

    Raises:
        ValueError: an unknown kind of targets.
        TypeError: ``loss`` cannot be called.

    Source:
        Definition: a gradient holds the slopes of its loss. The gradients of the known losses are those of
        ``functional`` and of PyTorch's losses.

    >>> report = diagnose_loss(lambda y, t: np.mean((y - t) ** 2), lambda y, t: (y - t) / y.size)
    >>> report.defects
    ('factor-two',)
    >>> diagnose_loss(lambda y, t: np.mean((y - t) ** 2), lambda y, t: 2 * (y - t) / y.size).healthy
    True
    """
    if targets is not None:
        choice("diagnose_loss", "targets", targets, TARGETS)
    if not callable(loss) and not hasattr(loss, "forward"):
        advice = "Pass the loss itself, not its value."
        raise TypeError(
            complaint("diagnose_loss", describe(loss) + " came", "a function or an object", advice)
        )
    try:
        calls = LossCalls(loss, gradient)
        return _examine(calls, targets)
    except CallError as error:
        return _crashed(error.where, str(error))
    except Exception as error:
        return _crashed("the loss", f"{type(error).__name__}: {error}")


def _crashed(where, what):
    finding = Finding("crash", (where,), {"other": what})
    return Report("a loss", (ArrayVerdict("the gradient", "not checked"),), (finding,), failed=True)


def _examine(calls, targets):
    candidates = [view for view in views(targets) if runs(calls, view)]
    if not candidates:
        return _nothing_runs(calls, targets)
    if not calls.has_gradient(*_sample(candidates[0])):
        note = "No gradient came. Pass it: diagnose_loss(loss, gradient)."
        return Report("a loss", (), (), (note,), failed=True)
    if _is_random(calls, candidates[0]):
        return Report("a loss", (), (Finding("random", ("the loss",), {}),), failed=True)
    other = stale(calls, candidates[0])
    if other:
        finding = Finding("stale-cache", (calls.name,), {"other": other})
        return Report("a loss", (ArrayVerdict(calls.name, "wrong"),), (finding,))
    reading = _read(calls, candidates, targets)
    if calls.per_sample and not reading.agrees:
        reading = _as_a_mean(calls, candidates, targets) or reading
    findings, notes = explain(reading)
    seen, more = behaviour(calls, reading)
    return Report(_subject(reading), (_verdict(reading),), (*findings, *seen), (*notes, *more))


def _as_a_mean(calls, candidates, targets):
    """The reading of a loss for each sample as their mean, if its gradient is that of the mean."""
    calls.takes_mean = True
    reading = _read(calls, candidates, targets)
    calls.takes_mean = reading.agrees
    return reading if reading.agrees else None


def _nothing_runs(calls, targets):
    """Say why no view gave a finite loss: an error, or a number that is not finite."""
    failures = []
    for view in views(targets):
        try:
            calls.value(*_sample(view))
        except NoNumberError as error:
            return Report("a loss", notes=(error.note,), failed=True)
        except CallError as error:
            failures.append(error)
        else:
            return Report("a loss", notes=(NOT_FINITE,), failed=True)
    return _crashed(failures[0].where, str(failures[0]))


def _sample(view):
    return view.give(*view.draw(*sizes(view)[0], np.random.default_rng(1)))


def _is_random(calls, view):
    return calls.value(*_sample(view)) != calls.value(*_sample(view))


def _read(calls, candidates, targets):
    """Choose the view in which the loss is a known one; else one in which its gradient agrees."""
    readings, failure = [], None
    for view in candidates:
        try:
            reading = _reading(calls, view)
        except CallError as error:
            failure = failure or error
            continue
        if reading.known:
            return _in_its_own_view(calls, reading, targets)
        readings.append(reading)
    if not readings:
        raise failure
    order = ("labels", "numbers", "one-hot", "binary", "signs")
    return min(
        readings,
        key=lambda it: (not it.agrees, it.view.layout == "columns", order.index(it.view.targets)),
    )


def _in_its_own_view(calls, reading, targets):
    """Look again with the targets that the known loss is made for."""
    known, view = reading.known, reading.view
    columns = view.layout == "rows" and (reading.scale.samples, reading.scale.width) == (0, -1)
    layout = "columns" if columns else view.layout
    if view.targets == "labels" or ((targets or view.targets) == known.targets and not columns):
        return reading
    own = View(targets or known.targets, known.domain, layout)
    again = _reading(calls, own) if runs(calls, own) else reading
    return again if again.known else reading


def _reading(calls, view):
    reading = Reading(calls.name, view, study(calls, view), _is_mean(calls, view), calls.per_sample)
    for known in KNOWN:
        fits = known.domain == view.domain or known.domain == "numbers"
        if fits and (known.layout is None or known.layout == (view.targets, view.layout)):
            scale = reading.fit(reading.slopes, known.slope)
            if scale:
                return replace(reading, known=known, scale=scale)
    return with_epsilon(reading)


def _is_mean(calls, view):
    """Whether twice the same batch gives the same loss."""
    z, t = view.draw(4, 3, np.random.default_rng(3))
    once = calls.value(*view.give(z, t))
    twice = calls.value(*view.give(np.concatenate([z, z]), np.concatenate([t, t])))
    return abs(twice - once) <= 1e-5 * abs(once)


def _subject(reading):
    name = reading.known.name if reading.known else "a loss that the doctor does not know"
    return f"a loss, {name}, with {reading.view.words}"


def _verdict(reading):
    """The verdict on the gradient, with the worst entries of the worst probe."""
    total = sum(sample.z.size for sample in reading.samples)
    if not reading.comparable:
        return ArrayVerdict(reading.name, "wrong", (), 0, total)
    checked = sum(int(np.isfinite(sample.slopes).sum()) for sample in reading.samples)
    worst = max(reading.samples, key=lambda sample: sample.excess)
    entries = worst_entries(worst.rows, np.where(np.isnan(worst.slopes), worst.rows, worst.slopes))
    if not checked:
        return ArrayVerdict(reading.name, "cannot tell", entries, 0, total)
    return ArrayVerdict(reading.name, "healthy" if reading.agrees else "wrong", entries, checked, total)
