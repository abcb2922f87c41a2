"""The Triton kernels in Triton's interpreter, on the CPU; test_triton_linear.py runs this file."""

import re

import numpy as np
import pytest
import torch

from benchmarks.kernels import gpu_layers, measure_gpu
from benchmarks.kernels import triton_linear as layer
from denselayer import functional as F

torch.use_deterministic_algorithms(True)  # fills fresh memory with NaN: an entry that no kernel writes shows

UNIT = {torch.float64: 2.0**-53, torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
OPTIONS = {
    "identity": {},
    "relu": {},
    "leaky_relu": {"negative_slope": 0.2},
    "sigmoid": {},
    "tanh": {},
    "gelu": {"approximate": "none"},
    "gelu_tanh": {"approximate": "tanh"},
    "silu": {},
    "softplus": {"beta": 2.0, "threshold": 3.0},
}
SHAPES = [(70, 45, 100), (1, 1, 1), (33, 65, 31), (5, 200, 7), (32, 32, 32), (66, 3, 65)]


def tensors(shape, dtype=torch.float32, seed=0):
    """Input, weight, bias and upstream gradient, ready for autograd."""
    N, inputs, outputs = shape
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal(s) for s in ((N, inputs), (outputs, inputs), outputs, (N, outputs))]
    x, weight, bias, d_out = [torch.tensor(a).to(dtype) for a in arrays]
    return x.requires_grad_(), weight.requires_grad_(), bias.requires_grad_(), d_out


def run(x, weight, bias, d_out, name, **more):
    """Output and the three gradients of the kernel, as float64 arrays."""
    out = layer.linear_act(x, weight, bias, name.removesuffix("_tanh"), **OPTIONS[name], **more)
    gradients = torch.autograd.grad(out, (x, weight, bias), d_out)
    return [wide(t) for t in (out, *gradients)]


def wide(tensor):
    return tensor.detach().to(torch.float64).numpy()


def reference(x, weight, bias, d_out, name):
    """The same in float64 by the book's package, and the size of the terms that each sum adds up."""
    x, weight, bias, d_out = [wide(t) for t in (x, weight, bias, d_out)]
    function = name.removesuffix("_tanh")
    z = F.linear(x, weight, bias)
    d_z = getattr(F, function + "_backward")(d_out, z, **OPTIONS[name])
    gradients = F.linear_backward(d_z, x, weight)
    sizes = np.abs(x) @ np.abs(weight).T + np.abs(bias)
    # a gate moves with z, by at most the curvature (below 2) times the error of z
    d_sizes = np.abs(d_z) + 2 * np.abs(d_out) * sizes if name not in ("identity", "relu") else np.abs(d_z)
    return [
        (getattr(F, function)(z, **OPTIONS[name]), sizes + 1),
        (gradients.d_x, d_sizes @ np.abs(weight)),
        (gradients.d_weight, d_sizes.T @ np.abs(x)),
        (gradients.d_bias, d_sizes.sum(axis=0)),
    ]


def errors(found, expected, unit):
    """Largest error of each result in units of rounding of the terms that were added up."""
    return [
        float(np.max(np.abs(a - b) / (unit * np.maximum(size, 1e-300)), initial=0))
        for a, (b, size) in zip(found, expected, strict=True)
    ]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", ["relu", "identity"])
def test_float32_is_right_to_a_few_roundings_on_ragged_shapes(name, shape):
    arguments = tensors(shape)
    assert max(errors(run(*arguments, name), reference(*arguments, name), UNIT[torch.float32])) < 4


