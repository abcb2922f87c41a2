"""Check gradients against slopes that are measured by moving one number at a time.

A backward pass is right when every entry of its gradient is the slope of the loss along that entry. The
slope is measured with one of three methods:

===============  ==============================  ================================  ==================
method           slope                           step h                            relative error
===============  ==============================  ================================  ==================
``"central"``    (f(x + h) - f(x - h)) / 2h      ``eps**(1/3) * max(1, |x|)``      eps**(2/3), 4e-11
``"forward"``    (f(x + h) - f(x)) / h           ``eps**(1/2) * max(1, |x|)``      eps**(1/2), 1e-8
``"complex"``    Im f(x + ih) / h                ``1e-20``                         eps, 2e-16
===============  ==============================  ================================  ==================

Two errors pull the step apart. Truncation grows with h, as ``h**2 / 6 * f'''`` for central and ``h / 2 *
f''`` for forward differences. Rounding grows as h shrinks, as ``eps * f / h``, since the two values that
are subtracted agree in ever more digits. The sum is least near ``eps**(1/3)`` and ``eps**(1/2)``. The
complex step subtracts nothing, so its step can be as small as one likes, but it is the slope only of
functions that are analytic.

Sources: Press et al., "Numerical Recipes", 3rd ed., section 5.7, for the steps; Squire and Trapp, "Using
Complex Variables to Estimate Derivatives of Real Functions", SIAM Review 40(1), 1998, for the complex step.
"""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ._complex_step import NotAnalyticError, complex_slopes
from ._slopes import METHODS, Probe, check_rtol, check_step, default_step
from ._table import html_table, text_table
from ._validate import choice, complaint, count, float_array, number
from ._verdicts import (
    Entry,
    findings_after,
    findings_before,
    judge_complex_steps,
    judge_differences,
    judge_directions,
    relative_error,
)
from .init import generator

__all__ = [
    "Entry",
    "NotAnalyticError",
    "Report",
    "check_direction",
    "check_gradients",
    "check_module",
    "default_step",
    "miss_probability",
    "numerical_gradient",
    "relative_error",
]


def numerical_gradient(f: Callable, x, method="central", step: float | None = None):
    """Measure the gradient of a scalar function, entry by entry.

    Args:
        f: takes an array like ``x`` and returns a number. It is given copies; ``x`` itself is never touched.
        x: float32 or float64, any shape.
        method: ``"central"``, ``"forward"``, or ``"complex"``, which is exact to the last digits and refuses
            functions that are not analytic.
        step: the step for an entry of magnitude 1; larger entries get a larger one. None for `default_step`.

    Returns:
        A float64 array of the shape of ``x``; NaN where ``f`` is.

    Raises:
        NotAnalyticError: ``"complex"`` for a function that compares, takes absolute values, drops the
            imaginary part, or takes no complex numbers.
        ValueError: an unknown method, a step that is not positive, an ``f`` that returns no single number.
        TypeError: ``x`` is no float32 or float64 array.

    Notes:
        A float32 ``x`` is converted to float64 first, so that the rounding of ``f`` does not drown the
        slope. What is measured is the slope of the mathematical function, not that of its rounded values.
        Where ``f`` computes in float32 all the same, which shows in the dtype of its result, the step is
        that of float32.

        Equations: eq-check-forward, eq-check-central and eq-check-complex, one for each method.

    >>> x = np.array([1.0, 2.0, 3.0])
    >>> np.round(numerical_gradient(lambda x: (x**2).sum(), x), 6)
    array([2., 4., 6.])
    >>> numerical_gradient(lambda x: (x**2).sum(), x, method="complex")
    array([2., 4., 6.])
    >>> numerical_gradient(lambda x: np.maximum(x, 0).sum(), x, method="complex")
    ... # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    NotAnalyticError: the function uses np.maximum, which is not analytic
    """
    choice("numerical_gradient", "method", method, METHODS)
    step = check_step("numerical_gradient", step)
    x = float_array("numerical_gradient", "x", x)
    if method == "complex":
        point = np.array(x, dtype=np.float64)
        slopes = complex_slopes(f, point, list(np.ndindex(x.shape)), step)
    else:
        probe = Probe(f, x, step, method)
        indices = np.ndindex(x.shape)
        if method == "forward":
            slopes = [probe.right_slope(index) for index in indices]
        else:
            slopes = [probe.slopes(index).central for index in indices]
    return np.array(slopes, dtype=np.float64).reshape(x.shape)


