"""Say which notebooks no longer belong to their chapter, package, figures or pinned versions."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tools import exercises, qmd
from tools.book import Book, Page
from tools.references import Registry, page_references, section_numbers

CONVERTER = ("book", "citations", "convert", "pandoc", "qmd", "reading", "references", "source")
EXECUTOR = ("execute", "exercises")
SOURCES = (".py", ".yml", ".yaml", ".toml", ".json", ".txt", ".csv", ".mplstyle", ".npz", ".npy")
BINARY = (".npz", ".npy")
TOOLS = Path(__file__).parent
SAMPLES = "benchmarks/results"
FIGURES = "figures/denselayer_figures"
READS = re.compile(r"\bstored\(|\bbench\b")
"""What code says that reads measured samples."""
COMMAND = "make notebooks"


@dataclass(frozen=True)
class Stale:
    """A page whose notebook must be made again, and why."""

    page: Page
    reason: str

    def __str__(self) -> str:
        return f"notebooks/{self.page.notebook.name} is stale: {self.reason}"


class Digests:
    """The hashes of one state of the book."""

    def __init__(self, book: Book, registry: Registry) -> None:
        self.book = book
        self.registry = registry

    @cached_property
    def surroundings(self) -> dict[str, str]:
        """What every execution depends on outside its chapter, each part with its hash.

        The words of the exercises are no part of it: they are made from the notebooks.
        """
        root = self.book.root
        written = exercises.texts_path(root, self.book.config)
        code = [(name, content) for name, content in _files(root, root / "code") if root / name != written]
        return {
            "the package (code/)": digest(code),
            "the figures (figures/)": digest(_files(root, root / "figures")),
            "constraints.txt": digest(_files(root, root / "constraints.txt")),
            "the executor": digest(_tool_files(EXECUTOR)),
        }

    @cached_property
    def samples(self) -> str:
        """The hash of all measured samples."""
        return digest(_files(self.book.root, self.book.root / SAMPLES))

    @cached_property
    def figures_of_samples(self) -> set[str]:
        """The modules of figures that read measured samples."""
        modules = (self.book.root / FIGURES).glob("*.py")
        return {path.stem for path in modules if READS.search(normal(path).decode())}

    def reads_samples(self, code: str) -> bool:
        """Whether the code of a page reads measured samples, itself or by a figure that it draws."""
        words = set(re.findall(r"\w+", code))
        return bool(READS.search(code)) or not words.isdisjoint(self.figures_of_samples)

    def execution(self, page: Page) -> dict[str, str]:
        """The parts that an execution of this page depends on, each with its hash."""
        steps = _steps(page.document)
        parts = {"the code of the chapter": digest(steps), **self.surroundings}
        if self.reads_samples("\n".join(code.decode() for _, code in steps)):
            parts[f"the measured samples ({SAMPLES}/)"] = self.samples
        return parts

    def text(self, page: Page) -> str:
        """The hash of all the rest: prose, options, numbers of what it refers to, works it cites."""
        own = {target.id: target.label for target in self.registry.of(page)}
        used = {ref.key for ref in page_references(page) if ref.key in self.registry}
        labels = {key: self.registry[key].label for key in used}
        cited = sorted({ref.key for ref in page_references(page)} - set(self.registry))
        works = [f"{key}={entry}" for key, entry in _entries(self.book, cited)]
        version = (
            normal(self.book.root / "pyproject.toml")
            if (self.book.root / "pyproject.toml").is_file()
            else b""
        )
        frame = [page.number, page.title, self.book.title, page.name, _version_line(version)]
        numbers = section_numbers(page)
        return digest(
            [
                ("frame", json.dumps([frame, own, labels, numbers], sort_keys=True).encode()),
                ("text", page.document.text.rstrip().encode()),
                ("works", "\n".join(works).encode()),
                *_tool_files(CONVERTER),
            ]
        )

    def stamp(self, page: Page) -> dict[str, object]:
        """What a notebook stores of this state."""
        return {"text": self.text(page), "execution": self.execution(page)}


def find_stale(book: Book, registry: Registry) -> list[Stale]:
    """The pages whose stored notebook is missing, broken, or made from something else."""
    digests = Digests(book, registry)
    found = []
    for page in book.notebooks:
        reason = why_stale(page, digests)
        if reason:
            found.append(Stale(page, reason))
    return found


def why_stale(page: Page, digests: Digests) -> str:
    """The reason as a sentence end; empty for a fresh notebook."""
    stored = stored_notebook(page)
    if stored is None:
        return "it does not exist" if not page.notebook.is_file() else "it cannot be read"
    changed = what_changed(stored, page, digests)
    if changed:
        return "changed since it was executed: " + ", ".join(changed)
    if _stamp(stored).get("text") != digests.text(page):
        return "changed since it was converted: the text, or a number or work that it refers to"
    return ""


def what_changed(stored: dict[str, Any], page: Page, digests: Digests) -> list[str]:
    """The parts that call for a new execution."""
    known = _stamp(stored).get("execution", {})
    return [part for part, value in digests.execution(page).items() if known.get(part) != value]


def stored_notebook(page: Page) -> dict[str, Any] | None:
    """The committed notebook of a page as plain JSON, None when it is missing or broken."""
    try:
        stored = json.loads(page.notebook.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    whole = isinstance(stored, dict) and isinstance(stored.get("cells"), list)
    return stored if whole and isinstance(stored.get("metadata"), dict) else None


def _stamp(stored: dict[str, Any]) -> dict[str, Any]:
    return stored["metadata"].get("dense", {}).get("hash", {})


def digest(parts: Iterable[tuple[str, bytes]]) -> str:
    """One short hash over named pieces, in their order."""
    total = hashlib.sha256()
    for name, content in parts:
        total.update(f"{name}\0{len(content)}\0".encode())
        total.update(content)
    return total.hexdigest()[:16]


def normal(path: Path) -> bytes:
    """A file's content; the line endings of a text file do not count."""
    content = path.read_bytes()
    return content if path.suffix in BINARY else content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _files(root: Path, place: Path) -> list[tuple[str, bytes]]:
    """Name and content of a file, or of all source files below a folder, in the order of their names."""
    paths = [place] if place.is_file() else [path for path in place.rglob("*") if path.suffix in SOURCES]
    named = [(path.relative_to(root).as_posix(), path) for path in paths if path.is_file()]
    return [(name, normal(path)) for name, path in sorted(named) if not _built(name)]


