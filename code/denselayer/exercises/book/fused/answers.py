"""The exercises of the chapter "The fused GEMM": what is right, and which mistakes have a name."""

import math

import numpy as np

from denselayer import cost
from denselayer.exercises import Explain, Number, Part

from ._close_calls import FLIP, PAIRED
from ._kernels import BLOCKED, REPAIR
from ._stored import EPILOGUE, IN_PLACE

WEIGHT = np.array([[0.5, -1.0, 2.0], [-0.25, 0.5, 1.0], [1.0, 0.25, -0.5]])
BIAS = np.array([3.0, -1.0, -4.0])
TRIP = np.array([1.0, 0.0, 2.0])
CORE = {"peak": 2e11, "bandwidth": 4e10}
TWO_LIMITS = ("arithmetic", "bandwidth")


def entries(array):
    return tuple(np.asarray(array, dtype=float).ravel().tolist())


SUMS = BIAS + np.cumsum(TRIP * WEIGHT, axis=1).T.reshape(3, 3)
BY_HAND = Number(
    "fused-by-hand",
    Part(
        "sums after the first input",
        entries(SUMS[0]),
        {
            entries(SUMS[0] - BIAS): "The sums start at the bias.",
            entries(BIAS + WEIGHT[0]): "That adds the first row; the first input meets the first column.",
        },
        unit="three numbers",
    ),
    Part(
        "sums after the second",
        entries(SUMS[1]),
        {entries(SUMS[1] + WEIGHT[:, 1]): "The second input is 0."},
        unit="three numbers",
    ),
    Part(
        "sums after the third",
        entries(SUMS[2]),
        {entries(SUMS[2] - WEIGHT[:, 2]): "The third input is 2: it adds its column twice."},
        unit="three numbers",
    ),
    Part(
        "outputs",
        entries(np.maximum(SUMS[2], 0)),
        {entries(SUMS[2]): "ReLU is missing."},
        unit="three numbers",
    ),
    Part(
        "numbers of three steps",
        100 * 3 * 5,
        {
            900: "Bias and ReLU each read the outputs before they write them.",
            1800: "The product writes its outputs and reads none.",
            15: "15 is one trip; there are 100.",
        },
    ),
    Part(
        "numbers of the fused step",
        100 * 3,
        {3: "3 is one trip; there are 100.", 600: "The fused step writes its outputs and never reads them."},
    ),
)


