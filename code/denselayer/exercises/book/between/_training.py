"""The code exercises on how signals and weights change: variances, a saddle, and orthogonal matrices."""

import numpy as np

from denselayer.doctor import diagnose_step
from denselayer.exercises import Case, Code, Fault, Property, Slip, Values, Wrong


def gains():
    return [Case(n_in=n, slope=a) for n, a in [(1, 0.0), (2, 1.0), (256, 0.5), (100, 0.1)]]


LEAKY_GAIN = Code(
    "between-leaky-gain",
    entry="variance",
    template='''
import numpy as np


def variance(n_in, slope):
    """The variance of the weights that keeps the mean square behind a leaky ReLU."""
    <<return the variance>>
''',
    solution="return 2 / ((1 + slope**2) * n_in)",
    checks=[
        Values(
            gains,
            lambda n_in, slope: 1 / (n_in * (0.5 + 0.5 * slope**2)),
            slips=(
                Slip(
                    "he",
                    lambda n_in, slope: 2 / n_in,
                    "That is He's variance: it is right for the slope 0 alone.",
                ),
                Slip(
                    "slope not squared",
                    lambda n_in, slope: 2 / ((1 + slope) * n_in),
                    "The mean square of the negative half is multiplied by the square of the slope.",
                ),
                Slip(
                    "sum squared",
                    lambda n_in, slope: 2 / ((1 + slope) ** 2 * n_in),
                    "1 and the slope belong to different halves: each is squared alone, then they are added.",
                ),
                Slip(
                    "no half",
                    lambda n_in, slope: 1 / ((1 + slope**2) * n_in),
                    "Each half counts one half: for the slope 0 half of the mean square is kept.",
                ),
                Slip(
                    "deviation",
                    lambda n_in, slope: (2 / ((1 + slope**2) * n_in)) ** 0.5,
                    "That is the standard deviation; the variance is asked.",
                ),
                Slip(
                    "share",
                    lambda n_in, slope: (1 + slope**2) / 2 / n_in,
                    "That is the share that is kept, over n_in: the variance has to make up for it.",
                ),
                Slip(
                    "no inputs",
                    lambda n_in, slope: 2 / (1 + slope**2),
                    "The number of inputs is missing: a unit adds n_in products.",
                ),
                Slip(
                    "gain",
                    lambda n_in, slope: (2 / (1 + slope**2)) ** 0.5,
                    "That is the gain, without n_in and before it is squared.",
                ),
                Slip(
                    "gain over inputs",
                    lambda n_in, slope: (2 / (1 + slope**2)) ** 0.5 / n_in,
                    "The gain has to be squared for a variance.",
                ),
            ),
        )
    ],
    wrong=[
        Wrong("He", "return 2 / n_in", finding="he"),
        Wrong("the slope as it is", "return 2 / ((1 + slope) * n_in)", finding="slope not squared"),
        Wrong("both halves whole", "return 1 / ((1 + slope**2) * n_in)", finding="no half"),
        Wrong("the deviation", "return (2 / ((1 + slope**2) * n_in)) ** 0.5", finding="deviation"),
    ],
)


def starts():
    return [
        Case(w1=1.0, w2=2.0, steps=1, lr=0.5),
        Case(w1=0.5, w2=0.5, steps=3, lr=0.1),
        Case(w1=0.5, w2=0.4, steps=1000, lr=0.1),
    ]


def descent(w1, w2, steps, lr, *, signs=(1.0, 1.0), first="both", again=False, factors="other", target=-1.0):
    """The two weights after so many steps; the options are known slips.

    Args:
        signs: of the steps of both, or factors.
        first: which weight moves first; ``"both"`` is right.
        again: whether the error is computed anew for the weight that moves second.
        factors: what the error is multiplied by: the ``"other"`` weight, the ``"own"`` one, or ``"none"``.
        target: of the product.
    """
    for _ in range(steps):
        error = w2 * w1 - target
        of = {"other": (w2, w1), "own": (w1, w2), "none": (1.0, 1.0)}[factors]
        moved_1, moved_2 = (
            w - sign * lr * error * factor for w, sign, factor in zip((w1, w2), signs, of, strict=True)
        )
        if first == "w1":
            error = w2 * moved_1 - target if again else error
            moved_2 = w2 - lr * error * moved_1
        if first == "w2":
            error = moved_2 * w1 - target if again else error
            moved_1 = w1 - lr * error * moved_2
        w1, w2 = moved_1, moved_2
    return w1, w2


