"""Keep a rank on a core of its own, and that core awake.

A process that waits for a message sleeps, and so does its processor. To wake a virtual processor takes 0.2 to
4 milliseconds, now this and now that, and what is measured is then the sleep. A loop of the lowest priority
keeps the core busy, and gives way at once to whoever else wants it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOOP = """
import ctypes, os, signal
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
os.sched_setaffinity(0, {{{core}}})
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
while os.getppid() == {parent}:
    for _ in range(100_000):
        pass
"""


@contextmanager
def steady(rank: int) -> Iterator[None]:
    """Inside, this thread stays on a core, awake; gloo's threads, which carry messages, are free to move.

    Nothing happens where the system cannot do it (it is Linux that can).
    """
    if sys.platform != "linux":
        yield
        return
    cores = sorted(os.sched_getaffinity(0))
    core = cores[rank % len(cores)]
    loop = subprocess.Popen([sys.executable, "-c", LOOP.format(core=core, parent=os.getpid())])
    _loops.append(loop.pid)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)
        _loops.clear()
        loop.kill()
        loop.wait()


_loops: list[int] = []


def loop_seconds() -> float:
    """Processor time that the loop of this process has used so far."""
    ticks = 0
    for pid in _loops:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")
