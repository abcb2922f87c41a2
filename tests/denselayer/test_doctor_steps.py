"""A whole training step: what it did to the parameters tells which gradient it used, and when."""

import numpy as np
import pytest

from denselayer import functional as F
from denselayer import nn, optim
from denselayer.doctor import diagnose_step, zoo

RNG = np.random.default_rng(0)
X, T, LABELS = RNG.normal(size=(8, 3)), RNG.normal(size=(8, 2)), RNG.integers(2, size=8)
PARAMS = {"W": RNG.normal(size=(2, 3)), "b": RNG.normal(size=2)}
SQUARE = {"W": RNG.normal(size=(3, 3)), "b": RNG.normal(size=3)}, RNG.normal(size=(8, 3))


def predict(params, x):
    return x @ params["W"].T + params["b"]


def loss(params, x, t):
    return np.mean((predict(params, x) - t) ** 2)


def gradients(params, x, t, d_out=None):
    y = predict(params, x)
    d_out = 2 * (y - t) / y.size if d_out is None else d_out(y, t)
    return {"W": d_out.T @ x, "b": d_out.sum(axis=0)}


def minus(params, steps):
    return {name: params[name] - steps[name] for name in params}


def times(factor, grads):
    return {name: factor * gradient for name, gradient in grads.items()}


def plain(params, x, t, lr):
    return minus(params, times(lr, gradients(params, x, t)))


def in_place(params, x, t, lr):
    for name, gradient in gradients(params, x, t).items():
        params[name] -= lr * gradient
    return loss(params, x, t)


def with_loss(params, x, t, lr):
    return plain(params, x, t, lr), loss(params, x, t)


def as_tuple(params, x, t, lr):
    return tuple(plain({"W": params[0], "b": params[1]}, x, t, lr).values())


def clipped(params, x, t, lr):
    grads = gradients(params, x, t)
    length = np.sqrt(sum((gradient**2).sum() for gradient in grads.values()))
    return minus(params, times(lr * min(1.0, 0.5 / length), grads))


def shrinking(params, x, t, lr):
    return times(0.99, plain(params, x, t, lr))


def remembering(rule):
    """A step whose update has a memory; ``rule(memory, name, gradient, lr)`` returns what is taken away."""
    memory = {}

    def step(params, x, t, lr):
        grads = gradients(params, x, t)
        return minus(params, {name: rule(memory, name, gradient, lr) for name, gradient in grads.items()})

    return step


def momentum_with_the_rate_inside(memory, name, gradient, lr):
    memory[name] = 0.9 * memory.get(name, 0) + lr * gradient
    return memory[name]


def running_mean(memory, name, gradient, lr):
    memory[name] = 0.9 * memory.get(name, 0) + 0.1 * gradient
    return lr * memory[name]


def ada_grad(memory, name, gradient, lr):
    memory[name] = memory.get(name, 0) + gradient**2
    return lr * gradient / (np.sqrt(memory[name]) + 1e-8)


def rms_prop(memory, name, gradient, lr):
    memory[name] = 0.9 * memory.get(name, 0) + 0.1 * gradient**2
    return lr * gradient / (np.sqrt(memory[name]) + 1e-8)


def added_up(memory, name, gradient, lr):
    memory[name] = memory.get(name, 0) + gradient
    return lr * memory[name]


def one_too_late(memory, name, gradient, lr):
    last, memory[name] = memory.get(name, np.zeros_like(gradient)), gradient
    return lr * last


def adam_of_added_up(memory, name, gradient, lr):
    total, mean, square, count = memory.get(name, (0, 0, 0, 0))
    total, count = total + gradient, count + 1
    mean, square = 0.9 * mean + 0.1 * total, 0.999 * square + 0.001 * total**2
    memory[name] = total, mean, square, count
    return lr * (mean / (1 - 0.9**count)) / (np.sqrt(square / (1 - 0.999**count)) + 1e-8)


def by_optimizer(make):
    """A step of the optimisers of the package."""
    kept = {}

    def step(params, x, t, lr):
        if not kept:
            kept["all"] = {name: nn.Parameter(value) for name, value in params.items()}
            kept["optimizer"] = make(kept["all"].values())
        kept["optimizer"].zero_grad()
        for name, gradient in gradients(params, x, t).items():
            kept["all"][name].data = params[name]
            kept["all"][name].accumulate(gradient)
        kept["optimizer"].lr = lr
        kept["optimizer"].step()
        return {name: parameter.data.copy() for name, parameter in kept["all"].items()}

    return step


