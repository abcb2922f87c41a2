"""What a code exercise checks: values against a reference, refusals, and properties of any kind."""

import contextlib
import copy
import io
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ._feedback import STATUSES
from ._show import LARGEST, listed, shown, size


@dataclass(frozen=True)
class Fault:
    """What one check found wrong; the fields of `Feedback`."""

    status: str
    headline: str
    details: tuple[str, ...] = ()
    example: str = ""
    finding: str = ""

    @property
    def rank(self):
        return STATUSES.index(self.status)


@dataclass(frozen=True)
class Slip:
    """A known wrong way to do it: a formula, and what to say to whoever used it.

    Args:
        name: the name of the mistake.
        formula: a function of the same arguments with the wrong result (all results, or the one of
            ``output``).
        says: one sentence for the student.
        output: the name of the result that it concerns; empty for all.
    """

    name: str
    formula: Callable
    says: str
    output: str = ""


class Case:
    """Arguments for one call, by the names that the exercise uses; handed over in this order.

    Every call gets copies, so that a function that changes its input spoils nothing.

    >>> case = Case(x=np.array([1.0, 2.0]), factor=3)
    >>> print(case)
    x = [1, 2], factor = 3
    """

    def __init__(self, **arguments):
        self.arguments = arguments

    def fresh(self):
        return [copy.deepcopy(value) for value in self.arguments.values()]

    def __str__(self):
        return ", ".join(f"{name} = {shown(value)}" for name, value in self.arguments.items())


def _as_it_is(result):
    return result