@dataclass(frozen=True)
class Report:
    """The result of a gradient check; prints as text, and shows as an HTML table in a notebook.

    ``ok`` is True when no entry is wrong and nothing else was found. ``failures`` and ``kinks`` are lists
    of `Entry`, ``findings`` are sentences, and ``worst`` are the entries that differ most from the measured
    slopes, in units of what is tolerated.
    """

    entries: tuple[Entry, ...]
    findings: tuple[str, ...] = ()
    total: int = 0
    """How many entries the arrays have; with ``max_entries`` not all of them were checked."""
    show: int = 5
    kind: Literal["entries", "directions"] = "entries"
    """What the entries are: ``"entries"`` of arrays, or ``"directions"``."""

    @property
    def ok(self) -> bool:
        return not self.findings and not self.failures

    @property
    def failures(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.verdict == "wrong"]

    @property
    def kinks(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.verdict == "kink"]

    @property
    def worst(self) -> list[Entry]:
        smooth = [entry for entry in self.entries if entry.verdict != "kink"]
        return sorted(smooth, key=lambda entry: -entry.excess)[: self.show]

    def __str__(self):
        lines = [self._headline(), *self.findings, *self._kink_lines()]
        if self.worst:
            lines.append(text_table(self._header, self._cells()))
        return "\n".join(lines)

    def __repr__(self):
        return f"<Report: {self._headline()}>"

    def _repr_markdown_(self):
        caption = " ".join([self._headline(), *self.findings, *self._kink_lines()])
        return html_table("gradcheck", caption, self._header, self._cells())

    _header = ("entry", "analytic", "numeric", "relative error", "verdict")

    def _cells(self):
        return [
            [
                entry.place,
                f"{entry.analytic:.9g}",
                f"{entry.numeric:.9g}",
                f"{entry.relative_error:.1e}",
                entry.verdict,
            ]
            for entry in self.worst
        ]

    def _headline(self):
        checked = len(self.entries)
        of = f" of {self.total}" if self.total > checked else ""
        if not self.total:
            return "gradient check: nothing to check, all arrays are empty"
        wrong = f"{len(self.failures)} wrong" if self.failures else "none wrong"
        kind = {"entries": "entry", "directions": "direction"}[self.kind] if self.total == 1 else self.kind
        return f"gradient check {'passed' if self.ok else 'FAILED'}: {checked}{of} {kind} checked, {wrong}"

    def _kink_lines(self):
        if not self.kinks:
            return []
        places = ", ".join(entry.place for entry in self.kinks[:3])
        more = ", ..." if len(self.kinks) > 3 else ""
        line = f"{len(self.kinks)} at a kink, where the slopes to either side differ: {places}{more}"
        if len(self.kinks) == len(self.entries):
            line += "; every entry is at a kink, so the check says little: move the inputs a little"
        return [line]


def _with_gradients(where, params, grads):
    """Return ``params`` as plain arrays; ValueError unless each has an entry in ``grads``."""
    if params.keys() != grads.keys():
        advice = "Give each array one gradient."
        raise ValueError(complaint(where, f"grads has {sorted(grads)}", f"{sorted(params)}", advice))
    return {name: float_array(where, name, array) for name, array in params.items()}


