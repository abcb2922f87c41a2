"""The gradients of the fused layer are those of ``functional`` and of PyTorch, however it is cut."""

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from denselayer import _blas, fused
from denselayer import functional as F
from tests.denselayer.oracle import FLOATS, dtypes, laid_out, layouts, seeds
from tests.denselayer.test_fused import CASES, SHAPES, layer

FROM_THE_OUTPUT = [
    ("relu", {}),
    ("leaky_relu", {}),
    ("leaky_relu", {"negative_slope": 2.5}),
    ("identity", {}),
]
BACKWARD_CUTS = [
    {"backward": "whole", "backward_small": 0, "backward_block": 100, "backward_chunk": 30},
    {"backward": "stacked", "backward_small": 20, "backward_block": 60, "backward_chunk": 60},
    {"backward": "stacked", "backward_small": 16, "backward_block": 64, "backward_chunk": 32, "workers": 3},
]


def problem(n, i, o, dtype, seed=0):
    x, weight, bias = layer(n, i, o, dtype, seed)
    d_out = np.random.default_rng(seed + 1).standard_normal((n, o)).astype(dtype)
    return d_out, x, weight, F.linear(x, weight, bias)


def plain(d_out, x, weight, z, activation, **options):
    d_pre = getattr(F, f"{activation}_backward")(d_out, z, **options)
    return d_pre, F.linear_backward(d_pre, x, weight)


def assert_close(actual, d_pre, x, weight, expected):
    """Each entry within a few units of the sum of the magnitudes that it adds up."""
    eps = np.finfo(x.dtype).eps
    size = np.abs(d_pre.astype(np.float64))
    bounds = size @ np.abs(weight), size.T @ np.abs(x), size.sum(0)
    for name, one, other, bound in zip(expected._fields, actual, expected, bounds, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape, name
        assert (np.abs(one - other) <= 16 * eps * bound + np.finfo(x.dtype).tiny).all(), name


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gradients_of_every_shape(shape, dtype, threads):
    d_out, x, weight, z = problem(*shape, dtype)
    with _blas.limit_threads(threads):
        for activation, options in CASES:
            actual = fused.linear_act_backward(d_out, x, weight, z, activation, **options)
            d_pre, expected = plain(d_out, x, weight, z, activation, **options)
            assert_close(actual, d_pre, x, weight, expected)


@pytest.mark.parametrize("cut", BACKWARD_CUTS, ids=str)
@pytest.mark.parametrize(("activation", "options"), CASES, ids=str)
def test_gradients_of_every_cut(activation, options, cut):
    for dtype in FLOATS:
        d_out, x, weight, z = problem(333, 20, 13, dtype)
        chosen = dataclasses.replace(fused.plan(333, 20, 13, activation=activation, dtype=dtype), **cut)
        actual = fused.linear_act_backward(d_out, x, weight, z, activation, plan=chosen, **options)
        d_pre, expected = plain(d_out, x, weight, z, activation, **options)
        assert_close(actual, d_pre, x, weight, expected)


@pytest.mark.parametrize("shape", [(1, 200, 100), (1, 3, 5000), (1, 5000, 3), (1, 200_000, 2)], ids=str)
def test_one_row_is_an_outer_product_with_nan_and_infinities_where_they_belong(shape):
    d_out, x, weight, z = problem(*shape, np.float32)
    x[0, :3], d_out[0, :2] = (np.nan, np.inf, 0.0), (np.inf, np.nan)
    for _ in range(2):
        actual = fused.linear_act_backward(d_out, x, weight, z, "identity")
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(actual.d_weight, d_out.T * x)
        np.testing.assert_array_equal(actual.d_bias, d_out[0])


@pytest.mark.parametrize(("activation", "options"), CASES, ids=str)
def test_agrees_with_automatic_differentiation(activation, options):
    for shape in ((40, 7, 5), (2100, 16, 9)):
        d_out, x, weight, z = problem(*shape, np.float64)
        tensors = [torch.tensor(a, requires_grad=True) for a in (x, weight, np.zeros(shape[2]))]
        with torch.no_grad():
            tensors[2] += torch.tensor(z - x @ weight.T)[0]
        z = F.linear(x, weight, tensors[2].detach().numpy())
        apply = {"identity": lambda t: t, "tanh": torch.tanh, "sigmoid": torch.sigmoid}
        apply = apply.get(activation, getattr(torch.nn.functional, activation, None))
        out = apply(torch.nn.functional.linear(*tensors), **options)
        expected = torch.autograd.grad(out, tensors, torch.tensor(d_out))
        actual = fused.linear_act_backward(d_out, x, weight, z, activation, **options)
        for one, other in zip(actual, expected, strict=True):
            scale = np.abs(other.numpy()).max()
            np.testing.assert_allclose(one, other.numpy(), rtol=1e-11, atol=1e-12 * scale)


@pytest.mark.parametrize(("activation", "options"), FROM_THE_OUTPUT, ids=str)
@pytest.mark.parametrize("shape", [(40, 7, 5), (2100, 16, 9)], ids=str)
def test_the_output_is_enough_for_relu_and_leaky_relu(shape, activation, options):
    d_out, x, weight, z = problem(*shape, np.float32)
    z[0, 0], z[1, 1], z[2, 2] = 0.0, np.nan, -np.nan
    out = None if activation == "identity" else getattr(F, activation)(z, **options)
    from_pre = fused.linear_act_backward(d_out, x, weight, z, activation, **options)
    from_out = fused.linear_act_backward(d_out, x, weight, out, activation, **options)
    for one, other in zip(from_pre, from_out, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("activation", "options"), CASES, ids=str)
def test_nan_and_infinities_of_gradient_and_pre_activation_go_where_functional_sends_them(
    activation, options, dtype, recwarn
):
    values = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 2.0, -3.0, 1e-45, -1e-45], dtype)
    z, d_out = (a.ravel() for a in np.meshgrid(values, values))
    weight = np.eye(1, dtype=dtype)
    ones = np.ones((z.size, 1), dtype)
    actual = fused.linear_act_backward(d_out[:, None], ones, weight, z[:, None], activation, **options)
    expected = getattr(F, f"{activation}_backward")(d_out, z, **options)
    np.testing.assert_array_equal(actual.d_x[:, 0], expected)
    assert not recwarn.list