@dataclass(frozen=True)
class Values:
    """The results of a function must be those of a reference, in every case.

    Args:
        cases: a function that returns a list of `Case`, small ones first: the first that fails is shown.
        expected: the reference, a function of the same arguments, written apart from the solution.
        name: which of the names that the answer binds; the first if empty.
        returns: names of the results, if there are several.
        gradient_of: name of a result to the name of the argument whose shape it must have.
        slips: known wrong ways.
        rtol, atol: how far a value may be off; relative to the largest entry of the result.
        keeps_dtype: whether float32 arguments must give float32 results; a case more is then tried.
        may_change: names of arguments that the function is allowed to change in place.
        doctor: a function of the student's function that gives a `doctor.Report`; it is asked when values
            are wrong.
        tidy: makes a result comparable, such as sorting what has no order.
    """

    cases: Callable
    expected: Callable
    name: str = ""
    returns: tuple[str, ...] = ()
    gradient_of: dict = field(default_factory=dict)
    slips: tuple[Slip, ...] = ()
    rtol: float = 1e-7
    atol: float = 1e-12
    keeps_dtype: bool = False
    may_change: tuple[str, ...] = ()
    doctor: Callable | None = None
    tidy: Callable = _as_it_is

    def examine(self, answer) -> Fault | None:
        """The fault that stands first in the order of `STATUSES`, over all cases."""
        function = answer.function(self.name)
        faults, pairs = [], []
        for case in self._all_cases():
            expected = self._named(self.tidy(self.expected(*case.fresh())))
            fault, result = self._one(answer, function, case, expected)
            pairs.append((case, expected, result))
            if fault:
                faults.append(fault)
                if fault.status == "error":
                    return fault
        if not faults:
            return None
        rank = min(fault.rank for fault in faults)
        alike = [fault for fault in faults if fault.rank == rank]
        worst = alike[-1] if alike[0].status == "shape" else alike[0]  # a shape of 1 x 1 tells little
        if worst.status not in ("shape", "nan", "values"):
            return worst
        return self._named_mistake(worst, function, pairs)

    def _all_cases(self):
        cases = self.cases()
        if self.keeps_dtype:
            cases.append(Case(**{name: _as_float32(v) for name, v in cases[-1].arguments.items()}))
        return cases

    def _named(self, result):
        if not self.returns:
            return {"": result}
        if isinstance(result, dict):
            return result
        return dict(zip(self.returns, result, strict=True))

    def _one(self, answer, function, case, expected):
        arguments = case.fresh()
        result, fault = answer.call(function, arguments)
        if fault:
            return fault, None
        result = self._results(answer, function, result)
        if isinstance(result, Fault):
            return result, None
        for look in (self._shapes, self._dtypes, self._finite):
            fault = look(case, expected, result)
            if fault:
                return fault, result
        fault = self._changed(case, arguments)
        if fault:
            return fault, result
        wrong = [name for name in expected if not self._close(expected[name], result[name])]
        return (self._different(case, expected, result, wrong) if wrong else None), result

    def _results(self, answer, function, result):
        called = _called(function)
        if result is None or result is ...:
            came = "None" if result is None else "a blank"
            return Fault("shape", f"`{called}` returns {came}: is the `return` missing?")
        try:
            result = self.tidy(result)
        except Exception as error:  # the result is whatever a student returns
            return Fault("shape", f"`{called}` returns {_kind(result)}, which cannot be read: {error}.")
        if not self.returns:
            return {"": result}
        if isinstance(result, dict) and set(result) == set(self.returns):
            return {name: result[name] for name in self.returns}
        if hasattr(result, "_asdict"):
            result = tuple(result)
        if not isinstance(result, tuple | list) or len(result) != len(self.returns):
            count = f", {len(result)} values" if isinstance(result, tuple | list) else ""
            names = ", ".join(self.returns)
            return Fault("shape", f"`{called}` returns {names}; yours returns {_kind(result)}{count}.")
        return dict(zip(self.returns, result, strict=True))

    def _shapes(self, case, expected, result):
        for name, right in expected.items():
            if not isinstance(right, np.ndarray | np.generic | float | int) or isinstance(right, bool):
                continue
            shape = _shape(result[name])
            if shape is None:
                return Fault("shape", f"{_what(name)} is {_kind(result[name])}, not an array of numbers.")
            if shape != np.shape(right):
                return self._shape_fault(case, name, shape, np.shape(right))
        return None

    def _shape_fault(self, case, name, shape, right):
        headline = f"{_what(name)} has the shape {shape} and should have {right}."
        of = self.gradient_of.get(name)
        details = []
        if of:
            details.append(f"A gradient has the shape of what it belongs to: `{of}` has {right}.")
        if shape == right[::-1] and len(right) > 1:
            details.append("Yours is the transpose.")
        elif int(np.prod(shape)) == int(np.prod(right)):
            details.append("The number of entries is right: an axis of length 1 is too many or missing.")
        elif len(shape) > len(right):
            details.append("An axis is too many: is a sum over the batch missing?")
        return Fault("shape", headline, tuple(details), f"{case}" if _small(case) else "")

    def _dtypes(self, case, expected, result):
        for name, right in expected.items():
            if not isinstance(right, np.ndarray | np.generic) or right.dtype.kind not in "fc":
                continue
            dtype = np.asarray(result[name]).dtype
            if dtype.kind not in "fc":
                advice = "An integer cuts off what stands behind the point."
                return Fault(
                    "dtype", f"{_what(name)} has the dtype {dtype} and should be floating.", (advice,)
                )
            if self.keeps_dtype and dtype != right.dtype:
                advice = "An array made without `dtype=` is float64, and so is what it is added to."
                headline = f"{_what(name)} is {dtype} where the arguments are {right.dtype}."
                return Fault("dtype", headline, (advice,))
        return None

    def _finite(self, case, expected, result):
        for name, right in expected.items():
            if not _numeric(right):
                continue
            theirs = np.asarray(result[name])
            bad = np.isfinite(np.asarray(right)) & ~np.isfinite(theirs)
            if bad.any():
                value = "nan" if np.isnan(theirs[bad]).any() else "infinite"
                headline = f"{_what(name)} is {value} where the right value is finite."
                return Fault("nan", headline, (), self._example(case, expected, result, [name]))
        return None

    def _changed(self, case, arguments):
        for (name, before), after in zip(case.arguments.items(), arguments, strict=True):
            if name not in self.may_change and not _same(before, after):
                advice = "The caller still needs it. Make a new array: `a = a + b`, not `a += b`."
                return Fault("changed input", f"Your function changes its argument `{name}`.", (advice,))
        return None

    def _close(self, right, theirs):
        if isinstance(right, dict | tuple | list) and not isinstance(right, str):
            return _same_kind(right, theirs) and all(
                self._close(a, b) for a, b in zip(_entries(right), _entries(theirs), strict=True)
            )
        if not _numeric(right):
            return bool(np.all(right == theirs))
        right, shape = np.asarray(right), _shape(theirs)
        if shape != right.shape:
            return False
        theirs = np.asarray(theirs)
        single = np.float32 in (right.dtype, theirs.dtype)
        rtol = max(self.rtol, 2e-5) if single else self.rtol
        scale = np.abs(right[np.isfinite(right)]).max(initial=0.0)
        with np.errstate(all="ignore"):
            return bool(np.allclose(theirs, right, rtol=0, atol=rtol * scale + self.atol, equal_nan=True))

    def _different(self, case, expected, result, wrong):
        named = [f"`{name}`" for name in wrong if name]
        verb = "has" if len(wrong) == 1 else "have"
        headline = f"{listed(named)} {verb} wrong values." if named else "The values are wrong."
        right = [f"`{name}`" for name in expected if name and name not in wrong]
        details = (f"Right: {', '.join(right)}.",) if right else ()
        return Fault("values", headline, details, self._example(case, expected, result, wrong))

    def _example(self, case, expected, result, wrong):
        lines = [str(case)]
        for name in wrong:
            right, theirs = expected[name], result[name]
            of = f"{name} " if name else ""
            if size(right) <= LARGEST:
                lines.append(f"{of}yours {shown(theirs)}, right {shown(right)}")
            elif _numeric(right) and np.shape(right) == np.shape(theirs):
                distance = np.abs(np.asarray(theirs, dtype=complex) - right)
                place = np.unravel_index(int(np.argmax(np.nan_to_num(distance, nan=np.inf))), np.shape(right))
                at = f"{of}at {tuple(map(int, place))}:"
                lines.append(f"{at} yours {shown(np.asarray(theirs)[place])}, right {shown(right[place])}")
        return "\n".join(lines)

    def _named_mistake(self, fault, function, pairs):
        """Name the mistake if a known wrong way gives the student's results in every case."""
        if self.doctor and fault.status == "values":
            named = _ask(self.doctor, function, fault)
            if named:
                return named
        for slip in self.slips:
            if self._fits(slip, pairs):
                details = (fault.headline, *fault.details)
                return Fault(fault.status, slip.says, details, fault.example, slip.name)
        return fault

    def _fits(self, slip, pairs):
        telling = False
        for case, expected, result in pairs:
            if result is None:
                return False
            try:
                with np.errstate(all="ignore"):
                    wrong = slip.formula(*case.fresh())
                    wrong = {slip.output: wrong} if slip.output else self._named(self.tidy(wrong))
            except Exception:  # a wrong formula need not work for every shape
                return False
            for name, value in wrong.items():
                if not self._close(value, result[name]):
                    return False
                telling = telling or not self._close(value, expected[name])
        return telling


