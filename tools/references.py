"""Number everything that can be referred to, as Quarto's book does, and check every reference."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from tools import qmd
from tools.book import Book, Page
from tools.errors import BuildError
from tools.source import read_text

NAMES = {
    "sec": "Section",
    "fig": "Figure",
    "tbl": "Table",
    "eq": "Equation",
    "exr": "Exercise",
    "sol": "Solution",
}
FOREIGN = frozenset(
    [
        "lst",
        "thm",
        "lem",
        "cor",
        "prp",
        "cnj",
        "def",
        "exm",
        "alg",
        "rem",
        "prf",
        "nte",
        "tip",
        "wrn",
        "imp",
        "cau",
    ]
)
CITE = re.compile(r"(?<![\w@./\\])(?P<dash>-?)@(?P<key>\w(?:[\w:.#$%&+?<>~/-]*\w)?)")
CAPTION = re.compile(r"^ {0,3}(?::|[Tt]able:)[ \t]+(?P<text>.*?)[ \t]*(?P<braces>\{#tbl-[^{}]*\})[ \t]*$")


@dataclass(frozen=True)
class Target:
    """Something that can be referred to; `label` is how a reference to it reads: "Figure 1.2"."""

    id: str
    kind: str
    number: str
    title: str
    page: Page
    label: str
    line: int


@dataclass(frozen=True)
class Reference:
    """One use of `@key` in a page; a cross-reference or a citation."""

    key: str
    page: Page
    line: int

    @property
    def kind(self) -> str:
        return qmd.kind_of(self.key) if qmd.kind_of(self.key) in NAMES else "citation"


@dataclass(frozen=True)
class Registry(Mapping[str, Target]):
    """All targets of the book by id, and all references in reading order."""

    targets: dict[str, Target] = field(default_factory=dict)
    references: tuple[Reference, ...] = ()

    def __getitem__(self, key: str) -> Target:
        return self.targets[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.targets)

    def __len__(self) -> int:
        return len(self.targets)

    def of(self, page: Page, kind: str | None = None) -> list[Target]:
        """The targets on one page in document order."""
        found = self.targets.values()
        return [t for t in found if t.page.source == page.source and kind in (None, t.kind)]


def collect(book: Book, output: str = "html", *, check: bool = True) -> Registry:
    """Number the targets of all pages, count by count within each page, and check the references.

    Content that the book's profile or the `output` format hides is not counted.  Raises BuildError
    with file and line for an id used twice and, when `check`, for a reference to an id or a
    citation of a key that does not exist.
    """
    targets: dict[str, Target] = {}
    for page in book.pages:
        for target in _page_targets(page, book.profile, output):
            earlier = targets.get(target.id)
            if earlier:
                raise page.document.error(
                    target.line,
                    f"the id {target.id} is already used at {earlier.page.document.place(earlier.line)}",
                )
            targets[target.id] = target
    references = [ref for page in book.pages for ref in page_references(page, book.profile, output)]
    if check:
        _check(references, targets, bibliography_keys(book))
    return Registry(targets, tuple(references))


def visible(document: qmd.Document, profile: str | None, output: str = "html") -> Iterator[qmd.Node]:
    """The nodes that this profile and output format show."""
    hidden: int | None = None
    for node in document.nodes:
        if hidden is None and isinstance(node, qmd.DivOpen) and not shown(node.attributes, profile, output):
            hidden = node.depth
        elif hidden is not None and isinstance(node, qmd.DivClose) and node.depth == hidden:
            hidden = None
        elif hidden is None:
            yield node


def shown(attributes: qmd.Attributes, profile: str | None, output: str = "html") -> bool:
    """Whether a `.content-visible` or `.content-hidden` div is to be seen.

    >>> shown(qmd.parse_attributes('{.content-visible when-profile="instructor"}'), None)
    False
    >>> shown(qmd.parse_attributes('{.content-hidden when-format="html"}'), None, "pdf")
    True
    """
    if not attributes.hides:
        return True
    pairs = attributes.pairs
    conditions = []
    if "when-profile" in pairs:
        conditions.append(pairs["when-profile"] == profile)
    if "unless-profile" in pairs:
        conditions.append(pairs["unless-profile"] != profile)
    if "when-format" in pairs:
        conditions.append(pairs["when-format"] == output)
    if "unless-format" in pairs:
        conditions.append(pairs["unless-format"] != output)
    met = all(conditions)
    return met if "content-visible" in attributes.classes else not met


class _Counter:
    """The counts of one page."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.sections = [0] * 7
        self.counts: dict[str, int] = {}

    def section_number(self, heading: qmd.Heading) -> str:
        if heading.level == 1:
            return self.page.number or ""
        if heading.attributes.unnumbered or self.page.number is None:
            return ""
        self.sections[heading.level] += 1
        self.sections[heading.level + 1 :] = [0] * (6 - heading.level)
        counts = [str(count) for count in self.sections[2 : heading.level + 1]]
        return ".".join([self.page.number, *counts])

    def section(self, heading: qmd.Heading) -> Target | None:
        number = self.section_number(heading)
        if qmd.kind_of(heading.attributes.id) != "sec":
            return None
        name = "Section"
        if heading.level == 1:
            name = "Appendix" if self.page.is_appendix else "Chapter"
        label = f"{name} {number}" if number else heading.text
        return Target(heading.attributes.id, "sec", number, heading.text, self.page, label, heading.line)

    def other(self, identifier: str, title: str, line: int) -> Target:
        kind = qmd.kind_of(identifier)
        self.counts[kind] = self.counts.get(kind, 0) + 1
        number = str(self.counts[kind])
        if self.page.number:
            number = f"{self.page.number}.{number}"
        return Target(identifier, kind, number, title, self.page, f"{NAMES[kind]} {number}", line)


