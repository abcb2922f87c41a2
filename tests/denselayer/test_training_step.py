"""The fast training step gives the plain numbers, notices changes, and says why it is not taken."""

import copy
import pickle
from itertools import pairwise

import numpy as np
import pytest

from denselayer import _step_passes as passes
from denselayer import nn, optim, training
from denselayer.training_step import TrainingStep

FLOATS = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
RULES = {
    "SGD": lambda p: optim.SGD(p, lr=0.05),
    "weight decay": lambda p: optim.SGD(p, lr=0.05, weight_decay=0.01),
    "momentum": lambda p: optim.SGD(p, lr=0.05, momentum=0.9, dampening=0.1),
    "Nesterov": lambda p: optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01),
    "Adam": lambda p: optim.Adam(p, lr=0.01),
    "Adam, decay": lambda p: optim.Adam(p, lr=0.01, betas=(0.3, 0.4), weight_decay=0.1),
}
HIDDEN = {
    "ReLU": nn.ReLU,
    "Identity": nn.Identity,
    "LeakyReLU": lambda: nn.LeakyReLU(0.2),
    "Sigmoid": nn.Sigmoid,
    "Tanh": nn.Tanh,
    "GELU": lambda: nn.GELU("tanh"),
    "SiLU": nn.SiLU,
    "Softplus": lambda: nn.Softplus(2.0, 10.0),
}


def chain(*sizes, dtype=np.float64, hidden=nn.ReLU, seed=0, **options):
    rng = np.random.default_rng(seed)
    modules = []
    for one, other in pairwise(sizes):
        modules += [nn.Linear(one, other, rng=rng, dtype=dtype, **options), hidden()]
    return nn.Sequential(*modules[:-1])


def batches(sizes, width, classes, dtype=np.float64, seed=1):
    rng = np.random.default_rng(seed)
    for size in sizes:
        yield rng.standard_normal((size, width)).astype(dtype), rng.integers(0, classes, size)


def plain_step(network, criterion, optimizer, x, y):
    optimizer.zero_grad()
    loss = criterion(network(x), y)
    network.backward(criterion.backward())
    optimizer.step()
    return loss


def values(network, kind="data"):
    return [getattr(parameter, kind) for parameter in network.parameters()]


def same(network, other):
    for kind in ("data", "grad"):
        for mine, theirs in zip(values(network, kind), values(other, kind), strict=True):
            np.testing.assert_array_equal(mine, theirs)


def compare(network, rule, data, criterion=nn.CrossEntropyLoss, fast=True):
    """Train the network fast and a copy of it plainly, and compare loss, values and gradients bit for bit."""
    other = copy.deepcopy(network)
    step = TrainingStep(network, criterion(), rule(network.parameters()))
    loss_of, optimizer = criterion(), rule(other.parameters())
    for x, y in data:
        expected, loss = plain_step(other, loss_of, optimizer, x, y), step(x, y)
        assert step.fast is fast, step.why
        assert loss == expected and loss.dtype == expected.dtype
        same(network, other)
    return step


@FLOATS
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_twenty_steps_are_bit_identical_to_the_plain_ones(rule, dtype):
    network = chain(20, 16, 12, 5, dtype=dtype)
    compare(network, rule, batches([7, 32, 32, 1] * 5, 20, 5, dtype))


@FLOATS
def test_a_network_with_several_blocks_of_parameters_is_bit_identical(dtype):
    network = chain(784, 512, 256, 10, dtype=dtype)
    compare(network, RULES["Nesterov"], batches([128, 36, 128], 784, 10, dtype))


@FLOATS
@pytest.mark.parametrize("hidden", HIDDEN.values(), ids=HIDDEN)
def test_every_activation_is_bit_identical(hidden, dtype):
    network = chain(9, 16, 12, 5, dtype=dtype, hidden=hidden)
    compare(network, RULES["momentum"], batches([32, 5] * 3, 9, 5, dtype))


