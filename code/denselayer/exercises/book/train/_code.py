"""The code exercises of the chapter "Training"."""

import math

import numpy as np

from denselayer import functional as F
from denselayer import nn, optim
from denselayer.exercises import Case, Code, Fault, Property, Slip, Values, Wrong


def _floor(dtype):
    return math.floor(10 * math.log(float(np.finfo(dtype).max))) / 10


def _breaks(largest, breaking):
    found = breaking()
    if not isinstance(found, tuple | list | np.ndarray) or np.shape(found) != (2,):
        return Fault("shape", "`breaking` returns two scores.")
    wrong, right = map(float, found)
    with np.errstate(all="ignore"):
        naive = -np.log(np.exp(right) / (np.exp(wrong) + np.exp(right)))
        finite = np.isfinite(np.exp([wrong, right])).all()
    stable = float(F.cross_entropy(np.array([[wrong, right]]), np.array([1])))
    if not finite:
        headline = (
            "An exponential of yours is infinite already; both scores have to lie in the allowed range."
        )
        return Fault("values", headline, (f"The largest is {_floor(np.float64)}.",), finding="out of range")
    if np.isfinite(naive):
        details = (f"For your scores it is {naive:.6g}, and the stable one {stable:.6g}.",)
        return Fault("values", "The naive loss is finite for your scores.", details, finding="still finite")
    return None


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
    """Two scores for which the naive loss of the second class is infinite in float64."""
    <<return the two scores>>
''',
    solution=[LIMIT, "return 700.0, -100.0"],
    checks=[
        Values(
            lambda: [Case(dtype=np.float16), Case(dtype=np.float32), Case(dtype=np.float64)],
            _floor,
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
    ],
)


def _slope(theta):
    """The gradient of a narrow valley."""
    return np.array([1.0, 25.0])[: len(theta)] * theta


def walks():
    return [
        Case(gradient=_slope, start=np.array([4.0]), lr=0.5, steps=2),
        Case(gradient=_slope, start=np.array([4.0, 1.0]), lr=0.01, steps=1),
        Case(gradient=_slope, start=np.array([4.0, 1.0]), lr=0.01, steps=200),
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


def _run(make, steps=5):
    """Parameters after some steps on a valley; the second parameter never gets a gradient."""
    theta, silent = nn.Parameter(np.array([2.0, -1.0])), nn.Parameter(np.array([3.0]))
    optimiser = make([theta, silent])
    for _ in range(steps):
        theta.grad = theta.data * [1.0, 100.0]
        optimiser.step()
    return theta.data.copy(), silent.data.copy()


class _Decoupled:
    """AdamW apart from the solution; the options are known slips."""

    def __init__(self, params, lr, weight_decay, *, rate=None, after=False):
        self.params, self.after = list(params), after
        self.adam = optim.Adam(self.params, lr)
        self.factor = 1 - (lr if rate is None else rate) * weight_decay

    def step(self):
        if self.after:
            self.adam.step()
        for parameter in self.params:
            if parameter.grad is not None:
                parameter.data *= self.factor
        if not self.after:
            self.adam.step()


ADAM_SLIPS = {
    "coupled": (
        lambda params: optim.Adam(params, lr=0.05, weight_decay=0.5),
        "That is Adam with weight decay in the gradient: AdamW gives Adam the gradient as it came.",
    ),
    "no learning rate": (
        lambda params: _Decoupled(params, 0.05, 0.5, rate=1.0),
        "The weights are multiplied by 1 − λ; the factor is 1 − ηλ.",
    ),
    "decay after the step": (
        lambda params: _Decoupled(params, 0.05, 0.5, after=True),
        "The weights decay after the step of Adam; first they shrink, then Adam moves them.",
    ),
    "no decay": (lambda params: optim.Adam(params, lr=0.05), "Nothing decays: that is Adam as it was."),
}


def _adamw(AdamW):
    if not np.allclose(
        _run(lambda p: AdamW(p, 0.05, weight_decay=0.0))[0], _run(lambda p: optim.Adam(p, 0.05))[0]
    ):
        return Fault("values", "Without weight decay it is not Adam.", finding="not Adam")
    mine = _run(lambda p: AdamW(p, 0.05, weight_decay=0.5))
    right = _run(lambda p: _Decoupled(p, 0.05, 0.5))
    if np.allclose(mine[0], right[0]):
        if np.allclose(mine[1], right[1]):
            return None
        said = "A parameter without a gradient has decayed; an optimiser leaves it alone."
        return Fault("values", said, finding="decays without a gradient")
    for name, (make, says) in ADAM_SLIPS.items():
        if np.allclose(mine[0], _run(make)[0]):
            return Fault("values", says, finding=name)
    one = _run(lambda p: AdamW(p, 0.05, weight_decay=0.5), steps=1)[0]
    example = f"θ = [2, -1], gradient [2, -100], lr = 0.05, λ = 0.5, one step\nyours {one.tolist()}, right "
    example += str(_run(lambda p: _Decoupled(p, 0.05, 0.5), steps=1)[0].tolist())
    return Fault("values", "With weight decay the parameters go elsewhere.", (), example)


DECAYS = (
    "for parameter in self.params:\n    if parameter.grad is not None:\n"
    "        parameter.data *= self.factor\nself.adam.step()"
)
OWN_ADAM = Code(
    "train-own-adam",
    entry="AdamW",
    template='''
