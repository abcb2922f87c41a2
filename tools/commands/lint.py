"""Check style with ruff: the repository's Python files and the code cells of the chapters."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from tools import chapter_code, qmd
from tools.book import load_book
from tools.environment import ROOT


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--fix", action="store_true", help="repair what can be repaired, in the chapters too")


def run(args: argparse.Namespace) -> int:
    failed = lint_repository(ROOT, fix=args.fix)
    findings = lint_chapters(ROOT, fix=args.fix)
    for finding in findings:
        print(finding)
    if findings:
        print(f"{len(findings)} findings in the chapters")
    return 1 if failed or findings else 0


def lint_repository(root: Path, *, fix: bool = False) -> bool:
    """Run ruff over all Python files; whether anything is left to do."""
    commands = [["check", "--fix"], ["format"]] if fix else [["check"], ["format", "--check"]]
    codes = [
        subprocess.run([sys.executable, "-m", "ruff", *c, "."], cwd=root, check=False).returncode
        for c in commands
    ]
    return any(codes)


def lint_chapters(root: Path, *, fix: bool = False) -> list[chapter_code.Finding]:
    """What ruff finds in the code of all pages; with `fix`, what it could not repair."""
    config = root / "pyproject.toml"
    findings = []
    for page in load_book(root).pages:
        document = page.document
        if fix and chapter_code.fix(document, config):
            print(f"{page.name}: repaired")
            document = qmd.read(page.source, root)
        findings += chapter_code.check(document, config)
    return findings
