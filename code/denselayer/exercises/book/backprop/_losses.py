"""Code exercises on the loss: a gradient that is divided twice, and softmax with cross entropy."""

import numpy as np

from denselayer.doctor import diagnose_loss
from denselayer.exercises import Case, Code, Fault, Property, Slip, Values, Wrong


def runs():
    """One row, two rows, five rows that are not centred, and 16 rows; each right and with the mistake."""
    few = np.array([[0.5], [1.0], [2.0], [-1.0], [3.0]])
    found = []
    for x in (np.array([[0.5]]), np.array([[-1.0], [1.0]]), few, np.linspace(-1.0, 1.0, 16)[:, None]):
        found += [Case(x=x, t=3.0 * x + 5.0, divide=divide) for divide in (False, True)]
    return found


def trained(x, t, divide, *, of_weight=1.0, of_bias=1.0, fresh=True, sign=1.0):
    """Weight and bias after 20 steps, with plain numbers instead of a layer.

    Args:
        of_weight, of_bias: a factor of each gradient more.
        fresh: whether both gradients are taken before anything is changed.
        sign: −1 for steps uphill.
    """
    w = b = 0.0
    inputs, targets = x.ravel(), t.ravel()
    of_bias = of_bias / len(x) if divide else of_bias
    for _ in range(20):
        error = w * inputs + b - targets
        stepped = w - sign * of_weight * 0.2 * float(np.mean(error * inputs))
        if not fresh:
            error = stepped * inputs + b - targets
        w, b = stepped, b - sign * of_bias * 0.2 * float(np.mean(error))
    return np.array([[w]]), np.array([b])


STEP = """
d_out = F.mse_loss_backward(x @ weight.T + bias, t)
_, d_weight, d_bias = F.linear_backward(d_out, x, weight)
if divide:
    d_bias = d_bias / len(x)
weight = weight - 0.1 * d_weight
bias = bias - 0.1 * d_bias
"""

AVERAGE = Code(
    "backprop-average",
    entry="train",
    template='''
import numpy as np

from denselayer import functional as F


def train(x, t, divide):
    """Weight (1, 1) and bias (1,) after 20 steps on x (N, 1), t (N, 1); divide: make the mistake."""
    weight, bias = np.zeros((1, 1)), np.zeros(1)
    for _ in range(20):
        <<one step, with the learning rate 0.1>>
    return weight, bias
''',
    solution=STEP,
    checks=[
        Values(
            runs,
            trained,
            returns=("weight", "bias"),
            slips=(
                Slip(
                    "the wrong way round",
                    lambda x, t, divide: trained(x, t, not divide),
                    "`divide` works the wrong way round: if it is true, the gradient of the bias is divided"
                    " once more.",
                ),
                Slip(
                    "weight in place of bias",
                    lambda x, t, divide: trained(x, t, False, of_weight=1.0 / len(x) if divide else 1.0),
                    "With `divide` yours divides the gradient of the weight; the mistake to study divides"
                    " that of the bias.",
                ),
                Slip(
                    "multiplied",
                    lambda x, t, divide: trained(x, t, divide, of_bias=float(len(x) ** 2) if divide else 1.0),
                    "With `divide` yours multiplies the gradient of the bias by N; it is to be divided.",
                ),
                Slip(
                    "bias without a step",
                    lambda x, t, divide: trained(x, t, divide, of_bias=0.0),
                    "The bias takes no step.",
                ),
                Slip(
                    "weight divided too",
                    lambda x, t, divide: trained(x, t, divide, of_weight=1.0 / len(x) if divide else 1.0),
                    "With `divide` yours divides both gradients; the mistake to study divides that of the"
                    " bias"
                    " alone.",
                ),
                Slip(
                    "never divided",
                    lambda x, t, divide: trained(x, t, False),
                    "`divide` changes nothing in yours: if it is true, the gradient of the bias is divided"
                    " by N"
                    " once more.",
                ),
                Slip(
                    "always divided",
                    lambda x, t, divide: trained(x, t, True),
                    "The gradient of the bias is divided by N even where `divide` is false: the loss has"
                    " divided"
                    " already.",
                ),
                Slip(
                    "divided once too often",
                    lambda x, t, divide: trained(x, t, divide, of_bias=1.0 / len(x)),
                    "The gradient of the bias is divided by N once too often: a `mean` over the rows"
                    " divides by N"
                    " too.",
                ),
                Slip(
                    "updated-weight-used",
                    lambda x, t, divide: trained(x, t, divide, fresh=False),
                    "The gradient of the bias is taken with a weight that has been updated already: compute"
                    " both"
                    " gradients first, then change both.",
                ),
                Slip(
                    "summed-not-averaged",
                    lambda x, t, divide: trained(x, t, divide, of_weight=len(x), of_bias=len(x)),
                    "The gradient is that of the sum of the squares: for the mean, d_out is 2 (y - t) / N.",
                ),
                Slip(
                    "factor-two",
                    lambda x, t, divide: trained(x, t, divide, of_weight=0.5, of_bias=0.5),
                    "The 2 of the square is missing: the derivative of a square is twice its base.",
                ),
                Slip(
                    "sign-flipped",
                    lambda x, t, divide: trained(x, t, divide, sign=-1.0),
                    "The steps go uphill: the gradient is subtracted, not added.",
                ),
            ),
        )
    ],
    wrong=[
        Wrong(
            "divides both",
            STEP.replace(
                "    d_bias = d_bias / len(x)", "    d_weight, d_bias = d_weight / len(x), d_bias / len(x)"
            ),
            finding="weight divided too",
        ),
        Wrong(
            "a mean that divides again",
            """
d_out = F.mse_loss_backward(x @ weight.T + bias, t)
d_weight = d_out.T @ x
d_bias = d_out.mean(axis=0) / len(x) if divide else d_out.mean(axis=0)
weight = weight - 0.1 * d_weight
bias = bias - 0.1 * d_bias
""",
            finding="divided once too often",
        ),
        Wrong(
            "a mean in both runs",
            """
d_out = F.mse_loss_backward(x @ weight.T + bias, t)
weight = weight - 0.1 * d_out.T @ x
bias = bias - 0.1 * d_out.mean(axis=0)
""",
            finding="always divided",
        ),
        Wrong(
            "weight updated first",
            """
d_out = F.mse_loss_backward(x @ weight.T + bias, t)
weight = weight - 0.1 * d_out.T @ x
d_out = F.mse_loss_backward(x @ weight.T + bias, t)
d_bias = d_out.sum(axis=0)
bias = bias - 0.1 * (d_bias / len(x) if divide else d_bias)
""",
            finding="updated-weight-used",
        ),
        Wrong(
            "a loss that only adds",
            """
d_out = 2.0 * (x @ weight.T + bias - t)
_, d_weight, d_bias = F.linear_backward(d_out, x, weight)
if divide:
    d_bias = d_bias / len(x)
weight = weight - 0.1 * d_weight
bias = bias - 0.1 * d_bias
""",
            finding="summed-not-averaged",
        ),
        Wrong(
            "uphill",
            STEP.replace("weight - 0.1", "weight + 0.1").replace("bias - 0.1", "bias + 0.1"),
            finding="sign-flipped",
        ),
    ],
)


