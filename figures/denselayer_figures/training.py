"""The figures of the chapter on training: batches, descents, learning curves, mistakes, rounding.

Those that show digits load them from scikit-learn, unless a caller brings images, scores or histories.
"""

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import LogLocator, MaxNLocator

from denselayer import agreement, data, nn, optim, training

from . import style

INK_MAP = LinearSegmentedColormap.from_list("ink", ["#ffffff", style.INK])
SIGN_MAP = LinearSegmentedColormap.from_list("sign", [style.ORANGE, "#ffffff", style.BLUE])
BATCH_COLOURS = (style.BLUE, style.ORANGE, style.GREEN, style.RED, style.GREY)


def _setting(name: str, value=None):
    return style.parameters("training")[name] if value is None else value


def digits() -> tuple[np.ndarray, np.ndarray]:
    """The 1,797 digits that scikit-learn ships: brightness (1797, 64) from 0 to 1, and labels (1797,)."""
    try:
        from sklearn.datasets import load_digits
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "the digits come with scikit-learn: pip install 'denselayer[figures,digits]'"
        ) from error
    loaded = load_digits()
    return loaded.data / 16.0, loaded.target


def mlp(width: int, rng: np.random.Generator, dtype=np.float64) -> nn.Sequential:
    """A network 64 → width → 10 with a ReLU between, drawn after He in float64 and rounded to ``dtype``."""
    layers = [nn.Linear(64, width, init="he", rng=rng), nn.Linear(width, 10, init="he", rng=rng)]
    first, last = (
        nn.Linear.from_arrays(
            layer.weight.data.astype(dtype), layer.bias.data.astype(dtype), input_gradient=at > 0
        )
        for at, layer in enumerate(layers)
    )
    return nn.Sequential(first, nn.ReLU(), last)


def train(x, y, held_out=None, *, width, lr, momentum, batch_size, epochs, seed, dtype=np.float64):
    """Train a network on x and y; return it and the history."""
    rng = np.random.default_rng(seed)
    network = mlp(width, rng, dtype)
    sgd = optim.SGD(network.parameters(), lr=lr, momentum=momentum)
    criterion = nn.CrossEntropyLoss()
    history = training.fit(
        network,
        criterion,
        sgd,
        x.astype(dtype),
        y,
        batch_size=batch_size,
        epochs=epochs,
        rng=rng,
        held_out=held_out,
    )
    return network, history


@cache
def _parts():
    """The test split, and the split of its training part into a part to learn from and one to choose by."""
    whole = data.train_test_split(*digits(), 0.2, rng=0)
    return whole, data.train_test_split(whole.x_train, whole.y_train, 0.2, rng=1)


