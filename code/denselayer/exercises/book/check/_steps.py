"""Better steps: four points, and the central difference of a gradient."""

import numpy as np

from denselayer.doctor import diagnose
from denselayer.exercises import Case, Code, Slip, Values, Wrong


def square(x):
    return x**2


def cube(x):
    return x**3


def fifth_power(x):
    return x**5


def curves():
    """A parabola and a cube, where whole numbers are exact, and e to the x."""
    return [
        Case(f=square, x=1.0, h=1.0),
        Case(f=cube, x=2.0, h=1.0),
        Case(f=cube, x=2.0, h=0.5),
        Case(f=np.exp, x=1.0, h=0.1),
    ]


def _central(f, x, h):
    return (f(x + h) - f(x - h)) / (2 * h)


def four_points(f, x, h):
    """Two central differences, combined such that the term with h squared cancels."""
    return _central(f, x, h) + (_central(f, x, h) - _central(f, x, 2 * h)) / 3


def central(f, x, h):
    return _central(f, x, h)


def one_sided(f, x, h):
    return (f(x + h) - f(x)) / h


def known_slopes():
    """Errors of exactly h, h squared and 4 h to the fourth, and two curves."""
    return [
        Case(method=one_sided, f=square, slope=2.0, x=1.0, h=1.0),
        Case(method=central, f=cube, slope=3.0, x=1.0, h=1.0),
        Case(method=four_points, f=fifth_power, slope=5.0, x=1.0, h=1.0),
        Case(method=central, f=np.sin, slope=np.cos(0.5), x=0.5, h=0.2),
        Case(method=four_points, f=np.exp, slope=np.exp(1.0), x=1.0, h=0.1),
    ]


def digits(method, f, slope, x, h):
    return -np.log10(abs((method(f, x, h / 10) - slope) / (method(f, x, h) - slope)))


def epsilons():
    return [Case(eps=1e-5), Case(eps=float(np.finfo(np.float32).eps)), Case(eps=2.0**-52)]


