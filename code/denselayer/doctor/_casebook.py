"""A case for every defect of the table: what the doctor says of a faulty program, and what training shows.

Nothing here describes a defect. The words come from the table, the finding from an examination of what the
`zoo` makes, the outcome from a training run.
"""

from dataclasses import dataclass
from functools import cache
from html import escape

from .._validate import choice
from . import zoo
from ._defects import DEFECTS, GROUPS, Defect
from ._layers import diagnose_layer
from ._report import Finding
from ._runs import TRAINABLE, TrainingRun, training_run
from ._zoo_losses import LOSS_FAULTS
from ._zoo_pieces import FAULTS

UNLIMITED = {"exits": "SystemExit"}
"""What stands for ``{other}`` of programs that are not run here; for the others it is a limit."""
LAYERS = {"stale-cache": {"seed": 1}, "other-derivative": {"activation": "sigmoid"}}
LOSSES = {"averaged-twice": "labels", "other-loss": "absolute"}
"""Where the finding would be about another way to write the defect than the line of the table."""
CRASHING = """\
import numpy as np

class Dense:
    def __init__(self):
        self.weight, self.bias, self.kept = np.ones((2, 3)), np.ones(2), []

    def forward(self, x):
        self.kept.append(x)
        return x @ self.weight.T + self.bias

    def backward(self, d_out):
        x = self.kept[len(self.kept)]
        self.d_weight, self.d_bias = d_out.T @ x, d_out.sum(axis=0)
        return d_out @ self.weight
"""


@dataclass(frozen=True)
class Case:
    """One defect: its line of the table, the doctor's finding, and its training run, if there is one.

    >>> from denselayer.doctor import DEFECTS
    >>> Case(DEFECTS["bias-zero"], None, None).defect.group
    'arrays'
    """

    defect: Defect
    finding: Finding
    run: TrainingRun | None

    @property
    def rows(self) -> list[tuple[str, str, bool]]:
        """What there is to say, as (label, text, whether it is code)."""
        shown = f" In the run: {self.run.words}." if self.run else ""
        return [
            ("wrong", self.defect.wrong, True),
            ("right", self.defect.right, True),
            ("evidence", self.finding.evidence, False),
            ("in training", self.defect.in_training + shown, False),
            ("found by", self.defect.found_by, False),
            ("change", self.finding.change, False),
        ]

    def __str__(self):
        lines = [f"{self.defect.name} [{self.defect.id}]"]
        return "\n".join([*lines, *(f"  {label + ':':<13}{text}" for label, text, _ in self.rows)])

    def _html(self):
        head = f'{escape(self.defect.name)} <code class="defect">{escape(self.defect.id)}</code>'
        lines = [f'<tbody id="defect-{self.defect.id}">']
        lines.append(f'<tr><th scope="rowgroup" colspan="2">{head}</th></tr>')
        for label, text, is_code in self.rows:
            cell = f"<code>{escape(text)}</code>" if is_code else escape(text)
            lines.append(f'<tr><th scope="row">{label}</th><td>{cell}</td></tr>')
        return [*lines, "</tbody>"]


@dataclass(frozen=True)
class Casebook:
    """The cases of one group of the table, in its order; prints as a list, and as a table in a notebook.

    >>> Casebook("gates", ()).group
    'gates'
    """

    group: str
    cases: tuple[Case, ...]

    def __str__(self):
        return "\n\n".join([GROUPS[self.group], *map(str, self.cases)])

    def _repr_markdown_(self):
        lines = ['<table class="defects">', f"<caption>{escape(GROUPS[self.group])}</caption>"]
        for case in self.cases:
            lines += case._html()
        return "\n".join([*lines, "</table>"])


def casebook(group):
    """Collect the cases of one group of defects.

    Args:
        group: a key of ``GROUPS``: "arrays", "gates", "losses", "state", "numbers" or "files".

    Returns:
        A `Casebook`.

    Raises:
        ValueError: no such group.

    Source:
        The mistakes are those that people make, collected while this book was written.

    >>> found = casebook("gates")
    >>> found.cases[0].defect.name
    'gate on the upstream gradient'
    >>> print(found.cases[1].finding.name, "|", found.cases[1].run.words)
    gate missing | falls, ends 3.7 times as high
    """
    choice("casebook", "group", group, tuple(GROUPS))
    chosen = [defect for defect in DEFECTS.values() if defect.group == group]
    return Casebook(group, tuple(map(_case, chosen)))


def _case(defect):
    run = training_run(defect.id) if defect.id in TRAINABLE else None
    return Case(defect, _finding(defect.id), run)


@cache
def _finding(defect):
    """What the doctor says of a program with this defect."""
    if defect not in TRAINABLE:
        return Finding(defect, ("the file layer.py",), {"other": UNLIMITED.get(defect, "its limit")})
    report = diagnose_layer(_crashing()) if defect == "crash" else _specimen(defect).diagnose()
    found = {finding.defect: finding for finding in report.findings}
    return found[defect]


def _crashing():
    space = {}
    exec(compile(CRASHING, "layer.py", "exec"), space)
    return space["Dense"]


def _specimen(defect):
    if defect in FAULTS:
        size = {"in_features": 3, "out_features": 3 if FAULTS[defect].square else 4}
        return zoo.faulty([defect], spelling="book", **size, **LAYERS.get(defect, {}))
    if defect == "shared-weight-overwritten":
        return zoo.faulty_tied()
    if defect in LOSS_FAULTS:
        return zoo.faulty_loss([defect], kind=LOSSES.get(defect, LOSS_FAULTS[defect][1][0]))
    return zoo.faulty_step([defect])
