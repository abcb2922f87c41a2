"""When a notebook is stale, what that costs to repair, and what never makes it stale."""

import json
import os

import pytest
from nbformat.v4 import new_output

from tools import notebooks, stale
from tools.book import load_book
from tools.errors import BuildError
from tools.execute import Results
from tools.notebooks import refresh
from tools.references import collect

CHAPTER = """# One {#sec-one}

Text about @sec-more and [@rumelhart1986], `{python} n`.

```{python}
#| label: one
n = 3
```
"""
MORE = "# More {#sec-more}\n\n`{python} 1`\n"


@pytest.fixture
def executions(monkeypatch):
    """Replaces the kernel: every cell prints its label, every expression is worth its number."""
    seen = []

    def execute(draft, root, *, timeout, progress):
        seen.append(draft.page.name)
        shown = [piece for piece in draft.pieces if piece.executed]
        outputs = {p.id: [new_output("stream", name="stdout", text=f"{p.id}\nis\nrun\n")] for p in shown}
        numbers = [number for piece in draft.pieces for number, _, _ in piece.expressions]
        return Results({number: f"value {number}" for number in numbers}, outputs)

    monkeypatch.setattr(notebooks, "execute_draft", execute)
    return seen


@pytest.fixture
def fresh(make_book, executions):
    """A book whose notebooks have just been made; the list of executions is empty again."""
    book = make_book(CHAPTER, MORE)
    refresh(book)
    executions.clear()
    return book.root


def reasons(root):
    book = load_book(root)
    return {found.page.source.stem: found.reason for found in stale.find_stale(book, collect(book))}


def change(path, before, after):
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after), encoding="utf-8")


def test_notebooks_just_made_are_fresh(fresh, executions):
    assert reasons(fresh) == {}
    assert str(refresh(load_book(fresh))) == "0 executed, 0 converted with the outputs they had, 2 fresh"
    assert executions == []


def test_a_stale_notebook_is_named_with_the_reason(fresh):
    change(fresh / "chapters/01-one.qmd", "n = 3", "n = 4")
    book = load_book(fresh)
    assert [str(found) for found in stale.find_stale(book, collect(book))] == [
        "notebooks/01-one.ipynb is stale: changed since it was executed: the code of the chapter"
    ]


@pytest.mark.parametrize(
    ("file", "before", "after", "reason"),
    [
        ("chapters/01-one.qmd", "n = 3", "n = 4", "the code of the chapter"),
        ("chapters/01-one.qmd", "`{python} n`", "`{python} n + 1`", "the code of the chapter"),
        ("chapters/01-one.qmd", "label: one", "label: two", "the code of the chapter"),
        (
            "chapters/01-one.qmd",
            "label: one",
            "label: one\n#| error: true",
            "the code of the chapter",
        ),
        ("code/small/__init__.py", "3", "4", "the package (code/)"),
        ("figures/parameters.yml", "5", "6", "the figures (figures/)"),
        ("constraints.txt", "2.4.6", "2.4.7", "constraints.txt"),
    ],
)
def test_what_calls_for_a_new_execution(fresh, executions, file, before, after, reason):
    change(fresh / file, before, after)
    assert reasons(fresh)["01-one"] == f"changed since it was executed: {reason}"
    refresh(load_book(fresh))
    assert "chapters/01-one.qmd" in executions
    assert reasons(fresh) == {}


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        ("chapters/01-one.qmd", "Text about", "Words about"),
        ("chapters/01-one.qmd", "label: one", "label: one\n#| echo: false"),
        ("chapters/91-more.qmd", "# More {#sec-more}", "# More {#sec-more .unnumbered}"),
        ("references.bib", "year = {1986}", "year = {1985}"),
        ("_quarto.yml", "A Book", "Another Book"),
    ],
)
def test_prose_is_converted_again_and_keeps_its_outputs(fresh, executions, file, before, after):
    notebook = fresh / "notebooks/01-one.ipynb"
    outputs = [c["outputs"] for c in json.loads(notebook.read_text())["cells"] if c["cell_type"] == "code"]
    change(fresh / file, before, after)
    assert "the text, or a number" in reasons(fresh)["01-one"]
    assert "01-one.qmd" in str(refresh(load_book(fresh)).converted)
    assert executions == []
    assert reasons(fresh) == {}
    cells = json.loads(notebook.read_text())["cells"]
    assert [c["outputs"] for c in cells if c["cell_type"] == "code"] == outputs
    assert cells[1]["metadata"]["dense"]["inline"] == [{"expression": "n", "value": "value 0"}]


def test_a_new_number_of_another_page_shows_in_the_text(fresh):
    change(fresh / "_quarto.yml", "appendices: [", "appendices: [chapters/90-new.qmd, ")
    (fresh / "chapters/90-new.qmd").write_text("# New {#sec-new}\n")
    assert "a number or work" in reasons(fresh)["01-one"]
    refresh(load_book(fresh))
    cells = json.loads((fresh / "notebooks/01-one.ipynb").read_text())["cells"]
    assert "Appendix B" in "".join(cells[1]["source"])


MEASURED = """# One {#sec-one}

```{python}
#| label: one
samples = bench.stored("forward")
```
"""
DRAWN = MEASURED.replace('bench.stored("forward")', "fast.figure()").replace("one}", "two}")


