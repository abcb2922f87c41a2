"""The gradient check finds wrong gradients, passes right ones, and tells kinks from both."""

import doctest
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from denselayer import _complex_step, _slopes, _table, _verdicts, functional, gradcheck, nn
from denselayer.gradcheck import (
    NotAnalyticError,
    check_gradients,
    check_module,
    default_step,
    numerical_gradient,
    relative_error,
)

EPS = np.finfo(np.float64).eps


@pytest.mark.parametrize("module", [gradcheck, _slopes, _complex_step, _verdicts, _table])
def test_doctests(module):
    assert doctest.testmod(module).failed == 0


# The measured slope


def polynomial(x):
    """Of any shape, with a gradient that is known: 3 x**2 - 2."""
    return (x**3 - 2 * x).sum()


shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3)


@given(x=hnp.arrays(np.float64, shapes, elements=st.floats(-10, 10)))
@settings(max_examples=50, deadline=None)
@pytest.mark.parametrize(("method", "tolerance"), [("central", 1e-7), ("forward", 1e-4), ("complex", 1e-14)])
def test_slopes_of_a_polynomial(method, tolerance, x):
    before = x.copy()
    slopes = numerical_gradient(polynomial, x, method=method)
    assert slopes.shape == x.shape
    assert slopes.dtype == np.float64
    size = 1 + np.abs(x).max(initial=0.0) ** 3 * x.size  # what cancels in the sum is lost to the differences
    np.testing.assert_allclose(slopes, 3 * before**2 - 2, rtol=tolerance, atol=tolerance * size)
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("method", ["central", "forward", "complex"])
def test_slopes_of_read_only_strided_and_empty_arrays(method):
    x = np.arange(24, dtype=np.float64).reshape(4, 6)[::2, ::-3].T
    assert not x.flags.contiguous
    x.setflags(write=False)
    np.testing.assert_allclose(numerical_gradient(polynomial, x, method=method), 3 * x**2 - 2, rtol=1e-4)
    assert numerical_gradient(polynomial, np.zeros((0, 3)), method=method).shape == (0, 3)


def error_of(step, x, method, dtype=np.float64):
    x = np.array([x], dtype=dtype)
    slope = numerical_gradient(lambda x: np.exp(x).sum(), x, method=method, step=step)
    return abs(slope[0] - math.exp(x[0])) / math.exp(x[0])


@pytest.mark.parametrize("method", ["central", "forward"])
def test_the_default_step_balances_truncation_and_rounding(method):
    best = default_step(np.float64, method)
    points = np.linspace(0.1, 1.9, 7)
    at_best, shorter, longer = (
        max(error_of(step, x, method) for x in points) for step in (best, best / 1000, best * 1000)
    )
    assert 10 * at_best < min(shorter, longer)
    assert at_best < (1e-10 if method == "central" else 1e-7)


def test_the_step_grows_with_large_entries():
    """At 1e8 a step of 6e-6 is but 400 ulp, and the slope would lose most of its digits."""
    slope = numerical_gradient(lambda x: (x**2).sum(), np.array([1e8]))
    np.testing.assert_allclose(slope, [2e8], rtol=1e-9)


def test_float32_is_measured_in_float64():
    def square(x):
        dtypes.add(x.dtype)
        return (x**2).sum()

    dtypes = set()
    x = np.array([0.1, 2.0], dtype=np.float32)
    np.testing.assert_allclose(numerical_gradient(square, x), 2 * x.astype(np.float64), rtol=1e-9)
    assert dtypes == {np.dtype(np.float64)}


def test_a_function_that_takes_only_float32_gets_the_larger_step():
    def square(x):
        if x.dtype != np.float32:
            raise TypeError("float32 only")
        return np.sum(x**2, dtype=np.float32)

    def rounded(x):
        return np.float32((x**2).sum())

    x = np.array([0.5, 2.0], dtype=np.float32)
    for f in (square, rounded):
        np.testing.assert_allclose(numerical_gradient(f, x), [1.0, 4.0], rtol=1e-3)
        assert check_gradients(lambda p, f=f: f(p["x"]), {"x": x}, {"x": 2 * x}).ok
        assert not check_gradients(lambda p, f=f: f(p["x"]), {"x": x}, {"x": x}).ok


