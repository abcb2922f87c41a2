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
so that the loop reads it from front to back. A long sum is cut into pieces of at most `CHUNK` products that
are added up separately, which keeps the error as small as that of a library. There are no ragged tiles: the
last ones step back, so that they end where the matrix ends, and compute a few outputs twice.
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
from benchmarks.kernels.numba_dots import dots_function
from benchmarks.kernels.numba_pack import pack_function
from benchmarks.kernels.numba_parallel import on_threads, run_parts, split
from benchmarks.kernels.vectors import Emitter, address, lanes, registers
from denselayer._validate import complaint

CHUNK = 192
"""Products that are added one after the other, at most. With 256 the error exceeds twice that of NumPy."""
BLOCK_BYTES = 512 * 1024
"""Rows of x that are multiplied with one panel after the other: half of the second-level cache."""
SMALL_BYTES = 32 * 1024
"""A packed weight of this size stays in the first-level cache beside one tile's rows."""
PAGE_BYTES = 4096
"""Rows of x at multiples of this distance fall into the same few lines of a cache and push each other out."""
SERIAL_OPERATIONS = 500_000
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
    def compute(_, x, panel, depth, start, carry, out, ahead, floor):
        def emit(context, builder: ir.IRBuilder, signature, arguments):
            v = Emitter(builder, dtype, width)
            x, panel, depth, start, carry, out, ahead, floor = arguments
            x, x_row, x_step = v.steps(x)
            panel, panel_step = v.steps(panel)
            out, out_row = v.steps(out)
            start, carry = v.pointer(start), v.pointer(carry)
            columns = [v.whole(c * width) for c in range(tile.vectors)]
            starts = [v.load(v.at(start, column)) for column in columns]
            totals = [[v.variable(value) for value in starts] for _ in range(tile.rows)]

            with v.loop(depth) as k:
                x_k = v.at(x, builder.mul(k, x_step))
                w = [v.load(v.at(panel, builder.mul(k, panel_step), column)) for column in columns]
                for level, (soon, soon_step) in enumerate(map(v.steps, v.parts(ahead)), 1):
                    v.prefetch(v.at(soon, builder.mul(k, soon_step)), level)
                for sums in totals:
                    x_row_k = v.broadcast(x_k)
                    x_k = v.opaque(v.at(x_k, x_row))
                    for total, w_c in zip(sums, w, strict=True):
                        v.add_product(total, x_row_k, w_c)

            with builder.if_then(v.exists(carry)):
                for row, sums in enumerate(totals):
                    for total, column in zip(sums, columns, strict=True):
                        before = v.at(carry, v.whole(row * width * tile.vectors), column)
                        v.add(total, v.load(before))

            floor = v.splat(floor)
            for row, sums in enumerate(totals):
                for total, column in zip(sums, columns, strict=True):
                    place = v.at(out, builder.mul(out_row, v.whole(row)), column)
                    v.store(v.at_least(builder.load(total), floor), place)
            return context.get_dummy_value()

        whole, pair = types.intp, types.UniTuple(types.intp, 2)
        triple, pairs = types.UniTuple(whole, 3), types.UniTuple(pair, 2)
        return types.void(triple, pair, whole, whole, whole, pair, pairs, floor), emit

    return compute


@cache
def layer_function(dtype: str, tile: Tile, parallel: bool) -> Callable:
    """The compiled layer over a range of rows and of panels, for one shape of tile."""
    rows, width = tile.rows, tile.vectors * lanes(dtype)
    compute = tile_function(dtype, tile)
    no_floor = np.dtype(dtype).type(-np.inf)

    @njit(nogil=True)
    def run(part, x, panels, bias, out, floor, scratches, copies, block):
        (batch, stride), depth, features = x.shape, panels.shape[1], out.shape[1]
        first_row, last_row, first_panel, last_panel = part[0], part[1], part[2], part[3]
        scratch, copy = scratches[part[4]], copies[part[4]]
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
                        begin = (row - shift) * row_step + k
                        following = (panel + 1) * depth * width + (step * depth + k) * share
                        compute(
                            (address(source, begin), row_step, 1),
                            (address(panels, (panel * depth + k) * width), width),
                            stop - k,
                            zeros if chunk else address(bias, column),
                            carry if chunk else 0,
                            (address(out, row * features + column), features) if last else (carry, width),
                            (
                                (address(source, (row - shift + rows) * row_step + k * rows), rows),
                                (address(panels, following), share),
                            ),
                            floor if last else no_floor,
                        )

    return on_threads(run) if parallel else run


