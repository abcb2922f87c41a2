"""Code exercises of the chapter "Training": overflow, forgotten gradients, smoothed labels."""

import math

import numpy as np

from denselayer import functional as F
from denselayer.doctor import diagnose_loss
from denselayer.exercises import Case, Code, Fault, Property, Slip, Values, Wrong


def _by_trying(dtype):
    """The last of all tenths up to 1,000 whose exponential is finite."""
    tenths = np.arange(10_000) / 10
    with np.errstate(over="ignore"):
        return float(tenths[np.isfinite(np.exp(tenths.astype(dtype)))][-1])


def _breaks(largest, breaking):
    scores = breaking()
    if not isinstance(scores, tuple | list | np.ndarray) or np.shape(scores) != (2,):
        return Fault("shape", "`breaking` returns two scores.")
    if np.asarray(scores).dtype.kind not in "iuf" or not np.isfinite(scores).all():
        return Fault("values", "Both scores have to be finite numbers.", finding="no numbers")
    if np.isinf(_exponentials(scores)).any():
        headline = (
            "An exponential of yours is infinite already; both scores have to lie in the allowed range."
        )
        return Fault(
            "values", headline, (f"The largest is {_by_trying(np.float64)}.",), finding="out of range"
        )
    return _finite_or_undefined(*map(float, scores))


def _finite_or_undefined(wrong, right):
    naive, stable = _naive(wrong, right), float(F.cross_entropy(np.array([[wrong, right]]), np.array([1])))
    if np.isnan(naive):
        headline = "Both exponentials are rounded to 0, so the naive loss is 0 / 0 and not infinite."
        return Fault("values", headline, ("Only the second one has to vanish.",), finding="both vanish")
    if np.isfinite(naive):
        details = (f"For your scores it is {abs(naive):.6g}, and the stable one {stable:.6g}.",)
        if np.isinf(_naive(right, wrong)):
            headline = "The naive loss is finite: the second score is that of the right class."
            return Fault("values", headline, (*details, "Exchange the two."), finding="exchanged")
        return Fault("values", "The naive loss is finite for your scores.", details, finding="still finite")
    return None


def _exponentials(scores):
    with np.errstate(all="ignore"):
        return np.exp(np.asarray(scores, dtype=float))


def _naive(wrong, right):
    both = _exponentials([wrong, right])
    with np.errstate(all="ignore"):
        return -np.log(both[1] / both.sum())


LIMIT = "return math.floor(10 * math.log(np.finfo(dtype).max)) / 10"
OVERFLOW = Code(
    "train-overflow",
    entry="largest, breaking",
    template='''
import math

import numpy as np


def largest(dtype):
    """The largest score with one decimal place whose exponential is finite in this dtype."""
    <<return the score>>


def breaking():
    """A wrong and the right class's score: the naive loss in float64 is infinite, the stable one is not."""
    <<return the two scores>>
''',
    solution=[LIMIT, "return 700.0, -100.0"],
    checks=[
        Values(
            lambda: [Case(dtype=np.float16), Case(dtype=np.float32), Case(dtype=np.float64)],
            _by_trying,
            name="largest",
            rtol=1e-9,
            slips=(
                Slip(
                    "rounded up",
                    lambda dtype: round(math.log(float(np.finfo(dtype).max)), 1),
                    "Rounded to the nearest tenth it can lie beyond the limit: round down.",
                ),
                Slip(
                    "the largest number",
                    lambda dtype: float(np.finfo(dtype).max),
                    "That is the largest number of the dtype; the largest score is its logarithm.",
                ),
                Slip(
                    "base 10",
                    lambda dtype: math.floor(10 * math.log10(float(np.finfo(dtype).max))) / 10,
                    "That takes the logarithm to base 10; np.exp belongs to the natural one.",
                ),
                Slip(
                    "whole number",
                    lambda dtype: math.floor(math.log(float(np.finfo(dtype).max))),
                    "That is rounded down to a whole number; one decimal place is asked.",
                ),
                Slip(
                    "not rounded",
                    lambda dtype: np.log(np.finfo(dtype).max),
                    "That has more than one decimal place: round it down to one.",
                ),
            ),
        ),
        Property(_breaks),
    ],
    wrong=[
        Wrong(
            "rounds to the nearest",
            ["return round(math.log(np.finfo(dtype).max), 1)", "return 700.0, -100.0"],
            finding="rounded up",
        ),
        Wrong("base 10", [LIMIT.replace("log(", "log10("), "return 700.0, -100.0"], finding="base 10"),
        Wrong("beyond the limit", [LIMIT, "return 800.0, 0.0"], finding="out of range"),
        Wrong("large, but close", [LIMIT, "return 700.0, 600.0"], finding="still finite"),
        Wrong("the right class first", [LIMIT, "return -100.0, 700.0"], finding="exchanged"),
        Wrong("both far below", [LIMIT, "return -800.0, -900.0"], finding="both vanish"),
        Wrong("the score of nothing", [LIMIT, "return 0.0, -np.inf"], finding="no numbers"),
        Wrong(
            "does not round",
            ["return np.log(np.finfo(dtype).max)", "return 700.0, -100.0"],
            finding="not rounded",
        ),
    ],
)


