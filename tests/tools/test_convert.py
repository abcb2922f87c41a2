"""From a chapter to a notebook: cells, text in both forms, captions, citations, stable ids."""

import json
import sys

import nbformat
import pytest

from tools import convert, pandoc
from tools.convert import escape
from tools.errors import BuildError
from tools.reading import OUTPUT
from tools.references import collect

HEAD = "# One {#sec-one}\n\n"


def draft(book, number=1):
    return convert.convert(book.pages[number], book, collect(book))


def made(book, values=(), outputs=None, number=1):
    drafted = draft(book, number)
    values = dict(enumerate(values))
    filled = {piece.id: (outputs or {}).get(piece.id, []) for piece in drafted.pieces if piece.executed}
    return convert.notebook(drafted, values, filled)


def reading(book, values=()):
    """What Jupyter shows of the text between the first cell and the references."""
    cells = made(book, values).cells
    return "\n\n".join(cell.source for cell in cells[1:] if cell.id != "references")


def cells_by_id(notebook):
    return {cell.id: cell for cell in notebook.cells}


def test_text_and_cells_alternate_and_give_the_chapter_back(make_book):
    chapter = (
        HEAD + "a\n\n```{python}\n#| label: one\n1\n```\n\nb\n\n## Two {#sec-two}\n\nc\n\n"
        "```{python}\n#| label: two\n#| echo: false\n2\n```\n\n```{python}\n#| label: three\n3\n```\n\nd\n"
    )
    cells = made(make_book(chapter)).cells
    assert [(cell.cell_type, cell.id) for cell in cells] == [
        ("markdown", "about"),
        ("markdown", "text-sec-one"),
        ("code", "one"),
        ("markdown", "text-one"),
        ("markdown", "text-sec-two"),
        ("code", "two"),
        ("code", "three"),
        ("markdown", "text-three"),
    ]
    segments = [cell.metadata.dense.get("qmd", f"<{cell.source}>") for cell in cells[1:]]
    assert segments == ["# One {#sec-one}\n\na", "<1>", "b", "## Two {#sec-two}\n\nc", "<2>", "<3>", "d"]


def test_options_are_kept_apart_from_the_source(make_book):
    chapter = (
        HEAD + "```{python}\n#| label: one\n#| tags: [nbval-ignore-output]\n#| echo: false\n\nx = 1\n```\n"
    )
    cell = cells_by_id(made(make_book(chapter)))["one"]
    assert cell.source == "\nx = 1"
    assert cell.metadata.dense.options == {"label": "one", "tags": ["nbval-ignore-output"], "echo": False}
    assert cell.metadata.tags == ["nbval-ignore-output"]
    assert cell.metadata.jupyter == {"source_hidden": True}


@pytest.mark.parametrize(
    ("option", "hidden"),
    [
        ("include: false", {"source_hidden": True, "outputs_hidden": True}),
        ("output: false", {"outputs_hidden": True}),
        ("code-fold: true", {"source_hidden": True}),
        ("code-fold: false", None),
        ("warning: false", None),
    ],
)
def test_what_the_site_hides_is_folded_in_jupyter(make_book, option, hidden):
    cell = cells_by_id(made(make_book(HEAD + f"```{{python}}\n#| label: one\n#| {option}\n1\n```\n")))["one"]
    assert cell.metadata.get("jupyter") == hidden


def test_a_cell_that_may_raise_is_tagged(make_book):
    cell = cells_by_id(made(make_book(HEAD + "```{python}\n#| label: one\n#| error: true\n1/0\n```\n")))[
        "one"
    ]
    assert cell.metadata.tags == ["raises-exception"]


def test_a_cell_that_is_not_evaluated_becomes_a_code_block(make_book):
    cell = cells_by_id(made(make_book(HEAD + "```{python}\n#| label: one\n#| eval: false\nboom()\n```\n")))[
        "one"
    ]
    assert cell.cell_type == "markdown"
    assert cell.source == cell.metadata.dense.qmd == "```python\nboom()\n```"


def test_such_a_block_has_a_fence_longer_than_its_code(make_book):
    chapter = HEAD + '`````{python}\n#| label: one\n#| eval: false\nx = """\n````\n"""\n`````\n'
    source = cells_by_id(made(make_book(chapter)))["one"].source
    assert source.startswith("`````python\n") and source.endswith("\n`````")


