"""The neuron and the dense layer: values and gradients against loops, PyTorch and differences."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from denselayer import functional as F
from tests.denselayer.oracle import (
    FLOATS,
    dtypes,
    error,
    layouts,
    normal,
    scales,
    seeds,
    sizes,
    slopes,
    tensor,
)

every_dtype = pytest.mark.parametrize("dtype", FLOATS, ids=["float32", "float64"])
NAN, INF = float("nan"), float("inf")

X = np.array([2.0, 4.0, 1.0])
WEIGHT = np.array([[0.5, -1.0, 2.0], [-0.25, 0.5, 1.0], [1.0, 0.25, -0.5]])
BIAS = np.array([3.0, -1.0, -4.0])


def draw(seed, *shapes, dtype=np.float64):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def torch_linear(x, weight, bias, d_out):
    """PyTorch's output, and its gradients with respect to x, weight and bias."""
    leaves = [tensor(array, gradient=True) for array in (x, weight, bias)]
    out = torch.nn.functional.linear(*leaves)
    out.backward(tensor(d_out))
    return [out.detach().numpy(), *(leaf.grad.numpy() for leaf in leaves)]


def ours(x, weight, bias, d_out):
    return [F.linear(x, weight, bias), *F.linear_backward(d_out, x, weight)]


def rounding_scales(x, weight, bias, d_out):
    """Number of terms times the sum of their magnitudes, for every entry of the output and the gradients."""
    x, weight, bias, d_out = (np.abs(array).astype(np.longdouble) for array in (x, weight, bias, d_out))
    n, (out_features, in_features) = len(x), weight.shape
    return [
        (in_features + 1) * (x @ weight.T + bias),
        out_features * (d_out @ weight),
        n * (d_out.T @ x),
        n * d_out.sum(axis=0),
    ]


@pytest.mark.equation("eq-neuron")
@every_dtype
def test_neuron_is_the_exact_weighted_sum_plus_bias(dtype):
    for seed in range(20):
        x, weight, bias = draw(seed, (5, 7), (7,), (), dtype=dtype)
        out = F.neuron(x, weight, bias)
        for row, value in zip(x, out, strict=True):
            terms = [Fraction(float(a)) * Fraction(float(w)) for a, w in zip(row, weight, strict=True)]
            exact = sum(terms, Fraction(float(bias)))
            size = sum(map(abs, terms)) + abs(Fraction(float(bias)))
            assert abs(Fraction(float(value)) - exact) <= 8 * Fraction(float(np.finfo(dtype).eps)) * size


def test_neuron_of_the_running_example():
    assert [F.neuron(X, row, bias) for row, bias in zip(WEIGHT, BIAS, strict=True)] == [2, 1.5, -1.5]
    assert F.neuron(X, WEIGHT[0]) == -1
    assert F.neuron(X, WEIGHT[0], 3) == 2


@every_dtype
def test_neuron_gives_a_scalar_for_a_sample_and_a_vector_for_a_batch(dtype):
    x, weight = draw(0, (4, 3), (3,), dtype=dtype)
    assert type(F.neuron(x[0], weight, 1.0)) is dtype
    assert F.neuron(x, weight, 1.0).shape == (4,)
    assert F.neuron(x, weight, 1.0).dtype == dtype
    assert F.neuron(x[:0], weight, 1.0).shape == (0,)
    np.testing.assert_array_equal(F.neuron(np.zeros((2, 0), dtype), np.zeros(0, dtype), 3.0), [3, 3])


@pytest.mark.equation("eq-neuron-gradient")
def test_neuron_gradients_are_the_slopes_of_the_output():
    x, weight, d_out = draw(0, (5,), (5,), ())
    bias = np.array([0.3])
    gradients = F.neuron_backward(d_out, x, weight)
    np.testing.assert_allclose(
        gradients.d_x, slopes(lambda a: d_out * F.neuron(a, weight, 0.3), x), rtol=1e-8
    )
    np.testing.assert_allclose(
        gradients.d_weight, slopes(lambda a: d_out * F.neuron(x, a, 0.3), weight), rtol=1e-8
    )
    d_bias = slopes(lambda a: d_out * F.neuron(x, weight, a[0]), bias)[0]
    assert math.isclose(gradients.d_bias, d_bias, rel_tol=1e-8)


