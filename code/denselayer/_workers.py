"""Worker processes: each holds one library with an environment of its own and times what it is told to.

Two thread pools in one process disturb each other, and so does a pool that still spins after its work. So
each library has a process, and on systems with job control all but the one at work are stopped.
"""

import importlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress

STARTS = "import sys; sys.path[:] = {path!r}; from denselayer._workers import serve; serve()"
THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
CLEARED = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "MKL_DEBUG_CPU_TYPE", "OMP_WAIT_POLICY")
CAN_STOP = hasattr(signal, "SIGSTOP") and hasattr(os, "killpg")
FAREWELL = 5.0
"""Seconds that a worker has for its own end."""


class WorkerError(RuntimeError):
    """A worker raised an exception, died or hung; ``alive`` says whether it can still be asked."""

    def __init__(self, message, *, alive, unsupported=False):
        super().__init__(message)
        self.alive = alive
        self.unsupported = unsupported


class Unsupported(Exception):
    """Raised by the ``make`` of a variant that does not exist for a shape or dtype: it is left out.

    >>> str(Unsupported("there is no float64 here"))
    'there is no float64 here'
    """


def environment(threads, extra=()):
    """The environment of a worker: so many threads for every BLAS, and none of the variables that bend one.

    >>> environment(2)["OPENBLAS_NUM_THREADS"]
    '2'
    """
    kept = {key: value for key, value in os.environ.items() if key not in CLEARED}
    return kept | dict.fromkeys(THREAD_VARIABLES, str(threads)) | dict(extra)


class Worker:
    """A process that is asked over its standard input and answers over its standard output, in JSON lines."""

    def __init__(self, name, environ):
        self.name = name
        self.log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        program = STARTS.format(path=[os.getcwd() if place == "" else place for place in sys.path])
        options = {"process_group": 0} if CAN_STOP else {}
        self.process = subprocess.Popen(
            [sys.executable, "-c", program],
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            **options,
        )
        self.answers = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def ask(self, request, timeout, **arguments):
        """Send a request and wait for its answer.

        Raises:
            WorkerError: the worker raised or died; or it gave no answer for ``timeout`` seconds, or one that
                makes no sense, and was ended.
        """
        self._signal("SIGCONT")
        try:
            self.process.stdin.write(json.dumps({"request": request, **arguments}) + "\n")
            self.process.stdin.flush()
        except (OSError, ValueError):
            self.answers.put(None)
        try:
            line = self.answers.get(timeout=timeout)
        except queue.Empty:
            self.kill()
            raise WorkerError(f"no answer for {timeout:g} s, ended", alive=False) from None
        if line is None:
            raise WorkerError(self._obituary(), alive=False)
        answer = _answer(line)
        if answer is None:
            self.kill()
            raise WorkerError(f"the answer {line.strip()[:40]!r} makes no sense, ended", alive=False)
        if "error" in answer:
            raise WorkerError(answer["error"], alive=True, unsupported=answer["unsupported"])
        return answer["result"]

    def rest(self):
        """Stop the process until it is asked again, so that its threads do not spin meanwhile."""
        self._signal("SIGSTOP")

    def close(self):
        """Let the process end by itself; end it if it does not."""
        self._signal("SIGCONT")
        with suppress(OSError, ValueError):
            self.process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(FAREWELL)
        self.kill()

    def kill(self):
        """End the process and all that it has started."""
        if CAN_STOP:
            self._signal("SIGKILL")
        elif self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.log):
            with suppress(OSError, ValueError):
                stream.close()

    def _listen(self):
        with suppress(ValueError, OSError):
            for line in self.process.stdout:
                self.answers.put(line)
        self.answers.put(None)

    def _signal(self, name):
        if CAN_STOP:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, getattr(signal, name))

    def _obituary(self):
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(FAREWELL)
        code = self.process.poll()
        how = "closed its output" if code is None else f"ended with exit code {code}"
        if code is not None and code < 0:
            with suppress(ValueError):
                how = f"was ended by {signal.Signals(-code).name}"
        with suppress(OSError, ValueError):
            self.log.seek(0)
            last = [line.strip() for line in self.log.read().splitlines() if line.strip()][-1:]
            how = ": ".join(["the process " + how, *last])
        self.kill()
        return how


def _answer(line):
    """The answer of a worker, or None if something else has written this line."""
    with suppress(ValueError):
        answer = json.loads(line)
        if isinstance(answer, dict):
            return answer
    return None


def serve():
    """Answer requests until the input ends; what libraries print goes to the error output."""
    reply = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    desk = Desk()
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"result": getattr(desk, request.pop("request"))(**request)}
        except Exception as error:
            first = (str(error).strip() or "no message").splitlines()[0]
            answer = {"error": f"{type(error).__name__}: {first}", "unsupported": False}
            if isinstance(error, Unsupported):
                answer = {"error": first, "unsupported": True}
        reply.write(json.dumps(answer) + "\n")
        reply.flush()


class Desk:
    """What a worker can be asked."""

    def __init__(self):
        self.functions = {}

    def machine(self):
        """The machine as this process sees it."""
        from ._machine import machine

        return machine()

    def prepare(self, variant, module, function, options, shape, dtype, threads, min_seconds):
        """Make a closure, warm it up, and say how many calls make a sample, and what it notes."""
        from ._timing import calibrate

        made = getattr(importlib.import_module(module), function)(shape, dtype, threads, **options)
        loops = calibrate(made, min_seconds)
        self.functions[variant] = made
        note = getattr(made, "note", None)
        return {"loops": loops, "note": None if note is None else str(note)}

    def sample(self, variant, loops, clock):
        """Time a variant: nanoseconds of one call, and the processor seconds that the sample took."""
        from ._timing import sample

        before = time.process_time()
        nanoseconds = sample(self.functions[variant], loops, clock)
        return {"ns": nanoseconds, "own": time.process_time() - before}

    def forget(self):
        """Let go of the closures and their arrays."""
        self.functions.clear()
