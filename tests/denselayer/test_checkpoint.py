"""A checkpointed network computes the same numbers as the plain one, and keeps what the model says."""

import tracemalloc

import numpy as np
import pytest
import torch
from torch.utils.checkpoint import checkpoint as torch_checkpoint

from denselayer import cost, nn, optim
from denselayer.checkpoint import Checkpoint, checkpointed

ACTIVATIONS = (nn.ReLU, nn.Tanh, nn.GELU)
EVERY = (1, 2, 3, 5, 100)


def deep(layers=5, width=6, activation=nn.Tanh, dtype=np.float64, seed=0):
    rng, modules = np.random.default_rng(seed), []
    for _ in range(layers):
        modules += [nn.Linear(width, width, rng=rng, dtype=dtype), activation()]
    return nn.Sequential(*modules)


def step(network, x, d_out):
    """Output, input gradient and parameter gradients of one pass each way."""
    network.zero_grad()
    out = network(x)
    d_x = network.backward(d_out)
    return [out, d_x, *(parameter.grad for parameter in network.parameters())]


def held(network):
    """Arrays that the modules hold, each once."""
    kept = (getattr(module, "_kept", None) for module in network.modules())
    return {id(array): array for array in kept if isinstance(array, np.ndarray)}


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_output_and_gradients_are_those_of_the_plain_network_bit_for_bit(activation, dtype, every):
    rng = np.random.default_rng(1)
    x, d_out = (rng.normal(size=(7, 6)).astype(dtype) for _ in range(2))
    plain = step(deep(activation=activation, dtype=dtype), x, d_out)
    ours = step(checkpointed(deep(activation=activation, dtype=dtype), every), x, d_out)
    for one, other in zip(plain, ours, strict=True):
        assert one.dtype == other.dtype == dtype
        np.testing.assert_array_equal(one, other)


def test_training_runs_through_the_same_weights():
    rng = np.random.default_rng(2)
    x, target = rng.normal(size=(8, 6)), rng.normal(size=(8, 6))
    ends = []
    for network in (deep(), checkpointed(deep(), 2)):
        criterion, adam = nn.MSELoss(), optim.Adam(network.parameters(), lr=0.01)
        for _ in range(5):
            adam.zero_grad()
            criterion(network(x), target)
            network.backward(criterion.backward())
            adam.step()
        ends.append([parameter.data for parameter in network.parameters()])
    for one, other in zip(*ends, strict=True):
        np.testing.assert_array_equal(one, other)


def test_gradients_are_those_of_pytorchs_checkpoint():
    ours = checkpointed(deep(2), 1)
    theirs = [torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Tanh()).double() for _ in range(2)]
    parameters = [parameter for segment in theirs for parameter in segment.parameters()]
    for mine, other in zip(ours.parameters(), parameters, strict=True):
        other.data = torch.from_numpy(mine.data.copy())
    x = np.random.default_rng(3).normal(size=(4, 6))
    given = torch.from_numpy(x.copy()).requires_grad_()
    out = given
    for segment in theirs:
        out = torch_checkpoint(segment, out, use_reentrant=False)
    out.sum().backward()
    mine = step(ours, x, np.ones((4, 6)))
    for one, other in zip(mine[1:], [given, *parameters], strict=True):
        np.testing.assert_allclose(one, other.grad.numpy(), rtol=1e-12, atol=1e-14)


def test_parameters_are_counted_once_and_keep_the_names_of_the_segment():
    network = deep(3)
    ours = checkpointed(network, 2)
    assert [name for name, _ in ours.named_parameters()] == [
        *("0.0.weight", "0.0.bias", "0.2.weight", "0.2.bias"),
        *("1.0.weight", "1.0.bias"),
    ]
    assert ours.parameter_count() == network.parameter_count()
    assert list(Checkpoint(nn.Linear(2, 2, rng=0)).state_dict()) == ["weight", "bias"]
    assert list(ours.parameters()) == list(network.parameters())


