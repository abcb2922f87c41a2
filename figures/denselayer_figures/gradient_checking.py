"""The figures of the chapter on gradient checking.

Every function draws from the sections ``running_example`` and ``gradient_checking`` of ``parameters.yml``; a
keyword argument replaces one number. What carries data has a ``gid``, so that a test, or a reader, can find
it in the figure.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from denselayer import functional as F
from denselayer_figures import style


def _setting(name: str, value: Any = None) -> Any:
    """``value``, or the parameter ``name`` of this chapter where ``value`` is None."""
    return style.parameters("gradient_checking")[name] if value is None else value


def _example() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The input (1, in), the weight and the bias of the running example."""
    numbers = style.parameters("running_example")
    x, weight, bias = (np.array(numbers[name], dtype=np.float64) for name in ("x", "weight", "bias"))
    return x[np.newaxis], weight, bias


def loss_of_weight(value: float | complex, dtype=np.float64) -> np.generic:
    """Cross entropy of the running example with another number in one place of its weight.

    Everything is computed in ``dtype``, float32, float64 or complex128.
    """
    x, weight, bias = (array.astype(dtype) for array in _example())
    weight[tuple(_setting("moved"))] = value
    z = (x @ weight.T + bias)[0]
    shifted = z - z[np.argmax(z.real)]
    return np.log(np.exp(shifted).sum()) - shifted[_setting("target")]


def derivatives() -> tuple[float, float, float, float]:
    """The value of `loss_of_weight` at the running example, and its first three derivatives there."""
    x, weight, bias = _example()
    unit, feature = _setting("moved")
    p = F.softmax(F.linear(x, weight, bias))[0, unit]
    by = x[0, feature]
    first = (p - (unit == _setting("target"))) * by
    second = p * (1 - p) * by**2
    third = p * (1 - p) * (1 - 2 * p) * by**3
    return float(loss_of_weight(weight[unit, feature])), float(first), float(second), float(third)


def measured_slope(step: float, method: str = "central", dtype=np.float64) -> float:
    """The slope of `loss_of_weight`, from values computed in ``dtype`` at the points that ``dtype`` has."""
    here = _example()[1][tuple(_setting("moved"))]
    if method == "complex":
        return float(loss_of_weight(here + 1j * step, np.complex128).imag) / step
    up = dtype(here + step)
    down = dtype(here if method == "forward" else here - step)
    rise = float(loss_of_weight(up, dtype)) - float(loss_of_weight(down, dtype))
    return rise / (float(up) - float(down))


def error_bound(step, method: str = "central", dtype=np.float64):
    """Truncation plus rounding at the running example, for one step or an array of them."""
    value, _, second, third = derivatives()
    eps = float(np.finfo(dtype).eps)
    if method == "forward":
        return step / 2 * abs(second) + 2 * eps * abs(value) / step
    return step**2 / 6 * abs(third) + eps * abs(value) / step


def best_step(method: str = "central", dtype=np.float64) -> float:
    """The step that makes `error_bound` least."""
    value, _, second, third = derivatives()
    eps = float(np.finfo(dtype).eps)
    if method == "forward":
        return float(2 * np.sqrt(eps * abs(value / second)))
    return float(np.cbrt(3 * eps * abs(value / third)))


def steps() -> np.ndarray:
    """The steps of the curves, from the smallest to the largest."""
    first, last = _setting("decades")
    return 10.0 ** np.linspace(first, last, (last - first) * _setting("per_decade") + 1)


def measured_errors(method: str = "central", dtype=np.float64) -> tuple[np.ndarray, np.ndarray]:
    """The steps that move the weight at all in ``dtype``, and the error of the slope with each."""
    exact = derivatives()[1]
    smallest = 0.0 if method == "complex" else 2 * np.finfo(dtype).eps
    chosen = np.array([step for step in steps() if step >= smallest])
    return chosen, np.array([abs(measured_slope(step, method, dtype) - exact) for step in chosen])


def _logarithmic(ax: Axes) -> None:
    first, last = _setting("decades")
    ax.set(xscale="log", yscale="log", xlabel="step h", ylabel="error of the slope")
    ax.set(xlim=(10.0 ** (first - 0.3), 10.0 ** (last + 0.3)))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(LogLocator(base=100.0, numticks=12))
        axis.set_minor_locator(NullLocator())
    ax.grid(True)


