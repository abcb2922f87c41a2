"""The figures of the training runs draw each defect of a group once, right and wrong, on the same axes."""

import matplotlib
import numpy as np
import pytest
from drawn import artists, check_readable, check_saved

matplotlib.use("Agg")

from denselayer import doctor
from denselayer_figures import defects, style

GROUPS = tuple(doctor.GROUPS)


def curve(found, gid):
    return np.asarray(found[gid].get_ydata(), dtype=float)


def test_there_is_a_figure_for_each_group():
    assert [name for name, thing in vars(defects).items() if getattr(thing, "is_figure", False)] == list(
        GROUPS
    )
    drawn = [name for group in GROUPS for name in defects.shown(group)]
    assert sorted(drawn) == sorted(doctor.TRAINABLE)


@pytest.mark.parametrize("group", GROUPS)
def test_a_figure_is_drawn_from_the_parameters_file_alone(group, tmp_path):
    figure = getattr(defects, group)()
    check_saved(figure, tmp_path / "figure.png")
    check_readable(figure)


@pytest.mark.parametrize("group", GROUPS)
def test_each_panel_shows_both_runs_as_parts_of_the_first_right_loss(group):
    found = artists(getattr(defects, group)())
    for name in defects.shown(group):
        run = doctor.training_run(name)
        np.testing.assert_array_equal(curve(found, f"{name}-right"), run.right / run.right[0])
        wrong = curve(found, f"{name}-wrong")
        finite = np.isfinite(run.wrong)
        np.testing.assert_array_equal(wrong[finite], run.wrong[finite] / run.right[0])
        assert np.isnan(wrong[~finite]).all()


@pytest.mark.parametrize("group", GROUPS)
def test_all_panels_have_the_same_axes_and_the_curves_differ_in_colour_and_dash(group):
    figure = getattr(defects, group)()
    limits = {(ax.get_xlim(), ax.get_ylim(), ax.get_yscale()) for ax in figure.axes}
    assert limits == {((0, 100), (style.parameters("defects")["lowest"], 10), "log")}
    right, wrong = (artists(figure)[f"{defects.shown(group)[0]}-{kind}"] for kind in ("right", "wrong"))
    assert right.get_color() != wrong.get_color()
    assert right.get_linestyle() != wrong.get_linestyle()


@pytest.mark.parametrize("group", GROUPS)
def test_every_panel_is_titled_with_its_defect_and_what_becomes_of_the_loss(group):
    figure = getattr(defects, group)()
    titles = [ax.get_title(loc="left").split("\n") for ax in figure.axes]
    assert [first.replace(" ", "-") for first, _ in titles] == defects.shown(group)
    for (_, second), name in zip(titles, defects.shown(group), strict=True):
        assert doctor.training_run(name).words.endswith(second)


@pytest.mark.parametrize("group", GROUPS)
def test_no_title_lies_on_another(group):
    figure = getattr(defects, group)()
    figure.canvas.draw()
    boxes = [ax._left_title.get_window_extent() for ax in figure.axes]
    for at, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[at + 1 :])
        assert box.x1 <= figure.bbox.x1


@pytest.mark.parametrize("group", GROUPS)
def test_a_mark_says_where_a_curve_leaves_the_picture_or_ends(group):
    found = artists(getattr(defects, group)())
    for name in defects.shown(group):
        run = doctor.training_run(name)
        leaves = run.outcome in ("rises", "not finite", "stops") and name != "bias-times-input"
        assert (f"{name}-end" in found) == leaves, run.outcome


def test_the_summary_counts_every_panel():
    for group in GROUPS:
        numbers = [
            int(word.strip(".,")) for word in defects.summary(group).split() if word.strip(".,").isdigit()
        ]
        assert numbers[0] == sum(numbers[1:]) == len(defects.shown(group))
