"""The committed notebooks belong to the chapters, the package, the figures and the pinned versions."""

import json
from pathlib import Path

import pytest

from tools import stale
from tools.book import load_book
from tools.convert import dumps
from tools.notebooks import make
from tools.references import collect

ROOT = Path(__file__).resolve().parents[2]
BOOK = load_book(ROOT)
REFRESH = f"run `{stale.COMMAND}` and commit the notebooks"


@pytest.fixture(scope="module")
def registry():
    return collect(BOOK)


def test_no_notebook_is_stale(registry):
    assert [str(found) for found in stale.find_stale(BOOK, registry)] == [], REFRESH


def test_no_notebook_is_left_over():
    made = {page.notebook for page in BOOK.notebooks}
    assert [path.name for path in (ROOT / "notebooks").glob("*.ipynb") if path not in made] == []


@pytest.mark.parametrize("page", BOOK.notebooks, ids=lambda page: page.source.stem)
def test_converting_again_gives_the_committed_bytes(page, registry):
    digests = stale.Digests(BOOK, registry)
    if stale.why_stale(page, digests):
        pytest.fail(f"stale: {REFRESH}")
    again, executed = make(page, BOOK, registry, digests)
    assert not executed
    assert dumps(again).encode() == page.notebook.read_bytes().replace(b"\r\n", b"\n"), REFRESH


def test_nothing_in_a_notebook_names_this_machine():
    for page in BOOK.notebooks:
        text = page.notebook.read_text(encoding="utf-8")
        for place in (str(ROOT), str(Path.home())):
            assert len(place) < 4 or place not in text, f"{page.notebook.name}: {place}"


@pytest.mark.parametrize("page", BOOK.notebooks, ids=lambda page: page.source.stem)
def test_no_output_makes_quarto_load_scripts_from_another_host(page):
    """A plain `quarto render` takes every HTML or JavaScript output for a widget that needs a CDN."""
    cells = json.loads(page.notebook.read_text(encoding="utf-8"))["cells"]
    shown = [mime for cell in cells for output in cell.get("outputs", []) for mime in output.get("data", {})]
    assert not {"text/html", "application/javascript"} & set(shown)
