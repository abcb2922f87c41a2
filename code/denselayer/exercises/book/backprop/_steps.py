"""Code exercises on one step of a network: a layer with any number of leading axes, and a leaky gate."""

import numpy as np

from denselayer import functional as F
from denselayer.doctor import diagnose_layer
from denselayer.exercises import Case, Code, Property, Slip, Values, Wrong
from denselayer.exercises._running import without_loop, without_package


def positions():
    """One number, then one leading axis, two, none and three."""
    rng = np.random.default_rng(4)
    found = [Case(d_out=np.array([[5.0]]), x=np.array([[2.0]]), weight=np.array([[3.0]]))]
    for leading, ins, outs in [
        ((2,), 1, 1),
        ((1, 2), 1, 1),
        ((2, 2), 2, 2),
        ((2, 3), 4, 3),
        ((), 3, 2),
        ((2, 1, 3), 2, 5),
    ]:
        d_out, x = rng.integers(-3, 4, (*leading, outs)), rng.integers(1, 5, (*leading, ins))
        weight = rng.integers(-3, 4, (outs, ins))
        found.append(Case(d_out=d_out.astype(float), x=x.astype(float), weight=weight.astype(float)))
    return found


def one_by_one(d_out, x, weight):
    """The three gradients, position after position."""
    d_weight, d_bias = np.zeros_like(weight), np.zeros_like(weight[:, 0])
    for at in np.ndindex(x.shape[:-1]):
        d_weight += np.outer(d_out[at], x[at])
        d_bias += d_out[at]
    return np.einsum("...o,oi->...i", d_out, weight), d_weight, d_bias


def ones(rows, ins, outs):
    return lambda: Case(
        d_out=np.ones((rows, 2, outs)), x=np.ones((rows, 2, ins)), weight=np.ones((outs, ins))
    )


EINSUM = Code(
    "backprop-einsum",
    entry="dense_backward_nd",
    template='''
import numpy as np


def dense_backward_nd(d_out, x, weight):
    """x (..., in), weight (out, in), d_out (..., out) -> d_x (..., in), d_weight (out, in), d_bias (out,)"""
    <<the three gradients, without a loop>>
    return d_x, d_weight, d_bias
''',
    solution="""
rows = x.reshape(-1, x.shape[-1])
d_rows = d_out.reshape(-1, d_out.shape[-1])
d_weight = d_rows.T @ rows
d_bias = d_rows.sum(axis=0)
d_x = d_out @ weight
""",
    checks=[
        Values(
            positions,
            one_by_one,
            returns=("d_x", "d_weight", "d_bias"),
            gradient_of={"d_x": "x", "d_weight": "weight"},
            doctor=lambda backward: diagnose_layer(F.linear, backward),
            slips=(
                Slip(
                    "first axis alone",
                    lambda d_out, x, weight: d_out.sum(axis=0),
                    "`d_bias` is summed over the first axis alone: every position of every leading axis has"
                    " used"
                    " the bias, so all of them are added.",
                    output="d_bias",
                ),
                Slip(
                    "left as rows",
                    lambda d_out, x, weight: d_out.reshape(-1, d_out.shape[-1]) @ weight,
                    "`d_x` is left as rows: it has the shape of `x`, with all its leading axes.",
                    output="d_x",
                ),
                Slip(
                    "weight-transposed",
                    lambda d_out, x, weight: one_by_one(d_out, x, weight)[1].T,
                    "`d_weight` is transposed: for a weight (out, in) it is d_rows.T @ rows, not rows.T @"
                    " d_rows.",
                    output="d_weight",
                ),
            ),
        ),
        Property(without_package(ones(2, 2, 2), "dense_backward_nd")),
        Property(without_loop(ones(2, 2, 2), ones(40, 30, 20), "dense_backward_nd")),
    ],
    wrong=[
        Wrong(
            "position after position",
            """
d_weight, d_bias = np.zeros_like(weight), np.zeros(len(weight))
for at in np.ndindex(x.shape[:-1]):
    d_weight += np.outer(d_out[at], x[at])
    d_bias += d_out[at]
d_x = d_out @ weight
""",
            finding="loop",
        ),
        Wrong(
            "bias summed over the batch, not over time",
            """
rows = x.reshape(-1, x.shape[-1])
d_rows = d_out.reshape(-1, d_out.shape[-1])
d_weight = d_rows.T @ rows
d_bias = d_out.sum(axis=0)
d_x = d_out @ weight
""",
            finding="first axis alone",
        ),
        Wrong(
            "mean over the positions",
            """
rows = x.reshape(-1, x.shape[-1])
d_rows = d_out.reshape(-1, d_out.shape[-1])
d_weight = d_rows.T @ rows / len(rows)
d_bias = d_rows.sum(axis=0)
d_x = d_out @ weight
""",
            finding="weight-averaged",
        ),
        Wrong(
            "mean in the bias",
            """
rows = x.reshape(-1, x.shape[-1])
d_rows = d_out.reshape(-1, d_out.shape[-1])
d_weight = d_rows.T @ rows
d_bias = d_rows.mean(axis=0)
d_x = d_out @ weight
""",
            finding="bias-averaged",
        ),
        Wrong(
            "weight gradient as (in, out)",
            """
rows = x.reshape(-1, x.shape[-1])
d_rows = d_out.reshape(-1, d_out.shape[-1])
d_weight = rows.T @ d_rows
d_bias = d_rows.sum(axis=0)
d_x = d_out @ weight
""",
            finding="weight-transposed",
        ),
        Wrong(
            "weight transposed on the way back",
            """
rows = x.reshape(-1, x.shape[-1])
d_rows = d_out.reshape(-1, d_out.shape[-1])
d_weight = d_rows.T @ rows
d_bias = d_rows.sum(axis=0)
d_x = d_out @ weight.T
""",
            says="Line 10 raises a ValueError: the shapes do not fit.",
        ),
        Wrong(
            "input gradient left as rows",
            """
rows = x.reshape(-1, x.shape[-1])
d_rows = d_out.reshape(-1, d_out.shape[-1])
d_weight = d_rows.T @ rows
d_bias = d_rows.sum(axis=0)
d_x = d_rows @ weight
""",
            finding="left as rows",
        ),
    ],
)


