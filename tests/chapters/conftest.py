"""The book itself, read once."""

from pathlib import Path

import pytest

from tools.book import Book, Page, load_book
from tools.references import Registry, collect

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def book() -> Book:
    return load_book(ROOT)


@pytest.fixture(scope="session")
def registry(book: Book) -> Registry:
    return collect(book)


@pytest.fixture(scope="session")
def chapters(book: Book) -> list[Page]:
    """The numbered chapters, without appendices."""
    return [page for page in book.pages if page.number and not page.is_appendix]


@pytest.fixture(scope="session")
def solution_pages(book: Book) -> list[Page]:
    return [page for page in book.pages if page.id and page.id.startswith("sec-solutions-")]
