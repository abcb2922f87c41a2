"""Exercises on several devices: a bias that is added once, and averages over unequal shares."""

import numpy as np

from denselayer import functional as F
from denselayer import parallel
from denselayer.doctor import diagnose
from denselayer.exercises import Case, Code, Fault, Property, Slip, Values, Wrong


class Devices(parallel.Devices):
    """Devices that remember what was put into an all-reduce."""

    def __init__(self, count):
        super().__init__(count)
        self.added_up = []

    def all_reduce(self, arrays):
        self.added_up.append(list(arrays))
        return super().all_reduce(arrays)

    def __repr__(self):
        return f"Devices({self.count})"


def split_layers():
    """A layer from one number to one on 1, 2 and 3 devices, and wider ones on up to 8."""
    rng = np.random.default_rng(7)
    one = {"x": np.array([[2.0]]), "weight": np.array([[3.0]]), "bias": np.array([1.0])}
    found = [Case(devices=Devices(p), **one) for p in (1, 2)]
    for p, rows, ins, outs in [(2, 1, 2, 1), (3, 2, 4, 3), (8, 3, 5, 2)]:
        x, weight = rng.integers(-3, 4, (rows, ins)), rng.integers(-3, 4, (outs, ins))
        bias = rng.integers(1, 5, outs).astype(float)
        found.append(Case(devices=Devices(p), x=x.astype(float), weight=weight.astype(float), bias=bias))
    return found


def whole(devices, x, weight, bias):
    """The output of the layer that is not split, for every device."""
    return np.array([F.linear(x, weight, bias)] * devices.count)


def _too_often(devices, x, weight, bias):
    return whole(devices, x, weight, devices.count * bias)


def _no_bias(devices, x, weight, bias):
    return whole(devices, x, weight, 0 * bias)


def _on_one(devices, x, weight, bias):
    without = _no_bias(devices, x, weight, bias)
    without[0] += bias
    return without


REPAIRED = (
    Slip(
        "bias on every device",
        _too_often,
        "The total has the bias once for each device; it belongs there once.",
    ),
    Slip("no bias", _no_bias, "The bias is left out."),
    Slip(
        "bias in one output",
        _on_one,
        "Only the first device has the bias in its output; every device needs the whole output.",
    ),
    Slip(
        "one output",
        lambda devices, x, weight, bias: F.linear(x, weight, bias),
        "This is the output of one device; return a list with that of every device.",
    ),
)


def _partial_sums(function):
    """What a function puts into the all-reduce for three devices, and what it would be without a bias."""
    devices, rng = Devices(3), np.random.default_rng(8)
    x, weight = rng.integers(1, 4, (2, 4)).astype(float), rng.integers(1, 4, (2, 4)).astype(float)
    function(devices, x, weight, np.array([1.0, 2.0]))
    if len(devices.added_up) != 1:
        return None, None
    pure = list(map(F.linear, devices.split(x, 1), devices.split(weight, 1)))
    return devices.added_up[0], pure


def _with_bias(function):
    """The number of devices whose partial sum holds more than the product; None without one all-reduce."""
    found, pure = _partial_sums(function)
    if found is None:
        return None
    return sum(not np.allclose(a, b) for a, b in zip(found, pure, strict=True))


def bias_comes_after_the_sum(added_after, added_by_one):
    devices = _with_bias(added_after)
    if devices is None:
        return Fault("values", "`added_after` should add up the partial sums in one all-reduce.")
    if devices:
        said = "`added_after` puts the bias into a partial sum; each device should add it to the total."
        return Fault("values", said, finding="bias before the sum")
    return None


def one_device_has_the_bias(added_after, added_by_one):
    devices = _with_bias(added_by_one)
    if devices is None:
        return Fault("values", "`added_by_one` should add up the partial sums in one all-reduce.")
    if devices == 0:
        said = "`added_by_one` adds the bias after the sum, on every device; one device should own it."
        return Fault("values", said, finding="bias after the sum")
    if devices > 1:
        said = f"`added_by_one` gives a part of the bias to {devices} devices of 3; one device should own it."
        return Fault("values", said, finding="bias in parts")
    return None


AFTER = "return [total + bias for total in devices.all_reduce(partial)]"
BY_ONE = (
    "biases = [bias] + [None] * (devices.count - 1)\n"
    "partial = list(map(F.linear, xs, weights, biases))\n"
    "return devices.all_reduce(partial)"
)

