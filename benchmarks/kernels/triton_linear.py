"""Dense layer with its activation in one GPU kernel, forward and backward, written in Triton.

Three kernels. Each computes one tile of a matrix product and does all elementwise work while the tile is in
registers, so that no pre-activation and no masked gradient makes a trip through memory of its own:

- forward, ``act(x @ weight.T + bias)``: the epilogue adds the bias and applies the activation before the one
  store; where the slope needs the pre-activation, the same epilogue stores it too;
- input gradient, ``d_z @ weight``, and weight gradient, ``d_z.T @ x``: the gate ``d_z = d_out * act'(z)`` is
  applied as ``d_out`` is loaded. The weight kernel adds up ``d_bias`` from the tiles that it holds anyway.

The weight gradient is a sum over the batch, and a small weight has too few tiles to fill a GPU. The batch is
therefore split; each part writes partial sums of its own, which are added in a fixed order. No kernel uses
atomics: two runs in one process give the same bits. (Tiles are tuned in each process, so that another process
may add in another order.)

Products are accumulated in float32, for float64 in float64. float32 is multiplied as float32
(``precision="ieee"``) or, on tensor cores, rounded to 10 bits of mantissa first (``"tf32"``). NaN propagates.
An empty batch, and a layer without inputs or outputs, gives what the sums say: zeros, or nothing.

With ``TRITON_INTERPRET=1`` in the environment before triton is imported, the same kernels run on CPU tensors.
The interpreter knows no TF32, and multiplies bfloat16 as float32, which is exact.
"""

import math
from typing import NamedTuple

import torch
from torch.autograd.function import once_differentiable

from denselayer._validate import choice, complaint, describe, number

try:
    import triton
    import triton.language as tl
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        complaint(
            "triton_linear",
            "the package triton is not installed",
            "triton, which writes the GPU kernels",
            "Install it on Linux with: pip install triton.",
        ),
        name=missing.name,
    ) from missing

ACTIVATIONS = ("identity", "relu", "leaky_relu", "sigmoid", "tanh", "gelu", "gelu_tanh", "silu", "softplus")
PRECISIONS = ("ieee", "tf32")
INTERPRETED = triton.knobs.runtime.interpret
_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_INTERPRETER_TILE = {"BLOCK_N": 32, "BLOCK_OUT": 32, "BLOCK_IN": 32, "GROUP": 2}

_SQRT_HALF = tl.constexpr(0.7071067811865476)
_DENSITY_AT_ZERO = tl.constexpr(0.3989422804014327)
_TWO_SQRT_TWO_OVER_PI = tl.constexpr(1.5957691216057308)
_CUBIC = tl.constexpr(0.044715)
_THREE_CUBIC = tl.constexpr(0.134145)


@triton.jit
def _sigmoid(z):
    e = tl.exp(-tl.abs(z))
    return tl.where(z < 0, e, 1.0) / (1.0 + e)


@triton.jit
def _sigmoid_slope(z):
    e = tl.exp(-tl.abs(z))
    return e / ((1.0 + e) * (1.0 + e))


@triton.jit
def _tanh(z):
    """From expm1(-2 |z|), as (u - 1) v / log(u) with u = exp(v), which keeps the digits where u is near 1."""
    v = tl.where(tl.abs(z) > 20.0, -40.0, -2.0 * tl.abs(z))
    u = tl.exp(v)
    below_one = tl.where(u == 1.0, v, (u - 1.0) * (v / tl.log(u)))
    size = -below_one / (2.0 + below_one)
    return tl.where(z < 0, -size, size)


@triton.jit
def _log1p_of_exp(v):
    """log(1 + exp(v)) for v <= 0, without loss of digits where exp(v) is small."""
    e = tl.exp(v)
    u = 1.0 + e
    return tl.where(u == 1.0, e, tl.log(u) * (e / (u - 1.0)))


@triton.jit
def _gelu_argument(z):
    return (z + z * z * z * _CUBIC) * _TWO_SQRT_TWO_OVER_PI


@triton.jit
def _gelu_tanh_slope(z):
    inner = _gelu_argument(z)
    bounded = tl.where(tl.abs(z) > 100.0, 100.0, z)
    slope = (bounded * bounded * _THREE_CUBIC + 1.0) * _TWO_SQRT_TWO_OVER_PI
    return _sigmoid(inner) + z * (_sigmoid_slope(inner) * slope)