@style.styled
def secants(*, step: float | None = None) -> Figure:
    """The loss as a function of one weight: its tangent, a one-sided secant and a two-sided secant."""
    step = _setting("secant_step", step)
    here = _example()[1][tuple(_setting("moved"))]
    value, slope, _, _ = derivatives()
    fig, ax = style.new_figure(5.4, 3.7)
    line = np.linspace(here - 1.55 * step, here + 1.55 * step, 200)
    ax.plot(line, [loss_of_weight(w) for w in line], color=style.INK, gid="loss")
    ends = np.array([here - 1.4 * step, here + 1.4 * step])
    ax.plot(ends, value + slope * (ends - here), color=style.GREEN, linestyle=(0, (5, 2)), gid="tangent")
    for gid, left, colour in (("one-sided", here, style.ORANGE), ("two-sided", here - step, style.BLUE)):
        at = np.array([left, here + step])
        ax.plot(at, [loss_of_weight(w) for w in at], color=colour, marker="o", markersize=6, gid=gid)
    ax.plot(here, value, "o", color=style.INK, markersize=7, gid="point")
    labels = [
        ("tangent", "tangent", style.GREEN),
        ("one-sided", "one-sided secant", style.ORANGE),
        ("two-sided", "two-sided secant", style.BLUE),
    ]
    for number, (gid, text, colour) in enumerate(labels):
        (drawn,) = ax.findobj(lambda artist, gid=gid: artist.get_gid() == gid)
        (x0, x1), (y0, y1) = drawn.get_data()
        label = f"{text}: slope {(y1 - y0) / (x1 - x0):.2f}"
        ax.text(0.02, 0.95 - 0.1 * number, label, transform=ax.transAxes, color=colour, va="top")
    ax.set(xlabel="weight $w_{11}$", ylabel="loss")
    ax.set_xticks([here - step, here, here + step], ["w − h", "w", "w + h"])
    return fig


@style.styled
def step_curve() -> Figure:
    """The error of central differences against the step, in float32 and float64, with the theory."""
    fig, ax = style.new_figure(5.2, 4.2)
    for dtype, colour, marker in ((np.float32, style.ORANGE, "s"), (np.float64, style.BLUE, "o")):
        name = np.dtype(dtype).name
        chosen, errors = measured_errors("central", dtype)
        shown = errors > 0
        ax.plot(
            chosen[shown], errors[shown], marker, color=colour, markersize=4.5, linestyle="none", gid=name
        )
        fine = np.geomspace(chosen[0], chosen[-1], 300)
        ax.plot(fine, error_bound(fine, "central", dtype), color=colour, linewidth=1.4, gid=f"{name}-theory")
        best = best_step("central", dtype)
        lowest = error_bound(best, "central", dtype)
        ax.plot(best, lowest, "D", color=colour, markersize=9, fillstyle="none", gid=f"{name}-best")
        side = (2e-7, 3e-13) if dtype == np.float64 else (3e-5, 3e-7)
        ax.text(*side, name, color=colour, ha="center", fontsize=12)
    _logarithmic(ax)
    ax.set(ylim=(1e-14, 20))
    return fig


@style.styled
def methods() -> Figure:
    """The error of three ways to measure a slope against the step, in float64."""
    fig, ax = style.new_figure(5.2, 4.2)
    kinds = [
        ("forward", style.ORANGE, "s", (1e-6, 3e-3), "one-sided"),
        ("central", style.BLUE, "o", (1.2e-3, 2e-12), "two-sided"),
        ("complex", style.GREEN, "^", (1e-11, 2.5e-15), "complex step"),
    ]
    floor = 1e-16
    for method, colour, marker, at, label in kinds:
        chosen, errors = measured_errors(method)
        ax.plot(
            chosen,
            np.maximum(errors, floor),
            marker,
            color=colour,
            markersize=4.5,
            linestyle="none",
            gid=method,
        )
        if method != "complex":
            fine = np.geomspace(chosen[0], chosen[-1], 300)
            ax.plot(fine, error_bound(fine, method), color=colour, linewidth=1.4, gid=f"{method}-theory")
        ax.text(*at, label, color=colour, ha="center", fontsize=12)
    _logarithmic(ax)
    ax.set(ylim=(floor / 3, 20))
    return fig