BIAS_TIMES = Code(
    "scale-bias-times",
    entry="added_after, added_by_one",
    template='''
from denselayer import functional as F


def added_after(devices, x, weight, bias):
    """x (N, in), weight (out, in), bias (out,): a list with the output (N, out) of every device."""
    xs, weights = devices.split(x, 1), devices.split(weight, 1)
    partial = [F.linear(x_k, w_k) for x_k, w_k in zip(xs, weights, strict=True)]
    <<add up the partial sums; every device adds the bias to the total>>


def added_by_one(devices, x, weight, bias):
    """The same, with the bias on a single device."""
    xs, weights = devices.split(x, 1), devices.split(weight, 1)
    <<make the partial sums, one of them with the bias, and add them up>>
''',
    solution=[AFTER, BY_ONE],
    checks=[
        Values(split_layers, whole, name="added_after", slips=REPAIRED, tidy=np.array),
        Values(split_layers, whole, name="added_by_one", slips=REPAIRED, tidy=np.array),
        Property(bias_comes_after_the_sum),
        Property(one_device_has_the_bias),
    ],
    wrong=[
        Wrong(
            "leaves the defect in",
            [
                "return devices.all_reduce([part + bias for part in partial])",
                "partial = [F.linear(x_k, w_k, bias) for x_k, w_k in zip(xs, weights)]\n"
                "return devices.all_reduce(partial)",
            ],
            finding="bias on every device",
        ),
        Wrong("forgets the bias", ["return devices.all_reduce(partial)", BY_ONE], finding="no bias"),
        Wrong(
            "one device adds it to its own output",
            [
                AFTER,
                "partial = [F.linear(x_k, w_k) for x_k, w_k in zip(xs, weights)]\n"
                "first, *others = devices.all_reduce(partial)\n"
                "return [first + bias, *others]",
            ],
            finding="bias in one output",
        ),
        Wrong(
            "returns what the first device has",
            ["return devices.all_reduce(partial)[0] + bias", BY_ONE],
            finding="one output",
        ),
        Wrong(
            "a part of the bias for each device",
            [
                AFTER,
                "partial = [F.linear(x_k, w_k, bias / devices.count) for x_k, w_k in zip(xs, weights)]\n"
                "return devices.all_reduce(partial)",
            ],
            finding="bias in parts",
        ),
        Wrong(
            "adds it after the sum again",
            [
                AFTER,
                "partial = [F.linear(x_k, w_k) for x_k, w_k in zip(xs, weights)]\n"
                "return [total + bias for total in devices.all_reduce(partial)]",
            ],
            finding="bias after the sum",
        ),
    ],
)


def shared_batches():
    """One number to one for up to 3 rows, then wider layers; some with more devices than rows."""
    rng = np.random.default_rng(9)
    found = [
        Case(
            x=np.arange(1.0, n + 1)[:, None],
            target=np.zeros((n, 1)),
            weight=np.array([[6.0]]),
            p=p,
            repaired=repaired,
        )
        for n, p, repaired in [(1, 1, True), (3, 2, False), (3, 2, True), (1, 2, True)]
    ]
    for n, ins, outs, p in [(10, 4, 3, 4), (10, 4, 3, 12), (6, 2, 3, 3)]:
        arrays = {"x": (n, ins), "target": (n, outs), "weight": (outs, ins)}
        drawn = {name: rng.integers(-3, 4, size).astype(float) for name, size in arrays.items()}
        found += [Case(**drawn, p=p, repaired=repaired) for repaired in (False, True)]
    return found


