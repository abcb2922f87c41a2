"""The exercises of the chapter "The dense layer": what is right, and which mistakes have a name."""

import numpy as np

from denselayer import cost
from denselayer import functional as F
from denselayer.exercises import Case, Code, Explain, Number, Part, Slip, Values, Wrong


def layers():
    """Layers from one number to one, 2 to 2 and 7 to 4, with small whole numbers."""
    rng = np.random.default_rng(2)
    found = [Case(X=np.array([[2.0]]), weight=np.array([[3.0]]), bias=np.array([1.0]))]
    for rows, inputs, outputs in [(1, 2, 2), (2, 2, 2), (5, 7, 4)]:
        X, weight = rng.integers(-3, 4, (rows, inputs)), rng.integers(-3, 4, (outputs, inputs))
        bias = rng.integers(1, 5, outputs)
        found.append(Case(X=X.astype(float), weight=weight.astype(float), bias=bias.astype(float)))
    return found


EXERCISES = [
    Number(
        "dense-count",
        Part(
            "parameters",
            cost.linear_parameters(4, 6),
            {
                24: "24 leaves the biases out: each of the 6 units has one.",
                28: "28 counts one bias for each input; a bias belongs to a unit, and there are 6.",
            },
        ),
        Part(
            "biases", 6, {4: "A bias belongs to a unit, not to an input.", 1: "Each unit has its own bias."}
        ),
        Part(
            "bytes",
            cost.nbytes(cost.linear_parameters(4, 6), "float32"),
            {240: "8 bytes is a float64; a float32 has 4.", 96: "96 leaves the biases out."},
            unit="bytes",
        ),
    ),
    Code(
        "dense-no-loop",
        entry="dense",
        template='''
import numpy as np


def dense(X, weight, bias):
    """The output (N, out) of a layer for the rows of X (N, in); weight (out, in), bias (out,)."""
    <<the output of all rows, without a loop>>
''',
        solution="return X @ weight.T + bias",
        checks=[
            Values(
                layers,
                F.linear,
                keeps_dtype=True,
                slips=(
                    Slip(
                        "weight not transposed",
                        lambda X, weight, bias: X @ weight + bias,
                        "The weight is not transposed: row i of the weight belongs to unit i, so the product"
                        " is X @ weight.T.",
                    ),
                    Slip("no bias", lambda X, weight, bias: X @ weight.T, "The bias is left out."),
                    Slip(
                        "columns",
                        lambda X, weight, bias: weight @ X.T + bias[:, None],
                        "This is the output with units as rows; a row belongs to an input of the batch.",
                    ),
                ),
            )
        ],
        wrong=[
            Wrong("forgot the bias", "return X @ weight.T", finding="no bias"),
            Wrong("batch as columns", "return weight @ X.T + bias[:, None]", finding="columns"),
            Wrong(
                "changes X",
                "X -= 1.0\nreturn (X + 1.0) @ weight.T + bias",
                says="Your function changes its argument `X`.",
            ),
            Wrong(
                "no transpose",
                "return X @ weight + bias",
                says="Line 6 raises a ValueError: the shapes do not fit.",
            ),
        ],
    ),
    Explain("dense-silent-unit"),
]
