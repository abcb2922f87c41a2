"""What a machine can do at most: operations per second, and bytes per second from each level of memory."""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from . import _blas, _machine
from ._runner import Job, Variant, run
from ._samples import Samples
from ._table import html_table, text_table
from ._validate import complaint, float_dtype
from ._validate import count as whole
from .cost import least_seconds

SIDES = (256, 512, 1024)
"""Sides of the square products whose best rate stands for the peak; a smaller one is done more often."""
KINDS = ("read", "copy", "add")
CALL = "{}, the call alone"
WANTED = 256 * 2**20
"""Bytes that a sample of a shared level moves, so that handing work to threads does not count."""
MEMORY = "DRAM"


@dataclass(frozen=True)
class Limits:
    """What a machine can do at most with a number of threads, and the least time that leaves for some work.

    Attributes:
        peak: dtype to operations per second.
        source: what the peak was measured with: ``"fma"``, multiply-adds in registers, or ``"gemm"``, the
            best matrix product, which stays a little below.
        bandwidth: level to bytes per second, the best of reading, copying and adding.
        capacity: level to bytes; infinite for ``"DRAM"``.

    >>> limits = Limits(1, {"float32": 100e9}, "fma", {"L2": 50e9, "DRAM": 10e9}, {"L2": 2**20})
    >>> limits.level(2**20), limits.level(2**21)
    ('L2', 'DRAM')
    >>> limits.bound(operations=2e9, traffic=100e6)
    0.02
    """

    threads: int
    peak: dict
    source: str
    bandwidth: dict
    capacity: dict

    @classmethod
    def of(cls, samples, threads=1):
        """The limits that samples of the suite "limits" show for a number of threads.

        Args:
            samples: what `limits_samples` or ``stored("limits")`` gives.
            threads: one of the numbers that were measured.

        Raises:
            ValueError: this number was not measured.
        """
        peaks = [case for case in samples.select(name="peak", threads=threads) if case.seconds]
        if not peaks:
            known = ", ".join(map(str, samples.threads)) or "none"
            came = f"the limits of {threads} threads were not measured"
            raise ValueError(complaint("Limits.of", came, f"one of {known}", "Measure them with limits."))
        source = "fma" if all("fma" in case.seconds for case in peaks) else "gemm"
        peak = {case.dtype: case.operations / _fastest(case, source) for case in peaks}
        bandwidth, capacity = {}, {}
        for level, sizes in _levels(samples):
            shared = [case for case in sizes if case.threads == threads]
            factor = 1 if shared else threads
            [case] = shared or [case for case in sizes if case.threads == 1]
            bandwidth[level] = factor * max(_rate(case, kind) for kind in KINDS)
            capacity[level] = factor * (case.shape.get("capacity") or math.inf)
        return cls(threads, peak, source, bandwidth, capacity)

    def level(self, nbytes) -> str:
        """The smallest level of memory that holds so many bytes."""
        fitting = [level for level in self.bandwidth if nbytes <= self.capacity.get(level, math.inf)]
        return min(fitting, key=lambda level: self.capacity.get(level, math.inf))

    def bound(self, operations, traffic, dtype="float32") -> float:
        """Least seconds for a piece of work whose ``traffic`` in bytes lies in the level that holds it."""
        name = str(float_dtype("bound", dtype))
        return least_seconds(operations, traffic, self.peak[name], self.bandwidth[self.level(traffic)])

    def _table(self):
        rows = [[f"peak {name} ({self.source})", f"{rate / 1e9:.0f} G/s"] for name, rate in self.peak.items()]
        rows += [[f"bandwidth {name}", f"{rate / 1e9:.0f} GB/s"] for name, rate in self.bandwidth.items()]
        return ["limit", f"{self.threads} thread{'s' * (self.threads != 1)}"], rows

    def __str__(self):
        return text_table(*self._table())

    def _repr_markdown_(self):
        return html_table("measured", "Limits of this machine", *self._table())


def limits(threads=1, *, dtypes=("float32", "float64"), rounds=9, min_seconds=0.02):
    """Measure what this machine can do, with NumPy alone.

    The peak is the best rate of square matrix products; a loop of nothing but multiply-adds would come a
    little above it, but NumPy has none. Bandwidth is read with ``np.dot`` of two arrays, copied with
    ``np.copyto``, and added with ``np.add`` into a third, without the time of the call itself. Levels that
    every core has for itself are measured on one thread and multiplied.

    Args:
        threads: how many.
        dtypes: for the peak.
        rounds: how often each is measured; the fastest round counts.
        min_seconds: how long a sample takes at least.

    Returns:
        A Limits; prints as a table.

    Source:
        S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model for
        multicore architectures", CACM 52 (2009); J. D. McCalpin, "Memory bandwidth and machine balance in
        current high performance computers", IEEE TCCA Newsletter, December 1995.

    >>> found = limits(dtypes=["float32"], rounds=1, min_seconds=0)
    >>> found.threads, found.peak["float32"] > 0, "DRAM" in found.bandwidth
    (1, True, True)
    """
    samples = limits_samples([threads], dtypes=dtypes, rounds=rounds, min_seconds=min_seconds)
    failed = [reason for case in samples.cases for reason in case.failed.values()]
    if failed:
        raise RuntimeError(f"limits could not be measured: {failed[0]}")
    return Limits.of(samples, threads)