def valley(theta):
    """The gradient of the valley of the text."""
    return np.array([1.0, 25.0])[: len(theta)] * theta


def walks():
    return [
        Case(gradient=valley, start=np.array([4.0]), lr=0.5, steps=2),
        Case(gradient=valley, start=np.array([4.0, 1.0]), lr=0.01, steps=1),
        Case(gradient=valley, start=np.array([4.0, 1.0]), lr=0.01, steps=200),
    ]


def with_momentum(gradient, start, lr, steps, momentum=1.0, behind=False):
    """SGD with momentum; ``behind`` moves with the velocity before the new gradient is added."""
    theta, velocity = start.astype(float), np.zeros(len(start))
    for _ in range(steps):
        before = velocity
        velocity = momentum * velocity + gradient(theta)
        theta = theta - lr * (before if behind else velocity)
    return theta


WALK = "for _ in range(steps):\n    grad = grad + gradient(theta)\n    theta = theta - lr * grad"
FORGOTTEN = Code(
    "train-forgotten",
    entry="walk",
    template='''
import numpy as np


def walk(gradient, start, lr, steps):
    """The parameters (n,) after so many steps of SGD that never clears its gradient."""
    theta, grad = start, np.zeros(len(start))
    <<take the steps>>
    return theta
''',
    solution=WALK,
    checks=[
        Values(
            walks,
            with_momentum,
            rtol=1e-9,
            slips=(
                Slip(
                    "cleared",
                    lambda *case: with_momentum(*case, momentum=0.0),
                    "That is plain SGD with its gradients cleared: each one has to be added to those before.",
                ),
                Slip(
                    "cleared too late",
                    lambda *case: with_momentum(*case, behind=True),
                    "Each step uses the sum without the newest gradient: add it before the step.",
                ),
                Slip(
                    "mean",
                    lambda gradient, start, lr, steps: _averaged(gradient, start, lr, steps),
                    "That is the mean of all gradients; forgetting to clear leaves their sum.",
                ),
                Slip(
                    "friction",
                    lambda *case: with_momentum(*case, momentum=0.9),
                    "That is momentum with 0.9; a sum that is never cleared fades by nothing.",
                ),
                Slip(
                    "uphill",
                    lambda gradient, *rest: with_momentum(lambda theta: -gradient(theta), *rest),
                    "The parameters go uphill: a step goes against the gradient.",
                ),
                Slip(
                    "one step too few",
                    lambda gradient, start, lr, steps: with_momentum(gradient, start, lr, steps - 1),
                    "That is one step too few.",
                ),
            ),
        )
    ],
    wrong=[
        Wrong("clears", WALK.replace("grad + gradient", "gradient"), finding="cleared"),
        Wrong(
            "steps first",
            "for _ in range(steps):\n    new = gradient(theta)\n"
            "    theta = theta - lr * grad\n    grad = grad + new",
            finding="cleared too late",
        ),
        Wrong(
            "momentum with 0.9", WALK.replace("grad + gradient", "0.9 * grad + gradient"), finding="friction"
        ),
        Wrong(
            "changes the start",
            "for _ in range(steps):\n    grad += gradient(theta)\n    theta -= lr * grad",
            says="Your function changes its argument `start`.",
        ),
    ],
)


def _averaged(gradient, start, lr, steps):
    theta, total = start.astype(float), np.zeros(len(start))
    for number in range(1, steps + 1):
        total = total + gradient(theta)
        theta = theta - lr * total / number
    return theta


def batches_of_scores():
    rng = np.random.default_rng(0)
    return [
        Case(scores=np.array([[0.0, 0.0]]), targets=np.array([[0.0, 1.0]])),
        Case(scores=rng.normal(size=(5, 4)), targets=np.eye(4)[[0, 3, 1, 1, 2]]),
    ]


