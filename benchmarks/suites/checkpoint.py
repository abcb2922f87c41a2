"""What checkpoints save and cost: peak memory and time of a training step of a deep network."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks import memory
from denselayer import bench, cost

LAYERS = "benchmarks.kernels.package_layers"
SHAPE = {"batch": 512, "width": 256, "depth": 64}
EVERY = [1, 2, 4, 6, 8, 16, 32, 64]
"""Layers between two checkpoints."""
PLAIN = "none"


def jobs() -> list[bench.Job]:
    """A training step without checkpoints, and with one every so many layers."""
    choices = {PLAIN: 0} | {f"{every}": every for every in EVERY}
    variants = tuple(
        bench.Variant(name, LAYERS, "training_step", "numpy", {"every": every})
        for name, every in choices.items()
    )
    widths = [SHAPE["width"]] * (SHAPE["depth"] + 1)
    work = cost.network(widths, SHAPE["batch"], input_gradient=True).training
    counts = {"operations": work.operations, "traffic": work.traffic}
    return [bench.Job("training step", SHAPE, variants, clock="cpu", **counts)]


def run(progress: Callable[[str], None]) -> bench.Samples:
    """Times by worker processes, then memory."""
    samples = bench.run("checkpoint", jobs(), progress=progress)
    progress("checkpoint: memory")
    tasks = [SHAPE | {"optimizer": "sgd", "every": every} for every in (0, *EVERY)]
    found = zip(tasks, memory.measure(tasks), strict=True)
    notes = {str(task["every"] or PLAIN): task | result for task, result in found}
    held = bench.Case("memory", {}, shape=SHAPE, notes=notes)
    return bench.Samples("checkpoint", samples.machine, (*samples.cases, held))
