"""Parse a .qmd file into headings, cells, blocks, divs and prose, each with its line number.

A line number counts the lines of the whole page, included files put in.  `Document.place` says in which
file a line stands.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from tools.errors import BuildError
from tools.source import FENCE, INDENTED_FENCE, Part, normal, read_source

DIV = re.compile(r"^ {0,3}(?P<colons>:{3,})(?P<rest>.*)$")
HEADING = re.compile(r"^(?P<marks>#{1,6})[ \t]+(?P<text>.*?)(?:[ \t]+#+)?[ \t]*$")
TRAILING_ATTRIBUTES = re.compile(r"[ \t]*(?P<braces>\{[^{}]*\})$")
LANGUAGE = re.compile(r"^\{(?P<language>[A-Za-z][\w.-]*)(?P<rest>[ ,].*)?\}$")
ATTRIBUTE = re.compile(
    r"""\s*(?:
        \#(?P<id>[^\s{}]+)
      | \.(?P<cls>[^\s{}]+)
      | (?P<key>[A-Za-z][\w:.-]*)=(?P<value>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s{}"']+)
      | (?P<dash>-(?=[\s}]|$))
    )""",
    re.VERBOSE,
)
OPTION = re.compile(r"^#\|(?P<yaml>.*)$")
IDENTIFIER = re.compile(r"^([a-z]+)-")


@dataclass(frozen=True)
class Attributes:
    """The pieces of `{#id .class key="value"}`; `bad` is what could not be read."""

    id: str = ""
    classes: tuple[str, ...] = ()
    pairs: dict[str, str] = field(default_factory=dict)
    bad: str = ""

    @property
    def unnumbered(self) -> bool:
        return "unnumbered" in self.classes

    @property
    def hides(self) -> bool:
        return "content-visible" in self.classes or "content-hidden" in self.classes


@dataclass(frozen=True)
class Node:
    """A stretch of whole lines; `line` and `last` count from 1, `depth` is the number of open divs."""

    line: int
    last: int
    depth: int


@dataclass(frozen=True)
class Heading(Node):
    level: int
    text: str
    attributes: Attributes


@dataclass(frozen=True)
class Cell(Node):
    """An executable fence; `code_line` is the file line of the first line of `code`."""

    language: str
    options: dict[str, Any]
    code: str
    code_line: int
    option_lines: dict[str, int]
    braces: str = ""

    @property
    def label(self) -> str:
        return str(self.options.get("label") or "")

    def option(self, name: str, default: Any = True) -> Any:
        return self.options.get(name, default)


@dataclass(frozen=True)
class CodeBlock(Node):
    """A fence that is not executed."""

    marker: str
    info: str
    code: str


@dataclass(frozen=True)
class DivOpen(Node):
    attributes: Attributes


@dataclass(frozen=True)
class DivClose(Node):
    pass


@dataclass(frozen=True)
class Math(Node):
    """A display equation `$$ ... $$ {#eq-id}`; `id` is empty when it has no number."""

    tex: str
    id: str


@dataclass(frozen=True)
class Prose(Node):
    """Everything else: paragraphs, lists, tables, footnotes, blank lines."""

    text: str


@dataclass(frozen=True)
class Span:
    """A piece of prose:  text, code, expression, math, comment or escape, start and end count characters."""

    kind: str
    text: str
    line: int
    start: int
    end: int


@dataclass(frozen=True)
class Document:
    """A parsed file; `text` has line feeds only, `meta` is the YAML header, `nodes` are the rest in order.

    `parts` says which lines stand in which file: in the page itself or in one that it includes.
    """

    path: Path
    name: str
    text: str
    meta: dict[str, Any]
    body_line: int
    nodes: tuple[Node, ...]
    parts: tuple[Part, ...]

    @cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    def source(self, first: int, last: int) -> str:
        """The lines from `first` to `last`, both counted, without the final line feed."""
        return "\n".join(self.lines[first - 1 : last])

    @property
    def cells(self) -> list[Cell]:
        return [node for node in self.nodes if isinstance(node, Cell)]

    @property
    def headings(self) -> list[Heading]:
        return [node for node in self.nodes if isinstance(node, Heading)]

    @cached_property
    def title(self) -> Heading:
        """The chapter's title: the YAML `title`, else the first level-1 heading."""
        if self.meta.get("title"):
            text, attributes = split_attributes(str(self.meta["title"]))
            return Heading(1, 1, 0, 1, text, attributes)
        for heading in self.headings:
            if heading.level == 1:
                return heading
        raise BuildError(f"{self.name}:1: no title; start the page with `# Title {{#sec-name}}`")

    def spans(self) -> Iterator[Span]:
        """Inline pieces of all prose, headings included, in document order."""
        for node in self.nodes:
            if isinstance(node, Prose | Heading):
                yield from inline_spans(self.source(node.line, node.last), node.line)

    def expressions(self) -> list[Span]:
        """Inline `{python}` expressions; `text` is the expression itself."""
        return [span for span in self.spans() if span.kind == "expression"]

    def part(self, line: int) -> Part:
        """The stretch of lines, all in one file, that a line of the page belongs to."""
        return _part(self.parts, line)

    def place(self, line: int) -> str:
        """Where a line of the page really stands, as messages say it: "chapters/01-neuron.qmd:7"."""
        return _place(self.parts, line)

    def error(self, line: int, message: str) -> BuildError:
        return BuildError(f"{self.place(line)}: {message}")