@triton.jit
def _activate(z, ACTIVATION: tl.constexpr, A: tl.constexpr, B: tl.constexpr):
    """A is the slope of leaky_relu or the beta of softplus, B the threshold of softplus."""
    if ACTIVATION == "relu":
        return tl.where(z <= 0, 0.0, z)
    elif ACTIVATION == "leaky_relu":
        return tl.where(z > 0, z, z * A)
    elif ACTIVATION == "sigmoid":
        return _sigmoid(z)
    elif ACTIVATION == "tanh":
        return _tanh(z)
    elif ACTIVATION == "gelu":
        return z * (0.5 + 0.5 * tl.erf(z * _SQRT_HALF))
    elif ACTIVATION == "gelu_tanh":
        return z * _sigmoid(_gelu_argument(z))
    elif ACTIVATION == "silu":
        return z * _sigmoid(z)
    elif ACTIVATION == "softplus":
        smooth = tl.where(z > 0, z, 0.0) + _log1p_of_exp(-tl.abs(A * z)) / A
        return tl.where(A * z > B, z, smooth)
    else:
        return z


@triton.jit
def _gate(d_out, z, ACTIVATION: tl.constexpr, A: tl.constexpr, B: tl.constexpr):
    """d_out times the slope at z; for identity and relu, z may as well be the output."""
    if ACTIVATION == "relu":
        return tl.where(z <= 0, 0.0, d_out)
    elif ACTIVATION == "leaky_relu":
        return tl.where(z > 0, d_out, d_out * A)
    elif ACTIVATION == "sigmoid":
        return d_out * _sigmoid_slope(z)
    elif ACTIVATION == "tanh":
        return d_out * (4.0 * _sigmoid_slope(2.0 * z))
    elif ACTIVATION == "gelu":
        density = tl.exp(-0.5 * z * z) * _DENSITY_AT_ZERO
        return d_out * (0.5 + 0.5 * tl.erf(z * _SQRT_HALF) + z * density)
    elif ACTIVATION == "gelu_tanh":
        return d_out * _gelu_tanh_slope(z)
    elif ACTIVATION == "silu":
        return d_out * (_sigmoid(z) + z * _sigmoid_slope(z))
    elif ACTIVATION == "softplus":
        return tl.where(A * z > B, d_out, d_out * _sigmoid(A * z))
    else:
        return d_out


@triton.jit
def _tile_row(program, rows, columns, GROUP: tl.constexpr):
    """Row of a program's tile: GROUP rows of tiles together, column by column, so that L2 holds them."""
    first = program // (GROUP * columns) * GROUP
    return first + program % (GROUP * columns) % tl.minimum(rows - first, GROUP)


@triton.jit
def _tile_column(program, rows, columns, GROUP: tl.constexpr):
    first = program // (GROUP * columns) * GROUP
    return program % (GROUP * columns) // tl.minimum(rows - first, GROUP)


@triton.jit
def _load(matrix, rows, columns, row_stride, column_stride, height, width):
    """A tile of a (height, width) matrix at these rows and columns; zeros outside."""
    places = rows[:, None].to(tl.int64) * row_stride + columns[None, :].to(tl.int64) * column_stride
    return tl.load(matrix + places, mask=(rows[:, None] < height) & (columns[None, :] < width), other=0.0)


@triton.jit
def _store(matrix, rows, columns, tile, height, width):
    places = rows[:, None].to(tl.int64) * width + columns[None, :]
    tl.store(matrix + places, tile, mask=(rows[:, None] < height) & (columns[None, :] < width))


