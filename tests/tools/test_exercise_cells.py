"""The cells of an exercise: where they stand, what they hold, and that the build runs them solved."""

import json
import re

import pytest

from tools import compose, convert, exercises, stale
from tools.book import load_book
from tools.errors import BuildError
from tools.execute import execute, kernel_environment
from tools.notebooks import make, refresh
from tools.references import collect
from tools.stale import Digests

PACKAGE = '''"""Exercises that find right what is equal to 7, and read what is a text."""

import os
from pathlib import Path
from types import SimpleNamespace as Exercise

def made(identifier, kind="number", answer="7", starter=None):
    entry = identifier.replace("-", "_")
    started = starter or f"{entry} = ..."
    return Exercise(id=identifier, kind=kind, entry=entry, starter=started, solved=f"{entry} = {answer}")

EXERCISES = [made("first"), made("second", "explain", "'because'")]


class Feedback:
    passed = False

    def __init__(self, exercise, status):
        self.exercise, self.status = exercise, status
        self.passed = status == "correct"

    def __repr__(self):
        return f"{self.exercise}: {self.status}"


def ids():
    return [exercise.id for exercise in EXERCISES]


def get(identifier):
    return EXERCISES[ids().index(identifier)]


def check(identifier, answer):
    if answer is ...:
        return Feedback(identifier, "not attempted")
    place = Path(os.environ.get("DENSELAYER_EXERCISES", "denselayer-exercises"))
    place.mkdir(exist_ok=True)
    (place / "state.json").write_text(identifier)
    if isinstance(answer, str):
        return Feedback(identifier, "written")
    return Feedback(identifier, "correct" if answer == 7 else "values")
'''
CHAPTER = """# One {#sec-one}

## Exercises {#sec-one-exercises}

Do them.

### With paper {#sec-one-paper}

::: {#exr-first kind="number"}
## Seven

How many?

::: {.hint}
Count.
:::
:::

Between.

::: {#exr-second kind="explain"}
Why?
:::

::: {#exr-third kind="explain"}
Not converted yet.
:::

## Summary {#sec-one-summary}

`{python} 1 + 1`
"""


@pytest.fixture
def book(make_book):
    """`book(chapter, package)` makes a book whose package has these exercises."""

    def with_exercises(chapter=CHAPTER, package=PACKAGE):
        made = make_book(chapter, **{"code/small/tasks.py": package})
        settings = made.root / "_quarto.yml"
        settings.write_text(settings.read_text() + "exercises: small.tasks\n")
        return load_book(made.root)

    return with_exercises


def draft(book):
    return convert.convert(book.pages[1], book, collect(book))


def made(book):
    return make(book.pages[1], book, (registry := collect(book)), Digests(book, registry))[0]


def test_each_exercise_is_followed_by_a_cell_to_write_in_and_a_cell_that_checks(book):
    cells = made(book()).cells
    assert [(cell.cell_type, cell.id) for cell in cells[1:]] == [
        ("markdown", "text-sec-one"),
        ("markdown", "text-sec-one-exercises"),
        ("markdown", "exercises-how"),
        ("code", "exercises-import"),
        ("markdown", "text-sec-one-paper"),
        ("code", "answer-first"),
        ("code", "check-first"),
        ("markdown", "text-check-first"),
        ("code", "answer-second"),
        ("code", "check-second"),
        ("markdown", "text-exr-third"),
        ("markdown", "text-sec-one-summary"),
    ]
    found = {cell.id: cell for cell in cells}
    assert found["text-sec-one-paper"].source.startswith("### 1.1.1 With paper\n\n#### Exercise 1.1: Seven")
    assert found["exercises-import"].source == "from small import tasks as ex"
    assert found["answer-first"].source == "first = ..."
    assert found["check-first"].source == 'ex.check("first", first)'
    assert 'ex.hint("first")' in found["exercises-how"].source


def test_the_cells_say_what_they_are_and_hold_what_an_unattempted_check_says(book):
    found = {cell.id: cell for cell in made(book()).cells}
    tags = {name: cell.metadata.tags for name, cell in found.items() if "tags" in cell.metadata}
    assert tags == {
        "exercises-import": ["exercise-import"],
        **{f"answer-{name}": ["exercise-answer"] for name in ("first", "second")},
        **{f"check-{name}": ["exercise-check"] for name in ("first", "second")},
    }
    assert all(found[name].metadata.dense.generated for name in tags)
    assert found["check-first"].outputs[0].data["text/plain"] == "first: not attempted"
    assert found["answer-first"].outputs == []


def test_a_page_is_rendered_without_these_cells(book):
    with_cells, without = book(), made(book()).cells
    stream = compose.stream(with_cells.pages[1], {"cells": without})
    assert all(isinstance(item, str) for item in stream)
    lines = "\n".join(stream).replace("`{python} 1 + 1`", "2")
    wanted = CHAPTER.replace("`{python} 1 + 1`", "2")
    assert re.sub(r"\n{2,}", "\n\n", lines).strip() == wanted.strip()


def test_an_exercise_in_another_div_cannot_have_cells(book):
    chapter = CHAPTER.replace("::: {#exr-first", ":::: {.callout-note}\n::: {#exr-first").replace(
        "Between.", "::::\n\nBetween."
    )
    with pytest.raises(
        BuildError, match=r"^chapters/01-one\.qmd:\d+: the exercise first stands inside another div"
    ):
        draft(book(chapter))


def test_a_book_without_that_setting_has_no_such_cells(make_book):
    plain = make_book(CHAPTER)
    assert plain.exercises == {}
    assert not any(piece.cell for piece in draft(plain).pieces)


