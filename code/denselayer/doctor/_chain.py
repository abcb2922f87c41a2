"""Recognise a network of dense layers in a row, and examine it layer by layer, from the top."""

from dataclasses import dataclass
from itertools import product

import numpy as np

from ._affine import CLOSE, POINTS, REACH, Dense, Layout, parts_of
from ._curves import KNOWN, known, leaky
from ._explain import Case, Target, explain
from ._hypotheses import forms_of, gates_of
from ._measured import LOST, merged
from ._report import ArrayVerdict, Finding, worst_entries
from ._shapes import settled
from ._slips import Names, findings_of
from ._spellings import family
from ._structure import BATCHES, ROUGH, SINGLE, STRICT, Outcome, absent, crashed, theirs

SLOPES = (0.01, 0.1, 0.2)
LAYERS = 5


@dataclass(frozen=True)
class Chain:
    """The layers of a network, first to last, and the axis of the batch."""

    layers: tuple
    batch_axis: int

    @property
    def description(self):
        """What was found out about it, in words."""
        names = [layer.curve.name.replace("_", " ") for layer in self.layers]
        batch = ("rows", "columns")[self.batch_axis]
        return f"{len(names)} dense layers, activations {', '.join(names)}, batch as {batch}"

    def passes(self, params, x):
        """(inputs, pre-activations) of all layers, a sample in each row."""
        inputs, before = [x], []
        for layer in self.layers:
            weight, bias = parts_of(layer.layout, params)
            before.append(inputs[-1] @ weight.T + bias)
            inputs.append(layer.curve.value(before[-1]))
        return inputs, before


def recognise_chain(subject):
    """A `Chain` if the output is that of dense layers in a row, else None."""
    pairs = _pairs(subject.params())
    if subject.single or len(pairs) < 2 or len(pairs) > LAYERS:
        return None
    rng = np.random.default_rng(31)
    try:
        run, stored = _loaded(subject, rng)
        x = REACH * run.draw_input(POINTS, rng)
        out = np.asarray(run.forward(x.copy()), dtype=np.float64)
    except Exception:
        return None
    rows, out = (array.T if subject.batch_axis else array for array in (x.astype(np.float64), out))
    close = CLOSE[np.dtype(subject.dtype)] * np.abs(out).max(initial=1e-300)
    for axes in _orientations(pairs, stored, rows.shape[1]):
        for chain in _chains(pairs, axes, subject):
            inputs, _ = chain.passes(stored, rows)
            if inputs[-1].shape == out.shape and np.abs(inputs[-1] - out).max() <= 10 * close:
                return chain
    return None


def _pairs(params):
    """(weight, bias or None) of each layer, in the order of the parameters."""
    weights = [name for name, value in params.items() if value.ndim == 2 and not _is_bias(name)]
    biases = [name for name in params if name not in weights]
    if len(biases) not in (0, len(weights)) or not all(_is_bias(name) for name in biases):
        return []
    return list(zip(weights, biases or [None] * len(weights), strict=True))


def _is_bias(name):
    return any(family(part) == "bias" for part in name.split("."))


def _loaded(subject, rng):
    """A clone with random parameters of ordinary size, and these."""
    run, arrays = subject.clone(), {}
    for name, value in run.params().items():
        scale = 1.2 / np.sqrt(max(value.shape)) if value.ndim == 2 and not _is_bias(name) else 0.5
        arrays[name] = (scale * rng.standard_normal(value.shape)).astype(subject.dtype)
    run.load(arrays)
    return run, run.params()


def _orientations(pairs, params, width):
    """The axes of the inputs for which the widths of the layers fit together, all the same way first."""
    for axes in sorted(product((1, 0), repeat=len(pairs)), key=lambda axes: len(set(axes))):
        now = width
        for (weight, _), axis in zip(pairs, axes, strict=True):
            shape = params[weight].shape
            now = shape[1 - axis] if shape[axis] == now else None
            if now is None:
                break
        else:
            yield axes


