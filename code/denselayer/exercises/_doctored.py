"""What the gradient doctor says of an answer with wrong values: which findings are told, and how."""

import contextlib
import io
import re
import warnings
from dataclasses import dataclass

import numpy as np

from ..doctor import DEFECTS
from ._checks import Fault

GENERAL = ("factor", "factor-two", "sign-flipped", "gradient-zero", "wrong-shape", "not-finite")
"""Findings that say how far a result is off and not where that comes from: a slip that fits is told first."""
NO_CAUSE = (
    "batch-size-hides",
    "integer-arithmetic",
    "float32-arithmetic",
    "unstable-softmax",
    "unstable-log",
    "input-changed",
    "upstream-changed",
    "parameter-changed",
    "view-kept",
    "bias-grown",
)
"""Findings that are no cause of wrong values for ordinary numbers in one call, or none for sure."""


@dataclass(frozen=True)
class Diagnosis:
    """What may be told of a report.

    ``named`` are the findings that name a mistake and ``general`` the others; ``whole`` says that nothing
    that is wrong was left without an explanation.
    """

    named: tuple = ()
    general: tuple = ()
    whole: bool = False


def diagnosis(doctor, function) -> Diagnosis:
    """Let a doctor examine the function of a student.

    The doctor calls it with arguments of its own, and whatever goes wrong there says nothing about the cases
    of the exercise.

    >>> diagnosis(lambda function: function(), lambda: 1 / 0)
    Diagnosis(named=(), general=(), whole=False)
    """
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            report = doctor(function)
    except (Exception, SystemExit):  # whatever a student's function does with other arguments
        return Diagnosis()
    if report is None or report.failed:
        return Diagnosis()
    causes = [one for one in report.findings if one.defect not in NO_CAUSE and not _is_of_a_file(one)]
    explained = {name for finding in causes for name in finding.where}
    return Diagnosis(
        named=tuple(one for one in causes if one.defect not in GENERAL),
        general=tuple(one for one in causes if one.defect in GENERAL),
        whole=all(one.verdict != "cannot tell" or one.name in explained for one in report.arrays),
    )


def _is_of_a_file(finding):
    return DEFECTS[finding.defect].group == "files"


def best_named(fault, found, slip=None, *, first=False, whole=True, words=None) -> Fault:
    """The fault by the name that says most: the doctor's if it names what is wrong, else that of a slip.

    Args:
        fault: what is wrong, without a name.
        found: a `Diagnosis`.
        slip: the fault as a known slip that fits all cases tells it, or None.
        first: whether the slip knows more than the doctor.
        whole: whether the slip explains all that is wrong. Then it also goes before a doctor who leaves a
            wrong result without an explanation.
        words: what the doctor calls things, and what the exercise calls them.
    """
    if slip and (not found.named or (whole and (first or not found.whole))):
        return slip
    return _told(found, fault, words or {}) if found.named or found.general else fault


def _told(diagnosis, fault, words):
    """The fault with what the doctor says of it."""
    findings = (*diagnosis.named, *diagnosis.general)
    places = [name for finding in findings for name in finding.where]
    details = [fault.headline, *fault.details]
    for number, finding in enumerate(findings):
        lines = [f"On top of that: {finding.evidence}"] if number else []
        alone = all(places.count(name) == 1 for name in finding.where)
        lines += [f"It computed: {finding.computed}"] if finding.formulas[0] and alone else []
        details += [_in(words, line) for line in (*lines, f"Change: {finding.change}")]
    first = findings[0]
    return Fault("values", _in(words, first.evidence), tuple(details), fault.example, first.defect)


def _in(words, text):
    if not words:
        return text
    known = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    return re.sub(rf"\b({known})\b", lambda word: words[word.group()], text)
