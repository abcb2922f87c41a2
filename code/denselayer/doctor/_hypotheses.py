"""The slips that a dense layer is tried on: ways to get d_z from d_out, and each gradient from d_z."""

import numpy as np

from ._curves import KNOWN, known
from ._explain import Form, Gate


def gates_of(dense, cases):
    """All ways to get d_z, the right one first, without those that cannot be told from an earlier one."""
    curve = dense.curve
    right = Gate("", lambda case: case.d_out * curve.slope(case.z))
    missing = Gate("gate-missing", lambda case: case.d_out)
    gates = [
        right,
        Gate("gate-on-upstream", lambda case: case.d_out * curve.slope(case.d_out)),
        missing,
        Gate("gate-twice", lambda case: case.d_out * curve.slope(case.z) ** 2),
        Gate("derivative-at-output", lambda case: case.d_out * curve.slope(curve.value(case.z))),
    ]
    if curve.from_output is not None:
        gates.append(Gate("derivative-at-input", lambda case: case.d_out * curve.from_output(case.z)))
    gates += [
        Gate("upstream-ignored", lambda case: curve.slope(case.z)),
        Gate("activation-for-derivative", lambda case: case.d_out * curve.value(case.z)),
        *_other_derivatives(curve),
    ]
    if dense.mixing:
        gates.insert(1, Gate("batch-mixed", lambda case: case.upstream * curve.slope(case.z)))
    different, seen = [], []
    for gate in gates:
        values = [gate.at(case) for case in cases]
        if not any(all(map(np.allclose, values, other)) for other in seen):
            different.append(gate)
            seen.append(values)
    if missing in different:
        different.append(Gate("epsilon-in-derivative", right.d_z, missing.d_z))
        if curve.name in ("relu", "leaky_relu"):
            below = Gate("", lambda case: case.d_out * (case.z < 0))
            different.append(Gate("other-derivative:", right.d_z, below.d_z))
    return different


def _other_derivatives(curve):
    """Derivatives of other activations, taken at z or as a formula of the output."""
    for name in KNOWN[1:]:
        other = known(name)
        if name != curve.name:
            yield Gate(f"other-derivative:{name}", lambda case, other=other: case.d_out * other.slope(case.z))
            if other.from_output is not None:
                yield Gate(
                    f"other-derivative:{name}",
                    lambda case, other=other: case.d_out * other.from_output(curve.value(case.z)),
                )


def forms_of(names, name):
    """The ways to get one gradient from d_z, the right one first."""
    if name == "x":
        return [
            Form("", lambda case, d_z: [d_z @ case.weight], names.read_x),
            Form("input-weight-transposed", _turned_input, names.read_x),
            Form("wrong-shape", lambda case, d_z: [d_z @ case.weight], names.read_x_reshaped),
        ]
    if name == "weight":
        right = lambda case, d_z: [d_z.T @ case.x]  # noqa: E731
        return [
            Form("", right, names.reader("weight", turned=False), names.tag("as it is")),
            Form("weight-transposed", right, names.reader("weight", turned=True), names.tag("turned")),
            Form("wrong-shape", right, names.reader("weight", None), names.tag("reshaped")),
        ]
    forms = [
        Form(defect, arrays, names.reader("bias", turned=turned), names.tag(tag))
        for turned, tag in ((False, "as it is"), (True, "turned"), (None, "reshaped"))
        for defect, arrays in (("", _summed), ("bias-times-input", _times_input))
        if names.augmented or turned is False
    ]
    if not names.augmented:
        forms += [
            Form("wrong-shape", _summed, names.reader("bias", None)),
            Form("bias-times-input", lambda case, d_z: [d_z.T @ case.x], names.read_bias_as_weight),
            Form("bias-not-summed", lambda case, d_z: [d_z], names.read_bias_as_batch),
            Form("bias-wrong-axis", lambda case, d_z: [d_z.sum(axis=1)], names.read_bias_as_rows),
        ]
    return forms


def _turned_input(case, d_z):
    square = case.weight.shape[0] == case.weight.shape[1]
    return [d_z @ case.weight.T] if square else []


def _summed(case, d_z):
    return [d_z.sum(axis=0)]


def _times_input(case, d_z):
    forms = [d_z.T @ case.x.sum(axis=1), d_z.T @ case.x.mean(axis=1)]
    return [*forms, (d_z * case.x).sum(axis=0)] if d_z.shape == case.x.shape else forms
