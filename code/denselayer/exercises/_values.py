"""The check of a code exercise that compares results with those of a reference, case by case."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from .._validate import article
from ._checks import Case, Fault, Slip, called
from ._compare import close, numeric, same, shape_of
from ._doctored import Diagnosis, best_named, diagnosis
from ._show import LARGEST, listed, shown, size


def _as_it_is(result):
    """The result itself."""
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
        doctor: a function of the student's function that gives a `doctor.Report`, or None; it is asked when
            values are wrong.
        words: what the doctor calls things, and what the exercise calls them, such as ``{"x": "z"}``.
        tidy: makes a result comparable, such as sorting what has no order.

    >>> double = Values(lambda: [Case(x=1.5)], lambda x: 2 * x)
    >>> double.rtol
    1e-07
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
    words: dict = field(default_factory=dict)
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
        if worst.status == "values":
            worst = replace(worst, details=self._right_everywhere(pairs))
        if worst.status in ("shape", "nan", "values"):
            worst = self._named_mistake(worst, function, pairs)
        named = f"`{called(function)}`"
        if len(answer.names) > 1 and worst.status != "error" and named not in worst.headline:
            worst = replace(worst, details=(f"In {named}.", *worst.details))
        return worst

    def _right_everywhere(self, pairs):
        """A sentence on the results that are right in every case."""
        whole = [(expected, result) for _, expected, result in pairs if result is not None]
        right = [
            f"`{name}`"
            for name in self.returns
            if all(self._close(expected[name], result[name]) for expected, result in whole)
        ]
        return (f"Right: {', '.join(right)}.",) if right else ()

    def _all_cases(self):
        cases = self.cases()
        if self.keeps_dtype:
            cases.append(Case(**{name: as_float32(v) for name, v in cases[-1].arguments.items()}))
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
        its_name = called(function)
        if result is None or result is ...:
            came = "None" if result is None else "a blank"
            return Fault("shape", f"`{its_name}` returns {came}: is the `return` missing?")
        try:
            result = self.tidy(result)
        except Exception as error:  # the result is whatever a student returns
            return Fault("shape", f"`{its_name}` returns {kind(result)}, which cannot be read: {error}.")
        if not self.returns:
            return {"": result}
        if isinstance(result, dict) and set(result) == set(self.returns):
            return {name: result[name] for name in self.returns}
        if hasattr(result, "_asdict"):
            result = tuple(result)
        if not isinstance(result, tuple | list) or len(result) != len(self.returns):
            count = f", {len(result)} values" if isinstance(result, tuple | list) else ""
            names = ", ".join(self.returns)
            return Fault("shape", f"`{its_name}` returns {names}; yours returns {kind(result)}{count}.")
        return dict(zip(self.returns, result, strict=True))

    def _shapes(self, case, expected, result):
        for name, right in expected.items():
            if not isinstance(right, np.ndarray | np.generic | float | int) or isinstance(right, bool):
                continue
            shape = shape_of(result[name])
            if shape is None:
                return Fault("shape", f"{what(name)} is {kind(result[name])}, not an array of numbers.")
            if shape != np.shape(right):
                return self._shape_fault(case, name, shape, np.shape(right))
        return None

    def _shape_fault(self, case, name, shape, right):
        headline = f"{what(name)} has the shape {shape} and should have {right}."
        of = self.gradient_of.get(name)
        details = []
        if of:
            details.append(f"A gradient has the shape of what it belongs to: `{of}` has {right}.")
        if shape == right[::-1] and len(right) > 1:
            details.append("Yours is the transpose.")
        elif int(np.prod(shape)) == int(np.prod(right)):
            details.append("The number of entries is right: an axis of length 1 is too many or missing.")
        elif of and len(shape) > len(right):
            details.append("An axis is too many: is a sum over the batch missing?")
        return Fault("shape", headline, tuple(details), f"{case}" if small(case) else "")

    def _dtypes(self, case, expected, result):
        for name, right in expected.items():
            if not isinstance(right, np.ndarray | np.generic) or right.dtype.kind not in "fc":
                continue
            dtype = np.asarray(result[name]).dtype
            if dtype.kind not in "fc":
                advice = {"b": "True and False say yes or no; numbers are asked."}.get(
                    dtype.kind, "An integer cuts off what stands behind the point."
                )
                return Fault(
                    "dtype", f"{what(name)} has the dtype {dtype} and should be floating.", (advice,)
                )
            if self.keeps_dtype and dtype != right.dtype:
                advice = "An array made without `dtype=` is float64, and so is what it is added to."
                headline = f"{what(name)} is {dtype} where the arguments are {right.dtype}."
                return Fault("dtype", headline, (advice,))
        return None

    def _finite(self, case, expected, result):
        for name, right in expected.items():
            if not numeric(right):
                continue
            theirs = np.asarray(result[name])
            bad = np.isfinite(np.asarray(right)) & ~np.isfinite(theirs)
            if bad.any():
                value = "nan" if np.isnan(theirs[bad]).any() else "infinite"
                headline = f"{what(name)} is {value} where the right value is finite."
                return Fault("nan", headline, (), self._example(case, expected, result, [name]))
        return None

    def _changed(self, case, arguments):
        for (name, before), after in zip(case.arguments.items(), arguments, strict=True):
            if name not in self.may_change and not same(before, after):
                advice = "The caller still needs it. Make a new array: `a = a + b`, not `a += b`."
                return Fault("changed input", f"Your function changes its argument `{name}`.", (advice,))
        return None

    def _close(self, right, theirs):
        return close(right, theirs, self.rtol, self.atol)

    def _different(self, case, expected, result, wrong):
        named = [f"`{name}`" for name in wrong if name]
        verb = "has" if len(wrong) == 1 else "have"
        headline = f"{listed(named)} {verb} wrong values." if named else "The values are wrong."
        return Fault("values", headline, example=self._example(case, expected, result, wrong))

    def _example(self, case, expected, result, wrong):
        lines = [str(case)]
        for name in wrong:
            right, theirs = expected[name], result[name]
            of = f"{name} " if name else ""
            if size(right) <= LARGEST:
                lines.append(f"{of}{_side_by_side(theirs, right)}")
            elif numeric(right) and np.shape(right) == np.shape(theirs):
                distance = np.abs(np.asarray(theirs, dtype=complex) - right)
                place = np.unravel_index(int(np.argmax(np.nan_to_num(distance, nan=np.inf))), np.shape(right))
                at = f"{of}at {tuple(map(int, place))}:"
                lines.append(f"{at} {_side_by_side(np.asarray(theirs)[place], right[place])}")
        return "\n".join(lines)

    def _named_mistake(self, fault, function, pairs):
        """Name the mistake: by the doctor, or by the first slip that gives the results of every case."""
        asked = self.doctor is not None and fault.status == "values"
        found = diagnosis(self.doctor, function) if asked else Diagnosis()
        slip = next((slip for slip in self.slips if self._fits(slip, pairs)), None)
        if slip is None:
            return best_named(fault, found, words=self.words)
        details = (fault.headline, *fault.details)
        known = Fault(fault.status, slip.says, details, fault.example, slip.name)
        whole = not slip.output or self._all_others_right(slip.output, pairs)
        return best_named(fault, found, known, first=slip.first, whole=whole, words=self.words)

    def _all_others_right(self, output, pairs):
        others = [name for name in self.returns if name != output]
        return all(self._close(right[name], theirs[name]) for _, right, theirs in pairs for name in others)

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


def _side_by_side(theirs, right):
    """Both values with as many digits as it takes to see that they differ."""
    for digits in (6, 9, 12, 17):
        both = shown(theirs, digits), shown(right, digits)
        if both[0] != both[1]:
            break
    return f"yours {both[0]}, right {both[1]}"


def what(name):
    return f"`{name}`" if name else "The result"


def kind(value):
    return article("array" if isinstance(value, np.ndarray) else type(value).__name__)


def as_float32(value):
    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        return value.astype(np.float32)
    if isinstance(value, list | tuple):
        return type(value)(map(as_float32, value))
    return value


def small(case):
    return sum(map(size, case.arguments.values())) <= 3 * LARGEST