@pytest.mark.parametrize(
    "make",
    [
        lambda a, b, c: nn.Sequential(a, b, nn.ReLU(), nn.ReLU(), c),
        lambda a, b, c: nn.Sequential(nn.ReLU(), a, nn.Tanh(), nn.ReLU(), b, nn.Identity(), c, nn.ReLU()),
        lambda a, b, c: nn.Sequential(nn.Sequential(a, nn.ReLU()), nn.Sequential(b, nn.Sequential(c))),
        lambda a, b, c: nn.Sequential(nn.Identity(), a, nn.ReLU(), b, nn.ReLU(), c, nn.Sigmoid()),
    ],
)
def test_any_sensible_arrangement_is_bit_identical(make):
    rng = np.random.default_rng(0)
    layers = [nn.Linear(*sizes, rng=rng, bias=sizes != (6, 7)) for sizes in ((4, 6), (6, 7), (7, 3))]
    x, y = next(batches([8], 4, 3))
    before = x.copy()
    compare(make(*layers), RULES["SGD"], [(x, y)] * 3)
    np.testing.assert_array_equal(x, before)


@FLOATS
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("kind", [nn.CrossEntropyLoss, nn.MSELoss, nn.BCEWithLogitsLoss])
def test_every_loss_is_bit_identical(kind, reduction, dtype):
    rng = np.random.default_rng(2)
    data = list(batches([12, 12, 5], 4, 3, dtype))
    if kind is not nn.CrossEntropyLoss:
        data = [(x, rng.random((len(x), 3)).astype(dtype)) for x, _ in data]
    compare(chain(4, 6, 3, dtype=dtype), lambda p: optim.SGD(p, lr=1e-3), data, lambda: kind(reduction))


def test_ever_new_batch_sizes_do_not_fill_the_memory():
    network = chain(4, 8, 3)
    step = compare(network, RULES["SGD"], batches(range(40, 0, -1), 4, 3))
    assert len(step._passes) <= 16


def test_a_single_linear_is_a_network_too():
    compare(nn.Linear(4, 3, rng=0), RULES["SGD"], batches([8, 8], 4, 3))


def test_both_orders_of_the_hidden_values_are_compared_before_one_is_taken(monkeypatch):
    sizes, dtype = ((784, 512), (512, 256), (256, 10)), np.dtype(np.float32)
    assert passes.best_order(sizes, 128, dtype) in ("C", "F")
    passes.best_order.cache_clear()
    monkeypatch.setattr(passes, "_same_bits", lambda *_: False)
    assert passes.best_order(sizes, 128, dtype) == "C"
    passes.best_order.cache_clear()
    monkeypatch.setattr(passes, "_same_bits", lambda *_: True)
    assert passes.best_order(sizes, 128, dtype) == "F"
    assert passes.best_order(((16, 2), (2, 1)), 33, dtype) == "C"
    passes.best_order.cache_clear()


@FLOATS
def test_by_column_the_numbers_agree_to_rounding_even_where_the_library_adds_otherwise(monkeypatch, dtype):
    monkeypatch.setattr(passes, "order_of", lambda *_: "F")
    monkeypatch.setattr("denselayer.training_step.order_of", lambda *_: "F")
    network = chain(50, 40, 30, 4, dtype=dtype)
    other = copy.deepcopy(network)
    step = network.training_step(nn.CrossEntropyLoss(), RULES["SGD"](network.parameters()))
    criterion, optimizer = nn.CrossEntropyLoss(), RULES["SGD"](other.parameters())
    for x, y in batches([33] * 3, 50, 4, dtype):
        loss = step(x, y)
        np.testing.assert_allclose(
            loss, plain_step(other, criterion, optimizer, x, y), rtol=8 * np.finfo(dtype).eps
        )
    for mine, theirs in zip(values(network, "grad"), values(other, "grad"), strict=True):
        assert np.abs(mine - theirs).max() <= 64 * np.finfo(dtype).eps * np.abs(theirs).max()


def test_inputs_in_other_memory_orders_give_the_plain_numbers():
    network = chain(20, 16, 4, dtype=np.float32)
    x, y = next(batches([24], 40, 4, np.float32))
    compare(network, RULES["SGD"], [(np.asfortranarray(x[:, :20]), y), (x[:, ::2], y), (x[::-1, :20], y)])


def test_the_order_is_chosen_anew_for_inputs_of_another_memory_order(monkeypatch):
    orders = []

    def spy(*arguments):
        orders.append(arguments[-1])
        return passes.Pass(*arguments)

    monkeypatch.setattr("denselayer.training_step.order_of", lambda *_: "F")
    monkeypatch.setattr("denselayer.training_step.Pass", spy)
    network = chain(20, 16, 4)
    step = network.training_step(nn.CrossEntropyLoss(), RULES["SGD"](network.parameters()))
    x, y = next(batches([24], 20, 4))
    for given in (x, np.asfortranarray(x), x):
        step(given, y)
    assert orders == ["F", "C"]