@pytest.mark.parametrize("name", OPTIONS)
def test_every_activation_and_its_gate_are_right(name):
    arguments = tensors((40, 45, 35))
    assert max(errors(run(*arguments, name), reference(*arguments, name), UNIT[torch.float32])) < 4


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", ["relu", "silu"])
def test_half_precision_is_accumulated_in_float32_and_rounded_once(name, dtype):
    arguments = tensors((40, 100, 35), dtype)
    out, d_x, d_weight, d_bias = run(*arguments, name)
    expected = reference(*arguments, name)
    fine = 4 * UNIT[torch.float32] * expected[0][1]
    last = (2 if dtype is torch.bfloat16 else 1) * UNIT[dtype]  # the interpreter cuts bfloat16 off
    assert np.all(np.abs(out - expected[0][0]) <= 1.01 * last * np.abs(expected[0][0]) + fine)
    assert max(errors([d_x, d_weight, d_bias], expected[1:], UNIT[dtype])) < 2


@pytest.mark.parametrize("name", OPTIONS)
def test_float64_passes_gradcheck(name):
    x, weight, bias, _ = tensors((4, 6, 5), torch.float64, seed=3)

    def function(x, weight, bias):
        return layer.linear_act(x, weight, bias, name.removesuffix("_tanh"), **OPTIONS[name])

    assert torch.autograd.gradcheck(function, (x, weight, bias), fast_mode=True)


def test_tanh_and_softplus_keep_their_digits_where_they_are_small():
    z = torch.tensor([[-1e-6], [3e-5], [0.01], [-15.0], [1e-30]], dtype=torch.float32)
    one, zero = torch.ones(1, 1), torch.zeros(1)
    for name in ("tanh", "softplus"):
        found = wide(layer.linear_act(z, one, zero, name))
        np.testing.assert_allclose(found, getattr(F, name)(wide(z)), rtol=5e-7)


@pytest.mark.parametrize("name", OPTIONS)
def test_far_from_zero_nothing_overflows(name):
    z = torch.tensor([[-1e30], [-200.0], [200.0], [1e30]], requires_grad=True)
    out = layer.linear_act(z, torch.ones(1, 1), None, name.removesuffix("_tanh"), **OPTIONS[name])
    (slope,) = torch.autograd.grad(out, z, torch.ones_like(out))
    function = name.removesuffix("_tanh")
    np.testing.assert_allclose(
        wide(out), getattr(F, function)(wide(z), **OPTIONS[name]), rtol=1e-6, atol=1e-30
    )
    expected = getattr(F, function + "_backward")(np.ones((4, 1)), wide(z), **OPTIONS[name])
    np.testing.assert_allclose(wide(slope), expected, rtol=1e-6, atol=1e-30)


@pytest.mark.parametrize("name", OPTIONS)
def test_nan_stays_in_its_row_and_is_never_lost(name):
    x, weight, bias, d_out = tensors((40, 37, 35))
    with torch.no_grad():
        x[33, 36] = float("nan")
    found = run(x, weight, bias, d_out, name)
    assert np.isnan(found[0][33]).all() and not np.isnan(np.delete(found[0], 33, axis=0)).any()
    for a, (b, _) in zip(found, reference(x, weight, bias, d_out, name), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)


def test_infinity_at_the_edge_does_not_leak_through_the_padding():
    x, weight, bias, d_out = tensors((33, 33, 33))
    with torch.no_grad():
        x[32, 32] = float("inf")
        weight[32, 32] = float("inf")
    found = run(x, weight, bias, d_out, "identity")
    expected = reference(x, weight, bias, d_out, "identity")
    for a, (b, _) in zip(found, expected, strict=True):
        np.testing.assert_array_equal(np.isfinite(a), np.isfinite(b))
        np.testing.assert_array_equal(np.isnan(a), np.isnan(b))


@pytest.mark.parametrize(("name", "slopes"), [("relu", [0, 0, 0, 1]), ("leaky_relu", [0.5, 0.5, 0.5, 1])])
def test_zero_belongs_to_the_negative_side(name, slopes):
    x = torch.tensor([[-1.0], [-0.0], [0.0], [2.0]], requires_grad=True)
    out = layer.linear_act(x, torch.ones(1, 1), None, name, negative_slope=0.5)
    (d_x,) = torch.autograd.grad(out, x, torch.ones_like(out))
    assert d_x.flatten().tolist() == slopes
    assert name != "relu" or not torch.signbit(out).any()