@every_dtype
def test_neuron_gradients_add_over_the_batch(dtype):
    x, weight, d_out = draw(1, (6, 5), (5,), (6,), dtype=dtype)
    batch = F.neuron_backward(d_out, x, weight)
    single = [F.neuron_backward(d, row, weight) for d, row in zip(d_out, x, strict=True)]
    assert error(batch.d_x, np.stack([g.d_x for g in single])) == 0
    assert error(batch.d_weight, sum(g.d_weight for g in single)) <= 8
    assert error(batch.d_bias, sum(g.d_bias for g in single)) <= 8
    assert [g.shape for g in batch] == [(6, 5), (5,), ()]
    assert all(g.dtype == dtype for g in batch)


@settings(max_examples=50, deadline=None)
@given(n=sizes, width=sizes, dtype=dtypes, seed=seeds, layout=layouts)
def test_neuron_is_the_dense_layer_with_one_unit(n, width, dtype, seed, layout):
    rng = np.random.default_rng(seed)
    x, weight, bias, d_out = [normal(rng, shape, dtype, layout) for shape in ((n, width), (width,), (), (n,))]
    row = np.array(weight)[None, :]
    out, d_x, d_weight, d_bias = rounding_scales(x, row, bias.reshape(1), d_out[:, None])
    assert error(F.neuron(x, weight, bias), F.linear(x, row, bias.reshape(1))[:, 0], out[:, 0]) <= 2
    gradients = F.neuron_backward(d_out, x, weight)
    expected = F.linear_backward(d_out[:, None], x, row)
    assert error(gradients.d_x, expected.d_x, d_x) <= 2
    assert error(gradients.d_weight, expected.d_weight[0], d_weight[0]) <= 2
    assert error(gradients.d_bias, expected.d_bias[0], d_bias[0]) <= 2


@pytest.mark.equation("eq-neuron-distance")
def test_signed_distance_is_the_length_of_the_way_to_the_nearest_point_of_the_plane():
    rng = np.random.default_rng(0)
    for _ in range(20):
        x, weight, bias = rng.standard_normal(4), rng.standard_normal(4), rng.standard_normal()
        distance = F.signed_distance(x, weight, bias)
        foot = x - distance * weight / np.linalg.norm(weight)
        assert math.isclose(F.neuron(foot, weight, bias), 0, abs_tol=1e-14)
        assert math.isclose(np.linalg.norm(x - foot), abs(distance), rel_tol=1e-14)
        assert np.sign(distance) == np.sign(F.neuron(x, weight, bias))
        along = rng.standard_normal((100, 4))
        along -= np.outer(along @ weight, weight) / (weight @ weight)
        assert np.all(np.linalg.norm(x - (foot + along), axis=1) >= abs(distance) * (1 - 1e-14))


@every_dtype
def test_signed_distance_does_not_depend_on_the_length_of_the_weight(dtype):
    """Scaling weight and bias moves no plane; the scales square to more and to less than a float can hold."""
    x, weight = draw(3, (6, 4), (4,), dtype=dtype)
    expected = F.signed_distance(x, weight, dtype(0.5))
    for exponent in (-100, -20, 20, 100) if dtype is np.float32 else (-1000, 1000):
        factor = dtype(2.0**exponent)
        np.testing.assert_array_equal(F.signed_distance(x, weight * factor, factor / 2), expected)
    np.testing.assert_allclose(F.signed_distance(x, -weight, dtype(-0.5)), -expected, rtol=1e-6)


@pytest.mark.equation("eq-dense-entry")
@every_dtype
def test_every_output_is_a_loop_over_the_inputs(dtype):
    x, weight, bias = draw(2, (4, 6), (5, 6), (5,), dtype=dtype)
    out = F.linear(x, weight, bias)
    for i, j in product(range(4), range(5)):
        exact = Fraction(float(bias[j]))
        for k in range(6):
            exact += Fraction(float(x[i, k])) * Fraction(float(weight[j, k]))
        size = np.abs(x[i]) @ np.abs(weight[j]) + abs(bias[j])
        assert abs(Fraction(float(out[i, j])) - exact) <= 7 * float(np.finfo(dtype).eps * size)


@pytest.mark.equation("eq-dense-forward")
@every_dtype
def test_output_and_gradients_are_within_eight_ulp_of_pytorch(dtype):
    """Scaled to the largest entry. Measured: output 3.5, d_x 2.9, d_weight 3.2, d_bias 4.0."""
    for seed in range(60):
        n, in_features, out_features = np.random.default_rng(seed).integers(1, 65, 3)
        arrays = draw(
            seed,
            (n, in_features),
            (out_features, in_features),
            (out_features,),
            (n, out_features),
            dtype=dtype,
        )
        for actual, expected in zip(ours(*arrays), torch_linear(*arrays), strict=True):
            assert error(actual, expected) <= 8


