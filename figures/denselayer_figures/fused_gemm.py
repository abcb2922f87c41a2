"""The figures of the chapter on the fused GEMM, drawn from stored samples."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from denselayer import bench, cost

from . import style

LOOKS = {
    "plain": ("plain NumPy", style.GREY, "x"),
    "fused": ("NumPy, fused", style.BLUE, "o"),
    "eager": ("PyTorch, eager", style.ORANGE, "s"),
    "addmm out": ("PyTorch, out=", style.ORANGE, "D"),
    "compile": ("torch.compile", style.RED, "v"),
    "onednn": ("oneDNN, fused", style.RED, "P"),
    "jax": ("JAX", style.GREY, "<"),
    "numba": ("register tile", style.GREEN, "^"),
    "autograd": ("PyTorch, autograd", style.ORANGE, "s"),
    "mm out": ("PyTorch, out=", style.ORANGE, "D"),
    "gemms only": ("the two products alone", style.GREY, "|"),
}
"""Variant to its name in legends, its colour and its marker."""
LEVELS = {"registers": "#e59a95", "L1": "#f0b27a", "L2": "#8fcca6", "L3": "#3f7fd6", "memory": "#e3e6ea"}
SIZES = ("s", "o", "^")
COLOURS = (style.GREY, style.ORANGE, style.BLUE)


def _setting(name: str, value=None):
    """``value``, or the parameter ``name`` of this chapter where ``value`` is None."""
    return style.parameters("fused_gemm")[name] if value is None else value


@cache
def _stored(name: str) -> bench.Samples:
    return bench.stored(name)


def limits(threads: int = 1) -> bench.Limits:
    """The measured limits of the machine that the samples of the book come from."""
    return bench.Limits.of(_stored("limits"), threads)


def samples_of(mine: str | Path | bench.Samples | None) -> bench.Samples | None:
    """Samples of the reader's own: a file, or samples that are there already."""
    return bench.load(mine) if isinstance(mine, str | Path) else mine


def _powers_of_two(axes: Axes, values: Sequence[int], axis: str = "x") -> None:
    """Ticks at the values themselves, written out, on a logarithmic axis."""
    getattr(axes, f"set_{axis}scale")("log", base=2)
    getattr(axes, f"set_{axis}ticks")(values, [f"{value:,}" for value in values])
    axes.minorticks_off()


def _log_ticks(axes: Axes, values: Sequence[float], axis: str = "x") -> None:
    getattr(axes, f"set_{axis}scale")("log")
    getattr(axes, f"set_{axis}ticks")(values, [f"{value:,g}" for value in values])
    axes.minorticks_off()


