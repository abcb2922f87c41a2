"""The exercises of the chapter "The dense layer": what is right, and which mistakes have a name."""

from fractions import Fraction
from itertools import pairwise

import numpy as np

from denselayer import cost
from denselayer import functional as F
from denselayer.exercises import Case, Code, Explain, Number, Part, Refuses, Slip, Values, Wrong

X = np.array([2.0, 4.0, 1.0])
WEIGHT = np.array([[0.5, -1.0, 2.0], [-0.25, 0.5, 1.0], [1.0, 0.25, -0.5]])
BIAS = np.array([3.0, -1.0, -4.0])
PER_UNIT = "has one bias for each unit, not for each input."


def parameters(*widths):
    """The parameters of a network of these widths."""
    return sum(cost.linear_parameters(a, b) for a, b in pairwise(widths))


def mebibytes(count):
    return cost.nbytes(count, "float32") / 2**20


def layers():
    """Layers from one number to one, 2 to 2 and 7 to 4, with small whole numbers."""
    rng = np.random.default_rng(2)
    found = [Case(X=np.array([[2.0]]), weight=np.array([[3.0]]), bias=np.array([1.0]))]
    for rows, inputs, outputs in [(1, 2, 2), (2, 2, 2), (5, 7, 4)]:
        rows_in, weight = rng.integers(-3, 4, (rows, inputs)), rng.integers(-3, 4, (outputs, inputs))
        bias = rng.integers(1, 5, outputs)
        found.append(Case(X=rows_in.astype(float), weight=weight.astype(float), bias=bias.astype(float)))
    return found


NO_LOOP = Code(
    "dense-no-loop",
    entry="dense",
    template='''
import numpy as np


def dense(X, weight, bias):
    """X (N, in), weight (out, in), bias (out,): the output (N, out), without a loop."""
    <<the output of all rows>>
''',
    solution="return X @ weight.T + bias",
    checks=[
        Values(
            layers,
            F.linear,
            keeps_dtype=True,
            slips=(
                Slip("no bias", lambda X, weight, bias: X @ weight.T, "The bias is left out."),
                Slip(
                    "columns",
                    lambda X, weight, bias: weight @ X.T + bias[:, None],
                    "This is the output with units as rows; here a row belongs to an input of the batch.",
                ),
                Slip(
                    "bias subtracted",
                    lambda X, weight, bias: X @ weight.T - bias,
                    "The bias is subtracted; a pre-activation adds it.",
                ),
            ),
        )
    ],
    wrong=[
        Wrong("forgot the bias", "return X @ weight.T", finding="no bias"),
        Wrong("batch as columns", "return weight @ X.T + bias[:, None]", finding="columns"),
        Wrong("bias as a threshold", "return X @ weight.T - bias", finding="bias subtracted"),
        Wrong(
            "adds the bias in place",
            "X -= 1.0\nreturn (X + 1.0) @ weight.T + bias",
            says="Your function changes its argument `X`.",
        ),
        Wrong(
            "no transpose",
            "return X @ weight + bias",
            says="Line 6 raises a ValueError: the shapes do not fit.",
        ),
    ],
)


def incomplete_batches():
    """Batches that lack features: one of two, the first of three, and two of twelve out of order."""
    rng = np.random.default_rng(3)
    found = []
    for rows, features, outputs, places in [(1, 2, 1, [1]), (2, 3, 2, [0]), (32, 12, 3, [7, 2])]:
        found.append(
            Case(
                batch=rng.integers(1, 5, (rows, features - len(places))).astype(float),
                missing=rng.integers(1, 5, (rows, len(places))).astype(float),
                places=np.array(places),
                weight=rng.integers(-3, 4, (outputs, features)).astype(float),
                bias=rng.integers(1, 5, outputs).astype(float),
            )
        )
    return found


def both_repairs(batch, missing, places, weight, bias):
    columns = iter(batch.T)
    found = dict(zip(places.tolist(), missing.T, strict=True))
    completed = np.stack([found[j] if j in found else next(columns) for j in range(weight.shape[1])], axis=1)
    return F.linear(completed, weight, bias), F.linear(batch, np.delete(weight, places, axis=1), bias)


def _at_the_end(batch, missing, places, weight, bias):
    completed = np.concatenate([batch, missing], axis=1)
    return F.linear(completed, weight, bias), both_repairs(batch, missing, places, weight, bias)[1]


def _first_columns(batch, missing, places, weight, bias):
    both = both_repairs(batch, missing, places, weight, bias)
    return both[0], F.linear(batch, weight[:, : batch.shape[1]], bias)


def _zeros(batch, missing, places, weight, bias):
    both = both_repairs(batch, missing, places, weight, bias)
    return both[1], both[1]


