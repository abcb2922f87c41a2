"""The BLAS that NumPy carries: which kernel it chose, on how many threads, and a limit to them.

NumPy has no call for this. Its wheels carry OpenBLAS as a shared library that is already loaded, and ctypes
finds its symbols there. Where NumPy came with another BLAS, everything here says "unknown" or does nothing.
"""

import contextlib
import ctypes
import functools
import os
import threading
from pathlib import Path

import numpy as np

UNKNOWN = "unknown"

_SPELLINGS = ("scipy_{}64_", "scipy_{}", "{}64_", "{}")
"""OpenBLAS with the prefix and the suffix of NumPy's wheels, and without them."""


@functools.cache
def _library():
    """The shared library of NumPy's OpenBLAS, or None."""
    place = Path(np.__file__).parent
    folders = (place.parent / "numpy.libs", place / ".dylibs")
    for path in sorted(path for folder in folders for path in folder.glob("*openblas*")):
        with contextlib.suppress(OSError):
            return ctypes.CDLL(str(path))
    return None


@functools.cache
def _function(name, result=ctypes.c_int):
    """A function of OpenBLAS by its plain name, or None."""
    for spelling in _SPELLINGS:
        found = getattr(_library(), spelling.format(name), None)
        if found is not None:
            found.restype = result
            return found
    return None


def _text(name):
    function = _function(name, ctypes.c_char_p)
    return function().decode() if function else UNKNOWN


@functools.cache
def kernel():
    """Name of the processor for which OpenBLAS chose its kernels, such as "SkylakeX".

    >>> isinstance(kernel(), str)
    True
    """
    return _text("openblas_get_corename")


@functools.cache
def version():
    """Version and build of OpenBLAS, such as "OpenBLAS 0.3.31 ..."."""
    return _text("openblas_get_config")


def threads():
    """Number of threads that a product of two matrices may use.

    >>> threads() >= 1
    True
    """
    function = _function("openblas_get_num_threads")
    return int(function()) if function else os.cpu_count() or 1


def set_threads(number):
    """Let the BLAS use so many threads from now on; False where it cannot be told."""
    function = _function("openblas_set_num_threads")
    if function is None:
        return False
    function(number)
    return True


_lock = threading.Lock()
_limits = []
_unlimited = 1


@contextlib.contextmanager
def limit_threads(number):
    """Let the BLAS use so many threads inside of a ``with`` block, in the whole process.

    Blocks of several threads of Python may overlap: the smallest of their numbers holds, and the last to
    leave puts the first number back. (``openblas_set_num_threads_local`` is no way around this: in builds
    of OpenBLAS with threads of its own, such as NumPy's wheels, it sets the number of the whole process.)

    >>> with limit_threads(1):
    ...     inside = threads()
    """
    global _unlimited
    with _lock:
        if not _limits:
            _unlimited = threads()
        _limits.append(number)
        set_threads(min(_limits))
    try:
        yield
    finally:
        with _lock:
            _limits.remove(number)
            set_threads(min(_limits, default=_unlimited))
