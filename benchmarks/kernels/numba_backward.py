"""The backward pass of the fused layer on the same register tiles, in Numba: one pass over the batch.

Both products are the forward tile in other clothes, ``totals[r] += a[r, k] * b[k]``:

- ``d_x = d_z @ weight``: rows are samples, k runs over the outputs, and the rows of the weight are the vectors;
- ``d_weight = d_z.T @ x``: rows are outputs, k runs over the samples, and the rows of x are the vectors.

A block of samples is gated into a small array, ``d_z = d_out * (out > 0)``, and used for all three gradients
while it is in the cache. The sums of d_weight stay in the order of the tiles until the last block is done.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numba import njit

from benchmarks import inputs
from benchmarks.kernels.numba_tile import (
    SERIAL_OPERATIONS,
    SMALL_BYTES,
    Tile,
    address,
    layer_function,
    share,
    split,
    tile_for,
    tile_function,
)
from benchmarks.kernels.vectors import lanes

BLOCK = 252
"""Samples that are gated, used and left: 18 tiles of 14 rows, and a chunk of the sum over the batch."""
DIRECT_BYTES = 1024
"""Rows of x that are this long or longer are copied into panels first, so that a tile reads its part in order."""


@cache
def backward_function(dtype: str, tile: Tile, weight_tile: Tile) -> Callable:
    """The compiled backward pass over a range of samples: `tile` for d_x, `weight_tile` for d_weight."""
    width = tile.vectors * lanes(dtype)
    forward = layer_function(dtype, tile)
    compute = tile_function(dtype, weight_tile)
    zero, no_floor = map(np.dtype(dtype).type, (0, -np.inf))

    @njit(nogil=True)
    def run(d_out, out, x, panels, nothing, d_x, sums, d_bias, d_z, x_panels, scratch, copy, part):
        first, last = part
        features, depth = d_out.shape[1], x.shape[1]
        zeros = address(nothing, 0)
        block_bias = np.empty_like(d_bias)
        top = first
        while top < last:
            bottom = last if last - top < BLOCK + tile.rows else top + BLOCK
            block_bias[:] = 0
            for row in range(top, bottom):
                for j in range(features):
                    gated = d_out[row, j] if out[row, j] > 0 else zero
                    d_z[row - top, j] = gated
                    block_bias[j] += gated
            d_bias += block_bias
            forward(
                d_z[: bottom - top],
                panels,
                nothing,
                d_x[top:bottom],
                no_floor,
                scratch,
                copy,
                BLOCK if panels.nbytes > SMALL_BYTES else tile.rows,
                (0, bottom - top, 0, len(panels)),
            )
            for panel in range(len(panels)):
                column = min(panel * width, depth - width)
                vectors, step = address(x, top * depth + column), depth
                if len(x_panels):
                    for row in range(top, bottom):
                        x_panels[row - top] = x[row, column : column + width]
                    vectors, step = address(x_panels, 0), width
                for t in range(sums.shape[1]):
                    place = address(sums, (panel * sums.shape[1] + t) * weight_tile.rows * width)
                    compute(
                        address(d_z, min(t * weight_tile.rows, features - weight_tile.rows)),
                        1,
                        d_z.shape[1],
                        vectors,
                        step,
                        bottom - top,
                        zeros,
                        place,
                        place,
                        width,
                        place,
                        place,
                        0,
                        no_floor,
                    )
            top = bottom

    return run


@njit(nogil=True)
def slice_panels(weight, panels, first, last):
    """The rows of the weight, cut into panels; the last one steps back."""
    width = panels.shape[2]
    for panel in range(first, last):
        column = min(panel * width, weight.shape[1] - width)
        for row in range(len(weight)):
            panels[panel, row] = weight[row, column : column + width]


@njit(nogil=True)
def collect(sums, d_weight):
    """Add up the parts of d_weight and bring the tiles into rows. sums: part, panel, tile, row, column."""
    parts, panels, tiles, rows, width = sums.shape
    features, depth = d_weight.shape
    for panel in range(panels):
        column = min(panel * width, depth - width)
        for tile in range(tiles):
            first = min(tile * rows, features - rows)
            for row in range(rows):
                total = d_weight[first + row, column : column + width]
                total[:] = sums[0, panel, tile, row]
                for part in range(1, parts):
                    total += sums[part, panel, tile, row]


class Backward:
    """d_x, d_weight and d_bias of a layer with ReLU, into arrays that are made once for a shape."""

    def __init__(self, batch: int, in_features: int, out_features: int, dtype: str, threads: int = 1) -> None:
        operations = 4 * batch * in_features * out_features
        self.parts = split(batch, threads if operations >= SERIAL_OPERATIONS else 1)
        least = batch // max(1, len(self.parts))
        width = tile_for(1, in_features, dtype).vectors * lanes(dtype)
        wide = max(in_features, width)
        panels = -(-wide // width)
        self.shape, self.wide, self.width, self.dtype = (batch, in_features, out_features), wide, width, dtype
        self.d_x = np.empty((batch, wide), dtype)
        self.d_weight = np.empty((out_features, wide), dtype)
        self.panels = np.empty((panels, out_features, width), dtype)
        if batch * in_features * out_features == 0:
            return
        self.tile = tile_for(least, in_features, dtype)
        self.weight_tile = tile_for(out_features, in_features, dtype)
        tiles = -(-out_features // self.weight_tile.rows)
        self.sums = np.zeros((len(self.parts), panels, tiles, self.weight_tile.rows, width), dtype)

    def __call__(self, d_out, out, x, weight):
        """d_out and out (N, out), x (N, in), weight (out, in)."""
        batch, depth, features = self.shape
        if batch * depth * features == 0:
            d_bias = np.where(out > 0, d_out, 0).sum(axis=0, dtype=self.dtype)
            return np.zeros((batch, depth), self.dtype), np.zeros((features, depth), self.dtype), d_bias
        if depth < self.wide:
            x, weight = (np.pad(one, ((0, 0), (0, self.wide - depth))) for one in (x, weight))
        d_out, out, x, weight = map(np.ascontiguousarray, (d_out, out, x, weight))
        slice_panels(weight, self.panels, 0, len(self.panels))
        run = backward_function(self.dtype, self.tile, self.weight_tile)
        rows = BLOCK + self.tile.rows
        copied = rows if self.wide * x.itemsize >= DIRECT_BYTES else 0
        d_bias = np.zeros((len(self.parts), features), self.dtype)
        self.sums.fill(0)

        def compute(number):
            scratch = np.zeros((self.tile.rows + 1) * self.width, self.dtype)
            d_z = np.empty((rows, features + lanes(self.dtype)), self.dtype)
            x_panels = np.empty((copied, self.width), self.dtype)
            nothing, copy = np.zeros(self.wide, self.dtype), np.empty((0, 0), self.dtype)
            spaces = self.sums[number], d_bias[number], d_z, x_panels, scratch, copy
            run(d_out, out, x, self.panels, nothing, self.d_x, *spaces, self.parts[number])

        share(compute, list(range(len(self.parts))))
        collect(self.sums, self.d_weight)
        return self.d_x[:, :depth], self.d_weight[:, :depth], d_bias.sum(axis=0)


def backward(shape: dict, dtype: str, threads: int) -> Callable:
    """The backward pass of a layer; the weight is cut into panels in each call, because it changes."""
    x, weight, bias = inputs.layer(shape, dtype)
    out, d_out = np.maximum(x @ weight.T + bias, 0), inputs.upstream(shape, dtype)
    run = Backward(*shape.values(), dtype, threads)
    return lambda: run(d_out, out, x, weight)
