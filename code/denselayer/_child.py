"""Somebody's file in a child process: limits on time, memory and output, and a plain sentence for each end.

This is a guard against accidents, no security sandbox: the code runs with all the rights of who started it.
"""

import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ._child_side import PROGRAM, READY, REQUEST, last_words
from ._workers import environment

SECONDS = 20.0
MEMORY = 2 * 2**30
KEPT = 64 * 1024
"""Bytes of each output stream that are kept."""
STORM = 2**20
"""Bytes of output from which on it is called a storm."""
FLOOD = 64 * 2**20
"""Bytes of output at which the child is ended."""
START = 60.0
"""Seconds that Python and NumPy have to start."""
GRACE = 1.0
"""Seconds for the child's own clock to end it, which tells the line; after them it is killed."""
WATCHDOG = 1
"""The exit code with which the child's own clock ends it."""
LARGEST = 64 * 2**20
"""Bytes of a result that are read."""
MARK = "DENSELAYER_CHILD"
"""Environment variable with a random value: it finds those who have left the process group."""
CAN_GROUP = hasattr(os, "killpg")


@dataclass(frozen=True)
class Ending:
    """How a child ended.

    Attributes:
        kind: ``"finished"``, or an id of the group "files" of the doctor's table (``"crash"``,
            ``"endless-loop"``, ``"print-storm"``, ``"exits"``, ``"memory"``), ``"refused"`` (what was
            asked for is not in the file), ``"failed"`` (the function raised, and not in a line of the file),
            or ``"never started"``.
        sentence: what happened, in one sentence; empty if it finished.
        value: what the function returned.
        other: the short form of what happened, for the templates of the table.
        line: the line of the person's file, or None.
        source: the text of that line.
        advice: what helps with this kind of end, or an empty text.
        printed: the start of what the file printed, both streams.
        size: how many bytes it printed.
        notes: what else the person should know.
    """

    kind: str
    sentence: str = ""
    value: object = None
    other: str = ""
    line: int | None = None
    source: str = ""
    advice: str = ""
    printed: str = ""
    size: int = 0
    notes: tuple[str, ...] = ()

    @property
    def finished(self) -> bool:
        """Whether the function came to its end and returned something."""
        return self.kind == "finished"


def run(function, file, arguments=None, *, seconds=SECONDS, memory=MEMORY, stop=None):
    """Load a file in a fresh Python process and call a function with the module that it became.

    Args:
        function: ``"package.module:name"``; the child imports it, calls it with the loaded module and the
            arguments, and what it returns must be plain values that JSON knows.
        file: the person's file.
        arguments: a dict of further arguments, of plain values.
        seconds: how long loading and calling may take together.
        memory: bytes of address space that it may take, beyond what NumPy has taken.
        stop: a `threading.Event` that ends the child.

    Returns:
        An `Ending`.

    Raises:
        OSError: no process can be started here.
        KeyboardInterrupt: Ctrl-C, or ``stop`` was set; the child has ended.
    """
    token = secrets.token_hex(16)
    with tempfile.TemporaryDirectory(prefix="denselayer-", ignore_cleanup_errors=True) as box:
        box = Path(box)
        (box / "work").mkdir()
        file = Path(file).resolve()
        request = {"function": function, "file": str(file), "arguments": arguments or {}}
        request |= {"seconds": seconds, "memory": memory, "result": token}
        (box / REQUEST).write_text(json.dumps(request), encoding="utf-8")
        process = _start(box, token)
        taps = [_Tap(process.stdout), _Tap(process.stderr)]
        try:
            ended = _watch(process, box, seconds, taps, stop)
        finally:
            _end(process, token)
            for tap in taps:
                tap.close()
        answer = _read(box / token) or _obituary(ended or process.returncode, box, file)
        return _ending(answer, file, seconds, memory, taps)


def _start(box, token):
    paths = [os.path.abspath(place) for place in sys.path]
    program = PROGRAM.format(path=paths, box=str(box))
    extra = {"PYTHONIOENCODING": "utf-8:backslashreplace", "MPLBACKEND": "Agg", MARK: token}
    extra["DENSELAYER_EXERCISES"] = str(box / "work" / "denselayer-exercises")
    return subprocess.Popen(
        [sys.executable, "-B", "-c", program],
        cwd=box / "work",
        env=environment(1, extra),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=CAN_GROUP,
    )


def _watch(process, box, seconds, taps, stop):
    """Wait for the end; return the reason if it must be ended from here."""
    limit, ready = time.monotonic() + START, False
    while process.poll() is None:
        if not ready and (box / READY).exists():
            limit, ready = time.monotonic() + seconds, True
        if stop is not None and stop.is_set():
            raise KeyboardInterrupt
        if sum(tap.size for tap in taps) > FLOOD:
            return "print-storm"
        if time.monotonic() > limit + GRACE:
            return "endless-loop"
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.02)
    late = ready and time.monotonic() > limit - 0.2 and process.returncode == WATCHDOG
    return "endless-loop" if late else None


def _end(process, token):
    """End the process, and all that it has started."""
    if CAN_GROUP:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    elif process.poll() is None:
        with suppress(OSError):
            subprocess.run(["taskkill", "/F", "/T", "/PID", str(process.pid)], capture_output=True)
        process.kill()
    process.wait()
    for _ in range(100):
        if not any([_kill(number) for number in _marked(token)]):
            break
        time.sleep(0.01)


def _marked(token):
    """The processes that have inherited the mark, on systems that tell the environment of a process."""
    wanted = f"{MARK}={token}".encode()
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if wanted in (place / "environ").read_bytes():
                yield int(place.name)


def _kill(number):
    with suppress(ProcessLookupError, PermissionError):
        os.kill(number, signal.SIGKILL)
        return True
    return False