FOUR_POINTS = """
near, far = f(x + h) - f(x - h), f(x + 2 * h) - f(x - 2 * h)
return (8 * near - far) / (12 * h)
"""
DIGITS = """
steps = h, h / 10
first, second = (abs(method(f, x, s) - slope) for s in steps)
return np.log10(first / second)
"""
BEST = "return eps ** (1 / 5)"
FOURTH_ORDER = Code(
    "check-fourth-order",
    entry="four_points, digits_gained, best_step",
    template='''
import numpy as np


def four_points(f, x, h):
    """The slope of f at x from four points; all are numbers."""
    <<the formula>>


def digits_gained(method, f, slope, x, h):
    """log10 of the error of method(f, x, h) over that of method(f, x, h / 10); slope is the true one."""
    <<the two errors, and the digits between them>>


def best_step(eps):
    """The step h at which h**4 and eps / h are equal."""
    <<the step>>
''',
    solution=[FOUR_POINTS, DIGITS, BEST],
    checks=[
        Values(
            curves,
            four_points,
            name="four_points",
            rtol=1e-9,
            slips=(
                Slip(
                    "two points",
                    _central,
                    "This is the central difference of the two near points; the far points take its error"
                    " away.",
                ),
                Slip(
                    "far points added",
                    lambda f, x, h: (16 * _central(f, x, h) + 4 * _central(f, x, 2 * h)) / 12,
                    "The far points come with the wrong sign: − f(x + 2h) + f(x − 2h).",
                ),
                Slip(
                    "divided by 6h",
                    lambda f, x, h: 2 * four_points(f, x, h),
                    "This is twice the slope: divide by 12h.",
                ),
                Slip(
                    "far points alone",
                    lambda f, x, h: _central(f, x, 2 * h),
                    "This is the central difference of the two far points; the near ones count four times as"
                    " much, with the other sign.",
                ),
                Slip(
                    "times h",
                    lambda f, x, h: h**2 * four_points(f, x, h),
                    "Python reads `/ 12 * h` from the left: it divides by 12 and multiplies by h. Put 12 * h"
                    " in brackets.",
                ),
                Slip(
                    "not divided by h",
                    lambda f, x, h: h * four_points(f, x, h),
                    "The division by h is missing: divide by 12 * h.",
                ),
                Slip(
                    "not divided by 3",
                    lambda f, x, h: 3 * four_points(f, x, h),
                    "This is three times the slope: 4 D(h) − D(2h) has to be divided by 3.",
                ),
            ),
        ),
        Values(
            known_slopes,
            digits,
            name="digits_gained",
            rtol=1e-4,
            slips=(
                Slip(
                    "natural logarithm",
                    lambda *case: digits(*case) * np.log(10),
                    "This is the natural logarithm; digits are counted with log10.",
                ),
                Slip(
                    "slopes for errors",
                    lambda method, f, slope, x, h: np.log10(abs(method(f, x, h) / method(f, x, h / 10))),
                    "These are the slopes themselves; an error is the distance from the true slope.",
                ),
                Slip(
                    "ratio",
                    lambda *case: 10 ** digits(*case),
                    "This is how many times smaller the error is; the digits are its log10.",
                ),
                Slip(
                    "always four points",
                    lambda method, *rest: digits(four_points, *rest),
                    "These are the digits of four points, whatever the method: call `method`.",
                ),
                Slip(
                    "always two points",
                    lambda method, *rest: digits(central, *rest),
                    "These are the digits of two points, whatever the method: call `method`.",
                ),
                Slip(
                    "upside down",
                    lambda *case: -digits(*case),
                    "The quotient is upside down: the error with the step h stands above.",
                ),
            ),
        ),
        Values(
            epsilons,
            lambda eps: np.exp(np.log(eps) / 5),
            name="best_step",
            rtol=1e-6,
            slips=(
                Slip(
                    "cube root",
                    lambda eps: eps ** (1 / 3),
                    "The cube root belongs to two points, where the truncation error is proportional to h².",
                ),
                Slip(
                    "fourth root",
                    lambda eps: eps**0.25,
                    "The fourth root leaves out that the rounding error is divided by h.",
                ),
                Slip(
                    "brackets",
                    lambda eps: eps / 5,
                    "Python reads `eps ** 1 / 5` from the left: put the exponent 1 / 5 in brackets.",
                ),
                Slip(
                    "error for step",
                    lambda eps: eps**0.8,
                    "This is the error at the best step; the step itself is asked.",
                ),
                Slip(
                    "least sum",
                    lambda eps: (eps / 4) ** 0.2,
                    "This is where the sum of the two errors is least; asked is where they are equal.",
                ),
            ),
        ),
    ],
    wrong=[
        Wrong(
            "central difference",
            ["return (f(x + h) - f(x - h)) / (2 * h)", DIGITS, BEST],
            finding="two points",
        ),
        Wrong(
            "adds the far points",
            [FOUR_POINTS.replace("near - far", "near + far"), DIGITS, BEST],
            finding="far points added",
        ),
        Wrong(
            "6h",
            [FOUR_POINTS.replace("12 * h", "6 * h"), DIGITS, BEST],
            finding="divided by 6h",
        ),
        Wrong(
            "forgets brackets",
            [FOUR_POINTS.replace("(12 * h)", "12 * h"), DIGITS, BEST],
            finding="times h",
        ),
        Wrong(
            "np.log",
            [FOUR_POINTS, DIGITS.replace("np.log10", "np.log"), BEST],
            finding="natural logarithm",
        ),
        Wrong(
            "forgets the true slope",
            [FOUR_POINTS, DIGITS.replace(" - slope", ""), BEST],
            finding="slopes for errors",
        ),
        Wrong(
            "upside down",
            [FOUR_POINTS, DIGITS.replace("first / second", "second / first"), BEST],
            finding="upside down",
        ),
        Wrong(
            "the step of two points",
            [FOUR_POINTS, DIGITS, "return eps ** (1 / 3)"],
            finding="cube root",
        ),
        Wrong("forgets the h", [FOUR_POINTS, DIGITS, "return eps ** (1 / 4)"], finding="fourth root"),
        Wrong("brackets of the root", [FOUR_POINTS, DIGITS, "return eps ** 1 / 5"], finding="brackets"),
        Wrong("the error", [FOUR_POINTS, DIGITS, "return eps ** (4 / 5)"], finding="error for step"),
    ],
)