HEALTHY = {
    "returning": plain,
    "in place": in_place,
    "with its loss": with_loss,
    "clipped": clipped,
    "shrinking": shrinking,
    "momentum, rate inside": remembering(momentum_with_the_rate_inside),
    "running mean": remembering(running_mean),
    "AdaGrad": remembering(ada_grad),
    "RMSProp": remembering(rms_prop),
    "SGD": by_optimizer(lambda ps: optim.SGD(ps, 0.1)),
    "momentum": by_optimizer(lambda ps: optim.SGD(ps, 0.1, momentum=0.9)),
    "dampening": by_optimizer(lambda ps: optim.SGD(ps, 0.1, momentum=0.9, dampening=0.5)),
    "Nesterov": by_optimizer(lambda ps: optim.SGD(ps, 0.1, momentum=0.9, nesterov=True)),
    "decay": by_optimizer(lambda ps: optim.SGD(ps, 0.1, weight_decay=0.01)),
    "momentum, decay": by_optimizer(lambda ps: optim.SGD(ps, 0.1, momentum=0.8, weight_decay=0.01)),
    "Adam": by_optimizer(optim.Adam),
    "Adam, decay": by_optimizer(lambda ps: optim.Adam(ps, weight_decay=0.02)),
    "Adam, other betas": by_optimizer(lambda ps: optim.Adam(ps, betas=(0.8, 0.99))),
}


@pytest.mark.parametrize("step", HEALTHY.values(), ids=HEALTHY)
def test_a_right_step_is_healthy_whatever_its_update_is(step):
    assert diagnose_step(step, PARAMS, loss, X, T).status == "healthy"


def test_parameters_are_taken_as_a_tuple_or_a_list():
    def of_tuple(params, x, t):
        return loss({"W": params[0], "b": params[1]}, x, t)

    for kind in (tuple, list):
        assert diagnose_step(as_tuple, kind(PARAMS.values()), of_tuple, X, T).healthy


def test_parameters_may_be_layers_of_pairs():
    layers = [(PARAMS["W"].T, PARAMS["b"]), (np.eye(2), np.zeros(2))]

    def of_layers(layers, x, t):
        for weight, bias in layers:
            x = x @ weight + bias
        return np.mean((x - t) ** 2)

    def step(layers, x, t, lr):
        (first, bias), (second, other_bias) = layers
        h = x @ first + bias
        d_out = 2 * (h @ second + other_bias - t) / t.size
        second -= lr * h.T @ d_out
        other_bias -= lr * d_out.sum(axis=0)
        d_h = d_out @ second.T
        first -= lr * x.T @ d_h
        bias -= lr * d_h.sum(axis=0)

    [finding] = diagnose_step(step, layers, of_layers, X, T).findings
    assert (finding.defect, finding.where) == ("updated-weight-used", ("params[0][0]", "params[0][1]"))


def test_a_step_may_change_parameters_that_it_is_not_given():
    net = {name: value.copy() for name, value in PARAMS.items()}

    def step(x, t, lr):
        in_place(net, x, t, lr)

    assert diagnose_step(step, net, loss, X, T).healthy
    assert all(np.array_equal(net[name], PARAMS[name]) for name in PARAMS)


def test_a_batch_may_be_columns():
    def turned(params, x, t, lr):
        return plain(params, x.T, t.T, lr)

    report = diagnose_step(turned, PARAMS, lambda params, x, t: loss(params, x.T, t.T), X.T, T.T)
    assert report.healthy


def test_targets_may_be_labels():
    def of_labels(params, x, labels):
        return F.cross_entropy(predict(params, x), labels)

    def step(params, x, labels, lr):
        grads = gradients(params, x, labels, F.cross_entropy_backward)
        return minus(params, times(lr, grads))

    assert diagnose_step(step, PARAMS, of_labels, X, LABELS).healthy


