"""The code exercises of the chapter "Between the layers"."""

import numpy as np

from denselayer import functional as F
from denselayer.exercises import Case, Code, Fault, Property, Slip, Values, Wrong


def _draw(rng, *shapes):
    return [rng.integers(1, 4, shape).astype(float) for shape in shapes]


def stacks():
    """One layer; a layer and a skip; up, down, skip and a last layer; a skip at the start."""
    rng = np.random.default_rng(0)
    one = tuple(_draw(rng, (1, 1), (1,)))
    square = tuple(_draw(rng, (2, 2), (2,)))
    up, down, last = (tuple(_draw(rng, (o, i), (o,))) for o, i in [(7, 4), (4, 7), (2, 4)])
    return [
        Case(layers=[one]),
        Case(layers=[one, "skip"]),
        Case(layers=["skip", square]),
        Case(layers=[square, "skip", square]),
        Case(layers=[up, down, "skip", last]),
    ]


def folded(layers, skipped=lambda signal, start: signal + start):
    """Weight and bias read off from what the stack does to zero and to the rows of the identity."""
    width = next(layer for layer in layers if layer != "skip")[0].shape[1]
    start = signal = np.vstack([np.zeros(width), np.eye(width)])
    for layer in layers:
        signal = skipped(signal, start) if isinstance(layer, str) else F.linear(signal, *layer)
    return (signal[1:] - signal[0]).T, signal[0]


FOLDING = (
    "weight, bias = np.eye(n_in), np.zeros(n_in)\n"
    "for layer in layers:\n"
    '    if layer == "skip":\n'
    "        weight = weight + np.eye(n_in)\n"
    "    else:\n"
    "        weight, bias = layer[0] @ weight, layer[0] @ bias + layer[1]"
)
FOLD = Code(
    "between-fold",
    entry="fold",
    template='''
import numpy as np


def fold(layers):
    """Weight (out, in) and bias (out,) of the one layer; layers holds pairs and "skip"."""
    n_in = next(layer for layer in layers if layer != "skip")[0].shape[1]
    <<fold one layer after the other: `weight` and `bias`>>
    return weight, bias
''',
    solution=FOLDING,
    checks=[
        Values(
            stacks,
            folded,
            returns=("weight", "bias"),
            slips=(
                Slip(
                    "skip ignored",
                    lambda layers: folded(layers, lambda signal, start: signal),
                    "The skip is left out: it adds the input of the stack, whose weight is the identity.",
                ),
                Slip(
                    "signal doubled",
                    lambda layers: folded(layers, lambda signal, start: 2 * signal),
                    "The skip adds the signal to itself; it adds the input of the whole stack.",
                ),
                Slip(
                    "bias not carried on",
                    lambda layers: next(l[1] for l in reversed(layers) if not isinstance(l, str)),
                    "Only the last bias is left: an earlier one goes through the weights behind it.",
                    "bias",
                ),
                Slip(
                    "identity in the bias",
                    lambda layers: folded(layers, lambda signal, start: signal + start + 1),
                    "The skip adds 1 to the bias; the identity is an affine map with the bias 0.",
                ),
            ),
        )
    ],
    wrong=[
        Wrong(
            "leaves the skip out", FOLDING.replace("weight + np.eye(n_in)", "weight"), finding="skip ignored"
        ),
        Wrong(
            "adds the signal",
            FOLDING.replace("weight = weight + np.eye(n_in)", "weight, bias = 2 * weight, 2 * bias"),
            finding="signal doubled",
        ),
        Wrong(
            "only the last bias",
            FOLDING.replace("layer[0] @ bias + layer[1]", "layer[1]"),
            finding="bias not carried on",
        ),
        Wrong(
            "the wrong order",
            FOLDING.replace("layer[0] @ weight,", "weight @ layer[0],"),
            says="Line 12 raises a ValueError: the shapes do not fit.",
        ),
    ],
)


def pre_activations():
    rng = np.random.default_rng(0)
    return [
        Case(z=np.array([[-1.0]])),
        Case(z=np.array([[0.0, 2.0], [-0.5, -3.0]])),
        Case(z=3 * rng.normal(size=(4, 3))),
        Case(z=np.array([1000.0, -1000.0, 0.0])),
    ]


def upstream():
    rng = np.random.default_rng(1)
    return [
        Case(d_out=rng.integers(1, 5, case.arguments["z"].shape).astype(float), **case.arguments)
        for case in pre_activations()
    ]


