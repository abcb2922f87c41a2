"""Whatever way the suites write a product or an epilogue, it computes the same."""

import importlib

import numpy as np
import pytest

from benchmarks import inputs
from benchmarks.suites import epilogue, layouts, loops
from denselayer.bench import Unsupported

SHAPES = [
    {"batch": 33, "in_features": 20, "out_features": 9},
    {"batch": 64, "in_features": 40, "out_features": 48},
]
PRODUCTS = [*loops.VARIANTS, *layouts.OPERANDS[:-1], *epilogue.BLOCKS, *epilogue.STACKS, epilogue.PRODUCT]
LAYERS = [*epilogue.TILES, *epilogue.SHARES[1:]]


def run(variant, shape):
    if variant.library == "numba":
        pytest.importorskip("numba")
    make = getattr(importlib.import_module(variant.module), variant.function)
    try:
        return np.array(make(shape, "float32", 1, **variant.options)())
    except Unsupported as reason:
        pytest.skip(str(reason))


def expected(shape):
    x, weight, bias = (array.astype(float) for array in inputs.layer(shape, "float32"))
    size = np.abs(x) @ np.abs(weight).T + np.abs(bias)
    return x @ weight.T, bias, 2.0**-24 * size


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("variant", PRODUCTS, ids=lambda variant: variant.name)
def test_every_product_is_the_product(variant, shape):
    product, _, unit = expected(shape)
    assert (np.abs(run(variant, shape) - product) / unit).max() < 8


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("variant", LAYERS, ids=lambda variant: variant.name)
def test_every_layer_is_the_layer(variant, shape):
    product, bias, unit = expected(shape)
    assert (np.abs(run(variant, shape) - np.maximum(product + bias, 0)) / unit).max() < 8


@pytest.mark.parametrize("variant", epilogue.PASSES, ids=lambda variant: variant.name)
def test_every_pass_adds_nothing_or_is_relu(variant):
    shape = {"batch": 300, "in_features": 0, "out_features": 512}
    before = epilogue.numbers(shape, "float32")
    after = run(variant, shape).reshape(before.shape)
    np.testing.assert_array_equal(after, np.maximum(before, 0) if "maximum" in variant.name else before)


def test_the_thin_products_do_nearly_equal_work():
    work = np.array([2.0 * n * i * o for n, i, o in layouts.THIN])
    np.testing.assert_allclose(work, work[0], rtol=0.01)


def test_names_of_cases_are_unique():
    for suite in (epilogue, layouts, loops):
        names = [job.name for job in suite.jobs()]
        assert len(names) == len(set(names))
        for job in suite.jobs():
            variants = [variant.name for variant in job.variants]
            assert len(variants) == len(set(variants))