def test_float32_is_no_defect():
    params = {name: value.astype(np.float32) for name, value in PARAMS.items()}
    assert diagnose_step(plain, params, loss, X.astype(np.float32), T.astype(np.float32)).healthy


def scaled(factor):
    """A step whose gradients are multiplied by ``factor(rows, outputs, lr)``."""

    def step(params, x, t, lr):
        return minus(params, times(lr * factor(*t.shape, lr), gradients(params, x, t)))

    return step


def with_d_out(d_out):
    def step(params, x, t, lr):
        return minus(params, times(lr, gradients(params, x, t, d_out)))

    return step


def bias_with_rows(params, x, t, lr):
    d_out = 2 * (predict(params, x) - t) / t.size
    return {"W": params["W"] - lr * d_out.T @ x, "b": params["b"] - lr * d_out}


def bias_with_rows_in_place(params, x, t, lr):
    params["b"] -= lr * 2 * (predict(params, x) - t) / t.size


def bias_after_the_weight(params, x, t, lr):
    new = {"W": params["W"] - lr * gradients(params, x, t)["W"], "b": params["b"]}
    return {"W": new["W"], "b": params["b"] - lr * gradients(new, x, t)["b"]}


def last_row_alone(params, x, t, lr):
    for row in range(len(x)):
        grads = gradients(params, x[row : row + 1], t[row : row + 1])
    return minus(params, times(lr, grads))


def bias_changed(change):
    def step(params, x, t, lr):
        grads = gradients(params, x, t)
        return minus(params, times(lr, grads | {"b": change(grads["b"], len(x))}))

    return step


SICK = {
    "divided twice": (scaled(lambda n, m, lr: 1 / n), "averaged-twice"),
    "not divided": (scaled(lambda n, m, lr: n * m), "summed-not-averaged"),
    "not divided by the rows": (scaled(lambda n, m, lr: n), "summed-not-averaged"),
    "halved": (scaled(lambda n, m, lr: 0.5), "factor-two"),
    "a constant": (scaled(lambda n, m, lr: 0.3), "factor"),
    "turned round": (scaled(lambda n, m, lr: -1), "sign-flipped"),
    "rate squared": (scaled(lambda n, m, lr: lr), "learning-rate-inside"),
    "absolutes": (with_d_out(lambda y, t: np.sign(y - t) / y.size), "other-loss"),
    "fourth powers": (with_d_out(lambda y, t: 4 * (y - t) ** 3 / y.size), "other-loss"),
    "never cleared": (remembering(added_up), "not-cleared"),
    "never cleared, under Adam": (remembering(adam_of_added_up), "not-cleared"),
    "cleared at once": (scaled(lambda n, m, lr: 0), "cleared-too-early"),
    "cleared after each row": (last_row_alone, "cleared-too-early"),
    "update before the backward pass": (remembering(one_too_late), "stale-cache"),
    "update before it, divided": (
        remembering(lambda memory, name, gradient, lr: one_too_late(memory, name, gradient, lr / 2)),
        "stale-cache",
    ),
    "bias after the weight": (bias_after_the_weight, "updated-weight-used"),
    "bias with rows": (bias_with_rows, "bias-grown"),
    "bias with rows, in place": (bias_with_rows_in_place, "bias-not-summed"),
    "mean of the bias": (bias_changed(lambda d_b, n: d_b / n), "bias-averaged"),
    "bias left out": (bias_changed(lambda d_b, n: 0 * d_b), "bias-zero"),
}


@pytest.mark.parametrize(("step", "defect"), SICK.values(), ids=SICK)
def test_a_wrong_step_is_named(step, defect):
    report = diagnose_step(step, PARAMS, loss, X, T)
    assert report.defects == (defect,)
    assert all(len(finding.evidence) > 20 and len(finding.change) > 20 for finding in report.findings)


def test_a_transposed_gradient_is_named_where_the_weight_is_square():
    def step(params, x, t, lr):
        grads = gradients(params, x, t)
        return minus(params, times(lr, grads | {"W": grads["W"].T}))

    report = diagnose_step(step, SQUARE[0], loss, X, SQUARE[1])
    assert [(finding.defect, finding.where) for finding in report.findings] == [("weight-transposed", ("W",))]


