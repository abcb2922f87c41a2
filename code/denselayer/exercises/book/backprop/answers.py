"""The exercises of the chapter "Backpropagation": what is right, and which mistakes have a name."""

from fractions import Fraction
from itertools import pairwise

import numpy as np

from denselayer import cost
from denselayer import functional as F
from denselayer.exercises import Explain, Number, Part

from ._losses import AVERAGE, SOFTMAX
from ._memory import CHECKPOINT, PER_SAMPLE
from ._nets import RESIDUAL, TIED
from ._steps import EINSUM, LEAKY


def entries(array):
    """The entries of an array, row by row, as exact numbers."""
    return tuple(Fraction(float(entry)).limit_denominator(1000) for entry in np.ravel(array))


def shape_parts(batch=32, ins=4, outs=6):
    """The shapes of a layer and of its gradients, as they come out of the backward pass."""
    x, weight, bias = np.zeros((batch, ins)), np.zeros((outs, ins)), np.zeros(outs)
    y = F.linear(x, weight, bias)
    back = F.linear_backward(y, x, weight)
    columns = {(ins, outs): f"({ins}, {outs}) is the (in, out) storage; here row i belongs to unit i."}
    batched = {
        (batch, ins): "The weight has no batch axis: all samples use the same one.",
        (
            batch,
            outs,
            ins,
        ): "The samples do not keep a gradient each: what they say about the weight is added.",
    }
    of_bias = {
        (ins,): "A bias belongs to a unit, not to an input.",
        (
            batch,
            outs,
        ): "The bias is used in every row, so what the rows say is added: one entry for each unit.",
    }
    transposed = {
        (outs, batch): "A batch is rows: the first axis counts samples.",
        (ins, batch): "A batch is rows: the first axis counts the samples.",
    }
    weight_gradient = {(ins, outs): "This is the transpose: a gradient has the shape of its variable."}
    return [
        Part("x", x.shape, transposed),
        Part("weight", weight.shape, columns),
        Part("bias", bias.shape, of_bias),
        Part("y", y.shape, transposed),
        Part(
            "d_y",
            y.shape,
            {(): "Only the loss is a single number; its gradient by `y` has an entry for each."},
        ),
        Part("d_weight", back.d_weight.shape, weight_gradient | batched),
        Part("d_bias", back.d_bias.shape, of_bias),
        Part(
            "d_x", back.d_x.shape, {(ins,): "Every row of the batch has its own input, and its own gradient."}
        ),
        Part("d_y_size", y.size, {outs: f"{outs} is one row; there are {batch}."}),
        Part(
            "d_weight_size",
            back.d_weight.size,
            {
                cost.linear_parameters(ins, outs): "This counts the biases too.",
                batch * back.d_weight.size: "The samples share the weight, and its gradient has its shape.",
            },
        ),
        Part("d_bias_size", back.d_bias.size, {batch * outs: "The bias has one entry for each unit."}),
        Part("d_x_size", back.d_x.size, {ins: f"{ins} is one row; there are {batch}."}),
    ]


HAND = {
    "x": np.array([[1.0, -2.0]]),
    "weight": np.array([[2.0, -1.0], [0.0, 3.0]]),
    "d_out": np.array([[4.0, -1.0]]),
}
BY_HAND = F.linear_backward(**HAND)
WITH_TRANSPOSE = entries(HAND["d_out"] @ HAND["weight"].T)


def mse_parts():
    """The mean squared error on paper, and its gradient with the mean and with the sum."""
    y = np.array([[1.0, 4.0], [0.0, 2.0], [3.0, 3.0]])
    target = np.array([[1.0, 1.0], [3.0, 2.0], [0.0, 6.0]])
    difference, summed = y - target, F.mse_loss(y, target, reduction="sum")
    of_sum = F.mse_loss_backward(y, target, reduction="sum")
    by_columns = "That is written column by column; row by row is asked."
    return [
        Part(
            "loss",
            F.mse_loss(y, target),
            {
                summed: "36 is the sum of the squares; the mean divides it by their number.",
                summed / 3: "12 divides by the 3 rows; the mean runs over all 6 entries.",
                summed / 6 / 2: "3 has a factor 1/2 that this loss has not.",
            },
        ),
        Part(
            "d_mean",
            entries(F.mse_loss_backward(y, target)),
            {
                entries(of_sum / 3): "This divides by the 3 rows; the mean runs over all 6 entries.",
                entries(difference / 6): "The derivative of a square is twice its base: the 2 is missing.",
                entries(difference): "These are the differences; the factor is 2/m, and m is 6.",
                entries(F.mse_loss_backward(y, target).T): by_columns,
                entries(-of_sum / 6): "The sign is wrong: the output minus the target, not the other way.",
            },
        ),
        Part(
            "d_sum",
            entries(of_sum),
            {
                entries(difference): "The derivative of a square is twice its base: the 2 is missing.",
                entries(of_sum.T): by_columns,
            },
        ),
    ]


