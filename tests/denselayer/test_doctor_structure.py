"""Slips of one call: told apart by their numbers, in layers as people write them."""

import numpy as np
import pytest

from denselayer.doctor import diagnose_layer
from denselayer.doctor._curves import known, leaky
from denselayer.doctor._explain import Law
from tests.denselayer import student_layers as written

WRONG = {
    "summed over the units": (
        (written.affine_forward, written.affine_backward_over_units),
        "bias-wrong-axis",
        ("b",),
    ),
    "gate on the upstream": (
        (written.relu_forward, written.relu_backward_on_upstream),
        "gate-on-upstream",
        ("x",),
    ),
    "gate left out": (
        (written.affine_relu_forward, written.affine_relu_backward_ungated),
        "gate-missing",
        ("w", "b", "x"),
    ),
    "gate of a network left out": ((written.TwoLayersUngated,), "gate-missing", ("W1", "b1", "x")),
    "the mean in the layer": (
        (written.linear_forward, written.linear_backward_with_mean),
        "all-averaged",
        ("W", "b"),
    ),
    "the mean under an activation": ((written.WithActivation,), "all-averaged", ("W", "b")),
    "the formula of the output at the input": (
        (written.sigmoid, written.sigmoid_backward_at_input),
        "derivative-at-input",
        ("x",),
    ),
    "tanh of tanh": ((written.TanhAtOutput,), "derivative-at-output", ("x",)),
    "an outer product turned": ((written.OneSampleTransposed,), "weight-transposed", ("W",)),
    "no bias in an augmented weight": (
        (written.augmented_forward, written.augmented_backward_without_bias),
        "bias-zero",
        ("column 0 of W",),
    ),
    "a softmax passed through": ((written.SoftmaxPassedThrough,), "softmax-jacobian-missing", ("x",)),
}


@pytest.mark.parametrize(("given", "defect", "where"), WRONG.values(), ids=WRONG)
def test_slips_are_named_where_they_show(given, defect, where):
    report = diagnose_layer(*given)
    assert report.status == "sick"
    assert [(finding.defect, finding.where) for finding in report.findings] == [(defect, where)]
    wrong = {array.name for array in report.arrays if array.verdict == "wrong"}
    assert wrong == {name.rpartition(" ")[2] for name in where}


def layer(backward, activation=lambda z: z, in_features=3, out_features=2, **attributes):
    """A layer stored (in, out) whose backward pass is given as a function of the layer and d_out."""

    class Written:
        def __init__(self, n_in=in_features, n_out=out_features):
            rng = np.random.default_rng(0)
            self.W, self.b = rng.normal(size=(n_in, n_out)), rng.normal(size=n_out)
            vars(self).update(attributes)

        def forward(self, x):
            self.x, self.z = x, x @ self.W + self.b
            self.a = activation(self.z)
            return self.a

        def right(self, d):
            self.dW, self.db = self.x.T @ d, d.sum(axis=0)
            return d @ self.W.T

    Written.backward = backward
    return Written


def scaled(weight=1.0, bias=1.0, x=1.0, **attributes):
    """A layer whose gradients are multiplied by numbers, or by functions of the number of rows."""

    def times(factor, self):
        return factor(len(self.x)) if callable(factor) else factor

    def backward(self, d):
        d_x = self.right(d)
        self.dW, self.db = times(weight, self) * self.dW, times(bias, self) * self.db
        return times(x, self) * d_x

    return layer(backward, **attributes)


