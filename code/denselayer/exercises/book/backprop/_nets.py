"""Code exercises on what is used more than once: an input with a way around its layer, and a layer."""

from dataclasses import replace

import numpy as np

from denselayer import gradcheck
from denselayer.doctor import diagnose_layer
from denselayer.exercises import Case, Code, Fault, Property, Slip, Values, Wrong
from denselayer.exercises._running import calls_run


def blocks():
    """Square layers from one unit to four, with open and shut gates, and one with all gates shut."""
    rng = np.random.default_rng(7)
    found = [
        Case(x=np.array([[2.0]]), weight=np.array([[3.0]]), bias=np.array([1.0])),
        Case(x=np.array([[2.0]]), weight=np.array([[3.0]]), bias=np.array([-7.0])),
        Case(
            x=np.array([[1.0, 2.0], [-3.0, 1.0]]),
            weight=np.array([[1.0, 2.0], [3.0, -1.0]]),
            bias=np.array([2.0, -4.0]),
        ),
    ]
    for rows, width in [(1, 3), (5, 4)]:
        weight, bias = rng.normal(size=(width, width)), rng.normal(size=width)
        found.append(Case(x=rng.normal(size=(rows, width)), weight=weight, bias=bias))
    x, weight = rng.normal(size=(3, 2)), rng.normal(size=(2, 2))
    return [*found, Case(x=x, weight=weight, bias=np.full(2, -100.0))]


def blocks_with_upstream():
    upstream = [[[5.0]], [[5.0]], [[2.0, -3.0], [-1.0, 4.0]]]
    rng = np.random.default_rng(8)
    cases = blocks()
    upstream += [rng.normal(size=case.arguments["x"].shape) for case in cases[3:]]
    return [
        Case(d_out=np.array(d_out), **case.arguments) for d_out, case in zip(upstream, cases, strict=True)
    ]


def block_by_letters(x, weight, bias):
    z = np.einsum("ni,oi->no", x, weight) + bias
    return x + z * (z > 0)


def block_gradients(d_out, x, weight, bias, *, gate="z", around="d_out"):
    """The three gradients by letters.

    Args:
        gate: what must be positive.
        around: what goes around the layer: ``"d_out"``, ``"d_z"`` or nothing.
    """
    z = np.einsum("ni,oi->no", x, weight) + bias
    looked_at = {"z": z, "y": x + z * (z > 0), "none": np.ones_like(z)}[gate]
    d_z = d_out * (looked_at > 0)
    d_x = np.einsum("no,oi->ni", d_z, weight) + {"d_out": d_out, "d_z": d_z, "": 0.0}[around]
    return d_x, np.einsum("no,ni->oi", d_z, x), np.einsum("no->o", d_z)


def layer_of_the_block(block_backward):
    """The report on the layer without the way around it, of which the doctor knows nothing."""

    def forward(x, weight, bias):
        return np.maximum(x @ weight.T + bias, 0.0)

    def backward(d_out, x, weight, bias):
        d_x, d_weight, d_bias = block_backward(d_out, x, weight, bias)
        return d_x - d_out, d_weight, d_bias

    report = diagnose_layer(forward, backward, params=square_layer())
    placed = [replace(finding, where=tuple(map(_place, finding.where))) for finding in report.findings]
    return replace(report, findings=tuple(placed))


def _place(name):
    return "x through the layer" if name == "x" else name


def square_layer():
    rng = np.random.default_rng(10)
    return {"weight": rng.normal(size=(3, 3)), "bias": rng.normal(size=3)}


BLOCK = "return x + F.relu(F.linear(x, weight, bias))"
BLOCK_BACK = """
d_z = F.relu_backward(d_out, F.linear(x, weight, bias))
d_x, d_weight, d_bias = F.linear_backward(d_z, x, weight)
d_x = d_out + d_x
"""

