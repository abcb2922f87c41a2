"""The doctor runs layers in whatever spelling they are written, and finds out what is what."""

import numpy as np
import pytest

from denselayer import functional as F
from denselayer import nn
from denselayer.doctor import diagnose_layer
from denselayer.doctor._affine import recognise
from denselayer.doctor._objects import CannotExamineError
from denselayer.doctor._spellings import family, gradient_matches, is_upstream, read_returned
from denselayer.doctor._subjects import subject_of
from tests.denselayer import student_layers as written

RIGHT = {
    "a flat batch and a cache": (written.affine_forward, written.affine_backward),
    "a gate from a cache": (written.relu_forward, written.relu_backward),
    "two caches in one": (written.affine_relu_forward, written.affine_relu_backward),
    "weights first, a dict back": (written.weights_first_forward, written.weights_first_backward),
    "augmented columns": (written.augmented_forward, written.augmented_backward),
    "a slope from the output": (written.sigmoid, written.sigmoid_backward),
    "output stored": (written.StoresItsOutput,),
    "units first": (written.UnitsFirst,),
    "made from arrays": (written.TakesArrays,),
    "out by in": (written.OutByIn,),
    "columns": (written.Columns,),
    "a neuron": (written.Neuron,),
    "one sample": (written.OneSample,),
    "a network in dicts": (written.TwoLayers,),
    "a network in lists": (written.Lists,),
    "softmax": (written.Softmax,),
    "a NumPy function": (np.tanh, lambda d, z: d * (1 - np.tanh(z) ** 2)),
    "the layer of the package": (nn.Linear,),
    "its functions": (F.linear, F.linear_backward),
    "its activation": (nn.GELU(),),
    "its network": (nn.Sequential(nn.Linear(3, 4, rng=0), nn.ReLU(), nn.Linear(4, 2, rng=1)),),
}


@pytest.mark.parametrize("given", RIGHT.values(), ids=RIGHT)
def test_right_layers_are_healthy_in_every_spelling(given):
    report = diagnose_layer(*given)
    assert report.status == "healthy", report
    assert report.arrays


@pytest.mark.parametrize(
    ("given", "storage", "batch_axis", "names"),
    [
        ((written.affine_forward, written.affine_backward), "in_out", 0, ("w", "b")),
        ((written.linear_forward, written.linear_backward_with_mean), "out_in", 1, ("W", "b")),
        ((written.augmented_forward, written.augmented_backward), "augmented", 1, ("W",)),
        ((written.OutByIn,), "out_in", 0, ("weight", "bias")),
        ((written.StoresItsOutput,), "in_out", 0, ("weights", "biases")),
        ((written.Columns(3, 3),), "out_in", 1, ("w", "b")),
        ((written.TakesArrays(np.eye(2), np.zeros(2)),), "in_out", 0, ("W", "b")),
    ],
)
def test_storage_and_batch_are_found_by_running(given, storage, batch_axis, names):
    subject = subject_of(*given)
    layout = recognise(subject).layout
    assert (layout.storage, subject.batch_axis, subject.names) == (storage, batch_axis, names)


def test_a_square_weight_is_told_from_its_transpose_by_what_it_does():
    for kind, storage in ((written.OutByIn, "out_in"), (written.UnitsFirst, "in_out")):
        assert recognise(subject_of(kind(3, 3))).layout.storage == storage


def test_a_weight_of_one_number_is_stored_either_way_until_it_is_larger():
    assert recognise(subject_of(written.UnitsFirst(1, 1))).layout.storage == "in_out"
    assert recognise(subject_of(written.OutByIn(1, 1))).layout.storage == "out_in"


@pytest.mark.parametrize(
    ("curve", "function"),
    [
        ("identity", lambda z: z),
        ("relu", lambda z: np.maximum(z, 0)),
        ("leaky_relu", lambda z: np.where(z > 0, z, 0.2 * z)),
        ("sigmoid", lambda z: 1 / (1 + np.exp(-z))),
        ("tanh", np.tanh),
        ("softplus", lambda z: np.logaddexp(0, z)),
        ("the activation", lambda z: z * np.tanh(np.logaddexp(0, z))),
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_activations_are_recognised_and_others_measured(curve, function, dtype):
    class Fused(written.OutByIn):
        def __init__(self):
            super().__init__(3, 2)
            self.weight, self.bias = self.weight.astype(dtype), self.bias.astype(dtype)

        def forward(self, x):
            return function(super().forward(x))

    found = recognise(subject_of(Fused))
    assert found.curve.name == curve
    assert found.curve.slope(np.array([0.7])) == pytest.approx(
        (function(0.7 + 1e-6) - function(0.7 - 1e-6)) / 2e-6, rel=1e-3
    )


def test_the_layer_that_is_given_is_not_touched():
    layer = written.OutByIn(3, 2)
    before = {name: value.copy() for name, value in vars(layer).items()}
    diagnose_layer(layer)
    assert vars(layer).keys() == before.keys()
    assert all(np.array_equal(getattr(layer, name), value) for name, value in before.items())


def test_gradients_left_by_earlier_calls_are_not_taken_for_new_ones():
    layer = written.OutByIn(3, 2)
    layer.forward(np.ones((4, 3)))
    layer.backward(np.ones((4, 2)))
    assert diagnose_layer(layer).healthy


def test_one_parameter_in_two_places_stays_one():
    first, second = nn.Linear(3, 3, rng=0), nn.Linear(3, 3, rng=1)
    second.weight = first.weight
    report = diagnose_layer(nn.Sequential(first, nn.Tanh(), second))
    assert report.healthy
    assert [array.name for array in report.arrays] == ["0.weight", "0.bias", "2.bias", "x"]


def test_a_layer_that_updates_at_once_is_examined_by_its_update():
    report = diagnose_layer(written.UpdatesAtOnce)
    assert report.defects == ("parameter-changed",)
    assert [array.verdict for array in report.arrays] == ["healthy"] * 3


def test_parameters_and_input_can_be_given():
    rng = np.random.default_rng(0)
    params = {"W": rng.normal(size=(4, 2)), "b": rng.normal(size=2)}

    def forward(params, X):
        return X @ params["W"] + params["b"]

    def backward(dY, X, params):
        return {"W": X.T @ dY, "b": dY.sum(0), "X": dY @ params["W"].T}

    assert diagnose_layer(forward, backward, params=params, x=rng.normal(size=(3, 4))).healthy


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((3,), "an int came"),
        ((written.affine_forward,), "Pass the backward pass too"),
        ((nn.CrossEntropyLoss(),), "use diagnose_loss"),
        ((type("NoBackward", (), {"forward": lambda self, x: x}),), "has no backward"),
        ((type("Needs", (), {"__init__": lambda self, a, b, c, d, e: None}),), "could not be made"),
    ],
)
def test_what_cannot_be_run_is_said_and_never_called_healthy(given, words):
    report = diagnose_layer(*given)
    assert report.status == "cannot tell"
    assert words in report.notes[0]


