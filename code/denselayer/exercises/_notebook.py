"""What a notebook calls: check, hint, solution, progress."""

from . import _state
from ._carried import whole_source
from ._feedback import Feedback
from ._registry import get
from ._work import as_source


class Words:
    """A text that a notebook shows as Markdown and a terminal as plain text."""

    def __init__(self, markdown, text):
        self.markdown = markdown
        self.text = text

    def __str__(self):
        return self.text

    __repr__ = __str__

    def _repr_markdown_(self):
        return self.markdown


def check(identifier, *answers, points=None) -> Feedback:
    """Check an answer, and remember it in the folder of the state.

    Args:
        identifier: the id of the exercise, as the book shows it.
        answers: a function or class for a code exercise (several if it names several); a number, a tuple
            or a dict by name for a number exercise; a text for an explanation.
        points: for an explanation, the numbers of the points of the rubric that your text makes.

    Returns:
        A Feedback; prints as text.

    Raises:
        ValueError: there is no exercise of this id.

    >>> check("dense-count", ...).status
    'not attempted'
    """
    exercise = get(identifier)
    if exercise.kind == "explain":
        answer = answers[0] if answers else ...
        feedback = exercise.check(answer, points)
    else:
        feedback = exercise.check(*answers)
    if feedback.status != "not attempted":
        _state.record(exercise, _source(exercise, answers), feedback)
    return feedback


def _source(exercise, answers):
    """The answer as source text, so that it can be checked again elsewhere."""
    if exercise.kind == "code":
        return whole_source(answers, exercise.names) if len(answers) == len(exercise.names) else ""
    return as_source(exercise, answers)


def hint(identifier) -> Words:
    """The next hint: one rung more of the ladder with every call.

    Args:
        identifier: the id of the exercise.

    >>> hint("nothing")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    ValueError: exercises: there is no exercise 'nothing'
    """
    exercise = get(identifier)
    rung = min(_state.take_hint(exercise), len(exercise.hints))
    head = f"Hint {rung} of {len(exercise.hints)}"
    return Words(f"**{head}.** {exercise.hints[rung - 1]}", f"{head}. {exercise.plain['hints'][rung - 1]}")


def solution(identifier) -> Words:
    """The solution, as the book has it.

    Args:
        identifier: the id of the exercise.

    >>> solution("nothing")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    ValueError: exercises: there is no exercise 'nothing'
    """
    exercise = get(identifier)
    _state.show_solution(exercise)
    return Words(exercise.solution, exercise.plain["solution"])


def progress():
    """What has been attempted and what is right, chapter by chapter.

    >>> "The dense layer" in str(progress())
    True
    """
    return _state.progress()