class _Tap:
    """Reads a stream to its end so that nobody waits for it, and keeps the start."""

    def __init__(self, stream):
        self.stream, self.kept, self.size = stream, bytearray(), 0
        self.thread = threading.Thread(target=self._drain, daemon=True)
        self.thread.start()

    def _drain(self):
        with suppress(OSError, ValueError):
            while piece := os.read(self.stream.fileno(), 1 << 16):
                self.size += len(piece)
                self.kept += piece[: KEPT - len(self.kept)]

    def close(self):
        self.thread.join(1.0)
        if not self.thread.is_alive():
            self.stream.close()

    def text(self):
        return self.kept.decode("utf-8", errors="replace")


def _read(path):
    """What the child has written down at its end; None if nothing, or nonsense."""
    with suppress(OSError, ValueError, RecursionError):
        if path.stat().st_size <= LARGEST:
            answer = json.loads(path.read_text(encoding="utf-8"))
            return answer if isinstance(answer, dict) and "kind" in answer else None
    return None


def _obituary(ended, box, file):
    """The answer for a child that gave none; ``ended`` is its exit code or the reason why it was ended."""
    if not (box / READY).exists():
        return {"kind": "never started"}
    first, where = "", {}
    with suppress(OSError):
        first, where = last_words(box, file)
    if first.startswith("Timeout"):
        ended = "endless-loop"
    return ({"kind": ended} if isinstance(ended, str) else _died(ended)) | where


def _died(code):
    if code >= 0:
        return {"kind": "exits", "what": f"exit code {code}, without a word (os._exit does so)"}
    name = f"signal {-code}"
    with suppress(ValueError):
        name = signal.Signals(-code).name
    return {"kind": "crash", "what": SIGNALS.get(name, f"the signal {name}")}


SIGNALS = {
    "SIGSEGV": "SIGSEGV: it used memory that is not its own",
    "SIGABRT": "SIGABRT: a library gave up",
    "SIGFPE": "SIGFPE: a forbidden operation on numbers",
    "SIGKILL": "SIGKILL: it was ended from outside, most often by the system when memory is short",
    "SIGTERM": "SIGTERM: it was ended from outside, or by itself",
}
ADVICE = {
    "EOFError": "Nobody is there to answer a question: remove input().",
    "ModuleNotFoundError": "Only what is installed here, and modules beside the file, can be imported.",
    "FileNotFoundError": "The file runs in an empty folder: name other files from Path(__file__).parent on.",
    "RecursionError": "A function calls itself without end: it needs a case in which it does not.",
    "IndentationError": "The spaces at the start of a line say what belongs together.",
}


def _ending(answer, file, seconds, memory, taps):
    """Put what the child said, and how it ended, into words."""
    kind, size = answer["kind"], sum(tap.size for tap in taps)
    if kind == "endless-loop" and size > STORM:
        kind = "print-storm"
    last = [line.strip() for line in taps[1].text().splitlines() if line.strip()][-1:]
    other, sentence = _words(kind, answer | {"last": "".join(last)}, file.name, seconds, memory, size)
    notes = list(answer.get("notes", ()))
    if any(tap.size > KEPT for tap in taps):
        notes.append(f"{file.name} printed {size_in_words(size)}; only the first {KEPT // 1024} KB are kept.")
    return Ending(
        kind,
        sentence,
        answer.get("value"),
        other,
        answer.get("line"),
        answer.get("source", ""),
        ADVICE.get(str(answer.get("what", "")).partition(":")[0], ""),
        "".join(tap.text() for tap in taps),
        size,
        tuple(notes),
    )


def _words(kind, answer, name, seconds, memory, size):
    """The short and the long form of an end."""
    what, last, place = answer.get("what", ""), answer["last"], _place(answer)
    inside, then = (f" in {place}", f"; it was in {place} then") if place else ("", "")
    if kind == "finished":
        return "", ""
    if kind == "refused":
        return what, what
    if kind == "failed":
        return what, f"The examination of {name} failed with {what}."
    if kind == "endless-loop":
        return f"{seconds:g} s{then}", f"{name} did not come to an end within {seconds:g} s{then}."
    if kind == "print-storm":
        end = "was stopped" if size > FLOOD else "did not come to an end"
        return size_in_words(size), f"{name} printed {size_in_words(size)} and {end}{then}."
    if kind == "memory":
        return size_in_words(memory), f"{name} wanted more than {size_in_words(memory)} of memory{inside}."
    if kind == "exits":
        return f"{what}{inside}", f"{name} ended the program{inside}: {what}."
    if kind == "never started":
        said = f"Python could not start the examination of {name}"
        return what, f"{said}: {last}." if last else f"{said}: the machine is too busy."
    if answer.get("syntax"):
        return f"{what}{inside}", f"{name} cannot be read as Python: {place}: {what}."
    return f"{what}{inside}", f"{name} stopped{inside} with {what}."


def _place(answer):
    if not answer.get("line"):
        return ""
    source = f" (`{answer['source']}`)" if answer.get("source") else ""
    beside = f" of {answer['beside']}" if answer.get("beside") else ""
    return f"line {answer['line']}{beside}{source}"


def size_in_words(number):
    """A size as a person would say it.

    >>> size_in_words(2 * 2**30), size_in_words(3_500_000), size_in_words(70_000)
    ('2 GiB', '3.5 MB', '70 KB')
    """
    if number % 2**20 == 0 and number:
        return f"{number / 2**30:g} GiB" if number >= 2**30 else f"{number // 2**20} MiB"
    return f"{number / 1e6:.3g} MB" if number >= 1e6 else f"{number / 1e3:.0f} KB"
