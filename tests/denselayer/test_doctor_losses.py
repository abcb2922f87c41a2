"""A loss and its gradient: which loss it is, and which loss the gradient belongs to."""

import numpy as np
import pytest

from denselayer import functional as F
from denselayer import nn
from denselayer.doctor import diagnose_loss
from denselayer.doctor._loss_fits import fit


def hot(labels, classes):
    return np.eye(classes)[labels]


def mse(y, t):
    return ((y - t) ** 2).mean()


def d_mse(y, t):
    return 2 * (y - t) / y.size


def half(y, t):
    return 0.5 * ((y - t) ** 2).sum() / len(y)


def mae(y, t):
    return np.abs(y - t).mean()


def d_mae(y, t):
    return np.sign(y - t) / y.size


def of_softmax(z, t):
    return ((F.softmax(z) - t) ** 2).sum() / len(z)


def of_sigmoid(z, t):
    return ((F.sigmoid(z) - t) ** 2).mean()


def bell(z):
    return F.sigmoid(z) * (1 - F.sigmoid(z))


def softmax_of_all(z, labels):
    p = np.exp(z - z.max())
    return -np.log((p / p.sum())[np.arange(len(z)), labels]).sum()


def log_softmax_by_hand(z):
    shifted = z - z.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def cross_entropy_with_gradient(z, labels):
    """As cs231n writes it: the loss and its gradient in one."""
    log_p, rows = log_softmax_by_hand(z), np.arange(len(z))
    d_z = np.exp(log_p)
    d_z[rows, labels] -= 1
    return -log_p[rows, labels].mean(), d_z / len(z)


def hinge(z, labels):
    rows = np.arange(len(z))
    margins = np.maximum(0, z - z[rows, labels][:, None] + 1)
    margins[rows, labels] = 0
    d_z = (margins > 0).astype(float)
    d_z[rows, labels] -= d_z.sum(axis=1)
    return margins.sum() / len(z), d_z / len(z)


def smoothed(z, labels):
    target = 0.9 * hot(labels, z.shape[1]) + 0.1 / z.shape[1]
    return -(target * log_softmax_by_hand(z)).sum() / len(z)


def d_smoothed(z, labels):
    target = 0.9 * hot(labels, z.shape[1]) + 0.1 / z.shape[1]
    return (F.softmax(z) - target) / len(z)


def focal(z, t):
    p = np.where(t == 1, F.sigmoid(z), 1 - F.sigmoid(z))
    return -((1 - p) ** 2 * np.log(p)).mean()


def d_focal(z, t):
    p = np.where(t == 1, F.sigmoid(z), 1 - F.sigmoid(z))
    return np.where(t == 1, 1, -1) * (1 - p) ** 2 * (2 * p * np.log(p) - (1 - p)) / z.size


class PerSample:
    """A loss for each sample, with a backward pass that divides by their number."""

    def forward(self, y_pred, y_true):
        return -np.log(np.clip(y_pred, 1e-7, 1 - 1e-7)[range(len(y_pred)), y_true])

    def backward(self, dvalues, y_true):
        self.dinputs = -hot(y_true, dvalues.shape[1]) / dvalues / len(dvalues)


class Mean:
    def forward(self, y, t):
        self.kept = y, t
        return mse(y, t)

    def backward(self):
        return d_mse(*self.kept)


