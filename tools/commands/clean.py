"""Remove what was built; sources, notebooks and the virtual environment stay."""

import argparse
import shutil
from pathlib import Path

from tools.environment import ROOT

FOLDERS = (
    "_book",
    "_book-*",
    "figures/out",
    "dist",
    "build",
    ".quarto",
    ".cache",
    ".pytest_cache",
    ".ruff_cache",
)
ANYWHERE = ("__pycache__", ".ipynb_checkpoints")
SEARCHED = ("tools", "tests", "code", "figures", "notebooks", "benchmarks")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="remove the virtual environment too")


def removable(root: Path, everything: bool = False) -> list[Path]:
    """The folders that builds and tests make below `root`, in order."""
    patterns = (*FOLDERS, ".venv") if everything else FOLDERS
    found = {path for pattern in patterns for path in root.glob(pattern) if path.is_dir()}
    for folder in SEARCHED:
        for name in ANYWHERE:
            found.update((root / folder).rglob(name))
    return sorted(found)


def run(args: argparse.Namespace) -> int:
    for path in removable(ROOT, args.all):
        shutil.rmtree(path, ignore_errors=True)
        print(f"removed {path.relative_to(ROOT)}")
    return 0
