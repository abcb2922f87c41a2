"""Code exercises that try many: all small neurons, all orders of a sum, and the steps of a training."""

import itertools

import numpy as np

from denselayer.exercises import Case, Code, Slip, Values, Wrong

CORNERS = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])


def candidates():
    """One neuron, two, then lists in which an exchanged or a falling rule shows, and the whole search."""
    lists = [
        ([1.0], [0.0]),
        ([1.0], [-0.5, -1.5]),
        ([-1.0, 1.0], [0.0]),
        ([0.0, 2.0], [-3.0, -1.0]),
        ([-1.0, 0.0, 1.0], np.arange(-1.5, 2.0, 0.5).tolist()),
    ]
    return [Case(weights=weights, biases=biases) for weights, biases in lists]


def functions_found(weights, biases, *, pairs=itertools.product, true=np.greater, bend=np.asarray):
    """The functions of all neurons at once; the options are known slips."""
    neurons = np.array([(*w, b) for w in pairs(weights, weights) for b in biases])
    scores = bend(neurons @ np.column_stack([CORNERS, np.ones(4)]).T)
    return sorted({tuple(row) for row in true(scores, 0.0).astype(int).tolist()})


def _as_functions(found):
    if isinstance(found, int | float | str | dict):
        raise ValueError("the set of the functions is asked")
    functions = set()
    for truth in found:
        if np.shape(truth) != (4,) or any(value not in (0, 1) for value in truth):
            raise ValueError("each function is a tuple of four truth values, 0 or 1")
        functions.add(tuple(map(int, truth)))
    return sorted(functions)


SEARCH = (
    "found = set()\n"
    "for w1, w2 in itertools.product(weights, repeat=2):\n"
    "    for b in biases:\n"
    "        z = corners @ np.array([w1, w2]) + b\n"
    "        found.add(tuple(int(score > 0) for score in z))\n"
    "return found"
)
COUNT = Code(
    "neuron-count",
    entry="computable",
    template='''
import itertools

import numpy as np


def computable(weights, biases):
    """The set of the functions, each a tuple of 4 truth values 0 or 1, with these weights and biases."""
    corners = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])  # in this order
    <<try all pairs of weights with all biases, and return the set>>
''',
    solution=SEARCH,
    checks=[
        Values(
            candidates,
            functions_found,
            tidy=_as_functions,
            slips=(
                Slip(
                    "one weight for both",
                    lambda *lists: functions_found(*lists, pairs=zip),
                    "Both inputs have the same weight in yours: each of the two runs through the list.",
                ),
                Slip(
                    "zero counts",
                    lambda *lists: functions_found(*lists, true=np.greater_equal),
                    "A score of 0 counts as true in yours: true is z > 0.",
                ),
                Slip(
                    "exchanged",
                    lambda *lists: functions_found(*lists, true=np.less),
                    "A score below 0 counts as true in yours: true is z > 0.",
                ),
                Slip(
                    "falls",
                    lambda *lists: functions_found(*lists, bend=np.abs),
                    "These are the answers of |z| > 0: the sign of the score has gone lost.",
                ),
                Slip(
                    "a search of its own",
                    lambda weights, biases: functions_found(*candidates()[-1].arguments.values()),
                    "These are all functions that a neuron can compute: try the weights and biases that are"
                    " handed over, and no others.",
                ),
                Slip(
                    "no bias",
                    lambda weights, biases: functions_found(weights, [0.0]),
                    "The biases are left out of the scores.",
                ),
            ),
        )
    ],
    wrong=[
        Wrong(
            "one loop for both weights",
            SEARCH.replace(
                "for w1, w2 in itertools.product(weights, repeat=2):", "for w1, w2 in zip(weights, weights):"
            ),
            finding="one weight for both",
        ),
        Wrong("no bias", SEARCH.replace(" + b\n", "\n"), finding="no bias"),
        Wrong(
            "lists of its own",
            SEARCH.replace("product(weights,", "product([-1.0, 0.0, 1.0],").replace(
                "in biases", "in np.arange(-1.5, 2.0, 0.5)"
            ),
            finding="a search of its own",
        ),
        Wrong("zero counts as true", SEARCH.replace("score > 0", "score >= 0"), finding="zero counts"),
        Wrong(
            "an activation that falls",
            SEARCH.replace("+ b\n", "+ b\n        z = np.abs(z)\n"),
            finding="falls",
        ),
        Wrong(
            "scores in place of truth values",
            SEARCH.replace("int(score > 0)", "float(score)"),
            says="`computable` returns a set, which cannot be read: each function is a tuple of four truth"
            " values, 0 or 1.",
        ),
        Wrong(
            "how many",
            SEARCH.replace("return found", "return len(found)"),
            says="`computable` returns an int, which cannot be read: the set of the functions is asked.",
        ),
    ],
)


