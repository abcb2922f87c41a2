"""Exercises on time: kinks in measured curves, and what fusing does to the bound."""

import math
from statistics import median

import numpy as np

from denselayer.exercises import Case, Code, Slip, Values, Wrong


def curves():
    """Two sizes and one round first; then three rounds with an outlier, and sizes that do not double."""
    rising = np.array([1.0, 4.0, 16.0, 64.0])
    outlier = np.stack([rising, rising, rising * [1, 40, 1, 1]], axis=1)
    quick = np.stack([rising, rising, rising * [1, 0.3, 1, 1]], axis=1)
    step = np.stack([rising * [1, 1, 3, 3]] * 3, axis=1)
    flat = np.array([[5.0, 5.0, 5.0], [5.0, 6.0, 5.0], [45.0, 44.0, 45.0]])
    return [
        Case(sizes=np.array([1, 2]), seconds=np.array([[1.0], [2.0]]), exponent=1),
        Case(sizes=np.array([1, 2]), seconds=np.array([[1.0], [8.0]]), exponent=2),
        Case(sizes=np.array([1, 2]), seconds=np.array([[3.0], [3.0]]), exponent=1),
        Case(sizes=np.array([1, 2, 4, 8]), seconds=outlier, exponent=2),
        Case(sizes=np.array([1, 2, 4, 8]), seconds=quick, exponent=2),
        Case(sizes=np.array([16, 32, 64, 128]), seconds=step, exponent=2),
        Case(sizes=np.array([10, 30, 90]), seconds=flat, exponent=2),
        Case(sizes=np.array([1, 2, 4, 8]), seconds=step, exponent=2, tolerance=2.0),
    ]


def pair_by_pair(sizes, seconds, exponent, tolerance=0.4):
    found, middle = [], [median(each.tolist()) for each in seconds]
    for at in range(1, len(sizes)):
        slope = math.log2(middle[at] / middle[at - 1]) / math.log2(sizes[at] / sizes[at - 1])
        if not exponent - tolerance <= slope <= exponent + tolerance:
            found.append((sizes[at - 1], sizes[at]))
    return found


def _kinks(*, times=np.median, slopes=None, off=lambda distance, tolerance: abs(distance) > tolerance):
    """A wrong way to find kinks: with other times, other slopes, or another comparison."""

    def formula(sizes, seconds, exponent, tolerance=0.4):
        middle = times(seconds, axis=1)
        found = slopes(sizes, middle) if slopes else np.diff(np.log(middle)) / np.diff(np.log(sizes))
        places = np.flatnonzero([off(slope - exponent, tolerance) for slope in found])
        return [(sizes[i], sizes[i + 1]) for i in places]

    return formula


def _places(sizes, seconds, exponent, tolerance=0.4):
    found = pair_by_pair(sizes, seconds, exponent, tolerance)
    return [(sizes.tolist().index(a), sizes.tolist().index(b)) for a, b in found]


def _one_too_early(sizes, seconds, exponent, tolerance=0.4):
    found = _places(sizes, seconds, exponent, tolerance)
    return [(sizes[a - 1], sizes[b - 1]) for a, b in found]


def _one_line(sizes, times):
    return np.full(len(sizes) - 1, np.polyfit(np.log(sizes), np.log(times), 1)[0])


def whole_pairs(pairs):
    """The pairs as whole numbers, whether they came as a list, as an array or one after the other."""
    pairs = list(pairs)
    if any(np.shape(pair) != (2,) for pair in pairs):
        raise ValueError("each entry should be a pair of sizes")
    return [tuple(map(int, pair)) for pair in pairs]


TIMES = "times = np.median(seconds, axis=1)"
SLOPES = "slopes = np.diff(np.log(times)) / np.diff(np.log(sizes))"
PAIRS = (
    "off = np.abs(slopes - exponent) > tolerance\n"
    "return [(int(sizes[i]), int(sizes[i + 1])) for i in np.flatnonzero(off)]"
)

