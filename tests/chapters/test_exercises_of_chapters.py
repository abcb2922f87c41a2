"""The cells of the exercises leave the rest of the chapter as it was."""

import ast

import pytest

from denselayer import exercises as ex
from tools import exercises
from tools.book import load_book
from tools.convert import convert
from tools.environment import ROOT

BOOK = load_book(ROOT)
CHAPTERS = [page for page in BOOK.pages if page.number and not page.is_appendix]


def test_the_settings_name_the_exercises_of_the_package():
    assert exercises.module_of(BOOK.config) == ex.__name__
    assert list(BOOK.exercises) == ex.ids()


@pytest.mark.parametrize("page", CHAPTERS, ids=lambda page: page.source.stem)
def test_an_answer_cell_binds_no_name_that_the_chapter_needs_afterwards(page, registry):
    """The unattempted cells run with the chapter: what they bind must not change a later number."""
    bound = set()
    for piece in convert(page, BOOK, registry).pieces:
        if piece.generated and piece.cell:
            bound |= names(piece.cell.code, ast.Store)
            continue
        sources = [text for _, text, _ in piece.expressions]
        sources += [piece.cell.code] if piece.cell else []
        for source in sources:
            assert not bound & names(source, ast.Load), piece.id


def names(source, context):
    """The names that a source binds at its top, or reads anywhere; what it imports is no one else's."""
    tree = ast.parse(source)
    if context is ast.Load:
        return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    defined = {n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    targets = (n for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return defined | {n.id for n in targets if n.col_offset == 0}