@pytest.mark.parametrize("shape", [(0, 5, 4), (3, 0, 4), (3, 5, 0), (0, 0, 0)], ids=str)
@pytest.mark.parametrize("name", ["relu", "softplus"])
def test_empty_batches_and_zero_widths_give_what_the_sums_say(name, shape):
    arguments = tensors(shape)
    for found, (expected, _) in zip(run(*arguments, name), reference(*arguments, name), strict=True):
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_no_program_divides_by_a_width_of_zero_tiles():
    with np.errstate(divide="raise"):
        run(*tensors((3, 0, 4)), "relu")


def test_strides_do_not_matter():
    x, weight, bias, d_out = tensors((40, 37, 35))
    plain = run(x, weight, bias, d_out, "gelu")
    turned = [t.detach().T.contiguous().T.requires_grad_() for t in (x, weight)]
    gaps = torch.stack([d_out, torch.full_like(d_out, float("nan"))], dim=2)[:, :, 0]
    spread = torch.stack([bias.detach()] * 2, dim=1)[:, 0].requires_grad_()
    for a, b in zip(plain, run(*turned, spread, gaps, "gelu"), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_broadcast_upstream_gradient_is_read_as_such():
    x, weight, bias, _ = tensors((40, 37, 35))
    layer.linear_act(x, weight, bias, "silu").sum().backward()
    expected = reference(x, weight, bias, torch.ones(40, 35), "silu")[1:]
    assert max(errors([wide(t.grad) for t in (x, weight, bias)], expected, UNIT[torch.float32])) < 4


def test_leading_dimensions_are_kept_and_the_bias_may_be_left_out():
    x, weight, _, _ = tensors((24, 9, 10))
    out = layer.linear_act(x.reshape(2, 3, 4, 9), weight)
    assert out.shape == (2, 3, 4, 10)
    np.testing.assert_allclose(wide(out).reshape(24, 10), F.relu(wide(x) @ wide(weight).T), atol=1e-5)
    assert layer.linear_act(x[0], weight).shape == (10,)


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
def test_any_number_of_parts_gives_the_weight_gradient(parts):
    x, weight, bias, d_out = tensors((10, 40, 33))
    relu = layer.Epilogue("relu")
    with torch.no_grad():
        out, _ = layer.linear_act_forward(x, weight, bias, relu)
        found = [wide(t) for t in layer.weight_gradient(d_out, out, x, relu, parts)]
    assert max(errors(found, reference(x, weight, bias, d_out, "relu")[2:], UNIT[torch.float32])) < 4


def test_partial_sums_of_half_precision_are_kept_in_float32():
    x, weight, bias, d_out = tensors((96, 20, 10), torch.float16)
    relu = layer.Epilogue("relu")
    with torch.no_grad():
        out, _ = layer.linear_act_forward(x, weight, bias, relu)
        whole, parts = [layer.weight_gradient(d_out, out, x, relu, parts)[0] for parts in (1, 12)]
    assert torch.equal(whole, parts)


def test_a_large_batch_is_split_and_two_runs_give_the_same_bits():
    arguments = tensors((520, 20, 10))
    assert layer._parts(520, 10, 20, torch.device("cpu")) == 2
    first, second = run(*arguments, "tanh"), run(*arguments, "tanh")
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert max(errors(first, reference(*arguments, "tanh"), UNIT[torch.float32])) < 4


def test_the_pre_activation_is_stored_only_where_the_slope_needs_it():
    x, weight, bias, _ = tensors((40, 37, 35))
    with torch.no_grad():
        out, pre = layer.linear_act_forward(x, weight, bias, layer.Epilogue("gelu"), keep=True)
        again, nothing = layer.linear_act_forward(x, weight, bias, layer.Epilogue("gelu"))
    assert nothing is None and torch.equal(out, again)
    np.testing.assert_allclose(wide(pre), F.linear(*[wide(t) for t in (x, weight, bias)]), atol=1e-4)


@pytest.mark.parametrize(("name", "shared"), [("identity", True), ("relu", True), ("silu", False)])
def test_backward_keeps_the_output_itself_where_it_says_enough(name, shared):
    x, weight, bias, _ = tensors((40, 37, 35))
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t.data_ptr()), lambda t: t):
        out = layer.linear_act(x, weight, bias, name)
    assert len(saved) == 3 and (out.data_ptr() in saved) == shared


