"""Measure this machine with what is in the package, and print its numbers beside the book's."""

import argparse
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile

from . import cost
from ._limits import Limits, limits_jobs
from ._machine import cores
from ._runner import Job, Stopped, Variant
from ._runner import run as run_jobs
from ._sample_files import save, stored
from ._samples import duration
from ._table import text_table
from ._ways import layer_shape

SHAPES = ("1,784,1000", "64,784,256", "512,784,1000", "4096,512,512", "8192,64,64", "65536,64,64")
WAYS = f"{__package__}._ways"
FORWARD = {"plain": "plain", "in place": "in_place", "gemm only": "product", "fused": "fused_forward"}
BACKWARD = {"plain": "plain_backward", "fused": "fused_backward"}
STEP = {"plain": "plain_step", "fast": "fast_step"}
WIDTHS, BATCH = [784, 512, 256, 10], 128
BACK, TRAINING = "backward ", "784-512-256-10, batch 128"
NOISY = 0.1


def add_arguments(parser):
    """What may be said on the command line."""
    parser.add_argument("--threads", type=_numbers, help="such as 1,2 (default: 1, and 2 if there are)")
    parser.add_argument(
        "--seconds", type=_seconds, default=60.0, help="about how long it may take (default: 60)"
    )
    parser.add_argument("--output", type=Path, help="the file to write (default: none)")
    parser.add_argument("--force", action="store_true", help="replace the file if it is there")
    parser.add_argument(
        "--shapes", nargs="+", type=_shape, default=SHAPES, metavar="N,IN,OUT", help="the layers to measure"
    )


def run(args):
    """Measure, write the file, print the table; return the exit code."""
    if args.output and args.output.is_dir():
        raise IsADirectoryError(f"{args.output} is a folder: name a file in it, or another --output")
    if args.output and args.output.exists() and not args.force:
        raise FileExistsError(f"{args.output} is there already: name another --output, or say --force")
    if args.output and not args.output.resolve().parent.is_dir():
        raise FileNotFoundError(f"there is no folder {args.output.resolve().parent}: make it first")
    if args.output:
        _try_to_write(args.output.resolve().parent)
    threads = args.threads or ([1, 2] if cores() > 1 else [1])
    jobs = within(limits_jobs(threads) + layer_jobs(threads, args.shapes), args.seconds)
    code = 0
    try:
        samples = run_jobs("machine", jobs, progress=_say)
    except Stopped as stopped:
        samples, code = stopped.samples, 130
        _say(f"stopped: {len(samples.cases)} of {len(jobs)} cases were measured")
    print(report(samples))
    if args.output and samples.cases:
        save(samples, args.output)
        _say(f"samples in {args.output}")
    return code


def _try_to_write(folder):
    try:
        TemporaryFile(dir=folder).close()
    except OSError as error:
        came = f"no file can be written in {folder} ({error.strerror})"
        raise PermissionError(f"{came}: name an --output in another folder") from None


def layer_jobs(threads, shapes=SHAPES):
    """Forward, backward and a training step on each number of threads."""
    jobs = []
    for number in threads:
        common = {"threads": number, "clock": "cpu" if number == 1 else "wall"}
        for name in shapes:
            shape = layer_shape(name)
            sizes = tuple(shape.values())
            counts = {"operations": cost.linear_operations(*sizes), "traffic": cost.linear_traffic(*sizes)}
            jobs.append(Job(name, shape, _variants(FORWARD), **counts, **common))
            counts = {
                "operations": cost.linear_backward_operations(*sizes),
                "traffic": cost.fused_backward_traffic(*sizes),
            }
            jobs.append(Job(BACK + name, shape, _variants(BACKWARD), **counts, **common))
        work = cost.network(WIDTHS, BATCH).training
        counts = {"operations": work.operations, "traffic": work.traffic}
        shape = {"batch": BATCH, "widths": WIDTHS}
        jobs.append(Job(TRAINING, shape, _variants(STEP), **counts, **common))
    return jobs


def within(jobs, seconds):
    """The jobs, with samples so short and rounds so few that all together take about so many seconds."""
    share = 0.8 * seconds / len(jobs)
    samples = sum(len(job.variants) * job.rounds for job in jobs) / len(jobs)
    length = min(0.02, max(0.001, 0.5 * share / samples))
    return [replace(job, limit=share, min_seconds=length) for job in jobs]


def report(samples):
    """A table of what was measured, with the book's numbers in the columns on the right."""
    facts = samples.machine
    lines = [f"{facts.get('cpu')}, {facts.get('blas')} ({facts.get('kernel')}), {facts.get('date')}"]
    limits = {number: limit for number in samples.threads if (limit := _limits(samples, number))}
    lines += [f"\n{limit}" for limit in limits.values()]
    rows = [
        row
        for case in samples.cases
        if case.seconds and case.operations and case.name != "peak"
        for row in _rows(case, limits.get(case.threads))
    ]
    header = ["layer", "threads", "variant", "median", "rate", "of bound", "speed"]
    header += ["rate", "of bound", "speed"]
    if rows:
        lines.append(f"\n{text_table(header, rows, left=3)}")
        lines.append(
            "speed: how many times faster than plain. The last three columns: the machine of the book."
        )
    loud = [case.disturbed for case in samples.cases if (case.disturbed or 0) > NOISY]
    if loud:
        lines.append(f"Other programs took up to {max(loud):.0%} of the processors: end them, measure again.")
    missing = Counter(why for case in samples.cases for why in case.missing.values())
    lines += [f"without samples, {count} times: {why}" for why, count in missing.items()]
    return "\n".join(lines)


def _rows(case, limits):
    book, book_limits = _book(case)
    for name in case.seconds:
        row = [case.name, str(case.threads), name, duration(case.median(name)), *_three(case, name, limits)]
        known = book is not None and name in book.seconds and "plain" in book.seconds
        yield row + (_three(book, name, book_limits) if known else ["-", "-", "-"])


def _three(case, name, limits):
    """Rate, share of the bound, and speed over plain, as text."""
    rate = f"{case.rate(name) / 1e9:.1f} G/s" if case.operations else "-"
    share = f"{case.fraction(name, limits):.0%}" if limits and case.operations and case.traffic else "-"
    speed = f"{case.ratio('plain', name).median:.2f}x" if "plain" in case.seconds else "-"
    return [rate, share, speed]


def _book(case):
    """The book's case of the same work, and the limits of its machine; None where it has none."""
    suite = "step" if case.name == TRAINING else "backward" if case.name.startswith(BACK) else "forward"
    try:
        samples, limits = stored(suite), stored("limits")
    except ValueError:
        return None, None
    found = samples.select(name=case.name.removeprefix(BACK), dtype=case.dtype, threads=case.threads)
    return (found[0] if found else None), _limits(limits, case.threads)


def _limits(samples, threads):
    try:
        return Limits.of(samples, threads)
    except ValueError:
        return None


def _variants(ways):
    return tuple(Variant(name, WAYS, function, "numpy") for name, function in ways.items())


def _say(text):
    print(text, file=sys.stderr, flush=True)


def _numbers(text):
    parts = text.split(",")
    if not all(part.isdecimal() and int(part) for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of thread counts: say 1,2")
    return sorted(set(map(int, parts)))


def _seconds(text):
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no time in seconds: say 60")
    return seconds


def _shape(text):
    parts = text.split(",")
    if len(parts) != 3 or not all(part.isdecimal() and int(part) for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is no shape: say N,IN,OUT, such as 64,784,256")
    return text
