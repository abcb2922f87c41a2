"""The exercises of the chapter "Is my gradient right?": what is right, and which mistakes have a name."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np

from denselayer import cost, gradcheck
from denselayer.exercises import Explain, Number, Part

from ._complex_step import SHIFT
from ._directions import ADJOINT, SIGNS
from ._pieces import PIECES
from ._steps import FOURTH_ORDER, SECOND
from ._where import WHERE


def cubic():
    x, h = Fraction(2), Fraction(1, 10)
    slope = 3 * x**2
    one_sided = ((x + h) ** 3 - x**3) / h
    two_sided = ((x + h) ** 3 - (x - h) ** 3) / (2 * h)
    to_the_left = (x**3 - (x - h) ** 3) / h
    return Number(
        "check-cubic",
        Part(
            "one_sided",
            one_sided,
            {
                float(to_the_left): "11.41 is the slope of the step to the left; the one-sided slope steps"
                " to x + h.",
                12: "12 is the slope of the tangent. The secant goes through the curve at 2 and at 2.1.",
                12.6: "12.6 is the slope of the tangent plus h/2 times the second derivative; the secant is a"
                " little steeper.",
                float(one_sided * h): "1.261 is the rise; the slope is the rise divided by h.",
            },
            rtol=1e-5,
        ),
        Part(
            "two_sided",
            two_sided,
            {
                float(2 * two_sided): "24.02 is divided by h; the two points are 2h apart.",
                12: "12 is the slope of the tangent; the two-sided slope is a little larger.",
            },
            rtol=1e-5,
        ),
        Part(
            "error_one_sided",
            one_sided - slope,
            {
                float(h / 2 * 6 * x): "0.6 is what the formula says; the error is what you measure:"
                " slope minus 12.",
            },
        ),
        Part(
            "error_two_sided",
            two_sided - slope,
            {float(two_sided): "12.01 is the slope; the error is its distance from 12."},
        ),
        Part(
            "formula_one_sided",
            h / 2 * 6 * x,
            {
                float(one_sided - slope): "0.61 is the error itself; the formula takes the second derivative"
                " at x and comes close.",
                float(h * 6 * x): "1.2 leaves out the 1/2.",
            },
            rtol=1e-5,
        ),
        Part(
            "formula_two_sided",
            h**2 / 6 * 6,
            {
                float(h**2 * 6): "0.06 leaves out the 1/6.",
                float(h**2 / 6 * 6 * x): "0.02 takes the second derivative, 12; the third one is 6.",
            },
        ),
    )


def best_step():
    eps = [2.0**-52, 2.0**-23, 2.0**-10]
    steps = tuple(e ** (1 / 3) for e in eps)
    bounds = tuple(3 / 2 * e / h for e, h in zip(eps, steps, strict=True))
    order = "float64, float32, float16"
    return Number(
        "check-best-step",
        Part(
            "steps",
            steps,
            {
                tuple(map(math.sqrt, eps)): "The square root is for one-sided slopes; for two-sided ones"
                " it is the cube root.",
                tuple((3 * e) ** (1 / 3) for e in eps): "The third derivative is 3, not 1: it cancels the 3"
                " in the formula.",
            },
            rtol=0.02,
            unit=order,
        ),
        Part(
            "bounds",
            bounds,
            {
                tuple(e / h for e, h in zip(eps, steps, strict=True)): "This is the rounding alone; the"
                " truncation adds half as much.",
                tuple(e / h / 2 for e, h in zip(eps, steps, strict=True)): "This is the truncation alone;"
                " the rounding is twice as large.",
            },
            rtol=0.02,
            unit=order,
        ),
        Part(
            "digits_float16",
            -math.log10(bounds[-1]),
            {
                -math.log10(eps[-1]): "3 digits are what float16 has; the slope keeps about two thirds of"
                " them.",
                math.log10(bounds[-1]): "Take the minus: an error of 0.01 leaves two digits.",
            },
            rtol=0.03,
        ),
    )


def errors():
    pairs = [(0.5, 0.25), (3.0, -3.0), (32.0, 1.0), (0.0, 0.2), (1.0000001, 1.0)]
    found = tuple(float(gradcheck.relative_error(claim, slope)) for claim, slope in pairs)
    by_slope = tuple(abs(claim - slope) / abs(slope) for claim, slope in pairs)
    by_sum = tuple(abs(claim - slope) / (abs(claim) + abs(slope)) for claim, slope in pairs)
    absolute = tuple(abs(claim - slope) for claim, slope in pairs)
    one_way = "A pair that is wrong by its sign has the relative error 2."
    return Number(
        "check-errors",
        Part(
            "errors",
            found,
            {
                by_slope: "These are divided by the slope; divide by the larger magnitude of each pair.",
                by_sum: "These are divided by the sum of the magnitudes; divide by the larger one.",
                absolute: "These are the differences; divide each by the larger magnitude of its pair.",
            },
            rtol=0.01,
            unit="five numbers",
        ),
        Part("wrong_sign", 1 + found.index(2.0), {1: one_way, 3: "The third pair is a factor of 32."}),
        Part(
            "missing",
            1 + found.index(1.0),
            {3: "31/32 is nearly 1, but the claim of the third pair is far too large; nothing is missing."},
        ),
        Part(
            "no_mistake",
            5,
            {
                1: "A factor of 2 is a mistake: central differences are right to about seven digits.",
                4: "A claim of 0 against a slope of 0.2 is far above any rounding.",
            },
        ),
        Part("rows", 32, {31: "31 is the difference; a sum is N times the mean."}),
    )


def evaluations():
    widths = [784, 1000, 1000, 10]
    parameters = sum(cost.linear_parameters(i, o) for i, o in pairwise(widths))
    weights = sum(i * o for i, o in pairwise(widths))
    seconds = Fraction(1, 100)
    no_bias = "The biases are parameters, too: there are 2,010 of them."
    return Number(
        "check-cost",
        Part(
            "forward",
            parameters + 1,
            {
                parameters: "1,796,010 is the number of parameters; one evaluation more is needed at the"
                " point itself.",
                weights + 1: no_bias,
                2 * parameters: "Forward differences share the value at the point: one for each parameter"
                " suffices.",
            },
        ),
        Part(
            "central",
            2 * parameters,
            {
                2 * parameters + 1: "Central differences do not use the value at the point itself.",
                parameters: "Each parameter needs two evaluations: one to each side.",
                2 * weights: no_bias,
            },
        ),
        Part(
            "direction",
            2,
            {
                1: "One value is no slope: a direction takes one step forwards and one backwards.",
                2 * 3 * 2: "A direction moves all six arrays at once; it needs no evaluations for each.",
            },
        ),
        Part(
            "forward_seconds",
            (parameters + 1) * seconds,
            {
                float((parameters + 1) * seconds / 3600): "4.99 is the time in hours.",
                float((weights + 1) * seconds): no_bias,
                100 * (parameters + 1): "A hundredth of a second each: divide by 100.",
            },
            rtol=1e-4,
            unit="seconds",
        ),
        Part(
            "central_seconds",
            2 * parameters * seconds,
            {
                float(2 * parameters * seconds / 3600): "9.98 is the time in hours.",
                float(2 * weights * seconds): no_bias,
                200 * parameters: "A hundredth of a second each: divide by 100.",
            },
            rtol=1e-4,
            unit="seconds",
        ),
        Part(
            "direction_seconds",
            2 * seconds,
            {
                2: "2 is the number of evaluations; each takes a hundredth of a second.",
                200: "A hundredth of a second each, so two take less than a second.",
            },
            unit="seconds",
        ),
    )


def by_direction():
    truth, first, second = np.array([[1.0, -2, 0.5], [1, 2, 0.5], [-2, 1, 0.5]])
    directions = np.array([[1.0, 0, 1], [1, 1, 1], [2, 1, -1]])

    def slopes(gradient):
        return tuple((directions @ gradient).tolist())

    order = "three numbers"
    return Number(
        "check-by-direction",
        Part(
            "true_slopes",
            slopes(truth),
            {
                slopes(first): "These are the slopes of the first claim: the true second entry is −2.",
                slopes(second): "These are the slopes of the second claim.",
            },
            unit=order,
        ),
        Part(
            "first_claim",
            slopes(first),
            {
                slopes(first - truth): "These are claimed minus true slopes; asked are the claimed slopes.",
                slopes(truth): "These are the true slopes: the first claim has +2 in its second entry.",
            },
            unit=order,
        ),
        Part(
            "second_claim",
            slopes(second),
            {
                slopes(second - truth): "These are the errors of the slopes; asked are the claimed slopes.",
                slopes(truth): "These are the true slopes: the second claim has the first two entries"
                " exchanged.",
            },
            unit=order,
        ),
        Part(
            "overlooks_first",
            1 + slopes(first - truth).index(0),
            {
                2: "Direction 2 moves the wrong entry of the first claim by 1: its slope is off by 4.",
                3: "Direction 3 moves the wrong entry of the first claim by 1: its slope is off by 4, too.",
            },
        ),
        Part(
            "overlooks_second",
            1 + slopes(second - truth).index(0),
            {
                1: "Direction 1 moves the first entry and not the second, so the errors −3 and 3 do not"
                " cancel.",
                3: "Direction 3 weighs the errors −3 and 3 by 2 and 1, so −3 is left.",
            },
        ),
        Part(
            "finds_both",
            3,
            {
                1: "Direction 1 does not move the entry that is wrong in the first claim.",
                2: "Along direction 2 the two errors of the second claim cancel.",
            },
        ),
    )


def leaky():
    upstream, left, right = -4, Fraction(1, 10), Fraction(1)
    slopes = sorted([upstream * left, upstream * right])
    return Number(
        "check-leaky",
        Part(
            "left",
            upstream * left,
            {
                0.1: "0.1 is the slope of the activation; the upstream gradient −4 multiplies it.",
                0: "0 is the slope of a ReLU; a leaky one has 0.1 on the left.",
                -4: "−4 is the slope to the right, where the activation has the slope 1.",
            },
        ),
        Part(
            "right",
            upstream * right,
            {
                1: "1 is the slope of the activation; the upstream gradient −4 multiplies it.",
                4: "The upstream gradient is negative: the loss falls to the right.",
            },
        ),
        Part(
            "two_sided",
            upstream * (left + right) / 2,
            {
                0.55: "0.55 is the two-sided slope of the activation; the upstream gradient multiplies it.",
                -2: "−2 would be right for a ReLU, with the slope 0 on the left.",
                -4.4: "−4.4 is the sum of the two one-sided slopes; the two-sided one is their mean.",
            },
        ),
        Part(
            "lowest_accepted",
            slopes[0],
            {
                -0.4: "−0.4 is larger than −4.",
                -2.2: "The two-sided slope is one of the claims that are accepted, and not the lowest.",
            },
        ),
        Part(
            "highest_accepted",
            slopes[1],
            {
                0: "0 is right at the corner of a ReLU; here no side has the slope 0.",
                -4: "−4 is smaller than −0.4.",
            },
        ),
        Part(
            "accepts_zero",
            "yes" if slopes[0] <= 0 <= slopes[1] else "no",
            {"yes": "0 does not lie between the two one-sided slopes: both are negative."},
            options=("yes", "no"),
        ),
    )


def factor():
    rows, units, rate = 32, 10, Fraction(4, 10)
    return Number(
        "check-factor",
        Part(
            "b_over_a",
            units,
            {
                rows: "Both A and B divide by the 32 rows; they differ in the units.",
                rows * units: "320 is the factor between A and C.",
                0.1: "A divides by more than B does, so the gradients of B are the larger ones.",
            },
        ),
        Part(
            "c_over_a",
            rows * units,
            {
                rows: "32 is the factor between B and C; A divides by the 10 units, too.",
                units: "10 is the factor between A and B; A divides by the 32 rows, too.",
            },
        ),
        Part(
            "rate_b",
            rate / units,
            {
                float(rate * units): "The gradients of B are larger, so its learning rate must be smaller.",
                float(rate / rows): "0.0125 corrects for the rows; A and B differ in the units.",
            },
        ),
        Part(
            "rate_c",
            rate / (rows * units),
            {
                float(rate / rows): "0.0125 corrects for the rows alone; C does not divide by the units"
                " either.",
                float(rate * rows * units): "The gradients of C are larger, so its learning rate must be"
                " smaller.",
            },
        ),
    )


EXERCISES = [
    cubic(),
    best_step(),
    errors(),
    evaluations(),
    by_direction(),
    leaky(),
    factor(),
    Explain("check-one-row"),
    WHERE,
    FOURTH_ORDER,
    Explain("check-dropout"),
    Explain("check-float32"),
    SIGNS,
    PIECES,
    ADJOINT,
    SHIFT,
    SECOND,
    Explain("check-hiding"),
]
