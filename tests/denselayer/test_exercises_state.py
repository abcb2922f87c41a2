"""The state of a student: a file to read, written in one step, never lost and never in the way."""

import json
import multiprocessing
import os
import threading
import time
from pathlib import Path

import pytest

from denselayer.exercises import Explain, Feedback, Number, Part, _state
from denselayer.exercises._progress import Progress, standing
from denselayer.exercises._registry import get, ids

COUNT = Number("dense-count", Part("parameters", 30))
RIGHT = Feedback("dense-count", "correct", "Right.")
WRONG = Feedback("dense-count", "values", "24 leaves the biases out.")


class Laddered(Number):
    hints = ("first", "second")


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("DENSELAYER_EXERCISES", str(tmp_path / "mine"))
    monkeypatch.setattr(_state, "_said", set())
    monkeypatch.setattr(_state, "_memory", {})
    return tmp_path / "mine"


def stored(place):
    return json.loads((place / "state.json").read_text(encoding="utf-8"))


def test_an_attempt_is_kept_with_all_that_is_known(place):
    _state.record(COUNT, "dense_count = 24", WRONG)
    _state.record(COUNT, "dense_count = (\n    30\n)", RIGHT)
    whole = stored(place)
    assert whole["format"] == "denselayer exercises 1" and whole["denselayer"].count(".") == 2
    known = whole["exercises"]["dense-count"]
    assert known["attempts"] == 2 and known["status"] == "correct" and known["headline"] == "Right."
    assert known["answer"] == ["dense_count = (", "    30", ")"]
    assert known["first_passed"].endswith("+00:00") and known["solution_shown"] is None


def test_the_file_is_for_people(place):
    _state.record(COUNT, "größe = 24  # naïve", WRONG)
    lines = (place / "state.json").read_text(encoding="utf-8").splitlines()
    assert '        "größe = 24  # naïve"' in lines


def test_what_was_right_once_stays_so_but_the_last_status_is_told(place):
    _state.record(COUNT, "x", RIGHT)
    first = _state.entry(COUNT)["first_passed"]
    _state.record(COUNT, "x", WRONG)
    known = _state.entry(COUNT)
    assert known["status"] == "values" and known["first_passed"] == first
    assert standing(COUNT, known) == "done"


def test_not_attempted_writes_nothing(place):
    _state.record(COUNT, "x = ...", Feedback("dense-count", "not attempted", "Not attempted yet."))
    assert not place.exists()
    assert _state.entry(COUNT)["attempts"] == 0


def test_reading_makes_no_folder(place):
    assert _state.read() == {}
    str(_state.progress())
    assert not place.exists()


def test_the_folder_is_in_the_current_one_unless_the_environment_says_otherwise(monkeypatch, tmp_path):
    monkeypatch.setenv("DENSELAYER_EXERCISES", "")
    assert _state.folder() == Path("denselayer-exercises")
    (tmp_path / "denselayer-exercises").mkdir()
    monkeypatch.chdir(tmp_path / "denselayer-exercises")
    assert _state.folder() == Path("denselayer-exercises")
    _state.write_whole(Path("state.json"), "{}")
    assert _state.folder() == Path()
    monkeypatch.setenv("DENSELAYER_EXERCISES", "~/mine")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert _state.folder() == tmp_path / "mine"


def test_hints_are_a_ladder_and_the_solution_is_noted_once(place):
    exercise = Laddered("dense-count", Part("parameters", 30))
    assert [_state.take_hint(exercise) for _ in range(3)] == [1, 2, 2]
    _state.show_solution(exercise)
    known = _state.entry(exercise)
    first = known["solution_shown"]
    assert known["hints"] == 2 and first and known["attempts"] == 0
    _state.show_solution(exercise)
    assert _state.entry(exercise)["solution_shown"] == first
    assert standing(exercise, known) == "new"


