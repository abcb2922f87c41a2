"""From a wrong network to the wrong arrays, and from a wrong array to the wrong rows."""

import numpy as np

from denselayer import functional as F
from denselayer import gradcheck
from denselayer.exercises import Case, Code, Fault, Property, Slip, Values, Wrong

ENOUGH = 20
"""Evaluations that one direction may cost, with room for several directions."""


def a_times_b(params):
    return float(np.sum(params["a"] * params["b"]))


def sum_of_squares(params):
    return sum(float(np.sum(array**2)) for array in params.values())


def network(x, target):
    """A loss of two layers, by the name that an example shows."""

    def two_layers(params):
        h = F.tanh(F.linear(x, params["w1"], params["b1"]))
        return F.mse_loss(F.linear(h, params["w2"], params["b2"]), target)

    return two_layers


def right_gradients(loss, params):
    """Slopes entry by entry."""
    return {
        name: gradcheck.numerical_gradient(lambda moved, name=name: loss({**params, name: moved}), array)
        for name, array in params.items()
    }


def large_network():
    rng = np.random.default_rng(2)
    shapes = {"w1": (4, 5), "b1": 4, "w2": (2, 4), "b2": 2}
    params = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    loss = network(rng.normal(size=(6, 5)), rng.normal(size=(6, 2)))
    grads = right_gradients(loss, params)
    return loss, params, grads


def networks():
    """Two numbers: one, both, and none wrong; a network of four arrays: none, and two of them wrong."""
    two = {"a": np.array([2.0]), "b": np.array([3.0])}
    found = [
        Case(loss=a_times_b, params=two, grads={"a": np.array([3.0]), "b": np.array([5.0])}),
        Case(loss=a_times_b, params=two, grads={"a": np.array([4.0]), "b": np.array([5.0])}),
        Case(loss=a_times_b, params=two, grads={"a": np.array([3.0]), "b": np.array([2.0])}),
    ]
    loss, params, grads = large_network()
    wrong = {**grads, "w1": grads["w1"] + 0.01 * (np.arange(20).reshape(4, 5) == 13), "b2": 6 * grads["b2"]}
    found += [Case(loss=loss, params=params, grads=grads), Case(loss=loss, params=params, grads=wrong)]
    return found


def arrays_entry_by_entry(loss, params, grads):
    right = right_gradients(loss, params)
    return [name for name in params if not np.allclose(right[name], grads[name], rtol=1e-5, atol=1e-7)]


def matrices():
    """Two rows of one number; a square matrix; the first matrix of a network."""
    w = np.array([[1.0], [3.0]])
    square = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
    spoiled = 2 * square
    spoiled[0, 2] += 1.0
    found = [
        Case(loss=sum_of_squares, params={"w": w}, grads={"w": np.array([[2.0], [5.0]])}, name="w"),
        Case(loss=sum_of_squares, params={"w": w}, grads={"w": 2 * w}, name="w"),
        Case(loss=sum_of_squares, params={"w": square}, grads={"w": spoiled}, name="w"),
    ]
    loss, params, grads = large_network()
    wrong = grads["w1"].copy()
    wrong[1:3, 3] += 0.01
    return [*found, Case(loss=loss, params=params, grads={**grads, "w1": wrong}, name="w1")]


def rows_entry_by_entry(loss, params, grads, name):
    return _places(loss, params, grads, name, axis=1)


def _places(loss, params, grads, name, axis):
    wrong = ~np.isclose(right_gradients(loss, params)[name], grads[name], rtol=1e-5, atol=1e-7)
    return np.flatnonzero(wrong.any(axis=axis)).tolist()


def _all_or_none(loss, params, grads):
    return list(params) if arrays_entry_by_entry(loss, params, grads) else []


def _healthy(loss, params, grads):
    wrong = arrays_entry_by_entry(loss, params, grads)
    return [name for name in params if name not in wrong]


def _all_rows_or_none(loss, params, grads, name):
    return list(range(len(params[name]))) if rows_entry_by_entry(loss, params, grads, name) else []


def _names(result):
    if isinstance(result, dict):
        raise ValueError("the names of the wrong arrays alone, in a list, are asked for")
    if isinstance(result, str) or not np.iterable(result) or not all(isinstance(n, str) for n in result):
        raise ValueError("it should be a list of names")
    return sorted(result)


def _numbers(result):
    if isinstance(result, dict):
        raise ValueError("the numbers of the wrong rows alone, in a list, are asked for")
    numbers = list(result) if np.iterable(result) else [None]
    if any(isinstance(n, bool | np.bool_) or not isinstance(n, int | np.integer) for n in numbers):
        raise ValueError("it should be a list of row numbers")
    return sorted(map(int, numbers))


def one_direction_each(wrong_arrays, wrong_rows):
    """Two calls of each function on large arrays, with a loss that counts."""
    rng = np.random.default_rng(0)
    params = {"w": rng.normal(size=(8, 30))}
    for function, arguments, parts, what in [
        (wrong_arrays, (), 1, "one array of 240 entries"),
        (wrong_rows, ("w",), 8, "8 rows of 30 entries"),
    ]:
        calls = []

        def counting(moved, calls=calls):
            calls.append(1)
            return sum_of_squares(moved)

        function(counting, {"w": params["w"].copy()}, {"w": 2 * params["w"]}, *arguments)
        if len(calls) > ENOUGH * parts:
            said = (
                f"Your function evaluates the loss {len(calls):,} times for {what}: that is entry by entry."
            )
            advice = "One direction tests all entries of an array at once: use `gradcheck.check_direction`."
            return Fault("values", said, (advice,), finding="entry by entry")
    return None