def _rows(axes: Axes, names: Sequence[str]) -> None:
    """A horizontal line for each name, the first one at the top."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(True, axis="both")


def _names(cases: Sequence[bench.Case]) -> list[str]:
    """The variants that occur in any of the cases."""
    return list(dict.fromkeys(name for case in cases for name in case.variants))


@style.styled
def ladder(*, sizes: Sequence[int] | None = None) -> Figure:
    """Operations per second of one product, written in ten ways, for three sizes."""
    sizes = list(_setting("ladder_sizes", sizes))
    cases = [_stored("loops").case(f"square {size}") for size in sizes]
    best = {name: max(case.rate(name) for case in cases if name in case.variants) for name in _names(cases)}
    names = sorted(best, key=best.get)
    figure, axes = style.new_figure(5.6, 4.8)
    for case, size, colour, marker in zip(cases, sizes, COLOURS, SIZES, strict=False):
        known = [name for name in names if name in case.variants]
        axes.plot(
            [case.rate(name) / 1e9 for name in known],
            [names.index(name) for name in known],
            marker,
            color=colour,
            markersize=7,
            label=f"{size:,} × {size:,} × {size:,}",
            gid=f"size-{size}",
        )
    peak = limits().peak["float32"] / 1e9
    axes.axvline(peak, color=style.RED, linewidth=1.4, gid="peak")
    axes.text(peak * 0.85, -0.35, "peak", color=style.RED, ha="right", va="center")
    _rows(axes, names)
    _log_ticks(axes, [0.1, 1, 10, 100])
    axes.set_xlabel("10⁹ operations per second")
    figure.legend(loc="outside upper center", ncols=1, fontsize=10)
    return figure


@style.styled
def places(*, tile: Mapping[str, int] | None = None) -> Figure:
    """Which part of a product lies where while one tile of the result is computed."""
    tile = dict(_setting("tile", tile))
    rows, columns, depth, block = (tile[name] for name in ("rows", "columns", "depth", "block"))
    figure, axes = style.new_figure(5.6, 5.8)
    axes.set(xlim=(-0.2, 10.2), ylim=(10.3, -0.9), aspect="equal")
    axes.axis("off")

    def box(x, y, width, height, level, name):
        colour = LEVELS[level]
        patch = Rectangle(
            (x, y), width, height, facecolor=colour, edgecolor=style.INK, linewidth=1.0, gid=name
        )
        axes.add_patch(patch)

    box(0, 4, 4, 6, "memory", "x")
    box(0, 5, 4, 2.4, "L2", "block of x")
    box(0, 5.6, 4, 0.6, "L1", "rows of x")
    box(5, 0, 5, 3.2, "L3", "weight")
    box(6.6, 0, 0.8, 3.2, "L1", "panel")
    box(5, 4, 5, 6, "memory", "result")
    box(6.6, 5.6, 0.8, 0.6, "registers", "tile")
    centre = {"ha": "center", "va": "center"}
    axes.text(2, 9.2, "x", fontsize=13, **centre)
    axes.text(9, 1.6, "Wᵀ", fontsize=13, **centre)
    axes.text(7.5, 9.2, "y", fontsize=13, **centre)
    axes.text(2, 5.3, f"block of {block} rows", fontsize=10, **centre)
    axes.text(2, 5.9, f"{rows} rows", fontsize=10, **centre)
    axes.text(7, -0.4, f"panel of {columns} units", fontsize=10, **centre)
    axes.annotate(
        f"tile of {rows} × {columns}", (7.4, 5.9), (7.5, 7.1), fontsize=10, arrowprops={"arrowstyle": "-"}
    )
    axes.annotate("", (6.5, 5.9), (4.1, 5.9), arrowprops={"arrowstyle": "->", "color": style.INK})
    axes.annotate("", (7, 5.5), (7, 3.3), arrowprops={"arrowstyle": "->", "color": style.INK})
    kib = {
        "registers": rows * columns * 4 / 1024,
        "L1": (columns + rows) * depth * 4 / 1024,
        "L2": block * depth * 4 / 1024,
    }
    labels = {level: f"{level}, {kib[level]:,.3g} KiB" if level in kib else level for level in LEVELS}
    handles = [
        Patch(facecolor=colour, edgecolor=style.INK, label=labels[level]) for level, colour in LEVELS.items()
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, fontsize=10)
    return figure


@style.styled
def layouts(*, shapes: Sequence[str] | None = None) -> Figure:
    """Time of a product whose operands lie in memory in other ways, against the layer's own way."""
    shapes = list(_setting("layout_shapes", shapes))
    usual = "x @ weight.T"
    figure, axes = style.new_figure(5.6, 4.6)
    for shape, colour, marker in zip(shapes, COLOURS, SIZES, strict=False):
        case = _stored("layouts").case(f"operands {shape}")
        names = [name for name in case.variants if name not in (usual, "copy of x")]
        ratios = [case.ratio(name, usual) for name in names]
        middle = np.array([ratio.median for ratio in ratios])
        spread = [middle - [ratio.low for ratio in ratios], [ratio.high for ratio in ratios] - middle]
        axes.errorbar(
            middle,
            range(len(names)),
            xerr=spread,
            fmt=marker,
            color=colour,
            markersize=6.5,
            elinewidth=1.2,
            label=_written(shape),
            gid=f"shape-{shape}",
        )
    axes.axvline(1, color=style.INK, linewidth=1.2)
    _rows(axes, names)
    axes.set_xlabel("time, as a multiple of x @ weight.T")
    figure.legend(loc="outside upper center", ncols=1, fontsize=10)
    return figure


def _written(shape: str) -> str:
    """``"64,784,256"`` as it stands in a figure."""
    return " × ".join(f"{int(size):,}" for size in shape.split(","))


