"""``python -m denselayer exercises``: from the list to the file that is handed in, without a terminal."""

import io
import json
import os
import sys

import pytest

from denselayer import _exercises_command
from denselayer.__main__ import main
from denselayer.exercises import Feedback, _registry, _state, _submission, _work, get, ids

WRONG = "def dense(X, weight, bias):\n    return X @ weight.T\n"
RIGHT = "def dense(X, weight, bias):\n    return X @ weight.T + bias\n"
TEXT = 'He said "no",\n\\frac is no newline, """ neither.\n'


@pytest.fixture(autouse=True)
def mine(tmp_path, monkeypatch):
    """A folder of its own, 80 columns, and only one chapter."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("DENSELAYER_EXERCISES", raising=False)
    monkeypatch.setattr(_registry, "CHAPTERS", {"dense": "The dense layer"})
    monkeypatch.setattr(_state, "_said", set())
    monkeypatch.setattr(_state, "_memory", {})
    return tmp_path / "denselayer-exercises"


@pytest.fixture
def exercises(capsys):
    """Run the command; the exit code, the output and the error output."""

    def run(*arguments):
        try:
            code = main(["exercises", *map(str, arguments)])
        except SystemExit as error:
            code = error.code
        return code, *capsys.readouterr()

    return run


def flat(text):
    return " ".join(text.split())


def test_the_list_shows_each_exercise_with_kind_title_and_progress(exercises, mine):
    code, out, _ = exercises()
    assert code == 0 and f"The dense layer (dense): 0 of {len(ids('dense'))}" in out
    assert [line.split()[1] for line in out.splitlines() if line.startswith("  ○")] == ids("dense")
    assert f"number   {get('dense-count').title}" in out
    assert not mine.exists()


def test_the_list_can_be_of_one_kind_and_of_one_chapter(exercises):
    _, out, _ = exercises("--kind", "code", "--chapter", "dense")
    shown = [line.split()[1] for line in out.splitlines() if line.startswith("  ○")]
    assert shown == [name for name in ids("dense") if get(name).kind == "code"]
    code, _, err = exercises("--chapter", "dence")
    assert code == 1 and "There is no chapter dence: say one of dense." in err


@pytest.mark.parametrize("name", ["dense-no-loop", "dense-count", "dense-silent-unit"])
def test_a_file_to_work_in_has_the_question_the_way_on_and_the_blanks(exercises, mine, name):
    code, out, _ = exercises("start", name)
    text = (mine / f"{name}.py").read_text(encoding="utf-8")
    exercise = get(name)
    assert code == 0 and f"{name}.py is there to work in." in flat(out)
    head, _, rest = text.partition("\n\n")
    assert all(line.startswith("#") and len(line) <= 88 for line in head.splitlines())
    assert flat(exercise.plain["prompt"]) in flat(head.replace("#", ""))
    assert f"exercises check {name}" in head
    assert rest.strip() == _work.blank_answer(exercise)
    assert exercises("check", name)[0] == 1
    assert not (mine / "state.json").exists()


def test_a_file_that_is_there_is_never_written_over(exercises, mine):
    exercises("start", "dense-no-loop")
    (mine / "dense-no-loop.py").write_text(RIGHT)
    code, out, _ = exercises("start", "dense-no-loop")
    assert code == 0 and "is there already, and was left as it is." in flat(out)
    assert (mine / "dense-no-loop.py").read_text() == RIGHT


def test_a_check_says_what_is_wrong_at_the_line_of_the_file_and_remembers_it(exercises, mine):
    exercises("start", "dense-no-loop")
    path = mine / "dense-no-loop.py"
    text = path.read_text(encoding="utf-8")
    blank = next(line for line in text.splitlines() if line.strip().startswith("..."))
    path.write_text(text.replace(blank, "    return X @ weight"), encoding="utf-8")
    line = next(n for n, each in enumerate(text.splitlines(), 1) if each == blank)
    code, out, _ = exercises("check", "dense-no-loop")
    assert code == 1 and out.startswith(f"✗ Line {line} raises a ValueError")
    path.write_text(text.replace(blank, "    return X @ weight.T + bias"), encoding="utf-8")
    assert exercises("check", "dense-no-loop") == (0, "✓ Right.\n", "")
    known = _state.entry(get("dense-no-loop"))
    assert known["attempts"] == 2 and known["status"] == "correct"
    assert "\n".join(known["answer"]) == path.read_text(encoding="utf-8")
    assert "✓ dense-no-loop" in exercises()[1]


def test_another_file_can_be_checked_and_what_it_prints_is_shown(exercises, tmp_path):
    (tmp_path / "try.py").write_text("for i in range(30): print(i)\n" + WRONG)
    code, out, _ = exercises("check", "dense-no-loop", "try.py")
    assert code == 1 and out.startswith("printed:\n  0\n") and "... and 10 lines more" in out
    assert "The bias is left out." in out


ACCIDENTS = {
    "def dense(:": "cannot be read as Python: line 1",
    "import os\nos._exit(0)": "ended the program",
    "while True: pass": "did not come to an end within 0.5 s; it was in line 1",
    "def dense(X, weight, bias):\n    while True: pass": "did not come to an end within 0.5 s",
    "densse = 3": "There is no dense in try.py: it has densse. Did you mean densse?",
    "dense = 3": "`dense` is an int, not a function.",
    "def dense(X, weight, bias):\n    import sys\n    sys.exit()": "Line 3",
    "import torchlight": "No module named 'torchlight'",
}


@pytest.mark.parametrize("text", ACCIDENTS)
def test_whatever_the_file_does_the_feedback_is_a_sentence(exercises, tmp_path, text):
    (tmp_path / "try.py").write_text(text)
    limit = ["--time", "0.5"] if "while" in text else []
    code, out, err = exercises("check", "dense-no-loop", "try.py", *limit)
    assert code == 1 and err == "" and flat(ACCIDENTS[text]) in flat(out)
    assert _state.entry(get("dense-no-loop"))["status"] == "error"


def test_a_check_that_is_tampered_with_gives_no_result(exercises, tmp_path):
    (tmp_path / "try.py").write_text(
        "import denselayer.exercises._code as c\nclass F:\n    def to_json(self): return {'status': 'best'}\n"
        "c.Code.check = lambda *a: F()\ndef dense(): pass\n"
    )
    _, out, _ = exercises("check", "dense-no-loop", "try.py")
    assert "came to no result that makes sense" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["check", "dense-no-loop"], "Write one with: python -m denselayer exercises start dense-no-loop"),
        (["check", "dense-no-loop", "nowhere.py"], "There is no file nowhere.py."),
        (["start", "dense-noloop"], "There is no exercise dense-noloop. Did you mean dense-no-loop"),
        (["hint", "xyz"], "There is no exercise xyz. python -m denselayer exercises lists them all."),
        (["submit"], "There is no answer to hand in yet."),
    ],
)
def test_what_is_not_there_is_said_with_what_to_do(exercises, arguments, words):
    code, out, err = exercises(*arguments)
    assert code == 1 and out == "" and flat(words) in flat(err)


@pytest.mark.parametrize("text", ["@exr-dense-count", "dense_count", "denselayer-exercises/dense-count.py"])
def test_an_id_is_understood_however_it_is_copied(exercises, text):
    assert exercises("hint", text)[0] == 0


def test_hints_come_one_by_one_or_all(exercises):
    hints = get("dense-count").plain["hints"]
    shown = [exercises("hint", "dense-count")[1] for _ in range(len(hints) + 1)]
    for number, hint in enumerate(hints, start=1):
        assert f"Hint {number} of {len(hints)}. {flat(hint)}" in flat(shown[number - 1])
    assert "That was the last hint" in shown[-1] and "That was the last hint" not in shown[0]
    assert _state.entry(get("dense-count"))["hints"] == len(hints)
    out = exercises("hint", "dense-no-loop", "--all")[1]
    assert out.count("Hint ") >= len(get("dense-no-loop").hints)


def test_the_solution_of_what_was_not_tried_must_be_asked_for_twice(exercises, monkeypatch):
    code, out, err = exercises("solution", "dense-count")
    assert code == 1 and out == "" and "Try it first, or say --yes." in flat(err)
    assert _state.read() == {}
    code, out, _ = exercises("solution", "dense-count", "--yes")
    assert code == 0 and flat(get("dense-count").plain["solution"])[:40] in flat(out)
    assert _state.entry(get("dense-count"))["solution_shown"]


@pytest.mark.parametrize(("answer", "code"), [("n\n", 1), ("\n", 1), ("", 1), ("y\n", 0)])
def test_at_a_terminal_it_is_asked(exercises, monkeypatch, answer, code):
    keyboard = io.StringIO(answer)
    keyboard.isatty = lambda: True
    monkeypatch.setattr(sys, "stdin", keyboard)
    assert exercises("solution", "dense-count")[0] == code
    assert bool(_state.entry(get("dense-count"))["solution_shown"]) == (code == 0)


def test_the_solution_of_what_was_tried_is_shown_at_once(exercises):
    _state.record(get("dense-count"), "dense_count = 1", Feedback("dense-count", "error", "1 value came."))
    assert exercises("solution", "dense-count")[0] == 0


def test_an_explanation_is_written_and_its_points_are_ticked(exercises, tmp_path):
    (tmp_path / "why.py").write_text('dense_silent_unit = """\nReLU cuts below zero.\n"""\n')
    code, out, _ = exercises("check", "dense-silent-unit", "why.py")
    assert code == 0 and out.startswith("✎ Written.") and "--points 1 2" in flat(out)
    code, out, _ = exercises("check", "dense-silent-unit", "why.py", "--points", "1")
    assert code == 0 and "1 of" in out
    code, _, err = exercises("check", "dense-count", "why.py", "--points", "1")
    assert code == 1 and "--points is for explanations." in err


def test_progress_is_a_table(exercises):
    out = exercises("progress")[1]
    assert out.splitlines()[0].startswith("chapter") and "The dense layer" in out


@pytest.fixture
def worked(mine):
    """Two files, one of them blank, and an answer from a notebook."""
    _work.start(get("dense-count"))
    _work.start(get("dense-no-loop")).write_text(WRONG)
    why = get("dense-silent-unit")
    _state.record(why, _work.as_source(why, [TEXT]), Feedback(why.id, "written", "Written."))


def test_what_is_handed_in_has_answers_results_and_versions(exercises, mine, worked):
    code, out, err = exercises("submit", "--name", "Zoë")
    assert code == 0 and "1/2 " in err
    content = json.loads((mine / "submission.json").read_text(encoding="utf-8"))
    assert content["format"] == "denselayer submission 1" and content["name"] == "Zoë"
    assert set(content["versions"]) == {"denselayer", "python", "numpy"} and content["made"]
    answers = content["exercises"]
    assert {name: one["status"] for name, one in answers.items()} == {
        "dense-no-loop": "values",
        "dense-silent-unit": "written",
    }
    assert answers["dense-no-loop"]["answer"] == WRONG
    space = {}
    exec(answers["dense-silent-unit"]["answer"], space)
    assert space["dense_silent_unit"] == TEXT
    said = flat(out)
    assert "2 answers of" in said and "Not right yet: dense-no-loop." in said
    assert "Missing of The dense layer: dense-shapes, dense-count" in said and "name is missing" not in said


def test_of_a_chapter_that_nothing_is_handed_in_of_the_number_is_said(exercises, worked, monkeypatch):
    monkeypatch.setattr(_registry, "CHAPTERS", {"neuron": "The neuron", "dense": "The dense layer"})
    said = flat(exercises("submit", "--name", "Zoë")[1])
    assert f"Missing of The neuron: all {len(ids('neuron'))}." in said and "neuron-sum" not in said


def test_a_name_that_is_missing_is_said_and_results_are_those_of_now(exercises, mine, worked):
    (mine / "dense-no-loop.py").write_text(RIGHT)
    _, out, _ = exercises("submit", "--out", "mine.json")
    assert "Your name is missing" in flat(out)
    answers = json.loads((mine.parent / "mine.json").read_text(encoding="utf-8"))["exercises"]
    assert answers["dense-no-loop"]["status"] == "correct"


def test_a_submission_replaces_an_older_one_and_nothing_else(exercises, mine, worked):
    for _ in range(2):
        assert exercises("submit", "--kind", "explain")[0] == 0
    (mine / "notes.json").write_text("{}")
    code, _, err = exercises("submit", "--out", mine / "notes.json")
    assert code == 1 and "is no submission" in err and "1/2" not in err
    assert (mine / "notes.json").read_text() == "{}"


def test_of_a_file_and_an_answer_from_a_notebook_the_newer_one_is_handed_in(mine):
    exercise = get("dense-no-loop")
    path = _work.start(exercise)
    path.write_text(WRONG)
    os.utime(path, (1, 1))
    _state.record(exercise, RIGHT, Feedback(exercise.id, "correct", "Right."))
    [answer] = _submission.collect([exercise])
    assert (answer.source, answer.origin) == (RIGHT, "the last check")
    os.utime(path, (4e9, 4e9))
    [answer] = _submission.collect([exercise])
    assert (answer.source, answer.origin) == (WRONG, "dense-no-loop.py")


def test_values_become_source_that_gives_them_back():
    exercise = get("dense-count")
    for value in [TEXT, "plain", 'ends with "', "\\\n", {"a": (1, 2.5), "b": [True, None]}, (3,), -1]:
        space = {}
        exec(_work.as_source(exercise, [value]), space)
        assert space["dense_count"] == value
    assert _work.as_source(exercise, [...]) == "dense_count = ..."


def test_lines_fit_a_narrow_terminal_and_code_is_left_alone(exercises, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    for arguments in ([], ["hint", "dense-count"]):
        assert max(map(len, exercises(*arguments)[1].splitlines())) <= 40
    assert _work.wrapped("    x = 1  # " + "long " * 20, 40) == ["    x = 1  # " + "long " * 20]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("no_colour", "coloured"), [(None, True), ("1", False)])
def test_colours_are_for_terminals_that_want_them(monkeypatch, no_colour, coloured):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_colour:
        monkeypatch.setenv("NO_COLOR", no_colour)
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    assert main(["exercises"]) == 0
    assert ("\x1b[" in screen.getvalue()) == coloured


def test_what_is_piped_has_no_colours(exercises):
    assert "\x1b" not in exercises()[1]


def test_control_c_ends_with_a_word(exercises, monkeypatch):
    def interrupt(text):
        raise KeyboardInterrupt

    monkeypatch.setattr(_exercises_command, "_exercise", interrupt)
    assert exercises("hint", "dense-count") == (130, "", "stopped\n")