def check_gradients(
    loss: Callable,
    params: dict,
    grads: dict,
    *,
    method: Literal["central", "complex"] = "central",
    step: float | None = None,
    rtol: float | None = None,
    max_entries: int | None = None,
    show: int = 5,
) -> Report:
    """Compare gradients with measured slopes of the loss, entry by entry.

    Args:
        loss: takes a dict like ``params`` and returns a number. It must use the arrays it is given, copies.
        params: dict of float32 or float64 arrays, of any shape; strided, read-only and empty ones too. They
            are never touched.
        grads: dict of the gradients to check, under the same keys.
        method: ``"central"`` or ``"complex"``.
        step: as for `numerical_gradient`.
        rtol: the relative difference that is tolerated. By default 1e-6, 1e-10 for the complex step, and 1e-2
            where the loss itself computes in float32. To it comes what rounding can do to the loss, and to a
            gradient with entries as large as the largest.
        max_entries: check only that many entries of each array, the same ones every time.
        show: how many of the worst entries the report shows.

    Returns:
        A Report. A gradient that is None or has a wrong shape, a loss that is NaN or infinite or that is
        another one in each call, and slopes that drown in the rounding of the loss are findings.

    Raises:
        ValueError: the keys of ``params`` and ``grads`` differ, ``rtol`` is negative, or as
            `numerical_gradient`.
        TypeError: no float32 or float64 arrays.
        NotAnalyticError: as `numerical_gradient`.

    Notes:
        At a kink, as ReLU has at 0, there is no slope, and the two-sided difference lies between the slopes
        to the left and to the right. Where these stay apart however small the step, the entry is reported
        as a kink, if the gradient lies between them; any other gradient is as wrong there as elsewhere.
        Where a kink is merely within the step, smaller steps avoid it, and the gradient must agree with
        those.

    >>> params = {"w": np.array([3.0, -2.0])}
    >>> loss = lambda params: 0.5 * (params["w"] ** 2).sum()
    >>> check_gradients(loss, params, {"w": np.array([3.0, -2.0])}).ok
    True
    >>> print(check_gradients(loss, params, {"w": np.array([3.0, 2.0])}))
    gradient check FAILED: 2 entries checked, 1 wrong
    entry  analytic  numeric  relative error  verdict
    -----  --------  -------  --------------  -------
    w[1]          2       -2         2.0e+00    wrong
    w[0]          3        3         0.0e+00       ok
    """
    choice("check_gradients", "method", method, ("central", "complex"))
    step, rtol = check_step("check_gradients", step), check_rtol("check_gradients", rtol)
    params = _with_gradients("check_gradients", params, grads)
    total = sum(array.size for array in params.values())
    findings = findings_before(loss, params, grads)
    if findings or not total:
        return Report((), findings, total, show)
    judge_all = judge_complex_steps if method == "complex" else judge_differences
    judges = judge_all(loss, params, grads, step, rtol, max_entries)
    entries = tuple(entry for judge in judges for entry in judge.entries())
    findings = tuple(sentence for judge in judges for sentence in judge.findings())
    return Report(entries, findings + findings_after(entries, params, grads), total, show)


def check_direction(
    loss: Callable,
    params: dict,
    grads: dict,
    *,
    directions: int = 1,
    rng=0,
    step: float | None = None,
    rtol: float | None = None,
) -> Report:
    """Compare the slope of the loss along random directions with what the gradients say it is.

    A direction moves all entries of all arrays at once, so two evaluations of the loss test all of them,
    however many there are. The check says whether something is wrong, not where.

    Args:
        loss, params, grads: as for `check_gradients`.
        directions: how many directions, each with its own slope and its own verdict.
        rng: an int seed or a ``numpy.random.Generator``. By default the directions are the same every time;
            None draws new ones.
        step: how far an entry of magnitude 1 or less typically moves; larger entries move more. None for
            `default_step`.
        rtol: the difference that is tolerated, in units of the norm of the gradient, which is the typical
            slope. By default 1e-6, and 1e-2 where the loss itself computes in float32. To it comes what
            rounding can do.

    Returns:
        A Report with one entry for each direction, named ``direction[0]`` and so on. Where a step crosses
        kinks, smaller ones are tried; a direction is reported as a kink where none is small enough.

    Raises:
        ValueError: the keys of ``params`` and ``grads`` differ; no direction; a step that is not positive;
            an ``rtol`` that is negative.
        TypeError: no float32 or float64 arrays; ``directions`` is not whole.

    Notes:
        Equation: eq-check-direction. Each entry of a direction is a normal random number, times the
        magnitude of its parameter where that is above 1. A wrong gradient passes with the probability that
        `miss_probability` gives.

    >>> params = {"w": np.array([3.0, -2.0])}
    >>> loss = lambda params: 0.5 * (params["w"] ** 2).sum()
    >>> check_direction(loss, params, {"w": np.array([3.0, -2.0])}).ok
    True
    >>> report = check_direction(loss, params, {"w": np.array([3.0, 2.0])}, directions=3)
    >>> print(str(report).splitlines()[0])
    gradient check FAILED: 3 directions checked, 3 wrong
    """
    if count("check_direction", "directions", directions) == 0:
        advice = "One is often enough."
        raise ValueError(complaint("check_direction", "directions is 0", "1 or more", advice))
    step, rtol = check_step("check_direction", step), check_rtol("check_direction", rtol)
    numbers = generator("check_direction", rng)
    params = _with_gradients("check_direction", params, grads)
    findings = findings_before(loss, params, grads)
    if not any(array.size for array in params.values()):
        return Report((), findings, kind="directions")
    if findings:
        return Report((), findings, directions, kind="directions")
    judge = judge_directions(loss, params, grads, directions, numbers, step, rtol)
    entries, findings = tuple(judge.entries()), tuple(judge.findings())
    return Report(entries, findings, directions, show=directions, kind="directions")