def _error_kept(w1, w2, steps, lr):
    error = w2 * w1 + 1
    for _ in range(steps):
        w1, w2 = w1 - lr * error * w2, w2 - lr * error * w1
    return w1, w2


def one_step(descend):
    """The report on one step from any weights, if it is one and follows the rate; there is no batch."""
    resting = descend(0.5, 0.4, 0, 0.1) == descend(0.5, 0.4, 1, 0.0) == (0.5, 0.4)
    if not resting or descend(0.5, 0.4, 1, 0.1) == (0.5, 0.4):
        return None

    def step(params, x, t, lr):
        moved = descend(float(params["w1"]), float(params["w2"]), 1, lr)
        return dict(zip(("w1", "w2"), map(np.asarray, moved), strict=True))

    def loss(params, x, t):
        return float((params["w2"] * params["w1"] + 1) ** 2 / 2)

    rows = np.ones((6, 1))
    return diagnose_step(step, {"w1": np.array(0.5), "w2": np.array(0.4)}, loss, rows, rows)


STEPS = "for _ in range(steps):\n    e = w2 * w1 + 1\n    w1, w2 = w1 - lr * e * w2, w2 - lr * e * w1"
SADDLE = Code(
    "between-saddle",
    entry="descend",
    template='''
def descend(w1, w2, steps, lr):
    """The two weights after so many steps of gradient descent on (w2 w1 + 1)² / 2."""
    <<take the steps>>
    return w1, w2
''',
    solution=STEPS,
    checks=[
        Values(
            starts,
            descent,
            returns=("w1", "w2"),
            doctor=one_step,
            slips=(
                Slip(
                    "second step from the moved weight",
                    lambda *case: descent(*case, first="w1"),
                    "The step of w2 uses the w1 that has already moved; both gradients belong to one point.",
                    first=True,
                ),
                Slip(
                    "first step from the moved weight",
                    lambda *case: descent(*case, first="w2"),
                    "The step of w1 uses the w2 that has already moved; both gradients belong to one point.",
                    first=True,
                ),
                Slip(
                    "own weight",
                    lambda *case: descent(*case, factors="own"),
                    "The error of each weight is multiplied by this weight; the rate of a product in one"
                    " factor is the other.",
                ),
                Slip(
                    "no factor",
                    lambda *case: descent(*case, factors="none"),
                    "Both weights step by the error alone; the rate of a product in one factor is the other.",
                ),
                Slip(
                    "one step",
                    lambda w1, w2, steps, lr: descent(w1, w2, 1, lr),
                    "Those are the weights after one step, however many are asked for.",
                ),
                Slip(
                    "no learning rate",
                    lambda w1, w2, steps, lr: descent(w1, w2, steps, 1.0),
                    "The learning rate is left out of the steps.",
                ),
                Slip(
                    "uphill",
                    lambda *case: descent(*case, signs=(-1.0, -1.0)),
                    "The steps go uphill: subtract the gradient.",
                ),
                Slip(
                    "w1 uphill",
                    lambda *case: descent(*case, signs=(-1.0, 1.0)),
                    "The steps of w1 go uphill: subtract its gradient, too.",
                ),
                Slip(
                    "w2 uphill",
                    lambda *case: descent(*case, signs=(1.0, -1.0)),
                    "The steps of w2 go uphill: subtract its gradient, too.",
                ),
                Slip(
                    "w1 stays",
                    lambda *case: descent(*case, signs=(0.0, 1.0)),
                    "w1 takes no step; both weights do.",
                ),
                Slip(
                    "w2 stays",
                    lambda *case: descent(*case, signs=(1.0, 0.0)),
                    "w2 takes no step; both weights do.",
                ),
                Slip(
                    "one step more",
                    lambda w1, w2, steps, lr: descent(w1, w2, steps + 1, lr),
                    "That is one step more than asked for.",
                ),
                Slip(
                    "one step less",
                    lambda w1, w2, steps, lr: descent(w1, w2, steps - 1, lr),
                    "That is one step less than asked for.",
                ),
                Slip(
                    "error kept",
                    _error_kept,
                    "The error of the first step is used in all: it changes with the weights.",
                ),
                Slip(
                    "target +1",
                    lambda *case: descent(*case, target=1.0),
                    "The error is w2 w1 − 1, as for the target 1; the target is −1.",
                ),
                Slip(
                    "halved",
                    lambda *case: descent(*case, signs=(0.5, 0.5)),
                    "The steps are half as long: the 2 of the square and the 1/2 of the loss cancel.",
                ),
                Slip(
                    "doubled",
                    lambda *case: descent(*case, signs=(2.0, 2.0)),
                    "The steps are twice as long: the 1/2 of the loss takes the 2 of the square away.",
                ),
            ),
        )
    ],
    wrong=[
        Wrong(
            "one after the other",
            STEPS.replace(
                "w1, w2 = w1 - lr * e * w2, w2 - lr * e * w1",
                "w1 = w1 - lr * e * w2\n    w2 = w2 - lr * e * w1",
            ),
            finding="second step from the moved weight",
        ),
        Wrong(
            "one after the other, each with its own error",
            "for _ in range(steps):\n    w1 = w1 - lr * (w2 * w1 + 1) * w2\n"
            "    w2 = w2 - lr * (w2 * w1 + 1) * w1",
            finding="updated-weight-used",
        ),
        Wrong("the wrong sign of the target", STEPS.replace("+ 1", "- 1"), finding="target +1"),
        Wrong("forgets the one half", STEPS.replace("+ 1\n", "+ 1\n    e = 2 * e\n"), finding="doubled"),
        Wrong(
            "adds the gradient",
            STEPS.replace("w1 - lr", "w1 + lr").replace("w2 - lr", "w2 + lr"),
            finding="uphill",
        ),
    ],
)


