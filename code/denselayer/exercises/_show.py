"""Arrays and other values as short text that a person can follow by hand."""

import re
import textwrap

import numpy as np

LEAD = re.compile(r"(- |[✓✎✗○] |\[.\] \d+\. |\d+\. )?")
"""What may stand before the words of a line: the others stand below the first word."""
LARGEST = 12
"""Entries that still make an example for pencil and paper."""


def shown(value, digits=6) -> str:
    """A value as short text, its numbers with so many digits at most.

    >>> shown(np.array([[1.0, -2.5]])), shown(np.float32(3)), shown((2, None))
    ('[[1, -2.5]]', '3', '(2, None)')
    """
    if isinstance(value, np.ndarray):
        return _array(value, digits)
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, float | np.floating):
        return f"{float(value):.{digits}g}"
    if isinstance(value, complex | np.complexfloating):
        sign = "-" if value.imag < 0 else "+"
        return f"{value.real:.{digits}g} {sign} {abs(value.imag):.{digits}g}j"
    if isinstance(value, np.random.Generator):
        return "a random generator"
    if isinstance(value, tuple | list):
        inner = ", ".join(shown(entry, digits) for entry in value)
        return f"({inner}{',' * (len(value) == 1)})" if isinstance(value, tuple) else f"[{inner}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {shown(entry, digits)}" for key, entry in value.items()) + "}"
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    if isinstance(value, str | type(None)) or value is ...:
        return repr(value)
    text = repr(value)
    return f"a {type(value).__name__}" if " at 0x" in text else text


def _array(array, digits):
    if array.ndim == 0:
        return shown(array[()], digits)
    if array.size == 0:
        return f"an empty array of shape {array.shape}"
    if array.size > LARGEST:
        return f"an array of shape {array.shape}"
    return "[" + ", ".join(shown(entry, digits) for entry in array) + "]"


def size(value) -> int:
    """How many numbers a value holds.

    >>> size((np.ones((2, 3)), 4.0))
    7
    """
    if isinstance(value, np.ndarray):
        return value.size
    if isinstance(value, tuple | list):
        return sum(map(size, value))
    if isinstance(value, dict):
        return sum(map(size, value.values()))
    return 1


def listed(words) -> str:
    """Words as a list in a sentence.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def wrapped(line, width) -> list[str]:
    """A line in pieces of a width; what follows stands below the first word, and code is left as it is.

    >>> wrapped("- one two three four five", 20)
    ['- one two three four', '  five']
    """
    indent = len(line) - len(line.lstrip())
    if len(line) <= width or indent >= 4:
        return [line]
    options = {"break_long_words": False, "break_on_hyphens": False}
    hang = " " * (indent + len(LEAD.match(line.lstrip())[0]))
    return textwrap.wrap(line, max(width, 20), subsequent_indent=hang, **options) or [""]
