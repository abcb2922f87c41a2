"""One random direction tests all entries of a gradient at once."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from denselayer import functional as F
from denselayer import nn
from denselayer.gradcheck import check_direction, check_gradients, miss_probability


def layer(seed=0, dtype=np.float64, batch=5, inputs=4, outputs=3):
    """A dense layer with a tanh and a squared error: loss, parameters, right gradients."""
    rng = np.random.default_rng(seed)
    params = {
        "x": rng.normal(size=(batch, inputs)).astype(dtype),
        "weight": rng.normal(size=(outputs, inputs)).astype(dtype),
        "bias": rng.normal(size=outputs).astype(dtype),
    }
    target = rng.normal(size=(batch, outputs)).astype(dtype)

    def loss(p):
        out = F.tanh(F.linear(p["x"], p["weight"], p["bias"]))
        return F.mse_loss(out, target.astype(out.dtype))

    z = F.linear(params["x"], params["weight"], params["bias"])
    d_z = F.tanh_backward(F.mse_loss_backward(F.tanh(z), target), z)
    d_x, d_weight, d_bias = F.linear_backward(d_z, params["x"], params["weight"])
    return loss, params, {"x": d_x, "weight": d_weight, "bias": d_bias}


def norm(gradients):
    return math.sqrt(sum(float((gradient**2).sum()) for gradient in gradients.values()))


@given(seed=st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_right_gradients_pass_along_every_direction(seed):
    loss, params, grads = layer(seed)
    report = check_direction(loss, params, grads, directions=3, rng=seed)
    assert report.ok, report
    assert len(report.entries) == 3
    assert not report.kinks


@given(seed=st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_float32_gradients_pass_too(seed):
    loss, params, grads = layer(seed, np.float32)
    assert check_direction(loss, params, grads, directions=2, rng=seed).ok


DEFECTS = {
    "one entry of one array": lambda g: g | {"x": g["x"] + 1e-3 * np.eye(5, 4)},
    "one sign": lambda g: g | {"bias": -g["bias"]},
    "one array missing": lambda g: g | {"bias": np.zeros(3)},
    "one array times N": lambda g: g | {"bias": 5 * g["bias"]},
    "one array over N": lambda g: g | {"weight": g["weight"] / 5},
    "all twice": lambda g: {name: 2 * array for name, array in g.items()},
    "all zero": lambda g: {name: 0 * array for name, array in g.items()},
    "the fifth digit": lambda g: g | {"weight": g["weight"] * (1 + 3e-5)},
    "rows in another order": lambda g: g | {"weight": g["weight"][::-1].copy()},
    "NaN": lambda g: g | {"bias": np.array([np.nan, 0.0, 0.0])},
    "infinity": lambda g: g | {"bias": np.array([np.inf, 0.0, 0.0])},
}


@pytest.mark.parametrize("name", DEFECTS)
@pytest.mark.parametrize("seed", range(5))
def test_wrong_gradients_are_found_with_one_direction(name, seed):
    loss, params, grads = layer(seed)
    with np.errstate(invalid="ignore"):
        report = check_direction(loss, params, DEFECTS[name](grads), rng=seed)
    assert not report.ok
    assert "FAILED: 1 direction checked, 1 wrong" in str(report)


@pytest.mark.equation("eq-check-direction")
@pytest.mark.parametrize("seed", range(3))
def test_the_slope_along_a_direction_is_the_sum_of_all_slopes_times_its_entries(seed):
    loss, params, grads = layer(seed)
    rng = np.random.default_rng(seed)
    direction = {name: rng.normal(size=array.shape) for name, array in params.items()}

    def at(h):
        return float(loss({name: array + h * direction[name] for name, array in params.items()}))

    measured = (at(1e-5) - at(-1e-5)) / 2e-5
    exact = sum(g * v for name in params for g, v in zip(grads[name].flat, direction[name].flat, strict=True))
    assert measured == pytest.approx(exact, rel=1e-7)
    [entry] = check_direction(loss, params, grads, rng=seed).entries
    assert entry.place == "direction[0]"
    assert entry.analytic == pytest.approx(entry.numeric, rel=1e-5)


def test_the_loss_is_evaluated_a_handful_of_times_however_many_entries_there_are():
    calls = []
    weight = np.linspace(-1.0, 1.0, 200_000).reshape(400, 500)

    def loss(p):
        calls.append(1)
        return np.sin(p["weight"]).sum()

    assert check_direction(loss, {"weight": weight}, {"weight": np.cos(weight)}).ok
    assert len(calls) == 5  # twice to see that it is finite and a function, at the point, to either side
    calls.clear()
    assert check_direction(loss, {"weight": weight}, {"weight": np.cos(weight)}, directions=3).ok
    assert len(calls) == 9


def test_the_arrays_are_never_touched_and_the_directions_are_the_same_every_time():
    loss, params, grads = layer()
    before = {name: array.copy() for name, array in params.items()}
    for array in (*params.values(), *grads.values()):
        array.setflags(write=False)
    first, second = (check_direction(loss, params, grads) for _ in range(2))
    assert first == second
    assert check_direction(loss, params, grads, rng=1).entries != first.entries
    assert all(np.array_equal(params[name], before[name]) for name in params)
    generator = np.random.default_rng(0)
    assert check_direction(loss, params, grads, rng=generator) == first
    assert check_direction(loss, params, grads, rng=generator) != first


@pytest.mark.parametrize("check", [check_direction, check_gradients])
def test_a_tolerance_of_zero_leaves_what_rounding_can_do_and_a_negative_one_is_refused(check):
    params, right = {"w": np.array([1.0, -2.0])}, np.array([3.0, 5.0])

    def loss(p):
        return p["w"] @ right

    assert check(loss, params, {"w": right}, rtol=0.0).ok
    nearly = {"w": right * (1 + 1e-7)}
    assert check(loss, params, nearly).ok
    assert not check(loss, params, nearly, rtol=0).ok
    with pytest.raises(ValueError, match="rtol is -1"):
        check(loss, params, {"w": -right}, rtol=-1)


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e6])
def test_parameters_of_any_size_are_moved_in_proportion(scale):
    params = {"w": scale * np.array([0.3, -1.2, 2.0]), "b": np.array([0.5])}

    def loss(p):
        return np.log(1 + (p["w"] / scale) ** 2).sum() * np.exp(p["b"]).sum()

    u, e = params["w"] / scale, np.exp(0.5)
    grads = {"w": 2 * u / (1 + u**2) / scale * e, "b": np.log(1 + u**2).sum(keepdims=True) * e}
    assert check_direction(loss, params, grads, directions=4).ok
    wrong = grads | {"w": grads["w"] * 1.01}
    assert not check_direction(loss, params, wrong, directions=4).ok


def test_a_large_network_with_kinks_within_the_step_passes_and_its_defects_do_not():
    rng = np.random.default_rng(0)
    network = nn.Sequential(
        nn.Linear(300, 100, init="he", rng=rng), nn.ReLU(), nn.Linear(100, 5, init="he", rng=rng)
    )
    x, target = rng.normal(size=(64, 300)), rng.integers(0, 5, 64)
    criterion = nn.CrossEntropyLoss()
    criterion(network(x), target)
    network.backward(criterion.backward())
    params = {name: parameter.data.copy() for name, parameter in network.named_parameters()}
    grads = {name: parameter.grad for name, parameter in network.named_parameters()}

    def loss(p):
        hidden = F.relu(F.linear(x, p["0.weight"], p["0.bias"]))
        return F.cross_entropy(F.linear(hidden, p["2.weight"], p["2.bias"]), target)

    wrong = grads | {"0.weight": grads["0.weight"] * (1 + 1e-3)}
    for seed in range(6):
        assert check_direction(loss, params, grads, rng=seed).ok
        assert not check_direction(loss, params, wrong, rng=seed).ok


@pytest.mark.parametrize("slope", [0.0, 1.0])
def test_a_point_on_a_kink_is_reported_as_a_kink(slope):
    params = {"z": np.array([0.0, 1.0, -1.0])}

    def loss(p):
        return np.maximum(p["z"], 0).sum()

    report = check_direction(loss, params, {"z": np.array([slope, 1.0, 0.0])})
    assert report.ok
    assert [entry.place for entry in report.kinks] == ["direction[0]"]
    assert not check_direction(loss, params, {"z": np.array([slope, 1.5, 0.0])}, directions=5).ok


def test_a_loss_that_computes_in_float32_is_held_to_fewer_digits():
    x = np.linspace(0.5, 2.0, 30, dtype=np.float32)

    def rounded(p):
        return np.float32((p["x"] ** 2).sum())

    def only_float32(p):
        if p["x"].dtype != np.float32:
            raise TypeError("float32 only")
        return np.sum(p["x"] ** 2, dtype=np.float32)

    for loss in (rounded, only_float32):
        assert check_direction(loss, {"x": x}, {"x": 2 * x}, directions=3).ok
        assert not check_direction(loss, {"x": x}, {"x": 3 * x}, directions=3).ok


def test_a_slope_that_drowns_in_rounding_is_a_finding():
    params = {"large": np.array([1e9, 1e9]), "small": np.array([0.1])}
    report = check_direction(
        lambda p: p["large"][0] - p["large"][1] + p["small"][0],
        params,
        {"large": np.zeros(2), "small": np.array([1e-9])},
    )
    assert not report.ok


def test_a_loss_with_random_numbers_is_a_finding():
    rng = np.random.default_rng(0)
    x = rng.normal(size=20)

    def dropout(p):
        return np.sum(p["x"] ** 2 * (rng.random(20) < 0.5))

    for check in (check_direction, check_gradients):
        report = check(dropout, {"x": x}, {"x": x})
        assert not report.ok
        assert "for the same arrays: fix its random numbers" in report.findings[0]
    mask = rng.random(20) < 0.5
    assert check_direction(lambda p: np.sum(p["x"] ** 2 * mask), {"x": x}, {"x": 2 * x * mask}).ok


@pytest.mark.parametrize("claim", [0.0, 1.0, 100.0])
def test_a_loss_that_jumps_has_no_right_gradient(claim):
    """Its one-sided slopes grow as the step shrinks, so every claim would lie between them."""
    params, grads = {"x": np.array([0.0, 1.0])}, {"x": np.array([claim, 0.0])}
    for check in (check_direction, check_gradients):
        assert not check(lambda p: np.sum(p["x"] > 0.0).astype(float), params, grads).ok
    after = {"x": np.array([1e-3, 1.0])}
    for check in (check_direction, check_gradients):
        assert check(lambda p: np.sum(p["x"] > 0.0) + np.sum(p["x"]), after, {"x": np.ones(2)}).ok


def test_findings_come_before_the_measurement():
    params = {"w": np.ones((2, 3))}
    report = check_direction(lambda p: p["w"].sum(), params, {"w": np.ones((3, 2))})
    assert report.findings == ("the gradient of w has shape (3, 2), expected (2, 3): that is its transpose.",)
    assert not check_direction(lambda p: p["w"].sum(), params, {"w": None}).ok
    assert "nan" in str(check_direction(lambda p: np.nan, params, params))


def test_empty_arrays_have_nothing_to_move():
    empty = {"w": np.ones((0, 3))}
    report = check_direction(lambda p: p["w"].sum(), empty, empty)
    assert report.ok
    assert "nothing to check" in str(report)
    mixed = empty | {"b": np.ones(2)}
    assert check_direction(lambda p: p["w"].sum() + p["b"].sum(), mixed, mixed).ok


def test_bad_arguments_are_explained():
    params = {"w": np.ones(2)}

    def run(**options):
        return check_direction(lambda p: p["w"].sum(), params, options.pop("grads", params), **options)

    with pytest.raises(ValueError, match="directions is 0"):
        run(directions=0)
    with pytest.raises(TypeError, match="directions is a float"):
        run(directions=1.5)
    with pytest.raises(ValueError, match="Give each array one gradient"):
        run(grads={"v": np.ones(2)})
    with pytest.raises(ValueError, match="step"):
        run(step=0.0)
    with pytest.raises(TypeError, match="rng"):
        run(rng="seed")
    with pytest.raises(TypeError, match="float32 or float64"):
        check_direction(lambda p: 0.0, {"w": np.arange(2)}, {"w": np.ones(2)})
    with pytest.raises(ValueError, match="one number"):
        check_direction(lambda p: p["w"], params, params)
    with pytest.raises(ValueError, match="wrongness"):
        miss_probability(-1.0)


# How often a wrong gradient passes


@pytest.mark.equation("eq-check-miss")
@pytest.mark.parametrize("ratio", [0.3, 1.0, 2.5])
def test_a_wrong_gradient_passes_as_often_as_the_formula_says(ratio):
    """The loss is linear, so nothing but the random direction decides."""
    rng = np.random.default_rng(7)
    right = rng.normal(size=12)
    error = rng.normal(size=12)
    wrong = right + error * 0.01
    wrongness = norm({"w": wrong - right}) / norm({"w": wrong})
    rtol = ratio * wrongness
    tries = 2000
    passed = sum(
        check_direction(lambda p: p["w"] @ right, {"w": np.zeros(12)}, {"w": wrong}, rng=rng, rtol=rtol).ok
        for _ in range(tries)
    )
    expected = miss_probability(wrongness, rtol)
    spread = math.sqrt(expected * (1 - expected) / tries)
    assert abs(passed / tries - expected) < 4 * spread


def test_the_probability_is_at_most_its_bound_and_several_directions_multiply():
    for wrongness in (1e-5, 1e-3, 0.5):
        one = miss_probability(wrongness)
        assert 0 < one <= math.sqrt(2 / math.pi) * 1e-6 / wrongness
        assert miss_probability(wrongness, directions=3) == pytest.approx(one**3)
    assert miss_probability(1e-9) == pytest.approx(1.0)
    assert miss_probability(0.0) == 1.0
