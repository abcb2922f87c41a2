"""Optimisers: step for step PyTorch's, in place, and only where there is a gradient."""

import numpy as np
import pytest
import torch

from denselayer import nn, optim
from tests.denselayer.oracle import FLOATS, error, slopes, tensor

every_dtype = pytest.mark.parametrize("dtype", FLOATS, ids=["float32", "float64"])
SETTINGS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01, "nesterov": True}),
    ("SGD", {"lr": 0.0, "momentum": 0.9}),
    ("Adam", {}),
    ("Adam", {"lr": 0.1}),
    ("Adam", {"lr": 0.1, "betas": (0.5, 0.9), "eps": 1e-3}),
    ("Adam", {"lr": 0.1, "betas": (0.0, 0.0)}),
    ("Adam", {"lr": 0.1, "weight_decay": 0.01}),
    ("Adam", {"lr": 0.1, "eps": 1.0}),
]
every_setting = pytest.mark.parametrize(("name", "options"), SETTINGS, ids=str)


def pair(name, options, arrays):
    """The same optimiser over the same parameters, ours and PyTorch's."""
    ours = [nn.Parameter(array) for array in arrays]
    theirs = [tensor(array, gradient=True) for array in arrays]
    return (
        ours,
        getattr(optim, name)(ours, **options),
        theirs,
        getattr(torch.optim, name)(theirs, **({"lr": 1e-3} | options)),
    )


@every_setting
@every_dtype
def test_three_hundred_steps_are_pytorchs(name, options, dtype):
    """Each parameter after each step, scaled to the largest that it has been.

    The two round differently (PyTorch multiplies and adds in one rounding), and roundings add up.
    Measured: at most 3.5 ulp in float64, 2.9 in float32.
    """
    rng = np.random.default_rng(0)
    shapes = [(3, 4), (5,), (), (0, 2)]
    ours, mine, theirs, other = pair(name, options, [rng.standard_normal(s).astype(dtype) for s in shapes])
    largest = [1.0] * len(shapes)
    for step in range(300):
        for i, (parameter, leaf) in enumerate(zip(ours, theirs, strict=True)):
            gradient = (rng.standard_normal(parameter.shape) * 10.0 ** rng.uniform(-3, 1)).astype(dtype)
            skipped = (step + i) % 7 == 3
            parameter.grad = None if skipped else np.asarray(gradient)
            leaf.grad = None if skipped else tensor(gradient)
        mine.step()
        other.step()
        for i, (parameter, leaf) in enumerate(zip(ours, theirs, strict=True)):
            largest[i] = max(largest[i], np.abs(parameter.data).max(initial=0))
            assert error(parameter.data, leaf.detach().numpy(), largest[i]) <= 8


@every_setting
@every_dtype
def test_first_step_is_within_two_ulp_of_pytorchs(name, options, dtype):
    rng = np.random.default_rng(1)
    values, gradient = (rng.standard_normal(50).astype(dtype) for _ in range(2))
    (ours,), mine, (theirs,), other = pair(name, options, [values])
    ours.grad, theirs.grad = gradient, tensor(gradient)
    mine.step()
    other.step()
    assert error(ours.data, theirs.detach().numpy()) <= 2


@pytest.mark.equation("eq-sgd")
@every_dtype
def test_plain_sgd_goes_lr_times_the_gradient_downhill(dtype):
    rng = np.random.default_rng(2)
    values, gradient = (rng.standard_normal((4, 3)).astype(dtype) for _ in range(2))
    (ours,), mine, (theirs,), other = pair("SGD", {"lr": 0.25}, [values])
    ours.grad, theirs.grad = gradient, tensor(gradient)
    mine.step()
    other.step()
    np.testing.assert_array_equal(ours.data, values - dtype(0.25) * gradient)
    np.testing.assert_array_equal(ours.data, theirs.detach().numpy())


