"""Measure everything the book says about speed, store the samples, and print them beside the targets."""

import argparse
import sys
import time
from pathlib import Path

from tools.environment import ROOT
from tools.errors import BuildError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    folder = ROOT / "benchmarks" / "results"
    parser.add_argument("--output", type=Path, default=folder, help="the folder to write to")
    parser.add_argument(
        "--table", action="store_true", help="measure nothing: print the table of what is stored"
    )
    parser.add_argument("suites", nargs="*", help="only these, such as forward (default: all)")


def run(args: argparse.Namespace) -> int:
    for place in (ROOT, ROOT / "code"):
        if str(place) not in sys.path:
            sys.path.insert(0, str(place))
    from benchmarks import run, targets

    chosen = _chosen(args.suites, run.names())
    start, failed = time.perf_counter(), {}
    if not args.table:
        failed = run.measure_all(chosen, args.output, lambda text: print(text, file=sys.stderr, flush=True))
        print(f"{time.perf_counter() - start:.0f} s in all, files in {args.output}", file=sys.stderr)
    lines = targets.evaluate(run.read(args.output), targets.TARGETS)
    shown = [line for line in lines if line.target.suite in chosen]
    print(targets.table(shown))
    print(targets.summary(shown))
    for what, reason in failed.items():
        print(f"could not be run: {what}: {reason}", file=sys.stderr)
    return 1 if failed else 0


def _chosen(wanted: list[str], known: list[str]) -> list[str]:
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise BuildError(f"There is no suite {', '.join(unknown)}. The suites: {', '.join(known)}")
    return [name for name in known if not wanted or name in wanted]
