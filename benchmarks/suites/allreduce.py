"""All-reduces between two processes, and a block that is split over them against one that is not."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.distributed.run import launch
from denselayer import bench

RANKS = 2
SIZES = [8 * 2**power for power in (*range(0, 23, 2), 23)]
"""Bytes: 8 B to 64 MiB."""
WIDTHS = {64: (64, 96, 128, 192, 256, 384, 512, 768), 512: (32, 48, 64, 96, 128, 192, 256, 384)}
"""Of the blocks, for each number of rows: from where a split loses to where it pays."""
BLOCKS = [(rows, width) for rows, widths in WIDTHS.items() for width in widths]
EXPANSION = 4
ROUNDS = 15
WAYS = ("unsplit", "split", "parts alone")
ASLEEP = SIZES[::3][:3]
"""Sizes that are measured once more with the processors left to fall asleep."""


def operations(rows: int, width: int) -> int:
    """Of a forward and a backward pass of the block, input gradient included."""
    return 3 * 2 * rows * 2 * EXPANSION * width**2


def run(progress: Callable[[str], None]) -> bench.Samples:
    """Times by two processes with one thread each, taken on the first of them."""
    progress(f"allreduce: {RANKS} processes, {len(SIZES)} sizes, {len(BLOCKS)} blocks")
    options = {"sizes": SIZES, "blocks": BLOCKS, "rounds": ROUNDS, "min_seconds": 0.015}
    first, *_ = launch("measure", RANKS, options=options, answer=30, timeout=150, steady=True)
    seconds = {tuple(name): [each / 1e9 for each in times] for name, times in first["ns"]}
    known = None if None in first["others"] else tuple(first["others"])
    common = {"dtype": "float32", "threads": 1, "clock": "wall", "others": known}
    asleep, *_ = launch("measure", RANKS, options=options | {"sizes": ASLEEP, "blocks": []}, answer=30)
    drowsy = {tuple(name): [each / 1e9 for each in times] for name, times in asleep["ns"]}
    cases = []
    for size in SIZES:
        name = ("all-reduce", size)
        taken = {"all-reduce": seconds[name]}
        if name in drowsy:
            taken["asleep"] = drowsy[name]
        cases.append(bench.Case(f"all-reduce {size}", taken, shape={"bytes": size, "ranks": RANKS}, **common))
    cases += [
        bench.Case(
            f"block {rows},{width}",
            {way: seconds[way, rows, width] for way in WAYS},
            shape={"batch": rows, "width": width, "hidden": EXPANSION * width, "ranks": RANKS},
            operations=operations(rows, width),
            **common,
        )
        for rows, width in BLOCKS
    ]
    machine = {key: value for key, value in bench.machine().items() if key != "threads"}
    return bench.Samples("allreduce", machine | {"backend": "gloo"}, tuple(cases))
