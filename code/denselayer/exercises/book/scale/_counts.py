"""Exercises with numbers: what is counted before anything is run."""

import math
from fractions import Fraction

from denselayer import cost
from denselayer.exercises import Number, Part

MIB = 2**20
EXAMPLE = {"peak": 2e13, "bandwidth": 1e12}


def small_layer():
    """A layer from 4 to 6, for 1 and for 12 rows."""
    one, twelve = cost.layer(1, 4, 6).forward, cost.layer(12, 4, 6).forward
    limit = Fraction(2, 4) / (Fraction(1, 4) + Fraction(1, 6))
    return Number(
        "scale-small-layer",
        Part(
            "parameters",
            cost.linear_parameters(4, 6),
            {
                24: "24 leaves out the biases: each of the 6 units has one.",
                28: "28 has one bias for each input; a bias belongs to a unit, and there are 6.",
            },
        ),
        Part(
            "operations, 1 row",
            one.operations,
            {
                24: "24 counts the multiply-adds; each is two operations.",
                42: "42 leaves out the 6 additions of the biases.",
            },
        ),
        Part(
            "bytes, 1 row",
            one.traffic,
            {
                40: "40 counts the numbers; a float32 takes 4 bytes.",
                136: "136 leaves out the 6 biases, which are read as well.",
                120: "120 is what the parameters take; the input is read and the output written too.",
            },
            unit="bytes",
        ),
        Part(
            "operations per byte, 1 row",
            Fraction(*one),
            {
                1.2: "1.2 is operations for each number; a number has 4 bytes.",
                0.15: "0.15 takes the multiply-adds for the operations, or 8 bytes for a number.",
            },
        ),
        Part(
            "operations, 12 rows",
            twelve.operations,
            {288: "288 counts the multiply-adds; each is two operations."},
        ),
        Part(
            "bytes, 12 rows",
            twelve.traffic,
            {
                1920: "1,920 reads the parameters 12 times; they are read once for the whole batch.",
                150: "150 counts the numbers; a float32 takes 4 bytes.",
            },
            unit="bytes",
        ),
        Part(
            "operations per byte, 12 rows",
            Fraction(*twelve),
            {
                0.3: "0.3 is that of 1 row; with 12 rows the same parameters do more work.",
                3.84: "3.84 is operations for each number; a number has 4 bytes.",
            },
        ),
        Part(
            "limit",
            limit,
            {
                2: "2 is the bound by the smallest size alone; the reciprocals of 4 and of 6 add up.",
                4.8: "4.8 is operations for each number; a number has 4 bytes.",
                0.96: "0.96 is that of 12 rows; let the share of the parameters vanish.",
            },
        ),
    )


def mlp():
    """The network 784 → 256 → 10, and where its kept values cross its parameters."""
    widths = [784, 256, 10]
    parameters = cost.network_parameters(widths)
    without_biases = cost.network_parameters(widths, bias=False)
    return Number(
        "scale-mlp",
        Part(
            "parameters",
            parameters,
            {
                without_biases: f"{without_biases:,} leaves out the biases of the 266 units.",
                parameters - 10: "The biases of the last layer are missing: it has 10.",
            },
        ),
        Part(
            "values kept, 128 rows",
            cost.network_activations(128, widths),
            {
                128 * 1050: "134,400 counts the output too, which no dense layer needs again.",
                128 * 1296: "165,888 counts the hidden values twice; ReLU gets by with its output, which the"
                " next layer keeps anyway.",
                1040: "1,040 is for one row; the batch has 128.",
            },
        ),
        Part(
            "rows, parameters alone",
            cost.crossing_batch(widths),
            {
                parameters
                / 1050: "The divisor counts the output too; only the inputs of the layers are kept.",
                parameters / 784: "Divide by all that a row keeps, the hidden values included.",
            },
            rtol=4e-3,
        ),
        Part(
            "rows, training with Adam",
            cost.crossing_batch(widths, copies=4),
            {
                cost.crossing_batch(widths, copies=3): "That is three numbers for each parameter; there are"
                " four: itself, its gradient and two averages.",
                cost.crossing_batch(widths, copies=2): "That counts parameters and gradients; Adam remembers"
                " two numbers more for each.",
            },
            rtol=4e-3,
        ),
    )


def mebibytes(optimizer, dtype="float32"):
    """What the block 512 → 2048 → 512 holds in a training step with 4,096 rows."""
    block = cost.network([512, 2048, 512], 4096, optimizer=optimizer, dtype=dtype)
    return block.nbytes / MIB


def adam():
    """The memory of a training step with three optimisers."""
    kept = cost.nbytes(cost.network_activations(4096, [512, 2048, 512])) / MIB
    return Number(
        "scale-adam",
        Part(
            "SGD",
            mebibytes("sgd"),
            {
                mebibytes("sgd") - kept: "That leaves out the kept values, 40 MiB.",
                (mebibytes("sgd") + kept)
                / 2: "That leaves out the gradients: one number for each parameter.",
                mebibytes("sgd")
                * MIB
                / 1e6: "That is in units of a million bytes; a MiB is 1,048,576 bytes.",
            },
            rtol=2e-3,
            unit="MiB",
        ),
        Part(
            "momentum",
            mebibytes("momentum"),
            {mebibytes("sgd"): "Momentum remembers a number for each parameter, its running sum."},
            rtol=2e-3,
            unit="MiB",
        ),
        Part(
            "Adam",
            mebibytes("adam"),
            {
                mebibytes("momentum"): "Adam remembers two averages for each parameter, not one.",
                mebibytes("adam") - kept: "That leaves out the kept values, 40 MiB.",
            },
            rtol=2e-3,
            unit="MiB",
        ),
        Part(
            "largest part",
            "kept values",
            {
                "parameters": "The parameters take 8 MiB; count what 4,096 rows keep.",
                "optimiser": "Even Adam remembers only 16 MiB; count what 4,096 rows keep.",
            },
            options=("parameters", "gradients", "optimiser", "kept values"),
        ),
    )


