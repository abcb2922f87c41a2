"""Code exercises of the chapter "Training" that use its modules: an optimiser, a batch in pieces."""

import numpy as np

from denselayer import functional as F
from denselayer import nn, optim
from denselayer.doctor import diagnose
from denselayer.exercises import Code, Fault, Property, Wrong
from denselayer.exercises._doctored import best_named, diagnosis
from denselayer.exercises._show import shown

SETTINGS = ((0.05, 0.5), (0.02, 0.25))
"""Learning rates and decays."""


def _run(make, steps=5):
    """Parameters after some steps on a valley; the second parameter never gets a gradient."""
    theta, silent = nn.Parameter(np.array([2.0, -1.0])), nn.Parameter(np.array([3.0]))
    optimiser = make([theta, silent])
    for _ in range(steps):
        theta.grad = theta.data * [1.0, 100.0]
        optimiser.step()
    return theta.data.copy(), silent.data.copy()


class _Decoupled:
    """AdamW from its formulas; the options are known slips."""

    def __init__(self, params, lr, weight_decay, *, rate=None, after=False):
        self.params, self.lr, self.after = list(params), lr, after
        self.shrink = 1 - (lr if rate is None else rate) * weight_decay
        self.means = [np.zeros((2, *parameter.shape)) for parameter in self.params]
        self.steps = 0

    def step(self):
        self.steps += 1
        for parameter, (mean, square) in zip(self.params, self.means, strict=True):
            if parameter.grad is None:
                continue
            mean += 0.1 * (parameter.grad - mean)
            square += 0.001 * (parameter.grad**2 - square)
            root = np.sqrt(square / (1 - 0.999**self.steps)) + 1e-8
            move = self.lr * mean / (1 - 0.9**self.steps) / root
            parameter.data = parameter.data * self.shrink - move * (self.shrink if self.after else 1)


ADAM_SLIPS = {
    "coupled": (
        lambda params, lr, decay: optim.Adam(params, lr=lr, weight_decay=decay),
        "That is Adam with weight decay in the gradient: AdamW gives Adam the gradient as it came.",
    ),
    "no learning rate": (
        lambda params, lr, decay: _Decoupled(params, lr, decay, rate=1.0),
        "The weights are multiplied by 1 − λ; the factor is 1 − ηλ.",
    ),
    "decay after the step": (
        lambda params, lr, decay: _Decoupled(params, lr, decay, after=True),
        "The weights decay after the step of Adam; first they shrink, then Adam moves them.",
    ),
    "weights grow": (
        lambda params, lr, decay: _Decoupled(params, lr, -decay),
        "The weights grow: the factor is 1 − ηλ, not 1 + ηλ.",
    ),
    "no decay": (
        lambda params, lr, decay: optim.Adam(params, lr=lr),
        "Nothing decays: that is Adam as it was.",
    ),
}


def _adamw(AdamW):
    for lr, decay in SETTINGS:
        fault = _without_decay(AdamW, lr) or _with_decay(AdamW, lr, decay)
        if fault:
            return fault
    return None


def _without_decay(AdamW, lr):
    mine, right = _run(lambda p: AdamW(p, lr, weight_decay=0.0)), _run(lambda p: optim.Adam(p, lr))
    if np.allclose(mine[0], right[0]):
        return None
    return Fault("values", "Without weight decay it is not Adam.", finding="not Adam")


def _with_decay(AdamW, lr, decay):
    mine = _run(lambda p: AdamW(p, lr, weight_decay=decay))
    right = _run(lambda p: _Decoupled(p, lr, decay))
    if np.allclose(mine[0], right[0]):
        if np.allclose(mine[1], right[1]):
            return None
        said = "A parameter without a gradient has decayed; an optimiser leaves it alone."
        return Fault("values", said, finding="decays without a gradient")
    for name, (make, says) in ADAM_SLIPS.items():
        if np.allclose(mine[0], _run(lambda p, make=make: make(p, lr, decay))[0]):
            return Fault("values", says, finding=name)
    one = _run(lambda p: AdamW(p, lr, weight_decay=decay), steps=1)[0]
    wanted = _run(lambda p: _Decoupled(p, lr, decay), steps=1)[0]
    example = f"θ = [2, -1], gradient [2, -100], lr = {lr}, λ = {decay}, one step\n"
    example += f"yours {shown(one)}, right {shown(wanted)}"
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
        Wrong("grows", ["self.factor = 1 + lr * weight_decay", DECAYS], finding="weights grow"),
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


