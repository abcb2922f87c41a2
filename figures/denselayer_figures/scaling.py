"""The figures of the chapter on scaling."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from denselayer import cost
from denselayer import functional as F

from . import style

DIVERGING = LinearSegmentedColormap.from_list("orange-white-blue", ["#e58a2f", "#ffffff", "#3f7fd6"])
FROM_WHITE = LinearSegmentedColormap.from_list("white-blue", ["#ffffff", "#1f5fbf"])
PARTS = {
    "parameters": ("#3f7fd6", ""),
    "gradients": ("#f0b27a", "//"),
    "optimiser": ("#8fcca6", ".."),
    "activations": ("#e59a95", "xx"),
}


def _setting(name: str, value=None):
    """``value``, or the parameter ``name`` of this chapter where ``value`` is None."""
    return style.parameters("scaling")[name] if value is None else value


def machine() -> dict[str, float]:
    """The example machine of the chapter: operations per second and bytes per second at most.

    >>> sorted(machine())
    ['bandwidth', 'peak']
    """
    return {name: float(value) for name, value in _setting("machine").items()}


def _log_ticks(axes: Axes, values: Sequence[int], axis: str = "x") -> None:
    """Ticks at the values themselves, written out, on a logarithmic axis to the base 2."""
    set_scale = axes.set_xscale if axis == "x" else axes.set_yscale
    set_ticks = axes.set_xticks if axis == "x" else axes.set_yticks
    set_scale("log", base=2)
    set_ticks(values, [f"{value:,}" for value in values])
    axes.minorticks_off()


def _whole_numbers(last: int) -> np.ndarray:
    """Whole numbers from 1 to ``last``, dense enough for a smooth curve on a logarithmic axis."""
    return np.unique(np.geomspace(1, last, 120).round().astype(int))


@style.styled
def traffic_shares(*, width: int | None = None, batches: Sequence[int] | None = None) -> Figure:
    """Which part of the bytes of a forward pass are weights, and which are inputs and outputs."""
    width, batches = _setting("share_width", width), list(_setting("share_batches", batches))
    figure, axes = style.new_figure(5.4, 0.9 + 0.5 * len(batches))
    looks = [("weights", *PARTS["parameters"]), ("inputs and outputs", *PARTS["activations"])]
    for row, batch in enumerate(batches):
        whole = cost.linear_traffic(batch, width, width)
        weights = cost.nbytes(cost.linear_parameters(width, width))
        start = 0.0
        for (name, colour, hatch), part in zip(looks, (weights, whole - weights), strict=True):
            share = 100 * part / whole
            (bar,) = axes.barh(
                row, share, left=start, height=0.66, color=colour, edgecolor=style.INK, hatch=hatch
            )
            bar.set_gid(f"{name}-{batch}")
            start += share
    axes.set_yticks(range(len(batches)), [f"{batch:,}" for batch in batches])
    axes.set_ylabel("rows in the batch")
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("percent of the bytes moved")
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    handles = [Patch(facecolor=c, edgecolor=style.INK, hatch=h, label=name) for name, c, h in looks]
    figure.legend(handles=handles, loc="outside upper center", ncols=2, fontsize=10)
    return figure


@style.styled
def crossing(*, widths: Sequence[int] | None = None) -> Figure:
    """Where the activations of square layers overtake the parameters, and all that Adam keeps for them."""
    widths = list(_setting("crossing_widths", widths))
    figure, axes = style.new_figure(5.4, 4.2)
    alone = [cost.crossing_batch([d, d]) for d in widths]
    adam = [cost.crossing_batch([d, d], copies=4) for d in widths]
    axes.plot(widths, alone, color=style.BLUE, label="as many as the parameters", gid="alone")
    axes.plot(
        widths, adam, "--", color=style.ORANGE, label="as many as the training copies (Adam)", gid="adam"
    )
    _log_ticks(axes, widths)
    ticks = [4**power for power in range(2, 9)]
    _log_ticks(axes, ticks, "y")
    axes.set_ylim(16, 4**8)
    axes.fill_between(widths, adam, 4**8, color=style.ORANGE, alpha=0.12, linewidth=0)
    axes.fill_between(widths, 16, alone, color=style.BLUE, alpha=0.12, linewidth=0)
    inside = {"ha": "center", "va": "center", "transform": axes.transAxes}
    axes.text(0.27, 0.86, "activations\ntake more", **inside)
    axes.text(0.74, 0.2, "parameters\ntake more", **inside)
    axes.set_xlabel("width d of the layers")
    axes.set_ylabel("rows N in the batch")
    axes.grid(True)
    figure.legend(loc="outside upper center", fontsize=10)
    return figure


@style.styled
def intensities(*, widths: Sequence[int] | None = None, dtype: str | None = None) -> Figure:
    """Operations per byte of the forward pass over the batch, for square layers of several widths."""
    widths, dtype = list(_setting("intensity_widths", widths)), _setting("dtype", dtype)
    batches = _whole_numbers(2**14)
    ridge = cost.ridge_point(**machine())
    figure, axes = style.new_figure(5.4, 4.0)
    looks = zip(
        [style.GREY, style.GREEN, style.ORANGE, style.BLUE], [":", "-.", "--", "-"], widths, strict=False
    )
    for colour, line, width in looks:
        values = [cost.linear_intensity(int(batch), width, width, dtype=dtype) for batch in batches]
        axes.plot(batches, values, line, color=colour, gid=f"width-{width}")
        axes.text(batches[-1] * 1.25, values[-1], f"d = {width:,}", color=colour, va="center")
    axes.axhline(ridge, color=style.RED, linewidth=1.2, gid="ridge")
    axes.text(1.1, ridge * 1.12, f"ridge: {ridge:g}", color=style.RED, va="bottom")
    _log_ticks(axes, [1, 16, 256, 4096])
    axes.set_xlim(0.9, batches[-1] * 1.15)
    ticks = [0.5, 2, 8, 32, 128, 512]
    axes.set_yscale("log", base=2)
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("rows N in the batch")
    axes.set_ylabel("operations per byte")
    axes.grid(True)
    return figure


@style.styled
def roofline(*, width: int | None = None, batches: Sequence[int] | None = None) -> Figure:
    """The roof of the example machine with one layer at several batches, and the least time for each row."""
    width, batches = _setting("roofline_width", width), list(_setting("roofline_batches", batches))
    limits = machine()
    ridge = cost.ridge_point(**limits)
    figure, (roof, time) = style.new_figure(5.4, 6.6, nrows=2)
    reach = np.array([0.25, ridge, 2048])
    roof.plot(
        reach,
        [cost.attainable(i, **limits) / 1e12 for i in reach],
        color=style.INK,
        linewidth=2.2,
        gid="roof",
    )
    works = {batch: cost.layer(batch, width, width).forward for batch in batches}
    for batch, work in works.items():
        speed = cost.attainable(work.intensity, **limits) / 1e12
        roof.plot(work.intensity, speed, "o", color=style.BLUE, markersize=7, gid=f"point-{batch}")
        shift = (7, -11) if work.intensity < ridge else (-2, -16)
        roof.annotate(
            f"N = {batch:,}",
            (work.intensity, speed),
            shift,
            textcoords="offset points",
            ha="left",
            va="center",
            color=style.BLUE,
        )
    roof.axvline(ridge, color=style.RED, linestyle=":", linewidth=1.2)
    roof.text(ridge * 1.12, 0.3, f"ridge: {ridge:g}\noperations\nper byte", color=style.RED, va="bottom")
    roof.text(0.28, 5.5, "slope: bytes\nper second", ha="left", va="bottom", color=style.GREY)
    roof.set(xscale="log", yscale="log", ylim=(0.2, 50))
    roof.set_xticks([0.5, 2, 10, 100, 1000], ["0.5", "2", "10", "100", "1,000"])
    roof.set_yticks([0.5, 2, 10, 20], ["0.5", "2", "10", "20"])
    roof.minorticks_off()
    roof.set_xlabel("operations per byte")
    roof.set_ylabel("10¹² operations per second")
    roof.grid(True)

    rows = _whole_numbers(2**12)
    layers = [cost.layer(int(n), width, width).forward for n in rows]
    bounds = {
        "at least": ([cost.least_seconds(*work, **limits) for work in layers], style.BLUE, "-", 2.6),
        "to move the bytes": ([w.traffic / limits["bandwidth"] for w in layers], style.ORANGE, "--", 1.5),
        "to compute": ([w.operations / limits["peak"] for w in layers], style.RED, ":", 1.8),
    }
    for name, (seconds, colour, line, thick) in bounds.items():
        per_row = np.array(seconds) / rows * 1e6
        time.plot(rows, per_row, line, color=colour, linewidth=thick, label=name, gid=name)
    _log_ticks(time, [1, 8, 64, 512, 4096])
    time.set_yscale("log")
    time.set_yticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
    time.minorticks_off()
    time.set_xlabel("rows N in the batch")
    time.set_ylabel("microseconds per row")
    time.grid(True)
    time.legend(loc="upper right", fontsize=10)
    return figure


@style.styled
def training_memory(
    *, widths: Sequence[int] | None = None, batches: Sequence[int] | None = None, optimizer: str = "adam"
) -> Figure:
    """Stacked bars of what a training step holds, for batches of several sizes."""
    widths, batches = list(_setting("training_widths", widths)), list(_setting("training_batches", batches))
    figure, axes = style.new_figure(5.4, 4.2)
    models = [cost.network(widths, batch, optimizer=optimizer) for batch in batches]
    parts = {
        "parameters": [model.parameters for model in models],
        "gradients": [model.gradients for model in models],
        "optimiser": [model.state for model in models],
        "activations": [model.kept for model in models],
    }
    places, bottom = np.arange(len(batches)), np.zeros(len(batches))
    for name, counts in parts.items():
        sizes = np.array([cost.nbytes(count, models[0].dtype) for count in counts]) / 2**20
        colour, hatch = PARTS[name]
        bars = axes.bar(
            places, sizes, 0.62, bottom, color=colour, edgecolor=style.INK, hatch=hatch, label=name
        )
        for batch, bar in zip(batches, bars, strict=True):
            bar.set_gid(f"{name}-{batch}")
        bottom += sizes
    for place, height in zip(places, bottom, strict=True):
        axes.text(place, height + 0.015 * bottom.max(), f"{height:,.0f}", ha="center", va="bottom")
    axes.set_xticks(places, [f"{batch:,}" for batch in batches])
    axes.tick_params(axis="x", length=0)
    axes.set_ylim(0, 1.1 * bottom.max())
    axes.set_xlabel("rows in the batch")
    axes.set_ylabel("MiB")
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, fontsize=10)
    return figure


def toeplitz(kernel: np.ndarray, inputs: int) -> np.ndarray:
    """The dense matrix of a one-dimensional convolution that slides ``kernel`` over ``inputs`` numbers.

    >>> toeplitz(np.array([1.0, 2.0]), 4)
    array([[1., 2., 0., 0.],
           [0., 1., 2., 0.],
           [0., 0., 1., 2.]])
    """
    rows = inputs - len(kernel) + 1
    matrix = np.zeros((rows, inputs))
    for row in range(rows):
        matrix[row, row : row + len(kernel)] = kernel
    return matrix


def attention(x: np.ndarray) -> np.ndarray:
    """The mixing weights of self-attention without projections: softmax of the scaled products of all rows.

    >>> attention(np.zeros((2, 3)))
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    return F.softmax(x @ x.T / np.sqrt(x.shape[1]))


