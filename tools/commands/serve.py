"""Serve the book on this machine, and build it first if it is not there."""

import argparse
from pathlib import Path

from tools import build, server
from tools.commands import book
from tools.environment import ROOT


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, help="default: the first free one from 8000 on")
    parser.add_argument("--profile", help="serve this edition, such as `instructor`")


def ensure_built(root: Path, profile: str | None) -> Path:
    """The folder of the site, built now when it is not there."""
    folder = build.default_output(root, profile)
    if not (folder / "index.html").is_file():
        book.report(book.build_with_progress(root, profile=profile))
    return folder


def run(args: argparse.Namespace) -> int:
    folder = ensure_built(ROOT, args.profile)
    with server.open_server(folder, args.port) as site:
        print(f"Serving {folder.name}/ at {server.address(site)} (stop with Ctrl-C)", flush=True)
        try:
            site.serve_forever()
        except KeyboardInterrupt:
            print()
    return 0
