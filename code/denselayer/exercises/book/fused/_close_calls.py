"""Code exercises on small differences: gates that flip, and two ways timed in the same rounds."""

import statistics

import numpy as np

from denselayer.doctor import diagnose_layer
from denselayer.exercises import Case, Code, Slip, Values, Wrong


def close_calls():
    rng = np.random.default_rng(2)
    one = np.float32([[1.0, 2.0**-24, 2.0**-24, -1.0]])
    found = [Case(products=one, offsets=np.float32([-(2.0**-23)]))]
    for shape in [(300, 40), (400, 64)]:
        products = rng.standard_normal(shape, dtype=np.float32)
        offsets = -products.astype(float).sum(axis=1).astype(np.float32)
        found.append(Case(products=products, offsets=offsets))
    return found


def both_orders(products, offsets):
    totals = []
    for order in (1, -1):
        total = np.zeros(len(products), np.float32)
        for column in products.T[::order]:
            total = total + column
        totals.append(total + offsets)
    return totals


def flips(products, offsets):
    forwards, backwards = both_orders(products, offsets)
    return int(((forwards > 0) != (backwards > 0)).sum())


def _changed(forwards, backwards):
    return int((forwards != backwards).sum())


def _offset_first(products, offsets):
    first = np.concatenate([offsets[:, np.newaxis], products], axis=1)
    last = np.concatenate([products, offsets[:, np.newaxis]], axis=1)
    return _changed(*(both_orders(array, 0 * offsets)[k] > 0 for k, array in enumerate([first, last])))


def _open_at_zero(products, offsets):
    return _changed(*(sums >= 0 for sums in both_orders(products, offsets)))


def _in_strands(products, offsets):
    return _changed(*(array.sum(axis=1) + offsets > 0 for array in (products, products[:, ::-1])))


def _differences(products, offsets):
    forwards, backwards = both_orders(products, offsets)
    return int((forwards != backwards).sum())


def gates():
    rng = np.random.default_rng(3)
    z = rng.integers(-2, 3, 40).astype(float)
    return [
        Case(d_out=np.array([2.0]), z=np.array([1.0]), other=np.array([-1.0])),
        Case(d_out=np.array([-3.0, 5.0]), z=np.array([0.0, 2.0]), other=np.array([1.0, 2.0])),
        Case(d_out=rng.integers(-4, 5, 40).astype(float), z=z, other=rng.permutation(z)),
    ]


def at_one_place(same_gate):
    """The report on the gradient where both places are the same."""

    def forward(z):
        return np.maximum(z, 0.0)

    return diagnose_layer(forward, lambda d_out, z: np.asarray(same_gate(d_out, z, z)[0]))


FLIPPING = [
    "forwards = np.cumsum(products, axis=1)[:, -1] + offsets\n"
    "backwards = np.cumsum(products[:, ::-1], axis=1)[:, -1] + offsets\n"
    "return int(((forwards > 0) != (backwards > 0)).sum())",
    "gate = (z > 0).astype(d_out.dtype)\nreturn d_out * gate, d_out * gate",
]
FLIP = Code(
    "fused-flip",
    entry="different_gates, same_gate",
    template='''
import numpy as np


def different_gates(products, offsets):
    """How many rows of products (N, n), float32, plus offsets (N,) change their gate with the order."""
    <<add up each row in both orders, one after the other, and count>>


def same_gate(d_out, z, other):
    """The gradients (N,) of ReLU at z and at other, both with the gate of z."""
    <<return both gradients>>
''',
    solution=FLIPPING,
    checks=[
        Values(
            close_calls,
            flips,
            name="different_gates",
            slips=(
                Slip(
                    "sums compared",
                    _differences,
                    "That counts the rows whose sums differ; a gate differs only if one of them is above 0.",
                ),
                Slip(
                    "offset forgotten",
                    lambda products, offsets: flips(products, 0 * offsets),
                    "The offset is left out: the gate belongs to the sum and the offset.",
                ),
                Slip(
                    "offset first",
                    _offset_first,
                    "The sums start at the offset; it is added after them.",
                ),
                Slip(
                    "open at 0",
                    _open_at_zero,
                    "A gate is open above 0 alone; a sum that is exactly 0 leaves it shut.",
                ),
                Slip(
                    "np.sum",
                    _in_strands,
                    "`np.sum` adds up several strands at once; add one after the other, as `np.cumsum` does.",
                ),
                Slip(
                    "share",
                    lambda products, offsets: flips(products, offsets) / len(products),
                    "This is the share of the rows; asked is how many they are.",
                ),
                Slip(
                    "float64",
                    lambda products, offsets: flips(products.astype(float), offsets),
                    "Added in float64 the gates agree; the sums have to stay in float32.",
                ),
            ),
        ),
        Values(
            gates,
            lambda d_out, z, other: (np.where(z > 0, d_out, 0.0), np.where(z > 0, d_out, 0.0)),
            name="same_gate",
            returns=("gradient at z", "gradient at other"),
            doctor=at_one_place,
            words={"x": "z"},
            slips=(
                Slip(
                    "two gates",
                    lambda d_out, z, other: (d_out * (z > 0), d_out * (other > 0)),
                    "Each place has a gate of its own; both gradients take the gate of z.",
                ),
                Slip(
                    "gate of other",
                    lambda d_out, z, other: (d_out * (other > 0), d_out * (other > 0)),
                    "Both gradients take the gate of `other`; the gate of the first, z, is asked.",
                ),
                Slip(
                    "gate open at 0",
                    lambda d_out, z, other: (d_out * (z >= 0), d_out * (z >= 0)),
                    "At z = 0 the gate is open; the convention shuts it.",
                ),
            ),
        ),
    ],
    wrong=[
        Wrong(
            "compares the sums",
            [FLIPPING[0].replace("(forwards > 0) != (backwards > 0)", "forwards != backwards"), FLIPPING[1]],
            finding="sums compared",
        ),
        Wrong(
            "adds in float64",
            [FLIPPING[0].replace("axis=1)", "axis=1, dtype=float)"), FLIPPING[1]],
            finding="float64",
        ),
        Wrong(
            "np.sum",
            [
                "orders = products, products[:, ::-1]\n"
                "forwards, backwards = (np.sum(p, axis=1) + offsets > 0 for p in orders)\n"
                "return int((forwards != backwards).sum())",
                FLIPPING[1],
            ],
            finding="np.sum",
        ),
        Wrong("at or above 0", [FLIPPING[0].replace("> 0", ">= 0"), FLIPPING[1]], finding="open at 0"),
        Wrong(
            "a gate for each",
            [FLIPPING[0], "return d_out * (z > 0), d_out * (other > 0)"],
            finding="two gates",
        ),
        Wrong("no gate", [FLIPPING[0], "return d_out, d_out"], finding="gate-missing"),
        Wrong("opens at 0", [FLIPPING[0], FLIPPING[1].replace("z > 0", "z >= 0")], finding="gate open at 0"),
    ],
)


