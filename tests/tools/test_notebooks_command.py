"""`python -m tools notebooks` and `lint`: which pages are meant, what is printed, what is left over."""

import argparse

import pytest

from tools import notebooks
from tools.commands import lint as lint_command
from tools.commands import notebooks as command
from tools.errors import BuildError
from tools.execute import Results

CELL = "```{python}\n#| label: one\n1\n```\n"


@pytest.fixture
def book(make_book, monkeypatch):
    def execute(draft, root, *, timeout, progress):
        ids = [piece.id for piece in draft.pieces if piece.executed]
        for number, name in enumerate(ids):
            progress(number, len(ids), name)
        progress(len(ids), len(ids), "")
        return Results({}, {name: [] for name in ids})

    monkeypatch.setattr(notebooks, "execute_draft", execute)
    made = make_book("# One {#sec-one}\n\n" + CELL, "# Two {#sec-two}\n\n" + CELL.replace("one", "two"))
    monkeypatch.setattr(command, "load_book", lambda root: made)
    return made


def run(*arguments):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return command.run(parser.parse_args(arguments))


def test_all_stale_notebooks_are_made_and_counted(book, capsys):
    assert run() == 0
    assert "2 executed, 0 converted with the outputs they had, 0 fresh" in capsys.readouterr().out
    assert run() == 0
    assert "0 executed, 0 converted with the outputs they had, 2 fresh" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["chapters/91-more.qmd", "91-more", "91"])
def test_a_page_may_be_named_by_its_path_or_its_beginning(book, name):
    run(name)
    assert [path.name for path in (book.root / "notebooks").iterdir()] == ["91-more.ipynb"]


@pytest.mark.parametrize("name", ["03", "index.qmd", "chapters/"])
def test_an_unknown_page_is_an_error_that_lists_the_pages(book, name):
    with pytest.raises(
        BuildError, match=r"not a page that has code; the pages are chapters/01-one\.qmd, chapters/91"
    ):
        run(name)


def test_left_over_notebooks_are_named_and_kept(book, capsys):
    (book.root / "notebooks").mkdir()
    (book.root / "notebooks" / "03-gone.ipynb").write_text("{}")
    run()
    assert "notebooks/03-gone.ipynb belongs to no page of the book" in capsys.readouterr().out
    assert (book.root / "notebooks" / "03-gone.ipynb").is_file()


def test_markup_off_the_list_stops_before_anything_is_written(make_book, monkeypatch):
    broken = make_book("# One {#sec-one}\n\n<b>\n\n" + CELL)
    monkeypatch.setattr(command, "load_book", lambda root: broken)
    with pytest.raises(BuildError, match=r"chapters/01-one\.qmd:3: raw HTML: <b>"):
        run()
    assert not (broken.root / "notebooks").exists()


@pytest.fixture
def repository(make_book):
    root = make_book("# One {#sec-one}\n\n" + CELL.replace("\n1\n", "\nx = ( 1 )\n")).root
    (root / "pyproject.toml").write_text("[tool.ruff]\nline-length = 100\n")
    (root / "code" / "small" / "part.py").write_text("import os\nFACTOR = ( 3 )\n")
    return root


def test_lint_finds_what_is_wrong_in_files_and_in_chapters(repository, capfd):
    assert lint_command.lint_repository(repository)
    assert "F401" in capfd.readouterr().out
    (finding,) = lint_command.lint_chapters(repository)
    assert str(finding).startswith("chapters/01-one.qmd:5:1: the cell one is not formatted")


def test_lint_repairs_both(repository):
    assert not lint_command.lint_repository(repository, fix=True)
    assert lint_command.lint_chapters(repository, fix=True) == []
    assert (repository / "code" / "small" / "part.py").read_text() == "FACTOR = 3\n"
    assert "\nx = 1\n```" in (repository / "chapters" / "01-one.qmd").read_text()
    assert not lint_command.lint_repository(repository)