def test_first_momentum_step_is_not_dampened():
    weight = nn.Parameter(np.zeros(1))
    sgd = optim.SGD([weight], lr=1.0, momentum=0.5, dampening=0.75)
    moves = []
    for _ in range(3):
        before = weight.data.item()
        weight.grad = np.ones(1)
        sgd.step()
        moves.append(weight.data.item() - before)
    assert moves == [-1, -0.75, -0.625]


def test_adams_first_step_is_lr_whatever_the_size_of_the_gradient():
    for size in (1e-3, 1.0, 1e3):
        weight = nn.Parameter(np.zeros(2))
        weight.grad = np.array([size, -size])
        optim.Adam([weight], lr=0.1).step()
        np.testing.assert_allclose(weight.data, [-0.1, 0.1], rtol=1e-4)


def test_adam_adds_eps_after_the_bias_correction():
    weight = nn.Parameter(np.zeros(1))
    weight.grad = np.ones(1)
    optim.Adam([weight], lr=1.0, eps=1.0).step()
    assert weight.data.item() == pytest.approx(-0.5, rel=1e-14)


@every_setting
def test_parameters_change_in_place_and_gradients_not_at_all(name, options):
    weight = nn.Parameter(np.ones(3))
    array, gradient = weight.data, np.array([1.0, -2.0, 3.0])
    weight.grad = gradient
    optimizer = getattr(optim, name)([weight], **options)
    for _ in range(3):
        optimizer.step()
    assert weight.data is array
    np.testing.assert_array_equal(gradient, [1, -2, 3])
    assert weight.grad is gradient


@every_setting
def test_read_only_gradients_are_welcome(name, options):
    weight, gradient = nn.Parameter(np.ones(3)), np.ones(3)
    gradient.flags.writeable = False
    weight.grad = gradient
    optimizer = getattr(optim, name)([weight], **options)
    for _ in range(3):
        optimizer.step()
    np.testing.assert_array_equal(gradient, np.ones(3))


def test_weight_without_a_gradient_does_not_decay_as_in_pytorch():
    weight = nn.Parameter(np.ones(3))
    optim.SGD([weight], lr=0.1, weight_decay=0.5, momentum=0.9).step()
    np.testing.assert_array_equal(weight.data, np.ones(3))


def test_zero_grad_forgets_the_gradients_of_the_optimisers_parameters_alone():
    a, b = nn.Parameter(np.ones(1)), nn.Parameter(np.ones(1))
    a.grad, b.grad = np.ones(1), np.ones(1)
    optim.SGD([a], lr=0.1).zero_grad()
    assert a.grad is None
    assert b.grad is not None


@every_dtype
def test_learning_rates_of_numpy_do_not_change_the_dtype(dtype):
    for optimizer in (optim.SGD, optim.Adam):
        results = []
        for lr in (0.1, np.float64(0.1)):
            weight = nn.Parameter(np.linspace(0, 1, 5).astype(dtype))
            weight.grad = np.linspace(1, 2, 5).astype(dtype)
            optimizer([weight], lr=lr).step()
            results.append(weight.data)
        np.testing.assert_array_equal(*results)
        assert results[0].dtype == dtype


@pytest.mark.filterwarnings("error")
def test_nan_and_overflow_pass_without_a_warning():
    weight = nn.Parameter(np.array([1.0, 1.0]))
    weight.grad = np.array([np.nan, 1e300])
    optim.Adam([weight], lr=0.1).step()
    assert np.isnan(weight.data[0])
    weight.accumulate(np.array([-np.inf, np.inf]))
    weight.accumulate(np.array([np.inf, -np.inf]))
    optim.SGD([weight], lr=0.1, momentum=0.9).step()
    assert np.isnan(weight.data).all()


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_a_network_learns_as_pytorchs_does(name):
    """Forward, backward, step, from the same start and on the same data: the same losses to 10 digits."""
    rng = np.random.default_rng(0)
    x, target = rng.standard_normal((64, 4)), rng.integers(0, 3, 64)
    net = nn.Sequential(nn.Linear(4, 16, rng=rng), nn.ReLU(), nn.Linear(16, 3, rng=rng))
    theirs = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3)).double()
    theirs.load_state_dict({key: torch.from_numpy(array) for key, array in net.state_dict().items()})
    mine = getattr(optim, name)(net.parameters(), lr=0.05)
    other = getattr(torch.optim, name)(theirs.parameters(), lr=0.05)
    loss, torch_loss = nn.CrossEntropyLoss(), torch.nn.CrossEntropyLoss()
    history = []
    for _ in range(60):
        mine.zero_grad()
        other.zero_grad()
        expected = torch_loss(theirs(tensor(x)), torch.from_numpy(target))
        expected.backward()
        history.append(loss(net(x), target))
        net.backward(loss.backward())
        mine.step()
        other.step()
        assert history[-1] == pytest.approx(expected.item(), rel=1e-10)
    assert history[-1] < 0.95 * history[0]


