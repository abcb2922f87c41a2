"""A dense layer with ReLU, forward: NumPy as one writes it, fused, and the other libraries' ways."""

from __future__ import annotations

from benchmarks.inputs import SHAPES, layer_shape
from denselayer import bench, cost

KERNELS = "benchmarks.kernels."
NUMPY, TORCH = KERNELS + "numpy_layers", KERNELS + "torch_layers"
PACKAGE = (
    bench.Variant("plain", NUMPY, "plain", "numpy"),
    bench.Variant("in place", NUMPY, "in_place", "numpy"),
    bench.Variant("gemm only", NUMPY, "product", "numpy"),
    bench.Variant("fused", NUMPY, "fused_forward", "numpy"),
)
OTHERS = (
    bench.Variant("eager", TORCH, "eager", "torch"),
    bench.Variant("addmm out", TORCH, "addmm_out", "torch"),
    bench.Variant("onednn", TORCH, "onednn", "torch"),
    bench.Variant("onednn packed", TORCH, "onednn_packed", "torch"),
    bench.Variant("jax", KERNELS + "jax_layers", "jitted", "jax"),
    bench.Variant("numba", KERNELS + "numba_tile", "packed", "numba"),
    bench.Variant("numba packing", KERNELS + "numba_tile", "packing_included", "numba"),
)
COMPILE = bench.Variant("compile", TORCH, "compiled", "torch compile")
MODES = tuple(
    bench.Variant(f"compile {mode}", TORCH, "compiled", f"torch compile {mode}", {"mode": mode})
    for mode in ("freezing", "max-autotune")
)
"""What the compiler does when it may take longer."""
COMPILED = ("512,784,1000", "4096,512,512", "65536,64,64")
"""The shapes that are compiled too: not all, because each takes the compiler seconds."""
DOUBLE = ("64,784,256", "4096,512,512", "65536,64,64")
LARGE = "4096,1024,4096"
LEFT_OUT = ("onednn", "numba packing")
"""Where one call takes long, the better one of two like ways is enough."""


def job(name: str, dtype: str, threads: int, variants: tuple = PACKAGE) -> bench.Job:
    """The forward pass of one shape, its work counted by the cost model."""
    shape = layer_shape(name)
    sizes = tuple(shape.values())
    operations = cost.linear_operations(*sizes)
    traffic = cost.linear_traffic(*sizes, dtype=dtype)
    counts = {"operations": operations, "traffic": traffic}
    clock = "cpu" if threads == 1 else "wall"
    return bench.Job(name, shape, variants, dtype, threads, clock=clock, min_seconds=0.01, **counts)


def variants(name: str, threads: int) -> tuple:
    """Those of the package and of the other libraries; the compiler for a few shapes, on one thread."""
    if name == LARGE:
        return PACKAGE + tuple(other for other in OTHERS if other.name not in LEFT_OUT)
    if name in COMPILED and threads == 1:
        return (*PACKAGE, *OTHERS, COMPILE, *MODES)
    return PACKAGE + OTHERS


def jobs() -> list[bench.Job]:
    """All shapes in float32 on one thread and on two, a few in float64 on one."""
    single = [job(name, "float32", 1, variants(name, 1)) for name in SHAPES]
    double = [job(name, "float64", 1, PACKAGE + OTHERS) for name in DOUBLE]
    return single + double + [job(name, "float32", 2, variants(name, 2)) for name in SHAPES]
