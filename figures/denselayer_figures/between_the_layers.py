"""The figures of the chapter on what stands between two dense layers.

Every function draws from the section ``between_the_layers`` of ``parameters.yml``; a keyword argument
replaces one number. What carries data has a ``gid``, so that a test, or a reader, can find it in the figure.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from denselayer import functional as F
from denselayer import nn
from denselayer_figures import style

ACTIVATIONS = {
    "identity": (nn.Identity, style.INK, "-"),
    "ReLU": (nn.ReLU, style.BLUE, "-"),
    "tanh": (nn.Tanh, style.ORANGE, "-"),
    "sigmoid": (nn.Sigmoid, style.RED, "--"),
    "GELU": (nn.GELU, style.GREEN, "--"),
    "SiLU": (nn.SiLU, style.GREY, ":"),
}
INITS = {
    "pytorch": "PyTorch's default, variance 1/(3 in)",
    "xavier": "Xavier, variance 2/(in + out)",
    "he": "He, variance 2/in",
}
DRAWN = {
    "ReLU": ("relu", {}),
    "leaky ReLU (0.1)": ("leaky_relu", {"negative_slope": 0.1}),
    "sigmoid": ("sigmoid", {}),
    "tanh": ("tanh", {}),
    "softplus": ("softplus", {}),
    "SiLU": ("silu", {}),
    "GELU": ("gelu", {}),
}


def _setting(name: str, value: Any = None) -> Any:
    """``value``, or the parameter ``name`` of this chapter where ``value`` is None."""
    return style.parameters("between_the_layers")[name] if value is None else value


def _array(name: str, value: Any = None) -> np.ndarray:
    return np.asarray(_setting(name, value), dtype=np.float64)


@style.styled
def straight_or_bent(*, weight1=None, bias1=None, weight2=None, bias2=None) -> Figure:
    """One number in, one out, two layers with the same weights: without a ReLU between them, and with one."""
    w1, b1 = _array("bend_weight1", weight1), _array("bend_bias1", bias1)
    w2, b2 = _array("bend_weight2", weight2), _array("bend_bias2", bias2)
    x = np.linspace(-1, 1, 401)[:, None]
    fig, axes = style.new_figure(4.6, 2.8, ncols=2, sharey=True)
    for ax, name, between in zip(axes, ("straight", "bent"), (F.identity, F.relu), strict=True):
        hidden = between(F.linear(x, w1, b1))
        for unit, colour in enumerate([style.BLUE, style.ORANGE, style.GREEN][: len(w1)]):
            look = {"color": colour, "linewidth": 1.2, "linestyle": "--"}
            ax.plot(x[:, 0], hidden[:, unit], gid=f"{name}-unit-{unit}", **look)
        ax.plot(x[:, 0], F.linear(hidden, w2, b2)[:, 0], color=style.INK, linewidth=2.6, gid=f"{name}-output")
        ax.axhline(0, color=style.FAINT, linewidth=0.8, zorder=0)
        ax.set(xlabel="input", xticks=[-1, 0, 1])
    axes[0].set_title("no activation")
    axes[1].set_title("ReLU between them")
    return fig


@style.styled
def bottleneck(*, down=None, up=None, again=None, seed: int | None = None) -> Figure:
    """Points of a plane, then behind a layer of one unit and a layer of two, then behind one more."""
    down, up, again = _array("narrow_down", down), _array("narrow_up", up), _array("narrow_again", again)
    rng = np.random.default_rng(_setting("narrow_seed", seed))
    angle = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    inner = 0.45 * np.column_stack([np.cos(angle[::3]), np.sin(angle[::3])])
    outer = np.column_stack([np.cos(angle), np.sin(angle)])
    outer += 0.03 * rng.normal(size=outer.shape)
    stages = [("input", [inner, outer])]
    for name, chain in (("2 → 1 → 2", [down, up]), ("→ 2 once more", [down, up, again])):
        moved = [inner, outer]
        for weight in chain:
            moved = [F.linear(points, weight) for points in moved]
        stages.append((name, moved))
    fig, axes = style.new_figure(5.0, 2.0, ncols=3)
    for number, (ax, (name, (few, many))) in enumerate(zip(axes, stages, strict=True)):
        look = {"linestyle": "none", "markersize": 5}
        ax.plot(*many.T, "o", color=style.BLUE, fillstyle="none", gid=f"outer-{number}", **look)
        ax.plot(*few.T, "s", color=style.ORANGE, gid=f"inner-{number}", **look)
        ax.set_title(name)
        ax.set(xticks=[], yticks=[], aspect="equal", xlim=(-1.3, 1.3), ylim=(-1.3, 1.3))
        ax.spines[:].set(visible=True, color=style.FAINT)
    return fig


@style.styled
def activations(*, reach: float | None = None, flat: float | None = None) -> Figure:
    """Each activation and its slope, on grey where the size of the slope is below ``flat``."""
    reach, flat = _setting("reach", reach), _setting("flat", flat)
    z = np.linspace(-reach, reach, 1201)
    fig, axes = style.new_figure(4.6, 7.4, nrows=4, ncols=2, sharex=True, sharey=True)
    for ax, (title, (name, options)) in zip(axes.flat, DRAWN.items(), strict=False):
        values = getattr(F, name)(z, **options)
        slopes = getattr(F, f"{name}_backward")(np.ones_like(z), z, **options)
        _shade(ax, z, np.abs(slopes) < flat, f"{name}-flat")
        ax.plot(z, values, color=style.BLUE, linewidth=2.2, gid=f"{name}-value")
        ax.plot(z, slopes, color=style.ORANGE, linestyle="--", gid=f"{name}-slope")
        ax.axhline(0, color=style.FAINT, linewidth=0.8, zorder=0)
        ax.set_title(title, loc="left")
        ax.set(ylim=(-1.3, 3.0), yticks=[-1, 0, 1, 2, 3], xlim=(-reach, reach))
    key = axes[3, 1]
    key.axis("off")
    key.plot([], [], color=style.BLUE, linewidth=2.2, label="value")
    key.plot([], [], color=style.ORANGE, linestyle="--", label="slope")
    key.fill_between([], [], [], color=(style.GREY, 0.2), label=f"|slope| < {flat:g}")
    key.legend(loc="center")
    even = 2 * np.arange(-(reach // 2), reach // 2 + 1)
    for ax in (axes[3, 0], axes[2, 1]):
        ax.set(xlabel="z", xticks=even)
        ax.tick_params(axis="x", labelbottom=True)
    return fig


def _shade(axes: Axes, z: np.ndarray, chosen: np.ndarray, gid: str) -> None:
    """Grey bands over the runs of ``z`` that are chosen."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], chosen.astype(int), [0]])))
    for start, end in edges.reshape(-1, 2):
        axes.axvspan(z[start], z[end - 1], facecolor=(style.GREY, 0.2), linewidth=0, zorder=0, gid=gid)