HEALTHY = {
    "mean squared error": (mse, d_mse),
    "half of it, over the rows": (half, lambda y, t: (y - t) / len(y)),
    "three times it": (lambda y, t: 3 * mse(y, t), lambda y, t: 3 * d_mse(y, t)),
    "target first": (lambda y_true, y_pred: mse(y_pred, y_true), lambda t, y: d_mse(y, t)),
    "labels first": (
        lambda y_true, y_pred: F.cross_entropy(y_pred, y_true),
        lambda y_true, y_pred: F.cross_entropy_backward(y_pred, y_true),
    ),
    "root": (lambda y, t: np.sqrt(mse(y, t)), lambda y, t: (y - t) / y.size / np.sqrt(mse(y, t))),
    "absolute error": (mae, d_mae),
    "vectors only": (lambda y, t: float((y - t) @ (y - t)), lambda y, t: 2 * (y - t)),
    "regularised": (lambda y, t: mse(y, t) + 0.01 * (y**2).sum(), lambda y, t: d_mse(y, t) + 0.02 * y),
    "cross entropy": (F.cross_entropy, F.cross_entropy_backward),
    "loss and gradient in one": (cross_entropy_with_gradient, None),
    "samples in columns": (
        lambda z, t: -(t * F.log_softmax(z, 0)).sum() / z.shape[1],
        lambda z, t: (F.softmax(z, 0) - t) / z.shape[1],
    ),
    "hinge": (hinge, None),
    "label smoothing": (smoothed, d_smoothed),
    "binary cross entropy": (F.bce_with_logits, F.bce_with_logits_backward),
    "binary, of probabilities": (
        lambda p, t: -(t * np.log(p) + (1 - t) * np.log(1 - p)).mean(),
        lambda p, t: (p - t) / (p * (1 - p)) / p.size,
    ),
    "focal": (focal, d_focal),
    "softmax and squares": (
        of_softmax,
        lambda z, t: (
            2
            * F.softmax(z)
            * (F.softmax(z) - t - ((F.softmax(z) - t) * F.softmax(z)).sum(1, keepdims=True))
            / len(z)
        ),
    ),
    "sigmoid and squares": (of_sigmoid, lambda z, t: 2 * (F.sigmoid(z) - t) * bell(z) / z.size),
    "one number for each sample": (PerSample, None),
    "an object": (Mean(), None),
    "the module": (nn.CrossEntropyLoss, None),
    "the module, as a sum": (nn.BCEWithLogitsLoss("sum"), None),
}


@pytest.mark.parametrize(("loss", "gradient"), HEALTHY.values(), ids=HEALTHY)
def test_a_right_gradient_is_healthy(loss, gradient):
    assert diagnose_loss(loss, gradient).status == "healthy"


def shifted_log(z, labels):
    return -np.log(F.softmax(z)[np.arange(len(z)), labels]).mean()


def overflowing(z, labels):
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    return -np.log(p[np.arange(len(z)), labels]).mean()