@style.styled
def weight_pictures(*, size: int | None = None, seed: int | None = None) -> Figure:
    """The weight matrices of layers that are not dense, beside one that is."""
    size, seed = _setting("picture_size", size), _setting("picture_seed", seed)
    rng = np.random.default_rng(seed)
    dense = rng.uniform(-1, 1, (size, size))
    word, expert = size // 3, 1
    picked = np.zeros((size, size), bool)
    picked[:, word] = True
    blocks = np.repeat(np.arange(4), size // 4) == expert
    figure, axes = style.new_figure(5.2, 6.9, nrows=3, ncols=2)
    full, signed = np.ones((size, size), bool), {"cmap": DIVERGING, "vmin": -1, "vmax": 1}
    banded = toeplitz(np.array(_setting("kernel"), dtype=float), size)
    mixing = [attention(rng.normal(0, 1.6, (size, 4))) for _ in range(2)]
    panels = [
        ("dense", "every weight its own", dense, full, signed),
        ("convolution", "shared along diagonals", banded, banded != 0, signed),
        ("embedding", "one column for a word", rng.uniform(-1, 1, (size, size)), picked, signed),
        (
            "experts",
            "one block for an input",
            rng.uniform(-1, 1, (size, size)),
            blocks[:, None] & full,
            signed,
        ),
        (
            "attention, input 1",
            "computed from the input",
            mixing[0],
            full,
            {"cmap": FROM_WHITE, "vmin": 0, "vmax": 1},
        ),
        (
            "attention, input 2",
            "other input, other weights",
            mixing[1],
            full,
            {"cmap": FROM_WHITE, "vmin": 0, "vmax": 1},
        ),
    ]
    for ax, (name, note, matrix, used, colours) in zip(axes.flat, panels, strict=True):
        _picture(ax, name, note, matrix, used, colours)
    return figure


def _picture(axes: Axes, name: str, note: str, matrix: np.ndarray, used: np.ndarray, colours: dict) -> None:
    """A matrix as coloured cells; what is stored but not used for this input is drawn faintly."""
    rows, columns = matrix.shape
    for where, alpha in ((used, 1.0), (~used, 0.18)):
        shown = np.ma.masked_array(matrix, ~where | (matrix == 0))
        mesh = axes.pcolormesh(shown, alpha=alpha, **colours)
        mesh.set_gid(f"{name}-{'used' if alpha == 1 else 'unused'}")
    for line in range(rows + 1):
        axes.axhline(line, color=style.FAINT, linewidth=0.4, xmax=1)
    for line in range(columns + 1):
        axes.axvline(line, color=style.FAINT, linewidth=0.4)
    axes.set(xlim=(0, columns), ylim=(rows, 0), xticks=[], yticks=[], aspect="equal")
    axes.spines[:].set_visible(False)
    axes.set_title(name)
    axes.set_xlabel(note, fontsize=10)
