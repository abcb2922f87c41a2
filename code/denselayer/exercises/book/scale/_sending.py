"""Exercises with numbers: what several devices hold and send, and when that pays."""

from fractions import Fraction

from denselayer import cost, parallel
from denselayer.exercises import Number, Part


def devices():
    """The batch at which a device sends as many numbers as it holds weights."""
    d, p = 1024, 4
    weights = cost.network_parameters([d, 4 * d, d], bias=False)
    return Number(
        "scale-devices",
        Part(
            "weights held by a device",
            weights // p,
            {
                weights: "8,388,608 is the whole block; a device holds a quarter.",
                weights // 2 // p: "That is its part of one layer; the block has two.",
            },
        ),
        Part(
            "rows",
            Fraction(2 * d, p - 1),
            {
                Fraction(
                    4 * d, p - 1
                ): "That is one exchange in a step; there is one forward and one backward.",
                Fraction(2 * d, p): "That lets a device send each array twice; it sends (p − 1)/p of that.",
                Fraction(
                    2 * d * p, p - 1
                ): "That compares with the weights of the whole block; a device holds a quarter.",
            },
        ),
    )


def ring_bytes():
    """An array of ten numbers, added up over a ring."""
    sent = {p: parallel.all_reduce_bytes(10, p) for p in (4, 1000)}
    return Number(
        "scale-ring-bytes",
        Part(
            "pieces",
            (3, 3, 2, 2),
            {
                (4, 4, 2, 0): "The pieces are as equal as can be: none has two numbers more than another.",
                (4, 2, 2, 2): "The pieces are as equal as can be: none has two numbers more than another.",
            },
        ),
        Part(
            "bytes of each device",
            sent[4],
            {
                tuple(
                    each // 4 for each in sent[4]
                ): "These are the numbers that each sends; one has 4 bytes.",
                (60, 60, 60, 60): "60 is the average; the pieces differ, and so does what is sent.",
                (56, 56, 64, 64): "In the second half a device keeps back the piece of the next device.",
            },
            unit="bytes",
        ),
        Part(
            "bytes of all devices",
            sum(sent[4]),
            {
                320: "320 sends everything twice from four devices; each array crosses p − 1 links, not p.",
                120: "120 is one half, the reduce-scatter; the all-gather sends as much again.",
            },
            unit="bytes",
        ),
        Part(
            "steps",
            2 * (4 - 1),
            {
                3: "3 is one half, the reduce-scatter; the all-gather takes as many.",
                8: "A piece has to get past p − 1 links in each half, not p.",
            },
        ),
        Part(
            "most bytes of one device, 1,000 devices",
            max(sent[1000]),
            {
                40: "40 is one half; the all-gather sends as much again.",
                20: "20 counts the numbers; one has 4 bytes.",
            },
            unit="bytes",
        ),
        Part(
            "steps, 1,000 devices",
            2 * (1000 - 1),
            {
                999: "999 is one half, the reduce-scatter; the all-gather takes as many.",
                18: "The number of steps follows the devices, also if most pieces are empty.",
            },
        ),
    )


def pays():
    """The widths from which on eight devices pay."""
    machine = {"rate": 1e13, "alpha": 1e-5, "beta": 1e-10}
    width, faster, hasty = {}, {}, {}
    for rows in (32, 8192):
        width[rows] = parallel.paying_width(rows, 8, **machine)
        alone = 12 * 4 * rows * (2 * width[rows]) ** 2 / machine["rate"]
        sent = cost.nbytes(1) * rows * 2 * width[rows]
        exchange = parallel.all_reduce_seconds(sent, 8, machine["alpha"], machine["beta"])
        faster[rows], hasty[rows] = alone / (alone / 8 + 2 * exchange), alone / (alone / 8 + exchange)
    start = parallel.paying_width(32, 8, **machine | {"beta": 0.0})
    stream = parallel.paying_width(8192, 8, **machine | {"alpha": 0.0})
    terms = ("start-up", "bytes")
    return Number(
        "scale-pays",
        Part(
            "width, 32 rows",
            width[32],
            {
                start: "That leaves out the time for the bytes, which still counts for 32 rows.",
                stream: "That leaves out the time to get the messages going.",
            },
            rtol=5e-3,
        ),
        Part(
            "width, 8,192 rows",
            width[8192],
            {stream: "That leaves out the time to get the messages going; it still counts a little."},
            rtol=5e-3,
        ),
        Part(
            "decides, 32 rows",
            "start-up",
            {"bytes": "Leave out one term at a time: which of the two widths is nearer to the whole?"},
            options=terms,
        ),
        Part(
            "decides, 8,192 rows",
            "bytes",
            {"start-up": "Leave out one term at a time: which of the two widths is nearer to the whole?"},
            options=terms,
        ),
        Part(
            "times faster at twice the width, 32 rows",
            faster[32],
            {
                8: "8 leaves out the two exchanges.",
                hasty[32]: "That counts one exchange; there is one forward and one backward.",
            },
            rtol=2e-2,
        ),
        Part(
            "times faster at twice the width, 8,192 rows",
            faster[8192],
            {
                8: "8 leaves out the two exchanges.",
                hasty[8192]: "That counts one exchange; there is one forward and one backward.",
            },
            rtol=2e-2,
        ),
    )
