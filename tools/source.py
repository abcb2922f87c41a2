"""Read the text of a page with the files that it includes, and know where each of its lines stands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.errors import BuildError

FENCE = re.compile(r"^(?P<indent> {0,3})(?P<marker>`{3,}|~{3,})(?P<info>.*)$")
INDENTED_FENCE = re.compile(r"^[ \t]+(?P<marker>`{3,}|~{3,})(?P<info>[^`]*)$")
INCLUDE = re.compile(r"^\{\{< +include +(?P<file>[^\s\"'<>]+) +>\}\}[ \t]*$")
ANY_INCLUDE = re.compile(r"(?<!\{)\{\{<\s*include\b")


@dataclass(frozen=True)
class Part:
    """A stretch of a page's lines that stands in one file: `first` is its first line in the page, `line`
    the same line in the file; it ends where the next part begins."""

    first: int
    path: Path
    name: str
    line: int


@dataclass(frozen=True)
class Source:
    """The text of a page, line feeds only, and the parts that it is put together from."""

    text: str
    parts: tuple[Part, ...]


def read_text(path: Path, name: str) -> str:
    """The text of a file; raises BuildError with the line for what is not UTF-8."""
    content = path.read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise BuildError(f"{name}:{line}: not UTF-8; save the file as UTF-8") from None


def normal(text: str) -> str:
    """Text without a byte order mark and with line feeds only."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def name_in(root: Path | None, path: Path) -> str:
    """How messages name a file: relative to the root, where it lies below it."""
    return path.relative_to(root).as_posix() if root and path.is_relative_to(root) else path.as_posix()


def read_source(path: Path, root: Path | None = None) -> Source:
    """The text of a page; a line `{{< include FILE >}}` is replaced by the lines of that file.

    The rules are Quarto's: the line stands alone between blank lines, outside of code, and FILE is
    relative to the page.  Ours are narrower: FILE lies below `root` (without one, below the page's own
    folder), and it includes nothing itself.  Raises BuildError with file and line.
    """
    path = Path(path)
    name = name_in(root, path)
    lines = normal(read_text(path, name)).split("\n")
    text: list[str] = []
    parts = [Part(1, path, name, 1)]
    for number, line in _outside_code(lines):
        if not ANY_INCLUDE.search(line):
            continue
        included = _included(line, path, f"{name}:{number}", root or path.parent)
        _stands_alone(lines, number, name)
        text += lines[parts[-1].line - 1 : number - 1]
        parts.append(Part(len(text) + 1, included, name_in(root, included), 1))
        text += _content(included, parts[-1].name)
        parts.append(Part(len(text) + 1, path, name, number + 1))
    text += lines[parts[-1].line - 1 :]
    return Source("\n".join(text), tuple(parts))


def _outside_code(lines: list[str]) -> Iterator[tuple[int, str]]:
    """The lines that stand in no fence, with their numbers."""
    closing: re.Pattern[str] | None = None
    for number, line in enumerate(lines, start=1):
        if closing:
            closing = None if closing.match(line) else closing
        elif match := FENCE.match(line) or INDENTED_FENCE.match(line):
            mark = match["marker"]
            if "`" not in mark or "`" not in match["info"]:
                closing = re.compile(rf"^[ \t]*{re.escape(mark[0])}{{{len(mark)},}}[ \t]*$")
        else:
            yield number, line


def _included(line: str, page: Path, place: str, root: Path) -> Path:
    """The file that an include line names."""
    match = INCLUDE.match(line)
    if not match:
        raise BuildError(
            f"{place}: an include is a line of its own: {{{{< include FILE >}}}}, without quotes"
        )
    given = match["file"]
    if given.startswith("/") or Path(given).is_absolute():
        raise BuildError(
            f"{place}: {given}: the file is named relative to the page, such as ../folder/file.qmd"
        )
    path = (page.parent / given).resolve()
    if not path.is_relative_to(root.resolve()):
        raise BuildError(f"{place}: {given} lies outside of the book's folder")
    if not path.is_file():
        raise BuildError(f"{place}: the included file {given} does not exist")
    return root / path.relative_to(root.resolve())


def _stands_alone(lines: list[str], number: int, name: str) -> None:
    around = lines[max(0, number - 2) : number - 1] + lines[number : number + 1]
    if any(line.strip() for line in around):
        raise BuildError(f"{name}:{number}: an include needs a blank line before and after it")


def _content(path: Path, name: str) -> list[str]:
    """The lines of an included file, without blank ones at its end."""
    lines = normal(read_text(path, name)).rstrip("\n").split("\n")
    if lines[0].rstrip() == "---":
        raise BuildError(f"{name}:1: an included file has no YAML header; settings belong to the page")
    for number, line in _outside_code(lines):
        if ANY_INCLUDE.search(line):
            raise BuildError(f"{name}:{number}: an included file includes no other file")
    return lines
