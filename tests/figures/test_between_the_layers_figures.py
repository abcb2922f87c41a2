"""The figures of the chapter between the layers draw the numbers they claim to draw."""

import matplotlib
import numpy as np
import pytest
from drawn import artists

matplotlib.use("Agg")


from denselayer import functional as F
from denselayer import nn
from denselayer_figures import between_the_layers as pictures
from denselayer_figures import style

SMALL = {"depth": 3, "width": 16, "batch": 8, "seed": 1}


@pytest.fixture
def small(monkeypatch):
    """The numbers of the book, with a network small enough for a test."""
    numbers = {**style.parameters("between_the_layers"), "network": SMALL}
    monkeypatch.setattr(
        pictures, "_setting", lambda name, value=None: numbers[name] if value is None else value
    )


def line(figure, gid: str) -> np.ndarray:
    return np.asarray(artists(figure, gid)[gid].get_ydata(), dtype=float)


@pytest.mark.parametrize(
    "name",
    [name for name, member in vars(pictures).items() if getattr(member, "is_figure", False)],
)
def test_every_figure_is_drawn_from_the_parameters_file_alone(name, small, tmp_path):
    figure = getattr(pictures, name)()
    figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 5_000
    assert figure.get_facecolor()[3] == 0, "the background is transparent"
    assert figure.get_figwidth() <= 6
    texts = figure.findobj(matplotlib.text.Text)
    assert all(text.get_fontsize() >= 10 for text in texts if text.get_text() and text.get_visible())


def test_without_an_activation_the_output_is_a_straight_line_and_with_a_relu_it_bends():
    figure = pictures.straight_or_bent()
    straight, bent = line(figure, "straight-output"), line(figure, "bent-output")
    np.testing.assert_allclose(np.diff(straight, 2), 0, atol=1e-12)
    assert np.count_nonzero(np.abs(np.diff(bent, 2)) > 1e-6) >= 3
    for unit in range(3):
        hidden = line(figure, f"straight-unit-{unit}")
        np.testing.assert_array_equal(line(figure, f"bent-unit-{unit}"), np.maximum(hidden, 0))


def test_behind_the_single_unit_all_points_lie_on_a_line_and_stay_there():
    figure = pictures.bottleneck()
    for stage, rank in [(0, 2), (1, 1), (2, 1)]:
        points = [
            artists(figure, f"{ring}-{stage}")[f"{ring}-{stage}"].get_xydata() for ring in ("inner", "outer")
        ]
        together = np.concatenate(points)
        assert np.linalg.matrix_rank(together - together.mean(axis=0), tol=1e-10) == rank
        assert np.abs(together).max() < 1.3, "no point outside the panel"


@pytest.mark.parametrize(("name", "options"), list(pictures.DRAWN.values()))
def test_each_activation_is_drawn_with_its_own_slope(name, options):
    figure = pictures.activations(reach=4, flat=0.05)
    z = np.linspace(-4, 4, 1201)
    slope = getattr(F, f"{name}_backward")(np.ones_like(z), z, **options)
    np.testing.assert_array_equal(line(figure, f"{name}-value"), getattr(F, name)(z, **options))
    np.testing.assert_array_equal(line(figure, f"{name}-slope"), slope)


def test_grey_lies_where_the_slope_is_small():
    bands = [
        artist
        for artist in pictures.activations(reach=5, flat=0.05).findobj(
            lambda artist: artist.get_gid() == "sigmoid-flat"
        )
    ]
    edges = sorted((band.get_x(), band.get_x() + band.get_width()) for band in bands)
    assert len(edges) == 2
    inner = edges[0][1], edges[1][0]
    assert inner == pytest.approx((-2.88, 2.88), abs=0.02)
    np.testing.assert_allclose(F.sigmoid_backward(np.ones(2), np.array(inner)), 0.05, rtol=0.02)


def test_the_deep_signal_is_that_of_a_network_written_as_a_loop():
    found = pictures.deep_signal(nn.ReLU, "he", **SMALL)
    rng = np.random.default_rng(1)
    signal, kept = rng.normal(size=(8, 16)), []
    for layer in range(3):
        weight = rng.normal(0.0, np.sqrt(2 / 16), size=(16, 16))
        z = signal @ weight.T
        kept.append((weight, z))
        signal = np.maximum(z, 0)
        centred = signal - signal.mean(axis=0)
        assert found["size"][layer] == pytest.approx(np.sqrt(np.mean(signal**2)))
        assert found["spread"][layer] == pytest.approx(np.sqrt(np.mean(centred**2)))
    gradient = rng.normal(size=(8, 16))
    for layer in (2, 1, 0):
        weight, z = kept[layer]
        gradient = (gradient * (z > 0)) @ weight
        assert found["gradient"][layer] == pytest.approx(np.sqrt(np.mean(gradient**2)))


def test_the_curves_are_the_measured_numbers(small):
    measured = {
        (init, name): {key: np.full(3, place + 1.0) for key in ("size", "spread", "gradient")}
        for place, (init, name) in enumerate((i, n) for i in pictures.INITS for n in pictures.ACTIVATIONS)
    }
    figures = {"size": pictures.signal_scale(measured=measured)}
    figures["spread"] = figures["size"]
    figures["gradient"] = pictures.gradient_scale(measured=measured)
    for (init, name), quantities in measured.items():
        for quantity, values in quantities.items():
            if quantity != "gradient" or init != "pytorch":
                np.testing.assert_array_equal(line(figures[quantity], f"{quantity}-{init}-{name}"), values)


def test_every_depth_begins_with_the_same_loss_and_descends():
    numbers = {"depths": [1, 2, 4], "start": 0.01, "target": 1.0, "lr": 0.05, "steps": 400}
    figure = pictures.plateaus(descent=numbers)
    curves = [line(figure, f"depth-{depth}") for depth in numbers["depths"]]
    for curve in curves:
        assert curve[0] == pytest.approx(0.5 * 0.99**2)
        assert np.all(np.diff(curve) <= 0)
    halves = [int(np.argmax(curve < curve[0] / 2)) for curve in curves]
    assert halves == sorted(halves)
    assert halves[0] < halves[1] < halves[2]


def test_the_descent_of_a_product_uses_the_derivative_by_each_factor():
    losses = pictures.deep_scalar(2, 0.25, 1.0, 0.1, 2)
    factor = 0.5 - 0.1 * (0.25 - 1) * 0.5
    assert losses[1] == pytest.approx(0.5 * (factor**2 - 1) ** 2)