PLAIN = [2.0, 2.1, 2.0, 3.0, 3.1, 3.0, 3.0, 2.0, 2.0, 2.1]
FUSED = [1.6, 1.7, 1.6, 2.4, 2.5, 2.4, 2.4, 1.6, 1.6, 1.7]


def timings():
    rng = np.random.default_rng(6)
    slow = 1 + rng.integers(0, 2, 15) / 2
    plain, ours = slow * (2 + rng.integers(0, 3, 15) / 10), slow * (1.5 + rng.integers(0, 3, 15) / 10)
    return [
        Case(plain=[2.0, 6.0, 3.0], fused=[1.0, 2.0, 3.0], cut=1),
        Case(plain=PLAIN, fused=FUSED, cut=6),
        Case(plain=plain.tolist(), fused=ours.tolist(), cut=7),
    ]


def ratios(plain, fused, cut, middle=statistics.median):
    both = [ours / theirs for ours, theirs in zip(plain, fused, strict=True)]
    return (
        middle(plain) / middle(fused),
        middle(both),
        middle(plain[:cut]) / middle(fused[cut:]),
    )


RATIOS = [
    "medians = np.median(plain) / np.median(fused)",
    "pairs = np.median(np.array(plain) / np.array(fused))",
    "apart = np.median(plain[:cut]) / np.median(fused[cut:])",
]
PAIRED = Code(
    "fused-paired",
    entry="compare",
    template='''
import numpy as np


def compare(plain, fused, cut):
    """Three ratios of plain to fused, from lists of as many seconds as there were rounds."""
    <<the ratio of the medians: `medians`>>
    <<the median of the ratios within a round: `pairs`>>
    <<one after the other, plain in the first `cut` rounds and fused in the others: `apart`>>
    return medians, pairs, apart
''',
    solution=RATIOS,
    checks=[
        Values(
            timings,
            ratios,
            returns=("medians", "pairs", "apart"),
            slips=(
                Slip(
                    "turned over",
                    lambda plain, fused, cut: tuple(1 / ratio for ratio in ratios(plain, fused, cut)),
                    "The ratios are turned over: plain is above the line.",
                ),
                Slip(
                    "means",
                    lambda *case: ratios(*case, middle=statistics.mean),
                    "Those are means; a single slow round moves a mean, so the median is asked.",
                ),
                Slip(
                    "no pairs",
                    lambda *case: ratios(*case)[0],
                    "`pairs` is the ratio of the medians again: divide within each round first.",
                    "pairs",
                ),
                Slip(
                    "mean of the ratios",
                    lambda plain, fused, cut: np.mean(np.divide(plain, fused)),
                    "`pairs` is the mean of the ratios within a round; the median is asked.",
                    "pairs",
                ),
                Slip(
                    "rounds exchanged",
                    lambda plain, fused, cut: np.median(plain[cut:]) / np.median(fused[:cut]),
                    "`apart` takes fused first; plain has the first `cut` rounds.",
                    "apart",
                ),
                Slip(
                    "same rounds",
                    lambda plain, fused, cut: np.median(plain[:cut]) / np.median(fused[:cut]),
                    "`apart` takes the same rounds for both; fused has the rounds from `cut` on.",
                    "apart",
                ),
            ),
        )
    ],
    wrong=[
        Wrong(
            "fused over plain",
            [
                "medians = np.median(fused) / np.median(plain)",
                "pairs = np.median(np.array(fused) / np.array(plain))",
                "apart = np.median(fused[cut:]) / np.median(plain[:cut])",
            ],
            finding="turned over",
        ),
        Wrong("means", [line.replace("np.median", "np.mean") for line in RATIOS], finding="means"),
        Wrong("no pairs", [RATIOS[0], "pairs = medians", RATIOS[2]], finding="no pairs"),
        Wrong(
            "the same rounds",
            [*RATIOS[:2], RATIOS[2].replace("fused[cut:]", "fused[:cut]")],
            finding="same rounds",
        ),
        Wrong(
            "mean of the ratios",
            [RATIOS[0], "pairs = np.mean(np.array(plain) / np.array(fused))", RATIOS[2]],
            finding="mean of the ratios",
        ),
        Wrong(
            "fused first",
            [*RATIOS[:2], "apart = np.median(plain[cut:]) / np.median(fused[:cut])"],
            finding="rounds exchanged",
        ),
        Wrong(
            "divides lists", [RATIOS[0], "pairs = np.median(plain / fused)", RATIOS[2]], finding="TypeError"
        ),
    ],
)
