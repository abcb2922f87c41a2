"""Turn a chapter's Quarto markdown into the markdown that Jupyter shows.

Divs, references, citations, footnotes and attributes mean nothing to Jupyter.  Pandoc parses the
chapter once, this module flattens the tree, and pandoc writes it again.
"""

from __future__ import annotations

import re
from typing import Any

from tools import pandoc, qmd, terminal_math
from tools.book import Page
from tools.citations import Bibliography
from tools.references import NAMES, Registry, shown

Tree = dict[str, Any]

MARK = "DENSEMARK"
MARK_LINE = re.compile(rf"^{MARK}(\d{{4}})X$", re.MULTILINE)
WIDE_SPACE = re.compile("[\u2000-\u200a\u202f\u205f]+")
OUTPUT = "commonmark+pipe_tables+tex_math_dollars+strikeout"
CALLOUTS = {
    "note": "Note",
    "tip": "Tip",
    "warning": "Warning",
    "important": "Important",
    "caution": "Caution",
}
STYLES = ("Emph", "Strong", "Strikeout", "Superscript", "Subscript")
DISCLOSED = {"hint": "Hint", "solution": "Solution"}


def mark(number: int) -> str:
    """A paragraph that survives the conversion and says where the text is to be cut."""
    return f"{MARK}{number:04d}X"


def readable(text: str, page: Page, registry: Registry, bibliography: Bibliography) -> dict[int, str]:
    """Convert marked text and cut it at the marks: mark number -> the text that follows it."""
    return _converted(text, _Flattener(page, registry, bibliography), OUTPUT)


def plain(text: str, page: Page, registry: Registry, bibliography: Bibliography) -> dict[int, str]:
    """Like `readable`, for a terminal: no marks of Markdown, formulas in letters where pandoc knows them."""
    found = _converted(text, _PlainFlattener(page, registry, bibliography), "plain")
    return {number: WIDE_SPACE.sub(" ", body) for number, body in found.items()}


def _converted(text: str, flattener: _Flattener, output: str) -> dict[int, str]:
    tree = pandoc.read(text)
    tree["blocks"] = flattener.all(tree["blocks"])
    tree["meta"] = {}
    pieces = MARK_LINE.split(pandoc.write(tree, output))
    return {
        int(number): body.strip("\n").rstrip()
        for number, body in zip(pieces[1::2], pieces[2::2], strict=True)
    }


def reference_text(keys: list[str], bibliography: Bibliography) -> str:
    """The list of the cited works, as markdown for the notebook's last cell."""
    blocks = bibliography.reference_list(keys)
    items = [[_plain(block)] for block in blocks]
    tree = {"pandoc-api-version": [1, 23], "meta": {}, "blocks": [{"t": "BulletList", "c": items}]}
    return pandoc.write(tree, OUTPUT).strip() if items else ""


def _plain(block: Tree) -> Tree:
    return {"t": "Plain", "c": _strip_spans(block["c"])}


def _strip_spans(inlines: list[Tree]) -> list[Tree]:
    out: list[Tree] = []
    for inline in inlines:
        if inline["t"] == "Span":
            out += _strip_spans(inline["c"][1])
        elif inline["t"] in STYLES:
            out.append({"t": inline["t"], "c": _strip_spans(inline["c"])})
        else:
            out.append(inline)
    return out


def words(text: str) -> list[Tree]:
    """Text as inline elements."""
    out: list[Tree] = []
    for index, word in enumerate(text.split(" ")):
        if index:
            out.append({"t": "Space"})
        if word:
            out.append({"t": "Str", "c": word})
    return out


def strong(inlines: list[Tree]) -> Tree:
    return {"t": "Strong", "c": inlines}


def paragraph(*inlines: Tree) -> Tree:
    return {"t": "Para", "c": list(inlines)}


def raw(html: str, kind: str = "RawBlock") -> Tree:
    return {"t": kind, "c": ["html", html]}


def _is_mark(block: Tree) -> bool:
    if block["t"] != "Para" or len(block["c"]) != 1 or block["c"][0]["t"] != "Str":
        return False
    return bool(MARK_LINE.fullmatch(block["c"][0]["c"]))