@pytest.mark.parametrize("every", EVERY)
def test_only_the_inputs_of_segments_are_held_after_either_pass(every):
    network = checkpointed(deep(5), every)
    for run in (lambda: network(np.ones((3, 6))), lambda: network.backward(np.ones((3, 6)))):
        run()
        assert len(held(network)) == -(-5 // every) == len(network)


class Watched(nn.Linear):
    """A layer that looks at what the whole network holds when its own backward pass begins."""

    network, most = None, 0

    def backward(self, d_out):
        Watched.most = max(Watched.most, len(held(self.network)))
        return super().backward(d_out)


@pytest.mark.equation("eq-scale-checkpoint")
@pytest.mark.parametrize("layers", [1, 6, 12, 16])
@pytest.mark.parametrize("every", [1, 2, 3, 4, 5, 16, 20])
@pytest.mark.parametrize("activation", [None, nn.ReLU])
def test_the_arrays_held_at_the_worst_moment_are_those_of_the_model(layers, every, activation):
    modules = []
    for at in range(layers):
        modules.append(Watched(2, 2, rng=at))
        modules += [activation()] if activation else []
    network = checkpointed(nn.Sequential(*modules), every)
    Watched.network, Watched.most = network, 0
    network(np.ones((3, 2)))
    network.backward(np.ones((3, 2)))
    arrays = 1 if activation is None else 2
    assert Watched.most == cost.checkpoint_values(1, 1, layers, every, arrays)
    assert cost.checkpoint_values(3, 2, layers, every, arrays) == 6 * Watched.most


@pytest.mark.equation("eq-scale-best-segment")
def test_the_best_segment_is_the_root_and_no_other_is_better():
    for arrays in (1, 2, 3):
        for root in range(1, 9):
            assert cost.best_segment(arrays * root**2, arrays) == root
        for layers in range(1, 60):
            least = cost.checkpoint_values(1, 1, layers, cost.best_segment(layers, arrays), arrays)
            every = range(1, layers + 1)
            assert least == min(-(-layers // k) + arrays * k - 1 for k in every)


def test_the_peak_of_a_step_falls_by_what_the_model_says():
    layers, width, rows = 16, 32, 1000
    peaks = []
    for wrap in (lambda network: network, lambda network: checkpointed(network, 4)):
        network = wrap(deep(layers, width, nn.ReLU, np.float32))
        x = np.ones((rows, width), np.float32)
        step(network, x[:1], x[:1])
        tracemalloc.start()
        step(network, x, x)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    saved = cost.nbytes(2 * layers * rows * width - cost.checkpoint_values(rows, width, layers, 4, 2))
    assert peaks[0] - peaks[1] == pytest.approx(saved, rel=0.1)


def test_checkpoints_may_contain_checkpoints():
    x, d_out = np.ones((3, 6)), np.full((3, 6), 0.5)
    inner = checkpointed(deep(4), 1)
    nested = nn.Sequential(Checkpoint(nn.Sequential(inner[0], inner[1])), Checkpoint(inner[2]), inner[3])
    for one, other in zip(step(deep(4), x, d_out), step(nested, x, d_out), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_bottom_layer_may_leave_out_the_input_gradient():
    network = checkpointed(nn.Sequential(nn.Linear(3, 2, rng=0, input_gradient=False), nn.ReLU()), 1)
    network(np.ones((4, 3)))
    assert network.backward(np.ones((4, 2))) is None


def test_modules_before_the_first_layer_and_a_network_without_layers_stay_in_one_segment():
    assert [len(part.segment) for part in checkpointed(nn.Sequential(nn.ReLU(), nn.Linear(2, 2)), 1)] == [2]
    assert len(checkpointed(nn.Sequential(nn.ReLU(), nn.Tanh()), 1)) == 1
    assert checkpointed(nn.Sequential(), 1)(np.ones((2, 2))).shape == (2, 2)


def test_layers_inside_of_other_modules_are_counted_too():
    pairs = [nn.Sequential(nn.Linear(4, 4, rng=at), nn.ReLU()) for at in range(3)]
    double = nn.Sequential(nn.Linear(4, 4, rng=3), nn.Linear(4, 4, rng=4))
    network = nn.Sequential(nn.Tanh(), *pairs, double, nn.Linear(4, 4, rng=5))
    assert [len(part.segment) for part in checkpointed(network, 1)] == [2, 1, 1, 1, 1]
    assert [len(part.segment) for part in checkpointed(network, 2)] == [3, 1, 1, 1]
    assert [len(part.segment) for part in checkpointed(network, 3)] == [4, 2]


def test_a_backward_pass_that_fails_leaves_only_the_input_of_the_segment():
    network = checkpointed(deep(3), 3)
    network(np.ones((3, 6)))
    with pytest.raises(ValueError, match="d_out has shape"):
        network.backward(np.ones((3, 5)))
    assert len(held(network)) == 1


def test_backward_may_be_called_twice_and_adds():
    network = checkpointed(deep(2), 1)
    network(np.ones((3, 6)))
    first = network.backward(np.ones((3, 6)))
    once = network[0].segment[0].weight.grad.copy()
    np.testing.assert_array_equal(network.backward(np.ones((3, 6))), first)
    np.testing.assert_array_equal(network[0].segment[0].weight.grad, 2 * once)


def test_an_empty_batch_passes():
    network = checkpointed(deep(2), 1)
    assert network(np.ones((0, 6))).shape == network.backward(np.ones((0, 6))).shape == (0, 6)


def test_backward_before_forward_says_so():
    with pytest.raises(RuntimeError, match="no forward pass came before"):
        Checkpoint(nn.Linear(2, 2, rng=0)).backward(np.ones((1, 2)))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Checkpoint(3), TypeError, "segment is an int; expected a Module"),
        (lambda: Checkpoint([nn.ReLU()]), TypeError, r"Checkpoint\(nn.Sequential"),
        (lambda: checkpointed(nn.ReLU(), 1), TypeError, "expected a Sequential"),
        (lambda: checkpointed(deep(2), 0), ValueError, "every is 0"),
        (lambda: checkpointed(deep(2), 1.0), TypeError, "every is a float"),
        (lambda: cost.checkpoint_values(1, 1, 0, 1), ValueError, "layers is 0"),
        (lambda: cost.checkpoint_values(1, 1, 4, 0), ValueError, "every is 0"),
        (lambda: cost.checkpoint_values(-1, 1, 4, 1), ValueError, "batch is -1"),
        (lambda: cost.best_segment(4, 0), ValueError, "arrays is 0"),
        (lambda: cost.best_segment(0), ValueError, "layers is 0"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.equation("eq-scale-update")
@pytest.mark.parametrize(("name", "state"), [("sgd", 0), ("momentum", 1), ("adam", 2)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_update_reads_and_writes_what_the_optimiser_holds(name, state, dtype):
    parameter = nn.Parameter(np.ones(10, dtype))
    parameter.grad = np.ones(10, dtype)
    options = {"sgd": {}, "momentum": {"momentum": 0.9}, "adam": {}}[name]
    optimizer = (optim.Adam if name == "adam" else optim.SGD)([parameter], lr=0.1, **options)
    optimizer.step()
    remembered = [array for array in optimizer._state[0].values() if isinstance(array, np.ndarray)]
    assert len(remembered) == state
    read = [parameter.data, parameter.grad, *remembered]
    written = [parameter.data, *remembered]
    assert cost.update_traffic(10, name, dtype) == sum(array.nbytes for array in read + written)