def scores():
    """One class, two equal ones, then batches, and a score of 1,000."""
    rng = np.random.default_rng(5)
    found = [Case(scores=np.array([[3.0]]), classes=np.array([0]))]
    found.append(Case(scores=np.array([[0.0, 0.0]]), classes=np.array([0])))
    found.append(Case(scores=np.array([[0.0, 0.0], [1.0, 0.0]]), classes=np.array([0, 0])))
    for rows, width in [(2, 2), (4, 3), (3, 5)]:
        found.append(Case(scores=rng.normal(size=(rows, width)), classes=rng.integers(0, width, rows)))
    for right in (0, 1):
        found.append(Case(scores=np.array([[1000.0, 0.0, -1000.0]]), classes=np.array([right])))
    return found


def from_logarithms(scores, classes):
    """Loss and gradient from NumPy's own sum of exponentials and a row of the identity for each class."""
    log_p = scores - np.logaddexp.reduce(scores, axis=1)[:, None]
    wanted = np.eye(scores.shape[1], dtype=scores.dtype)[classes]
    return -np.sum(wanted * log_p) / len(scores), (np.exp(log_p) - wanted) / len(scores)


def of_right_loss(scores, classes):
    return from_logarithms(scores, classes)[0]


def gradient_alone(cross_entropy):
    """The report on the gradient, where the loss that comes with it is right."""
    case = scores()[4]
    if not np.isclose(cross_entropy(*case.fresh())[0], of_right_loss(*case.fresh())):
        return None

    def gradient(scores, classes):
        return cross_entropy(scores, classes)[1]

    return diagnose_loss(of_right_loss, gradient, targets="labels")


def probabilities(scores):
    return np.exp(scores - np.logaddexp.reduce(scores, axis=1)[:, None])


def one_hot(scores, classes):
    return np.eye(scores.shape[1])[classes]


def columnwise(scores, classes):
    """Softmax over the batch in place of the classes."""
    log_p = scores - np.logaddexp.reduce(scores, axis=0)
    wanted = one_hot(scores, classes)
    return -np.sum(wanted * log_p) / len(scores), (np.exp(log_p) - wanted) / len(scores)