def limits_samples(threads=(1,), *, progress=lambda text: None, **options) -> Samples:
    """The raw samples behind `limits`, for several numbers of threads; options as there."""
    wanted = [whole("limits", "threads", number) for number in threads]
    if 0 in wanted or not wanted:
        raise ValueError(complaint("limits", f"threads is {wanted}", "1 or more", "Take 1."))
    return run("limits", limits_jobs(wanted, **options), progress=progress)


def limits_jobs(threads, *, dtypes=("float32", "float64"), rounds=9, min_seconds=0.02, peaks=()):
    """The jobs behind `limits`; ``peaks`` are further variants that do `operations_of_peak` operations."""
    jobs = []
    common = {"rounds": rounds, "min_seconds": min_seconds}
    gemms = [Variant(f"gemm {side}", __name__, "product", "numpy", {"side": side}) for side in SIDES]
    for number in sorted({1, *threads}):
        clock = {"clock": "cpu" if number == 1 else "wall"}
        if number in threads:
            shape, variants = {"operations": operations_of_peak()}, (*gemms, *peaks)
            more = {"operations": operations_of_peak(), **common, **clock}
            jobs += [Job("peak", shape, variants, dtype, number, **more) for dtype in dtypes]
        for level, shape, shared in levels():
            if number == 1 or (shared and number in threads):
                more = {"traffic": shape["nbytes"] * shape["passes"], **common, **clock}
                jobs.append(Job(level, shape, _passes(), "float32", number, **more))
    return jobs


def operations_of_peak():
    """Operations of one call of every variant of the peak."""
    return 2 * max(SIDES) ** 3


def levels():
    """Levels of memory: name, shape of the job, and whether the cores share it."""
    sizes = {**(_machine.caches() or _machine.USUAL_CACHES)}
    names = sorted(sizes)
    for place, name in enumerate(names):
        last = place == len(names) - 1
        nbytes = sizes[name] // (4 if last else 2)
        yield name, _shape(nbytes, sizes[name], last), last
    yield MEMORY, _shape(max(4 * sizes[names[-1]], 2**26), None, True), True


def _shape(nbytes, capacity, shared):
    nbytes -= nbytes % 384
    passes = math.ceil(WANTED / nbytes) if shared else 100
    return {"nbytes": nbytes, "passes": passes, "capacity": capacity}


def _passes():
    variants = []
    for kind in KINDS:
        variants.append(Variant(kind, __name__, "passes", "numpy", {"kind": kind}))
        alone = {"kind": kind, "alone": True}
        variants.append(Variant(CALL.format(kind), __name__, "passes", "numpy", alone))
    return tuple(variants)


def product(shape, dtype, threads, side):
    """Square products, so many that they take ``shape["operations"]`` operations."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, side, side)).astype(dtype)
    out, times = np.empty_like(a), shape["operations"] // (2 * side**3)

    def call():
        for _ in range(times):
            np.matmul(a, b, out=out)
        return out

    return call


def passes(shape, dtype, threads, kind, alone=False):
    """Passes over ``shape["nbytes"]`` bytes in all, a share for each thread; over few if ``alone``."""
    arrays = {"read": 2, "copy": 2, "add": 3}[kind]
    length = 16 if alone else shape["nbytes"] // (arrays * threads * np.dtype(dtype).itemsize)
    times = shape["passes"]

    def share(parts):
        function = {"read": np.dot, "copy": np.copyto, "add": np.add}[kind]
        order = {"copy": parts[::-1]}.get(kind, parts)
        for _ in range(times):
            function(*order)

    everywhere = [[np.ones(length, dtype) for _ in range(arrays)] for _ in range(threads)]
    if threads == 1:
        return lambda: share(everywhere[0])
    pool = ThreadPoolExecutor(threads)

    def together():
        with _blas.limit_threads(1):
            return list(pool.map(share, everywhere))

    return together


def _levels(samples):
    names = list(dict.fromkeys(case.name for case in samples.cases if "passes" in case.shape))
    return [(name, [case for case in samples.select(name=name) if case.seconds]) for name in names]


def _fastest(case, source):
    names = [name for name in case.seconds if name.startswith(source)]
    return min(min(case.seconds[name]) for name in names)


def _rate(case, kind):
    """Bytes per second of the fastest round, without the time of the call; 0 if there is none."""
    if kind not in case.seconds:
        return 0.0
    best, call = min(case.seconds[kind]), min(case.seconds.get(CALL.format(kind), [0.0]))
    return case.traffic / (best - call) if best > call else 0.0
