"""The three storage layouts hold the same layer: same outputs, same gradients, in all six directions."""

import doctest
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from denselayer import functional, gradcheck, layouts
from denselayer.agreement import ulp_difference

LAYOUTS = layouts.LAYOUTS
X = np.array([2.0, 4.0, 1.0])
WEIGHT = np.array([[0.5, -1.0, 2.0], [-0.25, 0.5, 1.0]])  # two outputs of three inputs: not square
BIAS = np.array([3.0, -1.0])


def test_doctests():
    assert doctest.testmod(layouts).failed == 0


@st.composite
def layers(draw):
    """Small integers in floating point: all sums are exact, so results must be equal to the bit."""
    batch, inputs, outputs = (draw(st.integers(0, 16)) for _ in range(3))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def integers(*shape):
        return rng.integers(-8, 9, shape).astype(dtype)

    bias = integers(outputs) if draw(st.booleans()) else None
    arrays = [integers(batch, inputs), integers(outputs, inputs), bias, integers(batch, outputs)]
    if draw(st.booleans()):
        arrays = [None if array is None else np.asfortranarray(array) for array in arrays]
    for array in arrays:
        if array is not None:
            array.setflags(write=False)
    return arrays


def rows(array, layout):
    """A batch as `layout` takes it, from rows, or back to rows."""
    return array.T if layout == "augmented" else array


@pytest.mark.parametrize(("source", "target"), list(permutations(LAYOUTS, 2)))
@given(layer=layers())
@settings(max_examples=40, deadline=None)
def test_every_conversion_keeps_outputs_and_gradients(source, target, layer):
    x, weight, bias, d_out = layer
    there = layouts.convert(weight, bias, "out_in", source)
    here = layouts.convert(*there, source, target)

    out = layouts.forward(rows(x, source), *there, source)
    np.testing.assert_array_equal(
        rows(layouts.forward(rows(x, target), *here, target), target), rows(out, source)
    )
    before = layouts.backward(rows(d_out, source), rows(x, source), *there, source)
    after = layouts.backward(rows(d_out, target), rows(x, target), *here, target)
    np.testing.assert_array_equal(rows(after.d_x, target), rows(before.d_x, source))
    d_weight, d_bias = layouts.convert(before.d_weight, before.d_bias, source, target)
    if bias is None and target == "augmented":  # its column of zeros has a gradient all the same
        np.testing.assert_array_equal(after.d_weight[:, 1:], d_weight[:, 1:])
    else:
        np.testing.assert_array_equal(after.d_weight, d_weight)
    if after.d_bias is not None:
        np.testing.assert_array_equal(after.d_bias, d_bias)
    for array in (out, *here, after.d_x, after.d_weight):
        assert array is None or array.dtype == x.dtype


@pytest.mark.parametrize(("source", "target"), list(permutations(LAYOUTS, 2)))
@given(layer=layers())
@settings(max_examples=20, deadline=None)
def test_there_and_back_is_the_same_layer(source, target, layer):
    _, weight, bias, _ = layer
    there = layouts.convert(weight, bias, "out_in", source)
    back = layouts.convert(*layouts.convert(*there, source, target), target, source)
    np.testing.assert_array_equal(back[0], there[0])
    if bias is not None and source != "augmented":
        np.testing.assert_array_equal(back[1], there[1])


@pytest.mark.equation("eq-dense-in-out")
@given(layer=layers())
@settings(max_examples=40, deadline=None)
def test_in_out_forward_is_the_plain_loop(layer):
    x, weight, bias, _ = layer
    stored, stored_bias = layouts.convert(weight, bias, "out_in", "in_out")
    out = layouts.forward(x, stored, stored_bias, "in_out")
    assert out.shape == (len(x), len(weight))
    for n, i in product(range(len(x)), range(len(weight))):
        expected = sum(x[n, j] * stored[j, i] for j in range(x.shape[1]))
        assert out[n, i] == expected + (0 if bias is None else bias[i])


