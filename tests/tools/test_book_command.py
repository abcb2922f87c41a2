"""The commands that build, serve, preview and clean."""

import argparse
import os
import subprocess
import sys
import threading
import urllib.error
import urllib.request
import zipfile
from pathlib import Path

import pytest
import sample_book

from tools import build, server, wheel
from tools.book import load_book
from tools.commands import book, clean, preview, serve
from tools.engines import pandoc, quarto
from tools.errors import BuildError


@pytest.fixture(scope="module")
def master(tmp_path_factory):
    return sample_book.write(tmp_path_factory.mktemp("book"))


@pytest.fixture
def root(tmp_path):
    return sample_book.write(tmp_path)


def arguments(command, *given):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(given)


# ---------- building ----------


def test_the_command_prints_the_engine_and_the_path_of_the_first_page(master, monkeypatch, capsys):
    monkeypatch.setattr(book, "ROOT", master)
    assert book.run(arguments(book, "--engine", "pandoc")) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("Built with pandoc 3.")
    assert Path(out[1]) == master / "_book" / "index.html"
    assert Path(out[1]).is_file()


def test_each_profile_has_a_folder_of_its_own(tmp_path):
    assert build.default_output(tmp_path, None).name == "_book"
    assert build.default_output(tmp_path, "instructor").name == "_book-instructor"


def test_a_stale_notebook_is_a_warning_that_names_the_command(root, monkeypatch, capsys):
    first = root / "chapters" / "01-first.qmd"
    first.write_text(
        first.read_text(encoding="utf-8").replace("Second pane.", "Another pane."), encoding="utf-8"
    )
    monkeypatch.setattr(book, "ROOT", root)
    assert book.run(arguments(book, "--engine", "pandoc")) == 0
    err = capsys.readouterr().err
    assert "warning: notebooks/01-first.ipynb is stale: " in err
    assert "`make notebooks`" in err


def test_an_edition_with_a_title_of_its_own_is_not_taken_for_stale(root):
    assert build.build(root, profile="instructor", engine="pandoc").warnings == ()


def test_a_mistake_that_stands_in_an_old_notebook_names_that_notebook(root, monkeypatch):
    def broken(*args):
        raise BuildError("chapters/01-first.qmd: something old")

    first = root / "chapters" / "01-first.qmd"
    first.write_text(first.read_text(encoding="utf-8") + "\nMore.\n", encoding="utf-8")
    monkeypatch.setattr(pandoc, "render", broken)
    with pytest.raises(
        BuildError, match="(?s)something old.*Perhaps because of this:.*01-first.ipynb is stale"
    ):
        build.build(root, engine="pandoc")


def test_a_missing_notebook_stops_the_build(root):
    (root / "notebooks" / "01-first.ipynb").unlink()
    with pytest.raises(BuildError, match="does not exist; run `make notebooks`"):
        build.build(root, engine="pandoc")
    assert not list(root.glob("_book*"))


def test_a_new_site_replaces_the_last_one_whole(root):
    build.build(root, engine="pandoc")
    (root / "_book" / "left-over.html").write_text("old", encoding="utf-8")
    build.build(root, engine="pandoc")
    assert not (root / "_book" / "left-over.html").exists()
    assert [path.name for path in root.glob("_book*")] == ["_book"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError("disk full")])
def test_a_build_that_is_interrupted_leaves_the_last_site(root, monkeypatch, error):
    build.build(root, engine="pandoc")
    before = {path: path.read_bytes() for path in (root / "_book").rglob("*") if path.is_file()}

    def interrupted(*args, **kwargs):
        raise error

    monkeypatch.setattr(pandoc.search, "write", interrupted)
    with pytest.raises((KeyboardInterrupt, OSError)):
        build.build(root, engine="pandoc")
    assert {path: path.read_bytes() for path in (root / "_book").rglob("*") if path.is_file()} == before
    assert [path.name for path in root.glob("_book*")] == ["_book"]


def test_a_swap_that_fails_puts_the_last_site_back(root):
    build.build(root, engine="pandoc")
    with pytest.raises(FileNotFoundError):
        build.swap(root / "not-there", root / "_book")
    assert (root / "_book" / "index.html").is_file()
    assert [path.name for path in root.glob("_book*")] == ["_book"]