@triton.jit
def _forward_kernel(
    x,
    weight,
    bias,
    out,
    pre,
    N,
    OUT,
    IN,
    x_row,
    x_column,
    weight_row,
    weight_column,
    HAS_BIAS: tl.constexpr,
    KEEP: tl.constexpr,
    ACTIVATION: tl.constexpr,
    A: tl.constexpr,
    B: tl.constexpr,
    PRECISION: tl.constexpr,
    FACTOR: tl.constexpr,
    SUM: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_OUT: tl.constexpr,
    BLOCK_IN: tl.constexpr,
    GROUP: tl.constexpr,
):
    """One (BLOCK_N, BLOCK_OUT) tile of act(x @ weight.T + bias)."""
    height, width = (N + BLOCK_N - 1) // BLOCK_N, (OUT + BLOCK_OUT - 1) // BLOCK_OUT
    rows = _tile_row(tl.program_id(0), height, width, GROUP) * BLOCK_N + tl.arange(0, BLOCK_N)
    outs = _tile_column(tl.program_id(0), height, width, GROUP) * BLOCK_OUT + tl.arange(0, BLOCK_OUT)
    z = tl.zeros((BLOCK_N, BLOCK_OUT), dtype=SUM)
    for start in range(0, IN, BLOCK_IN):
        ins = start + tl.arange(0, BLOCK_IN)
        left = _load(x, rows, ins, x_row, x_column, N, IN)
        right = _load(weight, ins, outs, weight_column, weight_row, IN, OUT)
        z = tl.dot(left.to(FACTOR), right.to(FACTOR), z, input_precision=PRECISION)
    if HAS_BIAS:
        z += tl.load(bias + outs, mask=outs < OUT, other=0.0).to(SUM)[None, :]
    if KEEP:
        _store(pre, rows, outs, z, N, OUT)
    _store(out, rows, outs, _activate(z, ACTIVATION, A, B), N, OUT)


@triton.jit
def _input_kernel(
    d_out,
    saved,
    weight,
    d_x,
    N,
    OUT,
    IN,
    d_row,
    d_column,
    weight_row,
    weight_column,
    ACTIVATION: tl.constexpr,
    A: tl.constexpr,
    B: tl.constexpr,
    PRECISION: tl.constexpr,
    FACTOR: tl.constexpr,
    SUM: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_OUT: tl.constexpr,
    BLOCK_IN: tl.constexpr,
    GROUP: tl.constexpr,
):
    """One (BLOCK_N, BLOCK_IN) tile of d_x = d_z @ weight."""
    height, width = (N + BLOCK_N - 1) // BLOCK_N, (IN + BLOCK_IN - 1) // BLOCK_IN
    rows = _tile_row(tl.program_id(0), height, width, GROUP) * BLOCK_N + tl.arange(0, BLOCK_N)
    ins = _tile_column(tl.program_id(0), height, width, GROUP) * BLOCK_IN + tl.arange(0, BLOCK_IN)
    total = tl.zeros((BLOCK_N, BLOCK_IN), dtype=SUM)
    for start in range(0, OUT, BLOCK_OUT):
        outs = start + tl.arange(0, BLOCK_OUT)
        upstream = _load(d_out, rows, outs, d_row, d_column, N, OUT).to(SUM)
        z = _load(saved, rows, outs, OUT, 1, N, OUT).to(SUM)
        d_z = _gate(upstream, z, ACTIVATION, A, B)
        right = _load(weight, outs, ins, weight_row, weight_column, OUT, IN)
        total = tl.dot(d_z.to(FACTOR), right.to(FACTOR), total, input_precision=PRECISION)
    _store(d_x, rows, ins, total, N, IN)


