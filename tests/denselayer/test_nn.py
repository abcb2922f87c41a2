"""Layers as objects: gradients add, weights may be tied, and the state is PyTorch's."""

import copy
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from denselayer import functional as F
from denselayer import nn
from tests.denselayer.oracle import FLOATS, dtypes, error, seeds, sizes, slopes, tensor

every_dtype = pytest.mark.parametrize("dtype", FLOATS, ids=["float32", "float64"])
ACTIVATIONS = {
    "Identity": {},
    "ReLU": {},
    "LeakyReLU": {"negative_slope": 0.2},
    "Sigmoid": {},
    "Tanh": {},
    "GELU": {"approximate": "tanh"},
    "SiLU": {},
    "Softplus": {"beta": 2.0, "threshold": 10.0},
}


def network(dtype=np.float64, rng=0):
    rng = np.random.default_rng(rng)
    return nn.Sequential(
        nn.Linear(5, 7, rng=rng, dtype=dtype),
        nn.Tanh(),
        nn.Sequential(nn.Linear(7, 6, bias=False, rng=rng, dtype=dtype), nn.GELU()),
        nn.Linear(6, 3, rng=rng, dtype=dtype),
    )


def torch_network(dtype=np.float64):
    kind = {np.float32: torch.float32, np.float64: torch.float64}[dtype]
    return torch.nn.Sequential(
        torch.nn.Linear(5, 7, dtype=kind),
        torch.nn.Tanh(),
        torch.nn.Sequential(torch.nn.Linear(7, 6, bias=False, dtype=kind), torch.nn.GELU()),
        torch.nn.Linear(6, 3, dtype=kind),
    )


def torch_linear(inputs, outputs, **options):
    """PyTorch's layer; it warns where there is nothing to initialise."""
    with warnings.catch_warnings(action="ignore"):
        return torch.nn.Linear(inputs, outputs, **options)


class TestParameter:
    def test_copies_its_values_so_that_training_changes_no_input(self):
        values = np.ones(3)
        parameter = nn.Parameter(values)
        parameter.data += 1
        np.testing.assert_array_equal(values, [1, 1, 1])

    def test_keeps_one_array_for_life(self):
        parameter = nn.Parameter(np.ones(3))
        array = parameter.data
        parameter.data = np.array([1.0, 2.0, 3.0])
        assert parameter.data is array
        np.testing.assert_array_equal(array, [1, 2, 3])

    @every_dtype
    def test_knows_shape_dtype_and_size(self, dtype):
        parameter = nn.Parameter(np.zeros((2, 3), dtype))
        assert (parameter.shape, parameter.dtype, parameter.size) == ((2, 3), dtype, 6)
        assert repr(parameter) == f"Parameter(shape=(2, 3), dtype={np.dtype(dtype)}, no grad)"

    def test_gradients_add_until_zero_grad(self):
        parameter, first = nn.Parameter(np.zeros(2)), np.array([1.0, 2.0])
        assert parameter.grad is None
        parameter.accumulate(first)
        first[...] = 99
        parameter.accumulate(np.array([10.0, 20.0]))
        np.testing.assert_array_equal(parameter.grad, [11, 22])
        np.testing.assert_array_equal(first, [99, 99])
        parameter.zero_grad()
        assert parameter.grad is None