def _part(parts: tuple[Part, ...], line: int) -> Part:
    return parts[max(0, bisect_right(parts, line, key=lambda part: part.first) - 1)]


def _place(parts: tuple[Part, ...], line: int) -> str:
    part = _part(parts, line)
    return f"{part.name}:{part.line + line - part.first}"


def read(path: Path, root: Path | None = None) -> Document:
    """Parse the file at `path`, what it includes put in; messages name files relative to `root`.

    Raises BuildError with file and line for text that is not UTF-8, a file that cannot be included, a
    broken YAML header or option line, and a fence or div that is never closed.
    """
    source = read_source(path, root)
    return _document(source.text, source.parts)


def parse(text: str, path: Path | str = "page.qmd", name: str = "") -> Document:
    """Parse .qmd text, which includes nothing.

    >>> page = parse("# A {#sec-a}\\n\\n```{python}\\n#| label: one\\n1 + 1\\n```\\n")
    >>> [type(node).__name__ for node in page.nodes]
    ['Heading', 'Prose', 'Cell', 'Prose']
    >>> page.cells[0].label, page.cells[0].code_line
    ('one', 5)
    """
    return _document(normal(text), (Part(1, Path(path), name or Path(path).as_posix(), 1),))


def _document(text: str, parts: tuple[Part, ...]) -> Document:
    page = parts[0]
    lines = text.split("\n")
    meta, body = _header(lines, page.name)
    return Document(
        page.path, page.name, text, meta, body + 1, tuple(_Scanner(lines, parts).scan(body)), parts
    )


def _header(lines: list[str], name: str) -> tuple[dict[str, Any], int]:
    if lines[0].rstrip() != "---":
        return {}, 0
    for index, line in enumerate(lines[1:], start=1):
        if line.rstrip() in ("---", "..."):
            meta = load_yaml("\n".join(lines[1:index]), name, 2, "the YAML header")
            return meta, index + 1
    raise BuildError(f"{name}:1: the YAML header is never closed; end it with a line `---`")


def load_yaml(text: str, name: str, line: int, what: str) -> dict[str, Any]:
    """Read a YAML mapping that starts at `line` of the file `name`."""
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        at = line + (mark.line if mark else 0)
        problem = getattr(error, "problem", None) or "cannot be read"
        raise BuildError(f"{name}:{at}: {what} is not valid YAML: {problem}") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BuildError(f"{name}:{line}: {what} must be lines `name: value`")
    return value


