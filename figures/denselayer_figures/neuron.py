"""The figures of the chapter on the neuron.

Every function draws from the numbers in the section ``neuron`` of ``parameters.yml``; a keyword argument
replaces one of them. What carries data has a ``gid``, so that a test, or a reader, can find it in the figure.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from denselayer import functional as F
from denselayer_figures import style


def _numbers(**given: Any) -> SimpleNamespace:
    """The parameters of this chapter, with what the caller gave in place of the book's values."""
    numbers = style.parameters("neuron") | {name: value for name, value in given.items() if value is not None}
    for name in numbers.keys() & {"x", "weight", "plane_weight", "plane_point", "plane_points"}:
        numbers[name] = np.asarray(numbers[name], dtype=float)
    return SimpleNamespace(**numbers)


def _sign_colour(value: float) -> str:
    return style.BLUE if value >= 0 else style.ORANGE


def _signed(value: float) -> str:
    """``+0.5`` or ``−4``: a number with its sign, typeset with a real minus."""
    return f"{value:+.4g}".replace("-", "−")


def _plain(value: float) -> str:
    return f"{value:.4g}".replace("-", "−")


def _arrow(ax: Axes, start: tuple, end: tuple, colour: str, gid: str, width: float = 2.0) -> None:
    """A straight arrow in data coordinates; its ``gid`` names what it stands for."""
    arrow = FancyArrowPatch(
        start, end, arrowstyle="-|>", mutation_scale=14, linewidth=width, color=colour, shrinkA=0, shrinkB=0
    )
    arrow.set_gid(gid)
    ax.add_patch(arrow)


def _boundary(weight: np.ndarray, bias: float, horizontal: np.ndarray) -> np.ndarray:
    """The second coordinate of the line ``weight @ (u, v) + bias = 0`` at each ``u`` in ``horizontal``."""
    return -(weight[0] * horizontal + bias) / weight[1]


@style.styled
def graph(*, x=None, weight=None, bias=None, names=None) -> Figure:
    """One neuron as a graph: weights on the edges, the bias on the edge of a constant 1, then the ReLU."""
    n = _numbers(x=x, weight=weight, bias=bias, names=names)
    z = float(F.neuron(n.x, n.weight, float(n.bias)))
    values, weights = np.append(1.0, n.x), np.append(float(n.bias), n.weight)
    labels = ["always", *n.names]
    heights = np.linspace(1, -1, len(values)) * 0.55 * (len(values) - 1)
    fig, ax = style.new_figure(5.0, 3.7)
    circle = {"boxstyle": "circle,pad=0.35", "facecolor": "none", "linewidth": 1.5}
    for i, (value, w, label, y) in enumerate(zip(values, weights, labels, heights, strict=True)):
        _arrow(ax, (0.3, y), (2.62, y * 0.16), _sign_colour(w), f"edge-{i}", 0.8 + 0.7 * abs(w))
        outline = circle | {"edgecolor": style.GREY, "linestyle": "--" if i == 0 else "-"}
        ax.text(0, y, _plain(value), ha="center", va="center", fontsize=12, bbox=outline)
        ax.text(-0.4, y, label, ha="right", va="center", color=style.GREY)
        ax.text(
            0.5,
            y * (1 - 0.84 * (0.5 - 0.3) / 2.32) + np.copysign(0.1, y),
            f"$b$ = {_plain(w)}" if i == 0 else f"$w_{i}$ = {_plain(w)}",
            va="bottom" if y >= 0 else "top",
            color=_sign_colour(w),
            gid=f"weight-{i}",
        )
    ax.text(2.95, 0, "Σ", ha="center", va="center", fontsize=17, bbox=circle | {"edgecolor": style.INK})
    _arrow(ax, (3.3, 0), (4.3, 0), style.INK, "sum-out", 1.5)
    ax.text(3.78, 0.2, f"$z$ = {_plain(z)}", ha="center", fontsize=12, gid="z")
    box = {"boxstyle": "round,pad=0.45", "facecolor": "none", "edgecolor": style.GREY, "linestyle": "--"}
    ax.text(4.85, 0, "ReLU", ha="center", va="center", bbox=box)
    _arrow(ax, (5.4, 0), (6.4, 0), style.INK, "activation-out", 1.5)
    ax.text(5.9, 0.2, f"$a$ = {_plain(float(F.relu(np.array(z))))}", ha="center", fontsize=12, gid="a")
    ax.text(2.95, -1.15, "the neuron", ha="center", va="top", color=style.GREY)
    ax.text(4.85, -1.15, "a separate\nstep", ha="center", va="top", color=style.GREY)
    ax.set(xlim=(-1.95, 6.5), ylim=(heights[-1] - 0.4, heights[0] + 0.4))
    ax.axis("off")
    return fig