def test_nan_is_passed_through():
    slopes = numerical_gradient(lambda x: x[0] + x[1], np.array([1.0, np.nan]))
    assert np.isnan(slopes).all()


def test_an_exception_leaves_the_array_as_it_was():
    calls = []

    def explodes(x):
        calls.append(1)
        if len(calls) == 3:
            raise RuntimeError("bang")
        return x.sum()

    x = np.array([1.0, 2.0])
    for run in (
        lambda: numerical_gradient(explodes, x),
        lambda: check_gradients(lambda p: explodes(p["x"]), {"x": x}, {"x": np.ones(2)}),
    ):
        calls.clear()
        with pytest.raises(RuntimeError, match="bang"):
            run()
        np.testing.assert_array_equal(x, [1.0, 2.0])


def test_a_function_that_changes_its_argument_spoils_nothing():
    def greedy(x):
        value = (x**2).sum()
        x[...] = 99.0
        return value

    x = np.array([1.0, 2.0])
    np.testing.assert_allclose(numerical_gradient(greedy, x), [2.0, 4.0])
    np.testing.assert_array_equal(x, [1.0, 2.0])


# The complex step


@pytest.mark.parametrize(
    ("f", "slope"),
    [
        (lambda x: np.exp(x).sum(), np.exp),
        (lambda x: (x / (1 + np.exp(-x))).sum(), None),
        (lambda x: np.sqrt(1 + x**2).prod(), None),
        (lambda x: np.log(np.exp(x).sum()), lambda x: np.exp(x) / np.exp(x).sum()),
        (lambda x: np.tanh(x) @ np.array([1.0, -2.0, 3.0]), None),
    ],
)
def test_the_complex_step_is_exact_to_the_last_digits(f, slope):
    x = np.array([0.3, -1.2, 2.0])
    exact = numerical_gradient(f, x, method="complex")
    np.testing.assert_allclose(exact, numerical_gradient(f, x), rtol=1e-8)
    if slope is not None:
        np.testing.assert_allclose(exact, slope(x), rtol=8 * EPS)


def keeps_only_the_real_part_of_one_term(x):
    hidden = np.array([float(str(value.real)) for value in np.asarray(x).ravel()])
    return (x**2).sum() + hidden.sum()


def writes_into_a_real_array(x):
    out = np.zeros(x.shape)
    out[...] = x
    return out.sum() + (x**2).sum()


NOT_ANALYTIC = {
    "relu by maximum": lambda x: np.maximum(x, 0).sum(),
    "relu by comparison": lambda x: (x * (x > 0)).sum(),
    "relu by where": lambda x: np.where(x < 0, 0, x).sum(),
    "relu by clip": lambda x: np.clip(x, 0, None).sum(),
    "relu of the package": lambda x: functional.relu(x).sum(),
    "largest entry": lambda x: x.max(),
    "absolute value": lambda x: np.abs(x).sum(),
    "absolute value of a sum": lambda x: abs(x.sum()) + x.sum(),
    "norm": lambda x: np.linalg.norm(x),
    "sign": lambda x: (np.sign(x) * x).sum(),
    "conjugate": lambda x: (x * x.conj()).sum(),
    "real part": lambda x: np.real(x).sum() + x.sum(),
    "real attribute": lambda x: (x.real * x).sum(),
    "real result": lambda x: float(len(x)),
    "cast to float": lambda x: x.astype(float).sum() + x.sum(),
    "into a real array": writes_into_a_real_array,
    "a lost term": keeps_only_the_real_part_of_one_term,
    "branch on a comparison": lambda x: x.sum() if x[0] > 0 else -x.sum(),
    "mathematics of the standard library": lambda x: math.exp(x[0]),
    "kink behind a plain array": lambda x: np.maximum(np.array(x) - 0.5, 0).sum(),
}