def test_what_an_answer_imports_is_installed_with_the_notebook(book):
    package = PACKAGE.replace('made("first")', 'made("first", starter="import sklearn\\nfirst = ...")')
    assert "[figures,digits]" in draft(book(package=package)).pieces[0].reading


@pytest.mark.parametrize(
    ("package", "reason"),
    [
        (PACKAGE + "\n1 / 0\n", "ZeroDivisionError: division by zero"),
        (PACKAGE.replace("entry=entry", "entri=entry"), "AttributeError"),
        ("def ids(:\n", "SyntaxError"),
    ],
)
def test_a_package_that_cannot_be_asked_is_told_with_the_words_of_python(book, package, reason):
    with pytest.raises(
        BuildError, match=rf"^_quarto\.yml: `exercises: small\.tasks` cannot be asked .*{reason}"
    ):
        draft(book(package=package))


def test_the_name_of_the_module_may_have_no_dot():
    assert exercises.import_line("tasks") == "import tasks as ex"


# ---------- solved ----------


def test_the_build_runs_the_solutions_and_stores_nothing_of_it(book, monkeypatch, tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    monkeypatch.setenv("DENSELAYER_EXERCISES", str(mine))
    ready = book()
    seen = []
    results = execute(draft(ready), ready.root, progress=lambda done, total, label: seen.append(label))
    assert seen[-3:] == ["solving first", "solving second", ""]
    assert results.outputs["check-second"][0].data["text/plain"] == "second: not attempted"
    assert list(mine.iterdir()) == [], "the state of the person who builds is left alone"
    assert list((ready.root / "notebooks").iterdir()) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ('made("first")', 'made("first", answer="8")'),
            r"its solution does not pass \(values\):\nfirst: v",
        ),
        (('made("first")', 'made("first", answer="1 / 0")'), r"its solution raises ZeroDivisionError: divis"),
        (('made("first")', 'made("first", answer="...")'), r"its solution does not pass \(not attempted\)"),
        (('made("first")', 'made("first", answer="(")'), r"its solution raises SyntaxError"),
        (
            ('made("first")', 'made("first", answer="__import__(\'os\')._exit(1)")'),
            r"the Python process died",
        ),
        (
            ('    return Feedback(identifier, "correct"', '    Feedback(identifier, "correct"'),
            r"its solution does not pass \(not attempted\)|its check shows no feedback",
        ),
        (('"explain", "\'because\'"', '"explain", "7"'), r"its solution does not pass \(correct\)"),
    ],
)
def test_a_solution_that_does_not_pass_fails_the_build_with_file_exercise_and_feedback(book, change, message):
    assert change[0] in PACKAGE
    ready = book(package=PACKAGE.replace(*change))
    with pytest.raises(
        BuildError, match=rf"(?s)^chapters/01-one\.qmd:(17|23): the exercise (first|second): .*(?:{message})"
    ):
        execute(draft(ready), ready.root)


def test_the_feedback_to_another_exercise_is_not_taken_for_this_one(book):
    package = PACKAGE.replace(', "explain", "\'because\'"', "").replace(
        "    if isinstance(answer, str):",
        "    if identifier == 'second':\n        return\n    if isinstance(answer, str):",
    )
    ready = book(package=package)
    with pytest.raises(BuildError, match=r"the exercise second: its check shows no feedback"):
        execute(draft(ready), ready.root)


def test_a_solution_that_never_ends_fails_the_build(book):
    endless = PACKAGE.replace('made("first")', 'made("first", answer="[1 for _ in iter(int, 1)]")')
    with pytest.raises(BuildError, match=r"the exercise first: its solution has not finished after \d+ s"):
        ready = book(package=endless)
        execute(draft(ready), ready.root, timeout=1)


def test_an_answer_cell_that_raises_is_told_at_its_exercise(book):
    broken = PACKAGE.replace('made("first")', 'made("first", starter="\\n\\nnothing")')
    with pytest.raises(BuildError, match=r"^chapters/01-one\.qmd:17: cell answer-first: NameError"):
        ready = book(package=broken)
        execute(draft(ready), ready.root)


def test_the_state_of_the_exercises_lies_in_the_scratch_of_the_kernel(tmp_path):
    environ = kernel_environment(tmp_path, tmp_path / "scratch")
    assert environ["DENSELAYER_EXERCISES"] == str(tmp_path / "scratch" / "exercises")


# ---------- stale ----------


def test_the_package_and_the_order_of_the_exercises_are_part_of_what_was_executed(book):
    ready = book()
    refresh(ready)

    def reasons():
        again = load_book(ready.root)
        return [found.reason for found in stale.find_stale(again, collect(again))]

    assert reasons() == []
    chapter = ready.root / "chapters/01-one.qmd"
    chapter.write_text(CHAPTER.replace("exr-second", "exr-fourth"))
    assert reasons() == ["changed since it was executed: the code of the chapter"]
    chapter.write_text(CHAPTER)
    package = ready.root / "code/small/tasks.py"
    package.write_text(PACKAGE.replace("equal to 7", "equal to seven"))
    assert reasons() == ["changed since it was executed: the package (code/)"]


def test_converting_again_keeps_the_outputs_of_the_cells(book):
    ready = book()
    refresh(ready)
    before = ready.pages[1].notebook.read_bytes()
    chapter = ready.root / "chapters/01-one.qmd"
    chapter.write_text(CHAPTER.replace("Do them.", "Do all of them."))
    again = load_book(ready.root)
    summary = refresh(again)
    assert summary.converted == ["chapters/01-one.qmd"] and summary.executed == []
    after = json.loads(again.pages[1].notebook.read_bytes())
    outputs = {cell["id"]: cell.get("outputs") for cell in after["cells"]}
    assert outputs == {cell["id"]: cell.get("outputs") for cell in json.loads(before)["cells"]}
