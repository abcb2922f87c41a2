"""Parts of a computation on several threads at once, in Numba."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numba
import numpy as np
from numba import njit, prange

numba.config.THREADING_LAYER_PRIORITY = ["omp", "tbb", "workqueue"]
"""OpenMP's threads spin for a while after their work, and begin the next within 2 microseconds. Those of
Numba's own work queue and of a ThreadPoolExecutor sleep, and take 30 to 45 microseconds to wake."""


def split(count: int, parts: int, step: int = 1) -> list[tuple[int, int]]:
    """The range of `count` in at most `parts` ranges that begin at multiples of `step`.

    >>> split(100, 2, 14)
    [(0, 56), (56, 100)]
    """
    steps = -(-count // step)
    ends = [min(-(-steps * part // parts) * step, count) for part in range(parts + 1)]
    return [(first, last) for first, last in pairwise(ends) if first < last]


def on_threads(run: Callable) -> Callable:
    """Compiled: ``run(part, *arguments)`` for each row of the array `parts`, all rows at the same time."""

    @njit(parallel=True, nogil=True)
    def run_all(parts, *arguments):
        for number in prange(len(parts)):
            run(parts[number], *arguments)

    return run_all


def run_parts(function: Callable, parts, *arguments) -> None:
    """The only part, or all parts by a function of `on_threads`."""
    parts = np.asarray(parts)
    function(parts if len(parts) > 1 else parts[0], *arguments)
