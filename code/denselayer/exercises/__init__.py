"""The exercises of the book, and what answers an answer.

In a notebook::

    from denselayer import exercises as ex

    ex.check("dense-no-loop", dense)
    ex.hint("dense-no-loop")
    ex.solution("dense-no-loop")
    ex.progress()

In a terminal: ``python -m denselayer exercises``.
"""

from ._checks import Case, Fault, Property, Refuses, Slip
from ._code import Code, Wrong
from ._explain import Explain
from ._feedback import Feedback
from ._notebook import check, hint, progress, solution
from ._number import Number, Part
from ._registry import chapters, get, ids
from ._values import Values

__all__ = [
    "Case",
    "Code",
    "Explain",
    "Fault",
    "Feedback",
    "Number",
    "Part",
    "Property",
    "Refuses",
    "Slip",
    "Values",
    "Wrong",
    "chapters",
    "check",
    "get",
    "hint",
    "ids",
    "progress",
    "solution",
]
