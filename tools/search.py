"""Write the index that the search of the site reads: one entry for each section of each page."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tools import dom

FILE = "search-index.js"
SILENT = frozenset(["annotation", "script", "style", "button", "nav", "svg"])
HEADINGS = ("h1", "h2", "h3")


@dataclass(frozen=True)
class Entry:
    """A section: its page's title, its own title, its address from the root of the site, its text."""

    page: str
    title: str
    href: str
    text: str


def entries(href: str, document: dom.Element) -> list[Entry]:
    """The sections of one page; text above the first heading belongs to the page."""
    main = document.first("main")
    if main is None:
        return []
    heading = main.first("h1")
    page = heading.text(*SILENT) if heading else ""
    sections: list[tuple[str, str, list[str]]] = [("", "", [])]

    def visit(element: dom.Element) -> None:
        for child in element.children:
            if isinstance(child, str):
                sections[-1][2].append(child)
            elif child.tag in HEADINGS:
                start_section(child)
            elif child.tag not in SILENT:
                visit(child)
                if child.tag in dom.BREAKING:
                    sections[-1][2].append(" ")

    def start_section(child: dom.Element) -> None:
        if child.tag != "h1":
            sections.append((child.text(*SILENT), anchor(child), []))

    visit(main)
    found = [(title, mark, " ".join("".join(texts).split())) for title, mark, texts in sections]
    return [Entry(page, title, href + (f"#{mark}" if mark else ""), text) for title, mark, text in found]


def anchor(heading: dom.Element) -> str:
    """The id that leads to a heading: its own or that of the section around it."""
    if heading.get("id"):
        return heading.get("id")
    for element in heading.ancestors():
        if element.tag == "section":
            return element.get("id")
    return ""


def write(site: Path, hrefs: Iterable[str]) -> Path:
    """Index the pages of a built site.

    The index is a script and not JSON, because a page opened from a folder may load scripts only.
    """
    found = [entry for href in hrefs for entry in entries(href, dom.read(site / href))]
    rows = [[entry.page, entry.title, entry.href, entry.text] for entry in found]
    path = site / "assets" / FILE
    text = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    path.write_text(f"globalThis.denseSearchIndex={text};\n", encoding="utf-8")
    return path