@FLOATS
def test_an_identity_before_the_first_layer_gives_the_plain_numbers_in_any_memory_order(dtype):
    for width, rows in ((128, 16), (64, 128), (33, 2)):
        network = nn.Sequential(nn.Sequential(nn.Identity()), *chain(width, 33, 7, dtype=dtype))
        data = batches([rows] * 4, width, 7, dtype)
        compare(network, RULES["SGD"], [(np.asfortranarray(x), y) for x, y in data])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_not_a_number_and_infinity_pass_as_in_the_plain_step(value):
    network = chain(4, 40, 3)
    x, y = next(batches([6], 4, 3))
    x[2, 1] = value
    other = copy.deepcopy(network)
    loss = network.training_step(nn.CrossEntropyLoss(), RULES["SGD"](network.parameters()))(x, y)
    assert np.isnan(loss)
    assert np.isnan(plain_step(other, nn.CrossEntropyLoss(), RULES["SGD"](other.parameters()), x, y))
    same(network, other)


def test_a_negative_zero_is_closed_as_in_the_plain_step():
    network = nn.Sequential(nn.Linear(2, 20, init="zeros"), nn.ReLU(), nn.Linear(20, 3, rng=0))
    network[0].bias.data[...] = -0.0
    compare(network, RULES["SGD"], [(np.zeros((5, 2)), np.array([0, 1, 2, 0, 1]))])


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_fast_and_plain_steps_may_alternate(rule):
    network = chain(6, 8, 3)
    other = copy.deepcopy(network)
    criterion = nn.CrossEntropyLoss()
    optimizer, other_optimizer = rule(network.parameters()), rule(other.parameters())
    step = network.training_step(criterion, optimizer)
    for turn, (x, y) in enumerate(batches([9] * 9, 6, 3)):
        plain_step(other, nn.CrossEntropyLoss(), other_optimizer, x, y)
        if turn % 3 == 1:
            plain_step(network, criterion, optimizer, x, y)
        else:
            step(x, y)
        same(network, other)


def test_two_steps_on_one_network_may_alternate():
    network = chain(6, 8, 3)
    other = copy.deepcopy(network)
    optimizer, other_optimizer = (RULES["Adam"](net.parameters()) for net in (network, other))
    steps = [network.training_step(nn.CrossEntropyLoss(kind), optimizer) for kind in ("mean", "sum")]
    for turn, (x, y) in enumerate(batches([9] * 6, 6, 3)):
        steps[turn % 2](x, y)
        kind = ("mean", "sum")[turn % 2]
        plain_step(other, nn.CrossEntropyLoss(kind), other_optimizer, x, y)
        same(network, other)


