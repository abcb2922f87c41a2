"""The figures of the chapter on the dense layer."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, Patch, Rectangle

from denselayer import cost
from denselayer import functional as F

from . import style

DIVERGING = LinearSegmentedColormap.from_list("orange-white-blue", ["#f0b27a", "#ffffff", "#8db4ea"])
DEVICE_COLOURS = ["#8db4ea", "#f0b27a", "#8fcca6", "#e59a95", "#c3a6e0", "#b9c0c8"]
HATCHES = ["", "//", "..", "xx", "\\\\", "--"]
PALE = "#e9ecef"
DASHED = (0, (4, 2))
UNITS_AT = 3.0
LABEL_AT = 0.75
CELL = 0.32


def _example(x, weight, bias) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The given arrays as float64; where one is None, the book's running example."""
    example = style.parameters("running_example")
    given = {"x": x, "weight": weight, "bias": bias}
    return tuple(
        np.asarray(example[name] if value is None else value, dtype=np.float64)
        for name, value in given.items()
    )


def _setting(name: str, value):
    """``value``, or the parameter ``name`` of this chapter where ``value`` is None."""
    return style.parameters("dense_layer")[name] if value is None else value


def _signed(value: float) -> str:
    """The number with its sign and a real minus: ``+0.5``, ``−1``."""
    return f"{value:+g}".replace("-", "−")


def _number(value: float) -> str:
    return f"{value:g}".replace("-", "−")


def _blank(axes: Axes, *, equal: bool = True) -> None:
    axes.set_axis_off()
    if equal:
        axes.set_aspect("equal")


def _arrow(axes: Axes, start, end, **kwargs) -> None:
    look = {"arrowstyle": "-|>", "mutation_scale": 13, "color": style.GREY, "linewidth": 1.3, **kwargs}
    axes.add_patch(FancyArrowPatch(start, end, shrinkA=0, shrinkB=0, **look))


@style.styled
def units_and_weights(*, x=None, weight=None, bias=None) -> Figure:
    """A layer as a graph: inputs on the left, units on the right, one line for each weight.

    Parameters
    ----------
    x : array (in_features,), optional
        The input; by default that of the running example, like the other two.
    weight : array (out_features, in_features), optional
        Row i holds the weights of the lines that arrive at unit i.
    bias : array (out_features,), optional
        One number for each unit.
    """
    x, weight, bias = _example(x, weight, bias)
    rows = max(weight.shape)
    figure, axes = style.new_figure(5.2, 0.8 + 1.1 * rows)
    _blank(axes, equal=False)
    unit_y, input_y = ((rows + count) / 2 - 1 - np.arange(count) for count in weight.shape)
    largest = np.abs(weight).max() or 1.0
    for (i, j), value in np.ndenumerate(weight):
        _connection(axes, input_y[j], unit_y[i], value, value / largest, gid=f"weight-{i}-{j}")
    for j, y in enumerate(input_y):
        _node(axes, 0, y, _number(x[j]), fontsize=12)
        axes.text(-0.3, y, f"input {j + 1}", ha="right", va="center")
    for i, (y, z) in enumerate(zip(unit_y, F.linear(x, weight, bias), strict=True)):
        _node(axes, UNITS_AT, y, f"Σ {_signed(bias[i])}", fontsize=10.5)
        axes.text(UNITS_AT, y + 0.36, f"unit {i + 1}", ha="center", va="center")
        _arrow(axes, (UNITS_AT + 0.22, y), (UNITS_AT + 0.62, y))
        axes.text(UNITS_AT + 0.7, y, _number(z), fontsize=12, ha="left", va="center", gid=f"z-{i}")
    axes.legend(
        handles=[
            Line2D([], [], color=style.BLUE, label="positive weight"),
            Line2D([], [], color=style.ORANGE, linestyle=DASHED, label="negative weight"),
        ],
        loc="upper center",
        bbox_to_anchor=(0.5, 0.02),
        ncols=2,
    )
    axes.set_xlim(-1.05, UNITS_AT + 1.2)
    axes.set_ylim(-0.45, rows - 0.45)
    return figure


def _node(axes: Axes, x: float, y: float, text: str, fontsize: float) -> None:
    axes.scatter(x, y, s=1150, facecolor=PALE, edgecolor=style.INK, zorder=3)
    axes.text(x, y, text, fontsize=fontsize, ha="center", va="center", zorder=4)


