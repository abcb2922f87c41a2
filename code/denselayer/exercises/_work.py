"""Files to work in: one for each exercise, with the question on top, checked in a child process."""

import ast
import math
from pathlib import Path

import numpy as np

from .. import _child
from . import _state
from ._feedback import STATUSES, Feedback
from ._number import literal
from ._registry import get
from ._show import wrapped

WIDTH = 88
LARGEST = 2**20
"""Bytes of an answer that is read."""


def work_file(exercise) -> Path:
    """Where the answer to an exercise belongs."""
    return _state.folder() / f"{exercise.id}.py"


def start(exercise) -> Path:
    """Write the file to work in.

    Raises:
        FileExistsError: it is there already.
        OSError: it cannot be written.
    """
    path = work_file(exercise)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("x", encoding="utf-8") as file:
        file.write(page(exercise))
    return path


def page(exercise) -> str:
    """The question as a comment, how to go on, and the answer with its blanks."""
    command = "python -m denselayer exercises"
    lines = [f"{exercise.id}: {exercise.title}", "", *exercise.plain["prompt"].strip().splitlines(), ""]
    lines += [f"Check it:  {command} check {exercise.id}", f"A hint:    {command} hint {exercise.id}"]
    comment = [f"# {piece}".rstrip() for line in lines for piece in wrapped(line, WIDTH - 2)]
    return "\n".join([*comment, "", blank_answer(exercise)]) + "\n"


def blank_answer(exercise) -> str:
    """What is to be filled in; the text of an explanation goes between the quotes."""
    if exercise.kind == "explain":
        return f'{exercise.entry} = """\n...\n"""'
    return exercise.starter


def read(path) -> str:
    """The text of a file that holds an answer, as far as it is text.

    Raises:
        OSError: there is no such file, or it is far too large.
    """
    path = Path(path)
    if path.stat().st_size > LARGEST:
        raise OSError(f"{path} is far too large for an answer")
    return path.read_text(encoding="utf-8-sig", errors="replace")


def is_blank(exercise, text) -> bool:
    """Whether a file is as it was handed out, apart from comments and empty lines.

    >>> is_blank(get("dense-count"), "# a comment\\n" + get("dense-count").starter)
    True
    """
    try:
        return ast.dump(ast.parse(text)) == ast.dump(ast.parse(blank_answer(exercise)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def check_file(exercise, path, *, points=None, seconds=_child.SECONDS, stop=None):
    """Check the answer in a file, in a child process with limits.

    Args:
        exercise: an Exercise.
        path: the file.
        points: for an explanation, the numbers of the points that the text makes.
        seconds: how long it may take.
        stop: a `threading.Event` that ends it.

    Returns:
        The Feedback, and the `Ending` of the child, which has what the file printed.
    """
    arguments = {"identifier": exercise.id, "points": points}
    ending = _child.run(f"{__name__}:examine", path, arguments, seconds=seconds, stop=stop)
    if not ending.finished:
        finding = "" if ending.kind in ("refused", "failed", "never started") else ending.kind
        details = (ending.advice, *ending.notes)
        said = tuple(detail for detail in details if detail)
        return Feedback(exercise.id, "error", ending.sentence, said, finding=finding), ending
    return feedback_from(exercise, ending.value), ending


def feedback_from(exercise, plain) -> Feedback:
    """The Feedback that `Feedback.to_json` has made plain; one that says so if it makes no sense."""
    try:
        texts = {name: str(plain[name]) for name in ("status", "headline", "example", "finding")}
        lists = {name: tuple(map(str, plain[name])) for name in ("details", "points")}
    except (TypeError, KeyError):
        texts = {"status": ""}
    if texts["status"] not in STATUSES:
        return Feedback(exercise.id, "error", "The check of this answer came to no result that makes sense.")
    return Feedback(exercise.id, **texts, **lists)


def examine(module, identifier, points):
    """In the child: check what the file binds to the names of the exercise."""
    from .._child_side import find

    exercise = get(identifier)
    answers = [find(module, name.strip()) for name in exercise.entry.split(",")]
    more = {} if points is None else {"points": points}
    return exercise.check(*answers, **more).to_json()


def as_source(exercise, answers) -> str:
    """Values as the source of an answer.

    >>> as_source(get("dense-count"), [{"parameters": np.int64(3), "biases": "3/4"}])
    "dense_count = {'parameters': 3, 'biases': '3/4'}"
    """
    answers = [_plain(answer) for answer in answers]
    value = answers[0] if len(answers) == 1 else tuple(answers)
    if isinstance(value, str) and "\n" in value:
        return f"{exercise.entry} = {_long_text(value)}"
    return f"{exercise.entry} = {'...' if value is ... else repr(value)}"


def _plain(value):
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(map(_plain, value)) if type(value) in (tuple, list) else [*map(_plain, value)]
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or value is ... or isinstance(value, str | int | float | complex):
        return value
    return ast.literal_eval(literal(value)) if type(value).__name__ == "Fraction" else str(value)


def _long_text(text):
    quoted = '"""' + text.replace("\\", "\\\\").replace('"', '\\"') + '"""'
    return quoted if ast.literal_eval(quoted) == text else repr(text)