def test_running_example():
    np.testing.assert_array_equal(F.linear(X, WEIGHT, BIAS), [2, 1.5, -1.5])
    np.testing.assert_array_equal(F.linear(X[None, :], WEIGHT, BIAS), [[2, 1.5, -1.5]])


@settings(max_examples=100, deadline=None)
@given(n=sizes, inputs=sizes, outputs=sizes, dtype=dtypes, seed=seeds, layout=layouts, scale=scales)
def test_any_shape_layout_and_size_of_number(n, inputs, outputs, dtype, seed, layout, scale):
    """Within n eps of the sum of magnitudes for n terms, ours and PyTorch's each; inputs stay."""
    rng = np.random.default_rng(seed)
    shapes = (n, inputs), (outputs, inputs), (outputs,), (n, outputs)
    arrays = [normal(rng, shape, dtype, layout, scale) for shape in shapes]
    kept = [np.array(array) for array in arrays]
    results, expected = ours(*arrays), torch_linear(*arrays)
    for actual, wanted, unit in zip(results, expected, rounding_scales(*arrays), strict=True):
        assert error(actual, wanted, unit) <= 2
    for array, before in zip(arrays, kept, strict=True):
        np.testing.assert_array_equal(array, before)
        assert not any(np.shares_memory(array, result) for result in results)
    assert all(result.flags.writeable for result in results)


@settings(max_examples=60, deadline=None)
@given(n=sizes, inputs=sizes, outputs=sizes, dtype=dtypes, seed=seeds)
def test_nan_and_infinities_stand_where_pytorch_has_them(n, inputs, outputs, dtype, seed):
    rng = np.random.default_rng(seed)
    arrays = draw(seed, (n, inputs), (outputs, inputs), (outputs,), (n, outputs), dtype=dtype)
    for array in arrays:
        if array.size:
            array.flat[rng.integers(array.size)] = rng.choice([NAN, INF, -INF, 0.0])
    for actual, expected in zip(ours(*arrays), torch_linear(*arrays), strict=True):
        assert error(actual, expected) <= 64


@pytest.mark.filterwarnings("error")
def test_overflow_and_nan_warn_of_nothing():
    huge = np.full((1, 4), 1e200)
    assert F.linear(huge, huge, np.array([0.0])) == INF
    assert np.isnan(F.linear(np.array([[INF, 0.0]]), np.array([[0.0, 1.0]])))
    assert np.isinf(F.linear_backward(np.array([[1e200]]), huge, huge).d_x).all()
    assert F.neuron(huge[0], huge[0], 0.0) == INF
    assert np.isinf(F.neuron_backward(1e200, huge[0], huge[0]).d_x).all()


@every_dtype
@pytest.mark.parametrize("leading", [(), (1,), (7,), (2, 3), (2, 0, 3), (2, 3, 4)], ids=str)
@pytest.mark.parametrize("inputs", [0, 5])
def test_any_number_of_leading_axes_as_in_pytorch(dtype, leading, inputs):
    arrays = draw(4, (*leading, inputs), (3, inputs), (3,), (*leading, 3), dtype=dtype)
    for actual, expected in zip(ours(*arrays), torch_linear(*arrays), strict=True):
        assert error(actual, expected) <= 8
        assert actual.shape == expected.shape


@every_dtype
def test_no_bias_is_a_bias_of_zero(dtype):
    x, weight = draw(5, (4, 3), (2, 3), dtype=dtype)
    np.testing.assert_array_equal(F.linear(x, weight), F.linear(x, weight, np.zeros(2, dtype)))
    np.testing.assert_array_equal(F.linear(x, weight, None), x @ weight.T)


def test_a_memory_map_is_read_like_an_array(tmp_path):
    x = np.memmap(tmp_path / "x", np.float64, "w+", shape=(2, 3))
    x[...] = [[1, 2, 3], [4, 5, 6]]
    out = F.linear(x, WEIGHT, BIAS)
    assert type(out) is np.ndarray
    np.testing.assert_array_equal(out, np.array(x) @ WEIGHT.T + BIAS)


