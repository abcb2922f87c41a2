"""The backward pass of the fused layer on the same register tiles, in Numba: one pass over the batch.

Both products are the forward tile in other clothes, ``totals[r] += a[r, k] * b[k]``:

- ``d_x = d_z @ weight``: rows are samples, k runs over the outputs, the rows of the weight are the vectors;
- ``d_weight = d_z.T @ x``: rows are outputs, k runs over the samples, the rows of x are the vectors.

A block of samples is gated into a small array, ``d_z = d_out * (out > 0)``, and used for all three gradients
while it is in the cache. The sums of d_weight stay in the order of the tiles until the last block is done.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from benchmarks import inputs
from benchmarks.kernels.numba_parallel import on_threads, run_parts, split
from benchmarks.kernels.numba_tile import (
    SERIAL_OPERATIONS,
    SMALL_BYTES,
    Tile,
    layer_function,
    tile_for,
    tile_function,
)
from benchmarks.kernels.vectors import Emitter, address, lanes
from denselayer._validate import complaint, quiet

BLOCK = 252
"""Samples that are gated, used and left: 18 tiles of 14 rows, and a chunk of the sum over the batch."""
SHORT_CHUNK = 32
"""Rows of the weight whose part of d_x is added up by itself, when there is only one sample."""
DIRECT_BYTES = 1024
"""Rows of x of this length or more are copied into panels first, so that a tile reads its part in order."""


@cache
def copy_function(dtype: str, vectors: int) -> Callable:
    """For compiled code: copy so many rows of `vectors` registers from one array to another."""

    @intrinsic
    def copy(_, source, source_row, target, target_row, rows):
        def emit(context, builder: ir.IRBuilder, signature, arguments):
            v = Emitter(builder, dtype, lanes(dtype))
            source, source_row, target, target_row, rows = arguments
            source, target = v.pointer(source), v.pointer(target)
            with v.loop(rows) as row:
                for column in (v.whole(c * v.width) for c in range(vectors)):
                    value = v.load(v.at(source, builder.mul(row, source_row), column))
                    v.store(value, v.at(target, builder.mul(row, target_row), column))
            return context.get_dummy_value()

        return types.void(*[types.intp] * 5), emit

    return copy


@cache
def gate_function(dtype: str) -> Callable:
    """For compiled code: one vector of d_out where out > 0, stored and added to a sum."""

    @intrinsic
    def gate(_, d_out, out, d_z, total):
        def emit(context, builder: ir.IRBuilder, signature, arguments):
            v = Emitter(builder, dtype, lanes(dtype))
            d_out, out, d_z, total = map(v.pointer, arguments)
            gated = v.where_positive(v.load(out), v.load(d_out))
            v.store(gated, d_z)
            v.store(builder.fadd(v.load(total), gated), total)
            return context.get_dummy_value()

        return types.void(*[types.intp] * 4), emit

    return gate


@cache
def backward_function(dtype: str, tile: Tile, weight_tile: Tile, parallel: bool) -> Callable:
    """The compiled backward pass over a range of samples: `tile` for d_x, `weight_tile` for d_weight."""
    side = lanes(dtype)
    width = tile.vectors * side
    forward = layer_function(dtype, tile, False)
    compute = tile_function(dtype, weight_tile)
    copy_rows, gate = copy_function(dtype, tile.vectors), gate_function(dtype)
    no_floor = np.dtype(dtype).type(-np.inf)

    @njit(nogil=True)
    def run(part, d_out, out, x, panels, nothing, d_x, sums, bias_sums, d_zs, x_panels, scratches, copies):
        first, last, number = part[0], part[1], part[2]
        d_z, x_panel = d_zs[number], x_panels[number]
        part_sums, part_bias = sums[number], bias_sums[number]
        features, depth = d_out.shape[1], x.shape[1]
        zeros, block_bias = address(nothing, 0), np.empty_like(part_bias)
        top = first
        while top < last:
            bottom = last if last - top < BLOCK + tile.rows else top + BLOCK
            block_bias[:] = 0
            for row in range(top, bottom):
                for vector in range(len(part_bias)):
                    column = min(vector * side, features - side)
                    place = row * features + column
                    gate(
                        address(d_out, place),
                        address(out, place),
                        address(d_z, (row - top) * d_z.shape[1] + column),
                        address(block_bias, vector * side),
                    )
            part_bias += block_bias
            forward(
                (0, bottom - top, 0, len(panels), number),
                d_z[: bottom - top],
                panels,
                nothing,
                d_x[top:bottom],
                no_floor,
                scratches,
                copies,
                BLOCK if panels.nbytes > SMALL_BYTES else tile.rows,
            )
            for panel in range(len(panels)):
                column = min(panel * width, depth - width)
                vectors, step = address(x, top * depth + column), depth
                if len(x_panel):
                    copy_rows(vectors, depth, address(x_panel, 0), width, bottom - top)
                    vectors, step = address(x_panel, 0), width
                for t in range(part_sums.shape[1]):
                    place = address(part_sums, (panel * part_sums.shape[1] + t) * weight_tile.rows * width)
                    row = min(t * weight_tile.rows, features - weight_tile.rows)
                    compute(
                        (address(d_z, row), 1, d_z.shape[1]),
                        (vectors, step),
                        bottom - top,
                        zeros,
                        place,
                        (place, width),
                        ((place, 0), (place, 0)),
                        no_floor,
                    )
            top = bottom

    return on_threads(run) if parallel else run


@cache
def panel_functions(dtype: str, vectors: int) -> tuple[Callable, Callable]:
    """Compiled: rows of the weight into panels; tiles of d_weight into rows."""
    width = vectors * lanes(dtype)
    copy_rows = copy_function(dtype, vectors)

    @njit(nogil=True)
    def cut(weight, panels):
        features, depth = weight.shape
        for panel in range(len(panels)):
            column = min(panel * width, depth - width)
            copy_rows(
                address(weight, column), depth, address(panels, panel * features * width), width, features
            )

    @njit(nogil=True)
    def collect(sums, d_weight):
        panels, tiles, rows = sums.shape[:3]
        features, depth = d_weight.shape
        for panel in range(panels):
            column = min(panel * width, depth - width)
            for tile in range(tiles):
                source = address(sums, (panel * tiles + tile) * rows * width)
                target = address(d_weight, min(tile * rows, features - rows) * depth + column)
                copy_rows(source, width, target, depth, rows)

    return cut, collect


@cache
def outer_function(parallel: bool) -> Callable:
    """Compiled backward pass of a single sample over a range of inputs; reads each weight once, in order."""

    @njit(nogil=True)
    def run(part, d_z, x, weight, d_x, d_weight):
        first, last = part[0], part[1]
        d_x[first:last] = 0
        total = np.empty_like(d_x)
        for top in range(0, len(weight), SHORT_CHUNK):
            total[first:last] = 0
            for row in range(top, min(top + SHORT_CHUNK, len(weight))):
                for k in range(first, last):
                    d_weight[row, k] = d_z[row] * x[k]
                    total[k] += d_z[row] * weight[row, k]
            for k in range(first, last):
                d_x[k] += total[k]

    return on_threads(run) if parallel else run


class Arrays(NamedTuple):
    """Where the results of a `Backward` lie, and its working memory, for one thread that calls it."""

    d_x: np.ndarray
    d_weight: np.ndarray
    panels: np.ndarray
    sums: np.ndarray
    bias_sums: np.ndarray
    spaces: tuple[np.ndarray, ...]


class Backward:
    """d_x, d_weight and d_bias of a layer with ReLU, into arrays that are made once for a shape.

    Each thread that calls has arrays of its own: threads may share a Backward. The next call of the same
    thread overwrites what the last one returned.
    """

    def __init__(self, batch: int, in_features: int, out_features: int, dtype: str, threads: int = 1) -> None:
        self.shape, self.dtype = (batch, in_features, out_features), dtype
        self.arrays: dict[int, Arrays] = {}
        operations = 4 * batch * in_features * out_features
        if operations == 0:
            return
        self.threads = threads if operations >= SERIAL_OPERATIONS else 1
        self.parts = split(batch, self.threads)
        self.tile = tile_for(batch // len(self.parts), in_features, dtype)
        self.weight_tile = tile_for(out_features, in_features, dtype)
        width = self.tile.vectors * lanes(dtype)
        self.wide, self.high = max(in_features, width), max(out_features, lanes(dtype))

    def _arrays(self) -> Arrays:
        """The arrays of the thread that calls."""
        thread = threading.get_ident()
        if thread not in self.arrays:
            self.arrays[thread] = self._new_arrays()
        return self.arrays[thread]

    def _new_arrays(self) -> Arrays:
        dtype, side, count = self.dtype, lanes(self.dtype), len(self.parts)
        width = self.tile.vectors * side
        panels, tiles = -(-self.wide // width), -(-self.high // self.weight_tile.rows)
        rows, copied = BLOCK + self.tile.rows, self.wide * np.dtype(dtype).itemsize >= DIRECT_BYTES
        spaces = (
            np.empty((count, rows, self.high + side), dtype),
            np.empty((count, rows if copied else 0, width), dtype),
            np.zeros((count, (self.tile.rows + 1) * width), dtype),
            np.empty((count, 0, 0), dtype),
        )
        return Arrays(
            d_x=np.empty((self.shape[0], self.wide), dtype),
            d_weight=np.empty((self.high, self.wide), dtype),
            panels=np.empty((panels, self.high, width), dtype),
            sums=np.empty((count, panels, tiles, self.weight_tile.rows, width), dtype),
            bias_sums=np.empty((count, -(-self.high // side), side), dtype),
            spaces=spaces,
        )

    @quiet
    def __call__(self, d_out, out, x, weight):
        """d_out and out (N, out), x (N, in), weight (out, in)."""
        batch, depth, features = self.shape
        wanted = ((batch, features), (batch, features), (batch, depth), (features, depth))
        for array, shape in zip((d_out, out, x, weight), wanted, strict=True):
            if array.shape != shape or array.dtype != self.dtype:
                came, expected = f"{array.dtype} {array.shape}", f"{self.dtype} {shape}"
                advice = "Make a Backward for these arrays: the compiled code goes by addresses alone."
                raise ValueError(complaint("Backward", f"an array is {came}", expected, advice))
        if 0 in self.shape:
            d_bias = np.where(out > 0, d_out, 0).sum(axis=0, dtype=self.dtype)
            return np.zeros((batch, depth), self.dtype), np.zeros((features, depth), self.dtype), d_bias
        if batch == 1:
            return self._outer(d_out, out, x, weight)
        out, d_out = (_widen(one, batch, self.high) for one in (out, d_out))
        x, weight = _widen(x, batch, self.wide), _widen(weight, self.high, self.wide)
        cut, collect = panel_functions(self.dtype, self.tile.vectors)
        run = backward_function(self.dtype, self.tile, self.weight_tile, len(self.parts) > 1)
        nothing = np.zeros(self.wide, self.dtype)
        own = self._arrays()
        cut(weight, own.panels)
        own.sums.fill(0)
        own.bias_sums.fill(0)
        arrays = (d_out, out, x, own.panels, nothing, own.d_x, own.sums, own.bias_sums)
        parts = [(*rows, number) for number, rows in enumerate(self.parts)]
        run_parts(run, parts, *arrays, *own.spaces)
        for sums in own.sums[1:]:
            own.sums[0] += sums
        collect(own.sums[0], own.d_weight)
        return own.d_x[:, :depth], own.d_weight[:features, :depth], self._d_bias(own.bias_sums)

    def _outer(self, d_out, out, x, weight):
        features, depth = weight.shape
        own = self._arrays()
        d_x, d_weight = own.d_x[:, :depth], own.d_weight[:features, :depth]
        parts = split(depth, self.threads, lanes(self.dtype))
        d_z = np.where(out > 0, d_out, 0).astype(self.dtype, copy=False)
        arrays = d_z[0], x[0], np.ascontiguousarray(weight), d_x[0], d_weight
        run_parts(outer_function(len(parts) > 1), parts, *arrays)
        return d_x, d_weight, d_z[0]

    def _d_bias(self, bias_sums):
        features, sums = self.shape[2], bias_sums.sum(axis=0)
        d_bias = np.empty(self.high, self.dtype)
        side = sums.shape[1]
        d_bias[: len(sums[:-1]) * side] = sums[:-1].ravel()
        d_bias[self.high - side :] = sums[-1]
        return d_bias[:features]


def _widen(array, rows, columns):
    """The array, with zeros behind it where it is smaller than one vector."""
    missing = rows - array.shape[0], columns - array.shape[1]
    if any(missing):
        array = np.pad(array, ((0, missing[0]), (0, missing[1])))
    return np.ascontiguousarray(array)


def backward(shape: dict, dtype: str, threads: int) -> Callable:
    """The backward pass of a layer; the weight is cut into panels in each call, because it changes."""
    x, weight, bias = inputs.layer(shape, dtype)
    out, d_out = np.maximum(x @ weight.T + bias, 0), inputs.upstream(shape, dtype)
    run = Backward(*shape.values(), dtype, threads)
    return lambda: run(d_out, out, x, weight)