def test_the_slope_of_relu_lets_an_infinite_gradient_stop():
    d_out, z = np.full((3000, 16), np.inf, np.float32), np.full((3000, 16), -1.0, np.float32)
    g = fused.linear_act_backward(d_out, np.ones((3000, 16), np.float32), np.eye(16, dtype=np.float32), z)
    for gradient in g:
        assert not gradient.any()


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 90), st.integers(0, 40), st.integers(0, 40), dtypes, seeds, layouts, st.sampled_from(CASES)
)
def test_any_shape_and_any_layout_of_memory(n, i, o, dtype, seed, layout, case):
    activation, options = case
    arrays = problem(n, i, o, dtype, seed)
    laid = [laid_out(array, layout) for array in arrays]
    d_pre, expected = plain(*arrays, activation, **options)
    room = np.full((n, 2 * i), 9, dtype), np.full((i, o), 9, dtype), np.full(2 * o, 9, dtype)
    d_x, d_weight, d_bias = room[0][:, ::2], room[1].T, room[2][::2]
    actual = fused.linear_act_backward(
        *laid, activation, d_x=d_x, d_weight=d_weight, d_bias=d_bias, **options
    )
    assert actual.d_x is d_x and actual.d_weight is d_weight and actual.d_bias is d_bias
    assert_close(actual, d_pre, *arrays[1:3], expected)
    assert (room[0][:, 1::2] == 9).all() and (room[2][1::2] == 9).all()
    for array, copy in zip(arrays, laid, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_a_sample_and_a_batch_of_batches():
    d_out, x, weight, z = problem(24, 5, 7, np.float64)
    expected = plain(d_out, x, weight, z, "silu")[1]
    shape = (2, 3, 4)
    actual = fused.linear_act_backward(
        d_out.reshape(*shape, 7), x.reshape(*shape, 5), weight, z.reshape(*shape, 7), "silu"
    )
    assert actual.d_x.shape == (*shape, 5)
    np.testing.assert_allclose(actual.d_x.reshape(24, 5), expected.d_x, rtol=1e-12)
    np.testing.assert_allclose(actual.d_weight, expected.d_weight, rtol=1e-11, atol=1e-12)
    one = fused.linear_act_backward(d_out[0], x[0], weight, z[0], "silu")
    other = plain(d_out[:1], x[:1], weight, z[:1], "silu")[1]
    np.testing.assert_allclose(one.d_x, other.d_x[0], rtol=1e-12)
    np.testing.assert_allclose(one.d_weight, other.d_weight, rtol=1e-12)


@pytest.mark.parametrize("shape", [(40, 7, 5), (2100, 16, 9)], ids=str)
def test_the_input_gradient_can_be_left_out(shape):
    d_out, x, weight, z = problem(*shape, np.float32)
    some = fused.linear_act_backward(d_out, x, weight, z, input_gradient=False)
    every = fused.linear_act_backward(d_out, x, weight, z)
    assert some.d_x is None
    np.testing.assert_array_equal(some.d_weight, every.d_weight)
    np.testing.assert_array_equal(some.d_bias, every.d_bias)


X, WEIGHT, D_OUT = np.ones((5, 3)), np.ones((4, 3)), np.ones((5, 4))


def gradients(d_out=D_OUT, x=X, weight=WEIGHT, z=D_OUT, activation="relu", **others):
    return lambda: fused.linear_act_backward(d_out, x, weight, z, activation, **others)


BAD_BACKWARD = [
    (gradients(d_out=np.ones((5, 3))), ValueError, "d_out has shape (5, 3)", "(5, 4)"),
    (gradients(z=None), TypeError, "out_or_pre is None", "pass an array"),
    (gradients(z=np.ones((4, 5))), ValueError, "out_or_pre has shape (4, 5)", "(5, 4)"),
    (gradients(d_out=np.ones((5, 4), "f4")), TypeError, "d_out has dtype float32", "float64"),
    (gradients(d_x=X), ValueError, "d_x shares memory with x", "np.empty_like"),
    (gradients(d_weight=WEIGHT), ValueError, "d_weight shares memory with weight", "np.empty_like"),
    (gradients(d_bias=D_OUT[0]), ValueError, "d_bias shares memory with d_out", "np.empty_like"),
    (gradients(d_weight=np.ones((3, 4))), ValueError, "d_weight has shape (3, 4)", "(4, 3)"),
    (gradients(beta=1.0), TypeError, "option beta", "no options for relu"),
    (gradients(activation="swish"), ValueError, "'swish'", "'silu'"),
]


@pytest.mark.parametrize(("call", "kind", "came", "advice"), BAD_BACKWARD, ids=range(len(BAD_BACKWARD)))
def test_bad_input_is_explained(call, kind, came, advice):
    with pytest.raises(kind) as caught:
        call()
    assert "linear_act_backward: " in str(caught.value)
    assert came in str(caught.value)
    assert advice in str(caught.value)
