"""The dense layer, forward and backward, in NumPy: the package of the book "The Dense Layer"."""

from . import (
    agreement,
    bench,
    cost,
    data,
    doctor,
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