def half():
    """Two bytes for a number in place of four."""
    work = {
        dtype: (cost.linear_operations(16, 1024, 1024), cost.linear_traffic(16, 1024, 1024, dtype=dtype))
        for dtype in ("float32", "float16")
    }
    operations, moved = (
        Fraction(new, old) for new, old in zip(work["float16"], work["float32"], strict=True)
    )
    times = {dtype: cost.least_seconds(*each, **EXAMPLE) for dtype, each in work.items()}
    return Number(
        "scale-half",
        Part("parameters", 1, {0.5: "A parameter takes half the bytes, and there are as many as before."}),
        Part("operations", operations, {0.5: "There are as many operations as before, on shorter numbers."}),
        Part(
            "bytes moved",
            moved,
            {1: "As many numbers are moved, and each has half the bytes.", 0.25: "0.25 halves it twice."},
        ),
        Part(
            "intensity",
            operations / moved,
            {
                0.5: "The operations stay and the bytes are halved: what does that do to their quotient?",
                1: "The operations stay and the bytes do not, so their quotient changes.",
            },
        ),
        Part(
            "least time",
            times["float16"] / times["float32"],
            {
                1: "Compare the intensity with the ridge: does arithmetic or traffic decide at 16 rows?",
                2: "2 is the factor of the speed; the time is its reciprocal.",
            },
        ),
    )


def experts():
    """What 16 experts store and compute."""
    dense, gate = 512 * 512, 16 * 512
    return Number(
        "scale-experts",
        Part(
            "stored",
            Fraction(16 * dense + gate, dense),
            {
                16: "16 leaves out the weights of the gate, 16 · 512.",
                Fraction(dense + gate, dense): "All experts are stored, not only the chosen one.",
            },
            rtol=1e-3,
        ),
        Part(
            "multiply-adds",
            Fraction(dense + gate, dense),
            {
                1: "1 leaves out the gate, which is computed for every row.",
                Fraction(
                    16 * dense + gate, dense
                ): "Only the chosen expert is computed for a row, and the gate.",
            },
            rtol=2e-3,
        ),
    )


def recompute():
    """What checkpoints save and cost."""
    kept = cost.checkpoint_values(1, 1, 64, every=8)
    model = cost.network([1024] * 65, batch=1, input_gradient=True)
    again = Fraction(model.training.operations + model.forward.operations, model.training.operations)
    return Number(
        "scale-recompute",
        Part(
            "kept values fall by",
            Fraction(64, kept),
            {
                8: "8 counts the kept inputs alone; while a segment is recomputed, seven more are there.",
                4: "4 counts eight recomputed inputs; the first of a segment is kept already, which leaves"
                " seven.",
            },
            rtol=1e-2,
        ),
        Part(
            "operations rise by",
            again,
            {
                2: "Only the forward products are computed twice, not the two backward products of a layer.",
                1.5: "1.5 leaves out one of the two backward products of a layer.",
                Fraction(1, 3): "1/3 is what is added; the factor is the new number divided by the old one.",
            },
            rtol=1e-2,
        ),
    )


def budget():
    """Which distances between checkpoints fit into 300 MiB."""
    one = 2048 * 1024
    room = 300 * MIB // cost.nbytes(1)
    kept = {every: cost.checkpoint_values(2048, 1024, 48, every, arrays=2) for every in range(1, 49)}
    fits = [every for every, values in kept.items() if values <= room]
    least = min(kept.values())
    plain = room // (2 * 48 * 1024)
    return Number(
        "scale-budget",
        Part(
            "MiB without checkpoints",
            cost.nbytes(2 * 48 * one) // MIB,
            {
                384: "384 keeps one array for a layer; with its GELU it keeps two.",
                192: "192 counts a byte for each value; a float32 takes 4.",
            },
            unit="MiB",
        ),
        Part(
            "smallest k that fits",
            fits[0],
            {1: "With k = 1 the inputs of all 48 layers are kept: 49 arrays, and 37 fit."},
        ),
        Part(
            "largest k that fits",
            fits[-1],
            {
                18: "With k = 18 there are 3 segments, and 3 + 35 = 38 arrays; 37 fit.",
                36: "36 is for one array in a layer; here a recomputed layer holds two.",
            },
        ),
        Part(
            "MiB with the best k",
            cost.nbytes(least) // MIB,
            {
                104: "104 is for one array in a layer; a recomputed layer holds two.",
                160: "160 counts the input of the recomputed segment twice.",
            },
            unit="MiB",
        ),
        Part(
            "largest batch with the best k",
            room // (least // 2048),
            {
                plain: "That is without checkpoints.",
                4043: "4,043 rows take a little more than 300 MiB: round down.",
            },
        ),
        Part(
            "largest batch without checkpoints",
            plain,
            {1600: "1,600 keeps one array for a layer; with its GELU it keeps two."},
        ),
        Part(
            "batches for 2,048 rows",
            math.ceil(2048 / plain),
            {2: "Two batches of up to 800 rows make 1,600; 2,048 are wanted."},
        ),
        Part(
            "products for a layer, added up",
            3,
            {
                4: "The forward product of a row is computed once here, in whichever batch it stands.",
                9: "Three batches of a third of the rows each do the products of one whole batch.",
            },
        ),
        Part(
            "products for a layer, checkpoints",
            4,
            {
                3: "With checkpoints the forward product is computed a second time.",
                6: "Only the forward product is computed twice.",
            },
        ),
    )