def _page_targets(page: Page, profile: str | None, output: str) -> Iterator[Target]:
    counter = _Counter(page)
    if page.document.meta.get("title") and (target := counter.section(page.document.title)):
        yield target
    titles, tabs = div_headings(page.document)
    no_sections = tabs | set(titles.values())
    for node in visible(page.document, profile, output):
        if isinstance(node, qmd.Heading):
            if node.line not in no_sections and (target := counter.section(node)):
                yield target
        elif isinstance(node, qmd.Cell) and qmd.kind_of(node.label) in ("fig", "tbl"):
            caption = node.options.get(f"{qmd.kind_of(node.label)}-cap") or ""
            yield counter.other(node.label, str(caption), node.option_lines.get("label", node.line))
        elif isinstance(node, qmd.Math) and qmd.kind_of(node.id) == "eq":
            yield counter.other(node.id, "", node.last)
        elif isinstance(node, qmd.DivOpen) and qmd.kind_of(node.attributes.id) in (
            "exr",
            "sol",
            "fig",
            "tbl",
        ):
            heading = titles.get(node.line)
            text = page.document.lines[heading - 1].lstrip("# ") if heading else ""
            name = qmd.split_attributes(text)[0] or node.attributes.pairs.get("name", "")
            yield counter.other(node.attributes.id, name, node.line)
        elif isinstance(node, qmd.Prose):
            for identifier, caption, line in _captions(node):
                yield counter.other(identifier, caption, line)


def section_numbers(page: Page, profile: str | None = None, output: str = "html") -> dict[int, str]:
    """The line of every heading that is a section -> its number, empty for an unnumbered one."""
    titles, tabs = div_headings(page.document)
    no_sections = tabs | set(titles.values())
    counter = _Counter(page)
    return {
        node.line: counter.section_number(node)
        for node in visible(page.document, profile, output)
        if isinstance(node, qmd.Heading) and node.line not in no_sections
    }


