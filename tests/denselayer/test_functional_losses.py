"""Losses: values and gradients against PyTorch, exact arithmetic and differences, for every reduction."""

import math

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from denselayer import functional as F
from tests.denselayer.oracle import FLOATS, dtypes, error, laid_out, layouts, seeds, sizes, slopes, tensor

T = torch.nn.functional
NAN, INF = float("nan"), float("inf")
every_dtype = pytest.mark.parametrize("dtype", FLOATS, ids=["float32", "float64"])
every_reduction = pytest.mark.parametrize("reduction", ["mean", "sum", "none"])


def values_target(rng, shape, dtype):
    return rng.standard_normal(shape).astype(dtype)


def index_target(rng, shape, dtype):
    return rng.integers(0, shape[1], shape[0])


def distribution_target(rng, shape, dtype):
    """Rows of probabilities that sum to one or, which PyTorch does not forbid, to something else."""
    total = rng.choice([1.0, 0.5, 2.0], (shape[0], 1))
    return (total * rng.dirichlet(np.ones(shape[1]), shape[0])).astype(dtype)


def probability_target(rng, shape, dtype):
    return rng.choice([0.0, 1.0, rng.uniform()], shape).astype(dtype)


LOSSES = {
    "mse": (F.mse_loss, F.mse_loss_backward, T.mse_loss, values_target),
    "cross-entropy-index": (F.cross_entropy, F.cross_entropy_backward, T.cross_entropy, index_target),
    "cross-entropy-dist": (F.cross_entropy, F.cross_entropy_backward, T.cross_entropy, distribution_target),
    "bce": (
        F.bce_with_logits,
        F.bce_with_logits_backward,
        T.binary_cross_entropy_with_logits,
        probability_target,
    ),
}
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=list(LOSSES))


def torch_values(function, input, target, reduction, d_out):
    leaf = tensor(input, gradient=True)
    out = function(leaf, tensor(target), reduction=reduction)
    out.backward(tensor(d_out).reshape(out.shape))
    return out.detach().numpy(), leaf.grad.numpy()


@every_loss
@every_reduction
@every_dtype
def test_loss_and_gradient_are_within_eight_ulp_of_pytorch(loss, reduction, dtype):
    """Scaled to the largest entry. Measured over 300 shapes: losses 2.6, gradients 4.3 (cross-entropy)."""
    forward, backward, torch_function, draw_target = loss
    for seed in range(30):
        rng = np.random.default_rng(seed)
        shape = tuple(rng.integers(1, 65, 2))
        input = (rng.standard_normal(shape) * rng.choice([0.1, 1, 10])).astype(dtype)
        target = draw_target(rng, shape, dtype)
        out = forward(input, target, reduction)
        d_out = rng.standard_normal(np.shape(out)).astype(dtype) if reduction == "none" else dtype(-1.5)
        expected, expected_gradient = torch_values(torch_function, input, target, reduction, d_out)
        assert error(out, expected) <= 8
        scale = np.max(np.abs(expected_gradient))
        if torch_function is T.binary_cross_entropy_with_logits:
            scale = np.max(np.abs(d_out)) / (input.size if reduction == "mean" else 1)
        assert error(backward(input, target, reduction, d_out), expected_gradient, scale) <= 8


@every_loss
@settings(max_examples=50, deadline=None)
@given(n=sizes, width=sizes, dtype=dtypes, seed=seeds, layout=layouts, exponent=st.floats(-20, 15))
def test_any_shape_layout_and_size_of_number(loss, n, width, dtype, seed, layout, exponent):
    forward, backward, torch_function, draw_target = loss
    assume(width or torch_function is not T.cross_entropy)
    rng = np.random.default_rng(seed)
    input = laid_out((rng.standard_normal((n, width)) * 10.0**exponent).astype(dtype), layout)
    target = laid_out(draw_target(rng, (n, width), dtype), layout)
    kept = np.array(input), np.array(target)
    for reduction in ("mean", "sum", "none"):
        out = forward(input, target, reduction)
        gradient = backward(input, target, reduction)
        d_out = np.ones(np.shape(out), dtype)
        expected, expected_gradient = torch_values(torch_function, input, target, reduction, d_out)
        size = max(1.0, np.abs(expected).max(initial=0)) if np.isfinite(expected).all() else None
        assert error(out, expected, size) <= 8
        size = max(np.abs(expected_gradient).max(initial=0), 2.0 / (n if reduction == "mean" and n else 1))
        assert error(gradient, expected_gradient, size) <= 8
        assert gradient.shape == input.shape
    np.testing.assert_array_equal(input, kept[0])
    np.testing.assert_array_equal(target, kept[1])