@pytest.mark.equation("eq-dense-augmented")
@given(layer=layers())
@settings(max_examples=40, deadline=None)
def test_augmented_forward_is_the_plain_loop_over_columns(layer):
    x, weight, bias, _ = layer
    stored, none = layouts.convert(weight, bias, "out_in", "augmented")
    assert none is None
    out = layouts.forward(x.T, stored, None, "augmented")
    assert out.shape == (len(weight), len(x))
    for i, n in product(range(len(weight)), range(len(x))):
        column = [1.0, *x[n]]
        assert out[i, n] == sum(stored[i, j] * column[j] for j in range(len(column)))


@pytest.mark.equation("eq-neuron-augmented")
def test_a_one_in_front_turns_the_bias_into_a_weight():
    for weight, bias in zip(WEIGHT, BIAS, strict=True):
        augmented = np.array([bias, *weight])
        assert augmented @ layouts.augment(X) == functional.neuron(X, weight, float(bias))
    np.testing.assert_array_equal(layouts.augment(X), [1.0, 2.0, 4.0, 1.0])


def test_augment_puts_the_ones_along_the_axis_of_the_inputs():
    batch = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(layouts.augment(batch), [[1, 1, 1], [0, 1, 2], [3, 4, 5]])
    np.testing.assert_array_equal(layouts.augment(batch, axis=-1), [[1, 0, 1, 2], [1, 3, 4, 5]])
    assert layouts.augment(batch).dtype == np.float32


@pytest.mark.parametrize("layout", LAYOUTS)
def test_w_ij_leads_from_input_j_to_output_i(layout):
    """Indices are told apart by a layer with two outputs and three inputs: a swap does not go unnoticed."""
    for i, j in product(range(2), range(3)):
        weight = np.zeros((2, 3))
        weight[i, j] = 7.0
        stored, bias = layouts.convert(weight, np.zeros(2), "out_in", layout)
        position = {"out_in": (i, j), "in_out": (j, i), "augmented": (i, 1 + j)}[layout]
        assert stored[position] == 7.0
        assert np.count_nonzero(stored) == 1
        x = np.zeros(3)
        x[j] = 1.0
        out = layouts.forward(x, stored, bias, layout)
        assert out.shape == (2,)
        assert out[i] == 7.0
        assert np.count_nonzero(out) == 1


@pytest.mark.equation("eq-backward-in-out")
def test_in_out_gradients_of_the_worked_example():
    x, weight, d_out = np.array([[1.0, 2.0]]), np.array([[1.0], [-1.0]]), np.array([[3.0]])
    d_x, d_weight, d_bias = layouts.backward(d_out, x, weight, np.zeros(1), "in_out")
    np.testing.assert_array_equal(d_weight, [[3.0], [6.0]])
    np.testing.assert_array_equal(d_bias, [3.0])
    np.testing.assert_array_equal(d_x, [[3.0, -3.0]])


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize(
    "layout",
    [
        pytest.param("out_in"),
        pytest.param("in_out", marks=pytest.mark.equation("eq-backward-in-out")),
        pytest.param("augmented", marks=pytest.mark.equation("eq-backward-column")),
    ],
)
def test_gradients_are_the_measured_slopes(layout, batch):
    rng = np.random.default_rng(5)
    weight, bias = layouts.convert(rng.normal(size=(2, 3)), rng.normal(size=2), "out_in", layout)
    x, d_out = rows(rng.normal(size=(batch, 3)), layout), rows(rng.normal(size=(batch, 2)), layout)
    arrays = {"x": x, "weight": weight} | ({} if bias is None else {"bias": bias})

    def loss(arrays):
        out = layouts.forward(arrays["x"], arrays["weight"], arrays.get("bias"), layout)
        return float((out * d_out).sum())

    d_x, d_weight, d_bias = layouts.backward(d_out, x, weight, bias, layout)
    grads = {"x": d_x, "weight": d_weight} | ({} if bias is None else {"bias": d_bias})
    report = gradcheck.check_gradients(loss, arrays, grads)
    assert report.ok, report
    assert len(report.entries) == x.size + weight.size + (0 if bias is None else 2)


