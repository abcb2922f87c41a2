"""The code exercises of the chapter "The neuron"."""

import itertools

import numpy as np

from denselayer import functional as F
from denselayer.exercises import Case, Code, Fault, Property, Refuses, Slip, Values, Wrong


def inputs(rows=()):
    """Neurons with 1, 2 and 5 inputs and small whole numbers; for one input, or for so many rows."""
    rng = np.random.default_rng(1)
    found = []
    for n in (1, 2, 5):
        x, weight = rng.integers(1, 5, (*rows, n)), rng.integers(-3, 4, n)
        found.append(Case(x=x.astype(float), weight=weight.astype(float), bias=float(n + 1)))
    return found


def _repeated(x, weight, bias):
    return float(x @ weight) + len(weight) * bias


LOOP = Code(
    "neuron-code",
    entry="neuron_loop, neuron_batch",
    template='''
def neuron_loop(x, weight, bias):
    """The score of one input: x (n,), weight (n,), bias a number."""
    <<add one product after the other: `total`>>
    return total


def neuron_batch(x, weight, bias):
    """The scores (N,) of many inputs: x (N, n), without a loop."""
    <<all scores at once>>
''',
    solution=[
        "total = bias\nfor i in range(len(weight)):\n    total += weight[i] * x[i]",
        "return x @ weight + bias",
    ],
    checks=[
        Values(
            inputs,
            F.neuron,
            name="neuron_loop",
            slips=(
                Slip("no bias", lambda x, weight, bias: float(x @ weight), "The loop leaves the bias out."),
                Slip(
                    "bias in the loop",
                    _repeated,
                    "The bias is added with every product; it is added once.",
                ),
                Slip(
                    "last product",
                    lambda x, weight, bias: float(x[-1] * weight[-1] + bias),
                    "Only the last product is left: add it to the total, do not replace it.",
                ),
            ),
        ),
        Values(
            lambda: inputs([3]),
            F.neuron,
            name="neuron_batch",
            slips=(
                Slip("no bias", lambda x, weight, bias: x @ weight, "The batch leaves the bias out."),
                Slip(
                    "all added up",
                    lambda x, weight, bias: np.sum(x * weight) + bias,
                    "The sum runs over the inputs of the batch too; each row has a score of its own.",
                ),
            ),
        ),
    ],
    wrong=[
        Wrong(
            "bias inside the loop",
            [
                "total = 0.0\nfor i in range(len(weight)):\n    total += weight[i] * x[i] + bias",
                "return x @ weight + bias",
            ],
            finding="bias in the loop",
        ),
        Wrong(
            "= in place of +=",
            [
                "for i in range(len(weight)):\n    total = weight[i] * x[i] + bias",
                "return x @ weight + bias",
            ],
            finding="last product",
        ),
        Wrong(
            "sums over all axes",
            [
                "total = bias\nfor i in range(len(weight)):\n    total += weight[i] * x[i]",
                "return (x * weight).sum() + bias",
            ],
            finding="all added up",
        ),
        Wrong(
            "the product in the wrong order",
            [
                "total = bias\nfor i in range(len(weight)):\n    total += weight[i] * x[i]",
                "return weight @ x + bias",
            ],
            says="Line 11 raises a ValueError: the shapes do not fit.",
        ),
    ],
)


def broadcast_error(x, weight, bias, target):
    """The mean over all pairs of a score and a target."""
    return np.mean((F.neuron(x, weight, bias)[:, None] - target) ** 2)


def squared_error(x, weight, bias, target):
    return np.mean((F.neuron(x, weight, bias) - target) ** 2)