@triton.jit
def _weight_kernel(
    d_out,
    saved,
    x,
    d_weight,
    d_bias,
    N,
    OUT,
    IN,
    d_row,
    d_column,
    x_row,
    x_column,
    part_rows,
    ACTIVATION: tl.constexpr,
    A: tl.constexpr,
    B: tl.constexpr,
    PRECISION: tl.constexpr,
    FACTOR: tl.constexpr,
    SUM: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_OUT: tl.constexpr,
    BLOCK_IN: tl.constexpr,
    GROUP: tl.constexpr,
):
    """One (BLOCK_OUT, BLOCK_IN) tile of d_weight = d_z.T @ x over part_rows rows of the batch, and d_bias."""
    height, width = (OUT + BLOCK_OUT - 1) // BLOCK_OUT, tl.maximum((IN + BLOCK_IN - 1) // BLOCK_IN, 1)
    column = _tile_column(tl.program_id(0), height, width, GROUP)
    outs = _tile_row(tl.program_id(0), height, width, GROUP) * BLOCK_OUT + tl.arange(0, BLOCK_OUT)
    ins = column * BLOCK_IN + tl.arange(0, BLOCK_IN)
    part = tl.program_id(1)
    end = tl.minimum((part + 1) * part_rows, N)
    total = tl.zeros((BLOCK_OUT, BLOCK_IN), dtype=SUM)
    total_bias = tl.zeros((BLOCK_OUT,), dtype=SUM)
    for start in range(part * part_rows, end, BLOCK_N):
        rows = start + tl.arange(0, BLOCK_N)
        upstream = _load(d_out, outs, rows, d_column, d_row, OUT, end).to(SUM)
        z = _load(saved, outs, rows, 1, OUT, OUT, end).to(SUM)
        d_z = _gate(upstream, z, ACTIVATION, A, B)
        right = _load(x, rows, ins, x_row, x_column, end, IN)
        total = tl.dot(d_z.to(FACTOR), right.to(FACTOR), total, input_precision=PRECISION)
        total_bias += tl.sum(d_z, axis=1)
    _store(d_weight + part.to(tl.int64) * OUT * IN, outs, ins, total, OUT, IN)
    if column == 0:
        tl.store(d_bias + part.to(tl.int64) * OUT + outs, total_bias, mask=outs < OUT)


_TENSOR_CORE_TILES = (
    (128, 256, 64, 8, 3),
    (128, 128, 64, 8, 3),
    (128, 128, 32, 4, 4),
    (128, 64, 32, 4, 4),
    (64, 128, 32, 4, 4),
    (64, 64, 32, 4, 4),
    (32, 64, 64, 4, 4),
    (16, 64, 128, 4, 4),
    (128, 16, 64, 4, 4),
)
"""What a device tries once for each shape: rows and columns of the result, inner width, warps, stages."""

_FMA_TILES = (
    (128, 128, 16, 8, 3),
    (128, 64, 32, 4, 3),
    (64, 64, 32, 4, 3),
    (64, 64, 16, 4, 4),
    (32, 64, 32, 4, 3),
    (16, 64, 64, 4, 3),
    (128, 16, 32, 4, 3),
)
"""The same where float32 is multiplied as float32: without tensor cores, a wider tile spills registers."""


def _tuned(kernel, row, column, inner):
    """The kernel with its tile chosen on the device; in the interpreter the kernel as it is."""
    if INTERPRETED:
        return kernel

    def configurations(tiles):
        return [
            triton.Config({row: r, column: c, inner: k, "GROUP": 8}, num_warps=warps, num_stages=stages)
            for r, c, k, warps, stages in tiles
        ]

    on_fma, on_tensor_cores = configurations(_FMA_TILES), configurations(_TENSOR_CORE_TILES)

    def prune(_configurations, _arguments, **constants):
        wide = constants["FACTOR"] in (tl.float32, tl.float64) and constants["PRECISION"] == "ieee"
        return on_fma if wide else on_tensor_cores

    return triton.autotune(
        on_fma + on_tensor_cores,
        key=["N", "OUT", "IN", "ACTIVATION", "PRECISION"],
        prune_configs_by={"early_config_prune": prune},
    )(kernel)


_forward = _tuned(_forward_kernel, "BLOCK_N", "BLOCK_OUT", "BLOCK_IN")
_input = _tuned(_input_kernel, "BLOCK_N", "BLOCK_IN", "BLOCK_OUT")
_weight = _tuned(_weight_kernel, "BLOCK_OUT", "BLOCK_IN", "BLOCK_N")


class Epilogue(NamedTuple):
    """An activation with its options, and the precision of the products."""

    activation: str
    a: float = 0.0
    b: float = 0.0
    precision: str = "ieee"

    @property
    def gated_by_output(self):
        """Whether the output says as much about the slope as the pre-activation."""
        return self.activation in ("identity", "relu") or (self.activation == "leaky_relu" and self.a >= 0)

    def constants(self, dtype):
        """Compile-time arguments of a kernel."""
        wide = tl.float64 if dtype is torch.float64 else tl.float32
        return {
            "ACTIVATION": self.activation,
            "A": self.a,
            "B": self.b,
            "PRECISION": self.precision if dtype is torch.float32 else "ieee",
            "FACTOR": _factor(dtype),
            "SUM": wide,
            **(_INTERPRETER_TILE if INTERPRETED else {}),
        }