class TestLinear:
    @every_dtype
    def test_forward_and_backward_are_those_of_functional(self, dtype):
        layer = nn.Linear(4, 3, rng=0, dtype=dtype)
        rng = np.random.default_rng(1)
        x, d_out = rng.standard_normal((6, 4)).astype(dtype), rng.standard_normal((6, 3)).astype(dtype)
        expected = F.linear_backward(d_out, x, layer.weight.data)
        np.testing.assert_array_equal(layer(x), F.linear(x, layer.weight.data, layer.bias.data))
        np.testing.assert_array_equal(layer.backward(d_out), expected.d_x)
        np.testing.assert_array_equal(layer.weight.grad, expected.d_weight)
        np.testing.assert_array_equal(layer.bias.grad, expected.d_bias)

    def test_from_arrays_holds_copies_of_them(self):
        weight, bias = np.array([[1.0, 2.0]]), np.array([3.0])
        layer = nn.Linear.from_arrays(weight, bias)
        layer.weight.data *= 2
        layer.bias.data *= 2
        np.testing.assert_array_equal(layer(np.array([[1.0, 1.0]])), [[12]])
        np.testing.assert_array_equal(weight, [[1, 2]])
        np.testing.assert_array_equal(bias, [3])
        assert nn.Linear.from_arrays(weight).bias is None
        assert (layer.in_features, layer.out_features) == (2, 1)

    def test_bottom_layer_returns_no_input_gradient(self):
        layer = nn.Linear(4, 3, rng=0, input_gradient=False)
        layer(np.ones((2, 4)))
        assert layer.backward(np.ones((2, 3))) is None
        assert layer.weight.grad is not None

    def test_one_sample_has_no_batch_axis(self):
        layer = nn.Linear(4, 3, rng=0)
        assert layer(np.ones(4)).shape == (3,)
        assert layer.backward(np.ones(3)).shape == (4,)

    def test_backward_belongs_to_the_latest_forward(self):
        layer = nn.Linear(4, 3, rng=0)
        layer(np.ones((64, 4)))
        layer(np.full((2, 4), 5.0))
        layer.backward(np.ones((2, 3)))
        np.testing.assert_array_equal(layer.weight.grad, np.full((3, 4), 10.0))

    def test_gradients_of_several_batches_add(self):
        layer, x, d_out = nn.Linear(4, 3, rng=0), np.ones((6, 4)), np.ones((6, 3))
        for rows in (slice(0, 2), slice(2, 6)):
            layer(x[rows])
            layer.backward(d_out[rows])
        np.testing.assert_array_equal(layer.weight.grad, d_out.T @ x)
        layer.zero_grad()
        assert layer.weight.grad is None

    def test_repr_reads_like_pytorchs(self):
        assert repr(nn.Linear(4, 3)) == repr(torch.nn.Linear(4, 3))

    @settings(max_examples=40, deadline=None)
    @given(n=sizes, inputs=sizes, outputs=sizes, dtype=dtypes, seed=seeds)
    def test_any_shape_agrees_with_pytorchs_layer_after_loading_its_state(
        self, n, inputs, outputs, dtype, seed
    ):
        rng = np.random.default_rng(seed)
        x, d_out = (
            rng.standard_normal((n, inputs)).astype(dtype),
            rng.standard_normal((n, outputs)).astype(dtype),
        )
        layer, leaf = nn.Linear(inputs, outputs, rng=rng, dtype=dtype), tensor(x, gradient=True)
        theirs = torch_linear(inputs, outputs, dtype=getattr(torch, np.dtype(dtype).name))
        theirs.load_state_dict({name: torch.from_numpy(array) for name, array in layer.state_dict().items()})
        out = theirs(leaf)
        out.backward(tensor(d_out))
        assert error(layer(x), out.detach().numpy(), scale=1 + np.abs(x).sum(axis=-1, keepdims=True)) <= 8
        assert error(layer.backward(d_out), leaf.grad.numpy(), scale=1 + np.abs(d_out).sum(initial=0)) <= 8
        assert error(layer.bias.grad, theirs.bias.grad.numpy(), scale=1 + n) <= 8
        assert error(layer.weight.grad, theirs.weight.grad.numpy(), scale=1 + n) <= 32


