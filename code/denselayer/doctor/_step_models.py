"""Explain a row of updates by an update rule: a gradient, a memory of earlier ones, and decay."""

from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise, product

import numpy as np

from ._step_runs import SHRINK

WEIGHTS = np.array([1 / 3, -2.0, 8 / 3])
"""What makes of the values at 1, 1/2 and 1/4 of a rate the value at 0, for a parabola."""
BETAS = ((0.9, 0.0, 0.5, 0.8, 0.95), (0.999, 0.9, 0.95, 0.98, 0.99, 0.9999, 0.0, 1.0))
"""What is kept of the running mean and of the running square, the defaults of Adam first.

(0, b) is RMSProp, (0, 0) the sign alone, and (0, 1) stands for AdaGrad, which adds up all squares.
"""
SURE = 1e-3
"""How far, in learning rates, the steps of a rule may be from those seen, to need no more search."""


@dataclass
class Model:
    """What a step does with its gradient, and the gradient that it must have had, for a rate of 0."""

    power: int
    """By which power of the learning rate the gradient is multiplied."""
    memory: float
    """Which part of the last direction is kept; 1 where gradients are never cleared."""
    gradients: list
    """For each place ``{name: array}``."""
    varies: dict
    """For each parameter how much the gradient changes with the learning rate, relatively."""
    decay: dict = field(default_factory=dict)
    shrink: float = 0.0
    """Which part of the parameters a step takes away, whatever the learning rate is."""


def valid(slopes):
    """Which entries have a slope."""
    return {name: np.isfinite(array) for name, array in slopes.items()}


def joint(arrays, slopes):
    """One vector of all entries that have a slope."""
    return np.concatenate([arrays[name][keep] for name, keep in valid(slopes).items()])


def models(runs, takes_rate):
    """Yield the models that a row of updates allows, the plain ones first."""
    for power in (1, 2, 0) if takes_rate else (0,):
        for inside in (False, True):
            directions = _directions(runs, power, inside)
            memories = [] if inside else [0.0, 1.0]
            memories += _guesses_of_memory(runs, directions)
            for memory in memories:
                yield _model(runs, directions, power, memory, inside)


def _calls(runs):
    """(rate, updates) of all steps in their order."""
    yield runs.first
    for place in runs.places:
        yield from zip(place.rates, place.updates, strict=True)


def _directions(runs, power, inside):
    """The updates in units of the learning rate; ``inside`` a memory that holds it, they stay as they are."""
    return [
        {name: update / (1 if inside else rate**power) for name, update in updates.items()}
        for rate, updates in _calls(runs)
    ]


def _guesses_of_memory(runs, directions):
    """The part of the last direction in the first step from a new place, by least squares.

    Without and with weight decay, and rounded to the two digits that people write.
    """
    found = ([], [])
    for number in range(1, len(runs.places)):
        place, call = runs.places[number], 1 + number * len(SHRINK)
        slopes = place.slopes
        plain = [joint(slopes, slopes), joint(directions[call - 1], slopes)]
        now = joint(directions[call], slopes)
        for answers, columns in zip(found, (plain, [*plain, *_decay_columns(runs, place)]), strict=True):
            if len(now) > len(columns) + 1:
                answers.append(np.linalg.lstsq(np.stack(columns, axis=1), now, rcond=None)[0][1])
    middles = [float(np.median(answers)) for answers in found if answers]
    guesses = [guess for middle in middles for guess in (round(middle, 2), round(middle, 6))]
    return [guess for guess in dict.fromkeys(guesses) if 0.05 <= guess < 0.995]


def _decay_columns(runs, place):
    """For each parameter the vector in which it stands alone."""
    slopes = place.slopes
    for name in runs.names:
        blocks = {other: np.zeros_like(slopes[other]) for other in runs.names}
        yield joint(blocks | {name: _entries(runs, place, name)}, slopes)


def _entries(runs, place, name):
    return place.params[name].astype(np.float64).ravel()[runs.entries[name]]


def _model(runs, directions, power, memory, inside):
    rates = [rate for rate, _ in _calls(runs)]
    own = [
        {name: (now[name] - memory * last[name]) / (rate if inside else 1) for name in now}
        for rate, last, now in zip(rates[1:], directions, directions[1:], strict=False)
    ]
    return _at_no_rate(runs, own, power, memory)


def look_ahead(runs):
    """Yield the models of Nesterov's momentum, in which the gradient before takes part too.

    The first two steps are taken from one place, so that the gradient of the second is known whatever
    happened before.
    """
    directions = _directions(runs, 1, inside=False)
    for memory in (0.9, 0.95, 0.99, 0.8, 0.5):
        fresh = [
            {name: now[name] - memory * last[name] for name in now} for last, now in pairwise(directions)
        ]
        gradients = fresh[:1]
        for own in fresh[1:]:
            gradients.append(
                {name: (own[name] + memory * gradients[-1][name]) / (1 + memory) for name in own}
            )
        yield _at_no_rate(runs, gradients, 1, memory)


def _at_no_rate(runs, own, power, memory):
    """A model from the gradients that the single steps had."""
    gradients, varies = [], dict.fromkeys(runs.names, 0.0)
    for number in range(len(runs.places)):
        three = own[number * len(SHRINK) : (number + 1) * len(SHRINK)]
        limit = {
            name: sum(w * one[name] for w, one in zip(WEIGHTS, three, strict=True)) for name in runs.names
        }
        size = max(np.abs(array).max(initial=0.0) for array in limit.values())
        for name in runs.names:
            change = np.abs(three[0][name] - limit[name]).max(initial=0.0)
            varies[name] = max(varies[name], change / size if size else 0.0)
        gradients.append(limit)
    return Model(power, memory, gradients, varies)


