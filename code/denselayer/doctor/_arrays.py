"""Diagnose gradients of a loss from the arrays alone: nothing is assumed about what computed them."""

import numpy as np

from .._slopes import plain_number
from .._validate import complaint, count, describe
from ..gradcheck import check_direction
from ._guard import guarded
from ._measured import ENTRIES, Context, as_array, judge, measure, merged
from ._report import ArrayVerdict, Finding, Report
from ._slips import TWO
from ._spellings import gradient_matches
from ._structure import say_error
from ._trees import leaves, rebuild

POINTS = 3
"""At how many points gradients are compared, where they come as a function."""


@guarded
def diagnose(loss, params, grads, *, batch_size=None) -> Report:
    """Name what is wrong with hand-written gradients of a loss.

    Args:
        loss: takes arrays like ``params`` and returns a number. It is given copies.
        params: a dict, list or tuple of arrays of any rank.
        grads: their gradients under the same names or in the same order, or a function that takes
            ``params`` and returns them, which is asked at several points. A gradient that is None or missing
            counts as left out.
        batch_size: with it, a factor of 1 / n or n is called by its name.

    Returns:
        A `Report`. Of arrays alone not everything can be told: a factor may be a learning rate as well as a
        forgotten constant, and of two equal contributions no one can say which is missing.

    Raises:
        TypeError: ``params`` or ``grads`` is something else.

    Source:
        Slopes by central differences, as in `denselayer.gradcheck`.

    >>> import numpy as np
    >>> w = np.array([[1.0, -2.0], [0.5, 3.0]])
    >>> report = diagnose(lambda params: (params["w"] ** 2).sum(), {"w": w}, {"w": w})
    >>> report.defects, report.findings[0].evidence.partition(":")[0]
    (('factor-two',), 'The gradient of w is 0.5 times the measured one')
    """
    if batch_size is not None:
        count("diagnose", "batch_size", batch_size)
    if _is_nested(params):
        flat = leaves(params)
        return diagnose.__wrapped__(
            lambda arrays: loss(rebuild(params, arrays)),
            flat,
            _flattened(grads, params),
            batch_size=batch_size,
        )
    names, pack = _container("params", params)
    arrays = dict(zip(names, _values(params), strict=True))
    if any(array.dtype.kind not in "fiub" for array in arrays.values()):
        return _no_real_numbers(names, arrays)
    points = [arrays]
    if callable(grads):
        rng = np.random.default_rng(3)
        points += [{name: _moved(value, rng) for name, value in arrays.items()} for _ in range(POINTS - 1)]
    subject = f"gradients of a loss of {', '.join(names) or 'no arrays'}"
    try:
        asked = [_gradients(grads, point, names, pack) for point in points]
    except TypeError:
        raise
    except Exception as error:
        return _stopped(subject, names, "the gradient function", error)
    return _Examination(loss, names, pack, batch_size, subject).report(points, asked)


def _is_nested(params):
    """Whether arrays stand in containers inside the container."""
    if not isinstance(params, dict | list | tuple):
        return False
    parts = params.values() if isinstance(params, dict) else params
    inner = [part for part in parts if isinstance(part, dict | list | tuple)]
    return any(isinstance(leaf, np.ndarray) for part in inner for leaf in leaves(part).values())


def _flattened(grads, params):
    """Gradients in the nested form of their parameters as a dict of arrays, or a function that gives it."""
    if callable(grads):
        return lambda arrays: leaves(grads(rebuild(params, arrays)))
    return leaves(grads)


def _no_real_numbers(names, arrays):
    """The report on parameters that are complex, or no numbers at all."""
    odd = {name: array for name, array in arrays.items() if array.dtype.kind not in "fiub"}
    wrong = [f"{name} is {describe(array)}" for name, array in odd.items()]
    note = f"{'; '.join(wrong)}. The doctor measures slopes in real numbers only."
    verdicts = tuple(ArrayVerdict(name, "not checked") for name in names)
    return Report(f"gradients of a loss of {', '.join(names)}", verdicts, notes=(note,), failed=True)