def test_a_cell_neither_evaluated_nor_shown_leaves_no_trace(make_book):
    chapter = HEAD + "```{python}\n#| label: one\n#| eval: false\n#| echo: false\nboom()\n```\n"
    assert "one" not in cells_by_id(made(make_book(chapter)))


def test_a_div_may_span_cells(make_book):
    chapter = (
        HEAD
        + '::: {.callout-tip title="Look"}\nbefore\n\n```{python}\n#| label: one\n1\n```\n\nafter\n:::\n\n'
        "## Two {#sec-two}\n"
    )
    cells = cells_by_id(made(make_book(chapter)))
    assert cells["text-sec-one"].source == "# 1 One\n\n> **Look**\n>\n> before"
    assert cells["text-one"].metadata.dense.qmd == "after\n:::"
    assert cells["text-one"].source == "> after"
    assert cells["text-sec-two"].metadata.dense.qmd == "## Two {#sec-two}"


def test_a_div_that_ends_right_before_a_section_stays_with_it(make_book):
    chapter = HEAD + "::: {.hint}\n```{python}\n#| label: one\n1\n```\n:::\n\n## Two {#sec-two}\n\nb\n"
    cells = cells_by_id(made(make_book(chapter)))
    assert cells["text-one"].metadata.dense.qmd == ":::\n\n## Two {#sec-two}\n\nb"
    assert cells["text-one"].source == "## 1.1 Two\n\nb"


def test_a_heading_inside_a_div_does_not_cut(make_book):
    chapter = HEAD + "a\n\n::: {.callout-note}\n## Title\n\nb\n:::\n"
    assert reading(make_book(chapter)) == "# 1 One\n\na\n\n> **Title**\n>\n> b"


def test_inline_values_stand_in_both_forms(make_book):
    chapter = HEAD + 'So `{python} f"{n:,}"` and `{python} rate`, **`{python} x`**.\n'
    cell = made(make_book(chapter), ["1,000", "a*b", "-1"]).cells[1]
    assert cell.metadata.dense.qmd == "# One {#sec-one}\n\nSo 1,000 and a\\*b, **\\-1**."
    assert cell.source == "# 1 One\n\nSo 1,000 and a\\*b, **\\-1**."
    assert cell.metadata.dense.inline == [
        {"expression": 'f"{n:,}"', "value": "1,000"},
        {"expression": "rate", "value": "a*b"},
        {"expression": "x", "value": "-1"},
    ]


def test_shown_expressions_stay_text(make_book):
    chapter = (
        HEAD + "`` `{python} n` `` and `{{python}} n` and \\`{python} n\\`\n\n````\n`{python} n`\n````\n"
    )
    drafted = draft(make_book(chapter))
    assert all(piece.expressions == [] for piece in drafted.pieces)
    assert "`` `{python} n` ``" in reading(make_book(chapter))


VALUES = [
    "1,000",
    "a*b*c",
    "_x_",
    "[1, 2]",
    "x < y",
    "`code`",
    "$5$",
    "#1",
    "a|b",
    "1. x",
    "- x",
    "~~a~~",
    "3)",
]
SIGNS = [
    "(2, 1.5, −1.5)",
    "^a^",
    "'q'",
    '"q"',
    "a\\b",
    "&amp;",
    "@key",
    "{x}",
    "x^2",
    ":::",
    "=",
    "a--b",
    "...",
]


@pytest.mark.parametrize("value", VALUES + SIGNS)
def test_values_show_exactly_as_they_are(value):
    for text in (escape(value), f"so {escape(value)} then"):
        for dialect in ("markdown", OUTPUT):
            plain = pandoc.run(["--from", dialect, "--to", "plain", "--wrap=none"], text).strip()
            assert plain == text.replace(escape(value), value)


