"""Exercises on memory: the largest batch, equal parameters, and what a network keeps."""

import math

import numpy as np

from denselayer import cost, nn
from denselayer.exercises import Case, Code, Slip, Values, Wrong

COPIES = {"sgd": 2, "momentum": 3, "adam": 4}


def budgets():
    """Memory for a layer from one number to one, for a few rows, for none, and for real networks."""
    return [
        Case(widths=[1, 1], memory=40, optimizer="sgd"),
        Case(widths=[1, 1], memory=43),
        Case(widths=[1, 1], memory=10),
        Case(widths=[2, 3, 1], memory=250, optimizer="momentum"),
        Case(widths=[784, 1000, 10], memory=2**30, optimizer="adam"),
        Case(widths=[512] * 9, memory=10**8, optimizer="sgd"),
    ]


def by_search(widths, memory, optimizer="adam"):
    """The largest batch found by halving: the cost model says of each whether it fits."""

    def fits(rows):
        return cost.network(widths, rows, optimizer=optimizer).nbytes <= memory

    low, high = 0, 1
    while fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _batch(widths, memory, optimizer="adam", *, itemsize=4, copies=0, kept=0):
    fixed = (COPIES[optimizer] + copies) * cost.network_parameters(widths)
    return (memory // itemsize - fixed) // (cost.network_activations(1, widths) + kept)


def _quotient(widths, memory, optimizer="adam"):
    fixed = COPIES[optimizer] * cost.network_parameters(widths)
    return (memory / 4 - fixed) / cost.network_activations(1, widths)


def _exact_quotient(*case):
    return max(_quotient(*case), 0)


def _truncated(*case):
    return int(_quotient(*case))


LARGEST = Code(
    "scale-largest",
    entry="largest_batch",
    template='''
from denselayer import cost


def largest_batch(widths, memory, optimizer="adam"):
    """The largest batch whose training step in float32 fits into `memory` bytes; 0 if no row fits."""
    <<`fixed`: the numbers that are held whatever the batch is>>
    <<return how many rows the rest of the memory is enough for>>
''',
    solution=[
        "parameters = cost.network_parameters(widths)\n"
        "fixed = cost.training_values(parameters, 0, optimizer)",
        "free = memory // 4 - fixed\nreturn max(free // cost.network_activations(1, widths), 0)",
    ],
    checks=[
        Values(
            budgets,
            by_search,
            slips=(
                Slip(
                    "below zero",
                    _batch,
                    "The batch is negative where not even the parameters fit; it should be 0.",
                ),
                Slip(
                    "bytes",
                    lambda *case: max(_batch(*case, itemsize=1), 0),
                    "`memory` counts bytes and the model numbers: a float32 takes 4 bytes.",
                ),
                Slip(
                    "no gradients",
                    lambda *case: max(_batch(*case, copies=-1), 0),
                    "One number for each parameter is missing: parameters, gradients and what the optimiser"
                    " remembers are all held.",
                ),
                Slip(
                    "output kept",
                    lambda widths, *case: max(_batch(widths, *case, kept=widths[-1]), 0),
                    "The output of the network is counted as kept; only the inputs of the layers are.",
                ),
                Slip(
                    "always Adam",
                    lambda widths, memory, optimizer="adam": max(_batch(widths, memory), 0),
                    "The result is that of Adam, whatever `optimizer` says.",
                ),
                Slip(
                    "not whole",
                    _exact_quotient,
                    "A batch has a whole number of rows: round down.",
                ),
                Slip(
                    "rounded up",
                    lambda *case: math.ceil(_exact_quotient(*case)),
                    "The batch is rounded up; it must be rounded down to fit.",
                ),
                Slip(
                    "rounded up",
                    lambda *case: round(_exact_quotient(*case)),
                    "The batch is rounded to the nearest row; it must be rounded down to fit.",
                ),
                Slip(
                    "below zero",
                    _truncated,
                    "The batch is negative where not even the parameters fit; it should be 0.",
                ),
                Slip(
                    "nothing fixed",
                    lambda widths, memory, optimizer="adam": (
                        memory // 4 // cost.network_activations(1, widths)
                    ),
                    "All memory goes to kept values; what is held whatever the batch is comes off first.",
                ),
            ),
        )
    ],
    wrong=[
        Wrong(
            "may be negative",
            [
                "fixed = cost.training_values(cost.network_parameters(widths), 0, optimizer)",
                "return (memory // 4 - fixed) // cost.network_activations(1, widths)",
            ],
            finding="below zero",
        ),
        Wrong(
            "takes bytes for numbers",
            [
                "fixed = cost.training_values(cost.network_parameters(widths), 0, optimizer)",
                "return max((memory - fixed) // cost.network_activations(1, widths), 0)",
            ],
            finding="bytes",
        ),
        Wrong(
            "forgets the gradients",
            [
                'copies = {"sgd": 1, "momentum": 2, "adam": 3}[optimizer]\n'
                "fixed = copies * cost.network_parameters(widths)",
                "return max((memory // 4 - fixed) // sum(widths[:-1]), 0)",
            ],
            finding="no gradients",
        ),
        Wrong(
            "counts the output as kept",
            [
                "fixed = cost.training_values(cost.network_parameters(widths), 0, optimizer)",
                "return max((memory // 4 - fixed) // sum(widths), 0)",
            ],
            finding="output kept",
        ),
        Wrong(
            "rounds up",
            [
                "import math\nfixed = cost.training_values(cost.network_parameters(widths), 0, optimizer)",
                "return max(math.ceil((memory / 4 - fixed) / sum(widths[:-1])), 0)",
            ],
            finding="rounded up",
        ),
        Wrong(
            "counts the rows but does not return them",
            [
                "fixed = cost.training_values(cost.network_parameters(widths), 0, optimizer)",
                "rows = (memory // 4 - fixed) // cost.network_activations(1, widths)",
            ],
            says="`largest_batch` returns None: is the `return` missing?",
        ),
    ],
)


def shapes():
    """Networks of an even width and some depth."""
    return [Case(width=width, depth=depth) for width, depth in [(2, 1), (4, 2), (1024, 3)]]


def batches():
    """The same with a batch."""
    sizes = [(2, 1, 2), (4, 2, 3), (1024, 2, 512)]
    return [Case(width=width, depth=depth, batch=batch) for width, depth, batch in sizes]


def narrow(width, depth):
    widths = [width // 2]
    for _ in range(4 * depth):
        widths.append(width // 2)
    return widths


def by_hand(width, depth, batch):
    """Parameters more, kept values and intensity over those of the wide network, from the formulas."""

    def counts(width, depth):
        parameters = depth * width * (width + 1)
        products = 2 * batch * width + width * width + width
        numbers = depth * products + 2 * (depth - 1) * batch * width
        return parameters, depth * batch * width, 2 * depth * batch * width**2 / (4 * numbers)

    wide, thin = counts(width, depth), counts(width // 2, 4 * depth)
    return thin[0] - wide[0], thin[1] / wide[1], thin[2] / wide[2]


def _both(width, depth, batch):
    return cost.network([width] * (depth + 1), batch), cost.network(narrow(width, depth), batch)


def _parameters_over(width, depth, batch):
    wide, thin = _both(width, depth, batch)
    return thin.parameters / wide.parameters


def _training_intensity(width, depth, batch):
    wide, thin = _both(width, depth, batch)
    return thin.training.intensity / wide.training.intensity


RATIOS = """more = thin.parameters - wide.parameters
kept = thin.kept / wide.kept
intensity = thin.forward.intensity / wide.forward.intensity"""

DEPTH_PRICE = Code(
    "scale-depth-price",
    entry="narrower, compare",
    template='''
from denselayer import cost


def narrower(width, depth):
    """Widths of a network with half the (even) width and four times the depth of `depth` layers."""
    <<return the list of all widths, the inputs first>>


def compare(width, depth, batch):
    """Of the narrow network: parameters more, and factors of kept values and forward intensity."""
    wide = cost.network([width] * (depth + 1), batch)
    thin = cost.network(narrower(width, depth), batch)
    <<`more`, `kept` and `intensity`: narrow minus wide, then twice narrow over wide>>
    return more, kept, intensity
''',
    solution=["return [width // 2] * (4 * depth + 1)", RATIOS],
    checks=[
        Values(
            shapes,
            narrow,
            name="narrower",
            slips=(
                Slip(
                    "one width too few",
                    lambda width, depth: narrow(width, depth)[:-1],
                    "One width is missing: D layers have D + 1 widths, the inputs and the units of each.",
                ),
                Slip(
                    "twice the depth",
                    lambda width, depth: [width // 2] * (2 * depth + 1),
                    "This is twice the depth. A layer of half the width has a quarter of the weights, so four"
                    " take its place.",
                ),
                Slip(
                    "ends kept",
                    lambda width, depth: [width, *narrow(width, depth)[1:-1], width],
                    "The inputs and the outputs still have the old width; here every width is halved.",
                ),
            ),
        ),
        Values(
            batches,
            by_hand,
            name="compare",
            returns=("more", "kept", "intensity"),
            slips=(
                Slip(
                    "wide minus narrow",
                    lambda *case: -by_hand(*case)[0],
                    "`more` has the wrong sign: the narrow network has more parameters, so take it first.",
                    output="more",
                ),
                Slip(
                    "more as a factor",
                    _parameters_over,
                    "`more` is a factor; asked is how many parameters more, a difference.",
                    output="more",
                ),
                Slip(
                    "kept as a difference",
                    lambda *case: np.subtract(*(model.kept for model in _both(*case)[::-1])),
                    "`kept` is a difference; asked is the factor, narrow divided by wide.",
                    output="kept",
                ),
                Slip(
                    "intensity upside down",
                    lambda *case: 1 / by_hand(*case)[2],
                    "`intensity` is upside down: the narrow network is to be divided by the wide one.",
                    output="intensity",
                ),
                Slip(
                    "wide over narrow",
                    lambda *case: 1 / by_hand(*case)[1],
                    "`kept` is upside down: the narrow network is to be divided by the wide one.",
                    output="kept",
                ),
                Slip(
                    "both passes",
                    _training_intensity,
                    "`intensity` is that of both passes together; the forward pass alone is asked for.",
                    output="intensity",
                ),
            ),
        ),
    ],
    wrong=[
        Wrong(
            "as many widths as layers",
            ["return [width // 2] * (4 * depth)", RATIOS],
            finding="one width too few",
        ),
        Wrong(
            "half the width, twice the depth",
            ["return [width // 2] * (2 * depth + 1)", RATIOS],
            finding="twice the depth",
        ),
        Wrong(
            "subtracts the other way round",
            [
                "return [width // 2] * (4 * depth + 1)",
                RATIOS.replace("thin.parameters - wide.parameters", "wide.parameters - thin.parameters"),
            ],
            finding="wide minus narrow",
        ),
        Wrong(
            "takes the intensity of training",
            ["return [width // 2] * (4 * depth + 1)", RATIOS.replace("forward", "training")],
            finding="both passes",
        ),
    ],
)


class Branches(nn.Module):
    """Two modules that get the same input; their outputs are added."""

    def __init__(self, left, right):
        self.left = left
        self.right = right

    def forward(self, x):
        return self.left.forward(x) + self.right.forward(x)


class Run(Case):
    """A network that has run forward, shown as what it is made of and how many rows it got."""

    def __init__(self, network, rows, inputs):
        network.forward(np.ones((rows, inputs)))
        self.said = f"network = {_described(network)} after a batch of shape ({rows}, {inputs})"
        super().__init__(network=network)

    def __str__(self):
        return self.said


def _described(module):
    if isinstance(module, nn.Linear):
        return f"Linear({module.in_features}, {module.out_features})"
    parts = ", ".join(_described(child) for _, child in module.children())
    return f"{type(module).__name__}({parts})"


def runs():
    """A layer, with ReLU, two layers that keep the same array, and nested networks."""

    def linear(ins, outs):
        return nn.Linear(ins, outs, rng=0)

    inner = nn.Sequential(linear(2, 3), nn.Tanh())
    twins = Branches(linear(2, 3), nn.Sequential(linear(2, 3), nn.ReLU()))
    return [
        Run(nn.Sequential(linear(1, 1)), 1, 1),
        Run(nn.Sequential(linear(1, 1), nn.ReLU()), 1, 1),
        Run(Branches(linear(1, 1), linear(1, 1)), 1, 1),
        Run(nn.Sequential(linear(2, 1), nn.ReLU()), 3, 2),
        Run(nn.Sequential(inner, linear(3, 1)), 2, 2),
        Run(nn.Sequential(twins, nn.GELU(), linear(3, 2)), 4, 2),
        Run(nn.Sequential(linear(20, 30), nn.GELU(), linear(30, 5)), 8, 20),
    ]


def held(network):
    """All arrays that the modules hold, a shared one as often as it is held, found by descending."""
    kept = vars(network).get("_kept")
    found = [kept] if isinstance(kept, np.ndarray) else []
    for _, child in network.children():
        found += held(child)
    return found


def each_once(network):
    return sum({id(array): array.size for array in held(network)}.values())


def _top(network):
    arrays = [getattr(child, "_kept", None) for _, child in network.children()]
    return sum({id(a): a.size for a in arrays if isinstance(a, np.ndarray)}.values())


TRACER = Code(
    "scale-tracer",
    entry="kept_values",
    template='''
import numpy as np


def kept_values(network):
    """How many values the arrays hold that the modules of `network` keep in `_kept`, each array once."""
    held = {}
    for module in network.modules():
        <<if `module` keeps an array, enter it in `held` so that the same array is there only once>>
    <<return the number of values>>
''',
    solution=[
        'kept = getattr(module, "_kept", None)\nif isinstance(kept, np.ndarray):\n'
        "    held[id(kept)] = kept.size",
        "return sum(held.values())",
    ],
    checks=[
        Values(
            runs,
            each_once,
            slips=(
                Slip(
                    "counted twice",
                    lambda network: sum(array.size for array in held(network)),
                    "An array that two modules keep is counted twice: it is one piece of memory.",
                ),
                Slip(
                    "arrays",
                    lambda network: len({id(array) for array in held(network)}),
                    "This is the number of arrays; their values are to be counted.",
                ),
                Slip(
                    "bytes",
                    lambda network: 8 * each_once(network),
                    "These are bytes; the values are to be counted, and a float64 has 8 bytes.",
                ),
                Slip(
                    "rows",
                    lambda network: sum({id(array): len(array) for array in held(network)}.values()),
                    "`len` of an array is the number of its rows; `size` counts its values.",
                ),
                Slip(
                    "one for each shape",
                    lambda network: sum({array.shape: array.size for array in held(network)}.values()),
                    "Two arrays of the same shape count as one here; tell arrays apart by `id`.",
                ),
                Slip(
                    "not nested",
                    _top,
                    "Modules inside of modules are left out; `modules()` goes all the way down.",
                ),
            ),
        )
    ],
    wrong=[
        Wrong(
            "one entry for each module",
            [
                'kept = getattr(module, "_kept", None)\nif isinstance(kept, np.ndarray):\n'
                "    held[id(module)] = kept.size",
                "return sum(held.values())",
            ],
            finding="counted twice",
        ),
        Wrong(
            "tells arrays apart by their shape",
            [
                'kept = getattr(module, "_kept", None)\nif isinstance(kept, np.ndarray):\n'
                "    held[kept.shape] = kept.size",
                "return sum(held.values())",
            ],
            finding="one for each shape",
        ),
        Wrong(
            "counts the arrays",
            [
                'kept = getattr(module, "_kept", None)\nif isinstance(kept, np.ndarray):\n'
                "    held[id(kept)] = kept.size",
                "return len(held)",
            ],
            finding="arrays",
        ),
        Wrong(
            "takes the length",
            [
                'kept = getattr(module, "_kept", None)\nif isinstance(kept, np.ndarray):\n'
                "    held[id(kept)] = len(kept)",
                "return sum(held.values())",
            ],
            finding="rows",
        ),
        Wrong(
            "takes every `_kept` for an array",
            ["held[id(module._kept)] = module._kept.size", "return sum(held.values())"],
            finding="AttributeError",
        ),
    ],
)
