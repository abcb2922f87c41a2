"""The figures of layers on several devices draw the numbers they claim to draw."""

from itertools import pairwise

import matplotlib
import numpy as np
import pytest
from drawn import artists, check_apart, check_readable, check_saved

matplotlib.use("Agg")

from matplotlib.colors import to_hex

from denselayer import bench, parallel
from denselayer_figures import parallel as figures

NAMES = [name for name, member in vars(figures).items() if getattr(member, "is_figure", False)]
ALPHA, BETA, RATE = 1e-4, 1e-9, 4e10


def made_up(noise=0.02):
    """Samples as a machine would give them that obeys the model."""
    rng = np.random.default_rng(0)

    def times(seconds):
        return list(seconds * rng.lognormal(0, noise, 15))

    cases = [
        bench.Case(
            f"all-reduce {size}",
            {"all-reduce": times(parallel.all_reduce_seconds(size, 2, ALPHA, BETA))},
            shape={"bytes": size, "ranks": 2},
        )
        for size in 8 * 4 ** np.arange(12)
    ]
    for rows in (16, 256):
        for width in (32, 64, 128, 256):
            alone = 48 * rows * width**2 / RATE
            both = alone / 2 + 2 * parallel.all_reduce_seconds(4 * rows * width, 2, ALPHA, BETA)
            cases.append(
                bench.Case(
                    f"block {rows},{width}",
                    {"unsplit": times(alone), "split": times(both), "parts alone": times(alone / 2)},
                    shape={"batch": rows, "width": width, "hidden": 4 * width, "ranks": 2},
                    operations=48 * rows * width**2,
                )
            )
    return bench.Samples("allreduce", {"cpu": "made up"}, tuple(cases))


def draw(name):
    """A figure of the stored samples, or of none."""
    return getattr(figures, name)()


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_is_drawn_from_the_files_of_the_book_alone(name, tmp_path):
    figure = draw(name)
    check_saved(figure, tmp_path / "figure.png")


@pytest.mark.parametrize("name", NAMES)
def test_text_is_readable_on_a_phone(name):
    figure = draw(name)
    check_readable(figure)


@pytest.mark.parametrize("name", NAMES)
def test_no_text_of_a_panel_lies_on_another(name):
    figure = draw(name)
    check_apart(figure)


def test_each_device_holds_a_row_or_a_column_and_sends_what_is_counted():
    figure = figures.exchanges()
    outputs, inputs = figure.axes
    for axes, axis, way in ((outputs, 0, "backward"), (inputs, 1, "forward")):
        cells = [patch.get_gid() for patch in axes.patches if patch.get_gid().startswith("W-")]
        places = [tuple(map(int, name.split("-")[1:])) for name in cells]
        assert len(places) == 9
        assert all(place[axis] == place[2] for place in places)
        sent = [patch.get_gid() for patch in axes.patches if patch.get_gid().startswith("sent-")]
        assert sent == [f"sent-{way}-{device}-{number}" for device in range(3) for number in range(4)]
    devices = parallel.Devices(3)
    devices.all_reduce([np.ones(3)] * 3)
    assert devices.sent == (4 * 8,) * 3


@pytest.mark.parametrize("devices", [2, 3, 4])
def test_the_ring_ends_with_all_summands_everywhere_after_the_counted_steps(devices):
    grids = figures.ring_steps(devices)
    simulated = parallel.Devices(devices)
    simulated.all_reduce([np.ones(devices)] * devices)
    assert len(grids) == 1 + simulated.steps
    assert (grids[-1] == devices).all()
    assert (np.diag(grids[devices - 1]) == devices).all()
    for before, after in pairwise(grids):
        assert ((before != after).sum(axis=1) == 1).all()


def test_the_cells_of_the_ring_are_darker_the_more_they_hold():
    cells = artists(figures.ring(devices=3), "step-")
    assert to_hex(cells["step-0-1-1"].get_facecolor()) == figures.FROM_WHITE[0]
    assert to_hex(cells["step-4-1-2"].get_facecolor()) == figures.FROM_WHITE[-1]
    assert len(cells) == 5 * 9


def test_the_fitted_line_and_the_medians_are_those_of_the_samples():
    samples = made_up()
    lines = artists(figures.all_reduce_times(samples), "")
    model = figures.fitted(samples)
    assert model.alpha == pytest.approx(ALPHA, rel=0.05)
    assert model.beta == pytest.approx(BETA, rel=0.05)
    times = figures.all_reduces(samples)
    np.testing.assert_allclose(
        lines["measured"].get_ydata(), [1e3 * np.median(each) for each in times.values()]
    )
    line = lines["fitted"]
    expected = [1e3 * model.all_reduce_seconds(size, 2) for size in line.get_xdata()]
    np.testing.assert_allclose(line.get_ydata(), expected)


def test_the_times_of_blocks_are_the_medians_and_the_prediction_is_half_and_two_exchanges():
    samples = made_up()
    lines, model = artists(figures.split_times(samples), ""), figures.fitted(samples)
    assert figures.batches(samples) == [16, 256]
    for rows in (16, 256):
        cases = figures.blocks(samples, rows)
        for way in ("unsplit", "split"):
            np.testing.assert_array_equal(lines[f"{way}-{rows}"].get_xdata(), list(cases))
            medians = [1e3 * case.median(way) for case in cases.values()]
            np.testing.assert_allclose(lines[f"{way}-{rows}"].get_ydata(), medians)
        for at, (width, case) in enumerate(cases.items()):
            exchange = parallel.all_reduce_seconds(4 * rows * width, 2, model.alpha, model.beta)
            expected = 1e3 * (case.median("unsplit") / 2 + 2 * exchange)
            assert lines[f"predicted-{rows}"].get_ydata()[at] == pytest.approx(expected)


def test_a_machine_that_obeys_the_model_crosses_where_it_predicts():
    samples = made_up(noise=0.005)
    for rows in figures.batches(samples):
        cases = figures.blocks(samples, rows)
        ratios = [case.ratio("unsplit", "split").median for case in cases.values()]
        found = figures.crossing_width(list(cases), ratios)
        predicted = parallel.paying_width(rows, 2, RATE, ALPHA, BETA)
        assert found == pytest.approx(predicted, rel=0.15)


def test_a_crossing_is_where_the_last_ratio_below_one_is_left():
    assert figures.crossing_width([1, 4, 16, 64], [0.5, 2, 0.5, 2]) == pytest.approx(32)
    assert figures.crossing_width([8, 16], [1.5, 2]) == 8
    assert figures.crossing_width([8, 16], [1.5, 0.9]) is None