def _moved(value, rng):
    array = np.asarray(value)
    if array.dtype.kind != "f":
        return array
    return (array + 0.3 * rng.standard_normal(array.shape)).astype(array.dtype)


def _container(what, values):
    """(names, a function that makes the container again)."""
    if isinstance(values, dict):
        keys = list(values)
        return [str(key) for key in keys], lambda arrays: dict(zip(keys, arrays.values(), strict=True))
    if isinstance(values, list | tuple):
        kind = type(values) if type(values) in (list, tuple) else list
        return [f"{what}[{number}]" for number in range(len(values))], lambda arrays: kind(arrays.values())
    advice = "Put a single array into a dict: {'w': w}."
    came = f"{what} is {describe(values)}"
    raise TypeError(complaint("diagnose", came, "a dict, list or tuple of arrays", advice))


def _values(values):
    return [np.asarray(value) for value in (values.values() if isinstance(values, dict) else values)]


def _gradients(grads, point, names, pack):
    """``{name: gradient or None}`` at one point."""
    given = grads(pack({name: value.copy() for name, value in point.items()})) if callable(grads) else grads
    if isinstance(given, dict) and isinstance(pack(point), dict):
        return {
            name: as_array(_entry(given, key, names)) for name, key in zip(names, pack(point), strict=True)
        }
    if isinstance(given, list | tuple):
        padded = [*given, *[None] * len(names)]
        return {name: as_array(value) for name, value in zip(names, padded, strict=False)}
    if isinstance(given, np.ndarray) and len(names) == 1:
        return {names[0]: as_array(given)}
    advice = "Give each array one gradient."
    raise TypeError(
        complaint("diagnose", f"grads is {describe(given)}", "the same container as params", advice)
    )


def _entry(given, key, names):
    """The gradient under the name of the array, or under a name such as dW."""
    if key in given:
        return given[key]
    return next((value for name, value in given.items() if gradient_matches(name, str(key), names)), None)


def _stopped(subject, names, what, error):
    finding = Finding("crash", (what,), {"other": say_error(error)})
    arrays = tuple(ArrayVerdict(name, "not checked") for name in names)
    return Report(subject, arrays, (finding,), failed=True)


class _NoNumberError(ValueError):
    """A loss returned something else than a number."""