class _Flattener:
    """Rewrites one page's blocks; remembers the heading level and the footnotes until the next mark."""

    def __init__(self, page: Page, registry: Registry, bibliography: Bibliography) -> None:
        self.page = page
        self.registry = registry
        self.bibliography = bibliography
        self.level = 1
        self.quoted = 0
        self.note_count = 0
        self.notes: list[list[Tree]] = []

    def all(self, blocks: list[Tree]) -> list[Tree]:
        return [*self.blocks(blocks), *self.flush_notes()]

    def blocks(self, blocks: list[Tree]) -> list[Tree]:
        return [new for block in blocks for new in self.block(block)]

    def block(self, block: Tree) -> list[Tree]:
        if _is_mark(block):
            return [*self.flush_notes(), block]
        handler = getattr(self, "on_" + block["t"].lower(), None)
        return handler(block["c"]) if handler else [block]

    def flush_notes(self) -> list[Tree]:
        blocks = [block for note in self.notes for block in note]
        self.notes = []
        return blocks

    # blocks

    def on_para(self, content: list[Tree]) -> list[Tree]:
        return [{"t": "Para", "c": self.inlines(content)}]

    def on_plain(self, content: list[Tree]) -> list[Tree]:
        return [{"t": "Plain", "c": self.inlines(content)}]

    def on_lineblock(self, content: list[list[Tree]]) -> list[Tree]:
        return [{"t": "LineBlock", "c": [self.inlines(line) for line in content]}]

    def on_header(self, content: list[Any]) -> list[Tree]:
        self.level = content[0]
        return [self.heading(content[0], self.inlines(content[2]))]

    def heading(self, level: int, inlines: list[Tree]) -> Tree:
        return {"t": "Header", "c": [min(level, 6), ["", [], []], inlines]}

    def on_codeblock(self, content: list[Any]) -> list[Tree]:
        (_, classes, _), text = content
        return [{"t": "CodeBlock", "c": [["", classes[:1], []], text]}]

    def on_rawblock(self, content: list[Any]) -> list[Tree]:
        return []

    def on_blockquote(self, content: list[Tree]) -> list[Tree]:
        return self.quote(content)

    def on_bulletlist(self, content: list[list[Tree]]) -> list[Tree]:
        return [{"t": "BulletList", "c": [self.blocks(item) for item in content]}]

    def on_orderedlist(self, content: list[Any]) -> list[Tree]:
        return [{"t": "OrderedList", "c": [content[0], [self.blocks(item) for item in content[1]]]}]

    def on_definitionlist(self, content: list[Any]) -> list[Tree]:
        items = []
        for term, definitions in content:
            name = paragraph(strong(self.inlines(term)))
            items.append([name, *(block for definition in definitions for block in self.blocks(definition))])
        return [{"t": "BulletList", "c": items}]

    def on_figure(self, content: list[Any]) -> list[Tree]:
        return self.blocks(content[2])

    def on_table(self, content: list[Any]) -> list[Tree]:
        (identifier, _, _), (_, caption), *rest = content
        target = self.registry.get(identifier)
        above = [strong(words(target.label + "."))] if target else []
        for block in caption:
            above += [{"t": "Space"}] if above else []
            above += self.inlines(block["c"])
        table = {"t": "Table", "c": [["", [], []], [None, []], *(self.table_part(part) for part in rest)]}
        return [paragraph(*above), table] if above else [table]

    def table_part(self, part: Any) -> Any:
        if not isinstance(part, list):
            return part
        if part and all(isinstance(item, dict) and item["t"] in ("Plain", "Para") for item in part):
            return self.blocks(part)
        return [self.table_part(item) for item in part]

    def on_div(self, content: list[Any]) -> list[Tree]:
        (identifier, classes, pairs), blocks = content
        attributes = qmd.Attributes(identifier, tuple(classes), dict(pairs))
        if not shown(attributes, None):
            return _marks(blocks)
        if qmd.kind_of(identifier) in ("exr", "sol"):
            return self.exercise(identifier, blocks)
        for name in classes:
            if name.startswith("callout-"):
                return self.callout(name.removeprefix("callout-"), attributes, blocks)
            if name == "panel-tabset":
                return self.tabset(blocks)
            if name in DISCLOSED:
                return self.disclosed(DISCLOSED[name], blocks)
        return self.blocks(blocks)

    def exercise(self, identifier: str, blocks: list[Tree]) -> list[Tree]:
        target = self.registry.get(identifier)
        label = target.label if target else identifier
        asked = self.registry.get("exr-" + identifier.removeprefix("sol-"))
        if asked and identifier.startswith("sol-"):
            label += f" (to {asked.label})"
        title, blocks = _take_heading(blocks)
        inlines = words(f"{label}: ") + self.inlines(title) if title else words(label)
        level = self.level
        new = [self.heading(level + 1, inlines), *self.blocks(blocks)]
        self.level = level
        return new

    def callout(self, kind: str, attributes: qmd.Attributes, blocks: list[Tree]) -> list[Tree]:
        title, blocks = _take_heading(blocks)
        if "title" in attributes.pairs:
            title = self.parsed(attributes.pairs["title"])
        title = title or words(CALLOUTS.get(kind, kind.capitalize()))
        return self.quote([paragraph(strong(title)), *blocks])

    def parsed(self, text: str) -> list[Tree]:
        blocks = pandoc.read(text)["blocks"] if re.search(r"[`*_$@\\]", text) else []
        return blocks[0]["c"] if blocks else words(text)

    def tabset(self, blocks: list[Tree]) -> list[Tree]:
        level = self.level
        named = [paragraph(strong(block["c"][2])) if block["t"] == "Header" else block for block in blocks]
        new = self.blocks(named)
        self.level = level
        return new

    def disclosed(self, summary: str, blocks: list[Tree]) -> list[Tree]:
        if _marks(blocks):
            return self.quote([paragraph(strong(words(summary))), *blocks])
        return [
            raw(f"<details>\n<summary>{summary}</summary>"),
            *self.blocks(blocks),
            *self.flush_notes(),
            raw("</details>"),
        ]

    def quote(self, blocks: list[Tree]) -> list[Tree]:
        """A block quote that is cut where a code cell stands inside."""
        self.quoted += 1
        out: list[Tree] = []
        run: list[Tree] = []
        for block in self.blocks(blocks):
            if not _is_mark(block):
                run.append(block)
                continue
            out += [{"t": "BlockQuote", "c": run}] if run else []
            out.append(block)
            run = []
        self.quoted -= 1
        return out + ([{"t": "BlockQuote", "c": run}] if run else [])

    # inlines

    def inlines(self, inlines: list[Tree]) -> list[Tree]:
        out: list[Tree] = []
        skip = 0
        for index, inline in enumerate(inlines):
            if skip:
                skip -= 1
            elif inline["t"] == "Math":
                tag, skip = self.equation_tag(inlines[index + 1 : index + 3])
                out.append(self.math(inline["c"], tag))
            elif inline["t"] in STYLES:
                out.append({"t": inline["t"], "c": self.inlines(inline["c"])})
            else:
                handler = getattr(self, "in_" + inline["t"].lower(), None)
                out += handler(inline["c"]) if handler else [inline]
        return out

    def equation_tag(self, following: list[Tree]) -> tuple[str, int]:
        """The number of the equation when `{#eq-...}` follows it, and how many elements that takes."""
        for count, inline in enumerate(following, start=1):
            if inline["t"] == "Str" and inline["c"].startswith("{#eq-") and inline["c"].endswith("}"):
                target = self.registry.get(inline["c"][2:-1])
                return (f"\\tag{{{target.number}}}" if target else ""), count
            if inline["t"] not in ("Space", "SoftBreak"):
                break
        return "", 0

    def math(self, content: list[Any], tag: str) -> Tree:
        kind, tex = content
        if tag:
            tex = f"{tex.rstrip()} {tag}" + ("\n" if tex.endswith("\n") else " ")
        if self.quoted or kind["t"] == "InlineMath":
            tex = " ".join(tex.split("\n"))
        return {"t": "Math", "c": [kind, tex]}

    def in_smallcaps(self, content: list[Tree]) -> list[Tree]:
        return self.inlines(content)

    def in_span(self, content: list[Any]) -> list[Tree]:
        return self.inlines(content[1])

    def in_quoted(self, content: list[Any]) -> list[Tree]:
        left, right = "“”" if content[0]["t"] == "DoubleQuote" else "‘’"
        return [{"t": "Str", "c": left}, *self.inlines(content[1]), {"t": "Str", "c": right}]

    def in_code(self, content: list[Any]) -> list[Tree]:
        return [{"t": "Code", "c": [["", [], []], content[1]]}]

    def in_rawinline(self, content: list[Any]) -> list[Tree]:
        return []

    def in_link(self, content: list[Any]) -> list[Tree]:
        _, inlines, (url, title) = content
        if not re.match(r"[a-z]+:", url):
            return self.inlines(inlines)
        return [{"t": "Link", "c": [["", [], []], self.inlines(inlines), [url, title]]}]

    def in_note(self, content: list[Tree]) -> list[Tree]:
        self.note_count += 1
        sign = raw(f"<sup>{self.note_count}</sup>", "RawInline")
        blocks = self.blocks(content)
        first = (
            paragraph(sign, {"t": "Space"}, *blocks[0]["c"])
            if blocks and "c" in blocks[0]
            else paragraph(sign)
        )
        self.notes.append([first, *blocks[1:]])
        return [sign]

    def in_cite(self, content: list[Any]) -> list[Tree]:
        citations = content[0]
        out: list[Tree] = []
        works: list[Tree] = []
        for citation in citations:
            if qmd.kind_of(citation["citationId"]) in NAMES:
                out += ([*words(", ")] if out else []) + self.cross_reference(citation)
            elif citation["citationMode"]["t"] == "AuthorInText":
                out += ([{"t": "Space"}] if out else []) + self.author_in_text(citation)
            else:
                works += (words("; ") if works else []) + self.work(citation)
        if works:
            out += ([{"t": "Space"}] if out else []) + [
                {"t": "Str", "c": "("},
                *works,
                {"t": "Str", "c": ")"},
            ]
        return out

    def cross_reference(self, citation: Tree) -> list[Tree]:
        target = self.registry[citation["citationId"]]
        if citation["citationPrefix"]:
            return [*self.inlines(citation["citationPrefix"]), {"t": "Space"}, *words(target.number)]
        bare = citation["citationMode"]["t"] == "SuppressAuthor"
        return words(target.number if bare else target.label)

    def author_in_text(self, citation: Tree) -> list[Tree]:
        key = citation["citationId"]
        suffix = self.suffix(citation)
        start = f"{self.bibliography.authors(key)} ({self.bibliography.year(key)}"
        return [*words(start), *suffix, {"t": "Str", "c": ")"}]

    def work(self, citation: Tree) -> list[Tree]:
        key = citation["citationId"]
        text = self.bibliography.year(key)
        if citation["citationMode"]["t"] != "SuppressAuthor":
            text = f"{self.bibliography.authors(key)}, {text}"
        prefix = self.inlines(citation["citationPrefix"])
        return [*prefix, *([{"t": "Space"}] if prefix else []), *words(text), *self.suffix(citation)]

    def suffix(self, citation: Tree) -> list[Tree]:
        """What stands behind the year, always with a comma before it."""
        suffix = self.inlines(citation["citationSuffix"])
        if not suffix or (suffix[0]["t"] == "Str" and suffix[0]["c"].startswith(",")):
            return suffix
        gap = [] if suffix[0]["t"] == "Space" else [{"t": "Space"}]
        return [{"t": "Str", "c": ","}, *gap, *suffix]