READINGS = [
    ("x^2^ and H~2~O", "x<sup>2</sup> and H<sub>2</sub>O"),
    ("$$\nx \\\\\n+ y\n$$ {#eq-a}", "$$\nx \\\\\n+ y \\tag{1.1}\n$$"),
    ("$$ x $$ {#eq-a}", "$$ x \\tag{1.1} $$"),
    ("$$\nx\n$$", "$$\nx\n$$"),
    ("> $$\n> a\n> + b\n> $$", "> $$ a + b $$"),
    ("$a_1 * b_2 * c$ and $\\{x\\}$", "$a_1 * b_2 * c$ and $\\{x\\}$"),
    ("- a\n\n  $$\n  y\n  $$", "- a\n\n  $$\n  y\n  $$"),
    ("$$ x $$ {#eq-a}\n\n@eq-a, [-@eq-a], [Eqs. @eq-a]", "$$ x \\tag{1.1} $$\n\nEquation 1.1, 1.1, Eqs. 1.1"),
    ("See @sec-one; [@sec-one].", "See Chapter 1; Chapter 1."),
    ("[@rumelhart1986]", "(Rumelhart et al., 1986)"),
    ("@rumelhart1986 [p. 3]", "Rumelhart et al. (1986, p.\u00a03)"),
    ("[see @nielsen2015, ch. 2; @rumelhart1986]", "(see Nielsen, 2015, ch.\u00a02; Rumelhart et al., 1986)"),
    ("Nielsen [-@nielsen2015]", "Nielsen (2015)"),
    ("a[^1].\n\n[^1]: The *note*.", "a<sup>1</sup>.\n\n<sup>1</sup> The *note*."),
    ("a^[One.] b^[Two.]", "a<sup>1</sup> b<sup>2</sup>\n\n<sup>1</sup> One.\n\n<sup>2</sup> Two."),
    ("| a | b |\n|:--|--:|\n| `x` | $y$ |", "| a   |   b |\n|:----|----:|\n| `x` | $y$ |"),
    (
        "| a |\n|---|\n| 1 |\n\n: A *caption* {#tbl-a}",
        "**Table 1.1.** A *caption*\n\n| a   |\n|-----|\n| 1   |",
    ),
    ("Term\n:   Def\n\nOther\n:   More", "- **Term**\n\n  Def\n\n- **Other**\n\n  More"),
    ("::: {.callout-warning}\nx\n:::", "> **Warning**\n>\n> x"),
    ('::: {.callout-note collapse="true" title="On `x` and $y$"}\nz\n:::', "> **On `x` and $y$**\n>\n> z"),
    ("::: {.callout-note}\n$$\na\n= b\n$$\n:::", "> **Note**\n>\n> $$ a = b $$"),
    ("::: {.panel-tabset}\n## A\n\nx\n\n## B\n\ny\n:::", "**A**\n\nx\n\n**B**\n\ny"),
    ("::: {.hint}\nThink of $x$.\n:::", "<details>\n<summary>Hint</summary>\n\nThink of $x$.\n\n</details>"),
    ('::: {#exr-a kind="code"}\n## Short\n\nDo it.\n:::', "## Exercise 1.1: Short\n\nDo it."),
    ('::: {#exr-a kind="code"}\nDo it.\n:::', "## Exercise 1.1\n\nDo it."),
    ('::: {.content-visible when-profile="x"}\nsecret\n:::\n\nshown', "shown"),
    ('::: {.content-hidden when-profile="x"}\nshown\n:::', "shown"),
    (
        "[text](https://example.org) <https://example.org>",
        "[text](https://example.org) <https://example.org>",
    ),
    ("```python\nx = 1\n```", "``` python\nx = 1\n```"),
    ("````markdown\n```{python}\n1\n```\n````", "```` markdown\n```{python}\n1\n```\n````"),
    ("```{{python}}\n1\n```", "```` markdown\n```{python}\n1\n```\n````"),
    ('It\'s "so" -- and\nmore...', "It’s “so” – and more…"),
    ("Grüße, 数学 🙂", "Grüße, 数学 🙂"),
    ("\\$5 and \\*x\\*", "\\$5 and \\*x\\*"),
    ("a <!-- no --> b", "a b"),
]


@pytest.mark.parametrize(("text", "expected"), READINGS, ids=[text[:30] for text, _ in READINGS])
def test_the_reading_form(make_book, text, expected):
    assert reading(make_book(f"{HEAD}{text}\n")) == f"# 1 One\n\n{expected}"


def test_section_numbers_stand_before_headings(make_book):
    chapter = HEAD + "## A {#sec-a}\n\n### B {#sec-b}\n\n## C {#sec-c .unnumbered}\n"
    assert reading(make_book(chapter)) == "# 1 One\n\n## 1.1 A\n\n### 1.1.1 B\n\n## C"


def test_the_title_of_the_header_is_shown(make_book):
    cells = made(make_book('---\ntitle: "One {#sec-one}"\n---\n\n`{python} 1`\n'), ["1"]).cells
    assert cells[1].source == "# 1 One"
    assert cells[1].metadata.dense.generated


