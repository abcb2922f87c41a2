"""Start a task on several processes, and end it with an error that says which rank is to blame.

    python -m benchmarks.distributed.run check

runs ``torchrun --nproc-per-node=2`` on this machine alone. A rank that never comes, dies or no longer answers
ends the run within seconds; nothing that was started is left running.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from . import notes
from .worker import FAULTS, TASKS

ROOT = Path(__file__).resolve().parents[2]
LOOPBACK = "lo0" if sys.platform == "darwin" else "lo"
JOIN, ANSWER, TIMEOUT = 10.0, 10.0, 120.0
FAILURE = re.compile(r"rank\s*:\s*(\d+).*?exitcode\s*:\s*(-?\d+)", re.DOTALL)
ONE_EACH = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class RunError(RuntimeError):
    """A run that did not succeed: which rank is to blame, and what to do.

    ``log`` is what torchrun and the ranks wrote, ``pids`` are the processes that the ranks had.
    """

    def __init__(self, message: str, log: str, pids: tuple[int, ...] = ()):
        super().__init__(message)
        self.log = log
        self.pids = pids


def launch(
    task: str,
    ranks: int = 2,
    *,
    options: dict[str, Any] | None = None,
    join: float = JOIN,
    answer: float = ANSWER,
    timeout: float = TIMEOUT,
    fault: str = "",
    steady: bool = False,
) -> list[Any]:
    """Run a task with torchrun; the reports of all ranks.

    Args:
        task: one of ``TASKS``.
        ranks: how many processes.
        options: keyword arguments of the task.
        join: seconds that the ranks wait for each other at the start.
        answer: seconds that an exchange waits for another rank.
        timeout: seconds that the whole run may take.
        fault: ``"dies:1"``, ``"absent:1"`` or ``"stuck:1"``: what rank 1 is to do wrong, for tests.
        steady: whether each rank keeps to a core of its own, and that core awake (for measurements).

    Raises:
        RunError: a rank is missing, died, does not answer or failed, or the time is over.
    """
    with tempfile.TemporaryDirectory(prefix="denselayer-") as name:
        folder = Path(name)
        log = folder / "log"
        command = _command(task, ranks, options or {}, join, answer, fault, steady)
        with log.open("wb") as sink:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=_environment(folder),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                process.wait(timeout)
                late = False
            except subprocess.TimeoutExpired:
                late = True
            finally:
                _end(process, folder, ranks)
        said = notes.read(folder, ranks)
        text = log.read_text(encoding="utf-8", errors="replace")
    if process.returncode == 0 and not late:
        return [note["report"] for note in said]
    limits = {"join": join, "answer": answer, "timeout": timeout}
    pids = tuple(note["pid"] for note in said if note)
    raise RunError(blame(said, text, late, limits), text, pids)


def blame(said: list[dict[str, Any]], log: str, late: bool, limits: dict[str, float]) -> str:
    """Which rank ended the run, why, and what to do, from the notes of the ranks and torchrun's log."""
    ranks = len(said)
    errors = {rank: note["error"] for rank, note in enumerate(said) if "error" in note}
    exits = {int(rank): int(code) for rank, code in FAILURE.findall(log)}
    for error in errors.values():
        if error["kind"] == "missing":
            (rank, *_) = error["missing"]
            return (
                f"{_names(error['missing'])} of {ranks} did not come within {limits['join']:g} s "
                f"({_life(said[rank])}). Start all ranks, see why it does not get so far, "
                f"or give it longer with --join."
            )
    for rank, error in errors.items():
        if error["kind"] == "own":
            return f"rank {rank} of {ranks} failed: {error['text']}. Its traceback is in the log (--log)."
    silent = [rank for rank, note in enumerate(said) if "error" not in note and note.get("state") != "done"]
    if errors and silent:
        waiting = next(iter(errors))
        if "Timed out" in errors[waiting]["text"]:
            return (
                f"{_names(silent)} of {ranks} did not answer rank {waiting} within {limits['answer']:g} s. "
                f"It is alive and does something else: see what, or give it longer with --answer."
            )
        return _died(silent[0], ranks, exits.get(silent[0]))
    if late:
        return (
            f"the run was not finished after {limits['timeout']:g} s; still at work: {_names(silent)} of "
            f"{ranks}. Give it longer with --timeout, or less to do."
        )
    if exits:
        *_, rank = exits  # torchrun names the first failure last
        return _died(rank, ranks, exits[rank])
    last = log.strip().splitlines()[-1:] or ["nothing was written"]
    return f"torchrun ended before the ranks began: {last[0]}. The log (--log) has the rest."


