"""What a student hands in: one file with the answers, what they got, and with which versions."""

import json
import platform
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from .. import _child
from . import _state, _work
from ._feedback import Feedback
from ._registry import get

FORMAT = "denselayer submission 1"


@dataclass(frozen=True)
class Answer:
    """An answer as source text, and where it was found."""

    exercise: object
    source: str
    origin: str


def collect(exercises):
    """The answers to exercises: from the file to work in or from the last check, whichever is newer.

    Args:
        exercises: a list of Exercise.

    Returns:
        A list of `Answer`, one for each exercise that has one.
    """
    known = _state.read()
    found = (_newest(exercise, known.get(exercise.id, _state.FRESH)) for exercise in exercises)
    return [answer for answer in found if answer]


def _newest(exercise, known):
    stored = "\n".join(known["answer"])
    path = _work.work_file(exercise)
    try:
        written = _work.read(path)
        changed = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError:
        written = ""
    file = Answer(exercise, written, path.name)
    if not written.strip() or _work.is_blank(exercise, written):
        return Answer(exercise, stored, "the last check") if stored.strip() else None
    if not stored.strip() or changed >= _time(known["last_checked"]):
        return file
    return Answer(exercise, stored, "the last check")


def _time(text):
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return datetime.min.replace(tzinfo=UTC)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def check_source(exercise, source, *, seconds=_child.SECONDS, stop=None) -> Feedback:
    """Check an answer that is source text, in a child process with limits."""
    with tempfile.TemporaryDirectory(prefix="denselayer-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / f"{exercise.id}.py"
        path.write_text(source, encoding="utf-8", errors="replace")
        return _work.check_file(exercise, path, seconds=seconds, stop=stop)[0]


def check_many(answers, *, jobs=1, seconds=_child.SECONDS):
    """Check answers, several at once; give their Feedback in the order of the answers.

    The generator must be closed (`contextlib.closing`): then all children have ended, whatever happened.

    Args:
        answers: pairs of the id of an exercise and a source text; equal ones are checked once.
        jobs: how many children at once.
        seconds: how long an answer may take.
    """
    stop = threading.Event()
    pool = ThreadPoolExecutor(jobs)
    try:
        futures = {each: pool.submit(_check, *each, seconds, stop) for each in dict.fromkeys(answers)}
        for each in answers:
            yield futures[each].result()
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)


def _check(identifier, source, seconds, stop):
    try:
        return check_source(get(identifier), source, seconds=seconds, stop=stop)
    except OSError as error:
        said = f"This answer could not be checked here: {error.strerror or error}."
        return Feedback(identifier, "error", said)


def submission(name, answers, feedbacks):
    """The content of the file that is handed in, as plain values.

    Args:
        name: the student's.
        answers: a list of `Answer`.
        feedbacks: what each of them has got.
    """
    from .. import __version__

    known = _state.read()
    versions = {"denselayer": __version__, "python": platform.python_version(), "numpy": np.__version__}
    entries = {}
    for answer, feedback in zip(answers, feedbacks, strict=True):
        one = known.get(answer.exercise.id, _state.FRESH)
        entries[answer.exercise.id] = {
            "answer": answer.source,
            "status": feedback.status,
            "headline": feedback.headline,
            "attempts": one["attempts"],
            "hints": one["hints"],
            "solution_shown": one["solution_shown"],
        }
    made = datetime.now(UTC).isoformat(timespec="seconds")
    return {"format": FORMAT, "name": name, "made": made, "versions": versions, "exercises": entries}


def keep_others(path):
    """Refuse to replace a file that is no submission.

    Raises:
        FileExistsError: there is such a file.
    """
    path = Path(path)
    if path.exists() and not _is_submission(path):
        raise FileExistsError(f"{path} is there already and is no submission: name another file with --out")


def save(content, path):
    """Write a submission in one step; an older one is replaced.

    Raises:
        OSError: it cannot be written.
    """
    path = Path(path)
    keep_others(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    _state.write_whole(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def _is_submission(path):
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and str(content.get("format", "")).startswith("denselayer submission")
