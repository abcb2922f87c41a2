"""The figures of measured scaling draw the stored samples, and the bounds that the cost model gives."""

import matplotlib
import numpy as np
import pytest
from drawn import artists, check_apart, check_readable, check_saved

matplotlib.use("Agg")


from denselayer import bench, cost
from denselayer_figures import scaling_measured

FIGURES = [name for name, member in vars(scaling_measured).items() if getattr(member, "is_figure", False)]
LIMITS = bench.Limits(
    1, {"float32": 1e11}, "fma", {"L2": 1e11, "L3": 5e10, "DRAM": 1e10}, {"L2": 2**20, "L3": 2**25}
)


def case(name, sizes, exponent, shape, program=""):
    """A case whose time is a power of the size, in three rounds."""
    times = {f"{program}{size}": [1e-6 * size**exponent * f for f in (0.9, 1.0, 1.2)] for size in sizes}
    return bench.Case(name, times, shape)


def scaling_samples():
    """Made-up samples in the form of the suite."""
    widths = [
        case(f"width, {name}", (16, 64, 256), exponent, {"batch": 8})
        for exponent, name in enumerate(("forward", "backward", "SGD", "Adam"))
    ]
    rows = case("few rows, 1024", (1, 2, 1024), 1, {"width": 1024}, "product ")
    rows.seconds.update({"weight_first 2": [3e-6] * 3, "row_by_row 1": [1e-6] * 3})
    task = {"batch": 100, "width": 30, "depth": 4, "optimizer": "adam", "every": 0}
    memory = [
        bench.Case(
            f"memory, {size}",
            {},
            notes={f"{at}": task | {size: at, "held": at * 2**20, "peak": at * 2**21} for at in (1, 2)},
        )
        for size in ("batch", "width", "depth")
    ]
    return bench.Samples("scaling", {}, (*widths, rows, *memory))


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_drawn_from_the_stored_samples(name, tmp_path):
    figure = getattr(scaling_measured, name)()
    check_saved(figure, tmp_path / "figure.png")
    check_readable(figure)


@pytest.mark.parametrize("name", FIGURES)
def test_no_text_of_a_panel_lies_on_another(name):
    figure = getattr(scaling_measured, name)()
    check_apart(figure)


def test_a_sweep_reads_sizes_and_rounds_and_chooses_a_program():
    few = scaling_samples().case("few rows, 1024")
    sizes, seconds = scaling_measured.sweep(few, "product")
    np.testing.assert_array_equal(sizes, [1, 2, 1024])
    assert seconds.shape == (3, 3)
    assert seconds[1].tolist() == few.seconds["product 2"]
    assert scaling_measured.sweep(few, "row_by_row")[0].tolist() == [1]


def test_the_bound_of_a_pass_is_that_of_the_roofline():
    operations, traffic = 2 * 10 * 64 * 64, 4 * (64 * 64 + 64 + 2 * 10 * 64)
    found = scaling_measured.bound(LIMITS, "forward", 10, 64)
    assert found == max(operations / 1e11, traffic / 1e11)
    assert scaling_measured.bound(LIMITS, "backward", 10**4, 64) == pytest.approx(4 * 10**4 * 64 * 64 / 1e11)
    three = scaling_measured.bound(LIMITS, "forward", 10**4, 64, depth=3)
    assert three == pytest.approx(3 * 2 * 10**4 * 64 * 64 / 1e11)


@pytest.mark.parametrize(("width", "bandwidth"), [(64, 1e11), (1024, 5e10), (4096, 1e10)])
@pytest.mark.parametrize(("name", "held", "moved"), [("SGD", 2, 3), ("Adam", 4, 7)])
def test_the_bound_of_an_update_is_traffic_at_the_level_that_holds_it(name, held, moved, width, bandwidth):
    parameters = width * (width + 1)
    assert LIMITS.bandwidth[LIMITS.level(4 * held * parameters)] == bandwidth
    assert scaling_measured.bound(LIMITS, name, 1, width) == 4 * moved * parameters / bandwidth


