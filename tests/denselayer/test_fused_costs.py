"""What a fused layer costs: the formulas against loops that count what they do."""

import numpy as np
import pytest

from denselayer import cost

SHAPES = [(1, 3, 3), (5, 4, 7), (8, 6, 2), (12, 1, 5)]


class Read:
    """Counts the numbers that are fetched from memory and written to it."""

    def __init__(self):
        self.numbers = 0

    def block(self, height, width):
        self.numbers += height * width


@pytest.mark.equation("eq-fused-blocked-bytes")
@pytest.mark.parametrize(("batch", "inputs", "outputs"), SHAPES)
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (2, 3), (4, 1), (100, 2), (100, 100)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_blocked_product_moves_what_its_loops_move(batch, inputs, outputs, rows, columns, dtype):
    memory = Read()
    for row in range(0, batch, rows):
        for column in range(0, outputs, columns):
            height, width = min(rows, batch - row), min(columns, outputs - column)
            for _ in range(inputs):
                memory.block(height, 1)
                memory.block(1, width)
            memory.block(height, width)
    expected = memory.numbers * np.dtype(dtype).itemsize
    assert cost.blocked_traffic(batch, inputs, outputs, rows, columns, dtype) == expected


def test_one_block_moves_what_the_layer_must():
    whole = cost.linear_traffic(64, 784, 256, bias=False)
    assert cost.blocked_traffic(64, 784, 256, 64, 256) == whole
    assert cost.blocked_traffic(64, 784, 256, 1000, 1000) == whole


@pytest.mark.parametrize("sizes", [{"rows": 0}, {"columns": 0}])
def test_a_block_has_rows_and_columns(sizes):
    with pytest.raises(ValueError, match="expected 1 or more"):
        cost.blocked_traffic(4, 4, 4, **({"rows": 2, "columns": 2} | sizes))


@pytest.mark.equation("eq-fused-backward-bytes")
@pytest.mark.parametrize(("batch", "inputs", "outputs"), SHAPES)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("input_gradient", [True, False])
def test_a_fused_backward_pass_touches_each_array_once(batch, inputs, outputs, bias, input_gradient):
    read = [(batch, outputs), (batch, outputs), (batch, inputs)]
    written = [(outputs, inputs)]
    if bias:
        written.append((1, outputs))
    if input_gradient:
        read.append((outputs, inputs))
        written.append((batch, inputs))
    memory = Read()
    for shape in read + written:
        memory.block(*shape)
    arguments = batch, inputs, outputs, bias, input_gradient
    assert cost.fused_backward_traffic(*arguments, np.float64) == 8 * memory.numbers
    apart = 8 * 3 * batch * outputs + cost.linear_backward_traffic(*arguments, np.float64)
    assert cost.fused_backward_traffic(*arguments, np.float64) < apart


@pytest.mark.equation("eq-fused-share")
def test_the_share_of_the_epilogue_is_time_over_time():
    batch, inputs, outputs = 640, 48, 20
    peak, rates = 2e11, [3e9, 8e9]
    product = cost.linear_operations(batch, inputs, outputs) / peak
    passes = sum(batch * outputs / rate for rate in rates)
    assert cost.epilogue_share(inputs, peak, rates) == pytest.approx(passes / product)
    assert cost.epilogue_share(2 * inputs, peak, rates) == pytest.approx(passes / product / 2)
    assert cost.epilogue_share(inputs, peak, []) == 0


def test_the_share_needs_inputs_and_rates_above_zero():
    with pytest.raises(ValueError, match="in_features is 0"):
        cost.epilogue_share(0, 1e11, [1e9])
    with pytest.raises(ValueError, match="rates is 0"):
        cost.epilogue_share(64, 1e11, [1e9, 0])
    with pytest.raises(TypeError, match="in_features"):
        cost.epilogue_share(64.5, 1e11, [1e9])
