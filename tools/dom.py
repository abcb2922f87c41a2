"""A small tree of an HTML page: enough to check a site and to index it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

VOID = frozenset(
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"]
)


@dataclass(eq=False)
class Element:
    """One element; `children` holds elements and text in order, `line` is where its tag stands."""

    tag: str
    attributes: dict[str, str]
    line: int = 0
    parent: Element | None = field(default=None, repr=False)
    children: list[Element | str] = field(default_factory=list, repr=False)

    def get(self, name: str, default: str = "") -> str:
        return self.attributes.get(name, default)

    @property
    def classes(self) -> list[str]:
        return self.get("class").split()

    def walk(self) -> Iterator[Element]:
        """This element and all below it, in document order."""
        yield self
        for child in self.children:
            if isinstance(child, Element):
                yield from child.walk()

    def all(self, *tags: str) -> list[Element]:
        return [element for element in self.walk() if element.tag in tags]

    def first(self, tag: str) -> Element | None:
        return next((element for element in self.walk() if element.tag == tag), None)

    def by_class(self, name: str) -> list[Element]:
        return [element for element in self.walk() if name in element.classes]

    def by_id(self, identifier: str) -> Element | None:
        return next((element for element in self.walk() if element.get("id") == identifier), None)

    def ancestors(self) -> Iterator[Element]:
        element = self.parent
        while element is not None:
            yield element
            element = element.parent

    def text(self, *skip: str) -> str:
        """All text in it with single spaces; the content of the tags in `skip` is left out."""
        return " ".join("".join(self._texts(frozenset(skip))).split())

    def _texts(self, skip: frozenset[str]) -> Iterator[str]:
        for child in self.children:
            if isinstance(child, str):
                yield child
            elif child.tag not in skip:
                yield from child._texts(skip)
                if child.tag in BREAKING:
                    yield " "


BREAKING = frozenset(
    ["p", "div", "li", "dt", "dd", "td", "th", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "section"]
) | {"figcaption", "caption", "summary", "br"}


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("#document", {})
        self.open = self.root

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        element = Element(tag, attributes, self.getpos()[0], self.open)
        self.open.children.append(element)
        if tag not in VOID:
            self.open = element

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open = self.open.parent or self.root

    def handle_endtag(self, tag: str) -> None:
        element: Element | None = self.open
        while element is not None and element.tag != tag:
            element = element.parent
        if element is not None and element.parent is not None:
            self.open = element.parent

    def handle_data(self, data: str) -> None:
        self.open.children.append(data)


def parse(text: str) -> Element:
    """Parse a page.

    >>> parse("<p id=a>One <b>two</b></p>").by_id("a").text()
    'One two'
    """
    builder = _Builder()
    builder.feed(text)
    builder.close()
    return builder.root


def read(path: Path) -> Element:
    return parse(path.read_text(encoding="utf-8"))
