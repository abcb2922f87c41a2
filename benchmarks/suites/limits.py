"""What the machine can do at most: multiply-adds in registers, products, and bytes from each level."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from denselayer import bench
from denselayer._limits import limits_jobs

FMA = bench.Variant("fma", __name__, "multiply_adds", "numba")


def jobs() -> list[bench.Job]:
    """Peaks and bandwidths on one thread and on two."""
    return limits_jobs((1, 2), peaks=(FMA,), rounds=15, min_seconds=0.01)


def multiply_adds(shape: dict, dtype: str, threads: int) -> Callable[[], object]:
    """``shape["operations"]`` operations, all of them multiply-adds that stay in registers."""
    from benchmarks.kernels import fma

    spin, number = fma._spin(dtype), np.dtype(dtype).type(0)
    turns = round(shape["operations"] / (2 * fma.CHAINS * fma.lanes(dtype) * threads))
    if threads == 1:
        return lambda: spin(turns, number)
    pool = ThreadPoolExecutor(threads)
    return lambda: list(pool.map(spin, [turns] * threads, [number] * threads))
