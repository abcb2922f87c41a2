"""What a direction overlooks: random signs against normal numbers, and the dot-product test."""

import itertools

import numpy as np

from denselayer import functional as F
from denselayer.exercises import Case, Code, Fault, Property, Slip, Values, Wrong
from denselayer.exercises._show import shown

GRADIENTS = (np.array([1.0, 3.0]), np.array([2.0, -1.0, 5.0]), np.array([0.5, -2.0, 4.0, 1.0, 3.0, -5.0]))


def half_overlook_it(spoiled, overlooked, tries):
    """The mistake of `spoiled`, tried along every direction of signs."""
    for gradient in GRADIENTS:
        given = gradient.copy()
        claim = spoiled(given)
        fault = _not_like(gradient, claim)
        if fault:
            return fault
        if not np.array_equal(given, gradient):
            advice = "The caller still needs the right one: spoil a copy."
            return Fault("changed input", "`spoiled` changes the gradient that it gets.", (advice,))
        fault = _judged(gradient, np.asarray(claim, dtype=float))
        if fault:
            return fault
    return None


def _not_like(gradient, claim):
    if claim is None:
        return Fault("shape", "`spoiled` returns None: is the `return` missing?")
    if not isinstance(claim, np.ndarray | list):
        kind = type(claim).__name__
        return Fault("shape", f"`spoiled` returns an array, the spoiled copy; yours returns a {kind}.")
    if np.shape(claim) != gradient.shape:
        return Fault("shape", f"`spoiled` returns an array of shape {np.shape(claim)}, not {gradient.shape}.")
    return None


def _judged(gradient, claim):
    signs = np.array(list(itertools.product([1.0, -1.0], repeat=len(gradient))))
    error = claim - gradient
    unseen = np.abs(signs @ error) <= 1e-9 * np.abs(error).sum()
    share = np.mean(unseen)
    example = f"gradient = {shown(gradient)}, yours {shown(claim)}"
    wrong = np.count_nonzero(error)
    if wrong == 0:
        return Fault("values", "Your `spoiled` returns the gradient itself.", (), example, "no mistake")
    if share == 0 and wrong == 1:
        said = "One wrong entry is found by every direction of signs: nothing cancels it."
        return Fault("values", said, (), example, "one entry")
    if share == 0:
        said = "No direction of signs overlooks this mistake: the errors of the entries never cancel."
        advice = f"The errors are {shown(error)}: which signs make their sum zero?"
        return Fault("values", said, (advice,), example, "never overlooked")
    if share != 0.5:
        said = f"{np.sum(unseen)} of all {len(signs)} directions of signs overlook this mistake, not half."
        advice = f"{wrong} entries are wrong; with two of them it is half."
        return Fault("values", said, (advice,), example, "not half")
    return None


def directions():
    """One direction; two of signs, with the tolerance zero as well; eight of whole numbers."""
    signs = np.array([[1.0, 1.0], [1.0, -1.0]])
    rng = np.random.default_rng(1)
    truth = rng.integers(-4, 5, 5).astype(float)
    moves = rng.integers(-2, 3, (8, 5)).astype(float)
    return [
        Case(truth=np.array([1.0]), claim=np.array([3.0]), directions=np.array([[-1.0]]), tolerance=0.5),
        Case(truth=np.array([1.0, 2.0]), claim=np.array([3.0, 4.0]), directions=signs, tolerance=0.5),
        Case(truth=np.array([1.0, 2.0]), claim=np.array([3.0, 4.0]), directions=signs, tolerance=0.0),
        Case(truth=truth, claim=truth + np.array([0, 1, 0, 0, 2]), directions=moves, tolerance=1.5),
    ]


def count_of_overlooked(truth, claim, directions, tolerance):
    """One direction after the other."""
    off = [sum(v * (c - t) for v, c, t in zip(row, claim, truth, strict=True)) for row in directions]
    return sum(-tolerance <= error <= tolerance for error in off)


def _found(truth, claim, directions, tolerance):
    return len(directions) - count_of_overlooked(truth, claim, directions, tolerance)


def two_counts(spoiled, overlooked, tries):
    """Some runs with generators of their own: about half of the signs, none of the normal directions."""
    if half_overlook_it(spoiled, overlooked, tries):
        return None
    counts, drawn = set(), False
    for seed in range(5):
        rng = np.random.default_rng(seed + 10)
        found = tries(np.random.default_rng(seed).normal(size=20), rng)
        fault = _of_counts(found)
        if fault:
            return fault
        counts.add(int(found[0]))
        drawn = drawn or rng.bit_generator.state != np.random.default_rng(seed + 10).bit_generator.state
    return _of_chance(counts, drawn)


