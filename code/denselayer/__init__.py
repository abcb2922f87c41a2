"""The dense layer, forward and backward, in NumPy: the package of the book "The Dense Layer"."""

from importlib import import_module

from . import cost, functional, nn, optim

__all__ = ["agreement", "cost", "functional", "gradcheck", "layouts", "nn", "optim"]
__version__ = "0.1.0"

for _name in ("gradcheck", "layouts", "agreement"):
    try:
        globals()[_name] = import_module(f".{_name}", __name__)
    except ImportError:
        continue
