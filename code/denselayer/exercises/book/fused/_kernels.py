"""The code exercises of the chapter "The fused GEMM"."""

import numpy as np

from denselayer import functional as F
from denselayer.exercises import Case, Code, Fault, Property, Slip, Values, Wrong

TRIP = np.array([[2.0, 4.0, 1.0]])
WEIGHT = np.array([[0.5, -1.0, 2.0], [-0.25, 0.5, 1.0], [1.0, 0.25, -0.5]])
BIAS = np.array([3.0, -1.0, -4.0])


def _whole(rng, *shapes):
    return [rng.integers(-4, 5, shape).astype(float) for shape in shapes]


def chunked():
    """One sum that falls below 0 on its way; the running example; a batch with a last chunk that is short."""
    x, weight, bias = _whole(np.random.default_rng(0), (20, 10), (6, 10), (6,))
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


def _linear(x, weight, bias, chunk):
    return F.linear(x, weight, bias)


KERNELS = {
    "the defective kernel": defective,
    "a kernel without the bias": _without_bias,
    "a kernel without the activation": _linear,
    "a kernel that drops a last chunk that is short": _drops_the_rest,
}


def _tells(repaired, is_right):
    if not is_right(sound):
        return Fault("values", "`is_right` refuses a right kernel.", finding="false alarm")
    for name, kernel in KERNELS.items():
        if is_right(kernel):
            return Fault("values", f"`is_right` lets {name} pass.", finding=f"passes {name}")
    return None


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
        x, weight = _whole(rng, (n, inputs), (units, inputs))
        found.append(Case(x=x, weight=weight, rows=block[0], columns=block[1]))
    return found


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
        Wrong(
            "whole steps only",
            BLOCKING.replace("range(0, len(x), rows)", "range(0, len(x) - rows + 1, rows)"),
            finding="last rows left out",
        ),
    ],
)


def close_calls():
    rng = np.random.default_rng(2)
    one = np.float32([[1.0, 2.0**-24, 2.0**-24, -1.0]])
    products = rng.standard_normal((400, 64), dtype=np.float32)
    offsets = -products.astype(float).sum(axis=1).astype(np.float32)
    return [Case(products=one, offsets=np.float32([-(2.0**-23)])), Case(products=products, offsets=offsets)]


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
            "a gate for each",
            [FLIPPING[0], "return d_out * (z > 0), d_out * (other > 0)"],
            finding="two gates",
        ),
        Wrong("opens at 0", [FLIPPING[0], FLIPPING[1].replace("z > 0", "z >= 0")], finding="gate open at 0"),
    ],
)


def squares():
    rng = np.random.default_rng(4)
    found = [
        Case(x=np.array([[1.0, 2.0]]), weight=np.array([[1.0, 1.0], [1.0, 0.0]]), bias=np.zeros(2), rows=1)
    ]
    for n, width, rows in [(3, 3, 2), (7, 4, 3), (4, 2, 10)]:
        x, weight, bias = _whole(rng, (n, width), (width, width), (width,))
        found.append(Case(x=x, weight=weight, bias=bias, rows=rows))
    return found


def _entry_by_entry(x, weight, bias, rows):
    for n in range(len(x)):
        for i in range(len(weight)):
            x[n, i] = max(x[n] @ weight[i] + bias[i], 0)
    return x


def _in_place(overwrite):
    x, weight, bias = _whole(np.random.default_rng(5), (5, 3), (3, 3), (3,))
    expected = F.relu(F.linear(x, weight, bias))
    result = overwrite(x, weight, bias, 2)
    if not np.allclose(x, expected):
        return "`x` does not hold the result afterwards: store each block over its rows of `x`."
    if result is not x and not np.shares_memory(result, x):
        return "The result is another array; return `x` itself."
    return None


OVERWRITING = (
    "for top in range(0, len(x), rows):\n"
    "    block = x[top : top + rows]\n"
    "    place = buffer[: len(block)]\n"
    "    block[:] = fused.linear_act(block, weight, bias, out=place)"
)
IN_PLACE = Code(
    "fused-in-place",
    entry="overwrite",
    template='''
import numpy as np

from denselayer import fused


def overwrite(x, weight, bias, rows):
    """ReLU of the square layer, stored over x (N, n), with one buffer of `rows` rows."""
    buffer = np.empty((rows, len(weight)))
    <<block by block: compute into the buffer, then store>>
    return x
''',
    solution=OVERWRITING,
    checks=[
        Values(
            squares,
            lambda x, weight, bias, rows: F.relu(F.linear(x, weight, bias)),
            may_change=("x",),
            slips=(
                Slip(
                    "entry by entry",
                    _entry_by_entry,
                    "An output is stored while its row is still needed: the next output is computed from it.",
                ),
                Slip(
                    "short block lost",
                    lambda x, weight, bias, rows: _short_block_lost(x, weight, bias, rows),
                    "The last block, which is shorter, is left as it was.",
                ),
                Slip(
                    "no activation",
                    lambda x, weight, bias, rows: F.linear(x, weight, bias),
                    "ReLU is missing.",
                ),
                Slip("nothing stored", lambda x, weight, bias, rows: x, "Nothing is stored: x is as it was."),
            ),
        ),
        Property(_in_place, "not in place"),
    ],
    wrong=[
        Wrong(
            "entry by entry",
            "for n in range(len(x)):\n    for i in range(len(weight)):\n"
            "        x[n, i] = max(x[n] @ weight[i] + bias[i], 0)",
            finding="entry by entry",
        ),
        Wrong(
            "a new array",
            "x = np.maximum(x @ weight.T + bias, 0)",
            finding="not in place",
        ),
        Wrong(
            "loses the last block",
            OVERWRITING.replace("range(0, len(x), rows)", "range(0, len(x) - rows + 1, rows)"),
            finding="short block lost",
        ),
        Wrong(
            "writes over the input at once",
            "fused.linear_act(x, weight, bias, out=x)",
            finding="ValueError",
        ),
    ],
)


