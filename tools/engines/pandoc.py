"""Render the book with pandoc, one Lua filter and one template: the engine that needs no Quarto."""

from __future__ import annotations

import hashlib
import html
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from posixpath import relpath
from typing import Any

from tools import compose, pandoc, search
from tools.book import Book, Page
from tools.errors import BuildError
from tools.references import Registry, Target

TOOLS = Path(__file__).resolve().parent.parent
EXTENSION = TOOLS.parent / "_extensions" / "dense"
FILTERS = [
    EXTENSION / "dense.lua",
    EXTENSION / "glossary.lua",
    TOOLS / "engines" / "pandoc.lua",
    "citeproc",
    EXTENSION / "dense-finish.lua",
]
ASSETS = [
    *(EXTENSION / name for name in ("dense.css", "dense.js", "favicon.svg")),
    *(TOOLS / "templates" / name for name in ("site.css", "site.js")),
]


def describe() -> str:
    return f"pandoc {pandoc.run(['--version']).split()[1]}"


def render(
    book: Book,
    registry: Registry,
    streams: dict[str, compose.Stream],
    provenance: dict[str, str],
    site: Path,
    done: Callable[[Page], None] = lambda page: None,
) -> None:
    """Write the pages, their figures, the assets and the search index into the folder `site`.

    `streams` and `provenance` hold the composed text of each page and the sentence at its foot, by
    the page's name; `done` is called after each page.
    """
    stamp = write_assets(site)
    with tempfile.TemporaryDirectory(prefix="denselayer-") as scratch, ThreadPoolExecutor(workers()) as pool:

        def one(index: int) -> Page:
            page = book.pages[index]
            text = _Text(page, streams[page.name], provenance.get(page.name, ""))
            _Job(book, registry, index, text, stamp, Path(scratch), site).run()
            return page

        try:
            for page in pool.map(one, range(len(book.pages))):
                done(page)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    search.write(site, {page.href: 0.3 if page.is_appendix else 1 for page in book.pages})


def workers() -> int:
    return max(1, min(8, os.cpu_count() or 1))


def write_assets(site: Path) -> str:
    """Copy style sheets, scripts and fonts; return a stamp that changes with their content."""
    assets = site / "assets"
    assets.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    for source in ASSETS:
        shutil.copyfile(source, assets / source.name)
        digest.update(source.read_bytes())
    shutil.copytree(EXTENSION / "fonts", assets / "fonts", dirs_exist_ok=True)
    return digest.hexdigest()[:10]


class _Text:
    """What is to be rendered of one page."""

    def __init__(self, page: Page, stream: compose.Stream, provenance: str) -> None:
        folder = Path(page.href).stem + "_files/figure-html"
        self.composed = compose.to_markdown(stream, folder)
        self.provenance = provenance


