"""What the doctor found: verdicts on arrays, findings with their evidence, and the report that shows them."""

import json
import textwrap
from dataclasses import dataclass, field
from html import escape
from typing import Literal

import numpy as np

from .._table import html_table, text_table
from .._verdicts import relative_error
from ._defects import DEFECTS, fill

Verdict = Literal["healthy", "wrong", "cannot tell", "not checked"]
SHOW = 3
"""How many of the worst entries of an array are kept."""
WIDTH = 100
ROUNDED = 1e-8
"""Below this part of the largest entry shown, a number is a rounded zero."""
KEPT = ("float", "np.")
"""How sentences begin that keep their small letter."""


@dataclass(frozen=True)
class Entry:
    """One entry of a gradient: where it is, what the backward pass says, and what was measured.

    >>> Entry((0, 1), theirs=1.0, numeric=2.0).relative_error
    0.5
    """

    index: tuple[int, ...]
    theirs: float
    numeric: float

    @property
    def relative_error(self) -> float:
        """``|theirs - numeric|`` in units of the larger of both."""
        return float(relative_error(self.theirs, self.numeric))


@dataclass(frozen=True)
class ArrayVerdict:
    """What the doctor thinks of the gradient of one parameter, or of the input.

    ``entries`` are the worst ones, ``checked`` of ``total`` entries were compared, and ``note`` says what
    else there is to say, such as why nothing could be compared.

    >>> ArrayVerdict("weight", "wrong", (Entry((0, 1), 1.0, 2.0),), checked=6, total=6).verdict
    'wrong'
    """

    name: str
    verdict: Verdict
    entries: tuple[Entry, ...] = ()
    checked: int = 0
    total: int = 0
    note: str = ""


@dataclass(frozen=True)
class Finding:
    """One defect: its id in `DEFECTS`, the arrays where it shows, and the numbers that prove it.

    >>> Finding("bias-zero", ("bias",)).name
    'gradient of the bias left zero'
    """

    defect: str
    where: tuple[str, ...] = ()
    facts: dict = field(default_factory=dict)
    formulas: tuple[str, str] = ("", "")
    """What was computed and what is right, in the names and the storage of the person, where known."""

    def __post_init__(self):
        if self.defect not in DEFECTS:
            raise ValueError(f"Finding: {self.defect!r} is not in the table of defects.")

    @property
    def name(self) -> str:
        """The name of the defect."""
        return DEFECTS[self.defect].name

    @property
    def evidence(self) -> str:
        """What was seen, in one sentence."""
        return self._say(DEFECTS[self.defect].evidence)

    @property
    def computed(self) -> str:
        """The formula that was computed instead, or one like it."""
        return self.formulas[0] or DEFECTS[self.defect].wrong

    @property
    def right(self) -> str:
        """The formula that belongs there."""
        return self.formulas[1] or DEFECTS[self.defect].right

    @property
    def change(self) -> str:
        """What to change."""
        factor = self.facts.get("factor")
        if self.defect == "factor" and isinstance(factor, str):
            return self._say("Remove the factor {factor} from the gradient of {where}.")
        return self._say(DEFECTS[self.defect].change)

    def _say(self, template):
        text = fill(template, self.where or ("the layer",), self.facts)
        return text if text.startswith(KEPT) else text[0].upper() + text[1:]

    def rows(self):
        """What there is to say, as (label, text, whether it is code)."""
        code = [("computed" if self.formulas[0] else "such as", self.computed, True)]
        if self.formulas[1] or not self.formulas[0]:
            code.append(("right", self.right, True))
        about_formulas = DEFECTS[self.defect].group != "files"
        return [
            ("seen", self.evidence, False),
            *(code if about_formulas else []),
            ("change", self.change, False),
        ]

    def __str__(self):
        lines = [f"{self.name} [{self.defect}]"]
        for label, text, _ in self.rows():
            lines += _paragraph(f"  {label + ':':<10}", text)
        return "\n".join(lines)

    def to_json(self) -> dict:
        """A dict of plain values, with the sentences spelt out."""
        return {
            "defect": self.defect,
            "name": self.name,
            "where": list(self.where),
            "evidence": self.evidence,
            "computed": self.computed,
            "right": self.right,
            "change": self.change,
            "facts": {key: _plain(value) for key, value in self.facts.items()},
        }