class Known:
    """An analytic function with its derivative, by the name that an example shows."""

    def __init__(self, name, value, slopes):
        self.__name__, self.value, self.slopes = name, value, slopes

    def __call__(self, z):
        return self.value(z)


LINEAR_MAP = np.array([[2.0, 1.0], [1.0, 4.0]])
DOUBLED = Known("doubled", lambda w: 2 * w, lambda w, v: 2 * v)
CUBED = Known("cubed", lambda w: w**3, lambda w, v: 3 * w**2 * v)
TIMES_A_MATRIX = Known("times_a_matrix", lambda w: w @ LINEAR_MAP, lambda w, v: v @ LINEAR_MAP)


def gradients_at_points():
    """Gradients that double, that multiply by the matrix [[2, 1], [1, 4]], and that curve."""
    w, v = np.array([[2.0, -1.0]]), np.array([[1.0, 3.0]])
    return [
        Case(g=DOUBLED, w=np.array([[1.0]]), v=np.array([[3.0]]), h=1.0),
        Case(g=TIMES_A_MATRIX, w=w, v=v, h=0.5),
        Case(g=CUBED, w=w, v=v, h=2.0**-10),
    ]


def linear_layers():
    """One row of one number; two rows; seven rows of four."""
    rng = np.random.default_rng(10)
    found = [Case(w=np.array([[3.0]]), x=np.array([[2.0]]), t=np.array([[5.0]]))]
    for rows, features in [(2, 1), (2, 2), (7, 4)]:
        w, x, t = (rng.integers(-3, 4, s).astype(float) for s in [(1, features), (rows, features), (rows, 1)])
        found.append(Case(w=w, x=x + 0.5, t=t))
    return found


def slopes_of_the_loss(w, x, t):
    """By the derivative of each row's squared error."""
    rows = [2 * (x_n @ w[0] - t_n[0]) * x_n for x_n, t_n in zip(x, t, strict=True)]
    return np.sum(rows, axis=0)[np.newaxis] / len(x)


def of_seven_rows(gradient):
    """The report on the gradient at several weights, for the last of the layers."""
    w, x, t = linear_layers()[-1].fresh()

    def loss(params):
        return np.mean((x @ params["w"].T - t) ** 2)

    return diagnose(loss, {"w": w}, lambda params: {"w": gradient(params["w"], x, t)}, batch_size=len(x))


def _scaled(factor):
    return lambda w, x, t: factor(x) * slopes_of_the_loss(w, x, t)