def gate_parts():
    """Four gates on paper, right and wrong."""
    z, d_a = np.array([-1.0, 3.0, 0.0, 0.5]), np.array([2.0, -5.0, 1.0, 0.25])
    right, wrong = F.relu_backward(d_a, z), np.where(d_a > 0, d_a, 0.0)
    differ = np.flatnonzero(right != wrong)
    return [
        Part(
            "d_z",
            entries(right),
            {
                entries(wrong): "This keeps what is positive in d_a; the gate asks whether z is.",
                entries(np.where(z >= 0, d_a, 0.0)): "At z = 0, unit 3, the gate counts as shut.",
                entries(F.relu(z)): "That is the output of the ReLU; the question is what comes back.",
            },
        ),
        Part(
            "wrong_gate",
            entries(wrong),
            {
                entries(right): "This is the right gate; the wrong one looks at d_a alone.",
                entries(np.where((z > 0) & (d_a > 0), d_a, 0.0)): "The wrong gate does not look at z at all.",
            },
        ),
        Part(
            "differ",
            entries(differ + 1),
            {
                entries(differ): "Count the units from 1.",
                (4,): "Unit 4 is the one where the two agree.",
                (1, 2): "Look at unit 3: at z = 0 the right gate is shut, and d_a is positive there.",
            },
        ),
    ]


def storage_parts():
    """The layer on paper, stored as (in, out)."""
    stored = HAND["weight"].T
    d_stored, d_x = HAND["x"].T @ HAND["d_out"], HAND["d_out"] @ stored.T
    return [
        Part(
            "weight",
            entries(stored),
            {
                entries(stored.T): "This is still (out, in): in (in, out) each unit owns a column.",
                entries(stored[::-1]): "The rows have changed places; each unit becomes a column.",
            },
        ),
        Part(
            "d_weight",
            entries(d_stored),
            {
                entries(
                    d_stored.T
                ): "A gradient has the shape of its variable: it is transposed with the weight."
            },
        ),
        Part("d_bias", entries(BY_HAND.d_bias), {(-1, 4): "The units keep their order."}),
        Part(
            "d_x",
            entries(d_x),
            {WITH_TRANSPOSE: "This is d_y @ V with the new weight V; in (in, out) storage it is d_y @ V.T."},
        ),
        Part(
            "changed",
            "weight and d_weight",
            {
                "weight": "A gradient has the shape of its variable: what happens to d_weight?",
                "weight, d_weight and d_x": "The layer computes the same function of x, so d_x is the same.",
                "all four": "The layer computes the same function of x and of the bias.",
                "none": "Compare the weight with the one before.",
            },
            options=("none", "weight", "weight and d_weight", "weight, d_weight and d_x", "all four"),
        ),
    ]


def two_parts():
    """Two layers on paper, right and with four mistakes."""
    right, no_gate, gate_forgotten_forward = two_layers(), two_layers(gate=False), two_layers(kept="z")
    no_gate_says = "In row 2 the gate of unit 2 is shut: nothing passes there."
    twice_says = "The loss has divided by m = 2 already; no layer divides again."
    return [
        Part(
            "loss",
            right["loss"],
            {2 * right["loss"]: "2 is the sum of the two squares; the mean divides it by 2."},
        ),
        Part(
            "d_weight2",
            entries(right["weight2"]),
            {
                entries(gate_forgotten_forward["weight2"]): "This uses Z: the input of layer 2 is H.",
                entries(2 * right["weight2"]): "The mean divides by m = 2: the factor 2/m is 1.",
                entries(right["weight2"] / 2): twice_says,
            },
        ),
        Part(
            "d_bias2",
            entries(right["bias2"]),
            {
                entries(right["d_y"]): "Both rows use the one bias, so its gradient is their sum.",
                (2,): "The two entries have different signs; they are added with their signs.",
            },
        ),
        Part(
            "d_weight1",
            entries(right["weight1"]),
            {entries(no_gate["weight1"]): no_gate_says, entries(right["weight1"] / 2): twice_says},
        ),
        Part(
            "d_bias1",
            entries(right["bias1"]),
            {entries(no_gate["bias1"]): no_gate_says, entries(right["bias1"] / 2): twice_says},
        ),
        Part(
            "d_x",
            entries(right["x"]),
            {
                entries(no_gate["x"]): no_gate_says,
                entries(
                    right["x"].sum(axis=0)
                ): "Each row has its own input, so here nothing is added over rows.",
            },
        ),
    ]