def chains():
    turn = np.array([[0.0, 2.0], [1.0, 0.0]])
    rng = np.random.default_rng(2)
    return [
        Case(start=np.array([3.0]), matrices=[np.array([[2.0]])]),
        Case(start=np.array([1.0, 0.0]), matrices=[turn, np.diag([1.0, 4.0])]),
        Case(start=rng.normal(size=5), matrices=[rng.normal(size=(5, 5)) for _ in range(4)]),
    ]


def growth(start, matrices):
    end = np.linalg.multi_dot([*matrices[::-1], start]) if len(matrices) > 1 else matrices[0] @ start
    return float(np.log(np.sqrt(end @ end)) - np.log(np.sqrt(start @ start)))


def _orthogonal(orthogonal, growth_of):
    for n in (1, 2, 16):
        found = orthogonal(n, np.random.default_rng(n))
        if found is None:
            return Fault("shape", "`orthogonal` returns None: is the `return` missing?")
        if isinstance(found, tuple):
            said = f"`orthogonal` returns a tuple of {len(found)}; one matrix is asked."
            return Fault("shape", said, ("`np.linalg.qr` gives two matrices: which of them is orthogonal?",))
        if isinstance(found, str) or np.shape(found) != (n, n):
            came = "a text" if isinstance(found, str) else f"the shape {np.shape(found)}"
            return Fault("shape", f"`orthogonal` returns {came} for n = {n}, not ({n}, {n}).")
        matrix = np.asarray(found)
        if not np.isfinite(matrix).all():
            return Fault("nan", f"For n = {n} the matrix contains nan or infinity.")
        off = np.abs(matrix.T @ matrix - np.eye(n)).max()
        if off > 1e-6:
            details = (f"For n = {n}, Q.T @ Q differs from the identity by up to {off:.2g}.",)
            return Fault("values", "The matrix is not orthogonal.", details, finding="not orthogonal")
    return _random(orthogonal)