def one_parameter(**options):
    weight = nn.Parameter(np.array([2.0, -1.0, 0.5]))
    return weight, optim.SGD([weight], lr=0.1, **options)


def gradients(steps, seed=3):
    return np.random.default_rng(seed).standard_normal((steps, 3))


@pytest.mark.equation("eq-train-momentum")
def test_momentum_goes_along_a_sum_of_all_gradients_that_fades_with_age():
    weight, sgd = one_parameter(momentum=0.8)
    seen = gradients(12)
    for step, gradient in enumerate(seen):
        before = weight.data.copy()
        weight.grad = gradient
        sgd.step()
        faded = sum(0.8 ** (step - k) * seen[k] for k in range(step + 1))
        np.testing.assert_allclose(weight.data, before - 0.1 * faded, rtol=1e-13)


@pytest.mark.equation("eq-train-nesterov")
def test_nesterov_keeps_the_place_ahead_of_momentum_where_the_gradient_is_taken():
    """Nesterov's own form moves a place with momentum, and asks for the gradient one coasting step ahead."""
    curvature = np.array([1.0, 4.0, 9.0])
    weight, sgd = one_parameter(momentum=0.8, nesterov=True)
    place, velocity = weight.data.copy(), np.zeros(3)
    for _ in range(20):
        ahead = place - 0.1 * 0.8 * velocity
        np.testing.assert_allclose(weight.data, ahead, rtol=1e-12, atol=1e-14)
        weight.grad = curvature * weight.data
        sgd.step()
        velocity = 0.8 * velocity + curvature * ahead
        place = place - 0.1 * velocity


@pytest.mark.equation("eq-train-weight-decay")
def test_weight_decay_is_the_gradient_of_half_the_sum_of_squares_and_shrinks_by_a_factor():
    weight, sgd = one_parameter(weight_decay=0.3)
    penalised, plain = one_parameter()
    for gradient in gradients(10):
        before = weight.data.copy()
        weight.grad = gradient
        penalty = slopes(lambda w: 0.3 / 2 * np.sum(w**2), penalised.data.copy())
        penalised.grad = gradient + penalty
        sgd.step()
        plain.step()
        np.testing.assert_allclose(weight.data, (1 - 0.1 * 0.3) * before - 0.1 * gradient, rtol=1e-13)
        np.testing.assert_allclose(weight.data, penalised.data, rtol=1e-8)


@pytest.mark.equation("eq-train-adam")
def test_adam_divides_a_weighted_mean_of_the_gradients_by_the_root_of_that_of_their_squares():
    weight = nn.Parameter(np.array([2.0, -1.0, 0.5]))
    adam = optim.Adam([weight], lr=0.1, betas=(0.7, 0.9), eps=1e-3)
    seen = gradients(12)
    for step, gradient in enumerate(seen):
        before = weight.data.copy()
        weight.grad = gradient
        adam.step()
        ages = np.arange(step, -1, -1)
        mean = np.average(seen[: step + 1], axis=0, weights=0.7**ages)
        square = np.average(seen[: step + 1] ** 2, axis=0, weights=0.9**ages)
        np.testing.assert_allclose(weight.data, before - 0.1 * mean / (np.sqrt(square) + 1e-3), rtol=1e-12)