def smoothed(scores, targets, keep=0.9, spread=0.1):
    rows = keep * targets + spread / targets.shape[1]
    exponentials = np.exp(scores - scores.max(1, keepdims=True))
    gradient = exponentials / exponentials.sum(1, keepdims=True) - rows
    return gradient / len(scores)


def smoothed_loss(scores, targets):
    """The cross entropy with smoothed targets, a mean over the rows."""
    rows = 0.9 * targets + 0.1 / targets.shape[1]
    return np.sum(rows * (np.logaddexp.reduce(scores, axis=1)[:, None] - scores)) / len(scores)


def _crowd(targets):
    return targets.shape[1] / (targets.shape[1] - 1)


SMOOTHING = [
    "smooth = 0.9 * targets + 0.1 / targets.shape[1]",
    "return (F.softmax(scores) - smooth) / len(scores)",
]
SMOOTH = Code(
    "train-smooth",
    entry="smoothed_gradient",
    template='''
from denselayer import functional as F


def smoothed_gradient(scores, targets):
    """The gradient (N, C) of the mean smoothed loss; targets (N, C) has one-hot rows."""
    <<the smoothed targets: `smooth`>>
    <<return the gradient with respect to the scores>>
''',
    solution=SMOOTHING,
    checks=[
        Values(
            batches_of_scores,
            smoothed,
            gradient_of={"": "scores"},
            doctor=lambda gradient: diagnose_loss(smoothed_loss, gradient, targets="one-hot"),
            words={"one that the doctor does not know": "the cross entropy with smoothed targets"},
            slips=(
                Slip(
                    "not smoothed",
                    lambda *case: smoothed(*case, keep=1.0, spread=0.0),
                    "The targets are not smoothed: that is the gradient for one-hot rows.",
                    first=True,
                ),
                Slip(
                    "sign",
                    lambda *case: -smoothed(*case),
                    "The sign is turned: the gradient is probabilities minus targets.",
                ),
                Slip(
                    "spread not divided",
                    lambda *case: smoothed(*case, spread=0.1 * case[1].shape[1]),
                    "Each class gets 0.1; all classes together share it, so each gets 0.1 / C.",
                ),
                Slip(
                    "nothing spread",
                    lambda *case: smoothed(*case, spread=0.0),
                    "The rows add up to 0.9: the 0.1 that is taken has to be spread over the classes.",
                ),
                Slip(
                    "spread over the others",
                    lambda scores, targets: smoothed(
                        scores, targets, keep=0.9 - 0.1 / (targets.shape[1] - 1), spread=0.1 * _crowd(targets)
                    ),
                    "The 0.1 is spread over the other classes alone; the right one gets its 0.1 / C, too.",
                ),
                Slip(
                    "spread over the rows",
                    lambda scores, targets: smoothed(
                        scores, targets, spread=0.1 * targets.shape[1] / len(targets)
                    ),
                    "The 0.1 is divided by the number of rows; C is the number of classes.",
                ),
                Slip(
                    "mean over all entries",
                    lambda scores, targets: smoothed(scores, targets) / targets.shape[1],
                    "This is divided by the number of all entries; the mean is one over the rows.",
                    first=True,
                ),
            ),
        )
    ],
    wrong=[
        Wrong("one-hot rows", ["smooth = targets", SMOOTHING[1]], finding="not smoothed"),
        Wrong(
            "forgets the mean",
            [SMOOTHING[0], "return F.softmax(scores) - smooth"],
            finding="summed-not-averaged",
        ),
        Wrong("0.1 for each", ["smooth = 0.9 * targets + 0.1", SMOOTHING[1]], finding="spread not divided"),
        Wrong("only takes away", ["smooth = 0.9 * targets", SMOOTHING[1]], finding="nothing spread"),
        Wrong(
            "C is the number of rows",
            ["smooth = 0.9 * targets + 0.1 / len(targets)", SMOOTHING[1]],
            finding="spread over the rows",
        ),
        Wrong(
            "only the others share",
            ["smooth = 0.9 * targets + 0.1 / (targets.shape[1] - 1) * (1 - targets)", SMOOTHING[1]],
            finding="spread over the others",
        ),
        Wrong(
            "the wrong sign",
            [SMOOTHING[0], "return (smooth - F.softmax(scores)) / len(scores)"],
            finding="sign",
        ),
    ],
)
