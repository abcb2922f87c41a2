"""The dense layer, forward and backward, in NumPy: the package of the book "The Dense Layer"."""

from . import agreement, cost, functional, gradcheck, layouts, nn, optim

__all__ = ["agreement", "cost", "functional", "gradcheck", "layouts", "nn", "optim"]
__version__ = "0.1.0"
