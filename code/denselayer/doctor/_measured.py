"""Gradients beside measured slopes, whatever they come from, and the slips that explain them."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from .._slopes import NOISE, Probe, default_step
from ..gradcheck import check_gradients
from ._defects import DEFECTS
from ._explain import Form, Gate, Target, explain
from ._report import ArrayVerdict, Entry, Finding
from ._shapes import settled
from ._slips import name_constant
from ._spellings import family
from ._wording import joined, of_any_array

ENTRIES = 24
"""How many entries of each array are measured."""
SHOW = 3
LOST = (
    "no gradient was found that can only be its own; call it d_ and the name of the array, or let backward "
    "return it."
)
"""What is said of a parameter whose gradient may stand under a name that is not known."""
RTOL = {np.float64: 1e-6, np.float32: 5e-4}
SILENT, VISIBLE, COARSE = 1e-9, 0.01, 5e-3
USUAL_CONSTANTS = (0.5, 1.0, 2.0)


@dataclass(frozen=True)
class Measured:
    """What came for one array, and what was measured, at the same entries.

    ``came`` is the whole gradient or None, ``shape`` what its shape should be, ``n`` the batch size, or 1
    where there is none.
    """

    n: int
    came: np.ndarray | None
    shape: tuple
    entries: tuple
    guesses: tuple = ()
    """Other gradients that may have come, as (defect, array)."""

    @property
    def sides(self):
        return self.n, 1, 1

    @property
    def smooth(self):
        """The entries at which there is a slope."""
        return [entry for entry in self.entries if entry.verdict != "kink"]

    @property
    def numeric(self):
        """The measured slopes."""
        return np.array([entry.numeric for entry in self.smooth])

    @property
    def d_out(self):
        """What the size of the slopes is measured by."""
        return self.numeric

    def at(self, gradient):
        """The same entries of an array of the right shape."""
        return np.array([gradient[entry.index] for entry in self.smooth], dtype=np.float64)

    @property
    def right(self):
        """Whether what came is what was measured."""
        if self.came is None or self.came.shape != self.shape:
            return False
        return all(entry.verdict != "wrong" for entry in self.entries)

    @property
    def far(self):
        """Whether what came differs from what was measured by a visible part of it."""
        if self.came is None or self.came.shape != self.shape:
            return True
        size = np.abs(self.numeric).max(initial=0.0)
        return bool(np.abs(self.at(self.came) - self.numeric).max(initial=0.0) > VISIBLE * size)


@dataclass(frozen=True)
class Context:
    """What is known beside the arrays: which axis is the batch, learning rates, a batch size."""

    batch_axes: tuple = (0, 1)
    rates: Callable = tuple
    alone: bool = False
    """Whether there is one case only, so that the factor of a single number means nothing."""
    dtype: type = np.float64
    coarse: bool = False
    lost: frozenset = frozenset()
    """Arrays whose gradient may stand where it was not found."""


def measure(loss, arrays, came, n=1, coarse=False):
    """``{name: Measured}`` by slopes of ``loss`` in arrays of floats.

    Args:
        loss: takes ``arrays`` and returns a number.
        arrays: where the slopes are measured.
        came: the gradients to compare them with.
        n: the batch size.
        coarse: whether the loss has the digits of float32 only, whatever its dtype.
    """
    came = {name: settled(came.get(name), value.shape) for name, value in arrays.items()}
    fitting = {name: _fitting(came[name], value) for name, value in arrays.items()}
    steps = {"step": default_step(np.float32), "rtol": COARSE} if coarse else {}
    report = check_gradients(loss, arrays, fitting, max_entries=ENTRIES, **steps)
    grouped = {name: [] for name in arrays}
    largest = max((abs(entry.numeric) for entry in report.entries), default=0.0)
    for entry in report.entries:
        if entry.verdict == "wrong" and _is_noise(entry, fitting[entry.name], largest):
            entry = replace(entry, verdict="ok")
        elif entry.verdict == "wrong" and not coarse and _at_a_kink(loss, arrays, entry):
            entry = replace(entry, verdict="kink")
        grouped[entry.name].append(entry)
    return {
        name: Measured(n, came.get(name), value.shape, tuple(grouped[name])) for name, value in arrays.items()
    }


def _is_noise(entry, gradient, largest):
    """Whether a difference is no more than the rounding of sums of terms as large as the largest slope."""
    return abs(entry.analytic - entry.numeric) <= NOISE * np.finfo(gradient.dtype).eps * largest


def _at_a_kink(loss, arrays, entry):
    """Whether the slopes to both sides stay apart as the step shrinks: then no gradient is right or wrong."""
    name = entry.name
    probe = Probe(lambda array: loss(arrays | {name: array}), arrays[name], None)
    ratio = 256 if probe.precision == np.float64 else 16
    coarse, fine = probe.slopes(entry.index), probe.slopes(entry.index, ratio)
    noise = NOISE * np.finfo(probe.precision).eps * fine.height / fine.step
    return fine.jump > max(noise, 4 * coarse.jump / ratio, 1e-3 * max(abs(fine.left), abs(fine.right)))


def as_array(gradient):
    """A copy as a plain array; None for what is no array of numbers."""
    if gradient is None:
        return None
    try:
        array = np.asarray(gradient)
    except ValueError:
        return None
    return np.array(array) if array.dtype.kind in "fiub" else None


def _fitting(gradient, value):
    """The gradient for the comparison; zeros in its place where it does not fit."""
    if gradient is None or gradient.shape != value.shape or not np.isfinite(gradient).all():
        return np.zeros_like(value)
    return gradient if gradient.dtype in (np.float32, np.float64) else gradient.astype(np.float64)


def judge(name, cases, context):
    """(verdict, findings) for one array, from all its cases."""
    if not cases[0].entries:
        return ArrayVerdict(name, "not checked", note="it has no entries."), []
    given = [case.came for case in cases if case.came is not None]
    total = int(np.prod(cases[0].shape))
    kind = family(name.rpartition(".")[2])
    if not given and name in context.lost:
        return ArrayVerdict(name, "cannot tell", total=total, note=LOST), []
    if not given and kind not in ("weight", "bias"):
        note = "no gradient was found for it."
        if name == "x":
            note = "backward gave no gradient for it, as the lowest layer may."
        return ArrayVerdict(name, "not checked", total=total, note=note), []
    shown = next((case for case in cases if not case.right), cases[0])
    verdict = (name, "wrong", _entries(shown), len(shown.entries), total)
    if any(not np.isfinite(gradient).all() for gradient in given):
        return ArrayVerdict(name, "wrong", total=total), [Finding("not-finite", (f"the gradient of {name}",))]
    silent = all(np.abs(case.numeric).max(initial=0.0) < SILENT for case in cases)
    empty = all(not gradient.any() for gradient in given)
    if empty and not silent:
        defect = "bias-zero" if kind == "bias" else "gradient-zero"
        return ArrayVerdict(*verdict), [_spelt(defect, name, {"missing": not given})]
    if not any(case.smooth for case in cases):
        note = "every entry that was tried is at a kink, where there is no slope to compare with."
        return ArrayVerdict(name, "not checked", total=total, note=note), []
    if all(case.right for case in cases) or (empty and silent):
        return ArrayVerdict(name, "healthy", *verdict[2:]), []
    findings = explained(name, cases, context)
    return ArrayVerdict(name, "wrong" if findings else "cannot tell", *verdict[2:]), findings


def _entries(case):
    if case.came is None or case.came.shape != case.shape:
        return ()
    ordered = sorted(case.smooth or case.entries, key=lambda entry: -entry.excess)[:SHOW]
    return tuple(Entry(tuple(map(int, one.index)), one.analytic, one.numeric) for one in ordered)


def explained(name, cases, context):
    """The findings that explain a wrong gradient, if any do."""
    rtol = COARSE if context.coarse else RTOL[context.dtype]
    cases = [case for case in cases if case.came is not None]
    found = explain([Target(name, _forms(context))], [Gate("", lambda case: case)], cases, rtol)[name]
    last = max(cases, key=lambda case: case.n)
    single = context.alone and int(np.prod(last.shape)) == 1
    if found is not None and not (single and not _usual(found.law.constant)):
        return list(_named(name, found, last, context))
    column = _zero_column(cases)
    if column:
        return [Finding("bias-zero", (f"{column} of {name}",))]
    guessed = _guess(cases, rtol)
    if guessed is not None:
        return [_spelt(guessed, name, {"batch_axis": context.batch_axes[0]})]
    if last.came.shape != last.shape:
        return [_misshapen(name, last, rtol)]
    alone, many = ([case for case in cases if (case.n == 1) == one] for one in (True, False))
    if alone and many and all(case.right for case in alone) and any(case.far for case in many):
        wrong = sorted(case.n for case in many)
        return [Finding("batch-size-hides", (name,), {"n": several(wrong)})]
    return []


def _usual(constant):
    return any(abs(abs(constant) - usual) < 1e-5 for usual in USUAL_CONSTANTS)


def several(numbers):
    """Numbers as in a sentence.

    >>> several([2, 3, 5])
    '2, 3 and 5'
    """
    *others, last = map(str, numbers)
    return f"{', '.join(others)} and {last}" if others else last


def _forms(context):
    numeric = lambda case, _: [case.numeric]  # noqa: E731
    forms = [Form("", numeric, _as_it_is), Form("weight-transposed", numeric, _turned)]
    for axis in context.batch_axes:
        forms.append(Form("bias-not-summed", numeric, lambda case, axis=axis: _summed(case, axis)))
    return forms


def _as_it_is(case):
    return case.at(case.came) if case.came.shape == case.shape else None


def _turned(case):
    came = case.came
    return case.at(came.T) if came.ndim == 2 and came.T.shape == case.shape else None


def _summed(case, batch_axis):
    """The sum over the batch of a gradient that has one entry for each sample."""
    came, width = case.came, int(np.prod(case.shape))
    if came.ndim != 2 or came.shape == case.shape or came.shape[1 - batch_axis] != width:
        return None
    return case.at(came.sum(axis=batch_axis).reshape(case.shape))


def _zero_column(cases):
    """Where the bias of an augmented weight stands, if its gradient is zero and all others are right."""
    if any(case.came.shape != case.shape or len(case.shape) != 2 for case in cases):
        return ""
    for axis, words in ((1, "column"), (0, "row")):
        for place in (0, cases[0].shape[axis] - 1):
            inside = [entry for case in cases for entry in case.smooth if entry.index[axis] == place]
            others = [entry for case in cases for entry in case.smooth if entry.index[axis] != place]
            zero = all(not np.take(case.came, place, axis).any() for case in cases)
            wrong = any(entry.verdict == "wrong" for entry in inside)
            if zero and wrong and others and all(entry.verdict == "ok" for entry in others):
                return f"{words} {place}"
    return ""


def _guess(cases, rtol):
    """The defect whose gradient came in all cases, or None."""
    for defect, _ in cases[0].guesses:
        if all(_is_guess(case, defect, rtol) for case in cases):
            return defect
    return None


def _is_guess(case, defect, rtol):
    guess = dict(case.guesses).get(defect)
    size = None if guess is None else np.abs(guess).max(initial=0.0)
    fits = guess is not None and guess.shape == case.came.shape
    return fits and np.abs(guess - case.came).max(initial=0.0) <= 10 * rtol * size


def _misshapen(name, case, rtol):
    """A wrong shape; where the total is right, a bias was summed over the wrong axis."""
    facts = {"shape": case.came.shape, "expected": case.shape}
    whole = len(case.smooth) == int(np.prod(case.shape))
    flat = case.came.ndim == len(case.shape) == 1 and whole
    if flat and family(name.rpartition(".")[2]) == "bias":
        total, size = case.numeric.sum(), np.abs(case.numeric).max(initial=0.0)
        if abs(case.came.sum() - total) <= 100 * rtol * size:
            return Finding("bias-wrong-axis", (name,), facts)
    return _spelt("wrong-shape", name, facts)


def _spelt(defect, name, facts):
    """A finding on one array, with formulas in its name."""
    return Finding(defect, (name,), facts, of_any_array(defect, name, facts))


def _named(name, explanation, last, context):
    """Yield the findings of one explanation."""
    if explanation.form:
        yield Finding(explanation.form, (name,), {"shape": last.came.shape, "expected": last.shape})
    law = explanation.law
    if law.constant < 0:
        yield _spelt("sign-flipped", name, {})
    power, constant = law.powers[0], abs(law.constant)
    facts = {"n": last.n, "factor": float(f"{float(last.n) ** power:.6g}")}
    kind = family(name.rpartition(".")[2])
    rest = abs(constant - 1) > 1e-4
    named = name_constant(constant, context.rates()) if rest else ("", {})
    plain = named[0] != "factor"
    if plain and power == -1 and name != "x":
        yield _spelt("bias-averaged" if kind == "bias" else "weight-averaged", name, facts)
    elif plain and power == 1 and kind == "bias":
        yield _spelt("bias-times-batch", name, facts)
    elif power:
        words = str(type(law)(constant, law.powers))
        yield _spelt("factor", name, {"factor": f"{words} (n is the number of rows)"})
        return
    if rest:
        yield _spelt(named[0], name, named[1])


def merged(findings):
    """Findings of one kind in one, and averages in weight and bias as averages in all."""
    kinds = {finding.defect for finding in findings}
    together = {"weight-averaged", "bias-averaged"} <= kinds
    groups = {}
    for finding in findings:
        averaged = finding.defect in ("weight-averaged", "bias-averaged")
        defect = "all-averaged" if together and averaged else finding.defect
        key = (defect, str(finding.facts.get("factor")), str(finding.facts.get("shape")))
        groups.setdefault(key, []).append(finding)
    return tuple(_one(key[0], group) for key, group in groups.items())


def _one(defect, group):
    """Findings of one kind as one; formulas of activations only where they agree."""
    where = tuple(name for finding in group for name in finding.where)
    pairs = list(dict.fromkeys(finding.formulas for finding in group))
    if len(pairs) > 1:
        pairs = [joined(pairs) if DEFECTS[defect].group == "arrays" else ("", "")]
    return Finding(defect, where, group[0].facts, pairs[0])
