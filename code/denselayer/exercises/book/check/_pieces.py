"""Mean loss and gradients over pieces of unequal size."""

import numpy as np

from denselayer.doctor import diagnose
from denselayer.exercises import Case, Code, Slip, Values, Wrong


def sum_of_losses(params, x, t):
    """The sum of the squared errors of a layer with one output, and its gradients."""
    error = x @ params["weight"] + params["bias"] - t
    return float(np.sum(error**2)), {"weight": 2 * error @ x, "bias": np.array([2 * np.sum(error)])}


def _pieces(*sizes, features=1, rng):
    return [
        (rng.integers(-3, 4, (n, features)).astype(float), rng.integers(-3, 4, n).astype(float))
        for n in sizes
    ]


def batches():
    """One row; rows of one number in pieces of 1 and 2; with empty pieces; with three features."""
    one = {"weight": np.array([1.0]), "bias": np.array([0.0])}
    three = {"weight": np.array([1.0, -2.0, 0.5]), "bias": np.array([0.25])}
    pieces = [
        (one, [(np.array([[2.0]]), np.array([5.0]))]),
        (one, [(np.array([[1.0]]), np.array([3.0])), (np.array([[3.0], [1.0]]), np.array([1.0, 2.0]))]),
        (one, [(np.array([[2.0]]), np.array([1.0])), (np.zeros((0, 1)), np.zeros(0))]),
        (three, _pieces(3, 0, 6, 1, features=3, rng=np.random.default_rng(7))),
    ]
    return [Case(params=params, pieces=batch, loss_and_grads=sum_of_losses) for params, batch in pieces]


def one_batch(params, pieces, loss_and_grads):
    """All rows in one array."""
    x, t = (np.concatenate(arrays) for arrays in zip(*pieces, strict=True))
    loss, grads = loss_and_grads(params, x, t)
    return loss / len(x), {name: grad / len(x) for name, grad in grads.items()}


def _mean_of_means(params, pieces, loss_and_grads):
    means = [one_batch(params, [piece], loss_and_grads) for piece in pieces if len(piece[0])]
    return np.mean([loss for loss, _ in means]), {
        name: np.mean([grads[name] for _, grads in means], axis=0) for name in params
    }


def _scaled(params, pieces, loss_and_grads, factor):
    loss, grads = one_batch(params, pieces, loss_and_grads)
    return loss * factor, {name: grad * factor for name, grad in grads.items()}


def _rows(pieces):
    return sum(len(x) for x, _ in pieces)


def _over_pieces(params, pieces, loss_and_grads):
    factor = _rows(pieces) / len(pieces)
    return _scaled(params, pieces, loss_and_grads, factor)


def _nothing_divided(params, pieces, loss_and_grads):
    return _scaled(params, pieces, loss_and_grads, _rows(pieces))


def _last_piece(params, pieces, loss_and_grads):
    loss, _ = one_batch(params, pieces, loss_and_grads)
    _, grads = loss_and_grads(params, *pieces[-1])
    return loss, {name: grad / _rows(pieces) for name, grad in grads.items()}


def _plus_the_parameters(params, pieces, loss_and_grads):
    loss, grads = one_batch(params, pieces, loss_and_grads)
    return loss, {name: grad + params[name] / _rows(pieces) for name, grad in grads.items()}


def gradients_alone(accumulate):
    """The report on the gradients at several parameters, where the loss that comes with them is right."""
    params, pieces, loss_and_grads = batches()[-1].fresh()

    def loss(params):
        return one_batch(params, pieces, loss_and_grads)[0]

    if not np.isclose(accumulate(params, pieces, loss_and_grads)[0], loss(params)):
        return None
    grads = lambda params: accumulate(params, pieces, loss_and_grads)[1]  # noqa: E731
    return diagnose(loss, params, grads, batch_size=_rows(pieces))


def named(result):
    """Loss and gradients side by side, so that a message can name them."""
    if not isinstance(result, tuple | list) or len(result) != 2 or not isinstance(result[1], dict):
        raise ValueError("the result is two things, the loss and a dict of gradients")
    loss, grads = result
    if set(grads) != {"weight", "bias"}:
        raise ValueError("the gradients are a dict with the names of the parameters")
    return {"loss": loss} | {f"grads[{name!r}]": grads[name] for name in ("weight", "bias")}


