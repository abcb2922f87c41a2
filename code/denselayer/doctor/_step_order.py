"""Looks at the single steps in their order: a step that comes too early, and steps of their own lengths."""

from itertools import pairwise

import numpy as np

from ._report import Finding
from ._step_models import joint


def _in_order(runs):
    """(place, updates in units of the rate) of all steps."""
    rate, updates = runs.first
    yield runs.places[0], {name: update / rate for name, update in updates.items()}
    for place in runs.places:
        for rate, updates in zip(place.rates, place.updates, strict=True):
            yield place, {name: update / rate for name, update in updates.items()}


def _multiple(direction, slopes, keep, tolerance):
    """The number by which slopes become a direction, or None."""
    own, wanted = joint(direction, keep), joint(slopes, keep)
    fits = np.isfinite(wanted)
    own, wanted = own[fits], wanted[fits]
    factor = float(own @ wanted / (wanted @ wanted)) if wanted.any() else 0.0
    close = np.abs(own - factor * wanted).max(initial=0.0) <= 10 * tolerance * np.abs(own).max(initial=0.0)
    return factor if factor and close else None


def late(runs, step):
    """Each step goes along the gradient of the batch before: the update comes before the backward pass."""
    if not step.takes_rate:
        return None
    steps = list(_in_order(runs))
    for (before, _), (place, direction) in pairwise(steps):
        factor = _multiple(direction, before.slopes, place.slopes, runs.tolerance)
        if factor is None or factor < 0:
            return None
    other = "the batch of the step before, as the update stands before the backward pass"
    theirs = {name: array for name, array in steps[4][1].items()}
    return [Finding("stale-cache", runs.names, {"other": other})], [], theirs


def own_lengths(runs, step):
    """Every step goes along its own gradient, by a part of it that changes from step to step."""
    factors = [
        _multiple(direction, place.slopes, place.slopes, runs.tolerance)
        for place, direction in _in_order(runs)
    ]
    if not step.takes_rate or None in factors or min(factors) <= 0:
        return None
    note = (
        f"Every step goes along its gradient, {min(factors):.4g} to {max(factors):.4g} times as far as the "
        "learning rate says; by which rule cannot be told."
    )
    return [], [note], {}