class _Job:
    """One run of pandoc."""

    def __init__(
        self,
        book: Book,
        registry: Registry,
        index: int,
        text: _Text,
        stamp: str,
        scratch: Path,
        site: Path,
    ) -> None:
        self.book = book
        self.registry = registry
        self.index = index
        self.page = book.pages[index]
        self.text = text
        self.stamp = stamp
        self.scratch = scratch
        self.site = site

    def run(self) -> None:
        output = self.site / self.page.href
        output.parent.mkdir(parents=True, exist_ok=True)
        for path, content in self.text.composed.files.items():
            target = output.parent / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        data = self._write("data", self._data())
        defaults = self._write("defaults", self._defaults(data))
        command = [pandoc.find(), "--defaults", str(defaults), "--output", str(output)]
        text = self.text.composed.text.encode("utf-8")
        done = subprocess.run(command, input=text, capture_output=True, check=False)
        message = done.stderr.decode("utf-8", "replace").strip()
        if done.returncode or message:
            raise BuildError(explain(self.page, message or f"pandoc stopped with code {done.returncode}"))

    def _write(self, kind: str, value: dict[str, Any]) -> Path:
        path = self.scratch / f"{self.index}-{kind}.json"
        path.write_text(json.dumps(value), encoding="utf-8")
        return path

    def _data(self) -> dict[str, Any]:
        """What the Lua filter knows: this page's number and all targets with addresses relative to it."""
        targets = {
            target.id: {
                "label": self._label(target),
                "number": target.number,
                "title": plain(target.title),
                "href": self._address(target.page, f"#{target.id}"),
            }
            for target in self.registry.values()
        }
        known = {"number": self.page.number, "profile": self.book.profile, "targets": targets}
        return {name: value for name, value in known.items() if value is not None}

    def _label(self, target: Target) -> str:
        """As Quarto does: an unnumbered page, the first one, calls a chapter by number and title."""
        if self.page.number is None and target.id == target.page.id and target.number:
            return f"{target.number} {plain(target.title)}"
        return target.label

    def _address(self, page: Page, anchor: str = "") -> str:
        if page.href == self.page.href and anchor:
            return anchor
        return relpath(page.href, os.path.dirname(self.page.href) or ".") + anchor

    def _defaults(self, data: Path) -> dict[str, Any]:
        return {
            "from": "markdown",
            "to": "html5",
            "standalone": True,
            "template": str(TOOLS / "templates" / "page.html"),
            "html-math-method": {"method": "mathml"},
            "toc": True,
            "toc-depth": 3,
            "section-divs": True,
            "wrap": "preserve",
            "filters": [str(path) for path in FILTERS],
            "bibliography": [str(path) for path in self.book.bibliography],
            "metadata": {
                "dense-data": str(data),
                "link-citations": True,
                "lang": str(self.book.config.get("lang") or "en"),
                **self._glossary(),
            },
            "variables": self._variables(),
        }

    def _glossary(self) -> dict[str, Any]:
        """What Quarto's metadata say: where the glossary is, and that this page is a numbered chapter."""
        name = self.book.config.get("glossary")
        if not name or not self.page.number or self.page.is_appendix:
            return {}
        address = relpath(str(name), os.path.dirname(self.page.name) or ".")
        file = str(self.book.root / name)
        chapter = {"chapter-id": self.page.id or "chapter"}
        return {"glossary": address, "glossary-file": file, "crossref": chapter}

    def _variables(self) -> dict[str, Any]:
        pages = self.book.pages
        title = plain(self.page.title)
        numbered = f"{self.page.number}  {title}" if self.page.number else title
        cover = self.page.href == "index.html"
        values: dict[str, Any] = {
            "root": "../" * self.page.href.count("/"),
            "stamp": self.stamp,
            "book-title": html.escape(self.book.title),
            "page-title": html.escape(self.book.title if cover else f"{numbered} – {self.book.title}"),
            "kicker": self._kicker(),
            "provenance": html.escape(self.text.provenance),
            "chapters": [self._entry(page) for page in pages if not page.is_appendix],
            "appendices": [self._entry(page) for page in pages if page.is_appendix],
        }
        if cover:
            values["cover"] = True
            values["book-subtitle"] = html.escape(self.book.subtitle)
            values["book-author"] = html.escape(self.book.author)
        if self.index > 0:
            values["previous"] = self._entry(pages[self.index - 1])
        if self.index + 1 < len(pages):
            values["next"] = self._entry(pages[self.index + 1])
        return {name: value for name, value in values.items() if value}

    def _kicker(self) -> str:
        if not self.page.number:
            return ""
        return f"{'Appendix' if self.page.is_appendix else 'Chapter'} {self.page.number}"

    def _entry(self, page: Page) -> dict[str, Any]:
        entry: dict[str, Any] = {"href": self._address(page), "title": html.escape(plain(page.title))}
        if page.number:
            entry["number"] = page.number
        if page.href == self.page.href:
            entry["current"] = True
        return entry


def plain(markdown: str) -> str:
    """A heading without its marks, for places that show text only.

    >>> plain("The *weight* `W` and $x$")
    'The weight W and x'
    """
    return re.sub(r"[`*$\\]", "", markdown)


def explain(page: Page, message: str) -> str:
    """Say where in the chapter a message of pandoc belongs, when it quotes something of it."""
    for quoted in re.findall(r"'?([\w:.-]{3,})'? not found|TeX math (.+?)(?:,|:|$)", message, re.DOTALL):
        needle = next(part for part in quoted if part).strip().split("\n")[0]
        for number, line in enumerate(page.document.lines, start=1):
            if needle and needle in line:
                return f"{page.document.place(number)}: {message}"
    return f"{page.name}: {message}"
