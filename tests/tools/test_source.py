"""A page and the files that it includes: one text, and every line known by the file in which it stands."""

import os

import pytest

from tools import chapter_code, markup, qmd, stale
from tools.book import load_book
from tools.convert import convert
from tools.errors import BuildError
from tools.execute import execute
from tools.notebooks import refresh
from tools.references import collect
from tools.source import read_source

LINE = "{{< include ../parts/one.qmd >}}"
HEAD = "# One {#sec-one}\n\n"


@pytest.fixture
def page(tmp_path):
    """`page(chapter, part)` writes both and reads the chapter."""

    def write(chapter, part="the part\n", name="parts/one.qmd"):
        for place, text in ((f"book/{name}", part), ("book/chapters/01.qmd", chapter)):
            path = tmp_path / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return qmd.read(tmp_path / "book/chapters/01.qmd", tmp_path / "book")

    return write


def test_an_include_is_its_lines(page):
    document = page(f"{HEAD}before\n\n{LINE}\n\nafter\n", "a\n\nb\n")
    assert document.text == f"{HEAD}before\n\na\n\nb\n\nafter\n"


@pytest.mark.parametrize("part", ["a\n\nb", "a\n\nb\n", "a\n\nb\n\n\n", "a\r\n\r\nb\r\n", "\ufeffa\n\nb\n"])
def test_how_an_included_file_ends_its_lines_and_itself_does_not_matter(page, part):
    assert page(f"{HEAD}{LINE}\n\nafter\n", part).text == f"{HEAD}a\n\nb\n\nafter\n"


def test_every_line_is_known_by_its_own_file(page):
    document = page(f"{HEAD}before\n\n{LINE}\n\nbetween\n\n{LINE}\n\nafter\n", "a\n\nb\n")
    assert [document.place(line) for line in range(1, 15)] == [
        *(f"chapters/01.qmd:{line}" for line in (1, 2, 3, 4)),
        *(f"parts/one.qmd:{line}" for line in (1, 2, 3)),
        *(f"chapters/01.qmd:{line}" for line in (6, 7, 8)),
        *(f"parts/one.qmd:{line}" for line in (1, 2, 3)),
        "chapters/01.qmd:10",
    ]
    assert document.lines[13] == "" and document.place(15) == "chapters/01.qmd:11"


def test_a_page_may_consist_of_includes(page):
    document = page(LINE, "# A {#sec-a}\n\nb\n")
    assert document.title.text == "A"
    assert (document.name, document.place(1), document.place(3)) == (
        "chapters/01.qmd",
        "parts/one.qmd:1",
        "parts/one.qmd:3",
    )


def test_an_include_shown_as_code_stays_code(page):
    document = page(f"{HEAD}```markdown\n{LINE}\n```\n\n~~~\n{LINE}\n~~~\n")
    assert [document.lines[n] for n in (3, 7)] == [LINE, LINE]


def test_without_a_root_a_page_includes_from_its_own_folder(tmp_path):
    (tmp_path / "a.qmd").write_text("{{< include b.qmd >}}")
    (tmp_path / "b.qmd").write_text("b\n")
    assert read_source(tmp_path / "a.qmd").text == "b"


def refused(page, chapter, part="the part\n"):
    with pytest.raises(BuildError) as error:
        page(chapter, part)
    return str(error.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{{< include ../parts/two.qmd >}}", "the included file ../parts/two.qmd does not exist"),
        ("{{< include ../parts >}}", "the included file ../parts does not exist"),
        ("{{< include ../../secret.qmd >}}", "../../secret.qmd lies outside of the book's folder"),
        ("{{< include /parts/one.qmd >}}", "/parts/one.qmd: the file is named relative to the page"),
        ('{{< include "../parts/one.qmd" >}}', "an include is a line of its own"),
        (f"See {LINE}", "an include is a line of its own"),
        (f"  {LINE}", "an include is a line of its own"),
        ("{{< include >}}", "an include is a line of its own"),
        ("{{<include ../parts/one.qmd>}}", "an include is a line of its own"),
        (f"text\n{LINE}", "an include needs a blank line before and after it"),
        (f"{LINE}\ntext", "an include needs a blank line before and after it"),
    ],
)
def test_an_include_that_quarto_or_the_book_does_not_take_is_refused(page, tmp_path, line, message):
    (tmp_path / "secret.qmd").write_text("secret")
    said = refused(page, f"{HEAD}{line}\n")
    assert message in said
    assert said.startswith(f"chapters/01.qmd:{4 if line.startswith('text') else 3}: ")


@pytest.mark.skipif(os.name == "nt", reason="makes a symbolic link")
def test_a_link_that_leads_out_of_the_book_is_followed_and_refused(page, tmp_path):
    (tmp_path / "secret.qmd").write_text("secret")
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "link.qmd").symlink_to(tmp_path / "secret.qmd")
    assert "lies outside" in refused(page, f"{HEAD}{{{{< include ../link.qmd >}}}}\n")


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (f"a\n\n{LINE}\n", "parts/one.qmd:3: an included file includes no other file"),
        ("---\ntitle: x\n---\n", "parts/one.qmd:1: an included file has no YAML header"),
        (b"a\n\xe9\n", "parts/one.qmd:2: not UTF-8"),
        ("a\n\n```python\n", "parts/one.qmd:3: this code fence (```) is never closed"),
        ("a\n\n::: {.hint}\n", "parts/one.qmd:3: this div (:::) is never closed"),
        ("a\n:::\n", "parts/one.qmd:2: this `:::` closes no open div"),
        ("\n$$\nx\n\n$$\n", "parts/one.qmd:4: a blank line inside the equation of line 2"),
        ("$$\nx\n$$ more\n", "parts/one.qmd:3: only `{#eq-name}` may follow"),
        ("```{python}\n#| label: a\n#| tags: [\n1\n```\n", "parts/one.qmd:"),
    ],
)
def test_what_cannot_be_read_in_an_included_file_is_told_with_its_own_line(page, part, message):
    assert refused(page, f"{HEAD}{LINE}\n", part).startswith(message)