def _of_chance(counts, drawn):
    """The number of overlooked signs depends on chance, and chance comes from the generator."""
    if not drawn:
        said = "Your `tries` draws nothing from `rng`: its directions come from that generator."
        return Fault("values", said, finding="rng not used")
    if len(counts) == 1:
        said = f"Five different generators give the same count, {counts.pop()}: is it counted?"
        return Fault("values", said, finding="always the same count")
    return None


def _of_counts(found):
    if not isinstance(found, tuple | list | np.ndarray) or np.shape(found) != (2,):
        return Fault("shape", "`tries` returns two counts: first for signs, then for normal directions.")
    signs, normal = found
    if np.asarray(found).dtype.kind not in "iuf" or not np.isfinite(found).all():
        return Fault("shape", f"`tries` returns two counts, and {shown(found)} has none.")
    if 0.4 < signs < 0.6:
        said = "These are shares of the directions; asked are the counts out of 1,000."
        return Fault("values", said, (), f"yours {shown(found)}", "shares")
    example = f"yours {int(signs)} and {int(normal)}, right about 500 and 0"
    if 400 < normal < 600 and signs < 10:
        said = "The two counts are exchanged: first the signs, then the normal directions."
        return Fault("values", said, (), example, "exchanged")
    if 180 < signs < 320:
        said = "About a quarter of your directions of signs overlook it: do they have entries 0 and 1?"
        advice = "A sign is −1 or 1. With 0 and 1 both wrong entries must be 0 to be overlooked."
        return Fault("values", said, (advice,), example, "zeros and ones")
    if not 400 < signs < 600:
        said = "About 500 of 1,000 directions of random signs overlook the mistake."
        return Fault("values", said, (), example, "count of signs")
    if normal > 10:
        said = "Normal directions overlook this mistake practically never."
        advice = "Are they made to signs, or is the tolerance too large?"
        return Fault("values", said, (advice,), example, "count of normal directions")
    return None