class Layer:
    """A dense layer with its activation; the weight is packed once, and again by `pack` after it has changed.

    Working memory is kept for each size of batch and each thread that calls: threads may share a layer.

    >>> layer = Layer(np.eye(3, dtype=np.float32), np.array([0, -1, 1], dtype=np.float32))
    >>> layer(np.array([[2, 3, -4], [-1, 0, 5]], dtype=np.float32))
    array([[2., 2., 0.],
           [0., 0., 6.]], dtype=float32)
    """

    def __init__(self, weight, bias, activation: str = "relu", threads: int = 1) -> None:
        self.weight, self.bias = np.ascontiguousarray(weight), np.ascontiguousarray(bias)
        self.dtype = self.weight.dtype.name
        self._check("bias", self.bias, self.weight.shape[:1], self.weight.shape[0])
        self.floor = self.weight.dtype.type(FLOORS[activation])
        self.threads = threads
        self.features, self.depth = self.weight.shape
        self.width = tile_for(1, self.features, self.dtype).vectors * lanes(self.dtype)
        self.panels = np.zeros((-(-self.features // self.width), self.depth, self.width), self.dtype)
        self.plans: dict[tuple[int, int], tuple] = {}
        self.pack()

    def pack(self) -> None:
        """Copy the weight into panels. The last one steps back, so that it ends where the weight ends."""
        weight, missing = self.weight, max(0, self.width - self.features)
        if missing:
            weight = np.pad(weight, ((0, missing), (0, 0)))
        self.starts = np.pad(self.bias, (0, missing))
        if self.weight.size:
            parts = split(len(self.panels), self._threads(4 * weight.size))
            pack = pack_function(self.dtype, self.width // lanes(self.dtype), len(parts) > 1)
            run_parts(pack, parts, weight, self.panels)

    def __call__(self, x, out=None):
        """x (N, in) to out (N, out)."""
        x = np.ascontiguousarray(x)
        batch = len(x)
        self._check("x", x, (batch, self.depth), f"N, {self.depth}")
        if out is None:
            out = np.empty((batch, self.features), self.dtype)
        else:
            self._check_target(out, x)
        if out.size == 0:
            return out
        if batch == 1:
            rows = min(8, self.features)
            parts = split(self.features, self._threads(2 * self.weight.size), rows)
            run = dots_function(self.dtype, rows, len(parts) > 1)
            run_parts(run, parts, x, self.weight, self.bias, out, self.floor)
            return out
        key = batch, threading.get_ident()
        if key not in self.plans:
            self.plans[key] = self._plan(batch)
        run, parts, *spaces = self.plans[key]
        wide = out if self.features >= self.width else np.empty((batch, self.width), self.dtype)
        run_parts(run, parts, x, self.panels, self.starts, wide, self.floor, *spaces)
        if wide is not out:
            out[...] = wide[:, : self.features]
        return out

    def _check(self, name: str, array, shape: tuple, expected: object) -> None:
        """ValueError unless an array is what the compiled code takes it for: it goes by addresses alone."""
        if array.shape != shape:
            expected = f"({expected},)" if len(shape) == 1 else f"({expected})"
            advice = "Pass an array of that shape."
            raise ValueError(complaint("Layer", f"{name} has shape {array.shape}", expected, advice))
        if array.dtype != self.weight.dtype:
            advice = f"Convert it: {name}.astype(np.{self.dtype})."
            raise ValueError(complaint("Layer", f"{name} has dtype {array.dtype}", self.dtype, advice))

    def _check_target(self, out, x) -> None:
        self._check("out", out, (len(x), self.features), f"{len(x)}, {self.features}")
        if not out.flags.c_contiguous:
            advice = "Pass np.empty(out.shape, out.dtype)."
            raise ValueError(complaint("Layer", "out is not contiguous", "rows one after the other", advice))
        if np.may_share_memory(out, x):
            advice = "Pass np.empty(out.shape, out.dtype)."
            raise ValueError(complaint("Layer", "out shares memory with x", "an array of its own", advice))

    def _threads(self, operations: int) -> int:
        return self.threads if operations >= SERIAL_OPERATIONS else 1

    def _plan(self, batch: int) -> tuple:
        """What a batch of this size needs: compiled function, parts, and working memory for each part."""
        tile = tile_for(batch, self.features, self.dtype)
        row_bytes = self.depth * self.weight.itemsize
        block = tile.rows
        if self.panels.nbytes > SMALL_BYTES:
            block = min(max(1, BLOCK_BYTES // row_bytes // tile.rows) * tile.rows, batch)
        copied = block + tile.rows if row_bytes % PAGE_BYTES == 0 else 0

        every_row, every_panel = (0, batch), (0, len(self.panels))
        threads = self._threads(2 * batch * self.weight.size)
        if -(-batch // tile.rows) >= 8 * threads or len(self.panels) < threads:
            parts = [(*rows, *every_panel) for rows in split(batch, threads, tile.rows)]
        else:
            parts = [(*every_row, *panels) for panels in split(len(self.panels), threads)]
        parts = np.array([(*part, number) for number, part in enumerate(parts)])
        scratch = np.zeros((len(parts), (tile.rows + 1) * self.width), self.dtype)
        copy = np.empty((len(parts), copied, self.depth + lanes(self.dtype)), self.dtype)
        return layer_function(self.dtype, tile, len(parts) > 1), parts, scratch, copy, block


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