RESIDUAL = Code(
    "backprop-residual",
    entry="block, block_backward",
    template='''
import numpy as np

from denselayer import functional as F


def block(x, weight, bias):
    """x (N, n), weight (n, n), bias (n,) -> y (N, n)"""
    <<the layer, its ReLU, and the way around both>>


def block_backward(d_out, x, weight, bias):
    """d_out and x (N, n), weight (n, n), bias (n,) -> d_x (N, n), d_weight (n, n), d_bias (n,)"""
    <<the three gradients>>
    return d_x, d_weight, d_bias
''',
    solution=[BLOCK, BLOCK_BACK],
    checks=[
        Values(
            blocks,
            block_by_letters,
            name="block",
            slips=(
                Slip(
                    "way around missing",
                    lambda x, weight, bias: block_by_letters(x, weight, bias) - x,
                    "The way around is missing: `block` adds x to what comes out of the ReLU.",
                ),
                Slip(
                    "ReLU over the sum",
                    lambda x, weight, bias: np.maximum(x + x @ weight.T + bias, 0.0),
                    "The ReLU acts on the sum of both ways: it belongs to the layer alone, and x is added"
                    " after it.",
                ),
                Slip(
                    "no ReLU",
                    lambda x, weight, bias: x + x @ weight.T + bias,
                    "The ReLU is missing: a unit with a negative pre-activation adds nothing to x.",
                ),
                Slip(
                    "weight not transposed",
                    lambda x, weight, bias: x + np.maximum(x @ weight + bias, 0.0),
                    "The weight is not transposed: row i belongs to unit i, so the product is x @ weight.T."
                    " A square"
                    " weight lets the other one run.",
                ),
            ),
        ),
        Values(
            blocks_with_upstream,
            block_gradients,
            name="block_backward",
            returns=("d_x", "d_weight", "d_bias"),
            gradient_of={"d_x": "x", "d_weight": "weight", "d_bias": "bias"},
            doctor=layer_of_the_block,
            slips=(
                Slip(
                    "way around missing",
                    lambda *block: block_gradients(*block, around="")[0],
                    "The way around is missing in `d_x`: x is used twice, so the gradient that went around"
                    " the layer"
                    " is added.",
                    output="d_x",
                ),
                Slip(
                    "gate over both ways",
                    lambda *block: block_gradients(*block, around="d_z")[0],
                    "The gate has cut the way around too: a shut gate stops the gradient of the layer, and"
                    " d_out"
                    " itself goes around it.",
                    output="d_x",
                ),
                Slip(
                    "gate on the output of the block",
                    lambda *block: block_gradients(*block, gate="y"),
                    "The gate looks at the output of the block, in which x has been added: it was set by z"
                    " alone.",
                ),
                Slip(
                    "gate missing in the bias",
                    lambda *block: block_gradients(*block, gate="none")[2],
                    "`d_bias` is the sum of d_out: where the gate is shut the bias has no part in the output."
                    " Sum d_z.",
                    output="d_bias",
                    first=True,
                ),
                Slip(
                    "gate missing in the weight",
                    lambda *block: block_gradients(*block, gate="none")[1],
                    "`d_weight` is made with d_out: where the gate is shut the weight has no part in the"
                    " output. Use d_z.",
                    output="d_weight",
                    first=True,
                ),
                Slip(
                    "around through the weight",
                    lambda d_out, *layer: (
                        np.einsum("no,ni->oi", d_out, layer[0]) + block_gradients(d_out, *layer)[1]
                    ),
                    "d_out is added in `d_weight`, too: the way around does not go through the weight.",
                    output="d_weight",
                ),
                Slip(
                    "around twice",
                    lambda *block: block_gradients(*block)[0] + block[0],
                    "d_out goes around the layer twice in `d_x`: x is added once.",
                    output="d_x",
                ),
            ),
        ),
    ],
    wrong=[
        Wrong(
            "only through the layer",
            [BLOCK, BLOCK_BACK.replace("d_x = d_out + d_x", "")],
            finding="way around missing",
        ),
        Wrong(
            "gate over both ways",
            [BLOCK, BLOCK_BACK.replace("d_x = d_out + d_x", "d_x = d_z + d_x")],
            finding="gate over both ways",
        ),
        Wrong(
            "gate on the output of the block",
            [BLOCK, BLOCK_BACK.replace("F.linear(x, weight, bias)", "block(x, weight, bias)")],
            finding="gate on the output of the block",
        ),
        Wrong(
            "gate on the upstream gradient",
            [
                BLOCK,
                BLOCK_BACK.replace(
                    "F.relu_backward(d_out, F.linear(x, weight, bias))", "np.where(d_out > 0, d_out, 0.0)"
                ),
            ],
            finding="gate-on-upstream",
        ),
        Wrong(
            "weight transposed on the way back",
            [
                BLOCK,
                """
d_z = np.where(x @ weight.T + bias > 0, d_out, 0.0)
d_x = d_out + d_z @ weight.T
d_weight, d_bias = d_z.T @ x, d_z.sum(axis=0)
""",
            ],
            finding="input-weight-transposed",
        ),
        Wrong(
            "ReLU over the sum",
            ["return F.relu(x + F.linear(x, weight, bias))", BLOCK_BACK],
            finding="ReLU over the sum",
        ),
        Wrong(
            "adds into d_out",
            [BLOCK, BLOCK_BACK.replace("d_x = d_out + d_x", "d_out += d_x\nd_x = d_out")],
            says="Your function changes its argument `d_out`.",
        ),
    ],
)


