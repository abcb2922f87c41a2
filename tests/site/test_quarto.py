"""What Quarto makes of the book is as sound as what pandoc makes of it, and numbered the same."""

import pytest
import sample_book

from tools import build, site

pytestmark = [pytest.mark.quarto, pytest.mark.slow]


def test_nothing_is_wrong_with_any_page(quarto_site):
    assert site.check(quarto_site) == []


def test_both_engines_number_everything_the_same(quarto_site, book_site):
    by_quarto, by_pandoc = (site.numbers(site.Site(folder)) for folder in (quarto_site, book_site))
    assert len(by_pandoc) > 100
    assert by_quarto == by_pandoc


def test_both_engines_make_the_same_pages(quarto_site, book_site):
    assert set(site.Site(quarto_site).pages) == set(site.Site(book_site).pages)


def test_both_engines_show_the_same_references(quarto_site, book_site):
    def references(folder):
        pages = site.Site(folder).pages
        return {
            href: [link.text() for link in page.first("main").all("a") if "quarto-xref" in link.classes]
            for href, page in pages.items()
        }

    assert references(quarto_site) == references(book_site)


def test_exercises_and_hints_are_laid_out_by_the_extension(quarto_site, book_site):
    def counts(folder):
        pages = site.Site(folder).pages
        names = ("exercise", "solution", "hint", "kind", "statement-link", "equation-number", "chapter-links")
        return {href: {name: len(page.by_class(name)) for name in names} for href, page in pages.items()}

    assert counts(quarto_site) == counts(book_site)


def test_each_page_lists_the_works_that_it_cites(quarto_site, book_site):
    def works(folder):
        pages = site.Site(folder).pages.items()
        return {href: [entry.get("id") for entry in page.by_class("csl-entry")] for href, page in pages}

    assert works(quarto_site) == works(book_site)
    for page in site.Site(quarto_site).pages.values():
        lists = page.by_class("csl-bib-body")
        assert all("display" not in each.get("style") for each in lists)
        links = [link for link in page.all("a") if link.get("role") == "doc-biblioref"]
        assert all(link.get("href").startswith("#ref-") for link in links)
        assert bool(lists) == bool(links)


def test_the_outputs_of_cells_are_laid_out_by_the_extension(quarto_site, book_site):
    def counts(folder):
        pages = site.Site(folder).pages
        names = [f"cell-output-{kind}" for kind in ("stdout", "stderr", "text", "error", "long")]
        return {href: {name: len(page.by_class(name)) for name in names} for href, page in pages.items()}

    assert counts(quarto_site) == counts(book_site)


def test_every_piece_of_markup_is_numbered_the_same(tmp_path, quarto_site):
    root = sample_book.write(tmp_path / "book")
    for engine in ("pandoc", "quarto"):
        build.build(root, engine=engine, output=tmp_path / engine)
        assert site.check(tmp_path / engine) == []
    one, other = (site.numbers(site.Site(tmp_path / engine)) for engine in ("pandoc", "quarto"))
    assert one == other


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_ask_no_other_host_and_report_no_error(quarto_site, quarto_address, chromium, scheme):
    wrong = []
    context = chromium.new_context(color_scheme=scheme)
    page = context.new_page()
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: _note(wrong, request.url, quarto_address))
    for href in site.Site(quarto_site).pages:
        page.goto(quarto_address + href)
        page.wait_for_load_state("networkidle")
    context.close()
    assert wrong == []


def _note(wrong, url, address):
    if not url.startswith((address, "data:", "blob:")):
        wrong.append(url)