class TestTiedWeights:
    def tied(self):
        rng = np.random.default_rng(0)
        first, second = nn.Linear(4, 4, rng=rng), nn.Linear(4, 4, rng=rng)
        second.weight = first.weight
        return (
            nn.Sequential(first, nn.Tanh(), second),
            rng.standard_normal((5, 4)),
            rng.standard_normal((5, 4)),
        )

    @pytest.mark.equation("eq-backward-tied")
    def test_gradient_of_a_weight_used_twice_is_the_sum_of_both_contributions(self):
        net, x, d_out = self.tied()
        net(x)
        net.backward(d_out)
        weight = net[0].weight

        def loss(values):
            biases = net[0].bias.data, net[2].bias.data
            return np.sum(d_out * (np.tanh(x @ values.T + biases[0]) @ values.T + biases[1]))

        np.testing.assert_allclose(weight.grad, slopes(loss, weight.data.copy()), rtol=1e-7, atol=1e-8)
        hidden = np.tanh(F.linear(x, weight.data, net[0].bias.data))
        upper = F.linear_backward(d_out, hidden, weight.data)
        lower = F.linear_backward(upper.d_x * (1 - hidden**2), x, weight.data)
        np.testing.assert_allclose(weight.grad, upper.d_weight + lower.d_weight, rtol=1e-12, atol=1e-14)

    @pytest.mark.equation("eq-backward-tied")
    def test_gradient_of_a_weight_used_twice_is_pytorchs(self):
        net, x, d_out = self.tied()
        theirs = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 4)).double()
        theirs[2].weight = theirs[0].weight
        theirs.load_state_dict({name: torch.from_numpy(array) for name, array in net.state_dict().items()})
        net(x)
        d_x, leaf = net.backward(d_out), tensor(x, gradient=True)
        theirs(leaf).backward(tensor(d_out))
        assert error(net[0].weight.grad, theirs[0].weight.grad.numpy()) <= 8
        assert error(d_x, leaf.grad.numpy()) <= 8

    def test_parameters_yields_a_shared_one_once_and_the_state_names_it_twice_as_in_pytorch(self):
        net, _, _ = self.tied()
        assert [name for name, _ in net.named_parameters()] == ["0.weight", "0.bias", "2.bias"]
        assert len(list(net.parameters())) == 3
        assert net.parameter_count() == 16 + 4 + 4
        assert list(net.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]

    def test_a_deep_copy_is_tied_again_and_apart_from_the_original(self):
        net, x, _ = self.tied()
        other = copy.deepcopy(net)
        assert other[0].weight is other[2].weight
        assert other[0].weight is not net[0].weight
        np.testing.assert_array_equal(other(x), net(x))


@pytest.mark.parametrize("name", ACTIVATIONS)
@every_dtype
def test_activation_modules_agree_with_pytorchs(name, dtype):
    rng = np.random.default_rng(0)
    z, d_out = (
        (3 * rng.standard_normal((2, 4, 5))).astype(dtype),
        rng.standard_normal((2, 4, 5)).astype(dtype),
    )
    ours, theirs = getattr(nn, name)(**ACTIVATIONS[name]), getattr(torch.nn, name)(**ACTIVATIONS[name])
    leaf = tensor(z, gradient=True)
    out = theirs(leaf)
    out.backward(tensor(d_out))
    assert error(ours(z), out.detach().numpy()) <= 4
    assert error(ours.backward(d_out), leaf.grad.numpy()) <= 8
    assert list(ours.parameters()) == []


@pytest.mark.parametrize("name", ["MSELoss", "CrossEntropyLoss", "BCEWithLogitsLoss"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_loss_modules_agree_with_pytorchs(name, reduction):
    rng = np.random.default_rng(0)
    input, target = rng.standard_normal((6, 3)), rng.dirichlet(np.ones(3), 6)
    ours, theirs = getattr(nn, name)(reduction), getattr(torch.nn, name)(reduction=reduction)
    leaf = tensor(input, gradient=True)
    out = theirs(leaf, tensor(target))
    out.backward(torch.full_like(out, 2.0))
    assert error(ours(input, target), out.detach().numpy()) <= 8
    assert error(ours.backward(2.0), leaf.grad.numpy()) <= 8


class TestSequential:
    @every_dtype
    def test_agrees_with_pytorchs_network_forward_and_backward(self, dtype):
        rng = np.random.default_rng(0)
        x, d_out = rng.standard_normal((9, 5)).astype(dtype), rng.standard_normal((9, 3)).astype(dtype)
        net, theirs, leaf = network(dtype), torch_network(dtype), tensor(x, gradient=True)
        net.load_state_dict(theirs.state_dict())
        out = theirs(leaf)
        out.backward(tensor(d_out))
        assert error(net(x), out.detach().numpy()) <= 8
        assert error(net.backward(d_out), leaf.grad.numpy()) <= 8
        gradients = {name: parameter.grad.numpy() for name, parameter in theirs.named_parameters()}
        for name, parameter in net.named_parameters():
            assert error(parameter.grad, gradients.pop(name)) <= 8
        assert not gradients

    def test_is_a_list_of_its_modules(self):
        net = network()
        assert len(net) == 4
        assert list(net) == [net[i] for i in range(4)]
        assert repr(net).splitlines()[1] == "  (0): Linear(in_features=5, out_features=7, bias=True)"
        assert nn.Sequential()(np.ones(3)).tolist() == [1, 1, 1]

    def test_only_the_first_module_may_skip_its_input_gradient(self):
        good = nn.Sequential(nn.Linear(2, 2, input_gradient=False), nn.ReLU(), nn.Linear(2, 2))
        good(np.ones((1, 2)))
        assert good.backward(np.ones((1, 2))) is None
        bad = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2, input_gradient=False))
        bad(np.ones((1, 2)))
        with pytest.raises(RuntimeError, match="module 1 returned no input gradient.*Only the first"):
            bad.backward(np.ones((1, 2)))

    def test_one_module_cannot_stand_twice(self):
        layer = nn.Linear(2, 2)
        for modules in ([layer, layer], [layer, nn.Sequential(layer)]):
            with pytest.raises(ValueError, match="stands twice.*To tie weights"):
                nn.Sequential(*modules)


