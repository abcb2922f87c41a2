"""Find pandoc and run it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from typing import Any

from tools.errors import BuildError


@cache
def find() -> str:
    """The path of the pandoc program: the one in the pinned wheel, else the one on PATH."""
    try:
        import pypandoc

        return pypandoc.get_pandoc_path()
    except (ImportError, OSError):
        pass
    path = shutil.which("pandoc")
    if path is None:
        raise BuildError(
            "pandoc is not installed; run `make book`, which installs it with pip,"
            " or `pip install pypandoc-binary` into your own environment"
        )
    return path


def run(arguments: Sequence[str], text: str = "") -> str:
    """Give `text` to pandoc and return what it writes; raises BuildError with its message."""
    command = [find(), *arguments]
    done = subprocess.run(command, input=text.encode("utf-8"), capture_output=True, check=False)
    if done.returncode:
        raise BuildError(f"pandoc {' '.join(arguments)}: {done.stderr.decode('utf-8', 'replace').strip()}")
    return done.stdout.decode("utf-8").replace("\r\n", "\n")


def read(text: str, dialect: str = "markdown") -> dict[str, Any]:
    """Parse text into pandoc's syntax tree."""
    return json.loads(run(["--from", dialect, "--to", "json"], text))


def write(tree: dict[str, Any], dialect: str, *options: str) -> str:
    """Write a syntax tree as text."""
    return run(["--from", "json", "--to", dialect, "--wrap=none", *options], json.dumps(tree))
