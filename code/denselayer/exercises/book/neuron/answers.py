"""The exercises of the chapter "The neuron": what is right, and which mistakes have a name."""

from fractions import Fraction

import numpy as np

from denselayer.exercises import Explain, Number, Part

from ._code import BROADCAST, LOOP, SWAPPED
from ._searches import COUNT, ORDERS, TRAIN

X = np.array([2.0, 4.0, 1.0])
WEIGHT = np.array([0.5, -1.0, 2.0])
BIAS = 3.0
OTHER_DAY = np.array([1.0, 0.0, 2.0])


def tuples(array):
    return tuple(np.asarray(array, dtype=float).tolist())


SUM = Number(
    "neuron-sum",
    Part(
        "contributions",
        tuples(WEIGHT * OTHER_DAY + 0.0),
        {
            (0.5, -1, 4): "The second contribution is −1 times 0: the lake is at the door.",
            (0.5, 0, 2): "The third input is 2: the sun counts double.",
        },
    ),
    Part(
        "z",
        WEIGHT @ OTHER_DAY + BIAS,
        {4.5: "4.5 leaves the bias out.", 5.5: "5.5 counts the sun once; the third input is 2."},
    ),
)
TIPPING = Number(
    "neuron-tipping",
    Part(
        "bias",
        -(WEIGHT @ X),
        {
            -1: "−1 is the sum of the contributions; the bias has to bring it back to 0.",
            -2: "−2 is how much the bias 3 has to change; the bias itself is asked.",
        },
    ),
    Part(
        "kilometres",
        WEIGHT[0] * X[0] + WEIGHT[2] * X[2] + BIAS,
        {
            3: "3 leaves the bias out.",
            2: "2 is how much farther than 4 it may be; the distance itself is asked.",
        },
        unit="km",
    ),
)
SCORES = np.array([2, -1.5, 0.25, -4])
RELU = Number(
    "neuron-relu",
    Part(
        "outputs",
        tuples(np.maximum(SCORES, 0)),
        {(2, 1.5, 0.25, 4): "A ReLU does not turn the sign, it puts 0 for what is negative."},
    ),
    Part(
        "slopes",
        tuples(SCORES > 0),
        {
            (2, 0, 0.25, 0): "Those are the outputs; the slope of a ReLU is 0 or 1.",
            (1, -1, 1, -1): "The slope left of 0 is 0, not −1.",
        },
    ),
    Part(
        "inputs that can change the weights",
        (1, 3),
        {
            (3, 1): "Those are the two; give them in the order of the inputs.",
            (0, 2): "Count the inputs from 1.",
            (2, 0.25): "Those are their scores; give the numbers of the inputs.",
            (2, 4): "For those two the slope is 0, and it multiplies the gradient.",
            (1, 2, 3, 4): "A slope of 0 stops the gradient of its input.",
        },
    ),
)
METRES = Number(
    "neuron-metres",
    Part(
        "w_2",
        WEIGHT[1] / 1000,
        {
            -1000: "−1000 multiplies where it should divide: the input is 1000 times as large.",
            -1: "−1 gives scores in which a metre counts like a kilometre.",
        },
    ),
    Part("rate before", X[1], {-1: "−1 is the weight; the rate of z in a weight is its input."}),
    Part("rate after", 1000 * X[1], {4: "4 is the rate before: the input is now in metres."}),
    Part(
        "the limit is smaller by a factor of",
        (4 + 4000.0**2 + 1 + 1) / (X @ X + 1),
        {
            "1/727273": "That is the new limit over the old one; the old over the new is asked.",
            1000: "1000 is the factor of the input; the limit contains its square.",
            1_000_000: "1,000,000 would be right if this input were alone; the others and the 1 count too.",
        },
        rtol=1e-3,
    ),
)
POINTS = np.array([[4.0, 2.0], [0.0, 0.0], [2.0, 1.0]])
LINE = POINTS @ np.array([3.0, 4.0]) - 10
DISTANCE = Number(
    "neuron-points",
    Part(
        "scores",
        tuples(LINE),
        {tuples(LINE + 10): "The bias of −10 is left out.", tuples(LINE + 20): "The bias is −10, not 10."},
    ),
    Part(
        "distances",
        tuples(LINE / 5),
        {
            tuples(LINE / 25): "That divides by the square of the length of w.",
            tuples(np.abs(LINE / 5)): "A signed distance is negative on the other side of the line.",
            tuples(LINE / 7): "The length of (3, 4) is 5, not 7.",
        },
    ),
    Part(
        "distance of x",
        2 / np.sqrt(5.25),
        {
            2: "2 is the score; divide it by the length of w.",
            2 / 5.25: "That divides by the square of the length.",
            2 / np.sqrt(21): "That divides by the length of x; the boundary is at right angles to w.",
        },
    ),
)
RATES = Number(
    "neuron-rates",
    Part(
        "dL/dw",
        (1, 0, 2),
        {
            (0.5, 0, 1): "The 2 of the square is missing: g = 2 (z − t).",
            (0.5, -1, 2): "Those are the weights: the rate in a weight is g times its input.",
        },
    ),
    Part(
        "dL/db",
        1,
        {0.5: "The 2 of the square is missing: g = 2 (z − t).", 3: "3 is the bias; its rate is g."},
    ),
    Part(
        "dL/dx",
        (0.5, -1, 2),
        {
            (1, 0, 2): "Those are the inputs: the rate in an input is g times its weight.",
            (0.25, -0.5, 1): "The 2 of the square is missing: g = 2 (z − t).",
        },
    ),
    Part(
        "w_2 is right",
        "no",
        {"yes": "The rate is 0 because x_2 is 0, whatever w_2 is."},
        options=("yes", "no"),
    ),
)
TWICE = Number(
    "neuron-twice",
    Part(
        "z after one step",
        -1 + 3 * 0.12,
        {
            3 * 0.12: "0.36 is the error z − t that is left.",
            -1 + 3 * 0.56: "The 2 of the square is missing: g = 2 (z − t).",
            -1 + 3 * (1 - 0.04 * 21): "The bias takes a step too: the factor has ‖x‖² + 1 = 22, not 21.",
        },
    ),
    Part(
        "z after two steps",
        -1 + 3 * 0.12**2,
        {
            3 * 0.12**2: "0.0432 is the error z − t that is left.",
            -1 + 3 * 0.56**2: "The 2 of the square is missing: g = 2 (z − t).",
            -1 + 3 * 0.16**2: "The bias takes a step too: the factor has ‖x‖² + 1 = 22, not 21.",
            -1 + 3 * (1 - 2 * 0.88): "The second step starts from the new score; its gradient is smaller.",
        },
    ),
    Part(
        "factor at 0.02",
        1 - 2 * 0.02 * 22,
        {
            0.56: "0.56 leaves the 2 of the square out.",
            0.16: "0.16 leaves the step of the bias out: ‖x‖² + 1 is 22.",
            0.88: "0.88 of the error goes; what remains is asked.",
        },
    ),
    Part(
        "factor at 0.04",
        1 - 2 * 0.04 * 22,
        {
            0.76: "The factor is negative: the score jumps over the target.",
            0.12: "0.12 leaves the 2 of the square out, or is the factor at 0.02.",
            -0.68: "−0.68 leaves the step of the bias out: ‖x‖² + 1 is 22.",
            1.76: "1.76 of the error goes; the factor, 1 minus that, is asked.",
        },
    ),
)
HIT = Number(
    "neuron-hit",
    Part(
        "step size",
        Fraction(1, 44),
        {
            Fraction(1, 22): "1/22 leaves the 2 of the square out.",
            Fraction(1, 42): "1/42 leaves the step of the bias out: ‖x‖² + 1 is 22.",
            Fraction(1, 21): "1/21 leaves out the 2 of the square, and the step of the bias.",
            44: "44 is what is to be divided by: the step size is 1 over it.",
        },
    ),
)
N_INPUTS, N_ROWS = 4096, 1000


