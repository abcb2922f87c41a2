"""The fused layer in corners: the last sum of several threads, and memory that goes by two names."""

import dataclasses
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from denselayer import functional as F
from denselayer import fused


def layer(n, i, o, dtype="float32", seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(dtype) for shape in ((n, i), (o, i), (o,), (n, o))]


def test_infinities_that_meet_when_threads_add_up_cause_no_warning():
    x, weight, _, d_out = layer(200, 8, 4)
    x[0, 0], x[-1, 0] = np.inf, -np.inf
    chosen = dataclasses.replace(fused.plan(200, 8, 4, activation="identity", threads=1), workers=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fused.linear_act_backward(np.ones_like(d_out), x, weight, None, "identity", plan=chosen)
    assert np.isnan(found.d_weight[:, 0]).all() and np.isfinite(found.d_weight[:, 1:]).all()


@pytest.mark.parametrize("activation", ["relu", "silu", "softplus"])
def test_calls_of_several_threads_do_not_share_what_they_write_to(activation):
    cases = [layer(n, 64, 64, seed=n) for n in (60, 61, 2100)]
    alone = [fused.linear_act(x, weight, bias, activation) for x, weight, bias, _ in cases]

    def wrong(k):
        x, weight, bias, _ = cases[k % len(cases)]
        return float(np.abs(fused.linear_act(x, weight, bias, activation) - alone[k % len(cases)]).max())

    with ThreadPoolExecutor(4) as pool:
        assert max(pool.map(wrong, range(60))) < 1e-4


@pytest.mark.parametrize(
    "views",
    [
        lambda block: (block[:, :6], block[:, 6:]),
        lambda block: (block[:, ::2], block[:, 1::2]),
        lambda block: (block[::-1, :6], block[:, 6:]),
    ],
    ids=["side by side", "interleaved", "backwards"],
)
def test_input_and_output_may_lie_in_one_block_if_no_entry_is_in_both(views):
    source, target = views(np.zeros((50, 12)))
    x, weight, bias, _ = layer(50, 6, 6, "float64")
    source[...] = x
    assert fused.linear_act(source, weight, bias, out=target) is target
    np.testing.assert_allclose(target, F.relu(F.linear(x, weight, bias)), atol=1e-12)
    np.testing.assert_array_equal(source, x)


def test_two_arrays_over_one_foreign_buffer_are_found_to_overlap():
    memory = bytearray(8 * 36)
    x, out = (np.frombuffer(memory).reshape(6, 6) for _ in range(2))
    with pytest.raises(ValueError, match="out shares memory with x"):
        fused.linear_act(x, np.ones((6, 6)), out=out)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 5])
def test_the_promise_of_the_same_bits_holds_for_any_strides(n, dtype):
    assert fused.plan(n, 16, 1000, dtype=dtype).bit_identical
    x, weight, bias, _ = layer(n, 16, 1000, dtype)
    for rows, matrix in ((x, weight[::-1]), (x[:, ::-1], weight), (x, np.repeat(weight, 2, axis=1)[:, ::2])):
        expected = F.relu(F.linear(rows, matrix, bias))
        np.testing.assert_array_equal(fused.linear_act(rows, matrix, bias), expected)


def test_without_rows_the_gradients_are_zero_whatever_the_plan():
    chosen = dataclasses.replace(fused.plan(0, 5, 4, threads=1), backward_at_once=False)
    x, weight, _, d_out = layer(0, 5, 4)
    junk = {"d_weight": np.full((4, 5), 7, "float32"), "d_bias": np.full(4, 7, "float32")}
    found = fused.linear_act_backward(d_out, x, weight, d_out, plan=chosen, **junk)
    assert not found.d_weight.any() and not found.d_bias.any()