def _factor(dtype):
    """The type in which the factors go to the multiplier."""
    if INTERPRETED and dtype is torch.bfloat16:
        return tl.float32
    return getattr(tl, str(dtype).removeprefix("torch."))


def linear_act(
    x,
    weight,
    bias=None,
    activation="relu",
    *,
    precision="ieee",
    negative_slope=0.01,
    approximate="none",
    beta=1.0,
    threshold=20.0,
):
    """``act(x @ weight.T + bias)`` in one kernel, differentiable once by autograd.

    Args:
        x: (..., in_features), a CUDA tensor of float16, bfloat16, float32 or float64; any strides.
        weight: (out_features, in_features), same dtype and device.
        bias: (out_features,), same dtype and device, or None.
        activation: identity, relu, leaky_relu, sigmoid, tanh, gelu, silu or softplus.
        precision: how float32 is multiplied, ``"ieee"`` or ``"tf32"``; other dtypes ignore it.
        negative_slope, approximate, beta, threshold: options of leaky_relu, gelu and softplus, as in
            ``denselayer.functional``.

    Returns:
        (..., out_features), contiguous, same dtype.

    Raises:
        ValueError: shapes or devices do not fit, an unknown name, CPU tensors outside the interpreter.
        TypeError: not tensors, another dtype, or two dtypes.
    """
    epilogue = _epilogue(activation, precision, negative_slope, approximate, beta, threshold)
    _check(x, weight, bias)
    keep = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in (x, weight, bias))
    rows = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
    out = _LinearAct.apply(rows, weight, bias, epilogue, keep)
    return out.reshape(*x.shape[:-1], weight.shape[0])


def _epilogue(activation, precision, negative_slope, approximate, beta, threshold):
    where = "linear_act"
    choice(where, "activation", activation, tuple(name for name in ACTIVATIONS if name != "gelu_tanh"))
    choice(where, "precision", precision, PRECISIONS)
    if choice(where, "approximate", approximate, ("none", "tanh")) == "tanh" and activation == "gelu":
        return Epilogue("gelu_tanh", precision=precision)
    if activation == "leaky_relu":
        return Epilogue(activation, number(where, "negative_slope", negative_slope), precision=precision)
    if activation == "softplus":
        sharpness = number(where, "beta", beta, above=0)
        return Epilogue(activation, sharpness, number(where, "threshold", threshold), precision)
    return Epilogue(activation, precision=precision)


def _check(x, weight, bias):
    where = "linear_act"
    for name, value in (("x", x), ("weight", weight), ("bias", bias)):
        if value is not None or name != "bias":
            _check_tensor(where, name, value, x)
    if x.ndim == 0 or weight.ndim != 2 or x.shape[-1] != weight.shape[1]:
        came = f"x has shape {tuple(x.shape)} and weight {tuple(weight.shape)}"
        expected = "x (..., in_features) and weight (out_features, in_features)"
        raise ValueError(complaint(where, came, expected, "Give each input feature one column of weight."))
    if bias is not None and bias.shape != weight.shape[:1]:
        came = f"bias has shape {tuple(bias.shape)}"
        expected = f"({weight.shape[0]},), one entry for each row of weight"
        raise ValueError(complaint(where, came, expected, "Pass a bias of that shape, or None."))
    if not (x.is_cuda or INTERPRETED):
        advice = "Move it with .cuda(), or set TRITON_INTERPRET=1 before triton is imported."
        raise ValueError(complaint(where, f"x is on {x.device}", "a tensor on a CUDA device", advice))


def _check_tensor(where, name, value, x):
    if not isinstance(value, torch.Tensor):
        advice = "Make one: torch.as_tensor(...)."
        raise TypeError(complaint(where, f"{name} is {describe(value)}", "a torch.Tensor", advice))
    if value.dtype not in _DTYPES:
        came, expected = f"{name} has dtype {value.dtype}", "float16, bfloat16, float32 or float64"
        raise TypeError(complaint(where, came, expected, f"Convert it: {name}.to(torch.float32)."))
    if value.dtype != x.dtype:
        came = f"{name} has dtype {value.dtype}, but x has dtype {x.dtype}"
        raise TypeError(complaint(where, came, "one dtype", f"Convert one of them: {name}.to(x.dtype)."))
    if value.device != x.device:
        came = f"{name} is on {value.device}, but x is on {x.device}"
        raise ValueError(complaint(where, came, "one device", f"Move one of them: {name}.to(x.device)."))


