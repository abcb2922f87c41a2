"""Explain gradients: the simplest slips that give exactly the numbers that came, in all probes at once."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product

import numpy as np

CHOICES = 8
"""How many explanations of one array are compared with those of the others."""
LARGEST_EPSILON = 0.5
ROUND = 1e-6
SILENT = "silent"
"""Stands for a case in which a formula gives zeros only, so that no factor can be read off."""


@dataclass(frozen=True)
class Case:
    """One forward and backward pass of a dense layer, a sample in each row, as in the book.

    ``came`` are the gradients as they came, ``shapes`` what their shapes should be. ``d_out`` belongs to the
    activation: where the layer mixes rows afterwards, ``upstream`` is what came from above.
    """

    x: np.ndarray
    weight: np.ndarray
    bias: np.ndarray
    d_out: np.ndarray
    z: np.ndarray
    came: dict
    shapes: dict
    upstream: np.ndarray | None = None

    @property
    def n(self):
        return len(self.x)

    @property
    def sides(self):
        """(rows, out, in)."""
        return self.n, self.d_out.shape[1], self.x.shape[1]


@dataclass(frozen=True)
class Gate:
    """A way to get d_z from d_out; the right one has no name."""

    defect: str
    d_z: Callable
    """Takes a `Case`."""
    plus: Callable | None = None
    """With it, an unknown multiple of ``plus(case)`` is added; where that is negative or the id ends with a
    colon, nothing else may be unknown."""
    known: dict = field(default_factory=dict, compare=False)
    """What was computed for a case, since a measured slope takes a forward pass."""

    def at(self, case):
        """d_z of a case."""
        if id(case) not in self.known:
            self.known[id(case)] = (case, self.d_z(case))
        return self.known[id(case)][1]


@dataclass(frozen=True)
class Form:
    """A way to get one gradient from d_z; ``arrays(case, d_z)`` gives what it may be, in canonical shape."""

    defect: str
    arrays: Callable
    read: Callable
    """``read(case)`` is the gradient that came, in the same shape, or None where it does not fit."""
    tag: str = ""


@dataclass(frozen=True)
class Law:
    """How the factor of a gradient follows the sizes: ``constant * n**n * out**out * in**in``."""

    constant: float
    powers: tuple[int, int, int]

    def __str__(self):
        over, under = [], []
        for power, name in zip(self.powers, ("n", "out_features", "in_features"), strict=True):
            part = name if abs(power) == 1 else f"{name}**{abs(power)}"
            (over if power > 0 else under).extend([part] if power else [])
        if abs(self.constant - 1) > ROUND or not over:
            over.insert(0, f"{self.constant:.6g}")
        bottom = " * ".join(under)
        return " * ".join(over) + (f" / ({bottom})" if len(under) > 1 else f" / {bottom}" if under else "")


@dataclass(frozen=True)
class Explanation:
    """One array explained: gate, form, factor, and what was added to the derivative."""

    gate: str
    form: str
    law: Law
    epsilon: float = 0.0
    tag: str = ""
    silent: bool = False
    """Whether the gradient is zero in all cases, so that nothing can be told from it but that it is."""

    @property
    def cost(self):
        """How many slips it takes."""
        constant = abs(self.law.constant)
        slips = [self.gate, self.form, self.law.constant < 0, abs(constant - 1) > 1e-4, *self.law.powers]
        return sum(bool(slip) for slip in slips)

    @property
    def kinds(self):
        """What the explanation shares with those of other arrays."""
        kinds = {("gate", self.gate), ("form", self.form)}
        if self.law.constant < 0:
            kinds.add(("sign", ""))
        if abs(abs(self.law.constant) - 1) > 1e-4:
            kinds.add(("constant", f"{abs(self.law.constant):.3g}"))
        kinds |= {("power", f"{axis}{power}") for axis, power in enumerate(self.law.powers) if power}
        return {kind for kind in kinds if kind[1] or kind[0] == "sign"}


@dataclass
class Target:
    """One array to explain: the forms that its gradient may take, and what came of it all."""

    name: str
    forms: list
    options: list = field(default_factory=list)


def explain(targets, gates, cases, rtol):
    """Find for each target all explanations, then the choice that needs the fewest slips together.

    Returns:
        ``{target name: Explanation or None}``.
    """
    for target in targets:
        right = _fit(gates[0], target.forms[0], cases, rtol)
        if right is not None and not right.cost and not right.tag:
            target.options = [right]
            continue
        found = [
            explanation
            for gate, form in product(gates, target.forms)
            if (explanation := _fit(gate, form, cases, rtol)) is not None
        ]
        target.options = sorted(found, key=lambda one: one.cost)[:CHOICES]
    explained = [target for target in targets if target.options]
    best = None
    for choice in product(*(target.options for target in explained)):
        tags = {one.tag for one in choice if one.tag}
        if len(tags) > 1:
            continue
        slips = set().union(*(one.kinds for one in choice))
        score = (len(slips), sum(one.cost for one in choice))
        if best is None or score < best[0]:
            best = (score, choice)
    chosen = {} if best is None else dict(zip((target.name for target in explained), best[1], strict=True))
    return {target.name: chosen.get(target.name) for target in targets}


def _fit(gate, form, cases, rtol):
    """The explanation by this gate and this form if it holds in all cases, else None."""
    candidates, sides = [], []
    for case in cases:
        came = form.read(case)
        fits = None if came is None else _fit_case(gate, form, case, came, rtol)
        if not fits:
            return None
        if fits is not SILENT:
            candidates.append(fits)
            sides.append(case.sides)
    if not candidates:
        right = not gate.defect and not form.defect
        return Explanation("", "", Law(1.0, (0, 0, 0)), 0.0, form.tag, silent=True) if right else None
    found = _law(candidates, sides, rtol)
    if found is None:
        return None
    law, epsilons = found
    epsilon = float(np.median(epsilons))
    if gate.plus is not None:
        steady = np.max(np.abs(np.array(epsilons) - epsilon)) <= max(1e-3 * abs(epsilon), 10 * rtol)
        if not steady or not 100 * rtol < abs(epsilon) <= LARGEST_EPSILON:
            return None
        fitted_twice = abs(abs(law.constant) - 1) > 1e-4
        if fitted_twice and (gate.defect.endswith(":") or epsilon < 0):
            return None
    return Explanation(gate.defect, form.defect, law, epsilon, form.tag)


def _fit_case(gate, form, case, came, rtol):
    """The (factor, epsilon) with which arrays of the form give what came, or SILENT if none can be told."""
    predictions = form.arrays(case, gate.at(case))
    extras = form.arrays(case, gate.plus(case)) if gate.plus else [None] * len(predictions)
    fits = [
        _fit_array(prediction, extra, came, case, rtol)
        for prediction, extra in zip(predictions, extras, strict=True)
        if prediction.shape == came.shape
    ]
    return SILENT if SILENT in fits else [fit for fit in fits if fit is not None]


def _fit_array(prediction, extra, came, case, rtol):
    size = float(np.abs(prediction).max(initial=0.0))
    floor = rtol * _terms(case) * float(np.abs(case.d_out).max(initial=0.0))
    if size <= floor and float(np.abs(came).max(initial=0.0)) <= 10 * floor:
        return SILENT
    fitted = _factors(prediction, extra, came)
    if fitted is SILENT or fitted is None:
        return fitted
    factor, share = fitted
    expected = factor * prediction + (share * extra if extra is not None else 0.0)
    tolerance = rtol * max(abs(factor) * size, abs(share) * size) * _terms(case)
    fits = np.abs(expected - came).max(initial=0.0) <= tolerance and abs(factor) > 1e-9
    return (factor, share / factor) if fits else None


def _terms(case):
    """How much rounding grows by the sums: the root of the number of terms."""
    return float(np.sqrt(max(case.sides)))


def _factors(prediction, extra, came):
    """The factor of the prediction and that of the extra which come closest; None or SILENT without one."""
    flat, target = prediction.ravel(), came.ravel()
    norm = float(flat @ flat)
    if norm == 0:
        return SILENT if extra is not None else None
    if extra is None:
        return float(flat @ target) / norm, 0.0
    columns = np.stack([flat, extra.ravel()], axis=1)
    solution, _, rank, _ = np.linalg.lstsq(columns, target, rcond=None)
    return tuple(map(float, solution)) if rank == 2 and len(flat) > 1 else SILENT


def _law(candidates, sides, rtol):
    """The simplest law that the cases have in common, and the epsilons that go with it; None without one.

    Args:
        candidates: for each case the (factor, epsilon) that fit it. If one unit alone is open, several do.
        sides: (rows, out, in) of each case.
    """
    sides = np.array(sides, dtype=np.float64)
    tried = ((0, -1, 1, -2, 2), (0, -1, 1), (0, -1, 1))
    ranges = [powers if len(set(sides[:, axis])) > 1 else (0,) for axis, powers in enumerate(tried)]
    sure = min(range(len(candidates)), key=lambda number: len(candidates[number]))
    for powers in sorted(product(*ranges), key=lambda powers: sum(map(abs, powers))):
        sizes = np.prod(sides ** np.array(powers), axis=1)
        constants = [factor / sizes[sure] for factor, _ in candidates[sure]]
        for constant in sorted(constants, key=lambda constant: abs(abs(constant) - 1) > ROUND):
            chosen = [
                min(fits, key=lambda fit: abs(fit[0] / size - constant))
                for fits, size in zip(candidates, sizes, strict=True)
            ]
            found = np.array([factor for factor, _ in chosen]) / sizes
            if np.max(np.abs(found - constant)) <= max(20 * rtol, 1e-7) * abs(constant):
                return Law(float(np.median(found)), powers), [epsilon for _, epsilon in chosen]
    return None
