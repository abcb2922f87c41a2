"""The figures of the page on what goes wrong: the loss with a defect beside the loss without it.

There is one figure for each group of the doctor's table, with a panel for each defect that training can show.
The runs are those of `denselayer.doctor.training_run`.
"""

from collections import Counter
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from denselayer import doctor

from . import style

RIGHT = {"color": style.BLUE, "linewidth": 3.2, "alpha": 0.75}
WRONG = {"color": style.ORANGE, "linewidth": 1.8, "linestyle": (0, (4, 1.5))}
PHRASES = {
    "higher": "falls and ends higher in",
    "as low": "falls as low as the right one in",
    "same": "cannot be told from the right one in",
    "lower": "ends lower in",
    "rises": "rises in",
    "stands still": "stands still in",
    "not finite": "becomes infinite or NaN in",
    "stops": "is missing, since the program stops, in",
}


def _setting(name: str, value: Any = None) -> Any:
    return style.parameters("defects")[name] if value is None else value


def shown(group: str) -> list[str]:
    """The defects of a group that have a panel, in the order of the table."""
    return [name for name in doctor.TRAINABLE if doctor.DEFECTS[name].group == group]


def summary(group: str) -> str:
    """What becomes of the wrong curves of a figure, counted, in one sentence."""
    outcomes = Counter(doctor.training_run(name).outcome for name in shown(group))
    counted = [f"{phrase} {outcomes[outcome]}" for outcome, phrase in PHRASES.items() if outcomes[outcome]]
    return f"Of {sum(outcomes.values())} panels the wrong curve {', '.join(counted)}."


def _panel(ax: Axes, run: doctor.TrainingRun) -> None:
    """The two curves of one defect, in units of the first loss of the right program."""
    lowest, highest = _setting("lowest"), _setting("highest")
    right, wrong = run.right / run.right[0], run.wrong / run.right[0]
    ax.plot(np.arange(1, len(right) + 1), right, gid=f"{run.defect}-right", **RIGHT)
    visible = np.where(np.isfinite(wrong), wrong, np.nan)
    ax.plot(np.arange(1, len(wrong) + 1), visible, gid=f"{run.defect}-wrong", **WRONG)
    mark, place = _end(run, right, wrong, highest)
    if mark:
        ax.plot(*place, mark, color=style.ORANGE, markersize=8, markeredgewidth=2, gid=f"{run.defect}-end",
                clip_on=False)  # fmt: skip
    ax.set(yscale="log", ylim=(lowest, highest), xlim=(0, len(right)))
    ax.set_title(
        f"{run.defect.replace('-', ' ')}\n{run.words.removeprefix('falls, ')}", fontsize=10, loc="left"
    )
    ax.yaxis.set_major_locator(LogLocator(base=10, numticks=8))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_locator(MaxNLocator(2, integer=True))
    ax.tick_params(labelsize=10)
    ax.grid(True)


def _end(run, right, wrong, highest):
    """The mark of a curve that leaves the picture at the top, or ends, and its place."""
    if run.epoch is not None:
        before = wrong[run.epoch - 2] if run.epoch > 1 else right[0]
        if before <= highest:
            return "x", (max(run.epoch - 1, 1), before)
    outside = np.flatnonzero(~(wrong <= highest))
    return ("^", (outside[0] + 1, highest)) if len(outside) else ("", ())


def _training(group: str) -> Figure:
    """Small multiples of one group of defects: loss curves with each defect and without it.

    Every panel has the same axes. The loss is given as a part of the first loss of the right program.
    """
    names, columns = shown(group), _setting("columns")
    rows = -(-len(names) // columns)
    fig, axes = style.new_figure(
        _setting("panel_width") * columns,
        _setting("panel_height") * rows + 0.5,
        nrows=rows,
        ncols=columns,
        sharex=True,
        sharey=True,
        squeeze=False,
    )
    for ax, name in zip(axes.flat, names, strict=False):
        _panel(ax, doctor.training_run(name))
    for ax in axes.flat[len(names) :]:
        ax.remove()
    for at, ax in enumerate(axes.flat[: len(names)]):
        if at + columns >= len(names):
            ax.set_xlabel("epoch")
            ax.tick_params(labelbottom=True)
        if at % columns == 0:
            ax.set_ylabel("loss")
    handles = [plt.Line2D([], [], **look) for look in (RIGHT, WRONG)]
    fig.legend(handles, ["right", "wrong"], loc="outside upper left", ncols=2, handlelength=3)
    return fig


@style.styled
def arrays() -> Figure:
    """Training with a wrong gradient of one array or of all."""
    return _training("arrays")


@style.styled
def gates() -> Figure:
    """Training with a wrong derivative of the activation."""
    return _training("gates")


@style.styled
def losses() -> Figure:
    """Training with a wrong loss, or a wrong gradient of it."""
    return _training("losses")


@style.styled
def state() -> Figure:
    """Training with a program that keeps, clears or changes what it should not."""
    return _training("state")


@style.styled
def numbers() -> Figure:
    """Training with numbers that lose their digits, and with rows that mix."""
    return _training("numbers")


@style.styled
def files() -> Figure:
    """Training with a program that stops, or throws dice."""
    return _training("files")