@every_loss
@every_reduction
def test_gradient_is_the_slope_of_the_loss(loss, reduction):
    forward, backward, _, draw_target = loss
    rng = np.random.default_rng(0)
    input, target = rng.standard_normal((4, 3)), draw_target(rng, (4, 3), np.float64)
    d_out = rng.standard_normal(np.shape(forward(input, target, reduction)))[()]
    numeric = slopes(lambda a: np.sum(d_out * forward(a, target, reduction)), input)
    np.testing.assert_allclose(backward(input, target, reduction, d_out), numeric, rtol=1e-7, atol=1e-9)


@pytest.mark.equation("eq-mse")
def test_mse_is_the_mean_over_all_entries_of_the_squared_difference():
    rng = np.random.default_rng(1)
    input, target = rng.standard_normal((4, 3)), rng.standard_normal((4, 3))
    squares = [(a - b) ** 2 for a, b in zip(input.ravel(), target.ravel(), strict=True)]
    assert F.mse_loss(input, target) == pytest.approx(sum(squares) / 12, rel=1e-14)
    assert F.mse_loss(input, target, "sum") == pytest.approx(sum(squares), rel=1e-14)
    np.testing.assert_allclose(F.mse_loss(input, target, "none").ravel(), squares, rtol=1e-15)


@pytest.mark.equation("eq-mse-backward")
def test_mse_gradient_is_two_over_m_times_the_difference():
    rng = np.random.default_rng(2)
    input, target = rng.standard_normal((4, 3)), rng.standard_normal((4, 3))
    gradient = F.mse_loss_backward(input, target)
    np.testing.assert_allclose(gradient, 2 / 12 * (input - target), rtol=1e-15)
    np.testing.assert_allclose(gradient, slopes(lambda a: F.mse_loss(a, target), input), rtol=1e-8)


@every_loss
@every_dtype
@pytest.mark.filterwarnings("error")
def test_mean_over_an_empty_batch_is_nan_and_its_gradient_empty(loss, dtype):
    forward, backward, torch_function, draw_target = loss
    input = np.zeros((0, 3), dtype)
    target = draw_target(np.random.default_rng(0), (0, 3), dtype)
    assert np.isnan(forward(input, target))
    assert forward(input, target, "sum") == 0
    assert torch_function(tensor(input), tensor(target)).isnan()
    assert backward(input, target).shape == (0, 3)
    assert (
        forward(input, target, "none").shape
        == torch_function(tensor(input), tensor(target), reduction="none").shape
    )


@every_loss
@every_dtype
def test_losses_keep_the_dtype(loss, dtype):
    forward, backward, _, draw_target = loss
    rng = np.random.default_rng(0)
    input, target = rng.standard_normal((4, 3)).astype(dtype), draw_target(rng, (4, 3), dtype)
    for reduction in ("mean", "sum", "none"):
        assert forward(input, target, reduction).dtype == dtype
        assert backward(input, target, reduction).dtype == dtype
        assert backward(input, target, reduction, 2).dtype == dtype
    assert type(forward(input, target)) is dtype


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.int64, np.uint64])
def test_class_indices_of_any_integer_dtype(kind):
    logits = np.random.default_rng(0).standard_normal((5, 4))
    target = np.array([3, 0, 2, 1, 3], kind)
    expected = T.cross_entropy(tensor(logits), torch.tensor([3, 0, 2, 1, 3])).item()
    assert F.cross_entropy(logits, target) == pytest.approx(expected, rel=1e-15)


def test_one_sample_without_a_batch_axis_as_in_pytorch():
    logits = np.array([0.5, -1.0, 2.0])
    for target in (np.array(2), np.int64(2), np.array([0.25, 0.25, 0.5])):
        expected, gradient = torch_values(T.cross_entropy, logits, target, "mean", np.float64(1))
        assert F.cross_entropy(logits, target) == pytest.approx(expected, rel=1e-15)
        np.testing.assert_allclose(F.cross_entropy_backward(logits, target), gradient, rtol=1e-14)


@every_dtype
def test_cross_entropy_of_extreme_logits_is_exact(dtype):
    big = np.finfo(dtype).max / 4
    logits = np.array([[big, -big], [big, -big], [-big, -big]], dtype)
    target = np.array([0, 1, 0])
    expected = np.array([0, 2 * big, np.log(2)], dtype)
    np.testing.assert_allclose(F.cross_entropy(logits, target, "none"), expected, rtol=1e-6)
    gradient = F.cross_entropy_backward(logits, target, "sum")
    np.testing.assert_array_equal(gradient, np.array([[0, 0], [1, -1], [-0.5, 0.5]], dtype))


