"""Check a built site the way a reader would notice: links, figures, headings, references, other hosts."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tools import dom, search

UNRESOLVED = re.compile(r"\?@?(?:sec|fig|tbl|eq|exr|sol)-|@(?:sec|fig|tbl|eq|exr|sol)-|\?\?|\{#|^:::|\s:::")
FOREIGN = re.compile(r"^(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
CSS_URL = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")
LOADED_LINKS = frozenset(
    ["stylesheet", "icon", "preload", "modulepreload", "prefetch", "preconnect", "dns-prefetch", "manifest"]
)
LOADING = {
    "script": ("src",),
    "img": ("src", "srcset"),
    "iframe": ("src",),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "track": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "input": ("src",),
    "use": ("href", "xlink:href"),
    "image": ("href", "xlink:href"),
}
NUMBERED = re.compile(r"(?:sec|fig|tbl|eq|exr|sol)-(?!.*-caption-)")
NUMBER = re.compile(r"(?:[A-Z]|\d+)(?:\.\d+)+")


@dataclass(frozen=True)
class Site:
    """A folder of pages, each parsed once."""

    folder: Path

    @cached_property
    def pages(self) -> dict[str, dom.Element]:
        """Address -> page."""
        paths = sorted(self.folder.rglob("*.html"))
        return {path.relative_to(self.folder).as_posix(): dom.read(path) for path in paths}

    @cached_property
    def anchors(self) -> dict[str, set[str]]:
        return {
            href: {element.get("id") for element in page.walk() if element.get("id")}
            for href, page in self.pages.items()
        }


def check(folder: Path) -> list[str]:
    """Everything wrong with the site in `folder`, as lines "page:line: what"; empty when it is sound."""
    site = Site(folder)
    problems = [f"{href}:{line}: {text}" for href, line, text in _problems(site)]
    return problems + style_sheet_problems(site) + index_problems(site)


def _problems(site: Site) -> Iterator[tuple[str, int, str]]:
    checks: list[Callable[[dom.Element], Iterator[tuple[int, str]]]] = [
        frame,
        headings,
        identifiers,
        unresolved,
        figures,
        formulas,
        other_hosts,
    ]
    for href, page in site.pages.items():
        for each in checks:
            for line, text in each(page):
                yield href, line, text
        for line, text in links(site, href, page):
            yield href, line, text


# ---------- one page ----------


def frame(page: dom.Element) -> Iterator[tuple[int, str]]:
    """The document says its language and title and has one main part."""
    root = page.first("html")
    if root is None or not root.get("lang"):
        yield 1, "no language on <html>"
    title = page.first("title")
    if title is None or not title.text():
        yield 1, "no <title>"
    if len(page.all("main")) != 1:
        yield 1, f"{len(page.all('main'))} <main> elements"


def headings(page: dom.Element) -> Iterator[tuple[int, str]]:
    """One first-level heading; no level is skipped; none is empty.

    Quarto's first page has a second one, with the class `title`, for the book itself.
    """
    main = page.first("main") or page
    found = main.all("h1", "h2", "h3", "h4", "h5", "h6")
    top = [heading for heading in found if heading.tag == "h1"]
    named = [heading for heading in top if "title" in heading.classes]
    if not top or len(named) > 1 or len(top) - len(named) > 1:
        yield main.line, f"{len(top)} headings of level 1"
    level = 0
    for heading in found:
        own = int(heading.tag[1])
        if own > level + 1:
            yield heading.line, f"heading of level {own} after level {level}: {heading.text()}"
        if not heading.text():
            yield heading.line, "an empty heading"
        level = own


def identifiers(page: dom.Element) -> Iterator[tuple[int, str]]:
    body = page.first("body") or page
    counts = Counter(element.get("id") for element in body.walk() if element.get("id"))
    for name, count in counts.items():
        if count > 1:
            yield body.by_id(name).line, f"the id {name} is used {count} times"


def unresolved(page: dom.Element) -> Iterator[tuple[int, str]]:
    """Text that is still markup: references, attributes, fences."""
    main = page.first("main") or page
    for element in main.walk():
        if any(
            each.tag in ("code", "pre", "annotation", "script", "style")
            for each in (element, *element.ancestors())
        ):
            continue
        for child in element.children:
            if isinstance(child, str) and (match := UNRESOLVED.search(child)):
                around = " ".join(child[max(0, match.start() - 20) : match.end() + 30].split())
                yield element.line, f"unresolved markup: {around}"


def figures(page: dom.Element) -> Iterator[tuple[int, str]]:
    """Each figure shows something and has a caption; each image says what it shows."""
    for figure in page.all("figure"):
        if not figure.all("img", "svg", "table", "pre"):
            yield figure.line, f"an empty figure: {figure.get('id') or figure.text()[:40]}"
        caption = figure.first("figcaption")
        if caption is not None and not NUMBER.sub("", caption.text()).removeprefix("Figure").strip(" :"):
            yield figure.line, "a figure with an empty caption"
    for image in page.all("img"):
        if image.get("role") != "presentation" and len(image.get("alt").split()) < 2:
            yield image.line, f"no text for the image {image.get('src')[:60]}"


def formulas(page: dom.Element) -> Iterator[tuple[int, str]]:
    for element in page.walk():
        if element.tag == "merror" or (element.tag == "span" and "math" in element.classes):
            yield element.line, f"a formula that could not be set: {element.text()[:60]}"


def other_hosts(page: dom.Element) -> Iterator[tuple[int, str]]:
    """Addresses on other hosts in what a browser loads by itself; links to click are fine."""
    for element in page.walk():
        for address in loaded(element):
            if FOREIGN.match(address.strip()):
                yield element.line, f"<{element.tag}> loads {address.strip()}"
        if element.tag == "style":
            for match in CSS_URL.finditer(element.text()):
                if FOREIGN.match(match[1] or match[2]):
                    yield element.line, f"a style loads {match[1] or match[2]}"


def loaded(element: dom.Element) -> list[str]:
    """The addresses that a browser fetches because of this element."""
    if element.tag == "link":
        return [element.get("href")] if LOADED_LINKS & set(element.get("rel").split()) else []
    found = []
    for name in LOADING.get(element.tag, ()):
        value = element.get(name)
        if name == "srcset":
            found += [part.split()[0] for part in value.split(",") if part.strip()]
        elif value:
            found.append(value)
    return found


# ---------- pages together ----------


def links(site: Site, href: str, page: dom.Element) -> Iterator[tuple[int, str]]:
    """Every link and every loaded file inside the site exists, its anchor too."""
    for element in page.walk():
        addresses = loaded(element)
        if element.tag == "a" and "href" in element.attributes:
            addresses = [element.get("href")]
        for address in addresses:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc or address.startswith("//"):
                continue
            if message := _broken(site, href, unquote(parts.path), unquote(parts.fragment)):
                yield element.line, f"{message}: {address}"


def _broken(site: Site, href: str, path: str, fragment: str) -> str:
    target = href
    if path:
        resolved = ((site.folder / href).parent / path).resolve()
        if resolved.is_dir():
            resolved /= "index.html"
        if not resolved.is_relative_to(site.folder.resolve()):
            return "a link that leaves the site"
        if not resolved.is_file():
            return "a link to nothing"
        target = resolved.relative_to(site.folder.resolve()).as_posix()
    if fragment and target in site.anchors and fragment not in site.anchors[target]:
        return "a link to an anchor that is not there"
    return ""


def style_sheet_problems(site: Site) -> list[str]:
    """Style sheets load files of the site only, and these exist."""
    problems = []
    for path in sorted(site.folder.rglob("*.css")):
        name = path.relative_to(site.folder).as_posix()
        for match in CSS_URL.finditer(path.read_text(encoding="utf-8")):
            address = (match[1] or match[2]).strip()
            if address.startswith(("data:", "#")):
                continue
            if FOREIGN.match(address):
                problems.append(f"{name}: loads {address}")
            elif not (path.parent / unquote(urlsplit(address).path)).is_file():
                problems.append(f"{name}: loads {address}, which is not there")
    return problems


def index_problems(site: Site) -> list[str]:
    """Every entry of the search index leads somewhere, and every page is in it."""
    path = site.folder / "assets" / search.FILE
    if not path.is_file():
        return []
    rows = read_index(path)
    found = {href.split("#")[0] for _, _, href, *_ in rows}
    problems = [f"{path.name}: {page} is not indexed" for page in site.pages if page not in found]
    for _, _, href, *_ in rows:
        page, _, anchor = href.partition("#")
        if page not in site.pages or (anchor and anchor not in site.anchors[page]):
            problems.append(f"{path.name}: leads to {href}, which is not there")
    return problems


def read_index(path: Path) -> list[list[str]]:
    text = path.read_text(encoding="utf-8")
    return json.loads(text[text.index("=") + 1 :].rstrip().rstrip(";"))


# ---------- numbers ----------


def numbers(site: Site) -> dict[str, str]:
    """The number that the page shows for each id: "fig-line" -> "1.2"; the same for both engines."""
    found: dict[str, str] = {}
    for page in site.pages.values():
        main = page.first("main") or page
        for element in main.walk():
            identifier = element.get("id")
            if NUMBERED.match(identifier) and (shown := _shown(element)):
                found.setdefault(identifier, shown)
    return found


def _shown(element: dom.Element) -> str:
    kind = element.get("id").split("-")[0]
    if kind == "sec":
        return element.get("data-number") if element.tag == "section" else ""
    labels = {
        "fig": lambda: element.first("figcaption"),
        "tbl": lambda: element.first("figcaption"),
        "eq": lambda: next(iter(element.by_class("equation-number")), None),
        "exr": lambda: next(iter(element.by_class("theorem-title")), None),
        "sol": lambda: next(iter(element.by_class("proof-title")), None),
    }
    label = labels[kind]()
    match = NUMBER.search(label.text()) if label else None
    return match[0] if match else ""
