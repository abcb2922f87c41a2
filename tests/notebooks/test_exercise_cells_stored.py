"""The cells of the exercises in the committed notebooks are unattempted."""

import json
from pathlib import Path

import pytest

from tools.book import load_book

ROOT = Path(__file__).resolve().parents[2]
BOOK = load_book(ROOT)
CHAPTERS = [page for page in BOOK.notebooks if page.number and not page.is_appendix]


@pytest.mark.parametrize("page", CHAPTERS, ids=lambda page: page.source.stem)
def test_every_exercise_has_its_two_cells_and_is_not_attempted(page):
    cells = json.loads(page.notebook.read_text(encoding="utf-8"))["cells"]
    kinds = {cell["id"]: cell for cell in cells if cell["cell_type"] == "code"}
    for node in page.document.nodes:
        identifier = getattr(getattr(node, "attributes", None), "id", "")
        if identifier.startswith("exr-"):
            exercise = BOOK.exercises[identifier.removeprefix("exr-")]
            answer, check = kinds[f"answer-{exercise.id}"], kinds[f"check-{exercise.id}"]
            assert "".join(answer["source"]) == exercise.starter.rstrip("\n")
            assert answer["outputs"] == []
            [output] = check["outputs"]
            assert "Not attempted" in "".join(output["data"]["text/plain"])