@pytest.mark.parametrize("name", NOT_ANALYTIC)
def test_the_complex_step_refuses_what_is_not_analytic(name):
    with pytest.raises(NotAnalyticError, match="use method='central'"):
        numerical_gradient(NOT_ANALYTIC[name], np.array([0.5, -1.5, 2.0]), method="complex")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("relu by maximum", "uses np.maximum"),
        ("real attribute", "uses the real part"),
        ("real result", "drops the imaginary part: its result is real"),
        ("into a real array", "drops the imaginary part on the way"),
        ("relu of the package", "raises a TypeError for complex numbers"),
        ("a lost term", "changes along real numbers"),
    ],
)
def test_the_refusal_says_why(name, reason):
    with pytest.raises(NotAnalyticError, match=reason):
        numerical_gradient(NOT_ANALYTIC[name], np.array([0.5, -1.5, 2.0]), method="complex")


def test_the_complex_step_checks_gradients():
    params = {"x": np.array([0.3, -1.2]), "y": np.array([2.0])}

    def loss(params):
        return (np.exp(params["x"]) * params["y"]).sum()

    grads = {"x": 2 * np.exp(params["x"]), "y": np.array([np.exp(params["x"]).sum()])}
    assert check_gradients(loss, params, grads, method="complex").ok
    grads["x"] = grads["x"] * (1 + 1e-9)
    assert not check_gradients(loss, params, grads, method="complex").ok
    assert check_gradients(loss, params, grads).ok  # nine digits are more than central differences can tell


# Right and wrong gradients of a dense layer


def layer(dtype=np.float64, batch=4, inputs=3, outputs=3, seed=0):
    """A dense layer, its loss and its right gradients; square, so that shapes forgive mistakes."""
    rng = np.random.default_rng(seed)
    params = {
        "x": rng.normal(size=(batch, inputs)).astype(dtype),
        "weight": rng.normal(size=(outputs, inputs)).astype(dtype),
        "bias": rng.normal(size=outputs).astype(dtype),
    }
    d_out = rng.normal(size=(batch, outputs)).astype(dtype)

    def loss(params):
        out = functional.linear(params["x"], params["weight"], params["bias"])
        return (out * d_out.astype(out.dtype)).sum()

    d_x, d_weight, d_bias = functional.linear_backward(d_out, params["x"], params["weight"])
    return params, loss, {"x": d_x, "weight": d_weight, "bias": d_bias}, d_out


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_right_gradients_pass(dtype, scale):
    params, loss, _, d_out = layer(dtype)
    params = {name: array * dtype(scale) for name, array in params.items()}
    d_x, d_weight, d_bias = functional.linear_backward(d_out, params["x"], params["weight"])
    report = check_gradients(loss, params, {"x": d_x, "weight": d_weight, "bias": d_bias})
    assert report.ok, report
    assert not report.kinks
    assert len(report.entries) == 12 + 9 + 3
    assert all(entry.relative_error < 1e-4 for entry in report.entries)


