"""Name the defect in a hand-written backward pass, and say what to change."""

from ._arrays import diagnose
from ._defects import DEFECTS
from ._layers import diagnose_layer
from ._losses import diagnose_loss
from ._report import ArrayVerdict, Entry, Finding, Report
from ._steps import diagnose_step

__all__ = [
    "DEFECTS",
    "ArrayVerdict",
    "Entry",
    "Finding",
    "Report",
    "diagnose",
    "diagnose_layer",
    "diagnose_loss",
    "diagnose_step",
]
