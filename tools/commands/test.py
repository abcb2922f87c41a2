"""Run every test: the packages, the tools, the site, then nbval over the executed notebooks."""

import argparse
import os
import subprocess
import sys
import tempfile

from tools.environment import ROOT, search_path

CELL_TIMEOUT = 120


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--processes", default="2", help="how many pytest workers (default: 2)")
    parser.add_argument("--notebooks-only", action="store_true", help="only nbval over the notebooks")
    parser.add_argument("paths", nargs="*", help="files or folders under tests/; without any: all, and nbval")


def test_command(paths: list[str], processes: str) -> list[str]:
    """pytest over ``paths`` (all of ``tests/`` if empty), in parallel by file."""
    return [sys.executable, "-m", "pytest", "-n", processes, "--dist", "loadfile", *(paths or ["tests"])]


def notebook_command() -> list[str]:
    """nbval, strict, in this environment; ``tools.pytest_strict`` fails the run on any xfail."""
    return [
        *(sys.executable, "-m", "pytest", "-p", "tools.pytest_strict", "--nbval", "--nbval-current-env"),
        *("--nbval-cell-timeout", str(CELL_TIMEOUT), "notebooks"),
    ]


def environ(state: str) -> dict[str, str]:
    """One thread for each BLAS: two workers share the cores, and results do not depend on the number.

    What is done with the exercises is remembered in a folder that is gone afterwards.
    """
    single = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    own = {"PYTHONPATH": search_path(), "PYTHONHASHSEED": "0", "DENSELAYER_EXERCISES": state}
    return {**os.environ, **single, **own}


def warm_font_cache() -> None:
    """Matplotlib reports on stderr when it builds its font cache: not inside a compared notebook."""
    command = [sys.executable, "-c", "import matplotlib.font_manager"]
    subprocess.run(command, capture_output=True, check=True)


def run(args: argparse.Namespace) -> int:
    commands = []
    if not args.notebooks_only:
        commands.append(test_command(args.paths, args.processes))
    if args.notebooks_only or not args.paths:
        commands.append(notebook_command())
    warm_font_cache()
    with tempfile.TemporaryDirectory(prefix="exercises-") as state:
        variables = environ(state)
        codes = [subprocess.run(command, cwd=ROOT, env=variables).returncode for command in commands]
    return 1 if any(codes) else 0
