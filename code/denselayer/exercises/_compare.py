"""Whether two values are the same: exactly, or up to rounding."""

import numpy as np


def close(right, theirs, rtol, atol):
    """Whether two values are the same up to rounding, in shape and in every entry.

    Args:
        rtol: relative to the largest entry of ``right``; at least 2e-5 where float32 is in it.

    >>> close(np.ones((2, 1)), np.ones(2), 1e-7, 0), close((1.0, "a"), [1.0 + 1e-9, "a"], 1e-7, 0)
    (False, True)
    """
    if isinstance(right, dict | tuple | list):
        return same_kind(right, theirs) and all(
            close(a, b, rtol, atol) for a, b in zip(entries(right), entries(theirs), strict=True)
        )
    if not numeric(right):
        return bool(np.all(right == theirs))
    right, shape = np.asarray(right), shape_of(theirs)
    if shape != right.shape:
        return False
    theirs = np.asarray(theirs)
    if np.float32 in (right.dtype, theirs.dtype):
        rtol = max(rtol, 2e-5)
    scale = np.abs(right[np.isfinite(right)]).max(initial=0.0)
    with np.errstate(all="ignore"):
        return bool(np.allclose(theirs, right, rtol=0, atol=rtol * scale + atol, equal_nan=True))


def same(before, after):
    """Whether a value is bit for bit what it was.

    >>> same([1.0, 2.0], [2.0, 1.0]), same({"a": np.ones(2)}, {"a": np.ones(2)})
    (False, True)
    """
    if isinstance(before, np.ndarray):
        return (
            isinstance(after, np.ndarray)
            and before.shape == after.shape
            and np.array_equal(before, after, equal_nan=before.dtype.kind in "fc")
        )
    if isinstance(before, dict | list | tuple):
        return same_kind(before, after) and all(
            same(a, b) for a, b in zip(entries(before), entries(after), strict=True)
        )
    if isinstance(before, str | int | float | complex | np.generic):
        return before == after or (before != before and after != after)
    return True


def same_kind(a, b):
    """Whether two containers have the same keys or as many entries."""
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys()
    return isinstance(b, tuple | list | np.ndarray) and len(a) == len(b)


def entries(value):
    """The entries of a container, those of a dict in the order of its keys."""
    return [value[key] for key in sorted(value, key=str)] if isinstance(value, dict) else list(value)


def numeric(value):
    """Whether a value is a number or an array of numbers."""
    if isinstance(value, bool | str) or value is None:
        return False
    return (
        isinstance(value, np.ndarray | np.generic | int | float) and np.asarray(value).dtype.kind in "biufc"
    )


def shape_of(value):
    """The shape of what can be read as an array of numbers; None otherwise."""
    try:
        array = np.asarray(value)
    except ValueError:
        return None
    return array.shape if array.dtype.kind in "biufc" else None
