"""Choose how a fused layer is cut: one product or many, how many rows at a time, on how many threads."""

import functools
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from . import _blas
from ._validate import choice, complaint, count, float_dtype

ACTIVATIONS = ("identity", "relu", "leaky_relu", "sigmoid", "tanh", "gelu", "silu", "softplus")

SMALL_KERNELS = ("SkylakeX", "Cooperlake", "SapphireRapids")
"""Processors for which OpenBLAS multiplies small matrices where they lie, without packing them first."""
SMALL_PRODUCT = 1_000_000
"""The largest N * in * out that OpenBLAS counts as small."""
STEP = 48
"""A small product takes a multiple of so many rows: the small kernels take 24 or 48 at once."""
LARGEST_STEP = 240
"""A small product of more rows gains nothing."""
BUFFER = 8192
"""NumPy's loops are slower on rows shorter than its buffer, which holds so many entries."""
FEW_ENTRIES = 1 << 15
"""An output so small stays in the first cache: broadcasting the bias costs less than a tile of it."""
GRADIENT_BYTES = 8 << 20
"""The masked gradient of a whole product is kept in pieces of so many bytes."""
GRADIENT_ROWS = 4096
"""Rows of the masked gradient that are kept when the products are stacked."""


@functools.cache
def l2_bytes():
    """Size of a core's second cache in bytes; 1 MiB where the system does not tell."""
    for index in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            if (index / "level").read_text().strip() == "2":
                return int((index / "size").read_text().strip().removesuffix("K")) * 1024
        except (OSError, ValueError):
            continue
    return 1 << 20


@dataclass(frozen=True)
class Plan:
    """How a layer of one shape is computed: what is multiplied at once, and what stays in cache.

    ``print`` shows it with the reasons. ``dataclasses.replace`` makes another one, to try it.

    >>> print(plan(1, 784, 1000, threads=1))
    relu(X W^T + b), X (1, 784), W (1000, 784), float32
      product   whole: one call, on 1 thread of the BLAS
      epilogue  1 row at a time, 4 kB of the output
      same bits as functional: yes
      because   one row is a product of a matrix and a vector: reading W is all the work
    """

    batch: int
    in_features: int
    out_features: int
    activation: str
    dtype: np.dtype
    threads: int
    keep: bool
    product: str
    """"whole", one call of the BLAS; "rows", one for each block; "stacked", many small ones."""
    block: int
    """Rows that are multiplied before their epilogue runs."""
    small: int
    """Rows of each product of a stack; 0 if nothing is stacked."""
    chunk: int
    """Rows for which the epilogue runs at once."""
    tile: int
    """Rows for which the bias is laid out one after the other; 0 if it is broadcast."""
    workers: int
    """Threads of Python that share the rows, each with a BLAS of one thread. `plan` chooses 1.

    More are faster only at times, since the system often runs them on one core.
    """
    backward: str
    """"whole" or "stacked", as `product`, for the backward pass."""
    backward_block: int
    """Rows that are multiplied after their slopes were computed."""
    backward_chunk: int
    """Rows whose slopes are computed at once."""
    backward_small: int
    """Rows of each product of a stack in the backward pass; 0 if nothing is stacked."""
    at_once: bool
    """Whether product and epilogue are one piece each."""
    backward_at_once: bool
    """Whether slopes and products are one piece each."""
    bit_identical: bool
    """Whether the output has the same bits as that of ``functional``.

    The promise is for a plan made for the number of threads that the BLAS uses. It leaves out the sign of
    NaN.
    """
    reason: str = field(compare=False)

    def __str__(self):
        name = "" if self.activation == "identity" else self.activation
        n, i, o = self.batch, self.in_features, self.out_features
        kib = self.chunk * o * self.dtype.itemsize / 1024
        product = {
            "whole": f"whole: one call, on {_things(self.threads, 'thread')} of the BLAS",
            "rows": f"rows: blocks of {_things(self.block, 'row')}",
            "stacked": f"stacked: {_things(self.block, 'row')} in products of {self.small}",
        }[self.product]
        if self.product != "whole" and self.workers > 1:
            product += f", shared by {self.workers} threads of Python"
        tile = f", bias and zeros as tiles of {_things(self.tile, 'row')}" if self.tile > 1 else ""
        lines = [
            f"{name}(X W^T + b), X ({n}, {i}), W ({o}, {i}), {self.dtype}",
            f"  product   {product}",
            f"  epilogue  {_things(self.chunk, 'row')} at a time, {kib:.0f} kB of the output{tile}",
            f"  same bits as functional: {'yes' if self.bit_identical else 'not promised'}",
            f"  because   {self.reason}",
        ]
        return "\n".join(lines)


def _things(number, name):
    return f"{number:,} {name}{'' if number == 1 else 's'}"


