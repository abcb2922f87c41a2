"""Exercises that ask for an explanation: no program reads it; the rubric lets the student do so."""

import re

from ._feedback import Feedback
from ._texts import Exercise

RUBRIC = re.compile(r"^[ \t]*-[ \t]+(.*(?:\n(?![ \t]*-[ \t]|[ \t]*\n).*)*)", re.MULTILINE)
INTRODUCTION = "A full answer"


class Explain(Exercise):
    """An exercise whose answer is a text; `check` shows what a full answer says beside it.

    >>> why = Explain("dense-silent-unit")
    >>> why.check("   ").status, why.check("ReLU cuts below zero.").status
    ('not attempted', 'written')
    """

    kind = "explain"

    @property
    def entry(self):
        return self.id.replace("-", "_")

    @property
    def starter(self):
        return f"{self.entry} = ...  # your explanation, between quotes"

    @property
    def solved(self):
        text = "\n".join(self.points or ["See the solution."]).replace("\\", "\\\\").replace('"', '\\"')
        return f'{self.entry} = """\n{text}\n"""'

    @property
    def points(self) -> tuple[str, ...]:
        """What a full answer says, point by point, from the solution in the book."""
        _, found, rest = self.plain.get("solution", "").partition(INTRODUCTION)
        points = (" ".join(point.split()).rstrip(";") for point in RUBRIC.findall(rest))
        return tuple(points) if found else ()

    def check(self, text, points=None) -> Feedback:
        """Show the rubric beside a text.

        Args:
            text: the explanation.
            points: the numbers of the points that the student finds in the own text, from 1 on.
        """
        if text is ... or text is None or (isinstance(text, str) and not text.strip(" .\n\t")):
            return Feedback(self.id, "not attempted", "Not attempted yet: the text is still blank.")
        if not isinstance(text, str):
            kind = type(text).__name__
            return Feedback(self.id, "error", f"An explanation is a text between quotes; a {kind} came.", ())
        if points is None:
            advice = "Tick the points that your text makes: points=[1, 2]."
            return Feedback(
                self.id, "written", "Written. This is what a full answer says.", (advice,), points=self.points
            )
        return self._ticked(points)

    def _ticked(self, points):
        known = range(1, len(self.points) + 1)
        ticked = sorted({*points})
        foreign = [point for point in ticked if point not in known]
        if foreign:
            said = f"There is no point {foreign[0]}: they are numbered 1 to {len(self.points)}."
            return Feedback(self.id, "error", said)
        missing = tuple(f"Still missing: {self.points[n - 1]}" for n in known if n not in ticked)
        headline = f"Written; {len(ticked)} of {len(self.points)} points by your own reading."
        return Feedback(self.id, "written", headline, missing, points=())
