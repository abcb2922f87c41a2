# ruff: noqa: E501 (one row, one line)
"""The fused layer computes what ``functional`` computes: the same bits where it says so, else as exactly."""

import dataclasses
import threading

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from denselayer import _blas, _passes, _tiling, fused
from denselayer import functional as F
from tests.denselayer.oracle import FLOATS, dtypes, laid_out, layouts, seeds

ACTIVATIONS = {
    "identity": [{}],
    "relu": [{}],
    "leaky_relu": [{}, {"negative_slope": 0.0}, {"negative_slope": 2.5}, {"negative_slope": -0.5}],
    "sigmoid": [{}],
    "tanh": [{}],
    "gelu": [{}, {"approximate": "tanh"}],
    "silu": [{}],
    "softplus": [{}, {"beta": 3.0, "threshold": 1.5}],
}
CASES = [(name, options) for name, several in ACTIVATIONS.items() for options in several]
SHAPES = [
    (0, 3, 2), (5, 0, 3), (5, 3, 0), (0, 0, 0), (1, 1, 1), (1, 784, 100), (2, 3, 9000), (7, 5, 3),
    (64, 200, 256), (300, 33, 257), (2049, 16, 8), (3001, 64, 64), (4000, 96, 30),
]  # fmt: skip
CUTS = [
    {"product": "rows", "block": 100, "chunk": 30, "tile": 7, "at_once": False},
    {"product": "rows", "block": 64, "chunk": 64, "tile": 0, "workers": 2, "at_once": False},
    {"product": "stacked", "block": 60, "chunk": 40, "small": 20, "tile": 11, "at_once": False},
    {"product": "stacked", "block": 48, "chunk": 48, "small": 16, "tile": 1, "workers": 3, "at_once": False},
]


def layer(n, i, o, dtype, seed=0):
    rng = np.random.default_rng(seed)
    arrays = rng.standard_normal((n, i)), rng.standard_normal((o, i)), rng.standard_normal(o)
    return [array.astype(dtype) for array in arrays]


def plain(x, weight, bias, activation, **options):
    z = F.linear(x, weight, bias)
    return z, getattr(F, activation)(z, **options)


def bits(array):
    return array.view(f"u{array.itemsize}")


def assert_same_bits(actual, expected):
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(bits(actual), bits(expected))


def rounding(x, weight, bias):
    """Bound of the error of each entry in units of u: the sum of the magnitudes of what is added."""
    return np.abs(x.astype(np.float64)) @ np.abs(weight.T.astype(np.float64)) + np.abs(bias)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_same_bits_as_functional_where_the_plan_promises_it(shape, dtype, threads):
    x, weight, bias = layer(*shape, dtype)
    with _blas.limit_threads(threads):
        for activation, options in CASES:
            chosen = fused.plan(*shape, activation=activation, dtype=dtype)
            _, expected = plain(x, weight, bias, activation, **options)
            actual = fused.linear_act(x, weight, bias, activation, **options)
            if chosen.bit_identical:
                assert_same_bits(actual, expected)
            else:
                scale = np.finfo(dtype).eps * (rounding(x, weight, bias) + 1)
                assert (np.abs(actual - expected) <= 8 * scale).all()


def test_some_plans_promise_the_same_bits_and_some_do_not(monkeypatch):
    monkeypatch.setattr(_blas, "kernel", lambda: "SkylakeX")
    _tiling._plan.cache_clear()
    promised = [fused.plan(*shape, threads=1).bit_identical for shape in SHAPES]
    _tiling._plan.cache_clear()
    assert any(promised) and not all(promised)


@pytest.mark.parametrize("cut", CUTS, ids=str)
@pytest.mark.parametrize(("activation", "options"), CASES, ids=str)
def test_every_cut_gives_the_bits_of_the_activation_of_its_own_pre_activation(activation, options, cut):
    for dtype in FLOATS:
        x, weight, bias = layer(333, 20, 13, dtype)
        chosen = dataclasses.replace(
            fused.plan(333, 20, 13, activation=activation, dtype=dtype, keep=True), **cut
        )
        pre = np.full((333, 13), np.nan, dtype)
        out = fused.linear_act(x, weight, bias, activation, pre=pre, plan=chosen, **options)
        expected = F.linear(x, weight, bias)
        unit = np.finfo(dtype).eps / 2
        assert (np.abs(pre - expected) <= 8 * unit * rounding(x, weight, bias)).all()
        assert_same_bits(out, getattr(F, activation)(pre, **options))
        assert_same_bits(fused.linear_act(x, weight, bias, activation, plan=chosen, **options), out)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [s for s in SHAPES if 0 not in s], ids=str)