def test_markup_off_the_list_is_told_where_it_stands(page):
    document = page(f"{HEAD}{LINE}\n\n<b>\n", "fine\n\n<i>\n")
    assert [str(found) for found in markup.check_document(document)] == [
        "parts/one.qmd:3: raw HTML: <i>",
        "chapters/01.qmd:5: raw HTML: <b>",
    ]


@pytest.mark.parametrize("fence", ["```markdown", "```{python}\n#| label: a"])
def test_an_include_inside_code_is_off_the_list_because_quarto_takes_it(page, fence):
    [found] = markup.check_document(page(f"{HEAD}{fence}\n{LINE}\n```\n"))
    assert "an include inside code" in str(found)


CELL = "```{python}\n#| label: one\n%s\n```\n"


def test_a_finding_of_ruff_names_the_line_of_the_included_file(page, tmp_path):
    document = page(f"{HEAD}{LINE}\n", "text\n\n" + CELL % "import os\n\nx = 1")
    [found] = chapter_code.check(document, tmp_path / "none.toml")
    assert str(found) == "parts/one.qmd:5:8: F401 `os` imported but unused"


def test_a_cell_is_repaired_in_the_file_where_it_stands(page, tmp_path):
    cells = [CELL.replace("one", name) % "x = {'a':1}" for name in ("a", "b", "c")]
    document = page(f"{HEAD}{cells[0]}\n{LINE}\n\n{cells[2]}", f"text\n\n{cells[1]}\nend\n")
    assert chapter_code.fix(document, tmp_path / "none.toml")
    fixed = [cell.replace("{'a':1}", '{"a": 1}') for cell in cells]
    assert document.path.read_text() == f"{HEAD}{fixed[0]}\n{LINE}\n\n{fixed[2]}"
    assert (tmp_path / "book/parts/one.qmd").read_text() == f"text\n\n{fixed[1]}\nend\n"


def book_with(make_book, part, chapter=f"{HEAD}{LINE}\n"):
    return make_book(chapter, **{"parts/one.qmd": part})


def test_a_notebook_is_the_same_whether_a_text_is_included_or_not(make_book):
    part = "a `{python} 1`\n\n" + CELL % "1" + '\n::: {#exr-a kind="code"}\nb @sec-one\n:::\n'
    including = book_with(make_book, part)
    drafts = [convert(including.pages[1], including, collect(including)).pieces]
    whole = make_book(HEAD + part)
    drafts.append(convert(whole.pages[1], whole, collect(whole)).pieces)
    told = [[(p.id, p.qmd, p.reading, p.cell and p.cell.code) for p in pieces] for pieces in drafts]
    assert told[0] == told[1]


def test_an_id_used_twice_is_told_in_both_files(make_book):
    book = book_with(make_book, "$$\nx\n$$ {#eq-a}\n", f"{HEAD}{LINE}\n\n$$\ny\n$$ {{#eq-a}}\n")
    with pytest.raises(
        BuildError, match=r"^chapters/01-one\.qmd:7: the id eq-a is already used at parts/one\.qmd:3$"
    ):
        collect(book)


def test_a_label_used_twice_is_told_in_both_files(make_book):
    book = book_with(make_book, CELL % "1", f"{HEAD}{LINE}\n\n{CELL % 2}")
    with pytest.raises(
        BuildError, match=r"^chapters/01-one\.qmd:6: the label one is already used at parts/one\.qmd:1$"
    ):
        markup.check_book(book)


def test_a_reference_to_nothing_is_told_where_it_stands(make_book):
    with pytest.raises(BuildError, match=r"^parts/one\.qmd:3: @sec-two refers to nothing"):
        collect(book_with(make_book, "a\n\n@sec-two\n"))


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("text\n\n" + CELL % "x = 1\nx.y", r"^parts/one\.qmd:6: cell one: AttributeError"),
        ("text\n`{python} nothing`\n", r"^parts/one\.qmd:2: inline expression `nothing`: NameError"),
    ],
)
def test_a_cell_that_fails_is_told_with_the_line_of_the_included_file(make_book, part, message):
    book = book_with(make_book, part)
    with pytest.raises(BuildError, match=message):
        execute(convert(book.pages[1], book, collect(book)), book.root)


def test_a_change_of_an_included_file_makes_the_notebook_stale(make_book):
    book = book_with(make_book, "text `{python} 1`\n")
    refresh(book)
    part = book.root / "parts/one.qmd"

    def reasons():
        again = load_book(book.root)
        return [found.reason for found in stale.find_stale(again, collect(again))]

    assert reasons() == []
    part.write_text("other text `{python} 1`\n")
    assert reasons() == ["changed since it was converted: the text, or a number or work that it refers to"]
    part.write_text("text `{python} 2`\n")
    assert reasons() == ["changed since it was executed: the code of the chapter"]