@pytest.mark.parametrize(
    "module", [nn.Linear(2, 2), nn.ReLU(), nn.Sequential(nn.ReLU()), nn.Sequential(), nn.GELU()], ids=repr
)
def test_backward_before_forward_says_so(module):
    with pytest.raises(
        RuntimeError, match=r"backward: no forward pass .* Call the module on its input first"
    ):
        module.backward(np.ones((1, 2)))


@pytest.mark.parametrize("loss", [nn.MSELoss(), nn.CrossEntropyLoss(), nn.BCEWithLogitsLoss()], ids=repr)
def test_loss_backward_before_forward_says_so(loss):
    with pytest.raises(RuntimeError, match=r"backward: no forward pass"):
        loss.backward()


def test_a_failed_forward_leaves_the_last_good_one():
    layer = nn.Linear(2, 2, rng=0)
    layer(np.ones((3, 2)))
    with pytest.raises(ValueError):
        layer(np.ones((3, 5)))
    assert layer.backward(np.ones((3, 2))).shape == (3, 2)


class TestOwnModule:
    class Residual(nn.Module):
        def __init__(self, width):
            self.inner = nn.Sequential(nn.Linear(width, width, rng=0), nn.Tanh())
            self.scale = nn.Parameter(np.full(width, 0.5))

        def forward(self, x):
            self.hidden = self.inner(x)
            return x + self.hidden * self.scale.data

        def backward(self, d_out):
            self.scale.accumulate((d_out * self.hidden).sum(axis=0))
            return d_out + self.inner.backward(d_out * self.scale.data)

    def test_parameters_are_found_without_registration(self):
        assert list(self.Residual(3).state_dict()) == ["scale", "inner.0.weight", "inner.0.bias"]

    def test_gradients_are_the_slopes(self):
        module, x = self.Residual(3), np.random.default_rng(0).standard_normal((4, 3))
        module(x)
        d_x = module.backward(np.ones((4, 3)))
        np.testing.assert_allclose(d_x, slopes(lambda a: np.sum(module(a)), x), rtol=1e-7)

        def loss(values):
            module.scale.data = values
            return np.sum(module(x))

        np.testing.assert_allclose(module.scale.grad, slopes(loss, module.scale.data.copy()), rtol=1e-7)

    def test_a_module_without_forward_or_backward_says_which(self):
        for name in ("forward", "backward"):
            with pytest.raises(NotImplementedError, match=f"Module defines no {name}"):
                getattr(nn.Module(), name)(np.ones(1))

    def test_a_parameter_is_replaced_by_a_parameter_only(self):
        layer = nn.Linear(2, 2)
        with pytest.raises(TypeError, match=r"weight is an array .* expected a Parameter"):
            layer.weight = np.ones((2, 2))


