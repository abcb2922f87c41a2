"""Explains what a training step does by the defects of the table, as few as possible."""

import numpy as np

from ._loss_fits import Fit, fit
from ._report import Finding
from ._spellings import family
from ._step_calls import StepError, writes
from ._step_models import adaptive_rule, is_adaptive, joint, look_ahead, models, shrinking, take_decay
from ._step_order import late, own_lengths
from ._step_patterns import other_losses, parts_of_the_batch

LOOSE = 1e-3
"""The relative error of a gradient that was extrapolated to a learning rate of 0."""
SCALES = {
    "factor",
    "factor-two",
    "averaged-twice",
    "summed-not-averaged",
    "learning-rate-inside",
    "sign-flipped",
}
"""Defects that must show at all places, and are not believed of one."""
STEADY = 0.5
"""How much a gradient may change with the learning rate, to be looked at array by array."""
EXPLAINED = 0.05
"""How far the steps of an adaptive rule may be from those that were seen, in learning rates."""

UNMOVED = (
    "The step changes no parameter and returns none. Return the new ones, or change those that came, as "
    "params[name] -= lr * gradient does; params = ... inside of a function reaches nobody outside."
)
SEVERAL = (
    "The parameters end as after several steps in one call, each from where the one before has led; the "
    "gradient of a single step cannot be told."
)


def explain(runs, step, predict):
    """Return (findings, notes, gradients at the first place or None for "cannot tell")."""
    findings, notes, theirs = _explanation(runs, step, predict)
    return ([], [*notes, SEVERAL], None) if _are_several_steps(runs, findings) else (findings, notes, theirs)


def _are_several_steps(runs, findings):
    """Whether all parameters, and not only the later ones, follow gradients after an update, and too far."""
    late = {name for one in findings if one.defect == "updated-weight-used" for name in one.where}
    longer = {"factor-two", "factor", "summed-not-averaged"} & {one.defect for one in findings}
    return late == set(runs.names) and bool(longer)


def _explanation(runs, step, predict):
    """The same, with what may be several steps as one."""
    if not any(np.any(update) for place in runs.places for update in place.updates[0].values()):
        if not writes(step, runs.places[0], runs.places[0].rates[0]):
            return [], [UNMOVED], None
        return [Finding("cleared-too-early", runs.names)], [], _zeros(runs)
    facts = Facts(runs, step, predict)
    best = _simplest(runs, facts, step)
    if best is None and is_adaptive(runs):
        return _adaptive(runs)
    if best is None:
        for name, slopes in other_losses(runs, step, predict):
            best = _simplest(runs, facts, step, slopes, name)
            if best:
                break
    best = best or _clipped(runs, step) or late(runs, step) or _partly(runs, facts, step)
    return best or own_lengths(runs, step) or _parameter_by_parameter(runs, facts, step)