def _connection(axes: Axes, start: float, end: float, value: float, share: float, gid: str) -> None:
    """The line of one weight, as thick as its share of the largest, with the number in a gap of it."""
    colour = style.BLUE if value >= 0 else style.ORANGE
    text = _signed(value)
    gap = 0.02 + 0.0105 * len(text)
    along = np.array([0, LABEL_AT - gap, np.nan, LABEL_AT + gap, 1])
    axes.plot(
        UNITS_AT * along,
        start + along * (end - start),
        color=colour,
        linestyle="-" if value >= 0 else DASHED,
        linewidth=0.8 + 2.4 * abs(share),
        zorder=1,
        gid=gid,
    )
    axes.text(
        LABEL_AT * UNITS_AT,
        start + LABEL_AT * (end - start),
        text,
        color=colour,
        ha="center",
        va="center",
        fontsize=9.5,
        zorder=2,
        gid=f"label-{gid}",
    )


@style.styled
def contributions(*, x=None, weight=None, bias=None) -> Figure:
    """What each input and the bias add to each unit, and the sums before and after ReLU."""
    x, weight, bias = _example(x, weight, bias)
    terms = np.column_stack([weight * x, bias])
    z = F.linear(x, weight, bias)
    after = F.relu(z)
    outs, ins = weight.shape
    figure, (heat, bars) = style.new_figure(
        5.6, 1.3 + 0.6 * outs, ncols=2, gridspec_kw={"width_ratios": [1.4, 1]}, sharey=True
    )
    limit = np.abs(terms).max() or 1.0
    heat.imshow(terms, cmap=DIVERGING, vmin=-limit, vmax=limit, aspect="auto")
    for (i, j), value in np.ndenumerate(terms):
        heat.text(j, i, _signed(value), ha="center", va="center")
    heat.axvline(ins - 0.5, color=style.INK, linewidth=1.5)
    heat.set_xticks(range(ins + 1), [f"input {j + 1}\n× {_number(x[j])}" for j in range(ins)] + ["bias"])
    heat.tick_params(axis="x", labelsize=9.5)
    heat.set_yticks(range(outs), [f"unit {i + 1}" for i in range(outs)])
    heat.tick_params(length=0)
    heat.spines[:].set_visible(False)
    heat.set_title("what is added")
    position = np.arange(outs)
    bars.barh(
        position - 0.19,
        z,
        height=0.34,
        facecolor="none",
        edgecolor=style.GREY,
        hatch="////",
        label="before ReLU",
    )
    bars.barh(position + 0.19, after, height=0.34, color=style.BLUE, label="after ReLU")
    bars.axvline(0, color=style.INK, linewidth=1)
    room = 0.04 * (np.abs(z).max() or 1.0)
    for row, values in ((position - 0.19, z), (position + 0.19, after)):
        for y, value in zip(row, values, strict=True):
            side = 1 if value >= 0 else -1
            bars.text(
                value + side * room,
                y,
                _number(value),
                va="center",
                ha="left" if side > 0 else "right",
                fontsize=9.5,
            )
    bars.margins(x=0.18)
    bars.spines["left"].set_visible(False)
    bars.tick_params(axis="y", length=0, labelleft=False)
    bars.set_title("their sum")
    bars.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), fontsize=9.5, handlelength=1.4)
    return figure


def _matrix(axes: Axes, left: float, name: str, shape: str, colours: list[list[str]], room: float) -> float:
    """Draw a matrix with its name above and its shape below, centred on y = 0; return its right edge."""
    rows, columns = len(colours), len(colours[0])
    for row in range(rows):
        for column in range(columns):
            corner = (left + column * CELL, (rows / 2 - row - 1) * CELL)
            look = {"facecolor": colours[row][column], "edgecolor": style.GREY, "linewidth": 0.8}
            axes.add_patch(Rectangle(corner, CELL, CELL, **look))
    centre = left + columns * CELL / 2
    axes.text(centre, room, name, ha="center", va="bottom", fontsize=12)
    axes.text(centre, -room, shape, ha="center", va="top")
    return left + columns * CELL


