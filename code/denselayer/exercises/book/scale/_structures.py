"""Exercises on layers that are not dense: the matrix of a convolution, the gradient of a table."""

import numpy as np

from denselayer import functional as F
from denselayer.exercises import Case, Code, Slip, Values, Wrong


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
    entry="convolution_matrix",
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
            signals,
            entry_by_entry,
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
        )
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
    """A table of one word, two look-ups of the same word, and the batch of the text."""
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
        case([5, 1, 5], 7, 2),
    ]


def with_one_hot(words, d_out, table):
    """The gradient of the table through one-hot rows and a dense layer."""
    one_hot = np.eye(len(table), dtype=d_out.dtype)[words]
    d_weight = F.linear_backward(d_out, one_hot, np.ascontiguousarray(table.T)).d_weight
    return d_weight.T, [word for word in range(len(table)) if not one_hot[:, word].any()]


def _last_only(words, d_out, table):
    d_table = np.zeros_like(table)
    for word, row in zip(words, d_out, strict=True):
        d_table[word] = row
    return d_table


def _mean(words, d_out, table):
    counts = np.maximum(np.bincount(words, minlength=len(table)), 1)
    return with_one_hot(words, d_out, table)[0] / counts[:, None].astype(d_out.dtype)


ADD = "d_table = np.zeros_like(table)\nnp.add.at(d_table, words, d_out)"
REST = "untouched = np.setdiff1d(np.arange(len(table)), words)"

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
            gradient_of={"d_table": "table"},
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
                    "the other words",
                    lambda words, d_out, table: sorted(set(words.tolist())),
                    "`untouched` has the words that do occur; the others are asked for.",
                    output="untouched",
                ),
            ),
        )
    ],
    wrong=[
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
            "starts from the table",
            ["d_table = table.copy()\nnp.add.at(d_table, words, d_out)", REST],
            finding="added to the table",
        ),
        Wrong("lists the words that occur", [ADD, "untouched = np.unique(words)"], finding="the other words"),
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