class Facts:
    """What is known of the loss: whether it is a mean, a square, and over how many outputs."""

    def __init__(self, runs, step, predict):
        place = runs.places[0]
        shown = place.t if predict is None else np.asarray(predict(place.params, place.x))
        self.outputs = max(1, shown.size // place.rows) if shown.dtype.kind == "f" else 1
        self.is_mean = _is_mean(step, place)
        self.is_square = _is_square(step, place)
        self.normalisers = (1 / self.outputs, 1.0)
        """What a loss may have in front, beside 1 / N: a mean over the outputs or not."""


def _is_mean(step, place):
    """Whether the loss of the same batch twice over is the same."""
    once = step.loss(place.params, place.x, place.t)
    try:
        axis = 0 if place.x.shape[0] == place.rows else 1
        both = (
            np.concatenate([array, array], axis=min(axis, array.ndim - 1)) for array in (place.x, place.t)
        )
        return bool(np.isclose(step.loss(place.params, *both), once, rtol=1e-4))
    except Exception:
        return True


def _is_square(step, place):
    """Whether the loss is a parabola in the targets."""
    if place.t.dtype.kind != "f":
        return False
    rng = np.random.default_rng(0)
    exact = {name: array.astype(np.float64) for name, array in place.params.items()}
    x, t = place.x.astype(np.float64), place.t.astype(np.float64)
    way = rng.standard_normal(t.shape)

    def bend(size):
        values = [float(step.loss(exact, x, t + far * size * way)) for far in (1, 0, -1)]
        return values[0] - 2 * values[1] + values[2]

    try:
        return bool(bend(1.0) > 0 and np.isclose(bend(2.0), 4 * bend(1.0), rtol=1e-6))
    except Exception:
        return False


def _zeros(runs):
    return {name: np.zeros(len(chosen)) for name, chosen in runs.entries.items()}


def _simplest(runs, facts, step, patterns=None, other=""):
    """The model with the fewest findings under which all gradients are the true ones, or `patterns`."""
    patterns = patterns or [place.slopes for place in runs.places]
    found = []
    for model in _all_models(runs, step):
        scale = _fit(runs, model, patterns, runs.names)
        if scale is not None:
            if model.decay and max(model.varies.values()) > _unsteadiness(runs, model):
                continue
            unit = _own_unit(model, scale)
            findings = _findings(runs, facts, model, scale, other, unit)
            theirs = {name: array / unit for name, array in model.gradients[0].items()}
            if not findings:
                return findings, _notes(model, scale, step.takes_rate), theirs
            found.append(
                (
                    len(findings) + _oddity(model, scale, findings),
                    findings,
                    _notes(model, scale, step.takes_rate),
                    theirs,
                )
            )
    return min(found, key=lambda it: it[0])[1:] if found else None


def _oddity(model, scale, findings):
    """How much less usual than the plain rule an update is, in findings.

    With a momentum of any size and a part of the gradient of any size many things can be explained.
    """
    moving = any(finding.defect == "updated-weight-used" for finding in findings)
    if not 0 < model.memory < 1:
        return 0.05 * moving
    return 0.1 + 0.9 * (abs(scale.constant) < 0.999) + 1.5 * moving


def _all_models(runs, step):
    """All models, those with decay and those that look ahead last."""
    plain = list(models(runs, step.takes_rate))
    yield from plain
    for model in plain:
        without = take_decay(runs, model)
        if without is not None:
            yield without
    yield from look_ahead(runs)
    yield from shrinking(runs, step.takes_rate)


def _fit(runs, model, patterns, names):
    """What all gradients of a model are times the patterns, as a Fit; None if no number will do."""
    varying = max(model.varies[name] for name in names)
    if varying > 20:
        return None
    rtol = max(5 * runs.tolerance, LOOSE * min(1.0, 30 * varying))
    arrays, wanted = [], []
    for place, gradient, pattern in zip(runs.places, model.gradients, patterns, strict=True):
        slopes = {name: place.slopes[name] + 0 * pattern[name] for name in names}
        arrays.append(joint(gradient, slopes))
        wanted.append(joint(pattern, slopes))
    tolerances = [rtol * np.abs(array).max(initial=0.0) + 1e-11 for array in arrays]
    return fit(arrays, wanted, tolerances, [(place.rows, 1) for place in runs.places])


def _findings(runs, facts, model, scale, other, unit):
    names, findings = runs.names, []
    if model.memory == 1.0:
        findings.append(Finding("not-cleared", names, {"factor": 2.0}))
    moving = tuple(name for name in names if model.varies[name] > _unsteadiness(runs, model))
    if moving:
        findings.append(Finding("updated-weight-used", moving))
    if other:
        expected = "the squared error" if facts.is_square else "another one"
        findings.append(Finding("other-loss", names, {"other": other, "expected": expected}))
        scale = Fit(scale.constant, scale.samples + 1)
    if model.power == 2:
        rate = runs.places[0].rates[0]
        findings.append(Finding("learning-rate-inside", names, {"factor": rate, "other": f"{rate:g}"}))
    scale = Fit(scale.constant / unit, scale.samples)
    return findings + _factors(runs, facts, scale, names, is_other=bool(other))


def _own_unit(model, scale):
    """The constant that belongs to the update and not to its gradient: an unknown rate, or dampening."""
    constant = abs(scale.constant)
    if model.power == 0 or (0 < model.memory < 1 and constant < 1):
        return constant
    if model.shrink and abs(constant + model.shrink - 1) < 1e-2 * model.shrink:
        return constant
    return 1.0


def _unsteadiness(runs, model):
    """How much a gradient seems to change with the learning rate by the rounding of the parameters."""
    eps = np.finfo(np.float32 if runs.is_float32 else np.float64).eps
    noise = 0.0
    for place, gradient in zip(runs.places, model.gradients, strict=True):
        largest = max(np.abs(array).max(initial=0.0) for array in place.params.values())
        size = max(np.abs(array).max(initial=0.0) for array in gradient.values())
        noise = max(noise, eps * largest / min(place.rates) ** model.power / max(size, 1e-30))
    return max(3e-6, 20 * noise) * (5 if model.memory else 1)


def _factors(runs, facts, scale, names, is_other=False):
    """The findings for a gradient that is a multiple of the right one."""
    findings = [Finding("sign-flipped", names)] if scale.constant < 0 else []
    constant, rows = abs(scale.constant), runs.places[0].rows
    plain = {1: (1.0, facts.outputs), -1: (1.0, 1 / facts.outputs)}
    units = facts.normalisers if is_other else plain.get(int(np.sign(scale.samples)), (1.0,))
    unit = _unit(constant, units)
    constant /= unit
    facts_of_it = {"n": rows, "factor": float(rows) ** scale.samples * (1.0 if is_other else unit)}
    if scale.samples > 0:
        findings.append(
            Finding("summed-not-averaged" if facts.is_mean else "batch-size-hides", names, facts_of_it)
        )
    if scale.samples < 0:
        defect = "averaged-twice" if facts.is_mean else "all-averaged"
        findings.append(Finding(defect, names, facts_of_it))
    if abs(constant - 1) > 1e-2 * (1 if runs.is_float32 else 1e-2):
        two = facts.is_square and _is_near(constant, (0.5, 2.0))
        findings.append(Finding("factor-two" if two else "factor", names, {"factor": constant}))
    return findings


def _is_near(number, others):
    return any(abs(number / other - 1) < 1e-2 for other in others)


def _unit(constant, units):
    """The usual constant in a factor: the factor itself, or what leaves a 2 or 1/2, or the first."""
    for left in ((1.0,), (0.5, 2.0)):
        for unit in units:
            if _is_near(constant / unit, left):
                return unit
    return units[0]


def _notes(model, scale, takes_rate):
    notes = []
    if model.power == 0:
        rate = "given learning rate makes no difference" if takes_rate else "step takes no learning rate"
        notes.append(
            f"The {rate}; it was taken to be {abs(scale.constant):.4g}, so that a constant factor cannot be "
            "seen."
        )
    if 0 < model.memory < 1:
        part = (
            f" and takes {abs(scale.constant):.4g} of the new gradient" if abs(scale.constant) < 0.999 else ""
        )
        notes.append(f"The update keeps {model.memory:g} of the last step{part}: momentum.")
    if model.shrink:
        notes.append(f"Each step also takes away {model.shrink:.4g} of the parameters, whatever the rate.")
    kept = {name: share for name, share in model.decay.items() if share > 1e-6}
    if kept:
        shares = ", ".join(f"{share:.4g} for {name}" for name, share in kept.items())
        notes.append(
            f"Beside the gradient the update takes away a part of the parameters, weight decay: {shares}."
        )
    return notes


_SIMPLER = {0.0: "one that takes the sign alone", 1.0: "AdaGrad does"}
"""Rules without a running mean, by what they keep of the square."""


def _adaptive(runs):
    """Steps of one length for all entries: Adam and its relatives."""
    rule = adaptive_rule(runs)
    if rule.error > EXPLAINED:
        notes = [
            "All entries move equally far in the first step, as with Adam; which rule it is, and whether its "
            "gradients are right, cannot be told."
        ]
        return [], notes, None
    findings = [Finding("not-cleared", runs.names, {"factor": 2.0})] if rule.keeps_sum else []
    findings += [Finding("sign-flipped", runs.names)] if rule.sign < 0 else []
    kind = f"Adam does with {rule.betas}" if rule.betas[0] else _SIMPLER.get(rule.betas[1], "RMSProp does")
    notes = [
        f"The steps do not follow the size of the gradient, as {kind}, or one that clips every entry: a "
        "factor in all gradients cannot be seen."
    ]
    place = runs.places[0]
    return findings, notes, {name: rule.sign * array for name, array in place.slopes.items()}


def _clipped(runs, step):
    """Gradients that are shortened to one length where they are longer."""
    for model in models(runs, step.takes_rate):
        factors, lengths = [], []
        for place, gradient in zip(runs.places, model.gradients, strict=True):
            own, slopes = joint(gradient, place.slopes), joint(place.slopes, place.slopes)
            factor = float(own @ slopes / (slopes @ slopes))
            if np.abs(own - factor * slopes).max() > 10 * runs.tolerance * np.abs(own).max():
                break
            factors.append(factor)
            lengths.append(factor * float(np.linalg.norm(slopes)))
        shortened = [length for factor, length in zip(factors, lengths, strict=True) if factor < 0.999]
        whole = [length for factor, length in zip(factors, lengths, strict=True) if 0.999 <= factor < 1.001]
        sound = len(factors) == len(runs.places) == len(shortened) + len(whole) and len(shortened) > 1
        if sound and np.ptp(shortened) <= 1e-3 * max(shortened) and max(whole, default=0) <= max(shortened):
            note = f"Gradients longer than {max(shortened):.4g} are shortened to that length: clipping."
            return [], [note], runs.places[0].slopes
    return None


def _partly(runs, facts, step):
    """Gradients of a part of the batch only: cleared while the batch was still being added up."""
    for slopes in parts_of_the_batch(runs, step):
        for model in models(runs, step.takes_rate):
            scale = _fit(runs, model, slopes, runs.names)
            if scale is not None and scale.constant > 0:
                return [Finding("cleared-too-early", runs.names)], [], model.gradients[0]
    return None


def _parameter_by_parameter(runs, facts, step):
    """Explain each gradient alone, under the model that explains most of them."""
    patterns = [place.slopes for place in runs.places]
    best, most = None, -1
    for model in models(runs, step.takes_rate):
        if best is not None and max(model.varies.values()) > STEADY:
            continue
        scales = {name: _fit(runs, model, patterns, (name,)) for name in runs.names}
        still = [name for name in runs.names if not any(gradient[name].any() for gradient in model.gradients)]
        count = sum(scale is not None for scale in scales.values()) + len(still)
        if count > most:
            best, most = (model, scales, still), count
    model, scales, still = best
    findings = _findings_of_parts(runs, facts, model, scales, still)
    left = [name for name in runs.names if scales[name] is None and name not in still]
    findings += _by_arrays(runs, step, model, left)
    named = {name for finding in findings for name in finding.where}
    theirs = {name: array for name, array in model.gradients[0].items() if name in named or name not in left}
    return findings, _notes(model, Fit(1.0), step.takes_rate), theirs


def _findings_of_parts(runs, facts, model, scales, still):
    findings = [
        Finding("bias-zero" if is_bias(name, runs.shapes[name]) else "gradient-zero", (name,))
        for name in still
    ]
    if model.memory == 1.0:
        findings.append(Finding("not-cleared", runs.names, {"factor": 2.0}))
    for name, scale in scales.items():
        if scale is None:
            continue
        rows, bias = runs.places[0].rows, is_bias(name, runs.shapes[name])
        if scale.samples:
            down = "bias-averaged" if bias else "weight-averaged"
            up = "bias-times-batch" if bias else "batch-size-hides"
            facts_of_it = {"n": rows, "factor": float(rows) ** scale.samples}
            findings.append(Finding(down if scale.samples < 0 else up, (name,), facts_of_it))
        constant = scale.constant if model.power else float(np.sign(scale.constant))
        findings += _factors(runs, facts, Fit(constant), (name,))
    return findings


def is_bias(name, shape):
    """Whether a parameter is a bias, by its shape or else by its name."""
    return len(shape) == 1 or family(name) == "bias"


def _by_arrays(runs, step, model, left):
    """Ask the doctor of arrays about the gradients that are left, as far as all their entries are known."""
    place = runs.places[0]
    whole = [name for name in left if len(runs.entries[name]) == int(np.prod(runs.shapes[name]))]
    if not whole or max(model.varies.values()) > STEADY:
        return []
    from .. import doctor

    exact = {name: array.astype(np.float64) for name, array in place.params.items()}
    grads = {name: model.gradients[0][name].reshape(runs.shapes[name]) for name in whole}

    def loss(params):
        return step.loss(exact | params, place.x, place.t)

    try:
        report = doctor.diagnose(loss, {name: exact[name] for name in whole}, grads)
    except (StepError, ValueError, TypeError, AttributeError):
        return []
    return [finding for finding in report.findings if finding.defect not in SCALES]
