"""Write the words of the exercises for the package: title, prompt, hints and solution of each, as text.

They are taken from the executed notebooks, so that every number in them is computed and every reference
resolved, and they are written twice: as the Markdown that Jupyter shows, and as plain text for a terminal.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools import compose, exercises, qmd
from tools.book import Book, Page
from tools.citations import Bibliography
from tools.convert import load_bibliography
from tools.reading import mark, plain, readable
from tools.references import Registry
from tools.stale import Digests, why_stale

Texts = dict[str, dict[str, Any]]


@dataclass
class Words:
    """The pieces of one exercise in the markup of the book; None for what its page does not have."""

    title: str | None = None
    prompt: str | None = None
    hints: list[str] = field(default_factory=list)
    solution: str | None = None

    def fields(self) -> Iterator[tuple[str, str]]:
        """Every piece with its name; each hint has the name `hints`."""
        for name in ("title", "prompt", "solution"):
            if (text := getattr(self, name)) is not None:
                yield name, text
        yield from (("hints", hint) for hint in self.hints)


def update(book: Book, registry: Registry, digests: Digests) -> None:
    """Write the words of all exercises; a page whose notebook is stale keeps those that it had."""
    path = exercises.texts_path(book.root, book.config)
    if path is None:
        return
    fresh = [page for page in book.notebooks if not why_stale(page, digests)]
    text = dumps(_with_old(texts(book, registry, fresh), _read(path), book)).encode("utf-8")
    if not path.is_file() or path.read_bytes() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_suffix(".json.part")
        aside.write_bytes(text)
        os.replace(aside, path)


def dumps(found: Texts) -> str:
    """The file: sorted, one line for each text."""
    return json.dumps(found, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def _read(path: Path) -> Texts:
    """What was written before; nothing when it cannot be read, for it can be made again."""
    try:
        old = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    whole = isinstance(old, dict) and all(isinstance(entry, dict) for entry in old.values())
    return old if whole else {}


def _with_old(found: Texts, old: Texts, book: Book) -> Texts:
    """Add, of the exercises that the book still has, the words that were not made anew."""
    divs = (node for page in book.pages for node in page.document.nodes if isinstance(node, qmd.DivOpen))
    known = {node.attributes.id.partition("-")[2] for node in divs if node.attributes.id}
    for identifier in known & old.keys():
        entry = found.setdefault(identifier, {"plain": {}})
        before = old[identifier]
        entry["plain"] = {**before.get("plain", {}), **entry["plain"]}
        found[identifier] = {**before, **entry}
    return found


def texts(book: Book, registry: Registry, pages: Iterable[Page]) -> Texts:
    """The words of the exercises and solutions on these pages, from their stored notebooks."""
    bibliography = load_bibliography(book)
    found: Texts = {}
    for page in pages:
        words = words_of(compose.stream(page, compose.load_notebook(page)))
        for identifier, told in _written(words, page, registry, bibliography).items():
            entry = found.setdefault(identifier, {"plain": {}})
            entry["plain"] |= told.pop("plain")
            entry |= told
    return found


def words_of(stream: compose.Stream) -> dict[str, Words]:
    """The exercises and solutions of one page by id, without `exr-` and `sol-`."""
    found: dict[str, Words] = {}
    for attributes, start, end in compose.divs(stream):
        kind, _, identifier = attributes.id.partition("-")
        if kind == "exr":
            found[identifier] = _exercise(stream[start + 1 : end])
        elif kind == "sol":
            found[identifier] = Words(solution=_markup(stream[start + 1 : end]))
    return found


def _exercise(inside: compose.Stream) -> Words:
    words = Words(title="")
    hidden: set[int] = set()
    for attributes, start, end in sorted(compose.divs(inside), key=lambda div: div[1]):
        if "hint" in attributes.classes and start not in hidden:
            words.hints.append(_markup(inside[start + 1 : end]))
            hidden.update(range(start, end + 1))
    rest = [item for number, item in enumerate(inside) if number not in hidden]
    first = next((n for n, item in enumerate(rest) if not isinstance(item, str) or item.strip()), 0)
    if rest and isinstance(rest[first], str) and (heading := qmd.HEADING.match(rest[first])):
        words.title = qmd.split_attributes(heading["text"])[0]
        rest = rest[first + 1 :]
    words.prompt = _markup(rest)
    return words


def _markup(items: compose.Stream) -> str:
    """Lines as they are; a cell as its code and the text that it printed."""
    lines: list[str] = []
    for item in items:
        lines += [item] if isinstance(item, str) else ["", *compose.as_text(item), ""]
    return "\n".join(lines)


def _written(words: Mapping[str, Words], page: Page, registry: Registry, bibliography: Bibliography) -> Texts:
    """The pieces of a page in both forms, converted together."""
    fields = [(identifier, *each) for identifier, told in words.items() for each in told.fields()]
    marked = "".join(f"\n\n{mark(number)}\n\n{text}\n" for number, (_, _, text) in enumerate(fields))
    found: Texts = {identifier: {"plain": {}} for identifier in words}
    if not fields:
        return found
    markdown = readable(marked, page, registry, bibliography)
    terminal = plain(marked, page, registry, bibliography)
    for number, (identifier, name, _) in enumerate(fields):
        entry = found[identifier]
        if name == "hints":
            entry.setdefault(name, []).append(markdown[number])
            entry["plain"].setdefault(name, []).append(terminal[number])
        else:
            entry[name] = markdown[number]
            entry["plain"][name] = terminal[number]
    for identifier, told in words.items():
        if told.prompt is not None:
            found[identifier].setdefault("hints", [])
            found[identifier]["plain"].setdefault("hints", [])
    return found
