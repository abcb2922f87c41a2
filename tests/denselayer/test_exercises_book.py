"""Every exercise of the book: the starter is blank, the solution is right, every wrong answer is named."""

import ast
import difflib
import functools

import pytest

from denselayer import exercises as ex
from tests.denselayer import exercise_cells as cells

EVERY = [ex.get(identifier) for identifier in ex.ids()]
CODE = [exercise for exercise in EVERY if exercise.kind == "code"]
NUMBERS = [exercise for exercise in EVERY if exercise.kind == "number"]
WRONG = [(exercise, wrong) for exercise in CODE for wrong in exercise.wrong_answers]


def each(exercises):
    return pytest.mark.parametrize("exercise", exercises, ids=lambda exercise: exercise.id)


@functools.cache
def feedback_to_wrong(identifier, name):
    exercise = ex.get(identifier)
    [wrong] = [wrong for wrong in exercise.wrong_answers if wrong.name == name]
    return cells.checked(exercise, exercise.source(wrong))


@each(EVERY)
def test_the_starter_is_not_attempted(exercise):
    feedback = cells.checked(exercise, exercise.starter)
    assert feedback.status == "not attempted", str(feedback)
    assert not feedback.passed


@each([exercise for exercise in EVERY if exercise.kind != "explain"])
def test_the_solution_passes(exercise):
    feedback = cells.checked(exercise, exercise.solved)
    assert feedback.passed, str(feedback)
    assert feedback.status == "correct"


@each([exercise for exercise in EVERY if exercise.kind == "explain"])
def test_an_explanation_is_answered_with_its_rubric(exercise):
    feedback = cells.checked(exercise, exercise.solved)
    assert feedback.status == "written"
    assert not feedback.passed
    assert len(feedback.points) >= 2, "the solution needs a list after “A full answer says”"


@pytest.mark.parametrize(
    ("exercise", "wrong"), WRONG, ids=[f"{exercise.id}: {wrong.name}" for exercise, wrong in WRONG]
)
def test_a_wrong_answer_gets_exactly_its_message(exercise, wrong):
    feedback = feedback_to_wrong(exercise.id, wrong.name)
    assert not feedback.passed
    assert feedback.status != "not attempted"
    assert wrong.finding or wrong.says, "say what this answer must get"
    if wrong.says:
        assert feedback.headline == wrong.says
    if wrong.finding:
        assert feedback.finding == wrong.finding, str(feedback)


@each(CODE)
def test_a_code_exercise_names_at_least_three_wrong_answers_by_different_messages(exercise):
    names = [wrong.name for wrong in exercise.wrong_answers]
    headlines = [feedback_to_wrong(exercise.id, name).headline for name in names]
    assert len(set(names)) == len(names) >= 3
    assert len(set(headlines)) >= 3, headlines


@each(NUMBERS)
def test_a_wrong_number_gets_exactly_its_sentence(exercise):
    wrong = list(exercise.wrong)
    assert wrong, "name at least one number that is the right number of the wrong thing"
    for name, cell, sentence in wrong:
        feedback = cells.checked(exercise, cell)
        assert (feedback.status, feedback.headline) == ("values", sentence), name


@each(CODE)
def test_stub_and_solution_differ_only_where_the_student_writes(exercise):
    stub, solved = exercise.starter.splitlines(), exercise.solved.splitlines()
    for tag, first, last, _, _ in difflib.SequenceMatcher(None, stub, solved, False).get_opcodes():
        assert tag == "equal" or all("...  # blank" in line for line in stub[first:last]), stub[first:last]
    kept = [line for line in stub if "...  # blank" not in line]
    solved = iter(solved)
    assert all(line in solved for line in kept)
    ast.parse(exercise.starter)
    ast.parse(exercise.solved)


@each(CODE)
def test_the_grader_looks_at_the_students_object(exercise):
    """The names of the exercise stand for other things in this cell: only what is handed over counts."""
    right = cells.bound(exercise, exercise.solved)
    calls = []
    watched = [_watched(thing, calls) for thing in right]
    assert exercise.check(*watched).passed
    assert set(calls) == set(exercise.names), "a function that is handed over is never called"
    assert not exercise.check(*[_refusing(name) for name in exercise.names]).passed


def _watched(thing, calls):
    if isinstance(thing, type):
        return _watched_class(thing, calls)

    @functools.wraps(thing)
    def call(*args, **kwargs):
        calls.append(thing.__name__)
        return thing(*args, **kwargs)

    return call


def _watched_class(cls, calls):
    class Watched(cls):
        def __init__(self, *args, **kwargs):
            calls.append(cls.__name__)
            super().__init__(*args, **kwargs)

    Watched.__name__ = cls.__name__
    return Watched


def _refusing(name):
    def refuse(*args, **kwargs):
        raise ArithmeticError(f"{name} was called")

    return refuse


@each(EVERY)
def test_an_exercise_has_a_title_a_prompt_a_ladder_of_hints_and_a_solution(exercise):
    assert exercise.title
    assert exercise.prompt
    assert len(exercise.hints) >= 2
    assert all(exercise.hints)
    assert exercise.solution
    assert exercise.plain["prompt"]
    assert len(exercise.plain["hints"]) == len(exercise.hints)
    assert exercise.plain["solution"]
    assert "{python}" not in exercise.prompt + exercise.solution
