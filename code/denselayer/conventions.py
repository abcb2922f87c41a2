"""Every formula of a dense layer in every common convention, as text and as the NumPy that proves it.

A convention answers three questions: how the weight is stored (``layout``), whether a sample of the batch is
a row or a column (``batch``), and whether the loss is a mean or a sum (``reduction``). A formula is one entry
of `FORMULAS`: its TeX, its shapes, and its NumPy expression. `table` prints the entries of a convention, and
calling an entry evaluates the very expression that is printed.

The letters of the formulas are the entries of `SYMBOLS`. The storage is ``"out_in"``, ``"in_out"`` or
``"augmented"``, as in `layouts`; any of them goes with a batch of ``"rows"`` or of ``"columns"``.

Equation: eq-conventions-rows.
Equation: eq-conventions-columns.
"""

from dataclasses import dataclass
from itertools import product
from typing import get_args

import numpy as np

from ._formulas import FORMULAS, LABELS, SYMBOLS, Batch, Entry, Reduction
from ._table import text_table
from ._validate import choice, complaint
from .layouts import LAYOUTS, Layout

BATCHES: tuple[str, ...] = get_args(Batch)
REDUCTIONS: tuple[str, ...] = get_args(Reduction)
STORAGE = ("input", "weight", "bias", "output")
LAYER = ("forward", "d_weight", "d_bias", "d_x", "collapse_weight", "collapse_bias", "parameters")
LOSSES = ("mse", "d_mse", "cross_entropy", "d_cross_entropy")


def find(quantity, layout: Layout = "out_in", batch: Batch = "rows", reduction: Reduction = "mean") -> Entry:
    """Look up one formula.

    Args:
        quantity: a key of `LABELS`.
        layout: ``"out_in"``, ``"in_out"`` or ``"augmented"``.
        batch: ``"rows"`` or ``"columns"``.
        reduction: ``"mean"`` or ``"sum"``.

    Raises:
        ValueError: an unknown word, or the bias of an augmented weight, which is no array of its own.

    >>> find("d_x").code
    'd_out @ weight'
    >>> find("d_x", layout="in_out", batch="columns").code
    'weight @ d_out'
    """
    choice("find", "quantity", quantity, tuple(LABELS))
    for entry in _chosen("find", layout, batch, reduction):
        if entry.name == quantity:
            return entry
    advice = "Column 0 of the weight is the bias: look up the weight."
    raise ValueError(complaint("find", f"quantity is {quantity!r}", "a layout with a bias array", advice))


def table(
    layout: Layout = "out_in",
    batch: Batch = "rows",
    reduction: Reduction = "mean",
    quantities=tuple(LABELS),
):
    """All formulas of one convention, as a table for a terminal and for a notebook.

    Args:
        layout, batch, reduction: as `find` takes them.
        quantities: which rows; keys of `LABELS`.

    >>> print(table("in_out", "rows", quantities=["forward", "d_x"]))
    what                   NumPy              shapes
    ---------------------  -----------------  ----------------------------
    forward                x @ weight + bias  (N, in) (in, out) → (N, out)
    gradient of the input  d_out @ weight.T   (N, out) (out, in) → (N, in)
    """
    for quantity in quantities:
        choice("table", "quantity", quantity, tuple(LABELS))
    chosen = _chosen("table", layout, batch, reduction)
    return Table(
        ("what", "formula", "NumPy", "shapes"),
        tuple(
            (LABELS[entry.name], entry.tex, entry.code, entry.note)
            for quantity in quantities
            for entry in chosen
            if entry.name == quantity
        ),
    )


def compare(quantity, reduction: Reduction = "mean"):
    """One formula in all layouts and for both kinds of batch.

    Args:
        quantity: a key of `LABELS`.
        reduction: ``"mean"`` or ``"sum"``.

    >>> print(compare("d_bias"))
    convention          NumPy              shapes
    ------------------  -----------------  ----------------------------------
    out_in, rows        d_out.sum(axis=0)  (out, N) (N, 1) → (out,)
    out_in, columns     d_out.sum(axis=1)  (out, N) (N, 1) → (out,)
    in_out, rows        d_out.sum(axis=0)  (out, N) (N, 1) → (out,)
    in_out, columns     d_out.sum(axis=1)  (out, N) (N, 1) → (out,)
    augmented, rows     d_weight[:, 0]     (out, 1 + in) (1 + in, 1) → (out,)
    augmented, columns  d_weight[:, 0]     (out, 1 + in) (1 + in, 1) → (out,)
    """
    choice("compare", "quantity", quantity, tuple(LABELS))
    return Table(
        ("convention", "formula", "NumPy", "shapes"),
        tuple(
            (f"{layout}, {batch}", entry.tex, entry.code, entry.note)
            for layout, batch in product(LAYOUTS, BATCHES)
            for entry in _chosen("compare", layout, batch, reduction)
            if entry.name == quantity
        ),
    )


