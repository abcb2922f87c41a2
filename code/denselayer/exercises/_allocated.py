"""How much memory a call takes at its worst moment: whether an answer works in small pieces."""

import tracemalloc


def peak_bytes(function, *arguments) -> int:
    """The most bytes that were allocated at once during a call, besides what was there before.

    >>> peak_bytes(bytearray, 100_000) > 100_000
    True
    """
    already = tracemalloc.is_tracing()
    if not already:
        tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        function(*arguments)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        if not already:
            tracemalloc.stop()
