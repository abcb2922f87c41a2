"""``make figures`` draws every figure of the package, also from an instructor's own numbers."""

import argparse
import os

import pytest

from tools.commands import figures
from tools.errors import BuildError


@pytest.fixture(autouse=True)
def unchanged_environment(monkeypatch):
    monkeypatch.setenv("DENSELAYER_PARAMETERS", "")


def test_every_figure_is_written_as_png_and_svg(tmp_path):
    written = figures.draw_all(tmp_path)
    names = [name.replace(".", "-") for name, _ in figures.figure_functions()]
    assert sorted(path.name for path in written) == sorted(n + s for n in names for s in (".png", ".svg"))
    assert all(path.stat().st_size > 2000 for path in written)


def test_only_draws_what_was_asked_for(tmp_path):
    first = next(figures.figure_functions())[0]
    assert {path.stem for path in figures.draw_all(tmp_path, only=first)} >= {first.replace(".", "-")}


def test_a_name_that_no_figure_has_is_answered_with_the_names(tmp_path):
    with pytest.raises(BuildError, match="No figure's name contains 'nothing'"):
        figures.draw_all(tmp_path, only="nothing")


def test_own_parameters_reach_the_figures(tmp_path, monkeypatch):
    own = tmp_path / "own.yml"
    own.write_text("neuron: {}\n", encoding="utf-8")
    monkeypatch.setattr(figures, "draw_all", lambda output, only: [os.environ["DENSELAYER_PARAMETERS"]])
    assert figures.run(argparse.Namespace(parameters=own, output=tmp_path, only="")) == 0
    assert os.environ["DENSELAYER_PARAMETERS"] == str(own)


def test_an_output_that_cannot_be_a_folder_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BuildError, match="folder .*file cannot be made"):
        figures.draw_all(tmp_path / "file")


def test_a_missing_file_of_parameters_is_named(tmp_path):
    arguments = argparse.Namespace(parameters=tmp_path / "none.yml", output=tmp_path, only="")
    with pytest.raises(BuildError, match="no file .*none.yml"):
        figures.run(arguments)
