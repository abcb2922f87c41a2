"""What comes after the product: passes over an output, sizes of tiles and blocks, and the share of it all."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks import inputs
from denselayer import bench, cost

Closure = Callable[[], object]
HERE = __name__
NUMPY = "benchmarks.kernels.numpy_layers"
PASS_KIB = (256, 8192, 131072)
"""Sizes of the output of a pass: in the second cache, in the third, and in memory only."""
TILE_KIB = (8, 32, 128, 256, 512, 2048)
BLOCK_ROWS = (32, 64, 128, 256, 512, 1024)
STACK_ROWS = (16, 32, 64, 128, 192, 240, 256, 512, 1024)
SWEPT = ("65536,64,64", "4096,512,512")
SHARE_INPUTS = (16, 32, 64, 128, 256, 512, 1024, 2048)
TILE = 128
LEAST_SECONDS = 0.01


def numbers(shape: dict, dtype: str) -> np.ndarray:
    """An output of whole rows, about half of it negative before the first pass."""
    rng = np.random.default_rng(30)
    return rng.standard_normal((shape["batch"], shape["out_features"]), dtype=dtype)


def one_pass(shape: dict, dtype: str, threads: int, *, operation: str, operand: str) -> Closure:
    """One pass over an output, in place, with a number, a row, or an array as large as itself."""
    out = numbers(shape, dtype)
    function = {"maximum": np.maximum, "add": np.add}[operation]
    other = {
        "number": np.dtype(dtype).type(0),
        "row": np.zeros(out.shape[1], dtype),
        "array": np.zeros(out.size, dtype),
    }[operand]
    place = out if operand == "row" else out.ravel()
    return lambda: function(place, other, out=place)


def tiled_pass(shape: dict, dtype: str, threads: int) -> Closure:
    """ReLU tile by tile, always with the same small array of zeros."""
    flat = numbers(shape, dtype).ravel()
    count = TILE * 1024 // flat.itemsize
    zeros = np.zeros(count, dtype)

    def run() -> np.ndarray:
        for start in range(0, flat.size, count):
            tile = flat[start : start + count]
            np.maximum(tile, zeros[: tile.size], out=tile)
        return flat

    return run


def tiled(shape: dict, dtype: str, threads: int, *, kib: int = TILE) -> Closure:
    """The whole product, then bias and ReLU on tiles of ``kib`` KiB, with flat tiles of bias and zeros."""
    x, weight, bias = inputs.layer(shape, dtype)
    width = len(weight)
    rows = min(max(1, kib * 1024 // (bias.itemsize * width)), len(x))
    out = np.empty((len(x), width), dtype)
    flat, biases, zeros = out.ravel(), np.tile(bias, rows), np.zeros(rows * width, dtype)

    def run() -> np.ndarray:
        np.matmul(x, weight.T, out=out)
        for start in range(0, flat.size, biases.size):
            tile = flat[start : start + biases.size]
            np.add(tile, biases[: tile.size], out=tile)
            np.maximum(tile, zeros[: tile.size], out=tile)
        return out

    return run


def blocks(shape: dict, dtype: str, threads: int, *, rows: int) -> Closure:
    """The product alone, ``rows`` rows of the batch in each call of the BLAS."""
    x, weight, _ = inputs.layer(shape, dtype)
    out = np.empty((len(x), len(weight)), dtype)

    def run() -> np.ndarray:
        for start in range(0, len(x), rows):
            np.matmul(x[start : start + rows], weight.T, out=out[start : start + rows])
        return out

    return run


def stacks(shape: dict, dtype: str, threads: int, *, rows: int, stored: str) -> Closure:
    """The product alone as a stack of products of ``rows`` rows: one call of NumPy, many of the BLAS."""
    x, weight, _ = inputs.layer(shape, dtype)
    factor = np.ascontiguousarray(weight.T) if stored == "in, out" else weight.T
    out = np.empty((len(x), len(weight)), dtype)
    whole = len(x) // rows * rows
    stack = x[:whole].reshape(-1, rows, x.shape[1])
    places = out[:whole].reshape(-1, rows, len(weight))

    def run() -> np.ndarray:
        np.matmul(stack, factor, out=places)
        if whole < len(x):
            np.matmul(x[whole:], factor, out=out[whole:])
        return out

    return run


PASSES = (
    *(
        bench.Variant(
            f"{operation} {operand}", HERE, "one_pass", "numpy", {"operation": operation, "operand": operand}
        )
        for operation in ("maximum", "add")
        for operand in ("number", "row", "array")
    ),
    bench.Variant("maximum tiles", HERE, "tiled_pass", "numpy"),
)
PRODUCT = bench.Variant("product", NUMPY, "product", "numpy")
PLAIN = bench.Variant("plain", NUMPY, "plain", "numpy")
IN_PLACE = bench.Variant("in place", NUMPY, "in_place", "numpy")
TILES = tuple(bench.Variant(f"tiles {kib}", HERE, "tiled", "numpy", {"kib": kib}) for kib in TILE_KIB)
BLOCKS = tuple(
    bench.Variant(f"blocks {rows}", HERE, "blocks", "numpy", {"rows": rows}) for rows in BLOCK_ROWS
)
STACKS = tuple(
    bench.Variant(f"{stored}: {rows}", HERE, "stacks", "numpy", {"rows": rows, "stored": stored})
    for stored in ("in, out", "out, in")
    for rows in STACK_ROWS
)
SHARES = (PRODUCT, PLAIN, IN_PLACE, bench.Variant("tiles", HERE, "tiled", "numpy"))


def passes(kib: int) -> bench.Job:
    """All passes over an output of one size; an operation is one number that is worked on."""
    count, width = kib * 1024 // 4, 512
    shape = {"batch": count // width, "in_features": 0, "out_features": width}
    counts = {"operations": count, "traffic": 8 * count}
    return bench.Job(f"passes {kib} KiB", shape, PASSES, min_seconds=LEAST_SECONDS, clock="cpu", **counts)


def layer(name: str, shape: dict, variants: tuple) -> bench.Job:
    """Ways to compute one layer on one thread."""
    sizes = tuple(shape.values())
    counts = {"operations": cost.linear_operations(*sizes), "traffic": cost.linear_traffic(*sizes)}
    return bench.Job(name, shape, variants, min_seconds=LEAST_SECONDS, clock="cpu", **counts)


def jobs() -> list[bench.Job]:
    """Passes of three sizes; tiles and blocks for two layers; the share of the epilogue for many widths."""
    found = [passes(kib) for kib in PASS_KIB]
    for name in SWEPT:
        shape = inputs.layer_shape(name)
        found.append(layer(f"tiles {name}", shape, (PRODUCT, PLAIN, IN_PLACE, *TILES)))
        found.append(layer(f"blocks {name}", shape, (PRODUCT, *BLOCKS)))
    found.append(layer(f"stacks {SWEPT[0]}", inputs.layer_shape(SWEPT[0]), (PRODUCT, *STACKS)))
    for count in SHARE_INPUTS:
        shape = {"batch": 4096, "in_features": count, "out_features": 512}
        found.append(layer(f"share {count}", shape, SHARES))
    return found