class TestWhatChangesBetweenSteps:
    def setup_method(self):
        self.network, self.rule = chain(6, 8, 3), RULES["momentum"]
        self.other = copy.deepcopy(self.network)
        self.optimizer = self.rule(self.network.parameters())
        self.other_optimizer = self.rule(self.other.parameters())
        self.step = self.network.training_step(nn.CrossEntropyLoss(), self.optimizer)
        self.data = batches([9] * 20, 6, 3)

    def both(self, times=2):
        for _ in range(times):
            x, y = next(self.data)
            loss = self.step(x, y)
            assert loss == plain_step(self.other, nn.CrossEntropyLoss(), self.other_optimizer, x, y)
            same(self.network, self.other)

    @pytest.mark.parametrize("name", ["lr", "momentum", "weight_decay"])
    @pytest.mark.parametrize("value", [0.2, 0.0, np.float64(0.2)])
    def test_hyperparameters(self, name, value):
        self.both()
        setattr(self.optimizer, name, value)
        setattr(self.other_optimizer, name, value)
        self.both()
        assert self.step.fast

    @pytest.mark.parametrize("kind", ["SGD", "Adam"])
    @pytest.mark.parametrize("name", ["lr", "weight_decay"])
    def test_a_double_precision_hyperparameter_of_a_single_precision_network(self, kind, name):
        network = chain(6, 8, 3, dtype=np.float32)

        def rule(parameters):
            optimizer = RULES[kind](parameters)
            setattr(optimizer, name, np.float64(0.2))
            return optimizer

        compare(network, rule, batches([9] * 4, 6, 3, np.float32))

    def test_parameters_that_took_different_numbers_of_steps(self):
        network = chain(6, 8, 3)
        other = copy.deepcopy(network)
        optimizers = [RULES["Adam"](net.parameters()) for net in (network, other)]
        step = network.training_step(nn.CrossEntropyLoss(), optimizers[0])
        for x, y in batches([9] * 4, 6, 3):
            step(x, y)
            plain_step(other, nn.CrossEntropyLoss(), optimizers[1], x, y)
            for optimizer in optimizers:
                optimizer._state[1]["step"] += 5
            same(network, other)

    def test_a_parameter_that_the_optimiser_updates_no_more(self):
        self.both()
        for optimizer in (self.optimizer, self.other_optimizer):
            optimizer.params.pop()
            optimizer._state.pop()
        x, y = next(self.data)
        assert self.step(x, y) == plain_step(self.other, nn.CrossEntropyLoss(), self.other_optimizer, x, y)
        for mine, theirs in zip(values(self.network), values(self.other), strict=True):
            np.testing.assert_array_equal(mine, theirs)
        assert not self.step.fast

    def test_an_input_gradient_that_is_computed_no_more(self):
        self.both()
        self.network[2].input_gradient = False
        with pytest.raises(RuntimeError, match="returned no input gradient"):
            self.step(*next(self.data))

    def test_loaded_state(self):
        self.both()
        state = chain(6, 8, 3, seed=9).state_dict()
        self.network.load_state_dict(state)
        self.other.load_state_dict(state)
        self.both()

    def test_gradients_set_to_zero(self):
        self.both(1)
        self.network.zero_grad()
        assert self.network[0].weight.grad is None
        self.both(1)

    def test_another_state_of_the_optimiser(self):
        self.both()
        for optimizer in (self.optimizer, self.other_optimizer):
            optimizer._state = copy.deepcopy(optimizer._state)
            optimizer._state[0]["momentum"] += 1
        self.both()
        assert self.step.fast

    def test_another_parameter(self):
        self.both()
        for net, optimizer in ((self.network, self.optimizer), (self.other, self.other_optimizer)):
            net[0].weight = nn.Parameter(np.full((8, 6), 0.1))
            optimizer.params[0] = net[0].weight
            optimizer._state[0].clear()
        self.both()
        assert self.step.fast

    def test_a_layer_more_which_the_optimiser_does_not_know(self):
        self.both()
        for net in (self.network, self.other):
            net._modules += [nn.ReLU(), nn.Linear(3, 3, rng=4)]
        x, y = next(self.data)
        loss = self.step(x, y)
        assert loss == plain_step(self.other, nn.CrossEntropyLoss(), self.other_optimizer, x, y)
        assert not self.step.fast and "other Parameters" in self.step.why

    def test_a_method_put_in_the_way_of_a_layer(self):
        self.both()
        seen, layer = [], self.network[0]
        layer.forward = lambda x: seen.append(len(x)) or nn.Linear.forward(layer, x)
        self.both(1)
        assert seen == [9] and not self.step.fast and "methods of its own" in self.step.why
        del layer.forward
        self.both(1)
        assert seen == [9] and self.step.fast

    def test_options_of_an_activation(self):
        network = chain(6, 8, 3, hidden=nn.LeakyReLU)
        other = copy.deepcopy(network)
        step = network.training_step(nn.CrossEntropyLoss(), self.rule(network.parameters()))
        optimizer = self.rule(other.parameters())
        for slope in (0.1, 0.9):
            network[1]._options["negative_slope"] = other[1]._options["negative_slope"] = slope
            x, y = next(self.data)
            assert step(x, y) == plain_step(other, nn.CrossEntropyLoss(), optimizer, x, y)

    def test_the_reduction(self):
        self.both()
        self.step.criterion.reduction = "sum"
        x, y = next(self.data)
        assert self.step(x, y) == plain_step(
            self.other, nn.CrossEntropyLoss("sum"), self.other_optimizer, x, y
        )
        same(self.network, self.other)


class Doubling(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)

    def backward(self, d_out):
        return super().backward(2 * d_out)


class Halving(optim.SGD):
    def step(self):
        super().step()
        for parameter in self.params:
            parameter.data *= 0.5


