"""The text of an exercise and its data belong together; the solution in the book is the one that passes."""

import pytest

from denselayer import exercises as ex
from tools import qmd

BOOK = "code/denselayer/exercises/book"


def divs(book, chapter, file):
    """The exercise or solution divs of a chapter: id without prefix -> (kind, the nodes inside)."""
    document = qmd.read(book.root / BOOK / chapter / file, book.root)
    found, inside = {}, None
    for node in document.nodes:
        if isinstance(node, qmd.DivOpen) and node.attributes.id.startswith(("exr-", "sol-")):
            inside = found[node.attributes.id[4:]] = (node.attributes.pairs.get("kind"), [])
        elif inside:
            inside[1].append(node)
    return found


def lines(source):
    return [line.strip() for line in source.splitlines() if line.strip()]


@pytest.mark.parametrize("chapter", ex.chapters())
def test_every_exercise_of_the_text_has_its_data_in_the_same_order(book, chapter):
    text = {name: kind for name, (kind, _) in divs(book, chapter, "exercises.qmd").items()}
    assert list(text.items()) == [(name, ex.get(name).kind) for name in ex.ids(chapter)]


@pytest.mark.parametrize("chapter", ex.chapters())
def test_every_exercise_has_at_least_two_hints(book, chapter):
    for name, (_, nodes) in divs(book, chapter, "exercises.qmd").items():
        hints = [
            node for node in nodes if isinstance(node, qmd.DivOpen) and "hint" in node.attributes.classes
        ]
        assert len(hints) >= 2, name


@pytest.mark.parametrize("chapter", ex.chapters())
def test_the_solution_in_the_book_is_the_solution_that_passes(book, chapter):
    solutions = divs(book, chapter, "solutions.qmd")
    for exercise in map(ex.get, ex.ids(chapter)):
        if exercise.kind == "code":
            cells = [node.code for node in solutions[exercise.id][1] if isinstance(node, qmd.Cell)]
            shown = lines("\n".join(cells))
            missing = [line for snippet in exercise.snippets for line in lines(snippet) if line not in shown]
            assert not missing, exercise.id