@pytest.mark.parametrize(
    "row", [[INF, 0.0], [-INF, -INF], [NAN, 0.0], [-INF, 0.0], [INF, INF], [0.0, NAN]], ids=str
)
@pytest.mark.parametrize("target", [np.array([1]), np.array([[0.25, 0.75]])], ids=["index", "dist"])
@every_dtype
@pytest.mark.filterwarnings("error")
def test_nan_and_infinities_pass_through_cross_entropy_as_in_pytorch(row, target, dtype):
    logits = np.array([row], dtype)
    target = target.astype(dtype) if target.ndim == 2 else target
    expected, gradient = torch_values(T.cross_entropy, logits, target, "sum", dtype(1))
    np.testing.assert_allclose(F.cross_entropy(logits, target, "sum"), expected, rtol=1e-6)
    np.testing.assert_allclose(F.cross_entropy_backward(logits, target, "sum"), gradient, rtol=1e-6)
    assert error(F.log_softmax(logits), torch.log_softmax(tensor(logits), -1).numpy()) <= 2
    assert error(F.softmax(logits), torch.softmax(tensor(logits), -1).numpy()) <= 2


@pytest.mark.parametrize("logit", [NAN, INF, -INF])
@pytest.mark.parametrize("target", [0.0, 0.25, 1.0])
@pytest.mark.filterwarnings("error")
def test_nan_and_infinities_pass_through_the_elementwise_losses_as_in_pytorch(logit, target):
    for forward, backward, torch_function, _ in (LOSSES["mse"], LOSSES["bce"]):
        input, wanted = np.array([logit]), np.array([target])
        expected, gradient = torch_values(torch_function, input, wanted, "mean", np.float64(1))
        np.testing.assert_array_equal(forward(input, wanted), expected)
        np.testing.assert_array_equal(backward(input, wanted), gradient)


@pytest.mark.parametrize("target", [0.0, 0.25, 1.0])
def test_bce_and_its_gradient_are_right_to_four_ulp_of_every_entry(target):
    """Also where the prediction is right and PyTorch's sigmoid(40) - 1 is 0."""
    logits = np.array([-700.0, -40.0, -17.0, -1.0, 1e-3, 0.5, 3.0, 17.0, 40.0, 700.0])
    wanted = np.full_like(logits, target)
    losses = F.bce_with_logits(logits, wanted, "none")
    gradients = F.bce_with_logits_backward(logits, wanted, "sum")
    with mpmath.workdps(400):
        for x, loss, gradient in zip(logits.tolist(), losses.tolist(), gradients.tolist(), strict=True):
            p = 1 / (1 + mpmath.exp(-mpmath.mpf(x)))
            exact = -(target * mpmath.log(p) + (1 - mpmath.mpf(target)) * mpmath.log(1 - p))
            assert abs(loss - exact) <= 4 * 2.0**-52 * abs(exact)
            assert abs(gradient - (p - target)) <= 4 * 2.0**-52 * abs(p - target)


@every_dtype
@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_softmax_sums_to_one_along_its_axis_and_is_pytorchs(dtype, axis):
    logits = (np.random.default_rng(0).standard_normal((6, 5)) * 10).astype(dtype)
    p = F.softmax(logits, axis)
    np.testing.assert_allclose(p.sum(axis), 1, rtol=1e-6)
    assert error(p, torch.softmax(tensor(logits), axis).numpy()) <= 3
    assert error(F.log_softmax(logits, axis), torch.log_softmax(tensor(logits), axis).numpy()) <= 3
    np.testing.assert_allclose(np.exp(F.log_softmax(logits, axis)), p, rtol=1e-5)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0,), (2, 0, 4)], ids=str)
def test_softmax_of_nothing_is_nothing(shape):
    assert F.softmax(np.zeros(shape)).shape == shape
    assert F.log_softmax(np.zeros(shape)).shape == shape


@pytest.mark.equation("eq-train-cross-entropy")
def test_cross_entropy_is_the_mean_of_log_sum_exp_minus_the_right_score():
    rng = np.random.default_rng(5)
    logits, target = rng.standard_normal((6, 4)), rng.integers(0, 4, 6)
    losses = [math.log(sum(math.exp(s) for s in row)) - row[c] for row, c in zip(logits, target, strict=True)]
    probabilities = [
        math.exp(row[c]) / sum(math.exp(s) for s in row) for row, c in zip(logits, target, strict=True)
    ]
    assert F.cross_entropy(logits, target) == pytest.approx(sum(losses) / 6, rel=1e-14)
    assert F.cross_entropy(logits, target) == pytest.approx(-sum(map(math.log, probabilities)) / 6, rel=1e-14)


@pytest.mark.equation("eq-train-softmax-gradient")
def test_cross_entropy_gradient_is_softmax_minus_one_hot_over_the_number_of_samples():
    rng = np.random.default_rng(6)
    logits, target = rng.standard_normal((6, 4)), rng.integers(0, 4, 6)
    expected = np.zeros((6, 4))
    for n, k in np.ndindex(6, 4):
        probability = math.exp(logits[n, k]) / sum(math.exp(s) for s in logits[n])
        expected[n, k] = (probability - (k == target[n])) / 6
    gradient = F.cross_entropy_backward(logits, target)
    np.testing.assert_allclose(gradient, expected, rtol=1e-13, atol=1e-16)
    np.testing.assert_allclose(gradient, slopes(lambda s: F.cross_entropy(s, target), logits), atol=1e-9)