def _shares(n, p):
    """The ends of the pieces of n rows on p devices, as equal as can be."""
    return np.cumsum([n // p + (k < n % p) for k in range(p)])


def _weighted(x, target, weight, p, factor):
    """The sum over devices of factor(rows of the device, rows, devices) times the mean gradient."""
    total, start = np.zeros_like(weight), 0
    for end in _shares(len(x), p):
        rows, wanted = x[start:end], target[start:end]
        if end > start:
            error = 2 * (rows @ weight.T - wanted) / wanted.size
            total += factor(end - start, len(x), p) * np.einsum("no,ni->oi", error, rows)
        start = end
    return total


def gradients(x, target, weight, p, repaired):
    """Of the mean over the whole batch, or the plain average over the devices."""
    if repaired:
        return 2 * (x @ weight.T - target).T @ x / target.size
    return _weighted(x, target, weight, p, lambda own, n, p: 1 / p)


def _repaired_by(factor):
    def formula(x, target, weight, p, repaired):
        if not repaired:
            return gradients(x, target, weight, p, repaired)
        return _weighted(x, target, weight, p, lambda own, n, p: factor(own, n, p) / p)

    return formula


def of_whole_batch(averaged):
    """The report on the repaired gradient, ten rows on three devices."""
    x, target, weight = (shared_batches()[4].arguments[name] for name in ("x", "target", "weight"))

    def loss(params):
        return np.mean((x @ params["weight"].T - target) ** 2)

    grads = lambda params: {"weight": averaged(x, target, params["weight"], 3, True)}  # noqa: E731
    return diagnose(loss, {"weight": weight}, grads)


NOTHING = "gradients.append(np.zeros_like(weight))"
FACTOR = "factor = p * len(rows) / len(x) if repaired else 1.0"

AVERAGES = Code(
    "scale-averages",
    entry="averaged",
    template='''
import numpy as np

from denselayer import functional as F
from denselayer import parallel


def averaged(x, target, weight, p, repaired):
    """The gradient of weight (out, in), averaged over p devices; x (N, in), target (N, out)."""
    devices = parallel.Devices(p)
    gradients = []
    for rows, wanted in zip(devices.split(x, 0), devices.split(target, 0), strict=True):
        if len(rows):
            d_y = F.mse_loss_backward(F.linear(rows, weight), wanted)
            <<`factor`: that of this device's loss if `repaired`, otherwise 1>>
            gradients.append(F.linear_backward(factor * d_y, rows, weight).d_weight)
        else:
            <<append what a device without rows contributes>>
    return devices.all_reduce(gradients)[0] / p
''',
    solution=[FACTOR, NOTHING],
    checks=[
        Values(
            shared_batches,
            gradients,
            gradient_of={"": "weight"},
            doctor=of_whole_batch,
            slips=(
                Slip(
                    "not repaired",
                    _repaired_by(lambda own, n, p: 1),
                    "This is the plain average of the devices; with unequal shares it is not the gradient of"
                    " the mean over the batch.",
                ),
                Slip(
                    "average forgotten",
                    _repaired_by(lambda own, n, p: own / n),
                    "The result is p times too small: the averaging divides by p once more, so the factor"
                    " needs a p.",
                ),
                Slip(
                    "average forgotten",
                    lambda x, target, weight, p, repaired: gradients(x, target, weight, p, True) / p,
                    "The result is p times too small: the averaging divides by p once more, so the factor"
                    " needs a p; and where `repaired` is false, the factor is 1.",
                ),
                Slip(
                    "upside down",
                    _repaired_by(lambda own, n, p: n / (p * own)),
                    "The factor is upside down: a device with more rows must count more.",
                ),
                Slip(
                    "rows of the batch forgotten",
                    _repaired_by(lambda own, n, p: p * own),
                    "The result is N times too large: a device counts by its share of the batch, its rows"
                    " over all rows.",
                ),
                Slip(
                    "rows alone",
                    _repaired_by(lambda own, n, p: own),
                    "The factor turns the means into sums; the gradient of a mean over all N rows is wanted,"
                    " and the averaging divides by p.",
                ),
                Slip(
                    "always repaired",
                    lambda x, target, weight, p, repaired: gradients(x, target, weight, p, True),
                    "The factor is used even where `repaired` is false; there the plain average is wanted.",
                ),
            ),
        )
    ],
    wrong=[
        Wrong("does not repair", ["factor = 1.0", NOTHING], finding="not repaired"),
        Wrong(
            "forgets the averaging",
            ["factor = len(rows) / len(x) if repaired else 1.0", NOTHING],
            finding="average forgotten",
        ),
        Wrong(
            "p twice",
            ["factor = p**2 * len(rows) / len(x) if repaired else 1.0", NOTHING],
            finding="factor",
        ),
        Wrong(
            "divides the wrong way round",
            ["factor = len(x) / (p * len(rows)) if repaired else 1.0", NOTHING],
            finding="upside down",
        ),
        Wrong(
            "repairs always",
            ["factor = p * len(rows) / len(x)", NOTHING],
            finding="always repaired",
        ),
        Wrong("a device without rows has nothing to give", [FACTOR, "pass"], finding="ValueError"),
    ],
)
