"""The doctor before code that it has not seen: true names or none, and everything left as it was."""

import random
import warnings

import numpy as np
import pytest

from denselayer import doctor
from tests.denselayer import foreign_mistakes  # noqa: F401
from tests.denselayer.foreign_layers import FOREIGN, UNSURE

EVERY = pytest.mark.parametrize("name", FOREIGN)


def diagnosed(name):
    """The report on a subject."""
    subject, _ = FOREIGN[name]
    return doctor.diagnose_layer(*(subject if isinstance(subject, tuple) else (subject,)))


@EVERY
def test_foreign_code_gets_its_true_name_or_none(name):
    defects = set(FOREIGN[name][1])
    report = diagnosed(name)
    if UNSURE in defects:
        assert set(report.defects) <= defects, str(report)
        assert not report.healthy
    else:
        assert set(report.defects) == defects, str(report)
        assert report.healthy == (not defects), str(report)
    assert "The doctor itself" not in str(report)


@EVERY
def test_a_diagnosis_says_the_same_twice_and_leaves_no_trace(name, capsys):
    states = repr(np.random.get_state()), random.getstate()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        texts = {str(diagnosed(name)) for _ in range(2)}
    assert len(texts) == 1
    assert (repr(np.random.get_state()), random.getstate()) == states
    assert capsys.readouterr() == ("", "")


def squares(params):
    """A loss of arrays in a dict, a list, or containers in each other."""
    parts = params.values() if isinstance(params, dict) else params
    return sum(squares(part) if isinstance(part, list | tuple) else (part**2).sum() for part in parts)


def test_arrays_in_containers_in_a_list_are_examined():
    params = [(np.ones((2, 2)), np.arange(2.0)), (np.ones(3),)]
    grads = [(2 * np.ones((2, 2)), 2 * np.arange(2.0)), (-2 * np.ones(3),)]
    report = doctor.diagnose(squares, params, grads)
    assert [array.verdict for array in report.arrays] == ["healthy", "healthy", "wrong"]
    assert report.defects == ("sign-flipped",)


@pytest.mark.parametrize(
    ("loss", "array", "gradient", "words"),
    [
        (lambda p: abs(p["w"]).sum(), np.ones(3) + 1j, np.ones(3), "real numbers only"),
        (lambda p: p["w"] ** 2, np.ones(3), 2 * np.ones(3), "one real number is needed"),
        (lambda p: None, np.ones(3), np.ones(3), "The loss returned None"),
        (lambda p: 0.0, np.zeros((0, 3)), np.zeros((0, 3)), "it has no entries"),
        (lambda p: np.abs(p["w"]).sum(), np.zeros(3), np.array([0, 7.0, 0]), "at a kink"),
    ],
    ids=["complex", "a loss for each entry", "no loss", "empty", "kinks alone"],
)
def test_what_cannot_be_measured_is_no_defect(loss, array, gradient, words):
    report = doctor.diagnose(loss, {"w": array}, {"w": gradient})
    assert (report.status, report.findings) == ("cannot tell", ())
    assert words in str(report).replace("\n     ", "")


def test_numbers_that_hide_a_transpose_are_named():
    matrix = np.array([[1.0, 2.0], [2.0, -1.0]])
    report = doctor.diagnose(lambda p: np.trace(p["W"] @ p["W"]), {"W": matrix}, {"W": 2 * matrix})
    assert report.healthy
    assert any("transpose too many cannot be seen" in note for note in report.notes)


def quadratic(params, x, t):
    """A linear model's loss."""
    return float(np.mean((x @ params["W"] - t) ** 2))


def descent(params, x, t, lr):
    """One right step."""
    return {"W": params["W"] - lr * 2 * x.T @ (x @ params["W"] - t) / t.size}


def twice(params, x, t, lr):
    return descent(descent(params, x, t, lr), x, t, lr)


def sample_by_sample(params, x, t, lr):
    for row in range(len(x)):
        params = descent(params, x[row : row + 1], t[row : row + 1], lr)
    return params


def for_nobody(params, x, t, lr):
    params = descent(params, x, t, lr)


@pytest.mark.parametrize(
    ("step", "words"),
    [(twice, "several steps"), (sample_by_sample, "several steps"), (for_nobody, "changes no parameter")],
)
def test_a_step_that_is_none_or_several_is_described(step, words):
    rng = np.random.default_rng(0)
    w, x, t = (rng.normal(size=shape) for shape in ((3, 2), (8, 3), (8, 2)))
    report = doctor.diagnose_step(step, {"W": w}, quadratic, x, t)
    assert (report.status, report.findings) == ("cannot tell", ())
    assert words in report.notes[-1]


class Counted:
    """A loss with a memory."""

    calls = 0

    def forward(self, y, t):
        self.calls += 1
        self.difference = y - t
        return np.mean(self.difference**2)

    def backward(self):
        return 2 * self.difference / self.difference.size


def test_an_object_that_is_a_loss_is_left_as_it_was():
    loss = Counted()
    assert doctor.diagnose_loss(loss).healthy
    assert vars(loss) == {}


def test_a_loss_of_other_targets_is_no_defect():
    report = doctor.diagnose_loss(lambda q, p: (p * np.log(p / q)).sum(), lambda q, p: -p / q)
    assert (report.status, report.findings) == ("cannot tell", ())


def test_a_mistake_of_the_doctor_is_called_its_own(monkeypatch):
    def stumble(*_, **__):
        raise KeyError("lost")

    monkeypatch.setattr("denselayer.doctor._layers.subject_of", stumble)
    report = doctor.diagnose_layer(FOREIGN["Schicht"][0])
    assert report.status == "cannot tell"
    assert "The doctor itself stopped with KeyError" in report.notes[0]


class WeightsInLists:
    """Its weight is no array, so that nobody finds it."""

    def __init__(self, n_in, n_out):
        self.W = [[0.1 * (row - column) for column in range(n_out)] for row in range(n_in)]

    def forward(self, x):
        self.x = x
        return x @ np.array(self.W)

    def backward(self, d):
        self.dW = (-self.x.T @ d).tolist()
        return d @ np.array(self.W).T


def test_a_gradient_without_a_parameter_is_not_called_healthy():
    report = doctor.diagnose_layer(WeightsInLists)
    assert report.status == "cannot tell"
    assert "backward stores dW" in report.notes[0]
