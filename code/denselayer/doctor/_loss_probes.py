"""Probes of a loss that are not about its formula: large logits, changed arrays, caches and dtypes."""

import numpy as np

from ._loss_calls import CallError
from ._loss_library import (
    BINARY,
    BINARY_OF_PROBABILITIES,
    CROSS_ENTROPY,
    OF_PROBABILITIES,
    SQUARED_SIGMOID,
    SQUARED_SOFTMAX,
    softmax,
)
from ._loss_views import rounds_to_float32, sizes
from ._report import Finding

LARGE = 1000.0
FULL = 40.0
"""A logit whose sigmoid rounds to 1 and whose exponential does not overflow."""
BARELY = 730.0
"""A logit whose exponential overflows and whose sigmoid, computed well, is not yet 0."""


def behaviour(calls, reading):
    """Return findings and notes of all probes."""
    findings, notes = [], []
    for probe in (_changes, _kept_views, _large, _integers, _digits):
        try:
            found = probe(calls, reading)
        except CallError:
            continue
        findings += [item for item in found if isinstance(item, Finding)]
        notes += [item for item in found if isinstance(item, str)]
    return findings, notes


def _draw(reading, seed=5, size=0):
    z, t = reading.view.draw(*sizes(reading.view)[size], np.random.default_rng(seed))
    return reading.view.give(z, t)


def _changes(calls, reading):
    """Whether predictions or targets are changed in place."""
    pred, target = _draw(reading)
    before = pred.copy(), target.copy()
    calls.forward(pred, target)
    calls.backward(pred, target)
    names = (reading.name, "target")
    changed = [
        name
        for name, now, then in zip(names, (pred, target), before, strict=True)
        if not np.array_equal(now, then)
    ]
    return [Finding("input-changed", tuple(changed), {})] if changed else []


def _kept_views(calls, reading):
    """Whether a gradient that was handed out changes afterwards."""
    pred, target = _draw(reading)
    gradient = calls.backward(pred, target)
    if not isinstance(gradient, np.ndarray) or gradient.dtype.kind != "f":
        return []
    where = (f"the gradient of {reading.name}",)
    if np.shares_memory(gradient, pred) or np.shares_memory(gradient, target):
        return [Finding("view-kept", where, {"other": reading.name})]
    kept = gradient.copy()
    calls.backward(*_draw(reading, seed=6))
    if not np.array_equal(gradient, kept, equal_nan=True):
        return [Finding("view-kept", where, {"other": "the array that the next call returns"})]
    return []


def stale(calls, view):
    """Whether an object's backward pass belongs to its latest forward pass, and to its own.

    Returns:
        The words for what was used instead, or "".
    """
    if not calls.is_object:
        return ""
    pairs = [view.give(*view.draw(*sizes(view)[0], np.random.default_rng(seed))) for seed in (7, 8)]
    try:
        first, second = (np.array(calls.another().gradient(*pair)) for pair in pairs)
        one, other = calls.another(), calls.another()
        one.forward(*pairs[0])
        one.backward_only(*pairs[0])
        one.forward(*pairs[1])
        if not np.array_equal(one.backward_only(*pairs[1]), second):
            return "the input of an earlier call"
        one.forward(*pairs[0])
        other.forward(*pairs[1])
        if not np.array_equal(one.backward_only(*pairs[0]), first):
            return "the input of another object of the class"
    except CallError:
        pass
    return ""


def _large(calls, reading):
    """Whether numbers overflow or vanish where the true loss is finite."""
    if reading.known is None or reading.epsilon:
        return []
    softmaxes = {CROSS_ENTROPY.name, SQUARED_SOFTMAX.name}
    if reading.known.name in softmaxes:
        return _large_softmax(calls, reading)
    if reading.known.name in {BINARY.name, SQUARED_SIGMOID.name}:
        return _large_sigmoid(calls, reading)
    if reading.known.name in {OF_PROBABILITIES.name, BINARY_OF_PROBABILITIES.name}:
        return _certain(calls, reading)
    return []


def _large_softmax(calls, reading):
    spread, t = reading.view.draw(4, 3, np.random.default_rng(9))
    found = []
    broken = _broken(calls, reading, [(LARGE + spread, t), (-LARGE + spread, t)])
    if broken:
        found.append(Finding("unstable-softmax", broken, {"other": "1,000 or -1,000"}))
    steep = -LARGE * t
    broken = _broken(calls, reading, [(steep, t)])
    is_logarithm = reading.known.name == CROSS_ENTROPY.name
    if is_logarithm and (broken or (not found and _cut_off(calls, reading, steep, t))):
        words = "logits of 0 and the logit of the right class at -1,000"
        found.append(Finding("unstable-log", broken or ("loss",), {"other": words}))
    return found[:1]