SPOILED = """
claim = gradient.copy()
claim[:2] += 0.1
return claim
"""
OVERLOOKED = """
off = directions @ (claim - truth)
return int(np.sum(np.abs(off) <= tolerance))
"""
TRIES = """
claim = spoiled(gradient)
tolerance = 1e-6 * np.linalg.norm(gradient)
normal = rng.standard_normal((1000, len(gradient)))
signs = np.sign(normal)
kinds = signs, normal
return tuple(overlooked(gradient, claim, v, tolerance) for v in kinds)
"""
SIGNS = Code(
    "check-signs",
    entry="spoiled, overlooked, tries",
    template='''
import numpy as np


def spoiled(gradient):
    """A copy of the gradient (n,), n at least 2, with a mistake that half of all signs overlook."""
    <<a mistake in the copy>>


def overlooked(truth, claim, directions, tolerance):
    """How many rows v of directions (M, n) give slopes of truth (n,) and claim (n,) that agree."""
    <<count the slopes that differ by at most the tolerance>>


def tries(gradient, rng):
    """Two counts out of 1,000: of random signs, and of normal directions, that overlook the mistake."""
    <<spoil the gradient (n,), draw the directions, count>>
''',
    solution=[SPOILED, OVERLOOKED, TRIES],
    checks=[
        Property(half_overlook_it),
        Values(
            directions,
            count_of_overlooked,
            name="overlooked",
            slips=(
                Slip("found", _found, "This counts the directions that find the mistake."),
                Slip(
                    "no magnitude",
                    lambda truth, claim, directions, tolerance: int(
                        np.sum(directions @ (claim - truth) <= tolerance)
                    ),
                    "A difference far below zero counts as small here: compare its magnitude.",
                ),
                Slip(
                    "share",
                    lambda *case: count_of_overlooked(*case) / len(case[2]),
                    "This is the share of the directions; asked is their number.",
                ),
                Slip(
                    "entry by entry",
                    lambda truth, claim, directions, tolerance: int(
                        np.sum(np.abs(directions * (claim - truth)) <= tolerance)
                    ),
                    "This looks at every entry alone; a slope is the sum over the entries of a direction.",
                ),
                Slip(
                    "less than",
                    lambda truth, claim, directions, tolerance: int(
                        np.sum(np.abs(directions @ (claim - truth)) < tolerance)
                    ),
                    "“At most” includes the tolerance itself: with < nothing agrees at the tolerance 0.",
                ),
                Slip(
                    "slope of the claim",
                    lambda truth, claim, directions, tolerance: int(
                        np.sum(np.abs(directions @ claim) <= tolerance)
                    ),
                    "This compares the claimed slope with zero; compare it with the true slope.",
                ),
            ),
        ),
        Property(two_counts),
    ],
    wrong=[
        Wrong("one entry", [SPOILED.replace("[:2]", "[0]"), OVERLOOKED, TRIES], finding="one entry"),
        Wrong("doubles the gradient", ["return 2 * gradient", OVERLOOKED, TRIES], finding="never overlooked"),
        Wrong("reverses", ["return gradient[::-1]", OVERLOOKED, TRIES], finding="not half"),
        Wrong("forgets to spoil", ["return gradient.copy()", OVERLOOKED, TRIES], finding="no mistake"),
        Wrong(
            "no copy",
            [SPOILED.replace("gradient.copy()", "gradient"), OVERLOOKED, TRIES],
            says="`spoiled` changes the gradient that it gets.",
        ),
        Wrong("counts the found", [SPOILED, OVERLOOKED.replace("<=", ">"), TRIES], finding="found"),
        Wrong(
            "no magnitude",
            [SPOILED, OVERLOOKED.replace("np.abs(off)", "off"), TRIES],
            finding="no magnitude",
        ),
        Wrong(
            "share",
            [SPOILED, OVERLOOKED.replace("int(np.sum(", "float(np.mean("), TRIES],
            finding="share",
        ),
        Wrong("strictly less", [SPOILED, OVERLOOKED.replace("<=", "<"), TRIES], finding="less than"),
        Wrong(
            "zeros and ones",
            [
                SPOILED,
                OVERLOOKED,
                TRIES.replace("np.sign(normal)", "rng.integers(0, 2, normal.shape)"),
            ],
            finding="zeros and ones",
        ),
        Wrong(
            "exchanged",
            [SPOILED, OVERLOOKED, TRIES.replace("signs, normal", "normal, signs")],
            finding="exchanged",
        ),
        Wrong(
            "knows the answer",
            [SPOILED, OVERLOOKED, "return 500, 0"],
            finding="rng not used",
        ),
        Wrong(
            "a generator of its own",
            [SPOILED, OVERLOOKED, "rng = np.random.default_rng(0)\n" + TRIES],
            says="Your `tries` draws nothing from `rng`: its directions come from that generator.",
        ),
        Wrong(
            "divides by 1,000",
            [SPOILED, OVERLOOKED, TRIES.replace("v, tolerance)", "v, tolerance) / 1000")],
            finding="shares",
        ),
        Wrong(
            "signs twice",
            [SPOILED, OVERLOOKED, TRIES.replace("signs, normal", "signs, signs")],
            finding="count of normal directions",
        ),
    ],
)


def right(d_out, x, weight):
    return d_out @ weight, d_out.T @ x, d_out.sum(axis=0)


def transposed_weight_gradient(d_out, x, weight):
    return d_out @ weight, x.T @ d_out, d_out.sum(axis=0)


def averaged_bias_gradient(d_out, x, weight):
    return d_out @ weight, d_out.T @ x, d_out.mean(axis=0)


def untransposed_input_gradient(d_out, x, weight):
    return d_out @ weight.T, d_out.T @ x, d_out.sum(axis=0)


def forgets_the_upstream_gradient(d_out, x, weight):
    return right(np.ones_like(d_out), x, weight)


def doubled(d_out, x, weight):
    return tuple(2 * array for array in right(d_out, x, weight))


def off_by_a_millionth(d_out, x, weight):
    d_x, d_weight, d_bias = right(d_out, x, weight)
    return d_x, (1 + 1e-6) * d_weight, d_bias


