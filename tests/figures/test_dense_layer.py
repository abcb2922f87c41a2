"""The figures of the dense-layer chapter draw the numbers they claim to draw."""

import matplotlib
import numpy as np
import pytest
from drawn import artists

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer

from denselayer_figures import dense_layer, style

WEIGHT = np.array([[0.5, -1, 2], [-0.25, 0.5, 1], [1, 0.25, -0.5]])
FIGURES = [name for name, member in vars(dense_layer).items() if getattr(member, "is_figure", False)]


def texts(figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts]


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_drawn_from_the_parameters_file_alone(name, tmp_path):
    figure = getattr(dense_layer, name)()
    figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 5_000
    assert figure.get_facecolor()[3] == 0, "the background is transparent"


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_keeps_its_text_readable_when_shrunk_to_a_phone(name):
    figure = getattr(dense_layer, name)()
    shrunk = min(1, 312 / (figure.get_figwidth() * 72))  # a phone's column is 312 CSS pixels wide
    written = [text for text in figure.findobj(plt.Text) if text.get_text() and text.get_visible()]
    assert min(text.get_fontsize() for text in written) * shrunk >= 7


@pytest.mark.parametrize("name", ["units_and_weights", "shape_flow", "split_matrix"])
def test_nothing_is_filled_white_so_nothing_turns_black_on_the_dark_page(name):
    figure = getattr(dense_layer, name)()
    boxes = [text.get_bbox_patch() for text in figure.findobj(plt.Text)]
    patches = [patch for axes in figure.axes for patch in axes.patches] + [box for box in boxes if box]
    opaque = {to_hex(patch.get_facecolor()) for patch in patches if patch.get_facecolor()[3] > 0}
    assert "#ffffff" not in opaque


def test_each_line_of_the_graph_leaves_a_gap_for_its_number():
    figure = dense_layer.units_and_weights()
    figure.canvas.draw()
    labels = artists(figure, "label-")
    for gid, line in artists(figure, "weight-").items():
        along = line.get_transform().transform(line.get_xydata())
        label = labels[f"label-{gid}"].get_window_extent()
        assert along[1, 0] < label.x0 and label.x1 < along[3, 0]


def test_the_graph_has_one_line_for_each_weight_and_colour_tells_the_sign():
    lines = artists(dense_layer.units_and_weights(), "weight-")
    assert len(lines) == WEIGHT.size
    for (i, j), value in np.ndenumerate(WEIGHT):
        expected = style.BLUE if value >= 0 else style.ORANGE
        assert to_hex(lines[f"weight-{i}-{j}"].get_color()) == expected


def test_thicker_lines_in_the_graph_are_larger_weights():
    lines = artists(dense_layer.units_and_weights(), "weight-")
    widths = np.array([[lines[f"weight-{i}-{j}"].get_linewidth() for j in range(3)] for i in range(3)])
    order = np.argsort(np.abs(WEIGHT).ravel(), kind="stable")
    assert (np.diff(widths.ravel()[order]) >= 0).all()


def test_the_labels_of_the_lines_read_from_top_to_bottom_are_the_rows_of_the_matrix():
    labels = artists(dense_layer.units_and_weights(), "label-").values()
    top_down = sorted(labels, key=lambda text: -text.get_position()[1])
    read = [float(text.get_text().replace("−", "-")) for text in top_down]
    np.testing.assert_array_equal(read, WEIGHT.ravel())


def test_the_graph_shows_the_output_of_each_unit():
    shown = artists(dense_layer.units_and_weights(), "z-")
    assert [shown[f"z-{i}"].get_text() for i in range(3)] == ["2", "1.5", "−1.5"]


def test_the_graph_takes_other_numbers_and_other_shapes():
    figure = dense_layer.units_and_weights(x=[1, 1], weight=[[1, 2], [3, 4], [5, 6]], bias=[0, 0, 1])
    shown = artists(figure, "z-")
    assert [shown[f"z-{i}"].get_text() for i in range(3)] == ["3", "7", "12"]


def test_the_heat_map_holds_weight_times_input_and_the_bias():
    heat, _ = dense_layer.contributions().axes
    expected = [[1, -4, 2, 3], [-0.5, 2, 1, -1], [2, 1, -0.5, -4]]
    np.testing.assert_array_equal(heat.images[0].get_array(), expected)


