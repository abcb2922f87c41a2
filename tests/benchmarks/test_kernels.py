"""Every library computes the layer that the book means: errors, ragged shapes, NaN, the sign of zero."""

import importlib
import os
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from benchmarks import inputs
from denselayer.bench import Unsupported

NUMPY, TORCH, JAX = "numpy_layers", "torch_layers", "jax_layers"
TILE, BACK = "numba_tile", "numba_backward"
FORWARD = (
    *((NUMPY, name) for name in ("plain", "in_place", "fused_forward")),
    *((TORCH, name) for name in ("eager", "addmm_out", "onednn", "onednn_packed")),
    *((TILE, name) for name in ("packed", "packing_included")),
    (JAX, "jitted"),
)
BACKWARD = (
    *((NUMPY, name) for name in ("plain_backward", "in_place_backward", "fused_backward")),
    *((TORCH, name) for name in ("autograd", "backward_out")),
    (BACK, "backward"),
)
SHAPES = ((1, 784, 100), (65, 784, 96), (140, 64, 64), (140, 256, 16), (28, 4096, 40))
"""The shapes of the table, scaled down: one sample, long sums, narrow outputs, edges that no tile divides."""
"""A sum of 4096 products is where a kernel that adds them one by one shows it."""
BACKWARD_SHAPES = ((1, 784, 100), (140, 64, 70), (322, 33, 42))
FEW_ROUNDINGS = 12.0


def sizes(shape):
    return dict(zip(("batch", "in_features", "out_features"), shape, strict=True))


def make(module, name, shape, dtype, threads=1):
    """The closure of a variant; skips where the library is not there or has no such computation."""
    pytest.importorskip({TILE: "numba", BACK: "numba", JAX: "jax", TORCH: "torch"}.get(module, "numpy"))
    try:
        return getattr(importlib.import_module(f"benchmarks.kernels.{module}"), name)(
            sizes(shape), dtype, threads
        )
    except Unsupported as reason:
        pytest.skip(str(reason))


def in_roundings(result, exact, size, dtype, mean=False):
    """Distance to the exact result in units of u times the sum of the absolute products, largest or mean."""
    assert np.asarray(result).dtype == dtype and np.shape(result) == exact.shape
    size = np.where(size == 0, 1, size)
    errors = np.abs(np.asarray(result) - exact) / size / (np.finfo(dtype).eps / 2)
    return float(np.sqrt((errors**2).mean()) if mean else errors.max())


def forward_errors(result, shape, dtype, mean=False):
    x, weight, bias = (each.astype(np.longdouble) for each in inputs.layer(sizes(shape), dtype))
    exact = np.maximum(x @ weight.T + bias, 0)
    return in_roundings(result, exact, np.abs(x) @ np.abs(weight.T) + np.abs(bias), dtype, mean)


@pytest.fixture(autouse=True)
def _all_processors_afterwards():
    """JAX's threads are limited by binding the process to processors; here it gets them back."""
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    yield
    if allowed:
        os.sched_setaffinity(0, allowed)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("module", "name"), FORWARD)
def test_forward_is_exact_up_to_a_few_roundings(module, name, dtype):
    for shape in SHAPES:
        run = make(module, name, shape, dtype)
        run()
        assert forward_errors(run(), shape, dtype) < FEW_ROUNDINGS, shape


@pytest.mark.parametrize(
    "shape", [(1, 784, 1000), (280, 784, 96), (700, 64, 64), (700, 256, 64), (98, 4096, 40)]
)
@pytest.mark.parametrize("mean", [False, True])
def test_the_tile_errs_at_most_twice_as_much_as_numpy(shape, mean):
    plain, tile = (
        forward_errors(make(*variant, shape, "float32")(), shape, "float32", mean)
        for variant in ((NUMPY, "plain"), (TILE, "packed"))
    )
    assert tile < max(2 * plain, 1.5)


@pytest.mark.parametrize(("module", "name"), [each for each in FORWARD if each[0] != NUMPY])
def test_a_missing_number_stays_visible_except_in_onednn(module, name, monkeypatch):
    shape = (28, 64, 96)
    x, weight, bias = inputs.layer(sizes(shape), "float32")
    x[3, 5] = x[27, 63] = np.nan
    monkeypatch.setattr(inputs, "layer", lambda shape, dtype: (x, weight, bias))
    result = np.asarray(make(module, name, shape, "float32")())
    kept = np.isnan(result).any(axis=1)
    if name.startswith("onednn"):
        assert not kept.any() and (result[[3, 27]] == 0).all(), "oneDNN turns NaN into 0"
    else:
        assert np.isnan(result[[3, 27]]).all() and kept.sum() == 2