HESSIAN_TIMES = "return (g(w + h * v) - g(w - h * v)) / (2 * h)"
GRADIENT = """
d_out = F.mse_loss_backward(F.linear(x, w), t)
return F.linear_backward(d_out, x, w).d_weight
"""
SECOND = Code(
    "check-second",
    entry="hessian_times, gradient",
    template='''
import numpy as np

from denselayer import functional as F


def hessian_times(g, w, v, h):
    """H v, an array like v, from two gradients; g(w) is the gradient at w, and v a direction like w."""
    <<the central difference of the gradient>>


def gradient(w, x, t):
    """The gradient, an array like w (1, in), of the mean squared error of x @ w.T.

    x is (N, in) and t (N, 1).
    """
    <<the gradient of the loss in w>>
''',
    solution=[HESSIAN_TIMES, GRADIENT],
    checks=[
        Values(
            gradients_at_points,
            lambda g, w, v, h: g.slopes(w, v),
            name="hessian_times",
            rtol=1e-5,
            slips=(
                Slip(
                    "divided by h",
                    lambda g, w, v, h: 2 * g.slopes(w, v),
                    "This is twice H v: the two points are 2h v apart.",
                ),
                Slip(
                    "times h",
                    lambda g, w, v, h: h**2 * g.slopes(w, v),
                    "Python reads `/ 2 * h` from the left: it divides by 2 and multiplies by h. Put 2 * h in"
                    " brackets.",
                ),
                Slip(
                    "one-sided",
                    lambda g, w, v, h: (g(w + h * v) - g(w)) / h,
                    "This is a one-sided difference, with an error proportional to h: take one gradient on"
                    " each side.",
                ),
                Slip(
                    "one-sided",
                    lambda g, w, v, h: (g(w) - g(w - h * v)) / h,
                    "This is a one-sided difference, with an error proportional to h: take one gradient on"
                    " each side.",
                ),
                Slip(
                    "no direction",
                    lambda g, w, v, h: (g(w + h) - g(w - h)) / (2 * h),
                    "Every entry moves by h: v is left out. The step is h v.",
                ),
                Slip(
                    "brackets",
                    lambda g, w, v, h: g(w + h * v) - g(w - h * v) / (2 * h),
                    "Only the second gradient is divided: put the difference in brackets.",
                ),
                Slip(
                    "v outside",
                    lambda g, w, v, h: (g(w + h) - g(w - h)) / (2 * h) * v,
                    "Every entry moves by h, and v comes afterwards. That is right only for a diagonal H: the"
                    " step is h v.",
                ),
                Slip(
                    "one number",
                    lambda g, w, v, h: np.sum(g.slopes(w, v) * v),
                    "This is v · H v, one number; H v has an entry for each parameter.",
                ),
            ),
        ),
        Values(
            linear_layers,
            slopes_of_the_loss,
            name="gradient",
            gradient_of={"": "w"},
            doctor=of_seven_rows,
            slips=(
                Slip(
                    "no 2",
                    _scaled(lambda x: 0.5),
                    "The 2 of the squared error is missing.",
                ),
                Slip(
                    "no 2, sum over rows",
                    _scaled(lambda x: len(x) / 2),
                    "The factor 2/N of the mean squared error is missing.",
                ),
                Slip(
                    "sign",
                    _scaled(lambda x: -1),
                    "The sign is wrong: the error is the output minus the target.",
                ),
            ),
        ),
    ],
    wrong=[
        Wrong(
            "one-sided",
            ["return (g(w + h * v) - g(w)) / h", GRADIENT],
            finding="one-sided",
        ),
        Wrong("divides by h", [HESSIAN_TIMES.replace("(2 * h)", "h"), GRADIENT], finding="divided by h"),
        Wrong(
            "brackets of 2h",
            [HESSIAN_TIMES.replace("(2 * h)", "2 * h"), GRADIENT],
            finding="times h",
        ),
        Wrong(
            "direction afterwards",
            ["return (g(w + h) - g(w - h)) / (2 * h) * v", GRADIENT],
            finding="v outside",
        ),
        Wrong(
            "forgets the direction",
            ["return (g(w + h) - g(w - h)) / (2 * h)", GRADIENT],
            finding="no direction",
        ),
        Wrong(
            "sums up",
            ["return np.sum((g(w + h * v) - g(w - h * v)) * v) / (2 * h)", GRADIENT],
            finding="one number",
        ),
        Wrong(
            "target minus output",
            [HESSIAN_TIMES, "return 2 / len(x) * (t - x @ w.T).T @ x"],
            finding="sign",
        ),
        Wrong("forgets the 2", [HESSIAN_TIMES, "return (x @ w.T - t).T @ x / len(x)"], finding="no 2"),
        Wrong(
            "forgets the mean",
            [HESSIAN_TIMES, "return 2 * (x @ w.T - t).T @ x"],
            finding="summed-not-averaged",
        ),
        Wrong(
            "divides again",
            [HESSIAN_TIMES, GRADIENT.replace(".d_weight", ".d_weight / len(x)")],
            finding="averaged-twice",
        ),
        Wrong(
            "weights as a column",
            [HESSIAN_TIMES, "return 2 / len(x) * x.T @ (x @ w.T - t)"],
            says="The result has the shape (4, 1) and should have (1, 4).",
        ),
    ],
)
