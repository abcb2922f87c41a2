"""What all figures share: ink, sizes, fonts, and the numbers an instructor may change.

Figures are drawn in dark ink on a transparent background, for white paper. On the dark page the site inverts
lightness and keeps hue, so one picture serves both; every colour here is readable both ways.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import yaml
from matplotlib.axes import Axes
from matplotlib.figure import Figure

INK = "#1b1f24"
GREY = "#5d6670"
BLUE = "#1f5fbf"
ORANGE = "#b35000"
GREEN = "#1b7a43"
RED = "#b3261e"
FAINT = "#8a929b"

PALETTE = {"ink": INK, "grey": GREY, "blue": BLUE, "orange": ORANGE, "green": GREEN, "red": RED}

RC = {
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "font.family": "DejaVu Sans",
    "font.size": 10.5,
    "text.color": INK,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.titlesize": 11,
    "axes.titleweight": "normal",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": mpl.cycler(color=[BLUE, ORANGE, GREEN, RED, GREY]),
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": FAINT,
    "grid.alpha": 0.4,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
}


@contextmanager
def applied() -> Iterator[None]:
    """The style of the book inside a ``with`` block; the reader's own settings are untouched outside it."""
    with mpl.rc_context(RC):
        yield


def styled(function: Callable[..., Figure]) -> Callable[..., Figure]:
    """Decorate a figure function: it draws in the style of the book."""

    @wraps(function)
    def draw(*args: Any, **kwargs: Any) -> Figure:
        with applied():
            return function(*args, **kwargs)

    draw.is_figure = True
    return draw


def new_figure(width: float = 6.5, height: float = 3.4, **subplots: Any) -> tuple[Figure, Axes]:
    """A figure of ``width`` x ``height`` inches and its axes, in the style of the book.

    ``subplots`` goes to :func:`matplotlib.pyplot.subplots` (``ncols=2``, for example).
    """
    with applied():
        return plt.subplots(figsize=(width, height), layout="constrained", **subplots)


def parameters_file() -> Path:
    """Where ``parameters.yml`` is: beside this package in the wheel, one folder up in the repository."""
    here = Path(__file__).resolve().parent
    places = [here / "parameters.yml", here.parent / "parameters.yml"]
    for place in places:
        if place.is_file():
            return place
    raise FileNotFoundError(
        f"no parameters.yml: looked for {places[0]} and {places[1]}. Reinstall denselayer[figures]."
    )


@cache
def _read(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def parameters(section: str, path: str | Path | None = None) -> dict[str, Any]:
    """The numbers of one chapter's figures.

    They come from ``path``, else from the file that ``DENSELAYER_PARAMETERS`` names in the environment, else
    from the book's own ``parameters.yml``.

    Raises
    ------
    KeyError
        If the file has no such section; the message lists those it has.
    """
    source = Path(path or os.environ.get("DENSELAYER_PARAMETERS") or parameters_file())
    sections = _read(source)
    if section not in sections:
        raise KeyError(f"{source} has no section {section!r}; it has {sorted(sections)}")
    return dict(sections[section])