@pytest.mark.equation("eq-backward-column")
def test_the_column_form_is_an_outer_product_and_sums_to_the_batch_form():
    rng = np.random.default_rng(6)
    weight = rng.normal(size=(2, 4))
    x, d_out = rng.normal(size=(3, 5)), rng.normal(size=(2, 5))
    total = np.zeros_like(weight)
    for n in range(5):
        one = layouts.backward(d_out[:, n], x[:, n], weight, None, "augmented")
        np.testing.assert_array_equal(one.d_weight, np.outer(d_out[:, n], [1.0, *x[:, n]]))
        np.testing.assert_array_equal(one.d_weight[:, 0], d_out[:, n])
        total += one.d_weight
    batch = layouts.backward(d_out, x, weight, None, "augmented")
    assert ulp_difference(batch.d_weight, total, scale="max").max() <= 8


@pytest.mark.parametrize("layout", LAYOUTS)
def test_one_input_is_a_vector_in_every_layout(layout):
    weight, bias = layouts.convert(WEIGHT, BIAS, "out_in", layout)
    np.testing.assert_array_equal(layouts.forward(X, weight, bias, layout), [2.0, 1.5])
    d_x, d_weight, _ = layouts.backward(np.array([1.0, -2.0]), X, weight, bias, layout)
    np.testing.assert_array_equal(d_x, [1.0, -2.0, 0.0])
    assert d_weight.shape == weight.shape


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(0, 3, 2), (4, 0, 2), (4, 3, 0), (0, 0, 0)])
def test_empty_batches_and_zero_widths(layout, shape):
    batch, inputs, outputs = shape
    weight, bias = layouts.convert(np.ones((outputs, inputs)), np.ones(outputs), "out_in", layout)
    x, d_out = rows(np.ones((batch, inputs)), layout), rows(np.ones((batch, outputs)), layout)
    np.testing.assert_array_equal(
        rows(layouts.forward(x, weight, bias, layout), layout), np.full((batch, outputs), 1.0 + inputs)
    )
    gradients = layouts.backward(d_out, x, weight, bias, layout)
    assert gradients.d_x.shape == x.shape
    assert (gradients.d_x == outputs).all()
    assert gradients.d_weight.shape == weight.shape
    assert (gradients.d_weight == batch).all()
    one = layouts.backward(np.ones(outputs), np.ones(inputs), weight, bias, layout)
    assert one.d_x.shape == (inputs,)
    assert one.d_weight.shape == weight.shape


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layer_without_bias(layout):
    weight, bias = layouts.convert(WEIGHT, None, "out_in", layout)
    assert bias is None
    np.testing.assert_array_equal(layouts.forward(X, weight, bias, layout), WEIGHT @ X)
    assert layouts.backward(BIAS, X, weight, bias, layout).d_bias is None
    if layout == "augmented":
        np.testing.assert_array_equal(weight[:, 0], 0.0)
        np.testing.assert_array_equal(layouts.convert(weight, None, layout, "out_in")[1], [0.0, 0.0])


@pytest.mark.parametrize(("source", "target"), list(product(LAYOUTS, LAYOUTS)))
def test_converted_arrays_share_no_memory(source, target):
    there = layouts.convert(WEIGHT, BIAS, "out_in", source)
    for new in layouts.convert(*there, source, target):
        if new is not None:
            assert not any(old is not None and np.shares_memory(new, old) for old in there)
            assert new.flags.c_contiguous
            assert new.flags.writeable


