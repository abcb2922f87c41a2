"""A dense layer with ReLU, backward: the mask, the gradients of input, weight and bias."""

from __future__ import annotations

from benchmarks.inputs import SHAPES, layer_shape
from denselayer import bench, cost

NUMPY, TORCH = "benchmarks.kernels.numpy_layers", "benchmarks.kernels.torch_layers"
PACKAGE = (
    bench.Variant("plain", NUMPY, "plain_backward", "numpy"),
    bench.Variant("in place", NUMPY, "in_place_backward", "numpy"),
    bench.Variant("gemms only", NUMPY, "backward_products", "numpy"),
    bench.Variant("fused", NUMPY, "fused_backward", "numpy"),
)
OTHERS = (
    bench.Variant("autograd", TORCH, "autograd", "torch"),
    bench.Variant("mm out", TORCH, "backward_out", "torch"),
    bench.Variant("numba", "benchmarks.kernels.numba_backward", "backward", "numba"),
)


def job(name: str, dtype: str, threads: int, variants: tuple = PACKAGE) -> bench.Job:
    """The backward pass of one shape, its work counted by the cost model."""
    shape = layer_shape(name)
    sizes = tuple(shape.values())
    operations = cost.linear_backward_operations(*sizes)
    traffic = cost.fused_backward_traffic(*sizes, dtype=dtype)
    clock = "cpu" if threads == 1 else "wall"
    counts = {"operations": operations, "traffic": traffic}
    return bench.Job(name, shape, variants, dtype, threads, clock=clock, min_seconds=0.01, **counts)


LARGE = "4096,1024,4096"
LEFT_OUT = ("gemms only", "mm out")
"""Not measured where one call takes long."""


def variants(name: str) -> tuple:
    """Those of the package and of the other libraries."""
    every = PACKAGE + OTHERS
    return tuple(each for each in every if each.name not in LEFT_OUT) if name == LARGE else every


def jobs() -> list[bench.Job]:
    """All shapes on one thread and on two."""
    return [job(name, "float32", threads, variants(name)) for threads in (1, 2) for name in SHAPES]
