"""The complex step through a stable cross entropy."""

import inspect

import numpy as np

from denselayer.exercises import Case, Code, Fault, Property, Slip, Values, Wrong

from ._steps import Known


def scores():
    """Real rows, two of them with large scores, and complex ones whose largest score has a large step."""
    return [
        Case(z=np.array([0.0, 0.0]), label=0),
        Case(z=np.array([2.0, 1.0, -1.0]), label=2),
        Case(z=np.array([0.0 + 1.0j, 0.0]), label=1),
        Case(z=np.array([1.0, 2.0 + 0.5j, 0.5 - 0.25j]), label=0),
        Case(z=np.array([1000.0, 999.0, 998.0]), label=1),
        Case(z=np.array([1000.0, 0.0]), label=1),
        Case(z=np.array([-1000.0, -1001.0]), label=0),
    ]


def log_sum_exp(z, label):
    """Differences to the right class alone; where one is large, the largest is taken out by hand."""
    gaps = z - z[label]
    top = int(np.argmax(gaps.real))
    others = np.delete(gaps, top) - gaps[top]
    return gaps[top] + np.log1p(np.sum(np.exp(others)))


def _shifted(inside, outside):
    return lambda z, label: np.log(np.sum(np.exp(z - inside(z)))) + outside(z) - z[label]


def _largest(z):
    return z.max()


def _real_largest(z):
    return z.real.max()


SUM_OF_CUBES = Known("sum_of_cubes", lambda z: np.sum(z**3), lambda z: 3 * z**2)
PRODUCT = Known("product", np.prod, lambda z: np.prod(z) / z)
SUM_OF_EXPONENTIALS = Known("sum_of_exponentials", lambda z: np.sum(np.exp(z)), np.exp)


def analytic():
    return [
        Case(f=SUM_OF_CUBES, z=np.array([2.0])),
        Case(f=PRODUCT, z=np.array([2.0, 3.0])),
        Case(f=SUM_OF_EXPONENTIALS, z=np.array([0.5, -1.0, 2.0])),
    ]


def _all_entries_at_once(f, z):
    return np.full(len(z), np.sum(f.slopes(z)))


def large_scores(cross_entropy, slopes):
    """Scores whose exponentials overflow, and a class whose probability rounds to zero."""
    if np.isnan(_number(cross_entropy(np.array([0.0, 1.0]), 0))):
        return Fault("nan", "`cross_entropy` is nan.", (), "z = [0, 1], label = 0, right 1.313262")
    if _infinite(cross_entropy(np.array([1000.0, 999.0]), 0)):
        advice = "Subtract the largest score from all of them before you take exponentials."
        said = "Scores of 1,000 are too large for it: e to the 1,000 is infinite in float64."
        return Fault("nan", said, (advice,), "z = [1000, 999], label = 0, right 0.313262", "overflow")
    if _infinite(cross_entropy(np.array([-1000.0, -1001.0]), 0)):
        advice = "The largest magnitude is not the largest score: shift by the largest score."
        said = "Scores of −1,000 are too small for it: every exponential is 0, and log 0 is infinite."
        return Fault("nan", said, (advice,), "z = [-1000, -1001], label = 0, right 0.313262", "underflow")
    if _infinite(cross_entropy(np.array([1000.0, -1000.0]), 0)):
        advice = "Subtract the largest score: with the mean or the least one, an exponent above 0 is left."
        said = "With scores of 1,000 and −1,000 an exponential is still infinite: what is subtracted?"
        return Fault("nan", said, (advice,), "z = [1000, -1000], label = 0, right 0", "shift too small")
    if _infinite(cross_entropy(np.array([1000.0, 0.0]), 1)):
        advice = "Take the logarithm of the sum, and subtract the score of the right class from it."
        said = "A probability that rounds to 0 has no logarithm: the cross entropy here is 1,000."
        return Fault("nan", said, (advice,), "z = [1000, 0], label = 1, right 1000", "logarithm of zero")
    return None


def _number(value):
    """The value if it is a number; what else an answer may return is told by the comparison of values."""
    return value if isinstance(value, int | float | complex | np.number) else 0.0


def _infinite(value):
    return not np.isfinite(_number(value))