COLUMNS = np.ones((3, 4))
AUGMENTED = np.ones((2, 4))
WRONG = {
    "unknown layout": (
        lambda: layouts.forward(X, WEIGHT, BIAS, "keras"),
        ValueError,
        ["'keras'", "'out_in'", "'in_out'", "'augmented'"],
    ),
    "unknown target": (
        lambda: layouts.convert(WEIGHT, BIAS, "out_in", 3),
        ValueError,
        ["target", "3", "'in_out'"],
    ),
    "weight of the other layout": (
        lambda: layouts.forward(X, WEIGHT, BIAS, "in_out"),
        ValueError,
        ["(2,)", "(2, 3)", "(3,)", "pass 'out_in'"],
    ),
    "bias of the wrong length": (
        lambda: layouts.convert(WEIGHT, np.ones(5), "out_in", "in_out"),
        ValueError,
        ["(5,)", "(2,)", "one bias per output"],
    ),
    "bias as a column": (
        lambda: layouts.convert(WEIGHT, BIAS[:, None], "out_in", "in_out"),
        ValueError,
        ["bias has shape (2, 1)", "(out,)"],
    ),
    "rows where columns belong": (
        lambda: layouts.forward(COLUMNS.T, AUGMENTED, None, "augmented"),
        ValueError,
        ["(4, 3)", "(3, N)", "Pass x.T"],
    ),
    "columns where rows belong": (
        lambda: layouts.forward(COLUMNS, WEIGHT, BIAS, "out_in"),
        ValueError,
        ["(3, 4)", "(N, 3)", "Pass x.T"],
    ),
    "wrong width": (
        lambda: layouts.forward(np.ones((4, 5)), WEIGHT, BIAS, "out_in"),
        ValueError,
        ["(4, 5)", "(2, 3)", "(N, 3)", "check the layout"],
    ),
    "x of rank 3": (
        lambda: layouts.forward(np.ones((1, 2, 3)), WEIGHT, BIAS, "out_in"),
        ValueError,
        ["x has shape (1, 2, 3)", "(N, in)"],
    ),
    "weight of rank 1": (
        lambda: layouts.forward(X, X, None, "out_in"),
        ValueError,
        ["weight has shape (3,)", "(out, in)"],
    ),
    "bias beside an augmented weight": (
        lambda: layouts.forward(COLUMNS, AUGMENTED, BIAS, "augmented"),
        ValueError,
        ["column 0", "Pass None"],
    ),
    "augmented weight without column 0": (
        lambda: layouts.convert(np.ones((2, 0)), None, "augmented", "out_in"),
        ValueError,
        ["(2, 0)", "(out, 1 + in)"],
    ),
    "d_out turned": (
        lambda: layouts.backward(np.ones((4, 2)), COLUMNS, AUGMENTED, None, "augmented"),
        ValueError,
        ["d_out has shape (4, 2)", "(2, 4)"],
    ),
    "d_out of the input's shape": (
        lambda: layouts.backward(np.ones(3), X, WEIGHT, BIAS, "out_in"),
        ValueError,
        ["d_out has shape (3,)", "(2,)"],
    ),
    "list": (
        lambda: layouts.forward([2.0, 4.0, 1.0], WEIGHT, BIAS, "out_in"),
        TypeError,
        ["x is a list", "np.asarray"],
    ),
    "integers": (
        lambda: layouts.convert(np.ones((2, 3), int), None, "out_in", "in_out"),
        TypeError,
        ["int64", "float32"],
    ),
    "float16": (lambda: layouts.augment(X.astype(np.float16)), TypeError, ["float16", "float32 or float64"]),
    "two dtypes": (
        lambda: layouts.forward(X.astype(np.float32), WEIGHT.T, BIAS, "in_out"),
        TypeError,
        ["float32", "float64"],
    ),
    "bias of another dtype": (
        lambda: layouts.convert(WEIGHT, BIAS.astype(np.float32), "out_in", "augmented"),
        TypeError,
        ["bias has dtype float32", "astype"],
    ),
    "d_out of another dtype": (
        lambda: layouts.backward(BIAS.astype(np.float32), X, WEIGHT.T, BIAS, "in_out"),
        TypeError,
        ["d_out has dtype float32"],
    ),
    "augment along no axis": (
        lambda: layouts.augment(X, axis=1),
        ValueError,
        ["axis is 1", "(3,)", "axis=-1"],
    ),
    "augment a matrix of matrices": (
        lambda: layouts.augment(np.ones((2, 2, 2))),
        ValueError,
        ["(2, 2, 2)", "(in, N)"],
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_is_told_what_came_what_was_expected_and_what_to_do(case):
    call, error, words = WRONG[case]
    with pytest.raises(error) as caught:
        call()
    for word in words:
        assert word in str(caught.value)