def _died(rank: int, ranks: int, code: int | None) -> str:
    how = "without a word"
    if code is not None and code < 0:
        how = f"by signal {-code} ({signal.Signals(-code).name})"
    elif code:
        how = f"with exit code {code}"
    return (
        f"rank {rank} of {ranks} died {how}; the others were stopped. If nobody killed it, the memory may "
        f"have run out: try smaller sizes, or fewer ranks."
    )


def _life(note: dict[str, Any]) -> str:
    return f"its process, {note['pid']}, was started" if note else "its process was never seen"


def _names(ranks: list[int]) -> str:
    return ("rank " if len(ranks) == 1 else "ranks ") + ", ".join(map(str, ranks))


def _command(
    task: str, ranks: int, options: dict[str, Any], join: float, answer: float, fault: str, steady: bool
) -> list[str]:
    torchrun = [
        sys.executable,
        "-m",
        "benchmarks.distributed.torchrun",
        f"--nproc-per-node={ranks}",
        "--nnodes=1",
    ]
    here = ["--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", "--local-addr=127.0.0.1"]
    quick = ["--monitor-interval=0.1", "--max-restarts=0"]
    worker = ["-m", "benchmarks.distributed.worker", task, f"--options={json.dumps(options)}"]
    limits = [f"--join={join}", f"--answer={answer}", f"--fault={fault}"]
    return [*torchrun, *here, *quick, *worker, *limits, *(["--steady"] if steady else [])]


def _environment(folder: Path) -> dict[str, str]:
    """Ours, with one thread for each rank, the loopback interface for all messages, and our modules."""
    paths = [str(ROOT), str(ROOT / "code"), os.environ.get("PYTHONPATH", "")]
    own = {notes.FOLDER: str(folder), "GLOO_SOCKET_IFNAME": LOOPBACK, "PYTHONPATH": os.pathsep.join(paths)}
    return os.environ | dict.fromkeys(ONE_EACH, "1") | own


def _end(process: subprocess.Popen, folder: Path, ranks: int) -> None:
    """Stop torchrun, which stops its workers; then make sure of both."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(3)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for note in notes.read(folder, ranks):
        if note and _is_worker(note["pid"]):
            os.kill(note["pid"], signal.SIGKILL)


def _is_worker(pid: int) -> bool:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return b"benchmarks.distributed.worker" in command


def main(arguments: list[str] | None = None) -> int:
    """The command line: print the reports, or the error."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.distributed.run", description=__doc__)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--join", type=float, default=JOIN, help="seconds to wait for all ranks")
    parser.add_argument("--answer", type=float, default=ANSWER, help="seconds to wait in an exchange")
    parser.add_argument("--timeout", type=float, default=TIMEOUT, help="seconds for the whole run")
    parser.add_argument("--fault", default="", help=f"RANK of one of {FAULTS}, such as dies:1")
    parser.add_argument("--log", action="store_true", help="print what torchrun and the ranks wrote")
    given = vars(parser.parse_args(arguments))
    show = given.pop("log")
    start = time.perf_counter()
    try:
        reports = launch(given.pop("task"), given.pop("ranks"), **given)
    except RunError as error:
        print(error.log if show else "", end="", file=sys.stderr)
        print(f"error: {error}", file=sys.stderr)
        return 1
    for rank, report in enumerate(reports):
        print(f"rank {rank}: {json.dumps(report)}")
    print(f"{time.perf_counter() - start:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