PASSES = {
    "maximum number": "maximum with the number 0",
    "maximum row": "maximum with a row of zeros",
    "maximum array": "maximum with an array of zeros",
    "maximum tiles": "the same, tile by tile",
    "add number": "add a number",
    "add row": "add a row",
    "add array": "add an array",
}


@style.styled
def passes(*, kib: Sequence[int] | None = None) -> Figure:
    """Numbers per second of one pass over an output that lies in L2, in L3 or in memory."""
    kib = list(_setting("passes_kib", kib))
    figure, axes = style.new_figure(5.6, 4.4)
    looks = zip(kib, ("L2", "L3", "memory"), COLOURS[::-1], SIZES, strict=False)
    for size, level, colour, marker in looks:
        case = _stored("epilogue").case(f"passes {size} KiB")
        rates = [case.rate(name) / 1e9 for name in PASSES]
        label = f"{level} ({size // 1024} MiB)" if size >= 1024 else f"{level} ({size} KiB)"
        axes.plot(
            rates, range(len(PASSES)), marker, color=colour, markersize=7, label=label, gid=f"passes-{size}"
        )
    _rows(axes, list(PASSES.values()))
    axes.set_xlim(0)
    axes.set_xlabel("10⁹ numbers per second")
    figure.legend(loc="outside upper center", ncols=3, fontsize=10)
    return figure


def _percent_over(case: bench.Case, name: str, base: str = "product") -> tuple[float, float, float]:
    """How many percent longer than ``base`` a variant takes: the median, and the interval below and above."""
    ratio = case.ratio(name, base)
    middle = 100 * (ratio.median - 1)
    return middle, middle - 100 * (ratio.low - 1), 100 * (ratio.high - 1) - middle


def _swept(axes: Axes, case: bench.Case, kind: str, colour: str, marker: str, label: str) -> list[int]:
    """A line of percents over the bare product, for the variants ``kind NUMBER`` of a case."""
    found = {int(name.split()[1]): name for name in case.variants if name.startswith(f"{kind} ")}
    points = np.array([_percent_over(case, name) for name in found.values()])
    axes.errorbar(
        list(found),
        points[:, 0],
        yerr=points[:, 1:].T,
        color=colour,
        marker=marker,
        markersize=6,
        capsize=2,
        label=label,
        gid=f"{kind}-{case.name}",
    )
    return list(found)


@style.styled
def tiles(*, shapes: Sequence[str] | None = None) -> Figure:
    """What small tiles cost the epilogue, and what small blocks cost the product."""
    shapes = list(_setting("swept_shapes", shapes))
    figure, (upper, lower) = style.new_figure(5.6, 6.6, nrows=2)
    looks = list(zip(shapes, (style.BLUE, style.ORANGE), ("o", "s"), strict=False))
    for shape, colour, marker in looks:
        case = _stored("epilogue").case(f"tiles {shape}")
        _swept(upper, case, "tiles", colour, marker, _written(shape))
        upper.axhline(_percent_over(case, "in place")[0], color=colour, linestyle=":", linewidth=1.5)
        case = _stored("epilogue").case(f"blocks {shape}")
        rows = _swept(lower, case, "blocks", colour, marker, _written(shape))
    _powers_of_two(upper, [8, 32, 128, 512, 2048])
    upper.set_ylim(0)
    upper.set_xlabel("KiB in a tile of the epilogue (dotted: two passes over all)")
    upper.set_ylabel("% over the bare product")
    upper.grid(True)
    _powers_of_two(lower, [rows[at] for at in range(0, len(rows), 2)])
    lower.set_ylim(-5)
    lower.set_xlabel("rows in a block of the product")
    lower.set_ylabel("% over one call")
    lower.grid(True)
    handles, labels = upper.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, fontsize=10)
    return figure


