"""The exercises of the chapter "Between the layers": what is right, and which mistakes have a name."""

from fractions import Fraction
from itertools import pairwise

import numpy as np

from denselayer import cost
from denselayer import functional as F
from denselayer.exercises import Explain, Number, Part

from ._code import ELU, FOLD, TANH_SIGMOID
from ._training import LEAKY_GAIN, ORTHOGONAL, SADDLE

W1, B1 = np.array([[1.0, 2], [0, -1], [3, 1]]), np.array([1.0, 0, -2])
W2, B2 = np.array([[2.0, 0, 1], [1, -1, 0]]), np.array([0.0, 4])
PROBE = np.array([1.0, -1.0])


def entries(array):
    return tuple(np.asarray(array, dtype=float).ravel().tolist())


MERGE = Number(
    "between-merge",
    Part(
        "weight, row by row",
        entries(W2 @ W1),
        {entries((W2 @ W1).T): "That is the transpose, read column by column."},
    ),
    Part(
        "bias",
        entries(W2 @ B1 + B2),
        {
            entries(W2 @ B1): "The bias of the second layer is left out.",
            entries(B2): "The bias of the first layer is left out: it goes through the second weight.",
        },
    ),
    Part(
        "output for (1, −1)",
        entries(W2 @ (W1 @ PROBE + B1) + B2),
        {entries(W2 @ W1 @ PROBE): "The bias is left out."},
    ),
)
WIDTHS = [100, 20, 50, 5, 80]
RANKS = Number(
    "between-ranks",
    Part(
        "largest rank",
        min(WIDTHS),
        {
            80: "80 is the width of the output; the signal has passed a narrower place before.",
            20: "A later layer is narrower than 20.",
        },
    ),
    Part(
        "parameters of the layers",
        sum(cost.linear_parameters(*pair) for pair in pairwise(WIDTHS)),
        {sum(a * b for a, b in pairwise(WIDTHS)): "That leaves the biases out."},
    ),
    Part(
        "parameters of the merged layer",
        cost.linear_parameters(100, 80),
        {8000: "8,000 leaves the 80 biases out.", 8100: "8,100 counts a bias for each input."},
    ),
    Part(
        "directions lost at least",
        100 - min(WIDTHS),
        {
            80: "80 is 100 − 20; a later layer is narrower.",
            5: "5 is how many can reach the output.",
            20: "Not 100 − 80: the narrowest place decides.",
        },
    ),
)


def slope(name, **options):
    return float(getattr(F, f"{name}_backward")(np.ones(1), np.zeros(1), **options)[0])


SLOPES = Number(
    "between-slopes",
    Part(
        "ReLU",
        slope("relu"),
        {
            1: "1 is the slope right of 0; at 0 the convention is 0.",
            0.5: "No: 0.5 lies between the two slopes, and the convention takes the left one.",
        },
    ),
    Part(
        "leaky ReLU with α = 0.01",
        0.01,
        {
            1: "1 is the slope right of 0; at 0 the convention is α.",
            0: "0 is the convention of the plain ReLU.",
        },
    ),
    Part(
        "sigmoid",
        slope("sigmoid"),
        {0.5: "0.5 is the value at 0, not the slope.", 1: "1 is the slope of tanh."},
    ),
    Part(
        "tanh",
        slope("tanh"),
        {0: "0 is the value at 0, not the slope.", 0.25: "0.25 is the slope of the sigmoid."},
    ),
    Part(
        "softplus", slope("softplus"), {np.log(2): "That is the value at 0; the slope is the sigmoid of 0."}
    ),
    Part(
        "SiLU",
        slope("silu"),
        {
            0: "0 is the value at 0; the product rule gives σ(0) + 0 · σ′(0).",
            0.25: "0.25 is the slope of σ, which is multiplied by z = 0.",
        },
    ),
    Part("GELU", slope("gelu"), {0: "0 is the value at 0, not the slope."}),
    Part("ten layers of sigmoid", slope("sigmoid") ** 10, {2.5: "Slopes are multiplied, not added."}),
    Part("ten layers of tanh", slope("tanh") ** 10, {10: "Slopes are multiplied, not added."}),
    Part("ten layers of SiLU", slope("silu") ** 10, {5: "Slopes are multiplied, not added."}),
    Part("ten layers of ReLU", slope("relu") ** 10, {1: "That holds for open gates; at 0 the gate is shut."}),
)
BOX_WEIGHT, LOW, HIGH = np.array([1.0, -2.0, 0.5]), np.array([0.0, 0.0, -1.0]), np.array([2.0, 1.0, 1.0])
LARGEST = float(BOX_WEIGHT @ np.where(BOX_WEIGHT > 0, HIGH, LOW))
BOX = Number(
    "between-box",
    Part(
        "largest pre-activation",
        LARGEST - 3,
        {
            float(BOX_WEIGHT @ HIGH)
            - 3: "That takes the upper end of every input; for a negative weight the lower end gives more.",
            float(BOX_WEIGHT @ np.where(BOX_WEIGHT < 0, HIGH, LOW)) - 3: "That is the smallest one.",
            LARGEST: "The bias of −3 is left out.",
        },
    ),
    Part("dead", "yes", {"no": "Its largest pre-activation is negative."}, options=("yes", "no")),
    Part(
        "not dead for a bias above",
        -LARGEST,
        {
            0: "The inputs add up to more than 0 at their best, so less is enough.",
            0.5: "The bias has to rise by 0.5; where does it end?",
        },
    ),
)
VARIANCES = {"He": 2 / 100, "Xavier": 2 / 500, "PyTorch": 1 / 300}