DEFECTS = {
    "transposed": ("weight", lambda right, d_out, params: right["weight"].T.copy()),
    "of the wrong operands": ("x", lambda right, d_out, params: d_out @ params["weight"].T),
    "divided by the batch": ("weight", lambda right, d_out, params: right["weight"] / 4),
    "times the batch": ("bias", lambda right, d_out, params: right["bias"] * 4),
    "without the sum": ("bias", lambda right, d_out, params: d_out[-1]),
    "with a mean for a sum": ("bias", lambda right, d_out, params: d_out.mean(axis=0)),
    "summed over the wrong axis": ("bias", lambda right, d_out, params: d_out[:3].sum(axis=1)),
    "negative": ("x", lambda right, d_out, params: -right["x"]),
    "zero": ("weight", lambda right, d_out, params: np.zeros((3, 3))),
    "that forgets d_out": ("bias", lambda right, d_out, params: np.full(3, 4.0)),
    "twice accumulated": ("weight", lambda right, d_out, params: right["weight"] * 2),
    "wrong in one entry": ("x", lambda right, d_out, params: right["x"] + np.eye(4, 3) * 1e-4),
    "wrong in the fifth digit": ("weight", lambda right, d_out, params: right["weight"] * (1 + 1e-5)),
    "rounded to float16": (
        "weight",
        lambda right, d_out, params: np.float16(right["weight"]).astype(float),
    ),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_wrong_gradients_are_found(name):
    params, loss, right, d_out = layer()
    array, defect = DEFECTS[name]
    wrong = right | {array: defect(right, d_out, params)}
    report = check_gradients(loss, params, wrong)
    assert not report.ok
    assert report.failures
    assert {entry.name for entry in report.failures} == {array}
    assert "FAILED" in str(report)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("transposed", "the gradient of weight is the transpose of the slopes."),
        ("divided by the batch", "the gradient of weight is 0.25 times the slopes everywhere."),
        ("times the batch", "the gradient of bias is 4 times the slopes everywhere."),
        ("negative", "the gradient of x has the wrong sign everywhere."),
        ("zero", "the gradient of weight is zero everywhere, the slopes are not."),
    ],
)
def test_what_all_wrong_entries_have_in_common_is_said(name, sentence):
    params, loss, right, d_out = layer()
    array, defect = DEFECTS[name]
    report = check_gradients(loss, params, right | {array: defect(right, d_out, params)})
    assert report.findings == (sentence,)


@given(seed=st.integers(0, 10**6), factor=st.floats(-3, 3).filter(lambda factor: abs(factor - 1) > 1e-3))
@settings(max_examples=30, deadline=None)
def test_a_gradient_times_any_factor_but_one_is_found(seed, factor):
    params, loss, right, _ = layer(seed=seed, batch=2)
    assert check_gradients(loss, params, right).ok
    assert not check_gradients(loss, params, right | {"weight": right["weight"] * factor}).ok


def test_float32_gradients_are_found_wrong_in_the_fourth_digit():
    params, loss, right, _ = layer(np.float32)
    assert check_gradients(loss, params, right).ok
    wrong = right | {"weight": right["weight"] * np.float32(1.0001)}
    assert len(check_gradients(loss, params, wrong).failures) >= 5


def test_curved_functions_are_not_taken_for_kinks():
    for f, slope in (
        (lambda x: (x**2).sum(), lambda x: 2 * x),
        (lambda x: (x**3).sum(), lambda x: 3 * x**2),
        (lambda x: np.cos(1000 * x).sum(), lambda x: -1000 * np.sin(1000 * x)),
        (lambda x: np.exp(20 * x).sum(), lambda x: 20 * np.exp(20 * x)),
    ):
        x = np.array([0.0, 1e-7, -0.3, 1.5])
        report = check_gradients(lambda p, f=f: f(p["x"]), {"x": x}, {"x": slope(x)})
        assert report.ok, report
        assert not report.kinks
        assert not check_gradients(lambda p, f=f: f(p["x"]), {"x": x}, {"x": slope(x) * 1.001}).ok


# Kinks


def relu_loss(params):
    return 3.0 * np.maximum(params["z"], 0.0).sum()


@pytest.mark.parametrize("distance", [0.0, 1e-12, -1e-12, 1e-8, -1e-8, 1e-7, -1e-7, 1e-6, -3e-6, 5e-6])
def test_a_relu_kink_within_the_step_is_reported_and_is_no_failure(distance):
    params = {"z": np.array([distance, 1.0, -1.0])}
    report = check_gradients(relu_loss, params, {"z": 3.0 * (params["z"] > 0)})
    assert report.ok, report
    assert [entry.index for entry in report.kinks] == [(0,)]
    assert "1 at a kink" in str(report)
    assert "z[0]" in str(report)