def div_headings(document: qmd.Document) -> tuple[dict[int, int], set[int]]:
    """The headings inside divs that are no sections.

    Returns the line of each callout, exercise or solution -> the line of the heading that is its
    title, and the lines of the headings that name the tabs of a tabset.
    """
    titles: dict[int, int] = {}
    tabs: set[int] = set()
    divs: list[qmd.DivOpen] = []
    fresh: qmd.DivOpen | None = None
    for node in document.nodes:
        if isinstance(node, qmd.DivOpen):
            divs.append(node)
            fresh = node
            continue
        if isinstance(node, qmd.DivClose):
            divs.pop()
        elif isinstance(node, qmd.Heading):
            if fresh and takes_title(fresh.attributes):
                titles[fresh.line] = node.line
            elif divs and "panel-tabset" in divs[-1].attributes.classes:
                tabs.add(node.line)
        elif isinstance(node, qmd.Prose) and not node.text.strip():
            continue
        fresh = None
    return titles, tabs


def takes_title(attributes: qmd.Attributes) -> bool:
    """Whether the first heading inside such a div is its title and not a section."""
    if qmd.kind_of(attributes.id) in ("exr", "sol"):
        return True
    return any(name.startswith("callout-") for name in attributes.classes)


def _captions(node: qmd.Prose) -> Iterator[tuple[str, str, int]]:
    for offset, line in enumerate(node.text.split("\n")):
        if match := CAPTION.match(line):
            yield qmd.parse_attributes(match["braces"]).id, match["text"], node.line + offset


def page_references(page: Page, profile: str | None = None, output: str = "html") -> Iterator[Reference]:
    """Every `@key` of a page that is shown, outside code, math and comments."""
    for node in visible(page.document, profile, output):
        if isinstance(node, qmd.Prose | qmd.Heading):
            text = page.document.source(node.line, node.last)
            for key, line in find_references(text, node.line):
                yield Reference(key, page, line)
        elif isinstance(node, qmd.Cell):
            for name in ("fig-cap", "tbl-cap"):
                text = str(node.options.get(name) or "")
                line = node.option_lines.get(name, node.line)
                yield from (Reference(key, page, line) for key, _ in find_references(text))


def find_references(text: str, line: int = 1) -> Iterator[tuple[str, int]]:
    """The keys of all `@key` in a piece of prose, each with its line.

    >>> list(find_references("See @fig-a, [-@eq-b] and `@not-this`; mail me@home.org, \\\\@no"))
    [('fig-a', 1), ('eq-b', 1)]
    """
    for span in qmd.inline_spans(text, line):
        if span.kind != "text":
            continue
        for match in CITE.finditer(text, span.start, span.end):
            yield match["key"], line + text.count("\n", 0, match.start())


def bibliography_keys(book: Book) -> set[str]:
    """The keys of all entries in the book's bibliography files."""
    keys: set[str] = set()
    for path in book.bibliography:
        if not Path(path).is_file():
            raise BuildError(f"_quarto.yml: the bibliography {path.name} does not exist")
        text = read_text(path, path.name)
        keys.update(
            re.findall(r"^[ \t]*@(?!comment|string|preamble)\w+\s*[{(]\s*([^,\s]+)\s*,", text, re.M | re.I)
        )
    return keys


def _check(references: list[Reference], targets: dict[str, Target], keys: set[str]) -> None:
    for ref in references:
        prefix = qmd.kind_of(ref.key)
        if prefix in NAMES:
            if ref.key not in targets:
                raise ref.page.document.error(
                    ref.line, f"@{ref.key} refers to nothing{_nearest(ref.key, targets)}"
                )
        elif prefix in FOREIGN and ref.key not in keys:
            known = " ".join(f"@{name}-" for name in NAMES)
            raise ref.page.document.error(
                ref.line, f"@{ref.key}: this prefix is not used in the book, only {known}"
            )
        elif ref.key not in keys:
            hint = _nearest(ref.key, keys)
            raise ref.page.document.error(ref.line, f"@{ref.key} is cited but not in the bibliography{hint}")


def _nearest(key: str, known: Mapping[str, Target] | set[str]) -> str:
    close = get_close_matches(key, sorted(known), n=1)
    return f"; did you mean @{close[0]}?" if close else ""
