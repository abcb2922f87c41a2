"""The cost model of networks against what PyTorch counts: operations, kept tensors, traffic, state."""

import itertools
import math
import tracemalloc
import warnings

import numpy as np
import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from denselayer import agreement, cost, nn, optim

LAYERS = [
    (batch, ins, outs)
    for (ins, outs), batch in itertools.product(
        [(1, 1), (3, 3), (3, 4), (784, 10), (10, 784), (64, 64), (31, 257)], [1, 2, 7, 128]
    )
]
LAYERS += [(1, 1024, 1024), (4096, 8, 8), (32, 512, 2048), (33, 100, 1)]

WIDTHS = [
    [3, 4, 2],
    [10, 20, 5, 1],
    [64, 32, 10],
    [784, 100, 10],
    [5, 1, 5],
    [7, 7, 7, 7, 7],
    [2, 50, 1, 50, 2],
    [128, 256, 128],
]
ACTIVATIONS = {
    "relu": torch.nn.ReLU,
    "sigmoid": torch.nn.Sigmoid,
    "tanh": torch.nn.Tanh,
    "gelu": torch.nn.GELU,
    "silu": torch.nn.SiLU,
    "softplus": torch.nn.Softplus,
    "leaky_relu": torch.nn.LeakyReLU,
    "identity": torch.nn.Identity,
}
NETWORKS = [
    (widths, (1, 5, 64)[at % 3], activation, at % 2 == 0, at % 5 == 0)
    for at, (widths, activation) in enumerate(itertools.product(WIDTHS, ACTIVATIONS))
]
DTYPES = {"float32": torch.float32, "float64": torch.float64}


class Traffic(TorchDispatchMode):
    """Add up the bytes of the operands and results of every operation that computes something."""

    views = ("aten.t.", "aten.view.", "aten.detach.", "aten.transpose.", "aten._unsafe_view.")

    def __init__(self):
        super().__init__()
        self.total = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        if not str(function).startswith(self.views):
            tensors = [leaf for leaf in tree_leaves((args, kwargs, out)) if isinstance(leaf, torch.Tensor)]
            self.total += sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        return out


def build(widths, activation="relu", bias=True, dtype="float32"):
    """PyTorch's network of these widths."""
    modules = []
    for ins, outs in itertools.pairwise(widths):
        modules += [torch.nn.Linear(ins, outs, bias=bias, dtype=DTYPES[dtype]), ACTIVATIONS[activation]()]
    return torch.nn.Sequential(*modules[:-1])


