"""Code exercises on results that are stored over their input: a layer in blocks, an epilogue in tiles."""

import numpy as np

from denselayer import functional as F
from denselayer.exercises import Case, Code, Fault, Property, Slip, Values, Wrong
from denselayer.exercises._allocated import peak_bytes

from ._kernels import whole_numbers


def squares():
    rng = np.random.default_rng(4)
    found = [
        Case(x=np.array([[1.0, 2.0]]), weight=np.array([[1.0, 1.0], [1.0, 0.0]]), bias=np.zeros(2), rows=1)
    ]
    for n, width, rows in [(3, 3, 2), (7, 4, 3), (4, 2, 10)]:
        x, weight, bias = whole_numbers(rng, (n, width), (width, width), (width,))
        found.append(Case(x=x, weight=weight, bias=bias, rows=rows))
    return found


def _entry_by_entry(x, weight, bias, rows):
    for n in range(len(x)):
        for i in range(len(weight)):
            x[n, i] = max(x[n] @ weight[i] + bias[i], 0)
    return x


def _in_place(overwrite):
    x, weight, bias = whole_numbers(np.random.default_rng(5), (5, 3), (3, 3), (3,))
    expected = F.relu(F.linear(x, weight, bias))
    result = overwrite(x, weight, bias, 2)
    if not np.allclose(x, expected):
        return "`x` does not hold the result afterwards: store each block over its rows of `x`."
    if result is not x and not (isinstance(result, np.ndarray) and np.shares_memory(result, x)):
        return "The result is another array; return `x` itself."
    return None


def _one_buffer(overwrite):
    """The memory of a call in 80 blocks."""
    x = np.ones((4000, 8))
    if peak_bytes(overwrite, x, np.eye(8), np.zeros(8), 50) < x.nbytes / 4:
        return None
    said = "The result is stored over `x`, but on the way there is a second array about as large as `x`."
    advice = "Compute `rows` rows into the buffer and store them; then go on with the next rows."
    return Fault("values", said, (advice,), finding="not in blocks")


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
                Slip(
                    "weight not transposed",
                    lambda x, weight, bias, rows: F.relu(x @ weight + bias),
                    "The weight is not transposed: row i of the weight makes output i.",
                ),
                Slip("nothing stored", lambda x, weight, bias, rows: x, "Nothing is stored: x is as it was."),
            ),
        ),
        Property(_in_place, "not in place"),
        Property(_one_buffer),
    ],
    wrong=[
        Wrong(
            "entry by entry",
            "for n in range(len(x)):\n    for i in range(len(weight)):\n"
            "        x[n, i] = max(x[n] @ weight[i] + bias[i], 0)",
            finding="entry by entry",
        ),
        Wrong("everything at once", "x[:] = np.maximum(x @ weight.T + bias, 0)", finding="not in blocks"),
        Wrong(
            "weight not transposed",
            "for top in range(0, len(x), rows):\n    block = x[top : top + rows]\n"
            "    block[:] = np.maximum(block @ weight + bias, 0)",
            finding="weight not transposed",
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
    if not (isinstance(result, np.ndarray) and np.shares_memory(result, z)):
        return "The result is another array; return `z` itself."
    return None


def _small_buffers(leaky_epilogue):
    """The memory of a call in some 60 tiles."""
    z = np.ones((4000, 48), np.float32)
    if peak_bytes(leaky_epilogue, z, np.ones(48, np.float32), 0.1) < z.nbytes / 8:
        return None
    said = "The result is stored over `z`, but on the way there is another array that grows with `z`."
    advice = "Work on one tile after the other, and give it or the small buffer as `out=`."
    return Fault("values", said, (advice,), finding="not in tiles")


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
        Property(_small_buffers),
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
            "all at once",
            "z += bias\nnp.maximum(z, z.dtype.type(slope) * z, out=z)",
            finding="not in tiles",
        ),
        Wrong(
            "a new array",
            "z = z + bias\nz = np.maximum(z, z.dtype.type(slope) * z)",
            finding="not in place",
        ),
    ],
)