def test_the_gradient_of_another_loss_is_found_from_the_predictions():
    def of_labels(params, x, labels):
        return F.cross_entropy(predict(params, x), labels)

    def step(params, x, labels, lr):
        d_out = gradients(params, x, np.eye(2)[labels])
        return minus(params, times(lr, d_out))

    [finding] = diagnose_step(step, PARAMS, of_labels, X, LABELS, predict=predict).findings
    assert (finding.defect, finding.facts["other"]) == ("other-loss", "the squared error")


def test_a_loss_that_is_a_sum_has_not_divided_yet():
    def of_sum(params, x, t):
        return ((predict(params, x) - t) ** 2).sum()

    assert diagnose_step(scaled(lambda n, m, lr: m), PARAMS, of_sum, X, T).defects == ("all-averaged",)


class Network:
    """Two layers with their own update; each test changes one line of it."""

    lr = 0.1

    def __init__(self):
        rng = np.random.default_rng(1)
        self.W1, self.b1 = rng.normal(size=(3, 4)), rng.normal(size=4)
        self.W2, self.b2 = rng.normal(size=(4, 2)), rng.normal(size=2)

    def forward(self, x):
        self.x = x
        self.h = np.tanh(x @ self.W1 + self.b1)
        return self.h @ self.W2 + self.b2

    def backward(self, d_out):
        self.dW2, self.db2 = self.h.T @ d_out, d_out.sum(axis=0)
        self.between()
        d_z = d_out @ self.W2.T * (1 - self.h**2)
        self.dW1, self.db1 = self.x.T @ d_z, d_z.sum(axis=0)

    def between(self):
        """Nothing happens between the two layers."""

    def step(self):
        for name in ("W1", "b1", "W2", "b2"):
            setattr(self, name, getattr(self, name) - self.lr * getattr(self, "d" + name))


class EarlyUpdate(Network):
    def between(self):
        self.W2 = self.W2 - self.lr * self.dW2
        self.dW2 = np.zeros_like(self.W2)


class TrainStep(Network):
    def train_step(self, x, t):
        y = self.forward(x)
        self.backward(2 * (y - t) / y.size / len(x))
        self.step()


class NeverCleared(Network):
    def __init__(self):
        super().__init__()
        for name in ("W1", "b1", "W2", "b2"):
            setattr(self, "d" + name, np.zeros_like(getattr(self, name)))

    def backward(self, d_out):
        self.dW2, self.db2 = self.dW2 + self.h.T @ d_out, self.db2 + d_out.sum(axis=0)
        d_z = d_out @ self.W2.T * (1 - self.h**2)
        self.dW1, self.db1 = self.dW1 + self.x.T @ d_z, self.db1 + d_z.sum(axis=0)


class Cleared(NeverCleared):
    def zero_grad(self):
        for name in ("W1", "b1", "W2", "b2"):
            setattr(self, "d" + name, np.zeros_like(getattr(self, name)))


@pytest.mark.parametrize(
    ("network", "defects"),
    [
        (Network, ()),
        (Cleared, ()),
        (EarlyUpdate, ("updated-weight-used",)),
        (TrainStep, ("averaged-twice",)),
        (NeverCleared, ("not-cleared",)),
    ],
)
def test_an_object_that_trains_is_driven_by_the_doctor(network, defects):
    report = diagnose_step(network, x=X, t=T)
    assert report.defects == defects
    assert report.healthy == (not defects)


def test_only_the_layer_below_suffers_from_a_weight_that_was_updated_before():
    report = diagnose_step(EarlyUpdate, x=X, t=T)
    assert report.findings[0].where == ("W1", "b1")
    assert {array.name: array.verdict for array in report.arrays} == {
        "W1": "wrong",
        "b1": "wrong",
        "W2": "healthy",
        "b2": "healthy",
    }


def test_two_defects_are_both_named():
    step = scaled(lambda n, m, lr: -lr / n)
    report = diagnose_step(step, PARAMS, loss, X, T)
    assert set(report.defects) == {"sign-flipped", "learning-rate-inside", "averaged-twice"}


def test_a_sum_that_is_never_cleared_and_a_rate_too_many_are_both_named():
    def rule(memory, name, gradient, lr):
        memory[name] = memory.get(name, 0) + gradient
        return lr * lr * memory[name]

    report = diagnose_step(remembering(rule), PARAMS, loss, X, T)
    assert set(report.defects) == {"not-cleared", "learning-rate-inside"}


