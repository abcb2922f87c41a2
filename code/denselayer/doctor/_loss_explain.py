"""Explains a gradient that is not that of its loss, with as few defects as possible."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ._loss_fits import Fit, fit
from ._loss_library import (
    BINARY,
    BINARY_OF_PROBABILITIES,
    CROSS_ENTROPY,
    KNOWN,
    OF_PROBABILITIES,
    KnownLoss,
    sigmoid,
    softmax,
)
from ._loss_views import Sample, View
from ._report import Finding

SCALES = (Fit(1.0, -1), Fit(1.0, -1, -1), Fit(1.0))


@dataclass(frozen=True)
class Reading:
    """One way to look at a loss: the view, the probes in it, and which known loss it is, if any."""

    name: str
    """What the person calls the predictions."""
    view: View
    samples: list[Sample]
    is_mean: bool
    per_sample: bool = False
    known: KnownLoss | None = None
    scale: Fit | None = None
    """The loss is ``scale`` times the known one."""
    epsilon: float = 0.0
    """What the loss adds inside its logarithm."""

    @property
    def slopes(self):
        """The measured slopes of all probes."""
        return [sample.slopes for sample in self.samples]

    @property
    def comparable(self):
        """Whether what the person says has the right shape everywhere."""
        return all(sample.rows is not None for sample in self.samples)

    @cached_property
    def theirs(self):
        """What the person says, where there is a slope to compare it with."""
        return [np.where(np.isnan(sample.slopes), np.nan, sample.rows) for sample in self.samples]

    @property
    def agrees(self):
        """Whether the person is right in all probes."""
        return self.comparable and all(sample.excess <= 1 for sample in self.samples)

    def fit(self, arrays, slope):
        """Explain arrays, which belong to the probes, by a known gradient."""
        with np.errstate(all="ignore"):
            return self.fit_arrays(arrays, [slope(sample.z, sample.t) for sample in self.samples])

    def fit_arrays(self, arrays, patterns):
        """Explain arrays by others."""
        rtol = 1e-6 if self.samples[0].precise else 1e-2
        tolerances = [rtol * np.nanmax(np.abs(array), initial=0) + 1e-9 for array in arrays]
        return fit(arrays, patterns, tolerances, [sample.size for sample in self.samples])


def explain(reading):
    """Return the findings that explain the gradient, and notes."""
    own = _defects_of_the_loss(reading)
    if not reading.comparable:
        return [*own, _misfit(reading)], []
    if not all(np.isfinite(sample.rows).all() for sample in reading.samples):
        return [*own, Finding("not-finite", (f"the gradient of {reading.name}",), {})], []
    if reading.agrees:
        return own, _notes(reading)
    if not any(np.any(sample.rows) for sample in reading.samples):
        return [*own, Finding("gradient-zero", (reading.name,), {})], []
    explanations = [found for found in _explanations(reading) if found is not None]
    if not explanations:
        return own or _hidden(reading), _unexplained(reading)
    return own + min(explanations, key=len), _notes(reading)


def _defects_of_the_loss(reading):
    """What is wrong with the loss itself, whatever its gradient is."""
    where = ("loss",)
    if reading.epsilon:
        return [Finding("unstable-log", where, {"other": "ordinary predictions"})]
    if not reading.known or not reading.known.defect:
        return []
    facts = {"other": 0} if reading.known.defect == "batch-mixed" else {}
    where = (f"the gradient of {reading.name}",) if facts else where
    return [Finding(reading.known.defect, where, facts)]


def _misfit(reading):
    came = next(sample for sample in reading.samples if sample.rows is None)
    if came.theirs is None:
        return Finding("gradient-zero", (reading.name,), {})
    try:
        shape = np.shape(came.theirs)
    except ValueError:
        shape = "of a ragged list"
    return Finding("wrong-shape", (reading.name,), {"shape": shape, "expected": came.shape})


def _explanations(reading):
    """Lists of findings, each of which explains the gradient, or None; the more usual first."""
    yield _by_factor(reading, reading.fit_arrays(reading.theirs, reading.slopes))
    if reading.known:
        mistakes = ((("", reading.known.slope),) if reading.epsilon else ()) + reading.known.mistakes
        for defect, slope, *other in mistakes:
            scale = reading.fit(reading.theirs, slope)
            facts = {"other": other[0], "expected": reading.known.name} if other else {}
            named = [Finding(defect, (reading.name,), facts)] if defect else []
            yield scale and [*named, *factors(reading, scale.relative_to(reading.scale))]
        yield _by_epsilon(reading)
    for other in KNOWN:
        if other is not reading.known and not other.defect:
            scale = reading.fit(reading.theirs, other.slope)
            yield scale and _other_loss(reading, other, scale)


def _by_factor(reading, scale):
    """The right gradient times something."""
    return scale and factors(reading, scale)


def factors(reading, scale):
    """Findings for a gradient that is right up to a factor; none for 1."""
    findings = [Finding("sign-flipped", (reading.name,), {})] if scale.constant < 0 else []
    constant = abs(scale.constant)
    if (scale.samples, scale.width) == (1, -1):  # divided by the columns in place of the rows
        words = "n / k (n is the number of rows, k that of columns)"
        words = words if constant == 1 else f"{constant:.6g} * {words}"
        return [*findings, Finding("factor", (reading.name,), {"factor": words})]
    findings += _batch_factor(reading, scale)
    if constant != 1:
        quadratic = reading.known is not None and reading.known.quadratic
        defect = "factor-two" if quadratic and constant in (2.0, 0.5) else "factor"
        findings.append(Finding(defect, (reading.name,), {"factor": constant}))
    return findings


def _batch_factor(reading, scale):
    """The finding for powers of the batch size and of the width."""
    if not scale.samples and not scale.width:
        return []
    n, classes = max((sample.size for sample in reading.samples), key=lambda size: (size[0] > 1, size[1] > 1))
    facts = {"n": n, "factor": Fit(1.0, scale.samples, scale.width).at(n, classes)}
    if scale.samples > 0 or (scale.samples == 0 and scale.width > 0):
        defect = "summed-not-averaged" if reading.is_mean else "batch-size-hides"
    elif scale.samples < 0:
        defect = "averaged-twice" if reading.is_mean else "all-averaged"
    else:
        name = reading.known.name if reading.known else "the loss"
        facts = {
            "other": f"{name} averaged over all entries",
            "expected": f"{name} averaged over the samples",
        }
        defect = "other-loss"
    return [Finding(defect, (reading.name,), facts)]


def _other_loss(reading, other, scale):
    expected = reading.known.name if reading.known else "one that the doctor does not know"
    mine = reading.scale or Fit(1.0, -1 if reading.is_mean else 0, scale.width)
    plain = (1.0, 0.5) if other.quadratic else (1.0,)
    is_plain = {abs(scale.constant), abs(scale.constant / mine.constant)} & set(plain)
    constant = np.copysign(1.0, scale.constant) if is_plain else scale.constant
    relative = replace(scale.relative_to(mine), constant=float(constant))
    width = {-1: " averaged over all entries", 1: " averaged over the samples"}
    over = width.get(relative.width, "") if relative.samples == 0 else ""
    relative = replace(relative, width=0) if over else relative
    half = "half " if 0.5 in is_plain and other.quadratic else ""
    finding = Finding(
        "other-loss", (reading.name,), {"other": half + other.name + over, "expected": expected}
    )
    return [finding, *factors(reading, relative)]


def _by_epsilon(reading):
    """A number added to a derivative of the activation, or inside a logarithm."""
    for defect, slope, *_ in reading.known.mistakes:
        if defect == "gate-missing":
            excess = [theirs - slopes for theirs, slopes in zip(reading.theirs, reading.slopes, strict=True)]
            scale = reading.fit(excess, slope)
            scale = scale and scale.relative_to(reading.scale)
            if scale and not scale.samples and not scale.width:
                return [Finding("epsilon-in-derivative", (reading.name,), {"factor": scale.constant})]
    epsilon = _log_epsilon(reading, reading.theirs, reading.known, reading.scale)
    if epsilon:
        return [Finding("unstable-log", (f"gradient of {reading.name}",), {"other": "ordinary predictions"})]
    return None


def with_epsilon(reading):
    """Read a loss that adds an epsilon inside its logarithm as the loss without it."""
    for known in (CROSS_ENTROPY, BINARY, OF_PROBABILITIES, BINARY_OF_PROBABILITIES):
        if known.domain in ("numbers", reading.view.domain):
            for scale in SCALES:
                epsilon = _log_epsilon(reading, reading.slopes, known, scale)
                if epsilon:
                    return replace(reading, known=known, scale=scale, epsilon=epsilon)
    return reading


_CERTAINTY = {
    CROSS_ENTROPY.name: lambda z, t: (softmax(z) * t).sum(axis=-1, keepdims=True) + 0 * z,
    BINARY.name: lambda z, t: np.where(t > 0.5, sigmoid(z), sigmoid(-z)),
    OF_PROBABILITIES.name: lambda p, t: p,
    BINARY_OF_PROBABILITIES.name: lambda p, t: np.where(t > 0.5, p, 1 - p),
}
"""The probability whose logarithm the loss takes."""


def _log_epsilon(reading, arrays, known, scale):
    """The one epsilon with which ``array = slope * q / (q + epsilon)`` everywhere, or None."""
    if known.name not in _CERTAINTY:
        return None
    found = []
    for sample, array in zip(reading.samples, arrays, strict=True):
        with np.errstate(all="ignore"):
            slope = scale.at(*sample.size) * known.slope(sample.z, sample.t)
            q = _CERTAINTY[known.name](sample.z, sample.t)
            found.append((q * (slope / array - 1))[(slope != 0) & np.isfinite(array)])
            if np.abs(array[slope == 0]).max(initial=0) > sample.tolerance:
                return None
    found = np.concatenate(found)
    middle = float(np.median(found)) if len(found) else 0.0
    same = np.isfinite(middle) and np.abs(found - middle).max(initial=0) <= 1e-2 * abs(middle) + 1e-7
    return middle if same and middle > 1e-6 else None


def _hidden(reading):
    """Right for one row and wrong for more: that much can be said without a formula."""
    single = [sample for sample in reading.samples if sample.size[0] == 1]
    wrong = sorted({sample.size[0] for sample in reading.samples if sample.excess > 1})
    if single and all(sample.excess <= 1 for sample in single) and 1 not in wrong:
        return [Finding("batch-size-hides", (reading.name,), {"n": " and ".join(map(str, wrong))})]
    return []


def _unexplained(reading):
    return [f"The gradient of {reading.name} is wrong, and no formula that the doctor knows explains it."]


def _notes(reading):
    notes = []
    if reading.per_sample:
        whole = "mean" if reading.is_mean else "sum"
        notes.append(
            f"The loss returns a number for each sample; the gradient is compared with that of their {whole}."
        )
    if reading.known and reading.scale.constant < 0:
        notes.append(f"The loss is {reading.known.name} with a minus sign: descending makes it larger.")
    single = [sample for sample in reading.samples if sample.size[0] == 1]
    if not reading.agrees and reading.view.layout != "flat" and all(sample.excess <= 1 for sample in single):
        notes.append("For a batch of 1 the gradient is right: a test with one sample passes.")
    if not reading.agrees and all(_is_times_columns(sample) for sample in reading.samples):
        notes.append("With one column the gradient is right; with several, divide by their number too.")
    return notes


def _is_times_columns(sample):
    """Whether a gradient is the right one times the number of columns."""
    keep = np.isfinite(sample.slopes)
    right = sample.size[1] * sample.slopes[keep]
    return np.allclose(sample.rows[keep], right, rtol=1e-3, atol=1e-3 * np.abs(right).max(initial=0.0))