def deep_signal(
    activation: type, init: str, *, depth: int, width: int, batch: int, seed: int
) -> dict[str, np.ndarray]:
    """Send random rows through ``depth`` random layers, and a random gradient back.

    Returns
    -------
    dict
        ``size``: root mean square behind each activation. ``spread``: the same for what differs between the
        rows, each unit's mean over the batch taken away. ``gradient``: root mean square of the gradient with
        respect to the input of each layer.
    """
    rng = np.random.default_rng(seed)
    signal = rng.normal(size=(batch, width))
    layers, size, spread = [], [], []
    for _ in range(depth):
        pair = nn.Linear(width, width, init=init, rng=rng), activation()
        signal = pair[1](pair[0](signal))
        layers.append(pair)
        size.append(_rms(signal))
        spread.append(_rms(signal - signal.mean(axis=0)))
    gradient, gradients = rng.normal(size=signal.shape), []
    for layer, step in reversed(layers):
        gradient = layer.backward(step.backward(gradient))
        gradients.append(_rms(gradient))
    return {"size": np.array(size), "spread": np.array(spread), "gradient": np.array(gradients[::-1])}


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _measured(measured: dict | None, network: dict | None) -> dict:
    if measured is not None:
        return measured
    network = _setting("network", network)
    return {
        (init, name): deep_signal(activation, init, **network)
        for init in INITS
        for name, (activation, _, _) in ACTIVATIONS.items()
    }


