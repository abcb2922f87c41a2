"""The figures of the scaling chapter draw the numbers they claim to draw."""

import math

import matplotlib
import numpy as np
import pytest
from drawn import artists, check_apart, check_readable, check_saved

matplotlib.use("Agg")


from denselayer import cost
from denselayer import functional as F
from denselayer_figures import scaling

FIGURES = [name for name, member in vars(scaling).items() if getattr(member, "is_figure", False)]


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_drawn_from_the_parameters_file_alone(name, tmp_path):
    figure = getattr(scaling, name)()
    check_saved(figure, tmp_path / "figure.png")


@pytest.mark.parametrize("name", FIGURES)
def test_text_is_readable_on_a_phone(name):
    figure = getattr(scaling, name)()
    check_readable(figure)


@pytest.mark.parametrize("name", FIGURES)
def test_no_text_of_a_panel_lies_on_another(name):
    figure = getattr(scaling, name)()
    check_apart(figure)


def test_the_shares_are_those_of_the_bytes_and_fill_the_bar():
    bars = artists(scaling.traffic_shares(width=64, batches=[1, 64, 10_000]), "")
    for batch in (1, 64, 10_000):
        weights, rest = bars[f"weights-{batch}"], bars[f"inputs and outputs-{batch}"]
        numbers = 64 * 64 + 64, 2 * batch * 64
        assert weights.get_width() == pytest.approx(100 * numbers[0] / sum(numbers))
        assert rest.get_x() == pytest.approx(weights.get_width())
        assert rest.get_width() + weights.get_width() == pytest.approx(100)


def test_the_crossing_lines_are_one_and_four_times_the_width_plus_one():
    lines = artists(scaling.crossing(widths=[64, 512, 4096]), "a")
    np.testing.assert_array_equal(lines["alone"].get_ydata(), [65, 513, 4097])
    np.testing.assert_array_equal(lines["adam"].get_ydata(), [260, 2052, 16388])


def test_the_intensities_are_counted_and_level_off_at_a_quarter_of_the_width():
    figure = scaling.intensities(widths=[64, 256])
    for width in (64, 256):
        line = artists(figure, "width-")[f"width-{width}"]
        batches = line.get_xdata()
        operations = 2 * batches * width * width
        moved = 4 * (2 * batches * width + width * width + width)
        np.testing.assert_allclose(line.get_ydata(), operations / moved)
        assert 0.95 * width / 4 < line.get_ydata()[-1] < width / 4
    ridge = artists(figure, "ridge")["ridge"]
    assert ridge.get_ydata()[0] == cost.ridge_point(**scaling.machine())


def test_the_points_lie_under_the_roof_and_on_it():
    figure = scaling.roofline(width=256, batches=[1, 4, 4096])
    limits = scaling.machine()
    for batch in (1, 4, 4096):
        point = artists(figure, "point-")[f"point-{batch}"]
        (intensity,), (speed,) = point.get_xdata(), point.get_ydata()
        assert intensity == cost.linear_intensity(batch, 256, 256)
        assert speed == pytest.approx(min(limits["peak"], intensity * limits["bandwidth"]) / 1e12)


def test_the_least_time_is_the_larger_of_the_two():
    lines = artists(scaling.roofline(), "")
    least, move, compute = (
        lines[name].get_ydata() for name in ("at least", "to move the bytes", "to compute")
    )
    np.testing.assert_array_equal(least, np.maximum(move, compute))
    np.testing.assert_allclose(compute, 2 * 1024**2 / scaling.machine()["peak"] * 1e6)
    assert least[0] == pytest.approx(4 * (1024 * 1024 + 3 * 1024) / scaling.machine()["bandwidth"] * 1e6)


def test_the_stacked_bars_are_the_memory_of_a_training_step():
    bars = artists(scaling.training_memory(widths=[100, 300, 10], batches=[8, 4000]), "")
    parameters = 300 * 101 + 10 * 301
    for batch in (8, 4000):
        counts = {
            "parameters": parameters,
            "gradients": parameters,
            "optimiser": 2 * parameters,
            "activations": batch * 400,
        }
        bottom = 0.0
        for name, count in counts.items():
            bar = bars[f"{name}-{batch}"]
            assert bar.get_height() == pytest.approx(4 * count / 2**20)
            assert bar.get_y() == pytest.approx(bottom)
            bottom += bar.get_height()


def test_the_toeplitz_matrix_is_the_convolution():
    rng = np.random.default_rng(0)
    kernel, signal = rng.integers(-5, 6, 4).astype(float), rng.integers(-5, 6, 11).astype(float)
    matrix = scaling.toeplitz(kernel, 11)
    np.testing.assert_array_equal(F.linear(signal, matrix), np.correlate(signal, kernel, mode="valid"))


def test_attention_mixes_with_weights_that_add_up_to_one_and_depend_on_the_input():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5, 3))
    mixing = scaling.attention(x)
    scores = x @ x.T / math.sqrt(3)
    expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(mixing, expected)
    assert not np.allclose(mixing, scaling.attention(2 * x))


def cells(figure, panel):
    """Which cells of a panel are drawn as used, and which as stored but unused."""
    meshes = artists(figure, panel)
    return [
        ~np.ma.getmaskarray(meshes[f"{panel}-{kind}"].get_array()).reshape(-1, 12)
        for kind in ("used", "unused")
    ]


def test_the_pictures_show_what_is_left_out():
    figure = scaling.weight_pictures(size=12)
    used, unused = cells(figure, "dense")
    assert used.all()
    assert not unused.any()
    used, unused = cells(figure, "convolution")
    np.testing.assert_array_equal(used, scaling.toeplitz(np.ones(3), 12) > 0)
    assert not unused.any()
    used, unused = cells(figure, "embedding")
    assert (used.sum(axis=1) == 1).all()
    assert used.all(axis=0).sum() == 1
    assert (used ^ unused).all()
    used, unused = cells(figure, "experts")
    assert used.all(axis=1).sum() == 3
    assert used.sum() == 36
    assert (used ^ unused).all()
