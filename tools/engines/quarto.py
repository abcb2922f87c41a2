"""Render the book with Quarto, from the executed notebooks: no cell is run."""

from __future__ import annotations

import copy
import json
import re
import shutil
import subprocess
import tempfile
from collections import deque
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tools import compose
from tools.book import Book, Page
from tools.errors import BuildError
from tools.references import Registry

MINIMUM = (1, 10)
EXTENSIONS = Path(__file__).resolve().parents[2] / "_extensions"
RENDERING = re.compile(r"\[\s*\d+/\d+\]\s+(?P<file>\S+)")
ANSI = re.compile(r"\x1b\[[0-9;]*m")


@cache
def version() -> tuple[int, ...]:
    """The version of the `quarto` on PATH; () when there is none that runs."""
    path = shutil.which("quarto")
    if path is None:
        return ()
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(int(part) for part in re.findall(r"\d+", done.stdout)[:3])


def is_usable() -> bool:
    return version() >= MINIMUM


def require() -> None:
    """Raise BuildError when there is no Quarto that can render this book."""
    if is_usable():
        return
    wanted = ".".join(map(str, MINIMUM))
    found = f"found {'.'.join(map(str, version()))}" if version() else "there is none on PATH"
    raise BuildError(
        f"--engine quarto needs Quarto {wanted} or newer; {found}. `--engine pandoc` works without it."
    )


def describe() -> str:
    return f"quarto {'.'.join(map(str, version()))}"


def render(
    book: Book,
    registry: Registry,
    streams: dict[str, compose.Stream],
    provenance: dict[str, str],
    site: Path,
    done: Callable[[Page], None] = lambda page: None,
) -> None:
    """Let Quarto render a project whose chapters are notebooks with outputs; put its pages into `site`."""
    with tempfile.TemporaryDirectory(prefix="denselayer-") as scratch:
        project = Path(scratch)
        write_project(book, streams, provenance, project)
        _run(book, project, done)
        for path in (project / "_site").iterdir():
            shutil.move(path, site / path.name)


def write_project(
    book: Book, streams: dict[str, compose.Stream], provenance: dict[str, str], project: Path
) -> None:
    """Write the temporary Quarto project."""
    files = {}
    for page in book.pages:
        name = Path(page.href).with_suffix(".ipynb" if page.notebook else ".qmd").as_posix()
        files[page.name] = name
        stream = streams[page.name]
        if provenance.get(page.name):
            stream = [*stream, "", "::: {.provenance}", provenance[page.name], ":::"]
        target = project / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if page.notebook:
            target.write_text(json.dumps(compose.to_notebook(stream)), encoding="utf-8")
        else:
            target.write_text("\n".join(map(str, stream)) + "\n", encoding="utf-8")
    config = yaml.safe_dump(_config(book, files), sort_keys=False, allow_unicode=True)
    (project / "_quarto.yml").write_text(config, encoding="utf-8")
    for path in book.bibliography:
        target = project / path.relative_to(book.root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    shutil.copytree(EXTENSIONS, project / "_extensions")


def _config(book: Book, files: dict[str, str]) -> dict[str, Any]:
    """The settings of the book with its chapters replaced by notebooks and with execution off."""
    config = copy.deepcopy(book.config)

    def replaced(item: Any) -> Any:
        if isinstance(item, str):
            return files.get(item, item)
        if isinstance(item, list):
            return [replaced(each) for each in item]
        if isinstance(item, dict):
            return {name: replaced(value) for name, value in item.items()}
        return item

    for name in ("chapters", "appendices"):
        if config["book"].get(name):
            config["book"][name] = replaced(config["book"][name])
    config.setdefault("project", {})["output-dir"] = "_site"
    config["execute"] = {"enabled": False}
    config.setdefault("filters", ["dense"])
    config.pop("profile", None)
    return config


def _run(book: Book, project: Path, done: Callable[[Page], None]) -> None:
    by_stem = {Path(page.href).with_suffix("").as_posix(): page for page in book.pages}
    tail: deque[str] = deque(maxlen=30)
    command = [shutil.which("quarto"), "render", "--to", "html"]
    with subprocess.Popen(
        command,
        cwd=project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as process:
        try:
            for line in process.stdout:
                line = ANSI.sub("", line.rstrip())
                tail.append(line)
                if match := RENDERING.search(line):
                    page = by_stem.get(Path(match["file"]).with_suffix("").as_posix())
                    if page:
                        done(page)
        except BaseException:
            process.terminate()
            raise
    if process.returncode:
        message = "\n".join(line for line in tail if line.strip())
        raise BuildError(f"Quarto stopped with code {process.returncode}:\n{message}")