def gates():
    """One unit, then open and shut gates with gradients of both signs, z = 0 among them."""
    rng = np.random.default_rng(5)
    found = [
        Case(d_a=np.array([[3.0]]), z=np.array([[-2.0]])),
        Case(d_a=np.array([[3.0]]), z=np.array([[2.0]])),
    ]
    found.append(Case(d_a=np.array([[4.0, -3.0], [-2.0, 5.0]]), z=np.array([[2.0, 1.0], [-1.0, 0.0]])))
    found.append(Case(d_a=rng.normal(size=(3, 5)), z=rng.normal(size=(3, 5))))
    return found


def examples():
    """One number, the running example, and a batch of five rows from 7 to 4."""
    rng = np.random.default_rng(6)
    running = Case(
        x=np.array([[2.0, 4.0, 1.0]]),
        weight=np.array([[0.5, -1.0, 2.0], [-0.25, 0.5, 1.0], [1.0, 0.25, -0.5]]),
        bias=np.array([3.0, -1.0, -4.0]),
        target=np.array([[0.5, 3.0, 3.0]]),
    )
    one = {"x": [[2.0]], "weight": [[3.0]], "bias": [-16.0], "target": [[4.0]]}
    two = {"x": [[1.0], [2.0]], "weight": [[3.0]], "bias": [-5.0], "target": [[1.0], [2.0]]}
    small = [Case(**{name: np.array(value) for name, value in case.items()}) for case in (one, two)]
    x, weight, bias = rng.normal(size=(5, 7)), rng.normal(size=(4, 7)), rng.normal(size=4)
    return [*small, running, Case(x=x, weight=weight, bias=bias, target=rng.normal(size=(5, 4)))]


def leaky(z):
    return np.where(z > 0, z, 0.1 * z)


def leaky_layer(x, weight, bias):
    return leaky(x @ weight.T + bias)


def as_a_layer(example):
    """The backward pass of the layer: a target can be found for any gradient of the output."""

    def backward(d_out, x, weight, bias):
        target = leaky_layer(x, weight, bias) - d_out * d_out.size / 2
        return dict(zip(("weight", "bias"), example(x, weight, bias, target), strict=True))

    return backward


def leaky_example(x, weight, bias, target, *, compared="a", gate="leaky", divisor=None, factor=2.0):
    """The two gradients by letters, with the mistakes that people make.

    Args:
        compared: what the loss compares with the target, ``"a"`` or ``"z"``.
        gate: what becomes of d_a on the way to z.
        divisor: of the sum of the squares; their number if None.
        factor: of the differences.
    """
    z = np.einsum("ni,oi->no", x, weight) + bias
    a = np.where(z > 0, z, 0.1 * z)
    d_a = factor * ((a if compared == "a" else z) - target) / (divisor or target.size)
    d_z = {
        "leaky": d_a * np.where(z > 0, 1.0, 0.1),
        "none": d_a,
        "exchanged": z * np.where(d_a > 0, 1.0, 0.1),
    }[gate]
    return np.einsum("no,ni->oi", d_z, x), np.einsum("no->o", d_z)


GATE = "return np.where(z > 0, d_a, 0.1 * d_a)"
DOWN = """
z = F.linear(x, weight, bias)
d_a = F.mse_loss_backward(leaky(z), target)
d_z = leaky_backward(d_a, z)
_, d_weight, d_bias = F.linear_backward(d_z, x, weight)
"""