def test_error_against_float64_is_a_few_units_of_the_sum_of_magnitudes(shape, dtype):
    x, weight, bias = layer(*shape, dtype)
    wide = [array.astype(np.longdouble) for array in (x, weight, bias)]
    exact = (
        wide[0] @ wide[1].T + wide[2]
        if dtype == np.float64
        else plain(*(array.astype(np.float64) for array in (x, weight, bias)), "identity")[1]
    )
    actual = fused.linear_act(x, weight, bias, "identity")
    unit = np.finfo(dtype).eps / 2
    assert np.max(np.abs(actual - exact) / (unit * rounding(x, weight, bias))) < 6


@settings(max_examples=60, deadline=None)
@given(
    st.one_of(st.just(1), st.integers(0, 90)),
    st.integers(0, 40),
    st.integers(0, 40),
    dtypes,
    seeds,
    layouts,
    st.sampled_from(CASES),
)
def test_any_shape_and_any_layout_of_memory(n, i, o, dtype, seed, layout, case):
    activation, options = case
    x, weight, bias = layer(n, i, o, dtype, seed)
    x, weight, bias = (laid_out(array, layout) for array in (x, weight, bias))
    z, expected = plain(x, weight, bias, activation, **options)
    room, kept = np.full((n, 2 * o), 9, dtype), np.full((o, n), 9, dtype).T
    out = room[:, ::2]
    result = fused.linear_act(x, weight, bias, activation, out=out, pre=kept, **options)
    assert result is out
    assert_same_bits(np.array(out), expected)
    assert_same_bits(np.array(kept), z)
    assert (room[:, 1::2] == 9).all()


def test_a_sample_and_a_batch_of_batches():
    x, weight, bias = layer(24, 5, 7, np.float32)
    expected = F.relu(F.linear(x, weight, bias))
    assert_same_bits(fused.linear_act(x[0], weight, bias), F.relu(F.linear(x[0], weight, bias)))
    stacked = x.reshape(2, 3, 4, 5)
    out = np.empty((2, 3, 4, 7), np.float32)
    assert fused.linear_act(stacked, weight, bias, out=out) is out
    assert_same_bits(out.reshape(24, 7), expected)
    assert_same_bits(fused.linear_act(stacked, weight, bias).reshape(24, 7), expected)
    row = np.empty(7, np.float32)
    assert fused.linear_act(x[3], weight, bias, out=row) is row
    assert_same_bits(row, F.relu(F.linear(x[3], weight, bias)))