@dataclass(frozen=True)
class Refuses:
    """A function must raise a certain exception for certain arguments.

    Args:
        cases: a function that returns a list of `Case`.
        error: the kind of exception.
        why: one sentence on what is wrong with the arguments.
        name: which of the names that the answer binds; the first if empty.
    """

    cases: Callable
    error: type
    why: str
    name: str = ""

    def examine(self, answer) -> Fault | None:
        function = answer.function(self.name)
        for case in self.cases():
            result, fault = answer.call(function, case.fresh(), expected=self.error)
            if fault:
                return fault
            if not isinstance(result, self.error):
                headline = f"`{_called(function)}` should raise a {self.error.__name__} here: {self.why}"
                return Fault("values", headline, (f"It returns {shown(result)}.",), str(case), "not refused")
        return None


@dataclass(frozen=True)
class Property:
    """Anything else that must hold.

    Args:
        test: a function of the student's functions or classes; it returns None if all is well, a sentence,
            or a `Fault`. What it calls of the student's may raise: that is told with the student's line.
        finding: the name of the mistake if ``test`` gives a sentence.
    """

    test: Callable
    finding: str = ""

    def examine(self, answer) -> Fault | None:
        found, fault = answer.call(self.test, answer.functions)
        if fault:
            return fault
        return Fault("values", found, finding=self.finding) if isinstance(found, str) else found


def _ask(doctor, function, fault):
    """What the gradient doctor says of a student's function, if it names a defect."""
    with contextlib.redirect_stdout(io.StringIO()):
        report = doctor(function)
    if not report.findings:
        return None
    first, *others = report.findings
    details = [fault.headline, *fault.details, f"It computed: {first.computed}", f"Change: {first.change}"]
    for other in others:
        details += [other.evidence, f"It computed: {other.computed}", f"Change: {other.change}"]
    return Fault("values", first.evidence, tuple(details), fault.example, first.defect)


def _called(function):
    return getattr(function, "__name__", type(function).__name__)


def _what(name):
    return f"`{name}`" if name else "The result"


def _kind(value):
    name = "array" if isinstance(value, np.ndarray) else type(value).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _shape(value):
    try:
        array = np.asarray(value)
    except ValueError:
        return None
    return array.shape if array.dtype.kind in "biufc" else None


def _numeric(value):
    if isinstance(value, bool | str) or value is None:
        return False
    return (
        isinstance(value, np.ndarray | np.generic | int | float) and np.asarray(value).dtype.kind in "biufc"
    )


def _same(before, after):
    if isinstance(before, np.ndarray):
        return (
            isinstance(after, np.ndarray)
            and before.shape == after.shape
            and np.array_equal(before, after, equal_nan=before.dtype.kind in "fc")
        )
    if isinstance(before, dict | list | tuple):
        return _same_kind(before, after) and all(
            _same(a, b) for a, b in zip(_entries(before), _entries(after), strict=True)
        )
    return True


def _same_kind(a, b):
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys()
    return isinstance(b, tuple | list | np.ndarray) and len(a) == len(b)


def _entries(value):
    return [value[key] for key in sorted(value, key=str)] if isinstance(value, dict) else list(value)


def _as_float32(value):
    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        return value.astype(np.float32)
    if isinstance(value, list | tuple):
        return type(value)(map(_as_float32, value))
    return value


def _small(case):
    return sum(map(size, case.arguments.values())) <= 3 * LARGEST