def cases_of_backward():
    """A layer from one number to one, right and doubled; square layers with a mistake; wide ones."""
    rng = np.random.default_rng(9)
    one = {"x": np.array([[2.0]]), "weight": np.array([[3.0]])}
    square = {"x": np.array([[1.0, 2.0], [3.0, -1.0]]), "weight": np.array([[1.0, 2.0], [4.0, 3.0]])}
    wide = {"x": rng.normal(size=(5, 3)), "weight": rng.normal(size=(4, 3))}
    layers = [
        (one, F.linear_backward),
        (one, doubled),
        (square, F.linear_backward),
        (square, transposed_weight_gradient),
        (square, averaged_bias_gradient),
        (square, untransposed_input_gradient),
        (square, forgets_the_upstream_gradient),
        (wide, F.linear_backward),
        (wide, averaged_bias_gradient),
        (wide, off_by_a_millionth),
    ]
    return [Case(**arrays, backward=backward, rng=np.random.default_rng(8)) for arrays, backward in layers]


def agreement_of_gradients(x, weight, backward, rng):
    """The gradients themselves, against the formulas with every entry written out."""
    d_out = rng.normal(size=(len(x), len(weight)))
    formulas = (
        np.einsum("ni,ij->nj", d_out, weight),
        np.einsum("ni,nj->ij", d_out, x),
        np.einsum("ni->i", d_out),
    )
    return tuple(
        bool(np.allclose(found, formula, rtol=1e-9, atol=1e-9))
        for found, formula in zip(backward(d_out, x, weight), formulas, strict=True)
    )


def _verdicts(result):
    if isinstance(result, dict) and set(result) != {"x", "weight", "bias"}:
        raise ValueError("its keys should be x, weight and bias")
    verdicts = list(result.values()) if isinstance(result, dict) else result
    if isinstance(verdicts, tuple | list) and not all(isinstance(v, bool | np.bool_) for v in verdicts):
        raise ValueError("each verdict should be True or False")
    return result


def _by_sums(draw_d_out, draw_change):
    """The test with a poor choice of numbers."""

    def test(x, weight, backward, rng):
        d_out = draw_d_out(rng, (len(x), len(weight)))
        v, u, c = (draw_change(rng, shape) for shape in (x.shape, weight.shape, len(weight)))
        d_x, d_weight, d_bias = backward(d_out, x, weight)
        sides = [
            (np.sum(d_out * (v @ weight.T)), np.sum(d_x * v)),
            (np.sum(d_out * (x @ u.T)), np.sum(d_weight * u)),
            (np.sum(d_out * c), np.sum(d_bias * c)),
        ]
        return tuple(bool(np.isclose(a, b, rtol=1e-9, atol=1e-9)) for a, b in sides)

    return test


def _normal(rng, shape):
    return rng.normal(size=shape)


def _ones(rng, shape):
    return np.ones(shape)


def _change(name, verdict):
    """The right verdicts, but for one array."""
    place = ("x", "weight", "bias").index(name)

    def test(*case):
        verdicts = list(agreement_of_gradients(*case))
        verdicts[place] = verdict(verdicts[place], *case)
        return tuple(verdicts)

    return test


