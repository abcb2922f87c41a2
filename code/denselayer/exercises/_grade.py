"""Submissions of a class: read with suspicion, and checked again in child processes."""

import json
import os
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from .. import _child
from ._feedback import Feedback
from ._registry import ids
from ._submission import FORMAT, check_many

LARGEST = 5 * 2**20
"""Bytes of a submission that is read."""
LONGEST_NAME = 100
SHOWN = 5


@dataclass(frozen=True)
class Paper:
    """What one file holds: the student's name, the answers as source text, what it claims they got.

    ``notes`` say what is odd about it; ``broken`` is why nothing in it can be graded.
    """

    file: str
    name: str
    answers: dict[str, str] = field(default_factory=dict)
    claims: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    broken: str = ""


@dataclass(frozen=True)
class Graded:
    """A paper, and the feedback that each of its answers gets here."""

    paper: Paper
    feedback: dict[str, Feedback]

    def count(self, *statuses) -> int:
        """How many answers have one of these statuses."""
        return sum(one.status in statuses for one in self.feedback.values())

    @property
    def wrong(self) -> int:
        """How many answers were attempted and are not right."""
        return len(self.feedback) - self.count("correct", "written", "not attempted")

    @property
    def differences(self) -> tuple[str, ...]:
        """Where the paper claims something else than was found."""
        pairs = ((name, self.paper.claims.get(name), one.status) for name, one in self.feedback.items())
        return tuple(
            f"{name}: claims '{claim}', found '{status}'" for name, claim, status in pairs if claim != status
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """All that an instructor should know of this paper."""
        return (*self._own_notes, *self.differences)

    @property
    def short_notes(self) -> tuple[str, ...]:
        """The same, with the number of differences only."""
        count = len(self.differences)
        more = (f"{count} {'claim differs' if count == 1 else 'claims differ'}",) if count else ()
        return (*self._own_notes, *more)

    @property
    def _own_notes(self):
        return (*((self.paper.broken,) if self.paper.broken else ()), *self.paper.notes)


def papers(folder) -> list[Paper]:
    """Read all submissions in a folder and below, in the order of the names.

    Raises:
        NotADirectoryError: there is no such folder.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise NotADirectoryError(f"there is no folder {folder}: name the one that holds the submissions")
    found = [read(path, path.relative_to(folder).as_posix()) for path in _files(folder)]
    return _with_doubles(sorted(found, key=lambda paper: (paper.name.casefold(), paper.file)))


def _files(folder):
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in [*folders, *files]:
            if name.lower().endswith(".json") and not name.startswith("."):
                yield Path(place) / name


def read(path, file) -> Paper:
    """Read one submission; whatever it is, a Paper comes back.

    Args:
        path: the file.
        file: how to call it.
    """
    name = Path(file).stem
    try:
        content = _content(path)
        return _paper(content, file, name)
    except Unusable as error:
        return Paper(file, name, broken=f"not graded: {error}")
    except OSError as error:
        return Paper(file, name, broken=f"not graded: it cannot be read ({error.strerror or error})")


class Unusable(Exception):
    """A file that holds no submission; the message says why."""


def _content(path):
    if not path.is_file():
        raise Unusable("it is no file")
    size = path.stat().st_size
    if size == 0:
        raise Unusable("it is empty")
    if size > LARGEST:
        raise Unusable(f"it is enormous ({_child.size_in_words(size)})")
    try:
        content = json.loads(path.read_bytes().decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise Unusable("it is no JSON, or damaged") from None
    if not isinstance(content, dict) or not str(content.get("format", "")).startswith("denselayer"):
        raise Unusable("it is something else, no submission")
    if content["format"] != FORMAT:
        more = ": ask for the file that `exercises submit` writes" if "exercises" in content["format"] else ""
        raise Unusable(f"its format is {_line(content['format'])}, not {FORMAT}{more}")
    if not isinstance(content.get("exercises"), dict):
        raise Unusable("it is damaged: it has no exercises")
    return content


def _paper(content, file, stem):
    name, notes = content.get("name"), []
    name = _line(name) if isinstance(name, str) else ""
    if not name:
        notes.append("without a name")
    answers, claims, odd = {}, {}, []
    for exercise in ids():
        one = content["exercises"].get(exercise)
        if isinstance(one, dict) and isinstance(one.get("answer"), str):
            answers[exercise] = one["answer"]
            claims[exercise] = _line(one.get("status", "nothing"))
        elif one is not None:
            odd.append(exercise)
    unknown = [_line(name) for name in content["exercises"] if name not in set(ids())]
    if odd:
        notes.append(f"no answer that can be read: {_few(odd)}")
    if unknown:
        notes.append(f"unknown exercises: {_few(unknown)}")
    if not answers:
        notes.append("no answers")
    return Paper(file, name or stem, answers, claims, tuple(notes))


def _line(value):
    """Foreign text on one line, without control characters, and not too long."""
    text = value if isinstance(value, str) else json.dumps(value)
    text = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 1]}…"


def _few(names):
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _with_doubles(found):
    """Note on each paper which others have its name or exactly its answers."""
    names, contents = defaultdict(list), defaultdict(list)
    for paper in found:
        if not paper.broken:
            names[paper.name.casefold()].append(paper.file)
        if paper.answers:
            contents[tuple(sorted(paper.answers.items()))].append(paper.file)
    noted = []
    for paper in found:
        same_name = [] if paper.broken else names[paper.name.casefold()]
        same = contents.get(tuple(sorted(paper.answers.items())), [])
        notes = [f"the same answers as {_few([each])}" for each in same if each != paper.file]
        notes += [f"the same name as {each}" for each in same_name if each not in (paper.file, *same)]
        noted.append(replace(paper, notes=(*paper.notes, *notes)))
    return noted


def grade(found, *, jobs=1, seconds=_child.SECONDS, progress=lambda graded: None) -> list[Graded]:
    """Check the answers of papers again, each in a child process.

    Args:
        found: a list of `Paper`.
        jobs: how many children at once.
        seconds: how long an answer may take.
        progress: called with each `Graded` in turn.

    Raises:
        KeyboardInterrupt: Ctrl-C; all children have ended.
    """
    answers = [answer for paper in found for answer in paper.answers.items()]
    done = []
    with closing(check_many(answers, jobs=jobs, seconds=seconds)) as checked:
        for paper in found:
            done.append(Graded(paper, {name: next(checked) for name in paper.answers}))
            progress(done[-1])
    return done
