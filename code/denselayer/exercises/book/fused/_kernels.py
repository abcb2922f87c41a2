"""Code exercises on kernels: sums in chunks, and what the blocks of a product fetch."""

import numpy as np

from denselayer import functional as F
from denselayer.exercises import Case, Code, Fault, Property, Slip, Values, Wrong

TRIP = np.array([[2.0, 4.0, 1.0]])
WEIGHT = np.array([[0.5, -1.0, 2.0], [-0.25, 0.5, 1.0], [1.0, 0.25, -0.5]])
BIAS = np.array([3.0, -1.0, -4.0])


def whole_numbers(rng, *shapes):
    return [rng.integers(-4, 5, shape).astype(float) for shape in shapes]


def chunked():
    """One sum that falls below 0 on its way; the running example; a batch with a last chunk that is short."""
    x, weight, bias = whole_numbers(np.random.default_rng(0), (20, 10), (6, 10), (6,))
    return [
        Case(x=np.array([[1.0, 1.0]]), weight=np.array([[-1.0, 2.0]]), bias=np.array([0.0]), chunk=1),
        Case(x=TRIP, weight=WEIGHT, bias=BIAS, chunk=1),
        Case(x=x, weight=weight, bias=bias, chunk=3),
        Case(x=x, weight=weight, bias=bias, chunk=10),
    ]


def defective(x, weight, bias, chunk):
    out = np.tile(bias, (len(x), 1))
    for start in range(0, x.shape[1], chunk):
        part = slice(start, start + chunk)
        out = np.maximum(out + x[:, part] @ weight[:, part].T, 0)
    return out


def sound(x, weight, bias, chunk):
    return F.relu(F.linear(x, weight, bias))


def _without_bias(x, weight, bias, chunk):
    return F.relu(F.linear(x, weight))


def _drops_the_rest(x, weight, bias, chunk):
    whole = x.shape[1] // chunk * chunk
    return F.relu(F.linear(x[:, :whole], weight[:, :whole], bias))


def _chunk_by_chunk(x, weight, bias, chunk):
    out = np.tile(bias, (len(x), 1))
    for start in range(0, x.shape[1], chunk):
        part = slice(start, start + chunk)
        out = out + F.relu(F.linear(x[:, part], weight[:, part]))
    return F.relu(out)


def _linear(x, weight, bias, chunk):
    return F.linear(x, weight, bias)


def _turns_round(x, weight, bias, chunk):
    return np.abs(F.linear(x, weight, bias))


KERNELS = {
    "the defective kernel": defective,
    "a kernel without the bias": _without_bias,
    "a kernel without the activation": _linear,
    "a kernel that turns negative sums round": _turns_round,
    "a kernel that drops a last chunk that is short": _drops_the_rest,
}


def _rounds_otherwise(x, weight, bias, chunk):
    """A right kernel in float64 that adds the inputs up in another order."""
    out = np.zeros((len(x), len(weight)))
    for k in reversed(range(x.shape[1])):
        out = out + np.outer(x[:, k], weight[:, k])
    return np.maximum(out + bias, 0)


def _tells(repaired, is_right):
    for kernel in (sound, _rounds_otherwise):
        found = is_right(kernel)
        if not isinstance(found, bool | np.bool_):
            advice = "`np.array_equal` and `np.allclose` give one answer for whole arrays."
            said = f"`is_right` returns True or False; yours returns {_kind(found)}."
            return Fault("shape", said, (advice,))
        if not found:
            return _false_alarm(kernel)
    for name, kernel in KERNELS.items():
        try:
            passes = is_right(kernel)
        except AssertionError:
            said = "`is_right` raises an AssertionError for a wrong kernel; it returns False instead."
            return Fault("values", said, ("`return condition` in place of `assert condition`.",))
        if passes:
            return Fault("values", f"`is_right` lets {name} pass.", finding=f"passes {name}")
    return None


def _false_alarm(kernel):
    said, advice = "`is_right` refuses a right kernel.", ()
    if kernel is _rounds_otherwise:
        said = "`is_right` refuses a right kernel that adds the inputs up in another order."
        advice = ("Such sums differ by rounding: use `np.allclose`, or whole numbers, which are exact.",)
    return Fault("values", said, advice, finding="false alarm")


def _kind(value):
    return "None" if value is None else f"one of type {type(value).__name__}"


