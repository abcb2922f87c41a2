"""Exercises on layers that are not dense: the matrix of a convolution, the gradient of a table."""

import numpy as np

from denselayer import functional as F
from denselayer.doctor import diagnose
from denselayer.exercises import Case, Code, Fault, Property, Slip, Values, Wrong
from denselayer.exercises._allocated import peak_bytes


def signals():
    """Lengths from 1 up to the 9 of the text."""
    kernel = np.array([1.0, 2.0, 3.0])
    other = np.array([-1.0, 5.0, 2.0])
    return [
        Case(kernel=kernel, length=1),
        Case(kernel=kernel, length=2),
        Case(kernel=kernel, length=3),
        Case(kernel=other, length=6),
        Case(kernel=kernel, length=9),
    ]


def batches_of_signals():
    """A signal of one number; two rows; lengths that are even and odd."""
    rng = np.random.default_rng(11)
    found = [Case(rows=np.array([[2.0]]), kernel=np.array([3.0, 5.0, 7.0]))]
    for n, length in [(2, 3), (1, 6), (3, 9)]:
        rows = rng.integers(-4, 5, (n, length)).astype(float)
        found.append(Case(rows=rows, kernel=np.array([1.0, 2.0, 4.0])))
    return found


def window_by_window(rows, kernel, *, stride=2, front=1):
    """The sum of products in every window of every row; what lies outside of a row counts as zero."""
    length = rows.shape[1]
    starts = range(-front, length + 2 - front - len(kernel) + 1, stride)
    return np.array(
        [
            [sum(kernel[k] * row[j + k] for k in range(len(kernel)) if 0 <= j + k < length) for j in starts]
            for row in rows
        ]
    )


def entry_by_entry(kernel, length, *, stride=2, padding=1):
    """The matrix and its counts; entry (place, j) is the weight with which number j enters a place."""
    places = (length + 2 * padding - len(kernel)) // stride + 1
    matrix = np.zeros((places, length))
    for place in range(places):
        for tap, value in enumerate(kernel):
            number = stride * place + tap - padding
            if 0 <= number < length:
                matrix[place, number] = value
    return matrix, int((matrix != 0).sum()), len(kernel)


WINDOWS = (
    "padded = np.pad(rows, ((0, 0), (1, 1)))\n"
    "windows = np.lib.stride_tricks.sliding_window_view(padded, 3, axis=1)\n"
    "return windows[:, ::2] @ kernel"
)
MATRIX = "matrix = strided(np.eye(length), kernel).T"
COUNTS = "not_zero, stored = np.count_nonzero(matrix), kernel.size"

