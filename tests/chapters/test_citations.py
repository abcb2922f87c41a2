"""What is cited is in the bibliography, and every entry says who, what, where, when, and how to find it."""

import re

import pytest

from tools.convert import load_bibliography
from tools.references import bibliography_keys


@pytest.fixture(scope="module")
def bibliography(book):
    return load_bibliography(book)


@pytest.fixture(scope="module")
def source(book):
    """Key -> the entry as it is written."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in book.bibliography)
    chunks = re.split(r"^@", text, flags=re.MULTILINE)
    return {match[1]: chunk for chunk in chunks if (match := re.match(r"\w+\{([^,]+),", chunk))}


def test_every_citation_has_an_entry(registry, bibliography):
    cited = {ref.key for ref in registry.references if ref.kind == "citation"}
    assert cited and cited <= set(bibliography.entries)


def test_every_entry_is_cited(registry, bibliography):
    cited = {ref.key for ref in registry.references if ref.kind == "citation"}
    assert sorted(set(bibliography.entries) - cited) == []


def test_no_key_is_used_twice(book, source):
    text = "\n".join(path.read_text(encoding="utf-8") for path in book.bibliography)
    assert len(re.findall(r"^@\w+\{", text, re.MULTILINE)) == len(source) == len(bibliography_keys(book))


def test_every_entry_is_complete(bibliography, source):
    for key, entry in bibliography.entries.items():
        assert entry.get("author") or entry.get("editor"), f"{key}: no author"
        assert entry.get("title"), f"{key}: no title"
        assert re.fullmatch(r"1[5-9]\d\d|20\d\d", bibliography.year(key)[:4]), f"{key}: no year"
        venue = entry.get("container-title") or entry.get("publisher") or entry.get("event-title")
        assert venue or "eprint" in source[key], f"{key}: no journal, book, publisher or eprint"
        assert entry.get("DOI") or entry.get("URL"), f"{key}: neither DOI nor URL"


def test_addresses_are_well_formed(bibliography):
    for key, entry in bibliography.entries.items():
        assert re.fullmatch(r"10\.\d{4,9}/\S+", entry.get("DOI", "10.1000/x")), f"{key}: {entry['DOI']}"
        assert re.fullmatch(r"https://[^\s/]+/\S*", entry.get("URL", "https://a/")), f"{key}: {entry['URL']}"


def test_no_author_is_cut_short_by_a_particle(bibliography):
    for key, entry in bibliography.entries.items():
        for person in entry.get("author", []):
            assert "dropping-particle" not in person, f"{key}: write {{van Name}}, First for {person}"
