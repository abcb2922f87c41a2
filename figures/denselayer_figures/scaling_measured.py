"""The figures of measured times and memory in the chapter on scaling, drawn from the stored samples."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from denselayer import bench, cost

from . import style

MARKS = {
    "forward": (style.BLUE, "o", "-"),
    "backward": (style.ORANGE, "s", "--"),
    "SGD": (style.GREEN, "^", "-"),
    "Adam": (style.RED, "D", "--"),
}
PROGRAMS = {
    "product": ("x @ weight.T", style.BLUE, "o", "-"),
    "weight_first": ("(weight @ x.T).T", style.GREEN, "s", "--"),
    "row_by_row": ("row by row", style.ORANGE, "^", "-."),
}
MIB = 2**20


def limits() -> bench.Limits:
    """What one thread of the book's machine can do at most, from the stored samples.

    >>> limits().threads
    1
    """
    return bench.Limits.of(bench.stored("limits"), threads=1)


def sweep(case: bench.Case, program: str = "") -> tuple[np.ndarray, np.ndarray]:
    """Sizes (K,), and seconds (K, R) in R rounds, of a case whose variants are called by their size.

    Where variants are called by a program and a size, ``program`` chooses those of one program.

    >>> sizes, seconds = sweep(bench.Case("demo", {"1": [0.5, 0.25], "2": [1.0, 2.0]}))
    >>> sizes, seconds.shape
    (array([1, 2]), (2, 2))
    """
    start = f"{program} " if program else ""
    chosen = {
        name.removeprefix(start): times for name, times in case.seconds.items() if name.startswith(start)
    }
    return np.array([int(name) for name in chosen]), np.array(list(chosen.values()))


def bound(limit: bench.Limits, name: str, batch: int, width: int, depth: int = 1) -> float:
    """Least seconds of a pass or an update of square layers, on a machine with these limits.

    An update is limited by the level of memory that can hold all that it touches.
    """
    if name in ("forward", "backward"):
        model = cost.network([width] * (depth + 1), batch, input_gradient=True)
        return limit.bound(*getattr(model, name))
    optimizer, parameters = name.lower(), depth * cost.linear_parameters(width, width)
    held = cost.nbytes(cost.training_values(parameters, 0, optimizer))
    return cost.update_traffic(parameters, optimizer) / limit.bandwidth[limit.level(held)]


def _log(axes: Axes, ticks: list[int], unit: float, marks: dict[float, str]) -> None:
    """Logarithmic axes: sizes to the base 2, and times with words at a few marks."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.set_yscale("log")
    axes.set_yticks([mark / unit for mark in marks], list(marks.values()))
    axes.minorticks_off()
    axes.grid(True)


def _spread(axes: Axes, sizes: np.ndarray, seconds: np.ndarray, look: tuple, name: str, label: str) -> None:
    """Medians as points on a line, with a bar from the fastest to the slowest round."""
    colour, marker, line = look
    median = np.median(seconds, axis=1)
    reach = np.abs(np.array([seconds.min(axis=1), seconds.max(axis=1)]) - median)
    drawn = axes.errorbar(
        sizes,
        median,
        reach,
        color=colour,
        fmt=marker,
        linestyle=line,
        markersize=5,
        linewidth=1.4,
        label=label,
    )
    drawn.lines[0].set_gid(name)


TIMES = {1e-6: "1 µs", 1e-5: "10 µs", 1e-4: "0.1 ms", 1e-3: "1 ms", 1e-2: "10 ms", 1e-1: "0.1 s"}


