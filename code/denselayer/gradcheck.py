"""Check gradients against slopes that are measured by moving one number at a time.

A backward pass is right when every entry of its gradient is the slope of the loss along that entry. The slope is measured
with one of three methods:

===============  ==============================  ================================  ==================
method           slope                           step h                            relative error
===============  ==============================  ================================  ==================
``"central"``    (f(x + h) - f(x - h)) / 2h      ``eps**(1/3) * max(1, |x|)``      eps**(2/3), 4e-11
``"forward"``    (f(x + h) - f(x)) / h           ``eps**(1/2) * max(1, |x|)``      eps**(1/2), 1e-8
``"complex"``    Im f(x + ih) / h                ``1e-20``                         eps, 2e-16
===============  ==============================  ================================  ==================

Two errors pull the step apart. Truncation grows with h, as ``h**2 / 6 * f'''`` for central and ``h / 2 * f''`` for forward
differences. Rounding grows as h shrinks, as ``eps * f / h``, since the two values that are subtracted agree in ever
more digits. The sum is least near ``eps**(1/3)`` and ``eps**(1/2)``. The complex step subtracts nothing, so its step can be
as small as one likes, but it is the slope only of functions that are analytic.

Sources: Press et al., "Numerical Recipes", 3rd ed., section 5.7, for the steps; Squire and Trapp, "Using Complex Variables
to Estimate Derivatives of Real Functions", SIAM Review 40(1), 1998, for the complex step.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from denselayer._table import html_table, text_table

Method = Literal["central", "forward", "complex"]

COMPLEX_STEP = 1e-20
NOISE = 64
"""How many roundings' worth of error the loss and the gradients are granted: the noise floor is NOISE * eps."""


class NotAnalyticError(ValueError):
    """The complex step met a function for which it would give a wrong slope."""


def default_step(dtype, method: Method = "central") -> float:
    """Return the step for a number of magnitude 1, with which truncation and rounding balance.

    Parameters
    ----------
    dtype : dtype or str
        float32 or float64, the precision in which the function is evaluated.
    method : {"central", "forward", "complex"}

    Examples
    --------
    >>> f"{default_step('float64'):.1e} {default_step('float32'):.1e} {default_step('float64', 'forward'):.1e}"
    '6.1e-06 4.9e-03 1.5e-08'
    """
    _check_method(method)
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise TypeError(f"dtype is {np.dtype(dtype)}, expected float32 or float64")
    if method == "complex":
        return COMPLEX_STEP
    return float(np.finfo(dtype).eps) ** (1 / 3 if method == "central" else 1 / 2)


def numerical_gradient(f: Callable, x, method: Method = "central", step: float | None = None):
    """Measure the gradient of a scalar function, entry by entry.

    Parameters
    ----------
    f : callable
        Takes an array like ``x`` and returns a number. It is given copies: ``x`` itself is never touched.
    x : ndarray of any shape, float32 or float64
    method : {"central", "forward", "complex"}
        ``"complex"`` is exact to the last digits, and refuses functions that are not analytic.
    step : float, optional
        The step for an entry of magnitude 1; it grows with larger entries. By default `default_step`.

    Returns
    -------
    ndarray of float64, of the shape of ``x``
        Where ``f`` is NaN, so is the slope.

    Raises
    ------
    NotAnalyticError
        With ``"complex"``: for a function that drops the imaginary part, compares, takes absolute values, or refuses
        complex numbers.
    ValueError, TypeError
        For an unknown method, a step that is not positive, an ``x`` that is no float array, an ``f`` without a number.

    Notes
    -----
    A float32 ``x`` is converted to float64 first, so that the rounding of ``f`` does not drown the slope: what is
    measured is the slope of the mathematical function, not that of its rounded values. Where ``f`` computes in float32
    all the same, which shows in the dtype of its result, the step is the larger one of float32.

    Examples
    --------
    >>> x = np.array([1.0, 2.0, 3.0])
    >>> np.round(numerical_gradient(lambda x: (x**2).sum(), x), 6)
    array([2., 4., 6.])
    >>> numerical_gradient(lambda x: (x**2).sum(), x, method="complex")
    array([2., 4., 6.])
    >>> numerical_gradient(lambda x: np.maximum(x, 0).sum(), x, method="complex")
    Traceback (most recent call last):
    denselayer.gradcheck.NotAnalyticError: the function uses np.maximum, which is not analytic, so ...
    """
    _check_method(method)
    _check_step(step)
    _check_real("x", x)
    if method == "complex":
        return _complex_gradient(f, np.array(x, dtype=np.float64), step or COMPLEX_STEP)
    probe = _Probe(f, x, step, method)
    return np.array([probe.slopes(index).of(method) for index in np.ndindex(x.shape)]).reshape(x.shape)