def _elu(z):
    return np.maximum(z, 0) + np.expm1(np.minimum(z, 0))


def _elu_slope(z):
    return np.exp(np.minimum(z, 0))


ELU_RIGHT = [
    "return np.where(z > 0, z, np.expm1(np.minimum(z, 0)))",
    "return d_out * np.where(z > 0, 1.0, np.exp(np.minimum(z, 0)))",
]
ELU = Code(
    "between-elu",
    entry="elu, elu_backward",
    template='''
import numpy as np


def elu(z):
    """z where z > 0, and exp(z) - 1 otherwise; z of any shape."""
    <<the activation>>


def elu_backward(d_out, z):
    """The gradient of z, from the upstream gradient d_out of the same shape."""
    <<the gradient>>
''',
    solution=ELU_RIGHT,
    checks=[
        Values(
            pre_activations,
            _elu,
            name="elu",
            slips=(
                Slip(
                    "no minus one",
                    lambda z: np.where(z > 0, z, _elu_slope(z)),
                    "Below 0 the 1 is not subtracted, so the curve jumps at 0.",
                ),
                Slip(
                    "relu", lambda z: np.maximum(z, 0), "Below 0 this is a ReLU: the exponential is missing."
                ),
            ),
        ),
        Values(
            upstream,
            lambda d_out, z: d_out * _elu_slope(z),
            name="elu_backward",
            gradient_of={"": "z"},
            slips=(
                Slip(
                    "value in place of slope",
                    lambda d_out, z: d_out * np.where(z > 0, 1.0, _elu(z)),
                    "Below 0 the slope is e^z, which is the output plus 1; here the 1 is missing.",
                ),
                Slip(
                    "gate on upstream",
                    lambda d_out, z: d_out * np.where(d_out > 0, 1.0, _elu_slope(z)),
                    "The gate asks for d_out > 0; it has to ask for z > 0.",
                ),
                Slip(
                    "relu gate",
                    lambda d_out, z: d_out * (z > 0),
                    "Below 0 the slope is taken as 0, as behind a ReLU; it is e^z.",
                ),
                Slip(
                    "no upstream", lambda d_out, z: _elu_slope(z), "The upstream gradient d_out is left out."
                ),
            ),
        ),
    ],
    wrong=[
        Wrong(
            "forgets the 1",
            ["return np.where(z > 0, z, np.exp(np.minimum(z, 0)))", ELU_RIGHT[1]],
            finding="no minus one",
        ),
        Wrong(
            "takes the output as the slope",
            [ELU_RIGHT[0], "return d_out * np.where(z > 0, 1.0, elu(z))"],
            finding="value in place of slope",
        ),
        Wrong("a ReLU's gate", [ELU_RIGHT[0], "return d_out * (z > 0)"], finding="relu gate"),
        Wrong(
            "forgets the upstream gradient",
            [ELU_RIGHT[0], "return np.where(z > 0, 1.0, np.exp(np.minimum(z, 0)))"],
            finding="no upstream",
        ),
        Wrong(
            "multiplies by a gate",
            ["return (z > 0) * z + (z <= 0) * np.expm1(z)", ELU_RIGHT[1]],
            says="The result is nan where the right value is finite.",
        ),
    ],
)


def networks():
    rng = np.random.default_rng(3)
    found = []
    for inputs, hidden, outputs in [(1, 1, 1), (2, 2, 1), (3, 5, 2)]:
        w1, b1, w2, b2 = _draw(rng, (hidden, inputs), (hidden,), (outputs, hidden), (outputs,))
        found.append(Case(first=(2 * w1, 2 * b1), second=(2 * w2, b2)))
    return found


def with_tanh(first, second, inside=0.5, outside=0.5, shift=0.5):
    return (
        inside * first[0],
        inside * first[1],
        outside * second[0],
        second[1] + shift * second[0].sum(axis=1),
    )


def _flat(result):
    if len(result) == 2:
        (w1, b1), (w2, b2) = result
        return w1, b1, w2, b2
    return tuple(result)