def steps_are_imaginary(cross_entropy, slopes):
    """What `slopes` hands to the function whose slopes it measures."""
    here, seen = np.array([1.0, 2.0]), []

    def watched(z):
        seen.append(np.array(z))
        return np.sum(np.asarray(z, dtype=complex) ** 2)

    found = slopes(watched, here.copy())
    if inspect.isgenerator(found):
        list(found)
    if not seen:
        return Fault("values", "Your `slopes` never calls f.", finding="never calls f")
    if any(map(np.iscomplexobj, seen)):
        return _too_large(max(np.abs(z.imag).max() for z in seen))
    if all(np.array_equal(z, here) for z in seen):
        said = "The step does not arrive: f gets z itself. A float array drops an imaginary part, and a real"
        said += " step of 1e-20 is rounded away."
        return Fault("values", said, ("Copy z as complex: `z.astype(complex)`.",), finding="step lost")
    advice = "Step sideways: make a complex copy of z, and add 1j * h to one entry."
    said = "Your `slopes` hands real numbers to f; the complex step moves an entry by 1j * h."
    return Fault("values", said, (advice,), finding="no complex step")


def _too_large(step):
    if step <= 1e-9:
        return None
    advice = "Nothing is subtracted, so nothing is lost with a tiny step: take 1e-20, as asked."
    said = f"The step is {step:.0e}, and the truncation error is proportional to its square."
    return Fault("values", said, (advice,), finding="step too large")


