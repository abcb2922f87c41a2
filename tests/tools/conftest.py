"""A small book in a temporary folder, for the tests of the build tool."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tools.book import Book, load_book

BIBLIOGRAPHY = r"""@article{rumelhart1986,
  author = {Rumelhart, David E. and Hinton, Geoffrey E. and Williams, Ronald J.},
  title = {Learning Representations by Back-Propagating Errors},
  journal = {Nature}, volume = {323}, pages = {533--536}, year = {1986}, doi = {10.1038/323533a0}
}

@book{nielsen2015,
  author = {Nielsen, Michael A.}, title = {Neural Networks and Deep Learning},
  publisher = {Determination Press}, year = {2015}
}
"""

MakeBook = Callable[..., Book]


@pytest.fixture
def make_book(tmp_path: Path) -> MakeBook:
    """`make_book(chapter, appendix, index=...)` writes the pages and loads the book."""

    def make(chapter: str = "# One {#sec-one}\n", appendix: str | None = None, **files: str) -> Book:
        pages = {"index.qmd": "# Preface {.unnumbered}\n", "chapters/01-one.qmd": chapter}
        settings = 'book:\n  title: "A Book"\n  chapters: [index.qmd, chapters/01-one.qmd'
        for name in files:
            if name.startswith("chapters/"):
                settings += f", {name}"
        settings += "]\n"
        if appendix is not None:
            pages["chapters/91-more.qmd"] = appendix
            settings += "  appendices: [chapters/91-more.qmd]\n"
        pages |= {"_quarto.yml": settings + "bibliography: references.bib\n", "references.bib": BIBLIOGRAPHY}
        pages |= {"code/small/__init__.py": "FACTOR = 3\n", "figures/parameters.yml": "width: 5\n"}
        pages |= {"constraints.txt": "numpy==2.4.6\n"}
        for name, text in {**pages, **files}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        return load_book(tmp_path)

    return make
