"""Code exercises on what a backward pass holds: fewer inputs kept, and no matrix for each sample."""

import tracemalloc

import numpy as np

from denselayer import nn
from denselayer.doctor import diagnose
from denselayer.exercises import Case, Code, Fault, Property, Slip, Values, Wrong
from denselayer.exercises._running import calls_run


def chains():
    """From one layer of one unit to 16 layers of four, the last segment shorter in some."""
    rng = np.random.default_rng(11)
    found = []
    for layers, every in [(1, 1), (2, 1), (3, 2), (4, 2)]:
        chain = [(np.array([[at % 2 + 0.5]]), np.array([0.0])) for at in range(layers)]
        found.append(Case(d_end=np.array([[2.0]]), x=np.array([[1.0]]), chain=chain, every=every))
    for layers, width, every in [(5, 2, 3), (16, 4, 4)]:
        chain = [(rng.normal(size=(width, width)) / 2.0, rng.normal(size=width)) for _ in range(layers)]
        d_end, x = rng.normal(size=(3, width)), rng.normal(size=(3, width))
        found.append(Case(d_end=d_end, x=x, chain=chain, every=every))
    return found


def whole_chains():
    return [Case(**{name: case.arguments[name] for name in ("d_end", "x", "chain")}) for case in chains()]


def through(d_out, x, chain):
    """The gradient of x and those of the weights, from the package's own layers."""
    layers = [layer for pair in chain for layer in (nn.Linear.from_arrays(*pair), nn.Tanh())]
    network = nn.Sequential(*layers)
    network(x)
    return network.backward(d_out), [layer.weight.grad for layer in layers[::2]]


def weight_gradients(d_end, x, chain):
    return through(d_end, x, chain)[1]


def segment_by_segment(d_end, x, chain, every, *, handed_down=True, late=0):
    """The weight gradients with a mistake at the border of segments.

    Args:
        handed_down: whether a segment gets the gradient of the segment above, or ``d_end``.
        late: by how many layers the kept inputs come too late.
    """
    values = [x]
    for weight, bias in chain:
        values.append(np.tanh(values[-1] @ weight.T + bias))
    d_h, found = d_end, []
    for at in reversed(range(0, len(chain), every)):
        d_h, part = through(d_h, values[at + late], chain[at : at + every])
        d_h = d_h if handed_down else d_end
        found = part + found
    return found


def segments_turned(d_end, x, chain, every):
    right = weight_gradients(d_end, x, chain)
    starts = range(0, len(chain), every)
    return [d_weight for at in reversed(starts) for d_weight in right[at : at + every]]


def all_kept(d_end, x, chain):
    return weight_gradients(d_end, x, chain), len(chain), len(chain)


def some_kept(d_end, x, chain, every):
    lengths = [len(chain[at : at + every]) for at in range(0, len(chain), every)]
    most = max(at + length for at, length in enumerate(lengths))
    return weight_gradients(d_end, x, chain), 2 * len(chain), most


