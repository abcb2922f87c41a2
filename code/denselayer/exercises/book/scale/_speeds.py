"""Exercises with numbers: ridges, knees and what an update costs."""

import math
from fractions import Fraction

from denselayer import cost
from denselayer.exercises import Number, Part

EXAMPLE = {"peak": 2e13, "bandwidth": 1e12}
EQUAL = "That is where both bounds are equal; the smallest whole number of rows behind it is asked for."


def rows_to_ridge(width, ridge, itemsize=4):
    """The rows, not rounded, that bring a square layer without bias to the ridge."""
    return 1 / (2 / (itemsize * ridge) - 2 / width)


def ridge():
    """The rows that bring a layer to the ridge of another machine."""
    corner = cost.ridge_point(peak=1.2e12, bandwidth=1e11)
    single, double = (rows_to_ridge(1024, corner, itemsize) for itemsize in (4, 8))
    return Number(
        "scale-ridge",
        Part(
            "ridge",
            int(corner),
            {3: "3 divides by the bytes of a number as well; the bandwidth is in bytes already."},
        ),
        Part(
            "rows, float32",
            math.ceil(single),
            {
                single: EQUAL,
                math.floor(single): "25 rows stay just left of the ridge: round up.",
                24: "24 is for a layer so wide that its width does not count; this one has 1,024.",
            },
        ),
        Part(
            "rows, float64",
            math.ceil(double),
            {
                double: EQUAL,
                math.floor(double): "52 rows stay just left of the ridge: round up.",
                48: "48 is for a layer so wide that its width does not count; this one has 1,024.",
                13: "A float64 has twice as many bytes, so it takes more rows, not fewer.",
            },
        ),
        Part(
            "never up to width, float32",
            int(4 * corner),
            {
                24: "24 is s/2 times the ridge; inputs and units are both d, so that 2/d is taken away.",
                12: "12 is the ridge itself; in float32 it is to be multiplied by 4 bytes.",
                49: "A layer of width 49 does reach the ridge, with very many rows.",
            },
        ),
        Part(
            "never up to width, float64",
            int(8 * corner),
            {48: "48 is for float32; a float64 has 8 bytes."},
        ),
    )


def leaving():
    """Where two layers leave the memory bound, and where a library moves it."""
    peak, cache, memory = 1.2e11, 6e10, 1.5e10
    in_cache = rows_to_ridge(1024, cost.ridge_point(peak, cache))
    in_memory = rows_to_ridge(4096, cost.ridge_point(peak, memory))
    one = cost.linear_traffic(1, 4096, 4096, bias=False) / memory
    each = cost.linear_operations(1, 4096, 4096) / (0.85 * peak)
    return Number(
        "scale-leaving",
        Part(
            "rows, width 1,024",
            math.ceil(in_cache),
            {
                in_cache: EQUAL,
                math.floor(in_cache): "4 rows stay just left of the ridge: the two widths count as well.",
                17: "17 takes the bandwidth of main memory; 4 MiB of weights lie in the cache.",
            },
        ),
        Part(
            "rows, width 4,096",
            math.ceil(in_memory),
            {
                in_memory: EQUAL,
                math.floor(in_memory): "16 rows stay just left of the ridge: the two widths count as well.",
                5: "5 takes the bandwidth of the cache; 64 MiB of weights do not fit into 24.",
            },
        ),
        Part(
            "knee, from two rows",
            6 * one / each,
            {
                one / each: "That is the knee seen from one row; two rows take six times as long.",
                6 * one / each / 0.85: "That takes the whole peak; many rows reach 85% of it.",
                3 * one / each: "The time of the first is that of both rows together; do not halve it.",
            },
            rtol=1e-2,
        ),
    )


def update_share():
    """The rows at which an update is small beside the products."""
    corner = cost.ridge_point(**EXAMPLE)
    moved = {name: cost.update_traffic(1, name) for name in ("adam", "sgd")}
    multiple = {name: Fraction(10 * each, 6) for name, each in moved.items()}
    rows = {name: math.ceil(each * int(corner)) for name, each in multiple.items()}
    return Number(
        "scale-update-share",
        Part(
            "bytes for a parameter, Adam",
            moved["adam"],
            {
                20: "20 is for momentum, which remembers one number; Adam remembers two.",
                16: "16 only reads; the parameter and both averages are written back as well.",
                7: "7 counts the numbers; a float32 takes 4 bytes.",
            },
            unit="bytes",
        ),
        Part(
            "rows, Adam",
            rows["adam"],
            {
                rows["adam"] - 1: "With 933 rows the update takes a little more than a tenth: round up.",
                multiple["adam"] * int(corner): "That is where the update is just a tenth; the smallest whole"
                " number of rows behind it is asked for.",
                94: "With 94 rows both bounds are equal; the update is to be a tenth.",
                2800: "2,800 counts two operations for a weight and a row; forward and backward make six.",
            },
        ),
        Part(
            "rows, SGD",
            rows["sgd"],
            {
                267: "267 moves two numbers for a parameter: SGD reads it and its gradient, and writes it.",
                40: "With 40 rows both bounds are equal; the update is to be a tenth.",
            },
        ),
        Part(
            "multiple of the ridge, Adam",
            multiple["adam"],
            {
                Fraction(35, 3): "The size of a number, 4 bytes, is missing.",
                140: "140 counts two operations for a weight and a row; forward and backward make six.",
            },
        ),
        Part(
            "does not depend on",
            "the number of parameters",
            {
                "the bandwidth": "A faster memory shortens the update and not the products.",
                "the size of a number": "In float64 the update moves twice the bytes.",
            },
            options=("the number of parameters", "the peak", "the bandwidth", "the size of a number"),
        ),
    )