def _chains(pairs, axes, subject):
    """Chains with one activation between the layers and any after the last."""
    curves = [*map(known, KNOWN), *map(leaky, SLOPES)]
    for hidden, last in product(curves, curves):
        layers = [
            Dense(
                Layout(weight, bias, axis, None, subject.batch_axis),
                last if number == len(pairs) - 1 else hidden,
                subject.batch_axis,
                False,
                np.dtype(subject.dtype),
            )
            for number, ((weight, bias), axis) in enumerate(zip(pairs, axes, strict=True))
        ]
        yield Chain(tuple(layers), subject.batch_axis)


@dataclass(frozen=True)
class Run:
    """One forward and backward pass of a network: what went in, what came, and what is right."""

    params: dict
    inputs: list
    before: list
    upstream: np.ndarray
    came: dict
    shapes: dict
    right: dict


def examine_chain(subject, chain) -> Outcome:
    """Explain the gradients of the last layer, and from what it sends back those of the layer below."""
    runs, errors = [], []
    for n in BATCHES:
        try:
            runs.append(_run(subject, chain, n, np.random.default_rng(300 + n)))
        except Exception as error:
            errors.append(theirs(error))
    if not runs:
        return crashed(subject, errors)
    with np.errstate(all="ignore"):
        return _explained(subject, chain, runs)


def _run(subject, chain, n, rng):
    run, params = _loaded(subject, rng)
    x = _draw(run, chain, params, n, rng)
    out = np.asarray(run.forward(x.copy()))
    d_out = rng.standard_normal(out.shape).astype(subject.dtype)
    shapes = {name: value.shape for name, value in params.items()} | {"x": x.shape}
    came = {
        name: None if gradient is None else settled(np.array(gradient, dtype=np.float64), shapes[name])
        for name, gradient in run.backward(d_out.copy()).items()
    }
    rows, upstream = (array.T if chain.batch_axis else array for array in (x, d_out))
    inputs, before = chain.passes(params, rows.astype(np.float64))
    upstream = upstream.astype(np.float64)
    right = _right(chain, params, inputs, before, upstream, shapes)
    return Run(params, inputs, before, upstream, came, shapes, right)


def _draw(run, chain, params, n, rng):
    """An input of n samples that stay away from the kinks of all activations."""
    many = run.draw_input(16 * n, rng)
    _, before = chain.passes(params, (many.T if chain.batch_axis else many).astype(np.float64))
    curves = [layer.curve for layer in chain.layers]
    near = [curve.nearness(z).max(axis=1) for z, curve in zip(before, curves, strict=True) if curve.nearness]
    best = np.argsort(np.max(near, axis=0) if near else np.zeros(16 * n), kind="stable")[:n]
    return np.ascontiguousarray(np.take(many, best, axis=chain.batch_axis))


def _right(chain, params, inputs, before, d_out, shapes):
    """All right gradients, as they should be stored."""
    right = {}
    for number in reversed(range(len(chain.layers))):
        layer = chain.layers[number]
        d_z = d_out * layer.curve.slope(before[number])
        right |= layer.layout.join(d_z.T @ inputs[number], d_z.sum(axis=0), shapes)
        d_out = d_z @ parts_of(layer.layout, params)[0]
    return right | {"x": d_out.T if chain.batch_axis else d_out}


def _explained(subject, chain, runs):
    rtol = SINGLE if subject.dtype == np.float32 else STRICT
    findings, known_names, ways = [], set(), [Way([run.upstream for run in runs])]
    for number in reversed(range(len(chain.layers))):
        step = min(
            (_step(subject, chain, number, runs, way, rtol) for way in ways), key=lambda step: step.cost
        )
        findings += step.findings
        known_names |= step.explained
        ways = step.further
    arrays = tuple(_verdict(name, runs, known_names, subject.lost) for name in (*subject.names, "x"))
    return Outcome(arrays, merged(findings))


@dataclass(frozen=True)
class Way:
    """What a layer may have sent down in each run, and the finding that this would be."""

    d_out: list
    slips: tuple = ()


