"""A dense layer with ReLU, backward: the mask, the gradients of input, weight and bias."""

from __future__ import annotations

from benchmarks.inputs import SHAPES, layer_shape
from denselayer import bench, cost

NUMPY = "benchmarks.kernels.numpy_layers"
VARIANTS = (
    bench.Variant("plain", NUMPY, "plain_backward", "numpy"),
    bench.Variant("in place", NUMPY, "in_place_backward", "numpy"),
    bench.Variant("gemms only", NUMPY, "backward_products", "numpy"),
    bench.Variant("fused", NUMPY, "fused_backward", "numpy"),
)


def job(name: str, dtype: str, threads: int, variants: tuple = VARIANTS) -> bench.Job:
    """The backward pass of one shape, its work counted by the cost model."""
    shape = layer_shape(name)
    sizes = tuple(shape.values())
    operations = cost.linear_backward_operations(*sizes)
    traffic = cost.linear_backward_traffic(*sizes, dtype=dtype)
    clock = "cpu" if threads == 1 else "wall"
    return bench.Job(
        name, shape, variants, dtype, threads, operations=operations, traffic=traffic, clock=clock
    )


def jobs() -> list[bench.Job]:
    """All shapes on one thread and on two."""
    return [job(name, "float32", threads) for threads in (1, 2) for name in SHAPES]
