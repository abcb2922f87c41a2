"""How time and memory of the package's layers grow with batch, width and depth, and the first few rows."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks import memory
from denselayer import bench

LAYERS = "benchmarks.kernels.package_layers"
WIDTHS = [2**power for power in range(4, 13)]
BATCHES = [4**power for power in range(7)]
DEPTHS = [2**power for power in range(6)]
FIXED = {"width": {"batch": 256}, "batch": {"width": 512}, "depth": {"batch": 256, "width": 256}}
GRIDS = {"width": WIDTHS, "batch": BATCHES, "depth": DEPTHS}
PASSES = {
    "forward": ("forward", {}),
    "backward": ("backward", {}),
    "SGD": ("update", {"optimizer": "sgd"}),
    "Adam": ("update", {"optimizer": "adam"}),
}
GROWTH = [
    *(("width", name) for name in PASSES),
    *(("batch", name) for name in ("forward", "backward")),
    *(("depth", name) for name in ("forward", "backward", "SGD")),
]
"""What is timed over which grid; an update knows no batch."""
FEW = [2**power for power in range(11)]
PROGRAMS = {"product": FEW, "weight_first": FEW[:8], "row_by_row": FEW[:5]}
"""The programs for few rows, and the batches at which each is measured."""
HOLDS = {
    "width": [{"batch": 1024, "depth": 4, "width": width} for width in (64, 128, 256, 512, 1024)],
    "batch": [{"width": 512, "depth": 4, "batch": batch} for batch in (64, 256, 1024, 4096)],
    "depth": [{"batch": 1024, "width": 256, "depth": depth} for depth in (1, 2, 4, 8, 16)],
}


def growth(size: str, name: str) -> bench.Job:
    """A pass over the sizes of a grid: a variant for each size, called by its number."""
    function, options = PASSES[name]
    variants = tuple(
        bench.Variant(f"{value}", LAYERS, function, "numpy", {size: value} | options) for value in GRIDS[size]
    )
    return bench.Job(f"{size}, {name}", FIXED[size], variants, min_seconds=0.01, clock="cpu")


def signs() -> bench.Job:
    """The backward pass of ReLU on the same sizes, for two kinds of numbers."""
    variants = tuple(
        bench.Variant(kind, LAYERS, "relu_backward", "numpy", {"signs": kind}) for kind in ("drawn", "alike")
    )
    return bench.Job("signs", FIXED["depth"], variants, min_seconds=0.01, clock="cpu")


def few_rows(width: int) -> bench.Job:
    """A layer whose weights leave a cache, for batches from 1 on."""
    variants = tuple(
        bench.Variant(f"{program} {batch}", LAYERS, program, "numpy", {"batch": batch})
        for program, batches in PROGRAMS.items()
        for batch in batches
    )
    return bench.Job(f"few rows, {width}", {"width": width}, variants, clock="cpu")


def jobs() -> list[bench.Job]:
    """Slopes over width, batch and depth; the signs of a ReLU; the first rows of two layers."""
    return [growth(size, name) for size, name in GROWTH] + [signs(), *map(few_rows, (1024, 4096))]


def holds(size: str) -> bench.Case:
    """Bytes held and at the peak of a training step with Adam, over the sizes of a grid."""
    tasks = [task | {"optimizer": "adam", "every": 0} for task in HOLDS[size]]
    found = zip(tasks, memory.measure(tasks), strict=True)
    return bench.Case(f"memory, {size}", {}, notes={str(task[size]): task | got for task, got in found})


def run(progress: Callable[[str], None]) -> bench.Samples:
    """Times by worker processes, then memory."""
    samples = bench.run("scaling", jobs(), progress=progress)
    progress("scaling: memory")
    return bench.Samples("scaling", samples.machine, (*samples.cases, *map(holds, HOLDS)))
