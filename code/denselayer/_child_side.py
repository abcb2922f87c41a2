"""What the child process does: it sets its limits, loads the person's file, and writes down how it went."""

import faulthandler
import importlib
import io
import json
import linecache
import os
import re
import sys
import tokenize
import traceback
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType

PROGRAM = "import sys; sys.path[:] = {path!r}; from denselayer._child_side import serve; serve({box!r})"
REQUEST, READY, TRACE = "request", "ready", "trace"
FILE_SIZE = 256 * 2**20
"""Bytes of the largest file that it may write."""
LONGEST = 300
SHOWN = 8
NO_MEMORY_LIMIT = "This system has no limit on memory: only the time was limited."


class Refused(Exception):
    """What was asked for is not in the file; the message is a sentence for the person."""


def serve(box):
    """Carry out the request that lies in a folder, write the result there, and end the process."""
    box, leave, number = Path(box), os._exit, os.getpid()
    request = json.loads((box / REQUEST).read_text(encoding="utf-8"))
    (box / REQUEST).unlink()
    module, _, name = request["function"].partition(":")
    function = getattr(importlib.import_module(module), name)
    notes = _limit(request["memory"])
    trace = (box / TRACE).open("w")
    faulthandler.enable(trace)
    (box / READY).touch()
    faulthandler.dump_traceback_later(request["seconds"], exit=True, file=trace)
    answer = _attempt(function, request) | {"notes": notes}
    if os.getpid() == number:
        faulthandler.cancel_dump_traceback_later()
        _write(box / request["result"], answer)
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with suppress(Exception):
            stream.flush()
    leave(0)


def _limit(memory):
    """Set limits where the system knows them; return what the person should know."""
    try:
        import resource
    except ImportError:
        return [NO_MEMORY_LIMIT]
    limits, notes = {resource.RLIMIT_FSIZE: FILE_SIZE, resource.RLIMIT_CORE: 0}, []
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limits[resource.RLIMIT_AS] = pages * resource.getpagesize() + memory
    except OSError:
        notes.append(NO_MEMORY_LIMIT)
    for which, wanted in limits.items():
        hard = resource.getrlimit(which)[1]
        least = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(which, (least, least))
    return notes


def _attempt(function, request):
    """Load the file and call the function; whatever happens becomes a dict of plain values."""
    path = request["file"]
    try:
        module = load(path)
    except BaseException as error:
        return _accident(error, path)
    try:
        return {"kind": "finished", "value": function(module, **request["arguments"])}
    except Refused as error:
        return {"kind": "refused", "what": str(error)}
    except BaseException as error:
        found = _accident(error, path)
        return found | {"kind": "failed"} if found["kind"] == "crash" and "line" not in found else found


def _accident(error, path):
    """What an exception means, and where in the person's file it came from."""
    if isinstance(error, SystemExit):
        code = "" if error.code is None else _short(repr(error.code))
        return {"kind": "exits", "what": f"sys.exit({code})", **_place(error, path)}
    if isinstance(error, MemoryError):
        return {"kind": "memory", **_place(error, path)}
    if isinstance(error, SyntaxError) and error.filename == path:
        source = (error.text or "").strip()
        what = f"{type(error).__name__}: {error.msg}"
        return {"kind": "crash", "what": what, "line": error.lineno, "source": source, "syntax": True}
    return {"kind": "crash", "what": describe(error), **_place(error, path)}


def _write(path, answer):
    try:
        text = json.dumps(answer)
    except (TypeError, ValueError, RecursionError) as error:
        text = json.dumps({"kind": "failed", "what": f"a result that cannot be told: {describe(error)}"})
    path.write_text(text, encoding="utf-8")


