"""Gradients of a loss, from the arrays alone: named where the arrays tell, else left open."""

import numpy as np
import pytest

from denselayer.doctor import diagnose


def problem(dtype=np.float64, seed=0):
    """A loss of a bilinear form and a vector, its parameters, and its right gradients."""
    rng = np.random.default_rng(seed)
    params = {
        "W": rng.normal(size=(3, 3)).astype(dtype),
        "b": rng.normal(size=4).astype(dtype),
        "T": rng.normal(size=(2, 3, 2)).astype(dtype),
    }
    left, right = rng.normal(size=3), rng.normal(size=3)

    def loss(params):
        return np.tanh(left @ params["W"] @ right) + (params["b"] ** 3).sum() + np.sin(params["T"]).sum()

    def gradients(params):
        slope = 1 - np.tanh(left @ params["W"] @ right) ** 2
        return {
            "W": (slope * np.outer(left, right)).astype(dtype),
            "b": 3 * params["b"] ** 2,
            "T": np.cos(params["T"]),
        }

    return loss, params, gradients


def verdicts(report):
    return {array.name: array.verdict for array in report.arrays}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_right_gradients_of_any_rank_are_healthy(dtype):
    loss, params, gradients = problem(dtype)
    report = diagnose(loss, params, gradients(params))
    assert report.healthy
    assert verdicts(report) == {"W": "healthy", "b": "healthy", "T": "healthy"}


@pytest.mark.parametrize("container", [list, tuple])
def test_lists_and_tuples_are_handed_on_as_they_are(container):
    loss, params, gradients = problem()
    names = tuple(params)

    def of_container(values):
        assert type(values) is container
        return loss(dict(zip(names, values, strict=True)))

    grads = gradients(params)
    report = diagnose(of_container, container(params.values()), container(grads.values()))
    assert report.healthy
    assert [array.name for array in report.arrays] == ["params[0]", "params[1]", "params[2]"]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("name", "change", "defect"),
    [
        ("W", lambda g: g.T, "weight-transposed"),
        ("T", lambda g: -g, "sign-flipped"),
        ("T", lambda g: 2 * g, "factor-two"),
        ("b", lambda g: 0.1 * g, "factor"),
        ("b", lambda g: 0 * g, "bias-zero"),
        ("b", lambda g: None, "bias-zero"),
        ("W", lambda g: 0 * g, "gradient-zero"),
        ("W", lambda g: g.ravel(), "wrong-shape"),
        ("b", lambda g: np.stack([0.25 * g, 0.75 * g]), "bias-not-summed"),
        ("T", lambda g: np.where(g > 0, np.nan, g), "not-finite"),
    ],
)
def test_a_changed_gradient_is_named_for_its_array_alone(name, change, defect, dtype):
    loss, params, gradients = problem(dtype)
    grads = gradients(params)
    grads[name] = change(grads[name])
    report = diagnose(loss, params, grads)
    assert report.defects == (defect,)
    assert {array.name for array in report.arrays if array.verdict == "wrong"} == {name}


def test_a_vector_summed_over_the_wrong_axis_has_the_right_total():
    d_out = np.random.default_rng(0).normal(size=(5, 3))
    params = {"b": np.ones(3)}
    report = diagnose(lambda p: (d_out * p["b"]).sum(), params, {"b": d_out.sum(axis=1)})
    assert report.defects == ("bias-wrong-axis",)


def test_what_nothing_explains_is_left_open():
    loss, params, gradients = problem()
    grads = gradients(params)
    grads["T"] = np.sin(grads["T"])
    report = diagnose(loss, params, grads)
    assert (report.status, report.findings) == ("cannot tell", ())
    assert verdicts(report)["T"] == "cannot tell"
    assert report.arrays[2].entries[0].relative_error > 0.01


def test_the_factor_of_a_single_number_names_nothing():
    report = diagnose(lambda p: 3 * p["c"].sum(), {"c": np.ones(1)}, {"c": np.array([2.1])})
    assert (report.status, report.findings) == ("cannot tell", ())
    report = diagnose(lambda p: 3 * p["c"].sum(), {"c": np.ones(1)}, {"c": np.array([-3.0])})
    assert report.defects == ("sign-flipped",)