@dataclass(frozen=True)
class Step:
    """What was found out about one layer; ``cost`` is (unexplained arrays, slips)."""

    cost: tuple
    findings: list
    explained: set
    further: list


def _step(subject, chain, number, runs, way, rtol):
    """Explain one layer, with what may have come from the layer above."""
    layer, names = chain.layers[number], Names(subject, chain.layers[number])
    cases = [_case(layer, number, run, d_out) for run, d_out in zip(runs, way.d_out, strict=True)]
    if number:
        names.pieces.remove("x")
    missing = {piece: absent(names, piece, cases) for piece in names.pieces}
    targets = [Target(piece, forms_of(names, piece)) for piece in names.pieces if missing[piece] is None]
    gates = gates_of(layer, cases)
    chosen = explain(targets, gates, cases, rtol)
    unknown = sum(one is None for one in chosen.values())
    slips = len(way.slips) + sum(one.cost for one in chosen.values() if one is not None)
    findings = [*way.slips, *(one for one in missing.values() if isinstance(one, Finding))]
    findings += findings_of(names, chosen, cases, spell=False)
    explained = {names.called[piece] for piece in names.pieces if missing[piece] or chosen.get(piece)}
    return Step((unknown, slips), findings, explained, _further(layer, cases, gates, chosen))


def _case(layer, number, run, d_out):
    weight, bias = parts_of(layer.layout, run.params)
    return Case(run.inputs[number], weight, bias, d_out, run.before[number], run.came, run.shapes, d_out)


def _further(layer, cases, gates, chosen):
    """What the layer may send down: with its gates, and turned as well where the weight is square."""
    epsilons = {one.gate: one.epsilon for one in chosen.values() if one is not None}
    used = [gate for gate in gates if gate.defect in epsilons] or gates[:1]
    ways = []
    for gate in used:
        epsilon = epsilons.get(gate.defect, 0.0)
        d_z = [gate.at(case) + (epsilon * gate.plus(case) if gate.plus else 0.0) for case in cases]
        ways.append(Way([one @ case.weight for one, case in zip(d_z, cases, strict=True)]))
        if len(set(cases[0].weight.shape)) == 1:
            slip = Finding("input-weight-transposed", (f"what {layer.layout.weight} sends down",))
            ways.append(Way([one @ case.weight.T for one, case in zip(d_z, cases, strict=True)], (slip,)))
    return ways


def _verdict(name, runs, known_names, lost):
    """The verdict on one array."""
    total = int(np.prod(runs[0].shapes[name]))
    if name in lost and all(run.came.get(name) is None for run in runs):
        return ArrayVerdict(name, "cannot tell", total=total, note=LOST)
    if all(run.came.get(name) is None for run in runs) and name == "x":
        note = "backward gave no gradient for it, as the lowest layer may."
        return ArrayVerdict(name, "not checked", total=total, note=note)
    wrong = next((run for run in runs if not _close(run, name)), None)
    shown = wrong or max(runs, key=lambda run: run.upstream.shape[0])
    came, right = shown.came.get(name), shown.right[name]
    verdict = "healthy" if wrong is None else "wrong" if name in known_names else "cannot tell"
    if came is None or came.shape != right.shape:
        shape = "no array" if came is None else f"the shape {came.shape}"
        return ArrayVerdict(name, "wrong", (), 0, total, f"{shape} came, {right.shape} was expected.")
    return ArrayVerdict(name, verdict, worst_entries(came, right), total, total)


def _close(run, name):
    """Whether a gradient is right up to rounding, also where it should be nearly zero."""
    came, right = run.came.get(name), run.right[name]
    if came is None or came.shape != right.shape:
        return False
    largest = max(np.abs(array).max(initial=0.0) for array in run.right.values())
    size = max(np.abs(right).max(initial=0.0), ROUGH * largest)
    return bool(np.abs(came - right).max(initial=0.0) <= SINGLE * size)