def load(path):
    """Run a file as a module, with the modules beside it at hand, and without its ``__main__`` part.

    Raises:
        SyntaxError: the file is no Python, or not in the encoding that it claims.
    """
    path = str(path)
    source = _source(path)
    code = compile(source, path, "exec", dont_inherit=True)
    stem = Path(path).stem
    known = stem in sys.modules or stem in sys.stdlib_module_names or not stem.isidentifier()
    module = ModuleType("the_file" if known else stem)
    module.__file__ = path
    sys.modules[module.__name__] = module
    sys.argv[:] = [path]
    sys.path.insert(0, str(Path(path).parent))
    exec(code, module.__dict__)
    return module


def _source(path):
    content = Path(path).read_bytes()
    if b"\0" in content:
        line = content[: content.index(b"\0")].count(b"\n") + 1
        raise SyntaxError("it holds a zero byte: it is no text, or saved as UTF-16", (path, line, 0, ""))
    try:
        encoding = tokenize.detect_encoding(io.BytesIO(content).readline)[0]
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        said = f"byte {content[error.start]:#04x} is not UTF-8: save the file as UTF-8"
        raise SyntaxError(said, (path, line, 0, "")) from None
    except SyntaxError as error:
        line = next((n for n, each in enumerate(content.splitlines(), 1) if not _is_utf8(each)), 1)
        raise SyntaxError(f"{error.msg}: save the file as UTF-8", (path, line, 0, "")) from None
    return io.IncrementalNewlineDecoder(None, translate=True).decode(text, final=True)


def _is_utf8(line):
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def find(module, name):
    """What a file calls ``name``.

    Raises:
        Refused: nothing there has this name; the message tells the names that there are, near ones first.
    """
    with suppress(KeyError):
        return vars(module)[name]
    file, names = Path(module.__file__).name, own_names(module)
    near = get_close_matches(name, names, n=1, cutoff=0.6)
    meant = f" Did you mean {near[0]}?" if near else ""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    has = f"it has {', '.join(names[:SHOWN])}{more}" if names else "it defines nothing"
    raise Refused(f"There is no {name} in {file}: {has}.{meant}")


def own_names(module):
    """The public names that a file defines: functions and classes first, then all but imported modules.

    >>> own_names(sys.modules[__name__])[:3]
    ['Refused', 'serve', 'load']
    """
    public = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    made = [
        name
        for name, value in public.items()
        if isinstance(value, FunctionType | type) and value.__module__ == module.__name__
    ]
    imported = ModuleType | FunctionType | BuiltinFunctionType | type
    return made + [name for name, value in public.items() if not isinstance(value, imported)]


def describe(error):
    """An exception in one line.

    >>> describe(ZeroDivisionError("division by zero"))
    'ZeroDivisionError: division by zero'
    """
    try:
        text = str(error)
    except Exception:
        text = ""
    first = next((line for line in text.splitlines() if line.strip()), "")
    return _short(f"{type(error).__name__}: {first}" if first else type(error).__name__)


def _short(text):
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _place(error, path):
    """The deepest line of the person's file that an exception went through, or of a file beside it."""
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    folder = Path(path).parent
    own = [frame for frame in frames if frame[0] == path]
    near = own or [frame for frame in frames if Path(frame[0]).parent == folder]
    if not near:
        return {}
    name, line = near[-1]
    return place(name, line) | ({} if name == path else {"beside": Path(name).name})


def place(name, line):
    """The number of a line and what stands there."""
    return {"line": line, "source": _short(linecache.getline(name, line).strip())}


FRAME = re.compile(r'^ +File "(.*)", line (\d+) in', re.MULTILINE)


def last_words(box, path):
    """What the watchdog of the child wrote down: its first line, and where the person's file was then.

    Raises:
        OSError: it wrote nothing.
    """
    text = (Path(box) / TRACE).read_text(encoding="utf-8", errors="replace")
    own = str(path).encode("ascii", "backslashreplace").decode()
    lines = [int(line) for name, line in FRAME.findall(text) if name == own]
    return text.partition("\n")[0], place(str(path), lines[0]) if lines else {}
