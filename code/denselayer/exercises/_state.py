"""What a student has done so far: a plain file in the folder of the exercises, written in one step.

No function here raises because of the file or its folder: a sentence on the error output says what is wrong,
and the state is kept in memory for as long as the process lives.
"""

import copy
import json
import os
import secrets
import shutil
import sys
import time
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

FOLDER, VARIABLE = "denselayer-exercises", "DENSELAYER_EXERCISES"
FILE, LOCK = "state.json", "state.lock"
FORMAT = "denselayer exercises 1"
FRESH = {
    "status": "not attempted",
    "headline": "",
    "attempts": 0,
    "first_passed": None,
    "last_checked": None,
    "hints": 0,
    "solution_shown": None,
    "answer": [],
}
"""What is known of an exercise at first. Times are UTC; an answer is a list of lines, so that people can read
it; an explanation has passed when it was written."""
PATIENCE = 5.0
"""Seconds that a process waits for another one that writes."""
LARGEST = 64 * 2**20
LONGEST_ANSWER = 200_000
_said: set[str] = set()
_memory: dict[str, dict] = {}


class Damaged(Exception):
    """The file is not what `record` has written; the message says why."""


def folder() -> Path:
    """The folder of the state and of the files to work in; the current one if it is that already."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named).expanduser()
    inside = Path.cwd().name == FOLDER and Path(FILE).exists()
    return Path() if inside else Path(FOLDER)


def read() -> dict[str, dict]:
    """What is known of the exercises that were attempted, by id."""
    return _update(lambda entries: copy.deepcopy(entries), write=False)


def entry(exercise) -> dict:
    """What is known of one exercise."""
    return read().get(exercise.id, copy.deepcopy(FRESH))


def record(exercise, answer, feedback):
    """Remember an attempt.

    Args:
        exercise: an Exercise.
        answer: the answer as source text.
        feedback: the Feedback that it got; one that was not attempted is not remembered.
    """
    if feedback.status == "not attempted":
        return

    def change(known):
        known["attempts"] += 1
        known["status"], known["headline"] = feedback.status, feedback.headline
        known["last_checked"] = _now()
        if (feedback.passed or feedback.status == "written") and not known["first_passed"]:
            known["first_passed"] = known["last_checked"]
        known["answer"] = answer[:LONGEST_ANSWER].split("\n")

    _change(exercise, change)


def take_hint(exercise) -> int:
    """Go one rung up the ladder of hints; return how many are taken now."""

    def change(known):
        known["hints"] = min(known["hints"] + 1, len(exercise.hints))
        return known["hints"]

    return _change(exercise, change)


def take_all_hints(exercise):
    """Remember that all hints were shown."""
    _change(exercise, lambda known: known.update(hints=len(exercise.hints)))


def show_solution(exercise):
    """Remember that the solution was shown, and when first."""
    _change(exercise, lambda known: known.update(solution_shown=known["solution_shown"] or _now()))


def progress():
    """What has been attempted and what is right, chapter by chapter; it prints as a table."""
    from ._progress import Progress

    return Progress.of(read())


def _change(exercise, change):
    return _update(lambda entries: change(entries.setdefault(exercise.id, copy.deepcopy(FRESH))))


def _update(change, write=True):
    """Read the file, change what it says and write it, with no other process in between."""
    place = folder()
    if str(place) in _memory:
        return change(_memory[str(place)])
    try:
        if not write and not (place / FILE).exists():
            return change({})
        place.mkdir(parents=True, exist_ok=True)
        with _lock(place / LOCK):
            entries = _load(place / FILE)
            result = change(entries)
            if write:
                _save(place / FILE, entries)
            return result
    except OSError as error:
        reason = error.strerror or error
        _say(f"The folder {place} cannot be used ({reason}): what you do now is not remembered.")
        return change(_memory.setdefault(str(place), _look(place / FILE)))


def _look(path):
    """The entries of a file that can be read but not replaced."""
    with suppress(OSError, Damaged):
        return _parse(path.read_bytes())[0]
    return {}


def _load(path):
    if not path.exists():
        return {}
    try:
        if path.stat().st_size > LARGEST:
            raise Damaged("it is far too large")
        entries, bad = _parse(path.read_bytes())
    except (Damaged, IsADirectoryError) as error:
        aside = _beside(path)
        path.replace(aside)
        why = "it is a folder" if isinstance(error, OSError) else error
        _say(f"{path} cannot be used ({why}). It is kept as {aside.name}, and a new one was begun.")
        return {}
    if bad:
        aside = _beside(path)
        shutil.copyfile(path, aside)
        _say(f"{path} is damaged at {', '.join(bad)}. It is kept as {aside.name}; the rest goes on.")
    return entries


def _parse(content):
    """The entries that are sound, and the ids of the others."""
    try:
        whole = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError):
        raise Damaged("it is no JSON") from None
    if not isinstance(whole, dict) or not isinstance(whole.get("exercises"), dict):
        raise Damaged("it is no state of these exercises")
    if whole.get("format") != FORMAT:
        raise Damaged(f"its format is {whole.get('format')!r}, and this version writes {FORMAT!r}")
    good = {
        name: {**copy.deepcopy(FRESH), **known} for name, known in whole["exercises"].items() if _sound(known)
    }
    return good, [name for name in whole["exercises"] if name not in good]


def _sound(known):
    if not isinstance(known, dict):
        return False
    whole = {**FRESH, **known}
    texts = all(isinstance(whole[name], str) for name in ("status", "headline"))
    counts = all(type(whole[name]) is int and whole[name] >= 0 for name in ("attempts", "hints"))
    times = ("first_passed", "last_checked", "solution_shown")
    dated = all(isinstance(whole[name], str | None) for name in times)
    answer = whole["answer"]
    return texts and counts and dated and isinstance(answer, list) and all(isinstance(x, str) for x in answer)


def _save(path, entries):
    from .. import __version__

    whole = {"format": FORMAT, "denselayer": __version__, "exercises": entries}
    text = json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
    write_whole(path, text)


def write_whole(path, text):
    """Write a text file so that it appears in one step or not at all."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with draft.open("wb") as file:
            file.write(text.encode("utf-8", "replace"))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _beside(path):
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    names = [f"{path.stem}.damaged-{stamp}{more}.json" for more in ("", *(f"-{n}" for n in range(2, 100)))]
    return next(each for each in map(path.with_name, names) if not each.exists())


@contextmanager
def _lock(path):
    """Hold the lock file; after `PATIENCE` seconds go on without, for whoever holds it has hung."""
    with path.open("ab") as file:
        deadline = time.monotonic() + PATIENCE
        while not _try_lock(file):
            if time.monotonic() > deadline:
                break
            time.sleep(0.01)
        yield


def _try_lock(file):
    """Whether the lock is ours, or there are no locks here; closing the file gives it back."""
    try:
        import fcntl
    except ImportError:
        return _try_lock_windows(file)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (OSError, AttributeError):
        return True
    return True


def _try_lock_windows(file):
    try:
        import msvcrt

        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    except ImportError:
        return True
    except OSError:
        return False
    return True


def _now():
    return datetime.now(UTC).isoformat(timespec="seconds")


def _say(sentence):
    """Say a sentence once in the life of this process."""
    if sentence not in _said:
        _said.add(sentence)
        print(sentence, file=sys.stderr)
