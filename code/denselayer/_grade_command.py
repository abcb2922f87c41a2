"""Check the submissions of a class again, and write a table and a page."""

import argparse
import sys
from pathlib import Path

from ._child import SECONDS
from ._doctor_command import seconds
from ._machine import cores


def add_arguments(parser):
    """What may be said on the command line."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description += (
        "\n\nEvery answer runs in a child process with limits on time and memory. That guards against\n"
        "accidents; it is no security sandbox: the answers run with your rights."
    )
    parser.add_argument("folder", type=Path, help="the folder with the submissions, *.json, also below it")
    parser.add_argument("--out", type=Path, help="where grades.csv and grades.html go (default: FOLDER)")
    parser.add_argument("--jobs", type=_count, help="answers checked at once (default: one for each core)")
    parser.add_argument(
        "--time", type=seconds, default=SECONDS, metavar="S", help="seconds for each answer (default: 20)"
    )


def run(args):
    """Grade, write the files; return the exit code."""
    from .exercises import _grade, _grade_files

    out = args.out or args.folder
    found = _grade.papers(args.folder)
    if not found:
        raise FileNotFoundError(f"there is no submission in {args.folder}: none of its files ends with .json")
    _grade_files.keep_others(out)
    try:
        graded = _grade.grade(found, jobs=args.jobs or cores(), seconds=args.time, progress=_say)
    except KeyboardInterrupt:
        print("stopped: nothing was written", file=sys.stderr)
        return 130
    paths = _grade_files.save(graded, out)
    broken = sum(bool(one.paper.broken) for one in graded)
    print(f"{len(graded) - broken} of {len(graded)} submissions graded: {paths[0]} and {paths[1]}")
    return 0


def _say(one):
    said = (
        one.paper.broken or f"{one.count('correct')} right, {one.count('written')} written, {one.wrong} not"
    )
    print(f"{one.paper.file}: {said}", file=sys.stderr, flush=True)


def _count(text):
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of jobs: say 4")
    return int(text)