def miss_probability(wrongness: float, rtol: float = 1e-6, directions: int = 1) -> float:
    """Probability that random directions pass a wrong gradient.

    Args:
        wrongness: norm of the gradient's error, in units of the norm of the gradient that is checked.
        rtol: what `check_direction` tolerates, in the same unit.
        directions: how many directions must all pass.

    Raises:
        ValueError: ``wrongness`` or ``rtol`` is negative.

    Source:
        Along a direction of independent standard normal numbers the error of the slope is normal too, and
        its standard deviation is the norm of the gradient's error.

    Notes:
        Equation: eq-check-miss. What is tolerated besides ``rtol``, for rounding, is not counted. Where
        parameters above 1 move more, their part of both norms counts more.

    >>> print(f"{miss_probability(0.01):.1e}  {miss_probability(0.01, directions=2):.1e}")
    8.0e-05  6.4e-09
    >>> miss_probability(0.0)
    1.0
    """
    wrongness = number("miss_probability", "wrongness", wrongness, low=0.0)
    rtol = number("miss_probability", "rtol", rtol, low=0.0)
    directions = count("miss_probability", "directions", directions)
    if wrongness == 0:
        return 1.0
    return math.erf(rtol / wrongness / math.sqrt(2)) ** directions


def check_module(
    module,
    x,
    d_out=None,
    *,
    target=None,
    step: float | None = None,
    rtol: float | None = None,
    max_entries: int | None = None,
    show: int = 5,
) -> Report:
    """Check the gradients of a module's parameters and of its input by central differences.

    Args:
        module: a Module. A copy of it is run: its parameters and their gradients stay as they are.
        x: the input. Its gradient is checked too, as ``x``, unless ``backward`` returns None for it.
        d_out: upstream gradient, of the shape of the output. By default random numbers, the same every
            time: with ones, a backward pass that forgets ``d_out`` would look right.
        target: for a loss module, which is called as ``module(x, target)`` and takes no ``d_out``.
        step, rtol, max_entries, show: as for `check_gradients`.

    Returns:
        A Report, on the slopes of ``(module(x) * d_out).sum()``, or of the loss.

    >>> from denselayer import nn
    >>> x = np.array([[2.0, 4.0, 1.0], [1.0, -2.0, 3.0]])
    >>> report = check_module(nn.Sequential(nn.Linear(3, 4, rng=0), nn.Tanh(), nn.Linear(4, 2, rng=1)), x)
    >>> print(str(report).splitlines()[0])
    gradient check passed: 32 entries checked, none wrong
    """
    x = float_array("check_module", "x", x)
    inputs = () if target is None else (target,)
    worker = copy.deepcopy(module)
    worker.zero_grad()
    out = worker(x.copy(), *inputs)
    if target is None and d_out is None:
        d_out = np.random.default_rng(0).standard_normal(np.shape(out)).astype(x.dtype)
    d_x = worker.backward(d_out.copy()) if target is None else worker.backward()
    parameters = dict(worker.named_parameters())
    params = {name: parameter.data.copy() for name, parameter in parameters.items()}
    grads = {name: parameter.grad for name, parameter in parameters.items()}
    x_name = "x" if "x" not in params else "input x"
    if d_x is not None:
        params, grads = params | {x_name: x}, grads | {x_name: d_x}

    def loss(values):
        """Run the copy with these arrays, whose dtype is not that of its parameters when it is float64."""
        for name, parameter in parameters.items():
            parameter._data = values[name]
        moved = values.get(x_name, x)
        if target is not None:
            same = target.dtype.kind == "f"
            return np.sum(worker(moved, target.astype(moved.dtype) if same else target))
        return np.sum(worker(moved) * d_out.astype(moved.dtype))

    return check_gradients(loss, params, grads, step=step, rtol=rtol, max_entries=max_entries, show=show)