def _large_sigmoid(calls, reading):
    ones = np.ones((4, 1 if reading.view.layout == "flat" else 3))
    zeros = 0 * ones
    full = _broken(calls, reading, [(FULL * ones, zeros), (-FULL * ones, ones)])
    if full:
        return [Finding("unstable-log", full, {"other": "logits of 40 and -40"})]
    large = [(sign * LARGE * ones, target) for sign in (1, -1) for target in (ones, zeros)]
    broken = _broken(calls, reading, large)
    if broken:
        barely = [(sign * BARELY * ones, target) for sign in (1, -1) for target in (ones, zeros)]
        overflows = _broken(calls, reading, barely)
        defect = "unstable-softmax" if overflows else "unstable-log"
        return [Finding(defect, broken, {"other": "1,000 or -1,000" if overflows else "logits of 1,000"})]
    if reading.known.name == BINARY.name and _cut_off(calls, reading, LARGE * ones, zeros):
        return [Finding("unstable-log", ("loss",), {"other": "logits of 1,000"})]
    return []


def _certain(calls, reading):
    """Probabilities of exactly 0 and 1 that are right: the loss is 0."""
    t = reading.view.draw(4, 1 if reading.view.layout == "flat" else 3, np.random.default_rng(9))[1]
    if "loss" not in _broken(calls, reading, [(t.copy(), t)]):
        return []
    return [
        "With probabilities of exactly 0 and 1 the loss is NaN or infinite, even where they are right: a "
        "sigmoid or a softmax of large numbers rounds to these. A loss of the logits has no such limit."
    ]


def _broken(calls, reading, pairs):
    """Which of loss and gradient is not finite for any of these pairs of rows."""
    broken = []
    for z, t in pairs:
        pred, target = reading.view.give(z, t)
        if not np.isfinite(calls.value(pred, target)):
            broken.append("loss")
        gradient = calls.gradient(pred, target) if reading.agrees else None
        if gradient is not None and not np.isfinite(np.asarray(gradient, dtype=np.float64)).all():
            broken.append("gradient")
    return tuple(name for name in ("loss", "gradient") if name in broken)


def _cut_off(calls, reading, z, t):
    """Whether the loss of large logits is far from what it must be, as after an epsilon or a clip."""
    came = calls.value(*reading.view.give(z, t)) / reading.scale.at(*z.shape)
    if reading.known.name == CROSS_ENTROPY.name:
        right = -float((t * (z - z.max(axis=1, keepdims=True) - np.log(_sum(z)))).sum())
    else:
        right = float(((1 - t) * np.logaddexp(0, z) + t * np.logaddexp(0, -z)).sum())
    return abs(came - right) > 0.1 * right


def _sum(z):
    return 1 / softmax(z).max(axis=1, keepdims=True)


def _integers(calls, reading):
    """The same whole numbers as int and as float must give the same."""
    rng = np.random.default_rng(10)
    z, t = reading.view.draw(*sizes(reading.view)[0], rng)
    if reading.view.domain == "probabilities":
        return []
    z = rng.integers(-3, 4, z.shape).astype(float)
    z[0, 0] += z[0, 0] == t[0, 0]
    t = np.round(2 * t) if reading.view.targets == "numbers" else t
    pred, target = reading.view.give(z, t)
    right = _results(calls, pred, target)
    for variant in ((pred.astype(np.int64), target), (pred, target.astype(np.int64))):
        try:
            came = _results(calls, *variant)
        except (CallError, ValueError, TypeError):
            continue
        differ = [
            name
            for name, now, then in zip(("the loss", "the gradient"), came, right, strict=True)
            if now.shape != then.shape or not np.allclose(now, then, rtol=1e-5, atol=1e-8, equal_nan=True)
        ]
        if differ:
            return [Finding("integer-arithmetic", tuple(differ), {"other": "int64"})]
    return []


def _results(calls, pred, target):
    gradient = calls.gradient(pred, target)
    missing = np.zeros(0)
    return np.asarray(calls.value(pred, target)), missing if gradient is None else np.asarray(gradient, float)


def _digits(calls, reading):
    """float64 in, and no more than the digits of float32 out."""
    pred, target = _draw(reading)
    gradient = calls.gradient(pred, target)
    coarse = [name for name, is_so in (
        ("the loss", rounds_to_float32(calls, reading.view)),
        ("the gradient", isinstance(gradient, np.ndarray) and gradient.dtype in (np.float32, np.float16)),
    ) if is_so]  # fmt: skip
    return [Finding("float32-arithmetic", tuple(coarse), {"factor": 6e-8})] if coarse else []