class TestState:
    def test_is_named_and_shaped_as_in_pytorch(self):
        ours, theirs = network().state_dict(), torch_network().state_dict()
        assert {name: array.shape for name, array in ours.items()} == {
            name: tuple(array.shape) for name, array in theirs.items()
        }
        assert list(ours) == list(theirs)

    @every_dtype
    def test_goes_to_pytorch_and_back_unchanged(self, dtype):
        net, theirs = network(dtype), torch_network(dtype)
        theirs.load_state_dict({name: torch.from_numpy(array) for name, array in net.state_dict().items()})
        other = network(dtype, rng=1)
        other.load_state_dict({name: array.numpy() for name, array in theirs.state_dict().items()})
        for name, array in net.state_dict().items():
            np.testing.assert_array_equal(other.state_dict()[name], array)

    def test_is_a_copy(self):
        layer = nn.Linear(2, 2, rng=0)
        before = layer.weight.data.copy()
        layer.state_dict()["weight"][...] = 0
        np.testing.assert_array_equal(layer.weight.data, before)

    def test_loads_in_place_and_in_the_dtype_of_the_layer(self):
        layer = nn.Linear(2, 1, dtype=np.float32)
        array = layer.weight.data
        layer.load_state_dict({"weight": np.array([[1.5, 2.5]]), "bias": np.array([0.5])})
        assert layer.weight.data is array
        assert array.dtype == np.float32
        np.testing.assert_array_equal(array, [[1.5, 2.5]])

    @pytest.mark.parametrize("path", ["net.npz", "net"])
    def test_survives_a_file(self, tmp_path, path):
        net, other = network(), network(rng=1)
        net.save(tmp_path / path)
        assert (tmp_path / "net.npz").exists()
        other.load(tmp_path / path)
        x = np.ones((2, 5))
        np.testing.assert_array_equal(other(x), net(x))
        with np.load(tmp_path / "net.npz") as state:
            assert list(state) == list(net.state_dict())

    def test_a_file_with_a_pickle_is_refused(self, tmp_path):
        np.savez(tmp_path / "evil.npz", weight=np.array([print], dtype=object), bias=np.zeros(2))
        with pytest.raises(ValueError, match="allow_pickle=False"):
            nn.Linear(2, 2).load(tmp_path / "evil.npz")

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda state: state.pop("0.weight"), "missing 0.weight"),
            (lambda state: state.update(extra=np.zeros(1)), "unexpected extra"),
            (lambda state: state.update({"3.bias": np.zeros(4)}), r"3.bias has shape \(4,\)"),
            (lambda state: state.update({"3.bias": np.zeros(3, int)}), "3.bias has dtype int64"),
            (lambda state: state.update({"0.weight": state["0.weight"].T}), r"0.weight has shape \(5, 7\)"),
        ],
    )
    def test_that_does_not_fit_is_refused_by_name_and_changes_nothing(self, change, message):
        net = network()
        before = net.state_dict()
        state = {name: array + 1 for name, array in before.items()}
        change(state)
        with pytest.raises(ValueError, match=f"{message}.*expected.*0.weight .7, 5.*same structure"):
            net.load_state_dict(state)
        for name, array in net.state_dict().items():
            np.testing.assert_array_equal(array, before[name])

    def test_names_can_be_skipped_and_are_told(self):
        net, ones = network(), {"0.weight": np.ones((7, 5)), "extra": np.ones(1)}
        report = net.load_state_dict(ones, strict=False)
        assert report.missing_keys == ["0.bias", "2.0.weight", "3.weight", "3.bias"]
        assert report.unexpected_keys == ["extra"]
        assert net[0].weight.data.min() == 1
        with pytest.raises(ValueError, match="0.weight has shape"):
            net.load_state_dict({"0.weight": np.ones((5, 7))}, strict=False)