@style.styled
def shape_flow(
    *, batch: int | None = None, in_features: int | None = None, out_features: int | None = None
) -> Figure:
    """The shapes on the way through a layer; one row of the batch and one unit are marked."""
    batch = _setting("flow_batch", batch)
    ins = _setting("flow_in_features", in_features)
    outs = _setting("flow_out_features", out_features)
    row, unit = min(1, batch - 1), min(1, outs - 1)
    row_colour, unit_colour, both = DEVICE_COLOURS[:3]

    of_row = [[row_colour if r == row else "none"] * ins for r in range(batch)]
    of_unit = [unit_colour if c == unit else "none" for c in range(outs)]
    crossed = [[row_colour if r == row else colour for colour in of_unit] for r in range(batch)]
    crossed[row][unit] = both

    figure, axes = style.new_figure(5.6, 2.1)
    _blank(axes)
    room, gap = batch * CELL / 2 + 0.18, 0.39
    right = _matrix(axes, 0, "X", f"N × {ins}", of_row, room)
    for sign, name, shape, colours in [
        ("@", "Wᵀ", f"{ins} × {outs}", [of_unit] * ins),
        ("=", "X Wᵀ", f"N × {outs}", crossed),
        ("+", "b", f"{outs}", [of_unit]),
        ("=", "Y", f"N × {outs}", crossed),
    ]:
        axes.text(right + gap, 0, sign, ha="center", va="center", fontsize=14)
        right = _matrix(axes, right + 2 * gap, name, shape, colours, room)
    labels = {
        row_colour: "one row of X",
        unit_colour: "one unit",
        both: "one output",
    }
    axes.legend(
        handles=[Patch(facecolor=c, edgecolor=style.GREY, label=label) for c, label in labels.items()],
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        ncols=3,
        fontsize=9.5,
    )
    axes.set_xlim(-0.1, right + 0.1)
    axes.set_ylim(-room - 0.3, room + 0.3)
    return figure


@style.styled
def parameters_and_activations(
    *, widths: Sequence[int] | None = None, batches: Sequence[int] | None = None
) -> Figure:
    """Numbers in a square layer, weight and bias against outputs, over its width d on two log axes."""
    widths = np.asarray(_setting("widths", widths))
    batches = _setting("batches", batches)
    counts = [cost.linear_parameters(int(d), int(d)) for d in widths]
    figure, axes = style.new_figure(5.2, 3.8)
    axes.loglog(widths, counts, "o-", color=style.BLUE, markersize=4, label="parameters, d² + d")
    looks = [("s--", style.ORANGE), ("^:", style.GREEN), ("v-.", style.RED)]
    for batch, (look, colour) in zip(batches, looks, strict=False):
        axes.loglog(
            widths,
            batch * widths,
            look,
            color=colour,
            markersize=4,
            label=f"activations, N d for N = {batch:,}",
        )
    axes.set_xscale("log", base=2)
    axes.set_xticks(widths, [f"{d:,}" for d in widths], fontsize=9.5)
    axes.minorticks_off()
    axes.set_xlabel("width d of the layer (d inputs, d outputs)")
    axes.set_ylabel("how many numbers")
    axes.grid(True)
    axes.legend(loc="upper left")
    return figure