class _PlainFlattener(_Flattener):
    """For a terminal: formulas in lines that pandoc can spell, and no raw HTML, which it drops."""

    def inlines(self, inlines: list[Tree]) -> list[Tree]:
        return [new for inline in super().inlines(inlines) for new in self.spelled(inline)]

    def spelled(self, inline: Tree) -> list[Tree]:
        if inline["t"] != "Math":
            return [inline]
        tex, tag, number = inline["c"][1].partition("\\tag{")
        shown = terminal_math.lines(tex)
        if tag and shown:
            shown[-1] += f"\\quad({number.rpartition('}')[0]})"
        rows = [{"t": "Math", "c": [{"t": "InlineMath"}, line]} for line in shown]
        if inline["c"][0]["t"] == "InlineMath":
            return rows
        return [{"t": "LineBreak"}, *(new for row in rows for new in (row, {"t": "LineBreak"}))]

    def in_note(self, content: list[Tree]) -> list[Tree]:
        super().in_note(content)
        sign = {"t": "Str", "c": f"[{self.note_count}]"}
        self.notes[-1][0]["c"][0] = sign
        return [sign]

    def disclosed(self, summary: str, blocks: list[Tree]) -> list[Tree]:
        return [paragraph(strong(words(summary))), *self.blocks(blocks)]


def _marks(blocks: list[Tree]) -> list[Tree]:
    """The marks inside blocks, at any depth of divs and quotes."""
    found: list[Tree] = []
    for block in blocks:
        if _is_mark(block):
            found.append(block)
        elif block["t"] == "Div":
            found += _marks(block["c"][1])
        elif block["t"] == "BlockQuote":
            found += _marks(block["c"])
    return found


def _take_heading(blocks: list[Tree]) -> tuple[list[Tree], list[Tree]]:
    """Split off a heading that stands first."""
    if blocks and blocks[0]["t"] == "Header":
        return blocks[0]["c"][2], blocks[1:]
    return [], blocks