def plan(batch, in_features, out_features, *, activation="relu", dtype=np.float32, threads=None, keep=False):
    """Choose how to compute a dense layer of this shape, forward and backward.

    Args:
        batch, in_features, out_features: sizes; 0 is allowed.
        activation: name of an activation in ``functional``.
        dtype: float32 or float64.
        threads: number of threads, by default as many as NumPy's BLAS uses.
        keep: whether the pre-activation is stored beside the output.

    Returns:
        A Plan, which prints as text.

    Raises:
        ValueError: a negative size, no thread, or an unknown activation.
        TypeError: another dtype, or a size that is not whole.

    Source:
        K. Goto, R. van de Geijn, "Anatomy of high-performance matrix multiplication", ACM Transactions on
        Mathematical Software 34 (2008); the limits are measured.

    >>> chosen = plan(64, 784, 256, threads=1)
    >>> chosen.product, chosen.bit_identical
    ('whole', True)
    """
    n = count("plan", "batch", batch)
    i = count("plan", "in_features", in_features)
    o = count("plan", "out_features", out_features)
    choice("plan", "activation", activation, ACTIVATIONS)
    dtype = float_dtype("plan", dtype)
    threads = _blas.threads() if threads is None else count("plan", "threads", threads)
    if threads == 0:
        raise ValueError(complaint("plan", "threads is 0", "1 or more", "Leave it out, or pass threads=1."))
    return _plan(n, i, o, activation, dtype, threads, bool(keep))


@functools.lru_cache(maxsize=256)
def _plan(n, i, o, activation, dtype, threads, keep):
    product, small, reason = _product(n, i, o, threads)
    tile = _tile(n, o)
    chunk = _rows_in(l2_bytes() // (4 if keep else 2), n, o * dtype.itemsize, small or tile)
    if small and n * o * dtype.itemsize <= 2 * l2_bytes() and not keep:
        chunk = n
    backward, backward_small = _backward(n, i, o, threads)
    gradient = o * dtype.itemsize
    if backward_small:
        backward_block = backward_chunk = _rows_in(
            l2_bytes(), min(n, GRADIENT_ROWS), gradient, backward_small
        )
    else:
        backward_block = _rows_in(GRADIENT_BYTES, n, gradient, 1024)
        backward_chunk = _rows_in(l2_bytes() // 4, n, gradient, 1)
    return Plan(
        batch=n,
        in_features=i,
        out_features=o,
        activation=activation,
        dtype=dtype,
        threads=threads,
        keep=keep,
        product=product,
        block=chunk if small else n,
        small=small,
        chunk=chunk,
        tile=tile,
        workers=1,
        backward=backward,
        backward_block=backward_block,
        backward_chunk=backward_chunk,
        backward_small=backward_small,
        at_once=product == "whole" and chunk >= n and tile < 2,
        backward_at_once=not backward_small and backward_chunk >= n,
        bit_identical=product == "whole",
        reason=reason,
    )


def _small_rows(i, o):
    """Rows of a product that OpenBLAS counts as small, or 0 if its small kernels are no gain."""
    if _blas.kernel() not in SMALL_KERNELS or o < 2 or i == 0:
        return 0
    rows = SMALL_PRODUCT // (i * o)
    if rows < (STEP // 3 if o <= 64 else 72) or o > 128:
        return 0
    return next(min(rows, LARGEST_STEP) // step * step for step in (STEP, STEP // 2, 8) if rows >= step)


def _product(n, i, o, threads):
    small = _small_rows(i, o)
    if n == 1:
        return "whole", 0, "one row is a product of a matrix and a vector: reading W is all the work"
    if small and n >= 2048 and threads == 1:
        return "stacked", small, "W is so small that OpenBLAS multiplies a few rows without packing them"
    if small and n >= 2048:
        return "whole", 0, f"{threads} threads of the BLAS on one product beat small products on one thread"
    if n * o <= FEW_ENTRIES:
        return "whole", 0, "the output is small: it is still in cache when the product ends"
    return "whole", 0, "the product is most of the work: cut in pieces, each would pack W again"


def _backward(n, i, o, threads):
    small = _small_rows(i, o)
    return ("stacked", small) if small and n >= 2048 and threads == 1 else ("whole", 0)


def _tile(n, o):
    if n == 1:
        return 1
    if n * o <= FEW_ENTRIES:
        return 0
    return -(-2 * BUFFER // o) if o < BUFFER else 1


def _rows_in(size, n, row_bytes, multiple):
    """Rows that fill so many bytes, a multiple of ``multiple``, at least one of it."""
    multiple = max(multiple, 1)
    if not n or not row_bytes:
        return n
    return min(n, max(1, size // (row_bytes * multiple)) * multiple)