@style.styled
def split_matrix(
    *, out_features: int | None = None, in_features: int | None = None, devices: int | None = None
) -> Figure:
    """One weight matrix on several devices: split by output rows, and split by input columns."""
    outs = _setting("split_out_features", out_features)
    ins = _setting("split_in_features", in_features)
    devices = _setting("devices", devices)
    if outs % devices or ins % devices:
        raise ValueError(f"{devices} devices do not divide {outs} rows and {ins} columns evenly")
    if devices > len(DEVICE_COLOURS):
        raise ValueError(f"at most {len(DEVICE_COLOURS)} devices can be told apart, got {devices}")
    figure, (by_rows, by_columns) = style.new_figure(4.6, 6.2, nrows=2)
    row_owner = np.repeat(np.arange(devices), outs // devices)
    column_owner = np.repeat(np.arange(devices), ins // devices)

    _layer_on_devices(by_rows, np.tile(row_owner[:, None], (1, ins)), x_owner=[None] * ins)
    _strip(by_rows, ins + 1.6, row_owner)
    by_rows.set_title("by output rows")
    caption = {"y": -outs - 0.5, "ha": "center", "va": "top", "fontsize": 9.5}
    by_rows.text(ins + 2.1, s="y: put the\npieces together", **caption)

    _layer_on_devices(by_columns, np.tile(column_owner, (outs, 1)), x_owner=column_owner)
    for device in range(devices):
        _strip(by_columns, ins + 1.6 + 1.2 * device, [device] * outs)
    by_columns.set_title("by input columns")
    by_columns.text(ins + 1.6 + 0.6 * devices, s=f"y: add the {devices}\npartial sums", **caption)

    entries = [(_device_look(device), f"device {device + 1}") for device in range(devices)]
    entries.append((_device_look(None), "on every device"))
    figure.legend(
        handles=[Patch(**look, label=label) for look, label in entries],
        loc="outside lower center",
        ncols=3,
        fontsize=9.5,
        handlelength=1.4,
        columnspacing=1.2,
    )
    return figure


def _device_look(device: int | None) -> dict:
    """Colour and hatch of a device's cells; ``None`` is what every device holds."""
    if device is None:
        return {"facecolor": "none", "edgecolor": style.INK, "linewidth": 0.5}
    colour, hatch = DEVICE_COLOURS[device], HATCHES[device]
    return {"facecolor": colour, "edgecolor": style.INK, "linewidth": 0.5, "hatch": hatch}


def _strip(axes: Axes, x: float, owners: Sequence[int]) -> None:
    """A column of outputs, each in the look of the device that has it."""
    for row, device in enumerate(owners):
        axes.add_patch(Rectangle((x, -(row + 1)), 1, 1, **_device_look(device)))


def _layer_on_devices(axes: Axes, owner: np.ndarray, x_owner: Sequence[int | None]) -> None:
    """The matrix with each entry in the look of its owner, the input above it, an arrow to the right."""
    outs, ins = owner.shape
    _blank(axes)
    for (row, column), device in np.ndenumerate(owner):
        gid = f"W-{row}-{column}-{device}"
        axes.add_patch(Rectangle((column, -(row + 1)), 1, 1, gid=gid, **_device_look(device)))
    for column, device in enumerate(x_owner):
        axes.add_patch(Rectangle((column, 0.5), 1, 1, **_device_look(device)))
    axes.text(ins / 2, -outs - 0.5, "W", ha="center", va="top", fontsize=12)
    axes.text(-0.5, 0.95, "x", ha="right", va="center", fontsize=12)
    _arrow(axes, (ins + 0.3, -outs / 2), (ins + 1.4, -outs / 2))
    axes.set_xlim(-1.4, ins + 6.4)
    axes.set_ylim(-outs - 1.8, 2.0)


def sawtooth_layers(depth: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Weight and bias of each layer of a network that folds the interval [0, 1] ``depth`` times.

    Each hidden layer has two units with ReLU; the last layer is affine. The function has 2**depth straight
    pieces.

    >>> sum(weight.size + bias.size for weight, bias in sawtooth_layers(4))
    25
    """
    if depth < 1:
        raise ValueError(f"depth must be at least 1, got {depth}")
    kink = np.array([0.0, -0.5])
    fold = np.array([[2.0, -4.0]])
    spread = np.array([[1.0], [1.0]])
    return [(spread, kink)] + [(spread @ fold, kink)] * (depth - 1) + [(fold, np.zeros(1))]


def sawtooth(points: np.ndarray, depth: int) -> np.ndarray:
    """The values of that network at ``points`` (N,).

    >>> sawtooth(np.array([0.0, 0.25, 0.5, 0.75, 1.0]), depth=2)
    array([0., 1., 0., 1., 0.])
    """
    *hidden, last = sawtooth_layers(depth)
    values = points[:, None]
    for weight, bias in hidden:
        values = F.relu(F.linear(values, weight, bias))
    return F.linear(values, *last)[:, 0]


def straight_pieces(depth: int) -> int:
    """How many straight pieces the network of ``sawtooth_layers`` has on [0, 1], counted on its values."""
    points = np.linspace(0, 1, 2 ** (depth + 2) + 1)
    slopes = np.diff(sawtooth(points, depth))
    return 1 + int(np.count_nonzero(np.diff(slopes)))


@style.styled
def width_and_depth(*, depths: Sequence[int] | None = None, shown: int | None = None) -> Figure:
    """A folded line made by depth, and how many pieces depth and width give for the same parameters."""
    depths = list(_setting("sawtooth_depths", depths))
    shown = _setting("sawtooth_shown", shown)
    figure, (curve, count) = style.new_figure(4.8, 5.6, nrows=2)
    points = np.linspace(0, 1, 2 ** (shown + 2) + 1)
    curve.plot(points, sawtooth(points, 1), "--", color=style.GREY, label="1 hidden layer")
    curve.plot(points, sawtooth(points, shown), color=style.BLUE, label=f"{shown} hidden layers")
    curve.set_xlabel("input")
    curve.set_ylabel("output")
    curve.set_ylim(-0.05, 1.28)
    curve.legend(loc="upper center", ncols=2, fontsize=9.5, columnspacing=1.2, handlelength=1.6)
    sizes = [sum(w.size + b.size for w, b in sawtooth_layers(depth)) for depth in depths]
    count.semilogy(
        sizes, [straight_pieces(depth) for depth in depths], "o-", label="deep: 2 units a layer", base=2
    )
    wide = [2 * depth for depth in depths]
    count.semilogy(
        sizes,
        [units + 1 for units in wide],
        "s--",
        color=style.ORANGE,
        label="wide: 1 hidden layer, at most",
        base=2,
    )
    count.set_xticks(sizes)
    pieces = [2**depth for depth in depths]
    count.set_yticks(pieces, [str(piece) for piece in pieces])
    count.minorticks_off()
    count.set_xlabel("parameters")
    count.set_ylabel("straight pieces")
    count.grid(True)
    count.legend(loc="upper left", fontsize=9.5)
    return figure
