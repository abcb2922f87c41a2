"""Examine a layer: what one call shows, what several calls show, and both in one report."""

from dataclasses import replace

import numpy as np

from . import _behaviour
from ._affine import recognise
from ._chain import examine_chain, recognise_chain
from ._guard import guarded
from ._mixing import recognise_mixed
from ._networks import examine_any
from ._report import ArrayVerdict, Finding, Report
from ._structure import examine_dense, say_error, theirs
from ._subjects import CannotExamineError, subject_of

CLEARER = {
    "random": (),
    "crash": (),
    "batch-mixed": ("batch-size-hides",),
    "stale-cache": ("crash",),
    "shared-weight-overwritten": ("batch-size-hides", "factor"),
    "not-finite": ("batch-size-hides",),
}
"""What a cause explains: where it was found, these are its symptoms and no findings of their own."""
STRAY = (
    "backward stores {}, and no array was found of which that could be the gradient: keep the parameters as "
    "arrays in attributes, such as self.W."
)
OUR_INPUT = (ValueError, TypeError, IndexError, CannotExamineError)
"""Errors that an input of the doctor's may have caused."""


@guarded
def diagnose_layer(layer, backward=None, *, params=None, x=None) -> Report:
    """Name the defects of a hand-written layer, activation or small network.

    Args:
        layer: a class, an object with a forward and a backward pass, or a forward function
            ``forward(x, weight, bias)``. It finds out how arrays are called and stored.
        backward: the backward function, where ``layer`` is a function: ``backward(d_out, x, weight)``, or
            ``backward(d_out, cache)`` with what forward returned beside its output.
        params: the parameters of the functions, a dict, list or tuple of arrays, where others than a weight
            and a bias are needed.
        x: an input (N, in_features), where none can be found by trying.

    Returns:
        A `Report`. The layer itself is never run: copies of it are.

    Source:
        The slips are those of `DEFECTS`; the right gradients are slopes of ``(d_out * forward(x)).sum()``.

    >>> import numpy as np
    >>> def forward(x, weight, bias):
    ...     return x @ weight.T + bias
    >>> def backward(d_out, x, weight):
    ...     return d_out @ weight, d_out.T @ x / len(x), d_out.sum(axis=0)
    >>> report = diagnose_layer(forward, backward)
    >>> report.defects
    ('weight-averaged',)
    >>> print(report.findings[0].change.partition(":")[0])
    Remove the division by the batch size from the gradient of weight
    """
    try:
        subject = subject_of(layer, backward, params=params, x=x)
    except CannotExamineError as error:
        return _not_examined(error)
    try:
        return examine(subject)
    except Exception as error:
        return _stopped(subject, theirs(error))


def _stopped(subject, error):
    """The report on a subject that ran at first, and stopped with another input."""
    arrays = tuple(ArrayVerdict(name, "not checked") for name in (*subject.names, "x"))
    finding = Finding("crash", ("the forward pass",), {"other": say_error(error)})
    return Report(subject.description, arrays, (finding,), failed=True)


def _not_examined(error):
    """The report on what could not be run; an error that no input can have caused is a finding."""
    findings = ()
    if error.error is not None and not isinstance(error.error, OUR_INPUT):
        findings = (Finding("crash", ("the forward pass",), {"other": say_error(error.error)}),)
    return Report("nothing could be run", findings=findings, notes=(str(error),), failed=True)


def examine(subject) -> Report:
    """Examine a subject in all ways, and put what was found into one report."""
    if subject.dtype not in (np.float32, np.float64):
        return _too_coarse(subject)
    notes = _with_finite_numbers(subject)
    if not _deterministic(subject):
        arrays = tuple(ArrayVerdict(name, "not checked") for name in (*subject.names, "x"))
        return Report(subject.description, arrays, (Finding("random", ("the forward pass",)),), failed=True)
    dense = recognise(subject) or recognise_mixed(subject)
    if dense is not None:
        subject.layout = dense.layout
        outcome = examine_dense(subject, dense)
        words = f"{subject.description}: {dense.description}"
    else:
        chain = recognise_chain(subject)
        words = subject.description if chain is None else f"{subject.description}: {chain.description}"
        outcome = examine_any(subject) if chain is None else examine_chain(subject, chain)
    behaviour = [one for one in _behaviour.examine(subject) if not (subject.single and _is_usual(one))]
    findings = merge(outcome.findings, behaviour)
    arrays = tuple(_explained(array, findings) for array in outcome.arrays)
    notes += [STRAY.format(", ".join(subject.strays))] if subject.strays else []
    failed = outcome.failed or bool(subject.strays)
    return Report(words, arrays, findings, (*notes, *outcome.notes), failed)


def _too_coarse(subject):
    """The report on a layer in float16, or in a dtype that is not usual."""
    arrays = tuple(ArrayVerdict(name, "not checked") for name in (*subject.names, "x"))
    note = (
        f"The parameters are {subject.dtype}; slopes are measured in float64 and float32. Give the layer "
        "parameters in one of them, and it can be examined."
    )
    return Report(subject.description, arrays, notes=(note,), failed=True)


def _with_finite_numbers(subject):
    """Put random numbers in place of parameters that hold NaN or infinity; notes that say so."""
    params = subject.params()
    broken = [name for name, value in params.items() if not np.isfinite(value).all()]
    rng = np.random.default_rng(17)
    subject.load({name: 0.7 * rng.standard_normal(params[name].shape) for name in broken})
    return [f"{name} holds NaN or infinity. The passes were examined with other numbers." for name in broken]


def _is_usual(finding):
    """Whether a layer for one sample keeps d_out as the gradient of its bias, which it is."""
    return finding.defect == "view-kept" and finding.facts.get("other") == "d_out"


def _deterministic(subject):
    rng = np.random.default_rng(7)
    x = subject.draw_input(5, rng)
    run = subject.clone()
    params = run.params()
    one = np.array(run.forward(x.copy()))
    run.load(params)
    two = np.array(run.forward(x.copy()))
    other = np.array(subject.clone().forward(x.copy()))
    return all(np.allclose(one, again, rtol=1e-4, equal_nan=True) for again in (two, other))


def merge(static, behaviour):
    """Put findings together: each defect once for an array, and causes in place of their symptoms."""
    known = {finding.defect for finding in static}
    findings = [*static, *(finding for finding in behaviour if finding.defect not in known)]
    symptoms = {symptom for finding in behaviour for symptom in CLEARER.get(finding.defect, ())}
    return tuple(finding for finding in findings if finding.defect not in symptoms)


def _explained(array, findings):
    """An array that a cause among the findings explains is wrong, and no longer a riddle."""
    causes = [finding for finding in findings if array.name in finding.where and finding.defect in CLEARER]
    return replace(array, verdict="wrong") if array.verdict == "cannot tell" and causes else array
