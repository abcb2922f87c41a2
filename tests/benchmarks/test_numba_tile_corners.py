"""The register tile goes by addresses alone: what does not fit is turned away, and nothing is shared."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

tile = pytest.importorskip("benchmarks.kernels.numba_tile")


def layer(features=16, depth=20, rows=3, dtype="float32", **options):
    rng = np.random.default_rng(4)
    x, weight, bias = [
        rng.standard_normal(shape).astype(dtype) for shape in ((rows, depth), (features, depth), features)
    ]
    return x, weight, bias, tile.Layer(weight, bias, **options)


def test_threads_may_share_a_layer():
    x, weight, bias, shared = layer(features=64, depth=700, rows=100)
    inputs = [x, 2 * x, -x, x[::-1].copy()]
    expected = [np.maximum(each.astype(float) @ weight.T.astype(float) + bias, 0) for each in inputs]

    def wrong(k):
        return np.abs(shared(inputs[k % 4]) - expected[k % 4]).max()

    with ThreadPoolExecutor(4) as pool:
        assert max(pool.map(wrong, range(100))) < 1e-2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x[:, :19], r"x has shape \(3, 19\); expected \(N, 20\)"),
        (lambda x: np.hstack([x, x]), r"x has shape \(3, 40\); expected \(N, 20\)"),
        (lambda x: x[0], r"x has shape \(20,\); expected \(N, 20\)"),
        (lambda x: x.astype(float), "x has dtype float64; expected float32"),
        (lambda x: x.astype(int), "x has dtype int64; expected float32"),
    ],
)
def test_an_input_that_does_not_fit_is_turned_away(change, message):
    x, _, _, fitting = layer()
    with pytest.raises(ValueError, match=message):
        fitting(change(x))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: np.zeros((3, 15), "float32"), r"out has shape \(3, 15\); expected \(3, 16\)"),
        (lambda: np.zeros((3, 16)), "out has dtype float64; expected float32"),
        (lambda: np.zeros((3, 16), "float32", order="F"), "out is not contiguous"),
        (lambda: np.zeros((3, 32), "float32")[:, ::2], "out is not contiguous"),
    ],
)
def test_an_output_that_does_not_fit_is_turned_away(make, message):
    x, _, _, fitting = layer()
    with pytest.raises(ValueError, match=message):
        fitting(x, make())


def test_an_output_over_the_input_is_turned_away():
    x, _, _, square = layer(features=20)
    with pytest.raises(ValueError, match="out shares memory with x"):
        square(x, x)


def test_a_bias_that_does_not_fit_is_turned_away():
    _, weight, bias, _ = layer()
    with pytest.raises(ValueError, match=r"bias has shape \(3,\); expected \(16,\)"):
        tile.Layer(weight, bias[:3])
    with pytest.raises(ValueError, match="bias has dtype float64; expected float32"):
        tile.Layer(weight, bias.astype(float))


@pytest.mark.parametrize("sizes", [(0, 20, 3), (16, 0, 3), (16, 20, 0), (0, 0, 0)], ids=str)
def test_a_layer_without_outputs_or_inputs_gives_what_the_sum_says(sizes):
    features, depth, rows = sizes
    x, _, bias, empty = layer(features=features, depth=depth, rows=rows)
    np.testing.assert_allclose(empty(x), np.maximum(x @ empty.weight.T + bias, 0), atol=1e-5)
