"""All pages of the book use markup on the list only, and all references resolve."""

from denselayer import exercises as ex
from tools.markup import check_page

BOOK = "code/denselayer/exercises/book"


def test_every_page_uses_markup_on_the_list(book):
    assert [str(finding) for page in book.pages for finding in check_page(page)] == []


def test_labels_are_unique_in_the_book(book):
    labels = [cell.label for page in book.pages for cell in page.document.cells]
    assert len(labels) == len(set(labels)) and all(labels)


def test_every_reference_resolves_and_every_id_is_unique(registry):
    assert len(registry) > 100
    assert {ref.key for ref in registry.references if ref.kind != "citation"} <= set(registry)


def test_each_chapter_includes_its_exercises_and_each_appendix_its_solutions(book, chapters, solution_pages):
    """The two files of a chapter lie in the package; every page includes one of them, once, and no other."""
    included = {page.name: [part.name for part in page.document.parts[1::2]] for page in book.pages}
    for kind, pages in (("exercises", chapters), ("solutions", solution_pages)):
        files = [included.pop(page.name) for page in pages]
        assert files == [[f"{BOOK}/{prefix}/{kind}.qmd"] for prefix in ex.chapters()]
    assert not any(included.values())


def test_every_text_of_the_package_is_included(book):
    found = {path.relative_to(book.root).as_posix() for path in (book.root / BOOK).rglob("*.qmd")}
    assert found == {part.name for page in book.pages for part in page.document.parts[1::2]}