@pytest.mark.parametrize(
    "shape", [(1, 7, 3), (14, 1, 1), (14, 0, 40), (28, 16, 15), (28, 33, 49), (0, 4, 3), (4, 4, 0)]
)
@pytest.mark.parametrize("activation", ["relu", "identity"])
def test_tile_on_the_smallest_and_on_ragged_layers(shape, activation):
    tile = pytest.importorskip("benchmarks.kernels.numba_tile")
    x, weight, bias = inputs.layer(sizes((shape[0], max(shape[1], 1), shape[2])), "float32")
    x, weight = x[:, : shape[1]], weight[:, : shape[1]]
    z = x @ weight.T + bias
    result = tile.Layer(weight, bias, activation)(x)
    np.testing.assert_allclose(result, np.maximum(z, 0) if activation == "relu" else z, rtol=1e-5, atol=1e-5)


def test_tile_leaves_a_negative_zero_as_pytorch_does():
    tile, torch = pytest.importorskip("benchmarks.kernels.numba_tile"), pytest.importorskip("torch")
    weight, bias = -np.ones((40, 8), np.float32), np.full(40, -0.0, np.float32)
    result = tile.Layer(weight, bias)(np.zeros((28, 8), np.float32))
    assert (result == 0).all() and np.signbit(result).all()
    assert torch.signbit(torch.relu(torch.tensor(-0.0)))
    assert not np.signbit(np.maximum(np.float32(-0.0), np.float32(0)))


def test_a_changed_weight_counts_after_it_is_packed_again():
    tile = pytest.importorskip("benchmarks.kernels.numba_tile")
    x, weight, bias = inputs.layer(sizes((28, 64, 96)), "float32")
    layer = tile.Layer(weight, bias)
    layer(x)
    weight *= 2
    layer.pack()
    np.testing.assert_array_equal(layer(x), tile.Layer(weight, bias)(x))


def test_tile_gives_the_same_bits_on_one_thread_and_on_two():
    tile = pytest.importorskip("benchmarks.kernels.numba_tile")
    x, weight, bias = inputs.layer(sizes((140, 64, 96)), "float32")
    one, two = (tile.Layer(weight, bias, threads=threads)(x) for threads in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_accumulators_stay_in_registers():
    pytest.importorskip("numba")
    from benchmarks.kernels import vectors

    if vectors.registers() != (32, 64):
        pytest.skip("reads the assembly of AVX-512")
    tile = importlib.import_module("benchmarks.kernels.numba_tile")
    x, weight, bias = inputs.layer(sizes((28, 64, 96)), "float32")
    tile.Layer(weight, bias)(x)
    compiled = tile.layer_function("float32", tile.tile_for(28, 96, "float32"), False)
    blocks = re.split(r"^\S+:$", "\n".join(compiled.inspect_asm().values()), flags=re.MULTILINE)
    loops = [block for block in blocks if block.count("vfmadd") == 28]
    assert loops
    for loop in loops:
        assert not re.search(r"zmm\d+, \S*\((%rsp|%rbp)\)", loop), "an accumulator is spilled"


def test_split_covers_the_range_in_whole_steps():
    parallel = pytest.importorskip("benchmarks.kernels.numba_parallel")
    for count in range(60):
        ranges = parallel.split(count, 3, 14)
        assert [k for first, last in ranges for k in range(first, last)] == list(range(count))
        assert all(first % 14 == 0 for first, _ in ranges)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_multiply_add_of_the_peak_is_done(dtype):
    fma = pytest.importorskip("benchmarks.kernels.fma")
    spin, number = fma._spin(dtype), np.dtype(dtype).type
    start = fma.lanes(dtype) * sum(range(1, fma.CHAINS + 1))
    assert spin(1000, number(0)) == start
    assert spin(10, number(1)) == 2**10 * start


def test_peak_counts_operations_of_all_threads():
    fma = pytest.importorskip("benchmarks.kernels.fma")
    assert all(fma.peak(threads=threads, seconds=1e-4, rounds=2) > 0 for threads in (1, 2))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("module", "name"), BACKWARD)