CONV_MATRIX = Code(
    "scale-conv-matrix",
    entry="strided, convolution_matrix",
    template='''
import numpy as np


def strided(rows, kernel):
    """Rows (N, length) to rows (N, places): the kernel moves by two, with a zero on both sides."""
    <<return the convolution of every row>>


def convolution_matrix(kernel, length):
    """The matrix (places, length) of `strided`, its entries that are not zero, and the numbers stored."""
    <<`matrix`, made from the rows of the identity>>
    <<`not_zero` and `stored`: two counts>>
    return matrix, not_zero, stored
''',
    solution=[WINDOWS, MATRIX, COUNTS],
    checks=[
        Values(
            batches_of_signals,
            window_by_window,
            name="strided",
            slips=(
                Slip(
                    "stride 1",
                    lambda rows, kernel: window_by_window(rows, kernel, stride=1),
                    "The kernel moves by one place; here it moves by two.",
                ),
                Slip(
                    "kernel reversed",
                    lambda rows, kernel: window_by_window(rows, kernel[::-1]),
                    "The kernel is reversed, as `np.convolve` does it; in this book its first number meets"
                    " the first number of a window.",
                ),
                Slip(
                    "shifted",
                    lambda rows, kernel: window_by_window(rows, kernel, front=0),
                    "Both zeros stand behind the signal; one of them belongs in front.",
                ),
                Slip(
                    "batch padded",
                    lambda rows, kernel: np.pad(window_by_window(rows, kernel), ((1, 1), (0, 0))),
                    "`np.pad(rows, 1)` pads both axes: a row of zeros stands before and behind the batch.",
                ),
            ),
        ),
        Values(
            signals,
            entry_by_entry,
            name="convolution_matrix",
            returns=("matrix", "not_zero", "stored"),
            slips=(
                Slip(
                    "stride 1",
                    lambda kernel, length: entry_by_entry(kernel, length, stride=1)[0],
                    "The kernel moves by one place; here it moves by two.",
                    output="matrix",
                ),
                Slip(
                    "kernel reversed",
                    lambda kernel, length: entry_by_entry(kernel[::-1], length)[0],
                    "The kernel is reversed, as `np.convolve` does it; in this book its first number meets"
                    " the first number of a window.",
                    output="matrix",
                ),
                Slip(
                    "transposed",
                    lambda kernel, length: entry_by_entry(kernel, length)[0].T,
                    "The matrix is transposed: the answer to row j of the identity is column j of the"
                    " weight.",
                    output="matrix",
                ),
                Slip(
                    "shifted",
                    lambda kernel, length: _shifted(kernel, length),
                    "Both zeros stand behind the signal; one of them belongs in front.",
                    output="matrix",
                ),
                Slip(
                    "batch padded",
                    lambda kernel, length: np.pad(entry_by_entry(kernel, length)[0], ((0, 0), (1, 1))),
                    "`np.pad(rows, 1)` pads both axes: a row of zeros stands before and behind the batch.",
                    output="matrix",
                ),
                Slip(
                    "all entries",
                    lambda kernel, length: entry_by_entry(kernel, length)[0].size,
                    "`not_zero` counts all entries of the matrix, the zeros too.",
                    output="not_zero",
                ),
                Slip(
                    "not shared",
                    lambda kernel, length: entry_by_entry(kernel, length)[1],
                    "`stored` counts a number as often as it is used; all places share the numbers of the"
                    " kernel.",
                    output="stored",
                ),
            ),
        ),
    ],
    wrong=[
        Wrong(
            "moves by one",
            [WINDOWS.replace("[:, ::2]", ""), MATRIX, COUNTS],
            finding="stride 1",
        ),
        Wrong(
            "forgets to transpose",
            [WINDOWS, MATRIX.removesuffix(".T"), COUNTS],
            finding="transposed",
        ),
        Wrong(
            "turns the kernel round",
            [WINDOWS.replace("@ kernel", "@ kernel[::-1]"), MATRIX, COUNTS],
            finding="kernel reversed",
        ),
        Wrong(
            "pads on one side",
            [WINDOWS.replace("(1, 1)", "(0, 2)"), MATRIX, COUNTS],
            finding="shifted",
        ),
        Wrong(
            "pads both axes",
            [WINDOWS.replace("((0, 0), (1, 1))", "1"), MATRIX, COUNTS],
            finding="batch padded",
        ),
        Wrong(
            "a matrix without `strided`",
            [
                "return rows",
                "places = np.arange((length + 1) // 2)\nmatrix = np.zeros((len(places), length + 2))\n"
                "for k in range(3):\n    matrix[places, 2 * places + k] = kernel[k]\n"
                "matrix = matrix[:, 1:-1]",
                COUNTS,
            ],
            says="The result has the shape (3, 9) and should have (3, 5).",
        ),
        Wrong(
            "counts the zeros",
            [WINDOWS, MATRIX, "not_zero, stored = matrix.size, kernel.size"],
            finding="all entries",
        ),
        Wrong(
            "does not see the sharing",
            [WINDOWS, MATRIX, "not_zero = stored = np.count_nonzero(matrix)"],
            finding="not shared",
        ),
    ],
)


def _shifted(kernel, length):
    longer = entry_by_entry(kernel, length + 2, padding=0)[0]
    return longer[:, :length]


def look_ups():
    """A table of one word, two look-ups of the same word, the batch of the text, a gradient of zero."""
    rng = np.random.default_rng(10)

    def case(words, size, features):
        d_out = rng.integers(1, 9, (len(words), features)).astype(float)
        table = rng.integers(-3, 4, (size, features)).astype(float)
        return Case(words=np.array(words), d_out=d_out, table=table)

    return [
        case([0], 1, 1),
        case([1], 2, 1),
        case([1, 1], 2, 1),
        case([2, 0, 2], 5, 3),
        Case(words=np.array([1, 0]), d_out=np.array([[0.0], [3.0]]), table=np.array([[1.0], [2.0], [4.0]])),
        case([5, 1, 5], 7, 2),
    ]


def with_one_hot(words, d_out, table):
    """The gradient of the table through one-hot rows and a dense layer."""
    one_hot = np.eye(len(table), dtype=d_out.dtype)[words]
    d_weight = F.linear_backward(d_out, one_hot, np.ascontiguousarray(table.T)).d_weight
    return d_weight.T, [word for word in range(len(table)) if not one_hot[:, word].any()]


def no_one_hot_rows(table_gradient):
    """The memory of a call with so many words that their one-hot rows would be seen."""
    words, count = np.arange(800) % 7, 800
    one_hot = 8 * len(words) * count
    if peak_bytes(table_gradient, words, np.ones((len(words), 1)), np.ones((count, 1))) < one_hot / 2:
        return None
    said = "The gradient is right, but its memory grows with words times look-ups, as one-hot rows do."
    advice = "Start from zeros in the shape of the table, and add each row of `d_out` where its word is."
    return Fault("values", said, (advice,), finding="one-hot rows")


def _last_only(words, d_out, table):
    d_table = np.zeros_like(table)
    for word, row in zip(words, d_out, strict=True):
        d_table[word] = row
    return d_table


def _mean(words, d_out, table):
    counts = np.maximum(np.bincount(words, minlength=len(table)), 1)
    return with_one_hot(words, d_out, table)[0] / counts[:, None].astype(d_out.dtype)