def watch(network, batch, ins, input_gradient=False):
    """Run a network forward and backward under PyTorch's counters."""
    parameters = list(network.parameters())
    dtype = parameters[0].dtype
    own = {parameter.untyped_storage().data_ptr() for parameter in parameters}
    saved = {}

    def pack(tensor):
        if tensor.untyped_storage().data_ptr() not in own:
            saved[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    x = torch.randn(batch, ins, dtype=dtype, requires_grad=input_gradient)
    found = {"parameters": sum(parameter.numel() for parameter in parameters)}
    with saved_tensors_hooks(pack, lambda tensor: tensor):
        with FlopCounterMode(display=False) as operations, Traffic() as traffic:
            y = network(x)
        found |= {"forward operations": operations.get_total_flops(), "forward traffic": traffic.total}
        found["kept"] = sum(tensor.numel() for tensor in saved.values())
        upstream = torch.ones_like(y)
        with FlopCounterMode(display=False) as operations, Traffic() as traffic:
            y.backward(upstream)
        found |= {"backward operations": operations.get_total_flops(), "backward traffic": traffic.total}
    found["gradients"] = sum(parameter.grad.numel() for parameter in parameters)
    return found


def predict(result):
    """The same quantities from a Cost."""
    return {
        "parameters": result.parameters,
        "forward operations": result.forward.operations,
        "forward traffic": result.forward.traffic,
        "kept": result.kept,
        "backward operations": result.backward.operations,
        "backward traffic": result.backward.traffic,
        "gradients": result.gradients,
    }


def test_there_are_at_least_fifty_shapes_and_all_differ():
    layers = {(batch, ins, outs) for batch, ins, outs in LAYERS}
    networks = {(batch, *widths) for widths, batch, *_ in NETWORKS}
    assert len(layers | networks) >= 50
    assert {activation for _, _, activation, *_ in NETWORKS} == set(ACTIVATIONS)


@pytest.mark.equation("eq-scale-bytes", "eq-scale-backward-bytes")
@pytest.mark.parametrize(("batch", "ins", "outs"), LAYERS)
def test_one_layer_costs_what_pytorch_counts(batch, ins, outs):
    at = LAYERS.index((batch, ins, outs))
    bias, input_gradient, dtype = at % 3 != 0, at % 2 == 0, ("float32", "float64")[at % 2]
    seen = watch(build([ins, outs], bias=bias, dtype=dtype), batch, ins, input_gradient)
    model = cost.layer(batch, ins, outs, bias, input_gradient=input_gradient, dtype=dtype)
    assert predict(model) == seen
    assert seen["forward traffic"] == cost.linear_traffic(batch, ins, outs, bias, dtype)
    backward = cost.linear_backward_traffic(batch, ins, outs, bias, input_gradient, dtype)
    assert seen["backward traffic"] == backward


@pytest.mark.equation("eq-scale-parameters", "eq-scale-activations")
@pytest.mark.parametrize(
    ("widths", "batch", "activation", "bias", "input_gradient"),
    NETWORKS,
    ids=[f"{'-'.join(map(str, widths))} {activation} {batch}" for widths, batch, activation, *_ in NETWORKS],
)
def test_a_network_costs_what_pytorch_counts(widths, batch, activation, bias, input_gradient):
    seen = watch(build(widths, activation, bias), batch, widths[0], input_gradient)
    model = cost.network(widths, batch, activation=activation, bias=bias, input_gradient=input_gradient)
    assert predict(model) == seen
    assert seen["parameters"] == cost.network_parameters(widths, bias)
    if activation in ("relu", "sigmoid", "tanh", "identity"):
        assert seen["kept"] == cost.network_activations(batch, widths)


def traced_bytes(network, x):
    """The bytes that PyTorch's memory profiler sees allocated, and not yet freed, after a forward pass."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as trace:
        y = network(x)
    assert y.requires_grad
    return sum(event.self_cpu_memory_usage for event in trace.key_averages())


@pytest.mark.equation("eq-scale-activations")
@pytest.mark.parametrize(
    ("widths", "batch", "activation"),
    [([ins, outs], batch, "relu") for batch, ins, outs in LAYERS]
    + [(widths, batch, activation) for widths, batch, activation, *_ in NETWORKS],
)
def test_the_memory_profiler_of_pytorch_sees_the_kept_values_and_the_output(widths, batch, activation):
    """The input existed before, so it is kept but not allocated; the output is allocated but not kept."""
    traced = traced_bytes(build(widths, activation), torch.randn(batch, widths[0]))
    model = cost.network(widths, batch, activation=activation)
    assert traced == cost.nbytes(model.kept - batch * widths[0] + batch * widths[-1])


def ours_and_theirs():
    """Networks as modules here and there, with activations in unusual places."""

    def pair(*kinds):
        here, there = [], []
        for kind in kinds:
            if isinstance(kind, tuple):
                here.append(nn.Linear(*kind, rng=0))
                there.append(torch.nn.Linear(*kind, dtype=torch.float64))
            else:
                here.append(getattr(nn, kind)())
                there.append(getattr(torch.nn, kind)())
        return nn.Sequential(*here), torch.nn.Sequential(*there)

    return {
        "activation first": pair("ReLU", (6, 4)),
        "gelu first": pair("GELU", (6, 4), "Identity", (4, 3)),
        "activation last": pair((6, 4), "Tanh"),
        "gelu last": pair((6, 4), "GELU"),
        "two in a row": pair((6, 4), "ReLU", "GELU", (4, 2)),
        "two of a kind": pair((6, 4), "Softplus", "Softplus", (4, 2)),
        "output kept twice": pair((6, 4), "Sigmoid", "Tanh", (4, 2)),
        "no activation": pair((6, 4), (4, 4), (4, 2)),
        "identities": pair("Identity", (6, 4), "Identity", "ReLU", "Identity", (4, 2), "Identity"),
        "without bias": pair((6, 5, False), "SiLU", (5, 2), "LeakyReLU"),
    }


@pytest.mark.parametrize("name", ours_and_theirs())
@pytest.mark.parametrize("input_gradient", [False, True])
def test_modules_cost_what_pytorch_counts(name, input_gradient):
    here, there = ours_and_theirs()[name]
    model = cost.network(here, 9, input_gradient=input_gradient, dtype=np.float64)
    assert predict(model) == watch(there, 9, 6, input_gradient)


def test_nested_modules_cost_what_flat_ones_cost():
    flat = cost.network([6, 5, 4, 3], 9)
    layers = [nn.Linear(*sizes, rng=0) for sizes in ((6, 5), (5, 4), (4, 3))]
    nested = nn.Sequential(
        nn.Sequential(layers[0], nn.ReLU()), nn.Sequential(layers[1], nn.ReLU(), layers[2])
    )
    assert cost.network(nested, 9) == flat


def test_a_shared_weight_is_counted_once():
    first, second = nn.Linear(6, 6, rng=0), nn.Linear(6, 6, rng=1)
    second.weight = first.weight
    model = nn.Sequential(first, nn.Tanh(), second)
    theirs = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Tanh(), torch.nn.Linear(6, 6))
    theirs[2].weight = theirs[0].weight
    seen, ours = watch(theirs, 5, 6), predict(cost.network(model, 5))
    assert ours["parameters"] == model.parameter_count() == seen["parameters"] == 48
    for quantity in ("kept", "forward operations", "backward operations", "gradients", "forward traffic"):
        assert ours[quantity] == seen[quantity]


@pytest.mark.equation("eq-scale-state")
@pytest.mark.parametrize("widths", WIDTHS)
@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam"])
def test_training_holds_what_pytorch_holds(widths, optimizer):
    network, batch = build(widths), 8
    parameters = list(network.parameters())
    make = {
        "sgd": lambda: torch.optim.SGD(parameters, lr=0.1),
        "momentum": lambda: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
        "adam": lambda: torch.optim.Adam(parameters),
    }
    step = make[optimizer]()
    seen = watch(network, batch, widths[0])
    step.step()
    tensors = [value for state in step.state.values() for value in state.values() if value is not None]
    remembered = sum(tensor.numel() for tensor in tensors if torch.is_tensor(tensor) and tensor.dim())
    model = cost.network(widths, batch, optimizer=optimizer)
    assert model.state == remembered
    held = seen["parameters"] + seen["gradients"] + remembered + seen["kept"]
    assert held == model.values == cost.training_values(model.parameters, model.kept, optimizer)
    assert model.nbytes == 4 * held


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("sgd", lambda parameters: optim.SGD(parameters, lr=0.1)),
        ("momentum", lambda parameters: optim.SGD(parameters, lr=0.1, momentum=0.9)),
        ("adam", lambda parameters: optim.Adam(parameters)),
    ],
)
def test_the_state_is_that_of_the_optimisers_of_this_package(name, make):
    model = nn.Sequential(nn.Linear(5, 4, rng=0), nn.ReLU(), nn.Linear(4, 3, rng=1))
    optimizer = make(list(model.parameters()))
    model(np.ones((2, 5)))
    model.backward(np.ones((2, 3)))
    optimizer.step()
    arrays = [value for state in optimizer._state for value in state.values()]
    remembered = sum(array.size for array in arrays if isinstance(array, np.ndarray))
    assert cost.network(model, 2, optimizer=name).state == remembered


def held_arrays(module):
    """The arrays that a network of this package holds for its backward pass, each once."""
    kept = [getattr(part, "_kept", None) for part in module.modules()]
    return {id(array): array for array in kept if isinstance(array, np.ndarray)}.values()


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("widths", WIDTHS[:6])
def test_this_package_keeps_the_input_of_every_module(widths, activation):
    modules = []
    names = {name.lower(): name for name in nn.__all__}
    for ins, outs in itertools.pairwise(widths):
        modules += [nn.Linear(ins, outs, rng=0), getattr(nn, names[activation.replace("_", "")])()]
    network, batch = nn.Sequential(*modules[:-1]), 6
    network(np.ones((batch, widths[0])))
    model = cost.network(network, batch, library="denselayer")
    assert model.kept == sum(array.size for array in held_arrays(network))
    assert model.kept == cost.network(widths, batch, activation=activation, library="denselayer").kept
    assert model.kept == batch * (widths[0] + 2 * sum(widths[1:-1]))


@pytest.mark.parametrize("activation", ["ReLU", "GELU"])
def test_the_memory_tracer_of_python_sees_the_kept_values(activation):
    network = nn.Sequential(nn.Linear(200, 300, rng=0), getattr(nn, activation)(), nn.Linear(300, 50, rng=0))
    batch = 500
    network(np.ones((1, 200)))
    tracemalloc.start()
    x = np.ones((batch, 200))
    network(x)
    del x
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    model = cost.network(network, batch, dtype=np.float64, library="denselayer")
    predicted = cost.nbytes(model.kept, np.float64)
    assert predicted <= held < predicted + 20_000


@pytest.mark.parametrize("widths", [[3, 0, 2], [0, 4], [4, 0]])
def test_zero_widths_and_empty_batches_cost_nothing_or_the_bias(widths):
    for batch in (0, 3):
        model = cost.network(widths, batch)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = build(widths)
        assert model.parameters == sum(parameter.numel() for parameter in theirs.parameters())
        assert model.forward.operations == 0


@pytest.mark.equation("eq-scale-crossing")
@pytest.mark.parametrize("widths", WIDTHS)
@pytest.mark.parametrize("copies", [1, 2, 4])
def test_at_the_crossing_the_kept_values_overtake_the_parameters(widths, copies):
    network = build(widths)
    parameters = sum(parameter.numel() for parameter in network.parameters())
    crossing = cost.crossing_batch(widths, copies=copies)
    below, above = math.ceil(crossing) - 1, math.floor(crossing) + 1
    if below:
        assert watch(network, below, widths[0])["kept"] < copies * parameters
        network.zero_grad()
    assert watch(network, above, widths[0])["kept"] > copies * parameters


def test_the_crossing_of_a_square_layer_is_its_width_plus_one():
    assert [cost.crossing_batch([d, d]) for d in (1, 128, 8192)] == [2, 129, 8193]
    assert cost.crossing_batch([64, 64], bias=False, copies=3) == 192


@pytest.mark.equation("eq-scale-intensity", "eq-scale-intensity-limit")
@pytest.mark.parametrize(("batch", "ins", "outs"), LAYERS)
def test_the_intensity_is_what_pytorch_counts_and_stays_below_its_limit(batch, ins, outs):
    seen = watch(build([ins, outs]), batch, ins)
    ratio = seen["forward operations"] / seen["forward traffic"]
    assert cost.linear_intensity(batch, ins, outs) == ratio
    without = cost.linear_intensity(batch, ins, outs, bias=False)
    assert 1 / without == pytest.approx(4 / 2 * (1 / batch + 1 / ins + 1 / outs))
    assert ratio < without < 2 / 4 * min(batch, ins, outs)


def ticks(operations, traffic, peak, bandwidth):
    """How many ticks a machine needs that computes and moves at once, as much as it can in each tick."""
    time = 0
    while operations > 0 or traffic > 0:
        operations, traffic, time = operations - peak, traffic - bandwidth, time + 1
    return time


@pytest.mark.equation("eq-scale-time", "eq-scale-roofline", "eq-scale-ridge")
@pytest.mark.parametrize("operations", [1, 10, 997, 5000])
@pytest.mark.parametrize("traffic", [1, 64, 600])
@pytest.mark.parametrize(("peak", "bandwidth"), [(20, 1), (7, 3), (1, 1)])
def test_the_roofline_is_a_machine_that_computes_and_moves_at_once(operations, traffic, peak, bandwidth):
    seconds = cost.least_seconds(operations, traffic, peak, bandwidth)
    assert ticks(operations, traffic, peak, bandwidth) == math.ceil(seconds)
    work = cost.Work(operations, traffic)
    assert cost.attainable(work.intensity, peak, bandwidth) == pytest.approx(operations / seconds)
    bound_by_traffic = traffic / bandwidth > operations / peak
    assert (work.intensity < cost.ridge_point(peak, bandwidth)) == bound_by_traffic


def test_above_the_ridge_more_intensity_gives_no_more_speed():
    ridge = cost.ridge_point(20.0, 2.0)
    assert cost.attainable(ridge, 20.0, 2.0) == 20.0 == cost.attainable(5 * ridge, 20.0, 2.0)
    assert cost.attainable(ridge / 4, 20.0, 2.0) == 5.0


def test_known_numbers():
    big = cost.layer(128, 8192, 8192)
    assert big.parameters == 67_117_056
    assert big.forward.multiply_adds == 128 * 8192 * 8192
    assert big.training.operations == 3 * 2 * 128 * 8192 * 8192
    one = cost.layer(1, 3, 3)
    assert (one.forward, one.backward) == (cost.Work(18, 72), cost.Work(36, 144))


def test_a_network_of_widths_holds_no_arrays():
    huge = cost.network([10**6, 10**6, 10**6], 10**6)
    assert huge.forward.operations == 4 * 10**18
    assert huge.parameters == 2 * 10**12 + 2 * 10**6


def test_the_table_prints_and_shows_the_same_numbers():
    model = cost.network([784, 1000, 10], 64, optimizer="momentum")
    text, html = str(model), model._repr_markdown_()
    assert text.startswith("64 rows, float32, SGD with momentum")
    for cell in ("Linear 784 → 1,000", "785 k", "100 M", "795 k", "2.50 M", "together"):
        assert cell in text
        assert f">{cell}<" in html
    assert html.count("<table") == html.count("</table>") == 2
    assert "795010 parameters" in repr(model)
    assert not hasattr(model, "_repr_html_"), "Quarto answers an HTML output with scripts from another host"
    assert max(map(len, text.splitlines())) < 90


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: cost.network([3], 1), ValueError, "two widths or more"),
        (lambda: cost.network("3-4", 1), TypeError, "widths is a str"),
        (lambda: cost.network(5, 1), TypeError, "a list of widths"),
        (lambda: cost.network([3, 2.5], 1), TypeError, "widths[1] is a float"),
        (lambda: cost.network([3, -2], 1), ValueError, "widths[1] is -2"),
        (lambda: cost.network([3, 2], 1.5), TypeError, "batch is a float"),
        (lambda: cost.network([3, 2], 1, activation="swish"), ValueError, "one of 'relu'"),
        (lambda: cost.network([3, 2], 1, optimizer="lion"), ValueError, "'sgd', 'momentum', 'adam'"),
        (lambda: cost.network([3, 2], 1, library="jax"), ValueError, "'pytorch', 'denselayer'"),
        (lambda: cost.network([3, 2], 1, dtype="int8"), TypeError, "float32 or float64"),
        (lambda: cost.network(nn.MSELoss(), 1), TypeError, "denselayer.nn.MSELoss"),
        (lambda: cost.network(nn.Sequential(nn.ReLU()), 1), ValueError, "there is no Linear"),
        (
            lambda: cost.network(nn.Sequential(nn.Linear(3, 4, rng=0), nn.Linear(5, 2, rng=0)), 1),
            ValueError,
            "Linear 3 → 4 is followed by Linear 5 → 2",
        ),
        (lambda: cost.linear_intensity(0, 0, 0), ValueError, "no bytes are moved"),
        (lambda: cost.crossing_batch([0, 4]), ValueError, "no values are kept"),
        (lambda: cost.training_values(1, 1, "rmsprop"), ValueError, "'rmsprop'"),
        (lambda: cost.attainable(-1, 1, 1), ValueError, "intensity is -1"),
        (lambda: cost.attainable(1, 0, 1), ValueError, "> 0"),
        (lambda: cost.ridge_point(1, 0), ValueError, "bandwidth is 0"),
        (lambda: cost.least_seconds(1, 1, 1, "fast"), TypeError, "bandwidth is a str"),
    ],
)
def test_wrong_calls_are_told_why(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)


def test_the_stored_counts_of_pytorch_are_met_exactly():
    stored = agreement.load_fixture("costs")
    assert all((values < 2**24).all() for values in stored.expected["float32"].values())
    for row in agreement.agreement("costs").rows:
        assert row.max_abs == 0, row
