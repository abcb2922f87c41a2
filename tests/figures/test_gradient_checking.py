"""The figures of the chapter on gradient checking draw the numbers they claim to draw."""

import matplotlib
import numpy as np
import pytest
from drawn import artists

matplotlib.use("Agg")


from denselayer import functional as F
from denselayer.gradcheck import numerical_gradient
from denselayer_figures import gradient_checking, style


def slope_of(line) -> float:
    (x0, x1), (y0, y1) = line.get_data()
    return (y1 - y0) / (x1 - x0)


@pytest.mark.parametrize(
    "name",
    [name for name, member in vars(gradient_checking).items() if getattr(member, "is_figure", False)],
)
def test_every_figure_is_drawn_from_the_parameters_file_alone(name, tmp_path):
    figure = getattr(gradient_checking, name)()
    figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 5_000
    assert figure.get_facecolor()[3] == 0, "the background is transparent"
    assert figure.get_size_inches()[0] <= 6
    sizes = [text.get_fontsize() for text in figure.findobj(matplotlib.text.Text) if text.get_text()]
    assert min(sizes) >= 10


def test_the_loss_of_one_weight_is_the_cross_entropy_of_the_running_example():
    numbers = style.parameters("running_example")
    x, weight, bias = (np.array(numbers[name], dtype=float) for name in ("x", "weight", "bias"))

    def loss(value):
        moved = weight.copy()
        moved[0, 0] = value
        return F.cross_entropy(F.linear(x, moved, bias), np.array(2))

    for value in (-1.0, 0.5, 2.0):
        assert gradient_checking.loss_of_weight(value) == pytest.approx(loss(value))
    assert gradient_checking.loss_of_weight(0.5, np.float32).dtype == np.float32


def test_the_derivatives_are_the_slopes_of_each_other():
    here = style.parameters("running_example")["weight"][0][0]
    value, first, second, third = gradient_checking.derivatives()
    f = gradient_checking.loss_of_weight
    assert value == f(here)
    measured = numerical_gradient(lambda w: f(float(w[0])), np.array([here]))
    assert first == pytest.approx(measured[0], rel=1e-8)
    h = 1e-3
    assert second == pytest.approx((f(here + h) - 2 * f(here) + f(here - h)) / h**2, rel=1e-5)
    ends = f(here + 2 * h) - 2 * f(here + h) + 2 * f(here - h) - f(here - 2 * h)
    assert third == pytest.approx(ends / (2 * h**3), rel=1e-4)


def test_the_secants_go_through_the_curve_and_the_two_sided_one_is_nearer_to_the_tangent():
    figure = gradient_checking.secants(step=0.7)
    drawn = artists(figure)
    f = gradient_checking.loss_of_weight
    for gid, ends in (("one-sided", (0.5, 1.2)), ("two-sided", (-0.2, 1.2))):
        x, y = drawn[gid].get_data()
        assert x == pytest.approx(ends)
        assert y == pytest.approx([f(end) for end in ends])
    tangent = slope_of(drawn["tangent"])
    assert tangent == pytest.approx(gradient_checking.derivatives()[1])
    assert abs(slope_of(drawn["two-sided"]) - tangent) < abs(slope_of(drawn["one-sided"]) - tangent)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_curve_shows_what_is_measured_and_no_error_is_far_above_the_theory(dtype):
    drawn = artists(gradient_checking.step_curve(), np.dtype(dtype).name)
    steps, errors = gradient_checking.measured_errors("central", dtype)
    shown = drawn[np.dtype(dtype).name]
    assert np.array_equal(shown.get_xdata(), steps[errors > 0])
    assert np.array_equal(shown.get_ydata(), errors[errors > 0])
    assert np.all(errors <= 2 * gradient_checking.error_bound(steps, "central", dtype))

    (best,), (lowest,) = drawn[f"{np.dtype(dtype).name}-best"].get_data()
    x, y = drawn[f"{np.dtype(dtype).name}-theory"].get_data()
    assert lowest <= y.min() <= 1.01 * lowest
    assert x[y.argmin()] == pytest.approx(best, rel=0.1)


@pytest.mark.parametrize("method", ["forward", "central"])
def test_the_best_step_makes_the_bound_least(method):
    best = gradient_checking.best_step(method)
    bound = gradient_checking.error_bound(best, method)
    assert bound < gradient_checking.error_bound(best * 1.05, method)
    assert bound < gradient_checking.error_bound(best / 1.05, method)


def test_the_methods_differ_as_the_text_says():
    drawn = artists(gradient_checking.methods())
    errors = {name: drawn[name].get_ydata() for name in ("forward", "central", "complex")}
    steps = drawn["central"].get_xdata()
    assert errors["central"].min() < 1e-10 < errors["forward"].min() < 1e-6
    tiny = steps < 1e-9
    assert errors["complex"][drawn["complex"].get_xdata() < 1e-9].max() < 1e-14
    assert errors["central"][tiny].max() > 1e-5
    large = (steps > 1e-3) & (steps < 1e-1)
    truncation = steps[large] ** 2 / 6 * abs(gradient_checking.derivatives()[3])
    assert errors["central"][large] == pytest.approx(truncation, rel=0.1)
    assert errors["complex"][drawn["complex"].get_xdata() >= steps[large][0]][:3] == pytest.approx(
        truncation[:3], rel=0.1
    )


def test_a_kink_on_the_point_and_beside_it():
    drawn = artists(gradient_checking.kink(step=2.0, offset=0.25))
    assert [slope_of(drawn[f"on-{side}"]) for side in ("left", "right", "both")] == [0.0, 1.0, 0.5]
    beside = [slope_of(drawn[f"beside-{side}"]) for side in ("left", "right", "both")]
    assert beside == pytest.approx([0.0, 0.75, 0.375])


def test_the_loss_curves_are_the_same_for_one_row_and_part_for_many():
    drawn = {gid: line.get_ydata() for gid, line in artists(gradient_checking.reduction()).items()}
    assert np.array_equal(drawn["right-1"], drawn["times N-1"])
    assert np.array_equal(drawn["right-1"], drawn["over N-1"])
    right, times, over = (drawn[f"{name}-512"] for name in ("right", "times N", "over N"))
    assert right[0] == times[0] == over[0]
    assert right[-1] < 1e-3 * right[0]
    assert times[3] > 1e6 * times[0]
    assert over[-1] > 0.5 * over[0]


def test_the_error_of_the_bias_shrinks_by_the_factor_of_the_text():
    """With inputs of mean zero the bias learns alone: each step multiplies its error by 1 - 2 lr c / out."""
    losses = gradient_checking.train_with_factor(20_000, 1.0, lr=0.1, steps=40, seed=1)
    ratio = np.sqrt(losses[-1] / losses[-2])
    assert ratio == pytest.approx(1 - 0.2 / 3, rel=0.02)