@pytest.mark.parametrize("shape", [(3, 4, 5), (3001, 64, 64)], ids=str)
def test_without_a_bias(shape):
    x, weight, _ = layer(*shape, np.float64)
    np.testing.assert_allclose(
        fused.linear_act(x, weight), F.relu(F.linear(x, weight)), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("shape", [(5, 4, 3), (3001, 64, 64)], ids=str)
@pytest.mark.parametrize(("activation", "options"), CASES, ids=str)
def test_nan_infinities_and_zeros_are_those_of_functional(shape, activation, options, recwarn):
    for dtype in FLOATS:
        x, weight, bias = layer(*shape, dtype)
        x[0, 0], x[1, 0], x[2, 1], x[3] = np.nan, np.inf, -np.inf, 0.0
        x[4, 0], weight[0, 0] = np.finfo(dtype).max, 4.0
        bias[-1] = -0.0
        pre = np.empty((shape[0], shape[2]), dtype)
        actual = fused.linear_act(x, weight, bias, activation, pre=pre, **options)
        expected = getattr(F, activation)(pre, **options)
        np.testing.assert_array_equal(actual, expected)
        finite = np.isfinite(expected)
        assert_same_bits(actual[finite], expected[finite])
        assert np.isnan(actual[0]).all()
    assert not recwarn.list


def test_relu_gives_no_negative_zero():
    x, weight = np.full((5, 1), -0.0, np.float32), np.ones((3, 1), np.float32)
    assert not np.signbit(fused.linear_act(x, weight, np.full(3, -0.0, np.float32))).any()


def test_inputs_are_not_changed():
    arrays = layer(3001, 64, 64, np.float32)
    copies = [array.copy() for array in arrays]
    fused.linear_act(*arrays)
    for array, copy in zip(arrays, copies, strict=True):
        assert_same_bits(array, copy)


def test_two_threads_at_once():
    shapes = [(3001, 64, 64), (64, 200, 256), (3001, 64, 64), (4000, 96, 30)] * 2
    cases = [layer(*shape, np.float32, seed) for seed, shape in enumerate(shapes)]
    chosen = [fused.plan(*shape, threads=2) for shape in shapes]
    expected = [plain(*case, "relu")[1] for case in cases]
    wrong = []
    before = _blas.threads()
    start = threading.Barrier(len(cases))

    def run(case, one, right):
        start.wait()
        for _ in range(10):
            for result in (fused.linear_act(*case), fused.linear_act(*case, plan=one)):
                if not np.allclose(result, right, rtol=1e-4, atol=1e-4):
                    wrong.append(result)

    runners = [threading.Thread(target=run, args=item) for item in zip(cases, chosen, expected, strict=True)]
    for runner in runners:
        runner.start()
    for runner in runners:
        runner.join()
    assert not wrong
    assert _blas.threads() == before


def test_one_workspace_serves_several_threads():
    x, weight, bias = layer(3001, 64, 64, np.float32)
    workspace = fused.Workspace(fused.plan(3001, 64, 64, threads=1))
    biases = [bias + k for k in range(4)]
    results = [np.empty((3001, 64), np.float32) for _ in biases]

    def run(k):
        for _ in range(10):
            fused.linear_act(x, weight, biases[k], out=results[k], workspace=workspace)

    runners = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for runner in runners:
        runner.start()
    for runner in runners:
        runner.join()
    for one, result in zip(biases, results, strict=True):
        np.testing.assert_allclose(result, plain(x, weight, one, "relu")[1], rtol=1e-4, atol=1e-4)


def test_a_worker_that_fails_says_so(monkeypatch):
    def fail(z, out, scratch):
        if threading.current_thread() is not threading.main_thread():
            raise ArithmeticError("of the worker")

    monkeypatch.setitem(_passes.FUNCTIONS, "relu", (fail, fail))
    chosen = dataclasses.replace(fused.plan(333, 20, 13, dtype="float64"), **CUTS[3])
    before = _blas.threads()
    with pytest.raises(ArithmeticError, match="of the worker"):
        fused.linear_act(*layer(333, 20, 13, np.float64), plan=chosen)
    assert _blas.threads() == before


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("activation", "options"), CASES, ids=str)
def test_agrees_with_pytorch(activation, options, dtype):
    x, weight, bias = layer(300, 33, 17, dtype)
    z = torch.nn.functional.linear(*(torch.tensor(array) for array in (x, weight, bias)))
    apply = {"identity": lambda z: z, "tanh": torch.tanh, "sigmoid": torch.sigmoid}
    expected = apply.get(activation, getattr(torch.nn.functional, activation, None))(z, **options).numpy()
    actual = fused.linear_act(x, weight, bias, activation, **options)
    tolerance = 200 * np.finfo(dtype).eps
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