MISMATCH = Code(
    "dense-mismatch",
    entry="repairs",
    template='''
import numpy as np


def repairs(batch, missing, places, weight, bias):
    """Two outputs (N, out): with the missing features at their places, and of a layer without them."""
    features = np.empty((len(batch), weight.shape[1]))
    rest = np.setdiff1d(np.arange(weight.shape[1]), places)
    <<fill `features`, (N, 12), and put it through the layer: `with_them`>>
    <<the layer without the columns of the missing features, on `batch`: `without_them`>>
    return with_them, without_them
''',
    solution=[
        "features[:, rest] = batch\nfeatures[:, places] = missing\nwith_them = features @ weight.T + bias",
        "without_them = batch @ weight[:, rest].T + bias",
    ],
    checks=[
        Values(
            incomplete_batches,
            both_repairs,
            returns=("with_them", "without_them"),
            slips=(
                Slip(
                    "features at the end",
                    _at_the_end,
                    "The missing features stand behind the others; each belongs at its own place,"
                    " since a column of the weight belongs to a feature.",
                ),
                Slip(
                    "first columns",
                    _first_columns,
                    "The last columns of the weight are dropped; those of the missing features have to go.",
                ),
                Slip(
                    "filled with zeros",
                    _zeros,
                    "The missing features are zero in `with_them`: as if they had been measured.",
                ),
            ),
        )
    ],
    wrong=[
        Wrong(
            "appends",
            [
                "features[:] = np.concatenate([batch, missing], axis=1)\n"
                "with_them = features @ weight.T + bias",
                "without_them = batch @ weight[:, rest].T + bias",
            ],
            finding="features at the end",
        ),
        Wrong(
            "cuts the weight",
            [
                "features[:, rest] = batch\nfeatures[:, places] = missing\n"
                "with_them = features @ weight.T + bias",
                "without_them = batch @ weight[:, : batch.shape[1]].T + bias",
            ],
            finding="first columns",
        ),
        Wrong(
            "zeros",
            [
                "features[:, rest] = batch\nfeatures[:, places] = 0\nwith_them = features @ weight.T + bias",
                "without_them = batch @ weight[:, rest].T + bias",
            ],
            finding="filled with zeros",
        ),
    ],
)


def _layer(use, weight, bias):
    """A layer as a function that can be copied and named in a message."""

    def layer(X):
        return X @ (weight.T if use == "right" else weight) + bias

    return layer


def claimed_layers():
    found = []
    for rows in [[[0, 1], [2, 3]], [[1, -2, 3], [0, 4, -1], [2, 2, 5]]]:
        weight = np.array(rows, dtype=float)
        bias = np.arange(1.0, len(weight) + 1)
        for use in ("right", "transposed"):
            found.append(Case(layer=_layer(use, weight, bias), weight=weight, bias=bias))
    return found


def _is_transposed(layer, weight, bias):
    rows = np.random.default_rng(0).normal(size=(5, len(weight)))
    return not np.allclose(layer(rows), F.linear(rows, weight, bias))


def neither():
    weight, bias = np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([1.0, 2.0])
    return [Case(layer=lambda X: X @ (2 * weight).T + bias, weight=weight, bias=bias)]


def impostors():
    """Right for every row of the identity, wrong at zero."""
    weight, bias = np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([1.0, 2.0])
    return [Case(layer=lambda X: X @ (weight + 1).T + (bias - 1), weight=weight, bias=bias)]


def symmetric():
    weight, bias = np.array([[1.0, 2.0], [2.0, 3.0]]), np.array([1.0, 2.0])
    return [Case(layer=_layer("right", weight, bias), weight=weight, bias=bias)]


