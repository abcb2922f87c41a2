"""The filter that links terms to the glossary, on small texts."""

import re

import pytest

from tools import pandoc
from tools.engines.pandoc import EXTENSION

GLOSSARY = """# Words {#sec-words}

::: {.glossary}

batch size

:   Rows of a batch.

batch (also mini batch, lot; not batch of cookies)

:   Several samples, $N$ of them. See @sec-other.

entry

:   One number.

ReLU

:   An activation.

:::

other

:   Not in the glossary.
"""


@pytest.fixture
def convert(tmp_path):
    (tmp_path / "words.qmd").write_text(GLOSSARY, encoding="utf-8")
    settings = tmp_path / "settings.yml"

    def run(text, crossref="{chapter-id: sec-one}", to="html5"):
        settings.write_text(
            f"metadata:\n  glossary: words.qmd\n  glossary-file: {(tmp_path / 'words.qmd').as_posix()}\n"
            f"  crossref: {crossref}\n",
            encoding="utf-8",
        )
        options = ["--from=markdown", f"--to={to}", "--mathml", "--wrap=none", f"--defaults={settings}"]
        return pandoc.run([*options, f"--lua-filter={EXTENSION / 'glossary.lua'}"], text)

    return run


def linked(page):
    return re.findall(r'<a href="words\.qmd#term-([\w-]+)"[^>]*>([^<]*)</a>', page)


def test_only_the_first_use_is_linked(convert):
    page = convert("A batch. Another batch.\n\nThe batch.")
    assert linked(page) == [("batch", "batch")]
    assert page.index("<a ") < page.index("Another")


@pytest.mark.parametrize(
    "form", ["batch", "Batch", "batches", "Batches", "mini batch", "Mini batches", "lot"]
)
def test_capitals_plurals_and_other_forms_count(convert, form):
    assert linked(convert(f"Before, ({form}), after.")) == [("batch", form)]


def test_a_plural_in_y_is_known(convert):
    assert linked(convert("Two entries.")) == [("entry", "entries")]


@pytest.mark.parametrize("text", ["relu", "RELU", "Relu"])
def test_a_capital_inside_a_word_is_meant(convert, text):
    assert linked(convert(f"A {text} here.")) == []


def test_the_longest_term_wins_and_its_parts_are_not_linked(convert):
    page = convert("The batch size of a\nbatch\nsize.")
    assert linked(page) == [("batch-size", "batch size")]
    assert linked(convert("Its batch\nsize."))[0][0] == "batch-size"


@pytest.mark.parametrize("text", ["A batch of cookies.", "A sub-batch, batch-wise.", "A batchling."])
def test_what_is_not_meant_is_not_linked(convert, text):
    assert linked(convert(text)) == []


def test_the_use_after_a_foreign_one_is_linked(convert):
    assert linked(convert("A batch of cookies and a batch.")) == [("batch", "batch")]


@pytest.mark.parametrize(
    "text",
    [
        "## A batch",
        "`batch`",
        "```\nbatch\n```",
        "$batch$",
        "[batch](https://example.org)",
        "| batch |\n|--|\n| batch |\n\n: Batch",
        "![batch](x.png)",
        "Word[^1]\n\n[^1]: A batch.",
        "::: {.cell}\nbatch\n:::",
        "::: {.hidden}\nbatch\n:::",
        '::: {.content-visible when-profile="instructor"}\nbatch\n:::',
        "[@batch]",
    ],
)
def test_nothing_but_running_text_is_linked(convert, text):
    assert linked(convert(text)) == []


@pytest.mark.parametrize(
    "text", ["**batch**", "- batch", "> batch", "*a batch*", "::: {.callout-note}\nbatch\n:::"]
)
def test_running_text_in_boxes_lists_and_emphasis_is_linked(convert, text):
    assert linked(convert(text)) == [("batch", "batch")]


def test_the_text_stays_the_same(convert):
    text = "The “batch’s” end—a batch, *entries* (batch size); x\u0303 and\nlines."
    with_links = re.sub(r"<a [^>]*>|</a>", "", convert(text).split("<div")[0])
    assert with_links.strip() == convert(text, crossref="{}").strip()


def test_text_without_a_link_stays_in_one_piece(convert):
    equation = "$$ x $$ {#eq-batch-one} and (entries), (x) - batch-wise: \N{LEFT DOUBLE QUOTATION MARK}a.b/c"
    plain = convert(equation, "{}", to="native")
    assert '"{#eq-batch-one}"' in plain
    linked_text = convert(equation, to="native")
    pieces = {piece for piece in re.findall(r'Str "([^"]*)"', plain) if "entries" not in piece}
    assert pieces <= set(re.findall(r'Str "([^"]*)"', linked_text))


def test_each_definition_stands_once_at_the_end_hidden(convert):
    page = convert("A batch, a ReLU, a batch.")
    [block] = re.findall(r'<div class="glossary-definitions" hidden="hidden">', page)
    assert re.findall(r'<div id="definition-([\w-]+)" data-term="([^"]+)">', page) == [
        ("batch", "batch"),
        ("relu", "ReLU"),
    ]
    assert re.findall(r'aria-describedby="definition-([\w-]+)"', page) == ["batch", "relu"]
    assert "<math" in page and page.index(block) > page.index("a batch.")


@pytest.mark.parametrize("crossref", ["{}", "{chapter-id: sec-a, chapters-appendix: true}"])
def test_only_numbered_chapters_have_links(convert, crossref):
    page = convert("A batch.", crossref)
    assert linked(page) == [] and "glossary-definitions" not in page


def test_entries_have_ids_and_say_their_other_forms(convert):
    page = convert(GLOSSARY, "{}")
    assert re.findall(r'<span id="term-([\w-]+)">([^<]+)</span>', page) == [
        ("batch-size", "batch size"),
        ("batch", "batch"),
        ("entry", "entry"),
        ("relu", "ReLU"),
    ]
    assert '<span class="term-forms">(also mini batch, lot)</span>' in page
    assert "cookies" not in page
