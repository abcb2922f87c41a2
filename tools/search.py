"""Write the index that the search of the site reads: one entry for each section of each page."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
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
            elif child.tag not in SILENT and "hidden" not in child.attributes:
                visit(child)
                if child.tag in dom.BREAKING:
                    sections[-1][2].append(" ")

    def start_section(child: dom.Element) -> None:
        if child.tag != "h1":
            sections.append((child.text(*SILENT), anchor(child), []))

    visit(main)
    return [
        Entry(plain(page), plain(title), href + (f"#{mark}" if mark else ""), plain("".join(texts)))
        for title, mark, texts in sections
    ]


def plain(text: str) -> str:
    """Letters as one types them: a bold mathematical w is a w, and an accent on a letter of its own goes.

    >>> plain("\U0001d498\u0303 = Mu\u0308ller")
    'w = Müller'
    """
    composed = unicodedata.normalize("NFKC", text)
    kept = "".join(letter for letter in composed if not unicodedata.combining(letter))
    return " ".join(kept.split())


def anchor(heading: dom.Element) -> str:
    """The id that leads to a heading: its own or that of the section around it."""
    if heading.get("id"):
        return heading.get("id")
    for element in heading.ancestors():
        if element.tag == "section":
            return element.get("id")
    return ""


def write(site: Path, weights: Mapping[str, float]) -> Path:
    """Index the pages of a built site, given by their addresses, each with the weight of what is found there.

    The index is a script and not JSON, because a page opened from a folder may load scripts only.
    """
    rows = [
        [entry.page, entry.title, entry.href, entry.text, weight]
        for href, weight in weights.items()
        for entry in entries(href, dom.read(site / href))
    ]
    path = site / "assets" / FILE
    text = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    path.write_text(f"globalThis.denseSearchIndex={text};\n", encoding="utf-8")
    return path