WHICH_LAYOUT_PROBES = """
n = len(weight)
probes = np.vstack([np.zeros((1, n)), np.eye(n)])
answer = layer(probes)
if np.allclose(answer, probes @ weight.T + bias):
    return False
if np.allclose(answer, probes @ weight + bias):
    return True
raise ValueError("neither the layer nor its transpose")
"""
SYMMETRY = """
if np.array_equal(weight, weight.T):
    raise ValueError("a symmetric weight is its own transpose")
"""
WHICH_LAYOUT = Code(
    "dense-which-layout",
    entry="is_transposed",
    template='''
import numpy as np


def is_transposed(layer, weight, bias):
    """Whether layer(X), for X (N, n), uses the square weight (n, n) the wrong way round."""
    <<raise a ValueError if no test can tell>>
    <<ask the layer, and return True, return False or raise a ValueError>>
''',
    solution=[SYMMETRY, WHICH_LAYOUT_PROBES],
    checks=[
        Values(
            claimed_layers,
            _is_transposed,
            slips=(
                Slip(
                    "the other way round",
                    lambda layer, weight, bias: not _is_transposed(layer, weight, bias),
                    "True and False are exchanged: rows are units, so X @ weight.T is the right product.",
                ),
            ),
        ),
        Refuses(neither, ValueError, "the layer uses twice the weight, which is neither."),
        Refuses(symmetric, ValueError, "the weight is symmetric, so both are the same function."),
        Refuses(
            impostors,
            ValueError,
            "the layer is right for every row of the identity, and wrong at zero.",
        ),
    ],
    wrong=[
        Wrong(
            "exchanged",
            [
                SYMMETRY,
                WHICH_LAYOUT_PROBES.replace("False", "?").replace("True", "False").replace("?", "True"),
            ],
            finding="the other way round",
        ),
        Wrong(
            "anything else is transposed",
            [
                SYMMETRY,
                "probes = np.vstack([np.zeros((1, len(weight))), np.eye(len(weight))])\n"
                "return not np.allclose(layer(probes), probes @ weight.T + bias)",
            ],
            says="`is_transposed` should raise a ValueError here: the layer uses twice the weight,"
            " which is neither.",
        ),
        Wrong(
            "asks no zeros",
            [SYMMETRY, WHICH_LAYOUT_PROBES.replace("np.vstack([np.zeros((1, n)), np.eye(n)])", "np.eye(n)")],
            says="`is_transposed` should raise a ValueError here: the layer is right for every row of the"
            " identity, and wrong at zero.",
        ),
        Wrong(
            "forgets symmetric weights",
            ["pass", WHICH_LAYOUT_PROBES],
            says="`is_transposed` should raise a ValueError here: the weight is symmetric, so both are the"
            " same function.",
        ),
    ],
)


def pairs_of_layers():
    rng = np.random.default_rng(4)
    found = []
    for a, b, c in [(1, 1, 1), (2, 2, 2), (3, 5, 2)]:
        draw = [rng.integers(1, 4, shape).astype(float) for shape in [(b, a), (b,), (c, b), (c,)]]
        found.append(Case(first=(draw[0], draw[1]), second=(draw[2], draw[3])))
    return found


def merged(first, second):
    inputs = first[0].shape[1]
    probes = np.vstack([np.zeros(inputs), np.eye(inputs)])
    answers = F.linear(F.linear(probes, *first), *second)
    return (answers[1:] - answers[0]).T, answers[0]


COLLAPSE = Code(
    "dense-collapse",
    entry="merge",
    template='''
import numpy as np


def merge(first, second):
    """The pair (weight, bias) of the one layer that does what `first` and then `second` do."""
    (weight_1, bias_1), (weight_2, bias_2) = first, second
    <<return the weight and the bias>>
''',
    solution="return weight_2 @ weight_1, weight_2 @ bias_1 + bias_2",
    checks=[
        Values(
            pairs_of_layers,
            merged,
            returns=("weight", "bias"),
            slips=(
                Slip(
                    "biases added",
                    lambda first, second: first[1] + second[1],
                    "The two biases are added; the first one goes through the second layer's weight.",
                    "bias",
                ),
                Slip(
                    "second bias lost",
                    lambda first, second: second[0] @ first[1],
                    "The bias of the second layer is left out.",
                    "bias",
                ),
                Slip(
                    "first bias lost",
                    lambda first, second: second[1],
                    "The bias of the first layer is left out.",
                    "bias",
                ),
            ),
        )
    ],
    wrong=[
        Wrong("no second bias", "return weight_2 @ weight_1, weight_2 @ bias_1", finding="second bias lost"),
        Wrong("no first bias", "return weight_2 @ weight_1, bias_2", finding="first bias lost"),
        Wrong(
            "the wrong order",
            "return weight_1 @ weight_2, weight_2 @ bias_1 + bias_2",
            says="Line 7 raises a ValueError: the shapes do not fit.",
        ),
        Wrong(
            "only the weights",
            "return weight_2 @ weight_1",
            says="`merge` returns weight, bias; yours returns an array.",
        ),
    ],
)

SHAPES = Number(
    "dense-shapes",
    Part("weight", (6, 4), {(4, 6): "(4, 6) is the weight stored as (in, out); PyTorch has a row per unit."}),
    Part("bias", (6,), {(4,): f"A layer {PER_UNIT}", (6, 1): "PyTorch's bias has one axis."}),
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
        {2.5: "2.5 leaves the bias out.", 1: "1 uses column 2 of the weight; unit 2 is row 2."},
    ),
    Part(
        "for (0, 6, 3)",
        (WEIGHT @ np.array([0.0, 6.0, 3.0]) + BIAS)[1],
        {6: "6 leaves the bias out.", 2.75: "2.75 uses column 2 of the weight; unit 2 is row 2."},
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
            tuple(WEIGHT @ X): "The bias is missing: the layer has its own random one until you copy yours.",
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