def chains():
    """One unit with small numbers, two units, then four rows of three."""
    rng = np.random.default_rng(9)
    found = [
        Case(d_h=np.array([[1.0]]), x=np.array([[1.0]]), weight=np.array([[0.5]]), bias=np.array([0.0])),
        Case(
            d_h=np.array([[1.0, 0.0]]),
            x=np.array([[1.0, -1.0]]),
            weight=np.array([[0.5, 1.0], [0.0, -1.0]]),
            bias=np.array([0.0, 0.5]),
        ),
    ]
    for rows, width in [(2, 2), (4, 3)]:
        parts = [rng.normal(size=size) for size in [(rows, width), (rows, width), (width, width), (width,)]]
        found.append(Case(**dict(zip(("d_h", "x", "weight", "bias"), parts, strict=True))))
    return found


def three_layers(x, weight, bias):
    for _ in range(3):
        x = np.tanh(x @ weight.T + bias)
    return x


def weighted(d_h, x, weight, bias):
    return (d_h * three_layers(x, weight, bias)).sum()


def measured(d_h, x, weight, bias):
    """The three gradients from complex steps."""

    def slopes(f, at):
        return gradcheck.numerical_gradient(f, at, method="complex")

    return (
        slopes(lambda x: weighted(d_h, x, weight, bias), x),
        slopes(lambda weight: weighted(d_h, x, weight, bias), weight),
        slopes(lambda bias: weighted(d_h, x, weight, bias), bias),
    )


def three_uses(
    d_h,
    x,
    weight,
    bias,
    *,
    uses=(0, 1, 2),
    order=(2, 1, 0),
    slope="output",
    handed_on=True,
    back=None,
    given=None,
):
    """The three gradients by letters, with the mistakes that people make."""
    values = [x]
    for _ in range(3):
        values.append(np.tanh(values[-1] @ weight.T + bias))
    d_weight, d_bias = np.zeros_like(weight), np.zeros_like(bias)
    for use in order:
        seen = {"output": values[use + 1], "input": values[use], "twice": np.tanh(values[use + 1])}[slope]
        d_z = d_h * (1.0 - seen**2)
        if use in uses:
            d_weight += np.einsum("no,ni->oi", d_z, values[use if given is None else given])
            d_bias += np.einsum("no->o", d_z)
        d_x = d_z @ (weight.T if back == "transposed" else weight)
        d_h = d_x if handed_on else d_h
    return d_x, d_weight, d_bias


def by_pushing(three_backward, slopes):
    """What is to check the backward pass must not come from it."""
    _, calls = calls_run(slopes, chains()[1].fresh(), "three_backward")
    if not calls:
        return None
    said = "`slopes` calls `three_backward`, which it is to check: then the two agree even if both are wrong."
    return Fault("values", said, ("Push the weight, and run the network forward.",), finding="not measured")


