"""What a layer does between two calls: each habit that goes wrong is named, and each good one is not."""

import numpy as np
import pytest

from denselayer import nn
from denselayer.doctor._behaviour import examine
from denselayer.doctor._subjects import subject_of


class Dense:
    """A right layer; each test changes one line of it."""

    def __init__(self):
        rng = np.random.default_rng(0)
        self.W, self.b = rng.normal(size=(3, 2)), rng.normal(size=2)

    def forward(self, x):
        self.x = x
        return x @ self.W + self.b

    def backward(self, d_out):
        self.dW, self.db = self.x.T @ d_out, d_out.sum(axis=0)
        return d_out @ self.W.T


class Adding(Dense):
    """A layer that adds to its gradients."""

    def __init__(self):
        super().__init__()
        self.dW, self.db = np.zeros((3, 2)), np.zeros(2)

    def backward(self, d_out):
        self.dW = self.dW + self.x.T @ d_out
        self.db = self.db + d_out.sum(axis=0)
        return d_out @ self.W.T


class AddingAndClearing(Adding):
    def zero_grad(self):
        self.dW, self.db = np.zeros((3, 2)), np.zeros(2)


class InPlace(AddingAndClearing):
    """A layer that keeps its gradients in the same arrays for ever."""

    def backward(self, d_out):
        self.dW += self.x.T @ d_out
        self.db += d_out.sum(axis=0)
        return d_out @ self.W.T

    def zero_grad(self):
        self.dW[...], self.db[...] = 0, 0


class Stack(Dense):
    """A layer that keeps a stack of inputs, so that it can be used twice in one forward pass."""

    def __init__(self):
        super().__init__()
        self.inputs = []

    def forward(self, x):
        self.inputs.append(x)
        return x @ self.W + self.b

    def backward(self, d_out):
        self.x = self.inputs.pop()
        return super().backward(d_out)


class Queue(Stack):
    def backward(self, d_out):
        self.x = self.inputs.pop(0)
        return Dense.backward(self, d_out)


class FirstCall(Dense):
    x = None

    def forward(self, x):
        if self.x is None:
            self.x = x
        return x @ self.W + self.b


class OfTheClass(Dense):
    def forward(self, x):
        type(self).x = x
        return x @ self.W + self.b


class ClearingNothing(Adding):
    def zero_grad(self):
        self.d_w = 0


class Centring(Dense):
    def forward(self, x):
        x -= x.mean(axis=1, keepdims=True)
        return super().forward(x)


class Gated(Dense):
    def forward(self, x):
        self.z = super().forward(x)
        return np.maximum(self.z, 0)

    def backward(self, d_out):
        d_out[self.z <= 0] = 0
        return super().backward(d_out)


class Updating(Dense):
    def backward(self, d_out):
        d_x = super().backward(d_out)
        self.W -= 0.1 * self.dW
        return d_x


class Normalising(Dense):
    def forward(self, x):
        self.W /= np.linalg.norm(self.W)
        return super().forward(x)


class Buffered(Dense):
    out = None

    def forward(self, x):
        out = super().forward(x)
        if self.out is None or self.out.shape != out.shape:
            self.out = np.empty_like(out)
        self.out[...] = out
        return self.out


class FirstRow(Dense):
    def backward(self, d_out):
        d_x = super().backward(d_out)
        self.db = d_out[0]
        return d_x


class BatchNorm:
    def forward(self, x):
        self.scale = np.sqrt(x.var(axis=0) + 1e-5)
        self.normal = (x - x.mean(axis=0)) / self.scale
        return self.normal

    def backward(self, d_out):
        rest = d_out - d_out.mean(axis=0) - self.normal * (d_out * self.normal).mean(axis=0)
        return rest / self.scale


class LikeItsInput(Dense):
    def forward(self, x):
        self.x = x
        out = np.zeros((len(x), 2), dtype=x.dtype)
        out[...] = x @ self.W + self.b
        return out