@style.styled
def stacks(*, shape: str | None = None) -> Figure:
    """Speed of one product that is cut into blocks of rows: in calls, and in stacks of either layout."""
    shape = _setting("stacked_shape", shape)
    stacked = _stored("epilogue").case(f"stacks {shape}")
    called = _stored("epilogue").case(f"blocks {shape}")
    figure, axes = style.new_figure(5.6, 4.2)
    ways = (
        (stacked, "in, out: ", "a stack, weight (in, out)", style.BLUE, "o", "-"),
        (stacked, "out, in: ", "a stack, weight (out, in)", style.ORANGE, "s", "--"),
        (called, "blocks ", "a call for each block", style.GREY, "^", "-."),
    )
    for case, start, label, colour, marker, line in ways:
        found = {int(name.removeprefix(start)): name for name in case.variants if name.startswith(start)}
        rates = [case.rate(name) / 1e9 for name in found.values()]
        axes.plot(
            list(found),
            rates,
            line,
            color=colour,
            marker=marker,
            markersize=6,
            label=label,
            gid=start.strip(": "),
        )
    once = stacked.rate("product") / 1e9
    axes.axhline(once, color=style.INK, linewidth=1.2, gid="one call")
    axes.text(16, once, "one call", ha="left", va="bottom")
    sizes = stacked.shape["in_features"] * stacked.shape["out_features"]
    axes.axvline(
        _setting("small_product") / sizes, color=style.RED, linestyle=":", linewidth=1.4, gid="small"
    )
    _powers_of_two(axes, [16, 32, 64, 128, 256, 512, 1024])
    axes.set_ylim(0)
    axes.set_xlabel("rows in a block")
    axes.set_ylabel("10⁹ operations per second")
    axes.grid(True)
    figure.legend(loc="outside upper center", ncols=1, fontsize=10)
    return figure


def rates_of_passes(kib: int, names: Sequence[str]) -> list[float]:
    """Numbers per second of the named passes over an output of ``kib`` KiB."""
    case = _stored("epilogue").case(f"passes {kib} KiB")
    return [case.rate(name) for name in names]


def share_cases() -> dict[int, bench.Case]:
    """Inputs to the case in which the share of the epilogue was measured."""
    cases = [case for case in _stored("epilogue").cases if case.name.startswith("share ")]
    return {case.shape["in_features"]: case for case in cases}


@style.styled
def share() -> Figure:
    """The share of the epilogue, predicted from the speed of its passes, and measured."""
    cases = share_cases()
    inputs = np.array(list(cases))
    product = _setting("share_product")
    rate = _stored("loops").case(product).rate("one call")
    figure, axes = style.new_figure(5.6, 4.4)
    ways = (
        ("in place", "two passes", ("add row", "maximum number"), 8192, style.ORANGE, "s", "--"),
        ("tiles", "tiles", ("add array", "maximum array"), 8192, style.BLUE, "o", "-"),
    )
    for variant, name, passes_of, kib, colour, marker, line in ways:
        rates = rates_of_passes(kib, passes_of)
        predicted = [100 * cost.epilogue_share(int(count), rate, rates) for count in inputs]
        axes.plot(
            inputs, predicted, line, color=colour, label=f"{name}, predicted", gid=f"predicted-{variant}"
        )
        points = np.array([_percent_over(case, variant) for case in cases.values()])
        axes.errorbar(
            inputs,
            points[:, 0],
            yerr=points[:, 1:].T,
            fmt=marker,
            color=colour,
            markersize=7,
            capsize=2,
            label=f"{name}, measured",
            gid=f"measured-{variant}",
        )
    axes.axhline(_setting("share_small"), color=style.GREY, linewidth=1, linestyle=":")
    _powers_of_two(axes, [16, 64, 256, 1024])
    _log_ticks(axes, [1, 5, 10, 50, 100, 200], "y")
    axes.set_xlabel("inputs of the layer")
    axes.set_ylabel("% over the bare product")
    axes.grid(True)
    figure.legend(loc="outside upper center", ncols=2, fontsize=10)
    return figure


def _roof(axes: Axes, found: bench.Limits, reach: tuple[float, float]) -> None:
    """The roof, and the slope of each level of memory up to it."""
    peak = found.peak["float32"] / 1e9
    lines = zip(found.bandwidth.items(), ("-.", ":", "--", "-"), strict=False)
    for (level, bandwidth), line in lines:
        ridge = peak / (bandwidth / 1e9)
        axes.plot(
            [reach[0], ridge, reach[1]],
            [reach[0] * bandwidth / 1e9, peak, peak],
            line,
            color=style.INK,
            linewidth=1.4,
            gid=f"roof-{level}",
        )
        above = level == "L1"
        place = reach[0] * (1.15 if above else 1.4)
        axes.annotate(
            level,
            (place, place * bandwidth / 1e9),
            (-3, 3) if above else (4, -3),
            textcoords="offset points",
            ha="right" if above else "left",
            va="bottom" if above else "top",
        )