def _single(values, kind):
    totals = set()
    for order in itertools.permutations(kind(values)):
        total = kind(0)
        for term in order:
            total = total + term
        totals.add(float(total))
    return sorted(totals)


SIX = [3.1, -2.7, 0.1, 0.7, -1.3, 0.4]
SUMS = (
    "sums = set()\n"
    "for order in itertools.permutations(np.float32(contributions)):\n"
    "    total = np.float32(0)\n"
    "    for term in order:\n"
    "        total = total + term\n"
    "    sums.add(float(total))\n"
    "return sums"
)
ORDERS = Code(
    "neuron-orders",
    entry="all_sums",
    template='''
import itertools

import numpy as np


def all_sums(contributions):
    """The set of all results, as Python floats, of adding in float32 in every order."""
    <<add in every order, and return the set>>
''',
    solution=SUMS,
    checks=[
        Values(
            lambda: [
                Case(contributions=[3.0, 1.0, -4.0, 2.0]),
                Case(contributions=[1e8, 1.0, -1e8]),
                Case(contributions=SIX),
            ],
            lambda values: _single(values, np.float32),
            tidy=lambda sums: sorted(map(float, sums)),
            rtol=0,
            atol=0,
            slips=(
                Slip(
                    "float64",
                    lambda values: _single(values, np.float64),
                    "These sums are in float64: every partial sum is to be a np.float32.",
                ),
                Slip(
                    "stored in float32, added in float64",
                    lambda values: _single([float(np.float32(v)) for v in values], np.float64),
                    "The contributions are float32, but they are added in float64.",
                ),
                Slip(
                    "rounded at the end",
                    lambda values: sorted({float(np.float32(s)) for s in _single(values, np.float64)}),
                    "Only the result is rounded to float32; every partial sum has to be.",
                ),
                Slip(
                    "one order",
                    lambda values: [float(np.add.accumulate(np.float32(values))[-1])],
                    "That is one order; there are n! of them.",
                ),
            ),
        )
    ],
    wrong=[
        Wrong(
            "float64",
            SUMS.replace("np.float32(contributions)", "contributions").replace("np.float32(0)", "0.0"),
            finding="float64",
        ),
        Wrong(
            "rounds at the end",
            SUMS.replace("np.float32(contributions)", "contributions")
            .replace("np.float32(0)", "0.0")
            .replace("float(total)", "float(np.float32(total))"),
            finding="rounded at the end",
        ),
        Wrong(
            "one order",
            "return {float(np.add.accumulate(np.float32(contributions))[-1])}",
            finding="one order",
        ),
        Wrong(
            "a list of Python floats",
            SUMS.replace("np.float32(contributions)", "np.float32(contributions).tolist()").replace(
                "np.float32(0)", "0.0"
            ),
            finding="stored in float32, added in float64",
        ),
    ],
)


def trainings():
    targets = {"AND": [0.0, 0.0, 0.0, 1.0], "XOR": [0.0, 1.0, 1.0, 0.0]}
    return [
        Case(target=np.array(target), steps=steps, step_size=0.3)
        for steps in (1, 2, 400)
        for target in targets.values()
    ]


def descent(target, steps, step_size, *, factor=0.5, moves=(1, 1, 1), late=None):
    """Gradient descent in augmented form, apart from the solution; the options are known slips.

    Args:
        factor: of the gradient; 2/4 is right.
        moves: a factor of each entry more, the bias first.
        late: the place whose step uses the others after theirs; 0 is the bias, 1 stands for the weights.
    """
    inputs = np.column_stack([np.ones(4), CORNERS])
    parameters = np.array([0.0, 0.3, -0.2])

    def step(of):
        return step_size * factor * inputs.T @ (inputs @ parameters - target) * np.array(of)

    for _ in range(steps):
        if late is None:
            parameters = parameters - step(moves)
        else:
            for of in ((0, 1, 1), (1, 0, 0))[:: 1 if late == 0 else -1]:
                parameters = parameters - step(of)
    return parameters[1:], parameters[0]