from denselayer import optim


class AdamW:
    """Adam that shrinks the weights directly; params is a list of Parameters."""

    def __init__(self, params, lr, weight_decay=0.01, **options):
        self.params = list(params)
        self.adam = optim.Adam(self.params, lr, **options)
        <<the factor that shrinks a weight: `self.factor`>>

    def step(self):
        <<shrink every parameter that has a gradient, and take a step of Adam>>
''',
    solution=["self.factor = 1 - lr * weight_decay", DECAYS],
    checks=[Property(_adamw)],
    wrong=[
        Wrong(
            "decay in the gradient",
            [
                "self.decay = weight_decay",
                "for parameter in self.params:\n    if parameter.grad is not None:\n"
                "        parameter.grad = parameter.grad + self.decay * parameter.data\nself.adam.step()",
            ],
            finding="coupled",
        ),
        Wrong(
            "forgets the learning rate",
            ["self.factor = 1 - weight_decay", DECAYS],
            finding="no learning rate",
        ),
        Wrong(
            "decays after the step",
            [
                "self.factor = 1 - lr * weight_decay",
                "self.adam.step()\n" + DECAYS.removesuffix("\nself.adam.step()"),
            ],
            finding="decay after the step",
        ),
        Wrong(
            "decays everything",
            [
                "self.factor = 1 - lr * weight_decay",
                "for parameter in self.params:\n    parameter.data *= self.factor\nself.adam.step()",
            ],
            finding="decays without a gradient",
        ),
        Wrong(
            "never takes the step",
            ["self.factor = 1 - lr * weight_decay", DECAYS.rpartition("\n")[0]],
            finding="not Adam",
        ),
    ],
)


def _network():
    rng = np.random.default_rng(0)
    return nn.Sequential(nn.Linear(3, 4, rng=rng), nn.ReLU(), nn.Linear(4, 3, rng=rng))


def _piece_gradients(network, x, y, pieces, weight):
    """Gradients of a network, added up over pieces that count ``weight(rows)`` each."""
    total = [np.zeros(parameter.shape) for parameter in network.parameters()]
    for rows in np.array_split(np.arange(len(y)), pieces):
        network.zero_grad()
        network.backward(F.cross_entropy_backward(network(x[rows]), y[rows], d_out=weight(len(rows))))
        total = [t + parameter.grad for t, parameter in zip(total, network.parameters(), strict=True)]
    return total


PIECE_SLIPS = {
    "pieces not scaled": (
        lambda rows, n, pieces: 1.0,
        "Each piece counts as a whole batch: multiply the mean of a piece by its share of the batch.",
    ),
    "pieces counted alike": (
        lambda rows, n, pieces: 1 / pieces,
        "All pieces count alike; the smaller one has to count less. The share is piece over batch.",
    ),
    "share inverted": (
        lambda rows, n, pieces: n / rows,
        "The share is turned over: it is piece over batch.",
    ),
}


def _piecewise(accumulate):
    rng = np.random.default_rng(1)
    for n, pieces in [(4, 1), (4, 2), (5, 2), (7, 3)]:
        x, y = rng.normal(size=(n, 3)), rng.integers(0, 3, n)
        network = _network()
        for parameter in network.parameters():
            parameter.grad = np.ones(parameter.shape)  # of the batch before
        before = x.copy()
        accumulate(network, x, y, pieces)
        grads = [parameter.grad for parameter in network.parameters()]
        if not np.array_equal(before, x):
            return Fault("changed input", "Your function changes its argument `x`.")
        fault = _compared(grads, x, y, pieces)
        if fault:
            return fault
    return None


def _compared(grads, x, y, pieces):
    n = len(y)
    right = _piece_gradients(_network(), x, y, 1, lambda rows: 1.0)
    if any(grad is None for grad in grads):
        return Fault("values", "The parameters have no gradient afterwards.", finding="no gradient")
    if _same(grads, right):
        return None
    details = (f"For a batch of {n} rows in {pieces} pieces.",)
    if _same([grad - 1 for grad in grads], right):
        says = "The gradients of the batch before are still in: clear them once, before the first piece."
        return Fault("values", says, details, finding="not cleared")
    for name, (weight, says) in PIECE_SLIPS.items():
        if _same(
            grads, _piece_gradients(_network(), x, y, pieces, lambda rows, w=weight: w(rows, n, pieces))
        ):
            return Fault("values", says, details, finding=name)
    last = np.array_split(np.arange(n), pieces)[-1]
    alone = _piece_gradients(_network(), x[last], y[last], 1, lambda rows: rows / n)
    if _same(grads, alone):
        says = "Only the last piece is left: the gradients are cleared before every piece."
        return Fault("values", says, details, finding="cleared too often")
    return Fault("values", "The gradients are not those of the whole batch.", details)


def _same(some, others):
    return all(np.allclose(a, b, rtol=1e-9, atol=1e-12) for a, b in zip(some, others, strict=True))


IN_PIECES = (
    "network.zero_grad()\n"
    "for rows in np.array_split(np.arange(len(y)), pieces):\n"
    "    scores = network(x[rows])\n"
    "    share = len(rows) / len(y)\n"
    "    network.backward(F.cross_entropy_backward(scores, y[rows], d_out=share))"
)
PIECES = Code(
    "train-pieces",
    entry="accumulate",
    template='''
