"""Compares gradients with measured slopes, entry by entry, and says what is wrong with them."""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np

from ._complex_step import complex_slopes
from ._slopes import NOISE, Probe, Slopes, plain_number
from ._validate import float_array

LOOSE, TINY = 1e-4, 1e-12
"""How much two values of the loss for the same arrays may differ, relatively and absolutely."""


def relative_error(analytic, numeric):
    """``|analytic - numeric| / max(|analytic|, |numeric|)``: 0 for equal numbers, 2 for opposite ones.

    Args:
        analytic, numeric: numbers, or arrays of shapes that broadcast.

    Notes:
        Equation: eq-check-relative.

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
    def place(self) -> str:
        return f"{self.name}[{', '.join(map(str, self.index))}]" if self.index else self.name

    @property
    def relative_error(self) -> float:
        return float(relative_error(self.analytic, self.numeric))


@dataclass(frozen=True)
class Judge:
    """Compares the gradient of one array with its measured slopes."""

    name: str
    gradient: np.ndarray
    probe: Probe | None
    """None for the complex step, which leaves neither kinks nor noise to look into."""
    measured: dict
    """Index to `Slopes`."""
    terms: float
    """The size of the terms that the loss adds up, which may cancel in its value."""
    rtol: float

    def entries(self):
        return [self._entry(index, slopes) for index, slopes in self.measured.items()]

    def _entry(self, index, slopes):
        analytic = float(self.gradient[index])
        excess = self._excess(analytic, slopes.central, slopes)
        if not np.isfinite(excess):
            return self._verdict(index, analytic, slopes, np.inf)
        if self.probe is None:
            return self._verdict(index, analytic, slopes, excess)
        suspicious = slopes.jump > max(self._noise(slopes), 1e-3 * max(abs(slopes.left), abs(slopes.right)))
        if excess <= 1 and not suspicious:
            return self._verdict(index, analytic, slopes, excess)
        return self._look_closer(index, analytic, slopes)

    def findings(self):
        """A sentence if rounding hides the slopes: then even a gradient of zeros would pass."""
        noise = max(map(self._noise, self.measured.values()), default=0.0)
        if 0 < self._magnitude() <= noise:
            yield (
                f"rounding of the loss, up to {noise:.1e}, hides the slopes of {self.name}: "
                "scale the arrays so that the terms of the loss are smaller."
            )

    def _magnitude(self):
        """The largest slope or entry of the gradient."""
        magnitudes = [abs(slopes.central) for slopes in self.measured.values()]
        magnitudes += [abs(float(self.gradient[index])) for index in self.measured]
        return max(magnitudes, default=0.0)

    def _look_closer(self, index, analytic, slopes):
        """Tell a kink from a curve and a wrong gradient: over smaller steps only a kink keeps its jump."""
        ratio = 16 if self.probe.precision == np.float64 else 4
        levels = [slopes, self.probe.slopes(index, ratio), self.probe.slopes(index, ratio**2)]
        if self._keeps_its_jump(levels, ratio**2):
            return self._at_a_kink(index, analytic, levels)
        level = self._coarsest_smooth(levels, 4 * ratio)
        chosen = levels[level]
        truncation = 2 * abs(chosen.central - levels[level + 1].central) if level < 2 else 0.0
        excess = self._excess(analytic, chosen.central, chosen, truncation)
        return self._verdict(index, analytic, chosen, excess, kink=excess <= 1 and level > 0)

    def _keeps_its_jump(self, levels, shrink):
        finest = levels[-1]
        return finest.jump > max(self._noise(finest), 4 * levels[0].jump / shrink)

    def _at_a_kink(self, index, analytic, levels):
        """Between the slopes of both sides there is none; where they grow with 1 / step, the loss jumps."""
        finest = levels[-1]
        if finest.jump > 4 * levels[0].jump + self._noise(finest):
            return self._verdict(index, analytic, finest, np.inf)
        low, high = sorted((finest.left, finest.right))
        excess = self._excess(analytic, min(max(analytic, low), high), finest)
        return self._verdict(index, analytic, finest, excess, kink=excess <= 1)

    def _coarsest_smooth(self, levels, shrinks):
        """Return the first level from which on the jump shrinks with the step: there the kink is outside."""
        level = len(levels) - 1
        while level > 0:
            coarser, finer = levels[level - 1], levels[level]
            if coarser.jump > max(self._noise(coarser), shrinks * finer.jump):
                break
            level -= 1
        return level

    def _excess(self, analytic, numeric, slopes, truncation=0.0):
        """Return the difference in units of what is tolerated."""
        difference = abs(analytic - numeric)
        relative = self.rtol * self._size(analytic, numeric)
        tolerance = relative + self._noise(slopes) + self._rounding + truncation
        if difference == 0:
            return 0.0
        return float(difference / tolerance) if tolerance and np.isfinite(difference) else np.inf

    def _size(self, analytic, numeric):
        """What ``rtol`` is relative to."""
        return max(abs(analytic), abs(numeric))

    def _noise(self, slopes):
        if self.probe is None:
            return 0.0
        return NOISE * np.finfo(self.probe.precision).eps * (slopes.height + self.terms) / slopes.step

    @cached_property
    def _rounding(self):
        magnitudes = (abs(slopes.central) for slopes in self.measured.values())
        largest = max(filter(np.isfinite, magnitudes), default=0.0)
        return NOISE * np.finfo(self.gradient.dtype).eps * largest

    def _verdict(self, index, analytic, slopes, excess, kink=False):
        verdict = "kink" if kink else "ok" if excess <= 1 else "wrong"
        sides = (slopes.left, slopes.right) if kink else None
        return Entry(self.name, index, analytic, slopes.central, verdict, excess, sides)


@dataclass(frozen=True)
class DirectionJudge(Judge):
    """Compares slopes along random directions with what the gradient says they are.

    By chance such a slope can be small where the gradient is large, so nothing here is relative to it.
    """

    norm: float = 0.0
    """The norm of the gradient: the root mean square of the slopes along all directions."""

    def _magnitude(self):
        return max(self.norm, super()._magnitude())

    def _size(self, analytic, numeric):
        return self.norm

    @cached_property
    def _rounding(self):
        return NOISE * np.finfo(self.gradient.dtype).eps * self.norm

    def _look_closer(self, index, analytic, slopes):
        """Take the step at which a smaller one changes least: in a large network long ones cross kinks."""
        shrinks = [4**level for level in range(1, 5 if self.probe.precision == np.float64 else 3)]
        levels = [slopes, *(self.probe.slopes(index, shrink) for shrink in shrinks)]
        if self._keeps_its_jump(levels, shrinks[-1]):
            return self._at_a_kink(index, analytic, levels)
        changes = [2 * abs(coarse.central - fine.central) for coarse, fine in pairwise(levels)]
        unsure = [change + self._noise(level) for change, level in zip(changes, levels, strict=False)]
        best = int(np.argmin(unsure))
        excess = self._excess(analytic, levels[best].central, levels[best], changes[best])
        return self._verdict(index, analytic, levels[best], excess)


def judge_directions(loss, params, grads, directions, generator, step, rtol):
    """Measure slopes along random directions, in which all arrays move together."""
    reach = {name: np.maximum(1.0, np.abs(array.astype(np.float64))) for name, array in params.items()}
    rays = [
        {name: size * generator.standard_normal(size.shape) for name, size in reach.items()}
        for _ in range(directions)
    ]
    exact = {name: gradient.astype(np.float64) for name, gradient in grads.items()}
    probe = Probe(_along(loss, params, rays), np.zeros(directions, dtype=_coarsest(params)), step)
    return DirectionJudge(
        name="direction",
        gradient=np.array([_inner(exact, ray) for ray in rays], dtype=_coarsest(grads)),
        probe=probe,
        measured={(number,): probe.slopes((number,)) for number in range(directions)},
        terms=sum(float(np.abs(exact[name] * array).sum()) for name, array in params.items()),
        rtol=_default_rtol(probe) if rtol is None else rtol,
        norm=math.sqrt(sum(float(((exact[name] * size) ** 2).sum()) for name, size in reach.items())),
    )


def _along(loss, params, rays):
    """Return the loss as a function of the distances that all arrays go along the rays."""

    def f(distances):
        moved = {name: array.astype(distances.dtype) for name, array in params.items()}
        for distance, ray in zip(distances, rays, strict=True):
            if distance:
                moved = {name: at + (distance * ray[name]).astype(at.dtype) for name, at in moved.items()}
        return loss(moved)

    return f


def _inner(gradients, ray):
    return sum(float((gradient * ray[name]).sum()) for name, gradient in gradients.items())


def _coarsest(arrays):
    return np.float32 if any(array.dtype == np.float32 for array in arrays.values()) else np.float64


def judge_differences(loss, params, grads, step, rtol, max_entries):
    """Measure all arrays first: what the loss adds up is known only from all of them."""
    probes = {name: Probe(_only(loss, params, name), array, step) for name, array in params.items()}
    measured = {
        name: {index: probe.slopes(index) for index in _indices(params[name].shape, max_entries)}
        for name, probe in probes.items()
    }
    terms = max(_terms(params[name], slopes) for name, slopes in measured.items())
    return [
        Judge(name, grads[name], probe, measured[name], terms, _default_rtol(probe) if rtol is None else rtol)
        for name, probe in probes.items()
    ]


def judge_complex_steps(loss, params, grads, step, rtol, max_entries):
    judges = []
    rtol = _default_rtol(None) if rtol is None else rtol
    for name, array in params.items():
        indices = _indices(array.shape, max_entries)
        slopes = complex_slopes(_only(loss, params, name), np.array(array, dtype=np.float64), indices, step)
        measured = {
            index: Slopes(slope, slope, slope, np.inf, 0.0)
            for index, slope in zip(indices, slopes, strict=True)
        }
        judges.append(Judge(name, grads[name], None, measured, 0.0, rtol))
    return judges


def _terms(array, measured):
    """Return the size of what the loss would add up if it were linear in this array."""
    terms = [abs(slopes.central * float(array[index])) for index, slopes in measured.items()]
    finite = [term for term in terms if np.isfinite(term)]
    return sum(finite) * array.size / len(finite) if finite else 0.0


def _default_rtol(probe):
    if probe is None:
        return 1e-10
    return 1e-2 if probe.precision == np.float32 else 1e-6


def _only(loss, params, name):
    """Return the loss as a function of one array; the others go along in the dtype of that one, as copies."""

    def f(array):
        dtype = array.dtype if array.dtype != np.complex128 else np.float64
        return loss({key: value.astype(dtype) for key, value in params.items()} | {name: array})

    return f


def _indices(shape, max_entries):
    indices = list(np.ndindex(shape))
    if max_entries is None or len(indices) <= max_entries:
        return indices
    chosen = np.random.default_rng(0).choice(len(indices), max_entries, replace=False)
    return [indices[position] for position in sorted(chosen)]


def findings_before(loss, params, grads):
    """Return sentences on what makes a comparison of slopes meaningless."""
    findings = [sentence for name in params for sentence in _misfit(name, params[name], grads[name])]
    if not findings:
        value, again = (_value(loss, params) for _ in range(2))
        if not np.isfinite(value):
            broken = [name for name, array in params.items() if not np.isfinite(array).all()]
            where = f"{', '.join(broken)} is not finite" if broken else "look for overflow, log(0) or 0 / 0"
            findings.append(f"the loss is {value} where the slopes should be measured: {where}.")
        elif abs(again - value) > LOOSE * max(abs(value), abs(again)) + TINY:
            findings.append(
                f"the loss is {value:.6g} and then {again:.6g} for the same arrays: fix its random numbers."
            )
    return tuple(findings)


def _value(loss, params):
    """The loss as a plain number, whatever dtype it computes in."""
    return float(np.real(plain_number(loss({name: array.copy() for name, array in params.items()}))))


def _misfit(name, array, gradient):
    if gradient is None:
        yield f"the gradient of {name} is None: run backward before the check."
    elif float_array("check_gradients", f"the gradient of {name}", gradient).shape != array.shape:
        turned = gradient.T.shape == array.shape
        hint = "that is its transpose" if turned else "a gradient has the shape of its array"
        yield f"the gradient of {name} has shape {gradient.shape}, expected {array.shape}: {hint}."


def findings_after(entries, params, grads):
    """Return a sentence for every array whose wrong entries have something in common."""
    findings = []
    for name in params:
        checked = [entry for entry in entries if entry.name == name]
        if any(entry.verdict == "wrong" for entry in checked):
            findings += _diagnose(name, grads[name], checked)
    return tuple(findings)


def _diagnose(name, gradient, checked):
    """Say what all entries of a wrong gradient have in common, if anything."""
    analytic = np.array([entry.analytic for entry in checked])
    numeric = np.array([entry.numeric for entry in checked])
    for entry in checked:
        if not np.isfinite(entry.analytic):
            return [f"the gradient is {entry.analytic} at {entry.place}."]
        if not np.isfinite(entry.numeric):
            return [f"the loss becomes NaN or infinite when {entry.place} moves."]
    scale = np.abs(numeric).max()
    if not analytic.any():
        return [f"the gradient of {name} is zero everywhere, the slopes are not."]
    if scale == 0:
        return [f"the loss does not change with {name}: does it use the arrays it is given?"]
    factor = float(analytic @ numeric / (numeric @ numeric))
    if len(checked) > 1 and np.abs(analytic - factor * numeric).max() <= 1e-4 * abs(factor) * scale:
        if abs(factor + 1) < 1e-4:
            return [f"the gradient of {name} has the wrong sign everywhere."]
        return [f"the gradient of {name} is {factor:.6g} times the slopes everywhere."]
    square = gradient.ndim == 2 and gradient.shape[0] == gradient.shape[1] and len(checked) == gradient.size
    if square and np.abs(numeric.reshape(gradient.shape).T - gradient).max() <= 1e-4 * scale:
        return [f"the gradient of {name} is the transpose of the slopes."]
    return []
