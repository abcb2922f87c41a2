"""Build the site of the book: aside first, then in the place of the last one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from tools import compose, markup, stale, wheel
from tools.book import Book, Page, load_book
from tools.engines import pandoc as pandoc_engine
from tools.engines import quarto as quarto_engine
from tools.errors import BuildError
from tools.references import Registry, collect

ENGINES = ("auto", "pandoc", "quarto")
DOWNLOADS = "notebooks"


@dataclass(frozen=True)
class Built:
    """What a build made: the first page, the engine with its version, and warnings for the person."""

    first_page: Path
    engine: str
    warnings: tuple[str, ...]


class Progress:
    """What a build reports while it works; this one says nothing."""

    def start(self, pages: int) -> None:
        """The number of pages is known."""

    def page(self, page: Page) -> None:
        """One page is done."""


def default_output(root: Path, profile: str | None) -> Path:
    """``_book``, or ``_book-<profile>`` for an edition of its own."""
    return root / (f"_book-{profile}" if profile else "_book")


def choose_engine(name: str) -> ModuleType:
    """The engine of that name; ``auto`` takes Quarto where it is installed and new enough.

    Raises BuildError when Quarto is asked for and not there.
    """
    if name == "auto":
        return quarto_engine if quarto_engine.is_usable() else pandoc_engine
    if name == "quarto":
        quarto_engine.require()
        return quarto_engine
    return pandoc_engine


def build(
    root: Path,
    *,
    profile: str | None = None,
    engine: str = "auto",
    output: Path | None = None,
    progress: Progress | None = None,
) -> Built:
    """Render the book from its executed notebooks into `output`.

    The last good site stays until the new one is complete. Raises BuildError for anything that would
    leave a hole in a page.
    """
    progress = progress or Progress()
    output = output or default_output(root, profile)
    chosen = choose_engine(engine)
    book = load_book(root, profile)
    markup.check_book(book)
    registry = collect(book)
    found = stale_notebooks(book, registry)
    warnings = tuple(f"{each}; refresh it with `{stale.COMMAND}`" for each in found)
    progress.start(len(book.pages))
    with aside(output) as site:
        streams, provenance = composed(book, registry, site, found)
        try:
            chosen.render(book, registry, streams, provenance, site, progress.page)
        except BuildError as error:
            if not warnings:
                raise
            raise BuildError("\n".join([f"{error}", "Perhaps because of this:", *warnings])) from error
        swap(site, output)
    return Built(output / book.pages[0].href, chosen.describe(), warnings)


def stale_notebooks(book: Book, registry: Registry) -> list[stale.Stale]:
    """The notebooks that are older than what they were made from.

    Notebooks are made without a profile, so that is what they are compared with.
    """
    if book.profile:
        book = load_book(book.root)
        registry = collect(book)
    return stale.find_stale(book, registry)


def composed(
    book: Book, registry: Registry, site: Path, found: list[stale.Stale]
) -> tuple[dict[str, compose.Stream], dict[str, str]]:
    """Put the downloads into the site; return what is to be rendered, and the foot, of each page.

    `found` are the stale notebooks.
    """
    states = dict.fromkeys((page.name for page in book.notebooks), "")
    states |= {each.page.name: each.reason for each in found}
    notebooks = {page.name: compose.load_notebook(page) for page in book.pages}
    package = add_downloads(book, site)
    streams = {page.name: compose.stream(page, notebooks[page.name]) for page in book.pages}
    if book.profile == "instructor":
        solutions = [streams[page.name] for page in book.pages if page.is_appendix]
        for page in book.pages:
            if not page.is_appendix:
                streams[page.name] = compose.with_solutions(streams[page.name], solutions)
    executions = [
        compose.Execution(
            page.id or "", page.notebook.name, compose.executed_with(notebooks[page.name]), states[page.name]
        )
        for page in book.notebooks
    ]
    citing = {reference.page.name for reference in registry.references if reference.kind == "citation"}
    for page in book.pages:
        streams[page.name] = compose.with_environment(streams[page.name], executions)
        if page.name in citing:
            streams[page.name] = compose.with_references(streams[page.name])
        if page.notebook:
            up = "../" * page.href.count("/") + DOWNLOADS
            links = compose.Links(f"{up}/{page.notebook.name}", f"{up}/{package}" if package else None)
            streams[page.name] = compose.with_links(streams[page.name], links)
    feet = {name: compose.facts(notebook, states.get(name)) for name, notebook in notebooks.items()}
    return streams, feet


def add_downloads(book: Book, site: Path) -> str | None:
    """Put the notebooks and the wheel beside each other into the site; return the wheel's name."""
    folder = site / DOWNLOADS
    folder.mkdir(parents=True, exist_ok=True)
    for page in book.notebooks:
        shutil.copyfile(page.notebook, folder / page.notebook.name)
    package = wheel.build(book.root, folder)
    return package.name if package else None


@contextmanager
def aside(output: Path) -> Iterator[Path]:
    """A folder next to `output` to build in; it is gone afterwards, whatever happens."""
    folder = output.with_name(f"{output.name}-new-{os.getpid()}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def swap(site: Path, output: Path) -> None:
    """Put a finished site in the place of the last one."""
    if output.exists() and not is_site(output):
        raise BuildError(f"{output} exists and is no site of this book; name another folder, or empty it")
    old = output.with_name(f"{output.name}-old-{os.getpid()}")
    try:
        if output.exists():
            output.rename(old)
        site.rename(output)
    except BaseException:
        if old.exists() and not output.exists():
            old.rename(output)
        raise
    shutil.rmtree(old, ignore_errors=True)


def is_site(folder: Path) -> bool:
    """Whether a folder holds what a build wrote, or nothing, so that replacing it loses nothing."""
    if not folder.is_dir():
        return False
    made = [folder / "index.html", folder / DOWNLOADS]
    return not any(folder.iterdir()) or all(path.exists() for path in made)