@pytest.mark.equation("eq-dense-shift")
def test_shifting_every_input_by_c_shifts_every_output_by_the_same_product():
    x, weight, bias, c = draw(6, (8, 5), (4, 5), (4,), (5,))
    shift = F.linear(x + c, weight, bias) - F.linear(x, weight, bias)
    np.testing.assert_allclose(shift, np.tile([weight[j] @ c for j in range(4)], (8, 1)), atol=1e-13)


@pytest.mark.equation("eq-backward-entry")
def test_every_gradient_entry_is_the_loop_over_the_outputs_that_it_reaches():
    """dL/dtheta is the sum over all outputs of d_out times the slope of that output, taken one by one."""
    x, weight, bias, d_out = draw(7, (3, 4), (2, 4), (2,), (3, 2))
    gradients = F.linear_backward(d_out, x, weight)

    def total(numeric):
        return sum(d_out[i, j] * numeric(i, j) for i, j in product(range(3), range(2)))

    d_x = total(lambda i, j: slopes(lambda a: F.linear(a, weight, bias)[i, j], x))
    d_weight = total(lambda i, j: slopes(lambda a: F.linear(x, a, bias)[i, j], weight))
    d_bias = total(lambda i, j: slopes(lambda a: F.linear(x, weight, a)[i, j], bias))
    for actual, expected in zip(gradients, (d_x, d_weight, d_bias), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.equation("eq-backward-weight")
def test_weight_gradient_sums_upstream_times_input_over_the_batch():
    x, weight, d_out = draw(8, (6, 4), (3, 4), (6, 3))
    d_weight = F.linear_backward(d_out, x, weight).d_weight
    for j, k in product(range(3), range(4)):
        assert math.isclose(d_weight[j, k], sum(d_out[i, j] * x[i, k] for i in range(6)), rel_tol=1e-12)


@pytest.mark.equation("eq-backward-bias")
def test_bias_gradient_sums_upstream_over_the_batch_and_divides_by_nothing():
    x, weight, d_out = draw(9, (6, 4), (3, 4), (6, 3))
    d_bias = F.linear_backward(d_out, x, weight).d_bias
    for j in range(3):
        assert math.isclose(d_bias[j], sum(d_out[i, j] for i in range(6)), rel_tol=1e-12)


@pytest.mark.equation("eq-backward-input")
def test_input_gradient_sums_upstream_times_weight_over_the_outputs():
    x, weight, d_out = draw(10, (6, 4), (3, 4), (6, 3))
    d_x = F.linear_backward(d_out, x, weight).d_x
    for i, k in product(range(6), range(4)):
        assert math.isclose(d_x[i, k], sum(d_out[i, j] * weight[j, k] for j in range(3)), rel_tol=1e-12)


def test_input_gradient_of_a_square_layer_uses_the_weight_and_not_its_transpose():
    x, weight, d_out = draw(11, (2, 3), (3, 3), (2, 3))
    d_x = F.linear_backward(d_out, x, weight).d_x
    np.testing.assert_allclose(d_x, slopes(lambda a: np.sum(F.linear(a, weight) * d_out), x), rtol=1e-8)
    assert not np.allclose(d_x, d_out @ weight.T)


def test_two_layer_network_worked_by_hand():
    gradients = F.linear_backward(np.array([[3.0]]), np.array([[1.0, 2.0]]), np.array([[1.0, -1.0]]))
    np.testing.assert_array_equal(gradients.d_weight, [[3, 6]])
    np.testing.assert_array_equal(gradients.d_bias, [3])
    np.testing.assert_array_equal(gradients.d_x, [[3, -3]])


def test_bottom_layer_can_skip_the_input_gradient():
    x, weight, d_out = draw(12, (6, 4), (3, 4), (6, 3))
    full, bottom = (
        F.linear_backward(d_out, x, weight),
        F.linear_backward(d_out, x, weight, input_gradient=False),
    )
    assert bottom.d_x is None
    np.testing.assert_array_equal(bottom.d_weight, full.d_weight)
    np.testing.assert_array_equal(bottom.d_bias, full.d_bias)


def test_gradients_of_an_empty_batch_are_zero():
    gradients = F.linear_backward(np.zeros((0, 3)), np.zeros((0, 4)), np.ones((3, 4)))
    np.testing.assert_array_equal(gradients.d_weight, np.zeros((3, 4)))
    np.testing.assert_array_equal(gradients.d_bias, np.zeros(3))
    assert gradients.d_x.shape == (0, 4)