@pytest.mark.parametrize(
    ("made", "found"),
    [
        (scaled(weight=2.0), [("factor-two", {"factor": 2.0})]),
        (scaled(weight=0.5, bias=0.5, x=0.5), [("factor-two", {"factor": 0.5})]),
        (scaled(weight=0.1, bias=0.1), [("factor", {"factor": 0.1})]),
        (scaled(weight=0.1, bias=0.1, lr=0.1), [("learning-rate-inside", {"factor": 0.1, "other": 0.1})]),
        (scaled(weight=lambda n: 1 / n), [("weight-averaged", {"n": 5, "factor": 0.2})]),
        (scaled(bias=lambda n: n), [("bias-times-batch", {"n": 5, "factor": 5.0})]),
        (scaled(x=lambda n: 1 / n), [("factor", {"factor": "1 / n (n is the number of rows)"})]),
        (scaled(weight=lambda n: 1 / (2 * n), bias=lambda n: 1 / n), ["all-averaged", "factor-two"]),
        (scaled(weight=-3.0), ["sign-flipped", "factor"]),
        (scaled(weight=-1.0, bias=-1.0, x=-1.0), [("sign-flipped", {})]),
        (scaled(weight=lambda n: 1 / n**2), [("factor", {"factor": "1 / n**2 (n is the number of rows)"})]),
    ],
)
def test_factors_are_told_by_how_they_follow_the_batch(made, found):
    findings = diagnose_layer(made).findings
    assert [finding.defect for finding in findings] == [
        one if isinstance(one, str) else one[0] for one in found
    ]
    for finding, one in zip(findings, found, strict=True):
        assert isinstance(one, str) or finding.facts == one[1]


def test_a_mean_over_all_entries_is_told_from_one_over_the_rows():
    def backward(self, d):
        d_x = self.right(d)
        self.db = self.db / d.size
        return d_x

    (finding,) = diagnose_layer(layer(backward)).findings
    assert (finding.defect, finding.facts["factor"]) == (
        "factor",
        "1 / (n * out_features) (n is the number of rows)",
    )


@pytest.mark.parametrize(
    "activation", [np.tanh, lambda z: np.where(z > 0, z, 0.3 * z), lambda z: np.sin(z) + z]
)
def test_gates_are_told_apart_with_activations_known_and_unknown(activation):
    def slope(z):
        return (activation(z + 1e-5) - activation(z - 1e-5)) / 2e-5

    gates = {
        "gate-missing": lambda self, d: d,
        "gate-twice": lambda self, d: d * slope(self.z) ** 2,
        "epsilon-in-derivative": lambda self, d: d * (slope(self.z) + 0.05),
    }
    for defect, gate in gates.items():
        made = layer(lambda self, d, gate=gate: self.right(gate(self, d)), activation)
        report = diagnose_layer(made)
        assert report.defects == (defect,), report
        assert report.findings[0].where == ("W", "b", "x")
    assert diagnose_layer(layer(lambda self, d: self.right(d * slope(self.z)), activation)).healthy


@pytest.mark.parametrize(
    ("defect", "gate"),
    [
        ("upstream-ignored", lambda self, d: (self.z > 0) * 1.0),
        ("activation-for-derivative", lambda self, d: d * self.a),
        ("other-derivative", lambda self, d: d * np.where(self.z > 0, 1, 0.01)),
        ("other-derivative", lambda self, d: d * (1 - np.tanh(self.z) ** 2)),
    ],
)
def test_other_ways_to_get_a_gate_wrong_are_told_apart(defect, gate):
    made = layer(lambda self, d: self.right(gate(self, d)), lambda z: np.maximum(z, 0))
    report = diagnose_layer(made)
    assert report.defects == (defect,), report


def test_the_derivative_of_another_activation_is_named_with_both():
    made = layer(lambda self, d: self.right(d * np.where(self.z > 0, 1, 0.2)), lambda z: np.maximum(z, 0))
    (finding,) = diagnose_layer(made).findings
    assert "a leaky ReLU with the slope 0.2" in finding.evidence
    assert "applies relu" in finding.evidence


def test_a_slope_that_is_fitted_goes_with_no_factor_that_is_fitted():
    def backward(self, d):
        d_x = self.right(d * (self.z > 0))
        self.dW = self.dW + self.x.T @ d
        return d_x

    report = diagnose_layer(layer(backward, lambda z: np.maximum(z, 0)))
    assert "other-derivative" not in report.defects