def notation(layout: Layout = "out_in", batch: Batch = "rows"):
    """The letters that stand in the formulas of one convention.

    Args:
        layout, batch: as `find` takes them.

    >>> print(notation("in_out").rows[3])
    ('the weight, (in, out)', '\\\\mathbf{V}', 'weight')
    """
    choice("notation", "layout", layout, LAYOUTS)
    choice("notation", "batch", batch, BATCHES)
    return Table(
        ("meaning", "letter", "NumPy"),
        tuple((entry.note, entry.tex, entry.code) for entry in SYMBOLS if entry.holds(layout, batch, None)),
    )


@dataclass(frozen=True)
class Table:
    """Rows of text; the second column is TeX, the third Python."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __str__(self):
        """Aligned columns without the TeX, for a terminal."""
        header, *rows = ((row[0], *row[2:]) for row in (self.header, *self.rows))
        return text_table(header, rows, left=len(header))

    __repr__ = __str__

    def _repr_markdown_(self):
        """A pipe table, its second column in math and its third in code, for a notebook."""
        lines = [self.header, (":---",) * len(self.header)]
        lines += [(first, f"${tex}$", f"`{code}`", *rest) for first, tex, code, *rest in self.rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def recognise(x, weight, bias, output):
    """Find the conventions in which a layer turns these inputs into this output.

    Args:
        x, weight, output: arrays of rank 2.
        bias: (out,), or None for a weight that may hold the bias, or for no bias at all.

    Returns:
        List of (layout, batch). Empty when none fits; more than one when the arrays cannot tell.

    >>> x, weight = np.array([[2.0, 4.0, 1.0]]), np.array([[0.5, -1.0, 2.0], [-0.25, 0.5, 1.0]])
    >>> recognise(x, weight.T, np.array([3.0, -1.0]), np.array([[2.0, 1.5]]))
    [('in_out', 'rows')]
    """
    found = []
    for layout, batch in product(LAYOUTS, BATCHES):
        added = bias
        if layout == "augmented":
            if bias is not None:
                continue
        elif bias is None:
            added = np.zeros(weight.shape[layout == "in_out"], weight.dtype)
        guess = _output(find("forward", layout, batch), x, weight, added)
        if guess is not None and guess.shape == output.shape and _close(guess, output):
            found.append((layout, batch))
    return found


def reduction_of(loss, output, target, batch: Batch = "rows") -> Reduction:
    """Find out whether a loss is a mean or a sum over the samples, by showing it every sample twice.

    Args:
        loss: function of (output, target) that returns a number.
        output, target: arrays of rank 2 for which the loss is not zero.
        batch: ``"rows"`` or ``"columns"``: where the samples are.

    Raises:
        ValueError: the loss becomes neither one nor two times as large.

    >>> output, target = np.array([[1.0, 2.0]]), np.zeros((1, 2))
    >>> reduction_of(lambda y, t: np.mean((y - t) ** 2), output, target)
    'mean'
    >>> reduction_of(lambda y, t: 0.5 * np.sum((y - t) ** 2), output, target)
    'sum'
    """
    choice("reduction_of", "batch", batch, BATCHES)
    axis = BATCHES.index(batch)
    once = loss(output, target)
    twice = loss(*(np.concatenate([array, array], axis=axis) for array in (output, target)))
    for reduction, factor in (("mean", 1), ("sum", 2)):
        if once != 0 and np.isclose(twice, factor * once, rtol=1e-4, atol=0.0):
            return reduction
    came = f"the loss is {once:.6g}, and {twice:.6g} with every sample twice"
    advice = "Choose output and target so that the loss is not zero, and check where the samples are."
    raise ValueError(complaint("reduction_of", came, "the same number, or twice as much", advice))


def _chosen(where, layout, batch, reduction):
    choice(where, "layout", layout, LAYOUTS)
    choice(where, "batch", batch, BATCHES)
    choice(where, "reduction", reduction, REDUCTIONS)
    return [entry for entry in FORMULAS if entry.holds(layout, batch, reduction)]


def _output(forward, x, weight, bias):
    """The output of a layer, or None if the shapes do not fit."""
    try:
        return forward(x=x, weight=weight, bias=bias)
    except ValueError:
        return None


def _close(actual, expected):
    scale = np.max(np.abs(expected), initial=0.0)
    return bool(np.all(np.abs(actual - expected) <= np.sqrt(np.finfo(expected.dtype).eps) * scale))
