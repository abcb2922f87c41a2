"""Convert the chapters into notebooks and execute what is stale."""

from __future__ import annotations

import argparse
from pathlib import Path

from tools.book import Book, Page, load_book
from tools.errors import BuildError
from tools.execute import TIMEOUT
from tools.markup import check_book
from tools.notebooks import Summary, refresh


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--force", action="store_true", help="execute all chapters, stale or not")
    parser.add_argument(
        "--timeout", type=int, default=TIMEOUT, help="seconds that one cell may take (default: %(default)s)"
    )
    parser.add_argument("chapters", nargs="*", help="only these, such as chapters/01-neuron.qmd")


def run(args: argparse.Namespace) -> int:
    book = load_book(Path(__file__).resolve().parents[2])
    only = [_name(book, chapter) for chapter in args.chapters]
    check_book(book)
    summary = refresh_with_progress(book, force=args.force, only=only, timeout=args.timeout)
    print(f"notebooks: {summary}")
    for path in orphans(book):
        print(f"notebooks/{path.name} belongs to no page of the book; remove it if its chapter is gone")
    return 0


def _name(book: Book, given: str) -> str:
    """The page that an argument means: a path or the start of the file's name."""
    names = [page.name for page in book.notebooks if page.name == given or page.source.name.startswith(given)]
    if len(names) != 1:
        known = ", ".join(page.name for page in book.notebooks)
        raise BuildError(f"{given}: not a page that has code; the pages are {known}")
    return names[0]


def refresh_with_progress(
    book: Book, *, force: bool = False, only: list[str] = (), timeout: int = TIMEOUT
) -> Summary:
    """Refresh with one bar for each chapter that is executed."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.fields[cell]}")) as progress:
        tasks: dict[str, int] = {}

        def report(page: Page, done: int, total: int, label: str) -> None:
            if page.name not in tasks:
                tasks[page.name] = progress.add_task(page.name, total=total, cell=label)
            progress.update(tasks[page.name], completed=done, cell=label)

        return refresh(book, force=force, only=only, timeout=timeout, report=report)


def orphans(book: Book) -> list[Path]:
    """Notebooks in `notebooks/` that no page of the book makes."""
    wanted = {page.notebook for page in book.notebooks}
    return [path for path in sorted((book.root / "notebooks").glob("*.ipynb")) if path not in wanted]