@pytest.mark.parametrize(
    ("network", "rule", "why"),
    [
        (nn.Sequential(Doubling(4, 3, rng=0)), RULES["SGD"], "Doubling has no fast path"),
        (chain(4, 3), lambda p: Halving(p, lr=0.1), "Halving has no fast path"),
        (chain(4, 5, 3), lambda p: optim.SGD(list(p)[:2], lr=0.1), "other Parameters"),
        (chain(4, 0, 3), RULES["SGD"], "width 0"),
    ],
)
def test_what_has_no_fast_path_takes_the_plain_one_and_says_why(network, rule, why):
    step = compare(network, rule, batches([6, 6], 4, 3), fast=False)
    assert why in step.why and "plain" in repr(step)


def resized(layer, *shape):
    """The layer with a weight of another shape, and a bias that fits it; its sizes still tell the old one."""
    layer.weight, layer.bias = nn.Parameter(np.full(shape, 0.1)), nn.Parameter(np.ones(shape[0]))


def test_weights_of_other_sizes_than_the_layer_tells_take_the_plain_path():
    network = chain(4, 5, 3)
    resized(network[0], 7, 4)
    resized(network[2], 3, 7)
    step = compare(network, RULES["SGD"], batches([6, 6], 4, 3), fast=False)
    assert "sizes" in step.why


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.Sequential(nn.Linear(4, 5, rng=0), nn.Linear(6, 3, rng=0)), r"x has shape \(6, 5\), but"),
        (lambda: resized_bias(1), r"bias has shape \(1,\)"),
        (lambda: resized_bias(6, 5), r"bias has shape \(6, 5\)"),
    ],
)
def test_layers_that_do_not_fit_together_get_the_plain_error(make, message):
    network = make()
    step = network.training_step(nn.CrossEntropyLoss(), RULES["SGD"](network.parameters()))
    with pytest.raises(ValueError, match=f"linear: {message}"):
        step(*next(batches([6], 4, 3)))


def resized_bias(*shape):
    network = chain(4, 5, 3)
    network[0].bias = nn.Parameter(np.ones(shape))
    return network


def test_a_shared_parameter_takes_the_plain_path():
    network = chain(4, 4, 4)
    network[2].weight = network[0].weight
    step = compare(network, RULES["SGD"], batches([6, 6], 4, 4), fast=False)
    assert "share" in step.why


def test_a_module_that_stands_twice_takes_the_plain_path():
    network = chain(4, 5, 5, 3)
    network._modules[3] = network[1]
    step = compare(network, RULES["SGD"], batches([6, 6], 4, 3), fast=False)
    assert "twice" in step.why


def test_an_empty_batch_takes_the_plain_path():
    network = chain(4, 5, 3)
    before = network.state_dict()
    step = network.training_step(nn.CrossEntropyLoss(), RULES["SGD"](network.parameters()))
    assert np.isnan(step(np.ones((0, 4)), np.ones(0, int)))
    assert not step.fast and "empty" in step.why
    for name, array in network.state_dict().items():
        np.testing.assert_array_equal(array, before[name])


def test_a_loss_for_each_sample_takes_the_plain_path():
    network = chain(4, 5, 3)
    step = network.training_step(nn.CrossEntropyLoss("none"), RULES["SGD"](network.parameters()))
    assert step(*next(batches([6], 4, 3))).shape == (6,)
    assert not step.fast and "'none'" in step.why


@pytest.mark.parametrize("missing", ["network", "criterion", "optimizer"])
@pytest.mark.parametrize("wrong", [None, 3, "step", optim.SGD])
def test_what_cannot_make_a_step_is_refused_at_once(missing, wrong):
    network = chain(4, 5, 3)
    parts = {"criterion": nn.MSELoss(), "optimizer": RULES["SGD"](network.parameters()), "network": network}
    with pytest.raises(TypeError, match=f"TrainingStep: {missing} is .*; expected an object with"):
        TrainingStep(**parts | {missing: wrong})


def test_a_layer_in_the_place_of_the_loss_gets_the_plain_error():
    network = chain(4, 5, 3)
    step = network.training_step(nn.ReLU(), RULES["SGD"](network.parameters()))
    with pytest.raises(TypeError, match="positional argument"):
        step(*next(batches([6], 4, 3)))


def test_two_dtypes_get_the_plain_error_and_stay_as_they_are():
    network = chain(4, 5, 3)
    network._modules[2] = nn.Linear(5, 3, rng=0, dtype=np.float32)
    step = network.training_step(nn.CrossEntropyLoss(), RULES["SGD"](network.parameters()))
    with pytest.raises(TypeError, match="float32"):
        step(*next(batches([6], 4, 3)))
    assert [array.dtype for array in values(network)] == [np.float64] * 2 + [np.float32] * 2


