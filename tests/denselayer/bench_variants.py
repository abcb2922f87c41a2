"""Variants for the tests of the harness: some do their work, the others fail in all ways there are."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from denselayer.bench import Unsupported


class Noted:
    """A closure with a note; each call is written down in a file."""

    def __init__(self, name, diary, note=None):
        self.name, self.diary, self.note = name, diary, note

    def __call__(self):
        if self.diary:
            with Path(self.diary).open("a") as file:
                file.write(f"{self.name}\n")


def works(shape, dtype, threads, name="works", diary=None):
    print("what a library prints does not disturb the answers")
    return Noted(name, diary, note=f"process {os.getpid()}")


def tells_environment(shape, dtype, threads):
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_CORETYPE", "EXTRA")
    return Noted("", None, note=" ".join(str(os.environ.get(name)) for name in names))


def watches(shape, dtype, threads, folder):
    """A closure that writes down the state of all processes that were made before in this folder."""
    (Path(folder) / str(os.getpid())).touch()

    def call():
        others = [path.name for path in Path(folder).glob("*") if path.name.isdigit()]
        states = {state_of(number) for number in others if int(number) != os.getpid()}
        with (Path(folder) / f"diary {threads}").open("a") as file:
            file.write(f"{' '.join(sorted(states))}\n")

    return call


def state_of(number):
    """The letter for which Linux writes down a process, ``T`` if it is stopped, which may take a moment."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return "gone"
        if state == "T":
            break
        time.sleep(0.02)
    return state


def cannot_be_made(shape, dtype, threads):
    raise ValueError("no such thing\nsecond line")


def is_not_supported(shape, dtype, threads):
    raise Unsupported(f"there is no {dtype} here")


def later(action, calls=3):
    """A closure that does well for a few calls."""
    left = [calls]

    def call():
        left[0] -= 1
        if left[0] < 0:
            action()

    return call


def raises_later(shape, dtype, threads):
    return later(lambda: 1 / 0)


def exits(shape, dtype, threads):
    os.write(2, b"a last word\n")
    os._exit(3)


def is_killed_later(shape, dtype, threads):
    return later(lambda: os.kill(os.getpid(), signal.SIGTERM))


def talks_nonsense(shape, dtype, threads):
    for descriptor in range(3, 12):
        with suppress(OSError):
            os.write(descriptor, b"hello\n3\n")
    return lambda: None


def hangs(shape, dtype, threads):
    return lambda: time.sleep(60)
