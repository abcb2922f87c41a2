"""Examine a dense layer or an activation: its passes on many shapes, and the slips that explain them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ._affine import draw_weight, parts_of
from ._explain import Case, Target, explain
from ._hypotheses import forms_of, gates_of
from ._measured import LOST, several
from ._mixing import mixing_matrix
from ._objects import CannotExamineError, attempt
from ._report import ArrayVerdict, Finding, worst_entries
from ._slips import Names, findings_of
from ._wording import formulas, of_any_array

BATCHES = (1, 2, 3, 5)
SHAPES = ((4, 4), (5, 3), (2, 5))
"""(in_features, out_features) that are tried besides the layer's own."""
STRICT, MEASURED, SINGLE, ROUGH = 1e-9, 1e-7, 3e-5, 3e-4
"""What is tolerated: in float64, with measured slopes, in float32, and in float32 with measured slopes."""
OWN = str(Path(__file__).parent / "_").replace("\\", "/")
"""How the paths of the doctor's own modules begin; those of the zoo stand for a person's code."""
ONE_ROW = 8
"""With how many further samples a gradient must be right before the batch size is blamed."""
VISIBLE = 0.01
"""From this part of the largest entry on, a difference is more than rounding in float32."""
LARGE = 10_000
"""How many pre-activations are looked at for samples that stay away from kinks."""
HEALTHY = 2e-6
"""Up to this relative difference a float64 gradient is right, as in a gradient check."""


@dataclass(frozen=True)
class Outcome:
    """What a static examination gives: verdicts, findings, notes, and whether the passes ran at all."""

    arrays: tuple
    findings: tuple
    notes: tuple = ()
    failed: bool = False


def examine_dense(subject, dense) -> Outcome:
    """Examine a subject that `recognise` has taken for a dense layer or an activation."""
    cases, errors = _collect(subject, dense)
    if not cases:
        return crashed(subject, [error for _, _, error in errors])
    single = np.float32 in (dense.precision, subject.dtype)
    exact = dense.curve.exact
    rtol = (SINGLE if exact and not dense.mixing else ROUGH) if single else STRICT if exact else MEASURED
    names = Names(subject, dense)
    with np.errstate(all="ignore"):
        return _judge(names, dense, cases, errors, rtol)


def crashed(subject, errors) -> Outcome:
    """The outcome for passes that never ran."""
    arrays = tuple(ArrayVerdict(name, "not checked") for name in (*subject.names, "x"))
    finding = Finding("crash", ("the backward pass",), {"other": say_error(errors[0])})
    return Outcome(arrays, (finding,), failed=True)


def say_error(error):
    """An exception in words, with the line of the person's file where it was raised."""
    steps = _their_steps(error)
    place = f" (line {steps[-1][1]} of {steps[-1][0].rpartition('/')[2]})" if steps else ""
    return f"{type(error).__name__}: {error}{place}"


def theirs(error):
    """The exception if the person's code took part in it; one of the doctor itself is raised."""
    if not _their_steps(error) and not isinstance(error, CannotExamineError):
        raise error
    return error


def _their_steps(error):
    """(file, line) of the steps of a traceback that lie in the person's code."""
    found, step = [], error.__traceback__
    while step is not None:
        path = step.tb_frame.f_code.co_filename.replace("\\", "/")
        own = path.startswith(OWN) and not path.startswith(f"{OWN}zoo")
        if not own and "/numpy/" not in path:
            found.append((path, step.tb_lineno))
        step = step.tb_next
    return found


def _collect(subject, dense):
    """Run the passes for several batch sizes and shapes; return the cases, and the errors of the others."""
    cases, errors = [], []
    own = None if dense.layout is None else dense.sizes(subject.params())
    subjects = [subject]
    if dense.layout is not None:
        for in_features, out_features in SHAPES:
            if (in_features, out_features) != own:
                subjects.append(subject.fresh(in_features=in_features, out_features=out_features))
    for number, one in enumerate(filter(None, subjects)):
        for n in (1,) if dense.single else BATCHES:
            rng = np.random.default_rng(100 + n)
            try:
                cases.append(run_case(one, dense, n, rng))
            except Exception as error:
                errors.append((number, n, theirs(error)))
    return cases, errors


def _stopped(errors):
    """A finding if the passes ran for some batch sizes of a shape and stopped for others."""
    for number in dict.fromkeys(number for number, _, _ in errors):
        sizes = [n for one, n, _ in errors if one == number]
        if len(sizes) < len(BATCHES):
            error = next(error for one, _, error in errors if one == number)
            words = f"{say_error(error)}, with a batch of {several(sizes)}"
            return [Finding("crash", ("the backward pass",), {"other": words})]
    return []


