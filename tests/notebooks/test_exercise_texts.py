"""The words that the package shows of each exercise are those of the committed notebooks."""

import json
from pathlib import Path

import pytest

from tools import exercises, stale, texts
from tools.book import load_book
from tools.references import collect

ROOT = Path(__file__).resolve().parents[2]
BOOK = load_book(ROOT)
PATH = exercises.texts_path(BOOK.root, BOOK.config)
REFRESH = f"run `{stale.COMMAND}` and commit {PATH.relative_to(BOOK.root).as_posix()}"


@pytest.fixture(scope="module")
def stored():
    return json.loads(PATH.read_text(encoding="utf-8"))


def test_they_belong_to_the_present_notebooks():
    made = texts.dumps(texts.texts(BOOK, collect(BOOK), BOOK.notebooks))
    assert made.encode() == PATH.read_bytes().replace(b"\r\n", b"\n"), REFRESH


def test_every_exercise_has_all_its_words_in_both_forms(stored):
    assert set(stored) == set(BOOK.exercises)
    for identifier, told in stored.items():
        for form in (told, told["plain"]):
            assert form["title"] and form["prompt"] and form["solution"], identifier
            assert isinstance(form["hints"], list) and all(form["hints"]), identifier
        assert len(told["hints"]) == len(told["plain"]["hints"]), identifier


def test_the_plain_form_holds_no_marks_of_tex_or_markdown(stored):
    for identifier, told in stored.items():
        for text in (told["plain"]["prompt"], *told["plain"]["hints"], told["plain"]["solution"]):
            lines = [line for line in text.split("\n") if not line.startswith("    ")]
            assert not any(mark in line for line in lines for mark in ("$", "\\", "@sec", "```")), identifier


def test_an_explanation_keeps_its_rubric_as_a_list(stored):
    for identifier, exercise in BOOK.exercises.items():
        if exercise.kind == "explain":
            for form in (stored[identifier], stored[identifier]["plain"]):
                rubric = form["solution"].partition("A full answer")[2]
                assert rubric.count("\n- ") >= 2, identifier