def batches():
    return [
        Case(x=np.array([[1.0], [2.0]]), weight=np.array([1.0]), bias=0.0, target=np.array([1.0, 2.0])),
        Case(
            x=np.array([[2.0, 4.0, 1.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]),
            weight=np.array([0.5, -1.0, 2.0]),
            bias=3.0,
            target=np.array([2.0, 3.0, 0.0]),
        ),
    ]


def columns():
    case = batches()[0].arguments
    return [Case(**{**case, "target": case["target"][:, None]})]


def _smaller(function, example):
    found = example()
    if found is None or found is ...:
        return Fault("not attempted", "Not attempted yet: `example` returns nothing.")
    if not isinstance(found, tuple | list) or len(found) != 4:
        return Fault("shape", "`example` returns x, weight, bias and target.")
    x, weight, bias, target = found
    if np.ndim(x) != 2 or np.shape(target) != (len(x),) or np.shape(weight) != (np.shape(x)[1],):
        shapes = f"x {np.shape(x)}, weight {np.shape(weight)}, target {np.shape(target)}"
        headline = "`example` returns x (N, n), weight (n,), bias and target (N,)."
        return Fault("shape", headline, (f"Yours: {shapes}.",))
    wrong, right = broadcast_error(x, weight, bias, target), squared_error(x, weight, bias, target)
    if wrong < right:
        return None
    details = (f"In your example it gives {wrong:g}, and the right mean is {right:g}.",)
    return Fault(
        "values", "The slip does not make the result smaller in `example`.", details, finding="not smaller"
    )


REPAIRED = (
    "z = x @ weight + bias\n"
    "if z.shape != target.shape:\n"
    '    raise ValueError(f"scores {z.shape}, but targets {target.shape}")\n'
    "return np.mean((z - target) ** 2)"
)
EXAMPLE = (
    "x = np.array([[2.0, 4.0, 1.0], [0.0, 0.0, 0.0]])\n"
    "weight, bias = np.array([0.5, -1.0, 2.0]), 3.0\n"
    "return x, weight, bias, np.array([3.0, 2.0])"
)
BROADCAST = Code(
    "neuron-broadcast",
    entry="mean_squared_error, example",
    template='''
import numpy as np


def mean_squared_error(x, weight, bias, target):
    """The mean over the batch: x (N, n), weight (n,), bias a number, target (N,)."""
    <<the repaired function>>


def example():
    """x, weight, bias and target for which the slip makes the result too small."""
    <<return the four>>
''',
    solution=[REPAIRED, EXAMPLE],
    checks=[
        Values(
            batches,
            squared_error,
            name="mean_squared_error",
            slips=(
                Slip(
                    "all pairs",
                    broadcast_error,
                    "Every score is compared with every target: z has the shape (N, 1), the target (N,), and"
                    " their difference (N, N).",
                ),
                Slip(
                    "sum",
                    lambda *case: len(case[0]) * squared_error(*case),
                    "This is the sum over the batch, not the mean.",
                ),
                Slip(
                    "absolute",
                    lambda x, weight, bias, target: np.mean(np.abs(F.neuron(x, weight, bias) - target)),
                    "This is the mean of the absolute differences; the square is missing.",
                ),
            ),
        ),
        Refuses(
            columns,
            ValueError,
            "the target has the shape (2, 1) and the scores (2,), so the difference would be (2, 2).",
            name="mean_squared_error",
        ),
        Property(_smaller),
    ],
    wrong=[
        Wrong(
            "the slip again",
            ["z = x @ weight.reshape(-1, 1) + bias\nreturn np.mean((z - target) ** 2)", EXAMPLE],
            finding="all pairs",
        ),
        Wrong(
            "a sum",
            [REPAIRED.replace("np.mean", "np.sum"), EXAMPLE],
            finding="sum",
        ),
        Wrong(
            "no look at the shapes",
            ["return np.mean((x @ weight + bias - target) ** 2)", EXAMPLE],
            finding="not refused",
        ),
        Wrong(
            "an example in which it is larger",
            [REPAIRED, EXAMPLE.replace("3.0, 2.0]", "2.0, 3.0]")],
            finding="not smaller",
        ),
    ],
)


def claims():
    rng = np.random.default_rng(5)
    found = [Case(d_out=2.0, x=np.array([3.0]), weight=np.array([5.0]), bias=1.0)]
    for n in (2, 4):
        x, weight = rng.integers(1, 5, n).astype(float), rng.integers(5, 9, n).astype(float)
        found.append(Case(d_out=3.0, x=x, weight=weight, bias=-1.0))
    return found


def _unnoticed(numerical, unnoticed):
    for weight in (np.array([2.0]), np.array([1.0, -3.0, 0.5])):
        d_out, x = unnoticed(weight.copy())
        x = np.asarray(x, dtype=float)
        if x.shape != weight.shape:
            return Fault(
                "shape", f"`unnoticed` returns d_out and an x of the shape {weight.shape}, like the weight."
            )
        if not d_out or not x.any():
            return "With d_out or x zero, hardly anybody would call it a test: find an example without zeros."
        if not np.allclose(d_out * weight, d_out * x):
            return "The slip is noticed there: d_out * weight and d_out * x differ."
    return None


MEASURE = (
    "measured = np.zeros(len(weight))\n"
    "for j in range(len(weight)):\n"
    "    step = np.zeros(len(weight))\n"
    "    step[j] = 1e-5\n"
    "    change = x @ (weight + step) - x @ (weight - step)\n"
    "    measured[j] = d_out * change / 2e-5\n"
    "return measured"
)
SWAPPED = Code(
    "neuron-swapped",
    entry="numerical, unnoticed",
    template='''
import numpy as np


def numerical(d_out, x, weight, bias):
    """The gradient (n,) of the weight, measured: central differences of d_out * z."""
    <<move one weight after the other>>


def unnoticed(weight):
    """A number d_out and an input x (n,), without zeros, for which the slip changes nothing."""
    <<return d_out and x>>
''',
    solution=[MEASURE, "return 1.0, weight"],
    checks=[
        Values(
            claims,
            lambda d_out, x, weight, bias: F.neuron_backward(d_out, x, weight).d_weight,
            name="numerical",
            rtol=1e-6,
            slips=(
                Slip(
                    "swapped",
                    lambda d_out, x, weight, bias: d_out * weight,
                    "That is the gradient of x, the slip itself: move the weight, not the input.",
                ),
                Slip(
                    "no upstream",
                    lambda d_out, x, weight, bias: x,
                    "The upstream gradient d_out is left out.",
                ),
                Slip(
                    "one step",
                    lambda d_out, x, weight, bias: 2 * d_out * x,
                    "Twice too large: between weight + h and weight − h lie two steps, so divide by 2h.",
                ),
            ),
        ),
        Property(_unnoticed, "noticed"),
    ],
    wrong=[
        Wrong(
            "moves the input",
            [
                MEASURE.replace(
                    "x @ (weight + step) - x @ (weight - step)", "weight @ (x + step) - weight @ (x - step)"
                ),
                "return 1.0, weight",
            ],
            finding="swapped",
        ),
        Wrong(
            "divides by h", [MEASURE.replace("/ 2e-5", "/ 1e-5"), "return 1.0, weight"], finding="one step"
        ),
        Wrong(
            "forgets d_out", [MEASURE.replace("d_out * ", ""), "return 1.0, weight"], finding="no upstream"
        ),
        Wrong("any input", [MEASURE, "return 1.0, np.ones(len(weight))"], finding="noticed"),
    ],
)

CORNERS = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
NEVER = {(0, 1, 1, 0), (1, 0, 0, 1)}


def _found(computable):
    found = {tuple(map(int, truth)) for truth in computable()}
    if any(len(truth) != 4 for truth in found):
        return Fault("shape", "Each function is a tuple of four truth values, 0 or 1.")
    for truth in sorted(found & NEVER):
        return Fault("values", f"No neuron computes {truth}, and yours claims it.", finding="impossible")
    missing = sorted(set(itertools.product([0, 1], repeat=4)) - NEVER - found)
    if missing:
        some = ", ".join(map(str, missing[:3]))
        headline = f"{len(found)} functions found; a neuron computes more."
        details = (f"Missing, for example: {some}.", "Try negative weights, and biases of both signs.")
        return Fault("values", headline, details, finding="too few")
    return None


SEARCH = (
    "found = set()\n"
    "for w1, w2 in itertools.product([-1.0, 0.0, 1.0], repeat=2):\n"
    "    for b in np.arange(-1.5, 2.0, 0.5):\n"
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


def computable():
    """The set of the functions that the search finds, each a tuple of 4 truth values 0 or 1."""
    corners = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])  # in this order
    <<search over weights and biases, and return the set>>
