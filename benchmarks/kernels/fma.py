"""The FMA peak: how many operations a second the processor does when it waits for nothing but itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from benchmarks.kernels.vectors import Emitter, lanes

CHAINS = 12
"""Independent sums: at least the latency of an FMA, in cycles, times the FMAs that start in one cycle."""


def peak(dtype: str = "float32", threads: int = 1, *, seconds: float = 0.02, rounds: int = 7) -> float:
    """Operations per second of multiply-adds that stay in registers, the best of a few rounds.

    One thread is timed by its own CPU time, so that other programs do not count. Several threads are timed by
    the clock on the wall.

    Args:
        dtype: ``"float32"`` or ``"float64"``.
        threads: how many threads compute at the same time.
        seconds: about how long a round takes.
        rounds: how many rounds.
    """
    spin = _spin(dtype)
    number = np.dtype(dtype).type(0)
    turns = 100_000
    turns = max(turns, int(turns * seconds / _seconds(lambda: spin(turns, number), time.thread_time)))
    operations = 2 * CHAINS * lanes(dtype) * turns * threads
    if threads == 1:
        return operations / min(
            _seconds(lambda: spin(turns, number), time.thread_time) for _ in range(rounds)
        )
    with ThreadPoolExecutor(threads) as pool:
        everywhere = [turns] * threads
        together = lambda: list(pool.map(spin, everywhere, [number] * threads))  # noqa: E731
        together()
        return operations / min(_seconds(together, time.perf_counter) for _ in range(rounds))


def _seconds(run: Callable[[], object], clock: Callable[[], float]) -> float:
    run()
    start = clock()
    run()
    return clock() - start


@cache
def _spin(dtype: str) -> Callable:
    """A compiled function of (turns, number) that does `turns` multiply-adds on each chain.

    The number is not known when it is compiled and the sum of all chains is returned, so that the compiler
    can neither fold the loop nor leave it out.
    """

    @intrinsic
    def chains(_, turns, number):
        def emit(context, builder: ir.IRBuilder, signature, arguments):
            turns, number = arguments
            v = Emitter(builder, dtype, lanes(dtype))
            factor = v.splat(number)
            totals = [v.variable(v.splat(ir.Constant(v.scalar, 1.0 + chain))) for chain in range(CHAINS)]
            with v.loop(turns):
                for total in totals:
                    v.add_product(total, builder.load(total), factor)
            for total in totals[1:]:
                v.add(totals[0], builder.load(total))
            return v.sum(builder.load(totals[0]))

        return number(types.intp, number), emit

    @njit(nogil=True)
    def spin(turns, number):
        return chains(turns, number)

    return spin