def test_solutions_name_their_exercise(make_book):
    book = make_book(
        HEAD + '::: {#exr-a kind="number"}\n## Short\n\nx\n:::\n',
        "# Solutions {#sec-sol}\n\n::: {#sol-a}\nSeven.\n\n```{python}\n#| label: sol\n7\n```\n:::\n",
    )
    source = made(book, number=2).cells[1].source
    assert source == "# A Solutions\n\n## Solution A.1 (to Exercise 1.1)\n\nSeven."


def test_captions_are_text_below_figures_and_above_tables(make_book):
    figure = '```{python}\n#| label: fig-a\n#| fig-cap: "Of @sec-one, $x$"\n#| fig-alt: "y"\n1\n```\n\n'
    table = '```{python}\n#| label: tbl-a\n#| tbl-cap: "Numbers"\n1\n```\n'
    cells = made(make_book(HEAD + figure + table)).cells
    assert [cell.id for cell in cells[2:]] == ["fig-a", "caption-fig-a", "caption-tbl-a", "tbl-a"]
    assert cells[3].source == "**Figure 1.1.** Of Chapter 1, $x$"
    assert cells[4].source == "**Table 1.1.** Numbers"
    assert all(cells[n].metadata.dense == {"generated": True} for n in (3, 4))


def test_the_first_cell_says_what_this_is_and_how_to_install(make_book, tmp_path):
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    first = made(make_book(HEAD)).cells[0]
    assert first.metadata.dense == {"generated": True}
    assert 'pip install "./denselayer-1.2.3-py3-none-any.whl[figures]"' in first.source
    assert "chapter 1, “One”, of the book “A Book”" in first.source
    assert "solutions" in first.source


def test_the_last_cell_lists_what_was_cited_and_nothing_else(make_book):
    cells = made(make_book(HEAD + "[@rumelhart1986]\n")).cells
    assert cells[-1].id == "references"
    assert "Learning Representations" in cells[-1].source and "Nielsen" not in cells[-1].source
    assert made(make_book(HEAD)).cells[-1].id != "references"


def test_ids_are_unique_and_do_not_depend_on_later_text(make_book):
    cell = "```{python}\n#| label: one\n1\n```\n\n"
    before = [c.id for c in made(make_book(HEAD + cell + "a\n")).cells]
    after = [c.id for c in made(make_book(HEAD + cell + "a\n\n## More {#sec-more}\n\nb\n")).cells]
    assert after[: len(before)] == before
    assert len(set(after)) == len(after)


def test_the_notebook_is_valid_and_the_same_every_time(make_book):
    chapter = HEAD + "é [@rumelhart1986]\n\n```{python}\n#| label: one\n1\n```\n"
    book = make_book(chapter)
    texts = {convert.dumps(made(book)) for _ in range(2)}
    assert len(texts) == 1
    text = texts.pop()
    nbformat.validate(nbformat.reads(text, as_version=4))
    assert "\r" not in text and text.endswith("}\n") and "é" in text
    assert json.loads(text)["nbformat_minor"] == 5


def test_windows_line_endings_make_the_same_notebook(make_book):
    chapter = HEAD + "a\n\n```{python}\n#| label: one\nx = '''\n'''\n```\n\n$$\nx\n$$ {#eq-a}\n"
    plain = convert.dumps(made(make_book(chapter)))
    assert convert.dumps(made(make_book(chapter.replace("\n", "\r\n")))) == plain


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```{python}\n1\n```", r"chapters/01-one\.qmd:3: this cell has no label"),
        ("```{r}\n#| label: a\n1\n```", r"chapters/01-one\.qmd:3: only Python cells"),
    ],
)
def test_what_cannot_be_converted_names_the_line(make_book, text, message):
    book = make_book(HEAD + text + "\n")
    with pytest.raises(BuildError, match=message):
        draft(book)


def test_without_pandoc_the_error_says_what_to_do(make_book, monkeypatch):
    monkeypatch.setitem(sys.modules, "pypandoc", None)
    monkeypatch.setattr(pandoc.shutil, "which", lambda name: None)
    pandoc.find.cache_clear()
    try:
        with pytest.raises(BuildError, match="pandoc is not installed; run `make book`"):
            draft(make_book(HEAD + "text\n"))
    finally:
        pandoc.find.cache_clear()