TANH = [
    "new_first = weight_1 / 2, bias_1 / 2",
    "new_second = weight_2 / 2, bias_2 + weight_2.sum(axis=1) / 2",
]
TANH_SIGMOID = Code(
    "between-tanh-sigmoid",
    entry="as_tanh",
    template='''
def as_tanh(first, second):
    """The two pairs (weight, bias) of the network with tanh in place of the sigmoid."""
    (weight_1, bias_1), (weight_2, bias_2) = first, second
    <<the layer before the tanh: `new_first`>>
    <<the layer after the tanh: `new_second`>>
    return new_first, new_second
''',
    solution=TANH,
    checks=[
        Values(
            networks,
            with_tanh,
            returns=("weight_1", "bias_1", "weight_2", "bias_2"),
            tidy=_flat,
            slips=(
                Slip(
                    "no halving inside",
                    lambda first, second: with_tanh(first, second, inside=1.0),
                    "The sigmoid of z contains the tanh of z/2: the first layer has to halve z.",
                ),
                Slip(
                    "doubled inside",
                    lambda first, second: with_tanh(first, second, inside=2.0),
                    "The first layer doubles z; the sigmoid of z contains the tanh of z/2.",
                ),
                Slip(
                    "shift forgotten",
                    lambda first, second: with_tanh(first, second, shift=0.0),
                    "The sigmoid is 1/2 + 1/2 tanh: the constant 1/2 goes into the second bias.",
                ),
                Slip(
                    "outer halving forgotten",
                    lambda first, second: with_tanh(first, second, outside=1.0),
                    "The second weight is not halved: the sigmoid has half the height of tanh.",
                ),
                Slip(
                    "bias kept whole",
                    lambda first, second: first[1],
                    "The first bias is not halved: all of z is, weights and bias.",
                    "bias_1",
                ),
            ),
        )
    ],
    wrong=[
        Wrong(
            "halves nothing inside", ["new_first = weight_1, bias_1", TANH[1]], finding="no halving inside"
        ),
        Wrong("doubles inside", ["new_first = 2 * weight_1, 2 * bias_1", TANH[1]], finding="doubled inside"),
        Wrong("forgets the shift", [TANH[0], "new_second = weight_2 / 2, bias_2"], finding="shift forgotten"),
        Wrong(
            "halves only the weight", ["new_first = weight_1 / 2, bias_1", TANH[1]], finding="bias kept whole"
        ),
    ],
)


def gains():
    return [Case(n_in=n, slope=a) for n, a in [(1, 0.0), (2, 1.0), (256, 0.5), (100, 0.1)]]


LEAKY_GAIN = Code(
    "between-leaky-gain",
    entry="variance",
    template='''
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


def descent(w1, w2, steps, lr, *, sign=1.0, fresh=False, target=-1.0):
    for _ in range(steps):
        error = w2 * w1 - target
        moved = w1 - sign * lr * error * w2
        w2 -= sign * lr * error * (moved if fresh else w1)
        w1 = moved
    return w1, w2


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
            slips=(
                Slip(
                    "second step from the moved weight",
                    lambda *case: descent(*case, fresh=True),
                    "The step of w2 uses the w1 that has already moved; both gradients belong to one point.",
                ),
                Slip(
                    "uphill",
                    lambda *case: descent(*case, sign=-1.0),
                    "The steps go uphill: subtract the gradient.",
                ),
                Slip(
                    "target +1",
                    lambda *case: descent(*case, target=1.0),
                    "The error is w2 w1 − 1, as for the target 1; the target is −1.",
                ),
                Slip(
                    "doubled",
                    lambda *case: descent(*case, sign=2.0),
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
        matrix = np.asarray(orthogonal(n, np.random.default_rng(n)))
        if matrix.shape != (n, n):
            return Fault("shape", f"`orthogonal` returns {matrix.shape} for n = {n}, not ({n}, {n}).")
        if not np.allclose(matrix.T @ matrix, np.eye(n)):
            off = np.abs(matrix.T @ matrix - np.eye(n)).max()
            details = (f"For n = {n}, Q.T @ Q differs from the identity by up to {off:.2g}.",)
            return Fault("values", "The matrix is not orthogonal.", details, finding="not orthogonal")
    drawn = [orthogonal(3, rng) for rng in [np.random.default_rng(7)] for _ in range(2)]
    if np.allclose(*drawn):
        return Fault(
            "values", "Every draw is the same matrix: it is to come from `rng`.", finding="not random"
        )
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
        Wrong("the identity", ["return np.eye(n)", GROWING[1]], finding="not random"),
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
