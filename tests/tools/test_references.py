"""Numbers and labels as Quarto's book gives them, and errors for what does not exist."""

import pytest

from tools.book import load_book, merge
from tools.errors import BuildError
from tools.references import collect, find_references, section_numbers

CHAPTER = """# One {#sec-one}

## First {#sec-first covers="A1"}

$$
x
$$ {#eq-x}

### Inside {#sec-inside}

```{python}
#| label: fig-a
#| fig-cap: "A caption"
#| fig-alt: "What it shows"
1
```

::: {.panel-tabset}
### Tab one

text

### Tab two
:::

### Inside again {#sec-again}

| a |
|---|
| 1 |

: A table {#tbl-a}

::: {.callout-note}
## A title, not a section

text
:::

## Second {#sec-second}

::: {#exr-a kind="number"}
## Short name

How many?
:::

::: {#exr-b kind="code"}
No name.
:::

$$ y $$ {#eq-y}

## Apart {#sec-apart .unnumbered}

### Below {#sec-below}
"""

APPENDIX = """# Solutions {#sec-solutions}

## First ones {#sec-first-ones}

::: {#sol-a}
Seven.
:::

$$ z $$ {#eq-z}
"""


def labels(book, **options):
    return {key: target.label for key, target in collect(book, **options).items()}


def test_labels_are_quartos(make_book):
    book = make_book(CHAPTER, APPENDIX)
    assert labels(book) == {
        "sec-one": "Chapter 1",
        "sec-first": "Section 1.1",
        "eq-x": "Equation 1.1",
        "sec-inside": "Section 1.1.1",
        "fig-a": "Figure 1.1",
        "sec-again": "Section 1.1.2",
        "tbl-a": "Table 1.1",
        "sec-second": "Section 1.2",
        "exr-a": "Exercise 1.1",
        "exr-b": "Exercise 1.2",
        "eq-y": "Equation 1.2",
        "sec-apart": "Apart",
        "sec-below": "Section 1.2.1",
        "sec-solutions": "Appendix A",
        "sec-first-ones": "Section A.1",
        "sol-a": "Solution A.1",
        "eq-z": "Equation A.1",
    }


def test_targets_know_title_page_and_line(make_book):
    registry = collect(make_book(CHAPTER, APPENDIX))
    assert registry["fig-a"].title == "A caption"
    assert registry["tbl-a"].title == "A table"
    assert registry["exr-a"].title == "Short name"
    assert registry["exr-b"].title == ""
    assert registry["sec-second"].page.href == "chapters/01-one.html"
    assert registry["sol-a"].page.is_appendix
    assert (registry["eq-x"].line, registry["fig-a"].line) == (7, 12)


def test_an_unnumbered_page_counts_without_a_prefix(make_book):
    book = make_book(**{"index.qmd": "# Hello {.unnumbered}\n\n## Why {#sec-why}\n\n$$ x $$ {#eq-w}\n"})
    assert labels(book)["eq-w"] == "Equation 1"
    assert labels(book)["sec-why"] == "Why"


def test_the_home_page_must_say_that_it_has_no_number(make_book):
    with pytest.raises(BuildError, match=r"index\.qmd:1: the home page takes no number"):
        make_book(**{"index.qmd": "# Hello\n"})


def test_a_title_in_the_yaml_header_is_a_target(make_book):
    book = make_book('---\ntitle: "One {#sec-one}"\n---\n\n## A {#sec-a}\n')
    assert labels(book) == {"sec-one": "Chapter 1", "sec-a": "Section 1.1"}


def test_hidden_content_is_not_counted(make_book, tmp_path):
    hidden = (
        '::: {.content-visible when-profile="teacher"}\n$$ x $$ {#eq-x}\n\n@eq-x\n:::\n\n$$ y $$ {#eq-y}\n'
    )
    book = make_book("# One {#sec-one}\n\n" + hidden)
    assert "eq-x" not in labels(book)
    assert labels(book)["eq-y"] == "Equation 1.1"
    (tmp_path / "_quarto-teacher.yml").write_text("book: {subtitle: For teachers}\n")
    teacher = load_book(tmp_path, "teacher")
    assert (teacher.title, teacher.subtitle) == ("A Book", "For teachers")
    assert labels(teacher)["eq-y"] == "Equation 1.2"


@pytest.mark.parametrize(
    ("attributes", "output", "seen"),
    [
        ('.content-visible when-format="html"', "html", True),
        ('.content-visible when-format="pdf"', "html", False),
        ('.content-hidden when-format="html"', "html", False),
        ('.content-visible unless-format="html"', "html", False),
        ('.content-hidden unless-profile="teacher"', "html", False),
        ('.content-hidden when-profile="teacher"', "html", True),
        ('.content-visible when-format="pdf"', "pdf", True),
    ],
)
def test_conditional_content(make_book, attributes, output, seen):
    book = make_book(f"# One {{#sec-one}}\n\n::: {{{attributes}}}\n$$ x $$ {{#eq-x}}\n:::\n")
    assert ("eq-x" in collect(book, output)) is seen


