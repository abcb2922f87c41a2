"""What the suites on scaling measure computes what it should, whatever its size."""

import importlib

import numpy as np
import pytest

from benchmarks import memory
from benchmarks.kernels import package_layers
from benchmarks.suites import checkpoint, scaling
from denselayer import cost

JOBS = [*scaling.jobs(), *checkpoint.jobs()]


def made(job, variant, **smaller):
    """The closure of a variant, at a smaller size."""
    options = {**variant.options, **{name: size for name, size in smaller.items() if name in variant.options}}
    shape = {name: smaller.get(name, size) for name, size in job.shape.items()}
    function = getattr(importlib.import_module(variant.module), variant.function)
    return function(shape, job.dtype, job.threads, **options)


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_every_variant_runs_and_repeats_its_result(job):
    for variant in job.variants[:4]:
        run = made(job, variant, batch=3, width=5, depth=4)
        first = [np.array(array) for array in run()] if variant.function != "update" else run()
        for one, other in zip(first, run(), strict=True):
            assert one.dtype == np.float32
            np.testing.assert_allclose(one, other, rtol=1e-5)


def test_variants_are_called_by_the_size_that_they_have():
    for job in scaling.jobs()[: len(scaling.GROWTH)]:
        size = job.name.split(",")[0]
        assert [int(variant.name) for variant in job.variants] == scaling.GRIDS[size]
        assert [variant.options[size] for variant in job.variants] == scaling.GRIDS[size]
        assert size not in job.shape


@pytest.mark.parametrize("batch", [1, 2, 7])
def test_the_programs_for_few_rows_give_the_product(batch):
    shape = {"width": 33}
    results = {
        name: getattr(package_layers, name)(shape, "float64", 1, batch=batch)() for name in scaling.PROGRAMS
    }
    x, weight = package_layers.rows(batch, 33, "float64"), package_layers.rows(33, 33, "float64", seed=33)
    expected = np.einsum("ni,oi->no", x, weight)
    for name, result in results.items():
        np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12, err_msg=name)


def test_a_training_step_is_the_same_with_and_without_checkpoints():
    shape = {"batch": 4, "width": 6, "depth": 5}
    plain, cut = (package_layers.training_step(shape, "float32", 1, every=every)() for every in (0, 2))
    for one, other in zip(plain, cut, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_memory_of_a_step_is_that_of_the_model_and_a_little_more():
    task = {"batch": 500, "width": 40, "depth": 6, "optimizer": "adam", "every": 0}
    model = cost.network(
        package_layers.network(40, 6, "float32"), 500, input_gradient=True, library="denselayer"
    )
    [found] = memory.measure([task])
    assert model.nbytes <= found["held"] < model.nbytes + 50_000
    assert found["held"] < found["peak"] < 1.5 * model.nbytes
