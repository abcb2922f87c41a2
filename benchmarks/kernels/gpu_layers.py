"""A dense layer with ReLU on a GPU, forward and backward: Triton, cuBLAS with an epilogue, torch.compile."""

from __future__ import annotations

import types
from collections.abc import Callable

import torch
import torch.nn.functional as F

Closure = Callable[[], object]
Makers = dict[str, Callable[[], Closure]]
COMPILE = {"compile": None, "compile max-autotune": "max-autotune-no-cudagraphs"}
"""Variant to the mode of ``torch.compile``; CUDA graphs are left out, since the time on the device counts."""


def layer(shape: dict, dtype: torch.dtype, device: str) -> tuple[torch.Tensor, ...]:
    """x, weight, bias and d_out, drawn on the device; about half of the outputs are negative."""
    batch, inputs, outputs = shape["batch"], shape["in_features"], shape["out_features"]
    generator = torch.Generator(device).manual_seed(20)

    def draw(*sizes: int) -> torch.Tensor:
        return torch.randn(*sizes, generator=generator, device=device).to(dtype)

    return draw(batch, inputs), draw(outputs, inputs) * inputs**-0.5, draw(outputs), draw(batch, outputs)


def _plain_forward(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return F.relu(F.linear(x, weight, bias))


def _plain_backward(
    d_out: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, out: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    d_z = torch.where(out <= 0, 0, d_out)
    return d_z @ weight, d_z.T @ x, d_z.sum(0)


def _compiled(function: Callable, mode: str | None) -> Callable:
    """Compile a copy of its own, so that no shape or setting of another case is remembered."""
    copy = types.FunctionType(function.__code__.replace(), function.__globals__, function.__name__)
    return torch.compile(copy, mode=mode, dynamic=False, fullgraph=True)


def forward(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, precision: str) -> Makers:
    """Variant to a function that prepares it and returns the closure; all but the first give the output."""
    out = torch.empty(len(x), len(weight), dtype=x.dtype, device=x.device)
    transposed = weight.T

    def triton() -> Closure:
        from benchmarks.kernels import triton_linear

        return lambda: triton_linear.linear_act(x, weight, bias, "relu", precision=precision)

    def compiled(mode: str | None) -> Callable[[], Closure]:
        def make() -> Closure:
            function = _compiled(_plain_forward, mode)
            return lambda: function(x, weight, bias)

        return make

    return {
        "gemm only": lambda: lambda: torch.mm(x, transposed, out=out),
        "eager": lambda: lambda: _plain_forward(x, weight, bias),
        "addmm out": lambda: lambda: torch.addmm(bias, x, transposed, out=out).relu_(),
        "cublasLt epilogue": lambda: lambda: torch._addmm_activation(bias, x, transposed, out=out),
        "triton": triton,
        **{name: compiled(mode) for name, mode in COMPILE.items()},
    }


def backward(
    d_out: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, precision: str
) -> Makers:
    """The same for d_x, d_weight and d_bias; the output is there already. The first gives no d_bias."""
    out = _plain_forward(x, weight, bias)
    d_x, d_weight = torch.empty_like(x), torch.empty_like(weight)

    def products() -> tuple[torch.Tensor, ...]:
        return torch.mm(d_out, weight, out=d_x), torch.mm(d_out.T, x, out=d_weight)

    def autograd() -> Closure:
        leaves = [tensor.detach().requires_grad_() for tensor in (x, weight, bias)]
        with torch.enable_grad():
            result = _plain_forward(*leaves)
        return lambda: torch.autograd.grad(result, leaves, d_out, retain_graph=True)

    def triton() -> Closure:
        from benchmarks.kernels import triton_linear

        relu = triton_linear.Epilogue("relu", precision=precision)

        def run() -> tuple[torch.Tensor, ...]:
            d_x = triton_linear.input_gradient(d_out, out, weight, relu)
            return d_x, *triton_linear.weight_gradient(d_out, out, x, relu)

        return run

    def compiled(mode: str | None) -> Callable[[], Closure]:
        def make() -> Closure:
            function = _compiled(_plain_backward, mode)
            return lambda: function(d_out, x, weight, out)

        return make

    return {
        "gemm only": lambda: products,
        "autograd": autograd,
        "by hand": lambda: lambda: _plain_backward(d_out, x, weight, out),
        "triton": triton,
        **{name: compiled(mode) for name, mode in COMPILE.items()},
    }
