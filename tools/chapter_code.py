"""Check and format the code cells of the chapters with ruff, and name chapter and line."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tools import qmd
from tools.errors import BuildError
from tools.source import normal


@dataclass(frozen=True)
class Finding:
    """What ruff says about one line; `line` counts in the page, `place` names file and line."""

    place: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return f"{self.place}:{self.column}: {self.message}"


def check(document: qmd.Document, config: Path) -> list[Finding]:
    """Findings of `ruff check` and of the formatter, in the order of the lines."""
    cells = document.cells
    if not cells:
        return []
    with tempfile.TemporaryDirectory(prefix="lint-") as scratch:
        file = _write([cell.code for cell in cells], Path(scratch))
        found = [_finding(item, document, cells) for item in _check_json(file, config)]
        formatted = (
            _formatted(file, config) if not any(f.message.startswith("invalid") for f in found) else []
        )
    for cell, code in zip(cells, formatted, strict=False):
        if code != cell.code:
            message = f"the cell {cell.label} is not formatted; `python -m tools lint --fix` does it"
            found.append(Finding(document.place(cell.code_line), cell.code_line, 1, message))
    return sorted(found, key=lambda finding: (finding.line, finding.column))


def fix(document: qmd.Document, config: Path) -> bool:
    """Apply ruff's safe fixes and its formatter to the cells of the page; whether one changed.

    A cell that stands in an included file is repaired there.
    """
    cells = document.cells
    with tempfile.TemporaryDirectory(prefix="lint-") as scratch:
        file = _write([cell.code for cell in cells], Path(scratch))
        _ruff(["check", "--fix", "--quiet"], file, config)
        fixed = _formatted(file, config)
    if not fixed or all(code == cell.code for cell, code in zip(cells, fixed, strict=True)):
        return False
    edits: dict[Path, list[tuple[int, int, list[str]]]] = {}
    for cell, code in zip(cells, fixed, strict=True):
        part = document.part(cell.code_line)
        first = part.line + cell.code_line - part.first
        edit = (first, first + cell.last - cell.code_line, code.split("\n"))
        edits.setdefault(part.path, []).append(edit)
    for path, changed in edits.items():
        _rewrite(path, changed)
    return True


def _rewrite(path: Path, edits: Sequence[tuple[int, int, list[str]]]) -> None:
    """Replace the lines from `first` up to, not with, `end`; line endings and a byte order mark stay."""
    original = path.read_bytes()
    lines = normal(original.decode("utf-8-sig")).split("\n")
    for first, end, code in reversed(edits):
        lines[first - 1 : end - 1] = code
    text = ("\r\n" if b"\r\n" in original else "\n").join(lines)
    mark = b"\xef\xbb\xbf" if original.startswith(b"\xef\xbb\xbf") else b""
    content = mark + text.encode("utf-8")
    if content != original:
        path.write_bytes(content)


def _write(codes: Sequence[str], folder: Path) -> Path:
    """The cells as a notebook: ruff knows what is particular to one, such as a last line that is shown."""
    cells = [
        {
            "cell_type": "code",
            "id": f"c{n}",
            "metadata": {},
            "outputs": [],
            "execution_count": None,
            "source": code,
        }
        for n, code in enumerate(codes)
    ]
    language = {"language_info": {"name": "python"}}
    file = folder / "chapter.ipynb"
    notebook = {"cells": cells, "metadata": language, "nbformat": 4, "nbformat_minor": 5}
    file.write_text(json.dumps(notebook), encoding="utf-8")
    return file


def _check_json(file: Path, config: Path) -> list[dict]:
    done = _ruff(["check", "--output-format", "json"], file, config)
    if done.returncode not in (0, 1):
        raise BuildError(f"ruff: {done.stderr.strip()}")
    return json.loads(done.stdout)


def _formatted(file: Path, config: Path) -> list[str]:
    """The cells after `ruff format`; empty when one of them is not Python."""
    if _ruff(["format", "--quiet"], file, config).returncode:
        return []
    cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells]


def _ruff(arguments: Sequence[str], file: Path, config: Path) -> subprocess.CompletedProcess[str]:
    options = ["--no-cache"] + (["--config", str(config)] if config.is_file() else ["--isolated"])
    command = [sys.executable, "-m", "ruff", *arguments, *options, str(file)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)


def _finding(item: dict, document: qmd.Document, cells: Sequence[qmd.Cell]) -> Finding:
    cell = cells[(item.get("cell") or 1) - 1]
    line = cell.code_line + item["location"]["row"] - 1
    code = item.get("code") or "invalid-syntax"
    return Finding(document.place(line), line, item["location"]["column"], f"{code} {item['message']}")
