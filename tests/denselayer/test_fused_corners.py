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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("in_features", [1, 2])
@pytest.mark.parametrize("out_features", [1, 2])
def test_a_sum_of_negative_zeros_has_the_sign_that_linear_gives_it(in_features, out_features, dtype):
    x, weight = np.zeros((1, in_features), dtype), -np.ones((out_features, in_features), dtype)
    assert fused.plan(1, in_features, out_features, activation="identity", dtype=dtype).bit_identical
    out = fused.linear_act(x, weight, None, "identity")
    np.testing.assert_array_equal(np.signbit(out), np.signbit(F.linear(x, weight)))


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


def places(x, weight):
    return {"d_x": np.empty_like(x), "d_weight": np.empty_like(weight), "d_bias": np.empty_like(weight[:, 0])}


@pytest.mark.parametrize("shape", [(1, 80, 100), (64, 30, 20), (2100, 16, 16)], ids=str)
@pytest.mark.parametrize("activation", ["identity", "relu", "silu", "gelu"])
def test_the_short_way_and_the_long_way_give_the_same_bits(shape, activation):
    x, weight, bias, d_out = layer(*shape)
    chosen = fused.plan(*shape, activation=activation)
    out = np.empty_like(d_out)
    expected = fused.linear_act(x, weight, bias, activation)
    for other in ({}, {"plan": chosen}, {"workspace": fused.Workspace(chosen)}):
        assert fused.linear_act(x, weight, bias, activation, out=out, **other) is out
        np.testing.assert_array_equal(out, expected)
        gradients = places(x, weight)
        found = fused.linear_act_backward(d_out, x, weight, out, activation, **gradients, **other)
        assert [id(one) for one in found] == [id(one) for one in gradients.values()]
        long = fused.linear_act_backward(d_out, x, weight, out, activation)
        for one, another in zip(found, long, strict=True):
            np.testing.assert_array_equal(one, another)


@pytest.mark.parametrize("where", ["plan", "workspace", "both"])
def test_the_short_way_takes_no_plan_for_another_layer_and_follows_its_own(where):
    x, weight, bias, d_out = layer(40, 6, 5)
    out = np.empty_like(d_out)

    def given(chosen):
        workspace = fused.Workspace(chosen)
        both = {"plan": chosen, "workspace": workspace}
        return both if where == "both" else {where: both[where]}

    for wrong in (
        fused.plan(41, 6, 5),
        fused.plan(40, 6, 5, dtype="float64"),
        fused.plan(40, 6, 5, activation="tanh"),
    ):
        with pytest.raises(ValueError, match="the plan is for"):
            fused.linear_act(x, weight, bias, out=out, **given(wrong))
        with pytest.raises(ValueError, match="the plan is for"):
            fused.linear_act_backward(d_out, x, weight, out, **places(x, weight), **given(wrong))
    cut = {"product": "rows", "block": 7, "chunk": 7, "at_once": False}
    own = dataclasses.replace(fused.plan(40, 6, 5), **cut)
    np.testing.assert_allclose(
        fused.linear_act(x, weight, bias, out=out, **given(own)), fused.linear_act(x, weight, bias), atol=1e-5
    )


@pytest.mark.parametrize("wrong", ["d_x", "d_weight", "d_bias"])
def test_the_short_way_back_checks_what_it_writes_to(wrong):
    x, weight, bias, d_out = layer(4, 4, 4)
    out = fused.linear_act(x, weight, bias)
    good = places(x, weight)
    for bad, error in (
        (np.empty(3, "float32"), "has shape"),
        (d_out, "shares memory"),
        (good[wrong].copy(), "read-only"),
    ):
        if error == "shares memory" and wrong == "d_bias":
            continue
        bad.flags.writeable = error != "read-only"
        with pytest.raises(ValueError, match=f"{wrong}.* {error}|{wrong} is {error}|{wrong} {error}"):
            fused.linear_act_backward(d_out, x, weight, out, **good | {wrong: bad})
    with pytest.raises(TypeError, match=wrong):
        fused.linear_act_backward(d_out, x, weight, out, **good | {wrong: good[wrong].astype("float64")})
