"""What the pandoc engine makes of every piece of markup."""

import re

import pytest
import sample_book

from tools import build, dom, site
from tools.book import load_book
from tools.engines import pandoc
from tools.errors import BuildError
from tools.references import collect


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return sample_book.write(tmp_path_factory.mktemp("book"))


@pytest.fixture(scope="module")
def built(root):
    return build.build(root, engine="pandoc", output=root / "_book")


@pytest.fixture(scope="module")
def first(built):
    return dom.read(built.first_page.parent / "chapters" / "01-first.html")


@pytest.fixture(scope="module")
def solutions(built):
    return dom.read(built.first_page.parent / "chapters" / "91-solutions-first.html")


def one(page, name):
    found = page.by_class(name)
    assert len(found) == 1, f"{len(found)} elements of class {name}"
    return found[0]


def test_the_site_has_no_problem(built):
    assert site.check(built.first_page.parent) == []


def test_nothing_is_stale_and_the_engine_names_itself(built):
    assert built.warnings == ()
    assert re.fullmatch(r"pandoc 3\.\d+(\.\d+)*", built.engine)


def test_the_numbers_are_those_of_the_registry(root, built):
    registry = collect(load_book(root))
    shown = site.numbers(site.Site(built.first_page.parent))
    expected = {
        target.id: target.number
        for target in registry.values()
        if target.number and not (target.kind == "sec" and target.page.id == target.id)
    }
    assert {name: number for name, number in shown.items() if "." in number} == {
        name: number for name, number in expected.items() if "." in number
    }


def test_references_lead_across_pages_and_read_as_quarto_writes_them(first):
    texts = {link.get("href"): link.text() for link in first.by_class("quarto-xref")}
    assert texts["#sec-first-part"] == "Section 1.1"
    assert texts["#eq-first"] == "Equation 1.1"
    assert texts["#tbl-first-sizes"] == "Table 1.2"
    assert texts["#fig-first-line"] == "Figure 1.1"
    assert texts["#exr-first-count"] == "Exercise 1.1"
    assert texts["02-second.html#sec-second"] == "Chapter 2"
    assert texts["91-solutions-first.html#sol-first-count"] == "Solution A.1"
    assert texts["#eq-long"] in ("1.2", "Equation 1.2")


def test_an_unnumbered_page_has_no_numbers(built):
    page = dom.read(built.first_page)
    assert not page.by_class("header-section-number")
    assert page.by_id("sec-preface-note").text().startswith("Not numbered")


def test_titles_keep_their_markup_and_names_are_escaped(first, built):
    heading = first.first("h1")
    assert heading.get("id") == "sec-first"
    assert "Every <piece> of markup once" in dom.read(built.first_page).text()
    assert [child.tag for child in heading.children if isinstance(child, dom.Element)] == ["em", "code"]
    assert first.first("title").text() == "1 The first chapter – A Sample & its <Book>"


def test_equations_have_their_number_beside_them_and_in_no_formula(first):
    equation = first.by_id("eq-long")
    assert one(equation, "equation-number").text() == "(1.2)"
    assert one(equation, "equation-number").get("aria-label") == "Equation 1.2"
    assert equation.first("math") is not None
    assert "qquad" not in equation.first("annotation").text()
    assert len([each for each in first.by_class("equation") if "unnumbered" in each.classes]) == 1


def test_text_before_a_display_equation_stays_a_paragraph(first):
    paragraphs = [each.text() for each in first.all("p")]
    assert "Text before" in paragraphs
    assert not any(paragraph.all("div") for paragraph in first.all("p"))


def test_a_figure_has_its_image_its_description_and_a_numbered_caption(first, built):
    figure = first.by_id("fig-first-line")
    image = figure.first("img")
    assert image.get("alt") == 'A line that "rises" \\ from left to right, with {braces}.'
    assert (image.get("width"), image.get("height")) == ("300", "150")
    file = built.first_page.parent / "chapters" / image.get("src")
    assert file.read_bytes() == sample_book.IMAGE
    caption = figure.first("figcaption")
    assert caption.text("annotation").startswith(
        "Figure 1.1: A line [with brackets], slope w and “quotes”; see"
    )
    assert caption.by_class("quarto-xref")[0].get("href") == "#eq-first"


