"""The figures of the chapter on backpropagation.

Every function draws from the sections ``running_example`` and ``backpropagation`` of ``parameters.yml``; a
keyword argument replaces one number. What carries data has a ``gid``, so that a test, or a reader, can find
it in the figure.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from denselayer import functional as F
from denselayer import nn, optim
from denselayer_figures import style

MARKERS = ["o", "s", "^", "D", "v"]
CLASS_COLOURS = [style.BLUE, style.ORANGE, style.GREEN, style.RED, style.GREY]


def _setting(name: str, value: Any = None) -> Any:
    """``value``, or the parameter ``name`` of this chapter where ``value`` is None."""
    return style.parameters("backpropagation")[name] if value is None else value


def _array(name: str, value: Any = None) -> np.ndarray:
    return np.asarray(_setting(name, value), dtype=np.float64)


def _number(value: float) -> str:
    """The number with a real minus."""
    return f"{value:.4g}".replace("-", "−")


def _product(a: float, b: float) -> str:
    """``2 · 3`` or ``2 · (−3)``."""
    return f"{_number(a)} · {_number(b)}" if b >= 0 else f"{_number(a)} · ({_number(b)})"


def _arrow(axes: Axes, start: tuple, end: tuple, colour: str, gid: str, **look: Any) -> None:
    look = {"arrowstyle": "-|>", "mutation_scale": 13, "linewidth": 1.6, **look}
    arrow = FancyArrowPatch(start, end, color=colour, shrinkA=0, shrinkB=0, **look)
    arrow.set_gid(gid)
    axes.add_patch(arrow)


def _shape(*sizes: int | str) -> str:
    return f"({', '.join(map(str, sizes))})"


@style.styled
def computation_graph(*, out_features: int | None = None, in_features: int | None = None) -> Figure:
    """A dense layer, a ReLU and a loss in a row: values and their shapes go right, gradients come back."""
    weight = style.parameters("running_example")["weight"]
    n_out = len(weight) if out_features is None else out_features
    n_in = len(weight[0]) if in_features is None else in_features
    fig, ax = style.new_figure(5.6, 3.9)
    steps = [(2.4, "dense\nlayer"), (5.2, "ReLU"), (8.0, "squared\nerror")]
    values = [("x", 0.6, ("N", n_in)), ("z", 3.8, ("N", n_out)), ("a", 6.6, ("N", n_out)), ("loss", 9.6, ())]
    for at, name in steps:
        box = FancyBboxPatch(
            (at - 0.72, -0.85), 1.44, 2.3, boxstyle="round,pad=0.03", facecolor="none", edgecolor=style.INK
        )
        ax.add_patch(box)
        ax.text(at, 0.3, name, ha="center", va="center")
    for name, at, sizes in values:
        shape = "()" if not sizes else _shape(*sizes)
        last = name == "loss"
        ax.text(at, 1.4, name, ha="center", color=style.BLUE, fontsize=12, gid=f"value-{name}")
        ax.text(at, 0.95, shape, ha="center", va="bottom", gid=f"shape-{name}", color=style.BLUE)
        gradient = "1" if last else f"d_{name}"
        ax.text(at, -0.38, gradient, ha="center", va="bottom", color=style.RED, fontsize=12)
        ax.text(at, -0.98, shape, ha="center", va="bottom", color=style.RED, gid=f"shape-d_{name}")
    for start, end in [(0.15, 1.65), (3.15, 4.45), (5.95, 7.25), (8.75, 10.0)]:
        _arrow(ax, (start, 0.86), (end, 0.86), style.BLUE, "forward")
        _arrow(ax, (end, -0.5), (start, -0.5), style.RED, "backward")
    for at, name, sizes in [(1.3, "weight", (n_out, n_in)), (3.5, "bias", (n_out,))]:
        shape = _shape(*sizes) if len(sizes) > 1 else f"({sizes[0]},)"
        inside = 2.4 + 0.35 * np.sign(at - 2.4)
        ax.text(at, 2.62, f"{name}\n{shape}", ha="center", color=style.BLUE, gid=f"shape-{name}")
        _arrow(ax, (at, 2.5), (inside, 1.52), style.BLUE, "forward")
        ax.text(at, -2.25, f"d_{name}\n{shape}", ha="center", color=style.RED, gid=f"shape-d_{name}")
        _arrow(ax, (inside, -0.92), (at, -1.62), style.RED, "backward")
    ax.text(7.3, 2.62, "forward: values", ha="center", color=style.BLUE)
    ax.text(7.3, -2.05, "backward: gradients", ha="center", color=style.RED)
    ax.set(xlim=(-0.1, 10.2), ylim=(-2.4, 3.4))
    ax.axis("off")
    return fig


def _grid(
    axes: Axes, matrix: np.ndarray, left: float, top: float, name: str, marked: set, colour: str
) -> None:
    """A matrix as a grid of numbers with its name above; the cells in ``marked`` are filled."""
    rows, columns = matrix.shape
    for (i, j), value in np.ndenumerate(matrix):
        chosen = (i, j) in marked
        cell = Rectangle(
            (left + j, top - i - 1),
            1,
            1,
            facecolor=(colour, 0.2) if chosen else "none",
            edgecolor=colour if chosen else style.GREY,
            linewidth=2.0 if chosen else 0.7,
            zorder=2 if chosen else 1,
        )
        cell.set_gid(f"{name}-{i}-{j}-marked" if chosen else f"{name}-{i}-{j}")
        axes.add_patch(cell)
        axes.text(left + j + 0.5, top - i - 0.5, _number(value), ha="center", va="center", zorder=3)
    axes.text(left + columns / 2, top + 0.25, f"{name} {_shape(rows, columns)}", ha="center", va="bottom")


@style.styled
def one_weight(*, x=None, d_out=None, unit: int | None = None, feature: int | None = None) -> Figure:
    """The column of ``d_out`` and the column of ``x`` that meet in one entry of ``d_weight``."""
    x, d_out = _array("batch_x", x), _array("batch_d_out", d_out)
    unit, feature = _setting("unit", unit), _setting("feature", feature)
    d_weight = d_out.T @ x
    samples, n_out = d_out.shape
    n_in = x.shape[1]
    fig, ax = style.new_figure(5.6, 2.4)
    lefts = 0.0, n_out + 1.2, n_out + n_in + 2.7
    _grid(ax, d_out, lefts[0], samples, "dZ", {(n, unit) for n in range(samples)}, style.RED)
    _grid(ax, x, lefts[1], samples, "X", {(n, feature) for n in range(samples)}, style.BLUE)
    _grid(ax, d_weight, lefts[2], samples, "dW", {(unit, feature)}, style.GREEN)
    ax.text(lefts[1] - 0.6, samples / 2, "and", ha="center", va="center", color=style.GREY)
    ax.text(lefts[2] - 0.75, samples / 2, "give", ha="center", va="center", color=style.GREY)
    terms = " + ".join(_product(*pair) for pair in zip(d_out[:, unit], x[:, feature], strict=True))
    middle = (lefts[0] + lefts[1] + n_in) / 2
    sentence = f"{terms} = {_number(d_weight[unit, feature])}"
    ax.text(middle, -0.75, sentence, ha="center", va="center", fontsize=12, gid="sum")
    ax.set(xlim=(-0.1, lefts[2] + n_in + 0.1), ylim=(min(-1.2, samples - n_out - 0.2), samples + 1.0))
    ax.set_aspect("equal")
    ax.axis("off")
    return fig


@style.styled
def relu_gate(*, z=None, d_a=None) -> Figure:
    """Four rows of bars: ``z``, ``d_a``, what the gate ``z > 0`` passes, and what ``d_a > 0`` would pass."""
    z, d_a = _array("gate_z", z), _array("gate_d_a", d_a)
    rows = [
        ("z", "z", z, style.BLUE),
        ("d_a", "d_a", d_a, style.INK),
        ("right", "right: d_a where z > 0", F.relu_backward(d_a, z), style.GREEN),
        ("wrong", "wrong: d_a where d_a > 0", np.where(d_a > 0, d_a, 0.0), style.RED),
    ]
    fig, axes = style.new_figure(5.2, 6.0, nrows=4, sharex=True)
    units = np.arange(1, len(z) + 1)
    reach = 1.6 * max(np.abs(z).max(), np.abs(d_a).max())
    for ax, (gid, label, values, colour) in zip(axes, rows, strict=True):
        for unit, value in zip(units, values, strict=True):
            (bar,) = ax.bar(unit, value, width=0.5, color=colour)
            bar.set_gid(f"{gid}-{unit}")
            shift = 0.08 * reach if value >= 0 else -0.08 * reach
            ax.text(
                unit,
                value + shift,
                _number(value),
                ha="center",
                va="bottom" if value >= 0 else "top",
                color=colour if value else style.GREY,
            )
        for unit in units[z <= 0]:
            ax.axvspan(
                unit - 0.5,
                unit + 0.5,
                facecolor=(style.GREY, 0.14),
                linewidth=0,
                zorder=0,
                gid=f"shut-{unit}",
            )
        ax.axhline(0, color=style.GREY, linewidth=0.8)
        ax.set(ylim=(-reach, reach), yticks=[])
        ax.set_title(label, loc="left", color=colour)
        ax.spines[["left", "bottom"]].set_visible(False)
        ax.tick_params(axis="x", length=0)
    gates = [f"unit {unit}\n{'open' if value > 0 else 'shut'}" for unit, value in zip(units, z, strict=True)]
    axes[-1].set_xticks(units, gates)
    axes[-1].set_xlim(0.5, len(z) + 0.5)
    return fig


def _rectangle(axes: Axes, left: float, scale: dict, name: str, sizes: tuple, summed: str, gid: str) -> None:
    """A matrix of the named ``sizes`` drawn to scale, with a thick line along the side named ``summed``."""
    rows, columns = (scale[size] for size in sizes)
    box = Rectangle((left, -rows / 2), columns, rows, facecolor=(style.GREY, 0.12), edgecolor=style.INK)
    box.set_gid(gid)
    axes.add_patch(box)
    axes.text(left + columns / 2, 0, f"{name}\n{_shape(*sizes)}", ha="center", va="center", fontsize=10)
    line = {"color": style.ORANGE, "linewidth": 3.5, "solid_capstyle": "butt"}
    if sizes[1] == summed:
        axes.plot([left, left + columns], [rows / 2] * 2, **line)
    if sizes[0] == summed:
        axes.plot([left] * 2, [-rows / 2, rows / 2], **line)


@style.styled
def three_products(*, batch: int | None = None, in_features: int | None = None, out_features=None) -> Figure:
    """The products Y, dW and dX of one layer, drawn to scale; the size that each sums over is marked."""
    scale = {
        "N": _setting("product_batch", batch),
        "in": _setting("product_in_features", in_features),
        "out": _setting("product_out_features", out_features),
    }
    products = [
        ("in", [("X", ("N", "in")), ("$W^T$", ("in", "out")), ("Y", ("N", "out"))]),
        ("N", [("$dY^T$", ("out", "N")), ("X", ("N", "in")), ("dW", ("out", "in"))]),
        ("out", [("dY", ("N", "out")), ("W", ("out", "in")), ("dX", ("N", "in"))]),
    ]
    heights = [max(scale[sizes[0]] for _, sizes in parts) + 0.6 for _, parts in products]
    widest = max(sum(scale[sizes[1]] for _, sizes in parts) for _, parts in products) + 3.3
    fig, axes = style.new_figure(
        5.2, 5.2 * sum(heights) / widest + 1.0, nrows=3, gridspec_kw={"height_ratios": heights}
    )
    for ax, height, (summed, parts) in zip(axes, heights, products, strict=True):
        left = 0.0
        for (name, sizes), sign in zip(parts, ("·", "=", ""), strict=True):
            _rectangle(ax, left, scale, name, sizes, summed, f"{summed}-{name.strip('$')}")
            left += scale[sizes[1]] + 1.5
            ax.text(left - 0.75, 0, sign, ha="center", va="center", fontsize=15)
        label = f"sums over {summed} = {scale[summed]}"
        ax.set_title(label, loc="left", color=style.ORANGE).set_gid(f"{summed}-sum")
        ax.set(xlim=(-0.15, widest - 0.15), ylim=(-height / 2, height / 2))
        ax.set_aspect("equal", anchor="W")
        ax.axis("off")
    return fig


def spirals(per_class: int, classes: int, turn: float) -> tuple[np.ndarray, np.ndarray]:
    """Points (classes * per_class, 2) on spiral arms, and the number of the arm that each is on."""
    radius = np.linspace(0.15, 1.0, per_class)
    angles = turn * radius + 2.0 * np.pi * np.arange(classes)[:, np.newaxis] / classes
    points = np.stack([radius * np.cos(angles), radius * np.sin(angles)], axis=-1)
    return points.reshape(-1, 2), np.repeat(np.arange(classes), per_class)


def train(points: np.ndarray, labels: np.ndarray, hidden: int, lr: float, steps: int, seed: int):
    """Train a network 2 → hidden → classes on all points at once; return it and the loss before each step."""
    rng = np.random.default_rng(seed)
    network = nn.Sequential(
        nn.Linear(2, hidden, init="he", rng=rng, input_gradient=False),
        nn.ReLU(),
        nn.Linear(hidden, int(labels.max()) + 1, init="he", rng=rng),
    )
    criterion, sgd, losses = nn.CrossEntropyLoss(), optim.SGD(network.parameters(), lr=lr), []
    for _ in range(steps):
        sgd.zero_grad()
        losses.append(float(criterion(network(points), labels)))
        network.backward(criterion.backward())
        sgd.step()
    return network, losses


@style.styled
def training(
    *,
    losses=None,
    points: np.ndarray | None = None,
    labels: np.ndarray | None = None,
    classify: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Figure:
    """Left: the loss before each step. Right: the points, and the class that ``classify`` gives to the plane.

    Without arguments the network of the chapter is trained with the numbers of the parameters file.
    """
    if losses is None:
        numbers = _setting("training")
        points, labels = spirals(numbers["per_class"], numbers["classes"], numbers["turn"])
        network, losses = train(
            points, labels, numbers["hidden"], numbers["lr"], numbers["steps"], numbers["seed"]
        )

        def classify(at):
            return network(at).argmax(axis=1)

    fig, (left, right) = style.new_figure(6.0, 3.3, ncols=2)
    left.plot(losses, color=style.BLUE, gid="losses")
    left.set(xlabel="step", ylabel="loss", ylim=(0, None), xlim=(0, len(losses) - 1))
    left.grid(True)
    reach = 1.15 * np.abs(points).max()
    line = np.linspace(-reach, reach, 201)
    across, up = np.meshgrid(line, line)
    regions = classify(np.column_stack([across.ravel(), up.ravel()])).reshape(across.shape)
    classes = int(labels.max()) + 1
    for k in range(classes):
        colour = CLASS_COLOURS[k % len(CLASS_COLOURS)]
        right.contourf(across, up, regions == k, levels=[0.5, 1.5], colors=[colour], alpha=0.16)
        mine = points[labels == k]
        right.plot(
            *mine.T,
            MARKERS[k % len(MARKERS)],
            color=colour,
            markersize=4.5,
            linestyle="none",
            label=f"class {k + 1}",
            gid=f"class-{k}",
        )
    right.set(xticks=[], yticks=[], xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    right.spines[:].set_visible(False)
    fig.legend(loc="outside lower right", ncols=classes, handletextpad=0.1, columnspacing=1.0)
    return fig


def arrays_kept(layers: int, segment: int) -> int:
    """Arrays kept at the worst moment of a backward pass that keeps one input in every ``segment`` layers.

    ``segment`` divides ``layers``. Counted are the kept inputs and the recomputed ones of one segment.

    >>> arrays_kept(64, 8), arrays_kept(64, 1), arrays_kept(64, 64)
    (15, 64, 64)
    """
    return layers // segment + segment - 1


@style.styled
def checkpointing(*, layers: int | None = None) -> Figure:
    """Arrays kept at the worst moment of the backward pass against the length of a recomputed segment."""
    layers = _setting("checkpoint_layers", layers)
    segments = np.array([k for k in range(1, layers + 1) if layers % k == 0])
    kept = np.array([arrays_kept(layers, int(k)) for k in segments])
    fig, ax = style.new_figure(5.2, 3.2)
    line = np.linspace(1, layers, 400)
    ax.plot(line, layers / line + line - 1, color=style.FAINT, linewidth=1.2)
    ax.plot(segments, kept, "o", color=style.BLUE, gid="kept")
    best = int(kept.argmin())
    ax.plot(
        segments[best],
        kept[best],
        "o",
        color=style.ORANGE,
        markersize=11,
        fillstyle="none",
        markeredgewidth=2,
    )
    for k, count in zip(segments, kept, strict=True):
        ax.annotate(f"{count}", (k, count), xytext=(0, 9), textcoords="offset points", ha="center")
    ax.set_xscale("log", base=2)
    ax.set_xticks(segments, [str(k) for k in segments])
    ax.minorticks_off()
    ax.set(xlabel="layers in a segment", ylabel="arrays kept", ylim=(0, 1.2 * kept.max()))
    ax.grid(True, axis="y")
    return fig
