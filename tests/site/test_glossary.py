"""Every chapter links each term of the glossary that it uses, once, at its first use; in both engines."""

import re

import pytest

from tools import dom, site
from tools.book import load_book
from tools.environment import ROOT
from tools.references import find_references

BOOK = load_book(ROOT)
CHAPTERS = [page for page in BOOK.pages if page.number and not page.is_appendix]
GLOSSARY = next(page for page in BOOK.pages if page.id == "sec-glossary")
ENTRY = re.compile(r"^(?P<term>[^\s:|#>`].*)\n\n:   (?P<definition>.+)$", re.M)
NO_TEXT = (
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "code",
    "pre",
    "math",
    "table",
    "figcaption",
    "caption",
    "summary",
)
NO_PROSE = {
    "callout-header",
    "callout-title-container",
    "cell",
    "chapter-links",
    "footnotes",
    "glossary-definitions",
    "nav-tabs",
    "provenance",
    "quarto-title-block",
    "references",
    "statement-head",
    "statement-link",
    "tab-title",
    "equation-number",
}


def slug(name):
    return re.sub(r"[^A-Za-z0-9]+", "-", name.lower()).strip("-")


def plural(form):
    if re.search(r"([sxz]|[cs]h)$", form):
        return form + "es"
    return re.sub(r"(?<![aeiou])y$", "ie", form) + "s"


def read_entries():
    """Slug -> (name, forms, phrases that are not meant, definition), from the source, without the filter."""
    found = {}
    for match in ENTRY.finditer(GLOSSARY.document.text):
        name, _, notes = match["term"].removesuffix(")").partition(" (")
        forms, foreign = [name], []
        for note in filter(None, notes.split("; ")):
            kind, _, words = note.partition(" ")
            {"also": forms, "not": foreign}[kind].extend(words.split(", "))
        assert slug(name) not in found, f"two entries for {name}"
        found[slug(name)] = (name, forms, foreign, match["definition"])
    return found


ENTRIES = read_entries()


def matcher():
    """A pattern for all forms, the longest first, and the entry of each form."""
    owner = {}
    for key, (_, forms, foreign, _) in ENTRIES.items():
        for form in forms:
            owner[form] = owner[plural(form)] = key
        owner |= dict.fromkeys(foreign)
    longest = sorted(owner, key=lambda form: (-len(form.split()), -len(form)))
    written = []
    for form in longest:
        first = f"[{form[0].upper()}{form[0]}]" if form[0].islower() else form[0]
        written.append(first + re.escape(form[1:]).replace(r"\ ", "[ \n]+"))
    return re.compile(rf"(?<!\w)(?<!\w-)(?:{'|'.join(written)})(?!\w|-\w)"), owner


PATTERN, OWNER = matcher()


def owner_of(text):
    words = " ".join(text.split())
    return OWNER.get(words, OWNER.get(words[0].lower() + words[1:], "nothing"))


def uses(page):
    """The terms of a page's running text in order, each with whether it is a link."""

    def visit(element):
        for child in element.children:
            if isinstance(child, str):
                if any(up.tag in ("p", "li", "dd") for up in (element, *element.ancestors())):
                    yield from ((owner_of(match[0]), False) for match in PATTERN.finditer(child))
            elif "glossary-term" in child.classes:
                yield child.get("href").split("#term-")[1], True
            elif child.tag != "a" and child.tag not in NO_TEXT and not NO_PROSE & set(child.classes):
                yield from visit(child)

    return [use for use in visit(page.first("main")) if use[0]]


@pytest.fixture(scope="module", params=["pandoc", pytest.param("quarto", marks=pytest.mark.quarto)])
def pages(request):
    folder = request.getfixturevalue("book_site" if request.param == "pandoc" else "quarto_site")
    return site.Site(folder).pages


