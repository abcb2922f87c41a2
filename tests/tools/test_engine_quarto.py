"""The project that is handed to Quarto: whole pages, with nothing left to include or to execute."""

import json

import sample_book
import yaml

from tools import build, compose
from tools.book import load_book
from tools.engines import quarto
from tools.references import collect


def test_every_page_is_whole(tmp_path):
    root = sample_book.write(tmp_path / "book")
    book = load_book(root)
    (tmp_path / "site").mkdir()
    streams, feet = build.composed(book, collect(book), tmp_path / "site", [])
    project = tmp_path / "project"
    project.mkdir()
    quarto.write_project(book, streams, feet, project)
    first = json.loads((project / "chapters/01-first.ipynb").read_text(encoding="utf-8"))
    text = "\n".join("".join(cell["source"]) for cell in first["cells"])
    second = (project / "chapters/02-second.qmd").read_text(encoding="utf-8")
    assert "Write a function." in text and "$$ a = b $$ {#eq-second}" in second
    assert "{{<" not in text + second
    assert yaml.safe_load((project / "_quarto.yml").read_text())["execute"] == {"enabled": False}


def test_cells_that_the_converter_made_do_not_reach_it():
    made = {"dense": {"generated": True, "options": {"label": "answer-a"}}}
    cells = [
        {"cell_type": "code", "id": "answer-a", "metadata": made, "source": "a = ...", "outputs": []},
        {"cell_type": "markdown", "id": "text", "metadata": {"dense": {"qmd": "text"}}, "source": "text"},
    ]
    [cell] = compose.to_notebook(compose.stream(None, {"cells": cells}))["cells"]
    assert cell["cell_type"] == "markdown"
