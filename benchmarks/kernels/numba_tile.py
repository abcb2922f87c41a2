"""The fused dense layer ``act(x @ weight.T + bias)`` on register tiles, in Numba.

One tile of outputs, `rows` samples by `vectors` registers of features, stays in registers from the first
product to the activation, and is stored once::

    totals = bias                           the accumulators start at the bias, which therefore costs nothing
    for k in range(in_features):
        w = panel[k]                        a few vectors of weights, used for every row
        for each row:
            totals[row] += x[row, k] * w    one number of x, broadcast; one FMA per vector
    out = max(totals, 0)                    the activation costs one instruction per vector

The weight is packed first: `vectors` registers of features lie together, feature after feature of the input,
so that the loop reads it from front to back. A long sum is cut into pieces of at most `CHUNK` products that are
added up separately, which keeps the error as small as that of a library. There are no ragged tiles: the last
ones step back, so that they end where the matrix ends, and compute a few outputs twice.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from benchmarks import inputs
from benchmarks.kernels.vectors import Emitter, lanes, registers

CHUNK = 256
"""Products that are added one after the other before the sum is added to that of the other chunks."""
BLOCK_BYTES = 512 * 1024
"""Rows of x that are multiplied with one panel after the other: half of the second-level cache."""
SMALL_BYTES = 32 * 1024
"""A packed weight of this size stays in the first-level cache beside one tile's rows."""
PAGE_BYTES = 4096
"""Rows of x at multiples of this distance fall into the same few lines of a cache and push each other out."""
SERIAL_OPERATIONS = 20_000_000
"""Below this, waking a second thread costs more than it saves."""
FLOORS = {"relu": 0.0, "identity": -np.inf}


class Tile(NamedTuple):
    """The shape of the outputs that are computed in registers."""

    rows: int
    vectors: int