def bytes_read(neurons):
    return 4 * (neurons * (N_INPUTS + 1) + N_INPUTS * N_ROWS)


def operations(neurons):
    return 2 * neurons * N_INPUTS * N_ROWS


BOUND = ("memory bound", "compute bound")
REUSE = Number(
    "neuron-reuse",
    Part(
        "operations of one neuron",
        operations(1),
        {
            N_INPUTS
            * N_ROWS: "That counts a multiplication and its addition as one; they are two operations.",
            (2 * N_INPUTS - 1) * N_ROWS: "That leaves the addition of the bias out.",
            (2 * N_INPUTS + 1) * N_ROWS: "4096 products and the bias are added in 4096 additions, not 4097.",
            2 * N_INPUTS: "That is one input; the neuron is asked about 1000.",
        },
    ),
    Part(
        "bytes of one neuron",
        bytes_read(1),
        {
            bytes_read(1) // 4: "That counts numbers; a float32 has 4 bytes.",
            bytes_read(1) - 4: "The bias must be read too.",
            4
            * 2
            * N_INPUTS
            * N_ROWS: "That reads the weights again for every input; at least once is asked.",
        },
        unit="bytes",
    ),
    Part(
        "operations per byte of one neuron",
        operations(1) / bytes_read(1),
        {
            2.0: "2 is the bytes for each operation, or the operations for each number of 4 bytes; the"
            " operations for each byte are asked.",
            0.25: "That counts multiply-adds; each is two.",
        },
        rtol=6e-3,
    ),
    Part(
        "operations of 1000 neurons",
        operations(1000),
        {operations(1): "Each of the 1000 neurons does as many as the one."},
    ),
    Part(
        "bytes of 1000 neurons",
        bytes_read(1000),
        {
            1000 * bytes_read(1): "All neurons read the same inputs; only the parameters are multiplied.",
            bytes_read(1000) - 4000: "The 1000 biases must be read too.",
            bytes_read(1000) - 3996: "Each neuron has a bias of its own.",
            bytes_read(1000) // 4: "That counts numbers; a float32 has 4 bytes.",
        },
        unit="bytes",
    ),
    Part(
        "operations per byte of 1000 neurons",
        operations(1000) / bytes_read(1000),
        {
            operations(1) / bytes_read(1): "The ratio grows: the inputs are read once for all neurons.",
            4 * operations(1000) / bytes_read(1000): "That counts numbers, not bytes: a float32 has 4.",
            operations(1000) / bytes_read(1000) / 2: "That counts multiply-adds; each is two.",
        },
        rtol=6e-3,
    ),
    Part("one neuron is", BOUND[0], {BOUND[1]: "Compare its ratio with 4.8."}, options=BOUND),
    Part("1000 neurons are", BOUND[1], {BOUND[0]: "Compare their ratio with 4.8."}, options=BOUND),
)

EXERCISES = [
    SUM,
    TIPPING,
    RELU,
    Explain("neuron-one-number"),
    Explain("neuron-constant"),
    METRES,
    DISTANCE,
    Explain("neuron-scale"),
    LOOP,
    BROADCAST,
    RATES,
    SWAPPED,
    TWICE,
    HIT,
    Explain("neuron-twins"),
    COUNT,
    Explain("neuron-bump"),
    ORDERS,
    REUSE,
    TRAIN,
]