class Coarse(Dense):
    def forward(self, x):
        return super().forward(x.astype(np.float32)).astype(np.float64)


class CoarseGradient(Dense):
    def backward(self, d_out):
        return super().backward(d_out).astype(np.float32)


class Undefined(Dense):
    def forward(self, x):
        self.z = super().forward(x)
        return np.maximum(self.z, 0)

    def backward(self, d_out):
        return super().backward(d_out * (self.z / np.maximum(self.z, 0)))


class Stepping(Dense):
    """A layer whose output has steps, so that small changes of the input change nothing."""

    def forward(self, x):
        return np.sign(super().forward(x))


class Softmax:
    def forward(self, z):
        self.p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
        return self.p

    def backward(self, d_out):
        return self.p * (d_out - (d_out * self.p).sum(axis=1, keepdims=True))


class StableSoftmax(Softmax):
    def forward(self, z):
        return super().forward(z - z.max(axis=1, keepdims=True))


class Exponential:
    """A layer that is infinite for large inputs, and rightly so."""

    def forward(self, z):
        self.out = np.exp(z)
        return self.out

    def backward(self, d_out):
        return d_out * self.out


class Dropout(Dense):
    def forward(self, x):
        return super().forward(x * (np.random.random(x.shape) > 0.5))


class Breaking(Dense):
    def backward(self, d_out):
        return d_out @ self.weights.T


class Recurrent:
    """One weight, used in three steps; ``keeps`` says whether the gradient is added up or overwritten."""

    adds = True

    def __init__(self):
        rng = np.random.default_rng(0)
        self.W = rng.normal(size=(4, 4)) / 2

    def forward(self, x):
        self.states = [x]
        for _ in range(3):
            self.states.append(np.tanh(self.states[-1] @ self.W))
        return self.states[-1]

    def backward(self, d_out):
        self.dW = np.zeros_like(self.W)
        for before, after in zip(self.states[-2::-1], self.states[:0:-1], strict=True):
            d_z = d_out * (1 - after**2)
            share = before.T @ d_z
            self.dW = self.dW + share if self.adds else share
            d_out = d_z @ self.W.T
        return d_out


class Overwriting(Recurrent):
    adds = False


class WrongInput(Recurrent):
    """All three shares are there, each with the first input: of rank 1, and no share of one use."""

    def backward(self, d_out):
        states, self.dW = self.states, np.zeros_like(self.W)
        for after in states[:0:-1]:
            d_z = d_out * (1 - after**2)
            self.dW = self.dW + states[0].T @ d_z
            d_out = d_z @ self.W.T
        return d_out


class Tied:
    """An autoencoder with one weight, of whose gradient only the share of the decoder is left."""

    def __init__(self):
        rng = np.random.default_rng(0)
        self.W, self.b = rng.normal(size=(3, 4)), rng.normal(size=4)

    def forward(self, x):
        self.x = x
        self.h = np.tanh(x @ self.W.T)
        return self.h @ self.W + self.b

    def backward(self, d_out):
        d_z = d_out @ self.W.T * (1 - self.h**2)
        self.dW = d_z.T @ self.x
        self.dW, self.db = self.h.T @ d_out, d_out.sum(axis=0)
        return d_z @ self.W


def defects(layer):
    return [finding.defect for finding in examine(subject_of(layer))]


SICK = {
    FirstCall: "stale-cache",
    OfTheClass: "stale-cache",
    Queue: "stale-cache",
    Adding: "not-cleared",
    ClearingNothing: "not-cleared",
    Centring: "input-changed",
    Gated: "upstream-changed",
    Updating: "parameter-changed",
    Normalising: "parameter-changed",
    Buffered: "view-kept",
    FirstRow: "view-kept",
    BatchNorm: "batch-mixed",
    LikeItsInput: "integer-arithmetic",
    Coarse: "float32-arithmetic",
    CoarseGradient: "float32-arithmetic",
    Undefined: "not-finite",
    Softmax: "unstable-softmax",
    Dropout: "random",
    Breaking: "crash",
    Overwriting: "shared-weight-overwritten",
}


