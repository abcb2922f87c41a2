"""The extension's last filter lays out the outputs of cells as both engines hand them over."""

import pytest

from tools import dom, pandoc
from tools.compose import LINE
from tools.engines.pandoc import EXTENSION


def classes(kind, content):
    """The classes that the filter leaves on an output with this content."""
    source = f"::: {{.cell-output .cell-output-{kind}}}\n{content}\n:::\n"
    page = pandoc.run(
        ["--from=markdown", "--to=html5", f"--lua-filter={EXTENSION / 'dense-finish.lua'}"], source
    )
    [output] = dom.parse(page).by_class("cell-output")
    return output.classes[1:]


def text(length):
    return f"```\nshort\n{'×' * length}\n```"


def test_a_result_in_plain_text_is_laid_out_as_text():
    assert classes("display", text(5)) == ["cell-output-display", "cell-output-text"]


@pytest.mark.parametrize("content", ["A table.", f"Before it:\n\n{text(5)}"])
def test_any_other_result_stays_a_display(content):
    assert classes("display", content) == ["cell-output-display"]


@pytest.mark.parametrize("kind", ["stdout", "stderr"])
def test_what_is_printed_is_broken_where_the_build_tool_breaks_it(kind):
    name = f"cell-output-{kind}"
    assert classes(kind, text(LINE)) == [name]
    assert classes(kind, text(LINE + 1)) == [name, "cell-output-long"]
    assert classes(f"{kind} .cell-output-long", text(LINE + 1)) == [name, "cell-output-long"]


def test_an_error_is_never_broken():
    assert classes("error", text(LINE + 1)) == ["cell-output-error"]