def test_tables_of_the_text_and_of_code_look_the_same(first):
    written, made = first.by_id("tbl-first-sizes"), first.by_id("tbl-first-made")
    assert written.tag == made.tag == "figure"
    assert written.first("figcaption").text() == "Table 1.2: Sizes of layers"
    assert made.first("figcaption").text() == "Table 1.1: A table that code made."
    assert one(written, "table-scroll").first("table") and one(made, "table-scroll").first("table")
    assert "own caption" not in made.text()


def test_code_is_highlighted_and_says_its_language(first):
    cell = first.by_id("first-hello")
    assert "python" in cell.first("pre").classes
    assert "cell-code" in cell.first("pre").classes
    assert [each.text() for each in cell.by_class("bu")] == ["print"]


def test_outputs_follow_their_code(first):
    cell = first.by_id("first-hello")
    assert one(cell, "cell-output-stdout").text() == "hello <world> & ```` everyone"
    assert one(cell, "cell-output-text").text() == "2"


def test_hidden_things_are_hidden(first):
    text = first.text()
    for hidden in ("secret = 1", "not shown\n", "UserWarning", "For the instructor only", "Never in HTML"):
        assert hidden not in text
    assert "Always in HTML." in text
    assert 'print("not shown")' in first.by_id("first-quiet").text()
    assert not first.by_id("first-quiet").by_class("cell-output")


def test_code_that_is_not_run_is_shown(first):
    assert any(pre.text() == "import torch" for pre in first.all("pre"))


def test_folded_code_is_a_disclosure(first):
    fold = one(first.by_id("cell-fig-first-line"), "code-fold")
    assert fold.tag == "details" and "open" not in fold.attributes
    assert fold.first("summary").text() == "How <it> is drawn"
    assert fold.first("pre") is not None


def test_an_inline_value_is_text(first):
    assert "The answer is 1,785, and a `tick` b is code." in [each.text() for each in first.all("p")]


def test_callouts_say_their_kind_and_their_title(first):
    headers = [each.text() for each in first.by_class("callout-header")]
    assert headers == [
        "Note: A titled note",
        "Tip: A closed tip",
        "Warning",
        "Important: Important",
        "Caution: Care",
    ]
    closed = one(first, "callout-tip")
    assert closed.tag == "details" and "open" not in closed.attributes
    assert one(first, "callout-caution").by_id("first-inside") is not None


def test_headings_inside_boxes_are_no_sections(first):
    assert [each.text() for each in first.first("main").all("h2", "h3", "h4")] == [
        "1.1 Mathematics",
        "1.2 Code",
        "1.2.1 Tables and lists",
        "1.3 Exercises",
        "References",
    ]


def test_tabs_are_stacked_sections_with_titles(first):
    panes = one(first, "panel-tabset").by_class("tab-pane")
    assert [one(pane, "tab-title").text() for pane in panes] == ["Loop", "NumPy"]
    assert panes[0].first("pre") is not None


def test_an_exercise_shows_kind_hint_and_solution(first):
    exercise = first.by_id("exr-first-count")
    assert one(exercise, "statement-head").text() == "Exercise 1.1 (Count the weights) Number"
    hint = one(exercise, "hint")
    assert hint.tag == "details" and "open" not in hint.attributes
    link = one(exercise, "statement-link").first("a")
    assert link.get("href") == "91-solutions-first.html#sol-first-count"


def test_a_solution_leads_back(solutions):
    head = one(solutions.by_id("sol-first-write"), "statement-head")
    assert head.text().startswith("Solution")
    assert head.first("a").get("href") == "01-first.html#exr-first-write"


def test_literature_closes_each_page_that_cites(first, solutions, built):
    entries = [each.get("id") for each in first.by_class("csl-entry")]
    assert entries == ["ref-nielsen2015", "ref-rumelhart1986"]
    assert [each.get("id") for each in solutions.by_class("csl-entry")] == ["ref-rumelhart1986"]
    second = dom.read(built.first_page.parent / "chapters" / "02-second.html")
    assert second.by_id("references") is None