class _Watched(nn.Sequential):
    """A network that remembers how many rows it was sent at a time."""

    def __init__(self, *modules):
        super().__init__(*modules)
        self.rows = []

    def forward(self, x):
        self.rows.append(len(x))
        return super().forward(x)


def _network():
    rng = np.random.default_rng(0)
    return _Watched(nn.Linear(3, 4, rng=rng), nn.ReLU(), nn.Linear(4, 3, rng=rng))


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
        before = x.copy(), y.copy()
        accumulate(network, x, y, pieces)
        grads = [parameter.grad for parameter in network.parameters()]
        for name, old, new in zip("xy", before, (x, y), strict=True):
            if not np.array_equal(old, new):
                return Fault("changed input", f"Your function changes its argument `{name}`.")
        fault = _compared(accumulate, grads, x, y, pieces) or _too_many_rows(network.rows, n, pieces)
        if fault:
            return fault
    return None


def _too_many_rows(rows, n, pieces):
    most = -(-n // pieces)
    if max(rows, default=0) <= most:
        return None
    said = "The gradients are right, but the network gets more rows at once than a piece has."
    advice = f"Of {n} rows in {pieces} pieces it got {max(rows)} at once; at most {most} fit."
    return Fault("values", said, (advice,), finding="not in pieces")


def _compared(accumulate, grads, x, y, pieces):
    n = len(y)
    right = _piece_gradients(_network(), x, y, 1, lambda rows: 1.0)
    if any(grad is None for grad in grads):
        return Fault("values", "The parameters have no gradient afterwards.", finding="no gradient")
    if _same(grads, right):
        return None
    details = (f"For a batch of {n} rows in {pieces} piece{'s' * (pieces > 1)}.",)
    fault = Fault("values", "The gradients are not those of the whole batch.", details)
    found = diagnosis(_seven_rows, accumulate)
    slip = next((slip for slip in _piece_slips(x, y, pieces, right) if _same(grads, slip[2])), None)
    if slip is None:
        return best_named(fault, found)
    return best_named(fault, found, Fault("values", slip[1], details, finding=slip[0]))


def _piece_slips(x, y, pieces, right):
    """(name, what to say, gradients) of each known slip."""
    n = len(y)
    says = "The gradients of the batch before are still in: clear them once, before the first piece."
    yield "not cleared", says, [grad + 1 for grad in right]
    for name, (weight, says) in PIECE_SLIPS.items():
        weigh = lambda rows, weight=weight: weight(rows, n, pieces)  # noqa: E731
        yield name, says, _piece_gradients(_network(), x, y, pieces, weigh)
    last = np.array_split(np.arange(n), pieces)[-1]
    whole = n // pieces * pieces
    for weight in (len(last) / n, 1.0):
        says = "Only the last piece is left: the gradients are cleared before every piece."
        yield "cleared too often", says, _once(x[last], y[last], weight)
    for weight in (whole / n, 1.0):
        says = "The last rows are left out: the pieces need not be equally long."
        yield "rows left out", says, _once(x[:whole], y[:whole], weight)


def _seven_rows(accumulate):
    """The report on the gradients of seven rows in three pieces, at several parameters."""
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(7, 3)), rng.integers(0, 3, 7)

    def with_values(params):
        network = _network()
        for parameter, value in zip(network.parameters(), params.values(), strict=True):
            parameter.data = value
        return network

    def grads(params):
        network = with_values(params)
        accumulate(network, x, y, 3)
        return [parameter.grad for parameter in network.parameters()]

    names = ("first weight", "first bias", "second weight", "second bias")
    params = dict(zip(names, (parameter.data for parameter in _network().parameters()), strict=True))
    loss = lambda params: F.cross_entropy(with_values(params)(x), y)  # noqa: E731
    return diagnose(loss, params, lambda params: dict(zip(names, grads(params), strict=True)), batch_size=7)


def _once(x, y, weight):
    return _piece_gradients(_network(), x, y, 1, lambda rows: weight)


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
        Wrong(
            "the whole batch at once",
            "network.zero_grad()\nnetwork.backward(F.cross_entropy_backward(network(x), y))",
            finding="not in pieces",
        ),
        Wrong(
            "takes the sum",
            IN_PIECES.replace("d_out=share", 'reduction="sum"'),
            finding="summed-not-averaged",
        ),
        Wrong(
            "equal pieces, without the rest",
            "network.zero_grad()\nsize = len(y) // pieces\nfor start in range(0, size * pieces, size):\n"
            "    rows = slice(start, start + size)\n"
            "    d_scores = F.cross_entropy_backward(network(x[rows]), y[rows])\n"
            "    network.backward(size / len(y) * d_scores)",
            finding="rows left out",
        ),
    ],
)