@style.styled
def kink(*, step: float | None = None, offset: float | None = None) -> Figure:
    """Slopes to the left and to the right of a point on the corner of a ReLU, and of one beside it."""
    step, offset = _setting("kink_step", step), _setting("kink_offset", offset)
    fig, axes = style.new_figure(5.4, 3.1, ncols=2, sharey=True)
    places = [("on", 0.0, "the point is on the corner"), ("beside", -offset * step, "the corner is within h")]
    for ax, (gid, here, title) in zip(axes, places, strict=True):
        line = np.array([-1.9, 0.0, 1.9]) * step
        ax.plot(line, F.relu(line), color=style.FAINT, linewidth=5, solid_capstyle="butt", gid=f"{gid}-relu")
        sides = [("left", here - step, here, style.ORANGE), ("right", here, here + step, style.GREEN)]
        sides.append(("both", here - step, here + step, style.BLUE))
        for side, start, end, colour in sides:
            at = np.array([start, end])
            ax.plot(at, F.relu(at), color=colour, marker="o", markersize=5, gid=f"{gid}-{side}")
            slope = np.diff(F.relu(at))[0] / (end - start)
            name = {"left": "left", "right": "right", "both": "two-sided"}[side]
            height = {"left": 0.95, "right": 0.83, "both": 0.71}[side]
            ax.text(0.03, height, f"{name} {slope:.1f}", transform=ax.transAxes, color=colour, va="top")
        ax.plot(here, F.relu(np.array(here)), "o", color=style.INK, markersize=7)
        ax.set_title(title, fontsize=10.5)
        ax.set_xticks([here - step, here, here + step], ["z − h", "z", "z + h"])
        ax.set(xlim=(-1.9 * step, 1.9 * step))
    axes[0].set(ylabel="ReLU")
    return fig


def train_with_factor(batch: int, factor: float, lr: float, steps: int, seed: int) -> list[float]:
    """The loss before each step of a linear layer whose bias gradient is multiplied by ``factor``.

    The layer starts with zeros and learns the layer of the running example from ``batch`` random inputs.
    """
    _, weight, bias = _example()
    inputs = np.random.default_rng(seed).standard_normal((batch, weight.shape[1]))
    target = F.linear(inputs, weight, bias)
    w, b, losses = np.zeros_like(weight), np.zeros_like(bias), []
    for _ in range(steps):
        out = F.linear(inputs, w, b)
        losses.append(float(F.mse_loss(out, target)))
        gradients = F.linear_backward(F.mse_loss_backward(out, target), inputs, w, input_gradient=False)
        w = w - lr * gradients.d_weight
        b = b - lr * factor * gradients.d_bias
    return losses


@style.styled
def reduction(*, batches: list[int] | None = None) -> Figure:
    """Loss curves with the right bias gradient, with N times and with 1/N of it, for two batch sizes."""
    numbers = _setting("reduction")
    batches = numbers["batches"] if batches is None else batches
    options = {name: numbers[name] for name in ("lr", "steps", "seed")}
    fig, axes = style.new_figure(5.4, 3.9, ncols=2, sharey=True)
    for ax, batch in zip(axes, batches, strict=True):
        kinds = [
            ("right", 1.0, {"color": style.GREEN, "linewidth": 5.0}),
            ("times N", float(batch), {"color": style.RED, "linewidth": 1.8}),
            ("over N", 1.0 / batch, {"color": style.BLUE, "linewidth": 2.2, "linestyle": (0, (2, 2))}),
        ]
        for name, factor, look in kinds:
            ax.plot(
                train_with_factor(batch, factor, **options),
                label=name if batch == batches[0] else None,
                gid=f"{name}-{batch}",
                **look,
            )
        ax.set(yscale="log", ylim=(1e-5, 1e6), xlim=(0, options["steps"] - 1), xlabel="step")
        ax.set_title(f"N = {batch}")
        ax.yaxis.set_minor_locator(NullLocator())
        ax.grid(True)
    axes[0].set(ylabel="loss")
    fig.legend(loc="outside lower center", ncols=3, title="gradient of the bias")
    return fig
