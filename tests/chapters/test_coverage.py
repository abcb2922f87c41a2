"""The sections say what they cover, and everything that must be covered by now is."""

import re
from pathlib import Path

import pytest
import yaml

LIST = Path(__file__).resolve().parents[1] / "coverage.yml"


@pytest.fixture(scope="module")
def topics():
    return yaml.safe_load(LIST.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def covered(book):
    """Id -> the sections that cover it, in chapters and appendices."""
    found = {}
    for page in book.pages:
        for heading in page.document.headings:
            for identifier in heading.attributes.pairs.get("covers", "").split():
                found.setdefault(identifier, []).append(heading.attributes.id)
    return found


def test_the_list_says_topic_and_part(topics):
    for identifier, entry in topics.items():
        assert re.fullmatch(r"[A-F]\d+", identifier)
        assert len(entry["topic"]) > 20 and entry["part"]
        assert set(entry) <= {"topic", "part", "later"}
        assert entry.get("later", True) is True
        assert entry["part"] != "foundation" or "later" not in entry


def test_the_list_has_no_gap(topics):
    for letter in "ABCDEF":
        numbers = [int(identifier[1:]) for identifier in topics if identifier[0] == letter]
        assert numbers == list(range(1, len(numbers) + 1))
    assert len(topics) == 41


def test_everything_due_is_covered(topics, covered):
    due = [identifier for identifier, entry in topics.items() if not entry.get("later")]
    missing = {identifier: topics[identifier]["topic"] for identifier in due if identifier not in covered}
    assert not missing


def test_nothing_that_is_covered_waits_for_a_later_part(topics, covered):
    assert [identifier for identifier in covered if topics.get(identifier, {}).get("later")] == []


def test_no_section_covers_what_is_not_on_the_list(topics, covered):
    assert {key: sections for key, sections in covered.items() if key not in topics} == {}