def test_footnotes_are_linked_both_ways(first):
    assert one(first, "footnote-ref").get("href") == "#fn1"
    assert "With x2 and code" in first.by_id("fn1").text("annotation")


def test_the_frame_knows_where_it_is(first, solutions):
    sidebar = first.by_id("sidebar")
    current = [link for link in sidebar.all("a") if link.get("aria-current") == "page"]
    assert [link.text() for link in current] == ["1The first chapter"]
    assert [link.get("href") for link in sidebar.all("a")] == [
        "../index.html",
        "01-first.html",
        "02-second.html",
        "91-solutions-first.html",
    ]
    links = {link.get("rel"): link.get("href") for link in first.all("a") if link.get("rel")}
    assert links == {"prev": "../index.html", "next": "02-second.html"}
    assert one(solutions, "kicker").text() == "Appendix A"
    assert [link.get("href") for link in first.by_id("toc").all("a")][:2] == [
        "#sec-first-part",
        "#sec-first-code",
    ]


def test_the_notebook_is_there_to_download(first, built):
    link = one(first, "chapter-links").first("a")
    assert "download" in link.attributes
    assert (built.first_page.parent / "chapters" / link.get("href")).resolve().is_file()


def test_the_foot_says_what_the_outputs_were_computed_with(first):
    assert "Python 3.11.7 and NumPy 2.4.6" in one(first, "provenance").text()


def test_the_instructors_edition_shows_each_solution_once_behind_its_exercise(root, tmp_path):
    built = build.build(root, profile="instructor", engine="pandoc", output=tmp_path / "out")
    assert site.check(tmp_path / "out") == []
    page = dom.read(built.first_page.parent / "chapters" / "01-first.html")
    shown = page.by_class("solution-inline")
    assert all(each.tag == "details" and "open" not in each.attributes for each in shown)
    assert len(shown) == 2
    assert "It is 12" in shown[0].text()
    assert "print(12)" in shown[1].text() and "12" in one(shown[1], "cell-output-stdout").text()
    assert "For the instructor only." in page.text()


@pytest.mark.parametrize(
    ("addition", "message"),
    [
        ("See @fig-nothing.", r"chapters/02-second\.qmd:9: @fig-nothing"),
        ("See [@nobody1999].", r"chapters/02-second\.qmd:9: @nobody1999"),
        ("$\\frac{1}{$", r"chapters/02-second\.qmd:9: "),
        ("<b>raw</b>", r"chapters/02-second\.qmd:9: "),
    ],
)
def test_a_mistake_names_file_and_line_and_leaves_the_last_site(tmp_path, addition, message):
    root = sample_book.write(tmp_path)
    build.build(root, engine="pandoc")
    before = (root / "_book" / "index.html").read_bytes()
    chapter = root / "chapters" / "02-second.qmd"
    chapter.write_text(chapter.read_text(encoding="utf-8") + f"\n{addition}\n", encoding="utf-8")
    with pytest.raises(BuildError, match=message):
        build.build(root, engine="pandoc")
    assert (root / "_book" / "index.html").read_bytes() == before
    assert sorted(path.name for path in root.glob("_book*")) == ["_book"]


def test_a_message_about_a_formula_is_traced_to_its_line(root):
    page = load_book(root).pages[1]
    message = "[WARNING] Could not convert TeX math \\frac{\\partial L}{\\partial W}: reason"
    assert pandoc.explain(page, message).startswith("chapters/01-first.qmd:")


def test_what_a_page_includes_is_shown_on_pages_with_and_without_code(built):
    first, second = (
        dom.read(built.first_page.parent / "chapters" / name) for name in ("01-first.html", "02-second.html")
    )
    assert "Write a function." in first.text() and len(second.by_class("equation-number")) == 1
    assert "include" not in first.text() + second.text()


def test_a_message_about_an_included_formula_is_traced_to_its_file(root):
    page = load_book(root).pages[2]
    assert pandoc.explain(page, "TeX math a = b: reason").startswith("parts/equation.qmd:1: ")