THREE = """
for use in (2, 1, 0):
    d_z = d_h * (1.0 - values[use + 1] ** 2)
    d_h, of_weight, of_bias = F.linear_backward(d_z, values[use], weight)
    d_weight += of_weight
    d_bias += of_bias
"""
SLOPES = """
step = 1e-6
table = np.zeros_like(weight)
for index in np.ndindex(weight.shape):
    up, down = weight.copy(), weight.copy()
    up[index] += step
    down[index] -= step
    above = np.sum(d_h * three(x, up, bias)[-1])
    below = np.sum(d_h * three(x, down, bias)[-1])
    table[index] = (above - below) / (2.0 * step)
return table
"""

TIED = Code(
    "backprop-tied-code",
    entry="three_backward, slopes",
    template='''
import numpy as np

from denselayer import functional as F


def three(x, weight, bias):
    """The values of the network: x, H1, H2 and H3, each (N, n)."""
    values = [x]
    for _ in range(3):
        values.append(np.tanh(F.linear(values[-1], weight, bias)))
    return values


def three_backward(d_h, x, weight, bias):
    """d_h and x (N, n), weight (n, n), bias (n,) -> d_x (N, n), d_weight (n, n), d_bias (n,)"""
    values = three(x, weight, bias)
    d_weight, d_bias = np.zeros_like(weight), np.zeros_like(bias)
    <<back through the three uses, from the last to the first>>
    return d_h, d_weight, d_bias


def slopes(d_h, x, weight, bias):
    """The slopes (n, n) of np.sum(d_h * H3) by each entry of the weight, by finite differences."""
    <<push each entry of the weight>>
''',
    solution=[THREE, SLOPES],
    checks=[
        Values(
            chains,
            measured,
            name="three_backward",
            returns=("d_x", "d_weight", "d_bias"),
            gradient_of={"d_x": "x", "d_weight": "weight", "d_bias": "bias"},
            doctor=lambda backward: diagnose_layer(three_layers, backward, params=square_layer()),
            words={"d_out": "d_h"},
            rtol=1e-9,
            slips=(
                Slip(
                    "shared-weight-overwritten",
                    lambda *net: three_uses(*net, uses=(0,)),
                    "Only the first use counts: every round of the loop overwrites what the one before has"
                    " found."
                    " Add with +=.",
                ),
                Slip(
                    "bias overwritten",
                    lambda *net: three_uses(*net, uses=(0,))[2],
                    "`d_bias` holds the first use alone: every round overwrites what the one before has"
                    " found. Add with +=.",
                    output="d_bias",
                ),
                Slip(
                    "first input in every use",
                    lambda *net: three_uses(*net, given=0)[1],
                    "In `d_weight` every use is multiplied by x: the input of a use is values[use].",
                    output="d_weight",
                ),
                Slip(
                    "mean of the uses",
                    lambda *net: three_uses(*net)[1] / 3.0,
                    "`d_weight` is the mean of the three uses: a push of the weight moves all three at once,"
                    " so they add.",
                    output="d_weight",
                ),
                Slip(
                    "first to last",
                    lambda *net: three_uses(*net, order=(0, 1, 2)),
                    "The uses are gone through from the first to the last: d_h belongs to the output of the"
                    " last.",
                ),
                Slip(
                    "last use alone",
                    lambda *net: three_uses(*net, uses=(2,)),
                    "`d_weight` and `d_bias` are those of the last use alone; the weight works in three"
                    " places, and"
                    " the three add.",
                ),
                Slip(
                    "slope at the input",
                    lambda *net: three_uses(*net, slope="input"),
                    "1 - tanh² is taken at the input of each use: it belongs to its output, values[use + 1].",
                ),
                Slip(
                    "derivative-at-output",
                    lambda *net: three_uses(*net, slope="twice"),
                    "tanh is applied twice: the values are outputs of tanh already, so the slope is 1 - h².",
                ),
                Slip(
                    "d_h not handed on",
                    lambda *net: three_uses(*net, handed_on=False),
                    "Every use gets the gradient of H3: use 2 gets the input gradient of use 3, and use 1"
                    " that of"
                    " use 2.",
                ),
                Slip(
                    "input-weight-transposed",
                    lambda *net: three_uses(*net, back="transposed"),
                    "The weight is transposed on the way back: it is d_z @ weight. Only a square weight"
                    " lets the"
                    " other one run.",
                ),
            ),
        ),
        Values(
            chains,
            lambda *net: measured(*net)[1],
            name="slopes",
            gradient_of={"": "weight"},
            rtol=1e-4,
            atol=5e-5,
            slips=(
                Slip(
                    "half the way",
                    lambda *net: 2.0 * measured(*net)[1],
                    "The slopes are twice as large as they are: from one push to the other the way is 2 h.",
                ),
                Slip(
                    "one side",
                    lambda *net: 0.5 * measured(*net)[1],
                    "The slopes are half as large as they are: over 2 h, one push goes up and one goes down.",
                ),
                Slip(
                    "transposed",
                    lambda *net: measured(*net)[1].T,
                    "The table is transposed: entry (i, j) belongs to entry (i, j) of the weight.",
                ),
                Slip(
                    "d_h left out",
                    lambda d_h, x, weight, bias: measured(np.ones_like(d_h), x, weight, bias)[1],
                    "These are the slopes of the sum of H3: before it is summed, H3 is multiplied by d_h.",
                ),
                Slip(
                    "not divided",
                    lambda *net: np.zeros_like(net[2]),
                    "The slopes are nearly zero: divide the difference of the sums by the way between the"
                    " pushes.",
                ),
            ),
        ),
        Property(by_pushing),
    ],
    wrong=[
        Wrong(
            "overwrites in every round",
            [THREE.replace("+=", "="), SLOPES],
            finding="shared-weight-overwritten",
        ),
        Wrong(
            "overwrites the weight in every round",
            [THREE.replace("d_weight +=", "d_weight ="), SLOPES],
            finding="shared-weight-overwritten",
        ),
        Wrong(
            "adds up transposes",
            [THREE.replace("+= of_weight", "+= of_weight.T"), SLOPES],
            finding="weight-transposed",
        ),
        Wrong(
            "last use alone",
            [
                """
d_z = d_h * (1.0 - values[3] ** 2)
d_h, d_weight, d_bias = F.linear_backward(d_z, values[2], weight)
for use in (1, 0):
    d_z = d_h * (1.0 - values[use + 1] ** 2)
    d_h = F.linear_backward(d_z, values[use], weight).d_x
""",
                SLOPES,
            ],
            finding="last use alone",
        ),
        Wrong(
            "slope at the input",
            [THREE.replace("values[use + 1] ** 2", "values[use] ** 2"), SLOPES],
            finding="slope at the input",
        ),
        Wrong(
            "tanh once more",
            [THREE.replace("values[use + 1] ** 2", "np.tanh(values[use + 1]) ** 2"), SLOPES],
            finding="derivative-at-output",
        ),
        Wrong(
            "d_h not handed on",
            [THREE.replace("d_h, of_weight", "d_x, of_weight") + "d_h = d_x\n", SLOPES],
            finding="d_h not handed on",
        ),
        Wrong(
            "half the way",
            [THREE, SLOPES.replace("(2.0 * step)", "step")],
            finding="half the way",
        ),
        Wrong(
            "no division",
            [THREE, SLOPES.replace(" / (2.0 * step)", "")],
            finding="not divided",
        ),
        Wrong(
            "asks the backward pass",
            [THREE, "return three_backward(d_h, x, weight, bias)[1]"],
            finding="not measured",
        ),
        Wrong(
            "pushes the weight itself",
            [
                THREE,
                """
step = 1e-6
table = np.zeros_like(weight)
for index in np.ndindex(weight.shape):
    below = np.sum(d_h * three(x, weight, bias)[-1])
    weight[index] += step
    above = np.sum(d_h * three(x, weight, bias)[-1])
    table[index] = (above - below) / step
return table
""",
            ],
            says="Your function changes its argument `weight`.",
        ),
    ],
)
