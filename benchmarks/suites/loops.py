"""From three loops in Python to one call of the BLAS: the same product, written in ten ways."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks import inputs
from denselayer import bench, cost

Closure = Callable[[], object]
HERE = __name__
SIZES = (64, 256, 1024)
PURE_PYTHON = 64
"""Loops in Python itself take seconds for a larger product."""
ENTRIES = 256
"""The same for one call of NumPy for each entry."""


def product(shape: dict, dtype: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x (N, in), weight (out, in) and a place for the result."""
    x, weight, _ = inputs.layer(shape, dtype)
    return x, weight, np.empty((len(x), len(weight)), dtype)


def up_to(size: int, shape: dict) -> None:
    """Leave a variant out where it would take too long."""
    if max(shape.values()) > size:
        raise bench.Unsupported(f"takes too long above {size}")


def python_loops(shape: dict, dtype: str, threads: int) -> Closure:
    """Three loops over lists of Python's own numbers."""
    up_to(PURE_PYTHON, shape)
    x, weight, _ = product(shape, dtype)
    x, weight = x.tolist(), weight.tolist()

    def run() -> list[list[float]]:
        out = []
        for row in x:
            out.append([])
            for unit in weight:
                total = 0.0
                for i in range(len(row)):
                    total += row[i] * unit[i]
                out[-1].append(total)
        return out

    return run


def entries(shape: dict, dtype: str, threads: int) -> Closure:
    """One dot product of NumPy for each entry."""
    up_to(ENTRIES, shape)
    x, weight, out = product(shape, dtype)

    def run() -> np.ndarray:
        for n in range(len(x)):
            for i in range(len(weight)):
                out[n, i] = x[n] @ weight[i]
        return out

    return run


def rows(shape: dict, dtype: str, threads: int) -> Closure:
    """One product of the weight with a vector for each row."""
    x, weight, out = product(shape, dtype)

    def run() -> np.ndarray:
        for n in range(len(x)):
            np.matmul(weight, x[n], out=out[n])
        return out

    return run


def outer(shape: dict, dtype: str, threads: int) -> Closure:
    """One outer product for each input, added up: every step reads and writes the whole result."""
    x, weight, out = product(shape, dtype)
    columns = np.ascontiguousarray(weight.T)

    def run() -> np.ndarray:
        out[:] = 0
        for k in range(len(columns)):
            np.add(out, x[:, k, None] * columns[k], out=out)
        return out

    return run


def blocked(shape: dict, dtype: str, threads: int, *, size: int) -> Closure:
    """Square blocks of the result; each is finished before the next one is begun."""
    if size >= max(shape.values()):
        raise bench.Unsupported("one block would be all")
    x, weight, out = product(shape, dtype)
    inner = x.shape[1]

    def run() -> np.ndarray:
        for n in range(0, len(x), size):
            for i in range(0, len(weight), size):
                block = out[n : n + size, i : i + size]
                block[...] = 0
                for k in range(0, inner, size):
                    block += x[n : n + size, k : k + size] @ weight[i : i + size, k : k + size].T
        return out

    return run


def matmul(shape: dict, dtype: str, threads: int) -> Closure:
    """One call of the BLAS."""
    x, weight, out = product(shape, dtype)
    return lambda: np.matmul(x, weight.T, out=out)


def compiled_loops(shape: dict, dtype: str, threads: int) -> Closure:
    """The three loops, compiled: each entry is finished before the next one is begun."""
    from numba import njit

    x, weight, out = product(shape, dtype)

    @njit
    def multiply(x, weight, out):
        for n in range(out.shape[0]):
            for i in range(out.shape[1]):
                total = out.dtype.type(0)
                for k in range(x.shape[1]):
                    total += x[n, k] * weight[i, k]
                out[n, i] = total
        return out

    return lambda: multiply(x, weight, out)


def compiled_columns(shape: dict, dtype: str, threads: int) -> Closure:
    """The same loops in another order: the innermost goes along rows, so the compiler can use vectors."""
    from numba import njit

    x, weight, out = product(shape, dtype)
    columns = np.ascontiguousarray(weight.T)

    @njit
    def multiply(x, columns, out):
        out[:] = 0
        for n in range(out.shape[0]):
            for k in range(x.shape[1]):
                for i in range(out.shape[1]):
                    out[n, i] += x[n, k] * columns[k, i]
        return out

    return lambda: multiply(x, columns, out)


VARIANTS = (
    bench.Variant("loops in Python", HERE, "python_loops", "numpy"),
    bench.Variant("a call for each entry", HERE, "entries", "numpy"),
    bench.Variant("loops, compiled", HERE, "compiled_loops", "numba"),
    bench.Variant("outer products", HERE, "outer", "numpy"),
    bench.Variant("loops, compiled, reordered", HERE, "compiled_columns", "numba"),
    bench.Variant("a call for each row", HERE, "rows", "numpy"),
    bench.Variant("blocks of 16", HERE, "blocked", "numpy", {"size": 16}),
    bench.Variant("blocks of 32", HERE, "blocked", "numpy", {"size": 32}),
    bench.Variant("blocks of 128", HERE, "blocked", "numpy", {"size": 128}),
    bench.Variant("one call", HERE, "matmul", "numpy"),
)


def jobs() -> list[bench.Job]:
    """Square products of three sizes."""
    found = []
    for size in SIZES:
        shape = dict.fromkeys(("batch", "in_features", "out_features"), size)
        counts = {
            "operations": cost.linear_operations(size, size, size),
            "traffic": cost.linear_traffic(size, size, size, bias=False),
        }
        rounds = 15 if size <= ENTRIES else 7
        found.append(bench.Job(f"square {size}", shape, VARIANTS, rounds=rounds, clock="cpu", **counts))
    return found