class _Scanner:
    """Walks the lines once and yields nodes; knows which fences, divs and equations are open."""

    def __init__(self, lines: list[str], parts: tuple[Part, ...]) -> None:
        self.lines = lines
        self.parts = parts
        self.open_divs: list[int] = []
        self.prose_start: int | None = None

    @property
    def depth(self) -> int:
        return len(self.open_divs)

    def error(self, line: int, message: str) -> BuildError:
        return BuildError(f"{_place(self.parts, line)}: {message}")

    def scan(self, index: int) -> Iterator[Node]:
        end = len(self.lines)
        while index < end:
            node = self._node(index)
            if node is None:
                if self.prose_start is None:
                    self.prose_start = index
                index += 1
                continue
            yield from self._prose(index)
            yield node
            index = node.last
        yield from self._prose(end)
        if self.open_divs:
            raise self.error(self.open_divs[-1], "this div (:::) is never closed")

    def _prose(self, index: int) -> Iterator[Node]:
        if self.prose_start is not None:
            text = "\n".join(self.lines[self.prose_start : index])
            yield Prose(self.prose_start + 1, index, self.depth, text)
            self.prose_start = None

    def _node(self, index: int) -> Node | None:
        line = self.lines[index]
        if (match := FENCE.match(line)) and not ("`" in match["marker"] and "`" in match["info"]):
            return self._fence(index, match)
        if match := INDENTED_FENCE.match(line):
            return self._fence(index, match)
        if match := DIV.match(line):
            return self._div(index, match)
        if match := HEADING.match(line):
            text, attributes = split_attributes(match["text"])
            return Heading(index + 1, index + 1, self.depth, len(match["marks"]), text, attributes)
        if line.lstrip().startswith("$$"):
            return self._math(index)
        return None

    def _fence(self, index: int, match: re.Match[str]) -> Node:
        marker, info = match["marker"], match["info"].strip()
        closing = re.compile(rf"^[ \t]*{re.escape(marker[0])}{{{len(marker)},}}[ \t]*$")
        for last in range(index + 1, len(self.lines)):
            if closing.match(self.lines[last]):
                break
        else:
            raise self.error(index + 1, f"this code fence ({marker}) is never closed")
        body = self.lines[index + 1 : last]
        language = LANGUAGE.match(info)
        if language and marker[0] == "`":
            return self._cell(index, last, language["language"], body, info)
        return CodeBlock(index + 1, last + 1, self.depth, marker, info, "\n".join(body))

    def _cell(self, index: int, last: int, language: str, body: list[str], info: str) -> Cell:
        count = 0
        while count < len(body) and OPTION.match(body[count]):
            count += 1
        texts = [OPTION.match(line)["yaml"].removeprefix(" ") for line in body[:count]]
        name, _, line = _place(self.parts, index + 2).rpartition(":")
        options = load_yaml("\n".join(texts), name, int(line), "the block of `#|` lines")
        where = {}
        for offset, text in enumerate(texts):
            if key := re.match(r"([\w-]+)\s*:", text):
                where.setdefault(key[1], index + 2 + offset)
        code = "\n".join(body[count:])
        return Cell(index + 1, last + 1, self.depth, language, options, code, index + 2 + count, where, info)

    def _div(self, index: int, match: re.Match[str]) -> Node | None:
        rest = match["rest"].strip()
        if not rest:
            if not self.open_divs:
                raise self.error(index + 1, "this `:::` closes no open div")
            self.open_divs.pop()
            return DivClose(index + 1, index + 1, self.depth)
        rest = re.sub(r"\s*:+$", "", rest)
        if rest.startswith("{") and rest.endswith("}"):
            attributes = parse_attributes(rest)
        elif re.fullmatch(r"[^\s{}]+", rest):
            attributes = Attributes(classes=(rest,))
        else:
            return None
        node = DivOpen(index + 1, index + 1, self.depth, attributes)
        self.open_divs.append(index + 1)
        return node

    def _math(self, index: int) -> Math | None:
        first = self.lines[index].lstrip()[2:]
        tex: list[str] = []
        for last in range(index, len(self.lines)):
            line = first if last == index else self.lines[last]
            before, found, after = line.partition("$$")
            tex.append(before)
            if not found:
                if last > index and not line.strip() and any("$$" in later for later in self.lines[last:]):
                    start = _place(self.parts, index + 1).rpartition(":")[2]
                    message = f"a blank line inside the equation of line {start};"
                    raise self.error(last + 1, f"{message} close it with `$$` or remove the line")
                continue
            attributes = parse_attributes(after.strip()) if after.strip().startswith("{") else None
            if after.strip() and (attributes is None or attributes.bad):
                return None if last == index else self._stray(last, after)
            identifier = attributes.id if attributes else ""
            return Math(index + 1, last + 1, self.depth, "\n".join(tex).strip("\n"), identifier)
        raise self.error(index + 1, "this equation ($$) is never closed")

    def _stray(self, last: int, after: str) -> Math:
        raise self.error(last + 1, f"only `{{#eq-name}}` may follow the closing `$$`, not {after.strip()!r}")


