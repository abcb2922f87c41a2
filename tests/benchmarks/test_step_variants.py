"""Every way to take the measured training step arrives at the same loss and parameters."""

import importlib

import numpy as np
import pytest

from benchmarks import mlp
from benchmarks.suites import step

SMALL = {"batch": 16, "in": 20, "hidden 1": 12, "hidden 2": 8, "out": 5}


def after_three_steps(variant, dtype, shape=SMALL):
    call = getattr(importlib.import_module(variant.module), variant.function)(shape, dtype, 1)
    losses = [call()[0].item() for _ in range(3)]
    _, parameters = call()
    return losses, [one.detach().numpy() if hasattr(one, "detach") else one for one in parameters]


def exact_start():
    plain = next(variant for variant in step.VARIANTS if variant.name == "plain")
    return after_three_steps(plain, "float64")


@pytest.mark.parametrize("variant", [v for v in step.VARIANTS if v.name != "compile"], ids=lambda v: v.name)
def test_three_steps_agree(variant):
    losses, parameters = after_three_steps(variant, "float64")
    expected, values = exact_start()
    assert losses[2] < losses[0]
    np.testing.assert_allclose(losses, expected, rtol=1e-13)
    for mine, theirs in zip(parameters, values, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("variant", [v for v in step.VARIANTS if v.name != "compile"], ids=lambda v: v.name)
def test_three_steps_of_the_measured_network_agree_in_float32(variant):
    losses, parameters = after_three_steps(variant, "float32", mlp.SHAPE)
    fast = next(v for v in step.VARIANTS if v.name == "fast")
    expected, values = after_three_steps(fast, "float32", mlp.SHAPE)
    np.testing.assert_allclose(losses, expected, rtol=1e-4)
    for mine, theirs in zip(parameters, values, strict=True):
        assert np.abs(mine - theirs).max() < 1e-4


@pytest.mark.slow
def test_the_compiled_step_agrees(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    compiled = next(v for v in step.VARIANTS if v.name == "compile")
    try:
        losses, parameters = after_three_steps(compiled, "float64")
    except Exception as error:
        if "compiler" in str(error).lower():
            pytest.skip("no C++ compiler")
        raise
    expected, values = exact_start()
    np.testing.assert_allclose(losses, expected, rtol=1e-13)
    for mine, theirs in zip(parameters, values, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-14)


def test_operations_are_those_of_the_products():
    pairs = ((784, 512), (512, 256), (256, 10))
    products = 2 * sum(a * b for a, b in pairs) + sum(a * b for a, b in pairs[1:])
    assert mlp.operations(mlp.SHAPE) == 2 * 128 * products
