"""Serve the book while it is written: what changes is rendered again and open pages reload."""

import argparse
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tools import build, server
from tools.book import load_book
from tools.commands import book
from tools.environment import ROOT
from tools.errors import BuildError

INTERVAL = 0.5
WATCHED = (
    "_quarto*.yml",
    "*.qmd",
    "references.bib",
    "chapters/*.qmd",
    "figures/parameters.yml",
    "figures/denselayer_figures/*.py",
    "code/denselayer/**/*.py",
    "code/denselayer/exercises/book/*/*.qmd",
    "benchmarks/results/*.json",
    "notebooks/*.ipynb",
    "_extensions/dense/*.*",
    "tools/templates/*",
    "tools/engines/*.lua",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, help="default: the first free one from 8000 on")
    parser.add_argument("--profile", help="preview this edition, such as `instructor`")
    parser.add_argument(
        "--engine", choices=("pandoc", "quarto"), default="pandoc", help="default: pandoc, it is faster"
    )


def state(root: Path) -> dict[Path, tuple[int, int]]:
    """Time and size of every watched file."""
    found = {}
    for pattern in WATCHED:
        for path in root.glob(pattern):
            try:
                stat = path.stat()
            except FileNotFoundError:
                continue
            found[path] = (stat.st_mtime_ns, stat.st_size)
    return found


def changes(root: Path, before: dict[Path, tuple[int, int]]) -> set[Path]:
    """The files that are new, gone or different since `before`."""
    after = state(root)
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


def needs_execution(changed: set[Path]) -> bool:
    """Whether a change can alter a notebook; style sheets and templates cannot."""
    return any(path.suffix in (".qmd", ".py", ".yml", ".bib", ".json") for path in changed)


class Preview:
    """Renders again after each change; a mistake in a chapter is printed and waited out."""

    def __init__(self, root: Path, profile: str | None, engine: str) -> None:
        self.root = root
        self.profile = profile
        self.engine = engine
        self.output = build.default_output(root, profile)
        self.signal = server.Signal()
        self.written: dict[Path, tuple[int, int]] = {}

    def build(self) -> None:
        options = {"profile": self.profile, "engine": self.engine, "output": self.output}
        book.report(book.build_with_progress(self.root, **options))

    def update(self, changed: set[Path]) -> None:
        """One round: refresh stale notebooks, render, tell the open pages."""
        now = state(self.root)
        changed = {path for path in changed if now.get(path) != self.written.get(path, ())}
        if not changed:
            return
        started = time.monotonic()
        try:
            if needs_execution(changed):
                self.execute()
            built = build.build(self.root, profile=self.profile, engine=self.engine, output=self.output)
        except BuildError as error:
            print(f"error: {error}", file=sys.stderr, flush=True)
            return
        for warning in built.warnings:
            print(f"warning: {warning}", file=sys.stderr)
        self.signal.send()
        names = ", ".join(sorted(path.relative_to(self.root).as_posix() for path in changed))
        print(f"{names}: rendered again in {time.monotonic() - started:.1f} s", flush=True)

    def execute(self) -> None:
        """Refresh the notebooks and remember those written, so that they do not count as changes."""
        from tools.commands import notebooks
        from tools.markup import check_book

        current = load_book(self.root, self.profile)
        check_book(current)
        notebooks.refresh_with_progress(current)
        self.written = {path: stat for path, stat in state(self.root).items() if path.suffix == ".ipynb"}


def watch(root: Path) -> Iterator[set[Path]]:
    """The changed files, each time some have changed and then been quiet for a moment."""
    before = state(root)
    while True:
        time.sleep(INTERVAL)
        changed = changes(root, before)
        if not changed:
            continue
        while True:
            before = state(root)
            time.sleep(INTERVAL / 2)
            more = changes(root, before)
            if not more:
                break
            changed |= more
        yield changed


def run(args: argparse.Namespace) -> int:
    preview = Preview(ROOT, args.profile, args.engine)
    preview.build()
    with server.open_server(preview.output, args.port, preview.signal) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        print(f"Preview at {server.address(site)} (stop with Ctrl-C)", flush=True)
        try:
            for changed in watch(ROOT):
                preview.update(changed)
        except KeyboardInterrupt:
            print()
    return 0
