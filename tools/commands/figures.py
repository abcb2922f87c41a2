"""Draw every figure of the book into files, from ``figures/parameters.yml`` or from an own file."""

import argparse
import importlib
import os
import pkgutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tools.environment import ROOT
from tools.errors import BuildError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--parameters", type=Path, help="a YAML file to use in place of figures/parameters.yml"
    )
    parser.add_argument(
        "--output", type=Path, default=ROOT / "figures" / "out", help="the folder to write to"
    )
    parser.add_argument("--only", default="", help="draw only figures whose name contains this")


def figure_functions() -> Iterator[tuple[str, Callable]]:
    """``("neuron.contributions", function)`` for every figure function of the package, in order."""
    import denselayer_figures

    for module in sorted(pkgutil.iter_modules(denselayer_figures.__path__), key=lambda found: found.name):
        loaded = importlib.import_module(f"denselayer_figures.{module.name}")
        for name, member in vars(loaded).items():
            if getattr(member, "is_figure", False) and member.__module__ == loaded.__name__:
                yield f"{module.name}.{name}", member


def draw_all(output: Path, only: str = "") -> list[Path]:
    """Write each figure as PNG and SVG; return the files. Files of other names in ``output`` stay."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from rich.progress import track

    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BuildError(f"The folder {output} cannot be made: {error.strerror}") from error
    chosen = [(name, function) for name, function in figure_functions() if only in name]
    if not chosen:
        raise BuildError(f"No figure's name contains {only!r}. The names: {names()}")
    written = []
    for name, function in track(chosen, description="Drawing"):
        try:
            figure = function()
        except Exception as error:
            raise BuildError(
                f"The figure {name} could not be drawn: {type(error).__name__}: {error}"
            ) from error
        for suffix in (".png", ".svg"):
            target = output / f"{name.replace('.', '-')}{suffix}"
            figure.savefig(target, dpi=200)
            written.append(target)
        plt.close(figure)
    return written


def names() -> str:
    return ", ".join(name for name, _ in figure_functions())


def run(args: argparse.Namespace) -> int:
    if args.parameters is not None:
        if not args.parameters.is_file():
            raise BuildError(
                f"There is no file {args.parameters}. Copy figures/parameters.yml and change the copy."
            )
        os.environ["DENSELAYER_PARAMETERS"] = str(args.parameters.resolve())
    for root in ("code", "figures"):
        if str(ROOT / root) not in sys.path:
            sys.path.insert(0, str(ROOT / root))
    written = draw_all(args.output, args.only)
    print(f"{len(written)} files in {args.output}")
    return 0