@dataclass(frozen=True)
class Report:
    """What was examined, the verdict on every array, and the defects that explain what is wrong.

    Args:
        subject: what was examined, in words.
        arrays: an `ArrayVerdict` for each parameter and input.
        findings: a `Finding` for each defect.
        notes: sentences on what limits the examination.
        failed: True if nothing could be examined; such a report is never healthy.

    >>> report = Report("a layer", (ArrayVerdict("weight", "wrong", (Entry((0, 1), 2.0, -2.0),), 4, 4),))
    >>> report.status, report.healthy
    ('cannot tell', False)
    >>> print(report)
    CANNOT TELL: a layer
    array   verdict  checked  worst entry  theirs  numeric  relative error
    ------  -------  -------  -----------  ------  -------  --------------
    weight    wrong   4 of 4       [0, 1]       2       -2         2.0e+00
    """

    subject: str
    arrays: tuple[ArrayVerdict, ...] = ()
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    failed: bool = False

    @property
    def status(self) -> Literal["healthy", "sick", "cannot tell"]:
        """``"sick"`` with a named defect, ``"healthy"`` if all that was examined is right."""
        if self.findings:
            return "sick"
        seen = [array.verdict for array in self.arrays]
        sound = not self.failed and not {"wrong", "cannot tell"} & set(seen)
        return "healthy" if sound and "healthy" in seen else "cannot tell"

    @property
    def healthy(self) -> bool:
        """Whether something was examined and nothing is wrong with it."""
        return self.status == "healthy"

    @property
    def defects(self) -> tuple[str, ...]:
        """The ids of the defects, each once."""
        return tuple(dict.fromkeys(finding.defect for finding in self.findings))

    def __str__(self):
        lines = [self._headline()]
        if self.arrays:
            lines.append(text_table(_HEADER, self._rows()))
        lines += _numbered(self.findings)
        lines += [line for note in self._all_notes() for line in _paragraph("note: ", note)]
        return "\n".join(lines)

    def __repr__(self):
        return f"<Report: {self._headline()}>"

    def _repr_markdown_(self):
        return self.to_html()

    def to_html(self) -> str:
        """The report as HTML without style or script: a table, and a list of what was found."""
        parts = [html_table("doctor", self._headline(), _HEADER, self._rows()), ""]
        parts += [_html_finding(finding) for finding in self.findings]
        parts += [f"<p>{escape(note)}</p>" for note in self._all_notes()]
        return "\n".join(parts)

    def to_json(self) -> str:
        """The report as JSON text."""
        content = {
            "subject": self.subject,
            "status": self.status,
            "arrays": [_array_json(array) for array in self.arrays],
            "findings": [finding.to_json() for finding in self.findings],
            "notes": list(self._all_notes()),
        }
        return json.dumps(content, indent=2)

    def _headline(self):
        found = ", ".join(DEFECTS[defect].name for defect in self.defects)
        says = {"healthy": "HEALTHY", "sick": "SICK", "cannot tell": "CANNOT TELL"}[self.status]
        return f"{says}: {self.subject}" + (f": {found}" if found else "")

    def _rows(self):
        return [row for array in self.arrays for row in _array_rows(array)]

    def _all_notes(self):
        yield from self.notes
        for array in self.arrays:
            if array.note:
                yield f"{array.name}: {array.note}"


_HEADER = ("array", "verdict", "checked", "worst entry", "theirs", "numeric", "relative error")


def worst_entries(theirs, numeric, show=SHOW):
    """The entries that differ most, as a tuple of `Entry`, the worst first.

    >>> worst_entries(np.array([1.0, 2.0]), np.array([1.0, -2.0]), show=1)
    (Entry(index=(1,), theirs=2.0, numeric=-2.0),)
    """
    theirs, numeric = np.asarray(theirs, np.float64), np.asarray(numeric, np.float64)
    with np.errstate(invalid="ignore"):
        difference = np.nan_to_num(np.abs(theirs - numeric), nan=np.inf)
    order = np.argsort(-difference, axis=None, kind="stable")[:show]
    indices = [tuple(map(int, np.unravel_index(position, theirs.shape))) for position in order]
    return tuple(Entry(index, float(theirs[index]), float(numeric[index])) for index in indices)


def _array_rows(array):
    """The rows of one array; of a healthy one the entries differ by rounding only, and are left out."""
    checked = f"{array.checked} of {array.total}" if array.total else ""
    first = (array.name, array.verdict, checked)
    entries = array.entries if array.verdict != "healthy" else ()
    if not entries:
        return [[*first, "", "", "", ""]]
    rows, largest = [], max(abs(number) for entry in entries for number in (entry.theirs, entry.numeric))
    for entry in entries:
        place = f"[{', '.join(map(str, entry.index))}]"
        numbers = [_number(entry.theirs, largest), _number(entry.numeric, largest)]
        rows.append([*(first if not rows else ("", "", "")), place, *numbers, f"{entry.relative_error:.1e}"])
    return rows


def _number(value, largest):
    """A number with six digits; what is zero but for rounding as 0."""
    return "0" if abs(value) <= ROUNDED * largest else f"{value:.6g}"


def _array_json(array):
    entries = [
        {
            "index": list(entry.index),
            "theirs": _plain(entry.theirs),
            "numeric": _plain(entry.numeric),
            "relative_error": _plain(entry.relative_error),
        }
        for entry in array.entries
    ]
    whole = {"name": array.name, "verdict": array.verdict, "checked": array.checked, "total": array.total}
    return whole | {"entries": entries, "note": array.note}


def _plain(value):
    """A value that JSON knows; NaN and infinities become words."""
    if isinstance(value, np.ndarray):
        return [_plain(item) for item in value.tolist()]
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _numbered(findings):
    for number, finding in enumerate(findings, 1):
        yield ""
        yield f"{number}. {finding}"


def _paragraph(label, text):
    """Wrap a text behind its label; code keeps its own lines."""
    indent = " " * len(label)
    lines = []
    for line in text.splitlines():
        lines += textwrap.wrap(line, WIDTH - len(label), break_long_words=False) or [""]
    return [(label if not number else indent) + line for number, line in enumerate(lines)]


def _html_finding(finding):
    rows = [
        (label, f"<code>{escape(text)}</code>" if code else escape(text))
        for label, text, code in finding.rows()
    ]
    items = "".join(f"<dt>{label}</dt><dd>{text}</dd>" for label, text in rows)
    return f"<p><strong>{escape(finding.name)}</strong></p>\n<dl>{items}</dl>\n"
