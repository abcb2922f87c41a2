"""Measure code so that the numbers can be trusted: in turn, in random order, every sample kept.

`compare` times callables of your own in this process. `run` times the variants of a suite in worker
processes. Both give Cases, whose variants are compared by the median of their paired ratios. `limits`
measures what the machine can do at most, and `stored` reads the samples that the book was written with.
"""

import time

from . import _timing
from ._limits import Limits, limits
from ._machine import Onlooker, machine
from ._runner import Job, Variant, run
from ._sample_files import load, save, stored
from ._samples import Case, Ratio, Samples, geometric_mean
from ._validate import choice, complaint, describe, number
from ._validate import count as whole
from ._workers import Unsupported

__all__ = [
    "Case",
    "Job",
    "Limits",
    "Ratio",
    "Samples",
    "Unsupported",
    "Variant",
    "compare",
    "geometric_mean",
    "limits",
    "load",
    "machine",
    "run",
    "save",
    "stored",
]


def compare(
    functions,
    *,
    rounds=15,
    clock="wall",
    min_seconds=0.01,
    seed=0,
    operations=None,
    traffic=None,
    name="comparison",
):
    """Time callables against each other, in this process.

    Each callable runs once to warm up. Then, in each round, all of them are timed in an order drawn anew, so
    that what drifts on the machine meets all alike. A short callable is called many times for one sample. The
    garbage collector is off meanwhile.

    Args:
        functions: a dict, name to callable without arguments.
        rounds: samples of each callable.
        clock: ``"wall"``; or ``"cpu"``, the processor time of all threads of this process, which other
            programs disturb less.
        min_seconds: how long a sample takes at least.
        seed: of the orders.
        operations: arithmetic operations of one call, if rates are wanted.
        traffic: bytes that one call must move, if bounds are wanted.
        name: of the Case.

    Returns:
        A Case; prints as a table.

    Raises:
        TypeError: ``functions`` is no dict of callables.
        ValueError: it is empty, or a setting makes no sense.

    Source:
        T. Hoefler and R. Belli, "Scientific benchmarking of parallel computing systems", SC 2015.

    >>> case = compare({"short": lambda: sum(range(10)), "long": lambda: sum(range(9999))}, min_seconds=1e-4)
    >>> case.ratio("long", "short").low > 1
    True
    """
    functions = _callables(functions)
    choice("compare", "clock", clock, tuple(_timing.CLOCKS))
    rounds = whole("compare", "rounds", rounds)
    if rounds == 0:
        raise ValueError(complaint("compare", "rounds is 0", "1 or more", "Take 15."))
    min_seconds = number("compare", "min_seconds", min_seconds, low=0)
    loops = {key: _timing.calibrate(function, min_seconds) for key, function in functions.items()}
    times = {key: [] for key in functions}
    others, onlooker = [], Onlooker()
    for order in _timing.orders(functions, rounds, seed):
        start = time.process_time()
        for key in order:
            nanoseconds = _timing.sample(functions[key], loops[key], clock)
            times[key].append(max(nanoseconds, 1) / 1e9)
        others.append(onlooker.look(time.process_time() - start))
    known = None if None in others else tuple(others)
    facts = {"operations": operations, "traffic": traffic, "others": known}
    return Case(name, times, threads=machine()["threads"], clock=clock, **facts)


def _callables(functions):
    if not isinstance(functions, dict) or not all(map(callable, functions.values())):
        came = describe(functions) if not isinstance(functions, dict) else "a dict with other values"
        advice = "Pass {'plain': lambda: f(x), 'fused': lambda: g(x)}."
        raise TypeError(complaint("compare", f"functions is {came}", "a dict of callables", advice))
    if not functions:
        raise ValueError(complaint("compare", "functions is empty", "one callable or more", "Name them."))
    return dict(functions)