def test_with_the_batch_size_a_factor_gets_its_name():
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(5, 3)), rng.normal(size=5)
    params = {"w": rng.normal(size=3)}
    right = 2 * x.T @ (x @ params["w"] - t) / 5

    def loss(params):
        return np.mean((x @ params["w"] - t) ** 2)

    for factor, defect in ((1 / 5, "averaged-twice"), (5, "summed-not-averaged"), (1 / 2, "factor-two")):
        assert diagnose(loss, params, {"w": factor * right}, batch_size=5).defects == (defect,)
    assert diagnose(loss, params, {"w": right / 5}).defects == ("factor",)


def test_a_gradient_function_is_asked_at_several_points():
    loss, params, gradients = problem()
    first = gradients(params)
    assert diagnose(loss, params, gradients).healthy
    report = diagnose(loss, params, lambda _: first)
    assert verdicts(report)["b"] == verdicts(report)["T"] == "cannot tell"


def test_gradients_may_be_called_by_the_name_of_their_array():
    loss, params, gradients = problem()
    report = diagnose(loss, params, {f"d{name}": value for name, value in gradients(params).items()})
    assert report.healthy


def test_whole_numbers_are_told_from_what_they_cut_off():
    params = {"w": np.array([1.25, 0.5, 2.75])}
    loss = lambda p: (p["w"] ** 2).sum()  # noqa: E731
    assert diagnose(loss, params, {"w": 2 * params["w"]}).healthy
    whole = {"w": np.array([1, 2, 3])}
    report = diagnose(lambda p: 0.75 * (p["w"] ** 2).sum(), whole, {"w": np.array([1, 3, 4])})
    assert report.defects == ("integer-arithmetic",)


def test_at_a_kink_no_gradient_is_wrong():
    params = {"w": np.array([0.0, 1.0, -1.0])}
    for at_zero in (0.0, 1.0):
        report = diagnose(lambda p: np.maximum(p["w"], 0).sum(), params, {"w": np.array([at_zero, 1.0, 0.0])})
        assert report.healthy


def test_an_entry_that_was_not_measured_is_found_by_a_direction():
    w = np.random.default_rng(0).normal(size=(60, 60))
    gradient = 2 * w
    gradient[17, 23] += 5.0
    report = diagnose(lambda p: (p["w"] ** 2).sum(), {"w": w}, {"w": gradient})
    assert report.status == "cannot tell"
    assert "some other entry is wrong" in report.notes[0]
    assert diagnose(lambda p: (p["w"] ** 2).sum(), {"w": w}, {"w": 2 * w}).healthy


@pytest.mark.parametrize(
    ("loss", "defect"),
    [
        (lambda p: np.log(-1.0), "not-finite"),
        (lambda p: np.random.random(), "random"),
        (lambda p: [][1], "crash"),
    ],
)
def test_a_loss_that_cannot_be_measured_is_a_finding_and_never_healthy(loss, defect):
    with np.errstate(all="ignore"):
        report = diagnose(loss, {"w": np.ones(2)}, {"w": np.ones(2)})
    assert report.defects == (defect,)
    assert not report.healthy


def test_the_arrays_that_are_given_are_not_touched():
    loss, params, gradients = problem()
    grads = gradients(params)
    copies = [{name: value.copy() for name, value in one.items()} for one in (params, grads)]
    diagnose(loss, params, grads)
    for one, copy in zip((params, grads), copies, strict=True):
        assert all(np.array_equal(one[name], copy[name]) for name in copy)


@pytest.mark.parametrize(("params", "grads"), [(np.ones(3), np.ones(3)), ({"w": np.ones(3)}, 3.0)])
def test_other_containers_are_refused_with_advice(params, grads):
    with pytest.raises(TypeError, match="dict|container"):
        diagnose(lambda p: 0.0, params, grads)
