"""Code exercises on the score of a neuron, its loss and its gradient."""

import numpy as np

from denselayer import functional as F
from denselayer.exercises import Case, Code, Fault, Property, Refuses, Slip, Values, Wrong
from denselayer.exercises._running import with_loop, without_loop, without_package


def inputs(rows=()):
    """Neurons with 1, 2 and 5 inputs and small whole numbers; for one input, or for so many rows."""
    rng = np.random.default_rng(1)
    found = []
    for weight in ([3.0], [2.0, -5.0], [1.0, -2.0, 3.0, -4.0, 7.0]):
        x = rng.integers(2, 6, (*rows, len(weight))).astype(float)
        found.append(Case(x=x, weight=np.array(weight), bias=float(len(weight)) + 10.0))
    return found


def rows_of(count, n):
    return lambda: Case(x=np.ones((count, n)), weight=np.ones(n), bias=1.0)


def one_of(n):
    return lambda: Case(x=np.ones(n), weight=np.ones(n), bias=1.0)


def _repeated(x, weight, bias):
    return float(x @ weight) + len(weight) * bias


def _without(place):
    return lambda x, weight, bias: float(np.delete(x * weight, place).sum() + bias)


LOOP = Code(
    "neuron-code",
    entry="neuron_loop, neuron_batch",
    template='''
import numpy as np


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
                    "bias twice",
                    lambda x, weight, bias: float(x @ weight) + 2 * bias,
                    "The bias is added twice: a total that starts with it needs no other.",
                ),
                Slip(
                    "last product",
                    lambda x, weight, bias: float(x[-1] * weight[-1] + bias),
                    "Only the last product is left: add it to the total, do not replace it.",
                ),
                Slip(
                    "last product alone",
                    lambda x, weight, bias: float(x[-1] * weight[-1]),
                    "Only the last product is left, and the bias is gone: add to the total, do not"
                    " replace it.",
                ),
                Slip(
                    "first product alone",
                    lambda x, weight, bias: float(x[0] * weight[0] + bias),
                    "Only the first product is added: does the loop return in its first round?",
                ),
                Slip("stops early", _without(-1), "The last product is left out: the loop ends too early."),
                Slip("starts late", _without(0), "The first product is left out: an index starts at 0."),
                Slip(
                    "sums in place of products",
                    lambda x, weight, bias: float((x + weight).sum() + bias),
                    "Each input is added to its weight; the two are multiplied.",
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
                Slip(
                    "column",
                    lambda x, weight, bias: x @ weight[:, None] + bias,
                    "The scores stand in a column, (N, 1): multiply by the weight as it is, of shape (n,).",
                ),
            ),
        ),
        Property(without_package(one_of(2), "neuron_loop")),
        Property(without_package(rows_of(2, 2), "neuron_batch", at=1)),
        Property(with_loop(one_of(2), one_of(30), "neuron_loop")),
        Property(without_loop(rows_of(2, 2), rows_of(40, 30), "neuron_batch", at=1)),
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
            says="Line 14 raises a ValueError: the shapes do not fit.",
        ),
        Wrong(
            "a product at once",
            ["total = weight @ x + bias", "return x @ weight + bias"],
            finding="no loop",
        ),
        Wrong(
            "asks the package",
            [
                "total = bias\nfor i in range(len(weight)):\n    total += weight[i] * x[i]",
                "from denselayer import functional as F\n\nreturn F.neuron(x, weight, bias)",
            ],
            finding="package called",
        ),
        Wrong(
            "calls the loop for each row",
            [
                "total = bias\nfor i in range(len(weight)):\n    total += weight[i] * x[i]",
                "return np.array([neuron_loop(row, weight, bias) for row in x])",
            ],
            finding="loop",
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


def single():
    return [Case(**{**batches()[0].arguments, "target": np.array([1.0])})]


def _smaller(function, example):
    found = example()
    if found is None:
        return Fault("shape", "`example` returns None: is the `return` missing?")
    if not isinstance(found, tuple | list) or len(found) != 4:
        return Fault("shape", "`example` returns x, weight, bias and target.")
    try:
        x, weight, bias, target = (np.asarray(part, dtype=float) for part in found)
    except (TypeError, ValueError):
        return Fault("shape", "`example` returns x, weight, bias and target, and all four are numbers.")
    if x.ndim != 2 or target.shape != x.shape[:1] or weight.shape != x.shape[1:] or bias.shape:
        shapes = f"x {x.shape}, weight {weight.shape}, bias {bias.shape}, target {target.shape}"
        headline = "`example` returns x (N, n), weight (n,), bias, one number, and target (N,)."
        return Fault("shape", headline, (f"Yours: {shapes}.",))
    if not all(np.isfinite(part).all() for part in (x, weight, bias, target)):
        return Fault("nan", "In `example`, a number is nan or infinite.")
    bias = float(bias)
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
                Slip(
                    "root",
                    lambda *case: np.sqrt(squared_error(*case)),
                    "This is the square root of the mean; the mean itself is asked.",
                ),
                Slip(
                    "half",
                    lambda *case: squared_error(*case) / 2,
                    "This is half of the mean squared error.",
                ),
            ),
        ),
        Refuses(
            columns,
            ValueError,
            "the target has the shape (2, 1) and not (2,), as the scores of two inputs.",
            name="mean_squared_error",
        ),
        Refuses(
            single,
            ValueError,
            "the target has one entry, and there are two inputs.",
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
        found = unnoticed(weight.copy())
        if found is None:
            return Fault("shape", "`unnoticed` returns None: is the `return` missing?")
        if not isinstance(found, tuple | list) or len(found) != 2:
            return Fault("shape", "`unnoticed` returns two things: d_out and x.")
        try:
            d_out, x = (np.asarray(part, dtype=float) for part in found)
        except (TypeError, ValueError):
            return Fault("shape", "`unnoticed` returns d_out and x, and both are numbers.")
        if d_out.shape or x.shape != weight.shape:
            shapes = f"Yours have the shapes {d_out.shape} and {x.shape}."
            headline = f"For a weight of shape {weight.shape}, `unnoticed` returns a number and an x like it."
            return Fault("shape", headline, (shapes,))
        if not np.isfinite(d_out) or not np.isfinite(x).all():
            return Fault("nan", "In `unnoticed`, d_out or x is nan or infinite.")
        if not d_out or not x.any():
            return "With d_out or x zero, hardly anybody would call it a test: find an example without zeros."
        if not np.allclose(x, weight, rtol=1e-9, atol=0.0):
            return "The slip is noticed there: d_out * weight and d_out * x differ."
    return None


def _measured(numerical, unnoticed):
    """A difference of two scores is rounded, and how depends on the weight; a formula does not know it."""
    rng = np.random.default_rng(6)
    x, weight = rng.normal(size=12), rng.normal(size=12)
    both = [np.asarray(numerical(1.5, x.copy(), scale * weight, 0.25)) for scale in (1.0, 1e6)]
    if both[0].shape != x.shape or not np.array_equal(*both):
        return None
    headline = (
        "`numerical` gives the same to the last bit for two very different weights: it measures nothing."
    )
    advice = "The difference of two scores would be rounded. Move a weight, and look at the score."
    return Fault("values", headline, (advice,), finding="formula")


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
                Slip(
                    "one side",
                    lambda d_out, x, weight, bias: d_out * x / 2,
                    "Half as large as it is: divided by 2h, the weight has to move down by h too.",
                ),
                Slip(
                    "the bias moved",
                    lambda d_out, x, weight, bias: np.full_like(x, d_out),
                    "That is the gradient of the bias: move the weights, one after the other.",
                ),
                Slip(
                    "all at once",
                    lambda d_out, x, weight, bias: np.full_like(x, d_out * x.sum()),
                    "All weights move at once: move one, and leave the others where they are.",
                ),
            ),
        ),
        Property(_measured),
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
        Wrong("the formula", ["return d_out * x", "return 1.0, weight"], finding="formula"),
        Wrong("any input", [MEASURE, "return 1.0, np.ones(len(weight))"], finding="noticed"),
    ],
)
