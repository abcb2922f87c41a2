"""A dense layer with ReLU, forward: NumPy as one writes it, fused, and the other libraries' ways."""

from __future__ import annotations

from benchmarks.inputs import SHAPES, layer_shape
from denselayer import bench, cost

NUMPY = "benchmarks.kernels.numpy_layers"
TORCH = "benchmarks.kernels.torch_layers"
VARIANTS = (
    bench.Variant("plain", NUMPY, "plain", "numpy"),
    bench.Variant("in place", NUMPY, "in_place", "numpy"),
    bench.Variant("gemm only", NUMPY, "product", "numpy"),
    bench.Variant("fused", NUMPY, "fused_forward", "numpy"),
)


def job(name: str, dtype: str, threads: int, variants: tuple = VARIANTS) -> bench.Job:
    """The forward pass of one shape, its work counted by the cost model."""
    shape = layer_shape(name)
    sizes = tuple(shape.values())
    operations = cost.linear_operations(*sizes)
    traffic = cost.linear_traffic(*sizes, dtype=dtype)
    counts = {"operations": operations, "traffic": traffic}
    clock = "cpu" if threads == 1 else "wall"
    return bench.Job(name, shape, variants, dtype, threads, clock=clock, **counts)


def jobs() -> list[bench.Job]:
    """All shapes in float32 on one thread and on two; a few in float64."""
    found = [job(name, "float32", threads) for threads in (1, 2) for name in SHAPES]
    return found
