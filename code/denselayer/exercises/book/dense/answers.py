"""The exercises of the chapter "The dense layer": what is right, and which mistakes have a name."""

from fractions import Fraction
from itertools import pairwise

import numpy as np

from denselayer import cost
from denselayer.exercises import Explain, Number, Part

from ._code import COLLAPSE, MISMATCH, NO_LOOP, WHICH_LAYOUT

X = np.array([2.0, 4.0, 1.0])
WEIGHT = np.array([[0.5, -1.0, 2.0], [-0.25, 0.5, 1.0], [1.0, 0.25, -0.5]])
BIAS = np.array([3.0, -1.0, -4.0])
ONE_AXIS = "PyTorch's bias has one axis."
PER_UNIT = "has one bias for each unit, not for each input."


def parameters(*widths):
    """The parameters of a network of these widths."""
    return sum(cost.linear_parameters(a, b) for a, b in pairwise(widths))


def mebibytes(count):
    return cost.nbytes(count, "float32") / 2**20


SHAPES = Number(
    "dense-shapes",
    Part("weight", (6, 4), {(4, 6): "(4, 6) is the weight stored as (in, out); PyTorch has a row per unit."}),
    Part("bias", (6,), {(4,): f"A layer {PER_UNIT}", (6, 1): ONE_AXIS, (1, 6): ONE_AXIS}),
    Part("output of one input", (6,), {(1, 6): "An input of one axis gives an output of one axis."}),
    Part(
        "output of the batch",
        (32, 6),
        {(6, 32): "(6, 32) has units as rows; here the rows belong to the inputs of the batch."},
    ),
)
COUNT = Number(
    "dense-count",
    Part(
        "parameters",
        parameters(4, 6),
        {
            24: "24 leaves the biases out: each of the 6 units has one.",
            28: f"28 is wrong: a layer {PER_UNIT}",
        },
    ),
    Part("biases", 6, {4: "A bias belongs to a unit, not to an input.", 1: "Each unit has its own bias."}),
    Part(
        "bytes",
        cost.nbytes(parameters(4, 6), "float32"),
        {240: "240 is right for float64; a float32 has 4 bytes.", 96: "96 leaves the biases out."},
        unit="bytes",
    ),
)
SECOND_UNIT = Number(
    "dense-second-unit",
    Part(
        "for (2, 4, 1)",
        (WEIGHT @ X + BIAS)[1],
        {
            WEIGHT[1] @ X: "2.5 leaves the bias out.",
            WEIGHT[:, 1] @ X + BIAS[1]: "−0.75 uses column 2 of the weight; unit 2 is row 2.",
            WEIGHT[1] @ X - BIAS[1]: "3.5 subtracts the bias; it is added, with its sign.",
            WEIGHT[2] @ X + BIAS[2]: "−1.5 is unit 3: units are counted from 1.",
        },
    ),
    Part(
        "for (0, 6, 3)",
        (WEIGHT @ np.array([0.0, 6.0, 3.0]) + BIAS)[1],
        {
            6: "6 leaves the bias out.",
            WEIGHT[:, 1] @ [0, 6, 3] + BIAS[1]: "2.75 uses column 2 of the weight; unit 2 is row 2.",
            7: "7 subtracts the bias; it is added, with its sign.",
        },
    ),
)
THREE_LAYERS = Number(
    "dense-three-layers",
    Part("first weight", (20, 10), {(10, 20): "A weight has a row for each output: the outputs come first."}),
    Part("second weight", (5, 20), {(20, 5): "A weight has a row for each output: the outputs come first."}),
    Part("third weight", (1, 5), {(5, 1): "A weight has a row for each output: the outputs come first."}),
    Part("parameters of the first", parameters(10, 20), {200: "200 leaves the 20 biases out."}),
    Part("parameters of the second", parameters(20, 5), {100: "100 leaves the 5 biases out."}),
    Part("parameters of the third", parameters(5, 1), {5: "5 leaves the bias out."}),
    Part("total", parameters(10, 20, 5, 1), {305: "305 leaves all biases out."}),
)
TORCH = Number(
    "dense-torch",
    Part(
        "weight of Linear(4, 6)",
        (6, 4),
        {(4, 6): "The arguments name the inputs first, the storage does not."},
    ),
    Part(
        "dtype of a new weight",
        "float32",
        {"float64": "NumPy's arrays are float64, a new Linear is not."},
        options=("float32", "float64"),
    ),
    Part(
        "output",
        tuple(WEIGHT @ X + BIAS),
        {
            tuple(WEIGHT.T @ X + BIAS): "This layer uses the transpose of the weight.",
            tuple(WEIGHT @ X): "That is the product alone; the bias is left out.",
            tuple(np.maximum(WEIGHT @ X + BIAS, 0)): "That is the output after a ReLU; a Linear has none.",
        },
    ),
)
MEMORY = Number(
    "dense-memory",
    Part("parameters", parameters(1024, 4096), {1024 * 4096: "4,194,304 leaves the 4,096 biases out."}),
    Part(
        "outputs",
        64 * 4096,
        {4096: "4,096 is one row; the batch has 64.", 64 * 1024: "65,536 are the inputs."},
    ),
    Part(
        "MiB of the parameters",
        mebibytes(parameters(1024, 4096)),
        {
            mebibytes(parameters(1024, 4096)) * 2**20 / 10**6: "That is megabytes, of 1,000,000 bytes.",
            parameters(1024, 4096) / 2**20: "That counts one byte for a number; a float32 has 4.",
        },
        unit="MiB",
    ),
    Part(
        "MiB of the outputs",
        mebibytes(64 * 4096),
        {0.25: "0.25 counts one byte for a number; a float32 has 4.", 2: "2 is right for float64."},
        rtol=1e-3,
        unit="MiB",
    ),
    Part(
        "first batch with more outputs than parameters",
        1024 + 1 + 1,
        {
            1025: "At 1,025 rows the two are equal.",
            1024: "1,024 leaves the biases out, and the two are equal.",
        },
    ),
)
DOUBLING = Number(
    "dense-doubling",
    Part(
        "operations", 4, {2: "Both the inputs and the units double: 2 · 2.", 8: "The batch does not double."}
    ),
    Part("activations", 2, {4: "4 counts the inputs too: N · d grows with d alone."}),
    Part(
        "parameters for d = 1",
        Fraction(parameters(2, 2), parameters(1, 1)),
        {4: "4 leaves the biases out, which only double."},
        rtol=0,
    ),
    Part(
        "parameters for d = 1024",
        Fraction(parameters(2048, 2048), parameters(1024, 1024)),
        {4: "4 leaves the biases out, which only double: the factor is a little smaller."},
        rtol=1e-4,
    ),
)
SHIFT = Number(
    "dense-shift",
    Part(
        "change of the pre-activations",
        tuple(WEIGHT[:, 1]),
        {
            tuple(WEIGHT[1]): "That is row 2 of the weight. Kilometres are input 2, so it is column 2.",
            tuple(100 * WEIGHT[:, 1]): "Each trip changes its own row; nothing is added up over the 100.",
            tuple(WEIGHT[:, 1] + BIAS): "The bias is in both, before and after: it cancels.",
        },
    ),
    Part(
        "same changes after ReLU",
        "no",
        {"yes": "ReLU keeps no change of a unit that stays below zero."},
        options=("yes", "no"),
    ),
)

EXERCISES = [
    SHAPES,
    COUNT,
    SECOND_UNIT,
    Explain("dense-silent-unit"),
    Explain("dense-width-depth"),
    THREE_LAYERS,
    NO_LOOP,
    TORCH,
    Explain("dense-bias-gradient"),
    MEMORY,
    DOUBLING,
    Explain("dense-splitting"),
    Explain("dense-structured"),
    MISMATCH,
    Explain("dense-middle"),
    SHIFT,
    Explain("dense-offset"),
    WHICH_LAYOUT,
    COLLAPSE,
]