def relative_error(analytic, numeric):
    """Return ``|analytic - numeric| / max(|analytic|, |numeric|)``: 0 for equal numbers, 2 for opposite ones.

    Parameters
    ----------
    analytic, numeric : float or ndarray
        Of shapes that broadcast.

    Examples
    --------
    >>> relative_error(np.array([1.0, 0.0, 2.0, 3.0]), np.array([1.0, 0.0, 1.0, -3.0]))
    array([0. , 0. , 0.5, 2. ])
    """
    analytic, numeric = np.asarray(analytic, dtype=np.float64), np.asarray(numeric, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.abs(analytic - numeric) / np.maximum(np.abs(analytic), np.abs(numeric))
    return np.where(analytic == numeric, 0.0, error)[()]


@dataclass(frozen=True)
class Entry:
    """One entry of one gradient: what the backward pass says, what was measured, and what to think of it."""

    name: str
    index: tuple[int, ...]
    analytic: float
    numeric: float
    verdict: Literal["ok", "kink", "wrong"]
    excess: float
    """The difference in units of what is tolerated; above 1 it is too large."""
    slopes: tuple[float, float] | None = None
    """At a kink, the slopes to the left and to the right."""

    @property
    def relative_error(self) -> float:
        return float(relative_error(self.analytic, self.numeric))


@dataclass(frozen=True)
class Report:
    """The result of a gradient check; prints as text, and shows as an HTML table in a notebook.

    ``ok`` is True when no entry is wrong and nothing else was found. ``failures`` and ``kinks`` are lists of `Entry`,
    ``findings`` are sentences, ``worst`` are the entries that come closest to being wrong, or are furthest from right.
    """

    entries: tuple[Entry, ...]
    findings: tuple[str, ...] = ()
    total: int = 0
    """How many entries the arrays have; with ``max_entries`` not all of them were checked."""
    show: int = 5

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

    def _repr_html_(self):
        caption = " ".join([self._headline(), *self.findings, *self._kink_lines()])
        return html_table("gradcheck", caption, self._header, self._cells())

    _header = ("entry", "analytic", "numeric", "relative error", "verdict")

    def _cells(self):
        return [
            [
                _place(entry.name, entry.index),
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
        return f"gradient check {'passed' if self.ok else 'FAILED'}: {checked}{of} entries checked, {wrong}"

    def _kink_lines(self):
        if not self.kinks:
            return []
        places = ", ".join(_place(entry.name, entry.index) for entry in self.kinks[:3])
        more = ", ..." if len(self.kinks) > 3 else ""
        line = f"{len(self.kinks)} at a kink, where the slopes to the left and to the right differ: {places}{more}"
        if len(self.kinks) == len(self.entries):
            line += "; every entry is at a kink, so the check says little: move the inputs a little"
        return [line]


def check_gradients(
    loss: Callable,
    params: dict,
    grads: dict,
    *,
    method: Method = "central",
    step: float | None = None,
    rtol: float | None = None,
    max_entries: int | None = None,
    show: int = 5,
) -> Report:
    """Compare gradients with measured slopes of the loss, entry by entry.

    Parameters
    ----------
    loss : callable
        Takes a dict like ``params`` and returns a number. It must use the arrays that it is given, which are copies.
    params : dict of str to ndarray
        float32 or float64 arrays of any shape; strided, read-only and empty ones too. They are never touched.
    grads : dict of str to ndarray
        The gradients to check, under the same keys.
    method, step
        As for `numerical_gradient`.
    rtol : float, optional
        The relative difference that is tolerated. By default 1e-6, 1e-4 for forward differences, 1e-10 for the complex
        step, at least 1e-4 for gradients in float32, and 1e-2 where the loss itself computes in float32. To it comes
        what rounding alone can do.
    max_entries : int, optional
        Check only that many entries of each array, drawn always in the same way.
    show : int
        How many of the worst entries the report shows.

    Returns
    -------
    Report
        A wrong shape, a gradient that is None, and a loss that is NaN or infinite are findings of the report.

    Raises
    ------
    ValueError, TypeError, NotAnalyticError
        For keys of ``params`` and ``grads`` that differ, and as `numerical_gradient`.

    Notes
    -----
    At a kink, as ReLU has at 0, there is no slope, and the two-sided difference lies between the slopes to the left and
    to the right. An entry where these two keep apart however small the step becomes is reported as a kink, provided that
    the gradient lies between them; any other gradient is as wrong there as elsewhere. Where a kink is merely within the
    step, smaller steps avoid it, and the gradient must agree with those.

    Examples
    --------
    >>> params = {"w": np.array([3.0, -2.0])}
    >>> loss = lambda params: 0.5 * (params["w"] ** 2).sum()
    >>> check_gradients(loss, params, {"w": np.array([3.0, -2.0])}).ok
    True
    >>> print(check_gradients(loss, params, {"w": np.array([3.0, 2.0])}))
    gradient check FAILED: 2 entries checked, 1 wrong
    entry  analytic  numeric  relative error  verdict
    -----  --------  -------  --------------  -------
    w[1]          2       -2         2.0e+00    wrong
    w[0]          3        3         3.1e-12       ok
    """
    _check_method(method)
    _check_step(step)
    if params.keys() != grads.keys():
        raise ValueError(f"grads has the keys {sorted(grads)}, expected {sorted(params)}, those of params")
    for name, array in params.items():
        _check_real(f"params[{name!r}]", array)
    total = sum(array.size for array in params.values())
    findings = _shape_findings(params, grads)
    if findings:
        return Report((), findings, total, show)
    entries = []
    for name, array in params.items():
        f = _only(loss, params, name)
        check = _check_complex if method == "complex" else _check_differences
        found, sentences = check(f, name, array, grads[name], method, step, rtol, max_entries)
        entries += found
        findings += sentences
    return Report(tuple(entries), findings, total, show)
