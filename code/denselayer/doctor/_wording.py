"""Formulas of a slip in the names, the storage and the activation of the layer in which it was found."""

from ..conventions import BATCHES, find

SLOPES = {
    "identity": "1",
    "relu": "(z > 0)",
    "sigmoid": "a * (1 - a)",
    "tanh": "(1 - a**2)",
    "softplus": "sigmoid(z)",
}
AT_OUTPUT = {
    "sigmoid": "sigmoid(a) * (1 - sigmoid(a))",
    "tanh": "(1 - np.tanh(a)**2)",
    "softplus": "sigmoid(a)",
}
AT_INPUT = {"sigmoid": "z * (1 - z)", "tanh": "(1 - z**2)", "softplus": "(1 - np.exp(-z))"}
OTHER_STORAGE = {"out_in": "in_out", "in_out": "out_in"}


def slope_text(curve):
    """The derivative of an activation as code.

    >>> from ._curves import leaky
    >>> slope_text(leaky(0.1))
    'np.where(z > 0, 1, 0.1)'
    """
    if curve.name == "leaky_relu":
        return f"np.where(z > 0, 1, {-float(curve.value(-1.0)):.3g})"
    return SLOPES.get(curve.name, "slope(z)")


def formulas(names, defect, pieces, facts):
    """(computed, right) as code, or empty strings where the table says it as well.

    Args:
        names: the arrays of the layer.
        defect: an id, perhaps with more behind a colon.
        pieces: where it shows, of ``"weight"``, ``"bias"`` and ``"x"``.
        facts: the numbers of the finding.
    """
    defect = defect.partition(":")[0]
    gate = _gate(names.dense.curve, defect, facts)
    if gate:
        return f"d_z = {gate}", f"d_z = d_out * {slope_text(names.dense.curve)}"
    if names.layout is None or names.augmented or names.layout.single:
        return "", ""
    pairs = [(_wrong(names, defect, piece, facts), _code(names, piece)) for piece in pieces]
    if any(not wrong for wrong, _ in pairs):
        return "", ""
    left = [f"d_{names.called[piece]}" for piece in pieces]
    return tuple(
        "; ".join(f"{name} = {code}" for name, code in zip(left, side, strict=True))
        for side in zip(*pairs, strict=True)
    )


def _gate(curve, defect, facts):
    slope = slope_text(curve)
    if defect == "epsilon-in-derivative":
        epsilon = facts["factor"]
        return f"d_out * ({slope} {'-' if epsilon < 0 else '+'} {abs(epsilon)})"
    return {
        "gate-missing": "d_out",
        "gate-on-upstream": f"d_out * {slope.replace('z', 'd_out')}",
        "gate-twice": f"d_out * {slope} * {slope}",
        "derivative-at-output": f"d_out * {AT_OUTPUT.get(curve.name, 'slope(a)')}",
        "derivative-at-input": f"d_out * {AT_INPUT.get(curve.name, 'slope(z)')}",
        "upstream-ignored": slope,
        "activation-for-derivative": "d_out * a",
    }.get(defect, "")


def _code(names, piece, storage=None):
    """The right gradient of one array as code."""
    layout = names.layout
    code = find(f"d_{piece}", storage or layout.storage, BATCHES[layout.batch_axis]).code
    if names.dense.curve.name != "identity":
        code = code.replace("d_out", "d_z")
    if piece == "bias" and names.subject.params()[layout.bias].ndim == 2:
        code = code.replace(")", ", keepdims=True)")
    return code.replace("weight", layout.weight)


def _wrong(names, defect, piece, facts):
    right, factor = _code(names, piece), facts.get("factor")
    d_z = "d_out" if names.dense.curve.name == "identity" else "d_z"
    axis = names.layout.batch_axis
    if defect in ("weight-transposed", "input-weight-transposed"):
        return _code(names, piece, OTHER_STORAGE[names.layout.storage])
    if defect in ("factor", "factor-two", "learning-rate-inside"):
        words = str(factor).partition(" (")[0]
        return f"{right} * {words}" if isinstance(factor, str) else f"{factor:.6g} * {right}"
    return {
        "all-averaged": f"{right} / n",
        "weight-averaged": f"{right} / n",
        "bias-averaged": f"{right} / n",
        "bias-times-batch": f"n * {right}",
        "sign-flipped": f"-{right}",
        "bias-not-summed": d_z,
        "bias-wrong-axis": f"{d_z}.sum(axis={1 - axis})",
    }.get(defect, "")