def test_nested_divs_end_where_the_hidden_one_ends(make_book):
    inner = '::: {.content-hidden when-format="html"}\n$$ v $$ {#eq-v}\n:::\n\n'
    inside = inner + "::: {.hint}\n$$ x $$ {#eq-x}\n:::\n\n$$ w $$ {#eq-w}\n"
    hidden = f':::: {{.content-hidden when-format="html"}}\n{inside}::::\n'
    assert (
        labels(make_book("# One {#sec-one}\n\n" + hidden + "\n$$ y $$ {#eq-y}\n"))["eq-y"] == "Equation 1.1"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("See @eq-why.", r"chapters/01-one\.qmd:3: @eq-why refers to nothing"),
        ("- a\n- see [-@sec-ome]", r":4: @sec-ome refers to nothing; did you mean @sec-one\?"),
        (
            "[see @rumelhart1996, p. 3]",
            r":3: @rumelhart1996 is cited but not in the bib.*mean @rumelhart1986\?",
        ),
        ("@thm-a", r":3: @thm-a: this prefix is not used in the book, only @sec- @fig-"),
        ("a[^1]\n\n[^1]: In a note @tbl-no", r":5: @tbl-no refers to nothing"),
        ("$$ x $$ {#eq-a}\n\n$$ x $$ {#eq-a}", r":5: the id eq-a is already used at chapters/01-one\.qmd:3"),
        ('```{python}\n#| label: fig-a\n#| fig-cap: "See @fig-b"\n1\n```', r":5: @fig-b refers to nothing"),
    ],
)
def test_wrong_references_name_file_and_line(make_book, text, message):
    with pytest.raises(BuildError, match=message):
        collect(make_book(f"# One {{#sec-one}}\n\n{text}\n"))


def test_an_id_may_not_be_used_on_two_pages(make_book):
    with pytest.raises(
        BuildError, match=r"chapters/91-more\.qmd:1: the id sec-one is already used at chapters/01-one"
    ):
        collect(make_book(appendix="# Two {#sec-one}\n"))


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("@sec-a, @fig-b; [@tbl-c]. (@eq-d)", ["sec-a", "fig-b", "tbl-c", "eq-d"]),
        ("[-@eq-a] [see @knuth1984, ch. 2; @sec-b]", ["eq-a", "knuth1984", "sec-b"]),
        ("`@no` $@no$ <!-- @no --> \\@no me@no.org", []),
        ("@sec-a's end. X @ W and W@x", ["sec-a"]),
        ("**@fig-a**", ["fig-a"]),
        ("`code`@sec-a", ["sec-a"]),
    ],
)
def test_references_in_prose(text, keys):
    assert [key for key, _ in find_references(text)] == keys


def test_references_cross_pages(make_book):
    registry = collect(make_book("# One {#sec-one}\n\nSee @sec-more.\n", "# More {#sec-more}\n\n@sec-one\n"))
    assert [(ref.key, ref.page.name) for ref in registry.references] == [
        ("sec-more", "chapters/01-one.qmd"),
        ("sec-one", "chapters/91-more.qmd"),
    ]


def test_section_numbers_leave_out_titles_and_tabs(make_book):
    page = make_book(CHAPTER).pages[1]
    by_text = {page.document.lines[line - 1]: number for line, number in section_numbers(page).items()}
    assert by_text["### Inside again {#sec-again}"] == "1.1.2"
    assert "### Tab one" not in by_text
    assert "## A title, not a section" not in by_text
    assert by_text["## Apart {#sec-apart .unnumbered}"] == ""


def test_settings_merge_as_quartos_profiles_do():
    below = {"book": {"title": "A", "chapters": ["a", "b"]}, "lang": "en"}
    above = {"book": {"subtitle": "B", "chapters": ["b", "c"]}, "lang": "de"}
    assert merge(below, above) == {
        "book": {"title": "A", "subtitle": "B", "chapters": ["a", "b", "c"]},
        "lang": "de",
    }


def test_pages_of_parts_are_chapters(make_book, tmp_path):
    make_book()
    part = "    - part: P\n      chapters: [chapters/01-one.qmd]\n"
    (tmp_path / "_quarto.yml").write_text("book:\n  chapters:\n    - index.qmd\n" + part)
    assert [page.number for page in load_book(tmp_path).pages] == [None, "1"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("book:\n  chapters: [index.qmd, gone.qmd]\n", r"_quarto\.yml: the page gone\.qmd does not exist"),
        ("book: {}\n", r"_quarto\.yml: `book: chapters:` lists no page"),
        ("book:\n  - : [\n", r"_quarto\.yml:\d+: the file is not valid YAML"),
        ("book: 3\n", r"_quarto\.yml: `book:` holds lines `name: value`, not 3"),
        ("book:\n  chapters: index.qmd\n", r"_quarto\.yml: chapters are a list of pages, not 'index.qmd'"),
        ("book:\n  chapters: [index.qmd, 3]\n", r"_quarto\.yml: 3 in the list of chapters is no page"),
        ("- book\n", r"_quarto\.yml:1: the file must be lines `name: value`"),
        ("book:\n  title: caf\xe9\n", r"_quarto\.yml:2: not UTF-8"),
    ],
)
def test_broken_settings_are_named(make_book, tmp_path, settings, message):
    make_book()
    (tmp_path / "_quarto.yml").write_text(settings, encoding="latin-1")
    with pytest.raises(BuildError, match=message):
        load_book(tmp_path)


def test_a_bibliography_that_is_not_utf8_is_named(make_book, tmp_path):
    book = make_book()
    (tmp_path / "references.bib").write_bytes(b"@book{a,\n  author = {M\xfcller}\n}\n")
    with pytest.raises(BuildError, match=r"references\.bib:2: not UTF-8"):
        collect(book)


def test_a_missing_profile_is_named(make_book, tmp_path):
    make_book()
    with pytest.raises(BuildError, match=r"_quarto-nobody\.yml: no such file"):
        load_book(tmp_path, "nobody")


def test_only_pages_with_code_have_a_notebook(make_book):
    book = make_book("# One {#sec-one}\n\n`{python} 1`\n", "# Two {#sec-two}\n\n```python\n1\n```\n")
    assert [page.notebook and page.notebook.name for page in book.pages] == [None, "01-one.ipynb", None]
