"""Convert a chapter (.qmd) into a notebook that has not been executed yet.

Every cell of the chapter becomes a code cell, the text between them markdown cells.  A markdown
cell holds the text twice: `metadata.dense.qmd` is the chapter's own markup, which rendering uses;
`source` is the same for reading in Jupyter.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools import exercises, qmd
from tools.book import Book, Page
from tools.citations import Bibliography
from tools.exercises import Exercise
from tools.reading import mark, readable, reference_text
from tools.references import Registry, page_references, section_numbers

VALUE = re.compile(r"DENSEVALUE(\d{4})X")
EXTRAS = {"sklearn": "digits"}
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
LANGUAGE = {
    "name": "python",
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "pygments_lexer": "ipython3",
}


@dataclass
class Piece:
    """One future cell.

    qmd          the chapter's markup, with a token for each inline expression
    reading      what Jupyter shows, with the same tokens
    expressions  the inline expressions as (token number, expression, line)
    cell         the code cell, None for text
    generated    made by the converter; rendering leaves it out
    exercise     for the cell that checks one: the exercise
    """

    id: str = ""
    qmd: str = ""
    reading: str = ""
    expressions: list[tuple[int, str, int]] = field(default_factory=list)
    cell: qmd.Cell | None = None
    generated: bool = False
    exercise: Exercise | None = None

    @property
    def executed(self) -> bool:
        return self.cell is not None and self.cell.option("eval") is not False


@dataclass
class Draft:
    """A converted page: `pieces` in order, the first and the last made by the converter."""

    page: Page
    pieces: list[Piece]


def convert(page: Page, book: Book, registry: Registry, bibliography: Bibliography | None = None) -> Draft:
    """Convert one page; raises BuildError with file and line for what cannot be converted."""
    bibliography = bibliography or load_bibliography(book)
    pieces = _cut(page, book, registry)
    texts = [piece for piece in pieces if not piece.executed and not (piece.cell and piece.qmd)]
    marked = "".join(f"\n\n{mark(number)}\n\n{piece.reading}\n" for number, piece in enumerate(texts))
    for number, reading in readable(marked, page, registry, bibliography).items():
        texts[number].reading = reading
    cited = [ref.key for ref in page_references(page) if ref.kind == "citation"]
    works = reference_text(cited, bibliography)
    codes = [piece.cell.code for piece in pieces if piece.cell]
    pieces = [Piece("about", reading=_about(page, book, codes), generated=True), *pieces]
    if works:
        pieces.append(Piece("references", reading=f"## References\n\n{works}", generated=True))
    _name(pieces)
    return Draft(page, pieces)


def load_bibliography(book: Book) -> Bibliography:
    return _bibliography(book.bibliography, tuple(path.read_bytes() for path in book.bibliography))


@lru_cache(maxsize=8)
def _bibliography(paths: tuple[Path, ...], content: tuple[bytes, ...]) -> Bibliography:
    return Bibliography(paths)


def _cut(page: Page, book: Book, registry: Registry) -> list[Piece]:
    """Cut the page at code cells, at `##` headings that stand in no div, and around exercises with cells."""
    document = page.document
    writer = _Writer(page)
    answers = _Answers(page, book)
    pieces: list[Piece] = []
    if document.meta.get("title"):
        pieces.append(Piece(reading=f"# {writer.numbered(document.title)}"))
    text: list[qmd.Node] = []
    for node in document.nodes:
        if isinstance(node, qmd.Cell):
            pieces += writer.text(text)
            text = []
            pieces += _cell_pieces(node, document, registry)
        elif node.line == answers.first:
            pieces += [*writer.text(text), *answers.introduction()]
            text = [node]
        elif node.line in answers.ends:
            pieces += [*writer.text([*text, node]), *answers.cells(node.line)]
            text = []
        elif isinstance(node, qmd.Heading) and node.level == 2 and node.depth == 0:
            if any(not isinstance(before, qmd.DivClose) and not _blank(before) for before in text):
                pieces += writer.text(text)
                text = []
            text.append(node)
        else:
            text.append(node)
    return pieces + writer.text(text)


class _Answers:
    """Where the exercises stand that the package can check, and the cells that each of them gets."""

    def __init__(self, page: Page, book: Book) -> None:
        self.module = exercises.module_of(book.config)
        self.first = 0
        self.ends: dict[int, Exercise] = {}
        for start, end, identifier in _exercise_divs(page.document):
            if identifier not in book.exercises:
                continue
            if end.depth:
                raise page.document.error(end.line, f"the exercise {identifier} stands inside another div")
            self.first = self.first or start
            self.ends[end.line] = book.exercises[identifier]

    def introduction(self) -> list[Piece]:
        """Before the first exercise: what its cells are for, and the import that they need."""
        how = exercises.HOW.replace("ID", next(iter(self.ends.values())).id)
        source = exercises.import_line(self.module)
        return [
            Piece("exercises-how", reading=how, generated=True),
            _made("exercises-import", "exercise-import", source, self.first),
        ]

    def cells(self, line: int) -> list[Piece]:
        """After the exercise that ends at this line: a cell to write in and a cell that checks."""
        exercise = self.ends[line]
        check = _made(f"check-{exercise.id}", "exercise-check", exercise.check, line)
        check.exercise = exercise
        return [_made(f"answer-{exercise.id}", "exercise-answer", exercise.starter, line), check]


def _made(label: str, tag: str, code: str, line: int) -> Piece:
    """A code cell that stands in no chapter; errors are reported at `line`."""
    cell = qmd.Cell(line, line, 0, "python", {"label": label, "tags": [tag]}, code.rstrip("\n"), line, {})
    return Piece(label, cell=cell, generated=True)


def _exercise_divs(document: qmd.Document) -> Iterator[tuple[int, qmd.DivClose, str]]:
    """The exercises: the line where each begins, with a heading right above it, its end, and its id."""
    start, opening = 0, None
    heading = 0
    for node in document.nodes:
        if opening and isinstance(node, qmd.DivClose) and node.depth == opening.depth:
            yield start, node, opening.attributes.id.removeprefix("exr-")
            opening = None
        elif not opening and isinstance(node, qmd.DivOpen) and qmd.kind_of(node.attributes.id) == "exr":
            start, opening = heading or node.line, node
        if isinstance(node, qmd.Heading) and node.level > 2:
            heading = node.line
        elif not _blank(node):
            heading = 0


def _blank(node: qmd.Node) -> bool:
    return isinstance(node, qmd.Prose) and not node.text.strip()


class _Writer:
    """Writes stretches of text with tokens in place of inline expressions."""

    def __init__(self, page: Page) -> None:
        self.document = page.document
        self.numbers = section_numbers(page)
        self.chapter = page.number or ""
        self.count = 0

    def numbered(self, heading: qmd.Heading) -> str:
        return f"{self.chapter} {heading.text}".strip()

    def text(self, nodes: list[qmd.Node]) -> list[Piece]:
        """The piece that these nodes make; none when they are blank."""
        piece = Piece()
        source, reading = [], []
        for node in nodes:
            if isinstance(node, qmd.Prose | qmd.Heading):
                tokens = self.tokens(node, piece)
            else:
                tokens = self.document.source(node.line, node.last)
            source.append(tokens)
            reading.append(self.for_reading(node, tokens))
        piece.qmd = _trim("\n".join(source))
        piece.reading = "\n".join(reading)
        first = next((node for node in nodes if not _blank(node)), None)
        if isinstance(first, qmd.Heading) or (
            isinstance(first, qmd.DivOpen) and qmd.kind_of(first.attributes.id) == "exr"
        ):
            piece.id = first.attributes.id
        return [piece] if piece.qmd else []

    def tokens(self, node: qmd.Node, piece: Piece) -> str:
        text = self.document.source(node.line, node.last)
        out = []
        for span in qmd.inline_spans(text, node.line):
            if span.kind == "expression":
                piece.expressions.append((self.count, span.text, span.line))
                out.append(f"DENSEVALUE{self.count:04d}X")
                self.count += 1
            else:
                out.append(text[span.start : span.end])
        return "".join(out)

    def for_reading(self, node: qmd.Node, text: str) -> str:
        if isinstance(node, qmd.Heading) and self.numbers.get(node.line):
            return re.sub(r"^(#+[ \t]+)", rf"\g<1>{self.numbers[node.line]} ", text)
        if isinstance(node, qmd.CodeBlock) and node.info.startswith("{{"):
            shown = text.replace("{{", "{", 1).replace("}}", "}", 1)
            longer = node.marker + node.marker[0]
            return f"{longer}markdown\n{shown}\n{longer}"
        return text


def _trim(text: str) -> str:
    return re.sub(r"\A(?:[ \t]*\n)+|(?:\n[ \t]*)+\Z", "", text) if text.strip() else ""


def _cell_pieces(cell: qmd.Cell, document: qmd.Document, registry: Registry) -> list[Piece]:
    """The code cell, with its caption as text below a figure and above a table."""
    if cell.language != "python":
        raise document.error(cell.line, f"only Python cells can be executed, not {cell.language}")
    if not cell.label:
        raise document.error(cell.line, "this cell has no label; add a line `#| label: name`")
    piece = Piece(cell.label, cell=cell)
    if not piece.executed:
        piece.qmd = _shown_only(cell)
        piece.reading = piece.qmd
        return [piece]
    kind = qmd.kind_of(cell.label)
    target = registry.get(cell.label)
    if kind not in ("fig", "tbl") or target is None:
        return [piece]
    text = f"**{target.label}.** {cell.options.get(kind + '-cap') or ''}".strip()
    caption = Piece(f"caption-{cell.label}", reading=text, generated=True)
    return [piece, caption] if kind == "fig" else [caption, piece]


def _shown_only(cell: qmd.Cell) -> str:
    """A cell with `eval: false` as a plain code block; nothing when it is not to be shown."""
    if cell.option("echo") is False or cell.option("include") is False:
        return ""
    fence = "`" * max([3, *(len(ticks) + 1 for ticks in re.findall(r"`{3,}", cell.code))])
    return f"{fence}python\n{cell.code}\n{fence}"


def _name(pieces: list[Piece]) -> None:
    """Give every piece a stable id: its label, its section, or the cell it comes after."""
    used: set[str] = set()
    before = "start"
    for piece in pieces:
        if piece.cell is None and not piece.generated:
            piece.id = "text-" + (piece.id or before)
        stem = re.sub(r"[^A-Za-z0-9_-]", "-", piece.id)[:60]
        piece.id, count = stem, 1
        while piece.id in used:
            count += 1
            piece.id = f"{stem}-{count}"
        used.add(piece.id)
        before = re.sub(r"^(text|caption)-", "", piece.id)


def _about(page: Page, book: Book, codes: Sequence[str]) -> str:
    """The first cell: what this notebook is and how to make it run."""
    wheel = f"denselayer-{package_version(book.root)}-py3-none-any.whl"
    name = page.title
    if page.number:
        name = f"{'appendix' if page.is_appendix else 'chapter'} {page.number}, “{page.title}”,"
    solutions = (
        "" if page.is_appendix else "\n\nThe solutions of the exercises stand in an appendix of the book."
    )
    return (
        f"*This notebook is {name} of the book “{book.title}”. It is made from `{page.name}`;"
        " changes belong there.*\n\n"
        "To run it anywhere with Python 3.11 or later, download the wheel that the book's site serves beside"
        " this notebook, put it into the same folder, and install it with what the chapter needs:\n\n"
        f'```\npip install "./{wheel}[{",".join(extras(codes))}]"\n```{solutions}'
    )


def extras(codes: Sequence[str]) -> list[str]:
    """The extras of the package that cells need: `figures`, and those of what else they import."""
    lines = "\n".join(codes)
    imported = set(re.findall(r"^\s*(?:from|import) (\w+)", lines, re.M))
    return ["figures", *sorted(extra for module, extra in EXTRAS.items() if module in imported)]


def package_version(root: Path) -> str:
    """The version of the package, from pyproject.toml."""
    path = root / "pyproject.toml"
    if not path.is_file():
        return "0"
    return str(tomllib.loads(path.read_text(encoding="utf-8")).get("project", {}).get("version", "0"))


def notebook(draft: Draft, values: dict[int, str], outputs: dict[str, list[NotebookNode]]) -> NotebookNode:
    """Build the notebook from a draft, the values of its inline expressions and its cells' outputs."""
    cells = []
    count = 0
    for piece in draft.pieces:
        if piece.executed:
            count += 1
            cells.append(_code_cell(piece, outputs[piece.id], count))
        elif piece.qmd or piece.reading:
            cells.append(_markdown_cell(piece, values))
    metadata = {"kernelspec": KERNEL, "language_info": LANGUAGE, "dense": {"chapter": draft.page.name}}
    made = new_notebook(cells=cells, metadata=metadata)
    made.nbformat_minor = 5
    return made