def of_looked_up_rows(table_gradient):
    """The report on the gradient of a table whose rows are looked up with weights."""
    words, d_out, table = look_ups()[3].fresh()

    def loss(params):
        return np.sum(d_out * params["table"][words])

    return diagnose(
        loss, {"table": table}, lambda params: {"table": table_gradient(words, d_out, params["table"])[0]}
    )


def _in_order(result):
    """The result as it is; a set of words has no order to compare."""
    if isinstance(result, tuple | list) and any(isinstance(part, set) for part in result):
        raise ValueError("a set has no order, and the words are asked in rising order")
    return result


ADD = "d_table = np.zeros_like(table)\nnp.add.at(d_table, words, d_out)"
REST = "untouched = np.setdiff1d(np.arange(len(table)), words)"

ROWS_OF_ZEROS = "untouched = np.flatnonzero(~d_table.any(axis=1))"
NO_ORDER = (
    "`table_gradient` returns a tuple, which cannot be read: a set has no order, and the words are asked in"
    " rising order."
)

EMBEDDING_GRADIENT = Code(
    "scale-embedding-gradient",
    entry="table_gradient",
    template='''
import numpy as np


def table_gradient(words, d_out, table):
    """words (N,), d_out (N, features), table (words, features): its gradient, and the words not used."""
    <<`d_table`: the gradient of the table, without one-hot rows>>
    <<`untouched`: the words that were not looked up, in order>>
    return d_table, untouched
''',
    solution=[ADD, REST],
    checks=[
        Values(
            look_ups,
            with_one_hot,
            returns=("d_table", "untouched"),
            tidy=_in_order,
            gradient_of={"d_table": "table"},
            doctor=of_looked_up_rows,
            keeps_dtype=True,
            slips=(
                Slip(
                    "repeats lost",
                    _last_only,
                    "A word that occurs twice gets one contribution only: the other is overwritten, as in"
                    " `d_table[words] += d_out`.",
                    output="d_table",
                ),
                Slip(
                    "mean of the repeats",
                    _mean,
                    "The contributions of a word are averaged; a number that is used twice gets their sum.",
                    output="d_table",
                ),
                Slip(
                    "added to the table",
                    lambda words, d_out, table: table + with_one_hot(words, d_out, table)[0],
                    "The gradients are added to the table itself; start from zeros.",
                    output="d_table",
                ),
                Slip(
                    "a condition",
                    lambda words, d_out, table: ~np.isin(np.arange(len(table)), words),
                    "`untouched` is a condition for each word; `np.flatnonzero` makes numbers of it.",
                    output="untouched",
                ),
                Slip(
                    "rows of zeros",
                    lambda *case: np.flatnonzero(~with_one_hot(*case)[0].any(axis=1)),
                    "`untouched` names the rows of zeros; a word that was looked up can have a gradient of"
                    " zero, too: ask `words`.",
                    output="untouched",
                ),
                Slip(
                    "the other words",
                    lambda words, d_out, table: sorted(set(words.tolist())),
                    "`untouched` has the words that do occur; the others are asked for.",
                    output="untouched",
                ),
            ),
        ),
        Property(no_one_hot_rows),
    ],
    wrong=[
        Wrong(
            "one-hot rows",
            ["d_table = np.eye(len(table), dtype=table.dtype)[words].T @ d_out", REST],
            finding="one-hot rows",
        ),
        Wrong(
            "adds with an index",
            ["d_table = np.zeros_like(table)\nd_table[words] += d_out", REST],
            finding="repeats lost",
        ),
        Wrong(
            "takes the mean",
            [
                ADD + "\ncounts = np.bincount(words, minlength=len(table))\n"
                "d_table /= np.maximum(counts, 1)[:, None].astype(d_table.dtype)",
                REST,
            ],
            finding="mean of the repeats",
        ),
        Wrong(
            "takes away",
            ["d_table = np.zeros_like(table)\nnp.subtract.at(d_table, words, d_out)", REST],
            finding="sign-flipped",
        ),
        Wrong(
            "starts from the table",
            ["d_table = table.copy()\nnp.add.at(d_table, words, d_out)", REST],
            finding="added to the table",
        ),
        Wrong("lists the words that occur", [ADD, "untouched = np.unique(words)"], finding="the other words"),
        Wrong("looks at the gradient", [ADD, ROWS_OF_ZEROS], finding="rows of zeros"),
        Wrong("a set", [ADD, "untouched = set(range(len(table))) - set(words.tolist())"], says=NO_ORDER),
        Wrong(
            "writes into the table",
            ["d_table = table\nd_table[:] = 0\nnp.add.at(d_table, words, d_out)", REST],
            says="Your function changes its argument `table`.",
        ),
        Wrong(
            "gradient of the looked-up rows",
            ["d_table = np.zeros_like(d_out)\nd_table += d_out", REST],
            says="`d_table` has the shape (3, 2) and should have (7, 2).",
        ),
    ],
)
