"""All pages of the book use markup on the list only, and all references resolve."""

from tools.markup import check_page


def test_every_page_uses_markup_on_the_list(book):
    assert [str(finding) for page in book.pages for finding in check_page(page)] == []


def test_labels_are_unique_in_the_book(book):
    labels = [cell.label for page in book.pages for cell in page.document.cells]
    assert len(labels) == len(set(labels)) and all(labels)


def test_every_reference_resolves_and_every_id_is_unique(registry):
    assert len(registry) > 100
    assert {ref.key for ref in registry.references if ref.kind != "citation"} <= set(registry)