X, WEIGHT, BIAS = np.ones((5, 3)), np.ones((4, 3)), np.ones(4)
SHARED = np.ones((5, 8))
BAD = [
    (lambda: fused.linear_act([1.0], WEIGHT), TypeError, "x is a list", "np.asarray"),
    (lambda: fused.linear_act(X, WEIGHT.T), ValueError, "linear_act: x has shape", "(N, 4)"),
    (lambda: fused.linear_act(X, WEIGHT, np.ones(3)), ValueError, "bias has shape (3,)", "(4,)"),
    (lambda: fused.linear_act(X, WEIGHT, BIAS, "swish"), ValueError, "activation is 'swish'", "'silu'"),
    (lambda: fused.linear_act(X, WEIGHT, beta=2.0), TypeError, "option beta", "no options for relu"),
    (lambda: fused.linear_act(X, WEIGHT, None, "gelu", beta=1.0), TypeError, "option beta", "approximate"),
    (lambda: fused.linear_act(X, WEIGHT, None, "gelu", approximate=1), ValueError, "approximate is 1", "'tanh'"),
    (lambda: fused.linear_act(X, WEIGHT, None, "softplus", beta=0), ValueError, "beta is 0", "> 0"),
    (lambda: fused.linear_act(X, WEIGHT, out=np.ones((5, 3))), ValueError, "out has shape (5, 3)", "(5, 4)"),
    (lambda: fused.linear_act(X, WEIGHT, out=np.ones((5, 4), "f4")), TypeError, "out has dtype float32", "float64"),
    (lambda: fused.linear_act(X, WEIGHT, out=[0.0]), TypeError, "out is a list", "np.asarray"),
    (lambda: fused.linear_act(SHARED[:, :3], WEIGHT, out=SHARED[:, 2:6]), ValueError, "out shares memory with x", ""),
    (lambda: fused.linear_act(X, SHARED[:4, :3], out=SHARED[:, :4]), ValueError, "shares memory with weight", ""),
    (lambda: fused.linear_act(X, WEIGHT, SHARED[0, :4], out=SHARED[:, :4]), ValueError, "memory with bias", ""),
    (lambda: fused.linear_act(X, WEIGHT, out=SHARED[:, :4], pre=SHARED[:, 4:]), None, "", ""),
    (lambda: fused.linear_act(X, WEIGHT, out=SHARED[:, :4], pre=SHARED[:, 3:7]), ValueError, "pre shares memory with out", ""),
    (lambda: fused.linear_act(X, WEIGHT, out=laid_out(np.ones((5, 4)), "read-only")), ValueError, "out is read-only", ""),
    (lambda: fused.linear_act(X, WEIGHT, plan=fused.plan(6, 3, 4)), ValueError, "the plan is for x (6, 3)", "plan(5, 3, 4"),
    (lambda: fused.linear_act(X, WEIGHT, plan=fused.plan(5, 3, 4)), ValueError, "float32", 'dtype="float64"'),
    (lambda: fused.plan(-1, 3, 4), ValueError, "batch is -1", "0 or more"),
    (lambda: fused.plan(1, 3, 4.0), TypeError, "out_features is a float", "int(out_features)"),
    (lambda: fused.plan(1, 3, 4, dtype=int), TypeError, "dtype is", "float32 or float64"),
    (lambda: fused.plan(1, 3, 4, activation="swish"), ValueError, "'swish'", "'relu'"),
    (lambda: fused.plan(1, 3, 4, threads=0), ValueError, "threads is 0", "1 or more"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "came", "advice"), BAD, ids=range(len(BAD)))
def test_bad_input_is_explained(call, kind, came, advice):
    if kind is None:
        call()
        return
    with pytest.raises(kind) as caught:
        call()
    assert came in str(caught.value)
    assert advice in str(caught.value)


def test_a_plan_says_what_it_does_and_why():
    text = str(fused.plan(1, 784, 1000, threads=1))
    assert "X (1, 784), W (1000, 784), float32" in text
    assert "because" in text and "reading W" in text
    two = dataclasses.replace(fused.plan(300, 5, 6, threads=2), **CUTS[3])
    assert "shared by 3 threads" in str(two)


def test_a_plan_without_the_small_kernels_multiplies_in_one_piece(monkeypatch):
    monkeypatch.setattr(_blas, "kernel", lambda: "Haswell")
    _tiling._plan.cache_clear()
    haswell = fused.plan(65536, 64, 64, threads=1)
    monkeypatch.setattr(_blas, "kernel", lambda: "SkylakeX")
    _tiling._plan.cache_clear()
    skylake = fused.plan(65536, 64, 64, threads=1)
    _tiling._plan.cache_clear()
    assert haswell.small == 0
    assert skylake.product == "stacked"
    assert skylake.small * 64 * 64 <= 1_000_000


def test_the_size_of_the_second_cache_is_plausible():
    assert 1 << 17 <= _tiling.l2_bytes() <= 1 << 28