@style.styled
def contributions(*, x=None, weight=None, bias=None, names=None) -> Figure:
    """The weighted sum as a staircase: the bias, then one bar for each ``weight * x``, up to ``z``."""
    n = _numbers(x=x, weight=weight, bias=bias, names=names)
    steps = np.append(float(n.bias), n.weight * n.x)
    levels = np.cumsum(steps)
    bottoms = np.append(0.0, levels[:-1])
    labels = ["bias"] + [
        f"{_plain(w)} × {_plain(v)}\n{name}" for w, v, name in zip(n.weight, n.x, n.names, strict=True)
    ]
    fig, ax = style.new_figure(5.0, 3.5)
    for i, (step, bottom) in enumerate(zip(steps, bottoms, strict=True)):
        (bar,) = ax.bar(i, step, bottom=bottom, width=0.62, color=_sign_colour(step))
        bar.set_gid(f"contribution-{i}")
        ax.plot([i + 0.31, i + 0.69], [levels[i]] * 2, color=style.GREY, linewidth=1)
        above = bottom + max(step, 0)
        ax.text(i, above + 0.12, _signed(step), ha="center", color=_sign_colour(step))
    (total,) = ax.bar(len(steps), levels[-1], width=0.62, color=style.INK)
    total.set_gid("z")
    ax.text(len(steps), max(levels[-1], 0) + 0.12, f"$z$ = {_plain(levels[-1])}", ha="center")
    ax.axhline(0, color=style.GREY, linewidth=1)
    ax.set_xticks(range(len(steps) + 1), [*labels, "sum"])
    ax.tick_params(axis="x", length=0)
    extent = np.append(levels, 0.0)
    ax.set_ylim(
        extent.min() - 0.15 * np.ptp(extent) * (extent.min() < 0), extent.max() + 0.15 * np.ptp(extent)
    )
    ax.set_ylabel("score so far")
    return fig


@style.styled
def activation(*, x=None, weight=None, bias=None, names=None, swept=None) -> Figure:
    """Left: ``z`` and ``ReLU(z)`` while one input moves. Right: the ReLU alone, as a function of ``z``."""
    n = _numbers(x=x, weight=weight, bias=bias, names=names, swept=swept)
    reach = np.linspace(0, 2.5 * max(n.x[n.swept], 1.0), 201)
    inputs = np.tile(n.x, (reach.size, 1))
    inputs[:, n.swept] = reach
    z = F.neuron(inputs, n.weight, float(n.bias))
    here = F.neuron(n.x, n.weight, float(n.bias))
    fig, (left, right) = style.new_figure(5.4, 3.2, ncols=2)
    left.plot(reach, z, color=style.GREY, linestyle="--", label="$z$", gid="z")
    left.plot(reach, F.relu(z), color=style.BLUE, label="$a$ = ReLU($z$)", gid="a")
    left.plot(n.x[n.swept], F.relu(here), "o", color=style.INK, gid="here")
    left.set(xlabel=n.names[n.swept], ylabel="output", title="One input moving")
    left.locator_params(axis="x", nbins=5, integer=True)
    line = np.linspace(-4, 4, 201)
    right.plot(line, line, color=style.GREY, linestyle="--", label="$z$")
    right.plot(line, F.relu(line), color=style.BLUE, label="ReLU($z$)", gid="relu")
    right.plot(here, F.relu(here), "o", color=style.INK)
    right.set(xlabel="$z$", title="The ReLU alone")
    for ax in (left, right):
        ax.axhline(0, color=style.FAINT, linewidth=0.8, zorder=0)
        ax.legend(loc="best")
    return fig


@style.styled
def projection(*, plane_weight=None, plane_point=None) -> Figure:
    """The dot product as length times projection: ``x`` dropped at a right angle onto the line of ``w``."""
    n = _numbers(plane_weight=plane_weight, plane_point=plane_point)
    w, p = n.plane_weight, n.plane_point
    length = np.linalg.norm(w)
    shadow = w @ p / length
    foot = shadow * w / length
    fig, ax = style.new_figure(4.6, 4.2)
    _arrow(ax, (0, 0), tuple(w), style.BLUE, "weight")
    _arrow(ax, (0, 0), tuple(p), style.INK, "point")
    ax.plot(*np.stack([p, foot]).T, color=style.GREY, linestyle="--", gid="drop")
    ax.plot(
        *np.stack([np.zeros(2), foot]).T, color=style.ORANGE, linewidth=7, alpha=0.55, zorder=0, gid="shadow"
    )
    across = np.array([-w[1], w[0]]) / length
    ax.text(
        *(w + 0.12), f"$\\mathbf{{w}}$, length {_plain(length)}", color=style.BLUE, va="bottom", ha="center"
    )
    ax.text(*(p + 0.12), "$\\mathbf{x}$", va="bottom")
    ax.text(
        *(foot / 2 + 0.25 * across),
        f"shadow of $\\mathbf{{x}}$: {_plain(shadow)}",
        color=style.ORANGE,
        ha="center",
        va="bottom",
        rotation=np.degrees(np.arctan2(w[1], w[0])),
        rotation_mode="anchor",
    )
    ax.set_title(
        f"$\\mathbf{{w}}\\cdot\\mathbf{{x}}$ = {_plain(length)} × {_plain(shadow)} = {_plain(w @ p)}"
    )
    ax.set(xlabel="$x_1$", ylabel="$x_2$", aspect="equal", xlim=(-0.5, 5.0), ylim=(-0.4, 4.7))
    return fig


