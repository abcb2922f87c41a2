"""Costs: the formulas against counting, in a real layer and in loops that count what they do."""

import numpy as np
import pytest
import torch

from denselayer import cost, nn

LAYERS = [(1, 1), (3, 4), (5, 2), (7, 1), (0, 3), (3, 0)]
every_layer = pytest.mark.parametrize(("in_features", "out_features"), LAYERS)


class Counted:
    """A number that counts the operations made with numbers of its kind."""

    operations = 0

    def __add__(self, other):
        Counted.operations += 1
        return Counted()

    __mul__ = __add__


def count_product(rows, inner, columns):
    """Operations of a matrix product in three loops that add each product to what is there."""
    Counted.operations = 0
    for _ in range(rows * columns):
        total = Counted()
        for _ in range(inner):
            total = total + Counted() * Counted()
    return Counted.operations


@pytest.mark.equation("eq-dense-parameters")
@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
@every_layer
@pytest.mark.parametrize("bias", [True, False])
def test_parameters_are_those_of_a_layer(in_features, out_features, bias):
    expected = cost.linear_parameters(in_features, out_features, bias)
    assert nn.Linear(in_features, out_features, bias).parameter_count() == expected
    theirs = torch.nn.Linear(in_features, out_features, bias=bias, device="meta")
    assert sum(parameter.numel() for parameter in theirs.parameters()) == expected
    assert expected == out_features * (in_features + (1 if bias else 0))


def test_parameters_and_bytes_of_a_known_layer():
    assert cost.linear_parameters(784, 1000) == 785_000
    assert round(cost.nbytes(785_000, np.float32) / 2**20, 1) == 3.0
    assert cost.linear_parameters(8192, 8192, bias=False) == 67_108_864


@pytest.mark.equation("eq-dense-operations")
@every_layer
@pytest.mark.parametrize("batch", [0, 1, 6])
def test_forward_operations_are_those_of_the_loops(batch, in_features, out_features):
    counted = count_product(batch, in_features, out_features)
    assert cost.linear_operations(batch, in_features, out_features) == counted


@pytest.mark.equation("eq-backward-operations")
@every_layer
@pytest.mark.parametrize("batch", [0, 1, 6])
def test_backward_operations_are_those_of_its_two_products(batch, in_features, out_features):
    weight = count_product(out_features, batch, in_features)
    x = count_product(batch, out_features, in_features)
    arguments = batch, in_features, out_features
    assert cost.linear_backward_operations(*arguments) == weight + x
    assert cost.linear_backward_operations(*arguments, input_gradient=False) == weight
    assert weight + x == 2 * cost.linear_operations(*arguments)


@pytest.mark.parametrize("dtype", ["float32", np.float64, np.int8, np.dtype(np.float16)])
def test_bytes_are_those_of_an_array(dtype):
    assert cost.nbytes(12, dtype) == np.zeros(12, dtype).nbytes


def test_counts_are_exact_beyond_64_bits():
    assert cost.linear_operations(10**9, 10**9, 10**9) == 2 * 10**27
    assert cost.linear_operations(np.int32(10**9), np.int32(10**9), np.int32(10**9)) == 2 * 10**27
    assert type(cost.linear_parameters(np.int64(3), np.int64(4))) is int