def test_the_bars_are_the_sums_before_and_after_relu():
    _, bars = dense_layer.contributions().axes
    before, after = [c for c in bars.containers if isinstance(c, BarContainer)]
    np.testing.assert_array_equal([bar.get_width() for bar in before], [2, 1.5, -1.5])
    np.testing.assert_array_equal([bar.get_width() for bar in after], [2, 1.5, 0])


def test_each_bar_stands_beside_its_row_of_the_heat_map():
    heat, bars = dense_layer.contributions().axes
    assert heat.get_ylim() == bars.get_ylim()
    centres = [bar.get_y() + bar.get_height() / 2 for bar in bars.containers[0]]
    assert [round(centre) for centre in centres] == [0, 1, 2]


def test_the_shape_flow_names_the_shape_of_every_array():
    figure = dense_layer.shape_flow(batch=5, in_features=3, out_features=2)
    written = texts(figure)
    assert written.count("N × 3") == 1
    assert written.count("N × 2") == 2
    assert "3 × 2" in written
    assert len(figure.axes[0].patches) == 5 * 3 + 3 * 2 + 5 * 2 + 2 + 5 * 2


def test_the_log_plot_shows_parameters_and_activations_at_each_width():
    axes = dense_layer.parameters_and_activations().axes[0]
    parameters, *activations = axes.get_lines()
    width = 2.0 ** np.arange(7, 14)
    np.testing.assert_array_equal(parameters.get_xdata(), width)
    np.testing.assert_array_equal(parameters.get_ydata(), width**2 + width)
    np.testing.assert_array_equal(activations[0].get_ydata(), 128 * width)
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")


@pytest.mark.parametrize("devices", [1, 2, 4])
def test_the_split_matrix_gives_each_device_whole_rows_or_whole_columns(devices):
    figure = dense_layer.split_matrix(out_features=4, in_features=8, devices=devices)
    owners = []
    for axes in figure.axes:
        owner = np.full((4, 8), -1)
        for gid in artists(axes, "W-"):
            row, column, device = map(int, gid.split("-")[1:])
            owner[row, column] = device
        owners.append(owner)
    np.testing.assert_array_equal(owners[0], np.repeat(range(devices), 4 // devices)[:, None] * np.ones(8))
    np.testing.assert_array_equal(owners[1], np.ones((4, 1)) * np.repeat(range(devices), 8 // devices))


def test_a_split_that_does_not_come_out_even_is_refused():
    with pytest.raises(ValueError, match="3 devices do not divide 8 rows and 8 columns"):
        dense_layer.split_matrix(devices=3)


def test_the_sawtooth_equals_folding_the_interval_again_and_again():
    points = np.linspace(0, 1, 257)
    folded = points
    for depth in range(1, 6):
        folded = 1 - np.abs(2 * folded - 1)
        np.testing.assert_array_equal(dense_layer.sawtooth(points, depth), folded)


def test_the_deep_network_has_as_many_parameters_as_the_wide_one_beside_it():
    for depth in range(1, 7):
        deep = sum(weight.size + bias.size for weight, bias in dense_layer.sawtooth_layers(depth))
        units = 2 * depth
        assert deep == (units + units) + (units + 1)


def test_the_pieces_drawn_are_two_to_the_depth_and_the_units_plus_one():
    _, count = dense_layer.width_and_depth(depths=[1, 2, 3, 4, 5]).axes
    deep, wide = count.get_lines()
    np.testing.assert_array_equal(deep.get_xdata(), [7, 13, 19, 25, 31])
    np.testing.assert_array_equal(deep.get_ydata(), [2, 4, 8, 16, 32])
    np.testing.assert_array_equal(wide.get_ydata(), [3, 5, 7, 9, 11])


def test_a_network_without_depth_is_refused():
    with pytest.raises(ValueError, match="at least 1"):
        dense_layer.sawtooth_layers(0)


def test_drawing_leaves_the_settings_of_the_reader_alone():
    before = dict(matplotlib.rcParams)
    dense_layer.contributions()
    assert dict(matplotlib.rcParams) == before