DRAWN = """
d_out = rng.normal(size=(len(x), len(weight)))
v, u = rng.normal(size=x.shape), rng.normal(size=weight.shape)
c = rng.normal(size=len(weight))
"""
SIDES = """
d_x, d_weight, d_bias = backward(d_out, x, weight)
sides = {
    "x": (np.sum(d_out * (v @ weight.T)), np.sum(d_x * v)),
    "weight": (np.sum(d_out * (x @ u.T)), np.sum(d_weight * u)),
    "bias": (np.sum(d_out * c), np.sum(d_bias * c)),
}
"""
VERDICTS = """
errors = {name: gradcheck.relative_error(*p) for name, p in sides.items()}
return {name: bool(error < 1e-11) for name, error in errors.items()}
"""
ADJOINT = Code(
    "check-adjoint",
    entry="dot_product_test",
    template='''
import numpy as np

from denselayer import gradcheck


def dot_product_test(x, weight, backward, rng):
    """Whether each gradient passes: {"x": True, "weight": True, "bias": True} for a right layer.

    x is (N, in), weight (out, in); backward(d_out, x, weight) returns d_x, d_weight, d_bias for a d_out
    (N, out); rng is a numpy.random.Generator.
    """
    <<draw d_out, and a change of x, of weight and of the bias>>
    <<for each array: the change of the output times d_out, and the change times its gradient>>
    <<return which of the pairs agree>>
''',
    solution=[DRAWN, SIDES, VERDICTS],
    checks=[
        Values(
            cases_of_backward,
            agreement_of_gradients,
            returns=("x", "weight", "bias"),
            tidy=_verdicts,
            slips=(
                Slip(
                    "changes of ones",
                    _by_sums(_normal, _ones),
                    "All changes are equal, so a test compares the sums of all entries: a transposed gradient"
                    " has the same sum.",
                ),
                Slip(
                    "upstream of ones",
                    _by_sums(_ones, _normal),
                    "The upstream gradient is all ones, so a backward pass that forgets to multiply by it"
                    " looks right.",
                ),
                Slip(
                    "bias in one row",
                    _change("bias", lambda right, x, *_: right if len(x) == 1 else False),
                    "The bias is tested wrongly as soon as there are two rows: one and the same change c is"
                    " added to every row of the output.",
                ),
                Slip(
                    "bias averaged",
                    _change(
                        "bias",
                        lambda right, x, weight, backward, rng: (
                            backward is averaged_bias_gradient or (right and len(x) == 1)
                        ),
                    ),
                    "The bias is tested against a mean over the rows: its change is added to every row, so"
                    " the rows are summed.",
                ),
                Slip(
                    "tolerance too large",
                    lambda x, weight, backward, rng: (
                        (True, True, True)
                        if backward is off_by_a_millionth
                        else agreement_of_gradients(x, weight, backward, rng)
                    ),
                    "A gradient that is off by a millionth passes: the relative error has to be below 1e-11.",
                ),
                Slip(
                    "never fails",
                    lambda *case: (True, True, True),
                    "Your test passes every gradient: do both sums of a pair come from the same pass?",
                ),
                Slip(
                    "never passes",
                    lambda *case: (False, False, False),
                    "Your test fails every gradient, right ones too.",
                ),
                Slip(
                    "upside down",
                    lambda *case: tuple(not verdict for verdict in agreement_of_gradients(*case)),
                    "The verdicts are upside down: a small error is a gradient that passes.",
                ),
            ),
        )
    ],
    wrong=[
        Wrong(
            "changes of ones",
            [
                "d_out = rng.normal(size=(len(x), len(weight)))\n"
                "v, u, c = np.ones(x.shape), np.ones(weight.shape), np.ones(len(weight))",
                SIDES,
                VERDICTS,
            ],
            finding="changes of ones",
        ),
        Wrong(
            "upstream of ones",
            [
                DRAWN.replace("rng.normal(size=(len(x), len(weight)))", "np.ones((len(x), len(weight)))"),
                SIDES,
                VERDICTS,
            ],
            finding="upstream of ones",
        ),
        Wrong(
            "one row of the bias",
            [DRAWN, SIDES.replace("np.sum(d_out * c)", "np.sum(d_out[0] * c)"), VERDICTS],
            finding="bias in one row",
        ),
        Wrong(
            "mean over the rows",
            [DRAWN, SIDES.replace("np.sum(d_out * c)", "np.sum(d_out.mean(axis=0) * c)"), VERDICTS],
            finding="bias averaged",
        ),
        Wrong(
            "upside down",
            [DRAWN, SIDES, VERDICTS.replace("error < 1e-11", "error > 1e-11")],
            finding="upside down",
        ),
        Wrong(
            "a tolerance for float32",
            [DRAWN, SIDES, VERDICTS.replace("1e-11", "1e-3")],
            finding="tolerance too large",
        ),
        Wrong(
            "returns the errors",
            [DRAWN, SIDES, VERDICTS.replace("bool(error < 1e-11)", "error")],
            says="`dot_product_test` returns a dict, which cannot be read: each verdict should be True or"
            " False.",
        ),
        Wrong(
            "the backward pass twice",
            [
                DRAWN,
                SIDES.replace("np.sum(d_out * (v @ weight.T))", "np.sum(d_x * v)")
                .replace("np.sum(d_out * (x @ u.T))", "np.sum(d_weight * u)")
                .replace("np.sum(d_out * c)", "np.sum(d_bias * c)"),
                VERDICTS,
            ],
            finding="never fails",
        ),
        Wrong(
            "weight not transposed",
            [DRAWN, SIDES.replace("x @ u.T", "x @ u"), VERDICTS],
            says="Line 18 raises a ValueError: the shapes do not fit.",
        ),
        Wrong(
            "only one verdict",
            [
                DRAWN,
                SIDES,
                VERDICTS.replace(
                    "{name: bool(error < 1e-11) for name, error in errors.items()}",
                    "all(error < 1e-11 for error in errors.values())",
                ),
            ],
            says="`dot_product_test` returns x, weight, bias; yours returns a bool.",
        ),
    ],
)
