"""One protocol for everything that has a forward and a backward pass, so that probes are written once."""

import inspect
from typing import Literal, Protocol

import numpy as np

from .._validate import complaint, describe
from ._functions import function_subject
from ._objects import CannotExamineError, build, object_subject, passes_of

Storage = Literal["out_in", "in_out", "augmented"]


class Subject(Protocol):
    """A layer, an activation or a small network, whoever wrote it and in whatever spelling.

    Attributes:
        names: its parameters, such as ``("weight", "bias")`` or ``("W1", "b1", "W2", "b2")``, as the person
            calls them.
        storage: how the weight is stored, found by running; None where there is no single weight.
        batch_axis: 0 where a sample is a row of x, 1 where it is a column.
        in_features: how many features a sample has; for an activation any number will do.
        description: the subject in words.
        has_zero_grad: whether the person has a method that clears gradients.
    """

    names: tuple[str, ...]
    storage: Storage | None
    batch_axis: int
    in_features: int
    description: str
    has_zero_grad: bool

    def params(self) -> dict[str, np.ndarray]:
        """Copies of the parameters."""

    def load(self, params: dict[str, np.ndarray]) -> None:
        """Put copies of these values into the parameters."""

    def draw_input(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw an input of n samples, in the shape and dtype of the subject."""

    def forward(self, x) -> np.ndarray:
        """Run the forward pass on the very array x, and return the very output."""

    def backward(self, d_out) -> dict[str, np.ndarray | None]:
        """Run the backward pass; return ``{"x": ..., name: ...}``, the very arrays, None where missing."""

    def zero_grad(self) -> None:
        """Clear the gradients, where the person has a method for that."""

    def another(self) -> "Subject | None":
        """A second one, for state that is shared by accident; None if impossible."""

    def clone(self) -> "Subject":
        """This one as it was handed over, with the parameters of now and nothing kept of earlier calls."""

    def fresh(self, *, in_features=None, out_features=None, dtype=None) -> "Subject | None":
        """One of another shape or dtype; None if it cannot be made."""


def _of_one_object(forward, backward):
    """Whether two functions are the methods of one object by which it is examined."""
    owner = getattr(forward, "__self__", None)
    if owner is None or owner is not getattr(backward, "__self__", None) or inspect.isclass(owner):
        return False
    return passes_of(owner) == (forward.__name__, backward.__name__)


def subject_of(layer, backward=None, *, params=None, x=None) -> Subject:
    """Make a subject of whatever a person has.

    Args:
        layer: a class, an object with a forward and a backward pass, or a forward function.
        backward: the backward function, where ``layer`` is a function.
        params: the parameters of the functions: a dict, list or tuple of arrays.
        x: an input, where none can be found by trying.

    Raises:
        CannotExamineError: nothing runs.
    """
    if backward is not None and _of_one_object(layer, backward):
        subject = object_subject(layer.__self__, x)
    elif backward is not None:
        subject = function_subject(layer, backward, params, x)
    elif inspect.isclass(layer):
        subject = build(layer, x)
    elif callable(layer) and not hasattr(layer, "backward") and inspect.isroutine(layer):
        advice = "Pass the backward pass too: diagnose_layer(forward, backward)."
        expected = "a class, an object, or two functions"
        raise CannotExamineError(
            complaint("diagnose_layer", f"one function came, {layer.__name__}", expected, advice)
        )
    elif layer is None or isinstance(layer, np.ndarray | str | int | float):
        advice = "Pass the class or the object itself."
        raise CannotExamineError(
            complaint(
                "diagnose_layer", f"{describe(layer)} came", "a class, an object, or two functions", advice
            )
        )
    else:
        subject = object_subject(layer, x)
    return subject
