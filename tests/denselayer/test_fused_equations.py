"""The fused layer against its equations, entry by entry, and the kernel that the book shows."""

from pathlib import Path

import numpy as np
import pytest

from denselayer import functional as F
from denselayer import fused

ROOT = Path(__file__).resolve().parents[2]
SHAPES = [(1, 3, 3), (5, 4, 2), (7, 9, 6), (3, 1, 1)]


def whole_numbers(*shape, seed):
    """Small whole numbers: their sums are exact in any order."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(float)


@pytest.mark.equation("eq-fused-forward")
@pytest.mark.parametrize(("batch", "inputs", "outputs"), SHAPES)
def test_an_output_is_the_activation_of_a_sum_that_starts_at_the_bias(batch, inputs, outputs):
    x, weight = whole_numbers(batch, inputs, seed=1), whole_numbers(outputs, inputs, seed=2)
    bias = whole_numbers(outputs, seed=3)
    out = fused.linear_act(x, weight, bias)
    for n in range(batch):
        for i in range(outputs):
            total = bias[i]
            for k in range(inputs):
                total += x[n, k] * weight[i, k]
            assert out[n, i] == max(total, 0)


@pytest.mark.equation("eq-fused-backward")
@pytest.mark.parametrize(("batch", "inputs", "outputs"), SHAPES)
@pytest.mark.parametrize("rows", [1, 2, 100])
def test_gradients_are_sums_over_blocks_of_the_batch(batch, inputs, outputs, rows):
    x, weight = whole_numbers(batch, inputs, seed=4), whole_numbers(outputs, inputs, seed=5)
    z = F.linear(x, weight, whole_numbers(outputs, seed=6))
    d_out = whole_numbers(batch, outputs, seed=7)
    d_x, d_weight, d_bias = np.zeros_like(x), np.zeros_like(weight), np.zeros(outputs)
    for top in range(0, batch, rows):
        for n in range(top, min(top + rows, batch)):
            for i in range(outputs):
                gated = d_out[n, i] if z[n, i] > 0 else 0.0
                d_x[n] += gated * weight[i]
                d_weight[i] += gated * x[n]
                d_bias[i] += gated
    found = fused.linear_act_backward(d_out, x, weight, z)
    for one, expected in zip(found, (d_x, d_weight, d_bias), strict=True):
        np.testing.assert_array_equal(one, expected)


@pytest.mark.parametrize("kernel", ["numba_tile.py", "triton_linear.py"])
def test_the_chapter_shows_the_kernel_as_it_is(kernel):
    chapter = (ROOT / "chapters" / "08-fused-gemm.qmd").read_text(encoding="utf-8")
    shown = [part.split("```")[0] for part in chapter.split("\n```python\n")[1:]]
    source = (ROOT / "benchmarks" / "kernels" / kernel).read_text(encoding="utf-8")
    lines = [line.strip() for line in source.splitlines()]
    known = [block for block in shown if block.splitlines()[0].strip() in lines]
    quoted = [
        block for block in known if "\n".join(line.strip() for line in block.splitlines()) in "\n".join(lines)
    ]
    assert quoted, f"no block of the chapter is a part of {kernel}"