''',
    solution=SEARCH,
    checks=[Property(_found)],
    wrong=[
        Wrong(
            "no negative weights",
            SEARCH.replace("[-1.0, 0.0, 1.0]", "[0.0, 1.0]"),
            says="6 functions found; a neuron computes more.",
        ),
        Wrong(
            "no bias",
            SEARCH.replace("np.arange(-1.5, 2.0, 0.5)", "[0.0]"),
            says="6 functions found; a neuron computes more.",
        ),
        Wrong(
            "an activation that falls",
            SEARCH.replace("+ b\n", "+ b\n        z = np.abs(z) - 0.5\n"),
            finding="impossible",
        ),
        Wrong(
            "scores in place of truth values",
            SEARCH.replace("int(score > 0)", "score").replace(
                "tuple(score for score in z)", "tuple(z) + (b,)"
            ),
            says="Each function is a tuple of four truth values, 0 or 1.",
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
                Case(contributions=[1.0, 2.0**-24, 2.0**-24]),
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


def descent(target, steps, step_size, *, factor=0.5, bias_moves=True):
    """Gradient descent in augmented form, apart from the solution; the options are known slips."""
    inputs = np.column_stack([np.ones(4), CORNERS])
    parameters = np.array([0.0, 0.3, -0.2])
    for _ in range(steps):
        gradient = factor * inputs.T @ (inputs @ parameters - target)
        gradient[0] *= bias_moves
        parameters = parameters - step_size * gradient
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
                    lambda *case: descent(*case, bias_moves=False),
                    "The bias takes no step.",
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
    ],
)
