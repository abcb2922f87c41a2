"""What torchrun starts for each rank: join the others, do the task, leave a note."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import signal
import sys
import time
import traceback
from contextlib import nullcontext
from pathlib import Path

from . import notes
from .steady import steady
from .torchrun import end_with_parent

TASKS = ("exchange", "check", "measure")
FAULTS = ("absent", "dies", "stuck")
PEER_LOST = ("Connection closed", "Connection reset", "Broken pipe", "Timed out", "Socket closed")


def main() -> int:
    """Do the task as the rank that the environment names."""
    options = _options()
    rank = int(os.environ["RANK"])
    note = notes.Note(Path(os.environ[notes.FOLDER]), rank)
    note.write(state="started")
    end_with_parent(signal.SIGKILL)
    fault, _, whose = options.fault.partition(":")
    fault = fault if whose == str(rank) else ""
    try:
        if fault == "absent":
            time.sleep(3600)
        return _work(options, note, fault)
    except Exception as error:
        traceback.print_exc()
        note.write(error={"kind": _kind(error), "text": f"{type(error).__name__}: {error}"})
        return 1


def _work(options: argparse.Namespace, note: notes.Note, fault: str) -> int:
    import torch
    import torch.distributed as dist

    from .joining import MissingRanks, join

    torch.set_num_threads(1)
    try:
        rank, ranks = join(options.join, options.answer)
    except MissingRanks as error:
        note.write(error={"kind": "missing", "missing": error.missing, "text": str(error)})
        return 1
    note.write(state="joined")
    dist.all_reduce(torch.ones(1))
    if fault == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault == "stuck":
        time.sleep(3600)
    task = importlib.import_module(f"benchmarks.distributed.{options.task}")
    with steady(rank) if options.steady else nullcontext():
        report = task.main(rank, ranks, **json.loads(options.options))
    note.write(state="done", report=report)
    dist.destroy_process_group()
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--options", default="{}")
    parser.add_argument("--join", type=float, required=True)
    parser.add_argument("--answer", type=float, required=True)
    parser.add_argument("--fault", default="")
    parser.add_argument("--steady", action="store_true")
    return parser.parse_args()


def _kind(error: Exception) -> str:
    return "peer" if any(sign in str(error) for sign in PEER_LOST) else "own"


if __name__ == "__main__":
    sys.exit(main())