@style.styled
def bias_shift(*, x=None, weight=None, biases=None) -> Figure:
    """The decision boundary for several biases, in the plane where only the first two inputs move."""
    n = _numbers(x=x, weight=weight, biases=biases)
    rest = float(n.weight[2:] @ n.x[2:])
    horizontal = np.linspace(0, 8, 2)
    fig, ax = style.new_figure(4.8, 4.6)
    colours = [style.ORANGE, style.BLUE, style.GREEN, style.RED, style.GREY]
    for i, (b, colour) in enumerate(zip(n.biases, colours, strict=False)):
        vertical = _boundary(n.weight[:2], rest + b, horizontal)
        ax.plot(horizontal, vertical, color=colour, gid=f"boundary-{i}")
        ax.text(horizontal[-1] + 0.1, vertical[-1], f"$b$ = {_plain(b)}", color=colour, va="center")
    middle = np.array([6.5, _boundary(n.weight[:2], rest + n.biases[0], 6.5)])
    unit = n.weight[:2] / np.linalg.norm(n.weight[:2])
    _arrow(ax, tuple(middle), tuple(middle + 1.3 * unit), style.INK, "normal")
    ax.text(*(middle + 1.3 * unit - [0.0, 0.15]), "positive side", va="top", ha="center")
    ax.plot(*n.x[:2], "o", color=style.INK, gid="point")
    ax.text(n.x[0] + 0.15, n.x[1] - 0.75, f"$\\mathbf{{x}}$ = ({', '.join(_plain(v) for v in n.x)})")
    ax.set(xlabel="$x_1$", ylabel="$x_2$", aspect="equal", xlim=(0, 9.6), ylim=(2, 11.6))
    ax.grid(True)
    return fig


@style.styled
def signed_distance(*, plane_weight=None, plane_bias=None, plane_points=None) -> Figure:
    """Lines of equal signed distance from the decision boundary of a neuron with two inputs."""
    n = _numbers(plane_weight=plane_weight, plane_bias=plane_bias, plane_points=plane_points)
    w, b = n.plane_weight, float(n.plane_bias)
    u, v = np.meshgrid(np.linspace(-1, 6, 141), np.linspace(-1, 5, 121))
    distance = F.signed_distance(np.stack([u.ravel(), v.ravel()], axis=1), w, b).reshape(u.shape)
    fig, ax = style.new_figure(5.0, 4.4)
    levels = [level for level in range(-8, 9) if level]
    lines = ax.contour(
        u, v, distance, levels=levels, colors=[_sign_colour(level) for level in levels], linewidths=0.9
    )
    lines.set_linestyles(["--" if level < 0 else "-" for level in levels])
    labelled = np.round(F.signed_distance(n.plane_points, w, b), 9)
    bare = [
        level for level in lines.levels if level not in labelled and distance.min() < level < distance.max()
    ]
    ax.clabel(lines, bare, fmt=lambda level: _signed(level), fontsize=9.5)
    ax.contour(u, v, distance, levels=[0], colors=[style.INK], linewidths=2.2)
    unit = w / np.linalg.norm(w)
    foot = -b * unit / np.linalg.norm(w)
    _arrow(ax, tuple(foot), tuple(foot + unit), style.INK, "normal")
    ax.text(
        *(foot + 0.6 * unit - [0.12, 0.0]), "$\\mathbf{w}\\,/\\,\\|\\mathbf{w}\\|$", ha="right", va="bottom"
    )
    for i, point in enumerate(n.plane_points):
        value = float(F.signed_distance(point, w, b))
        ax.plot(*point, "o", color=style.INK, gid=f"point-{i}")
        ax.annotate(
            _signed(value) if value else "0",
            point,
            xytext=(7, 4),
            textcoords="offset points",
            weight="bold",
            color=_sign_colour(value) if value else style.INK,
            gid=f"distance-{i}",
        )
    ax.set(xlabel="$x_1$", ylabel="$x_2$", aspect="equal")
    return fig