def run_case(subject, dense, n, rng):
    """One forward and backward pass with random numbers, away from the kink of the activation."""
    run = subject.clone()
    layout = dense.layout
    if layout is not None:
        params = run.params()
        shapes = {name: value.shape for name, value in params.items()}
        arrays = layout.join(*draw_weight(layout, params, rng), shapes)
        run.load({name: value.astype(run.dtype) for name, value in arrays.items()})
        weight, bias = parts_of(layout, run.params())
    else:
        shapes, weight, bias = {}, None, None
    x = _draw(run, dense, n, rng, weight, bias)
    out = np.asarray(run.forward(x))
    rows = dense.rows(x).astype(np.float64)
    z = rows if layout is None else rows @ weight.T + bias
    d_out = rng.standard_normal(out.shape)
    d_out = (np.sign(d_out) * (0.2 + np.abs(d_out))).astype(out.dtype if out.dtype.kind == "f" else run.dtype)
    upstream, x_shape = dense.rows(d_out).astype(np.float64), np.shape(x)
    mix = mixing_matrix(subject, dense, n).T if dense.mixing else np.eye(n)
    came = {name: _kept(gradient) for name, gradient in run.backward(d_out.copy()).items()}
    known = weight if weight is not None else np.eye(rows.shape[1])
    return Case(rows, known, bias, mix @ upstream, z, came, {"x": x_shape} | shapes, upstream)


def _kept(gradient):
    """A copy as float64; None for what is no array of numbers."""
    if gradient is None:
        return None
    array = np.asarray(gradient)
    return array.astype(np.float64) if array.dtype.kind in "fiub" else None


