"""The dense layer, forward and backward, in NumPy: the package of the book "The Dense Layer"."""

import importlib

from . import (
    agreement,
    bench,
    cost,
    data,
    functional,
    fused,
    gradcheck,
    layouts,
    nn,
    optim,
    parallel,
    training,
)

__all__ = [
    "agreement",
    "bench",
    "cost",
    "data",
    "doctor",
    "exercises",
    "functional",
    "fused",
    "gradcheck",
    "layouts",
    "nn",
    "optim",
    "parallel",
    "training",
]
__version__ = "0.1.0"
LATE = ("doctor", "exercises")
"""Modules that are imported when they are first asked for: a training loop needs neither."""


def __getattr__(name):
    if name in LATE:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *LATE})