def test_backward_is_exact_up_to_a_few_roundings(module, name, dtype):
    for shape in BACKWARD_SHAPES + (((28, 7, 3),) if dtype == "float32" else ()):
        run = make(module, name, shape, dtype)
        run()
        x, weight, bias = inputs.layer(sizes(shape), dtype)
        d_out = inputs.upstream(sizes(shape), dtype)
        d_z = np.where(x @ weight.T + bias > 0, d_out, 0).astype(np.longdouble)
        long_x, long_weight, ones = x.astype(np.longdouble), weight.astype(np.longdouble), np.ones(len(x))
        products = ((d_z, long_weight), (d_z.T, long_x), (ones, d_z))
        for result, (a, b) in zip(run(), products, strict=True):
            assert in_roundings(result, a @ b, np.abs(a) @ np.abs(b), dtype) < FEW_ROUNDINGS, shape


@pytest.mark.slow
def test_backward_tile_on_two_threads():
    numba_backward = pytest.importorskip("benchmarks.kernels.numba_backward")
    x, weight, bias = inputs.layer(sizes((300, 64, 96)), "float32")
    d_out, out = inputs.upstream(sizes((300, 64, 96)), "float32"), np.maximum(x @ weight.T + bias, 0)
    one, two = (
        numba_backward.Backward(300, 64, 96, "float32", threads)(d_out, out, x, weight) for threads in (1, 2)
    )
    for single, double in zip(one, two, strict=True):
        np.testing.assert_allclose(double, single, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("batch", [1, 300])
def test_threads_may_share_a_backward(batch):
    numba_backward = pytest.importorskip("benchmarks.kernels.numba_backward")
    shape = sizes((batch, 64, 96))
    x, weight, _ = inputs.layer(shape, "float32")
    d_out, out = inputs.upstream(shape, "float32"), np.ones((batch, 96), np.float32)
    shared = numba_backward.Backward(batch, 64, 96, "float32")

    def wrong(k):
        d_x, d_weight, d_bias = shared(k * d_out, out, x, weight)
        true = (k * d_out @ weight, k * d_out.T @ x, k * d_out.sum(axis=0))
        return max(np.abs(a - b).max() for a, b in zip((d_x, d_weight, d_bias), true, strict=True))

    with ThreadPoolExecutor(4) as pool:
        assert max(pool.map(wrong, [np.float32(k % 4) for k in range(100)])) < 1e-2


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_backward_tile_lets_what_is_not_finite_pass_silently(value, threads):
    numba_backward = pytest.importorskip("benchmarks.kernels.numba_backward")
    x, weight, _ = inputs.layer(sizes((300, 64, 96)), "float32")
    d_out, out = inputs.upstream(sizes((300, 64, 96)), "float32"), np.ones((300, 96), np.float32)
    d_out[0, 3], d_out[-1, 3] = value, -value
    d_x, d_weight, d_bias = numba_backward.Backward(300, 64, 96, "float32", threads)(d_out, out, x, weight)
    assert np.isnan(d_bias[3]) and np.isfinite(d_bias[4]) and not np.isfinite(d_x[[0, -1]]).any()
    assert not np.isfinite(d_weight[3]).any()


def test_backward_tile_of_nothing_is_zero():
    numba_backward = pytest.importorskip("benchmarks.kernels.numba_backward")
    d_x, d_weight, d_bias = numba_backward.Backward(0, 3, 2, "float32")(
        *(np.zeros(shape, np.float32) for shape in ((0, 2), (0, 2), (0, 3), (2, 3)))
    )
    assert d_x.shape == (0, 3) and (d_weight == np.zeros((2, 3))).all() and (d_bias == np.zeros(2)).all()


def test_backward_tile_turns_away_other_shapes_and_types():
    numba_backward = pytest.importorskip("benchmarks.kernels.numba_backward")
    arrays = [np.zeros(shape, np.float32) for shape in ((4, 2), (4, 2), (4, 3), (2, 3))]
    for number, array in enumerate(arrays):
        for wrong in (array[:1], array.astype(float)):
            with pytest.raises(ValueError, match="expected"):
                numba_backward.Backward(4, 3, 2, "float32")(*arrays[:number], wrong, *arrays[number + 1 :])
