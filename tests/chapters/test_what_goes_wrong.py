"""The page on what goes wrong is made from the doctor's table, shows all of it, and its sentences hold."""

import re

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

from denselayer import doctor
from denselayer.doctor import _runs
from denselayer_figures import defects


@pytest.fixture(scope="module")
def page(book):
    return next(page for page in book.pages if page.id == "sec-what-goes-wrong")


@pytest.fixture(scope="module")
def cells(page):
    return {cell.label: cell for cell in page.document.cells}


@pytest.mark.parametrize("group", doctor.GROUPS)
def test_a_cell_turns_each_group_of_the_table_into_a_table_of_the_page(cells, group):
    assert cells[f"tbl-goes-{group}"].code == f'doctor.casebook("{group}")'
    assert f"pictures.{group}()" in cells[f"fig-goes-{group}"].code


def test_every_defect_stands_on_the_page():
    shown = "\n".join(doctor.casebook(group)._repr_markdown_() for group in doctor.GROUPS)
    assert re.findall(r'<tbody id="defect-([a-z0-9-]+)">', shown) == list(doctor.DEFECTS)


def test_the_words_of_the_table_are_not_typed_into_the_page(page):
    text = "\n".join(page.document.lines)
    for defect in doctor.DEFECTS.values():
        for words in (defect.evidence, defect.change, defect.in_training, defect.found_by):
            assert words not in text


@pytest.mark.parametrize("group", doctor.GROUPS)
def test_the_description_of_a_figure_counts_what_its_curves_do(cells, group):
    assert defects.summary(group) in cells[f"fig-goes-{group}"].options["fig-alt"]


def test_labels_start_with_the_name_of_the_page(cells):
    assert all(re.match(r"(?:fig-|tbl-)?goes-", label) for label in cells)


def test_what_the_text_says_of_single_runs_is_true():
    runs = {name: doctor.training_run(name) for name in doctor.TRAINABLE}
    in_state = defects.shown("state")
    assert {name for name in in_state if runs[name].outcome == "lower"} == {"bias-grown", "parameter-changed"}
    alike = {name for name in defects.shown("numbers") if runs[name].outcome in ("same", "as low", "lower")}
    assert alike == {"float32-arithmetic"}
    assert len(defects.shown("files")) == 2
    for name in ("unstable-softmax", "unstable-log"):
        assert runs[name].epoch == 2
    gap = runs["unstable-log"]
    assert np.count_nonzero(~np.isfinite(gap.wrong)) == 1
    assert gap.wrong[-1] == pytest.approx(gap.right[-1])


def test_the_panels_of_the_gates_have_the_activations_that_the_caption_names():
    found = {name: _runs.SETTINGS[name].activation for name in defects.shown("gates")}
    curved = {"gate-twice", "derivative-at-output", "derivative-at-input", "other-derivative"}
    assert {name for name, activation in found.items() if activation == "sigmoid"} == curved
    assert set(found.values()) == {"sigmoid", "relu"}


def test_what_the_descriptions_say_of_the_curves_is_true():
    runs = {name: doctor.training_run(name) for name in doctor.TRAINABLE}
    for name in defects.shown("arrays"):
        assert runs[name].right[-1] < runs[name].right[0] / 30
    for name in ("sign-flipped", "weight-transposed", "summed-not-averaged", "bias-times-batch"):
        assert not (runs[name].wrong[:15] <= 10 * runs[name].right[0]).all()
    assert runs["derivative-at-input"].epoch < 10
    assert runs["not-finite"].epoch == 1
    for name in ("integer-arithmetic", "cleared-too-early"):
        assert runs[name].outcome == "stands still"
    for name in ("batch-size-hides", "batch-mixed"):
        assert runs[name].outcome == "higher" and runs[name].wrong[-1] > 0.3 * runs[name].wrong[0]