def tile_for(batch: int, out_features: int, dtype: str) -> Tile:
    """The largest tile that leaves registers for the weights and two broadcasts.

    With the 32 registers of AVX-512: 14 rows of 2 vectors, or 16 rows of 1 if one vector holds all outputs.
    The batch is cut into equal steps: 64 rows are 5 times 13, which is less work twice than 5 times 14.
    """
    count, _ = registers()
    vectors = 2 if out_features > lanes(dtype) else 1
    most = min((count - vectors - 2) // vectors, 16)
    steps = -(-batch // most)
    return Tile(-(-batch // steps), vectors)


@cache
def tile_function(dtype: str, tile: Tile) -> Callable:
    """The tile as a function for compiled code; all positions are addresses, all steps count elements."""
    width = lanes(dtype)

    @intrinsic
    def compute(_, x, x_row, x_step, panel, panel_step, depth, start, carry, out, out_row, next_x, next_panel, next_step, floor):
        def emit(context, builder: ir.IRBuilder, signature, arguments):
            v = Emitter(builder, dtype, width)
            x, x_row, x_step, panel, panel_step, depth, start, carry, out, out_row = arguments[:10]
            next_x, next_panel, next_step, floor = arguments[10:]
            x, panel, start, carry, out = map(v.pointer, (x, panel, start, carry, out))
            next_x, next_panel = map(v.pointer, (next_x, next_panel))
            columns = [v.whole(c * width) for c in range(tile.vectors)]
            starts = [v.load(v.at(start, column)) for column in columns]
            totals = [[v.variable(value) for value in starts] for _ in range(tile.rows)]

            with v.loop(depth) as k:
                x_k = v.at(x, builder.mul(k, x_step))
                w = [v.load(v.at(panel, builder.mul(k, panel_step), column)) for column in columns]
                v.prefetch(v.at(next_x, builder.mul(k, v.whole(tile.rows))))
                v.prefetch(v.at(next_panel, builder.mul(k, next_step)), level=2)
                for row, sums in enumerate(totals):
                    x_row_k = v.broadcast(v.at(x_k, builder.mul(x_row, v.whole(row))))
                    for total, w_c in zip(sums, w, strict=True):
                        v.add_product(total, x_row_k, w_c)

            with builder.if_then(v.exists(carry)):
                for row, sums in enumerate(totals):
                    for total, column in zip(sums, columns, strict=True):
                        v.add(total, v.load(v.at(carry, v.whole(row * width * tile.vectors), column)))

            floor = v.splat(floor)
            for row, sums in enumerate(totals):
                for total, column in zip(sums, columns, strict=True):
                    place = v.at(out, builder.mul(out_row, v.whole(row)), column)
                    v.store(v.at_least(builder.load(total), floor), place)
            return context.get_dummy_value()

        return types.void(*[types.intp] * 13, floor), emit

    return compute


@njit(inline="always")
def address(array, offset):
    """Where the element stands that comes `offset` elements after the first."""
    return array.ctypes.data + offset * array.itemsize


@cache
def layer_function(dtype: str, tile: Tile) -> Callable:
    """The compiled layer over a range of rows and of panels, for one shape of tile."""
    rows, width = tile.rows, tile.vectors * lanes(dtype)
    compute = tile_function(dtype, tile)
    no_floor = np.dtype(dtype).type(-np.inf)

    @njit(nogil=True)
    def run(x, panels, bias, out, floor, scratch, copy, block, part):
        (batch, stride), depth, features = x.shape, panels.shape[1], out.shape[1]
        first_row, last_row, first_panel, last_panel = part
        chunks = max(1, -(-depth // CHUNK))
        carry, zeros = address(scratch, 0), address(scratch, rows * width)
        for top in range(first_row, last_row, block):
            bottom = min(top + block, last_row)
            source, shift, row_step = x, 0, stride
            if len(copy):
                source, shift, row_step = copy, min(top, batch - rows), copy.shape[1]
                for row in range(shift, bottom):
                    copy[row - shift, :depth] = x[row]
            for panel in range(first_panel, last_panel):
                column = min(panel * width, features - width)
                tiles = -(-(bottom - top) // rows)
                share = -(-width // tiles)
                for row in range(top, bottom, rows):
                    step = (row - top) // rows
                    row = min(row, batch - rows)
                    for chunk in range(chunks):
                        k, stop = chunk * depth // chunks, (chunk + 1) * depth // chunks
                        last = chunk == chunks - 1
                        compute(
                            address(source, (row - shift) * row_step + k),
                            row_step,
                            1,
                            address(panels, (panel * depth + k) * width),
                            width,
                            stop - k,
                            zeros if chunk else address(bias, column),
                            carry if chunk else 0,
                            address(out, row * features + column) if last else carry,
                            features if last else width,
                            address(source, (row - shift + rows) * row_step + k),
                            address(panels, (panel + 1) * depth * width + (step * depth + k) * share),
                            share,
                            floor if last else no_floor,
                        )

    return run


@cache
def pack_function(dtype: str, vectors: int) -> Callable:
    """Compiled: weight (out, in) into panels (count, in, width), a square of `lanes` by `lanes` at a time."""
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
    def pack(weight, panels, first_panel, last_panel):
        features, depth = weight.shape
        for panel in range(first_panel, last_panel):
            for vector in range(vectors):
                row = min(panel * width, features - width) + vector * side
                for k in range(0, depth, side):
                    k = min(k, depth - side)
                    if k >= 0:
                        source = address(weight, row * depth + k)
                        transpose(
                            source, depth, address(panels, (panel * depth + k) * width + vector * side), width
                        )
                    else:
                        for j in range(side):
                            for i in range(depth):
                                panels[panel, i, vector * side + j] = weight[row + j, i]

    return pack


@cache
def dots_function(dtype: str, rows: int) -> Callable:
    """Compiled layer for a single sample: `rows` dot products at a time, with the weight as it is.

    Nothing is used twice here but x. Packing would cost more than the product, and the speed is that at which
    the weight comes from memory.
    """
    width = lanes(dtype)

    @intrinsic
    def compute(_, x, weight, depth, bias, out, floor):
        def emit(context, builder: ir.IRBuilder, signature, arguments):
            v = Emitter(builder, dtype, width)
            x, weight, depth, bias, out, floor = arguments
            x, weight, bias, out = (v.pointer(one) for one in (x, weight, bias, out))
            starts = [v.at(weight, builder.mul(depth, v.whole(row))) for row in range(rows)]
            totals = [v.variable(v.splat(ir.Constant(v.scalar, 0.0))) for _ in starts]
            rest = builder.urem(depth, v.whole(width))
            with v.loop(builder.sub(depth, rest), step=width) as k:
                x_k = v.load(v.at(x, k))
                for start, total in zip(starts, totals, strict=True):
                    v.add_product(total, v.load(v.at(start, k)), x_k)
            k = builder.sub(depth, rest)
            x_k = v.load_first(v.at(x, k), rest)
            for row, (start, total) in enumerate(zip(starts, totals, strict=True)):
                v.add_product(total, v.load_first(v.at(start, k), rest), x_k)
                value = builder.fadd(v.sum(builder.load(total)), builder.load(v.at(bias, v.whole(row))))
                builder.store(v.at_least(value, floor), v.at(out, v.whole(row)))
            return context.get_dummy_value()

        return types.void(*[types.intp] * 5, floor), emit

    @njit(nogil=True)
    def run(x, weight, bias, out, floor, first, last):
        features, depth = weight.shape
        for row in range(first, last, rows):
            row = min(row, features - rows)
            compute(
                address(x, 0),
                address(weight, row * depth),
                depth,
                address(bias, row),
                address(out, row),
                floor,
            )

    return run


class Layer:
    """A dense layer with its activation; the weight is packed once, and again by `pack` after it has changed.

    >>> layer = Layer(np.eye(3, dtype=np.float32), np.array([0, -1, 1], dtype=np.float32))
    >>> layer(np.array([[2, 3, -4], [-1, 0, 5]], dtype=np.float32))
    array([[2., 2., 0.],
           [0., 0., 6.]], dtype=float32)
    """

    def __init__(self, weight, bias, activation: str = "relu", threads: int = 1) -> None:
        self.weight, self.bias = np.ascontiguousarray(weight), np.ascontiguousarray(bias)
        self.dtype = self.weight.dtype.name
        self.floor = self.weight.dtype.type(FLOORS[activation])
        self.threads = threads
        self.features, self.depth = self.weight.shape
        self.width = tile_for(1, self.features, self.dtype).vectors * lanes(self.dtype)
        self.panels = np.zeros((-(-self.features // self.width), self.depth, self.width), self.dtype)
        self.pack()

    def pack(self) -> None:
        """Copy the weight into panels. The last one steps back, so that it ends where the weight ends."""
        weight, missing = self.weight, max(0, self.width - self.features)
        if missing:
            weight = np.pad(weight, ((0, missing), (0, 0)))
        self.starts = np.pad(self.bias, (0, missing))
        if weight.size:
            pack = pack_function(self.dtype, self.width // lanes(self.dtype))
            parts = split(len(self.panels), self._parts(weight.size))
            share(lambda part: pack(weight, self.panels, *part), parts)

    def __call__(self, x, out=None):
        """x (N, in) to out (N, out)."""
        x = np.ascontiguousarray(x)
        batch = len(x)
        if out is None:
            out = np.empty((batch, self.features), self.dtype)
        if out.size == 0:
            return out
        if batch == 1:
            self._dots(x, out)
        elif self.features < self.width:
            wide = np.empty((batch, self.width), self.dtype)
            self._tiles(x, wide)
            out[...] = wide[:, : self.features]
        else:
            self._tiles(x, out)
        return out

    def _parts(self, operations: int) -> int:
        return self.threads if operations >= SERIAL_OPERATIONS else 1

    def _dots(self, x, out) -> None:
        rows = min(8, self.features)
        run = dots_function(self.dtype, rows)
        parts = split(self.features, self._parts(2 * self.weight.size), rows)
        share(lambda part: run(x, self.weight, self.bias, out, self.floor, *part), parts)

    def _tiles(self, x, out) -> None:
        batch = len(x)
        tile = tile_for(batch, self.features, self.dtype)
        run = layer_function(self.dtype, tile)
        row_bytes = self.depth * x.itemsize
        block = tile.rows
        if self.panels.nbytes > SMALL_BYTES:
            block = min(max(1, BLOCK_BYTES // row_bytes // tile.rows) * tile.rows, batch)
        copied = block + tile.rows if row_bytes % PAGE_BYTES == 0 else 0

        def compute(part):
            scratch = np.zeros((tile.rows + 1) * self.width, self.dtype)
            copy = np.empty((copied, self.depth + lanes(self.dtype)), self.dtype)
            run(x, self.panels, self.starts, out, self.floor, scratch, copy, block, part)

        rows, panels, parts = (0, batch), (0, len(self.panels)), self._parts(2 * batch * self.weight.size)
        if -(-batch // tile.rows) >= 8 * parts or len(self.panels) < parts:
            share(compute, [(*some, *panels) for some in split(batch, parts, tile.rows)])
        else:
            share(compute, [(*rows, *some) for some in split(len(self.panels), parts)])


def split(count: int, parts: int, step: int = 1) -> list[tuple[int, int]]:
    """The range of `count` in at most `parts` ranges that begin at multiples of `step`.

    >>> split(100, 2, 14)
    [(0, 56), (56, 100)]
    """
    steps = -(-count // step)
    ends = [min(-(-steps * part // parts) * step, count) for part in range(parts + 1)]
    return [(first, last) for first, last in pairwise(ends) if first < last]


def share(work: Callable[[object], object], parts: list) -> None:
    """Do all parts at the same time: the first in this thread, the others in threads that wait for work."""
    started = [_pool(len(parts) - 1).submit(work, part) for part in parts[1:]]
    work(parts[0])
    for one in started:
        one.result()


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="tile")


def packed(shape: dict, dtype: str, threads: int) -> Callable:
    """The layer with a weight that was packed before: what a network does that is used many times."""
    x, weight, bias = inputs.layer(shape, dtype)
    layer = Layer(weight, bias, threads=threads)
    out = np.empty((len(x), len(weight)), dtype)
    return lambda: layer(x, out)


def packing_included(shape: dict, dtype: str, threads: int) -> Callable:
    """The layer with a weight that is packed in each call: what a weight costs that has changed."""
    x, weight, bias = inputs.layer(shape, dtype)
    layer = Layer(weight, bias, threads=threads)
    out = np.empty((len(x), len(weight)), dtype)

    def run() -> np.ndarray:
        if len(x) > 1:
            layer.pack()
        return layer(x, out)

    return run
