"""The fused layer for a single sample, in Numba: a few dot products at a time, the weight as it is.

Nothing is used twice here but x. To pack the weight would cost more than the product, and the speed is that
at which the weight comes from memory.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from benchmarks.kernels.numba_parallel import on_threads
from benchmarks.kernels.vectors import Emitter, address, lanes


@cache
def dots_function(dtype: str, rows: int, parallel: bool) -> Callable:
    """Compiled layer of (part, x, weight, bias, out, floor), `rows` outputs at a time."""
    width = lanes(dtype)

    @intrinsic
    def compute(_, x, weight, depth, bias, out, floor):
        def emit(context, builder: ir.IRBuilder, signature, arguments):
            v = Emitter(builder, dtype, width)
            x, weight, depth, bias, out, floor = arguments
            x, weight, bias, out = map(v.pointer, (x, weight, bias, out))
            starts = [v.at(weight, builder.mul(depth, v.whole(row))) for row in range(rows)]
            totals = [v.variable(v.splat(ir.Constant(v.scalar, 0.0))) for _ in starts]
            rest = builder.urem(depth, v.whole(width))
            whole = builder.sub(depth, rest)
            with v.loop(whole, step=width) as k:
                x_k = v.load(v.at(x, k))
                for start, total in zip(starts, totals, strict=True):
                    v.add_product(total, v.load(v.at(start, k)), x_k)
            x_k = v.load_first(v.at(x, whole), rest)
            for row, (start, total) in enumerate(zip(starts, totals, strict=True)):
                v.add_product(total, v.load_first(v.at(start, whole), rest), x_k)
                value = builder.fadd(v.sum(builder.load(total)), builder.load(v.at(bias, v.whole(row))))
                builder.store(v.at_least(value, floor), v.at(out, v.whole(row)))
            return context.get_dummy_value()

        return types.void(*[types.intp] * 5, floor), emit

    @njit(nogil=True)
    def run(part, x, weight, bias, out, floor):
        features, depth = weight.shape
        for row in range(part[0], part[1], rows):
            row = min(row, features - rows)
            start, place = address(weight, row * depth), address(out, row)
            compute(address(x, 0), start, depth, address(bias, row), place, floor)

    return on_threads(run) if parallel else run