def biggest(chain, every, more):
    """A wrong count of inputs: ``more`` of the number of segments, and the longest segment."""
    segments, longest = -(-len(chain) // every), min(every, len(chain))
    return {"kept": segments, "segment": longest, "all": len(chain)}[more]


def weights_alone(keep, *every):
    """The report on the weight gradients of a chain of five layers."""
    d_end, x, chain, _ = chains()[4].fresh()
    biases = [bias for _, bias in chain]

    def pairs(params):
        return list(zip(params.values(), biases, strict=True))

    def loss(params):
        h = x
        for weight, bias in pairs(params):
            h = np.tanh(h @ weight.T + bias)
        return np.sum(d_end * h)

    def grads(params):
        return dict(zip(params, keep(d_end, x, pairs(params), *every)[0], strict=True))

    return diagnose(loss, {f"weight {at}": weight for at, (weight, _) in enumerate(chain, 1)}, grads)


def products_counted(keep_all, keep_some):
    """The number of products must be the number of the calls that were made."""
    for function, case in [(keep_all, whole_chains()[3]), (keep_some, chains()[3])]:
        result, calls = calls_run(function, case.fresh(), "layer")
        products = result["products"] if isinstance(result, dict) else result[1]
        if calls and calls != products:
            name = "keep_all" if function is keep_all else "keep_some"
            said = f"`{name}` says {products} forward products, and has called `layer` {calls} times."
            return Fault("values", said, ("Count where a layer runs.",), str(case), "products not counted")
    return None


ORDER = Slip(
    "top first",
    lambda d_end, x, chain, *every: weight_gradients(d_end, x, chain)[::-1],
    "`d_weights` is in the order of the way back: the bottom layer stands first.",
    output="d_weights",
)
KEEP_ALL = """
values = run(x, chain)
_, d_weights = back(d_end, values, chain)
products = most = len(chain)
"""
FORWARD = """
kept, h, products = [], x, 0
for at, (weight, bias) in enumerate(chain):
    if at % every == 0:
        kept.append(h)
    h = layer(h, weight, bias)
    products += 1
"""
BACKWARD = """
d_h, d_weights, most = d_end, [], 0
while kept:
    h = kept.pop()
    segment = chain[len(kept) * every : (len(kept) + 1) * every]
    values = run(h, segment)
    products += len(segment)
    most = max(most, len(kept) + len(segment))
    d_h, part = back(d_h, values, segment)
    d_weights = part + d_weights
"""

CHECKPOINT = Code(
    "backprop-checkpoint",
    entry="keep_all, keep_some",
    template='''
import numpy as np

from denselayer import functional as F


def layer(h, weight, bias):
    """One layer of the chain: h (N, n), weight (n, n), bias (n,) -> (N, n)"""
    return np.tanh(F.linear(h, weight, bias))


def run(h, layers):
    """The input of each layer and the output of the last, a list longer by one than layers."""
    values = [h]
    for weight, bias in layers:
        values.append(layer(values[-1], weight, bias))
    return values


def back(d_h, values, layers):
    """Back through layers with the values of `run`: the gradient of values[0], and the list of d_weight."""
    d_weights = []
    for at in reversed(range(len(layers))):
        d_z = d_h * (1.0 - values[at + 1] ** 2)
        d_h, d_weight, _ = F.linear_backward(d_z, values[at], layers[at][0])
        d_weights.insert(0, d_weight)
    return d_h, d_weights


def keep_all(d_end, x, chain):
    """d_end and x (N, n), chain: pairs (weight, bias) -> d_weights, products, most"""
    <<forward once, keeping every input, and back>>
    return d_weights, products, most


def keep_some(d_end, x, chain, every):
    """The same with the input of every segment of `every` layers kept alone -> d_weights, products, most"""
    <<forward, keeping the input of every segment: kept, products>>
    <<back, segment by segment: d_weights, products, most>>
    return d_weights, products, most
''',
    solution=[KEEP_ALL, FORWARD, BACKWARD],
    checks=[
        Values(
            whole_chains,
            all_kept,
            name="keep_all",
            returns=("d_weights", "products", "most"),
            doctor=weights_alone,
            slips=(
                ORDER,
                Slip(
                    "output counted",
                    lambda d_end, x, chain: len(chain) + 1,
                    "`most` counts the output of the last layer too; the inputs of the layers are asked.",
                    output="most",
                ),
                Slip(
                    "products of both ways",
                    lambda d_end, x, chain: 2 * len(chain),
                    "`products` is twice the number of layers: `keep_all` runs every layer forward once.",
                    output="products",
                ),
                Slip(
                    "values counted",
                    lambda d_end, x, chain: len(chain) + 1,
                    "`products` counts the values; there is one more than layers.",
                    output="products",
                ),
            ),
        ),
        Values(
            chains,
            some_kept,
            name="keep_some",
            returns=("d_weights", "products", "most"),
            doctor=lambda keep_some: weights_alone(keep_some, 3),
            slips=(
                ORDER,
                Slip(
                    "second run not counted",
                    lambda d_end, x, chain, every: len(chain),
                    "`products` counts the first run alone: every segment is run forward a second time.",
                    output="products",
                ),
                Slip(
                    "last segment not run again",
                    lambda d_end, x, chain, every: 2 * len(chain) - (len(chain) % every or every),
                    "`products` leaves out the second run of the last segment: it is run again like the"
                    " others.",
                    output="products",
                ),
                Slip(
                    "kept ones alone",
                    lambda d_end, x, chain, every: biggest(chain, every, "kept"),
                    "`most` counts the kept inputs alone: the recomputed inputs of a segment are held too"
                    " while it"
                    " is gone through.",
                    output="most",
                ),
                Slip(
                    "one too many",
                    lambda *net: some_kept(*net)[2] + 1,
                    "`most` is one too large: the kept input of a segment is the input of its first layer,"
                    " and the output of its last layer is no input.",
                    output="most",
                ),
                Slip(
                    "one segment alone",
                    lambda d_end, x, chain, every: biggest(chain, every, "segment"),
                    "`most` is the length of one segment: the inputs of the segments still to come are held"
                    " as well. Take the largest number of all segments.",
                    output="most",
                ),
                Slip(
                    "all kept",
                    lambda d_end, x, chain, every: biggest(chain, every, "all"),
                    "`most` is the number of all layers: keep only the inputs of the segments, and drop"
                    " what a"
                    " segment has used.",
                    output="most",
                ),
                Slip(
                    "segments in the order of the way back",
                    lambda *net: segments_turned(*net),
                    "In `d_weights` the segments are in the order of the way back: the bottom one stands"
                    " first.",
                    output="d_weights",
                ),
                Slip(
                    "every segment gets d_end",
                    lambda *net: segment_by_segment(*net, handed_down=False),
                    "Every segment starts with d_end: it gets the gradient that the segment above hands"
                    " down.",
                    output="d_weights",
                ),
                Slip(
                    "input after the layer",
                    lambda *net: segment_by_segment(*net, late=1),
                    "What is kept for a segment is the output of its first layer: keep h before that layer"
                    " is run.",
                    output="d_weights",
                ),
            ),
        ),
        Property(products_counted),
    ],
    wrong=[
        Wrong(
            "keeps everything, and says otherwise",
            [
                KEEP_ALL,
                "d_weights, products, _ = keep_all(d_end, x, chain)",
                "products, starts = 2 * products, range(0, len(chain), every)\n"
                "most = max(n + min(every, len(chain) - at) for n, at in enumerate(starts))",
            ],
            finding="products not counted",
        ),
        Wrong(
            "gradients transposed",
            [
                KEEP_ALL,
                FORWARD,
                BACKWARD.replace("part + d_weights", "[d_weight.T for d_weight in part] + d_weights"),
            ],
            finding="weight-transposed",
        ),
        Wrong(
            "segments in the order of the way back",
            [KEEP_ALL, FORWARD, BACKWARD.replace("part + d_weights", "d_weights + part")],
            finding="segments in the order of the way back",
        ),
        Wrong(
            "top layer first",
            [KEEP_ALL, FORWARD, BACKWARD.replace("part + d_weights", "d_weights + part[::-1]")],
            finding="top first",
        ),
        Wrong(
            "second run not counted",
            [KEEP_ALL, FORWARD, BACKWARD.replace("    products += len(segment)\n", "")],
            finding="second run not counted",
        ),
        Wrong(
            "counts the kept ones alone",
            [
                KEEP_ALL,
                FORWARD,
                BACKWARD.replace(
                    "most = max(most, len(kept) + len(segment))", "most = max(most, len(kept) + 1)"
                ),
            ],
            finding="kept ones alone",
        ),
        Wrong(
            "counts the input of the segment twice",
            [
                KEEP_ALL,
                FORWARD,
                BACKWARD.replace("len(kept) + len(segment))", "len(kept) + 1 + len(segment))"),
            ],
            finding="one too many",
        ),
        Wrong(
            "starts every segment with d_end",
            [KEEP_ALL, FORWARD, BACKWARD.replace("d_h, part = back(d_h,", "_, part = back(d_end,")],
            finding="every segment gets d_end",
        ),
        Wrong(
            "keeps the output of a segment",
            [
                KEEP_ALL,
                FORWARD.replace(
                    "    if at % every == 0:\n        kept.append(h)\n    h = layer(h, weight, bias)\n",
                    "    h = layer(h, weight, bias)\n    if at % every == 0:\n        kept.append(h)\n",
                ),
                BACKWARD,
            ],
            finding="input after the layer",
        ),
    ],
)


def samples():
    """One number, one row, two rows, then more, with out unequal to in."""
    found = [
        Case(d_out=np.array([[3.0]]), x=np.array([[2.0]])),
        Case(d_out=np.array([[1.0, 2.0]]), x=np.array([[3.0, 1.0]])),
        Case(d_out=np.array([[1.0, -1.0], [2.0, 0.0]]), x=np.array([[1.0, 2.0], [-3.0, 1.0]])),
    ]
    rng = np.random.default_rng(12)
    return [*found, Case(d_out=rng.normal(size=(6, 3)), x=rng.normal(size=(6, 5)))]


def from_matrices(d_out, x):
    return np.sum((d_out[:, :, None] * x[:, None, :]) ** 2, axis=(1, 2))


def memory(squared_norms, rows=4, width=300):
    """No array may be as large as the gradient of one sample."""
    d_out, x = np.ones((rows, width)), np.ones((rows, width))
    matrix = width * width * d_out.itemsize
    running = tracemalloc.is_tracing()
    if not running:
        tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        squared_norms(d_out, x)
        taken = tracemalloc.get_traced_memory()[1] - before
    finally:
        if not running:
            tracemalloc.stop()
    if taken < matrix / 2:
        return None
    what = (
        "the matrices of all samples at once" if taken > 2 * matrix else "one sample's matrix after the other"
    )
    headline = f"Your function builds {what}: only N · in or N · out entries are allowed."
    seen = (
        f"For N = {rows} and in = out = {width} it takes {taken / 8:,.0f} numbers at once; x has {x.size:,}."
    )
    return Fault("values", headline, (seen,), finding="builds the matrices")


PER_SAMPLE = Code(
    "backprop-per-sample",
    entry="squared_norms",
    template='''
import numpy as np


def squared_norms(d_out, x):
    """d_out (N, out), x (N, in) -> (N,): the sum of the squares of each sample's weight gradient"""
    <<all of them, without a matrix (out, in)>>
''',
    solution="return np.sum(d_out**2, axis=1) * np.sum(x**2, axis=1)",
    checks=[
        Values(
            samples,
            from_matrices,
            slips=(
                Slip(
                    "square after the sum",
                    lambda d_out, x: (d_out.sum(axis=1) * x.sum(axis=1)) ** 2,
                    "The square comes after the sum: add the squares of the entries, not the entries.",
                ),
                Slip(
                    "root taken",
                    lambda d_out, x: np.sqrt(from_matrices(d_out, x)),
                    "This is the length of each gradient; the sum of the squares is its square.",
                ),
                Slip(
                    "sum of two sums",
                    lambda d_out, x: np.sum(d_out**2, axis=1) + np.sum(x**2, axis=1),
                    "The two sums are added: every square of d_out meets every square of x, so they are"
                    " multiplied.",
                ),
                Slip(
                    "means",
                    lambda d_out, x: np.mean(d_out**2, axis=1) * np.mean(x**2, axis=1),
                    "These are means of squares; their sums are asked.",
                ),
                Slip(
                    "absolute values",
                    lambda d_out, x: np.abs(d_out).sum(axis=1) * np.abs(x).sum(axis=1),
                    "The absolute values are added; their squares are asked.",
                ),
                Slip(
                    "whole batch",
                    lambda d_out, x: np.sum(np.sum(d_out**2, axis=1) * np.sum(x**2, axis=1)),
                    "This is one number for the whole batch; each row has its own.",
                ),
                Slip(
                    "gradient of the batch",
                    lambda d_out, x: np.sum((d_out.T @ x) ** 2),
                    "This is the gradient of the batch, in which the samples are mixed: square and sum in"
                    " each row.",
                ),
            ),
        ),
        Property(memory),
    ],
    wrong=[
        Wrong(
            "square after the sum",
            "return (d_out.sum(axis=1) * x.sum(axis=1)) ** 2",
            finding="square after the sum",
        ),
        Wrong(
            "sums added", "return np.sum(d_out**2, axis=1) + np.sum(x**2, axis=1)", finding="sum of two sums"
        ),
        Wrong(
            "lengths",
            "return np.linalg.norm(d_out, axis=1) * np.linalg.norm(x, axis=1)",
            finding="root taken",
        ),
        Wrong(
            "all matrices at once",
            'return np.sum(np.einsum("no,ni->noi", d_out, x) ** 2, axis=(1, 2))',
            finding="builds the matrices",
        ),
        Wrong(
            "one matrix after the other",
            "return np.array([np.sum(np.outer(d, v) ** 2) for d, v in zip(d_out, x)])",
            finding="builds the matrices",
        ),
        Wrong("gradient of the batch", "return np.sum((d_out.T @ x) ** 2)", finding="gradient of the batch"),
    ],
)
