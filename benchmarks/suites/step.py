"""One training step of an MLP: zero the gradients, forward, cross-entropy, backward, SGD."""

from __future__ import annotations

from benchmarks import mlp
from denselayer import bench

NUMPY, TORCH = "benchmarks.kernels.numpy_step", "benchmarks.kernels.torch_step"
VARIANTS = (
    bench.Variant("plain", NUMPY, "plain", "numpy"),
    bench.Variant("fast", NUMPY, "fast", "numpy"),
    bench.Variant("eager", TORCH, "eager", "torch"),
    bench.Variant("foreach", TORCH, "foreach", "torch"),
    bench.Variant("fused", TORCH, "fused", "torch"),
    bench.Variant("manual", TORCH, "manual", "torch"),
    bench.Variant("compile", TORCH, "compiled", "torch compile"),
)


def job(threads: int) -> bench.Job:
    """The step on so many threads; the operations are those of its products."""
    clock = "cpu" if threads == 1 else "wall"
    counts = {"operations": mlp.operations(mlp.SHAPE)}
    return bench.Job(
        mlp.NAME, mlp.SHAPE, VARIANTS, "float32", threads, clock=clock, min_seconds=0.02, **counts
    )


def jobs() -> list[bench.Job]:
    """One thread and two."""
    return [job(1), job(2)]
