"""The Triton kernels compiled for GPUs, on a machine without one; test_triton_linear.py runs this file.

Triton's compiler needs no device. What it makes can be read, if not run.
"""

import re

import pytest
import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from benchmarks.kernels import triton_linear as layer

FORWARD = (layer._forward_kernel, ("BLOCK_N", "BLOCK_OUT", "BLOCK_IN"), {"HAS_BIAS": True, "KEEP": False})
INPUT = (layer._input_kernel, ("BLOCK_N", "BLOCK_IN", "BLOCK_OUT"), {})
WEIGHT = (layer._weight_kernel, ("BLOCK_OUT", "BLOCK_IN", "BLOCK_N"), {})
POINTERS = {torch.float16: "*fp16", torch.bfloat16: "*bf16", torch.float32: "*fp32", torch.float64: "*fp64"}
SIZES = ("N", "OUT", "IN", "part_rows")


def compiled(which, epilogue, dtype, *, capability=90, ones=(), **constants):
    """Assembly and machine code of a kernel; ``ones`` are sizes of 1, which Triton takes as constants."""
    kernel, blocks, defaults = which
    tile = dict(zip(blocks, (32, 32, 16), strict=True), GROUP=8)
    values = {**epilogue.constants(dtype), **defaults, **tile, **constants, **dict.fromkeys(ones, 1)}

    def kind(name):
        if name in values:
            return "constexpr"
        return "i32" if name in SIZES or name.endswith(("_row", "_column")) else POINTERS[dtype]

    source = ASTSource(kernel, {name: kind(name) for name in kernel.arg_names}, values)
    return triton.compile(source, target=GPUTarget("cuda", capability, 32)).asm


def tensor_core_instructions(assembly):
    return re.findall(r"(?:wgmma\.mma_async|mma)\.sync\S*", assembly["ptx"])


@pytest.mark.parametrize("capability", [80, 90])
@pytest.mark.parametrize("which", [FORWARD, INPUT, WEIGHT], ids=["forward", "input", "weight"])
def test_half_precision_becomes_machine_code_that_uses_tensor_cores(which, capability):
    assembly = compiled(which, layer.Epilogue("relu"), torch.float16, capability=capability)
    assert assembly["cubin"][:4] == b"\x7fELF"
    assert tensor_core_instructions(assembly)


@pytest.mark.parametrize("which", [FORWARD, INPUT, WEIGHT], ids=["forward", "input", "weight"])
def test_float32_is_not_rounded_unless_tf32_is_asked_for(which):
    exact = compiled(which, layer.Epilogue("relu"), torch.float32)
    assert not tensor_core_instructions(exact) and "fma.rn.f32" in exact["ptx"]
    rounded = compiled(which, layer.Epilogue("relu", precision="tf32"), torch.float32)
    assert all("tf32" in instruction for instruction in tensor_core_instructions(rounded))
    assert tensor_core_instructions(rounded)


@pytest.mark.parametrize("name", [name for name in layer.ACTIVATIONS if name != "relu"])
def test_every_activation_compiles_forward(name):
    assert compiled(FORWARD, layer.Epilogue(name, 0.5, 20.0), torch.bfloat16, KEEP=True)["cubin"]


@pytest.mark.parametrize("name", ["leaky_relu", "gelu", "gelu_tanh", "softplus"])
def test_every_kind_of_gate_compiles(name):
    assert compiled(WEIGHT, layer.Epilogue(name, 0.5, 20.0), torch.float32)["cubin"]


@pytest.mark.parametrize("which", [FORWARD, INPUT, WEIGHT], ids=["forward", "input", "weight"])
def test_sizes_of_one_compile(which):
    ones = [name for name in which[0].arg_names if name in SIZES or name.endswith(("_row", "_column"))]
    assert compiled(which, layer.Epilogue("relu"), torch.float64, ones=ones)["cubin"]


def test_no_kernel_uses_atomics():
    assembly = compiled(WEIGHT, layer.Epilogue("silu"), torch.float32)["ptx"]
    assert not re.search(r"\b(atom|red)\.", assembly)


def test_the_pre_activation_costs_stores_only_where_it_is_kept():
    stores = [
        len(
            re.findall(
                r"st\.global", compiled(FORWARD, layer.Epilogue("gelu"), torch.float16, KEEP=keep)["ptx"]
            )
        )
        for keep in (False, True)
    ]
    assert stores[1] == 2 * stores[0] > 0


def test_a_device_tries_small_tiles_where_there_are_no_tensor_cores():
    tuner = layer._forward
    tuner.nargs = {}
    for dtype, precision, tiles in (
        (torch.float32, "ieee", layer._FMA_TILES),
        (torch.float64, "ieee", layer._FMA_TILES),
        (torch.float32, "tf32", layer._TENSOR_CORE_TILES),
        (torch.bfloat16, "ieee", layer._TENSOR_CORE_TILES),
    ):
        chosen = tuner.prune_configs(layer.Epilogue("relu", precision=precision).constants(dtype))
        assert [(c.kwargs["BLOCK_N"], c.kwargs["BLOCK_OUT"]) for c in chosen] == [tile[:2] for tile in tiles]


def test_outside_the_interpreter_cpu_tensors_are_turned_away():
    message = (
        r"x is on cpu; expected a tensor on a CUDA device. Move it with .cuda\(\), or set TRITON_INTERPRET=1"
    )
    with pytest.raises(ValueError, match=message):
        layer.linear_act(torch.ones(2, 3), torch.ones(4, 3))