def _short_block_lost(x, weight, bias, rows):
    whole = len(x) // rows * rows
    out = x.copy()
    out[:whole] = F.relu(F.linear(x[:whole], weight, bias))
    return out


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


def ratios(plain, fused, cut, middle=np.median):
    both = np.divide(plain, fused)
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
                    lambda *case: ratios(*case, middle=np.mean),
                    "Those are means; a single slow round moves a mean, so the median is asked.",
                ),
                Slip(
                    "no pairs",
                    lambda *case: ratios(*case)[0],
                    "`pairs` is the ratio of the medians again: divide within each round first.",
                    "pairs",
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
            "divides lists", [RATIOS[0], "pairs = np.median(plain / fused)", RATIOS[2]], finding="TypeError"
        ),
    ],
)


def tiles():
    rng = np.random.default_rng(7)
    found = [Case(z=np.float32([[1.0, -2.0]]), bias=np.float32([1.0, -1.0]), slope=0.5)]
    for n, width, slope in [(2, 2, 0.0), (100, 48, 0.1), (3, 5, 1.0)]:
        z = rng.standard_normal((n, width), dtype=np.float32)
        found.append(Case(z=z, bias=rng.standard_normal(width, dtype=np.float32), slope=slope))
    return found


def leaky(z, bias, slope):
    return F.leaky_relu(z + bias, negative_slope=slope)


def _stays_in_place(leaky_epilogue):
    z, bias = np.float32([[1.0, -2.0], [3.0, -4.0]]), np.float32([0.5, 0.5])
    result = leaky_epilogue(z, bias, 0.1)
    if not np.allclose(z, leaky(np.float32([[1.0, -2.0], [3.0, -4.0]]), bias, 0.1)):
        return "`z` does not hold the result afterwards: give its tiles as `out=`."
    if not np.shares_memory(result, z):
        return "The result is another array; return `z` itself."
    return None


TILES = (
    "for start in range(0, flat.size, size):\n"
    "    tile = flat[start : start + size]\n"
    "    scaled = small[: tile.size]\n"
    "    np.add(tile, biases[: tile.size], out=tile)\n"
    "    np.multiply(tile, z.dtype.type(slope), out=scaled)\n"
    "    np.maximum(tile, scaled, out=tile)"
)
EPILOGUE = Code(
    "fused-epilogue",
    entry="leaky_epilogue",
    template='''
import numpy as np


def leaky_epilogue(z, bias, slope, tile_rows=64):
    """Leaky ReLU of z (N, out) + bias (out,), float32, in place; 0 <= slope <= 1."""
    flat, size = z.reshape(-1), tile_rows * z.shape[1]
    biases, small = np.tile(bias, tile_rows), np.empty(size, z.dtype)
    <<for every tile: add the bias, scale into `small`, and take the maximum>>
    return z
''',
    solution=TILES,
    checks=[
        Values(
            tiles,
            leaky,
            may_change=("z",),
            keeps_dtype=True,
            slips=(
                Slip(
                    "minimum",
                    lambda z, bias, slope: np.minimum(z + bias, slope * (z + bias)),
                    "The minimum takes the wrong branch: for a slope between 0 and 1 it is the maximum.",
                ),
                Slip(
                    "bias after the activation",
                    lambda z, bias, slope: F.leaky_relu(z, negative_slope=slope) + bias,
                    "The bias is added after the activation; it belongs before it.",
                ),
                Slip(
                    "no bias",
                    lambda z, bias, slope: F.leaky_relu(z, negative_slope=slope),
                    "The bias is left out.",
                ),
                Slip(
                    "relu",
                    lambda z, bias, slope: F.relu(z + bias),
                    "Below 0 everything is 0: that is a ReLU.",
                ),
                Slip(
                    "first tile only",
                    lambda z, bias, slope: np.concatenate([leaky(z[:64], bias, slope), z[64:]]),
                    "Only the first tile is done.",
                ),
            ),
        ),
        Property(_stays_in_place, "not in place"),
    ],
    wrong=[
        Wrong("the minimum", TILES.replace("np.maximum", "np.minimum"), finding="minimum"),
        Wrong(
            "the bias at the end",
            "for start in range(0, flat.size, size):\n"
            "    tile = flat[start : start + size]\n"
            "    scaled = small[: tile.size]\n"
            "    np.multiply(tile, z.dtype.type(slope), out=scaled)\n"
            "    np.maximum(tile, scaled, out=tile)\n"
            "    np.add(tile, biases[: tile.size], out=tile)",
            finding="bias after the activation",
        ),
        Wrong(
            "a ReLU",
            TILES.replace("    np.multiply(tile, z.dtype.type(slope), out=scaled)\n", "    scaled[:] = 0\n"),
            finding="relu",
        ),
        Wrong(
            "a new array",
            "z = z + bias\nz = np.maximum(z, z.dtype.type(slope) * z)",
            finding="not in place",
        ),
    ],
)
