"""What a defect looks like in training: a small real run with it, beside the same run without it.

A program of two layers is trained on data that a fixed seed draws. The wrong program is the right one with
the piece replaced that `zoo` replaces. Its curve shows the losses that it prints itself, right or wrong.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from .._validate import complaint, count
from . import _run_programs
from ._defects import DEFECTS
from ._run_programs import SAMPLES, UNITS
from ._zoo_pieces import LEARNING_RATE

EPOCHS = 100
SAME, NEAR, MOVED = 0.01, 0.25, 0.05
"""Up to which part two curves are the same, two ends are equally low, a loss stands still."""


@dataclass(frozen=True)
class Setting:
    """The program that a defect is put into, and what it is trained on.

    ``program`` is ``"layers"``, ``"loss"``, ``"step"`` or ``"tied"``: what of it is faulty. ``faulty`` is
    ``"both"`` layers or the ``"lower"`` one, ``rows`` is the size of a batch, ``scale`` multiplies the
    inputs, ``whole`` makes them whole numbers. ``seed`` and ``pieces`` choose among the ways to write a
    defect.
    """

    program: str = "layers"
    faulty: str = "both"
    activation: str = "tanh"
    loss: str = "squared"
    lr: float = 0.2
    rows: int = 16
    scale: float = 1.0
    whole: bool = False
    seed: int = 0
    pieces: tuple = ()


_LAYERS, _LOSS, _STEP = Setting(), Setting("loss"), Setting("step")
_RELU = Setting(faulty="lower", activation="relu")
_SIGMOID = Setting(faulty="lower", activation="sigmoid")
_LABELS = Setting("loss", loss="labels")
_LARGE = Setting("loss", loss="labels", activation="relu", lr=1.0, scale=20.0)

SETTINGS = {
    "weight-transposed": _LAYERS,
    "input-weight-transposed": _LAYERS,
    "averaged-twice": _STEP,
    "weight-averaged": _LAYERS,
    "bias-averaged": _LAYERS,
    "all-averaged": _LAYERS,
    "summed-not-averaged": _LOSS,
    "factor-two": _LOSS,
    "learning-rate-inside": Setting(lr=LEARNING_RATE),
    "bias-times-batch": Setting(rows=SAMPLES),
    "sign-flipped": _LOSS,
    "factor": _LAYERS,
    "bias-not-summed": _LAYERS,
    "bias-wrong-axis": Setting(rows=UNITS),
    "bias-times-input": _LAYERS,
    "bias-zero": _LAYERS,
    "gradient-zero": _LAYERS,
    "wrong-shape": _LAYERS,
    "gate-on-upstream": _RELU,
    "gate-missing": _RELU,
    "gate-twice": _SIGMOID,
    "derivative-at-output": _SIGMOID,
    "derivative-at-input": _SIGMOID,
    "epsilon-in-derivative": _RELU,
    "upstream-ignored": _RELU,
    "activation-for-derivative": _RELU,
    "other-derivative": _SIGMOID,
    "softmax-twice": _LABELS,
    "softmax-jacobian-missing": _LABELS,
    "other-loss": Setting("loss", loss="absolute"),
    "unstable-softmax": _LARGE,
    "unstable-log": Setting("loss", loss="labels", activation="relu", lr=1.0, scale=20.0, seed=1),
    "shared-weight-overwritten": Setting("tied"),
    "not-cleared": _STEP,
    "cleared-too-early": _STEP,
    "updated-weight-used": _STEP,
    "stale-cache": Setting(pieces=(("cache", "first"),)),
    "input-changed": Setting(pieces=(("centres", True), ("reuses_input", False))),
    "upstream-changed": Setting(faulty="lower"),
    "view-kept": Setting(pieces=(("buffer", "out"),)),
    "bias-grown": _STEP,
    "parameter-changed": _LAYERS,
    "integer-arithmetic": Setting(whole=True),
    "float32-arithmetic": _LAYERS,
    "not-finite": _RELU,
    "batch-size-hides": _LAYERS,
    "batch-mixed": Setting(pieces=(("mixing", 1.0),)),
    "crash": _LAYERS,
    "random": _LAYERS,
}
TRAINABLE = tuple(SETTINGS)
"""The defects that a training run can show; with the others no program comes to its second step."""


@dataclass(frozen=True)
class TrainingRun:
    """What the right and the wrong program print: the mean loss of each epoch, shape (epochs,).

    ``wrong`` is shorter where the program stopped with an error; ``stopped`` is its text.

    >>> run = TrainingRun("gate-missing", right=np.array([1.0, 0.5]), wrong=np.array([1.0, 0.9]))
    >>> run.fell
    True
    """

    defect: str
    right: np.ndarray
    wrong: np.ndarray
    stopped: str = ""

    @property
    def outcome(self) -> str:
        """One of "stops", "not finite", "rises", "stands still", "same", "higher", "as low" and "lower".

        The last four compare the end of a loss that fell with that of the right program; "same" is a curve
        that nobody can tell from the right one at any time.
        """
        if self.stopped:
            return "stops"
        if not np.isfinite(self.wrong).all():
            return "not finite"
        change = self.wrong[-1] / self.wrong[0]
        if change > 1 - MOVED:
            return "rises" if change > 1 + MOVED else "stands still"
        if np.allclose(self.wrong, self.right, rtol=SAME, atol=0):
            return "same"
        if self.ratio > 1 + NEAR:
            return "higher"
        return "as low" if self.ratio > 1 / (1 + NEAR) else "lower"

    @property
    def ratio(self) -> float:
        """The last loss of the wrong program, in units of that of the right one; NaN if there is none."""
        return float(self.wrong[-1] / self.right[-1]) if len(self.wrong) else np.nan

    @property
    def fell(self) -> bool:
        """Whether the last loss is finite and below the first: training seemed to work."""
        return self.quiet or self.outcome == "higher"

    @property
    def quiet(self) -> bool:
        """Whether the loss came about as low as the right one, or lower: nobody will search for a mistake."""
        return self.outcome in ("same", "as low", "lower")

    @property
    def epoch(self) -> int | None:
        """The epoch, counted from 1, that was not finished or whose loss is no number."""
        if self.outcome == "not finite":
            return int(np.argmin(np.isfinite(self.wrong))) + 1
        return len(self.wrong) + 1 if self.stopped else None

    @property
    def words(self) -> str:
        """The outcome in a few words.

        >>> training_run("bias-zero").words
        'falls, ends 6.6 times as high'
        >>> training_run("crash").words
        'stops in epoch 1'
        """
        outcome, ratio = self.outcome, self.ratio
        if outcome == "not finite":
            value = self.wrong[self.epoch - 1]
            return f"{'NaN' if np.isnan(value) else 'infinite'} in epoch {self.epoch}"
        return {
            "stops": f"stops in epoch {self.epoch}",
            "same": "falls, looks the same",
            "higher": f"falls, ends {ratio:.{2 if ratio < 99.5 else 3}g} times as high",
            "as low": "falls, ends as low",
            "lower": "falls, ends lower",
        }.get(outcome, outcome)


def training_run(defect, *, epochs=EPOCHS):
    """Train a program with one defect, and the same program without it.

    Args:
        defect: an id in `TRAINABLE`.
        epochs: passes through the data, 1 or more.

    Returns:
        A `TrainingRun`.

    Raises:
        ValueError: no such defect, one that no training run can show, or no epochs.
        TypeError: epochs is no whole number.

    Source:
        Gradient descent on the mean squared error: L. Bottou, F. E. Curtis, J. Nocedal, "Optimization methods
        for large-scale machine learning", SIAM Review 60 (2018).

    >>> run = training_run("sign-flipped")
    >>> run.outcome, run.fell
    ('rises', False)
    >>> bool(run.wrong[-1] > 1e9), bool(run.right[-1] < 0.01)
    (True, True)
    """
    if defect not in SETTINGS:
        came = f"{defect!r} is " + ("not seen in training" if defect in DEFECTS else "no defect of the table")
        expected = f"one of {', '.join(TRAINABLE)}"
        raise ValueError(complaint("training_run", came, expected, "Take an id of TRAINABLE."))
    if count("training_run", "epochs", epochs) == 0:
        raise ValueError(complaint("training_run", "epochs is 0", "1 or more", "Take an epoch at least."))
    return _run(defect, epochs)


@cache
def _run(defect, epochs):
    setting = SETTINGS[defect]
    right, _ = _train(_run_programs.program(setting, ()), setting, epochs)
    return TrainingRun(defect, right, *_train(_run_programs.program(setting, (defect,)), setting, epochs))


def _train(step, setting, epochs):
    """The mean of what the steps of each epoch print, and the error that ended the training."""
    x, t = _run_programs.data(setting)
    batches = [slice(start, start + setting.rows) for start in range(0, SAMPLES, setting.rows)]
    losses, stopped = [], ""
    with np.errstate(all="ignore"):
        try:
            for _ in range(epochs):
                losses.append(np.mean([step(x[batch], t[batch]) for batch in batches]))
        except (ValueError, IndexError) as error:
            stopped = f"{type(error).__name__}: {error}"
    printed = np.array(losses)
    printed.flags.writeable = False
    return printed, stopped
