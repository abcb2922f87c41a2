"""Every page of the real book, parsed."""

import json
import re
import zipfile

import html5lib
import pytest

from tools import compose, dom, site
from tools.book import load_book
from tools.environment import ROOT
from tools.references import collect


@pytest.fixture(scope="module")
def book():
    return load_book(ROOT)


@pytest.fixture(scope="module")
def pages(book_site):
    return site.Site(book_site).pages


def test_nothing_is_wrong_with_any_page(book_site):
    assert site.check(book_site) == []


def test_every_page_is_html_without_a_parse_error(book_site):
    for path in book_site.rglob("*.html"):
        parser = html5lib.HTMLParser()
        parser.parse(path.read_text(encoding="utf-8"))
        assert parser.errors == [], path.name


def test_every_page_of_the_book_is_there_and_no_other(book, pages):
    assert set(pages) == {page.href for page in book.pages}


def test_every_number_is_the_one_that_references_show(book, book_site):
    shown = site.numbers(site.Site(book_site))
    for target in collect(book).values():
        if target.number and target.id != target.page.id:
            assert shown.get(target.id) == target.number, target.id


def test_every_chapter_offers_its_notebook_and_the_wheel(book, book_site, pages):
    for page in book.notebooks:
        links = [link for block in pages[page.href].by_class("chapter-links") for link in block.all("a")]
        names = [link.get("href").rsplit("/", 1)[-1] for link in links]
        assert names[0] == page.notebook.name
        assert names[1].endswith("-py3-none-any.whl")
        served = book_site / "notebooks" / page.notebook.name
        assert served.read_bytes() == page.notebook.read_bytes()


def test_the_wheel_holds_both_packages(book_site):
    (path,) = (book_site / "notebooks").glob("*.whl")
    names = zipfile.ZipFile(path).namelist()
    assert "denselayer/__init__.py" in names
    assert "denselayer_figures/__init__.py" in names


def test_every_page_with_code_says_what_it_was_computed_with(book, pages):
    for page in book.notebooks:
        (foot,) = pages[page.href].by_class("provenance")
        assert re.search(r"Python 3\.\d+\.\d+, NumPy \d\S+ and Matplotlib \d", foot.text()), page.name
        assert "The notebook of this page is fresh" in foot.text() or "is stale; " in foot.text()


def test_the_environment_page_shows_what_the_notebooks_store(book, pages):
    page = next(pages[page.href] for page in book.pages if page.id == "sec-environment")
    rows = [
        [cell.text() for cell in row.all("td")] for row in page.by_id("tbl-environment-versions").all("tr")
    ]
    shown = {row[0]: set(row[1:]) for row in rows if row}
    for source in book.notebooks:
        executed = json.loads(source.notebook.read_text(encoding="utf-8"))["metadata"]["dense"]["executed"]
        for key, value in executed.items():
            assert " ".join(value.split()) in shown[compose.ENVIRONMENT[key]], f"{source.name}: {key}"
    rows = [[cell.text() for cell in row.all("td")] for row in page.by_id("tbl-environment-pages").all("tr")]
    assert [row[1] for row in rows if row] == [source.notebook.name for source in book.notebooks]
    assert all(row[-1].startswith(("fresh", "stale: ")) for row in rows if row)


def test_the_environment_page_names_the_wheel_that_is_served(book, book_site, pages):
    page = next(pages[page.href] for page in book.pages if page.id == "sec-environment")
    (wheel,) = (book_site / "notebooks").glob("*.whl")
    assert wheel.name in page.text()


def test_every_exercise_is_linked_to_its_solution_and_back(pages):
    found = {
        each.get("id"): (href, each) for href, page in pages.items() for each in page.by_class("exercise")
    }
    assert len(found) >= 36
    solutions = {each.get("id"): each for page in pages.values() for each in page.by_class("solution")}
    for name, (_, exercise) in found.items():
        other = name.replace("exr-", "sol-")
        assert other in solutions, name
        assert exercise.by_class("statement-link")[0].first("a").get("href").endswith(f"#{other}")
        assert solutions[other].by_class("statement-link")[0].first("a").get("href").endswith(f"#{name}")


def test_every_page_has_landmarks_and_a_way_past_the_menu(pages):
    for href, page in pages.items():
        body = page.first("body")
        first_link = body.first("a")
        assert "skip-link" in first_link.classes and first_link.get("href") == "#main", href
        assert page.by_id("main").tag == "main"
        assert page.first("header") is not None
        for nav in page.all("nav"):
            assert nav.get("aria-label"), f"{href}: a <nav> without a name"


def test_every_page_is_in_the_menu_and_marks_itself(book, pages):
    for href, page in pages.items():
        links = page.by_id("sidebar").all("a")
        assert len(links) == len(book.pages)
        (current,) = [link for link in links if link.get("aria-current") == "page"]
        assert current.get("href") == href.rsplit("/", 1)[-1]


def test_no_line_of_code_is_wider_than_the_page_on_a_desk(pages):
    for href, page in pages.items():
        for pre in page.by_class("sourceCode"):
            longest = max(map(len, "".join(_raw_text(pre)).split("\n")), default=0)
            assert longest <= 88, f"{href}:{pre.line}: a line of {longest} characters"


def _raw_text(element):
    for child in element.children:
        if isinstance(child, dom.Element):
            yield from _raw_text(child)
        else:
            yield child


def test_the_instructors_edition_is_sound_and_shows_every_solution(book, tmp_path):
    from tools import build

    build.build(ROOT, profile="instructor", engine="pandoc", output=tmp_path / "out")
    assert site.check(tmp_path / "out") == []
    pages = site.Site(tmp_path / "out").pages
    for href, page in pages.items():
        exercises = page.by_class("exercise")
        shown = page.by_class("solution-inline")
        assert len(shown) == len(exercises), href