def parts_of_variance():
    for name, v in VARIANCES.items():
        yield Part(
            f"deviation of {name}",
            v**0.5,
            {v: "That is the variance; the standard deviation is its square root."},
        )
    for name, v in VARIANCES.items():
        forward = {400 * v: "That is the factor going backward: a unit adds 100 products."}
        yield Part(f"forward factor of {name}", 100 * v, forward)
    for name, v in VARIANCES.items():
        backward = {100 * v: "That is the factor going forward: an input reaches 400 units."}
        yield Part(f"backward factor of {name}", 400 * v, backward)


VARIANCE = Number("between-variance", *parts_of_variance())
BY_TURNS = {
    4.0**10: "The factor is 4 only in every second layer, and 1/4 in the others.",
    0.25**10: "The factor is 1/4 only in every second layer, and 4 in the others.",
}
BY_TURN_WIDTHS = [512, 128] * 10 + [512]


def by_turns(chosen, counted):
    factors = []
    for sides in pairwise(BY_TURN_WIDTHS):
        factors.append(sides[counted] * 2 / sides[chosen] / 2)
    return float(np.prod(factors))


ALTERNATE = Number(
    "between-widths",
    Part("forward with 2/n_in", by_turns(0, 0), {0.5**20: "The ReLU's one half is made up for by the 2."}),
    Part("backward with 2/n_in", by_turns(0, 1), BY_TURNS),
    Part("forward with 2/n_out", by_turns(1, 0), BY_TURNS),
    Part("backward with 2/n_out", by_turns(1, 1), {0.5**20: "The ReLU's one half is made up for by the 2."}),
    Part(
        "it matters much",
        "no",
        {"yes": "Multiply the factors of two layers in a row."},
        options=("yes", "no"),
    ),
)
D, R, N = 1024, 64, 32
LORA = Number(
    "between-lora",
    Part(
        "fewer parameters for r below d times",
        Fraction(1, 2),
        {
            1: "At r = d the two layers have twice as many: there are two of them.",
            512: "512 is half of 1024: which share of any d is it?",
            2: "d is more than 2 times r; what is r in terms of d?",
        },
    ),
    Part(
        "operations of one layer for 32 rows",
        cost.linear_operations(N, D, D),
        {cost.linear_operations(N, D, D) // 2: "That counts a multiplication and its addition as one."},
    ),
    Part(
        "operations of two layers for 32 rows",
        cost.linear_operations(N, D, R) + cost.linear_operations(N, R, D),
        {cost.linear_operations(N, D, R): "That is one of the two layers."},
    ),
    Part(
        "share that remains",
        2 * R / D,
        {R / D: "That counts one of the two layers.", 1 - 2 * R / D: "That is the share that is saved."},
    ),
    Part(
        "largest rank", R, {D: "The signal passes through 64 numbers.", 2 * R: "Ranks of factors do not add."}
    ),
)

EXERCISES = [
    MERGE,
    RANKS,
    SLOPES,
    BOX,
    VARIANCE,
    Explain("between-tower"),
    FOLD,
    ELU,
    TANH_SIGMOID,
    Explain("between-revive"),
    Explain("between-shift"),
    LEAKY_GAIN,
    ALTERNATE,
    SADDLE,
    ORTHOGONAL,
    LORA,
    Explain("between-one-unit"),
]