def of_bound(rows):
    work = cost.layer(rows, 1024, 512).forward
    seconds = cost.least_seconds(*work, **CORE)
    passes = cost.nbytes(4 * rows * 512) / CORE["bandwidth"]
    limit = TWO_LIMITS[work.intensity <= cost.ridge_point(**CORE)]
    other = {"arithmetic": "bandwidth", "bandwidth": "arithmetic"}[limit]
    name = f"for {rows} row{'s' * (rows > 1)}"
    yield Part(
        f"operations {name}",
        work.operations,
        {work.operations // 2: "That counts a multiplication and its addition as one; they are two."},
        rtol=5e-3,
    )
    yield Part(
        f"bytes {name}",
        work.traffic,
        {
            work.traffic // 4: "That counts numbers; a float32 has 4 bytes.",
            cost.nbytes(1024 * 512): "That is the weight alone; input, bias and output move too.",
            work.traffic - cost.nbytes(512): "The bias is left out: it is read, too."
            if rows > 1
            else "The bias or the output is left out: one is read, and the other is written.",
            work.traffic - cost.nbytes(rows * 1024): "The input is left out: it is read.",
        },
        rtol=5e-4,
    )
    yield Part(
        f"operations per byte {name}",
        work.intensity,
        {4 * work.intensity: "That is operations per number; a float32 has 4 bytes."},
        rtol=1e-2,
    )
    wrong = work.traffic / CORE["bandwidth"] if limit == "arithmetic" else work.operations / CORE["peak"]
    yield Part(
        f"least time in µs {name}",
        seconds * 1e6,
        {wrong * 1e6: f"That is the time of {other}; the larger of the two holds."},
        rtol=2e-2,
        unit="µs",
    )
    yield Part(
        f"limit {name}", limit, {other: "Compare with the ridge, 5 operations per byte."}, options=TWO_LIMITS
    )
    yield Part(
        f"share that two passes add {name}",
        passes / seconds,
        {passes / seconds / 2: "Each of the two passes reads and writes all of the output."},
        rtol=5e-2,
    )


BOUND = Number("fused-bound", *of_bound(256), *of_bound(1))


def exact_rows_at_ridge(itemsize, ridge):
    return 1 / (2 / (itemsize * ridge) - 2 / 512)


def rows_at_ridge(itemsize, ridge):
    return math.ceil(exact_rows_at_ridge(itemsize, ridge))


BATCH = Number(
    "fused-batch",
    Part(
        "rows in float32",
        rows_at_ridge(4, 5),
        {
            10: "At 10 rows bandwidth still limits it: round up.",
            exact_rows_at_ridge(4, 5): "That is where both limits are equal: round up.",
            5: "That would hold if the weight were all that moves and a number had 2 bytes.",
            3: "A number has 4 bytes.",
        },
    ),
    Part(
        "rows in float64",
        rows_at_ridge(8, 2.5),
        {
            exact_rows_at_ridge(8, 2.5): "That is where both limits are equal: round up.",
            rows_at_ridge(8, 5): "The peak is half as large in float64, and so is the ridge.",
            6: "The numbers have twice the bytes too.",
        },
    ),
)
BLOCKS = ((128, 64), (64, 128), (32, 256), (4096, 2))
BEST = ("128 × 64 and 64 × 128", "32 × 256", "4,096 × 2")


def moved(rows, columns):
    return cost.blocked_traffic(4096, 512, 512, rows, columns) / 2**20


TRAFFIC = Number(
    "fused-traffic",
    *[
        Part(
            f"MiB for {rows:,} × {columns}",
            moved(rows, columns),
            {
                moved(rows, columns) - 8: "The result is written too.",
                moved(rows, columns) / 4: "That counts numbers, in units of 2²⁰; a float32 has 4 bytes.",
            },
            rtol=1e-3,
            unit="MiB",
        )
        for rows, columns in BLOCKS
    ],
    Part("best", BEST[0], {BEST[1]: "Compute all four.", BEST[2]: "Compute all four."}, options=BEST),
)
SHARES = {relu: cost.epilogue_share(64, CORE["peak"], [8e9, relu]) for relu in (2e9, 16e9)}
BIAS_SHARE = cost.epilogue_share(64, CORE["peak"], [8e9])
EPILOGUE_INPUTS = round(SHARES[2e9] * 64 / 0.1)
BREAK_EVEN = Number(
    "fused-break-even",
    Part(
        "share for 64 inputs",
        SHARES[2e9],
        {
            BIAS_SHARE: "That is the bias alone.",
            SHARES[2e9] - BIAS_SHARE: "That is the ReLU alone.",
            2 * SHARES[2e9]: "The product takes two operations for each input.",
            SHARES[2e9]
            / (1 + SHARES[2e9]): "That is the part of the whole; the share is epilogue over product.",
        },
        rtol=1e-2,
    ),
    Part(
        "inputs from which it is below 10%",
        EPILOGUE_INPUTS,
        {64: "Solve share · 64 / n = 0.1 for n."},
        rtol=5e-3,
    ),
    Part(
        "share with a ReLU 8 times as fast",
        SHARES[16e9],
        {SHARES[2e9] / 8: "Only the ReLU is faster; the bias takes its time as before."},
        rtol=2e-2,
    ),
    Part(
        "time saved with it, as a part of the whole",
        (SHARES[2e9] - SHARES[16e9]) / (1 + SHARES[2e9]),
        {SHARES[2e9] - SHARES[16e9]: "That is a part of the product; the whole is product and epilogue."},
        rtol=2e-2,
    ),
    Part("share with an infinitely fast ReLU", BIAS_SHARE, {0: "The bias is still added."}, rtol=2e-2),
)


def rows_without_packing(inputs, units):
    return 10**6 // (inputs * units) // 8 * 8


NO_USE = ("64 → 64", "128 → 128", "256 → 16", "512 → 512")
SMALL = Number(
    "fused-small-kind",
    *[
        Part(
            f"rows for {inputs} → {units}",
            rows_without_packing(inputs, units),
            {10**6 // (inputs * units): "That is no multiple of 8: round down."},
        )
        for inputs, units in ((64, 64), (128, 128), (256, 16))
    ],
    Part(
        "rows for 512 → 512",
        0,
        {3: "3 is no multiple of 8.", 8: "8 rows are more than a million: round down."},
    ),
    Part(
        "of no use for",
        NO_USE[3],
        {
            NO_USE[0]: "240 rows are a long block.",
            NO_USE[1]: "56 rows are a short block, and still one.",
            NO_USE[2]: "240 rows are a long block.",
        },
        options=NO_USE,
    ),
)
SIZES = (8192, 64, 64)
GATE = cost.nbytes(3 * 8192 * 64)
APART = GATE + cost.linear_backward_traffic(*SIZES, input_gradient=False)
TOGETHER = cost.fused_backward_traffic(*SIZES, input_gradient=False)
GATE_BYTES = Number(
    "fused-gate-bytes",
    Part(
        "bytes step by step",
        APART,
        {
            APART - GATE: "The gate moves numbers too: it reads two arrays and writes one.",
            APART // 4: "That counts numbers; a float32 has 4 bytes.",
            2 * GATE: "The two gradients that are written are left out.",
        },
        rtol=1e-3,
    ),
    Part(
        "bytes fused",
        TOGETHER,
        {
            TOGETHER // 4: "That counts numbers; a float32 has 4 bytes.",
            GATE: "The two gradients that are written are left out.",
            TOGETHER + GATE // 3: "The gated gradient is not written.",
        },
        rtol=1e-3,
    ),
    Part(
        "bytes saved by fusing the gate",
        GATE,
        {
            GATE // 3: "The gated gradient is written once and read twice.",
            2 * GATE // 3: "It is read twice: for the weight and for the bias.",
        },
        rtol=1e-3,
    ),
    Part(
        "part of the saving",
        1,
        {0.5: "Half of all bytes are saved; asked is which part of the saving is due to the gate."},
    ),
)

EXERCISES = [
    BY_HAND,
    BOUND,
    BATCH,
    TRAFFIC,
    BREAK_EVEN,
    SMALL,
    GATE_BYTES,
    Explain("fused-compiler"),
    Explain("fused-three-times"),
    Explain("fused-softmax"),
    REPAIR,
    BLOCKED,
    FLIP,
    IN_PLACE,
    PAIRED,
    EPILOGUE,
    Explain("fused-ceiling"),
]
