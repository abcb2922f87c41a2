"""The figures of layers on several devices: who holds and sends what, and what exchanges cost."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from denselayer import bench, parallel
from denselayer.bench import Samples

from . import style
from .dense_layer import DEVICE_COLOURS, HATCHES

FROM_WHITE = ["#ffffff", "#dce8f8", "#a9c6ee", "#6f9fe0", "#3f7fd6"]


def _setting(name: str, value=None):
    """``value``, or the parameter ``name`` of these figures where ``value`` is None."""
    return style.parameters("parallel")[name] if value is None else value


def _samples(samples: Samples | None) -> Samples:
    return bench.stored("allreduce") if samples is None else samples


def all_reduces(samples: Samples) -> dict[int, list[float]]:
    """Bytes of the array to the measured seconds of its all-reduce."""
    found = [case for case in samples.cases if case.name.startswith("all-reduce")]
    return {case.shape["bytes"]: case.seconds["all-reduce"] for case in found}


def fitted(samples: Samples) -> parallel.AlphaBeta:
    """The alpha-beta model of all measured all-reduces."""
    times = all_reduces(samples)
    return parallel.fit_alpha_beta(list(times), list(times.values()), devices=2)


def batches(samples: Samples) -> list[int]:
    """The rows of the measured blocks, smallest first."""
    return sorted({case.shape["batch"] for case in samples.cases if case.name.startswith("block")})


def blocks(samples: Samples, rows: int) -> dict[int, bench.Case]:
    """Width to the case of the block of that width, for batches of ``rows``."""
    found = [case for case in samples.cases if case.name.startswith("block")]
    return {case.shape["width"]: case for case in found if case.shape["batch"] == rows}


def crossing_width(widths: Sequence[int], ratios: Sequence[float]) -> float | None:
    """Width from which on all ratios are above 1, read between two widths on logarithmic axes.

    >>> round(crossing_width([64, 128, 256], [0.5, 2.0, 4.0]))
    91
    >>> crossing_width([64, 128], [2.0, 0.5]) is None
    True
    """
    below = [at for at, ratio in enumerate(ratios) if ratio <= 1]
    if not below:
        return float(widths[0])
    last = below[-1]
    if last == len(widths) - 1:
        return None
    pair = slice(last, last + 2)
    return float(np.exp(np.interp(0, np.log(ratios[pair]), np.log(widths[pair]))))


def predicted_seconds(case: bench.Case, model: parallel.AlphaBeta) -> float:
    """Of a split block: half the time of the whole one, and two all-reduces."""
    exchanged = 4 * case.shape["batch"] * case.shape["width"]
    ranks = case.shape["ranks"]
    return case.median("unsplit") / ranks + 2 * model.all_reduce_seconds(exchanged, ranks)


@style.styled
def exchanges(*, weight: Sequence[Sequence[float]] | None = None) -> Figure:
    """The weight of the running example on three devices, cut both ways, and what each device sends."""
    matrix = np.array(_setting("weight", weight), dtype=float)
    devices = len(matrix)
    figure, panels = style.new_figure(4.9, 4.5, nrows=2)
    sent = parallel.all_reduce_bytes(devices, devices)[0] // 4
    cuts = {
        "outputs split": (np.tile(np.arange(devices)[:, None], (1, devices)), 0, sent),
        "inputs split": (np.tile(np.arange(devices), (devices, 1)), sent, 0),
    }
    for axes, (name, (owner, forward, backward)) in zip(panels, cuts.items(), strict=True):
        _weight_on_devices(axes, matrix, owner)
        lines = {"forward": forward, "backward": backward}
        for line, (way, count) in enumerate(lines.items()):
            _letters(axes, devices + 0.7, -0.45 - 1.5 * line, way, count, devices)
        axes.set_title(f"{name}: device k has {'row' if name.startswith('out') else 'column'} k")
    handles = [
        Patch(facecolor=DEVICE_COLOURS[p], hatch=HATCHES[p], edgecolor=style.INK, label=f"device {p + 1}")
        for p in range(devices)
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=devices, fontsize=10)
    return figure


def _look(device: int) -> dict:
    return {
        "facecolor": DEVICE_COLOURS[device],
        "hatch": HATCHES[device],
        "edgecolor": style.INK,
        "linewidth": 0.6,
    }


def _weight_on_devices(axes: Axes, matrix: np.ndarray, owner: np.ndarray) -> None:
    """The numbers of a weight, each in the look of the device that holds it."""
    rows, columns = matrix.shape
    for (row, column), device in np.ndenumerate(owner):
        gid = f"W-{row}-{column}-{device}"
        axes.add_patch(Rectangle((column, -(row + 1)), 1, 1, gid=gid, **_look(int(device))))
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1.2, "alpha": 0.85}
        axes.text(column + 0.5, -(row + 0.5), f"{matrix[row, column]:g}", ha="center", va="center", bbox=box)
    axes.set(xlim=(-0.1, columns + 6.6), ylim=(-rows - 0.1, 0.1), xticks=[], yticks=[], aspect="equal")
    axes.spines[:].set_visible(False)


def _letters(axes: Axes, left: float, top: float, way: str, count: int, devices: int) -> None:
    """What the devices send in a pass: a row of small squares for each, a square for each number."""
    note = f"{way}: each sends {count} numbers" if count else f"{way}: nothing is sent"
    axes.text(left, top, note, va="center", ha="left")
    for device in range(devices):
        for number in range(count):
            place = left + 1.75 * device + 0.36 * number, top - 0.85
            gid = f"sent-{way}-{device}-{number}"
            axes.add_patch(Rectangle(place, 0.36, 0.36, gid=gid, **_look(device)))


def ring_steps(devices: int) -> list[np.ndarray]:
    """How many summands device p has of piece c: at the start and after each step of an all-reduce.

    >>> [grid.tolist() for grid in ring_steps(2)]
    [[[1, 1], [1, 1]], [[2, 1], [1, 2]], [[2, 2], [2, 2]]]
    """
    have = np.ones((devices, devices), dtype=int)
    grids, ring = [have.copy()], np.arange(devices)
    for first, add in ((1, True), (0, False)):
        for step in range(devices - 1):
            piece = (ring - step - first) % devices
            message = have[ring, piece]
            receiver = (ring + 1) % devices
            have[receiver, piece] = have[receiver, piece] + message if add else message
            grids.append(have.copy())
    return grids


@style.styled
def ring(*, devices: int | None = None) -> Figure:
    """An all-reduce step by step: the number of summands that each device has of each piece."""
    devices = _setting("ring_devices", devices)
    grids = ring_steps(devices)
    columns = 4
    figure, axes = style.new_figure(5.6, 3.9, nrows=-(-len(grids) // columns), ncols=columns)
    for step, (panel, grid) in enumerate(zip(axes.flat, grids, strict=False)):
        for (device, piece), summands in np.ndenumerate(grid):
            shade = FROM_WHITE[round((summands - 1) / (devices - 1) * (len(FROM_WHITE) - 1))]
            gid = f"step-{step}-{device}-{piece}"
            patch = Rectangle((piece, -(device + 1)), 1, 1, facecolor=shade, edgecolor=style.GREY, gid=gid)
            panel.add_patch(patch)
            panel.text(piece + 0.5, -(device + 0.5), str(summands), ha="center", va="center")
        panel.set(xlim=(0, devices), ylim=(-devices, 0), aspect="equal", xticks=[], yticks=[])
        panel.spines[:].set_visible(False)
        panel.set_title("start" if step == 0 else f"step {step}")
    first = axes.flat[0]
    first.set_yticks([-(device + 0.5) for device in range(devices)], [str(p + 1) for p in range(devices)])
    first.set_ylabel("device")
    first.set_xticks([piece + 0.5 for piece in range(devices)], [str(c + 1) for c in range(devices)])
    first.set_xlabel("piece")
    first.tick_params(length=0)
    for panel in axes.flat[len(grids) :]:
        panel.set_visible(False)
    return figure


@style.styled
def all_reduce_times(samples: Samples | None = None) -> Figure:
    """Measured all-reduces between two processes over the size, with the fitted model."""
    samples = _samples(samples)
    times, model = all_reduces(samples), fitted(samples)
    figure, axes = style.new_figure(5.4, 4.0)
    sizes = np.array(list(times))
    low, middle, high = (1e3 * np.quantile(list(times.values()), q, axis=1) for q in (0.25, 0.5, 0.75))
    axes.errorbar(
        sizes,
        middle,
        [middle - low, high - middle],
        fmt="o",
        markersize=4.5,
        color=style.BLUE,
        elinewidth=1.2,
        label="measured: median, middle half",
    )
    axes.lines[0].set_gid("measured")
    fine = np.geomspace(sizes[0], sizes[-1], 200)
    line = 1e3 * np.array([model.all_reduce_seconds(size, 2) for size in fine])
    axes.plot(fine, line, color=style.ORANGE, label="fitted: 2 (α + β · bytes / 2)", gid="fitted")
    axes.set(xscale="log", yscale="log")
    ticks = [2**3, 2**10, 2**16, 2**20, 2**26]
    axes.set_xticks(ticks, ["8 B", "1 KiB", "64 KiB", "1 MiB", "64 MiB"])
    _plain_ticks(axes)
    axes.minorticks_off()
    axes.set_xlabel("size of the array on each process")
    axes.set_ylabel("milliseconds")
    axes.grid(True)
    figure.legend(loc="outside upper center", fontsize=10)
    return figure


@style.styled
def split_times(samples: Samples | None = None) -> Figure:
    """A block on one process and split over two, over its width: measured, and the model's prediction."""
    samples = _samples(samples)
    model = fitted(samples)
    measured = batches(samples)
    figure, panels = style.new_figure(5.4, 3.0 * len(measured) + 0.6, nrows=len(measured))
    for axes, rows in zip(np.atleast_1d(panels), measured, strict=True):
        cases = blocks(samples, rows)
        widths = list(cases)
        looks = {"unsplit": ("o-", style.BLUE, "one process"), "split": ("s-", style.ORANGE, "two processes")}
        for way, (line, colour, label) in looks.items():
            medians = [1e3 * case.median(way) for case in cases.values()]
            axes.plot(widths, medians, line, color=colour, markersize=5, label=label, gid=f"{way}-{rows}")
        predicted = [1e3 * predicted_seconds(case, model) for case in cases.values()]
        axes.plot(
            widths, predicted, ":", color=style.INK, label="two processes, predicted", gid=f"predicted-{rows}"
        )
        axes.set(xscale="log", yscale="log")
        axes.set_xticks(widths, [f"{width:,}" for width in widths])
        _plain_ticks(axes)
        axes.minorticks_off()
        axes.set_title(f"{rows} rows")
        axes.set_ylabel("milliseconds")
        axes.grid(True)
    axes.set_xlabel("width d of the block d → 4d → d")
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=1, fontsize=10)
    return figure


def _plain_ticks(axes: Axes) -> None:
    """Powers of ten on the vertical axis, written out."""
    low, high = axes.get_ylim()
    ticks = [10.0**power for power in range(-4, 5) if low <= 10.0**power <= high]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
