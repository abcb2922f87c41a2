"""Name the defect in the backward pass of a layer in a file."""

import argparse
import difflib
import json
import math
import os
import re
import sys
from functools import partial
from pathlib import Path

from . import _child
from ._child_side import Refused, find, own_names
from ._validate import article

CODES = {"healthy": 0, "sick": 1, "cannot tell": 2}
BAD_CALL = 3
UNITS = {"": 2**30, "gib": 2**30, "gb": 10**9, "mib": 2**20, "mb": 10**6}
SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", re.IGNORECASE)
SHOWN = 10
"""Lines of what the file printed that are shown if it did not come to its end."""
LONGEST = 100


class BadCall(Exception):
    """The command line asks for what is not there; the message says what to do."""


def add_arguments(parser):
    """What may be said on the command line."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description += (
        "\n\nexit codes: 0 healthy, 1 sick, 2 cannot tell, 3 bad call\n\n"
        "The file runs in a child process with limits on time and memory. That guards against\n"
        "accidents; it is no security sandbox."
    )
    parser.add_argument(
        "target",
        metavar="FILE.py[:NAME]",
        help="NAME is a class, or two functions: FILE.py:forward,backward; without it, all that is found",
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument(
        "--time", type=seconds, default=_child.SECONDS, metavar="S", help="seconds it may take (default: 20)"
    )
    parser.add_argument(
        "--memory", type=_size, default=_child.MEMORY, help="such as 500MB or 4GiB (default: 2GiB)"
    )
    _make_strict(parser)


def run(args):
    """Examine, print the reports; return the exit code."""
    try:
        path, names = _target(args.target)
        limited = partial(_child.run, seconds=args.time, memory=args.memory)
        answers = [_examine(path, names, limited)] if names else _examine_all(path, limited)
    except (BadCall, Refused) as error:
        print(f"error: {error}", file=sys.stderr)
        return BAD_CALL
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    if args.json:
        reports = [answer["json"] for answer in answers]
        show(json.dumps(reports[0] if names else reports, indent=2))
    else:
        show("\n\n".join(answer["text"] for answer in answers))
    codes = [CODES[answer["status"]] for answer in answers]
    return 1 if 1 in codes else max(codes)


def _target(text):
    """The file, and the names in it; an empty tuple if none are named."""
    named = re.fullmatch(r"(.+?\.py):(.*)", text, re.DOTALL)
    file, names = named.groups() if named else (text, None)
    path = Path(file)
    if path.is_dir():
        raise BadCall(f"{file} is a folder: name a file in it, such as {path / 'layer.py'}:Dense.")
    if not path.is_file():
        raise BadCall(f"There is no file {file}.{_near(path)}")
    if path.suffix != ".py":
        more = " Save the cell with your layer as a file." if path.suffix == ".ipynb" else ""
        raise BadCall(f"{file} is no Python file: its name should end with .py.{more}")
    if names is None:
        return path, ()
    parts = tuple(part.strip() for part in names.split(","))
    if not all(parts) or len(parts) > 2:
        came = f"{names!r} is no name of a class and no pair of functions"
        raise BadCall(f"{came}: say {file}:Dense, or {file}:forward,backward.")
    return path, parts


def _near(path):
    if not path.parent.is_dir():
        return f" There is no folder {path.parent} either."
    files = [each.name for each in sorted(path.parent.glob("*.py"))]
    near = difflib.get_close_matches(path.name, [*files], n=1) or [
        each for each in files if each == f"{path.name}.py"
    ]
    return f" Did you mean {path.with_name(near[0])}?" if near else ""


def _examine_all(path, limited):
    """Examine whatever a file holds, and say on the error output what that is."""
    ending = limited(f"{__name__}:discover", path)
    if not ending.finished:
        return [_accident(path.name, path, ending)]
    found = [tuple(names) for names in ending.value["subjects"]]
    if not found:
        has = ", ".join(ending.value["names"][:SHOWN]) or "nothing"
        wanted = "a class with forward and backward, or two functions such as forward and backward"
        raise BadCall(f"{path.name} holds nothing to examine: {wanted}. It defines {has}.")
    print(f"found in {path.name}: {'; '.join(map(_joined, found))}", file=sys.stderr)
    return [_examine(path, names, limited) for names in found]


def _joined(names):
    return ",".join(names)


def _examine(path, names, limited):
    """Examine one subject in a child: the text and the JSON of its report, and its status."""
    memory = _child.size_in_words(limited.keywords["memory"])
    arguments = {"names": list(names), "subject": f"{path.name}:{_joined(names)}", "memory": memory}
    function = f"{__name__}:examine"
    ending = limited(function, path, arguments)
    if ending.finished and ending.size > _child.STORM:
        ending = limited(function, path, arguments | {"printed": _child.size_in_words(ending.size)})
    if ending.kind == "refused":
        raise Refused(ending.sentence)
    if not ending.finished:
        return _accident(arguments["subject"], path, ending)
    answer = ending.value
    if ending.notes:
        answer["json"]["notes"] += ending.notes
        answer["text"] = "\n".join([answer["text"], *(f"note: {note}" for note in ending.notes)])
    return answer


def _accident(subject, path, ending):
    """The report on a file that did not come to its end."""
    from .doctor import DEFECTS, Finding, Report

    if ending.kind == "never started":
        raise BadCall(ending.sentence)
    known = ending.kind in DEFECTS
    findings = (Finding(ending.kind, (f"the file {path.name}",), {"other": ending.other}),) if known else ()
    notes = [] if known else [ending.sentence]
    if ending.line and ending.source not in ending.other:
        notes.append(f"It was in line {ending.line} then: {ending.source}")
    notes += [note for note in (ending.advice, *ending.notes) if note]
    report = Report(subject, findings=findings, notes=tuple(notes), failed=True)
    content = {"examined": subject} | json.loads(report.to_json()) | {"printed": ending.printed}
    return {"text": "\n".join([str(report), *_printed(ending)]), "json": content, "status": report.status}


def _printed(ending):
    lines = ending.printed.strip().splitlines()
    if not lines:
        return []
    more = ["..."] if len(lines) > SHOWN else []
    return ["what it printed:", *(f"  {line[:LONGEST]}" for line in more + lines[-SHOWN:])]


def discover(module):
    """In the child: what can be examined, and what else the file defines."""
    names = own_names(module)
    things = {name: getattr(module, name) for name in names}
    classes = [name for name, thing in things.items() if isinstance(thing, type) and _has_both(thing)]
    parents = {parent.__name__ for name in classes for parent in things[name].__mro__[1:]}
    subjects = [(name,) for name in classes if name not in parents]
    functions = [name for name, thing in things.items() if callable(thing) and not isinstance(thing, type)]
    for backward in functions:
        if "backward" in backward:
            forward = backward.replace("backward", "forward")
            short = backward.replace("_backward", "").replace("backward_", "")
            subjects += [
                (name, backward) for name in (forward, short) if name in functions and name != backward
            ][:1]
    return {"subjects": subjects, "names": names}


def _has_both(thing):
    return all(callable(getattr(thing, name, None)) for name in ("forward", "backward"))


def examine(module, names, subject, memory, printed=""):
    """In the child: the report on a class, an object or a pair of functions, as plain values.

    Args:
        module: the person's file.
        names: of what is examined.
        subject: how it is called in the report.
        memory: the limit, in words.
        printed: how much was printed in another run of the same, in words, if that was too much.
    """
    from dataclasses import replace

    from . import doctor

    file = Path(module.__file__).name
    things = [find(module, name) for name in names]
    for name, thing in zip(names, things, strict=True):
        _refuse_others(name, thing, len(things), subject)
    report = doctor.diagnose_layer(*things)
    findings = [_as_memory(finding, memory) for finding in report.findings]
    if printed:
        findings.append(doctor.Finding("print-storm", (f"the file {file}",), {"other": printed}))
    report = replace(report, findings=tuple(findings))
    content = {"examined": subject} | json.loads(report.to_json())
    return {"text": f"{subject}\n{report}", "json": content, "status": report.status}


def _as_memory(finding, memory):
    """A crash for want of memory is a finding of its own."""
    from .doctor import Finding

    if finding.defect == "crash" and str(finding.facts.get("other", "")).startswith("MemoryError"):
        return Finding("memory", finding.where, {"other": memory})
    return finding


def _refuse_others(name, thing, count, subject):
    if count == 2 and not callable(thing):
        raise Refused(f"{name} is {article(type(thing).__name__)}, not a function: name two functions.")
    if count == 1 and not _has_both(thing):
        if isinstance(thing, type):
            missing = [each for each in ("forward", "backward") if not callable(getattr(thing, each, None))]
            raise Refused(f"The class {name} has no method {' and no method '.join(missing)}.")
        if callable(thing):
            raise Refused(f"{name} is a function: name its backward pass too, {subject},{name}_backward.")
        raise Refused(f"{name} is {article(type(thing).__name__)}: name a class, or two functions.")


def show(text):
    """Print a text, whether or not anybody reads it to its end (``| head``) or can show all its letters."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def seconds(text):
    """A time on the command line."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no time in seconds: say 20")
    return number


def _size(text):
    found = SIZE.fullmatch(text)
    unit = found and UNITS.get(found[2].lower())
    if not unit or not float(found[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is no size: say 500MB or 4GiB")
    return int(float(found[1]) * unit)


def _make_strict(parser):
    """Let bad arguments end with the code of a bad call; that of argparse, 2, means something else here."""

    def error(message):
        parser.print_usage(sys.stderr)
        parser.exit(BAD_CALL, f"{parser.prog}: error: {message}\n")

    def parse(args=None, namespace=None, known=parser.parse_known_args):
        found, rest = known(args, namespace)
        if rest:
            parser.error(f"unrecognized arguments: {' '.join(rest)}")
        return found, rest

    parser.error, parser.parse_known_args = error, parse
