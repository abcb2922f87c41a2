"""An exception in a student's code: at which of the student's lines, and what it means in plain words."""

import ast
import linecache
import re
import traceback
from dataclasses import dataclass

import numpy as np

from .._validate import article

MISMATCH = re.compile(r"size (\d+) is different from (\d+)|shapes (\(.*?\)) and (\(.*?\)) not aligned")
AXIS_ERROR = np.exceptions.AxisError if hasattr(np, "exceptions") else np.AxisError
STILL_BLANK = "A blank `...` is still in use."
COMPLAINT = re.compile(r"[\w.]+: .*; expected ")
BROADCAST = re.compile(r"could not be broadcast|non-broadcastable|could not broadcast")


@dataclass(frozen=True)
class Accident:
    """Where it happened in the student's file, what happened there, and what it means."""

    line: int
    source: str
    message: str
    cause: str

    @property
    def blank(self) -> bool:
        """Whether it happened because a blank was left."""
        return self.cause.endswith(STILL_BLANK)

    @property
    def headline(self):
        where = f"Line {self.line} raises" if self.line else "Your code raises"
        kind, _, text = self.message.partition(": ")
        if any(pattern.search(text) for pattern in (MISMATCH, BROADCAST)):
            text = "the shapes do not fit."
        return f"{where} {article(kind)}: {text}"

    @property
    def details(self):
        code = (f"    {self.source}",) if self.source else ()
        return (*code, *([self.cause] if self.cause else []))


def accident(error, filenames) -> Accident:
    """Find the student's own line in a traceback: the last frame in one of the student's files.

    Args:
        error: the exception, with its traceback.
        filenames: the names of the files or notebook cells that the student wrote.
    """
    message = f"{type(error).__name__}: {str(error).strip() or 'no message'}".splitlines()[0]
    if isinstance(error, SyntaxError) and error.filename in filenames:
        return Accident(
            error.lineno or 0, (error.text or "").strip(), message, "Python cannot read this line."
        )
    frames = [
        (frame, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename in filenames
    ]
    if not frames:
        return Accident(0, "", message, _cause(error, "", {}))
    frame, line = frames[-1]
    source = linecache.getline(frame.f_code.co_filename, line).strip()
    arrays = _arrays(source, frame.f_locals)
    return Accident(line, source, message, _cause(error, source, arrays))


def _arrays(source, variables):
    """The shapes of the arrays that a line of code names."""
    try:
        names = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
    except SyntaxError:  # a line of a longer statement
        names = set(re.findall(r"[A-Za-z_]\w*", source))
    found = {}
    for name in sorted(names, key=lambda name: source.find(name)):
        value = variables.get(name)
        if isinstance(value, np.ndarray):
            found[name] = value.shape
    return found


def _cause(error, source, arrays):
    shapes = ", ".join(f"{name} {shape}" for name, shape in arrays.items())
    here = f"The shapes here: {shapes}. " if shapes else ""
    text = str(error)
    if COMPLAINT.match(text):  # a message of the package says all itself
        return here.strip()
    if isinstance(error, ValueError) and MISMATCH.search(text):
        return (
            f"{here}In a product A @ B the last axis of A and the first axis of B must be equally long: "
            "is one of the two to be transposed, or are they in the wrong order?"
        )
    if isinstance(error, ValueError) and "enough dimensions" in text:
        return f"{here}One side of @ has no axis: it is a single number or None there."
    if isinstance(error, ValueError) and BROADCAST.search(text):
        return (
            f"{here}Shapes are compared from the right; two axes fit if they are equal or one of them is 1."
        )
    if isinstance(error, ValueError) and "unpack" in text:
        return f"{here}The number of names on the left is not the number of values on the right."
    if isinstance(error, ValueError) and "reshape" in text:
        return f"{here}A reshape keeps the number of entries."
    for kind, sentence in CAUSES.items():
        if isinstance(error, kind):
            return here + sentence(text)
    return here.strip()


def _name(text):
    found = re.search(r"name '(\w+)'", text)
    name = found[1] if found else "this name"
    return f"`{name}` has no value there: is it misspelt, or made only in another cell or function?"


def _attribute(text):
    if "'ellipsis'" in text:
        return STILL_BLANK
    if "'NoneType'" in text:
        return "Something is None there: a function that returns nothing gives None."
    return "The object has no such attribute: look at its type and at the spelling."


def _type(text):
    if "ellipsis" in text:
        return STILL_BLANK
    if "NoneType" in text:
        return "Something is None there: a function that returns nothing gives None."
    if "positional argument" in text or "unexpected keyword" in text:
        return "The function is called with other arguments than its definition names."
    return "The operation does not exist for these types."


CAUSES = {
    UnboundLocalError: lambda text: (
        "The name gets its value in this function only further down, or in a branch that was not taken."
    ),
    NameError: _name,
    AttributeError: _attribute,
    TypeError: _type,
    AXIS_ERROR: lambda text: "The array has fewer axes than this.",
    IndexError: lambda text: "An index lies outside; the first entry has the index 0.",
    KeyError: lambda text: "There is no such key.",
    ZeroDivisionError: lambda text: "Something is divided by zero.",
    RecursionError: lambda text: "A function calls itself without an end.",
    ModuleNotFoundError: lambda text: "This module is not installed here.",
    MemoryError: lambda text: "An array is far too large: look at its shape.",
    SystemExit: lambda text: "The code ends the program. A function returns instead.",
    NotImplementedError: lambda text: "This part is still to be written.",
}
"""Kind of exception to a function from its text to a plain cause; the first that fits."""