def _code_cell(piece: Piece, outputs: list[NotebookNode], count: int) -> NotebookNode:
    options = piece.cell.options
    metadata: dict = {"dense": {"options": options}}
    if piece.generated:
        metadata["dense"]["generated"] = True
    tags = options.get("tags") or []
    tags = [tags] if isinstance(tags, str) else [str(tag) for tag in tags]
    if piece.cell.option("error", False):
        tags.append("raises-exception")
    if tags:
        metadata["tags"] = tags
    hidden = []
    if (
        piece.cell.option("include") is False
        or piece.cell.option("echo") is False
        or options.get("code-fold")
    ):
        hidden.append("source_hidden")
    if piece.cell.option("include") is False or piece.cell.option("output") is False:
        hidden.append("outputs_hidden")
    if hidden:
        metadata["jupyter"] = dict.fromkeys(hidden, True)
    cell = new_code_cell(piece.cell.code, id=piece.id, metadata=metadata, outputs=outputs)
    cell.execution_count = count
    for output in cell.outputs:
        if output.output_type == "execute_result":
            output.execution_count = count
    return cell


def _markdown_cell(piece: Piece, values: dict[int, str]) -> NotebookNode:
    def value(match: re.Match[str]) -> str:
        return escape(values[int(match[1])])

    dense: dict = {}
    if piece.generated or not piece.qmd:
        dense["generated"] = True
    else:
        dense["qmd"] = VALUE.sub(value, piece.qmd)
    if piece.expressions:
        inline = [{"expression": text, "value": values[number]} for number, text, _ in piece.expressions]
        dense["inline"] = inline
    if piece.cell is not None:
        dense["options"] = piece.cell.options
    source = VALUE.sub(value, piece.reading) or "<!-- -->"
    return new_markdown_cell(source, id=piece.id, metadata={"dense": dense})


SPECIAL = re.compile(r"[\\`*_{}\[\]<>$^~#@|'\"&]")


def escape(text: str) -> str:
    r"""Text as markdown that shows exactly that text.

    >>> escape("a*b, 1,000 and -0.5"), escape("[x]"), escape("-1")
    ('a\\*b, 1,000 and -0.5', '\\[x\\]', '\\-1')
    """
    text = SPECIAL.sub(r"\\\g<0>", text)
    text = text.replace("--", r"\-\-").replace("...", r"\.\.\.")
    if text.startswith(("-", "+", ":", "=")):
        return "\\" + text
    return re.sub(r"\A(\d+)([.)])(?=\s|\Z)", r"\1\\\2", text)


def dumps(made: NotebookNode) -> str:
    """A notebook as text: sorted keys, one-space indents, line feeds, the same on every platform."""
    nbformat.validate(made)
    return nbformat.writes(made, version=nbformat.NO_CONVERT) + "\n"