def split_attributes(text: str) -> tuple[str, Attributes]:
    """Split `Title {#sec-a covers="A1"}` into its text and its attributes.

    >>> split_attributes('Bias {#sec-bias covers="D1 B3"}')[1].pairs
    {'covers': 'D1 B3'}
    """
    match = TRAILING_ATTRIBUTES.search(text)
    if not match:
        return text.strip(), Attributes()
    attributes = parse_attributes(match["braces"])
    if attributes.bad:
        return text.strip(), Attributes()
    return text[: match.start()].strip(), attributes


def parse_attributes(text: str) -> Attributes:
    """Read `{#id .class key="value"}`.

    >>> parse_attributes('{#exr-a .x kind="number"}')
    Attributes(id='exr-a', classes=('x',), pairs={'kind': 'number'}, bad='')
    """
    inner = text.strip()
    if not (inner.startswith("{") and inner.endswith("}")):
        return Attributes(bad=inner)
    inner = inner[1:-1].strip()
    identifier, classes, pairs = "", [], {}
    position = 0
    while position < len(inner):
        match = ATTRIBUTE.match(inner, position)
        if not match:
            return Attributes(bad=inner[position:].strip())
        position = match.end()
        if match["id"]:
            identifier = match["id"]
        elif match["cls"]:
            classes.append(match["cls"])
        elif match["dash"]:
            classes.append("unnumbered")
        else:
            pairs[match["key"]] = _unquote(match["value"])
    return Attributes(identifier, tuple(classes), pairs)


def _unquote(value: str) -> str:
    if value[0] in "\"'":
        return re.sub(r"\\(.)", r"\1", value[1:-1])
    return value


COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
INLINE_MATH = re.compile(r"\$(?![\s$])(?:[^$\\]|\\.)*?(?<![\s\\])\$(?!\d)", re.DOTALL)
DISPLAY_MATH = re.compile(r"\$\$.+?\$\$", re.DOTALL)
BACKTICKS = re.compile(r"`+")
EXPRESSION = re.compile(r"^\{python\}[ \t]+(?P<expression>.+)$", re.DOTALL)
BLANK_LINE = re.compile(r"\n[ \t]*\n")


def inline_spans(text: str, line: int = 1) -> Iterator[Span]:
    """Cut prose into spans; code, math and comments never contain references or expressions.

    >>> [(s.kind, s.text) for s in inline_spans("a `{python} n` of `` `x` ``, $y$")]
    [('text', 'a '), ('expression', 'n'), ('text', ' of '), ('code', '`x`'), ('text', ', '), ('math', 'y')]
    """
    position = start = 0
    while position < len(text):
        found = _special(text, position)
        if found is None:
            position += 1
            continue
        kind, content, end = found
        if start < position:
            yield Span("text", text[start:position], line + text.count("\n", 0, start), start, position)
        yield Span(kind, content, line + text.count("\n", 0, position), position, end)
        position = start = end
    if start < len(text):
        yield Span("text", text[start:], line + text.count("\n", 0, start), start, len(text))


def _special(text: str, position: int) -> tuple[str, str, int] | None:
    """The code span, equation, comment or escape that starts at `position`, if one does."""
    character = text[position]
    if character == "\\" and position + 1 < len(text):
        return "escape", text[position + 1], position + 2
    if character == "`":
        return _code_span(text, position)
    if character == "<" and (match := COMMENT.match(text, position)):
        return "comment", match[0], match.end()
    if character == "$":
        for pattern, marks in ((DISPLAY_MATH, 2), (INLINE_MATH, 1)):
            match = pattern.match(text, position)
            if match and not BLANK_LINE.search(match[0]):
                return "math", match[0][marks:-marks], match.end()
    return None


def _code_span(text: str, position: int) -> tuple[str, str, int]:
    ticks = BACKTICKS.match(text, position)[0]
    for closing in BACKTICKS.finditer(text, position + len(ticks)):
        if closing[0] != ticks:
            continue
        content = text[position + len(ticks) : closing.start()]
        if BLANK_LINE.search(content):
            break
        if len(ticks) == 1 and (match := EXPRESSION.match(content)):
            return "expression", " ".join(match["expression"].split("\n")).strip(), closing.end()
        return "code", content.strip(), closing.end()
    return "escape", ticks, position + len(ticks)


def kind_of(identifier: str) -> str:
    """The prefix of an id: `fig` for `fig-neuron-graph`, empty when there is none."""
    match = IDENTIFIER.match(identifier)
    return match[1] if match else ""