def _built(name: str) -> bool:
    folders = name.split("/")[:-1]
    return "out" in folders or any(
        f.startswith((".", "__pycache__")) or f.endswith(".egg-info") for f in folders
    )


def _tool_files(names: Iterable[str]) -> list[tuple[str, bytes]]:
    return [(name, normal(TOOLS / f"{name}.py")) for name in names]


def _steps(document: qmd.Document) -> list[tuple[str, bytes]]:
    """The executed cells, inline expressions and exercises of a chapter in order."""
    steps: list[tuple[str, bytes]] = []
    for node in document.nodes:
        if isinstance(node, qmd.Cell) and node.option("eval") is not False:
            kind = "may raise" if node.option("error", False) else "cell"
            steps.append((f"{kind} {node.label}", node.code.encode()))
        elif isinstance(node, qmd.DivOpen) and qmd.kind_of(node.attributes.id) == "exr":
            steps.append(("exercise", node.attributes.id.encode()))
        elif isinstance(node, qmd.Prose | qmd.Heading):
            text = document.source(node.line, node.last)
            for span in qmd.inline_spans(text):
                if span.kind == "expression":
                    steps.append(("value", span.text.encode()))
    return steps


def _entries(book: Book, keys: list[str]) -> list[tuple[str, str]]:
    """The text of the bibliography entries with these keys."""
    found: dict[str, str] = {}
    for path in book.bibliography:
        for chunk in normal(path).decode("utf-8").split("\n@"):
            for key in keys:
                if f"{{{key}," in chunk.split("\n")[0].replace(" ", ""):
                    found[key] = chunk.strip()
    return sorted(found.items())


def _version_line(content: bytes) -> str:
    lines = content.decode("utf-8").split("\n")
    return next((line.strip() for line in lines if line.startswith("version")), "")
