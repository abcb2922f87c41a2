"""The figures of the chapter on the fused GEMM draw the stored samples, and nothing else."""

import matplotlib
import numpy as np
import pytest
from drawn import artists

matplotlib.use("Agg")

from matplotlib.text import Text

from denselayer import bench, cost
from denselayer_figures import fused_gemm

FIGURES = [name for name, member in vars(fused_gemm).items() if getattr(member, "is_figure", False)]


@pytest.fixture(scope="module")
def drawn():
    """Every figure, drawn once."""
    return {name: getattr(fused_gemm, name)() for name in FIGURES}


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_drawn_from_the_parameters_and_the_samples_alone(name, drawn, tmp_path):
    drawn[name].savefig(tmp_path / "figure.png", dpi=60)
    assert (tmp_path / "figure.png").stat().st_size > 5_000
    assert drawn[name].get_facecolor()[3] == 0


@pytest.mark.parametrize("name", FIGURES)
def test_text_is_readable_on_a_phone(name, drawn):
    assert drawn[name].get_size_inches()[0] <= 6
    written = [text for text in drawn[name].findobj(Text) if text.get_text() and text.get_visible()]
    assert min(text.get_fontsize() for text in written) >= 10


@pytest.mark.parametrize("name", FIGURES)
def test_no_text_of_a_panel_lies_on_another(name, drawn):
    drawn[name].canvas.draw()
    for axes in drawn[name].axes:
        boxes = [Text.get_window_extent(text) for text in axes.texts if text.get_text()]
        for at, box in enumerate(boxes):
            assert not any(box.overlaps(other) for other in boxes[at + 1 :])


def test_the_ladder_shows_the_rates_slowest_first_and_the_peak(drawn):
    figure = drawn["ladder"]
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names[0] == "loops in Python"
    assert names[-1] == "one call"
    case = bench.stored("loops").case("square 64")
    points = artists(figure, "size-64")["size-64"]
    shown = dict(zip((names[int(row)] for row in points.get_ydata()), points.get_xdata(), strict=True))
    assert shown == pytest.approx({name: case.rate(name) / 1e9 for name in case.variants})
    peak = artists(figure, "peak")["peak"].get_xdata()[0]
    assert peak == pytest.approx(fused_gemm.limits().peak["float32"] / 1e9)
    assert max(points.get_xdata()) < peak


def test_the_tile_and_its_places_have_the_sizes_of_the_parameters():
    figure = fused_gemm.places(tile={"rows": 8, "columns": 16, "depth": 100, "block": 64})
    labels = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    assert labels[:3] == ["registers, 0.5 KiB", "L1, 9.38 KiB", "L2, 25 KiB"]
    assert {"tile", "panel", "block of x"} <= set(artists(figure, ""))


def test_the_predicted_share_is_that_of_the_cost_model(drawn):
    line = artists(drawn["share"], "predicted-in place")["predicted-in place"]
    rates = fused_gemm.rates_of_passes(8192, ["add row", "maximum number"])
    speed = bench.stored("loops").case("square 1024").rate("one call")
    expected = [100 * cost.epilogue_share(int(count), speed, rates) for count in line.get_xdata()]
    np.testing.assert_allclose(line.get_ydata(), expected)
    assert list(line.get_xdata()) == list(fused_gemm.share_cases())


def test_the_stacks_show_the_largest_block_that_is_not_packed(drawn):
    edge = artists(drawn["stacks"], "small")["small"].get_xdata()[0]
    assert edge == 1_000_000 / (64 * 64)
    case = bench.stored("epilogue").case("stacks 65536,64,64")
    line = artists(drawn["stacks"], "in, out")["in, out"]
    assert line.get_ydata()[0] == pytest.approx(case.rate(f"in, out: {line.get_xdata()[0]}") / 1e9)


def test_the_points_of_the_roofline_are_the_rates_of_the_samples(drawn):
    cases = bench.stored("forward").select(dtype="float32", threads=1)
    points = artists(drawn["roofline"], "points-fused")["points-fused"]
    np.testing.assert_allclose(points.get_ydata(), [case.rate("fused") / 1e9 for case in cases])
    np.testing.assert_allclose(points.get_xdata(), [case.operations / case.traffic for case in cases])


def test_the_roof_of_each_level_bends_at_its_ridge(drawn):
    found = fused_gemm.limits()
    for level, bandwidth in found.bandwidth.items():
        line = artists(drawn["roofline"], f"roof-{level}")[f"roof-{level}"]
        peak = found.peak["float32"]
        assert line.get_xdata()[1] == pytest.approx(cost.ridge_point(peak, bandwidth))
        assert line.get_ydata()[-1] == pytest.approx(peak / 1e9)


@pytest.mark.parametrize("given", ["samples", "file"])
def test_the_readers_own_points_lie_over_the_books(given, tmp_path):
    layer = {"operations": 2_000_000, "traffic": 50_000}
    cases = [
        bench.Case("64,784,256", {"plain": [1e-3, 1e-3], "fused": [5e-4, 5e-4]}, **layer),
        bench.Case("backward 64,784,256", {"plain": [1e-3], "fused": [5e-4]}, **layer),
    ]
    mine = bench.Samples("machine", {}, tuple(cases))
    if given == "file":
        bench.save(mine, tmp_path / "mine.json")
        mine = tmp_path / "mine.json"
    figure = fused_gemm.roofline(mine=mine)
    own = artists(figure, "mine")["mine"]
    np.testing.assert_allclose(own.get_xdata(), [40, 40])
    np.testing.assert_allclose(own.get_ydata(), [2, 4])


@pytest.mark.parametrize(("name", "suite"), [("ratios", "forward"), ("backward", "backward")])
def test_the_ratios_are_those_of_the_samples(name, suite, drawn):
    cases = bench.stored(suite).select(dtype="float32", threads=1)
    (line, *_) = [
        container.lines[0]
        for container in drawn[name].axes[0].containers
        if container.get_label() == "NumPy, fused"
    ]
    np.testing.assert_allclose(line.get_xdata(), [case.ratio("plain", "fused").median for case in cases])


def test_each_order_of_a_sum_is_that_order():
    lost = np.array([[2.0**24, 1.0, 1.0, 1.0]], dtype=np.float32)
    assert fused_gemm._chunked(lost, 4)[0] == 2**24
    assert fused_gemm._chunked(lost, 2)[0] == fused_gemm._pairwise(lost)[0] == 2**24 + 2
    plain = np.arange(1, 11, dtype=np.float32)[None]
    assert fused_gemm._pairwise(plain)[0] == fused_gemm._chunked(plain, 4)[0] == 55


def test_a_long_sum_is_worst_when_added_one_after_the_other():
    options = {"chunk": 128, "sums": 300, "seed": 1}
    means = [fused_gemm.sum_errors(2048, order, **options).mean() for order in fused_gemm.ORDERS]
    assert means[0] > 2 * means[1] > 2 * means[2]