@style.styled
def widths(*, samples: bench.Samples | None = None, limit: bench.Limits | None = None) -> Figure:
    """Measured times of four pieces of a training step over the width of a layer, above their bounds."""
    samples, limit = samples or bench.stored("scaling"), limit or limits()
    figure, panels = style.new_figure(5.4, 7.4, nrows=2, sharex=True)
    for axes, low, names in zip(
        panels, (3e-7, 3e-8), (("forward", "backward"), ("SGD", "Adam")), strict=True
    ):
        for name in names:
            case = samples.case(f"width, {name}")
            sizes, seconds = sweep(case)
            batch = case.shape["batch"]
            _spread(axes, sizes, seconds, MARKS[name], name, name)
            least = [bound(limit, name, batch, int(width)) for width in sizes]
            axes.plot(sizes, least, ":", color=MARKS[name][0], linewidth=1.6, gid=f"bound-{name}")
        axes.plot([], [], ":", color=style.INK, label="bound")
        _log(axes, [int(size) for size in sizes[::2]], 1, TIMES)
        axes.set_ylim(low, 0.3)
        axes.legend(loc="upper left", fontsize=10)
        axes.set_ylabel("time")
    panels[0].set_title(f"passes, {batch} rows")
    panels[1].set_title("updates")
    for name, place in (("SGD", 0.045), ("Adam", 0.16)):
        last = _last_width(limit, name.lower())
        panels[1].axvline(last, color=MARKS[name][0], linewidth=1, alpha=0.6, gid=f"full-{name}")
        panels[1].text(
            last * 1.12,
            place,
            f"L3 full\n({name})",
            color=MARKS[name][0],
            transform=panels[1].get_xaxis_transform(),
        )
    panels[1].set_xlabel("width d of the layer")
    return figure


def _last_width(limit: bench.Limits, optimizer: str) -> float:
    """The width at which what an update touches fills the last cache."""
    cache = max(nbytes for nbytes in limit.capacity.values() if np.isfinite(nbytes))
    return float(np.sqrt(cache / cost.nbytes(cost.training_values(1, 0, optimizer))))


@style.styled
def few_rows(*, samples: bench.Samples | None = None, limit: bench.Limits | None = None) -> Figure:
    """Time of a batch over its rows, for two layers and three programs, above the bound."""
    samples, limit = samples or bench.stored("scaling"), limit or limits()
    cases = [case for case in samples.cases if case.name.startswith("few rows")]
    figure, panels = style.new_figure(5.4, 8.2, nrows=len(cases), sharex=True, squeeze=False)
    for axes, case in zip(panels.flat, cases, strict=True):
        width = case.shape["width"]
        for program, (label, *look) in PROGRAMS.items():
            sizes, seconds = sweep(case, program)
            _spread(axes, sizes, seconds, look, f"{program}-{width}", label)
        dense = np.arange(1, 1 + max(sweep(case, "product")[0]))
        least = [limit.bound(*cost.layer(int(n), width, width, bias=False).forward) for n in dense]
        axes.plot(dense, least, ":", color=style.INK, label="bound", gid=f"bound-{width}")
        level = limit.level(cost.nbytes(width * width))
        rows = 2 * limit.peak["float32"] / limit.bandwidth[level]
        axes.axvline(rows, color=style.RED, linewidth=1, gid=f"ridge-{width}")
        axes.text(
            rows * 0.92,
            0.04,
            f"ridge: {rows:.0f} rows",
            color=style.RED,
            transform=axes.get_xaxis_transform(),
            ha="right",
        )
        _log(axes, [1, 4, 16, 64, 256, 1024], 1, TIMES)
        axes.set_ylim(least[0] * 0.5, least[-1] * 2.5)
        axes.set_title(f"width {width:,}: weights {cost.nbytes(width * width) / MIB:.0f} MiB, in {level}")
        axes.set_ylabel("time of the whole batch")
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, fontsize=10)
    panels.flat[-1].set_xlabel("rows N in the batch")
    return figure


def predicted_bytes(task: dict) -> int:
    """Bytes of a training step by the model: parameters, gradients, optimiser, and kept values."""
    layers, rows = task["depth"], task["batch"]
    width, optimizer = task["width"], task["optimizer"]
    parameters = layers * cost.linear_parameters(width, width)
    kept = cost.checkpoint_values(rows, width, layers, task["every"] or layers, arrays=2)
    return cost.nbytes(cost.training_values(parameters, kept, optimizer))