SICK = {
    "the 2 is missing": (mse, lambda y, t: (y - t) / y.size, ["factor-two"]),
    "a 2 too many": (half, lambda y, t: 2 * (y - t) / len(y), ["factor-two"]),
    "not divided": (mse, lambda y, t: 2 * (y - t), ["summed-not-averaged"]),
    "divided by the rows alone": (mse, lambda y, t: 2 * (y - t) / len(y), ["summed-not-averaged"]),
    "divided twice": (mse, lambda y, t: d_mse(y, t) / len(y), ["averaged-twice"]),
    "divided where the loss is not": (lambda y, t: ((y - t) ** 2).sum(), d_mse, ["all-averaged"]),
    "turned round": (mse, lambda y, t: d_mse(t, y), ["sign-flipped"]),
    "turned round and halved": (mse, lambda y, t: (t - y) / y.size, ["sign-flipped", "factor-two"]),
    "a constant": (F.cross_entropy, lambda z, t: 0.3 * F.cross_entropy_backward(z, t), ["factor"]),
    "squares for absolutes": (mae, d_mse, ["other-loss"]),
    "half of squares for absolutes": (mae, lambda y, t: (y - t) / y.size, ["other-loss"]),
    "squares over all entries": (
        F.cross_entropy,
        lambda z, t: 2 * (z - hot(t, z.shape[1])) / z.size,
        ["other-loss"],
    ),
    "absolutes for squares": (mse, d_mae, ["other-loss"]),
    "squares for their root": (lambda y, t: np.sqrt(mse(y, t)), d_mse, ["other-loss"]),
    "no label taken away": (F.cross_entropy, lambda z, t: F.softmax(z) / len(z), ["other-loss"]),
    "other labels": (smoothed, F.cross_entropy_backward, ["other-loss"]),
    "squares for a loss that is not known": (lambda y, t: ((y - t) ** 4).mean(), d_mse, ["other-loss"]),
    "zeros": (mse, lambda y, t: 0 * y, ["gradient-zero"]),
    "nothing": (mse, lambda y, t: None, ["gradient-zero"]),
    "one number": (mse, lambda y, t: d_mse(y, t).sum(), ["wrong-shape"]),
    "not a number": (mse, lambda y, t: d_mse(y, t) + np.log(-np.abs(y)), ["not-finite"]),
    "softmax of the softmax in the loss": (
        lambda z, t: F.cross_entropy(F.softmax(z), t),
        F.cross_entropy_backward,
        ["softmax-twice"],
    ),
    "softmax of the softmax in both": (
        lambda z, t: F.cross_entropy(F.softmax(z), t),
        lambda z, t: F.cross_entropy_backward(F.softmax(z), t),
        ["softmax-twice"],
    ),
    "softmax of the softmax in the gradient": (
        F.cross_entropy,
        lambda z, t: F.cross_entropy_backward(F.softmax(z), t),
        ["softmax-twice"],
    ),
    "by the probabilities": (
        F.cross_entropy,
        lambda z, t: -hot(t, z.shape[1]) / F.softmax(z) / len(z),
        ["softmax-jacobian-missing"],
    ),
    "the diagonal of the Jacobian alone": (
        F.cross_entropy,
        lambda z, t: -hot(t, z.shape[1]) * (1 - F.softmax(z)) / len(z),
        ["other-loss"],
    ),
    "squares, by the probabilities": (
        of_softmax,
        lambda z, t: 2 * (F.softmax(z) - t) / len(z),
        ["softmax-jacobian-missing"],
    ),
    "no slope of the sigmoid": (of_sigmoid, lambda z, t: 2 * (F.sigmoid(z) - t) / z.size, ["gate-missing"]),
    "the slope of the sigmoid twice": (
        F.bce_with_logits,
        lambda z, t: F.bce_with_logits_backward(z, t) * bell(z),
        ["gate-twice"],
    ),
    "an epsilon at the slope": (
        of_sigmoid,
        lambda z, t: 2 * (F.sigmoid(z) - t) * (bell(z) + 0.01) / z.size,
        ["epsilon-in-derivative"],
    ),
    "an epsilon in the logarithm": (
        lambda z, t: -np.log(F.softmax(z)[np.arange(len(z)), t] + 1e-3).mean(),
        F.cross_entropy_backward,
        ["unstable-log"],
    ),
    "a tiny epsilon in the logarithm": (
        lambda z, t: -np.log(F.softmax(z)[np.arange(len(z)), t] + 1e-12).mean(),
        F.cross_entropy_backward,
        ["unstable-log"],
    ),
    "a logarithm of zero": (shifted_log, F.cross_entropy_backward, ["unstable-log"]),
    "an exponential that overflows": (overflowing, F.cross_entropy_backward, ["unstable-softmax"]),
    "a softplus that overflows": (
        lambda z, t: (np.log(1 + np.exp(z)) - t * z).mean(),
        F.bce_with_logits_backward,
        ["unstable-softmax"],
    ),
    "one softmax for all rows": (
        softmax_of_all,
        lambda z, t: np.exp(z) / np.exp(z).sum() * len(z) - hot(t, z.shape[1]),
        ["batch-mixed"],
    ),
    "float32 inside": (
        lambda y, t: mse(y.astype(np.float32), t.astype(np.float32)),
        d_mse,
        ["float32-arithmetic"],
    ),
    "dice": (lambda y, t: mse(y, t) + np.random.random(), d_mse, ["random"]),
    "an error": (mse, lambda y, t: y.no_such_thing, ["crash"]),
}


@pytest.mark.parametrize(("loss", "gradient", "defects"), SICK.values(), ids=SICK)
def test_a_wrong_gradient_is_named(loss, gradient, defects):
    report = diagnose_loss(loss, gradient)
    assert list(report.defects) == defects
    assert all(len(finding.evidence) > 20 and len(finding.change) > 20 for finding in report.findings)


class Stale(Mean):
    kept = None

    def forward(self, y, t):
        self.kept = self.kept or (y, t)
        return mse(y, t)


class Shared(Mean):
    def forward(self, y, t):
        Shared.kept = y, t
        return mse(y, t)


class Buffered(Mean):
    grad = None

    def backward(self):
        y, t = self.kept
        if self.grad is None or self.grad.shape != y.shape:
            self.grad = np.empty_like(y)
        self.grad[...] = d_mse(y, t)
        return self.grad


class Truncating(Mean):
    def backward(self):
        y, t = self.kept
        d_y = np.zeros_like(y)
        d_y[...] = d_mse(y, t)
        return d_y


@pytest.mark.parametrize(
    ("loss", "defect"),
    [
        (Stale, "stale-cache"),
        (Shared, "stale-cache"),
        (Buffered, "view-kept"),
        (Truncating, "integer-arithmetic"),
    ],
)
def test_a_habit_of_an_object_is_named(loss, defect):
    assert diagnose_loss(loss).defects == (defect,)