def test_class_probabilities_take_the_plain_path_and_class_indices_the_fast_one_again():
    network = chain(4, 5, 3)
    x, y = next(batches([6], 4, 3))
    step = compare(network, RULES["SGD"], [(x, np.eye(3)[y])], fast=False)
    assert "target" in step.why
    step(x, y)
    assert step.fast


@pytest.mark.parametrize(
    ("x", "y", "error", "message"),
    [
        (np.ones((3, 5)), np.zeros(3, int), ValueError, "x has shape"),
        (np.ones((3, 4), np.float32), np.zeros(3, int), TypeError, "dtype"),
        ([[1.0] * 4], np.zeros(1, int), TypeError, "a list"),
        (np.ones((3, 4)), np.array([0, 3, 1]), ValueError, "class index from 0 to 2"),
        (np.ones((3, 4)), np.array([0, -1, 1]), ValueError, "class index from 0 to 2"),
        (np.ones((3, 4)), np.zeros(2, int), ValueError, "one class index for each row"),
    ],
)
def test_bad_input_gets_the_plain_error_and_changes_nothing(x, y, error, message):
    network = chain(4, 5, 3)
    before = network.state_dict()
    step = network.training_step(nn.CrossEntropyLoss(), RULES["SGD"](network.parameters()))
    with pytest.raises(error, match=message):
        step(x, y)
    for name, array in network.state_dict().items():
        np.testing.assert_array_equal(array, before[name])


def test_a_target_of_another_dtype_gets_the_plain_error():
    network = chain(4, 5, 3)
    step = network.training_step(nn.MSELoss(), RULES["SGD"](network.parameters()))
    with pytest.raises(TypeError, match="target has dtype float32"):
        step(np.ones((6, 4)), np.ones((6, 3), np.float32))


def test_values_and_gradients_are_views_of_two_buffers():
    network = chain(4, 5, 3)
    step = network.training_step(nn.CrossEntropyLoss(), RULES["SGD"](network.parameters()))
    step(*next(batches([6], 4, 3)))
    for kind in ("data", "grad"):
        buffers = {id(array.base) for array in values(network, kind)}
        assert len(buffers) == 1
        assert values(network, kind)[0].base.size == network.parameter_count()


def test_gradients_that_somebody_holds_are_not_overwritten():
    network = chain(4, 5, 3)
    step = network.training_step(nn.CrossEntropyLoss(), RULES["SGD"](network.parameters()))
    data = batches([6] * 4, 4, 3)
    step(*next(data))
    held, row = network[0].weight.grad, network[2].bias.grad[1:]
    copies = held.copy(), row.copy()
    step(*next(data))
    np.testing.assert_array_equal(held, copies[0])
    np.testing.assert_array_equal(row, copies[1])
    del held, row
    places = []
    for _ in range(2):
        places.append(network[0].weight.grad.ctypes.data)
        step(*next(data))
    assert places[0] == places[1]


def test_outputs_that_the_network_returned_stay_as_they_were():
    network = chain(4, 5, 3)
    step = network.training_step(nn.CrossEntropyLoss(), RULES["SGD"](network.parameters()))
    x, y = next(batches([6], 4, 3))
    out = network(x)
    before = out.copy()
    loss = step(x, y)
    value = float(loss)
    step(x, y)
    np.testing.assert_array_equal(out, before)
    assert loss == value


def test_the_modules_keep_nothing_of_the_step_so_that_a_backward_is_an_error():
    network = chain(4, 5, 3)
    x, y = next(batches([6], 4, 3))
    network(x)
    network.training_step(nn.CrossEntropyLoss(), RULES["SGD"](network.parameters()))(x, y)
    with pytest.raises(RuntimeError, match="no forward pass came before"):
        network.backward(np.ones((6, 3)))


def test_an_update_needs_a_forward_before_it():
    network = chain(4, 5, 3)
    step = network.training_step(nn.CrossEntropyLoss(), RULES["SGD"](network.parameters()))
    step(*next(batches([6], 4, 3)))
    with pytest.raises(RuntimeError, match="no forward pass came before"):
        step.update()