def _draw(run, dense, n, rng, weight, bias):
    """An input; where the activation has kinks, the samples that stay away from them."""
    if dense.curve.nearness is None or dense.single:
        return run.draw_input(n, rng)
    width = run.in_features if weight is None else len(weight)
    many = run.draw_input(n * max(3, min(40, LARGE // (n * width))), rng)
    rows = dense.rows(many).astype(np.float64)
    z = rows if weight is None else rows @ weight.T + bias
    near = dense.curve.nearness(z)
    best = np.argsort(near.max(axis=1) + near.mean(axis=1), kind="stable")[:n]
    return np.ascontiguousarray(np.take(many, best, axis=dense.batch_axis))


def _judge(names, dense, cases, errors, rtol):
    """Verdicts and findings from the cases."""
    targets, findings, missing = [], [], {}
    for name in names.pieces:
        slip = absent(names, name, cases)
        if slip is None:
            targets.append(Target(name, forms_of(names, name)))
        else:
            missing[name] = slip
            findings += [slip] if isinstance(slip, Finding) else []
    chosen = explain(targets, gates_of(dense, cases), cases, rtol)
    loose = max(HEALTHY, rtol)
    for name in [name for name, explanation in chosen.items() if explanation is None]:
        target = Target(name, forms_of(names, name)[:1])
        right = explain([target], gates_of(dense, cases)[:1], cases, loose)[name]
        chosen[name] = right if right is not None and not right.cost else None
    findings += findings_of(names, chosen, cases)
    hidden = _hidden(names, chosen, cases, loose)
    arrays = tuple(_verdict(names, name, chosen, missing, cases) for name in (*names.arrays,))
    return Outcome(arrays, tuple(_stopped(errors) + findings + hidden))


def absent(names, name, cases):
    """A finding for a gradient that is missing, zero or not finite; a note where it may be missing."""
    values = [names.raw(name, case) for case in cases]
    where = (names.shown(name),)
    if all(value is None for value in values):
        if names.called[name] in names.subject.lost:
            return LOST
        if name == "x":
            return "backward returned no gradient for it, as the lowest layer may."
        return _zero(names, name, {"missing": True})
    given = [value for value in values if value is not None]
    if any(not np.isfinite(value).all() for value in given):
        return Finding("not-finite", (f"the gradient of {where[0]}",))
    if all(not value.any() for value in given):
        return _zero(names, name, {})
    return None


def _zero(names, name, facts):
    """The finding for a gradient that is zero or missing."""
    defect = "bias-zero" if name == "bias" else "gradient-zero"
    return Finding(defect, (names.shown(name),), facts, formulas(names, defect, [name], facts))


def _hidden(names, chosen, cases, rtol):
    """Where nothing explains an array: is it right for one row, or is its shape wrong?"""
    findings = []
    for name in [name for name, explanation in chosen.items() if explanation is None]:
        shape = _misshapen(names, name, cases)
        if shape is not None:
            findings.append(shape)
        elif _right_for_one_row(names, name, cases, rtol):
            facts = {"n": several(sorted({case.n for case in cases if case.n > 1}))}
            findings.append(Finding("batch-size-hides", (names.shown(name),), facts))
    return findings


def _right_for_one_row(names, name, cases, rtol):
    """Whether an array is right for one row, and for more rows wrong by more than any rounding."""
    single, many = ([case for case in cases if (case.n == 1) == alone] for alone in (True, False))
    if not single or not many:
        return False
    form, gate = forms_of(names, name)[0], gates_of(names.dense, single)[0]
    if not any(_is_far(form, gate, case) for case in many):
        return False
    alone = explain([Target(name, [form])], [gate], [*single, *_single_samples(names)], rtol)[name]
    return alone is not None and not alone.cost


def _single_samples(names):
    """Further cases of one row, of a square layer where the passes run on no other."""
    square, seeds = names.subject.fresh(in_features=4, out_features=4), range(500, 500 + ONE_ROW)
    for subject in filter(None, (names.subject, square)):
        cases = [attempt(run_case, subject, names.dense, 1, np.random.default_rng(seed)) for seed in seeds]
        if None not in cases:
            return cases
    return []


def _is_far(form, gate, case):
    """Whether a gradient differs from the right one by a visible part of it."""
    came, (right,) = form.read(case), form.arrays(case, gate.at(case))
    if came is None or came.shape != right.shape:
        return True
    return bool(np.abs(came - right).max(initial=0.0) > VISIBLE * np.abs(right).max(initial=0.0))


def _misshapen(names, name, cases):
    """A finding if the gradient has another shape than its array in every case of several rows."""
    called = names.called[name]
    for case in cases:
        came = case.came.get(called)
        if came is not None and came.shape != case.shapes[called] and came.shape != case.shapes[called][::-1]:
            facts = {"shape": came.shape, "expected": case.shapes[called]}
            return Finding("wrong-shape", (called,), facts, of_any_array("wrong-shape", called, facts))
    return None


def _verdict(names, called, chosen, missing, cases):
    """The verdict on one array as the person calls it, which may hold weight and bias."""
    pieces = [piece for piece in names.pieces if names.called[piece] == called]
    notes = [missing[piece] for piece in pieces if isinstance(missing.get(piece), str)]
    if notes:
        return ArrayVerdict(called, "cannot tell" if notes[0] == LOST else "not checked", note=notes[0])
    found = [chosen.get(piece) for piece in pieces]
    broken = any(piece in missing for piece in pieces)
    if not broken and all(one is not None and not one.cost for one in found):
        verdict = "healthy"
    else:
        explained = broken or all(one is not None for one in found)
        verdict = "wrong" if explained else "cannot tell"
    case = _shown(names, called, cases, verdict)
    came, right = case.came.get(called), names.truth(called, case)
    total = right.size
    if verdict == "healthy" and came.shape != right.shape:
        note = (
            f"its gradient has the shape {came.shape}, which does no harm to one of the shape {right.shape}."
        )
        entries = worst_entries(came.reshape(right.shape), right)
        return ArrayVerdict(called, verdict, entries, total, total, note)
    if came is None or came.shape != right.shape:
        shape = "no array" if came is None else f"the shape {came.shape}"
        return ArrayVerdict(called, "wrong", (), 0, total, f"{shape} came, {right.shape} was expected.")
    note = _decay(names, called, cases) if verdict == "cannot tell" else ""
    return ArrayVerdict(called, verdict, worst_entries(came, right), total, total, note)


def _decay(names, called, cases):
    """A note if a gradient has a multiple of its own parameter added, as weight decay does."""
    if called != names.called.get("weight") or names.augmented:
        return ""
    read, shares = names.reader("weight", turned=False), []
    for case in cases:
        came, (right,) = read(case), forms_of(names, "weight")[0].arrays(case, names.d_z(case))
        if came is None:
            return ""
        share = float(((came - right) * case.weight).sum() / (case.weight**2).sum())
        if np.abs(came - right - share * case.weight).max() > 1e-3 * abs(share) * np.abs(case.weight).max():
            return ""
        shares.append(share)
    if np.ptp(shares) > 1e-3 * abs(shares[0]):
        return ""
    return (
        f"what came is the right gradient plus {shares[0]:.4g} times the array itself, as weight decay adds "
        "it; the forward pass has no such term."
    )


def _shown(names, called, cases, verdict):
    """The case that is shown: the first of three rows, and for a wrong array one in which it is wrong."""
    ordered = sorted(cases, key=lambda case: (case.n != 3, case.n != 2))
    if verdict == "healthy":
        return ordered[0]
    for case in ordered:
        came, right = case.came.get(called), names.truth(called, case)
        if came is None or came.shape != right.shape:
            return case
        if not np.allclose(came, right, rtol=1e-4, atol=1e-6 * np.abs(right).max(initial=0.0)):
            return case
    return ordered[0]


__all__ = ["Outcome", "crashed", "examine_dense", "run_case", "say_error"]
