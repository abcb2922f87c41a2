"""Time one callable, or several in turn: warm-up, inner repetitions, random order in each round."""

import gc
import math
import random
import time
from contextlib import contextmanager

CLOCKS = {"wall": time.perf_counter_ns, "cpu": time.process_time_ns}


@contextmanager
def no_collection():
    """Keep the garbage collector away for a while."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def elapsed(function, loops, clock="wall"):
    """Whole nanoseconds that ``loops`` calls take together."""
    now = CLOCKS[clock]
    start = now()
    for _ in range(loops):
        function()
    return now() - start


def calibrate(function, min_seconds):
    """Call ``function`` once to warm it up, then find how many calls last ``min_seconds``.

    >>> calibrate(lambda: time.sleep(0.002), 0.001)
    1
    """
    function()
    gc.collect()
    wanted, loops = min_seconds * 1e9, 1
    while (spent := elapsed(function, loops)) < wanted:
        guess = math.ceil(1.2 * loops * wanted / max(spent, 1))
        loops = max(loops + 1, min(guess, 20 * loops))
    return loops


def sample(function, loops, clock="wall"):
    """Nanoseconds of one call, averaged over ``loops`` calls; a few calls before it refill the caches."""
    with no_collection():
        if loops > 1:
            elapsed(function, max(1, loops // 10))
        return round(elapsed(function, loops, clock) / loops)


def orders(names, rounds, seed):
    """A random order of ``names`` for each round.

    >>> [len(order) for order in orders("abc", 2, seed=0)]
    [3, 3]
    """
    draw = random.Random(f"{seed}")
    return [draw.sample(list(names), len(names)) for _ in range(rounds)]
