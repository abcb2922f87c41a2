"""Refuse markup that is not on the book's list: what both rendering engines understand alike.

The one shortcode on the list, `include`, is gone when a page is read: see `tools.source`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from tools import pandoc, qmd
from tools.book import Book, Page
from tools.errors import BuildError
from tools.references import FOREIGN, NAMES, div_headings
from tools.source import ANY_INCLUDE

CALLOUTS = tuple(f"callout-{kind}" for kind in ("note", "tip", "warning", "important", "caution"))
CONDITIONAL = ("content-visible", "content-hidden")
CONDITIONS = ("when-profile", "unless-profile", "when-format", "unless-format")
DIVS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(CALLOUTS, ("collapse", "title")),
    **dict.fromkeys(CONDITIONAL, CONDITIONS),
    "panel-tabset": (),
    "hint": (),
    "solution": (),
    "glossary": (),
    "notation": (),
    "environment-versions": (),
    "environment-pages": (),
}
PLANNED = ("live", "widget")
KINDS = ("number", "code", "explain")
SWITCHES = ("echo", "eval", "output", "include", "warning", "error")
TEXTS = ("label", "code-summary", "fig-cap", "fig-alt", "tbl-cap")
OPTIONS = (*SWITCHES, *TEXTS, "code-fold", "tags")
HEADER = ("title", "description")
LABEL = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
LABEL_LENGTH = 60
RESERVED = FOREIGN | {"sec", "eq", "exr", "sol"}
ENVIRONMENTS = (
    "aligned",
    "array",
    "bmatrix",
    "cases",
    "gathered",
    "matrix",
    "pmatrix",
    "smallmatrix",
    "split",
    "vmatrix",
)
ELEMENTS = {
    "LineBlock": "a line block",
    "RawBlock": "raw HTML or LaTeX",
    "RawInline": "raw HTML or LaTeX",
}
HTML = re.compile(r"<(?!https?:|mailto:)/?[A-Za-z][^<>]*>")
REFERENCE_THEN_CITATION = re.compile(rf"@(?:{'|'.join(NAMES)})-[\w-]+\s*\[[^\]\[]*@")
RULE = re.compile(r"\s*(?:([-*_])(?:[ \t]*\1){2,}|=+|-+)[ \t]*")
LINK = re.compile(r"\]\((?P<url>[^()\s]*)")


@dataclass(frozen=True)
class Finding:
    """One piece of markup that is not on the list; `line` counts in the page, `place` names file and line."""

    place: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


def check_book(book: Book) -> None:
    """Raise BuildError with every finding of every page, each with file and line."""
    findings = [finding for page in book.pages for finding in check_page(page)]
    findings += _repeated_labels(book)
    if findings:
        raise BuildError("\n".join(str(finding) for finding in findings))


def check_page(page: Page) -> list[Finding]:
    """Everything on one page that is not on the list, in the order of the lines."""
    return check_document(page.document)


def check_document(document: qmd.Document) -> list[Finding]:
    """Like `check_page`, for a parsed file."""
    checker = _Checker(document)
    found = set(checker.lines()) or set(checker.tree())
    return [Finding(document.place(line), line, message) for line, message in sorted(found)]


def _repeated_labels(book: Book) -> Iterator[Finding]:
    first: dict[str, str] = {}
    for page in book.pages:
        for cell in page.document.cells:
            place = page.document.place
            if cell.label and cell.label in first:
                message = f"the label {cell.label} is already used at {first[cell.label]}"
                line = cell.option_lines.get("label", cell.line)
                yield Finding(place(line), line, message)
            first.setdefault(cell.label, place(cell.line))


Found = Iterator[tuple[int, str]]


class _Checker:
    """Walks one document node by node; keeps the open divs and the level of the section."""

    def __init__(self, document: qmd.Document) -> None:
        self.document = document
        self.titles, self.tabs = div_headings(document)
        self.divs: list[qmd.DivOpen] = []
        self.level = 1 if document.meta.get("title") else 0
        self.unnumbered = document.title.attributes.unnumbered

    def lines(self) -> Found:
        """What the parser of `tools.qmd` can tell, with exact lines."""
        for key in self.document.meta:
            if key not in HEADER:
                yield (
                    1,
                    f"the header may say {' and '.join(HEADER)}, not {key}; settings belong to _quarto.yml",
                )
        for node in self.document.nodes:
            yield from getattr(self, "on_" + type(node).__name__.lower())(node)

    # nodes

    def on_heading(self, node: qmd.Heading) -> Found:
        yield from self.inline(node)
        if not self.starts_block(node.line):
            yield node.line, "a heading needs a blank line before it"
        if node.line in self.titles.values():
            return
        if node.line in self.tabs:
            if node.level != self.level + 1:
                yield node.line, f"a tab of this section is a level-{self.level + 1} heading"
            return
        if self.divs:
            yield node.line, "a section cannot start inside a div"
        yield from self.section(node)

    def section(self, node: qmd.Heading) -> Found:
        if node.level > 3:
            yield node.line, "headings have the levels 1 to 3"
        elif node.level == 1 and self.level:
            yield node.line, "a page has one level-1 heading, its title"
        elif node.level > self.level + 1:
            yield (
                node.line,
                f"a level-{node.level} heading cannot follow level {self.level}; no level is skipped",
            )
        self.level = node.level
        attributes = node.attributes
        for name in attributes.classes:
            if name != "unnumbered":
                yield node.line, f"a heading may be .unnumbered, not .{name}"
        for key in attributes.pairs:
            if key != "covers":
                yield node.line, f"a heading may say covers=..., not {key}=..."
        if attributes.id and not (attributes.id.startswith("sec-") and LABEL.fullmatch(attributes.id)):
            yield node.line, f"the id of a section is sec- and lower-case words, not {attributes.id}"
        elif not attributes.id and node.level < 3 and not self.unnumbered:
            yield node.line, "this heading needs an id: `{#sec-name}`"
        if node.text.endswith("}"):
            yield node.line, "the braces after this heading cannot be read"

    def on_divopen(self, node: qmd.DivOpen) -> Found:
        if not self.starts_block(node.line):
            yield node.line, "a div needs a blank line before it"
        self.divs.append(node)
        attributes = node.attributes
        if attributes.bad:
            yield node.line, f"the braces of this div cannot be read: {attributes.bad}"
            return
        kind = qmd.kind_of(attributes.id)
        if attributes.id and (kind not in ("exr", "sol") or not LABEL.fullmatch(attributes.id)):
            yield node.line, f"the id of a div is exr- or sol- and lower-case words, not {attributes.id}"
        yield from self.classes(node, allowed=("kind",) if kind == "exr" else ())
        if kind == "exr" and attributes.pairs.get("kind") not in KINDS:
            yield node.line, f'an exercise says kind="...", one of {", ".join(KINDS)}'
        if not attributes.id and not attributes.classes:
            yield node.line, "this div says nothing; it needs a class"

    def classes(self, node: qmd.DivOpen, allowed: tuple[str, ...]) -> Found:
        attributes = node.attributes
        keys = list(allowed)
        for name in attributes.classes:
            if name in PLANNED:
                yield node.line, f"the div .{name} is planned, but neither engine can render it yet"
            elif name not in DIVS:
                known = ", ".join(f".{known}" for known in DIVS)
                yield node.line, f"the div .{name} is not on the list: {known}"
            keys += DIVS.get(name, ())
        for key, value in attributes.pairs.items():
            if key not in keys:
                yield node.line, f"this div may not say {key}=..."
            if key == "collapse" and value not in ("true", "false"):
                yield node.line, f'collapse is "true" or "false", not {value!r}'
        if attributes.hides and not any(key in CONDITIONS for key in attributes.pairs):
            yield node.line, f"conditional content says when: {', '.join(CONDITIONS)}"

    def on_divclose(self, node: qmd.DivClose) -> Found:
        self.divs.pop()
        yield from ()

    def on_cell(self, node: qmd.Cell) -> Found:
        if node.language != "python":
            yield node.line, f"only Python cells are executed, not {node.language}"
        if node.braces != f"{{{node.language}}}":
            yield node.line, f"options stand on `#|` lines, not in the braces: {node.braces}"
        if self.document.lines[node.line - 1].startswith((" ", "\t")):
            yield node.line, "a code cell starts at the left margin"
        if not self.starts_block(node.line):
            yield node.line, "a code cell needs a blank line before it"
        for div in self.divs:
            if qmd.kind_of(div.attributes.id) == "exr":
                yield node.line, "an exercise holds no code cell; show code in a plain ```python block"
            if div.attributes.hides:
                yield (
                    node.line,
                    "conditional content holds no code cell: the notebook is the same for everybody",
                )
        yield from self.shortcodes(node)
        yield from self.options(node)

    def options(self, node: qmd.Cell) -> Found:
        label = node.options.get("label")
        if label is None:
            yield node.line, "this cell has no label; add a line `#| label: name`"
        elif not isinstance(label, str) or not LABEL.fullmatch(label) or len(label) > LABEL_LENGTH:
            message = f"a label is lower-case words joined by hyphens, {LABEL_LENGTH} characters at most"
            yield node.option_lines.get("label", node.line), f"{message}, not {label!r}"
        elif label.split("-")[0] in RESERVED:
            message = f"Quarto takes a label that starts with {label.split('-')[0]}- for something else"
            yield node.option_lines.get("label", node.line), message
        for key, value in node.options.items():
            line = node.option_lines.get(str(key), node.line)
            yield from ((line, message) for message in _option_problems(key, value))
        kind = qmd.kind_of(node.label)
        wanted = {"fig": ("fig-cap", "fig-alt"), "tbl": ("tbl-cap",)}.get(kind, ())
        for key in wanted:
            if not str(node.options.get(key) or "").strip():
                yield node.line, f"the cell {node.label} needs {key}"
        for key in ("fig-cap", "fig-alt", "tbl-cap"):
            if key in node.options and key not in wanted:
                yield node.option_lines.get(key, node.line), f"{key} needs a label that starts with {key[:4]}"
        if wanted and any(node.option(key) is False for key in ("eval", "output", "include")):
            yield node.line, f"the cell {node.label} shows nothing, so nothing can refer to it"

    def shortcodes(self, node: qmd.Cell | qmd.CodeBlock) -> Found:
        """Quarto takes a file in even where the line is meant to be shown as code."""
        for line in range(node.line, node.last + 1):
            if ANY_INCLUDE.match(self.document.lines[line - 1].strip()):
                yield line, "an include inside code; it stands between blank lines of text"

    def on_codeblock(self, node: qmd.CodeBlock) -> Found:
        yield from self.shortcodes(node)
        if "{{" in node.info:
            yield node.line, "to show a cell, put it in a longer plain fence, not in double braces"
        elif re.match(r"\{=", node.info):
            yield node.line, f"raw {node.info[2:].rstrip('}')} is not on the list"
        elif node.marker[0] == "~" and node.info.startswith("{"):
            yield node.line, "a cell that is executed has a fence of backticks"
        elif not re.fullmatch(r"[\w+#.-]*", node.info):
            yield node.line, f"a code block names its language and nothing else, not {node.info}"

    def on_math(self, node: qmd.Math) -> Found:
        yield from self.tex(self.document.source(node.line, node.last), node.line)
        if node.id and not (node.id.startswith("eq-") and LABEL.fullmatch(node.id)):
            yield node.last, f"the id of an equation is eq- and lower-case words, not {node.id}"

    def on_prose(self, node: qmd.Prose) -> Found:
        yield from self.inline(node)
        for offset, line in enumerate(node.text.split("\n")):
            if re.match(r"\s*:::", line):
                yield node.line + offset, "this div fence cannot be read; write `::: {.class}` or `:::`"
            if RULE.fullmatch(line):
                yield (
                    node.line + offset,
                    "a line of dashes, stars or equal signs: no rule, no underlined heading",
                )
            if re.match(r"\s*\+[-=+:]{3,}\+\s*$", line):
                yield node.line + offset, "a grid table; only pipe tables are on the list"

    # text

    def starts_block(self, line: int) -> bool:
        """Whether a block can start here: after a blank line, a div fence or the header."""
        before = self.document.lines[line - 2] if line > self.document.body_line else ""
        return not before.strip() or bool(qmd.DIV.match(before))

    def inline(self, node: qmd.Prose | qmd.Heading) -> Found:
        text = self.document.source(node.line, node.last)
        for span in qmd.inline_spans(text, node.line):
            if span.kind == "comment":
                yield span.line, "an HTML comment"
            elif span.kind == "math":
                yield from self.tex(span.text, span.line)
            elif span.kind == "escape" and span.text.isalpha():
                yield span.line, f"LaTeX outside math: \\{span.text}..."
            elif span.kind == "text":
                after_code = text[: span.start].endswith("`")
                for at, message in _text_problems(span.text, after_code):
                    yield span.line + span.text.count("\n", 0, at), message
        for match in REFERENCE_THEN_CITATION.finditer(text):
            line = node.line + text.count("\n", 0, match.start())
            yield line, "a citation straight after a reference is lost; put a word between them"

    def tex(self, tex: str, line: int) -> Found:
        for match in re.finditer(r"\\begin\{([^{}]*)\}", tex):
            if match[1] not in ENVIRONMENTS:
                at = line + tex.count("\n", 0, match.start())
                yield at, f"the environment {match[1]} is not on the list: {', '.join(ENVIRONMENTS)}"
        if "{python}" in tex:
            yield line, "an inline expression cannot stand inside math"
        for match in re.finditer(r"\\(?:tag|label|ref|eqref)\b", tex):
            yield (
                line + tex.count("\n", 0, match.start()),
                f"{match[0]} in math; numbers come from {{#eq-name}}",
            )

    def tree(self) -> Found:
        """A second look with pandoc: elements off the list, divs it does not see; lines are a best guess."""
        tree = pandoc.read(_for_pandoc(self.document))
        elements = list(_elements(tree["blocks"]))
        for kind, content in elements:
            if kind in ELEMENTS:
                yield self.line_of(content), f"not on the list: {ELEMENTS[kind]}"
        seen = [content[0] for kind, content in elements if kind == "Div"]
        ours = [node for node in self.document.nodes if isinstance(node, qmd.DivOpen)]
        for node, theirs in zip_longest(ours, seen):
            if (
                node is None
                or theirs is None
                or (node.attributes.id, *node.attributes.classes)
                != (
                    theirs[0],
                    *theirs[1],
                )
            ):
                line = node.line if node else len(self.document.lines)
                yield line, "pandoc does not see this div here; check the fences and blank lines around it"
                break

    def line_of(self, content: Any) -> int:
        """The line that holds the most words of an element, the first such line."""
        words = set(re.findall(r"[^\s\"'\\]{2,}", _stringify(content)))
        numbers = range(self.document.body_line, len(self.document.lines) + 1)
        return max(numbers, key=lambda n: sum(word in self.document.lines[n - 1] for word in words))


def _option_problems(key: Any, value: Any) -> Iterator[str]:
    if key not in OPTIONS:
        yield f"the cell option {key} is not on the list: {', '.join(OPTIONS)}"
    elif key in SWITCHES and not isinstance(value, bool):
        yield f"{key} is true or false, not {value!r}"
    elif key in TEXTS and not isinstance(value, str):
        yield f"{key} is text, not {value!r}; put it in quotes"
    elif key == "code-fold" and value not in (True, False, "show"):
        yield f"code-fold is true, false or show, not {value!r}"
    elif key == "tags" and not (isinstance(value, list) and all(isinstance(tag, str) for tag in value)):
        yield f"tags is a list of words, not {value!r}"
    if "{python}" in str(value):
        yield f"an inline expression is not evaluated in {key}"


def _text_problems(text: str, after_code: bool) -> Iterator[tuple[int, str]]:
    """Positions and messages of what a piece of plain text may not hold."""
    for match in HTML.finditer(text):
        yield match.start(), f"raw HTML: {match[0]}"
    for match in re.finditer(r"\{\{<.*?(?:>\}\}|$)", text):
        yield match.start(), f"a shortcode: {match[0]}"
    for match in re.finditer(r"!\[", text):
        yield match.start(), "an image; figures are made by code cells"
    for match in re.finditer(r"~~", text):
        yield match.start(), "struck-out text"
    for match in re.finditer(r"\]\{", text):
        yield match.start(), "a span with attributes"
    for match in re.finditer(r"\{#eq-[^}]*\}?", text):
        yield match.start(), f"{match[0]} must follow the closing `$$` of a block that starts on its own line"
    if after_code and text.startswith(("{.", "{=", "{#")):
        yield 0, "attributes or a raw format after inline code"
    for match in LINK.finditer(text):
        if not re.match(r"https?:|mailto:", match["url"]):
            yield (
                match.start(),
                f"a link to {match['url'] or 'nowhere'}; other places of the book are linked by @sec-...",
            )


def _for_pandoc(document: qmd.Document) -> str:
    """The page with cells as plain code blocks, line for line."""
    lines = list(document.lines)
    lines[: document.body_line - 1] = [""] * (document.body_line - 1)
    for cell in document.cells:
        ticks = re.match(r"\s*`+", lines[cell.line - 1])[0]
        lines[cell.line - 1] = ticks + "python"
    return "\n".join(lines)


def _elements(part: Any) -> Iterator[tuple[str, Any]]:
    """All elements of a syntax tree, outer before inner."""
    if isinstance(part, list):
        for item in part:
            yield from _elements(item)
    elif isinstance(part, dict):
        if "t" in part:
            yield part["t"], part.get("c")
        for value in part.values():
            yield from _elements(value)


def _stringify(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, list):
        return " ".join(_stringify(item) for item in part)
    if isinstance(part, dict):
        return _stringify(part.get("c", ""))
    return ""