class TestInitialisation:
    """Bounds are hard; a standard deviation of 250,000 numbers is known to 1 percent with room to spare."""

    SHAPE = (500, 500)

    def filled(self, function, **options):
        parameter = nn.Parameter(np.zeros(self.SHAPE))
        function(parameter, 0, **options)
        return parameter.data

    def assert_uniform(self, values, bound):
        assert np.abs(values).max() <= bound
        assert np.abs(values).max() > 0.999 * bound
        assert values.std() == pytest.approx(bound / np.sqrt(3), rel=0.01)
        assert abs(values.mean()) < 0.01 * bound

    def test_he_is_normal_with_deviation_root_of_two_over_inputs(self):
        values = self.filled(nn.he_)
        assert values.std() == pytest.approx(np.sqrt(2 / 500), rel=0.01)
        assert np.mean(np.abs(values) < values.std()) == pytest.approx(0.6827, abs=0.01)
        theirs = torch.nn.init.kaiming_normal_(torch.empty(self.SHAPE), nonlinearity="relu")
        assert values.std() == pytest.approx(theirs.std().item(), rel=0.01)

    def test_he_keeps_the_mean_square_of_relu_layers(self):
        rng = np.random.default_rng(0)
        x = rng.standard_normal((500, 256))
        for _ in range(8):
            x = F.relu(nn.Linear(256, 256, init="he", rng=rng)(x))
        assert 0.5 < np.mean(x**2) < 2

    def test_xavier_is_uniform_within_root_of_six_over_inputs_and_outputs(self):
        self.assert_uniform(self.filled(nn.xavier_), np.sqrt(6 / 1000))
        theirs = torch.nn.init.xavier_uniform_(torch.empty(self.SHAPE))
        assert theirs.abs().max().item() == pytest.approx(np.sqrt(6 / 1000), rel=1e-3)

    def test_pytorchs_default_is_uniform_within_one_over_root_of_inputs(self):
        layer, theirs = nn.Linear(400, 500, rng=0), torch.nn.Linear(400, 500)
        self.assert_uniform(layer.weight.data, 1 / 20)
        assert np.abs(layer.bias.data).max() <= 1 / 20
        assert np.abs(layer.bias.data).max() > 0.98 / 20
        for ours, other in ((layer.weight, theirs.weight), (layer.bias, theirs.bias)):
            assert np.abs(ours.data).max() == pytest.approx(other.detach().abs().max().item(), rel=0.02)
            assert ours.data.std() == pytest.approx(other.detach().std().item(), rel=0.1)

    @pytest.mark.parametrize("init", ["he", "xavier", "zeros"])
    def test_other_schemes_start_the_bias_at_zero(self, init):
        layer = nn.Linear(4, 3, init=init, rng=0)
        np.testing.assert_array_equal(layer.bias.data, np.zeros(3))
        assert layer.weight.data.any() == (init != "zeros")

    @pytest.mark.parametrize("init", ["pytorch", "he", "xavier", "zeros"])
    @every_dtype
    @pytest.mark.filterwarnings("error")
    def test_no_inputs_and_no_outputs_are_layers_too(self, init, dtype):
        layer = nn.Linear(0, 3, init=init, rng=0, dtype=dtype)
        np.testing.assert_array_equal(layer(np.zeros((2, 0), dtype)), np.zeros((2, 3)))
        assert layer.backward(np.ones((2, 3), dtype)).shape == (2, 0)
        np.testing.assert_array_equal(layer.bias.grad, [2, 2, 2])
        assert nn.Linear(3, 0, init=init, rng=0)(np.ones((2, 3))).shape == (2, 0)
        assert nn.Linear(0, 0, init=init, rng=0).parameter_count() == 0

    def test_seed_fixes_the_numbers_and_a_generator_goes_on(self):
        a, b = nn.Linear(4, 3, rng=7), nn.Linear(4, 3, rng=7)
        np.testing.assert_array_equal(a.weight.data, b.weight.data)
        rng = np.random.default_rng(7)
        c, d = nn.Linear(4, 3, rng=rng), nn.Linear(4, 3, rng=rng)
        np.testing.assert_array_equal(a.weight.data, c.weight.data)
        assert not np.array_equal(c.weight.data, d.weight.data)
        assert not np.array_equal(nn.Linear(4, 3).weight.data, nn.Linear(4, 3).weight.data)

    def test_float32_holds_the_rounded_numbers_of_float64(self):
        single, double = (nn.Linear(4, 3, rng=0, dtype=dtype) for dtype in FLOATS)
        np.testing.assert_array_equal(single.weight.data, double.weight.data.astype(np.float32))
