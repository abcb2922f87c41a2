"""The programs of the training runs: two layers of the zoo, a step or an autoencoder, and their data."""

import numpy as np

from . import zoo
from ._zoo_layers import Plan, layer_class
from ._zoo_pieces import FAULTS, Pieces

SAMPLES = 64
UNITS = 4
"""Of the input, the hidden layer and the output: a square layer runs with a transposed gradient."""


def data(setting):
    """Inputs (64, 4), and what another network of the same kind makes of them."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(SAMPLES, UNITS))
    if setting.whole:
        x = rng.integers(-3, 4, size=(SAMPLES, UNITS))
    if setting.program == "tied":
        x = x[:, :2] @ rng.normal(size=(2, UNITS))
        return x, x
    lower, upper = rng.normal(size=(2, UNITS, UNITS))
    t = np.tanh(x @ lower / 2 + rng.normal(size=UNITS)) @ upper + rng.normal(size=UNITS)
    if setting.scale != 1:
        x = x * setting.scale
    return x, t.argmax(axis=1) if setting.loss == "labels" else t


def program(setting, defects):
    """Make ``step(x, t)``, which does what a step of training does and returns the loss that it prints.

    ``defects`` has one id, or none for the right program.
    """
    make = {"layers": _layers, "loss": _layers, "step": _step, "tied": _tied}[setting.program]
    return make(setting, defects)


def _layers(setting, defects):
    lower, upper = _two_layers(setting, defects if setting.program == "layers" else ())
    in_loss = defects if setting.program == "loss" else ()
    loss, gradient = zoo.faulty_loss(in_loss, kind=setting.loss, seed=setting.seed).given

    def step(x, t):
        y = upper.forward(lower.forward(x))
        printed = loss(y, t)
        lower.backward(_of_input(upper.backward(gradient(y, t))))
        for layer in (lower, upper):
            layer.weight -= setting.lr * layer.d_weight
            layer.bias -= setting.lr * layer.d_bias
        return printed

    return step


def _of_input(returned):
    """The gradient of the input, where a backward pass may return those of the parameters too."""
    return returned[0] if isinstance(returned, tuple) else returned


def _two_layers(setting, defects):
    """A layer with the activation and one without, of the pieces of the zoo."""
    for seed, activation in enumerate((setting.activation, "identity")):
        here = defects if seed == 0 or setting.faulty == "both" else ()
        updating = here == ("parameter-changed",)
        pieces = Pieces()
        for defect in () if updating else here:
            FAULTS[defect].install(pieces, np.random.default_rng(setting.seed))
            for name, piece in setting.pieces:
                setattr(pieces, name, piece)
        made = layer_class(Plan(pieces, activation, "out_in"), "book", UNITS, UNITS)
        yield (_updating(made, setting.lr) if updating else made)(UNITS, UNITS, np.float64, seed)


def _updating(made, lr):
    """A class of layers that update their weight in the backward pass."""

    class Updating(made):
        def backward(self, d_out):
            returned = super().backward(d_out)
            self.weight -= lr * self.d_weight
            return returned

    return Updating


def _step(setting, defects):
    made = zoo.faulty_step(defects, activation=setting.activation)
    loss, rng = made.options["loss"], np.random.default_rng(0)
    params = {
        "W1": rng.normal(size=(UNITS, UNITS)) / 2,
        "b1": np.zeros(UNITS),
        "W2": rng.normal(size=(UNITS, UNITS)) / 2,
        "b2": np.zeros(UNITS),
    }

    def step(x, t):
        printed = loss(params, x, t)
        params.update(made.subject(params, x, t, setting.lr))
        return printed

    return step


def _tied(setting, defects):
    network = zoo.faulty_tied(UNITS, 2, overwritten=bool(defects)).subject()

    def step(x, t):
        y = network.forward(x)
        network.backward(2 * (y - t) / y.size)
        for name in ("W", "b1", "b2"):
            array = getattr(network, name)
            array -= setting.lr * getattr(network, f"d{name}")
        return np.mean((y - t) ** 2)

    return step