ARRAYS = """
found = []
for name in params:
    report = gradcheck.check_direction(
        lambda p, name=name: loss({**params, name: p[name]}),
        {name: params[name]},
        {name: grads[name]},
    )
    if not report.ok:
        found.append(name)
return found
"""
ROWS = """
def row_loss(p, row):
    matrix = params[name].copy()
    matrix[row] = p["row"]
    return loss({**params, name: matrix})

found = []
for row in range(len(params[name])):
    report = gradcheck.check_direction(
        lambda p, row=row: row_loss(p, row),
        {"row": params[name][row]},
        {"row": grads[name][row]},
    )
    if not report.ok:
        found.append(row)
return found
"""
ALL_AT_ONCE = """
report = gradcheck.check_direction(loss, params, grads)
return [] if report.ok else list(params)
"""
ENTRIES = """
report = gradcheck.check_gradients(loss, params, grads)
names = {entry.place.split("[")[0] for entry in report.failures}
return [name for name in params if name in names]
"""
ALL_VERDICTS = ARRAYS.replace("found = []", "found = {}").replace(
    "    if not report.ok:\n        found.append(name)\n", "    found[name] = report.ok\n"
)
WHERE = Code(
    "check-where",
    entry="wrong_arrays, wrong_rows",
    template='''
from denselayer import gradcheck


def wrong_arrays(loss, params, grads):
    """The names of the arrays whose gradients are wrong, a list; one direction for each array.

    params and grads are dicts of arrays with the same names; loss(params) is a number.
    """
    <<one direction for each array>>


def wrong_rows(loss, params, grads, name):
    """The numbers of the wrong rows of the matrix grads[name] (rows, columns), a list; from 0."""
    <<one direction for each row>>
''',
    solution=[ARRAYS, ROWS],
    checks=[
        Values(
            networks,
            arrays_entry_by_entry,
            name="wrong_arrays",
            tidy=_names,
            slips=(
                Slip(
                    "all or none",
                    _all_or_none,
                    "A direction through all arrays says that something is wrong and not where: take one for"
                    " each array.",
                ),
                Slip(
                    "every array",
                    lambda loss, params, grads: list(params),
                    "Every array is called wrong, right ones too: is the array that moves the one whose"
                    " gradient is compared?",
                ),
                Slip(
                    "the healthy ones",
                    _healthy,
                    "These are the arrays whose gradients are right: `ok` is true for them.",
                ),
                Slip(
                    "the first alone",
                    lambda *case: arrays_entry_by_entry(*case)[:1],
                    "Only the first wrong array is named; go on after it.",
                ),
            ),
        ),
        Values(
            matrices,
            rows_entry_by_entry,
            name="wrong_rows",
            tidy=_numbers,
            slips=(
                Slip(
                    "all rows or none",
                    _all_rows_or_none,
                    "A direction through the whole matrix says that a row is wrong and not which: move one"
                    " row alone.",
                ),
                Slip(
                    "counted from one",
                    lambda *case: [row + 1 for row in rows_entry_by_entry(*case)],
                    "The rows are counted from 1; here the first row is row 0.",
                ),
                Slip(
                    "columns",
                    lambda *case: _places(*case, axis=0),
                    "These are the wrong columns: `params[name][:, k]` is a column, `params[name][k]` a row.",
                ),
            ),
        ),
        Property(one_direction_each),
    ],
    wrong=[
        Wrong("everything at once", [ALL_AT_ONCE, ROWS], finding="all or none"),
        Wrong(
            "a direction through all for each",
            [
                ARRAYS.replace("{name: params[name]}", "params").replace("{name: grads[name]}", "grads"),
                ROWS,
            ],
            finding="every array",
        ),
        Wrong("entry by entry", [ENTRIES, ROWS], finding="entry by entry"),
        Wrong(
            "those that pass",
            [ARRAYS.replace("if not report.ok", "if report.ok"), ROWS],
            finding="the healthy ones",
        ),
        Wrong(
            "returns at the first",
            [ARRAYS.replace("found.append(name)", "return [name]"), ROWS],
            finding="the first alone",
        ),
        Wrong(
            "forgets the other arrays",
            [ARRAYS.replace("loss({**params, name: p[name]})", "loss({name: p[name]})"), ROWS],
            finding="KeyError",
        ),
        Wrong(
            "does not copy the matrix",
            [ARRAYS, ROWS.replace("params[name].copy()", "params[name]")],
            says="Your function changes its argument `params`.",
        ),
        Wrong(
            "a verdict for each name",
            [ALL_VERDICTS, ROWS],
            says="`wrong_arrays` returns a dict, which cannot be read: the names of the wrong arrays alone,"
            " in a list, are asked for.",
        ),
        Wrong(
            "rows from 1",
            [ARRAYS, ROWS.replace("found.append(row)", "found.append(row + 1)")],
            finding="counted from one",
        ),
        Wrong(
            "columns",
            [
                ARRAYS,
                ROWS.replace("matrix[row]", "matrix[:, row]")
                .replace("[name][row]", "[name][:, row]")
                .replace("len(params[name])", "params[name].shape[1]"),
            ],
            finding="columns",
        ),
    ],
)
