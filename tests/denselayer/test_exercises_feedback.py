"""Feedback says the same in a terminal and on a page, and a page can break its lines."""

import re
from html import unescape

import pytest

from denselayer.exercises import Feedback, _feedback

FULL = Feedback(
    "dense-no-loop",
    "error",
    "Line 2 raises a ValueError in `dense`: 1 - a**2 is < 0, and *this* costs $5.",
    ("    return X @ weight + bias * gain * 2 * np.sqrt(x_1) + x_2", "Of `a[0]` and --yes... only one."),
    example="X = [[2]], weight = [[3]]\nyours [[6]], right [[7]]",
    points=("one & only", "two"),
)


def words(text):
    return re.sub(r"\W+", " ", text).split()


def test_the_page_says_the_words_of_the_terminal():
    shown = unescape(re.sub(r"</?[a-z]+( class=\"feedback\")?>", " ", FULL._repr_markdown_()))
    terminal = re.sub(r"\[ \] \d\.", "", str(FULL))
    assert words(shown) == words(terminal)


def test_markdown_finds_no_markup_in_what_is_said():
    shown = re.sub(r"</?[a-z]+( class=\"feedback\")?>|&#?\w+;", "", FULL._repr_markdown_())
    assert not re.search(r"[\\*_`\[\]{}$~^@<>&#|]|--|\.\.\.", shown)


def test_the_lines_of_the_page_are_one_block():
    lines = FULL._repr_markdown_().split("\n")
    assert lines[0] == '<div class="feedback">' and lines[-1] == "</div>"
    assert all(lines)


def test_code_and_examples_keep_their_lines():
    shown = FULL.to_html()
    assert "<pre>return X &#64; weight" in shown
    assert "<pre>X = &#91;&#91;2&#93;&#93;, weight" in shown
    assert "<li>one &amp; only</li>" in shown


@pytest.mark.parametrize("width", [80])
def test_no_sentence_is_wider_than_a_terminal(width):
    long = Feedback(
        "dense-count", "written", "one two three " * 20, ("four five " * 30,), points=("six " * 60,)
    )
    assert max(map(len, str(long).splitlines())) < width
    assert width > _feedback.WIDTH