@pytest.mark.parametrize(("seed", "activation"), [(211, "tanh"), (213, "relu")])
def test_an_exact_explanation_goes_before_one_that_hangs_on_the_learning_rate(seed, activation):
    pair = ["learning-rate-inside", "not-cleared"]
    report = zoo.faulty_step(pair, seed=seed, activation=activation).diagnose()
    assert set(report.defects) == set(pair)


def test_momentum_decay_and_clipping_are_noted():
    shown = ("Nesterov", "decay", "clipped", "shrinking")
    notes = {name: " ".join(diagnose_step(HEALTHY[name], PARAMS, loss, X, T).notes) for name in shown}
    assert "momentum" in notes["Nesterov"]
    assert "weight decay: 0.01 for W" in notes["decay"]
    assert "shortened to that length" in notes["clipped"]
    assert "0.01 of the parameters" in notes["shrinking"]


def test_without_a_learning_rate_a_factor_cannot_be_seen_but_the_sign_can():
    def fixed(params, x, t):
        return plain(params, x, t, 0.05)

    def rising(params, x, t):
        return plain(params, x, t, -0.05)

    report = diagnose_step(fixed, PARAMS, loss, X, T)
    assert report.healthy
    assert "taken to be 0.05" in report.notes[0]
    assert diagnose_step(rising, PARAMS, loss, X, T).defects == ("sign-flipped",)


def test_a_learning_rate_that_makes_no_difference_is_noted():
    report = diagnose_step(lambda params, x, t, lr: plain(params, x, t, 0.05), PARAMS, loss, X, T)
    assert report.healthy
    assert "makes no difference" in report.notes[0]


def test_a_schedule_is_no_defect_and_no_proof_of_health():
    calls = []

    def slower(params, x, t, lr):
        calls.append(lr)
        return plain(params, x, t, lr / (1 + 0.1 * len(calls)))

    report = diagnose_step(slower, PARAMS, loss, X, T)
    assert (report.status, report.defects) == ("cannot tell", ())
    assert "Every step goes along its gradient" in report.notes[0]


def test_the_parameters_and_the_batch_are_left_as_they_were():
    params, x, t = {name: value.copy() for name, value in PARAMS.items()}, X.copy(), T.copy()
    diagnose_step(in_place, params, loss, x, t)
    assert all(np.array_equal(params[name], PARAMS[name]) for name in PARAMS)
    assert np.array_equal(x, X)
    assert np.array_equal(t, T)


def test_a_step_that_changes_its_batch_is_named():
    def centring(params, x, t, lr):
        new = plain(params, x, t, lr)
        x -= x.mean(axis=0)
        return new

    [finding] = diagnose_step(centring, PARAMS, loss, X, T).findings
    assert (finding.defect, finding.where) == ("input-changed", ("x",))


def test_an_error_in_the_step_is_quoted():
    report = diagnose_step(lambda params, x, t, lr: params["V"], PARAMS, loss, X, T)
    assert report.defects == ("crash",)
    assert "KeyError: 'V'" in report.findings[0].evidence
    assert not report.healthy


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((plain, PARAMS, loss), "x is None"),
        ((plain, PARAMS, None, X, T), "loss is None"),
        ((plain, None, loss, X, T), "params is None"),
    ],
)
def test_what_is_missing_is_asked_for(arguments, message):
    with pytest.raises(ValueError, match=f"diagnose_step: {message}"):
        diagnose_step(*arguments)


def test_no_factor_is_told_of_single_numbers_whose_steps_follow_no_gradient():
    def product(params, x, t):
        return float((params["a"] * params["b"] + 1) ** 2 / 2)

    def step(params, x, t, lr):
        a, b = float(params["a"]), float(params["b"])
        error = a * b + 1
        return {"a": np.array(a - lr * (error * b + 0.1 * a)), "b": np.array(b - lr * (error * a + 0.1 * b))}

    start = {"a": np.array(0.5), "b": np.array(0.4)}
    report = diagnose_step(step, start, product, np.ones((6, 1)), np.ones((6, 1)))
    assert report.status == "cannot tell"
