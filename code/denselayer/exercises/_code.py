"""Exercises whose answer is a function or a class: what is handed out, and how an answer is examined."""

import inspect
import warnings
from dataclasses import dataclass

import numpy as np

from .._validate import article
from . import _blanks
from ._causes import accident
from ._checks import Fault
from ._feedback import Feedback
from ._show import listed
from ._texts import Exercise


@dataclass(frozen=True)
class Wrong:
    """A named wrong answer and what it must get.

    Args:
        name: what a person did who wrote it.
        snippets: the code of every blank, one text or a list.
        finding: the name of the mistake that the feedback must carry: of a slip, or of the doctor.
        says: the headline that it must get, word for word.

    >>> Wrong("forgot the bias", "return X @ weight.T", finding="no bias").finding
    'no bias'
    """

    name: str
    snippets: object
    finding: str = ""
    says: str = ""


class Code(Exercise):
    """An exercise that asks for code.

    Args:
        identifier: the id.
        entry: the name that the answer binds; several with a comma between.
        template: the code that is handed out. A line ``<<what to write>>`` is a blank.
        solution: the code for every blank, one text or a list.
        checks: `Values`, `Refuses` and `Property` objects.
        wrong: at least three `Wrong` answers.

    >>> from denselayer.exercises import Case, Values
    >>> template, check = "def double(x):\\n    <<twice x>>", Values(lambda: [Case(x=1.5)], lambda x: 2 * x)
    >>> parts = {"template": template, "solution": "return 2 * x", "checks": [check], "wrong": []}
    >>> double = Code("t", entry="double", **parts)
    >>> print(double.starter)
    def double(x):
        ...  # blank 1: twice x
    >>> print(double.check(lambda x: 3 * x))
    ✗ The values are wrong.
      For example:
        x = 1.5
        yours 4.5, right 3
    """

    kind = "code"

    def __init__(self, identifier, *, entry, template, solution, checks, wrong):
        super().__init__(identifier)
        self.entry = entry
        self.template = template.strip("\n")
        self.snippets = _list(solution)
        self.checks = checks
        self.wrong_answers = tuple(wrong)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name.strip() for name in self.entry.split(","))

    @property
    def starter(self):
        return _blanks.starter(self.template)

    @property
    def solved(self):
        return _blanks.filled(self.template, self.snippets)

    def source(self, wrong) -> str:
        """The source of a wrong answer."""
        return _blanks.filled(self.template, _list(wrong.snippets))

    def check(self, *answers) -> Feedback:
        """Examine functions or classes: those that `entry` names, in its order."""
        if len(answers) != len(self.names):
            wanted = listed([f"`{name}`" for name in self.names])
            came = "1 came" if len(answers) == 1 else f"{len(answers)} came"
            return Feedback(self.id, "error", f"This exercise takes {wanted}; {came}.")
        for name, answer in zip(self.names, answers, strict=True):
            if answer is None or answer is ...:
                return Feedback(self.id, "not attempted", f"Not attempted yet: `{name}` is still blank.")
            if not callable(answer):
                advice = f"Give the function itself, `{name}`, not what it returns."
                said = f"`{name}` is {article(type(answer).__name__)}, not a function."
                return Feedback(self.id, "error", said, (advice,))
        return self._examine(Answer(self.names, answers))

    def _examine(self, answer):
        numbers = {text: number for number, text in enumerate(_blanks.described(self.template), start=1)}
        blanks = [
            f"blank {numbers[text]} ({text})" for text in _blanks.left(answer.source) if text in numbers
        ]
        if blanks:
            verb = "is" if len(blanks) == 1 else "are"
            return Feedback(self.id, "not attempted", f"Not attempted yet: {listed(blanks)} {verb} left.")
        found = []
        for check in self.checks:
            fault = check.examine(answer)
            if fault:
                found.append(fault)
            if fault and fault.status == "error" and fault.at_a_line:
                found = [fault]
                break
        if not found:
            return Feedback(self.id, "correct", "Right.")
        at_home = [fault for fault in found if fault.status != "error" or fault.at_a_line]
        first = min(at_home or found, key=lambda fault: fault.rank)
        return Feedback(self.id, first.status, first.headline, first.details, first.example, first.finding)


class Answer:
    """The student's functions or classes, and how they are called."""

    def __init__(self, names, functions):
        self.names = names
        self.functions = functions
        self.files = _blanks.filenames_of(functions)
        self.source = _blanks.source_of(functions)

    def function(self, name):
        return self.functions[self.names.index(name)] if name else self.functions[0]

    def call(self, function, arguments, expected=()):
        """Call a function of the student's; return its result and the fault if it raises.

        An exception of the kind ``expected`` is the result.
        """
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = function(*arguments)
            if inspect.isgenerator(result):
                result = list(result)
            return result, None
        except (Exception, SystemExit) as error:  # whatever a student's code raises
            if expected and isinstance(error, expected):
                return error, None
            found = accident(error, self.files)
            if found.blank:
                return None, Fault("not attempted", f"Not attempted yet: {found.headline}", found.details)
            kind = type(error).__name__
            return None, Fault("error", found.headline, found.details, finding=kind, at_a_line=found.line > 0)


def _list(snippets):
    return [snippets] if isinstance(snippets, str) else list(snippets)