def test_a_weight_decay_in_the_gradient_is_described():
    def backward(self, d):
        d_x = self.right(d)
        self.dW = self.dW + 0.01 * self.W
        return d_x

    report = diagnose_layer(layer(backward))
    assert report.status == "cannot tell"
    assert "plus 0.01 times the array itself" in report.arrays[0].note


def test_an_epsilon_of_a_hundred_millionth_is_found_under_a_known_activation():
    made = layer(lambda self, d: self.right(d * (1 - self.a**2 + 1e-5)), np.tanh)
    (finding,) = diagnose_layer(made).findings
    assert finding.defect == "epsilon-in-derivative"
    assert finding.facts["factor"] == pytest.approx(1e-5, rel=1e-3)


def test_the_batch_size_is_blamed_only_if_every_single_sample_is_right():
    def first_row(self, d):
        d_x = self.right(d)
        self.dW = np.outer(self.x[0], d[0])
        return d_x

    def by_chance(self, d):
        return self.right(d * ((d > 0) if len(d) > 1 or self.x[0, 0] > -0.5 else (self.z > 0)))

    assert diagnose_layer(layer(first_row)).defects == ("batch-size-hides",)
    assert "batch-size-hides" not in diagnose_layer(layer(by_chance, lambda z: np.maximum(z, 0))).defects


def test_a_gate_that_one_array_forgets_is_named_for_that_array():
    def backward(self, d):
        d_x = self.right(d * (self.z > 0))
        self.db = d.sum(axis=0)
        return d_x

    (finding,) = diagnose_layer(layer(backward, lambda z: np.maximum(z, 0))).findings
    assert (finding.defect, finding.where) == ("gate-missing", ("b",))


def test_three_slips_at_once_are_all_named():
    def backward(self, d):
        d = -d * (self.z > 0)
        self.dW, self.db = d.T @ self.x, d.mean(axis=0)
        return d @ self.W.T

    report = diagnose_layer(layer(backward, lambda z: np.maximum(z, 0)))
    assert set(report.defects) == {"weight-transposed", "sign-flipped", "bias-averaged"}


def test_what_nothing_explains_is_left_open_beside_what_is_explained():
    def backward(self, d):
        d_x = self.right(d)
        self.dW, self.db = np.sin(self.dW), -self.db
        return d_x

    report = diagnose_layer(layer(backward))
    assert report.defects == ("sign-flipped",)
    assert {array.name: array.verdict for array in report.arrays} == {
        "W": "cannot tell",
        "b": "wrong",
        "x": "healthy",
    }
    assert len(report.arrays[0].entries) == 3


def test_only_what_nothing_explains_is_cannot_tell():
    def backward(self, d):
        d_x = self.right(d)
        self.dW = np.sin(self.dW)
        return d_x

    report = diagnose_layer(layer(backward))
    assert (report.status, report.findings) == ("cannot tell", ())


def test_a_backward_pass_that_stops_for_some_batches_is_said_with_its_line():
    def backward(self, d):
        d_x = self.right(d)
        self.b -= 0.0 * d.reshape(self.b.shape)
        return d_x

    (finding,) = diagnose_layer(layer(backward)).findings
    assert finding.defect == "crash"
    assert "with a batch of 2, 3 and 5" in finding.evidence and "test_doctor_structure.py" in finding.evidence


def test_the_transpose_in_d_x_is_named_although_it_runs_only_when_square():
    report = diagnose_layer(layer(lambda self, d: (self.right(d), d @ self.W)[1]))
    assert report.defects == ("input-weight-transposed",)


def test_formulas_are_written_in_the_names_and_the_storage_of_the_layer():
    (finding,) = diagnose_layer(scaled(weight=lambda n: 1 / n)).findings
    assert (finding.computed, finding.right) == ("d_W = x.T @ d_out / n", "d_W = x.T @ d_out")
    (finding,) = diagnose_layer(written.linear_forward, written.linear_backward_with_mean).findings
    assert finding.right == "d_W = d_out @ x.T; d_b = d_out.sum(axis=1, keepdims=True)"
    (finding,) = diagnose_layer(written.TanhAtOutput).findings
    assert finding.computed == "d_z = d_out * (1 - np.tanh(a)**2)"