TRAINING = (
    "for _ in range(steps):\n"
    "    d_z = 2 / len(corners) * (corners @ w + b - target)\n"
    "    w = w - step_size * (d_z @ corners)\n"
    "    b = b - step_size * d_z.sum()"
)
TRAIN = Code(
    "neuron-train",
    entry="train",
    template='''
import numpy as np


def train(target, steps, step_size):
    """Weight (2,) and bias after so many steps on the mean squared error; target (4,)."""
    corners = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    w, b = np.array([0.3, -0.2]), 0.0
    <<take the steps>>
    return w, b
''',
    solution=TRAINING,
    checks=[
        Values(
            trainings,
            descent,
            returns=("weight", "bias"),
            slips=(
                Slip(
                    "sum",
                    lambda *case: descent(*case, factor=2.0),
                    "The steps are 4 times too long: the loss is a mean over four inputs, with 2/4.",
                ),
                Slip(
                    "no 2",
                    lambda *case: descent(*case, factor=0.25),
                    "The steps are half as long: the derivative of a square has a 2.",
                ),
                Slip(
                    "uphill",
                    lambda *case: descent(*case, factor=-0.5),
                    "The steps go uphill: subtract the gradient.",
                ),
                Slip(
                    "bias fixed",
                    lambda *case: descent(*case, moves=(0, 1, 1)),
                    "The bias takes no step.",
                ),
                Slip(
                    "weights fixed",
                    lambda *case: descent(*case, moves=(1, 0, 0)),
                    "The weights take no step.",
                ),
                Slip(
                    "bias averaged",
                    lambda *case: descent(*case, moves=(0.25, 1, 1)),
                    "The step of the bias is a quarter: its gradient is a sum over the inputs, and d_z"
                    " holds the 1/4.",
                ),
                Slip(
                    "weights first",
                    lambda *case: descent(*case, late=0),
                    "The gradient of the bias is taken with weights that have moved already: take both at"
                    " one point.",
                ),
                Slip(
                    "bias first",
                    lambda *case: descent(*case, late=1),
                    "The gradient of the weights is taken with a bias that has moved already: take both at"
                    " one point.",
                ),
                Slip(
                    "one step",
                    lambda target, steps, step_size: descent(target, 1, step_size),
                    "That is the neuron after one step, however many are asked for.",
                ),
                Slip(
                    "one step more",
                    lambda target, steps, step_size: descent(target, steps + 1, step_size),
                    "That is one step more than asked for.",
                ),
                Slip(
                    "one step less",
                    lambda target, steps, step_size: descent(target, steps - 1, step_size),
                    "That is one step less than asked for.",
                ),
            ),
        )
    ],
    wrong=[
        Wrong("a sum in place of a mean", TRAINING.replace("2 / len(corners) * ", "2 * "), finding="sum"),
        Wrong("forgets the 2", TRAINING.replace("2 / len", "1 / len"), finding="no 2"),
        Wrong(
            "adds the gradient",
            TRAINING.replace("w - ", "w + ").replace("b - step", "b + step"),
            finding="uphill",
        ),
        Wrong("leaves the bias alone", TRAINING.rpartition("\n")[0], finding="bias fixed"),
        Wrong(
            "one gradient for each input",
            TRAINING.replace("d_z @ corners", "d_z * corners"),
            says="Line 10 raises a ValueError: the shapes do not fit.",
        ),
        Wrong("a mean for the bias", TRAINING.replace("d_z.sum()", "d_z.mean()"), finding="bias averaged"),
        Wrong(
            "one after the other",
            "for _ in range(steps):\n"
            "    w = w - step_size * (2 / 4 * (corners @ w + b - target) @ corners)\n"
            "    b = b - step_size * (2 / 4 * (corners @ w + b - target)).sum()",
            finding="weights first",
        ),
    ],
)
