"""One product from operands that lie in memory in many ways, and thin products of as much work."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks import inputs
from denselayer import bench, cost

Closure = Callable[[], object]
HERE = __name__
SHAPES = ("64,784,256", "512,512,512", "4096,512,512")
THIN = (
    (512, 512, 512),
    (4096, 181, 181),
    (32768, 64, 64),
    (64, 64, 32768),
    (64, 32768, 64),
    (524288, 16, 16),
    (16, 524288, 16),
    (16, 2896, 2896),
)
"""Shapes N, in, out of nearly the same number of operations."""


def every_other(array: np.ndarray, axis: int) -> np.ndarray:
    """The same values as a view of every other row or column of a larger array."""
    wide = np.repeat(array, 2, axis=axis)
    return wide[::2] if axis == 0 else wide[:, ::2]


def part_of_wider(array: np.ndarray) -> np.ndarray:
    """The same values as the first columns of a wider array: rows with gaps between them."""
    wide = np.zeros((len(array), array.shape[1] + 24), array.dtype)
    wide[:, : array.shape[1]] = array
    return wide[:, : array.shape[1]]


ARRANGED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "as it is": np.ascontiguousarray,
    "by columns": np.asfortranarray,
    "part of wider rows": part_of_wider,
    "every other row": lambda array: every_other(array, 0),
    "every other column": lambda array: every_other(array, 1),
    "rows backwards": lambda array: np.ascontiguousarray(array[::-1])[::-1],
}


def product(
    shape: dict, dtype: str, threads: int, *, x: str = "as it is", weight: str = "as it is"
) -> Closure:
    """``x @ weight.T`` with operands arranged as named."""
    rows, units, _ = inputs.layer(shape, dtype)
    rows, units = ARRANGED[x](rows), ARRANGED[weight](units)
    out = np.empty((len(rows), len(units)), dtype)
    return lambda: np.matmul(rows, units.T, out=out)


def in_out(shape: dict, dtype: str, threads: int) -> Closure:
    """``x @ weight`` with a weight that is stored (in, out)."""
    x, weight, _ = inputs.layer(shape, dtype)
    stored = np.ascontiguousarray(weight.T)
    out = np.empty((len(x), len(weight)), dtype)
    return lambda: np.matmul(x, stored, out=out)


def out_by_columns(shape: dict, dtype: str, threads: int) -> Closure:
    """A result that is stored column by column."""
    x, weight, _ = inputs.layer(shape, dtype)
    out = np.empty((len(x), len(weight)), dtype, order="F")
    return lambda: np.matmul(x, weight.T, out=out)


def copy(shape: dict, dtype: str, threads: int) -> Closure:
    """Only the copy that makes every other column contiguous."""
    x, _, _ = inputs.layer(shape, dtype)
    view, place = every_other(x, 1), np.empty_like(x)
    return lambda: np.copyto(place, view)


def sized(shape: dict, dtype: str, threads: int, *, sizes: tuple[int, int, int]) -> Closure:
    """A product of the sizes given, whatever the shape of the job."""
    names = ("batch", "in_features", "out_features")
    return product(dict(zip(names, sizes, strict=True)), dtype, threads)


OPERANDS = (
    bench.Variant("x @ weight.T", HERE, "product", "numpy"),
    bench.Variant("weight stored (in, out)", HERE, "in_out", "numpy"),
    bench.Variant("result by columns", HERE, "out_by_columns", "numpy"),
    *(bench.Variant(f"x {name}", HERE, "product", "numpy", {"x": name}) for name in list(ARRANGED)[1:]),
    bench.Variant("weight every other column", HERE, "product", "numpy", {"weight": "every other column"}),
    bench.Variant("copy of x", HERE, "copy", "numpy"),
)
EQUAL = tuple(
    bench.Variant("{:,} × {:,} × {:,}".format(*sizes), HERE, "sized", "numpy", {"sizes": sizes})
    for sizes in THIN
)


def jobs() -> list[bench.Job]:
    """Arranged operands for three shapes, then thin products against a square one."""
    found = []
    for name in SHAPES:
        shape = inputs.layer_shape(name)
        sizes = tuple(shape.values())
        counts = {
            "operations": cost.linear_operations(*sizes),
            "traffic": cost.linear_traffic(*sizes, bias=False),
        }
        found.append(bench.Job(f"operands {name}", shape, OPERANDS, clock="cpu", **counts))
    shape = dict(zip(("batch", "in_features", "out_features"), THIN[0], strict=True))
    operations = cost.linear_operations(*THIN[0])
    found.append(bench.Job("equal work", shape, EQUAL, clock="cpu", operations=operations))
    return found