@pytest.mark.parametrize("gradient", [-3.0, -0.5, 4.0, 6.0, np.nan, np.inf])
@pytest.mark.parametrize("distance", [0.0, 1e-8, -1e-7, 3e-6])
def test_a_wrong_gradient_at_a_kink_is_a_failure(distance, gradient):
    report = check_gradients(relu_loss, {"z": np.array([distance])}, {"z": np.array([gradient])})
    assert not report.ok
    assert [entry.verdict for entry in report.entries] == ["wrong"]


@pytest.mark.parametrize(("distance", "gradient"), [(1e-7, 0.0), (-1e-7, 3.0), (1e-6, 1.5), (-3e-6, 1.0)])
def test_beside_a_kink_the_gradient_must_be_that_of_its_side(distance, gradient):
    """Central differences over the kink would give something between the two slopes."""
    report = check_gradients(relu_loss, {"z": np.array([distance])}, {"z": np.array([gradient])})
    assert not report.ok


@pytest.mark.parametrize("distance", [1e-7, -1e-7, 1e-6, -3e-6])
def test_the_two_sided_difference_over_a_kink_is_not_the_gradient(distance):
    z = np.array([distance])
    mixed = numerical_gradient(lambda z: relu_loss({"z": z}), z)
    assert 0.1 < mixed[0] < 2.9
    assert not check_gradients(relu_loss, {"z": z}, {"z": mixed}).ok


@pytest.mark.parametrize("gradient", [0.0, 1.5, 3.0])
def test_at_a_kink_every_slope_between_the_two_is_reported_as_a_kink(gradient):
    report = check_gradients(relu_loss, {"z": np.zeros(1)}, {"z": np.array([gradient])})
    assert report.ok
    assert len(report.kinks) == 1


def test_a_wrong_gradient_elsewhere_is_not_excused_by_a_kink():
    params = {"z": np.array([0.0, 1.0, -1.0])}
    report = check_gradients(relu_loss, params, {"z": np.array([0.0, 3.3, 0.0])})
    assert not report.ok
    assert [entry.index for entry in report.failures] == [(1,)]
    assert [entry.index for entry in report.kinks] == [(0,)]


def test_a_kink_shows_the_slopes_of_both_sides():
    [entry] = check_gradients(relu_loss, {"z": np.zeros(1)}, {"z": np.zeros(1)}).kinks
    assert entry.slopes == (0.0, 3.0)


def test_a_layer_whose_every_unit_is_at_a_kink_is_not_called_checked():
    report = check_gradients(relu_loss, {"z": np.zeros((2, 3))}, {"z": np.zeros((2, 3))})
    assert len(report.kinks) == 6
    assert "every entry is at a kink" in str(report)