def test_the_batch_may_be_the_columns_of_an_elementwise_loss():
    def of_columns(p, t):
        return -(t * np.log(p) + (1 - t) * np.log(1 - p)).sum() / p.shape[1]

    report = diagnose_loss(of_columns, lambda p, t: (1 - t) / (1 - p) - t / p)
    assert report.defects == ("summed-not-averaged",)
    assert "column" in report.subject


def test_an_explanation_must_hold_in_every_entry():
    patterns = [np.array([1.0, 0.0]), np.array([0.0, 1.0])]
    arrays = [np.array([1.0, 0.1]), np.array([0.1, 1.0])]
    sizes, tolerances = [(2, 1), (5, 1)], [1e-9, 1e-9]
    assert fit(arrays, patterns, tolerances, sizes) is None
    assert fit(patterns, patterns, tolerances, sizes).is_one(1e-9)


def test_predictions_that_are_changed_in_place_are_named():
    def gradient(z, labels):
        z -= z.max(axis=1, keepdims=True)
        return F.cross_entropy_backward(z, labels)

    report = diagnose_loss(F.cross_entropy, gradient)
    assert [(finding.defect, finding.where) for finding in report.findings] == [
        ("input-changed", ("logits",))
    ]


def test_both_losses_are_told_by_their_names():
    [finding] = diagnose_loss(mae, d_mse).findings
    assert "is that of the squared error" in finding.evidence
    assert "is the absolute error" in finding.evidence


def test_the_report_says_which_loss_and_which_targets_were_found():
    assert diagnose_loss(F.cross_entropy, F.cross_entropy_backward).subject == (
        "a loss, the cross entropy of the softmax, with labels as targets"
    )


def test_the_verdict_shows_the_worst_entries():
    [verdict] = diagnose_loss(mse, lambda y, t: d_mse(t, y)).arrays
    assert (verdict.name, verdict.verdict, len(verdict.entries)) == ("y", "wrong", 3)
    assert verdict.entries[0].theirs == pytest.approx(-verdict.entries[0].numeric)


def test_what_is_right_for_one_row_alone_is_noted():
    report = diagnose_loss(mse, lambda y, t: d_mse(y, t) / len(y))
    assert any("batch of 1" in note for note in report.notes)


def test_a_gradient_that_no_formula_explains_gets_no_name():
    report = diagnose_loss(mse, lambda y, t: np.cos(y) * t)
    assert (report.status, report.defects) == ("cannot tell", ())


def test_a_loss_with_a_minus_too_many_is_noted():
    report = diagnose_loss(lambda y, t: -mse(y, t), lambda y, t: -d_mse(y, t))
    assert any("minus sign" in note for note in report.notes)


def test_certain_probabilities_are_a_note_and_no_defect():
    report = diagnose_loss(*HEALTHY["binary, of probabilities"])
    assert any("exactly 0 and 1" in note for note in report.notes)


def test_a_loss_without_a_gradient_is_never_healthy():
    report = diagnose_loss(mse)
    assert report.status == "cannot tell"
    assert "No gradient came" in report.notes[0]


def test_the_kind_of_targets_can_be_told():
    report = diagnose_loss(mse, d_mse, targets="one-hot")
    assert report.healthy
    assert "one-hot" in report.subject


def test_an_unknown_kind_of_targets_is_refused():
    with pytest.raises(ValueError, match="targets is 'words'"):
        diagnose_loss(mse, d_mse, targets="words")


def test_something_that_is_no_loss_is_refused():
    with pytest.raises(TypeError, match="diagnose_loss: an int came"):
        diagnose_loss(3, d_mse)


def test_prints_of_the_loss_are_not_shown(capsys):
    def talking(y, t):
        print(y)
        return mse(y, t)

    assert diagnose_loss(talking, d_mse).healthy
    assert capsys.readouterr().out == ""


def test_a_mean_over_the_columns_in_place_of_the_rows_is_one_factor():
    def gradient(z, labels):
        return (F.softmax(z) - hot(labels, z.shape[1])) / z.shape[1]

    report = diagnose_loss(F.cross_entropy, gradient)
    assert report.defects == ("factor",)
    assert report.findings[0].facts["factor"].startswith("n / k")