@pytest.mark.parametrize("name", ["q", "value", "cached"])
def test_an_argument_without_a_telling_name_may_be_the_output(name):
    spaces = {"np": np}
    exec(f"def backward(d_out, {name}): return d_out * (1 - {name}**2)", spaces)
    assert diagnose_layer(np.tanh, spaces["backward"]).healthy


def test_an_error_that_no_input_can_cause_is_a_finding_with_its_line():
    class Misspelt(written.OutByIn):
        def forward(self, x):
            return x @ self.wieght.T

    report = diagnose_layer(Misspelt)
    assert report.defects == ("crash",)
    assert "wieght" in report.findings[0].evidence and "line " in report.findings[0].evidence


def test_a_forward_function_that_cannot_run_is_a_finding():
    report = diagnose_layer(lambda x: x / 0 if x is None else undefined, lambda d, x: d)  # noqa: F821
    assert report.defects == ("crash",)
    assert "undefined" in report.findings[0].evidence


def test_a_layer_that_takes_one_batch_size_only_stops_with_a_finding():
    class OnlySeven(written.OutByIn):
        def forward(self, input):
            if len(input) != 7:
                raise RuntimeError("seven rows, please")
            return super().forward(input)

    report = diagnose_layer(OnlySeven(3, 2))
    assert report.defects == ("crash",)
    assert "seven rows, please" in report.findings[0].evidence


def test_functions_that_fit_nothing_are_refused_with_advice():
    def forward(x):
        raise ValueError("an image is needed")

    with pytest.raises(CannotExamineError, match=r"an image is needed.*params="):
        subject_of(forward, lambda d, x: d)


@pytest.mark.parametrize(
    ("name", "meaning"),
    [("W1", "weight"), ("kernel", "weight"), ("beta", "bias"), ("A_prev", "x"), ("z", "z"), ("momentum", "")],
)
def test_names_have_families(name, meaning):
    assert family(name) == meaning


@pytest.mark.parametrize("name", ["dW", "d_w", "grad_W", "W_grad", "nabla_w", "dL_dW", "gW"])
def test_gradients_are_recognised_by_name(name):
    assert gradient_matches(name, "W", ("W", "b"))
    assert not gradient_matches(name, "b", ("W", "b"))


def test_numbered_gradients_belong_to_their_number():
    assert gradient_matches("dW2", "W2", ("W1", "W2"))
    assert not gradient_matches("dW2", "W1", ("W1", "W2"))


@pytest.mark.parametrize("name", ["dout", "d_out", "grad_output", "dY", "dZ", "delta", "upstream", "dA"])
def test_upstream_gradients_are_recognised(name):
    assert is_upstream(name)


def test_a_returned_tuple_is_sorted_by_shape():
    shapes = {"W": (3, 2), "b": (2,)}
    x, weight, bias = np.zeros((5, 3)), np.zeros((3, 2)), np.zeros(2)
    assert read_returned((x, weight, bias), shapes, (5, 3)) == {"x": 0, "W": 1, "b": 2}
    assert read_returned((weight, bias, x), shapes, (5, 3)) == {"W": 0, "b": 1, "x": 2}
    assert read_returned((weight.T, x, np.zeros((5, 2))), shapes, (5, 3)) == {"W": 0, "x": 1, "b": 2}
    assert read_returned((weight, bias), shapes, (5, 3)) == {"W": 0, "b": 1}


def test_the_parameters_of_a_class_that_exec_has_made_are_found():
    """Without a `__name__` in its namespace, such a class says that it is of the module builtins."""
    program = """
import numpy as np

class Dense:
    def __init__(self, inputs, outputs):
        self.W, self.b = np.ones((outputs, inputs)), np.ones(outputs)

    def forward(self, x):
        self.x = x
        return x @ self.W.T + self.b

    def backward(self, d_out):
        self.dW, self.db = d_out.T @ self.x, d_out.sum(axis=0)
        return d_out @ self.W
"""
    names = {}
    exec(program, names)
    assert names["Dense"].__module__ == "builtins"
    assert set(subject_of(names["Dense"]).names) == {"W", "b"}