def test_a_kink_of_one_sample_of_many_is_seen_in_the_weight():
    """The weight moves 200 samples, of which one is at its kink: the jump is a small part of the slope."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(200, 2)) + 3.0
    x[0] = [1.0, -1.0]
    weight = np.array([[1.0, 1.0]])  # sample 0 has z = 0

    def loss(params):
        return np.maximum(x @ params["weight"].T, 0.0).sum()

    z = x @ weight.T
    for share in (0.0, 0.5, 1.0):  # any slope of the kinked sample between 0 and 1
        slope = np.where(z == 0, share, z > 0)
        assert check_gradients(loss, {"weight": weight}, {"weight": slope.T @ x}).ok
    for share in (-0.5, 1.5):
        slope = np.where(z == 0, share, z > 0)
        assert not check_gradients(loss, {"weight": weight}, {"weight": slope.T @ x}).ok


# What else a report says


def test_nan_in_the_loss_is_a_finding():
    with np.errstate(invalid="ignore"):
        report = check_gradients(
            lambda p: np.log(p["w"]).sum(), {"w": np.array([-1.0])}, {"w": np.array([-1.0])}
        )
    assert not report.ok
    assert report.findings == (
        "the loss is nan where the slopes should be measured: look for overflow, log(0) or 0 / 0.",
    )


def test_nan_in_the_parameters_is_named():
    params = {"w": np.array([1.0, np.nan]), "b": np.ones(1)}
    report = check_gradients(
        lambda p: p["w"].sum() + p["b"].sum(), params, {"w": np.ones(2), "b": np.ones(1)}
    )
    assert not report.ok
    assert "w is not finite" in report.findings[0]


def test_nan_beside_the_parameters_is_a_finding():
    with np.errstate(invalid="ignore"):
        report = check_gradients(
            lambda p: np.sqrt(p["w"]).sum(), {"w": np.array([4.0, 0.0])}, {"w": np.array([0.25, 9e9])}
        )
    assert not report.ok
    assert report.findings == ("the loss becomes NaN or infinite when w[1] moves.",)


def test_nan_in_the_gradient_is_a_finding():
    report = check_gradients(lambda p: p["w"].sum(), {"w": np.ones(2)}, {"w": np.array([1.0, np.nan])})
    assert not report.ok
    assert report.findings == ("the gradient is nan at w[1].",)
    assert [entry.index for entry in report.worst] == [(1,), (0,)]


def test_a_loss_that_ignores_its_argument_is_a_finding():
    w = np.ones(2)
    report = check_gradients(lambda p: w.sum(), {"w": w}, {"w": np.ones(2)})
    assert not report.ok
    assert report.findings == ("the loss does not change with w: does it use the arrays it is given?",)


def test_slopes_that_drown_in_the_rounding_of_the_loss_are_a_finding():
    """The two large terms cancel, so the value of the loss does not give them away."""
    params = {"large": np.array([1e9, 1e9]), "small": np.array([0.1])}

    def loss(params):
        return params["large"][0] - params["large"][1] + params["small"][0]

    for small in (1.0, 0.0):
        grads = {"large": np.array([1.0, -1.0]), "small": np.array([small])}
        [finding] = check_gradients(loss, params, grads).findings
        assert "hides the slopes of small" in finding
    params["large"] /= 1e6
    assert check_gradients(loss, params, grads | {"small": np.ones(1)}).ok
    assert check_gradients(loss, params, grads).failures


def test_wrong_shapes_and_missing_gradients_are_findings():
    weight, bias = np.ones((2, 3)), np.ones(2)
    report = check_gradients(
        lambda p: p["weight"].sum() + p["bias"].sum(),
        {"weight": weight, "bias": bias},
        {"weight": np.ones((3, 2)), "bias": None},
    )
    assert not report.ok
    assert report.findings == (
        "the gradient of weight has shape (3, 2), expected (2, 3): that is its transpose.",
        "the gradient of bias is None: run backward before the check.",
    )


def test_empty_arrays_and_arrays_without_axes():
    params = {"empty": np.ones((0, 3)), "scalar": np.array(2.0)}

    def loss(params):
        return params["scalar"] ** 2 + params["empty"].sum()

    report = check_gradients(loss, params, {"empty": np.ones((0, 3)), "scalar": np.array(4.0)})
    assert report.ok
    assert [(entry.place, entry.index) for entry in report.entries] == [("scalar", ())]
    assert not check_gradients(loss, params, {"empty": np.ones((0, 3)), "scalar": np.array(4.1)}).ok
    nothing = check_gradients(lambda p: 0.0, {"w": np.ones(0)}, {"w": np.ones(0)})
    assert nothing.ok
    assert "nothing to check" in str(nothing)


def test_only_some_entries_of_each_array():
    params, loss, right, _ = layer()
    report = check_gradients(loss, params, right, max_entries=4)
    assert report.ok
    assert len(report.entries) == 4 + 4 + 3
    assert "11 of 24 entries" in str(report)
    assert not check_gradients(loss, params, right | {"x": -right["x"]}, max_entries=4).ok


def test_the_worst_entries_come_first():
    w = np.array([1.0, 2.0, 3.0, 4.0])
    report = check_gradients(
        lambda p: (p["w"] ** 2).sum(), {"w": w}, {"w": 2 * w * [1.0, 1.5, 1.0, 3.0]}, show=2
    )
    assert [entry.index for entry in report.worst] == [(3,), (1,)]
    worst = report.worst[0]
    assert (worst.name, worst.analytic) == ("w", 24.0)
    assert worst.numeric == pytest.approx(8.0, rel=1e-9)
    assert worst.relative_error == pytest.approx(2 / 3)
    lines = str(report).splitlines()
    assert lines[0] == "gradient check FAILED: 4 entries checked, 2 wrong"
    assert lines[-2].split() == ["w[3]", "24", "8", "6.7e-01", "wrong"]
    html = report._repr_markdown_()
    assert '<table class="gradcheck">' in html
    assert '<th scope="row">w[3]</th>' in html
    assert "style=" not in html


def test_relative_error_of_special_numbers():
    assert relative_error(0.0, 0.0) == 0.0
    assert relative_error(1.0, -1.0) == 2.0
    assert relative_error(1e-300, 0.0) == 1.0
    assert np.isnan(relative_error(np.nan, 1.0))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: numerical_gradient(polynomial, [1.0, 2.0]), TypeError, "x is a list"),
        (lambda: numerical_gradient(polynomial, np.ones(2, int)), TypeError, "int64"),
        (lambda: numerical_gradient(lambda x: x, np.ones(2)), ValueError, "expected one number. Sum its"),
        (lambda: numerical_gradient(lambda x: "one", np.ones(2)), ValueError, "the function returned"),
        (lambda: numerical_gradient(polynomial, np.ones(2), method="exact"), ValueError, "'central'"),
        (lambda: numerical_gradient(polynomial, np.ones(2), step=0.0), ValueError, "step is 0"),
        (lambda: numerical_gradient(polynomial, np.ones(2), step=-1e-3), ValueError, "step is -0.001"),
        (lambda: default_step("int32"), TypeError, "float32 or float64"),
        (lambda: check_gradients(len, {"w": np.ones(2)}, {"v": np.ones(2)}), ValueError, "expected ['w']"),
        (lambda: check_gradients(len, {"w": [1.0]}, {"w": np.ones(1)}), TypeError, "w is a list"),
        (
            lambda: check_gradients(len, {"w": np.ones(1)}, {"w": [1.0]}),
            TypeError,
            "the gradient of w is a list",
        ),
        (
            lambda: check_gradients(len, {"w": np.ones(1)}, {"w": np.ones(1)}, method="forward"),
            ValueError,
            "'central', 'complex'",
        ),
        (lambda: check_module(nn.ReLU(), [1.0]), TypeError, "x is a list"),
    ],
)
def test_wrong_calls_are_told_why(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)


# Modules

RNG = np.random.default_rng(7)
X = RNG.normal(size=(5, 3))
MODULES = {
    "Linear": lambda: nn.Linear(3, 4, rng=0),
    "Linear without bias": lambda: nn.Linear(3, 4, bias=False, rng=0),
    "bottom Linear": lambda: nn.Linear(3, 4, rng=0, input_gradient=False),
    "ReLU": nn.ReLU,
    "LeakyReLU": lambda: nn.LeakyReLU(0.2),
    "Sigmoid": nn.Sigmoid,
    "Tanh": nn.Tanh,
    "GELU": nn.GELU,
    "GELU (tanh)": lambda: nn.GELU("tanh"),
    "SiLU": nn.SiLU,
    "Softplus": lambda: nn.Softplus(2.0, 5.0),
    "Identity": nn.Identity,
    "an MLP": lambda: nn.Sequential(nn.Linear(3, 6, rng=1), nn.ReLU(), nn.Linear(6, 2, rng=2), nn.Sigmoid()),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", MODULES)
def test_every_module_passes(name, dtype):
    module = MODULES[name]()
    for parameter in module.parameters():
        parameter._data = parameter.data.astype(dtype)
    x = X.astype(dtype)
    x.setflags(write=False)
    report = check_module(module, x)
    assert report.ok, report
    with_input = 0 if name == "bottom Linear" else x.size
    assert len(report.entries) == module.parameter_count() + with_input


@pytest.mark.parametrize(
    ("loss", "target"),
    [
        (nn.MSELoss(), RNG.normal(size=(5, 3))),
        (nn.MSELoss("sum"), RNG.normal(size=(5, 3))),
        (nn.CrossEntropyLoss(), np.array([0, 2, 1, 1, 0])),
        (nn.BCEWithLogitsLoss(), RNG.integers(0, 2, (5, 3)).astype(float)),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_losses_pass(loss, target, dtype):
    target = target.astype(dtype) if target.dtype.kind == "f" else target
    report = check_module(loss, X.astype(dtype), target=target)
    assert report.ok, report
    assert len(report.entries) == X.size


def test_the_module_stays_as_it_is():
    layer = nn.Linear(3, 2, rng=0)
    out = layer(X)
    layer.backward(np.ones_like(out))
    before = layer.state_dict(), layer.weight.grad.copy()
    assert check_module(layer, np.ones((2, 3))).ok
    np.testing.assert_array_equal(layer.state_dict()["weight"], before[0]["weight"])
    np.testing.assert_array_equal(layer.weight.grad, before[1])
    layer.zero_grad()
    layer.backward(np.ones_like(out))  # the forward pass that it remembers is still its own
    np.testing.assert_array_equal(layer.weight.grad, before[1])


def test_the_module_stays_as_it_is_when_it_raises():
    class Explodes(nn.Linear):
        calls = 0

        def forward(self, x):
            type(self).calls += 1
            if type(self).calls == 4:
                raise RuntimeError("bang")
            return super().forward(x)

    layer = Explodes(3, 2, rng=0)
    before = layer.state_dict()["weight"]
    with pytest.raises(RuntimeError, match="bang"):
        check_module(layer, X)
    np.testing.assert_array_equal(layer.weight.data, before)


def test_tied_weights_are_checked_as_one():
    net = nn.Sequential(nn.Linear(3, 3, rng=0), nn.Tanh(), nn.Linear(3, 3, rng=1))
    net[2].weight = net[0].weight
    report = check_module(net, X)
    assert report.ok, report
    assert {entry.name for entry in report.entries} == {"0.weight", "0.bias", "2.bias", "x"}


class Broken(nn.Linear):
    """A dense layer with one defect in its backward pass."""

    def __init__(self, defect):
        super().__init__(3, 3, rng=0)
        self.defect = defect

    def backward(self, d_out):
        kept = self.__dict__["_kept"]
        d_out = np.ones_like(d_out) if self.defect == "forgets d_out" else d_out
        d_weight, d_bias = d_out.T @ kept, d_out.sum(axis=0)
        self.weight.accumulate(d_weight.T.copy() if self.defect == "transposed weight" else d_weight)
        self.bias.accumulate(d_bias / len(kept) if self.defect == "mean bias" else d_bias)
        return d_out @ (self.weight.data.T if self.defect == "transposed input" else self.weight.data)


@pytest.mark.parametrize(
    ("defect", "names"),
    [
        ("none", set()),
        ("transposed weight", {"weight"}),
        ("transposed input", {"x"}),
        ("mean bias", {"bias"}),
        ("forgets d_out", {"weight", "bias", "x"}),
    ],
)
def test_broken_layers_of_square_shape_are_found(defect, names):
    report = check_module(Broken(defect), X)
    assert {entry.name for entry in report.failures} == names
    assert report.ok == (not names)


def test_a_given_upstream_gradient_is_used():
    report = check_module(nn.Linear(3, 2, rng=0), X, d_out=np.full((5, 2), 2.0))
    assert report.ok
    assert [entry.analytic for entry in report.entries if entry.name == "bias"] == [10.0, 10.0]


def test_relu_at_its_kink_passes_and_is_reported():
    x = X.copy()
    x[0, 0] = 0.0
    report = check_module(nn.ReLU(), x)
    assert report.ok
    assert [entry.place for entry in report.kinks] == ["x[0, 0]"]