DAMAGED = {
    "cut off": b'{"format": "denselayer exercises 1", "exerc',
    "empty": b"",
    "no text": b"\xff\xfe\x00",
    "a list": b"[]",
    "foreign": b'{"cells": [], "metadata": {}}',
    "newer": b'{"format": "denselayer exercises 2", "exercises": {}}',
    "exercises is a list": b'{"format": "denselayer exercises 1", "exercises": []}',
    "too deep": b"[" * 100_000,
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_file_that_cannot_be_used_is_set_aside_and_said_so(place, capsys, name):
    place.mkdir()
    (place / "state.json").write_bytes(DAMAGED[name])
    assert _state.read() == {}
    _state.record(COUNT, "x", RIGHT)
    [aside] = place.glob("state.damaged-*.json")
    assert aside.read_bytes() == DAMAGED[name]
    said = capsys.readouterr()
    assert said.out == "" and len(said.err.splitlines()) == 1
    assert aside.name in said.err and "a new one was begun" in said.err
    assert list(stored(place)["exercises"]) == ["dense-count"]


def test_damaged_files_do_not_replace_each_other(place):
    place.mkdir()
    for number in range(4):
        (place / "state.json").write_text(f"broken {number}")
        _state.read()
    kept = sorted(path.read_text() for path in place.glob("state.damaged-*.json"))
    assert kept == [f"broken {number}" for number in range(4)]


def test_of_a_file_that_is_damaged_in_one_place_the_rest_goes_on(place, capsys):
    _state.record(COUNT, "x", RIGHT)
    whole = stored(place)
    whole["exercises"]["dense-shapes"] = {"attempts": -1}
    whole["exercises"]["dense-memory"] = "done"
    whole["exercises"]["from-the-future"] = {"attempts": 1, "stars": 5}
    (place / "state.json").write_text(json.dumps(whole))
    assert set(_state.read()) == {"dense-count", "from-the-future"}
    assert "dense-shapes, dense-memory" in capsys.readouterr().err
    _state.record(COUNT, "x", RIGHT)
    assert stored(place)["exercises"]["from-the-future"]["stars"] == 5
    assert json.loads(next(place.glob("state.damaged-*")).read_text()) == whole


def test_a_folder_in_place_of_the_file_is_set_aside(place, capsys):
    (place / "state.json").mkdir(parents=True)
    _state.record(COUNT, "x", RIGHT)
    assert "it is a folder" in capsys.readouterr().err
    assert stored(place)["exercises"]


def test_where_nothing_can_be_written_a_sentence_says_so_and_work_goes_on_from_memory(
    monkeypatch, tmp_path, capsys
):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("DENSELAYER_EXERCISES", str(tmp_path / "file" / "mine"))
    exercise = Laddered("dense-count", Part("parameters", 30))
    _state.record(exercise, "x", RIGHT)
    assert [_state.take_hint(exercise) for _ in range(2)] == [1, 2]
    assert _state.entry(exercise)["status"] == "correct"
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1 and "what you do now is not remembered" in said


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="permissions do not bind everybody")
def test_in_a_folder_without_permission_what_was_known_is_still_known(place):
    _state.record(COUNT, "x", RIGHT)
    place.chmod(0o500)
    try:
        _state.record(COUNT, "x", WRONG)
        assert _state.entry(COUNT)["attempts"] == 2
    finally:
        place.chmod(0o700)
    assert stored(place)["exercises"]["dense-count"]["attempts"] == 1


def test_a_full_disk_leaves_the_old_file_and_no_draft(place, monkeypatch, capsys):
    _state.record(COUNT, "x", WRONG)
    before = (place / "state.json").read_bytes()

    def full(number):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_state.os, "fsync", full)
    _state.record(COUNT, "x", RIGHT)
    assert (place / "state.json").read_bytes() == before
    assert sorted(path.name for path in place.iterdir()) == ["state.json", "state.lock"]
    assert "No space left" in capsys.readouterr().err


def _many(place, number):
    os.environ["DENSELAYER_EXERCISES"] = place
    for _ in range(20):
        _state.record(COUNT, f"x = {number}", WRONG)
        _state.take_hint(Laddered(f"dense-{number}", Part("parameters", 30)))


def test_two_processes_at_once_lose_nothing(place):
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_many, args=(str(place), number)) for number in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    known = stored(place)["exercises"]
    assert known["dense-count"]["attempts"] == 60
    assert [known[f"dense-{number}"]["hints"] for number in range(3)] == [2, 2, 2]
    assert not list(place.glob("state.damaged*"))


def test_threads_of_one_process_lose_nothing_either(place):
    threads = [
        threading.Thread(target=lambda: [_state.record(COUNT, "x", WRONG) for _ in range(10)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert _state.entry(COUNT)["attempts"] == 40


def test_a_lock_that_is_never_given_back_does_not_stop_the_work(place, monkeypatch):
    fcntl = pytest.importorskip("fcntl")
    monkeypatch.setattr(_state, "PATIENCE", 0.1)
    place.mkdir()
    with (place / "state.lock").open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        begun = time.monotonic()
        _state.record(COUNT, "x", RIGHT)
        assert time.monotonic() - begun < 30
    assert _state.entry(COUNT)["attempts"] == 1


def test_texts_that_are_no_unicode_and_endless_answers_are_kept_as_far_as_possible(place):
    _state.record(COUNT, "x = '\udcff'" + "y" * 10**6, RIGHT)
    assert len("\n".join(_state.entry(COUNT)["answer"])) == _state.LONGEST_ANSWER


def test_an_explanation_is_done_when_it_is_written(place):
    why = Explain("dense-silent-unit")
    _state.record(why, "dense_silent_unit = 'because'", Feedback(why.id, "written", "Written."))
    assert standing(why, _state.entry(why)) == "written"


def test_progress_counts_by_chapter_and_prints_in_both_ways(place):
    code = next(get(name) for name in ids("dense") if get(name).kind != "explain")
    why = next(get(name) for name in ids("dense") if get(name).kind == "explain")
    _state.record(code, "x", Feedback(code.id, "correct", "Right."))
    _state.record(why, "x", Feedback(why.id, "written", "Written."))
    shown = _state.progress()
    row = next(row for row in shown.rows if row[0] == "The dense layer")
    assert row[1:] == (1, 1, 0, len(ids("dense")))
    assert shown.total[:3] == (1, 1, 0) and shown.total[3] == len(ids())
    assert str(shown).splitlines()[0].split() == ["chapter", "right", "written", "not", "right", "yet", "of"]
    assert "<table" in shown._repr_markdown_() and not hasattr(shown, "_repr_html_")
    assert Progress.of({}).total[:3] == (0, 0, 0)