import numpy as np

from denselayer import functional as F


def accumulate(network, x, y, pieces):
    """Leave the gradients of the mean loss of the batch in the network; x (N, in), y (N,)."""
    <<clear the gradients, and send the batch through in pieces>>
''',
    solution=IN_PIECES,
    checks=[Property(_piecewise)],
    wrong=[
        Wrong("no share", IN_PIECES.replace(", d_out=share", ""), finding="pieces not scaled"),
        Wrong(
            "equal shares",
            IN_PIECES.replace("len(rows) / len(y)", "1 / pieces"),
            finding="pieces counted alike",
        ),
        Wrong(
            "clears for each piece",
            IN_PIECES.replace("network.zero_grad()\n", "", 1).replace(
                "    scores", "    network.zero_grad()\n    scores"
            ),
            finding="cleared too often",
        ),
        Wrong("never clears", IN_PIECES.replace("network.zero_grad()\n", "", 1), finding="not cleared"),
    ],
)


def batches_of_scores():
    rng = np.random.default_rng(0)
    return [
        Case(scores=np.array([[0.0, 0.0]]), targets=np.array([[0.0, 1.0]])),
        Case(scores=rng.normal(size=(5, 4)), targets=np.eye(4)[[0, 3, 1, 1, 2]]),
    ]


def smoothed(scores, targets, keep=0.9, spread=0.1, divide=True):
    rows = keep * targets + spread / targets.shape[1]
    exponentials = np.exp(scores - scores.max(1, keepdims=True))
    gradient = exponentials / exponentials.sum(1, keepdims=True) - rows
    return gradient / len(scores) if divide else gradient


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
            slips=(
                Slip(
                    "not smoothed",
                    lambda *case: smoothed(*case, keep=1.0, spread=0.0),
                    "The targets are not smoothed: that is the gradient for one-hot rows.",
                ),
                Slip(
                    "sum",
                    lambda *case: smoothed(*case, divide=False),
                    "The loss is a mean over the batch: divide by the number of rows.",
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
            ),
        )
    ],
    wrong=[
        Wrong("one-hot rows", ["smooth = targets", SMOOTHING[1]], finding="not smoothed"),
        Wrong("forgets the mean", [SMOOTHING[0], "return F.softmax(scores) - smooth"], finding="sum"),
        Wrong("0.1 for each", ["smooth = 0.9 * targets + 0.1", SMOOTHING[1]], finding="spread not divided"),
        Wrong("only takes away", ["smooth = 0.9 * targets", SMOOTHING[1]], finding="nothing spread"),
        Wrong(
            "the wrong sign",
            [SMOOTHING[0], "return (smooth - F.softmax(scores)) / len(scores)"],
            finding="sign",
        ),
    ],
)