def two_layers(gate=True, kept="h"):
    """All gradients of the network on paper; without the gate going back, or with ``z`` kept for layer 2."""
    x, target = np.array([[1.0], [3.0]]), np.array([[4.0], [7.0]])
    weight1, weight2 = np.array([[1.0], [-2.0]]), np.array([[2.0, 1.0]])
    z = F.linear(x, weight1, np.array([0.0, 5.0]))
    h = F.relu(z)
    y = F.linear(h, weight2, np.zeros(1))
    d_y = F.mse_loss_backward(y, target)
    second = F.linear_backward(d_y, h if kept == "h" else z, weight2)
    d_z = F.relu_backward(second.d_x, z) if gate else second.d_x
    first = F.linear_backward(d_z, x, weight1)
    return {
        "loss": F.mse_loss(y, target),
        "d_y": d_y,
        "weight2": second.d_weight,
        "bias2": second.d_bias,
        "weight1": first.d_weight,
        "bias1": first.d_bias,
        "x": first.d_x,
    }


def count_parts(batch=64, widths=(784, 1000, 1000, 10)):
    """The operations of a network, forward and backward."""
    pairs = list(pairwise(widths))
    forward = sum(cost.linear_operations(batch, *pair) for pair in pairs)
    backward = sum(cost.linear_backward_operations(batch, *pair) for pair in pairs)
    bottom = cost.linear_operations(batch, *pairs[0])
    skipped = backward - bottom
    return [
        Part(
            "forward",
            forward,
            {
                forward // 2: "This counts the multiplications alone; each comes with an addition.",
                forward // batch: "This is one row; the batch has 64.",
                bottom: "This is the bottom layer alone; there are three.",
            },
            unit="operations",
        ),
        Part(
            "backward_all",
            backward,
            {
                forward: "This counts one product for each layer; going backward there are two.",
                backward + forward: "This counts the forward pass too.",
            },
            unit="operations",
        ),
        Part(
            "backward_bottom_skipped",
            skipped,
            {
                backward - 2 * bottom: "The bottom layer still needs the gradient of its weight.",
                forward: "This skips the input gradient of every layer; the two upper ones are needed.",
            },
            unit="operations",
        ),
        Part(
            "ratio_all",
            Fraction(backward, forward),
            {
                1: "Going backward each layer has two products of the size of its forward product.",
                3: "3 is forward and backward together against forward.",
            },
        ),
        Part(
            "ratio_bottom_skipped",
            Fraction(skipped, forward),
            {
                1: "Only the bottom layer skips its input gradient, not all three.",
                "5/3": "5 products against 3 holds for layers of equal size; the bottom layer is a large"
                " one.",
            },
        ),
    ]


EXERCISES = [
    Number("backprop-shapes", *shape_parts()),
    Number(
        "backprop-hand",
        Part(
            "d_weight",
            entries(BY_HAND.d_weight),
            {
                entries(
                    BY_HAND.d_weight.T
                ): "This is the transpose: row i belongs to unit i, as in the weight.",
                entries(
                    HAND["d_out"].T * HAND["weight"]
                ): "What multiplies W going forward is the input, not W.",
            },
        ),
        Part(
            "d_bias",
            entries(BY_HAND.d_bias),
            {
                entries(
                    HAND["x"]
                ): "The input plays no part: a push of the bias moves the output by as much.",
                (3,): "The sum runs over samples, not over units; here there is one sample.",
            },
        ),
        Part(
            "d_x",
            entries(BY_HAND.d_x),
            {
                WITH_TRANSPOSE: "This is d_y @ W.T, which has the right shape here and is wrong: it is d_y"
                " @ W.",
                entries(HAND["x"] @ HAND["weight"].T): "That is the output of the layer, without its bias.",
            },
        ),
    ),
    Number("backprop-mse", *mse_parts()),
    Number("backprop-gate", *gate_parts()),
    Number("backprop-storage", *storage_parts()),
    Number("backprop-two", *two_parts()),
    Explain("backprop-why-sum"),
    Explain("backprop-dead"),
    EINSUM,
    LEAKY,
    Number("backprop-count", *count_parts()),
    Explain("backprop-symmetric"),
    AVERAGE,
    SOFTMAX,
    RESIDUAL,
    TIED,
    Explain("backprop-rank"),
    CHECKPOINT,
    PER_SAMPLE,
]
