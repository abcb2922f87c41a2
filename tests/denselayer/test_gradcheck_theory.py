"""The errors of measured slopes are those that the formulas of the gradient-checking chapter predict."""

import math

import numpy as np
import pytest

from denselayer import functional as F
from denselayer import losses
from denselayer.agreement import ulp_difference
from denselayer.gradcheck import default_step, numerical_gradient, relative_error

EPS = {np.float32: float(np.finfo(np.float32).eps), np.float64: float(np.finfo(np.float64).eps)}


def slope(f, x, method, step):
    return numerical_gradient(lambda array: f(array).sum(), np.array([x]), method=method, step=step)[0]


CASES = [
    (np.exp, lambda x: (math.exp(x),) * 3),
    (np.sin, lambda x: (math.cos(x), -math.sin(x), -math.cos(x))),
    (lambda x: x**4, lambda x: (4 * x**3, 12 * x**2, 24 * x)),
]


@pytest.mark.equation("eq-check-forward")
@pytest.mark.parametrize(("f", "derivatives"), CASES)
def test_the_error_of_a_forward_difference_is_half_the_step_times_the_second_derivative(f, derivatives):
    first, second, _ = derivatives(0.7)
    for step in (1e-3, 1e-4):
        error = slope(f, 0.7, "forward", step) - first
        assert error == pytest.approx(step / 2 * second, rel=0.01)


@pytest.mark.equation("eq-check-central")
@pytest.mark.parametrize(("f", "derivatives"), CASES)
def test_the_error_of_a_central_difference_is_a_sixth_of_the_squared_step_times_the_third(f, derivatives):
    first, _, third = derivatives(0.7)
    for step in (1e-2, 1e-3):
        error = slope(f, 0.7, "central", step) - first
        assert error == pytest.approx(step**2 / 6 * third, rel=0.01)


@pytest.mark.equation("eq-check-complex")
@pytest.mark.parametrize(("f", "derivatives"), CASES)
def test_the_error_of_a_complex_step_is_that_of_a_central_difference_with_the_other_sign(f, derivatives):
    first, _, third = derivatives(0.7)
    value = complex(f(np.array([0.7 + 1e-2j]))[0])
    assert value.imag / 1e-2 - first == pytest.approx(-1e-4 / 6 * third, rel=0.01)
    for step in (1e-12, 1e-50, 1e-200):
        assert slope(f, 0.7, "complex", step) == pytest.approx(first, rel=4 * EPS[np.float64])


def measured_error(dtype, step, x):
    """Error of the central difference of exp, evaluated in one precision, with the step that it rounds to."""
    up, down = dtype(x + step), dtype(x - step)
    quotient = (float(np.exp(up)) - float(np.exp(down))) / (float(up) - float(down))
    return abs(quotient - math.exp(float(dtype(x))))


@pytest.mark.equation("eq-check-error")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_truncation_and_rounding_together_bound_the_error(dtype):
    for x in np.linspace(0.1, 2.0, 20):
        for step in 10.0 ** np.arange(-12 if dtype == np.float64 else -6, 0):
            size = math.exp(x + step)  # of the values and of the third derivative
            bound = step**2 / 6 * size + EPS[dtype] * size / step
            assert measured_error(dtype, step, x) <= 2 * bound


@pytest.mark.equation("eq-check-step")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_best_step_makes_the_bound_least(dtype):
    """By a search over steps, and in what is measured; the default is the same up to a factor near 1."""
    eps, size, third = EPS[dtype], 0.6, 0.2
    best = (3 * eps * size / third) ** (1 / 3)

    def bound(step):
        return step**2 / 6 * third + eps * size / step

    steps = best * np.geomspace(0.01, 100, 2001)
    assert steps[np.argmin(bound(steps))] == pytest.approx(best, rel=0.01)
    assert bound(best) == pytest.approx(1.5 * eps * size / best)
    assert default_step(dtype) == pytest.approx((3 * eps * 1.0 / 3.0) ** (1 / 3))
    assert default_step(dtype, "forward") == pytest.approx(2 * math.sqrt(eps * 1.0 / 4.0))

    points = np.linspace(0.1, 2.0, 40)
    step = (3 * eps) ** (1 / 3)
    typical = [np.median([measured_error(dtype, k * step, x) for x in points]) for k in (1, 1 / 30, 30)]
    assert 5 * typical[0] < min(typical[1:])


@pytest.mark.equation("eq-check-relative")
def test_the_relative_error_is_the_difference_over_the_larger_magnitude():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=50), rng.normal(size=50)
    expected = [abs(p - q) / max(abs(p), abs(q)) for p, q in zip(a, b, strict=True)]
    assert relative_error(a, b) == pytest.approx(expected)
    assert np.array_equal(relative_error(a, b), relative_error(b, a))
    assert relative_error(1e300 * a, 1e300 * b) == pytest.approx(expected)
    assert relative_error(2.0, 1.0) == 0.5
    assert relative_error(0.0, 1e-30) == 1.0
    assert relative_error(3.0, -3.0) == 2.0


@pytest.mark.equation("eq-check-ulp")
@pytest.mark.parametrize(("dtype", "digits"), [(np.float32, 23), (np.float64, 52)])
def test_an_ulp_is_the_gap_to_the_next_number(dtype, digits):
    for value in (1.0, 1.5, 1.9999, 2.0, 100.0, 3e-5, 7e20):
        value = dtype(value)
        ulp = 2.0 ** (math.floor(math.log2(value)) - digits)
        assert float(np.nextafter(value, dtype(np.inf))) - float(value) == ulp
        assert EPS[dtype] / 2 < ulp / float(value) <= EPS[dtype]
        next_but_two = np.array([value + 3 * dtype(ulp)], dtype=dtype)
        for scale in ("entry", "max"):
            assert ulp_difference(next_but_two, np.array([value]), scale=scale) == 3


@pytest.mark.equation("eq-reduction")
@pytest.mark.parametrize("batch", [1, 2, 7])
def test_the_gradient_of_a_mean_is_the_mean_of_the_gradients_with_the_factor_in_the_loss_alone(batch):
    rng = np.random.default_rng(batch)
    x, weight, bias = rng.normal(size=(batch, 4)), rng.normal(size=(3, 4)), rng.normal(size=3)
    target = rng.integers(0, 3, batch)
    d_out = losses.cross_entropy_backward(F.linear(x, weight, bias), target)
    of_batch = F.linear_backward(d_out, x, weight)
    alone = []
    for n in range(batch):
        row = x[n : n + 1]
        d_row = losses.cross_entropy_backward(F.linear(row, weight, bias), target[n : n + 1])
        np.testing.assert_allclose(d_out[n], d_row[0] / batch)
        alone.append(F.linear_backward(d_row, row, weight))
    np.testing.assert_allclose(of_batch.d_weight, sum(part.d_weight for part in alone) / batch)
    np.testing.assert_allclose(of_batch.d_bias, sum(part.d_bias for part in alone) / batch)
    np.testing.assert_allclose(of_batch.d_x, np.concatenate([part.d_x for part in alone]) / batch)
    of_sum = losses.cross_entropy_backward(F.linear(x, weight, bias), target, reduction="sum")
    np.testing.assert_allclose(of_sum, batch * d_out)