class _Examination:
    """One diagnosis of a loss and its gradients."""

    def __init__(self, loss, names, pack, batch_size, subject):
        self._call, self._names, self._pack = loss, names, pack
        self._batch_size, self._subject = batch_size, subject

    def _loss(self, arrays):
        with np.errstate(all="ignore"):
            value = self._call(self._pack({name: arrays[name].copy() for name in self._names}))
        if np.size(value) != 1 or np.asarray(value).dtype.kind not in "iuf":
            raise _NoNumberError(describe(value))
        return plain_number(value)

    def report(self, points, asked):
        """The report on the gradients that were asked for at these points."""
        problem = self._unusable(points[0])
        if problem is not None:
            return problem
        whole = [name for name in self._names if points[0][name].dtype.kind in "iub"]
        points = [{name: _floats(value) for name, value in point.items()} for point in points]
        cases = [self._measure(point, given) for point, given in zip(points, asked, strict=True)]
        dtypes = [array.dtype for given in asked for array in given.values() if array is not None]
        coarse = np.float32 if np.dtype(np.float32) in dtypes else np.float64
        context = Context(alone=len(points) == 1, dtype=coarse)
        arrays, findings = [], []
        for name in self._names:
            of_name = [case[name] for case in cases]
            cut = name in whole and _cut_off(of_name)
            verdict, found = judge(name, of_name, context)
            if cut:
                found = [Finding("integer-arithmetic", (name,), {"other": str(of_name[0].came.dtype)})]
                verdict = ArrayVerdict(name, "wrong", verdict.entries, verdict.checked, verdict.total)
            arrays.append(verdict)
            findings += found
        findings = self._sized(merged(findings))
        smooth = [name for name, one in cases[0].items() if len(one.smooth) == len(one.entries)]
        notes = self._directions(points[0], cases[0], arrays, smooth)
        if len(points) == 1:
            notes += tuple(_blind_spots(points[0], cases[0], arrays))
        return Report(self._subject, tuple(arrays), findings, notes)

    def _unusable(self, point):
        """A report if the loss gives no number, no finite one, or another one each time."""
        point = {name: _floats(value) for name, value in point.items()}
        try:
            first, second = self._loss(point), self._loss(point)
        except _NoNumberError as error:
            arrays = tuple(ArrayVerdict(name, "not checked") for name in self._names)
            note = f"The loss returned {error}, and one real number is needed: a sum, or a mean."
            return Report(self._subject, arrays, notes=(note,), failed=True)
        except Exception as error:
            return _stopped(self._subject, self._names, "the loss", error)
        if not np.isfinite(first):
            return self._failed(Finding("not-finite", ("the loss",)))
        if abs(second - first) > 1e-4 * max(abs(first), abs(second)) + 1e-12:
            return self._failed(Finding("random", ("the loss",)))
        return None

    def _failed(self, finding):
        arrays = tuple(ArrayVerdict(name, "not checked") for name in self._names)
        return Report(self._subject, arrays, (finding,), failed=True)

    def _measure(self, point, given):
        return measure(lambda moved: self._loss(point | moved), point, given)

    def _sized(self, findings):
        """Call a factor of 1 / n or n by its name, where the batch size is known."""
        size = self._batch_size
        if size is None or size < 2:
            return findings
        named = []
        for finding in findings:
            factor = finding.facts.get("factor")
            known = {1 / size: "averaged-twice", float(size): "summed-not-averaged"}
            fits = [
                value for value in known if isinstance(factor, float) and abs(factor - value) < 1e-4 * value
            ]
            if finding.defect in ("factor", "factor-two") and fits and not (factor in TWO and size == 2):
                finding = Finding(known[fits[0]], finding.where, {"n": size, "factor": factor})
            named.append(finding)
        return tuple(named)

    def _directions(self, point, cases, arrays, smooth):
        """A note if entries that were not measured are wrong, in healthy arrays without a kink."""
        seem = [one.name for one in arrays if one.verdict == "healthy" and one.name in smooth]
        large = [one for one in arrays if one.name in seem and one.total > one.checked]
        if not large:
            return ()
        chosen = {name: point[name] for name in seem}
        gradients = {name: _fit(cases[name].came, point[name]) for name in seem}
        check = check_direction(lambda moved: self._loss(point | moved), chosen, gradients, directions=2)
        if check.ok:
            return ()
        for number, one in enumerate(arrays):
            if one in large:
                arrays[number] = ArrayVerdict(one.name, "cannot tell", one.entries, one.checked, one.total)
        return (
            f"{ENTRIES} entries of each large array are right, but the slope of the loss along a random "
            "direction is not what the gradients say: some other entry is wrong.",
        )


def _blind_spots(point, cases, arrays):
    """Notes on healthy arrays whose numbers hide a mistake: what is symmetric is its own transpose."""
    for name in [one.name for one in arrays if one.verdict == "healthy"]:
        for what, array in ((name, point[name]), (f"The gradient of {name}", cases[name].came)):
            if _is_symmetric(array):
                yield f"{what} is symmetric, so that a transpose too many cannot be seen with these numbers."


def _is_symmetric(array):
    """Whether a matrix equals its transpose."""
    square = array is not None and array.ndim == 2 and array.shape[0] == array.shape[1] > 1
    return square and np.array_equal(array, array.T)


def _fit(gradient, value):
    if gradient is None:
        return np.zeros_like(value)
    return gradient if gradient.dtype in (np.float32, np.float64) else gradient.astype(np.float64)


def _floats(value):
    return value if value.dtype in (np.float32, np.float64) else value.astype(np.float64)


def _cut_off(cases):
    """Whether whole numbers came where the measured slopes have fractions."""
    came = [case.came for case in cases if case.came is not None and case.came.shape == case.shape]
    if not came or any(array.dtype.kind not in "iu" for array in came):
        return False
    return all(np.abs(case.at(case.came) - case.numeric).max(initial=0.0) < 1 for case in cases) and any(
        np.abs(case.at(case.came) - case.numeric).max(initial=0.0) > 1e-3 for case in cases
    )