def take_decay(runs, model):
    """The same model with a multiple of the parameters taken out of the gradient, or None without one.

    For each parameter the share is its own, since biases are often left out.
    """
    shares = {name: [] for name in runs.names}
    for place, gradient in zip(runs.places, model.gradients, strict=True):
        slopes, names = place.slopes, runs.names
        columns = [joint(slopes, slopes), *_decay_columns(runs, place)]
        if len(columns[0]) <= len(columns) + 1:
            return None
        answer, *_ = np.linalg.lstsq(np.stack(columns, axis=1), joint(gradient, slopes), rcond=None)
        for name, share in zip(names, answer[1:], strict=True):
            shares[name].append(share)
    decay = {name: float(np.median(found)) for name, found in shares.items()}
    if not any(share > 1e-6 for share in decay.values()):
        return None
    gradients = [
        {name: gradient[name] - decay[name] * _entries(runs, place, name) for name in runs.names}
        for place, gradient in zip(runs.places, model.gradients, strict=True)
    ]
    return Model(model.power, model.memory, gradients, model.varies, decay)


def shrinking(runs, takes_rate):
    """Yield the models of a step that multiplies the parameters by a number below 1."""
    shares = []
    for place in runs.places:
        columns = [joint(place.slopes, place.slopes), *_decay_columns(runs, place)]
        for updates in place.updates:
            now = joint(updates, place.slopes)
            if len(now) <= len(columns) + 1:
                return
            shares.append(np.linalg.lstsq(np.stack(columns, axis=1), now, rcond=None)[0][1:])
    shares = np.array(shares)
    share = float(np.median(shares))
    if not 1e-6 < share < 0.5 or np.ptp(shares) > 0.02 * share:
        return
    for model in models(_without(runs, share), takes_rate):
        yield replace(model, shrink=share)


def _without(runs, share):
    """The same runs, with a part of the parameters put back in each step."""

    def put_back(place, updates):
        return {name: update - share * _entries(runs, place, name) for name, update in updates.items()}

    places = [
        replace(place, updates=[put_back(place, updates) for updates in place.updates])
        for place in runs.places
    ]
    rate, updates = runs.first
    return replace(runs, places=places, first=(rate, put_back(runs.places[0], updates)))


def is_adaptive(runs):
    """Whether the first step moves all entries equally far, as updates that divide by the gradient do."""
    place = runs.places[0]
    steps, slopes = joint(runs.first[1], place.slopes), joint(place.slopes, place.slopes)
    moved = np.abs(steps[np.abs(slopes) > 1e-3 * np.abs(slopes).max(initial=0.0)])
    return len(moved) > 2 and bool(moved.max() > 0) and float(np.ptp(moved)) <= 0.02 * float(moved.max())


@dataclass(frozen=True)
class Adaptive:
    """A rule that divides by the size of the gradient, and what it is fed with."""

    betas: tuple
    corrected: bool
    keeps_sum: bool
    sign: float
    decay: float
    error: float


def adaptive_rule(runs):
    """The best of the usual adaptive rules, with gradients as they are or added up from step to step."""
    found = []
    for fed in product(product(*BETAS), (True, False), (False, True), (1.0, -1.0)):
        rule = Adaptive(*fed, 0.0, _misfit(runs, *fed, 0.0))
        if rule.error < SURE:
            return rule
        found.append(rule)
    best = sorted(found, key=_error)[:4]
    return min(map(partial(_with_decay, runs), best), key=_error)


def _error(rule):
    return rule.error


def _with_decay(runs, rule):
    """Find the weight decay with which a rule fits best, on ever finer grids."""
    fed = (rule.betas, rule.corrected, rule.keeps_sum, rule.sign)
    low, high = 0.0, 0.5
    for _ in range(6):
        grid = np.linspace(low, high, 11)
        errors = [_misfit(runs, *fed, decay) for decay in grid]
        best = int(np.argmin(errors))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, 10)]
    return Adaptive(*fed, float(grid[best]), float(errors[best]))


def _misfit(runs, betas, corrected, keeps_sum, sign, decay):
    """The mean difference between the steps and those of a rule, in units of the learning rate."""
    mean = square = total = 0.0
    places = [runs.places[0], *(place for place in runs.places for _ in SHRINK)]
    errors = []
    for call, (place, (rate, updates)) in enumerate(zip(places, _calls(runs), strict=True), 1):
        own = [
            sign * np.nan_to_num(place.slopes[name]) + decay * _entries(runs, place, name)
            for name in runs.names
        ]
        total = total + np.concatenate(own)
        gradient = total if keeps_sum else np.concatenate(own)
        mean = betas[0] * mean + (1 - betas[0]) * gradient
        square = betas[1] * square + ((1 - betas[1]) or 1.0) * gradient**2
        fix = [(1 - beta**call or 1.0) if corrected else 1.0 for beta in betas]
        step = (mean / fix[0]) / (np.sqrt(square / fix[1]) + 1e-8)
        seen = np.concatenate([updates[name] for name in runs.names]) / rate
        keep = np.concatenate(list(valid(place.slopes).values()))
        errors.append(np.abs(step - seen)[keep].mean())
    return float(np.mean(errors))