LOCAL_SLOPES = Code(
    "scale-local-slopes",
    entry="kinks",
    template='''
import numpy as np


def kinks(sizes, seconds, exponent, tolerance=0.4):
    """Pairs of neighbouring sizes whose slope is off; sizes (n,) rising, seconds (n, rounds)."""
    <<`times`: the median over the rounds, for each size>>
    <<`slopes`: between neighbours, on logarithmic axes>>
    <<return a list of pairs (size, next size) whose slope is off by more than the tolerance>>
''',
    solution=[TIMES, SLOPES, PAIRS],
    checks=[
        Values(
            curves,
            pair_by_pair,
            tidy=whole_pairs,
            slips=(
                Slip(
                    "mean of the rounds",
                    _kinks(times=np.mean),
                    "One slow round moves the result: take the median over the rounds, not the mean.",
                ),
                Slip(
                    "least of the rounds",
                    _kinks(times=np.min),
                    "One quick round moves the result: take the median over the rounds, not the least.",
                ),
                Slip(
                    "no logarithms",
                    _kinks(slopes=lambda sizes, times: np.diff(times) / np.diff(sizes)),
                    "These are slopes on ordinary axes; an exponent is a slope of logarithms.",
                ),
                Slip(
                    "upside down",
                    _kinks(slopes=lambda sizes, times: np.diff(np.log(sizes)) / np.diff(np.log(times))),
                    "The slope is upside down: the logarithms of the times stand above.",
                ),
                Slip(
                    "too steep only",
                    _kinks(off=lambda distance, tolerance: distance > tolerance),
                    "Only slopes that are too steep are found; one that is too flat is off as well.",
                ),
                Slip(
                    "within the tolerance",
                    _kinks(off=lambda distance, tolerance: abs(distance) <= tolerance),
                    "These are the pairs whose slope agrees with the exponent; the others are kinks.",
                ),
                Slip(
                    "tolerance ignored",
                    lambda sizes, seconds, exponent, tolerance=0.4: pair_by_pair(sizes, seconds, exponent),
                    "The tolerance is always 0.4; use the argument.",
                ),
                Slip(
                    "one pair too early",
                    _one_too_early,
                    "Slope i belongs to the sizes i and i + 1; these are the sizes i − 1 and i.",
                ),
                Slip(
                    "logarithms of the times alone",
                    _kinks(slopes=lambda sizes, times: np.diff(np.log2(times))),
                    "The logarithms of the sizes are left out: not every size is twice the one before it.",
                ),
                Slip(
                    "one line for all",
                    _kinks(slopes=_one_line),
                    "One slope is taken for the whole curve; a kink shows in that between two neighbours.",
                ),
                Slip(
                    "places",
                    _places,
                    "These are the places in `sizes`; the sizes themselves are asked for.",
                ),
            ),
        )
    ],
    wrong=[
        Wrong(
            "takes the mean",
            ["times = seconds.mean(axis=1)", SLOPES, PAIRS],
            finding="mean of the rounds",
        ),
        Wrong(
            "takes the least",
            ["times = seconds.min(axis=1)", SLOPES, PAIRS],
            finding="least of the rounds",
        ),
        Wrong(
            "forgets the logarithms",
            [TIMES, "slopes = np.diff(times) / np.diff(sizes)", PAIRS],
            finding="no logarithms",
        ),
        Wrong(
            "looks in one direction",
            [TIMES, SLOPES, PAIRS.replace("np.abs(slopes - exponent)", "slopes - exponent")],
            finding="too steep only",
        ),
        Wrong(
            "returns the places",
            [
                TIMES,
                SLOPES,
                "off = np.flatnonzero(abs(slopes - exponent) > tolerance)\nreturn [(i, i + 1) for i in off]",
            ],
            finding="places",
        ),
        Wrong(
            "counts from one",
            [TIMES, SLOPES, PAIRS.replace("sizes[i]), int(sizes[i + 1])", "sizes[i - 1]), int(sizes[i])")],
            finding="one pair too early",
        ),
        Wrong(
            "divides by nothing",
            [TIMES, "slopes = np.diff(np.log2(times))", PAIRS],
            finding="logarithms of the times alone",
        ),
        Wrong(
            "returns a condition",
            [TIMES, SLOPES, "return np.abs(slopes - exponent) > tolerance"],
            says="`kinks` returns an array, which cannot be read: each entry should be a pair of sizes.",
        ),
        Wrong(
            "median over the sizes",
            ["times = np.median(seconds, axis=0)", SLOPES, PAIRS],
            says="Line 7 raises a ValueError: the shapes do not fit.",
        ),
    ],
)


def machines():
    """A layer from one number to one on a machine of ones, and the layer of the text on its machine."""
    fast = {"peak": 2e13, "bandwidth": 1e12}
    found = [
        Case(batch=1, in_features=1, out_features=1, peak=1.0, bandwidth=1.0),
        Case(batch=1, in_features=1, out_features=1, peak=0.1, bandwidth=1.0),
        Case(batch=2, in_features=3, out_features=1, peak=1.0, bandwidth=2.0),
    ]
    return found + [
        Case(batch=rows, in_features=512, out_features=2048, **fast) for rows in (1, 16, 256, 4096)
    ]


def _terms(batch, ins, outs):
    """Operations of the product, bytes of the product with bias, bytes of one pass of the output."""
    return 2 * batch * ins * outs, 4 * (batch * ins + ins * outs + outs + batch * outs), 4 * batch * outs


def one_after_the_other(batch, ins, outs, peak, bandwidth):
    operations, moved, output = _terms(batch, ins, outs)
    fused = max(operations / peak, moved / bandwidth)
    return fused + 2 * output / bandwidth, fused


def _one_bound(batch, ins, outs, peak, bandwidth):
    operations, moved, output = _terms(batch, ins, outs)
    return max(operations / peak, (moved + 2 * output) / bandwidth)


def _written_only(batch, ins, outs, peak, bandwidth):
    fused = one_after_the_other(batch, ins, outs, peak, bandwidth)[1]
    return fused + 4 * batch * outs / bandwidth