def test_a_gradient_whose_shape_does_no_harm_is_healthy_with_a_note():
    class FlatGradient(written.StoresItsOutput):
        def backward(self, dvalues):
            super().backward(dvalues)
            self.dbiases = self.dbiases.ravel()

    report = diagnose_layer(FlatGradient)
    assert report.healthy
    assert "biases: its gradient has the shape (3,), which does no harm" in str(report)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("defect", "where"),
    [
        (None, ()),
        ("weight-transposed", ("W2",)),
        ("bias-averaged", ("b1",)),
        ("input-weight-transposed", ("what W2 sends down",)),
        ("gate-missing", ("W1", "b1", "x")),
        ("sign-flipped", ("W3", "b3", "W2", "b2", "W1", "b1", "x")),
    ],
)
def test_networks_are_explained_layer_by_layer(defect, where, dtype):
    class Network:
        def __init__(self):
            rng = np.random.default_rng(0)
            for i, sizes in enumerate(((4, 4), (4, 4), (4, 3)), 1):
                setattr(self, f"W{i}", rng.normal(size=sizes).astype(dtype))
                setattr(self, f"b{i}", np.zeros(sizes[1], dtype))

        def forward(self, x):
            self.a = [x]
            for i in (1, 2, 3):
                z = self.a[-1] @ getattr(self, f"W{i}") + getattr(self, f"b{i}")
                self.a.append(np.tanh(z) if i < 3 else z)
            return self.a[-1]

        def backward(self, d):
            self.grads = {}
            d = -d if defect == "sign-flipped" else d
            for i in (3, 2, 1):
                d_weight, d_bias = self.a[i - 1].T @ d, d.sum(axis=0)
                turned = defect == "weight-transposed" and i == 2
                averaged = defect == "bias-averaged" and i == 1
                self.grads[f"W{i}"] = d_weight.T if turned else d_weight
                self.grads[f"b{i}"] = d_bias / len(d) if averaged else d_bias
                weight = getattr(self, f"W{i}")
                d = d @ (weight if defect == "input-weight-transposed" and i == 2 else weight.T)
                if i > 1 and not (defect == "gate-missing" and i == 2):
                    d = d * (1 - self.a[i - 1] ** 2)
            return d

    report = diagnose_layer(Network)
    found = [(finding.defect, finding.where) for finding in report.findings]
    assert found == ([] if defect is None else [(defect, where)])
    assert report.healthy == (defect is None)


def test_laws_are_written_as_people_write_them():
    assert str(Law(0.3, (0, 0, 0))) == "0.3"
    assert str(Law(1.0, (-1, 0, 0))) == "1 / n"
    assert str(Law(2.0, (-1, 1, 0))) == "2 * out_features / n"
    assert str(Law(1.0, (-2, 0, -1))) == "1 / (n**2 * in_features)"


@pytest.mark.parametrize("curve", [known("tanh"), known("gelu"), leaky(0.1)], ids=lambda curve: curve.name)
def test_the_slopes_of_known_activations_are_those_of_their_values(curve):
    z = np.array([-1.3, -0.2, 0.4, 2.0])
    assert curve.slope(z) == pytest.approx((curve.value(z + 1e-6) - curve.value(z - 1e-6)) / 2e-6, rel=1e-6)


def test_a_derivative_that_is_too_small_by_a_number_is_written_with_a_minus():
    report = diagnose_layer(lambda z: np.where(z > 0, z, 0.1 * z), lambda d_out, z: 0.9 * d_out * (z > 0))
    assert report.defects == ("epsilon-in-derivative",)
    assert report.findings[0].facts["factor"] == pytest.approx(-0.1)
    assert report.findings[0].computed == "d_z = d_out * (np.where(z > 0, 1, 0.1) - 0.1)"


def test_two_numbers_that_only_fit_together_explain_nothing():
    report = diagnose_layer(lambda z: np.maximum(z, 0.0), lambda d_out, z: d_out * np.sign(z))
    assert report.status == "cannot tell"
