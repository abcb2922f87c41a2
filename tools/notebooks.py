"""Bring the committed notebooks up to date: convert all that changed, execute what has to be."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import nbformat
from nbformat import NotebookNode

from tools import texts
from tools.book import Book, Page
from tools.convert import Draft, convert, dumps, notebook
from tools.execute import TIMEOUT, Results
from tools.execute import execute as execute_draft
from tools.machine import executed_with
from tools.references import Registry, collect
from tools.stale import Digests, stored_notebook, what_changed, why_stale

Report = Callable[[Page, int, int, str], None]


@dataclass
class Summary:
    """What a refresh did, by page name."""

    executed: list[str] = field(default_factory=list)
    converted: list[str] = field(default_factory=list)
    fresh: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{len(self.executed)} executed, {len(self.converted)} converted with the outputs they had,"
            f" {len(self.fresh)} fresh"
        )


def refresh(
    book: Book,
    *,
    force: bool = False,
    only: Iterable[str] = (),
    timeout: int = TIMEOUT,
    report: Report | None = None,
) -> Summary:
    """Make every stale notebook again; with `force` all of them, with `only` just the named pages.

    Each notebook is replaced when it is complete, so that an error or Ctrl-C leaves whole files.  At the
    end the words of the exercises are written for the package.
    Raises BuildError as `tools.references.collect` and `tools.execute.execute` do.
    """
    registry = collect(book)
    digests = Digests(book, registry)
    names = set(only)
    summary = Summary()
    for page in book.notebooks:
        if names and page.name not in names:
            continue
        if not force and not why_stale(page, digests):
            summary.fresh.append(page.name)
            continue
        made, executed = make(page, book, registry, digests, force=force, timeout=timeout, report=report)
        write(page, made)
        (summary.executed if executed else summary.converted).append(page.name)
    texts.update(book, registry, digests)
    return summary


def make(
    page: Page,
    book: Book,
    registry: Registry,
    digests: Digests,
    *,
    force: bool = False,
    timeout: int = TIMEOUT,
    report: Report | None = None,
) -> tuple[NotebookNode, bool]:
    """One page's notebook, and whether its cells were run; stored outputs are used where they still hold."""
    draft = convert(page, book, registry)
    stored = stored_notebook(page)
    results = None
    if stored is not None and not force and not what_changed(stored, page, digests):
        results = stored_results(draft, stored)
    executed = results is None
    if results is None:
        progress = partial(report, page) if report else None
        results = execute_draft(draft, book.root, timeout=timeout, progress=progress)
        used = executed_with()
    else:
        used = stored["metadata"]["dense"]["executed"]
    made = notebook(draft, results.values, results.outputs)
    made.metadata.dense.update(hash=digests.stamp(page), executed=used)
    return made, executed


def stored_results(draft: Draft, stored: dict[str, Any]) -> Results | None:
    """The outputs and inline values of an earlier execution; None when they do not fit the draft."""
    cells = nbformat.from_dict(stored["cells"])
    outputs = {
        cell.id: [one_text(output) for output in cell.outputs] for cell in cells if cell.cell_type == "code"
    }
    inline = [pair for cell in cells for pair in cell.metadata.get("dense", {}).get("inline", [])]
    asked = [(number, text) for piece in draft.pieces for number, text, _ in piece.expressions]
    if [text for _, text in asked] != [pair["expression"] for pair in inline]:
        return None
    if [piece.id for piece in draft.pieces if piece.executed] != list(outputs):
        return None
    values = {number: pair["value"] for (number, _), pair in zip(asked, inline, strict=True)}
    return Results(values, outputs)


def one_text(output: NotebookNode) -> NotebookNode:
    """An output as it is in memory: files keep long texts as lists of lines."""
    for place in (output, output.get("data", {})):
        for key, value in place.items():
            if isinstance(value, list) and key != "traceback":
                place[key] = "".join(value)
    return output


def write(page: Page, made: NotebookNode) -> None:
    """Replace the notebook in one step; an equal file is left alone."""
    text = dumps(made).encode("utf-8")
    if page.notebook.is_file() and page.notebook.read_bytes() == text:
        return
    page.notebook.parent.mkdir(exist_ok=True)
    aside = page.notebook.with_suffix(".ipynb.part")
    aside.write_bytes(text)
    os.replace(aside, page.notebook)