def _summed(batch, ins, outs, peak, bandwidth):
    operations, moved, output = _terms(batch, ins, outs)
    fused = operations / peak + moved / bandwidth
    return fused + 2 * output / bandwidth, fused


def _traffic_alone(batch, ins, outs, peak, bandwidth):
    _, moved, output = _terms(batch, ins, outs)
    return (moved + 2 * output) / bandwidth, moved / bandwidth


def _arithmetic_alone(batch, ins, outs, peak, bandwidth):
    operations, _, output = _terms(batch, ins, outs)
    return operations / peak + 2 * output / bandwidth, operations / peak


PRODUCT = "product, relu, _ = cost.network([in_features, out_features, 1], batch).steps"
MACHINE = 'machine = {"peak": peak, "bandwidth": bandwidth}'
FUSED = "fused = cost.least_seconds(*product.forward, **machine)"
APART = "apart = fused + cost.least_seconds(*relu.forward, **machine)"

FUSED_TIME = Code(
    "scale-fused-time",
    entry="apart_and_fused",
    template=f'''
from denselayer import cost


def apart_and_fused(batch, in_features, out_features, peak, bandwidth):
    """Least seconds of a layer with bias and its ReLU in float32: as two steps, and as one."""
    {PRODUCT}
    {MACHINE}
    <<`fused`: the bound of the product, in which ReLU is applied on the way>>
    <<`apart`: the bound of the product, and then the ReLU>>
    return apart, fused
''',
    solution=[FUSED, APART],
    checks=[
        Values(
            machines,
            one_after_the_other,
            returns=("apart", "fused"),
            slips=(
                Slip(
                    "one bound",
                    _one_bound,
                    "`apart` is one bound for both steps; the ReLU starts when the product is done, so two"
                    " bounds add up.",
                    output="apart",
                ),
                Slip(
                    "exchanged",
                    lambda *case: one_after_the_other(*case)[::-1],
                    "The two are exchanged: two steps one after the other take longer than the fused one.",
                ),
                Slip(
                    "longer of the two",
                    lambda *case: one_after_the_other(*case)[1],
                    "`apart` has the time of the product alone; the ReLU starts when the product is done, so"
                    " its bound is added.",
                    output="apart",
                ),
                Slip(
                    "ReLU alone",
                    lambda batch, ins, outs, peak, bandwidth: 8 * batch * outs / bandwidth,
                    "`apart` has the time of the ReLU alone; the product comes before it.",
                    output="apart",
                ),
                Slip(
                    "nothing fused",
                    lambda *case: one_after_the_other(*case)[0],
                    "`fused` lets the ReLU move its numbers, too; it is applied before they are written.",
                    output="fused",
                ),
                Slip(
                    "written only",
                    _written_only,
                    "`apart` lets the ReLU move its numbers once; it reads them and writes them back.",
                    output="apart",
                ),
                Slip(
                    "arithmetic and traffic added",
                    _summed,
                    "Arithmetic and traffic are added; the machine does both at once, so the longer"
                    " one counts.",
                ),
                Slip(
                    "traffic alone",
                    _traffic_alone,
                    "Only the bytes are counted; with many rows the arithmetic takes longer.",
                ),
                Slip(
                    "arithmetic alone",
                    _arithmetic_alone,
                    "Of the product only the operations are counted; with few rows its bytes take longer.",
                ),
                Slip(
                    "backward",
                    lambda *case: one_after_the_other(*case)[1] + 12 * case[0] * case[2] / case[4],
                    "`apart` takes the backward pass of the ReLU, which moves three arrays; forward it"
                    " is two.",
                    output="apart",
                ),
            ),
        )
    ],
    wrong=[
        Wrong(
            "one bound for the sum of the work",
            [
                FUSED,
                "traffic = product.forward.traffic + relu.forward.traffic\n"
                "apart = cost.least_seconds(product.forward.operations, traffic, **machine)",
            ],
            finding="one bound",
        ),
        Wrong(
            "the longer of the two",
            [FUSED, "apart = max(fused, cost.least_seconds(*relu.forward, **machine))"],
            finding="longer of the two",
        ),
        Wrong(
            "exchanges them",
            [FUSED.replace("fused =", "apart ="), APART.replace("apart = fused", "fused = apart")],
            finding="exchanged",
        ),
        Wrong(
            "only the writing",
            [FUSED, "apart = fused + 4 * batch * out_features / bandwidth"],
            finding="written only",
        ),
        Wrong(
            "adds arithmetic and traffic",
            [
                "fused = product.forward.operations / peak + product.forward.traffic / bandwidth",
                "apart = fused + relu.forward.traffic / bandwidth",
            ],
            finding="arithmetic and traffic added",
        ),
        Wrong(
            "looks at the operations only",
            [
                "fused = product.forward.operations / peak",
                "apart = fused + relu.forward.traffic / bandwidth",
            ],
            finding="arithmetic alone",
        ),
        Wrong(
            "the ReLU of the other pass",
            [FUSED, "apart = fused + cost.least_seconds(*relu.backward, **machine)"],
            finding="backward",
        ),
    ],
)