LEAKY = Code(
    "backprop-leaky",
    entry="leaky_backward, example_backward",
    template='''
import numpy as np

from denselayer import functional as F


def leaky(z):
    return np.where(z > 0, z, 0.1 * z)


def leaky_backward(d_a, z):
    """d_a and z (N, out) -> d_z (N, out)"""
    <<the gradient of z>>


def example_backward(x, weight, bias, target):
    """x (N, in), weight (out, in), bias (out,), target (N, out) -> d_weight (out, in), d_bias (out,)"""
    <<from the loss down to the two gradients>>
    return d_weight, d_bias
''',
    solution=[GATE, DOWN],
    checks=[
        Values(
            gates,
            lambda d_a, z: d_a * (0.1 + 0.9 * (z > 0)),
            name="leaky_backward",
            gradient_of={"": "z"},
            doctor=lambda backward: diagnose_layer(leaky, lambda d_a, z: np.asarray(backward(d_a, z))),
            words={"x": "z", "d_out": "d_a"},
            slips=(
                Slip(
                    "slopes exchanged",
                    lambda d_a, z: np.where(z > 0, 0.1 * d_a, d_a),
                    "The slopes are on the wrong sides: 1 belongs to z > 0, and 0.1 to the rest.",
                ),
                Slip(
                    "a hundredth",
                    lambda d_a, z: np.where(z > 0, d_a, 0.01 * d_a),
                    "The slope of this leaky ReLU is 0.1; yours is 0.01.",
                    first=True,
                ),
                Slip(
                    "z in place of d_a",
                    lambda d_a, z: np.where(z > 0, d_a, 0.1 * z),
                    "Where z is not positive, yours passes 0.1 z: what comes from above is d_a.",
                ),
                Slip(
                    "open at zero",
                    lambda d_a, z: np.where(z >= 0, d_a, 0.1 * d_a),
                    "At z = 0 the exercise takes the slope 0.1; yours is 1 there.",
                ),
            ),
        ),
        Values(
            examples,
            leaky_example,
            name="example_backward",
            returns=("d_weight", "d_bias"),
            gradient_of={"d_weight": "weight", "d_bias": "bias"},
            doctor=lambda example: diagnose_layer(leaky_layer, as_a_layer(example)),
            words={"d_out": "d_a"},
            slips=(
                Slip(
                    "arguments exchanged",
                    lambda *layer: leaky_example(*layer, gate="exchanged"),
                    "`leaky_backward` got z in place of d_a and d_a in place of z: its arguments are (d_a,"
                    " z).",
                ),
                Slip(
                    "no activation",
                    lambda *layer: leaky_example(*layer, compared="z", gate="none"),
                    "The leaky ReLU is left out, forward and backward: the loss compares leaky(z), not z.",
                ),
                Slip(
                    "output compared without the activation",
                    lambda *layer: leaky_example(*layer, compared="z"),
                    "The loss compares the target with z: it belongs to leaky(z).",
                ),
                Slip(
                    "divided by rows",
                    lambda *layer: leaky_example(*layer, divisor=len(layer[0])),
                    "This divides by the number of rows; the mean runs over all entries of the output.",
                ),
                Slip(
                    "factor-two",
                    lambda *layer: leaky_example(*layer, factor=1.0),
                    "The 2 of the square is missing: the derivative of a square is twice its base.",
                ),
                Slip(
                    "sign-flipped",
                    lambda *layer: leaky_example(*layer, factor=-2.0),
                    "The sign is wrong everywhere: the difference is the output minus the target.",
                ),
                Slip(
                    "summed-not-averaged",
                    lambda *layer: leaky_example(*layer, divisor=1),
                    "This is the gradient of the sum of the squares; the mean divides by their number.",
                ),
            ),
        ),
    ],
    wrong=[
        Wrong(
            "gate on the upstream gradient",
            ["return np.where(d_a > 0, d_a, 0.1 * d_a)", DOWN],
            finding="gate-on-upstream",
        ),
        Wrong("slope alone", ["return np.where(z > 0, 1.0, 0.1)", DOWN], finding="upstream-ignored"),
        Wrong("still a ReLU", ["return np.where(z > 0, d_a, 0.0)", DOWN], finding="other-derivative"),
        Wrong(
            "gate forgotten in the example",
            [GATE, DOWN.replace("d_z = leaky_backward(d_a, z)", "d_z = d_a")],
            finding="gate-missing",
        ),
        Wrong(
            "loss of the pre-activation",
            [GATE, DOWN.replace("leaky(z), target", "z, target")],
            finding="output compared without the activation",
        ),
        Wrong(
            "bias averaged in the example",
            [GATE, DOWN + "d_bias = d_bias / len(x)\n"],
            finding="bias-averaged",
        ),
        Wrong(
            "names in the wrong order",
            [GATE, DOWN.replace("leaky_backward(d_a, z)", "leaky_backward(z, d_a)")],
            finding="arguments exchanged",
        ),
        Wrong(
            "multiplies d_a in place",
            ["d_a *= np.where(z > 0, 1.0, 0.1)\nreturn d_a", DOWN],
            says="Your function changes its argument `d_a`.",
        ),
    ],
)