def _random(orthogonal):
    rng = np.random.default_rng(7)
    first, second = (np.asarray(orthogonal(16, rng)) for _ in range(2))
    again = np.asarray(orthogonal(16, np.random.default_rng(7)))
    said = ""
    if np.allclose(first, second):
        said = "Two draws are the same matrix: each is to come from `rng`."
    elif not np.allclose(first, again):
        said = "The same seed gives another matrix: use the generator `rng`, and no other."
    if said:
        return Fault("values", said, finding="not from rng")
    if np.mean(np.abs(first) < 1e-12) > 0.5:
        said = "Most entries are 0: this matrix exchanges a few axes, or turns them over."
        advice = "A random one turns each axis into any direction. Begin with normal numbers."
        return Fault("values", said, (advice,), finding="few directions")
    return None


GROWING = [
    "return np.linalg.qr(rng.normal(size=(n, n)))[0]",
    "signal = start\nfor matrix in matrices:\n    signal = matrix @ signal",
]
ORTHOGONAL = Code(
    "between-orthogonal",
    entry="orthogonal, growth",
    template='''
import numpy as np


def orthogonal(n, rng):
    """A random orthogonal matrix (n, n), drawn from the generator rng."""
    <<return the matrix>>


def growth(start, matrices):
    """The logarithm of the final size of `start` (n,) over its first size."""
    <<send it through one matrix after the other: `signal`>>
    return np.log(np.linalg.norm(signal) / np.linalg.norm(start))
''',
    solution=GROWING,
    checks=[
        Property(_orthogonal),
        Values(
            chains,
            growth,
            name="growth",
            slips=(
                Slip(
                    "reversed",
                    lambda start, matrices: growth(start, matrices[::-1]),
                    "The matrices are applied in the reverse order: the first one meets the input.",
                ),
                Slip(
                    "transposed",
                    lambda start, matrices: growth(start, [matrix.T for matrix in matrices]),
                    "Each matrix is applied transposed: as a layer without bias it is matrix @ signal.",
                ),
                Slip(
                    "last alone",
                    lambda start, matrices: growth(start, matrices[-1:]),
                    "Only the last matrix is applied to the input.",
                ),
            ),
        ),
    ],
    wrong=[
        Wrong("takes R", [GROWING[0].replace("[0]", "[1]"), GROWING[1]], finding="not orthogonal"),
        Wrong(
            "takes the normal matrix",
            ["return rng.normal(0, n**-0.5, size=(n, n))", GROWING[1]],
            finding="not orthogonal",
        ),
        Wrong("the identity", ["return np.eye(n)", GROWING[1]], finding="not from rng"),
        Wrong(
            "a generator of its own",
            [GROWING[0].replace("rng.normal", "np.random.default_rng().normal"), GROWING[1]],
            finding="not from rng",
        ),
        Wrong(
            "signs alone",
            ["return np.diag(rng.choice([-1.0, 1.0], n))", GROWING[1]],
            finding="few directions",
        ),
        Wrong(
            "both of qr",
            [GROWING[0].replace("[0]", ""), GROWING[1]],
            says="`orthogonal` returns a tuple of 2; one matrix is asked.",
        ),
        Wrong(
            "backwards",
            [GROWING[0], GROWING[1].replace("in matrices", "in matrices[::-1]")],
            finding="reversed",
        ),
        Wrong(
            "from the other side",
            [GROWING[0], GROWING[1].replace("matrix @ signal", "signal @ matrix")],
            finding="transposed",
        ),
    ],
)
