"""Executed again, every inline expression of the prose has the value that is stored."""

from pathlib import Path

import pytest

from tools import stale
from tools.book import load_book
from tools.convert import convert
from tools.execute import execute
from tools.references import collect

ROOT = Path(__file__).resolve().parents[2]
BOOK = load_book(ROOT)
PAGES = [page for page in BOOK.notebooks if page.document.expressions()]


@pytest.fixture(scope="module")
def registry():
    return collect(BOOK)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.source.stem)
def test_inline_values_come_out_the_same(page, registry):
    stored = stale.stored_notebook(page)
    kept = [pair for cell in stored["cells"] for pair in cell["metadata"].get("dense", {}).get("inline", [])]
    draft = convert(page, BOOK, registry)
    values = execute(draft, ROOT).values
    asked = [(text, values[number]) for piece in draft.pieces for number, text, _ in piece.expressions]
    assert asked == [(pair["expression"], pair["value"]) for pair in kept]


def test_the_prose_of_every_chapter_holds_computed_numbers():
    chapters = [page for page in BOOK.pages if page.number and not page.is_appendix]
    assert all(len(page.document.expressions()) >= 5 for page in chapters)