def test_a_negative_slope_of_leaky_relu_is_gated_by_the_pre_activation():
    x, weight, bias, _ = tensors((6, 5, 4), torch.float64)
    assert torch.autograd.gradcheck(
        lambda *a: layer.linear_act(*a, "leaky_relu", negative_slope=-0.5), (x, weight, bias), fast_mode=True
    )


def test_only_the_gradients_that_are_wanted_are_computed():
    x, weight, bias, d_out = tensors((6, 5, 4))
    (d_bias,) = torch.autograd.grad(layer.linear_act(x.detach(), weight.detach(), bias), bias, d_out)
    assert d_bias.shape == (4,)
    assert not layer.linear_act(x.detach(), weight.detach(), bias.detach()).requires_grad


def test_tf32_is_a_choice_that_the_interpreter_computes_as_float32():
    arguments = tensors((40, 37, 35))
    for a, b in zip(run(*arguments, "relu"), run(*arguments, "relu", precision="tf32"), strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_measurement_on_a_gpu_takes_the_kernels_as_they_are_here(monkeypatch):
    monkeypatch.setattr(gpu_layers, "COMPILE", {})

    class Watch:
        def seconds(self, function, calls=1):
            function()
            return 0.5

    for case in measure_gpu.layer_cases("float32", "40,37,35", Watch(), rounds=2, device="cpu"):
        assert case.seconds["triton"] == [0.5, 0.5]
        note = r"largest error [0-3]\.?\d* units of rounding of the terms(; NaN stays)?"
        assert re.fullmatch(note, case.notes["triton"])


X, WEIGHT, BIAS = torch.ones(2, 3), torch.ones(4, 3), torch.ones(4)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((X.numpy(), WEIGHT), {}, TypeError, "x is an array of shape.*expected a torch.Tensor"),
        ((X, None), {}, TypeError, "weight is None"),
        ((X.int(), WEIGHT.int()), {}, TypeError, r"x has dtype torch.int32; expected float16.*x.to\("),
        (
            (X, WEIGHT.double()),
            {},
            TypeError,
            "weight has dtype torch.float64, but x has dtype torch.float32",
        ),
        ((X, WEIGHT, BIAS.half()), {}, TypeError, "bias has dtype torch.float16"),
        ((X, WEIGHT.T), {}, ValueError, r"x has shape \(2, 3\) and weight \(3, 4\)"),
        ((X, WEIGHT[0]), {}, ValueError, r"weight \(out_features, in_features\)"),
        ((X, WEIGHT, BIAS[:3]), {}, ValueError, r"bias has shape \(3,\); expected \(4,\)"),
        ((X, WEIGHT.to("meta")), {}, ValueError, "weight is on meta, but x is on cpu"),
        (
            (X, WEIGHT, BIAS, "mish"),
            {},
            ValueError,
            "activation is 'mish'; expected one of 'identity', 'relu'",
        ),
        ((X, WEIGHT), {"precision": "fp8"}, ValueError, "precision is 'fp8'; expected one of 'ieee', 'tf32'"),
        ((X, WEIGHT, BIAS, "gelu"), {"approximate": "erf"}, ValueError, "approximate is 'erf'"),
        ((X, WEIGHT, BIAS, "softplus"), {"beta": 0.0}, ValueError, "beta is 0; expected a finite number > 0"),
    ],
)
def test_wrong_arguments_are_explained(arguments, options, error, message):
    with pytest.raises(error, match=message):
        layer.linear_act(*arguments, **options)