class _LinearAct(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, epilogue, keep):
        out, pre = linear_act_forward(x, weight, bias, epilogue, keep and not epilogue.gated_by_output)
        ctx.save_for_backward(x, weight, out if pre is None else pre)
        ctx.epilogue = epilogue
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, d_out):
        x, weight, saved = ctx.saved_tensors
        wants_x, wants_weight, wants_bias, _, _ = ctx.needs_input_grad
        d_x = input_gradient(d_out, saved, weight, ctx.epilogue) if wants_x else None
        d_weight = d_bias = None
        if wants_weight or wants_bias:
            d_weight, d_bias = weight_gradient(d_out, saved, x, ctx.epilogue)
        return d_x, d_weight, d_bias if wants_bias else None, None, None


def linear_act_forward(x, weight, bias, epilogue, keep=False):
    """Return the output (N, out_features) and, if it is to be kept, the pre-activation, else None."""
    (N, IN), OUT = x.shape, weight.shape[0]
    out = x.new_empty(N, OUT)
    pre = torch.empty_like(out) if keep else None
    if out.numel():
        _launch(
            _forward,
            lambda tile: (triton.cdiv(N, tile["BLOCK_N"]) * triton.cdiv(OUT, tile["BLOCK_OUT"]),),
            *(x, weight, out if bias is None else bias.contiguous(), out, out if pre is None else pre),
            *(N, OUT, IN, *x.stride(), *weight.stride()),
            HAS_BIAS=bias is not None,
            KEEP=keep,
            **epilogue.constants(x.dtype),
        )
    return out, pre


def input_gradient(d_out, saved, weight, epilogue):
    """Return ``d_x``; saved is what the gate needs, the output or the pre-activation, contiguous."""
    (N, OUT), IN = d_out.shape, weight.shape[1]
    d_x = d_out.new_empty(N, IN)
    if d_x.numel():
        _launch(
            _input,
            lambda tile: (triton.cdiv(N, tile["BLOCK_N"]) * triton.cdiv(IN, tile["BLOCK_IN"]),),
            *(d_out, saved, weight, d_x),
            *(N, OUT, IN, *d_out.stride(), *weight.stride()),
            **epilogue.constants(weight.dtype),
        )
    return d_x


def weight_gradient(d_out, saved, x, epilogue, parts=None):
    """Return ``d_weight`` and ``d_bias``; the batch is summed in ``parts`` parts, as many as pay."""
    (N, IN), OUT = x.shape, d_out.shape[1]
    parts = parts or _parts(N, OUT, IN, x.device)
    narrow = parts == 1 or x.dtype is torch.float64
    d_weight = torch.empty(parts, OUT, IN, dtype=x.dtype if narrow else torch.float32, device=x.device)
    d_bias = d_weight.new_empty(parts, OUT)
    if OUT:
        _launch(
            _weight,
            lambda tile: (
                triton.cdiv(OUT, tile["BLOCK_OUT"]) * max(triton.cdiv(IN, tile["BLOCK_IN"]), 1),
                parts,
            ),
            *(d_out, saved, x, d_weight, d_bias),
            *(N, OUT, IN, *d_out.stride(), *x.stride(), triton.cdiv(N, parts)),
            **epilogue.constants(x.dtype),
        )
    if parts == 1:
        return d_weight[0], d_bias[0]
    return d_weight.sum(0).to(x.dtype), d_bias.sum(0).to(x.dtype)


def _parts(N, OUT, IN, device):
    """Parts of the batch: two programs for each processor, but at least 256 rows each."""
    tiles = triton.cdiv(OUT, 64) * triton.cdiv(IN, 64)
    processors = 4 if INTERPRETED else torch.cuda.get_device_properties(device).multi_processor_count
    return max(min(triton.cdiv(2 * processors, max(tiles, 1)), N // 256), 1)


def _launch(kernel, grid, tensor, *arguments, **constants):
    with torch.cuda.device_of(tensor):
        kernel[grid](tensor, *arguments, **constants)
