"""The figures of the chapter on the neuron show the numbers they claim to show."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

from denselayer_figures import neuron


def found(figure, gid):
    """The one artist of ``figure`` with this ``gid``."""
    (artist,) = figure.findobj(lambda candidate: candidate.get_gid() == gid)
    return artist


def count(figure, prefix):
    return len(figure.findobj(lambda candidate: (candidate.get_gid() or "").startswith(prefix)))


FIGURES = [function for function in vars(neuron).values() if getattr(function, "is_figure", False)]


@pytest.mark.parametrize("function", FIGURES, ids=lambda function: function.__name__)
def test_every_figure_is_drawn_on_a_transparent_background(function):
    figure = function()
    assert figure.get_facecolor()[3] == 0
    assert all(ax.get_facecolor()[3] == 0 for ax in figure.axes)


@pytest.mark.parametrize("function", FIGURES, ids=lambda function: function.__name__)
def test_every_figure_keeps_its_text_readable_when_shrunk_to_a_phone(function):
    figure = function()
    shrunk = min(1, 312 / (figure.get_figwidth() * 72))  # a phone's column is 312 CSS pixels wide
    texts = [text for text in figure.findobj(plt.Text) if text.get_text() and text.get_visible()]
    assert min(text.get_fontsize() for text in texts) * shrunk >= 7


def test_the_graph_shows_the_weights_the_bias_and_both_outputs():
    figure = neuron.graph()
    assert [found(figure, f"weight-{i}").get_text() for i in range(4)] == [
        "$b$ = 3",
        "$w_1$ = 0.5",
        "$w_2$ = −1",
        "$w_3$ = 2",
    ]
    assert found(figure, "z").get_text() == "$z$ = 2"
    assert found(figure, "a").get_text() == "$a$ = 2"


def test_the_graph_of_a_neuron_with_a_negative_sum_shows_a_zero_behind_the_relu():
    figure = neuron.graph(bias=-3)
    assert found(figure, "z").get_text() == "$z$ = −4"
    assert found(figure, "a").get_text() == "$a$ = 0"


def test_the_edges_of_the_graph_are_as_many_as_the_inputs_and_the_bias():
    assert count(neuron.graph(x=[1, 2], weight=[3, 4], bias=0, names=["p", "q"]), "edge-") == 3


def test_the_contributions_add_up_to_the_sum():
    figure = neuron.contributions()
    heights = [found(figure, f"contribution-{i}").get_height() for i in range(4)]
    assert heights == [3, 1, -4, 2]
    assert found(figure, "z").get_height() == sum(heights) == 2


def test_each_contribution_starts_where_the_one_before_ended():
    figure = neuron.contributions(x=[1, 1, 1], weight=[-2, 3, -4], bias=0.5)
    bars = [found(figure, f"contribution-{i}") for i in range(4)]
    ends = np.cumsum([bar.get_height() for bar in bars])
    assert [bar.get_y() for bar in bars] == [0, *ends[:-1]]
    assert found(figure, "z").get_height() == ends[-1]


def test_the_output_falls_with_the_distance_until_the_relu_holds_it_at_zero():
    figure = neuron.activation()
    kilometres, z = found(figure, "z").get_data()
    _, a = found(figure, "a").get_data()
    np.testing.assert_allclose(z, 6 - kilometres, atol=1e-12)
    np.testing.assert_array_equal(a, np.where(z > 0, z, 0))
    assert (a[kilometres > 6] == 0).all()


def test_the_relu_panel_is_the_relu():
    z, a = found(neuron.activation(), "relu").get_data()
    np.testing.assert_array_equal(a, np.maximum(z, 0))


def test_the_shadow_times_the_length_is_the_dot_product():
    figure = neuron.projection()
    shadow = np.diff(found(figure, "shadow").get_xydata(), axis=0)[0]
    drop = np.diff(found(figure, "drop").get_xydata(), axis=0)[0]
    assert np.linalg.norm([3, 4]) * np.linalg.norm(shadow) == pytest.approx(np.dot([3, 4], [4, 2]))
    assert drop @ shadow == pytest.approx(0)


def test_every_boundary_of_the_bias_figure_has_score_zero():
    figure = neuron.bias_shift(biases=[1, 3, 5])
    for i, bias in enumerate([1, 3, 5]):
        for u, v in found(figure, f"boundary-{i}").get_xydata():
            assert np.dot([0.5, -1, 2], [u, v, 1]) + bias == pytest.approx(0)


def test_with_bias_one_the_boundary_passes_through_the_example():
    figure = neuron.bias_shift(biases=[1])
    assert found(figure, "point").get_xydata().tolist() == [[2, 4]]
    (x1, y1), (x2, y2) = found(figure, "boundary-0").get_xydata()
    assert np.interp(2, [x1, x2], [y1, y2]) == pytest.approx(4)


def test_the_labels_of_the_points_are_their_signed_distances():
    figure = neuron.signed_distance()
    assert [found(figure, f"distance-{i}").get_text() for i in range(4)] == ["+2", "−2", "0", "+2.2"]


def test_the_distances_do_not_change_when_weight_and_bias_are_scaled_together():
    figure = neuron.signed_distance(plane_weight=[30, 40], plane_bias=-100)
    assert [found(figure, f"distance-{i}").get_text() for i in range(4)] == ["+2", "−2", "0", "+2.2"]


def test_each_step_moves_the_boundary_towards_and_past_the_example():
    figure = neuron.gradient_step()
    heights = [np.interp(2, *found(figure, f"boundary-{i}").get_data()) for i in range(4)]
    assert heights[0] == pytest.approx(6)
    assert heights == sorted(heights, reverse=True)
    assert heights[1] > 4 > heights[2]


def test_the_loss_shrinks_by_the_square_of_one_minus_forty_four_steps():
    figure = neuron.gradient_step(learning_rates=[0.01, 0.04, 0.05])
    for i, rate in enumerate([0.01, 0.04, 0.05]):
        losses = found(figure, f"loss-{i}").get_ydata()
        np.testing.assert_allclose(losses[0], 9)
        np.testing.assert_allclose(losses[1:] / losses[:-1], (1 - 44 * rate) ** 2)


def test_the_and_line_separates_and_the_xor_diagonals_cross():
    figure = neuron.xor()
    (u1, v1), (u2, v2) = found(figure, "boundary").get_xydata()
    assert u1 + v1 == pytest.approx(1.5)
    assert u2 + v2 == pytest.approx(1.5)
    for label in ("diagonal-0", "diagonal-1"):
        assert found(figure, label).get_xydata().mean(axis=0).tolist() == [0.5, 0.5]
    assert found(figure, "crossing").get_xydata().tolist() == [[0.5, 0.5]]


def test_a_parameter_file_of_ones_own_changes_the_figure(tmp_path, monkeypatch):
    own = tmp_path / "own.yml"
    own.write_text("neuron: {x: [1, 1], weight: [2, 3], bias: -1, names: [p, q], swept: 0}\n")
    monkeypatch.setenv("DENSELAYER_PARAMETERS", str(own))
    figure = neuron.contributions()
    assert [found(figure, f"contribution-{i}").get_height() for i in range(3)] == [-1, 2, 3]
