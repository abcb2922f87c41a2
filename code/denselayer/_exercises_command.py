"""Do the exercises of the book in a terminal."""

import difflib
import os
import shutil
import sys
from contextlib import closing, suppress
from pathlib import Path

from ._child import SECONDS
from ._doctor_command import seconds, show
from ._machine import cores

KINDS = ("number", "code", "explain")
COLOURS = {"✓": "32", "✎": "36", "✗": "31", "○": "2"}
SHOWN = 20
"""Lines of what an answer printed that are shown."""


class Unknown(ValueError):
    """What was asked for is not there; the message is a sentence for the student."""


def add_arguments(parser):
    """What may be said on the command line."""
    _filters(parser)
    parser.set_defaults(action=_list)
    actions = parser.add_subparsers(metavar="ACTION", title="actions (without one: list the exercises)")
    start = _action(actions, "start", _start, "write a file to work in")
    check = _action(actions, "check", _check, "check the answer in the file to work in, or in another")
    hint = _action(actions, "hint", _hint, "one more hint")
    solution = _action(actions, "solution", _solution, "the solution")
    for one in (start, check, hint, solution):
        one.add_argument("id", help="as the book shows it, such as dense-count")
    check.add_argument(
        "file", nargs="?", type=Path, help="the file (default: the one that start has written)"
    )
    check.add_argument("--points", type=int, nargs="*", help="of an explanation: the points that it makes")
    check.add_argument("--time", type=seconds, default=SECONDS, metavar="S", help="seconds it may take")
    hint.add_argument("--all", action="store_true", help="all hints")
    solution.add_argument("--yes", action="store_true", help="do not ask")
    _action(actions, "progress", _progress, "how far you are")
    submit = _action(actions, "submit", _submit, "write the file that is handed in")
    submit.add_argument("--name", default="", help="your name")
    submit.add_argument("--out", type=Path, help="the file (default: submission.json beside your answers)")
    submit.add_argument("--time", type=seconds, default=SECONDS, metavar="S", help="seconds for each answer")
    _filters(submit)


def _filters(parser):
    parser.add_argument("--chapter", help="only one chapter, such as dense")
    parser.add_argument("--kind", choices=KINDS, help="only one kind")


def _action(actions, name, function, summary):
    one = actions.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
    one.set_defaults(action=function)
    return one