def test_a_build_needs_only_what_its_group_of_dependencies_installs(root):
    """numpy, nbformat and all else that is imported by other commands may be missing."""
    code = f"""
import sys
from pathlib import Path
allowed = set(sys.stdlib_module_names) | set(
    "tools pypandoc yaml _yaml rich hatchling packaging pathspec pluggy trove_classifiers".split()
    + "markdown_it mdurl pygments".split()
)
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in allowed:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
from tools.commands import book
book.report(book.build_with_progress(Path({str(root)!r}), engine="pandoc"))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=build.pandoc_engine.TOOLS.parent, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert (root / "_book" / "index.html").is_file()


def test_a_folder_with_other_things_in_it_is_never_replaced(root, tmp_path_factory):
    mine = tmp_path_factory.mktemp("mine")
    (mine / "index.html").write_text("my own site", encoding="utf-8")
    (mine / "thesis.txt").write_text("precious", encoding="utf-8")
    with pytest.raises(BuildError, match="is no site of this book"):
        build.build(root, engine="pandoc", output=mine)
    assert (mine / "thesis.txt").read_text(encoding="utf-8") == "precious"


def test_two_builds_give_the_same_bytes(master, tmp_path):
    for name in ("one", "two"):
        build.build(master, engine="pandoc", output=tmp_path / name)
    files = [path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file()]
    assert len(files) > 15
    for file in files:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes(), file


# ---------- choosing the engine ----------


@pytest.mark.parametrize(
    ("found", "chosen"),
    [((), pandoc), ((1, 9, 4), pandoc), ((1, 10, 0), quarto), ((2, 0, 0), quarto), ((99, 9, 9), quarto)],
)
def test_auto_takes_quarto_where_it_is_new_enough(monkeypatch, found, chosen):
    monkeypatch.setattr(quarto, "version", lambda: found)
    assert build.choose_engine("auto") is chosen
    assert build.choose_engine("pandoc") is pandoc


@pytest.mark.parametrize(("found", "message"), [((), "there is none on PATH"), ((1, 9, 4), r"found 1\.9\.4")])
def test_quarto_that_is_asked_for_and_missing_is_an_error(monkeypatch, found, message):
    monkeypatch.setattr(quarto, "version", lambda: found)
    with pytest.raises(BuildError, match=message):
        build.choose_engine("quarto")


def test_quarto_is_told_to_run_nothing(master):
    config = quarto._config(load_book(master), {"chapters/01-first.qmd": "chapters/01-first.ipynb"})
    assert config["execute"] == {"enabled": False}
    assert config["book"]["chapters"] == ["index.qmd", "chapters/01-first.ipynb", "chapters/02-second.qmd"]
    assert load_book(master).config["book"]["chapters"][1] == "chapters/01-first.qmd"


# ---------- the wheel ----------

PROJECT = """[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "small"
version = "1.2"
requires-python = ">=3.11"
[tool.hatch.build.targets.wheel]
packages = ["code/small"]
"""


def test_the_site_serves_the_wheel_beside_the_notebooks(root):
    (root / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    (root / "code" / "small").mkdir(parents=True)
    (root / "code" / "small" / "__init__.py").write_text("", encoding="utf-8")
    build.build(root, engine="pandoc")
    served = root / "_book" / "notebooks" / "small-1.2-py3-none-any.whl"
    assert "small/__init__.py" in zipfile.ZipFile(served).namelist()
    page = (root / "_book" / "chapters" / "01-first.html").read_text(encoding="utf-8")
    assert 'href="../notebooks/small-1.2-py3-none-any.whl" download' in page


def test_the_wheel_has_the_same_bytes_whatever_time_it_is(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    (tmp_path / "code" / "small").mkdir(parents=True)
    (tmp_path / "code" / "small" / "__init__.py").write_text("", encoding="utf-8")
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    first = wheel.build(tmp_path, tmp_path / "one")
    assert "SOURCE_DATE_EPOCH" not in os.environ
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")
    second = wheel.build(tmp_path, tmp_path / "two")
    assert first.read_bytes() == second.read_bytes()
    assert os.environ["SOURCE_DATE_EPOCH"] == "1000000000"
    assert {entry.date_time[0] for entry in zipfile.ZipFile(first).infolist()} == {2020}


def test_a_project_that_cannot_be_built_is_an_error(tmp_path):
    (tmp_path / "pyproject.toml").write_text(PROJECT.replace('version = "1.2"', ""), encoding="utf-8")
    with pytest.raises(BuildError, match=r"pyproject\.toml: the wheel could not be built"):
        wheel.build(tmp_path, tmp_path / "out")


def test_a_book_without_a_package_has_no_wheel(tmp_path):
    assert wheel.build(tmp_path, tmp_path) is None


# ---------- serving ----------


def fetch(site, path):
    with urllib.request.urlopen(server.address(site) + path, timeout=10) as answer:
        return answer.status, answer.headers, answer.read()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "secret.txt").write_text("secret", encoding="utf-8")
    site = tmp_path / "site"
    site.mkdir()
    (site / "index.html").write_text("<p>Hello</p>", encoding="utf-8")
    (site / "n.ipynb").write_text("{}", encoding="utf-8")
    (site / "f.woff2").write_bytes(b"x")
    return site


@pytest.fixture
def running():
    started = []

    def start(*args):
        site = server.open_server(*args)
        threading.Thread(target=site.serve_forever, daemon=True).start()
        started.append(site)
        return site

    yield start
    for site in started:
        site.shutdown()
        site.server_close()


def test_the_site_is_served_on_the_loopback_address_only(folder, running):
    site = running(folder)
    assert site.server_address[0] == "127.0.0.1"
    status, headers, body = fetch(site, "")
    assert (status, body) == (200, b"<p>Hello</p>")
    assert headers["Cache-Control"] == "no-store"
    assert fetch(site, "n.ipynb")[1]["Content-Type"] == "application/x-ipynb+json"
    assert fetch(site, "f.woff2")[1]["Content-Type"] == "font/woff2"


@pytest.mark.parametrize(
    "path", ["../secret.txt", "%2e%2e/secret.txt", "x/../../secret.txt", "/../secret.txt"]
)
@pytest.mark.parametrize("signal", [None, server.Signal()])
def test_files_outside_the_site_are_not_served(folder, running, path, signal):
    with pytest.raises(urllib.error.HTTPError, match="404"):
        fetch(running(folder, None, signal), path)


def test_a_taken_port_is_passed_over_and_a_taken_port_that_was_asked_for_is_an_error(folder, running):
    first = running(folder)
    second = running(folder)
    assert second.server_port != first.server_port
    with pytest.raises(BuildError, match=f"The port {first.server_port} is taken"):
        server.open_server(folder, first.server_port)
    with pytest.raises(BuildError, match="70000"):
        server.open_server(folder, 70000)


def test_serve_builds_only_what_is_not_there(root, capsys):
    folder = serve.ensure_built(root, None)
    assert "Built with" in capsys.readouterr().out
    stamp = (folder / "index.html").stat().st_mtime_ns
    assert serve.ensure_built(root, None) == folder
    assert (folder / "index.html").stat().st_mtime_ns == stamp


# ---------- previewing ----------


def test_pages_of_a_preview_reload_when_something_was_built(folder, running):
    signal = server.Signal()
    site = running(folder, None, signal)
    assert b"EventSource" in fetch(site, "")[2]
    assert b"EventSource" in fetch(site, "index.html?x=1")[2]
    assert b"EventSource" not in (folder / "index.html").read_bytes()
    with urllib.request.urlopen(server.address(site) + server.EVENTS.lstrip("/"), timeout=10) as events:
        signal.send()
        assert events.readline() == b"data: built\n"


def test_a_page_that_is_only_served_does_not_reload(folder, running):
    assert b"EventSource" not in fetch(running(folder), "")[2]


def test_changes_are_new_gone_and_different_files(root):
    before = preview.state(root)
    assert preview.changes(root, before) == set()
    (root / "chapters" / "02-second.qmd").write_text("# Changed {#sec-second}\n", encoding="utf-8")
    (root / "chapters" / "03-new.qmd").write_text("# New {#sec-new}\n", encoding="utf-8")
    (root / "references.bib").unlink()
    (root / "unrelated.txt").write_text("x", encoding="utf-8")
    assert {path.name for path in preview.changes(root, before)} == {
        "02-second.qmd",
        "03-new.qmd",
        "references.bib",
    }


@pytest.mark.parametrize(
    ("name", "executes"),
    [
        ("chapters/01-first.qmd", True),
        ("code/denselayer/nn.py", True),
        ("figures/parameters.yml", True),
        ("_extensions/dense/dense.css", False),
        ("tools/templates/page.html", False),
        ("notebooks/01-first.ipynb", False),
    ],
)
def test_only_what_can_alter_a_notebook_leads_to_an_execution(name, executes):
    assert preview.needs_execution({Path(name)}) is executes


def test_a_preview_renders_again_and_survives_a_mistake(root, capsys):
    mine = preview.Preview(root, None, "pandoc")
    mine.build()
    chapter = root / "chapters" / "02-second.qmd"
    good = chapter.read_text(encoding="utf-8")

    chapter.write_text(good + "\nA new sentence.\n", encoding="utf-8")
    mine.update({chapter})
    assert "A new sentence." in (root / "_book" / "chapters" / "02-second.html").read_text(encoding="utf-8")
    assert mine.signal.count == 1

    chapter.write_text(good + "\nSee @fig-nothing.\n", encoding="utf-8")
    mine.update({chapter})
    assert "error: chapters/02-second.qmd:9: @fig-nothing" in capsys.readouterr().err
    assert "A new sentence." in (root / "_book" / "chapters" / "02-second.html").read_text(encoding="utf-8")
    assert mine.signal.count == 1


def test_notebooks_that_the_preview_wrote_itself_are_no_change(root, monkeypatch):
    def refresh(found):
        made = found.root / "notebooks" / "01-first.ipynb"
        made.write_text(made.read_text(encoding="utf-8") + " ", encoding="utf-8")

    monkeypatch.setattr("tools.commands.notebooks.refresh_with_progress", refresh)
    mine = preview.Preview(root, None, "pandoc")
    mine.update({root / "chapters" / "02-second.qmd"})
    assert mine.signal.count == 1
    assert (root / "notebooks" / "01-first.ipynb").read_text(encoding="utf-8").endswith(" ")
    mine.update({root / "notebooks" / "01-first.ipynb"})
    assert mine.signal.count == 1
    (root / "notebooks" / "01-first.ipynb").write_text("{", encoding="utf-8")
    mine.update({root / "notebooks" / "01-first.ipynb"})
    assert mine.signal.count == 1


def test_what_is_saved_in_one_go_is_one_change(root, monkeypatch):
    steps = iter(["01-first", "02-second"])

    def save_one_more(seconds):
        if name := next(steps, None):
            (root / "chapters" / f"{name}.qmd").write_text("# Changed\n", encoding="utf-8")

    monkeypatch.setattr(preview.time, "sleep", save_one_more)
    changed = next(preview.watch(root))
    assert {path.name for path in changed} == {"01-first.qmd", "02-second.qmd"}


# ---------- cleaning ----------


def test_clean_removes_what_was_built_and_nothing_else(root, monkeypatch):
    build.build(root, engine="pandoc")
    build.build(root, profile="instructor", engine="pandoc")
    (root / "tools" / "__pycache__").mkdir(parents=True)
    (root / "notebooks" / ".ipynb_checkpoints").mkdir()
    (root / ".venv").mkdir()
    kept = {path.name for path in root.iterdir()} - {"_book", "_book-instructor"}
    monkeypatch.setattr(clean, "ROOT", root)
    assert clean.run(arguments(clean)) == 0
    assert {path.name for path in root.iterdir()} == kept
    assert not (root / "tools" / "__pycache__").exists()
    assert not (root / "notebooks" / ".ipynb_checkpoints").exists()
    assert clean.run(arguments(clean, "--all")) == 0
    assert not (root / ".venv").exists()
