"""How far a student is, chapter by chapter."""

from dataclasses import dataclass

from .._table import html_table, text_table
from ._registry import chapters, get, ids

MARKS = {"done": "✓", "written": "✎", "wrong": "✗", "new": "○"}
"""Right, written, attempted and not right yet, not attempted."""


def standing(exercise, known) -> str:
    """A key of `MARKS` for what the state knows of an exercise; what was right once stays right.

    >>> standing(get("dense-count"), {})
    'new'
    """
    if known.get("first_passed"):
        return "written" if exercise.kind == "explain" else "done"
    return "wrong" if known.get("attempts") else "new"


@dataclass(frozen=True)
class Progress:
    """For each chapter that has exercises: its name, and how many are right, written, tried, there."""

    rows: tuple[tuple[str, int, int, int, int], ...]

    @classmethod
    def of(cls, entries):
        """Count what the state knows."""
        rows = []
        for prefix, name in chapters().items():
            stands = [standing(get(each), entries.get(each, {})) for each in ids(prefix)]
            if stands:
                counts = (stands.count("done"), stands.count("written"), stands.count("wrong"))
                rows.append((name, *counts, len(stands)))
        return cls(tuple(rows))

    @property
    def total(self) -> tuple[int, int, int, int]:
        """The sums of the four columns."""
        return tuple(sum(row[column] for row in self.rows) for column in range(1, 5))

    def _table(self):
        header = ["chapter", "right", "written", "not right yet", "of"]
        rows = [*self.rows, ("all", *self.total)]
        return header, [[str(cell) for cell in row] for row in rows]

    def __str__(self):
        return text_table(*self._table())

    __repr__ = __str__

    def _repr_markdown_(self):
        return html_table("progress", "Your exercises", *self._table())