ADVICE = "Subtract the largest score of each row first; then log p is shifted - log(sum(exp(shifted)))."


OVERFLOW = "unstable-softmax", "an exponential overflows"
UNDERFLOW = "unstable-softmax", "all exponentials of the row have become 0"
OTHER_ROW = (
    "unstable-softmax",
    "the largest score of all rows was subtracted, and all exponentials of the second row have become 0",
)
ZERO = "unstable-log", "a probability has become 0 before its logarithm is taken"
LARGE = (
    ([[1000.0, 1000.0]], [0], *OVERFLOW),
    ([[-1000.0, -1000.0]], [0], *UNDERFLOW),
    ([[1000.0, 0.0, -1000.0]], [0], *OVERFLOW),
    ([[1000.0, 0.0], [-1000.0, -1000.0]], [0, 0], *OTHER_ROW),
    ([[1000.0, 0.0, -1000.0]], [1], *ZERO),
)
"""Scores, the right classes, and what has gone wrong if the loss is not finite there."""


def large_scores(cross_entropy):
    """What becomes of scores of 1,000."""
    for values, right, finding, reason in LARGE:
        loss = _loss_of(cross_entropy(np.array(values), np.array(right)))
        if loss is None:
            return None
        example = f"scores = {values}, classes = {right}"
        if not np.isfinite(loss):
            said = f"For scores of 1,000 the loss is {'nan' if np.isnan(loss) else 'infinite'}: {reason}."
            return Fault("nan", said, (ADVICE,), example, finding)
        if right == [1] and 0 < loss < 999:
            said = f"The loss is {loss:.3g} where it is 1,000: something cuts it off."
            why = "A number added in the logarithm does so, and a limit on scores or probabilities."
            return Fault("values", said, (why, ADVICE), example, "cut off")
    return None


def _loss_of(result):
    """The loss as a number; None if what came is nothing of the kind, which `Values` tells."""
    if not isinstance(result, tuple | list) or len(result) != 2:
        return None
    loss = result[0]
    return float(loss) if np.shape(loss) == () and np.asarray(loss).dtype.kind == "f" else None


LOG_P = """
shifted = scores - scores.max(axis=1, keepdims=True)
log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
"""
LOSS = """
rows = np.arange(len(scores))
loss = -log_p[rows, classes].mean()
d_scores = np.exp(log_p)
d_scores[rows, classes] -= 1.0
d_scores /= len(scores)
"""