CROSS_ENTROPY = """
shift = z.real.max()
return np.log(np.sum(np.exp(z - shift))) + shift - z[label]
"""
SLOPES = """
h, found = 1e-20, np.zeros(len(z))
for k in range(len(z)):
    moved = z.astype(complex)
    moved[k] += 1j * h
    found[k] = f(moved).imag / h
return found
"""
DIFFERENCES = """
found = np.zeros(len(z))
for k in range(len(z)):
    step = 1e-5 * (np.arange(len(z)) == k)
    found[k] = (f(z + step) - f(z - step)) / 2e-5
return found
"""
SHIFT = Code(
    "check-shift",
    entry="cross_entropy, slopes",
    template='''
import numpy as np


def cross_entropy(z, label):
    """The cross entropy of one row of scores z (K,), real or complex, and the right class; a number."""
    <<a stable formula that keeps the imaginary part>>


def slopes(f, z):
    """The slopes (K,) of f in each entry of a real z (K,), by the complex step; f(z) is a number."""
    <<one complex step for each entry>>
''',
    solution=[CROSS_ENTROPY, SLOPES],
    checks=[
        Property(large_scores),
        Values(
            scores,
            log_sum_exp,
            name="cross_entropy",
            rtol=1e-12,
            slips=(
                Slip(
                    "mixed shifts",
                    _shifted(_largest, _real_largest),
                    "Inside, the shift has an imaginary part, and outside it has none: the two do not cancel."
                    " Use one number in both places.",
                ),
                Slip(
                    "mixed shifts",
                    _shifted(_real_largest, _largest),
                    "Outside, the shift has an imaginary part, and inside it has none: the two do not cancel."
                    " Use one number in both places.",
                ),
                Slip(
                    "imaginary part dropped",
                    lambda z, label: log_sum_exp(z, label).real,
                    "The imaginary part is dropped, and with it the slope: every complex step gives 0.",
                ),
                Slip(
                    "scores made real",
                    lambda z, label: log_sum_exp(z.real, label),
                    "The scores are made real first, and with the imaginary part the slope is gone.",
                ),
                Slip(
                    "sign",
                    lambda z, label: -log_sum_exp(z, label),
                    "The sign is turned: this is the logarithm of the probability, and the loss is minus it.",
                ),
                Slip(
                    "probability",
                    lambda z, label: np.exp(-log_sum_exp(z, label)),
                    "This is the probability of the right class; the loss is minus its logarithm.",
                ),
                Slip(
                    "shift not added",
                    lambda z, label: log_sum_exp(z, label) - z.real.max(),
                    "The shift is subtracted inside and not added outside the logarithm.",
                ),
                Slip(
                    "right score left out",
                    lambda z, label: log_sum_exp(z, label) + z[label],
                    "The score of the right class is not subtracted.",
                ),
            ),
        ),
        Property(steps_are_imaginary),
        Values(
            analytic,
            lambda f, z: f.slopes(z),
            name="slopes",
            rtol=1e-12,
            atol=0.0,
            slips=(
                Slip(
                    "imaginary part lost",
                    lambda f, z: np.zeros(len(z)),
                    "All slopes are zero: the step did not arrive. A float array drops an imaginary part:"
                    " copy z as complex.",
                ),
                Slip(
                    "not divided",
                    lambda f, z: 1e-20 * f.slopes(z),
                    "This is the imaginary part itself; the slope is the imaginary part divided by h.",
                ),
                Slip(
                    "real part",
                    lambda f, z: np.full(len(z), f(z) / 1e-20),
                    "This is the real part over h: the value of f. The slope stands in the imaginary part.",
                ),
                Slip(
                    "sum of the slopes",
                    lambda f, z: np.sum(f.slopes(z)),
                    "This is one number, the sum of all slopes: move one entry at a time.",
                ),
                Slip(
                    "all entries at once",
                    _all_entries_at_once,
                    "Every entry has the same slope, the sum of all: move one entry at a time, from a fresh"
                    " copy of z.",
                ),
                Slip(
                    "steps pile up",
                    lambda f, z: np.cumsum(f.slopes(z)),
                    "The steps pile up: each slope has those before it in it. Start from a fresh copy of z"
                    " for every entry.",
                ),
            ),
        ),
    ],
    wrong=[
        Wrong(
            "mixes the shifts",
            ["return np.log(np.sum(np.exp(z - z.max()))) + z.real.max() - z[label]", SLOPES],
            finding="mixed shifts",
            says="Inside, the shift has an imaginary part, and outside it has none: the two do not cancel."
            " Use one number in both places.",
        ),
        Wrong(
            "mixes the shifts the other way",
            ["return np.log(np.sum(np.exp(z - z.real.max()))) + z.max() - z[label]", SLOPES],
            finding="mixed shifts",
            says="Outside, the shift has an imaginary part, and inside it has none: the two do not cancel."
            " Use one number in both places.",
        ),
        Wrong(
            "no shift",
            ["return np.log(np.sum(np.exp(z))) - z[label]", SLOPES],
            finding="overflow",
        ),
        Wrong(
            "shifts by the mean",
            ["m = z.real.mean()\nreturn np.log(np.sum(np.exp(z - m))) + m - z[label]", SLOPES],
            finding="shift too small",
        ),
        Wrong(
            "logarithm of the softmax",
            ["p = np.exp(z - z.max())\nreturn -np.log(p[label] / p.sum())", SLOPES],
            finding="logarithm of zero",
        ),
        Wrong(
            "shifts by the largest magnitude",
            ["m = abs(z).max()\nreturn np.log(np.sum(np.exp(z - m))) + m - z[label]", SLOPES],
            finding="underflow",
        ),
        Wrong(
            "makes the scores real",
            ["z = z.real\n" + CROSS_ENTROPY, SLOPES],
            finding="scores made real",
        ),
        Wrong(
            "forgets the shift outside",
            [CROSS_ENTROPY.replace(" + shift", ""), SLOPES],
            finding="shift not added",
        ),
        Wrong(
            "returns the real part",
            [
                "shift = z.real.max()\nreturn np.real(np.log(np.sum(np.exp(z - shift))) + shift - z[label])",
                SLOPES,
            ],
            finding="imaginary part dropped",
        ),
        Wrong("a formula without f", [CROSS_ENTROPY, "return np.zeros(len(z))"], finding="never calls f"),
        Wrong("central differences", [CROSS_ENTROPY, DIFFERENCES], finding="no complex step"),
        Wrong(
            "a complex step into a float array",
            [CROSS_ENTROPY, SLOPES.replace("z.astype(complex)", "z.copy()")],
            finding="step lost",
        ),
        Wrong(
            "does not divide",
            [CROSS_ENTROPY, SLOPES.replace(".imag / h", ".imag")],
            finding="not divided",
        ),
        Wrong("real part", [CROSS_ENTROPY, SLOPES.replace(".imag", ".real")], finding="real part"),
        Wrong(
            "a step for central differences",
            [CROSS_ENTROPY, SLOPES.replace("1e-20", "1e-5")],
            finding="step too large",
        ),
        Wrong(
            "moves all entries, one number",
            [CROSS_ENTROPY, "return f(z + 1e-20j).imag / 1e-20"],
            finding="sum of the slopes",
        ),
        Wrong(
            "copies once",
            [
                CROSS_ENTROPY,
                "h, found = 1e-20, np.zeros(len(z))\nmoved = z.astype(complex)\nfor k in range(len(z)):\n"
                "    moved[k] += 1j * h\n    found[k] = f(moved).imag / h\nreturn found",
            ],
            finding="steps pile up",
        ),
        Wrong(
            "moves all entries",
            [CROSS_ENTROPY, "h = 1e-20\nreturn np.full(len(z), f(z + 1j * h).imag / h)"],
            finding="all entries at once",
        ),
    ],
)
