# ruff: noqa: E501 (one row, one line)
"""Bad input: the error says what came, what was expected and what to do, or the answer is PyTorch's."""

import numpy as np
import pytest
import torch

from denselayer import cost, nn, optim
from denselayer import functional as F

X = np.ones((5, 3))
WEIGHT = np.ones((4, 3))
BIAS = np.ones(4)
D_OUT = np.ones((5, 4))
Z = np.ones((2, 3))
LOGITS = np.ones((2, 3))
MASKED = np.ma.masked_array(X, mask=X > 2)
OBJECTS = np.array([[1.0, None, 3.0]])
SINGLE = np.float32


def parameter(*shape):
    return nn.Parameter(np.ones(shape))


TABLE = [
    # the layer: wrong types
    ("list", lambda: F.linear([[1.0, 2.0, 3.0]], WEIGHT), TypeError, "x is a list", "dtype=float"),
    ("tuple", lambda: F.linear((1.0, 2.0), WEIGHT), TypeError, "x is a tuple", "np.asarray(x, dtype=float)"),
    ("None", lambda: F.linear(None, WEIGHT), TypeError, "x is None", "pass an array"),
    ("string", lambda: F.linear("abc", WEIGHT), TypeError, "x is a str", "float32 or float64"),
    ("float", lambda: F.linear(3.0, WEIGHT), TypeError, "x is a float", "np.asarray(x, dtype=float)"),
    ("int", lambda: F.linear(3, WEIGHT), TypeError, "x is an int", "np.asarray(x, dtype=float)"),
    ("weight-list", lambda: F.linear(X, WEIGHT.tolist()), TypeError, "weight is a list", "weight, dtype=float"),
    ("bias-list", lambda: F.linear(X, WEIGHT, [1.0] * 4), TypeError, "bias is a list", "bias, dtype=float"),
    ("bias-number", lambda: F.linear(X, WEIGHT, 1.0), TypeError, "bias is a float", "np.asarray(bias"),
    ("masked", lambda: F.linear(MASKED, WEIGHT), TypeError, "MaskedArray", "x.filled(0.0)"),
    ("matrix", lambda: F.linear(X.view(np.matrix), WEIGHT), TypeError, "x is a numpy.matrix", "np.asarray(x"),
    ("tensor", lambda: F.linear(torch.ones(5, 3), WEIGHT), TypeError, "torch.Tensor", "x.detach().numpy()"),
    ("parameter", lambda: F.linear(X, parameter(4, 3)), TypeError, "Parameter; expected", "weight.data"),
    # the layer: wrong dtypes
    ("ints", lambda: F.linear(X.astype(int), WEIGHT), TypeError, "dtype int64", "np.asarray(x, dtype=float)"),
    ("bool", lambda: F.linear(X > 0, WEIGHT), TypeError, "dtype bool", "np.asarray(x, dtype=float)"),
    ("object", lambda: F.linear(OBJECTS, WEIGHT), TypeError, "dtype object", "np.asarray(x, dtype=float)"),
    ("float16", lambda: F.linear(X.astype(np.float16), WEIGHT), TypeError, "float16", "x.astype(np.float32)"),
    ("complex", lambda: F.linear(X + 1j, WEIGHT), TypeError, "dtype complex128", "x.real"),
    ("strings", lambda: F.linear(X.astype(str), WEIGHT), TypeError, "dtype <U", "np.asarray(x, dtype=float)"),
    ("dates", lambda: F.linear(X.astype("M8[s]"), WEIGHT), TypeError, "datetime64", "float32 or float64"),
    ("big-endian", lambda: F.linear(X.astype(">f8"), WEIGHT), TypeError, "dtype >f8", "foreign order"),
    ("mixed", lambda: F.linear(X.astype(SINGLE), WEIGHT), TypeError, "float64, but x has dtype float32", "weight.astype"),
    ("mixed-bias", lambda: F.linear(X, WEIGHT, BIAS.astype(SINGLE)), TypeError, "bias has dtype float32", "bias.astype"),
    ("mixed-d_out", lambda: F.linear_backward(D_OUT.astype(SINGLE), X, WEIGHT), TypeError, "d_out has dtype", "d_out.astype"),
    # the layer: wrong shapes
    ("width", lambda: F.linear(np.ones((5, 2)), WEIGHT), ValueError, "x has shape (5, 2)", "(N, 3)"),
    ("transposed", lambda: F.linear(X, WEIGHT.T), ValueError, "weight has shape (3, 4)", "weight.T"),
    ("scalar-x", lambda: F.linear(np.array(1.0), WEIGHT), ValueError, "x has shape ()", "(3,) or (N, 3)"),
    ("weight-rank-1", lambda: F.linear(X, np.ones(3)), ValueError, "weight has shape (3,)", "weight[None, :]"),
    ("weight-rank-3", lambda: F.linear(X, np.ones((1, 4, 3))), ValueError, "(1, 4, 3)", "(out_features, in_features)"),
    ("bias-length", lambda: F.linear(X, WEIGHT, np.ones(3)), ValueError, "bias has shape (3,)", "(4,)"),
    ("bias-one", lambda: F.linear(X, WEIGHT, np.ones(1)), ValueError, "bias has shape (1,)", "(4,)"),
    ("bias-rank-2", lambda: F.linear(X, WEIGHT, np.ones((1, 4))), ValueError, "bias has shape (1, 4)", "(4,)"),
    ("bias-per-row", lambda: F.linear(X, WEIGHT, np.ones((5, 4))), ValueError, "bias has shape (5, 4)", "(4,)"),
    ("d_out-width", lambda: F.linear_backward(np.ones((5, 3)), X, WEIGHT), ValueError, "d_out has shape (5, 3)", "(5, 4)"),
    ("d_out-batch", lambda: F.linear_backward(np.ones((6, 4)), X, WEIGHT), ValueError, "d_out has shape (6, 4)", "(5, 4)"),
    ("d_out-transposed", lambda: F.linear_backward(D_OUT.T, X, WEIGHT), ValueError, "d_out has shape (4, 5)", "(5, 4)"),
    ("d_out-none", lambda: F.linear_backward(None, X, WEIGHT), TypeError, "d_out is None", "pass an array"),
    # the neuron
    ("neuron-width", lambda: F.neuron(X, np.ones(2)), ValueError, "x has shape (5, 3)", "(N, 2)"),
    ("neuron-matrix", lambda: F.neuron(X, WEIGHT), ValueError, "weight has shape (4, 3)", "use linear"),
    ("neuron-rank", lambda: F.neuron(np.ones((2, 5, 3)), np.ones(3)), ValueError, "(2, 5, 3)", "(3,) or (N, 3)"),
    ("neuron-bias", lambda: F.neuron(X, np.ones(3), np.ones(1)), ValueError, "bias has shape (1,)", "bias[0]"),
    ("neuron-bias-bool", lambda: F.neuron(X, np.ones(3), True), TypeError, "bias is a bool", "float32 or float64"),
    ("neuron-mixed", lambda: F.neuron(X, np.ones(3), SINGLE(1)), TypeError, "bias has dtype float32", "bias.astype"),
    ("neuron-d_out", lambda: F.neuron_backward(np.ones(4), X, np.ones(3)), ValueError, "d_out has shape (4,)", "(5,)"),
    ("no-plane", lambda: F.signed_distance(X, np.zeros(3), 1.0), ValueError, "weight is zero", "Pass another weight"),
    ("no-weight", lambda: F.signed_distance(X[:, :0], np.ones(0), 1.0), ValueError, "all 0 entries", "not zero"),
    # activations
    ("relu-list", lambda: F.relu([1.0, -1.0]), TypeError, "z is a list", "np.asarray(z, dtype=float)"),
    ("relu-int", lambda: F.relu(np.array([1, -1])), TypeError, "dtype int64", "np.asarray(z, dtype=float)"),
    ("relu-float", lambda: F.relu(-1.0), TypeError, "z is a float", "np.asarray(z, dtype=float)"),
    ("d_out-shape", lambda: F.relu_backward(np.ones((3, 2)), Z), ValueError, "d_out has shape (3, 2)", "reshape(z.shape)"),
    ("d_out-broadcast", lambda: F.tanh_backward(np.ones(3), Z), ValueError, "expected (2, 3)", "nothing is broadcast"),
    ("d_out-dtype", lambda: F.silu_backward(Z.astype(SINGLE), Z), TypeError, "d_out has dtype float32", "d_out.astype"),
    ("gelu-name", lambda: F.gelu(Z, "fast"), ValueError, "approximate is 'fast'", "one of 'none', 'tanh'"),
    ("gelu-bool", lambda: F.gelu_backward(Z, Z, True), ValueError, "approximate is True", "one of 'none', 'tanh'"),
    ("slope", lambda: F.leaky_relu(Z, "0.1"), TypeError, "negative_slope is a str", "negative_slope=0.1"),
    ("slope-nan", lambda: F.leaky_relu(Z, np.nan), ValueError, "negative_slope is nan", "a finite number"),
    ("beta", lambda: F.softplus(Z, beta=0), ValueError, "beta is 0", "> 0"),
    # losses
    ("loss-shape", lambda: F.mse_loss(np.ones((5, 1)), np.ones(5)), ValueError, "target has shape (5,)", "target.reshape"),
    ("loss-broadcast", lambda: F.mse_loss(Z, np.ones(3)), ValueError, "expected (2, 3)", "nothing is broadcast"),
    ("loss-dtype", lambda: F.mse_loss(Z, Z.astype(SINGLE)), TypeError, "target has dtype float32", "target.astype"),
    ("reduction", lambda: F.mse_loss(Z, Z, "average"), ValueError, "reduction is 'average'", "'mean', 'sum', 'none'"),
    ("reduction-None", lambda: F.bce_with_logits(Z, Z, None), ValueError, "reduction is None", "'mean', 'sum', 'none'"),
    ("loss-d_out", lambda: F.mse_loss_backward(Z, Z, "none", np.ones(2)), ValueError, "d_out has shape (2,)", "the loss"),
    ("loss-d_out-2", lambda: F.mse_loss_backward(Z, Z, "mean", np.ones(2)), ValueError, "d_out has shape (2,)", "d_out[0]"),
    ("bce-int-target", lambda: F.bce_with_logits(Z, Z.astype(int)), TypeError, "target is an array", "target, dtype=float"),
    ("class-high", lambda: F.cross_entropy(LOGITS, np.array([0, 3])), ValueError, "target[1] is 3", "from 0 to 2"),
    ("class-low", lambda: F.cross_entropy(LOGITS, np.array([-100, 0])), ValueError, "target[0] is -100", "from 0 to 2"),
    ("class-float", lambda: F.cross_entropy(LOGITS, np.ones(2)), TypeError, "dtype float64", "dtype=np.int64"),
    ("class-list", lambda: F.cross_entropy(LOGITS, [0, 1]), TypeError, "target is a list", "dtype=np.int64"),
    ("class-bool", lambda: F.cross_entropy(LOGITS, np.array([True, False])), TypeError, "dtype bool", "class indices"),
    ("class-count", lambda: F.cross_entropy(LOGITS, np.array([0, 1, 2])), ValueError, "target has shape (3,)", "(2,)"),
    ("one-hot", lambda: F.cross_entropy(LOGITS, np.eye(3, dtype=int)[:2]), ValueError, "target has shape (2, 3)", "argmax"),
    ("no-classes", lambda: F.cross_entropy(np.ones((2, 0)), np.array([0, 0])), ValueError, "target[0] is 0", "0 classes"),
    ("logits-rank", lambda: F.cross_entropy(np.ones((2, 3, 4)), np.ones(2, int)), ValueError, "(2, 3, 4)", "(N, C)"),
    ("softmax-scalar", lambda: F.softmax(np.array(1.0)), ValueError, "logits has shape ()", "logits[None]"),
    ("softmax-axis", lambda: F.softmax(LOGITS, axis=2), ValueError, "axis is 2", "from -2 to 1"),
    # layers and initialisation
    ("in-float", lambda: nn.Linear(3.0, 4), TypeError, "in_features is a float", "int(in_features)"),
    ("in-bool", lambda: nn.Linear(True, 4), TypeError, "in_features is a bool", "a whole number"),
    ("out-negative", lambda: nn.Linear(3, -1), ValueError, "out_features is -1", "0 or more"),
    ("dtype-half", lambda: nn.Linear(3, 4, dtype=np.float16), TypeError, "float16", "dtype=np.float32"),
    ("dtype-None", lambda: nn.Linear(3, 4, dtype=None), TypeError, "dtype is None", "dtype=np.float32"),
    ("dtype-word", lambda: nn.Linear(3, 4, dtype="single-ish"), TypeError, "'single-ish'", "float32 or float64"),
    ("init", lambda: nn.Linear(3, 4, init="kaiming"), ValueError, "init is 'kaiming'", "'pytorch', 'he', 'xavier', 'zeros'"),
    ("rng", lambda: nn.Linear(3, 4, rng="seed"), TypeError, "rng is a str", "np.random.default_rng(seed)"),
    ("rng-old", lambda: nn.Linear(3, 4, rng=np.random.RandomState(0)), TypeError, "RandomState", "default_rng(seed)"),
    ("rng-negative", lambda: nn.Linear(3, 4, rng=-1), TypeError, "rng is an int", "0 or more"),
    ("arrays-rank", lambda: nn.Linear.from_arrays(np.ones(3)), ValueError, "weight has shape (3,)", "(out_features"),
    ("arrays-bias", lambda: nn.Linear.from_arrays(WEIGHT, np.ones(3)), ValueError, "bias has shape (3,)", "(4,)"),
    ("module-list", lambda: nn.Sequential([nn.ReLU()]), TypeError, "item 0 is a list", "Sequential(*modules)"),
    ("module-class", lambda: nn.Sequential(nn.ReLU), TypeError, "item 0 is", "a Module"),
    ("loss-name", lambda: nn.MSELoss("avg"), ValueError, "MSELoss: reduction is 'avg'", "'mean', 'sum', 'none'"),
    ("gelu-module", lambda: nn.GELU("erf"), ValueError, "approximate is 'erf'", "'none', 'tanh'"),
    ("layer-input", lambda: nn.Linear(3, 4)(np.ones((5, 12))), ValueError, "x has shape (5, 12)", "(N, 3)"),
    ("parameter-list", lambda: nn.Parameter([1.0]), TypeError, "data is a list", "np.asarray(data, dtype=float)"),
    ("grad-shape", lambda: parameter(2).accumulate(np.ones(3)), ValueError, "gradient has shape (3,)", "(2,)"),
    ("grad-set", lambda: setattr(parameter(2), "grad", np.ones((1, 2))), ValueError, "grad has shape (1, 2)", "reshape"),
    ("data-dtype", lambda: setattr(parameter(2), "data", np.ones(2, SINGLE)), TypeError, "data has dtype", "data.astype"),
    ("he-array", lambda: nn.he_(WEIGHT), TypeError, "param is an array", "nn.Parameter(param)"),
    ("he-bias", lambda: nn.he_(parameter(3)), ValueError, "param has shape (3,)", "layer.weight"),
    ("xavier-bias", lambda: nn.xavier_(parameter(3)), ValueError, "param has shape (3,)", "layer.weight"),
    ("default-bias", lambda: nn.pytorch_default_(parameter(3)), ValueError, "param has shape (3,)", "layer.weight"),
    ("state-list", lambda: nn.Linear(1, 1).load_state_dict([WEIGHT]), TypeError, "state is a list", "state_dict()"),
    # optimisers and costs
    ("no-params", lambda: optim.SGD([], lr=0.1), ValueError, "params is empty", "module.parameters()"),
    ("one-param", lambda: optim.SGD(parameter(2), lr=0.1), TypeError, "params is", "[parameter]"),
    ("array-params", lambda: optim.Adam([WEIGHT]), TypeError, "params[0] is an array", "a Parameter"),
    ("dict-params", lambda: optim.Adam({"weight": parameter(2)}), TypeError, "params is a dict", "module.parameters()"),
    ("twice", lambda: optim.Adam([parameter(2)] * 2), ValueError, "stands twice", "module.parameters()"),
    ("lr-missing", lambda: optim.SGD([parameter(2)], lr=None), TypeError, "lr is None", "lr=0.1"),
    ("lr-negative", lambda: optim.SGD([parameter(2)], lr=-0.1), ValueError, "lr is -0.1", ">= 0"),
    ("lr-nan", lambda: optim.Adam([parameter(2)], lr=np.nan), ValueError, "lr is nan", "a finite number"),
    ("momentum", lambda: optim.SGD([parameter(2)], 0.1, momentum=-1), ValueError, "momentum is -1", ">= 0"),
    ("nesterov", lambda: optim.SGD([parameter(2)], 0.1, nesterov=True), ValueError, "momentum 0", "momentum=0.9"),
    ("betas", lambda: optim.Adam([parameter(2)], betas=(0.9, 1.0)), ValueError, "betas[1] is 1", "< 1"),
    ("betas-one", lambda: optim.Adam([parameter(2)], betas=0.9), ValueError, "betas is 0.9", "betas=(0.9, 0.999)"),
    ("cost-float", lambda: cost.linear_parameters(784.0, 10), TypeError, "in_features is a float", "int(in_features)"),
    ("cost-negative", lambda: cost.linear_operations(-1, 2, 3), ValueError, "batch is -1", "0 or more"),
    ("bytes", lambda: cost.nbytes(1.5), TypeError, "count is a float", "a whole number"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "error", "came", "advice"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
@pytest.mark.filterwarnings("error")
def test_error_says_what_came_what_was_expected_and_what_to_do(call, error, came, advice):
    with pytest.raises(error) as caught:
        call()
    message = str(caught.value)
    assert type(caught.value) is error
    assert came in message
    assert "; expected " in message
    assert advice in message.partition("; expected ")[2]
    assert message.endswith(".")


def test_the_table_has_no_row_twice():
    names = [row[0] for row in TABLE]
    assert len(names) >= 40
    assert len(set(names)) == len(names)


ACCEPTED = {
    "int-bias": (lambda: F.neuron(X, np.ones(3), 2), np.full(5, 5.0)),
    "int-d_out": (lambda: F.neuron_backward(2, np.ones(3), np.ones(3)).d_weight, np.full(3, 2.0)),
    "numpy-scalar": (lambda: F.relu(np.float64(-1.0)), 0.0),
    "zero-dim": (lambda: F.relu(np.array(2.0)), 2.0),
    "integer-loss-d_out": (lambda: F.mse_loss_backward(X, 0 * X, "sum", 3), 6 * X),
    "number-for-every-loss": (lambda: F.mse_loss_backward(X, 0 * X, "none", 0.5), X),
    "numpy-sizes": (lambda: nn.Linear(np.int64(3), np.int32(4), init="zeros")(X), np.zeros((5, 4))),
    "dtype-by-name": (lambda: nn.Linear(1, 1, init="zeros", dtype="float32").weight.data, np.zeros((1, 1))),
    "parameters-as-generator": (
        lambda: len(optim.SGD(nn.Linear(3, 4).parameters(), lr=np.float32(0.1)).params),
        2,
    ),
}


@pytest.mark.parametrize(("call", "expected"), ACCEPTED.values(), ids=list(ACCEPTED))
def test_what_pytorch_users_expect_is_accepted(call, expected):
    np.testing.assert_array_equal(call(), expected)