KERNEL = (
    "out = np.tile(bias, (len(x), 1))\n"
    "for start in range(0, x.shape[1], chunk):\n"
    "    part = slice(start, start + chunk)\n"
    "    out += x[:, part] @ weight[:, part].T\n"
    "return np.maximum(out, 0, out=out)"
)
CHECK = (
    "rng = np.random.default_rng(0)\n"
    "x = rng.integers(-4, 5, (20, 10)).astype(float)\n"
    "weight = rng.integers(-4, 5, (6, 10)).astype(float)\n"
    "bias = rng.integers(-4, 5, 6).astype(float)\n"
    "expected = np.maximum(x @ weight.T + bias, 0)\n"
    "return np.array_equal(kernel(x, weight, bias, 3), expected)"
)
REPAIR = Code(
    "fused-repair",
    entry="repaired, is_right",
    template='''
import numpy as np


def repaired(x, weight, bias, chunk):
    """ReLU of the layer, (N, out), with the inputs added up in chunks; x (N, in)."""
    <<the repaired kernel>>


def is_right(kernel):
    """Whether a kernel(x, weight, bias, chunk) computes what it should, for chunks of 3 of 10 inputs."""
    <<try it, and return True or False>>
''',
    solution=[KERNEL, CHECK],
    checks=[
        Values(
            chunked,
            sound,
            name="repaired",
            slips=(
                Slip(
                    "activation inside",
                    defective,
                    "The activation is still inside the loop: it cuts sums that later inputs would raise.",
                ),
                Slip(
                    "last chunk lost",
                    _drops_the_rest,
                    "A last chunk that is shorter than the others is left out.",
                ),
                Slip(
                    "activation of every chunk",
                    _chunk_by_chunk,
                    "The activation is applied to every chunk alone; it belongs to the whole sum.",
                ),
                Slip("no activation", _linear, "The activation is gone: it belongs behind the loop."),
                Slip("no bias", _without_bias, "The bias is left out: the sums start at it."),
                Slip(
                    "bias in every chunk",
                    lambda x, weight, bias, chunk: F.relu(
                        F.linear(x, weight, bias * -(-x.shape[1] // chunk))
                    ),
                    "The bias is added with every chunk; it is added once.",
                ),
            ),
        ),
        Property(_tells),
    ],
    wrong=[
        Wrong(
            "the kernel as it was",
            [
                KERNEL.replace(
                    "\nreturn np.maximum(out, 0, out=out)", "\n    np.maximum(out, 0, out=out)\nreturn out"
                ),
                CHECK,
            ],
            finding="activation inside",
        ),
        Wrong(
            "drops the activation",
            [KERNEL.replace("np.maximum(out, 0, out=out)", "out"), CHECK],
            finding="no activation",
        ),
        Wrong(
            "adds the bias in every chunk",
            [
                KERNEL.replace("np.tile(bias, (len(x), 1))", "np.zeros((len(x), len(weight)))").replace(
                    ".T\n", ".T + bias\n"
                ),
                CHECK,
            ],
            finding="bias in every chunk",
        ),
        Wrong(
            "loses the last chunk",
            [KERNEL.replace("range(0, x.shape[1], chunk)", "range(0, x.shape[1] - chunk + 1, chunk)"), CHECK],
            finding="last chunk lost",
        ),
        Wrong(
            "wants every bit",
            [
                KERNEL,
                CHECK.replace("rng.integers(-4, 5, (20, 10)).astype(float)", "rng.normal(size=(20, 10))"),
            ],
            says="`is_right` refuses a right kernel that adds the inputs up in another order.",
        ),
        Wrong(
            "an array of answers",
            [KERNEL, CHECK.replace("np.array_equal(kernel(x, weight, bias, 3), expected)", "[]")],
            says="`is_right` returns True or False; yours returns one of type list.",
        ),
        Wrong(
            "a check with one chunk",
            [KERNEL, CHECK.replace("bias, 3)", "bias, 10)")],
            says="`is_right` lets the defective kernel pass.",
        ),
        Wrong(
            "a check without a bias",
            [KERNEL, CHECK.replace("rng.integers(-4, 5, 6).astype(float)", "np.zeros(6)")],
            says="`is_right` lets a kernel without the bias pass.",
        ),
    ],
)


def products():
    rng = np.random.default_rng(1)
    found = []
    for (n, inputs, units), block in [
        ((1, 1, 1), (1, 1)),
        ((2, 2, 2), (1, 2)),
        ((13, 5, 7), (5, 3)),
        ((4, 6, 8), (100, 100)),
    ]:
        x, weight = whole_numbers(rng, (n, inputs), (units, inputs))
        found.append(Case(x=x, weight=weight, rows=block[0], columns=block[1]))
    return found


def _numbers(x, weight, rows, columns):
    return counted(x, weight, rows, columns)[1]


def _input_once(x, weight, rows, columns):
    return _numbers(x, weight, rows, columns) - x.size * (-(-len(weight) // columns) - 1)


def _rows_for_numbers(x, weight, rows, columns):
    down, across = -(-len(x) // rows), -(-len(weight) // columns)
    return across * len(x) + down * len(weight) + len(x) * len(weight)


def counted(x, weight, rows, columns, *, fetch_once=False, write=True, full=False):
    """The product and the numbers that its blocks move; the options are known slips."""
    n, units, inputs = len(x), len(weight), x.shape[1]
    down, across = -(-n // rows), -(-units // columns)
    if full:
        fetched = down * across * (rows + columns) * inputs
    elif fetch_once:
        fetched = x.size + weight.size
    else:
        fetched = across * x.size + down * weight.size
    return x @ weight.T, fetched + n * units * write


BLOCKING = (
    "for top in range(0, len(x), rows):\n"
    "    for left in range(0, len(weight), columns):\n"
    "        ours, theirs = x[top : top + rows], weight[left : left + columns]\n"
    "        block = ours @ theirs.T\n"
    "        out[top : top + rows, left : left + columns] = block\n"
    "        moved += ours.size + theirs.size + block.size"
)
BLOCKED = Code(
    "fused-blocked",
    entry="blocked",
    template='''
import numpy as np


def blocked(x, weight, rows, columns):
    """The product (N, out) block by block, and how many numbers are moved; x (N, in)."""
    out, moved = np.empty((len(x), len(weight))), 0
    <<make every block of the result, and count: `moved`>>
    return out, moved
''',
    solution=BLOCKING,
    checks=[
        Values(
            products,
            counted,
            returns=("out", "moved"),
            slips=(
                Slip(
                    "fetched once",
                    lambda *case: counted(*case, fetch_once=True)[1],
                    "x and weight are counted once; every block fetches its rows of both anew.",
                    "moved",
                ),
                Slip(
                    "result not written",
                    lambda *case: counted(*case, write=False)[1],
                    "The result is not counted: it is written once.",
                    "moved",
                ),
                Slip(
                    "last rows left out",
                    lambda x, weight, rows, columns: counted(
                        x[: len(x) // rows * rows], weight, rows, columns
                    )[1],
                    "The blocks at the lower edge, which are shorter, are left out.",
                    "moved",
                ),
                Slip(
                    "last columns left out",
                    lambda x, weight, rows, columns: _numbers(
                        x, weight[: len(weight) // columns * columns], rows, columns
                    ),
                    "The blocks at the right edge, which are narrower, are left out.",
                    "moved",
                ),
                Slip(
                    "input fetched once",
                    _input_once,
                    "The rows of x are counted once for a row of blocks; every block fetches them anew.",
                    "moved",
                ),
                Slip(
                    "rows for numbers",
                    _rows_for_numbers,
                    "`len` counts the rows of an array; `size` counts its numbers.",
                    "moved",
                ),
                Slip(
                    "bytes",
                    lambda *case: 8 * _numbers(*case),
                    "These are bytes; the numbers are to be counted, and a float64 has 8 bytes.",
                    "moved",
                ),
                Slip(
                    "edges counted whole",
                    lambda *case: counted(*case, full=True)[1],
                    "The blocks at the edges count as whole ones; they fetch only what is there.",
                    "moved",
                ),
            ),
        )
    ],
    wrong=[
        Wrong(
            "counts the arrays",
            "out[:] = x @ weight.T\nmoved = x.size + weight.size + out.size",
            finding="fetched once",
        ),
        Wrong("forgets the result", BLOCKING.replace(" + block.size", ""), finding="result not written"),
        Wrong(
            "counts whole blocks",
            BLOCKING.replace("ours.size + theirs.size", "(rows + columns) * x.shape[1]"),
            finding="edges counted whole",
        ),
        Wrong("bytes", BLOCKING.replace(".size", ".nbytes"), finding="bytes"),
        Wrong(
            "rows",
            BLOCKING.replace("ours.size + theirs.size", "len(ours) + len(theirs)"),
            finding="rows for numbers",
        ),
        Wrong(
            "fetches the input outside of the inner loop",
            "for top in range(0, len(x), rows):\n    ours = x[top : top + rows]\n    moved += ours.size\n"
            "    for left in range(0, len(weight), columns):\n"
            "        theirs = weight[left : left + columns]\n        block = ours @ theirs.T\n"
            "        out[top : top + rows, left : left + columns] = block\n"
            "        moved += theirs.size + block.size",
            finding="input fetched once",
        ),
        Wrong(
            "whole columns only",
            BLOCKING.replace(
                "range(0, len(weight), columns)", "range(0, len(weight) - columns + 1, columns)"
            ),
            finding="last columns left out",
        ),
        Wrong(
            "whole steps only",
            BLOCKING.replace("range(0, len(x), rows)", "range(0, len(x) - rows + 1, rows)"),
            finding="last rows left out",
        ),
    ],
)