@style.styled
def gradient_step(
    *, x=None, weight=None, bias=None, target=None, learning_rate=None, steps=None, learning_rates=None
) -> Figure:
    """Left: the boundary before and after steps on one example. Right: the loss for several step sizes."""
    n = _numbers(
        x=x,
        weight=weight,
        bias=bias,
        target=target,
        learning_rate=learning_rate,
        steps=steps,
        learning_rates=learning_rates,
    )
    fig, (left, right) = style.new_figure(5.4, 3.5, ncols=2)
    horizontal = np.linspace(0, 6, 2)
    path = _descend(n, n.learning_rate, n.steps)
    for i, (w, b, _) in enumerate(path):
        shade = 0.7 + 0.3 * i / max(len(path) - 1, 1)
        vertical = _boundary(w[:2], b + float(w[2:] @ n.x[2:]), horizontal)
        colour = style.GREY if i == 0 else style.BLUE
        left.plot(
            horizontal,
            vertical,
            color=colour,
            alpha=1 if i == 0 else shade,
            linestyle="--" if i == 0 else "-",
            gid=f"boundary-{i}",
        )
        left.text(
            horizontal[-1] + 0.1, vertical[-1], "start" if i == 0 else f"{i}", va="center", color=colour
        )
    left.plot(*n.x[:2], "o", color=style.INK, gid="point")
    left.text(n.x[0], n.x[1] + 0.12, "$\\mathbf{x}$", ha="center", va="bottom")
    left.set(
        xlabel="$x_1$", ylabel="$x_2$", xlim=(0, 7), ylim=(2, 8.4), title=f"Step size {n.learning_rate:g}"
    )
    for i, (rate, colour) in enumerate(
        zip(n.learning_rates, (style.BLUE, style.GREEN, style.RED, style.ORANGE), strict=False)
    ):
        losses = [(z - n.target) ** 2 for _, _, z in _descend(n, rate, 6)]
        right.semilogy(losses, marker="o", markersize=4, color=colour, label=f"{rate:g}", gid=f"loss-{i}")
    right.set(xlabel="step", ylabel="loss", title="The loss")
    right.legend(title="step size")
    return fig


def _descend(n: SimpleNamespace, rate: float, steps: int) -> list[tuple[np.ndarray, float, float]]:
    """``(weight, bias, z)`` before and after each of ``steps`` gradient steps on ``(z - target)**2``."""
    w, b = n.weight, float(n.bias)
    path = []
    for _ in range(steps + 1):
        z = float(F.neuron(n.x, w, b))
        path.append((w, b, z))
        gradient = F.neuron_backward(np.array(2 * (z - n.target)), n.x, w)
        w, b = w - rate * gradient.d_weight, b - rate * float(gradient.d_bias)
    return path


@style.styled
def xor() -> Figure:
    """Left: AND is cut by one line. Right: XOR; the segments that join equal labels cross."""
    corners = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    fig, (left, right) = style.new_figure(5.4, 3.2, ncols=2)
    for ax, name, labels in (
        (left, "AND", corners.all(axis=1)),
        (right, "XOR", corners[:, 0] != corners[:, 1]),
    ):
        for corner, label in zip(corners, labels, strict=True):
            colour, marker = (style.BLUE, "o") if label else (style.ORANGE, "s")
            ax.plot(*corner, marker, markersize=13, color=colour, gid=f"{name}-{corner[0]}{corner[1]}")
            ax.annotate(f"{int(label)}", corner, ha="center", va="center", color="white", weight="bold")
        ax.set(
            xlabel="$x_1$", ylabel="$x_2$", xlim=(-0.35, 1.6), ylim=(-0.35, 1.6), aspect="equal", title=name
        )
        ax.set_xticks([0, 1])
        ax.set_yticks([0, 1])
    horizontal = np.array([-0.1, 1.6])
    left.plot(horizontal, 1.5 - horizontal, color=style.INK, gid="boundary")
    left.text(1.06, 0.54, "$x_1 + x_2 = 1.5$", rotation=-45, ha="center", va="center", fontsize=9.5)
    right.plot([0, 1], [1, 0], color=style.BLUE, zorder=0, gid="diagonal-1")
    right.plot([0, 1], [0, 1], color=style.ORANGE, linestyle="--", zorder=0, gid="diagonal-0")
    right.plot(0.5, 0.5, "D", color=style.INK, markersize=6, gid="crossing")
    right.annotate("on both\nsides", (0.5, 0.84), ha="center", va="bottom")
    return fig