def run(args):
    """Do what was asked for; return the exit code."""
    try:
        return args.action(args)
    except Unknown as error:
        print("\n".join(_lines(f"error: {error}")), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130


def _list(args):
    from .exercises import _state, chapters
    from .exercises._progress import MARKS, standing

    known = _state.read()
    lines = []
    for prefix, name in chapters().items():
        found = _selected(args, prefix)
        if found:
            stands = {one.id: standing(one, known.get(one.id, {})) for one in found}
            done = sum(stand in ("done", "written") for stand in stands.values())
            lines += ["", f"{name} ({prefix}): {done} of {len(found)}"]
            longest = max(len(one.id) for one in found)
            lines += [
                f"  {MARKS[stands[one.id]]} {one.id:<{longest}}  {one.kind:<7}  {one.title}" for one in found
            ]
    if not lines:
        lines = ["", "There are no such exercises."]
    legend = "✓ right  ✎ written  ✗ not right yet  ○ not attempted"
    _say("\n".join([*lines[1:], "", legend, "Begin with: python -m denselayer exercises start ID"]))
    return 0


def _selected(args, prefix):
    from .exercises import chapters, get, ids

    if args.chapter and args.chapter not in chapters():
        raise Unknown(f"There is no chapter {args.chapter}: say one of {', '.join(chapters())}.")
    if args.chapter not in (None, prefix):
        return []
    return [one for one in map(get, ids(prefix)) if args.kind in (None, one.kind)]


def _start(args):
    from .exercises import _work

    exercise = _exercise(args.id)
    try:
        path = _work.start(exercise)
    except FileExistsError:
        path = _work.work_file(exercise)
        if not path.is_file():
            raise Unknown(f"{path} cannot be written: something else is in its place.") from None
        _say(f"{path} is there already, and was left as it is.")
        return 0
    except OSError as error:
        raise Unknown(f"The file cannot be written: {error.strerror or error} ({error.filename}).") from None
    _say(f"{path} is there to work in.\nThen: python -m denselayer exercises check {exercise.id}")
    return 0


def _check(args):
    from .exercises import _state, _work

    exercise = _exercise(args.id)
    path = args.file or _work.work_file(exercise)
    if not path.is_file():
        begin = f"python -m denselayer exercises start {exercise.id}"
        raise Unknown(f"There is no file {path}." + ("" if args.file else f" Write one with: {begin}"))
    if path.suffix == ".ipynb":
        raise Unknown(f"{path} is a notebook: check the answer in it, with ex.check.")
    if args.points is not None and exercise.kind != "explain":
        raise Unknown("--points is for explanations.")
    source = _readable(path)
    feedback, ending = _work.check_file(exercise, path, points=args.points, seconds=args.time)
    _state.record(exercise, source, feedback)
    printed = ending.printed.strip("\n").splitlines()
    if printed:
        more = f"  ... and {len(printed) - SHOWN} lines more" if len(printed) > SHOWN else ""
        shown = [f"  {line}" for line in [*printed[:SHOWN]]]
        _say("\n".join(["printed:", *shown, *([more] if more else []), ""]))
    _say(str(feedback).replace("points=[1, 2]", "--points 1 2"))
    return 0 if feedback.passed or feedback.status == "written" else 1


def _readable(path):
    from .exercises import _work

    try:
        return _work.read(path)
    except OSError as error:
        raise Unknown(f"{path} cannot be read: {error.strerror or error}.") from None


def _hint(args):
    from .exercises import _state

    exercise = _exercise(args.id)
    hints = exercise.plain["hints"]
    if not hints:
        raise Unknown(f"{exercise.id} has no hints.")
    if args.all:
        _state.take_all_hints(exercise)
        rungs = range(1, len(hints) + 1)
    else:
        rungs = [min(_state.take_hint(exercise), len(hints))]
    last = f"\n\nThat was the last hint: python -m denselayer exercises solution {exercise.id}"
    end = last if rungs[-1] == len(hints) else ""
    _say("\n\n".join(f"Hint {rung} of {len(hints)}. {hints[rung - 1].strip()}" for rung in rungs) + end)
    return 0


def _solution(args):
    from .exercises import _state

    exercise = _exercise(args.id)
    if not args.yes and not _state.entry(exercise)["attempts"] and not _agreed(exercise):
        return 1
    _state.show_solution(exercise)
    _say(exercise.plain["solution"].strip() or f"{exercise.id} has no solution here.")
    return 0


def _agreed(exercise):
    said = f"{exercise.id} is not attempted yet."
    if not sys.stdin or not sys.stdin.isatty():
        raise Unknown(f"{said} Try it first, or say --yes.")
    return _asked(f"{said} Show the solution all the same? [y/N] ").lower() in ("y", "yes")


def _progress(args):
    from .exercises import _state

    _say(str(_state.progress()))
    return 0


def _submit(args):
    from .exercises import _state, _submission, chapters

    exercises = [one for prefix in chapters() for one in _selected(args, prefix)]
    path = args.out or _state.folder() / "submission.json"
    _submission.keep_others(path)
    answers = _submission.collect(exercises)
    pairs = [pair for pair in _checked(answers, args.time) if pair[1].status != "not attempted"]
    if not pairs:
        raise Unknown("There is no answer to hand in yet.")
    name = args.name.strip() or _asked("Your name: ")
    _submission.save(_submission.submission(name, *map(list, zip(*pairs, strict=True))), path)
    _say("\n".join(_summary(exercises, pairs, path, name)))
    return 0


def _checked(answers, limit):
    """Each answer with what it gets now; it is said how far that is."""
    from .exercises import _submission

    pairs = [(answer.exercise.id, answer.source) for answer in answers]
    with closing(_submission.check_many(pairs, jobs=cores(), seconds=limit)) as checked:
        for number, (answer, feedback) in enumerate(zip(answers, checked, strict=True), start=1):
            print(f"{number}/{len(answers)} {answer.exercise.id}", file=sys.stderr, flush=True)
            yield answer, feedback


def _summary(exercises, pairs, path, name):
    from .exercises import chapters

    stands = {answer.exercise.id: feedback.status for answer, feedback in pairs}
    right, written = (list(stands.values()).count(status) for status in ("correct", "written"))
    answers = "1 answer" if len(stands) == 1 else f"{len(stands)} answers"
    yield f"{path}: {answers} of {len(exercises)}; {right} right, {written} written to be read."
    wrong = [one for one, status in stands.items() if status not in ("correct", "written")]
    if wrong:
        yield f"Not right yet: {', '.join(wrong)}."
    for prefix, chapter in chapters().items():
        asked = [one.id for one in exercises if one.chapter == prefix]
        missing = [one for one in asked if one not in stands]
        if missing and missing == asked:
            yield f"Missing of {chapter}: all {len(asked)}."
        elif missing:
            yield f"Missing of {chapter}: {', '.join(missing)}."
    if not name:
        yield 'Your name is missing: say --name "First Last".'


def _asked(question):
    """What somebody at a terminal answers; nothing if there is nobody."""
    if not sys.stdin or not sys.stdin.isatty():
        return ""
    try:
        return input(question).strip()
    except EOFError:
        return ""


def _exercise(text):
    """The exercise that a student means."""
    from .exercises import get, ids

    name = Path(text).name.removesuffix(".py").strip().lower().replace("_", "-")
    name = name.removeprefix("@").removeprefix("#").removeprefix("exr-")
    with suppress(ValueError):
        return get(name)
    near = difflib.get_close_matches(name, ids(), n=3, cutoff=0.5)
    meant = f" Did you mean {' or '.join(near)}?" if near else ""
    raise Unknown(f"There is no exercise {text}.{meant} python -m denselayer exercises lists them all.")


def _say(text):
    """Print a text, wrapped to the width of the terminal, in colour if there is somebody to see it."""
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    lines = _lines(text)
    show("\n".join(map(_coloured, lines) if wanted and sys.stdout.isatty() else lines))


def _lines(text):
    from .exercises._show import wrapped

    width = shutil.get_terminal_size().columns
    return [piece for line in text.splitlines() for piece in wrapped(line, width)]


def _coloured(line):
    mark = line.lstrip()[:1]
    return line.replace(mark, f"\x1b[{COLOURS[mark]}m{mark}\x1b[0m", 1) if mark in COLOURS else line