def test_times_are_medians_and_stand_beside_their_bounds():
    figure = scaling_measured.widths(samples=scaling_samples(), limit=LIMITS)
    lines = artists(figure)
    for exponent, name in enumerate(("forward", "backward", "SGD", "Adam")):
        np.testing.assert_array_equal(lines[name].get_xdata(), [16, 64, 256])
        np.testing.assert_allclose(lines[name].get_ydata(), 1e-6 * np.array([16.0, 64, 256]) ** exponent)
        least = [scaling_measured.bound(LIMITS, name, 8, width) for width in (16, 64, 256)]
        np.testing.assert_array_equal(lines[f"bound-{name}"].get_ydata(), least)
    for name, arrays in (("SGD", 2), ("Adam", 4)):
        full = lines[f"full-{name}"].get_xdata()[0]
        assert 4 * arrays * full**2 == pytest.approx(2**25)


def test_the_ridge_is_where_the_bound_bends():
    lines = artists(scaling_measured.few_rows(samples=scaling_samples(), limit=LIMITS))
    ridge = lines["ridge-1024"].get_xdata()[0]
    assert ridge == pytest.approx(2 * 1e11 / 5e10)
    rows, least = lines["bound-1024"].get_data()
    compute = 2 * rows * 1024**2 / 1e11
    bends = rows[np.argmax(np.isclose(least, compute))]
    assert ridge <= bends <= ridge + 1
    np.testing.assert_allclose(lines["product-1024"].get_ydata(), [1e-6, 2e-6, 1024e-6])


def test_the_line_of_the_memory_is_the_model():
    figure = scaling_measured.memory(samples=scaling_samples())
    for size in ("batch", "width", "depth"):
        lines = artists(figure)
        np.testing.assert_allclose(lines[f"held-{size}"].get_ydata(), [1, 2])
        np.testing.assert_allclose(lines[f"peak-{size}"].get_ydata(), [2, 4])
        model = lines[f"model-{size}"].get_ydata() * 2**20
        for at, found in zip((1, 2), model, strict=True):
            sizes = {"batch": 100, "width": 30, "depth": 4} | {size: at}
            widths = [sizes["width"]] * (sizes["depth"] + 1)
            kept = 2 * sizes["batch"] * sizes["width"] * sizes["depth"]
            assert found == 4 * (4 * cost.network_parameters(widths) + kept)


def test_checkpoints_are_drawn_from_their_samples():
    shape = {"batch": 10, "width": 20, "depth": 8}
    task = shape | {"optimizer": "sgd"}
    notes = {"none": task | {"every": 0, "peak": 9 * 2**20}}
    notes |= {f"{k}": task | {"every": k, "peak": k * 2**20} for k in (1, 2, 8)}
    memory = bench.Case("memory", {}, shape, notes=notes)
    time = bench.Case(
        "training step", {"none": [1.0, 1.0], "1": [1.5, 1.5], "2": [1.25, 1.25], "8": [2.0, 2.0]}
    )
    figure = scaling_measured.checkpoints(samples=bench.Samples("checkpoint", {}, (time, memory)))
    lines = artists(figure)
    np.testing.assert_allclose(lines["peak"].get_data(), [[1, 2, 8], [1, 2, 8]])
    np.testing.assert_allclose(lines["ratio"].get_ydata(), [1.5, 1.25, 2.0])
    assert lines["none"].get_ydata()[0] == 9
    every, model = lines["model"].get_data()
    np.testing.assert_array_equal(every, range(1, 9))
    fixed = 4 * 2 * 8 * 20 * 21
    expected = [fixed + 4 * cost.checkpoint_values(10, 20, 8, k, 2) for k in range(1, 9)]
    np.testing.assert_allclose(np.array(model) * 2**20, expected)
    assert lines["operations"].get_ydata()[0] == pytest.approx(4 / 3)