@style.styled
def roofline(
    *,
    variants: Sequence[str] | None = None,
    threads: int = 1,
    mine: str | Path | bench.Samples | None = None,
) -> Figure:
    """Every shape and variant under the roof of the measured machine, and the reader's own points over them.

    Args:
        variants: names of variants of the suite "forward".
        threads: of the samples.
        mine: samples of the reader's own, or their file, as ``python -m denselayer bench`` writes it.
    """
    variants = list(_setting("roofline_variants", variants))
    cases = _stored("forward").select(dtype="float32", threads=threads)
    figure, axes = style.new_figure(5.6, 5.6)
    _roof(axes, limits(threads), (0.2, 1000))
    for variant in variants:
        name, colour, marker = LOOKS[variant]
        known = [case for case in cases if variant in case.variants]
        axes.plot(
            [case.operations / case.traffic for case in known],
            [case.rate(variant) / 1e9 for case in known],
            marker,
            color=colour,
            markersize=7,
            markerfacecolor="none",
            markeredgewidth=1.7,
            label=name,
            gid=f"points-{variant}",
        )
    own = samples_of(mine)
    if own is not None:
        points = [
            (case.operations / case.traffic, case.rate(name) / 1e9)
            for case in own.cases
            if case.operations and case.traffic and not case.name.startswith("backward")
            for name in case.variants
            if name in ("plain", "fused")
        ]
        axes.plot(
            *zip(*points, strict=True), "*", color=style.RED, markersize=9, label="your machine", gid="mine"
        )
    _log_ticks(axes, [0.5, 2, 8, 32, 128, 512])
    _log_ticks(axes, [5, 10, 20, 50, 100, 200, 500], "y")
    axes.set_xlim(0.18, 1000)
    axes.set_ylim(0.7 * axes.dataLim.y0, 1.4 * limits(threads).peak["float32"] / 1e9)
    axes.set_xlabel("operations per byte")
    axes.set_ylabel("10⁹ operations per second")
    axes.grid(True)
    figure.legend(loc="outside upper center", ncols=2, fontsize=10)
    return figure


def _ratio_panel(axes: Axes, cases: Sequence[bench.Case], variants: Sequence[str], base: str) -> None:
    """For each case a row, and in it how many times as fast as ``base`` the variants are, with intervals."""
    for place, variant in enumerate(variants):
        name, colour, marker = LOOKS[variant]
        known = [
            (row, case.ratio(base, variant)) for row, case in enumerate(cases) if variant in case.variants
        ]
        if not known:
            continue
        middle = np.array([ratio.median for _, ratio in known])
        spread = np.abs([middle - [r.low for _, r in known], [r.high for _, r in known] - middle])
        shift = 0.6 * (place - (len(variants) - 1) / 2) / max(len(variants), 1)
        axes.errorbar(
            middle,
            [row + shift for row, _ in known],
            xerr=spread,
            fmt=marker,
            color=colour,
            markersize=6,
            markerfacecolor="none",
            markeredgewidth=1.5,
            elinewidth=1.2,
            label=name,
            gid=f"ratio-{variant}-{cases[0].threads}",
        )
    axes.axvline(1, color=style.INK, linewidth=1.2)
    _rows(axes, [_written(case.name) for case in cases])
    axes.grid(False, axis="y")
    for row in range(len(cases) - 1):
        axes.axhline(row + 0.5, color=style.FAINT, linewidth=0.5, alpha=0.5)