SUMS = """
total, count = 0.0, 0
sums = {name: np.zeros_like(array) for name, array in params.items()}
for x, t in pieces:
    loss, grads = loss_and_grads(params, x, t)
    total += loss
    count += len(x)
    for name in sums:
        sums[name] += grads[name]
"""
MEANS = "return total / count, {name: grad / count for name, grad in sums.items()}"
MEAN_OF_EACH = """
total, count = 0.0, 0
sums = {name: np.zeros_like(array) for name, array in params.items()}
for x, t in pieces:
    if len(x) == 0:
        continue
    loss, grads = loss_and_grads(params, x, t)
    total += loss / len(x)
    count += 1
    for name in sums:
        sums[name] += grads[name] / len(x)
"""
PIECES = Code(
    "check-pieces",
    entry="accumulate",
    template='''
import numpy as np


def accumulate(params, pieces, loss_and_grads):
    """The mean loss over the rows of all pieces, and its gradients: a number and a dict like params.

    params is a dict of arrays, pieces a list of pairs x (n, in), t (n,), some with n = 0.
    loss_and_grads(params, x, t) returns the sum of the losses of the rows, and a dict of its gradients.
    """
    <<go through the pieces>>
    <<return the mean loss and the gradients>>
''',
    solution=[SUMS, MEANS],
    checks=[
        Values(
            batches,
            one_batch,
            returns=("loss", "grads['weight']", "grads['bias']"),
            tidy=named,
            doctor=gradients_alone,
            slips=(
                Slip(
                    "mean of means",
                    _mean_of_means,
                    "This is the mean of the means of the pieces: a row of a small piece counts more than a"
                    " row of a large one.",
                ),
                Slip(
                    "divided by pieces",
                    _over_pieces,
                    "The sums are divided by the number of pieces; divide by the number of rows.",
                ),
                Slip(
                    "nothing divided",
                    _nothing_divided,
                    "These are sums; the mean divides both by the number of rows.",
                ),
                Slip(
                    "loss not divided",
                    lambda *case: one_batch(*case)[0] * _rows(case[1]),
                    "The gradients are means and the loss is a sum: divide it by the number of rows, too.",
                    output="loss",
                ),
                Slip(
                    "loss divided by pieces",
                    lambda *case: one_batch(*case)[0] * _rows(case[1]) / len(case[1]),
                    "The loss is divided by the number of pieces; divide by the number of rows.",
                    output="loss",
                ),
                Slip(
                    "starts at the parameters",
                    _plus_the_parameters,
                    "The sums start at the parameters themselves; they start at zero.",
                ),
                Slip(
                    "bias left out",
                    lambda *case: np.zeros(1),
                    "The sums of the bias stay zero: add up the gradients of all parameters.",
                    output="grads['bias']",
                    first=True,
                ),
                Slip(
                    "weight left out",
                    lambda params, pieces, loss_and_grads: np.zeros_like(params["weight"]),
                    "The sums of the weight stay zero: add up the gradients of all parameters.",
                    output="grads['weight']",
                ),
                Slip(
                    "last piece alone",
                    _last_piece,
                    "The gradients are those of the last piece: each piece overwrites the one before it.",
                ),
            ),
        )
    ],
    wrong=[
        Wrong("averages the means", [MEAN_OF_EACH, MEANS], finding="mean of means"),
        Wrong(
            "averages the means, the empty one too",
            [MEAN_OF_EACH.replace("    if len(x) == 0:\n        continue\n", ""), MEANS],
            finding="ZeroDivisionError",
        ),
        Wrong(
            "counts pieces",
            [SUMS.replace("count += len(x)", "count += 1"), MEANS],
            finding="divided by pieces",
        ),
        Wrong("forgets the gradients", [SUMS, "return total / count, sums"], finding="summed-not-averaged"),
        Wrong(
            "forgets the loss",
            [SUMS, MEANS.replace("total / count", "total")],
            finding="loss not divided",
        ),
        Wrong(
            "overwrites",
            [SUMS.replace("sums[name] += grads[name]", "sums[name] = grads[name]"), MEANS],
            finding="last piece alone",
        ),
        Wrong(
            "copies the parameters",
            [SUMS.replace("np.zeros_like(array)", "array.copy()"), MEANS],
            finding="starts at the parameters",
        ),
        Wrong(
            "only the loss",
            [SUMS, "return total / count"],
            says="`accumulate` returns a float, which cannot be read: the result is two things, the loss and"
            " a dict of gradients.",
        ),
    ],
)