def test_there_are_enough_entries_and_their_definitions_are_short():
    assert len(ENTRIES) >= 60
    for name, _, _, definition in ENTRIES.values():
        sentences = re.findall(r"[.!?](?=\s|$)", definition)
        assert 2 <= len(sentences) <= 4 and len(definition) < 320, name
        assert definition.endswith(".") and list(find_references(definition)), (
            f"{name} says not where to read on"
        )


def test_no_form_belongs_to_two_entries():
    forms = [form for _, forms, foreign, _ in ENTRIES.values() for form in (*forms, *foreign)]
    assert len(forms) == len(set(forms))


def test_entries_stand_in_the_order_of_the_alphabet():
    names = [name.lower().replace("-", " ") for name, *_ in ENTRIES.values()]
    assert names == sorted(names)


def test_every_entry_is_on_the_page_with_its_id(pages):
    page = pages[GLOSSARY.href]
    shown = {element.get("id").removeprefix("term-"): element.text() for element in page.all("span")}
    assert {key: shown.get(key) for key in ENTRIES} == {key: name for key, (name, *_) in ENTRIES.items()}


def test_every_link_leads_to_an_entry_of_the_glossary(pages):
    for chapter in CHAPTERS:
        links = pages[chapter.href].by_class("glossary-term")
        assert len(links) > 20, chapter.name
        for link in links:
            address, _, anchor = link.get("href").partition("#term-")
            assert address.rsplit("/", 1)[-1] == GLOSSARY.href.rsplit("/", 1)[-1]
            assert anchor in ENTRIES, f"{chapter.name}: {link.get('href')}"


def test_each_term_that_a_chapter_uses_is_linked_exactly_once_at_its_first_use(pages):
    for chapter in CHAPTERS:
        first, links = {}, []
        for key, is_link in uses(pages[chapter.href]):
            first.setdefault(key, is_link)
            links += [key] if is_link else []
        assert [key for key, is_link in first.items() if not is_link] == [], chapter.name
        assert sorted(links) == sorted(set(links)) == sorted(first), chapter.name
        assert len(links) == len(pages[chapter.href].by_class("glossary-term")), chapter.name


def test_no_heading_code_caption_or_other_link_holds_a_term(pages):
    for chapter in CHAPTERS:
        for link in pages[chapter.href].by_class("glossary-term"):
            for up in link.ancestors():
                assert up.tag not in (*NO_TEXT, "a"), f"{chapter.name}: {link.text()} in <{up.tag}>"
                assert not NO_PROSE & set(up.classes), f"{chapter.name}: {link.text()} in {up.classes}"


def test_every_link_has_its_definition_on_the_page(pages):
    for chapter in CHAPTERS:
        page = pages[chapter.href]
        [block] = page.by_class("glossary-definitions")
        assert "hidden" in block.attributes
        for link in page.by_class("glossary-term"):
            definition = block.by_id(link.get("aria-describedby"))
            name, _, _, text = ENTRIES[link.get("href").split("#term-")[1]]
            assert definition.get("data-term") == name
            words = text.split("$")[0].replace("'", "\N{RIGHT SINGLE QUOTATION MARK}")[:30].strip()
            assert definition.text("annotation").startswith(words), name


def test_pages_that_are_no_chapters_have_no_such_links(pages):
    for page in BOOK.pages:
        if page not in CHAPTERS:
            assert pages[page.href].by_class("glossary-term") == [], page.name


def test_the_search_does_not_find_hidden_definitions(book_site):
    rows = site.read_index(book_site / "assets" / "search-index.js")
    sentence = "Its error shrinks with the square of the step"
    assert {href.split("#")[0] for _, _, href, text, *_ in rows if sentence in text} == {GLOSSARY.href}


def test_terms_of_the_definition_list_are_terms(book_site):
    page = dom.read(book_site / GLOSSARY.href)
    lists = [each for block in page.by_class("glossary") for each in block.all("dt")]
    assert len(lists) == len(ENTRIES)