def _curves(axes: Axes, measured: dict, init: str, quantity: str) -> None:
    for name, (_, colour, dashes) in ACTIVATIONS.items():
        values = measured[init, name][quantity]
        layers = np.arange(1, len(values) + 1)
        axes.plot(
            layers,
            values,
            color=colour,
            linestyle=dashes,
            label=name,
            gid=f"{quantity}-{init}-{name}",
        )
    axes.set(yscale="log", xlim=(1, len(values)), xticks=[1, *range(5, len(values) + 1, 5)])
    axes.minorticks_off()
    axes.grid(True)


@style.styled
def signal_scale(*, measured: dict | None = None, network: dict | None = None) -> Figure:
    """Size and spread of the signal behind each of many layers, one row of panels per initialisation."""
    measured = _measured(measured, network)
    fig, axes = style.new_figure(4.8, 7.4, nrows=3, ncols=2, sharex=True, sharey="col")
    for row, (init, title) in zip(axes, INITS.items(), strict=True):
        for ax, quantity in zip(row, ("size", "spread"), strict=True):
            _curves(ax, measured, init, quantity)
            ax.set_ylabel(quantity)
        row[0].set_title(title, loc="left")
    for ax in axes[-1]:
        ax.set_xlabel("layer")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return fig


@style.styled
def gradient_scale(*, measured: dict | None = None, network: dict | None = None) -> Figure:
    """Size of the gradient with respect to the input of each layer, for two initialisations."""
    measured = _measured(measured, network)
    fig, axes = style.new_figure(4.8, 3.8, ncols=2, sharey=True)
    for ax, init in zip(axes, ("xavier", "he"), strict=True):
        _curves(ax, measured, init, "gradient")
        ax.set_title({"xavier": "Xavier", "he": "He"}[init], loc="left")
        ax.set_xlabel("layer")
    axes[0].set_ylabel("size of the gradient")
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return fig


def deep_scalar(depth: int, start: float, target: float, lr: float, steps: int) -> np.ndarray:
    """Loss before each step of gradient descent on half of (w ... w − target)² with ``depth`` weights, all
    equal to the ``depth``-th root of ``start``, so that every depth begins with the same function.
    """
    weights = np.full(depth, start ** (1 / depth))
    losses = []
    for _ in range(steps):
        product = np.prod(weights)
        losses.append(0.5 * (product - target) ** 2)
        weights = weights - lr * (product - target) * product / weights
    return np.array(losses)


@style.styled
def plateaus(*, descent: dict | None = None) -> Figure:
    """Gradient descent on one, two and three weights in a row that compute the same function at the start."""
    numbers = _setting("descent", descent)
    fig, ax = style.new_figure(4.6, 3.0)
    looks = [(style.BLUE, "-"), (style.ORANGE, "--"), (style.GREEN, "-."), (style.RED, ":")]
    for depth, (colour, dashes) in zip(numbers["depths"], looks, strict=False):
        losses = deep_scalar(depth, numbers["start"], numbers["target"], numbers["lr"], numbers["steps"])
        label = "1 layer" if depth == 1 else f"{depth} layers"
        ax.plot(losses, color=colour, linestyle=dashes, label=label, gid=f"depth-{depth}")
    ax.set(xlabel="step", ylabel="loss", xlim=(0, numbers["steps"] - 1), ylim=(0, None))
    ax.grid(True)
    ax.legend()
    return fig
