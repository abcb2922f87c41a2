"""Read `_quarto.yml` and say which pages the book has, in order, with their numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tools import exercises, qmd
from tools.errors import BuildError
from tools.source import read_text


@dataclass(frozen=True)
class Page:
    """One page of the book.

    source      the .qmd file
    number      "1", "2" for chapters, "A", "B" for appendices, None for an unnumbered page
    notebook    where its executed notebook is kept; None for a page without code
    href        its address inside the site, such as "chapters/01-neuron.html"
    """

    source: Path
    number: str | None
    is_appendix: bool
    title: str
    id: str | None
    notebook: Path | None
    href: str
    document: qmd.Document

    @property
    def name(self) -> str:
        """The path of the source as messages show it: "chapters/01-neuron.qmd"."""
        return self.document.name


@dataclass(frozen=True)
class Book:
    """The book's settings and pages; `config` is `_quarto.yml` merged with the profile's file."""

    root: Path
    profile: str | None
    title: str
    subtitle: str
    author: str
    bibliography: tuple[Path, ...]
    pages: tuple[Page, ...]
    config: dict[str, Any]

    @cached_property
    def notebooks(self) -> tuple[Page, ...]:
        """The pages that are executed."""
        return tuple(page for page in self.pages if page.notebook)

    @cached_property
    def exercises(self) -> dict[str, exercises.Exercise]:
        """The exercises that the package can check, by id; those of the book may be more."""
        return exercises.load(self.root, exercises.module_of(self.config))


def load_book(root: Path | str, profile: str | None = None) -> Book:
    """Read the book at `root`, with the settings of `_quarto-<profile>.yml` laid over the default ones.

    Raises BuildError when a settings file or a page is missing or cannot be read.
    """
    root = Path(root).resolve()
    config = _settings(root / "_quarto.yml")
    if profile:
        config = merge(config, _settings(root / f"_quarto-{profile}.yml"))
    book = config.get("book") or {}
    if not isinstance(book, dict):
        raise BuildError(f"_quarto.yml: `book:` holds lines `name: value`, not {book!r}")
    chapters = _files(book.get("chapters"))
    if not chapters:
        raise BuildError("_quarto.yml: `book: chapters:` lists no page")
    pages = _pages(root, chapters, appendix=False) + _pages(
        root, _files(book.get("appendices")), appendix=True
    )
    bibliography = config.get("bibliography") or []
    if isinstance(bibliography, str):
        bibliography = [bibliography]
    return Book(
        root=root,
        profile=profile,
        title=str(book.get("title") or ""),
        subtitle=str(book.get("subtitle") or ""),
        author=_author(book.get("author")),
        bibliography=tuple(root / name for name in bibliography),
        pages=tuple(pages),
        config=config,
    )


def merge(below: Any, above: Any) -> Any:
    """Lay one settings tree over another as Quarto does: mappings merge, lists join, the rest is replaced.

    >>> merge({"a": {"x": 1}, "b": [1]}, {"a": {"y": 2}, "b": [1, 2]})
    {'a': {'x': 1, 'y': 2}, 'b': [1, 2]}
    """
    if isinstance(below, dict) and isinstance(above, dict):
        joined = dict(below)
        for key, value in above.items():
            joined[key] = merge(below[key], value) if key in below else value
        return joined
    if isinstance(below, list) and isinstance(above, list):
        return below + [item for item in above if item not in below]
    return above


def _settings(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise BuildError(f"{path.name}: no such file in {path.parent}")
    return qmd.load_yaml(read_text(path, path.name), path.name, 1, "the file")


def _files(items: list[Any] | None) -> list[str]:
    """The page files of a chapter list; a `part:` contributes its chapters."""
    if not isinstance(items, list | None):
        raise BuildError(f"_quarto.yml: chapters are a list of pages, not {items!r}")
    files: list[str] = []
    for item in items or []:
        if isinstance(item, str):
            files.append(item)
        elif not isinstance(item, dict):
            raise BuildError(f"_quarto.yml: {item!r} in the list of chapters is no page")
        elif "chapters" in item:
            files += _files(item["chapters"])
        elif item.get("file") or item.get("href"):
            files.append(item.get("file") or item["href"])
    return files


def _author(author: Any) -> str:
    authors = author if isinstance(author, list) else [author]
    names = [str(item.get("name", "")) if isinstance(item, dict) else str(item) for item in authors if item]
    return ", ".join(names)


def _pages(root: Path, files: list[str], *, appendix: bool) -> list[Page]:
    pages: list[Page] = []
    count = 0
    for file in files:
        source = root / file
        if not source.is_file():
            raise BuildError(f"_quarto.yml: the page {file} does not exist")
        document = qmd.read(source, root)
        heading = document.title
        number = None
        if not heading.attributes.unnumbered:
            count += 1
            number = chr(ord("A") + count - 1) if appendix else str(count)
        if file == "index.qmd" and number is not None:
            raise document.error(heading.line, "the home page takes no number; write `# Title {.unnumbered}`")
        executed = bool(document.cells or document.expressions())
        pages.append(
            Page(
                source=source,
                number=number,
                is_appendix=appendix,
                title=heading.text,
                id=heading.attributes.id or None,
                notebook=root / "notebooks" / (source.stem + ".ipynb") if executed else None,
                href=Path(file).with_suffix(".html").as_posix(),
                document=document,
            )
        )
    return pages
