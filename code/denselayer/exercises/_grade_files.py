"""What grading writes: a table for a spreadsheet and a page; files of others are never replaced."""

import csv
import io
from pathlib import Path

from . import _grade_page
from ._registry import ids
from ._state import write_whole

COLUMNS = ("student", "file", "right", "written", "not right", "of", "notes")
CSV, HTML = "grades.csv", "grades.html"
FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
"""What a spreadsheet takes for the start of a formula."""
HEAD = 4096


def keep_others(folder):
    """Refuse to replace files that grading has not made.

    Raises:
        FileExistsError: there is such a file.
    """
    for path, mark in ((Path(folder) / CSV, ",".join(COLUMNS)), (Path(folder) / HTML, _grade_page.MARK)):
        if path.exists() and not _has(path, mark):
            said = f"{path} is there already, and grading has not made it"
            raise FileExistsError(f"{said}: move it away, or name another folder with --out")


def _has(path, mark):
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            return mark in file.read(HEAD)
    except OSError:
        return False


def save(graded, folder):
    """Write both files in one step each; return their paths.

    Args:
        graded: a list of `Graded`.
        folder: it is made if it is not there.
    """
    folder = Path(folder)
    keep_others(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / CSV, "\ufeff" + table(graded))
    write_whole(folder / HTML, _grade_page.page(graded))
    return folder / CSV, folder / HTML


def table(graded) -> str:
    """One row for each paper and one column for each exercise, as CSV.

    >>> table([]).split(",")[:4]
    ['student', 'file', 'right', 'written']
    """
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([*COLUMNS, *ids()])
    for one in graded:
        counts = (one.count("correct"), one.count("written"), one.wrong, len(ids()))
        stands = [one.feedback[name].status if name in one.feedback else "" for name in ids()]
        row = (one.paper.name, one.paper.file, *counts, "; ".join(one.notes), *stands)
        writer.writerow(map(harmless, row))
    return text.getvalue()


def harmless(cell):
    """A cell that no spreadsheet takes for a formula, and that has one line.

    >>> harmless("=1+1"), harmless(" @name"), harmless(3), harmless("a\\nb")
    ("'=1+1", "'@name", 3, 'a b')
    """
    if not isinstance(cell, str):
        return cell
    text = " ".join("".join(letter if letter.isprintable() else " " for letter in cell).split())
    return f"'{text}" if text.startswith(FORMULA) else text