@style.styled
def ratios(*, variants: Sequence[str] | None = None, threads: Sequence[int] = (1, 2)) -> Figure:
    """How many times as fast as the plain expression of NumPy each way is, for every shape."""
    variants = list(_setting("ratio_variants", variants))
    figure, panels = style.new_figure(
        5.8, 1.2 + 4.6 * len(threads), nrows=len(threads), squeeze=False, sharex=True
    )
    for axes, count in zip(panels[:, 0], threads, strict=True):
        _ratio_panel(axes, _stored("forward").select(dtype="float32", threads=count), variants, "plain")
        _log_ticks(axes, [0.03, 0.1, 0.3, 1, 3, 10])
        axes.set_title("one thread" if count == 1 else f"{count} threads", loc="left")
    axes.set_xlabel("times as fast as plain NumPy")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, fontsize=10)
    return figure


@style.styled
def backward(*, variants: Sequence[str] | None = None) -> Figure:
    """How many times as fast as the plain backward pass each way is, for every shape, on one thread."""
    variants = list(_setting("backward_variants", variants))
    figure, axes = style.new_figure(5.8, 5.2)
    _ratio_panel(axes, _stored("backward").select(dtype="float32", threads=1), variants, "plain")
    _log_ticks(axes, [0.25, 0.5, 1, 2, 4, 8])
    axes.set_xlabel("times as fast as plain NumPy")
    figure.legend(loc="outside upper center", ncols=2, fontsize=10)
    return figure


ORDERS = ("one after the other", "chunks", "pairwise")


def sum_errors(terms: int, order: str, *, chunk: int, sums: int, seed: int) -> np.ndarray:
    """Errors of float32 sums of products, in units of u times the sum of the magnitudes.

    >>> errors = sum_errors(64, "pairwise", chunk=16, sums=100, seed=0)
    >>> len(errors), bool(errors.max() < 5)
    (100, True)
    """
    rng = np.random.default_rng(seed)
    a, b = (rng.standard_normal((sums, terms)).astype(np.float32) for _ in range(2))
    products = a * b
    exact = products.astype(np.float64).sum(axis=1)
    found = {
        "one after the other": lambda: np.cumsum(products, axis=1)[:, -1],
        "chunks": lambda: _chunked(products, chunk),
        "pairwise": lambda: _pairwise(products),
    }[order]()
    size = np.abs(products.astype(np.float64)).sum(axis=1)
    return np.abs(found.astype(np.float64) - exact) / (2.0**-24 * size)


def _chunked(products: np.ndarray, chunk: int) -> np.ndarray:
    """Each chunk one after the other, then the sums of the chunks one after the other."""
    parts = [
        np.cumsum(products[:, start : start + chunk], axis=1)[:, -1:]
        for start in range(0, products.shape[1], chunk)
    ]
    return np.cumsum(np.concatenate(parts, axis=1), axis=1)[:, -1]


def _pairwise(products: np.ndarray) -> np.ndarray:
    """Neighbours are added, then the sums of neighbours, until one is left."""
    while products.shape[1] > 1:
        if products.shape[1] % 2:
            products = np.pad(products, ((0, 0), (0, 1)))
        products = products[:, ::2] + products[:, 1::2]
    return products[:, 0]


@style.styled
def errors(
    *, terms: Sequence[int] | None = None, chunk: int | None = None, sums: int | None = None
) -> Figure:
    """How the error of a sum depends on the order in which it is added up."""
    terms = list(_setting("error_terms", terms))
    chunk, sums = _setting("error_chunk", chunk), _setting("error_sums", sums)
    figure, panels = style.new_figure(
        5.6, 1.0 + 2.3 * len(terms), nrows=len(terms), sharex=True, squeeze=False
    )
    looks = zip(ORDERS, (style.RED, style.BLUE, style.GREEN), ("-", "--", "-."), strict=True)
    for order, colour, line in looks:
        for axes, count in zip(panels[:, 0], terms, strict=True):
            found = sum_errors(count, order, chunk=chunk, sums=sums, seed=_setting("error_seed"))
            label = f"chunks of {chunk}" if order == "chunks" else order
            percent = 100 * np.arange(1, sums + 1) / sums
            axes.plot(np.sort(found), percent, line, color=colour, label=label, gid=f"{order}-{count}")
    for axes, count in zip(panels[:, 0], terms, strict=True):
        axes.set_title(f"{count:,} products", loc="left")
        axes.set_ylabel("% of the sums")
        axes.grid(True)
        axes.set_xlim(0)
    axes.set_xlabel("error up to, in units of u Σ |x w|")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, fontsize=10)
    return figure
