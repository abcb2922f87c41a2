"""Between two layers: collapse and rank, the activations' formulas, softmax, and the scale of a signal."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from denselayer import compose, nn
from denselayer import functional as F
from tests.denselayer.oracle import FLOATS, dtypes, error, laid_out, layouts, seeds, slopes, tensor

every_dtype = pytest.mark.parametrize("dtype", FLOATS, ids=["float32", "float64"])
widths = st.integers(0, 12)
Z = np.concatenate([np.linspace(-6, 6, 121), [0.0, 1e-9, -1e-9, 30.0, -30.0]])


def integers(rng, *shape, dtype=np.float64):
    """Small whole numbers: all sums are exact, so results must be equal to the bit."""
    return rng.integers(-8, 9, shape).astype(dtype)


# the collapse


@pytest.mark.equation("eq-between-collapse")
@settings(max_examples=100, deadline=None)
@given(
    sizes=st.tuples(widths, widths, widths, widths),
    dtype=dtypes,
    seed=seeds,
    layout=layouts,
    biases=st.tuples(st.booleans(), st.booleans()),
)
def test_one_layer_does_what_two_in_a_row_do(sizes, dtype, seed, layout, biases):
    batch, n_in, hidden, n_out = sizes
    rng = np.random.default_rng(seed)
    x = integers(rng, batch, n_in, dtype=dtype)
    weight1 = laid_out(integers(rng, hidden, n_in, dtype=dtype), layout)
    weight2 = laid_out(integers(rng, n_out, hidden, dtype=dtype), layout)
    bias1 = integers(rng, hidden, dtype=dtype) if biases[0] else None
    bias2 = integers(rng, n_out, dtype=dtype) if biases[1] else None
    kept = [None if array is None else array.copy() for array in (weight1, bias1, weight2, bias2)]

    weight, bias = compose.collapse(weight1, bias1, weight2, bias2)

    two = F.linear(F.linear(x, weight1, bias1), weight2, bias2)
    np.testing.assert_array_equal(F.linear(x, weight, bias), two)
    assert weight.shape == (n_out, n_in)
    assert weight.dtype == dtype
    assert (bias is None) is (biases == (False, False))
    for before, now in zip(kept, (weight1, bias1, weight2, bias2), strict=True):
        np.testing.assert_array_equal(now, before)
    for made in (weight, bias):
        for given_array in (weight1, bias1, weight2, bias2):
            assert made is None or given_array is None or not np.shares_memory(made, given_array)


@pytest.mark.equation("eq-between-collapse")
def test_the_collapse_is_the_sum_over_the_hidden_units_in_exact_arithmetic():
    rng = np.random.default_rng(0)
    w1, b1, w2, b2 = (integers(rng, *shape) / 4 for shape in [(4, 3), (4,), (2, 4), (2,)])
    weight, bias = compose.collapse(w1, b1, w2, b2)
    for i in range(2):
        for j in range(3):
            assert weight[i, j] == sum(Fraction(w2[i, k]) * Fraction(w1[k, j]) for k in range(4))
        assert bias[i] == sum(Fraction(w2[i, k]) * Fraction(b1[k]) for k in range(4)) + Fraction(b2[i])


@pytest.mark.equation("eq-between-collapse")
@every_dtype
def test_pytorch_s_two_layers_agree_with_the_collapsed_one(dtype):
    rng = np.random.default_rng(1)
    shapes = [(7, 5), (9, 5), (9,), (4, 9), (4,)]
    x, w1, b1, w2, b2 = (rng.standard_normal(shape).astype(dtype) for shape in shapes)
    linear = torch.nn.functional.linear
    expected = linear(linear(*map(tensor, (x, w1, b1))), *map(tensor, (w2, b2))).numpy()
    assert error(F.linear(x, *compose.collapse(w1, b1, w2, b2)), expected) <= 5 + 9 + 2


def test_the_running_example_collapses_to_one_neuron():
    weight1 = np.array([[0.5, -1.0, 2.0], [-0.25, 0.5, 1.0], [1.0, 0.25, -0.5]])
    weight, bias = compose.collapse(
        weight1, np.array([3.0, -1.0, -4.0]), np.array([[0.6, -0.4, 1.2]]), np.array([-0.2])
    )
    np.testing.assert_allclose(weight, [[1.6, -0.5, 0.2]], rtol=1e-15)
    np.testing.assert_allclose(bias, [-2.8], rtol=1e-15)


@pytest.mark.equation("eq-between-rank")
@settings(max_examples=100, deadline=None)
@given(sizes=st.tuples(*[st.integers(1, 9)] * 3), seed=seeds)
def test_the_rank_of_the_collapsed_weight_is_at_most_the_narrowest_width(sizes, seed):
    n_in, hidden, n_out = sizes
    rng = np.random.default_rng(seed)
    weight, _ = compose.collapse(integers(rng, hidden, n_in), None, integers(rng, n_out, hidden), None)
    assert exact_rank(weight) <= min(sizes)


@pytest.mark.equation("eq-between-rank")
@pytest.mark.parametrize("sizes", [(5, 2, 7), (5, 9, 7), (3, 8, 2), (1, 1, 1)])
def test_weights_in_general_position_reach_that_rank(sizes):
    n_in, hidden, n_out = sizes
    rng = np.random.default_rng(2)
    weight, _ = compose.collapse(integers(rng, hidden, n_in), None, integers(rng, n_out, hidden), None)
    assert exact_rank(weight) == min(sizes)


def exact_rank(matrix):
    """Number of pivots of a Gaussian elimination in fractions: no tolerance."""
    rows = [[Fraction(value) for value in row] for row in matrix.tolist()]
    rank = 0
    for column in range(matrix.shape[1]):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for i in range(rank + 1, len(rows)):
            factor = rows[i][column] / rows[rank][column]
            rows[i] = [a - factor * b for a, b in zip(rows[i], rows[rank], strict=True)]
        rank += 1
    return rank


W1, B1, W2, B2 = np.ones((4, 3)), np.ones(4), np.ones((2, 4)), np.ones(2)


@pytest.mark.parametrize(
    ("arguments", "kind", "came", "advice"),
    [
        ((W2, B2, W1, B1), ValueError, "weight2 has shape (4, 3), but weight1", "Swap or check"),
        ((W1, B1, W2.T, B1), ValueError, "weight2 has shape (4, 2)", "pass weight2.T"),
        ((W1[0], None, W2, B2), ValueError, "weight1 has shape (3,)", "weight1[None, :]"),
        ((W1, None, W2[0], None), ValueError, "weight2 has shape (4,)", "weight2[None, :]"),
        ((W1, np.ones(3), W2, B2), ValueError, "bias1 has shape (3,)", "one entry for each row of weight1"),
        ((W1, B1, W2, np.ones((1, 2))), ValueError, "bias2 has shape (1, 2)", "or None"),
        ((W1.tolist(), B1, W2, B2), TypeError, "weight1 is a list", "np.asarray(weight1"),
        ((W1, B1, W2.astype(np.float32), None), TypeError, "weight2 has dtype float32", "weight2.astype"),
        ((W1, B1.astype(np.float32), W2, B2), TypeError, "bias1 has dtype float32", "bias1.astype"),
        ((W1, B1, W2, 1.0), TypeError, "bias2 is a float", "np.asarray(bias2"),
    ],
)
def test_layers_that_do_not_fit_are_refused_with_advice(arguments, kind, came, advice):
    with pytest.raises(kind) as caught:
        compose.collapse(*arguments)
    assert str(caught.value).startswith("collapse: ")
    assert came in str(caught.value)
    assert advice in str(caught.value)


# the formulas of the activations, typed again with the standard library


def logistic(z):
    return 1 / (1 + math.exp(-z))


def normal_cdf(z):
    return math.erfc(-z / math.sqrt(2)) / 2


def normal_pdf(z):
    return math.exp(-z * z / 2) / math.sqrt(2 * math.pi)


def gelu_tanh_slope(z):
    root = math.sqrt(2 / math.pi)
    inner = root * (z + 0.044715 * z**3)
    steep = math.cosh(inner) ** -2 if abs(inner) < 300 else 0.0  # 1 - tanh(inner)**2
    return (1 + math.tanh(inner)) / 2 + z / 2 * steep * root * (1 + 3 * 0.044715 * z**2)


@pytest.mark.parametrize(
    ("name", "expected", "options"),
    [
        pytest.param(
            "leaky_relu",
            lambda z: z if z > 0 else 0.01 * z,
            {},
            marks=pytest.mark.equation("eq-leaky-relu"),
        ),
        pytest.param("sigmoid", logistic, {}, marks=pytest.mark.equation("eq-sigmoid")),
        pytest.param(
            "tanh",
            lambda z: (math.exp(z) - math.exp(-z)) / (math.exp(z) + math.exp(-z)),
            {},
            marks=pytest.mark.equation("eq-tanh"),
        ),
        pytest.param(
            "softplus",
            lambda z: math.log(1 + math.exp(z)),
            {"threshold": 50.0},
            marks=pytest.mark.equation("eq-softplus"),
        ),
        pytest.param("silu", lambda z: z * logistic(z), {}, marks=pytest.mark.equation("eq-silu")),
        pytest.param("gelu", lambda z: z * normal_cdf(z), {}, marks=pytest.mark.equation("eq-gelu")),
        pytest.param(
            "gelu",
            lambda z: z / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3))),
            {"approximate": "tanh"},
            marks=pytest.mark.equation("eq-gelu-tanh"),
        ),
    ],
)
def test_an_activation_is_its_formula(name, expected, options):
    values = getattr(F, name)(Z, **options)
    np.testing.assert_allclose(values, [expected(z) for z in Z.tolist()], rtol=2e-13, atol=2e-15)


@pytest.mark.parametrize(
    ("name", "slope", "options"),
    [
        pytest.param(
            "sigmoid",
            lambda z: logistic(z) * (1 - logistic(z)),
            {},
            marks=pytest.mark.equation("eq-sigmoid-slope"),
        ),
        pytest.param(
            "tanh", lambda z: 1 - math.tanh(z) ** 2, {}, marks=pytest.mark.equation("eq-tanh-slope")
        ),
        pytest.param(
            "softplus", logistic, {"threshold": 50.0}, marks=pytest.mark.equation("eq-softplus-slope")
        ),
        pytest.param(
            "silu",
            lambda z: logistic(z) + z * logistic(z) * (1 - logistic(z)),
            {},
            marks=pytest.mark.equation("eq-silu-slope"),
        ),
        pytest.param(
            "gelu",
            lambda z: normal_cdf(z) + z * normal_pdf(z),
            {},
            marks=pytest.mark.equation("eq-gelu-slope"),
        ),
        pytest.param(
            "gelu",
            gelu_tanh_slope,
            {"approximate": "tanh"},
            marks=pytest.mark.equation("eq-gelu-tanh-slope"),
        ),
    ],
)
def test_a_slope_is_its_formula_and_the_slope_of_the_values(name, slope, options):
    found = getattr(F, f"{name}_backward")(np.ones_like(Z), Z, **options)
    np.testing.assert_allclose(found, [slope(z) for z in Z.tolist()], rtol=1e-13, atol=1e-15)
    numeric = slopes(lambda z: getattr(F, name)(z, **options).sum(), Z[:-2])
    np.testing.assert_allclose(found[:-2], numeric, rtol=1e-8, atol=1e-8)


ACTIVATIONS = ["identity", "relu", "leaky_relu", "sigmoid", "tanh", "gelu", "silu", "softplus"]


@pytest.mark.equation("eq-activation-backward")
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_jacobian_of_a_pointwise_activation_is_diagonal_and_its_backward_pass_multiplies_by_the_slope(
    name,
):
    forward, backward = getattr(F, name), getattr(F, f"{name}_backward")
    rng = np.random.default_rng(3)
    z, d_a = rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
    jacobian = np.stack([slopes(lambda v, k=k: forward(v).ravel()[k], z).ravel() for k in range(6)])
    np.testing.assert_array_equal(jacobian - np.diag(np.diag(jacobian)), 0)
    np.testing.assert_allclose(backward(d_a, z).ravel(), d_a.ravel() @ jacobian, rtol=1e-8)
    np.testing.assert_array_equal(backward(d_a, z), d_a * backward(np.ones_like(z), z))


@pytest.mark.equation("eq-softmax")
def test_softmax_is_the_share_of_each_exponential():
    logits = np.random.default_rng(4).normal(size=(5, 4)) * 3
    for row, found in zip(logits.tolist(), F.softmax(logits), strict=True):
        total = math.fsum(math.exp(s) for s in row)
        np.testing.assert_allclose(found, [math.exp(s) / total for s in row], rtol=1e-14)


@pytest.mark.equation("eq-softmax-jacobian")
def test_every_output_of_softmax_depends_on_every_logit():
    logits = np.random.default_rng(5).normal(size=4)
    numeric = np.stack([slopes(lambda s, i=i: F.softmax(s)[i], logits) for i in range(4)])
    p = F.softmax(logits)
    formula = [[p[i] * ((i == j) - p[j]) for j in range(4)] for i in range(4)]
    np.testing.assert_allclose(numeric, formula, rtol=1e-8)
    assert np.all(numeric != 0)


# the scale of a signal


def over_all_signs(shape, scale):
    """Every weight with entries plus or minus ``scale``: a mean over them is exact, nothing is sampled."""
    for signs in product([-1.0, 1.0], repeat=math.prod(shape)):
        yield scale * np.reshape(signs, shape)


@pytest.mark.equation("eq-init-forward")
def test_the_mean_square_going_forward_is_multiplied_by_the_inputs_and_the_variance():
    x, scale = np.array([[2.0, 4.0, 1.0, -3.0]]), 0.75
    squares = [np.mean(F.linear(x, weight) ** 2) for weight in over_all_signs((2, 4), scale)]
    assert np.mean(squares) == pytest.approx(4 * scale**2 * np.mean(x**2), rel=1e-14)


@pytest.mark.equation("eq-init-backward")
def test_the_mean_square_going_backward_is_multiplied_by_the_outputs_and_the_variance():
    x, d_out, scale = np.ones((1, 2)), np.array([[2.0, -1.0, 0.5, 3.0]]), 0.75
    squares = [
        np.mean(F.linear_backward(d_out, x, weight).d_x ** 2) for weight in over_all_signs((4, 2), scale)
    ]
    assert np.mean(squares) == pytest.approx(4 * scale**2 * np.mean(d_out**2), rel=1e-14)


@pytest.mark.equation("eq-init-he")
def test_variance_two_over_the_inputs_keeps_the_mean_square_behind_a_relu():
    x = np.array([[2.0, 4.0, 1.5, -3.0]])  # no sum of these with signs is 0
    scale = math.sqrt(2 / 4)
    squares = [np.mean(F.relu(F.linear(x, weight)) ** 2) for weight in over_all_signs((2, 4), scale)]
    assert np.mean(squares) == pytest.approx(np.mean(x**2), rel=1e-14)


def filled(fill, shape, seed=0):
    param = nn.Parameter(np.zeros(shape))
    fill(param, seed)
    return param.data


@pytest.mark.equation("eq-init-he")
@pytest.mark.parametrize("shape", [(400, 50), (50, 400)])
def test_he_draws_a_normal_with_that_variance(shape):
    """Mean square and fourth moment of 20,000 normal numbers, each within five standard deviations."""
    normalised = filled(nn.he_, shape) / math.sqrt(2 / shape[1])
    n = normalised.size
    assert np.mean(normalised) == pytest.approx(0, abs=5 / math.sqrt(n))
    assert np.mean(normalised**2) == pytest.approx(1, abs=5 * math.sqrt(2 / n))
    assert np.mean(normalised**4) == pytest.approx(3, abs=5 * math.sqrt(96 / n))


@pytest.mark.equation("eq-init-xavier")
@pytest.mark.parametrize("shape", [(400, 50), (50, 400), (100, 100)])
def test_xavier_draws_evenly_with_variance_two_over_inputs_and_outputs(shape):
    weight, variance = filled(nn.xavier_, shape), 2 / sum(shape)
    bound, n = math.sqrt(6 / sum(shape)), weight.size
    assert np.abs(weight).max() <= bound
    assert np.abs(weight).max() > 0.99 * bound
    assert np.mean(weight**2) == pytest.approx(variance, abs=5 * variance * math.sqrt(0.8 / n))
    assert bound**2 / 3 == pytest.approx(variance, rel=1e-14), "the variance of an even distribution"
    between = 1 / shape[1], 1 / shape[0]
    assert min(between) <= variance <= max(between)


# what is dead, and what stays equal


def gradients(activation, weight, bias, x, d_out):
    layer, gate = nn.Linear.from_arrays(weight, bias), activation()
    gate(layer(x))
    layer.backward(gate.backward(d_out))
    return layer.weight.grad, layer.bias.grad


@pytest.mark.parametrize("activation", [nn.Identity, nn.LeakyReLU, nn.Tanh, nn.Sigmoid, nn.GELU, nn.SiLU])
def test_a_row_of_zeros_learns_behind_every_activation_with_a_slope_at_zero(activation):
    rng = np.random.default_rng(6)
    weight, bias = rng.normal(size=(3, 4)), rng.normal(size=3)
    weight[1], bias[1] = 0.0, 0.0
    d_weight, d_bias = gradients(activation, weight, bias, rng.normal(size=(5, 4)), rng.normal(size=(5, 3)))
    assert np.all(d_weight[1] != 0)
    assert d_bias[1] != 0


@pytest.mark.parametrize(("bias_of_the_row", "learns"), [(-0.5, False), (0.0, False), (0.5, True)])
def test_a_row_of_zeros_behind_a_relu_learns_only_if_its_bias_opens_the_gate(bias_of_the_row, learns):
    rng = np.random.default_rng(7)
    weight, bias = rng.normal(size=(3, 4)), rng.normal(size=3)
    weight[1], bias[1] = 0.0, bias_of_the_row
    d_weight, d_bias = gradients(nn.ReLU, weight, bias, rng.normal(size=(5, 4)), rng.normal(size=(5, 3)))
    assert np.any(d_weight[1] != 0) == learns
    assert (d_bias[1] != 0) == learns


@pytest.mark.parametrize("activation", [nn.ReLU, nn.Tanh, nn.GELU])
def test_equal_hidden_units_get_equal_gradients(activation):
    rng = np.random.default_rng(8)
    net = nn.Sequential(
        nn.Linear.from_arrays(np.tile(rng.normal(size=(1, 3)), (4, 1)), np.full(4, 0.3)),
        activation(),
        nn.Linear.from_arrays(np.full((2, 4), 0.5), np.zeros(2)),
    )
    criterion = nn.MSELoss()
    criterion(net(rng.normal(size=(6, 3))), rng.normal(size=(6, 2)))
    net.backward(criterion.backward())
    lower, upper = net[0].weight.grad, net[2].weight.grad
    np.testing.assert_allclose(lower, np.tile(lower[:1], (4, 1)), rtol=1e-13)
    np.testing.assert_allclose(upper, np.tile(upper[:, :1], (1, 4)), rtol=1e-13)
    assert np.all(lower != 0)