@pytest.mark.parametrize(("layer", "defect"), SICK.items(), ids=lambda item: getattr(item, "__name__", item))
def test_a_habit_that_goes_wrong_is_named_and_nothing_else(layer, defect):
    assert defects(layer) == [defect]


@pytest.mark.parametrize("layer", SICK, ids=lambda layer: layer.__name__)
def test_every_finding_says_what_was_seen_and_what_to_change(layer):
    for finding in examine(subject_of(layer)):
        assert len(finding.evidence) > 20
        assert len(finding.change) > 20


@pytest.mark.parametrize(
    "layer", [Dense, AddingAndClearing, InPlace, Stack, Recurrent, Stepping, StableSoftmax, Exponential]
)
def test_a_good_habit_is_no_finding(layer):
    assert defects(layer) == []


@pytest.mark.parametrize(
    "module",
    [
        nn.Linear(3, 2, rng=0),
        nn.Linear(3, 2, rng=0, dtype=np.float32),
        nn.Identity(),
        nn.ReLU(),
        nn.Tanh(),
        nn.Sequential(nn.Linear(3, 4, rng=0), nn.ReLU(), nn.Linear(4, 2, rng=0)),
    ],
    ids=repr,
)
def test_the_modules_of_the_package_have_good_habits(module):
    assert defects(module) == []


def test_batch_normalisation_is_told_that_it_may_be_meant():
    [finding] = examine(subject_of(BatchNorm))
    assert "unless it is meant" in finding.evidence


def test_a_stale_cache_says_whose_input_it_holds():
    words = {kind: examine(subject_of(kind))[0].facts["other"] for kind in (FirstCall, OfTheClass)}
    assert words == {
        FirstCall: "the input of an earlier call",
        OfTheClass: "the input of another object of the class",
    }


KEPT = {}


def test_functions_that_keep_their_input_in_a_global_variable_are_named():
    def forward(x, weight, bias):
        KEPT["x"] = x
        return x @ weight + bias

    def backward(d_out, weight):
        return d_out @ weight.T, KEPT["x"].T @ d_out, d_out.sum(axis=0)

    [finding] = examine(subject_of(forward, backward))
    assert (finding.defect, finding.where) == ("stale-cache", ("weight",))
    assert finding.facts["other"] == "the input of a call in between"


def test_a_changed_parameter_says_in_which_pass():
    passes = {kind: examine(subject_of(kind))[0].facts["other"] for kind in (Updating, Normalising)}
    assert passes == {Updating: "backward", Normalising: "forward"}


def test_an_error_is_quoted():
    [finding] = examine(subject_of(Breaking))
    assert finding.evidence.startswith("The backward pass stopped with AttributeError")
    assert "'Breaking' object has no attribute 'weights'" in finding.evidence


def test_the_share_that_is_left_of_a_weight_used_three_times_is_told():
    [finding] = examine(subject_of(Overwriting))
    assert finding.facts["other"] == "the use next to the input"


def test_the_share_that_is_left_of_a_tied_weight_is_told():
    [finding] = examine(subject_of(Tied))
    assert finding.where == ("W",)
    assert finding.facts["other"] == "the use next to the output"


def test_a_wrong_input_at_all_uses_is_not_taken_for_the_share_of_one():
    assert defects(WrongInput) == []


def test_two_habits_at_once_are_both_named():
    class Both(Adding, FirstCall):
        def __init__(self):
            Adding.__init__(self)

    assert sorted(defects(Both)) == ["not-cleared", "stale-cache"]


def test_a_layer_is_left_as_it_was():
    layer = Dense()
    before = {name: value.copy() for name, value in vars(layer).items()}
    examine(subject_of(layer))
    assert vars(layer).keys() == before.keys()
    assert all(np.array_equal(value, before[name]) for name, value in vars(layer).items())
