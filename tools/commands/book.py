"""Render the book from its executed notebooks."""

import argparse
import sys
import time
from pathlib import Path

from tools import build
from tools.book import Page
from tools.environment import ROOT

SUMMARY = "render the book from its executed notebooks into _book/"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--profile", help="an edition: `instructor` shows each solution behind its exercise")
    parser.add_argument("--engine", choices=build.ENGINES, default="auto", help="default: auto, quarto if it is there")
    parser.add_argument("--output", type=Path, help="the folder to write to; default: _book, or _book-PROFILE")


class Bar(build.Progress):
    """A progress bar over the pages, on a terminal only."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()]
        self.bar = Progress(*columns, transient=True, disable=not sys.stderr.isatty())
        self.task = self.bar.add_task("Reading the book", total=None)

    def start(self, pages: int) -> None:
        self.bar.update(self.task, total=pages, description="Rendering")

    def page(self, page: Page) -> None:
        self.bar.update(self.task, advance=1, description=f"Rendered {page.href}")


def run(args: argparse.Namespace) -> int:
    started = time.monotonic()
    bar = Bar()
    with bar.bar:
        built = build.build(
            ROOT, profile=args.profile, engine=args.engine, output=args.output and args.output.resolve(), progress=bar
        )
    for warning in built.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    print(f"The book is ready (engine: {built.engine}, {time.monotonic() - started:.1f} s). First page:")
    print(built.first_page)
    return 0