SOFTMAX = Code(
    "backprop-softmax",
    entry="cross_entropy",
    template='''
import numpy as np


def cross_entropy(scores, classes):
    """scores (N, K), classes (N,) whole numbers from 0 to K - 1 -> loss, d_scores (N, K)"""
    <<log_p (N, K): the logarithms of the probabilities, without overflow>>
    <<loss, a mean over the rows, and d_scores>>
    return loss, d_scores
''',
    solution=[LOG_P, LOSS],
    checks=[
        Property(large_scores),
        Values(
            scores,
            from_logarithms,
            returns=("loss", "d_scores"),
            gradient_of={"d_scores": "scores"},
            doctor=gradient_alone,
            slips=(
                Slip(
                    "summed-not-averaged",
                    lambda scores, classes: probabilities(scores) - one_hot(scores, classes),
                    "`d_scores` is the gradient of the sum over the rows: the loss is their mean, so each"
                    " row is"
                    " divided by N.",
                    output="d_scores",
                ),
                Slip(
                    "divided by all entries",
                    lambda scores, classes: (probabilities(scores) - one_hot(scores, classes)) / scores.size,
                    "`d_scores` is divided by the N · K entries: the loss is a mean over the N rows.",
                    output="d_scores",
                ),
                Slip(
                    "divided by the classes",
                    lambda scores, classes: (
                        (probabilities(scores) - one_hot(scores, classes)) / scores.shape[1]
                    ),
                    "`d_scores` is divided by the number of classes: the loss is a mean over the rows.",
                    output="d_scores",
                ),
                Slip(
                    "right class forgotten",
                    lambda scores, classes: probabilities(scores) / len(scores),
                    "`d_scores` holds the probabilities: 1 is still to be subtracted at the right class of"
                    " each row.",
                    output="d_scores",
                    first=True,
                ),
                Slip(
                    "sign-flipped",
                    lambda scores, classes: -from_logarithms(scores, classes)[1],
                    "`d_scores` has the wrong sign: it is p - 1 at the right class and p elsewhere.",
                    output="d_scores",
                ),
                Slip(
                    "softmax-jacobian-missing",
                    lambda scores, classes: (
                        np.where(one_hot(scores, classes) > 0, -1.0 / probabilities(scores), 0.0)
                        / len(scores)
                    ),
                    "`d_scores` is the gradient by the probabilities, -1/p: it still has to go back through"
                    " the"
                    " softmax.",
                    output="d_scores",
                ),
                Slip(
                    "right class alone",
                    lambda scores, classes: (
                        (probabilities(scores) - 1.0) * one_hot(scores, classes) / len(scores)
                    ),
                    "`d_scores` is zero beside the right class: every score has a part in the sum of the"
                    " exponentials, so p stands there.",
                    output="d_scores",
                    first=True,
                ),
                Slip(
                    "whole columns",
                    lambda scores, classes: (
                        (probabilities(scores) - np.isin(np.arange(scores.shape[1]), classes)) / len(scores)
                    ),
                    "1 is subtracted in whole columns: `[:, classes]` takes these classes in every row, and"
                    " `[rows, classes]` one class for each row.",
                    output="d_scores",
                ),
                Slip(
                    "loss summed",
                    lambda scores, classes: from_logarithms(scores, classes)[0] * len(scores),
                    "`loss` is the sum over the rows; their mean is asked for.",
                    output="loss",
                ),
                Slip(
                    "loss of all classes",
                    lambda scores, classes: -np.mean(scores - np.logaddexp.reduce(scores, axis=1)[:, None]),
                    "`loss` is a mean over all classes; of each row, the right class alone counts.",
                    output="loss",
                ),
                Slip(
                    "loss negative",
                    lambda scores, classes: -from_logarithms(scores, classes)[0],
                    "`loss` has the wrong sign: a logarithm of a probability is negative, and the loss is"
                    " minus it.",
                    output="loss",
                ),
                Slip(
                    "softmax over the batch",
                    columnwise,
                    "The probabilities of a column add up to 1, not those of a row: sum over axis 1.",
                ),
                Slip(
                    "subtracted everywhere",
                    lambda scores, classes: (probabilities(scores) - 1.0) / len(scores),
                    "1 is subtracted from every entry of `d_scores`; it belongs to the right class of each"
                    " row alone.",
                    output="d_scores",
                ),
            ),
        ),
    ],
    wrong=[
        Wrong(
            "gradient not divided",
            [LOG_P, LOSS.replace("d_scores /= len(scores)", "")],
            finding="summed-not-averaged",
        ),
        Wrong(
            "divided by the number of entries",
            [LOG_P, LOSS.replace("/= len(scores)", "/= scores.size")],
            finding="other-loss",
        ),
        Wrong(
            "whole columns",
            [LOG_P, LOSS.replace("d_scores[rows, classes] -=", "d_scores[:, classes] -=")],
            finding="whole columns",
        ),
        Wrong(
            "exponentials of the scores themselves",
            ["log_p = np.log(np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True))", LOSS],
            finding="unstable-softmax",
        ),
        Wrong(
            "logarithm of a probability",
            [
                """
shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
log_p = np.log(shifted / shifted.sum(axis=1, keepdims=True))
""",
                LOSS,
            ],
            finding="unstable-log",
        ),
        Wrong(
            "a small number inside the logarithm",
            [
                """
p = np.exp(scores - scores.max(axis=1, keepdims=True))
p = p / p.sum(axis=1, keepdims=True)
log_p = np.log(p + 1e-12)
""",
                LOSS,
            ],
            finding="cut off",
        ),
        Wrong(
            "the largest score of the batch",
            [LOG_P.replace("scores.max(axis=1, keepdims=True)", "scores.max()"), LOSS],
            says="For scores of 1,000 the loss is infinite: the largest score of all rows was subtracted, and"
            " all exponentials of the second row have become 0.",
        ),
        Wrong(
            "probabilities with a limit",
            [
                """
p = np.exp(scores - scores.max(axis=1, keepdims=True))
log_p = np.log(np.clip(p / p.sum(axis=1, keepdims=True), 1e-300, 1.0))
""",
                LOSS,
            ],
            says="The loss is 691 where it is 1,000: something cuts it off.",
        ),
        Wrong(
            "shifts the scores in place",
            [
                """
scores -= scores.max(axis=1, keepdims=True)
log_p = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
""",
                LOSS,
            ],
            says="Your function changes its argument `scores`.",
        ),
        Wrong(
            "gradient by the probabilities",
            [
                LOG_P,
                """
rows = np.arange(len(scores))
loss = -log_p[rows, classes].mean()
d_scores = np.zeros_like(scores)
d_scores[rows, classes] = -1.0 / np.exp(log_p[rows, classes]) / len(scores)
""",
            ],
            finding="softmax-jacobian-missing",
        ),
    ],
)