def test_new_samples_count_for_the_pages_that_read_them_and_for_no_other(make_book, executions):
    files = {
        "benchmarks/results/forward.json": '{"ns": 1}',
        "chapters/02-two.qmd": DRAWN,
        "chapters/03-three.qmd": DRAWN.replace("fast", "steady").replace("two}", "three}"),
        "figures/denselayer_figures/fast.py": "from denselayer import bench\n",
        "figures/denselayer_figures/steady.py": "from denselayer import cost\n",
    }
    book = make_book(MEASURED, MORE, **files)
    refresh(book)
    assert reasons(book.root) == {}
    change(book.root / "benchmarks/results/forward.json", "1", "2")
    why = "changed since it was executed: the measured samples (benchmarks/results/)"
    assert reasons(book.root) == {"01-one": why, "02-two": why}
    (book.root / "benchmarks/results/backward.json").write_text("{}")
    change(book.root / "benchmarks/results/forward.json", "2", "1")
    assert reasons(book.root) == {"01-one": why, "02-two": why}
    refresh(book)
    assert reasons(book.root) == {}


def test_an_entry_that_is_not_cited_does_not_count(fresh):
    change(fresh / "references.bib", "Determination Press", "Another Press")
    assert reasons(fresh) == {}


def test_converting_without_a_change_gives_the_same_bytes(fresh, executions):
    paths = sorted((fresh / "notebooks").iterdir())
    before = [path.read_bytes() for path in paths]
    change(fresh / "chapters/01-one.qmd", "Text about", "Words about")
    refresh(load_book(fresh))
    assert [path.read_bytes() for path in paths] != before
    change(fresh / "chapters/01-one.qmd", "Words about", "Text about")
    refresh(load_book(fresh))
    assert executions == []
    assert [path.read_bytes() for path in paths] == before


def test_line_endings_times_and_build_leftovers_do_not_count(fresh):
    for name in (
        "chapters/01-one.qmd",
        "code/small/__init__.py",
        "figures/parameters.yml",
        "constraints.txt",
    ):
        path = fresh / name
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
        os.utime(path, (1, 1))
    for name in (
        "code/small/__pycache__/a.py",
        "figures/out/a.json",
        "code/x.egg-info/a.txt",
        "code/notes.md~",
    ):
        (fresh / name).parent.mkdir(parents=True, exist_ok=True)
        (fresh / name).write_text("leftover")
    assert reasons(fresh) == {}


@pytest.mark.parametrize(
    "content", [None, "", "{", "[]", '{"cells": 1, "metadata": {}}', '{"cells": [], "metadata": {}}']
)
def test_a_missing_or_broken_notebook_is_stale_and_made_again(fresh, executions, content):
    path = fresh / "notebooks/01-one.ipynb"
    good = path.read_bytes()
    path.unlink()
    if content is not None:
        path.write_text(content)
    assert reasons(fresh)["01-one"]
    refresh(load_book(fresh))
    assert executions == ["chapters/01-one.qmd"]
    assert path.read_bytes() == good


@pytest.mark.parametrize(
    ("module", "reason"), [("reading.py", "since it was converted"), ("execute.py", "executed: the executor")]
)
def test_a_change_of_the_build_tool_counts(fresh, tmp_path_factory, monkeypatch, module, reason):
    copy = tmp_path_factory.mktemp("tools")
    for path in stale.TOOLS.glob("*.py"):
        (copy / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(stale, "TOOLS", copy)
    assert reasons(fresh) == {}
    (copy / module).write_bytes((copy / module).read_bytes() + b"\n")
    assert reason in reasons(fresh)["01-one"]


def test_a_new_version_of_the_package_counts_because_the_first_cell_names_it(fresh):
    assert reasons(fresh) == {}
    (fresh / "pyproject.toml").write_text('[project]\nname = "x"\nversion = "2"\n')
    assert "since it was converted" in reasons(fresh)["01-one"]


def test_a_notebook_is_replaced_in_one_step(fresh, monkeypatch):
    def full(*args):
        raise OSError("disk full")

    path = fresh / "notebooks/01-one.ipynb"
    before = path.read_bytes()
    change(fresh / "chapters/01-one.qmd", "Text about", "Words about")
    monkeypatch.setattr(notebooks.os, "replace", full)
    with pytest.raises(OSError, match="disk full"):
        refresh(load_book(fresh))
    assert path.read_bytes() == before


def test_outputs_that_do_not_fit_are_not_carried_over(fresh, executions):
    path = fresh / "notebooks/01-one.ipynb"
    stored = json.loads(path.read_text())
    stored["cells"] = [cell for cell in stored["cells"] if cell["id"] != "one"]
    path.write_text(json.dumps(stored))
    change(fresh / "chapters/01-one.qmd", "Text about", "Words about")
    refresh(load_book(fresh))
    assert executions == ["chapters/01-one.qmd"]


def test_force_executes_everything_and_only_limits_to_some(fresh, executions):
    refresh(load_book(fresh), force=True)
    assert executions == ["chapters/01-one.qmd", "chapters/91-more.qmd"]
    executions.clear()
    refresh(load_book(fresh), force=True, only=["chapters/91-more.qmd"])
    assert executions == ["chapters/91-more.qmd"]


def test_a_notebook_that_did_not_change_is_not_written(fresh):
    path = fresh / "notebooks/01-one.ipynb"
    os.utime(path, (1, 1))
    refresh(load_book(fresh), force=True)
    assert path.stat().st_mtime == 1


def test_an_unknown_reference_stops_before_anything_is_executed(fresh, executions):
    change(fresh / "chapters/91-more.qmd", "`{python} 1`", "@fig-nothing")
    with pytest.raises(BuildError, match=r"chapters/91-more\.qmd:3: @fig-nothing refers to nothing"):
        refresh(load_book(fresh), force=True)
    assert executions == []
