"""Join the cells of an executed notebook into the text that an engine renders."""

from __future__ import annotations

import base64
import html
import json
import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tools import qmd
from tools.book import Page
from tools.errors import BuildError

Cell = Mapping[str, Any]
Stream = list[str | Cell]
"""A page as lines of Quarto markdown with code cells between them."""

CSS_PIXELS_PER_INCH = 96
LINE = 88
COLUMN = 40
ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
CAPTION = re.compile(r"<caption\b.*?</caption>\s*", re.DOTALL)
NOTEBOOK_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
ENVIRONMENT = {
    "python": "Python",
    "numpy": "NumPy",
    "matplotlib": "Matplotlib",
    "blas": "BLAS",
    "kernel": "kernel of the BLAS",
    "cpu": "processor",
    "platform": "system",
}
IMAGES = {"image/svg+xml": ".svg", "image/png": ".png", "image/jpeg": ".jpg"}


@dataclass(frozen=True)
class Links:
    """Where a page's downloads are, relative to the page; None for what it does not have."""

    notebook: str | None = None
    wheel: str | None = None


@dataclass
class Composed:
    """Markdown for pandoc and the files that it shows, by their path relative to the page."""

    text: str = ""
    files: dict[str, bytes] = field(default_factory=dict)


def load_notebook(page: Page) -> dict[str, Any] | None:
    """Read the executed notebook of a page; None for a page without code.

    Raises BuildError when the file is missing or is no notebook.
    """
    if page.notebook is None:
        return None
    name = f"notebooks/{page.notebook.name}"
    try:
        notebook = json.loads(page.notebook.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BuildError(f"{page.name}: {name} does not exist; run `make notebooks` to make it") from None
    except ValueError as error:
        raise BuildError(f"{name} cannot be read ({error}); run `make notebooks FORCE=1`") from None
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise BuildError(f"{name} is no notebook; run `make notebooks FORCE=1`")
    return notebook


def stream(page: Page, notebook: Mapping[str, Any] | None) -> Stream:
    """A page as lines and code cells, in order, without the cells that the converter made."""
    if notebook is None:
        return list(page.document.lines[page.document.body_line - 1 :])
    result: Stream = []
    for cell in notebook["cells"]:
        dense = cell.get("metadata", {}).get("dense", {})
        if cell["cell_type"] == "code":
            result += [] if dense.get("generated") else [cell]
        elif "qmd" in dense:
            result += [*dense["qmd"].split("\n"), ""]
    return result


def executed_with(notebook: Mapping[str, Any] | None) -> Mapping[str, str]:
    """What the outputs of a notebook were made with, as `tools.machine` told it; empty when unknown."""
    return (notebook or {}).get("metadata", {}).get("dense", {}).get("executed") or {}


def facts(notebook: Mapping[str, Any] | None, stale: str | None = None) -> str:
    """The line at the foot of a page: with which versions its outputs were made, and whether they still hold.

    `stale` says why the notebook is stale; "" says that it is fresh, None that nobody has looked. The
    line is empty for a page without a notebook.
    """
    executed = executed_with(notebook)
    names = {"python": "Python", "numpy": "NumPy", "matplotlib": "Matplotlib", "torch": "PyTorch"}
    parts = [f"{names[key]} {executed[key]}" for key in names if executed.get(key)]
    if not parts:
        return ""
    versions = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    on = f" on {executed['platform']}" if executed.get("platform") else ""
    blas = f", {executed['blas']}" if executed.get("blas") else ""
    line = f"Every output on this page was computed with {versions}{on}{blas}."
    if stale is None:
        return line
    state = f"stale; {stale}" if stale else "fresh: nothing that it depends on has changed since"
    return f"{line} The notebook of this page is {state}."


# ---------- additions to a page ----------


def with_links(source: Stream, links: Links) -> Stream:
    """Put the page's downloads behind its title."""
    items = []
    if links.notebook:
        items.append(_raw_link(links.notebook, "Download this notebook"))
    if links.wheel:
        items.append(_raw_link(links.wheel, "Package as a wheel"))
    if not items:
        return source
    block = ["", "::: {.chapter-links}", *items, ":::", ""]
    title = next((i for i, item in enumerate(source) if isinstance(item, str) and item.startswith("# ")), -1)
    return [*source[: title + 1], *block, *source[title + 1 :]]


def with_references(source: Stream) -> Stream:
    """Close a page that cites something with the list of its works."""
    # A line `::: {#refs}` makes Quarto list the works of the whole book there and hide all other lists.
    return [*source, "", "## References {#references .unnumbered}", "", "::: {.works #refs}", ":::", ""]


@dataclass(frozen=True)
class Execution:
    """One executed page of the book: how a reference to it is written, what made it, why it is stale."""

    reference: str
    notebook: str
    executed: Mapping[str, str]
    stale: str


def with_environment(source: Stream, executions: Sequence[Execution]) -> Stream:
    """Fill the tables in the divs `environment-versions` and `environment-pages`; their captions stay."""
    machines = list({tuple(sorted(each.executed.items())): each.executed for each in executions}.values())
    tables = {
        "environment-versions": _versions_table(machines),
        "environment-pages": _pages_table(executions, machines),
    }
    result: Stream = []
    table: list[str] | None = None
    for item in source:
        match = qmd.DIV.match(item) if isinstance(item, str) else None
        if match:
            rest = match["rest"].strip()
            classes = qmd.parse_attributes(rest).classes if rest.startswith("{") else ()
            table = next((tables[name] for name in classes if name in tables), None)
        elif table is not None and isinstance(item, str) and item.startswith("|"):
            result += table
            table = []
            continue
        result.append(item)
    return result


def _versions_table(machines: Sequence[Mapping[str, str]]) -> list[str]:
    heads = ["value"] if len(machines) == 1 else [str(number) for number in range(1, len(machines) + 1)]
    rows = [
        [label, *(_plain(machine.get(key, "not recorded")) for machine in machines)]
        for key, label in ENVIRONMENT.items()
    ]
    return _pipe_table(["what", *heads], rows)


def _pages_table(executions: Sequence[Execution], machines: Sequence[Mapping[str, str]]) -> list[str]:
    several = len(machines) > 1
    rows = []
    for each in executions:
        column = [str(machines.index(each.executed) + 1)] if several else []
        state = f"stale: {_plain(each.stale)}" if each.stale else "fresh"
        rows.append([f"@{each.reference}", f"`{each.notebook}`", *column, state])
    return _pipe_table(["page", "notebook", *(["column"] if several else []), "state"], rows)


def _pipe_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table; where its text must be wrapped, a column is as wide as its dashes are many."""
    columns = zip(heads, *rows, strict=True)
    widths = [min(COLUMN, max(10 if cell[:1] == "@" else len(cell) for cell in column)) for column in columns]
    lines = [heads, [":" + "-" * width for width in widths], *rows]
    return ["| " + " | ".join(cells) + " |" for cells in lines]


def _plain(text: str) -> str:
    """Text from outside that shows as it is, inside a cell of a table."""
    return re.sub(r"[\\`*_{}\[\]<>$^~#@|'\"]", r"\\\g<0>", text)


def _raw_link(address: str, text: str) -> str:
    return f'`<a href="{html.escape(address)}" download>{text}</a>`{{=html}}'


def with_solutions(source: Stream, solutions: Iterable[Stream]) -> Stream:
    """Put each solution, closed, right behind its exercise, as the instructor's edition shows it."""
    bodies: dict[str, Stream] = {}
    for appendix in solutions:
        for identifier, start, end in _divs(appendix, "sol"):
            bodies[identifier.removeprefix("sol-")] = appendix[start + 1 : end]
    result: Stream = []
    position = 0
    for identifier, _, end in _divs(source, "exr"):
        body = bodies.get(identifier.removeprefix("exr-"))
        if body is None:
            continue
        result += source[position : end + 1]
        opening = '::::::::: {.callout-tip .solution-inline collapse="true" title="Solution"}'
        result += ["", opening, *map(_anonymous, body), ":::::::::", ""]
        position = end + 1
    return result + source[position:]


def _divs(source: Stream, kind: str) -> Iterator[tuple[str, int, int]]:
    """The divs whose id has this prefix: id, index of the opening line, index of the closing line."""
    for attributes, start, end in divs(source):
        if qmd.kind_of(attributes.id) == kind:
            yield attributes.id, start, end


def divs(source: Stream) -> Iterator[tuple[qmd.Attributes, int, int]]:
    """All divs, inner before outer: attributes, index of the opening line, index of the closing line."""
    open_divs: list[tuple[qmd.Attributes, int]] = []
    fence: re.Pattern[str] | None = None
    for index, item in enumerate(source):
        if not isinstance(item, str):
            continue
        if fence:
            if fence.match(item):
                fence = None
        elif match := qmd.FENCE.match(item) or qmd.INDENTED_FENCE.match(item):
            mark = match["marker"]
            fence = re.compile(rf"^[ \t]*{re.escape(mark[0])}{{{len(mark)},}}[ \t]*$")
        elif match := qmd.DIV.match(item):
            rest = match["rest"].strip().rstrip(":").strip()
            if rest:
                braces = rest.startswith("{")
                attributes = qmd.parse_attributes(rest) if braces else qmd.Attributes(classes=(rest,))
                open_divs.append((attributes, index))
            elif open_divs:
                yield *open_divs.pop(), index


def _anonymous(item: str | Cell) -> str | Cell:
    """A copy without ids, because the original in the appendix keeps them."""
    if isinstance(item, str):
        return re.sub(r"^(.*\$\$)\s*\{#eq-[^{}]*\}\s*$", r"\1", item)
    options = dict(_options(item))
    options["label"] = f"inline-{options.get('label') or item.get('id', 'cell')}"
    return {**item, "metadata": {**item["metadata"], "dense": {"options": options}}}


def as_text(cell: Cell) -> list[str]:
    """A code cell as Markdown that holds text only: its code and what it printed, no figure."""
    options = _options(cell)
    lines: list[str] = []
    if options.get("include") is False:
        return lines
    source = _joined(cell["source"]).strip("\n")
    if options.get("echo") is not False and source:
        lines += [*_fenced(source, "python"), ""]
    if options.get("output") is not False:
        for output in merged_streams(cell.get("outputs", [])):
            if text := _printed(output, options):
                lines += [*_fenced(text), ""]
    return lines


def _printed(output: Mapping[str, Any], options: Mapping[str, Any]) -> str:
    """The text of an output; empty for a figure and for a warning that is not shown."""
    kind = output["output_type"]
    if kind == "stream":
        hidden = output["name"] == "stderr" and options.get("warning") is False
        return "" if hidden else ANSI.sub("", output["text"]).rstrip("\n")
    if kind == "error":
        return ANSI.sub("", "\n".join(output["traceback"]))
    return "" if set(output["data"]) & set(IMAGES) else _joined(output["data"].get("text/plain", ""))


# ---------- for pandoc ----------


def to_markdown(source: Stream, folder: str) -> Composed:
    """Write a page as Pandoc markdown; images go to `folder`, relative to the page."""
    composed = Composed()
    lines: list[str] = []
    for item in source:
        if isinstance(item, str):
            lines.append(item)
        else:
            lines += ["", *_Renderer(item, folder, composed.files).lines(), ""]
    composed.text = "\n".join(lines) + "\n"
    return composed


class _Renderer:
    """Writes one code cell and its outputs."""

    def __init__(self, cell: Cell, folder: str, files: dict[str, bytes]) -> None:
        self.cell = cell
        self.folder = folder
        self.files = files
        self.options = _options(cell)
        self.label = str(self.options.get("label") or cell.get("id") or "cell")
        self.kind = qmd.kind_of(self.label)

    def lines(self) -> list[str]:
        if self.options.get("include") is False:
            return []
        body = self._code() + self._outputs()
        if not body:
            return []
        name = f"cell-{self.label}" if self.kind in ("fig", "tbl", "sol", "exr", "eq", "sec") else self.label
        return [f"::::::::: {{#{name} .cell}}", *body, ":::::::::"]

    def _code(self) -> list[str]:
        if self.options.get("echo") is False:
            return []
        source = _joined(self.cell["source"]).rstrip("\n")
        if not source.strip():
            return []
        block = [*_fenced(source, "{.python .cell-code}"), ""]
        fold = self.options.get("code-fold")
        if fold not in (True, "show"):
            return block
        summary = html.escape(str(self.options.get("code-summary") or "Code"))
        open_ = " open" if fold == "show" else ""
        return [
            *_raw(f'<details class="code-fold"{open_}><summary>{summary}</summary>'),
            *block,
            *_raw("</details>"),
        ]

    def _outputs(self) -> list[str]:
        if self.options.get("output") is False:
            return []
        shown: list[str] = []
        figures: list[str] = []
        tables: list[str] = []
        for output in merged_streams(self.cell.get("outputs", [])):
            data = output.get("data", {})
            if self.kind == "fig" and (image := self._image(data)):
                figures += [image, ""]
            elif self.kind == "tbl" and (table := _html(data)):
                tables += _raw(CAPTION.sub("", _scrolling(table)))
            elif self.kind == "tbl" and "text/markdown" in data:
                tables += ["", _joined(data["text/markdown"]), ""]
            else:
                shown += self._output(output)
        if figures or tables:
            caption = str(self.options.get(f"{self.kind}-cap") or "")
            content = [f"::::::: {{#{self.label}}}", *figures, *tables, "", caption, ":::::::"]
            shown += _div("cell-output cell-output-display", content)
        return shown

    def _output(self, output: Mapping[str, Any]) -> list[str]:
        kind = output["output_type"]
        if kind == "stream":
            if output["name"] == "stderr" and self.options.get("warning") is False:
                return []
            text = ANSI.sub("", output["text"])
            long = " cell-output-long" if any(len(line) > LINE for line in text.split("\n")) else ""
            return _div(f"cell-output cell-output-{output['name']}{long}", _fenced(text))
        if kind == "error":
            text = ANSI.sub("", "\n".join(output["traceback"]))
            return _div("cell-output cell-output-error", _fenced(text))
        return self._display(output["data"])

    def _display(self, data: Mapping[str, Any]) -> list[str]:
        if html := _html(data):
            return _div("cell-output cell-output-display", _raw(_scrolling(html)))
        if image := self._image(data):
            caption = str(self.options.get("fig-cap") or "")
            return _div("cell-output cell-output-display", [image, "", caption] if caption else [image])
        if "text/markdown" in data:
            return _div("cell-output cell-output-display", [_joined(data["text/markdown"])])
        if "text/plain" in data:
            return _div("cell-output cell-output-text", _fenced(_joined(data["text/plain"])))
        return []

    def _image(self, data: Mapping[str, Any]) -> str:
        """Keep the image as a file and return the markdown that shows it; empty for no image."""
        for mime, suffix in IMAGES.items():
            if mime in data:
                content = image_bytes(mime, data[mime])
                count = sum(name.startswith(f"{self.folder}/{self.label}-") for name in self.files)
                path = f"{self.folder}/{self.label}-{count + 1}{suffix}"
                self.files[path] = content
                alternative = _quoted(str(self.options.get("fig-alt") or ""))
                return f"![]({path}){{fig-alt={alternative}{_size(content)}}}"
        return ""


def _options(cell: Cell) -> Mapping[str, Any]:
    return cell.get("metadata", {}).get("dense", {}).get("options") or {}


def _joined(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)


def _html(data: Mapping[str, Any]) -> str:
    """The HTML of an output: its own, or a Markdown output that is one HTML table; else empty."""
    if "text/html" in data:
        return _joined(data["text/html"])
    markdown = _joined(data.get("text/markdown", ""))
    return markdown if markdown.lstrip().startswith("<table") else ""


def merged_streams(outputs: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Outputs with neighbouring pieces of the same stream joined, as a reader saw them."""
    result: list[dict[str, Any]] = []
    for output in outputs:
        output = dict(output)
        if output["output_type"] == "stream":
            output["text"] = _joined(output["text"])
            if result and result[-1].get("name") == output["name"] and result[-1]["output_type"] == "stream":
                result[-1]["text"] += output["text"]
                continue
        result.append(output)
    return result


def image_bytes(mime: str, data: str | list[str]) -> bytes:
    """The file behind an image output: SVG is text, everything else base64."""
    text = _joined(data)
    return text.encode("utf-8") if mime == "image/svg+xml" else base64.b64decode(text)


def png_size(content: bytes) -> tuple[int, int] | None:
    """Width and height of a PNG in CSS pixels: its pixels, scaled by its resolution when it states one."""
    if content[:8] != b"\x89PNG\r\n\x1a\n":
        return None
    width, height = struct.unpack(">II", content[16:24])
    at = content.find(b"pHYs")
    if at < 0 or content[at + 12] != 1:
        return width, height
    per_metre = struct.unpack(">I", content[at + 4 : at + 8])[0]
    scale = CSS_PIXELS_PER_INCH / (per_metre * 0.0254)
    return round(width * scale), round(height * scale)


def _size(content: bytes) -> str:
    size = png_size(content)
    return f' width="{size[0]}" height="{size[1]}"' if size else ""


def _quoted(text: str) -> str:
    text = " ".join(text.split()).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _fenced(text: str, attributes: str = "") -> list[str]:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    mark = "`" * max(3, longest + 1)
    return [f"{mark} {attributes}".rstrip(), *text.rstrip("\n").split("\n"), mark]


def _raw(text: str) -> list[str]:
    return _fenced(text, "{=html}")


def _div(classes: str, content: list[str]) -> list[str]:
    names = " ".join(f".{name}" for name in classes.split())
    return ["", f":::::::: {{{names}}}", *content, "::::::::", ""]


def _scrolling(text: str) -> str:
    return f'<div class="table-scroll">\n{text}\n</div>' if "<table" in text else text


# ---------- for Quarto ----------


def to_notebook(source: Stream) -> dict[str, Any]:
    """Write a page as a notebook that Quarto renders without executing it."""
    cells: list[dict[str, Any]] = []
    lines: list[str] = []
    for item in [*source, None]:
        if isinstance(item, str):
            lines.append(item)
            continue
        if any(line.strip() for line in lines):
            cells.append(_notebook_cell("markdown", f"text-{len(cells)}", "\n".join(lines)))
        lines = []
        if item is not None:
            cells.append(_quarto_cell(item, f"code-{len(cells)}"))
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": NOTEBOOK_METADATA, "cells": cells}


def _notebook_cell(kind: str, identifier: str, source: str) -> dict[str, Any]:
    return {"cell_type": kind, "id": identifier, "metadata": {}, "source": source.splitlines(keepends=True)}


def _quarto_cell(cell: Cell, identifier: str) -> dict[str, Any]:
    options = dict(_options(cell))
    if qmd.kind_of(str(options.get("label") or "")) in ("sol", "exr"):
        options["label"] = f"cell-{options['label']}"
    header = [f"#| {name}: {json.dumps(value, ensure_ascii=False)}" for name, value in options.items()]
    result = _notebook_cell("code", identifier, "\n".join([*header, _joined(cell["source"])]))
    result["execution_count"] = cell.get("execution_count")
    strip = "tbl-cap" in options
    result["outputs"] = [_quarto_output(output, strip) for output in merged_streams(cell.get("outputs", []))]
    return result


def _quarto_output(output: dict[str, Any], strip_caption: bool) -> dict[str, Any]:
    """HTML as a raw block, because Quarto answers an HTML output with scripts from another host."""
    if output["output_type"] == "error":
        return output | {"traceback": []}
    data = dict(output.get("data") or {})
    if text := _html(data):
        data.pop("text/html", None)
        data["text/markdown"] = "\n".join(_raw(CAPTION.sub("", text) if strip_caption else text))
        output["data"] = data
    for mime in set(data) & set(IMAGES):
        if size := png_size(image_bytes(mime, data[mime])):
            output["metadata"] = {mime: dict(zip(("width", "height"), size, strict=True))}
    return output