@style.styled
def memory(*, samples: bench.Samples | None = None) -> Figure:
    """Measured memory of training steps over batch, width and depth, on the lines of the model."""
    samples = samples or bench.stored("scaling")
    figure, panels = style.new_figure(5.4, 8.4, nrows=3)
    for axes, size in zip(panels, ("batch", "width", "depth"), strict=True):
        tasks = list(samples.case(f"memory, {size}").notes.values())
        sizes = [task[size] for task in tasks]
        model = [predicted_bytes(task) / MIB for task in tasks]
        axes.plot(sizes, model, color=style.INK, label="model", gid=f"model-{size}")
        for name, marker, colour in (("held", "o", style.BLUE), ("peak", "^", style.RED)):
            found = [task[name] / MIB for task in tasks]
            axes.plot(sizes, found, marker, color=colour, label=f"measured, {name}", gid=f"{name}-{size}")
        ticks = [2, 8, 32, 128]
        _log(axes, sizes, 1, {tick: f"{tick} MiB" for tick in ticks})
        axes.set_ylim(1.5, 160)
        fixed = {name: tasks[0][name] for name in ("batch", "width", "depth") if name != size}
        axes.set_title(", ".join(f"{name} {value:,}" for name, value in fixed.items()))
        axes.set_xlabel(size)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, fontsize=10)
    return figure


@style.styled
def checkpoints(*, samples: bench.Samples | None = None) -> Figure:
    """What checkpoints save and what they cost, over the number of layers between two of them."""
    samples = samples or bench.stored("checkpoint")
    figure, (room, time) = style.new_figure(5.4, 6.6, nrows=2, sharex=True)
    tasks = samples.case("memory").notes
    cut = {int(name): task for name, task in tasks.items() if name != "none"}
    every, shape = list(cut), samples.case("memory").shape
    curve = [task | {"every": k} for task in [cut[every[0]]] for k in range(1, shape["depth"] + 1)]
    room.plot(
        [task["every"] for task in curve],
        [predicted_bytes(task) / MIB for task in curve],
        color=style.INK,
        label="model",
        gid="model",
    )
    measured = [cut[k]["peak"] / MIB for k in every]
    room.plot(every, measured, "o", color=style.BLUE, label="measured peak", gid="peak")
    fixed = cost.nbytes(2 * shape["depth"] * cost.linear_parameters(shape["width"], shape["width"])) / MIB
    room.axhline(tasks["none"]["peak"] / MIB, color=style.RED, linestyle="--", gid="none")
    room.text(1, tasks["none"]["peak"] / MIB + 1.5, "without checkpoints", color=style.RED)
    room.fill_between([1, shape["depth"]], 0, fixed, color=style.GREY, alpha=0.18, linewidth=0, gid="fixed")
    room.text(8, fixed / 2, "parameters and gradients", ha="center", va="center")
    room.set_ylim(0, 1.18 * tasks["none"]["peak"] / MIB)
    room.set_ylabel("MiB at the peak")
    room.legend(loc="center", bbox_to_anchor=(0.45, 0.64), fontsize=10)

    case = samples.case("training step")
    ratios = [case.ratio(f"{k}", "none") for k in every]
    middle = np.array([ratio.median for ratio in ratios])
    reach = np.abs(np.array([[r.low for r in ratios], [r.high for r in ratios]]) - middle)
    drawn = time.errorbar(every, middle, reach, fmt="o", color=style.BLUE, label="measured")
    drawn.lines[0].set_gid("ratio")
    time.axhline(4 / 3, color=style.INK, label="operations: 4/3", gid="operations")
    time.axhline(1, color=style.RED, linestyle="--", label="without checkpoints")
    time.set_ylim(0.9, max(1.75, 1.1 * middle.max()))
    time.set_ylabel("time of a step, relative")
    time.set_xscale("log", base=2)
    time.set_xticks(every, [f"{k}" for k in every])
    time.minorticks_off()
    time.set_xlabel("layers k between two checkpoints")
    time.legend(loc="upper left", fontsize=10)
    for axes in (room, time):
        axes.grid(True)
    return figure
