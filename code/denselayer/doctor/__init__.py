"""Name the defect in a hand-written backward pass, and say what to change.

===================  =================================================================================
`diagnose`           gradients of a loss, whatever computed them
`diagnose_layer`     a layer, an activation or a small network: a class, an object, or two functions
`diagnose_loss`      a loss and the gradient that goes with it
`diagnose_step`      a whole step of training
`casebook`           a case for each defect: formulas, evidence, a training run, what to change
===================  =================================================================================

What is right comes from the forward pass: from slopes of its output. What came from the backward pass is
then explained, by the fewest slips that give all its numbers in all probes at once; where none do, the doctor
says "cannot tell". `DEFECTS` is the table of all slips that it knows.

>>> import numpy as np
>>> class Layer:
...     def __init__(self, in_features, out_features):
...         self.W = np.ones((in_features, out_features))
...     def forward(self, x):
...         self.x = x
...         return x @ self.W
...     def backward(self, d_out):
...         self.dW = -self.x.T @ d_out
...         return d_out @ self.W.T
>>> report = diagnose_layer(Layer)
>>> report.status, report.defects, report.findings[0].where
('sick', ('sign-flipped',), ('W',))
>>> report.arrays[1].name, report.arrays[1].verdict
('x', 'healthy')
"""

from ._arrays import diagnose
from ._casebook import Case, Casebook, casebook
from ._defects import DEFECTS, GROUPS, Defect
from ._layers import diagnose_layer
from ._losses import diagnose_loss
from ._report import ArrayVerdict, Entry, Finding, Report
from ._runs import TRAINABLE, TrainingRun, training_run
from ._steps import diagnose_step

__all__ = [
    "DEFECTS",
    "GROUPS",
    "TRAINABLE",
    "ArrayVerdict",
    "Case",
    "Casebook",
    "Defect",
    "Entry",
    "Finding",
    "Report",
    "TrainingRun",
    "casebook",
    "diagnose",
    "diagnose_layer",
    "diagnose_loss",
    "diagnose_step",
    "training_run",
]
