"""The code exercises on what layers and activations compute."""

import numpy as np

from denselayer import functional as F
from denselayer.doctor import diagnose_layer
from denselayer.exercises import Case, Code, Slip, Values, Wrong


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


def _summed(start):
    """What an array of ones for the weight makes of the inputs: their sum, for every unit."""
    return np.broadcast_to(start.sum(axis=1, keepdims=True), start.shape)


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
                Slip(
                    "ones in place of the identity",
                    lambda layers: folded(layers, lambda signal, start: signal + _summed(start)),
                    "The skip adds 1 to all entries of the weight; only the diagonal of the identity is 1.",
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
            "adds ones",
            FOLDING.replace("weight + np.eye(n_in)", "weight + 1"),
            finding="ones in place of the identity",
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
    """The same pre-activations, with gradients of both signs, independent of the sign of z."""
    cases = pre_activations()
    rng = np.random.default_rng(1)
    found = [[[2.0]], [[3.0, -4.0], [-2.0, 5.0]], rng.normal(size=(4, 3)), [-3.0, 2.0, 4.0]]
    return [Case(d_out=np.array(d_out), **case.arguments) for d_out, case in zip(found, cases, strict=True)]


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
                Slip(
                    "turned over",
                    lambda z: np.where(z > 0, z, -np.expm1(np.minimum(z, 0))),
                    "Below 0 the sign is wrong: it is exp(z) − 1, not 1 − exp(z).",
                ),
                Slip(
                    "leaky",
                    lambda z: np.where(z > 0, z, 0.01 * z),
                    "Below 0 this is a leaky ReLU: the exponential is missing.",
                ),
            ),
        ),
        Values(
            upstream,
            lambda d_out, z: d_out * _elu_slope(z),
            name="elu_backward",
            gradient_of={"": "z"},
            doctor=lambda backward: diagnose_layer(_elu, lambda d_out, z: np.asarray(backward(d_out, z))),
            words={"x": "z", "the activation": "the ELU", "its own activation": "the ELU"},
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
                    first=True,
                ),
                Slip(
                    "value above",
                    lambda d_out, z: d_out * np.where(z > 0, z, _elu_slope(z)),
                    "Above 0 d_out is multiplied by z; the slope there is 1.",
                ),
                Slip(
                    "added",
                    lambda d_out, z: d_out + _elu_slope(z),
                    "d_out and the slope are added; the chain rule multiplies them.",
                ),
                Slip(
                    "jump at zero",
                    lambda d_out, z: d_out * np.where(z == 0, 0.0, _elu_slope(z)),
                    "At z = 0 the slope is taken as 0; it is e^0, from both sides.",
                ),
                Slip(
                    "exponential everywhere",
                    lambda d_out, z: d_out * np.exp(z),
                    "The slope is taken as e^z everywhere: above 0 it is 1.",
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
        Wrong(
            "gate on the upstream gradient",
            [ELU_RIGHT[0], "return d_out * np.where(d_out > 0, 1.0, np.exp(np.minimum(z, 0)))"],
            finding="gate on upstream",
        ),
        Wrong("d_out as it is", [ELU_RIGHT[0], "return d_out"], finding="gate-missing"),
        Wrong("a ReLU's gate", [ELU_RIGHT[0], "return d_out * (z > 0)"], finding="relu gate"),
        Wrong(
            "forgets the upstream gradient",
            [ELU_RIGHT[0], "return np.where(z > 0, 1.0, np.exp(np.minimum(z, 0)))"],
            finding="upstream-ignored",
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
    found = [
        Case(
            first=(np.array([[6.0]]), np.array([4.0])),
            second=(np.array([[2.0]]), np.array([7.0])),
        )
    ]
    for inputs, hidden, outputs in [(2, 2, 1), (3, 5, 2)]:
        w1, b1, w2, b2 = _draw(rng, (hidden, inputs), (hidden,), (outputs, hidden), (outputs,))
        signs = rng.choice([-1.0, 1.0], w1.shape)
        signs[:, 0] = 1.0  # as `_flat` turns a unit
        found.append(Case(first=(2 * signs * w1, 2 * b1), second=(2 * w2, b2)))
    return found


def with_tanh(first, second, inside=0.5, outside=0.5, shift=0.5, kept=1.0):
    return (
        inside * first[0],
        inside * first[1],
        outside * second[0],
        kept * second[1] + shift * second[0].sum(axis=1),
    )


def _shifted(by):
    """The second bias with another shift than half the sum of its row."""
    return lambda first, second: second[1] + by(second[0])


def _flat(result):
    """The four arrays; a unit of the odd tanh may be turned over, so its first weight is made positive."""
    if len(result) == 2 and all(len(pair) == 2 for pair in result):
        result = [array for pair in result for array in pair]
    if len(result) != 4:
        raise ValueError("two pairs (weight, bias) are asked")
    w1, b1, w2, b2 = result
    if np.ndim(w1) == 2 and np.shape(b1) == np.shape(w1)[:1] == np.shape(w2)[1:]:
        signs = np.where(np.asarray(w1)[:, 0] < 0, -1.0, 1.0)
        w1, b1, w2 = w1 * signs[:, None], b1 * signs, w2 * signs
    return w1, b1, w2, b2


TANH = [
    "new_first = weight_1 / 2, bias_1 / 2",
    "new_second = weight_2 / 2, bias_2 + weight_2.sum(axis=1) / 2",
]
TANH_SIGMOID = Code(
    "between-tanh-sigmoid",
    entry="as_tanh",
    template='''
import numpy as np


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
                Slip(
                    "tanh by sigmoid",
                    lambda first, second: with_tanh(first, second, 2.0, 2.0, -1.0),
                    "This writes tanh by the sigmoid, 2 σ(2z) − 1: the other way round is asked.",
                ),
                Slip(
                    "one half alone",
                    _shifted(lambda weight: 0.5),
                    "One half is added to the second bias; each hidden unit adds half of its weight.",
                    "bias_2",
                ),
                Slip(
                    "whole sum",
                    _shifted(lambda weight: weight.sum(axis=1)),
                    "The whole sum of the row is added to the second bias: it is half of it, since the"
                    " constant is 1/2.",
                    "bias_2",
                ),
                Slip(
                    "sum over all",
                    _shifted(lambda weight: weight.sum() / 2),
                    "Every output gets the sum over all rows of the second weight: each has its own row.",
                    "bias_2",
                ),
                Slip(
                    "second bias halved",
                    lambda first, second: with_tanh(first, second, kept=0.5)[3],
                    "The second bias itself is halved; it is added behind the activation and stays.",
                    "bias_2",
                ),
            ),
        )
    ],
    wrong=[
        Wrong(
            "halves nothing inside", ["new_first = weight_1, bias_1", TANH[1]], finding="no halving inside"
        ),
        Wrong("doubles inside", ["new_first = 2 * weight_1, 2 * bias_1", TANH[1]], finding="doubled inside"),
        Wrong(
            "one half for all",
            [TANH[0], "new_second = weight_2 / 2, bias_2 + 0.5"],
            finding="one half alone",
        ),
        Wrong("forgets the shift", [TANH[0], "new_second = weight_2 / 2, bias_2"], finding="shift forgotten"),
        Wrong(
            "halves only the weight", ["new_first = weight_1 / 2, bias_1", TANH[1]], finding="bias kept whole"
        ),
    ],
)
