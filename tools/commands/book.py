"""Render the book from its executed notebooks."""

import argparse
import sys
import time
from pathlib import Path

from tools import build
from tools.book import Page
from tools.environment import ROOT


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--profile", help="an edition: `instructor` shows each solution behind its exercise")
    parser.add_argument(
        "--engine", choices=build.ENGINES, default="auto", help="default: auto, Quarto where it is installed"
    )
    parser.add_argument(
        "--output", type=Path, help="the folder to write to; default: _book, or _book-PROFILE"
    )


class Bar(build.Progress):
    """A progress bar over the pages; silent where nobody watches."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self.bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self.task = self.bar.add_task("Reading the book", total=None)

    def start(self, pages: int) -> None:
        self.bar.update(self.task, total=pages, description="Rendering")

    def page(self, page: Page) -> None:
        self.bar.update(self.task, advance=1, description=f"Rendered {page.href}")


def build_with_progress(root: Path, **options: object) -> build.Built:
    bar = Bar()
    with bar.bar:
        return build.build(root, progress=bar, **options)


def report(built: build.Built) -> None:
    """Say what was built; warnings go to the other stream."""
    for warning in built.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    print(f"Built with {built.engine}. The first page is")
    print(built.first_page)


def run(args: argparse.Namespace) -> int:
    started = time.monotonic()
    output = args.output.resolve() if args.output else None
    built = build_with_progress(ROOT, profile=args.profile, engine=args.engine, output=output)
    report(built)
    print(f"({time.monotonic() - started:.1f} s)", file=sys.stderr)
    return 0
