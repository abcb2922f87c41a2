"""A dense layer with ReLU in PyTorch: as one writes it, in place, compiled, and as one call of oneDNN."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F

from benchmarks import inputs
from denselayer.bench import Unsupported

Closure = Callable[[], object]


def _layer(shape: dict, dtype: str, threads: int) -> tuple[torch.Tensor, ...]:
    torch.set_num_threads(threads)
    return tuple(map(torch.from_numpy, inputs.layer(shape, dtype)))


def _without_gradients(run: Closure) -> Closure:
    def call() -> object:
        with torch.inference_mode():
            return run()

    return call


def eager(shape: dict, dtype: str, threads: int) -> Closure:
    """The layer as one writes it: two new tensors in each call."""
    x, weight, bias = _layer(shape, dtype, threads)
    return _without_gradients(lambda: F.relu(F.linear(x, weight, bias)))


def addmm_out(shape: dict, dtype: str, threads: int) -> Closure:
    """The strongest way without oneDNN: product and bias into a tensor that is there, ReLU in place."""
    x, weight, bias = _layer(shape, dtype, threads)
    out = torch.empty(len(x), len(weight), dtype=x.dtype)
    transposed = weight.T
    return _without_gradients(lambda: torch.addmm(bias, x, transposed, out=out).relu_())


def _onednn_op(dtype: str) -> Callable:
    if dtype != "float32":
        raise Unsupported(f"oneDNN's fused linear op computes float32 here, not {dtype}")
    if not torch.backends.mkldnn.is_available():
        raise Unsupported("this PyTorch was built without oneDNN")
    return torch.ops.mkldnn._linear_pointwise


def onednn(shape: dict, dtype: str, threads: int) -> Closure:
    """Product, bias and ReLU in one call of oneDNN. It turns NaN into 0."""
    op = _onednn_op(dtype)
    x, weight, bias = _layer(shape, dtype, threads)
    return _without_gradients(lambda: op(x, weight, bias, "relu", [], ""))


def onednn_packed(shape: dict, dtype: str, threads: int) -> Closure:
    """The same with a weight that oneDNN has brought into an order of its own before."""
    op = _onednn_op(dtype)
    x, weight, bias = _layer(shape, dtype, threads)
    weight = torch.ops.mkldnn._reorder_linear_weight(weight, len(x))
    return _without_gradients(lambda: op(x, weight, bias, "relu", [], ""))


COMPILE = {
    "default": {},
    "freezing": {"freezing": True},
    "max-autotune": {"freezing": True, "max_autotune": True, "max_autotune_gemm_backends": "CPP,ATEN"},
}
"""What the compiler is told. Freezing makes the weight a constant; max-autotune tries kernels of its own."""


def compiled(shape: dict, dtype: str, threads: int, mode: str = "default") -> Closure:
    """The layer through ``torch.compile``. Needs a C++ compiler; each mode wants a process of its own."""
    import torch._inductor.config as config

    x, weight, bias = _layer(shape, dtype, threads)
    linear = torch.nn.Linear(weight.shape[1], weight.shape[0], dtype=x.dtype)
    with torch.no_grad():
        linear.weight.copy_(weight)
        linear.bias.copy_(bias)
    for name, value in COMPILE[mode].items():
        setattr(config, name, value)
    torch._dynamo.reset()
    layer = torch.compile(torch.nn.Sequential(linear, torch.nn.ReLU()).eval())

    def run() -> torch.Tensor:
        with torch.no_grad():
            return layer(x)

    return run


def autograd(shape: dict, dtype: str, threads: int) -> Closure:
    """The backward pass of the layer: d_x, d_weight, d_bias from d_out, by autograd."""
    x, weight, bias = (one.requires_grad_() for one in _layer(shape, dtype, threads))
    out = F.relu(F.linear(x, weight, bias))
    d_out = torch.from_numpy(inputs.upstream(shape, dtype))
    return lambda: torch.autograd.grad(out, (x, weight, bias), d_out, retain_graph=True)


def backward_out(shape: dict, dtype: str, threads: int) -> Closure:
    """The same gradients by hand, gate and products into tensors that are there."""
    x, weight, bias = _layer(shape, dtype, threads)
    out, d_out = F.relu(F.linear(x, weight, bias)), torch.from_numpy(inputs.upstream(shape, dtype))
    d_z, d_x, d_weight, d_bias = map(torch.empty_like, (out, x, weight, bias))

    def run() -> tuple[torch.Tensor, ...]:
        torch.ops.aten.threshold_backward.grad_input(d_out, out, 0, grad_input=d_z)
        torch.mm(d_z, weight, out=d_x)
        torch.mm(d_z.T, x, out=d_weight)
        torch.sum(d_z, 0, out=d_bias)
        return d_x, d_weight, d_bias

    return _without_gradients(run)
