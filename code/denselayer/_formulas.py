"""The formulas of a dense layer in every convention, each as TeX and as the NumPy of the same value."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from . import functional, layouts
from .layouts import Layout

Batch = Literal["rows", "columns"]
Reduction = Literal["mean", "sum"]

_NAMES = {"np": np, "F": functional, "layouts": layouts}


@dataclass(frozen=True)
class Entry:
    """A piece of TeX and the NumPy expression with the same value, for the conventions in which it holds.

    ``layout``, ``batch`` or ``reduction`` is None where the entry holds for all of them.
    """

    name: str
    tex: str
    code: str
    note: str
    layout: Layout | None = None
    batch: Batch | None = None
    reduction: Reduction | None = None

    def __call__(self, **arrays):
        """Evaluate `code` with these arrays under the names that it uses.

        >>> Entry("twice", r"2 \\mathbf{X}", "2 * x", "(N, in)")(x=np.array([3.0]))
        array([6.])
        """
        return eval(self.code, _NAMES | arrays)

    def holds(self, layout, batch, reduction):
        """Whether the entry belongs to this convention."""
        wanted = ((self.layout, layout), (self.batch, batch), (self.reduction, reduction))
        return all(own is None or own == asked for own, asked in wanted)


LABELS = {
    "input": "input, from ours",
    "weight": "weight, from ours",
    "bias": "bias, from ours",
    "output": "output, from ours",
    "forward": "forward",
    "d_weight": "gradient of the weight",
    "d_bias": "gradient of the bias",
    "d_x": "gradient of the input",
    "collapse_weight": "two layers as one: weight",
    "collapse_bias": "two layers as one: bias",
    "parameters": "number of parameters",
    "mse": "squared error",
    "d_mse": "its gradient",
    "cross_entropy": "softmax, cross entropy",
    "d_cross_entropy": "its gradient by the scores",
}
"""What each quantity is called in a table."""


def _of_rows_and_columns(name, rows, columns, layout=None, reduction=None):
    return (
        Entry(name, *rows, layout, "rows", reduction),
        Entry(name, *columns, layout, "columns", reduction),
    )


_STORAGE = (
    *_of_rows_and_columns(
        "input",
        (r"\mathbf{X}", "x", "(N, in)"),
        (r"\mathbf{X}^\top", "x.T", "(in, N)"),
    ),
    Entry("weight", r"\mathbf{W}", "weight", "(out, in)", "out_in"),
    Entry("weight", r"\mathbf{W}^\top", "weight.T", "(in, out)", "in_out"),
    Entry(
        "weight",
        r"\begin{bmatrix} \mathbf{b} & \mathbf{W} \end{bmatrix}",
        "np.column_stack([bias, weight])",
        "(out, 1 + in)",
        "augmented",
    ),
    Entry("bias", r"\mathbf{b}", "bias", "(out,)", "out_in"),
    Entry("bias", r"\mathbf{b}", "bias", "(out,)", "in_out"),
    *_of_rows_and_columns(
        "output",
        (r"\mathbf{Y}", "output", "(N, out)"),
        (r"\mathbf{Y}^\top", "output.T", "(out, N)"),
    ),
)

_FORWARD = (
    *_of_rows_and_columns(
        "forward",
        (
            r"\mathbf{X} \mathbf{W}^\top + \mathbf{1} \mathbf{b}^\top",
            "x @ weight.T + bias",
            "(N, in) (in, out) → (N, out)",
        ),
        (
            r"\mathbf{W} \mathbf{X} + \mathbf{b} \mathbf{1}^\top",
            "weight @ x + bias[:, None]",
            "(out, in) (in, N) → (out, N)",
        ),
        "out_in",
    ),
    *_of_rows_and_columns(
        "forward",
        (
            r"\mathbf{X} \mathbf{V} + \mathbf{1} \mathbf{b}^\top",
            "x @ weight + bias",
            "(N, in) (in, out) → (N, out)",
        ),
        (
            r"\mathbf{V}^\top \mathbf{X} + \mathbf{b} \mathbf{1}^\top",
            "weight.T @ x + bias[:, None]",
            "(out, in) (in, N) → (out, N)",
        ),
        "in_out",
    ),
    *_of_rows_and_columns(
        "forward",
        (
            r"\tilde{\mathbf{X}} \tilde{\mathbf{W}}^\top",
            "layouts.augment(x, axis=1) @ weight.T",
            "(N, 1 + in) (1 + in, out) → (N, out)",
        ),
        (
            r"\tilde{\mathbf{W}} \tilde{\mathbf{X}}",
            "weight @ layouts.augment(x)",
            "(out, 1 + in) (1 + in, N) → (out, N)",
        ),
        "augmented",
    ),
)

_GRADIENTS = (
    *_of_rows_and_columns(
        "d_weight",
        (r"\mathrm{d}\mathbf{Y}^\top \mathbf{X}", "d_out.T @ x", "(out, N) (N, in) → (out, in)"),
        (r"\mathrm{d}\mathbf{Y} \, \mathbf{X}^\top", "d_out @ x.T", "(out, N) (N, in) → (out, in)"),
        "out_in",
    ),
    *_of_rows_and_columns(
        "d_weight",
        (r"\mathbf{X}^\top \, \mathrm{d}\mathbf{Y}", "x.T @ d_out", "(in, N) (N, out) → (in, out)"),
        (r"\mathbf{X} \, \mathrm{d}\mathbf{Y}^\top", "x @ d_out.T", "(in, N) (N, out) → (in, out)"),
        "in_out",
    ),
    *_of_rows_and_columns(
        "d_weight",
        (
            r"\mathrm{d}\mathbf{Y}^\top \tilde{\mathbf{X}}",
            "d_out.T @ layouts.augment(x, axis=1)",
            "(out, N) (N, 1 + in) → (out, 1 + in)",
        ),
        (
            r"\mathrm{d}\mathbf{Y} \, \tilde{\mathbf{X}}^\top",
            "d_out @ layouts.augment(x).T",
            "(out, N) (N, 1 + in) → (out, 1 + in)",
        ),
        "augmented",
    ),
    *(
        entry
        for layout in ("out_in", "in_out")
        for entry in _of_rows_and_columns(
            "d_bias",
            (r"\mathrm{d}\mathbf{Y}^\top \mathbf{1}", "d_out.sum(axis=0)", "(out, N) (N, 1) → (out,)"),
            (r"\mathrm{d}\mathbf{Y} \, \mathbf{1}", "d_out.sum(axis=1)", "(out, N) (N, 1) → (out,)"),
            layout,
        )
    ),
    Entry(
        "d_bias",
        r"\mathrm{d}\tilde{\mathbf{W}} \, \mathbf{e}_0",
        "d_weight[:, 0]",
        "(out, 1 + in) (1 + in, 1) → (out,)",
        "augmented",
    ),
    *_of_rows_and_columns(
        "d_x",
        (r"\mathrm{d}\mathbf{Y} \, \mathbf{W}", "d_out @ weight", "(N, out) (out, in) → (N, in)"),
        (r"\mathbf{W}^\top \, \mathrm{d}\mathbf{Y}", "weight.T @ d_out", "(in, out) (out, N) → (in, N)"),
        "out_in",
    ),
    *_of_rows_and_columns(
        "d_x",
        (r"\mathrm{d}\mathbf{Y} \, \mathbf{V}^\top", "d_out @ weight.T", "(N, out) (out, in) → (N, in)"),
        (r"\mathbf{V} \, \mathrm{d}\mathbf{Y}", "weight @ d_out", "(in, out) (out, N) → (in, N)"),
        "in_out",
    ),
    *_of_rows_and_columns(
        "d_x",
        (r"\mathrm{d}\mathbf{Y} \, \mathbf{W}", "d_out @ weight[:, 1:]", "(N, out) (out, in) → (N, in)"),
        (
            r"\mathbf{W}^\top \, \mathrm{d}\mathbf{Y}",
            "weight[:, 1:].T @ d_out",
            "(in, out) (out, N) → (in, N)",
        ),
        "augmented",
    ),
)

_WHOLE_LAYERS = (
    Entry(
        "collapse_weight",
        r"\mathbf{W}_2 \mathbf{W}_1",
        "weight2 @ weight1",
        "(out, hidden) (hidden, in) → (out, in)",
        "out_in",
    ),
    Entry(
        "collapse_weight",
        r"\mathbf{V}_1 \mathbf{V}_2",
        "weight1 @ weight2",
        "(in, hidden) (hidden, out) → (in, out)",
        "in_out",
    ),
    Entry(
        "collapse_weight",
        r"\tilde{\mathbf{W}}_2 \bar{\mathbf{W}}_1",
        "weight2 @ np.vstack([np.eye(1, weight1.shape[1]), weight1])",
        "(out, 1 + hidden) (1 + hidden, 1 + in) → (out, 1 + in)",
        "augmented",
    ),
    Entry(
        "collapse_bias",
        r"\mathbf{W}_2 \mathbf{b}_1 + \mathbf{b}_2",
        "weight2 @ bias1 + bias2",
        "(out, hidden) (hidden, 1) → (out,)",
        "out_in",
    ),
    Entry(
        "collapse_bias",
        r"\mathbf{V}_2^\top \mathbf{b}_1 + \mathbf{b}_2",
        "weight2.T @ bias1 + bias2",
        "(out, hidden) (hidden, 1) → (out,)",
        "in_out",
    ),
    *(
        Entry(
            "parameters", r"n_\text{out} n_\text{in} + n_\text{out}", "weight.size + bias.size", "()", layout
        )
        for layout in ("out_in", "in_out")
    ),
    Entry("parameters", r"n_\text{out} (1 + n_\text{in})", "weight.size", "()", "augmented"),
)

_LOSSES = (
    Entry(
        "mse",
        r"\frac{1}{N n_\text{out}} \, \lVert \hat{\mathbf{Y}} - \mathbf{T} \rVert^2",
        "np.mean((output - target) ** 2)",
        "()",
        reduction="mean",
    ),
    Entry(
        "mse",
        r"\lVert \hat{\mathbf{Y}} - \mathbf{T} \rVert^2",
        "np.sum((output - target) ** 2)",
        "()",
        reduction="sum",
    ),
    *_of_rows_and_columns(
        "d_mse",
        (
            r"\frac{2}{N n_\text{out}} (\hat{\mathbf{Y}} - \mathbf{T})",
            "2 * (output - target) / output.size",
            "(N, out)",
        ),
        (
            r"\frac{2}{N n_\text{out}} (\hat{\mathbf{Y}} - \mathbf{T})",
            "2 * (output - target) / output.size",
            "(out, N)",
        ),
        reduction="mean",
    ),
    *_of_rows_and_columns(
        "d_mse",
        (r"2 (\hat{\mathbf{Y}} - \mathbf{T})", "2 * (output - target)", "(N, out)"),
        (r"2 (\hat{\mathbf{Y}} - \mathbf{T})", "2 * (output - target)", "(out, N)"),
        reduction="sum",
    ),
    *_of_rows_and_columns(
        "cross_entropy",
        (
            r"-\frac{1}{N} \sum_{n,i} T_{ni} \log P_{ni}",
            "-np.sum(target * F.log_softmax(output, axis=1)) / len(output)",
            "()",
        ),
        (
            r"-\frac{1}{N} \sum_{n,i} T_{in} \log P_{in}",
            "-np.sum(target * F.log_softmax(output, axis=0)) / output.shape[1]",
            "()",
        ),
        reduction="mean",
    ),
    *_of_rows_and_columns(
        "cross_entropy",
        (
            r"-\sum_{n,i} T_{ni} \log P_{ni}",
            "-np.sum(target * F.log_softmax(output, axis=1))",
            "()",
        ),
        (
            r"-\sum_{n,i} T_{in} \log P_{in}",
            "-np.sum(target * F.log_softmax(output, axis=0))",
            "()",
        ),
        reduction="sum",
    ),
    *_of_rows_and_columns(
        "d_cross_entropy",
        (
            r"\frac{1}{N} (\mathbf{P} - \mathbf{T})",
            "(F.softmax(output, axis=1) - target) / len(output)",
            "(N, out)",
        ),
        (
            r"\frac{1}{N} (\mathbf{P} - \mathbf{T})",
            "(F.softmax(output, axis=0) - target) / output.shape[1]",
            "(out, N)",
        ),
        reduction="mean",
    ),
    *_of_rows_and_columns(
        "d_cross_entropy",
        (r"\mathbf{P} - \mathbf{T}", "F.softmax(output, axis=1) - target", "(N, out)"),
        (r"\mathbf{P} - \mathbf{T}", "F.softmax(output, axis=0) - target", "(out, N)"),
        reduction="sum",
    ),
)

FORMULAS = (*_STORAGE, *_FORWARD, *_GRADIENTS, *_WHOLE_LAYERS, *_LOSSES)
"""All formulas. The entries of the storage are evaluated on the arrays of this book: out_in, rows."""


SYMBOLS = (
    Entry("X", r"\mathbf{X}", "x", "the inputs of the batch"),
    Entry("Y", r"\mathbf{Y}", "output", "the outputs of the layer"),
    Entry("dY", r"\mathrm{d}\mathbf{Y}", "d_out", "the upstream gradient, of the shape of the output"),
    Entry("W", r"\mathbf{W}", "weight", "the weight, (out, in)", "out_in"),
    Entry("V", r"\mathbf{V}", "weight", "the weight, (in, out)", "in_out"),
    Entry("W~", r"\tilde{\mathbf{W}}", "weight", "the weight with the bias as column 0", "augmented"),
    Entry("W", r"\mathbf{W}", "weight[:, 1:]", "the weight without column 0", "augmented"),
    Entry("dW~", r"\mathrm{d}\tilde{\mathbf{W}}", "d_weight", "the gradient of the weight", "augmented"),
    Entry("b", r"\mathbf{b}", "bias[:, None]", "the bias, as a column", "out_in"),
    Entry("b", r"\mathbf{b}", "bias[:, None]", "the bias, as a column", "in_out"),
    Entry("1", r"\mathbf{1}", "np.ones((N, 1))", "a column of N ones"),
    Entry("e0", r"\mathbf{e}_0", "np.eye(weight.shape[1], 1)", "the column (1, 0, …, 0)", "augmented"),
    Entry("X~", r"\tilde{\mathbf{X}}", "layouts.augment(x, axis=1)", "a 1 before each input", batch="rows"),
    Entry("X~", r"\tilde{\mathbf{X}}", "layouts.augment(x)", "a 1 above each input", batch="columns"),
    Entry("W1", r"\mathbf{W}_1", "weight1", "the weight of the lower layer", "out_in"),
    Entry("W2", r"\mathbf{W}_2", "weight2", "the weight of the upper layer", "out_in"),
    Entry("V1", r"\mathbf{V}_1", "weight1", "the weight of the lower layer", "in_out"),
    Entry("V2", r"\mathbf{V}_2", "weight2", "the weight of the upper layer", "in_out"),
    Entry("W~2", r"\tilde{\mathbf{W}}_2", "weight2", "the weight of the upper layer", "augmented"),
    Entry(
        "W-1",
        r"\bar{\mathbf{W}}_1",
        "np.vstack([np.eye(1, weight1.shape[1]), weight1])",
        "the weight of the lower layer with the row (1, 0, …, 0) on top",
        "augmented",
    ),
    Entry("b1", r"\mathbf{b}_1", "bias1[:, None]", "the bias of the lower layer, as a column"),
    Entry("b2", r"\mathbf{b}_2", "bias2[:, None]", "the bias of the upper layer, as a column"),
    Entry("Y^", r"\hat{\mathbf{Y}}", "output", "the predictions, or the scores of the classes"),
    Entry("T", r"\mathbf{T}", "target", "the targets, for classes a 1 at the right one and 0 elsewhere"),
    Entry("P", r"\mathbf{P}", "F.softmax(output, axis=1)", "the softmax along each row", batch="rows"),
    Entry("P", r"\mathbf{P}", "F.softmax(output, axis=0)", "the softmax along each column", batch="columns"),
)
"""The letters of the formulas, each with its NumPy."""