@style.styled
def batches(*, samples: int | None = None, batch_size: int | None = None, seed: int | None = None) -> Figure:
    """Two epochs of numbered samples: each shuffled anew and cut into batches, the last one smaller."""
    samples, size = _setting("epoch_samples", samples), _setting("epoch_batch_size", batch_size)
    rng = np.random.default_rng(_setting("epoch_seed", seed))
    rows = [("in the file", np.arange(samples), samples)]
    rows += [(f"epoch {epoch}", rng.permutation(samples), size) for epoch in (1, 2)]
    fig, ax = style.new_figure(6.0, 2.9)
    gap = 0.6
    for level, (name, order, cut) in enumerate(rows):
        for place, sample in enumerate(order):
            batch = place // cut
            colour = style.GREY if level == 0 else BATCH_COLOURS[batch % len(BATCH_COLOURS)]
            left = place + gap * batch
            box = Rectangle((left, -1.7 * level), 0.9, 0.9, facecolor=(colour, 0.15), edgecolor=colour)
            box.set_gid(f"box-{level}-{batch}-{place}")
            ax.add_patch(box)
            label = ax.text(left + 0.45, 0.45 - 1.7 * level, f"{sample}", ha="center", va="center")
            label.set_gid(f"sample-{level}-{place}")
        ax.text(-0.4, 0.45 - 1.7 * level, name, ha="right", va="center")
    ax.set(xlim=(-3.1, samples + gap * (-(-samples // size))), ylim=(-3.6, 1.1), aspect="equal")
    ax.axis("off")
    return fig


@style.styled
def paths(*, curvature=None, start=None, descents: Mapping[str, np.ndarray] | None = None) -> Figure:
    """Ways down a long valley, half the sum of ``curvature * place**2``: one panel for each optimiser.

    ``descents`` maps a name to its places (steps + 1, 2); by default four of `denselayer.agreement`.
    """
    if descents is None:
        stored = agreement.load_fixture("optimisers")
        curvature, start = (stored.inputs("float64")[name] for name in ("curvature", "start"))
        found = agreement._optimisers(start, curvature)
        descents = {name: found[name] for name in ("sgd", "momentum", "nesterov", "adam")}
    fig, axes = style.new_figure(6.0, 5.0, nrows=2, ncols=2, sharex=True, sharey=True)
    every = np.concatenate(list(descents.values()))
    right, up = 1.12 * np.abs(every).max(axis=0)
    across, along = np.meshgrid(np.linspace(-right, right, 161), np.linspace(-up, up, 161))
    height = (curvature[0] * across**2 + curvature[1] * along**2) / 2
    levels = height.max() * np.array([0.01, 0.05, 0.15, 0.35, 0.65])
    for ax, (name, path) in zip(axes.flat, descents.items(), strict=True):
        ax.contour(across, along, height, levels=levels, colors=style.FAINT, linewidths=0.8)
        ax.plot(*path.T, "o-", color=style.BLUE, markersize=3.5, linewidth=1.1, gid=f"path-{name}")
        ax.plot(*path[0], "o", color=style.ORANGE, markersize=8)
        ax.plot(0, 0, "+", color=style.INK, markersize=11, markeredgewidth=1.6)
        ax.set_title(name if name[0].isupper() else {"sgd": "SGD"}.get(name, name.capitalize()))
        ax.xaxis.set_major_locator(MaxNLocator(5))
        ax.yaxis.set_major_locator(MaxNLocator(5))
    fig.supxlabel("first parameter", fontsize=10.5)
    fig.supylabel("second parameter", fontsize=10.5)
    return fig


def _image(ax: Axes, pixels: np.ndarray, title: str = "", cmap=INK_MAP, limit: float | None = None) -> None:
    limits = {"vmin": 0, "vmax": 1} if limit is None else {"vmin": -limit, "vmax": limit}
    ax.imshow(np.reshape(pixels, (8, 8)), cmap=cmap, interpolation="nearest", **limits)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set(visible=True, color=style.FAINT, linewidth=0.8)
    ax.set_title(title, fontsize=10.5)


@style.styled
def samples(*, images=None, labels=None) -> Figure:
    """The first images with their labels, five in a row; at most ten."""
    if images is None:
        images, labels = digits()
    count = min(len(images), 10)
    fig, axes = style.new_figure(6.0, 1.55 * -(-count // 5), nrows=-(-count // 5), ncols=5)
    for at, ax in enumerate(np.ravel(axes)):
        if at < count:
            _image(ax, images[at], f"{labels[at]}")
        else:
            ax.axis("off")
    return fig


def _two_lines(ax: Axes, train: Sequence[float], held_out: Sequence[float], gid: str) -> None:
    epochs = np.arange(1, len(train) + 1)
    ax.plot(epochs, train, color=style.BLUE, label="learned from", gid=f"{gid}-train")
    ax.plot(epochs, held_out, "--", color=style.ORANGE, label="held out", gid=f"{gid}-held-out")
    ax.grid(True)
    ax.xaxis.set_major_locator(MaxNLocator(4, integer=True))


@style.styled
def learning_curves(*, history: training.History | None = None) -> Figure:
    """Loss and share of mistakes after each epoch, on the samples learned from and on those held out."""
    if history is None:
        _, part = _parts()
        _, history = train(part.x_train, part.y_train, (part.x_test, part.y_test), **_setting("run"))
    train_curve, held_out = np.array(history.train), np.array(history.held_out)
    fig, (left, right) = style.new_figure(6.0, 3.1, ncols=2)
    _two_lines(left, train_curve[:, 0], held_out[:, 0], "loss")
    left.set(ylabel="loss (nats)", ylim=(0, None), xlabel="epoch")
    _two_lines(right, 100 * (1 - train_curve[:, 1]), 100 * (1 - held_out[:, 1]), "mistakes")
    right.set(ylabel="mistakes (%)", ylim=(0, None), xlabel="epoch")
    fig.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return fig


def three_fits() -> dict[str, training.History]:
    """Histories of a network that is too small, one that fits, and one that learns wrong labels by heart."""
    _, part = _parts()
    held_out = (part.x_test, part.y_test)
    found = {}
    for name, options in _setting("fits").items():
        options = dict(options)
        x, y = spoiled(part.x_train, part.y_train, options.pop("samples"), options.pop("wrong_labels"))
        _, found[name] = train(x, y, held_out, **options)
    return found


def spoiled(x, y, samples: int, wrong_labels: float) -> tuple[np.ndarray, np.ndarray]:
    """The first samples, where each label is replaced at random with the probability ``wrong_labels``."""
    rng = np.random.default_rng(2)
    x, y = x[:samples], y[:samples].copy()
    hit = rng.random(len(y)) < wrong_labels
    y[hit] = rng.integers(0, 10, hit.sum())
    return x, y


@style.styled
def fits(*, histories: Mapping[str, training.History] | None = None) -> Figure:
    """Loss curves side by side, one panel for each history."""
    histories = three_fits() if histories is None else histories
    fig, axes = style.new_figure(6.0, 3.0, ncols=len(histories), squeeze=False)
    for at, (ax, (name, history)) in enumerate(zip(axes[0], histories.items(), strict=True)):
        _two_lines(ax, [row[0] for row in history.train], [row[0] for row in history.held_out], f"fit-{at}")
        ax.set_title(name)
        ax.set(xlabel="epoch", ylim=(0, None))
        ax.yaxis.set_major_locator(MaxNLocator(4))
    axes[0, 0].set_ylabel("loss (nats)")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return fig


@style.styled
def mistakes(*, images=None, labels=None, scores=None) -> Figure:
    """Above, images that were taken for another digit; below, how often each digit was taken for each."""
    if images is None:
        whole, _ = _parts()
        network, _ = train(whole.x_train, whole.y_train, **_setting("run"))
        images, labels = whole.x_test, whole.y_test
        scores = network(images)
    given = scores.argmax(axis=1)
    wrong = np.flatnonzero(given != labels)[:5]
    fig = style.new_figure(6.0, 6.4)[0]
    fig.clear()
    top, bottom = fig.subfigures(2, 1, height_ratios=[1, 3.1])
    top.set_facecolor("none")
    bottom.set_facecolor("none")
    for ax, at in zip(np.ravel(top.subplots(1, 5)), [*wrong, *[None] * (5 - len(wrong))], strict=True):
        if at is None:
            ax.axis("off")
        else:
            _image(ax, images[at], f"{labels[at]}, taken\nfor {given[at]}")
            ax.set_gid(f"mistake-{at}")
    counts = training.confusion(given, labels, 10)
    ax = bottom.subplots()
    ax.set(xlim=(-0.5, 9.5), ylim=(9.5, -0.5), aspect="equal")
    for i, j in np.ndindex(10, 10):
        if counts[i, j]:
            colour = style.BLUE if i == j else style.RED
            ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, facecolor=(colour, 0.15), linewidth=0))
            text = ax.text(j, i, f"{counts[i, j]}", ha="center", va="center", color=colour)
            text.set_gid(f"count-{i}-{j}")
    ax.set_xticks(range(10))
    ax.set_yticks(range(10))
    ax.tick_params(length=0)
    ax.hlines(np.arange(-0.5, 10), -0.5, 9.5, color=style.FAINT, linewidth=0.5)
    ax.vlines(np.arange(-0.5, 10), -0.5, 9.5, color=style.FAINT, linewidth=0.5)
    ax.spines[:].set_visible(False)
    ax.set(xlabel="taken for", ylabel="digit")
    return fig


@style.styled
def units(*, before=None, after=None, shown: Sequence[int] | None = None) -> Figure:
    """The weights of some hidden units as images, before the training in the upper row and after it below."""
    if before is None:
        whole, _ = _parts()
        run = _setting("run")
        before = mlp(run["width"], np.random.default_rng(run["seed"]))[0].weight.data
        network, _ = train(whole.x_train, whole.y_train, **run)
        after = network[0].weight.data
    shown = _setting("shown_units", shown)
    limit = np.abs([before[shown], after[shown]]).max()
    fig, axes = style.new_figure(6.0, 2.7, nrows=2, ncols=len(shown), squeeze=False)
    for row, (name, weight) in enumerate((("before", before), ("after", after))):
        for ax, unit in zip(axes[row], shown, strict=True):
            _image(ax, weight[unit], f"unit {unit + 1}" if row == 0 else "", SIGN_MAP, limit)
            ax.images[0].set_gid(f"{name}-{unit}")
        axes[row, 0].set_ylabel(name)
    return fig


@cache
def _differences() -> dict[str, np.ndarray]:
    """How far our losses of the stored run are from PyTorch's, step by step, in both precisions."""
    whole, _ = _parts()
    stored, run = agreement.load_run("digits-run"), _setting("run")
    found = {}
    for dtype in agreement.DTYPES:
        _, history = train(whole.x_train, whole.y_train, **run, dtype=dtype)
        found[dtype] = np.abs(np.array(history.losses) - stored.expected[dtype]["losses"])
    return found


def _so_far(ax: Axes, values, colour: str, dashes: str, label: str, gid: str) -> None:
    """The values as dots, and their running maximum as a line; zeros have no place on a log axis."""
    values = np.asarray(values, dtype=np.float64)
    steps, largest = np.arange(1, len(values) + 1), np.maximum.accumulate(values)
    shown = values > 0
    ax.plot(steps[shown], values[shown], ".", color=colour, markersize=1.5, alpha=0.5, gid=f"{gid}-each")
    ax.plot(steps[largest > 0], largest[largest > 0], dashes, color=colour, gid=gid)
    ax.annotate(
        label, (steps[-1], largest[-1]), xytext=(0, 6), textcoords="offset points", ha="right", color=colour
    )


@style.styled
def precision(*, differences: Mapping[str, np.ndarray] | None = None) -> Figure:
    """How far the losses of two programs are apart at each step, for each precision."""
    differences = _differences() if differences is None else differences
    fig, ax = style.new_figure(6.0, 3.6)
    lines = {"float32": (style.ORANGE, "--"), "float64": (style.BLUE, "-")}
    for dtype, values in differences.items():
        _so_far(ax, values, *lines[dtype], dtype, f"difference-{dtype}")
    tolerance = _setting("tolerance")
    ax.axhline(tolerance, color=style.GREY, linewidth=1.2, linestyle=":")
    ax.annotate("promised for float64", (8, tolerance), xytext=(0, 5), textcoords="offset points")
    steps = len(next(iter(differences.values())))
    ax.set(
        yscale="log", xlabel="step", ylabel="difference of the losses", ylim=(1e-18, 1e-1), xlim=(0, steps)
    )
    ax.yaxis.set_major_locator(LogLocator(base=10, numticks=8))
    ax.grid(True)
    return fig


def pushed_apart(lr: float) -> np.ndarray:
    """Distance of two runs in float64 before and after each epoch; one starts with one weight pushed."""
    whole, _ = _parts()
    run, paths = _setting("run"), []
    for push in (0.0, _setting("push")):
        rng = np.random.default_rng(run["seed"])
        network = mlp(run["width"], rng)
        network[0].weight.data[0, 20] += push
        sgd, criterion = (
            optim.SGD(network.parameters(), lr=lr, momentum=run["momentum"]),
            nn.CrossEntropyLoss(),
        )
        places = []
        for epochs in [0] + run["epochs"] * [1]:
            options = {"batch_size": run["batch_size"], "epochs": epochs, "rng": rng}
            training.fit(network, criterion, sgd, whole.x_train, whole.y_train, **options)
            places.append(np.concatenate([p.data.ravel() for p in network.parameters()]))
        paths.append(places)
    return np.linalg.norm(np.subtract(*paths), axis=1)


@style.styled
def sensitivity(*, distances: Mapping[float, np.ndarray] | None = None) -> Figure:
    """How a push of one weight at the start grows in the parameters, for each learning rate; at most two."""
    if distances is None:
        distances = {lr: pushed_apart(lr) for lr in _setting("push_lrs")}
    fig, ax = style.new_figure(6.0, 3.4)
    looks = [(style.BLUE, "-"), (style.ORANGE, "--")]
    for at, ((lr, values), (colour, dashes)) in enumerate(zip(distances.items(), looks, strict=False)):
        ax.plot(np.arange(len(values)), values, dashes, color=colour, gid=f"push-{at}")
        place = (len(values) - 1, values[-1])
        label = f"learning rate {lr:g}"
        ax.annotate(label, place, xytext=(0, 6), textcoords="offset points", ha="right", color=colour)
    epochs = len(next(iter(distances.values()))) - 1
    ax.set(yscale="log", xlabel="epoch", ylabel="distance of the runs", ylim=(1e-12, 1e2), xlim=(0, epochs))
    ax.yaxis.set_major_locator(LogLocator(base=10, numticks=8))
    ax.grid(True)
    return fig