def test_release_returns_the_values_to_the_arrays_of_before():
    network = chain(4, 5, 3)
    arrays = values(network)
    step = network.training_step(nn.CrossEntropyLoss(), RULES["momentum"](network.parameters()))
    other = copy.deepcopy(network)
    optimizer = RULES["momentum"](other.parameters())
    for x, y in batches([6, 6], 4, 3):
        step(x, y)
        plain_step(other, nn.CrossEntropyLoss(), optimizer, x, y)
    assert values(network)[0] is not arrays[0]
    step.release()
    for mine, array, theirs in zip(values(network), arrays, values(other), strict=True):
        assert mine is array
        np.testing.assert_array_equal(mine, theirs)
    x, y = next(batches([6], 4, 3, seed=7))
    assert step(x, y) == plain_step(other, nn.CrossEntropyLoss(), optimizer, x, y)
    same(network, other)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_an_update_is_not_lost_when_another_step_was_made_after_the_forward_pass(rule):
    network = chain(4, 5, 3)
    other = copy.deepcopy(network)
    optimizer = rule(network.parameters())
    x, y = next(batches([6], 4, 3))
    first = network.training_step(nn.CrossEntropyLoss(), optimizer)
    first.forward(x, y)
    network.training_step(nn.CrossEntropyLoss(), optimizer)
    first.update()
    plain_step(other, nn.CrossEntropyLoss(), rule(other.parameters()), x, y)
    same(network, other)


def test_a_step_may_go_on_after_release_though_nobody_holds_the_arrays_of_before():
    network = chain(4, 5, 3)
    other = copy.deepcopy(network)
    step = network.training_step(nn.CrossEntropyLoss(), RULES["momentum"](network.parameters()))
    optimizer = RULES["momentum"](other.parameters())
    for x, y in batches([6] * 4, 4, 3):
        step.release()
        assert step(x, y) == plain_step(other, nn.CrossEntropyLoss(), optimizer, x, y)
        same(network, other)


def test_release_leaves_alone_what_another_step_has_taken():
    network = chain(4, 5, 3)
    arrays = values(network)
    optimizer = RULES["SGD"](network.parameters())
    first, second = (network.training_step(nn.CrossEntropyLoss(), optimizer) for _ in range(2))
    taken = values(network)
    first.release()
    assert all(mine is array for mine, array in zip(values(network), taken, strict=True))
    second.release()
    assert all(mine is not array for mine, array in zip(values(network), arrays, strict=True))


@pytest.mark.parametrize("again", [copy.deepcopy, lambda thing: pickle.loads(pickle.dumps(thing))])
def test_copies_of_network_and_step_are_independent_and_train_on(again):
    network = chain(4, 5, 3)
    step = network.training_step(nn.CrossEntropyLoss(), RULES["momentum"](network.parameters()))
    data = list(batches([6] * 3, 4, 3))
    step(*data[0])
    twin = again(step)
    copied = again(network)
    for x, y in data[1:]:
        assert step(x, y) == twin(x, y)
        same(network, twin.network)
    assert all(not np.shares_memory(*pair) for pair in zip(values(network), values(copied), strict=True))
    assert not np.array_equal(values(copied)[0], values(network)[0])


class TestFit:
    def test_takes_the_fast_path_and_leaves_every_parameter_in_its_array(self, monkeypatch):
        seen, forward = [], TrainingStep.forward

        def watched(step, x, y):
            loss = forward(step, x, y)
            seen.append(step.fast)
            return loss

        monkeypatch.setattr(TrainingStep, "forward", watched)
        network = chain(4, 5, 3)
        arrays = values(network)
        x, y = next(batches([20], 4, 3))
        options = {"batch_size": 8, "epochs": 2, "rng": 0}
        training.fit(network, nn.CrossEntropyLoss(), RULES["Adam"](network.parameters()), x, y, **options)
        assert seen == [True] * 6
        assert all(mine is array for mine, array in zip(values(network), arrays, strict=True))

    def test_a_loss_that_is_not_finite_stops_before_the_update(self):
        network = chain(4, 5, 3)
        before = network.state_dict()
        x, y = next(batches([6], 4, 3))
        x[0] = np.nan
        options = {"batch_size": 6, "epochs": 1, "rng": 0}
        with pytest.raises(FloatingPointError, match="at step 0"):
            training.fit(network, nn.CrossEntropyLoss(), RULES["SGD"](network.parameters()), x, y, **options)
        for name, array in network.state_dict().items():
            np.testing.assert_array_equal(array, before[name])
