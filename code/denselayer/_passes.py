"""The forward and the backward pass of a fused layer, piece by piece, on one thread or on several."""

import functools
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from . import _blas
from ._epilogue import FUNCTIONS
from ._tiling import FEW_ENTRIES, STEP

EXPENSIVE_OUTER = 4096
"""NumPy multiplies a column by a row without its BLAS; from so many entries on that is slow."""
UNSHARED_PRODUCT = 1 << 18
"""The largest N * in * out for which OpenBLAS never wakes its threads."""


@functools.cache
def _pool():
    """Threads of Python that wait for rows."""
    return ThreadPoolExecutor(max_workers=os.cpu_count(), thread_name_prefix="denselayer")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)


def _share(work, workspace, multiple):
    """Call ``work(scratch, first, last)`` for ranges of the rows, on several threads; return the results."""
    plan = workspace.plan
    if plan.workers == 1:
        return [workspace.scratch().quietly(work, workspace.scratch(), 0, plan.batch)]

    def quietly(first, last):
        return workspace.scratch().quietly(work, workspace.scratch(), first, last)

    step = -(-plan.batch // (plan.workers * multiple)) * multiple
    ranges = _pieces(0, plan.batch, step)
    with _blas.limit_threads(1):
        futures = [_pool().submit(quietly, *others) for others in ranges[1:]]
        try:
            first = quietly(*ranges[0])
        finally:
            others = [future.result() for future in futures]
    return [first, *others]


def _pieces(first, last, size):
    """Cut a range in pieces of at most ``size``."""
    return [(a, min(a + size, last)) for a in range(first, last, max(size, 1))]


def _multiply(a, b, out, small):
    """Store ``a @ b`` in ``out``, as a stack of products of ``small`` rows if that is not 0."""
    n = len(a) // small * small if small else 0
    if n:
        stack = a[:n].reshape(-1, small, a.shape[1])
        np.matmul(stack, b, out=out[:n].reshape(-1, small, out.shape[1]))
    if n < len(a):
        np.matmul(a[n:], b, out=out[n:])


def _bias_tile(bias, rows, scratch):
    """The bias, repeated for so many rows one after the other; as it is for 0 rows or 1, or if it is None."""
    if bias is None or rows < 2:
        return bias
    tile = scratch.get("bias", rows * bias.size)
    np.copyto(tile.reshape(rows, bias.size), bias)
    return tile


def _flat(array, rows):
    """The rows of a contiguous matrix one after the other, as the tiles lie: whole tiles, then the rest."""
    n, width = array.shape
    if not rows or n <= rows:
        return (array.reshape(-1),)
    count = n // rows
    head = array[: count * rows].reshape(count, rows * width)
    return (head, array[count * rows :].reshape(-1)) if n % rows else (head,)


def _epilogue(act, pre, out, bias, rows, scratch, options):
    """Add the bias and take the activation of some rows; ``bias`` repeats for ``rows`` rows."""
    if bias is not None and not rows:
        np.add(pre, bias, out=pre)
    targets = _flat(out, rows)
    for z, target in zip(targets if out is pre else _flat(pre, rows), targets, strict=True):
        if bias is not None and rows:
            np.add(z, bias[: z.shape[-1]], out=z)
        act(z, target, scratch, **options)


def forward(workspace, x, weight, bias, pre, out, options):
    """Store ``act(x @ weight.T + bias)`` in ``out`` and what the activation is taken of in ``pre``.

    Args:
        workspace: the Workspace with the plan to follow.
        x: (N, in_features).
        weight: (out_features, in_features).
        bias: (out_features,) or None.
        pre, out: (N, out_features), contiguous; they may be one array.
        options: all options of the activation.
    """
    plan = workspace.plan
    if plan.at_once:
        scratch = workspace.scratch()
        scratch.quietly(_at_once, plan, scratch, x, weight, bias, pre, out, options)
        return
    act = FUNCTIONS[plan.activation][0]
    factor = np.ascontiguousarray(weight.T) if plan.small else weight.T

    def work(scratch, first, last):
        tile = _bias_tile(bias, plan.tile, scratch)
        for a, b in _pieces(first, last, plan.block):
            _multiply(x[a:b], factor, pre[a:b], plan.small)
            for c, d in _pieces(a, b, plan.chunk):
                z = pre[c:d]
                _epilogue(act, z, z if out is pre else out[c:d], tile, plan.tile, scratch, options)

    _share(work, workspace, plan.small or STEP)


def _at_once(plan, scratch, x, weight, bias, pre, out, options):
    """The forward pass in one piece; the shortest way, for small layers.

    One row goes through ``np.dot``, which takes a microsecond less than ``np.matmul`` and has its bits where
    both arrays are contiguous; only for a single weight it keeps the sign of a negative zero.
    """
    z = pre.reshape(-1)
    if plan.batch == 1 and weight.size != 1 and x.flags.c_contiguous and weight.flags.c_contiguous:
        np.dot(x, weight.T, out=pre)
    else:
        np.matmul(x, weight.T, out=pre)
    if bias is not None and plan.batch == 1:
        np.add(z, bias, out=z)
    elif bias is not None:
        np.add(pre, bias, out=pre)
    FUNCTIONS[plan.activation][0](z, z if out is pre else out.reshape(-1), scratch, **options)


def backward(workspace, d_out, x, weight, z, gradients, options):
    """Store the gradients of ``act(x @ weight.T + bias)``.

    Args:
        workspace: the Workspace with the plan to follow.
        d_out: (N, out_features).
        x: (N, in_features).
        weight: (out_features, in_features).
        z: the pre-activation, as ``d_out``, or None where the slope is 1.
        gradients: contiguous arrays for the gradients of ``x`` (or None), ``weight`` and the bias.
        options: all options of the activation.
    """
    plan = workspace.plan
    if plan.backward_at_once or not plan.batch:
        scratch = workspace.scratch()
        scratch.quietly(_back_at_once, plan, scratch, d_out, x, weight, z, gradients, options)
        return
    width = plan.out_features
    d_x, d_weight, d_bias = gradients

    def work(scratch, first, last):
        sums = (np.empty_like(d_weight), np.empty_like(d_bias)) if first else (d_weight, d_bias)
        add = False
        for a, b in _pieces(first, last, plan.backward_block):
            d_pre = d_out[a:b] if z is None else scratch.get("d_pre", (b - a) * width).reshape(b - a, width)
            for c, d in _pieces(a, b, plan.backward_chunk):
                part = d_pre[c - a : d - a]
                if z is not None:
                    _slope(plan, d_out[c:d], z[c:d], part, scratch, options)
                _accumulate(scratch.ones(d - c), part, sums[1], add or c > a, scratch)
            if d_x is not None:
                _multiply(d_pre, weight, d_x[a:b], plan.backward_small)
            _add_outer(d_pre, x[a:b], sums[0], plan.backward_small, add, scratch)
            add = True
        return sums

    for parts in _share(work, workspace, plan.backward_small or STEP)[1:]:
        workspace.scratch().quietly(_add_both, (d_weight, d_bias), parts)


def _back_at_once(plan, scratch, d_out, x, weight, z, gradients, options):
    """The backward pass in one piece; the shortest way, for small layers."""
    d_x, d_weight, d_bias = gradients
    d_pre = d_out
    if z is not None:
        flat = scratch.get("d_pre", z.size)
        FUNCTIONS[plan.activation][1](d_out.reshape(-1), z.reshape(-1), flat, scratch, **options)
        d_pre = flat.reshape(z.shape)
    if d_x is not None:
        np.matmul(d_pre, weight, out=d_x)
    if plan.batch == 1 and d_weight.size > EXPENSIVE_OUTER:
        _outer(d_pre, x, d_weight, scratch)
        np.copyto(d_bias, d_pre[0])
        return
    np.matmul(d_pre.T, x, out=d_weight)
    np.dot(scratch.ones(plan.batch), d_pre, out=d_bias)


def _outer(d_pre, x, out, scratch):
    """``d_pre.T @ x`` of one row, with a row of zeros below it, so that NumPy calls its BLAS."""
    pairs = []
    for name, row in (("d row", d_pre), ("x row", x)):
        pair = scratch.get(name, 2 * row.size, np.zeros).reshape(2, row.size)
        np.copyto(pair[:1], row)
        pairs.append(pair)
    columns, rows = pairs[0].T, pairs[1]
    for a, b in _pieces(0, len(out), max(1, UNSHARED_PRODUCT // rows.size)):
        np.matmul(columns[a:b], rows, out=out[a:b])


def _add_both(totals, parts):
    for total, part in zip(totals, parts, strict=True):
        np.add(total, part, out=total)


def _slope(plan, d_out, z, target, scratch, options):
    tile = plan.tile if z.size > FEW_ENTRIES else 0
    flat = (_flat(array, tile) for array in (d_out, z, target))
    for pieces in zip(*flat, strict=True):
        FUNCTIONS[plan.activation][1](*pieces, scratch, **options)


def _accumulate(a, b, total, add, scratch):
    """Add ``a @ b`` to an array, or store it there."""
    if not add:
        np.matmul(a, b, out=total)
        return
    product = scratch.get("product", total.size).reshape(total.shape)
    np.matmul(a, b, out=product)
    np.add(total, product, out=total)


def _add_outer(d_pre, x, total, small, add, scratch):
    """Add ``d_pre.T @ x`` to a matrix, or store it there."""
    count = len(x) // small if small else 0
    n = count * small
    if count:
        stack = scratch.get("stack", count * total.size).reshape(count, *total.shape)
        turned = d_pre[:n].reshape(count, small, -1).transpose(0, 2, 1)
        np.matmul(turned, x[:n].reshape(count, small, -1), out=stack)
        if add:
            np.add(total, np.add.reduce(stack, axis=0), out=total)
        else:
            np.add.reduce(stack, axis=0, out=total)
    if n < len(x):
        _accumulate(d_pre[n:].T, x[n:], total, add or count > 0, scratch)
