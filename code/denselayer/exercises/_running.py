"""What a function does while it runs: how many of its own lines, whether it loops, and what it calls."""

import sys
from pathlib import Path

from ._blanks import filenames_of
from ._checks import Fault

PACKAGE = str(Path(__file__).parents[1] / "_")[:-1]  # with its separator: a student's folder may begin alike
ALLOWED = 10
"""Lines more than for small arrays that are no loop yet, such as a branch."""


def _watched(function, arguments, look):
    """Call a function; let ``look`` see every line and call in the file that it was written in."""
    names = filenames_of([function if hasattr(function, "__code__") else type(function)])

    def trace(frame, event, _):
        if frame.f_code.co_filename not in names:
            return None
        look(frame.f_code, event)
        return trace

    return _traced(function, arguments, trace)


def _traced(function, arguments, trace):
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return function(*arguments)
    finally:
        sys.settrace(before)


def lines_run(function, arguments) -> int:
    """How many lines of a function's own file run in one call; a new call counts as a line.

    >>> import textwrap
    >>> lines_run(textwrap.dedent, ["no line of this file"]) > 0
    True
    """
    seen = []
    _watched(function, arguments, lambda code, event: seen.append(event in ("line", "call")))
    return sum(seen)


def calls_run(function, arguments, name) -> tuple[object, int]:
    """The result of a function, and how often it has called the function of a name in its own file.

    >>> import textwrap
    >>> calls_run(textwrap.fill, ["two words", 5], "wrap")
    ('two\\nwords', 1)
    """
    calls = []

    def look(code, event):
        if event == "call" and code.co_name == name:
            calls.append(name)

    return _watched(function, arguments, look), len(calls)


def package_run(function, arguments) -> str:
    """The name of the first function of this package that a call of a function runs; empty if none.

    >>> import numpy as np
    >>> from denselayer import functional as F
    >>> package_run(lambda z: F.relu(z), [np.ones(2)]), package_run(lambda z: z, [np.ones(2)])
    ('relu', '')
    """
    found = []

    def trace(frame, event, _):
        if frame.f_code.co_filename.startswith(PACKAGE):
            found.append(frame.f_code.co_qualname)

    _traced(function, arguments, trace)
    named = [name for name in found if "<" not in name]  # not the wrapper of a decorator
    return (named or found or [""])[0]


def loops(function, small, large) -> bool:
    """Whether a function loops over something that the large `Case` has more of than the small one."""
    few, many = (lines_run(function, case.fresh()) for case in (small, large))
    return many - few > ALLOWED


def without_loop(small, large, name, at=0):
    """A test for `Property`: the function at a place of the answer does not loop.

    Args:
        small, large: functions that give a `Case` each.
        name: of the function, as the exercise calls it.
        at: which of the functions of the answer.
    """

    def test(*functions):
        if not loops(functions[at], small(), large()):
            return None
        headline = f"`{name}` loops in Python: it runs more lines for a large batch than for a small one."
        advice = "A comprehension, a `map` and `np.vectorize` are loops too. Let NumPy run over all axes."
        return Fault("values", headline, (advice,), finding="loop")

    return test


def with_loop(small, large, name, at=0):
    """A test for `Property`: the function at a place of the answer loops; arguments as `without_loop`."""

    def test(*functions):
        if loops(functions[at], small(), large()):
            return None
        headline = f"`{name}` runs as many lines for many inputs as for few: it has no loop."
        return Fault("values", headline, ("Add one product after the other.",), finding="no loop")

    return test


def without_package(case, name, at=0):
    """A test for `Property`: the function at a place of the answer calls nothing of this package."""

    def test(*functions):
        called = package_run(functions[at], case().fresh())
        if not called:
            return None
        headline = f"`{name}` calls `{called}` of the package; here it is to be written without."
        return Fault("values", headline, finding="package called")

    return test
