"""What a check of a code exercise finds, the cases it tries, and checks that compare no values."""

import copy
from collections.abc import Callable
from dataclasses import dataclass

from ._feedback import STATUSES
from ._show import shown


@dataclass(frozen=True)
class Fault:
    """What one check found wrong; the fields of `Feedback`.

    ``at_a_line`` is False for an exception that no line of the student's raised: it may come from what a
    check did with a strange result, so any other fault is told before it.

    >>> Fault("shape", "Two numbers are asked.").rank < Fault("values", "They are wrong.").rank
    True
    """

    status: str
    headline: str
    details: tuple[str, ...] = ()
    example: str = ""
    finding: str = ""
    at_a_line: bool = True

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
        first: whether it knows more than the doctor, who would call it by the name of another mistake with
            the same numbers, or in words that say less.

    >>> Slip("no bias", lambda x, weight, bias: x @ weight.T, "The bias is left out.").name
    'no bias'
    """

    name: str
    formula: Callable
    says: str
    output: str = ""
    first: bool = False


class Case:
    """Arguments for one call, by the names that the exercise uses; handed over in this order.

    Every call gets copies, so that a function that changes its input spoils nothing.

    >>> print(Case(x=[1.0, 2.0], factor=3))
    x = [1, 2], factor = 3
    """

    def __init__(self, **arguments):
        self.arguments = arguments

    def fresh(self):
        """Copies of the arguments, in order."""
        return [copy.deepcopy(value) for value in self.arguments.values()]

    def __str__(self):
        return ", ".join(f"{name} = {shown(value)}" for name, value in self.arguments.items())


@dataclass(frozen=True)
class Refuses:
    """A function must raise a certain exception for certain arguments.

    Args:
        cases: a function that returns a list of `Case`.
        error: the kind of exception.
        why: one sentence on what is wrong with the arguments.
        name: which of the names that the answer binds; the first if empty.

    >>> wrong_shapes = Refuses(lambda: [Case(x=[1.0, 2.0])], ValueError, "x has two entries.")
    >>> wrong_shapes.error.__name__
    'ValueError'
    """

    cases: Callable
    error: type
    why: str
    name: str = ""

    def examine(self, answer) -> Fault | None:
        """The fault of the first case that is not refused as it should be."""
        function = answer.function(self.name)
        for case in self.cases():
            result, fault = answer.call(function, case.fresh(), expected=self.error)
            headline = f"`{called(function)}` should raise a {self.error.__name__} here: {self.why}"
            if fault and fault.status == "error":
                details = (fault.headline, *fault.details)
                return Fault("values", headline, details, str(case), "another exception")
            if fault:
                return fault
            if not isinstance(result, self.error):
                return Fault("values", headline, (f"It returns {shown(result)}.",), str(case), "not refused")
        return None


@dataclass(frozen=True)
class Property:
    """Anything else that must hold.

    Args:
        test: a function of the student's functions or classes; it returns None if all is well, a sentence,
            or a `Fault`. What it calls of the student's may raise: that is told with the student's line.
        finding: the name of the mistake if ``test`` gives a sentence.

    >>> Property(lambda f: None if f(2) == 4 else "It does not double.", "no double").finding
    'no double'
    """

    test: Callable
    finding: str = ""

    def examine(self, answer) -> Fault | None:
        """The fault if the property does not hold."""
        found, fault = answer.call(self.test, answer.functions)
        if fault:
            return fault
        return Fault("values", found, finding=self.finding) if isinstance(found, str) else found


def called(function):
    """What a function or class is called."""
    return getattr(function, "__name__", type(function).__name__)
