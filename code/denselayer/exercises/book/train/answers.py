"""The exercises of the chapter "Training": what is right, and which mistakes have a name."""

import math

import numpy as np

from denselayer import functional as F
from denselayer.exercises import Explain, Number, Part

from ._code import FORGOTTEN, OVERFLOW, SMOOTH
from ._modules import OWN_ADAM, PIECES

SCORES = np.log([[1.0, 2.0, 5.0]])
RIGHT = np.array([2])


def entries(array):
    return tuple(np.asarray(array, dtype=float).ravel().tolist())


GRADIENT = F.cross_entropy_backward(SCORES, RIGHT)
SOFTMAX_HAND = Number(
    "train-softmax-hand",
    Part(
        "probabilities",
        entries(F.softmax(SCORES)),
        {
            entries([1, 2, 5]): "Those are the exponentials; divide them by their sum.",
            entries(
                SCORES / SCORES.sum()
            ): "That divides the scores by their sum; take the exponentials first.",
        },
        unit="three numbers",
    ),
    Part(
        "loss",
        float(F.cross_entropy(SCORES, RIGHT)),
        {
            math.log(5 / 8): "The sign is missing: the loss is −log p, and not negative.",
            3 / 8: "That is 1 − p, not −log p.",
            math.log10(8 / 5): "That is the logarithm to base 10; the loss has the natural one.",
        },
    ),
    Part(
        "gradient",
        entries(GRADIENT),
        {
            entries(-GRADIENT): "The sign is turned: the gradient is p − t.",
            entries(F.softmax(SCORES)): "The 1 of the right class is not subtracted.",
        },
        unit="three numbers",
    ),
    Part(
        "gradient in the batch",
        entries(GRADIENT / 10),
        {
            entries(GRADIENT): "The mean over 10 samples divides each gradient by 10.",
            entries(-GRADIENT / 10): "The sign is turned: the gradient is p − t.",
        },
        unit="three numbers",
    ),
)
SAMPLES, BATCH = 50_000, 128
FULL, REST = divmod(SAMPLES, BATCH)
COUNT = Number(
    "train-count",
    Part(
        "steps of an epoch",
        FULL + 1,
        {
            FULL: "390 leaves the last batch out.",
            SAMPLES / BATCH: "A part of a batch takes a step of its own.",
        },
    ),
    Part(
        "samples of the last batch",
        REST,
        {
            BATCH: "The last batch has only what is left.",
            BATCH - REST: "That is how many are missing to a full batch.",
        },
    ),
    Part(
        "steps of 10 epochs",
        10 * (FULL + 1),
        {
            10 * FULL: "That leaves the last batch of each epoch out.",
            math.ceil(
                10 * SAMPLES / BATCH
            ): "Every epoch ends with its own small batch; batches do not run on.",
        },
    ),
    Part("steps without the last batch", FULL, {FULL + 1: "That still counts the last batch."}),
)
CLUELESS = Number(
    "train-clueless",
    Part(
        "10 classes",
        math.log(10),
        {
            1: "1 is the logarithm to base 10; the loss has the natural one.",
            0.1: "0.1 is the probability; the loss is −log 0.1.",
            -math.log(10): "The loss is −log p, and not negative.",
        },
        rtol=2e-3,
    ),
    Part(
        "1,000 classes",
        math.log(1000),
        {
            3: "3 is the logarithm to base 10; the loss has the natural one.",
            0.001: "0.001 is the probability; the loss is −log 0.001.",
        },
        rtol=2e-3,
    ),
    Part(
        "p = 1e-6",
        -math.log(1e-6),
        {
            6: "6 is the logarithm to base 10; the loss has the natural one.",
            math.log(1e-6): "The loss is −log p, and not negative.",
        },
        rtol=2e-3,
    ),
)
CONSTANT = Number(
    "train-constant",
    Part(
        "change of step 1",
        -0.3,
        {
            0.3: "The parameter goes against the slope.",
            -0.15: "v is 0 before the first step: v becomes 0.5 · 0 + 3 = 3.",
        },
    ),
    Part(
        "change of step 2",
        -0.45,
        {
            0.45: "The parameter goes against the slope.",
            -0.75: "That is the change since the start; the change of the step is asked.",
            -0.3: "v still holds half of the first gradient.",
        },
    ),
    Part(
        "change of step 3",
        -0.525,
        {
            0.525: "The parameter goes against the slope.",
            -0.6: "−0.6 is reached only in the end.",
            -1.275: "That is the change since the start; the change of the step is asked.",
        },
    ),
    Part(
        "change of a step in the end",
        -0.6,
        {
            0.6: "The parameter goes against the slope.",
            -6: "v becomes 6; the step is multiplied by the learning rate.",
        },
    ),
    Part(
        "change of a step of plain SGD",
        -0.3,
        {0.3: "The parameter goes against the slope.", -0.6: "Plain SGD has no memory: it takes −0.1 · 3."},
    ),
)
SECOND = 0.01 * 0.01 / 0.19
UNCORRECTED = 0.01 * 0.1 / math.sqrt(0.001)
ADAM_TWO = Number(
    "train-adam-two",
    Part(
        "first step, gradient 0.001",
        -0.01,
        {
            0.01: "The parameter goes against the slope.",
            -1e-5: "Adam divides by the size of the gradient: the step does not depend on it.",
            -0.001: "The bias correction of m is missing: divide by 1 − 0.9.",
            -UNCORRECTED: "Both bias corrections are missing: divide by 1 − 0.9 and by 1 − 0.999.",
        },
    ),
    Part(
        "first step, gradient 1,000",
        -0.01,
        {
            0.01: "The parameter goes against the slope.",
            -10: "Adam divides by the size of the gradient: the step does not depend on it.",
            -0.001: "The bias correction of m is missing: divide by 1 − 0.9.",
            -UNCORRECTED: "Both bias corrections are missing: divide by 1 − 0.9 and by 1 − 0.999.",
        },
    ),
    Part(
        "second step, gradients 1 and −1",
        SECOND,
        {
            -SECOND: "The mean of the gradients is negative, so the parameter grows.",
            0.01: "The mean of the gradients still holds the first one: m = 0.09 − 0.1.",
            0.0001: "The bias correction of m is missing: divide by 1 − 0.9².",
        },
    ),
)
DECAY = Number(
    "train-decay",
    Part(
        "after 10 steps",
        2 * 0.95**10,
        {
            2 * 0.5**10: "The decay is multiplied by the learning rate: the factor is 1 − 0.1 · 0.5.",
            2 - 10 * 0.1: "Each step takes 5% of what is left, not of the start.",
            2 * 0.9**10: "The factor is 1 − 0.1 · 0.5, not 1 − 0.1.",
            0.95**10: "That is the factor of ten steps; the weight starts at 2.",
        },
        rtol=2.5e-3,
    ),
    Part(
        "steps until it is below 1",
        math.floor(math.log(0.5) / math.log(0.95)) + 1,
        {
            13: "After 13 steps it is still above 1.",
            math.log(0.5) / math.log(0.95): "Steps are whole: round up.",
            10: "Each step takes 5% of what is left, not of the start.",
        },
    ),
    Part("the bias", 0, {1: "A decay multiplies: from 0 it goes nowhere."}),
)
TOO_SMALL = Number(
    "train-too-small",
    Part(
        "parameter after a million steps",
        1,
        {0.99: "In exact arithmetic; each single step is rounded back to 1."},
        rtol=1e-9,
    ),
    Part(
        "largest learning rate that moves nothing",
        2.0**-25,
        {
            2.0**-24: "2⁻²⁴ is the distance to the neighbour; from the middle on, a result is rounded to it.",
            2.0**-23: "2⁻²³ is the distance upwards; the step goes down.",
            2.0**-26: "1 − 2⁻²⁶ is rounded to 1, and so is all down to the middle between 1 and 1 − 2⁻²⁴.",
            1e-8: "1e-8 moves nothing, but neither do some that are larger.",
        },
        rtol=1e-2,
    ),
)
LEARN, MINI, EPOCHS = 1150, 36, 25
MINI_STEPS = EPOCHS * math.ceil(LEARN / MINI)
WINNERS = ("batches of 36", "the full batch")
FULL_BATCH = Number(
    "train-full",
    Part(
        "steps with batches of 36",
        MINI_STEPS,
        {
            EPOCHS * (LEARN // MINI): "The last, smaller batch of each epoch takes a step too.",
            MINI_STEPS // EPOCHS: "That is one epoch; there are 25.",
        },
    ),
    Part("steps with the full batch", EPOCHS, {EPOCHS * LEARN: "A full batch takes one step per epoch."}),
    Part(
        "lower loss after 25 epochs",
        WINNERS[0],
        {WINNERS[1]: "Run it: 25 steps do not get far."},
        options=WINNERS,
    ),
    Part(
        "visits of each sample in the longer run",
        MINI_STEPS,
        {
            EPOCHS: "Every step of the full batch visits every"
            " sample, and there are as many steps as the mini-batches took."
        },
    ),
    Part(
        "work of the longer run over that of the mini-batches",
        MINI_STEPS // EPOCHS,
        {1: "As many steps, but each with all samples."},
    ),
)

EXERCISES = [
    SOFTMAX_HAND,
    COUNT,
    CLUELESS,
    CONSTANT,
    ADAM_TWO,
    DECAY,
    TOO_SMALL,
    OVERFLOW,
    Explain("train-last"),
    FORGOTTEN,
    Explain("train-cheat"),
    Explain("train-empty"),
    OWN_ADAM,
    PIECES,
    FULL_BATCH,
    SMOOTH,
    Explain("train-stable-run"),
]
