"""What a check answers: one sentence first, then what helps to mend it."""

import re
from dataclasses import asdict, dataclass
from html import escape

from ._show import wrapped

STATUSES = (
    "not attempted",
    "error",
    "shape",
    "dtype",
    "nan",
    "changed input",
    "values",
    "written",
    "correct",
)
"""In the order in which a check looks: the first that applies is what it says."""
WIDTH = 78
"""A terminal has 80 columns."""
MARKS = {"correct": "✓", "written": "✎", "not attempted": "○"}
MARKUP = {ord(letter): f"&#{ord(letter)};" for letter in "\\*_[]{}$~^@#|"}
"""What Markdown would read as markup, as HTML writes it."""


@dataclass(frozen=True)
class Feedback:
    """The answer to an answer.

    Attributes:
        exercise: the id.
        status: one of `STATUSES`.
        headline: one sentence: what is so.
        details: further sentences: why, and what to do.
        example: a case small enough to do by hand in which the answer is wrong; empty if there is none.
        finding: the name of the mistake, as the gradient doctor or the exercise calls it; empty if it
            has none.
        points: for an explanation, what a full answer says.

    >>> Feedback("dense-count", "values", "24 leaves the biases out.").passed
    False
    >>> print(Feedback("dense-count", "correct", "Right.", ("30 parameters.",)))
    ✓ Right.
      30 parameters.
    """

    exercise: str
    status: str
    headline: str
    details: tuple[str, ...] = ()
    example: str = ""
    finding: str = ""
    points: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the answer was found right; an explanation is read by people, never found right here."""
        return self.status == "correct"

    def __str__(self):
        lines = [f"{MARKS.get(self.status, '✗')} {self.headline}"]
        lines += [f"  {line}" for detail in self.details for line in detail.splitlines()]
        if self.example:
            lines += ["  For example:", *(f"    {line}" for line in self.example.splitlines())]
        lines += [f"  [ ] {number}. {point}" for number, point in enumerate(self.points, start=1)]
        return "\n".join(piece for line in lines for piece in wrapped(line, WIDTH))

    __repr__ = __str__

    def _repr_markdown_(self):
        return self.to_html()

    def to_html(self) -> str:
        """The same words as HTML without style or script; a narrow page breaks the lines where it must.

        >>> print(Feedback("dense-count", "values", "24 leaves `the biases` out.").to_html())
        <div class="feedback">
        <p><strong>✗ 24 leaves <code>the biases</code> out.</strong></p>
        </div>
        """
        parts = [f"<p><strong>{MARKS.get(self.status, '✗')} {_html(self.headline)}</strong></p>"]
        for line in (line for detail in self.details for line in detail.splitlines() if line.strip()):
            parts.append(_pre(line.strip()) if line.startswith("    ") else f"<p>{_html(line)}</p>")
        if self.example:
            parts += ["<p>For example:</p>", _pre(self.example)]
        if self.points:
            parts += ["<ol>", *(f"<li>{_html(point)}</li>" for point in self.points), "</ol>"]
        return "\n".join(['<div class="feedback">', *parts, "</div>"])

    def to_json(self) -> dict:
        """The feedback as plain values for `json.dumps`; `passed` included."""
        return asdict(self) | {"passed": self.passed}


def _html(text):
    """Words as HTML that is the same text in Markdown; what stands between backticks is code."""
    safe = escape(text).translate(MARKUP).replace("--", "&#45;&#45;").replace("...", "&#46;&#46;&#46;")
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", safe).replace("`", "&#96;")


def _pre(text):
    return f"<pre>{_html(text.replace('`', chr(0))).replace(chr(0), '&#96;')}</pre>"
