"""Bring a weight into the order in which a register tile reads it, in Numba."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from benchmarks.kernels.numba_parallel import on_threads
from benchmarks.kernels.vectors import Emitter, address, lanes


@cache
def pack_function(dtype: str, vectors: int, parallel: bool) -> Callable:
    """Compiled: weight (out, in) into panels (count, in, width), a square of registers at a time."""
    side = lanes(dtype)
    width = vectors * side

    @intrinsic
    def transpose(_, source, source_row, target, target_row):
        def emit(context, builder: ir.IRBuilder, signature, arguments):
            v = Emitter(builder, dtype, side)
            source, source_row, target, target_row = arguments
            source, target = v.pointer(source), v.pointer(target)
            square = [v.load(v.at(source, builder.mul(source_row, v.whole(i)))) for i in range(side)]
            for i, column in enumerate(v.transpose(square)):
                v.store(column, v.at(target, builder.mul(target_row, v.whole(i))))
            return context.get_dummy_value()

        return types.void(*[types.intp] * 4), emit

    @njit(nogil=True)
    def pack(part, weight, panels):
        features, depth = weight.shape
        for panel in range(part[0], part[1]):
            for column in range(0, width, side):
                row = min(panel * width, features - width) + column
                for k in range(0, depth, side):
                    k = min(k, depth - side)
                    if k < 0:
                        panels[panel, :, column : column + side] = weight[row : row + side].T
                    else:
                        target = address(panels, (panel * depth + k) * width + column)
                        transpose(address(weight, row * depth + k), depth, target, width)

    return on_threads(pack) if parallel else pack
