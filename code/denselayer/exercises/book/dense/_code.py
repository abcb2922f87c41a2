"""The code exercises of the chapter "The dense layer"."""

import numpy as np

from denselayer import functional as F
from denselayer.exercises import Case, Code, Property, Refuses, Slip, Values, Wrong
from denselayer.exercises._running import without_loop, without_package


def layers():
    """Layers from one number to one, 2 to 2 and 7 to 4, with small whole numbers."""
    rng = np.random.default_rng(2)
    found = [Case(X=np.array([[2.0]]), weight=np.array([[3.0]]), bias=np.array([1.0]))]
    for rows, inputs, outputs in [(1, 2, 2), (2, 2, 2), (5, 7, 4)]:
        rows_in, weight = rng.integers(-3, 4, (rows, inputs)), rng.integers(-3, 4, (outputs, inputs))
        bias = rng.integers(1, 5, outputs)
        found.append(Case(X=rows_in.astype(float), weight=weight.astype(float), bias=bias.astype(float)))
    return found


def ones(rows, inputs, outputs):
    return lambda: Case(X=np.ones((rows, inputs)), weight=np.ones((outputs, inputs)), bias=np.ones(outputs))


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
                Slip(
                    "relu",
                    lambda X, weight, bias: np.maximum(X @ weight.T + bias, 0),
                    "That is the output after a ReLU; the layer alone is asked.",
                ),
                Slip(
                    "all biases",
                    lambda X, weight, bias: X @ weight.T + bias.sum(),
                    "Every unit gets the sum of all biases; unit i has its own, entry i.",
                ),
            ),
        ),
        Property(without_package(ones(2, 2, 2), "dense")),
        Property(without_loop(ones(2, 2, 2), ones(40, 30, 20), "dense")),
    ],
    wrong=[
        Wrong("forgot the bias", "return X @ weight.T", finding="no bias"),
        Wrong("batch as columns", "return weight @ X.T + bias[:, None]", finding="columns"),
        Wrong(
            "a loop over the rows",
            "return np.array([weight @ row + bias for row in X])",
            finding="loop",
        ),
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
    """Batches that lack features: the first of two, one of three, and two of twelve out of order."""
    rng = np.random.default_rng(3)
    found = [
        Case(
            batch=np.array([[3.0]]),
            missing=np.array([[1.0]]),
            places=np.array([0]),
            weight=np.array([[2.0, 5.0]]),
            bias=np.array([4.0]),
        )
    ]
    for rows, features, outputs, places in [(2, 3, 2, [1]), (32, 12, 3, [7, 2])]:
        weight = np.stack([rng.permutation(features) - 4.0 for _ in range(outputs)])
        found.append(
            Case(
                batch=rng.integers(1, 5, (rows, features - len(places))).astype(float),
                missing=rng.integers(1, 5, (rows, len(places))).astype(float),
                places=np.array(places),
                weight=weight,
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
    return F.linear(np.concatenate([batch, missing], axis=1), weight, bias)


def _at_the_start(batch, missing, places, weight, bias):
    return F.linear(np.concatenate([missing, batch], axis=1), weight, bias)


def _sorted_places(batch, missing, places, weight, bias):
    return both_repairs(batch, missing, np.sort(places), weight, bias)[0]


def _first_columns(batch, missing, places, weight, bias):
    return F.linear(batch, weight[:, : batch.shape[1]], bias)


def _last_columns(batch, missing, places, weight, bias):
    return F.linear(batch, weight[:, -batch.shape[1] :], bias)


def _zeros(*case):
    return both_repairs(*case)[1]


def _without_bias(*case):
    return both_repairs(*case[:-1], np.zeros_like(case[-1]))


MISMATCH = Code(
    "dense-mismatch",
    entry="repairs",
    template='''
import numpy as np


def repairs(batch, missing, places, weight, bias):
    """Two outputs (N, out): with the missing features at their places, and of a layer without them."""
    features = np.zeros((len(batch), weight.shape[1]))
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
                    "exchanged",
                    lambda *case: both_repairs(*case)[::-1],
                    "The two outputs are exchanged: the one with the missing features comes first.",
                ),
                Slip(
                    "features at the end",
                    _at_the_end,
                    "The missing features stand behind the others; each belongs at its own place,"
                    " since a column of the weight belongs to a feature.",
                    "with_them",
                ),
                Slip(
                    "features at the start",
                    _at_the_start,
                    "The missing features stand before the others; each belongs at its own place,"
                    " since a column of the weight belongs to a feature.",
                    "with_them",
                ),
                Slip(
                    "places sorted",
                    _sorted_places,
                    "The places are taken in order of size: column k of `missing` belongs at places[k].",
                    "with_them",
                ),
                Slip(
                    "filled with zeros",
                    _zeros,
                    "The missing features are zero in `with_them`: as if they had been measured.",
                    "with_them",
                ),
                Slip(
                    "first columns",
                    _first_columns,
                    "The last columns of the weight are dropped; those of the missing features have to go.",
                    "without_them",
                ),
                Slip(
                    "last columns",
                    _last_columns,
                    "The first columns of the weight are dropped; those of the missing features have to go.",
                    "without_them",
                ),
                Slip("no bias", _without_bias, "The bias is left out."),
                Slip(
                    "no bias in the smaller layer",
                    lambda *case: _without_bias(*case)[1],
                    "`without_them` leaves the bias out: the units are the same, and so are their biases.",
                    "without_them",
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
            "places in order of size",
            [
                "features[:, rest] = batch\nfeatures[:, np.sort(places)] = missing\n"
                "with_them = features @ weight.T + bias",
                "without_them = batch @ weight[:, rest].T + bias",
            ],
            finding="places sorted",
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


def _layer(formula, weight, bias):
    """A layer as a function; its formula is its name in a message."""
    matrix, added = {
        "X @ weight.T + bias": (weight.T, bias),
        "X @ weight + bias": (weight, bias),
        "X @ (2 * weight).T + bias": (2 * weight.T, bias),
        "X @ (weight + 1).T + (bias - 1)": (weight.T + 1, bias - 1),
    }[formula]

    def layer(X):
        return X @ matrix + added

    layer.__name__ = formula
    return layer


def claimed_layers():
    found = []
    for rows in [[[0, 1], [2, 3]], [[1, -2, 3], [0, 4, -1], [2, 2, 5]]]:
        weight = np.array(rows, dtype=float)
        bias = np.arange(1.0, len(weight) + 1)
        for formula in ("X @ weight.T + bias", "X @ weight + bias"):
            found.append(Case(layer=_layer(formula, weight, bias), weight=weight, bias=bias))
    return found


def _is_transposed(layer, weight, bias):
    rows = np.random.default_rng(0).normal(size=(5, len(weight)))
    return not np.allclose(layer(rows), F.linear(rows, weight, bias))


def neither():
    weight, bias = np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([1.0, 2.0])
    return [Case(layer=_layer("X @ (2 * weight).T + bias", weight, bias), weight=weight, bias=bias)]


def impostors():
    """Right for every row of the identity, wrong at zero."""
    weight, bias = np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([1.0, 2.0])
    layer = _layer("X @ (weight + 1).T + (bias - 1)", weight, bias)
    return [Case(layer=layer, weight=weight, bias=bias)]


def symmetric():
    weight, bias = np.array([[1.0, 2.0], [2.0, 3.0]]), np.array([1.0, 2.0])
    return [Case(layer=_layer("X @ weight.T + bias", weight, bias), weight=weight, bias=bias)]


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
                    "no bias",
                    lambda first, second: np.zeros_like(second[1]),
                    "Both biases are left out.",
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
        Wrong("no bias", "return weight_2 @ weight_1, np.zeros(len(weight_2))", finding="no bias"),
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
