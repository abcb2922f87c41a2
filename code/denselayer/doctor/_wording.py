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
OF_THE_RIGHT_ONE = {
    "sign-flipped": "-g",
    "weight-averaged": "g / n",
    "bias-averaged": "g / n",
    "all-averaged": "g / n",
    "bias-times-batch": "n * g",
    "weight-transposed": "g.T",
}
"""What was computed, by the right gradient g."""
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
    gate = gate_formulas(names, defect, facts)
    if gate[0]:
        return gate
    if defect == "wrong-shape":
        return of_any_array(defect, names.called[pieces[0]], facts) if len(pieces) == 1 else ("", "")
    if names.layout is None or names.augmented or names.layout.single:
        return "", ""
    pairs = [(_wrong(names, defect, piece, facts), _code(names, piece)) for piece in pieces]
    if any(not wrong for wrong, _ in pairs):
        return "", ""
    left = [gradient_name(names.called[piece]) for piece in pieces]
    return tuple(
        "; ".join(f"{name} = {code}" for name, code in zip(left, side, strict=True))
        for side in zip(*pairs, strict=True)
    )


def gradient_name(name):
    """What the gradient of an array is called in a formula.

    >>> gradient_name("W"), gradient_name("layers.0.weight"), gradient_name("params[0]")
    ('d_W', 'd_weight', 'gradient')
    """
    word = name.rpartition(".")[2].lstrip("_")
    return f"d_{word}" if word.isidentifier() else "gradient"


def of_any_array(defect, name, facts):
    """(computed, right) for an array of which only the name is known; empty where that says nothing."""
    left, word = gradient_name(name), name.rpartition(".")[2]
    if defect == "wrong-shape":
        return f"{left}.shape == {facts['shape']}", f"{left}.shape == {facts['expected']}"
    if defect in OF_THE_RIGHT_ONE:
        return f"{left} = {OF_THE_RIGHT_ONE[defect]}  # g is the right gradient", f"{left} = g"
    if defect in ("factor", "factor-two", "learning-rate-inside"):
        words = facts["factor"]
        words = f"{words:.6g}" if isinstance(words, float) else words.partition(" (")[0]
        return f"{left} = {words} * g  # g is the right gradient", f"{left} = g"
    if defect in ("gradient-zero", "bias-zero") and word.isidentifier():
        return f"{left} = {'None' if facts.get('missing') else f'np.zeros_like({word})'}", ""
    if defect == "softmax-jacobian-missing":
        d_z = "p * (d_out - (d_out * p).sum(axis={axis}, keepdims=True))"
        return "d_z = d_out", f"p = softmax(z); d_z = {d_z}".format(axis=1 - facts["batch_axis"])
    return "", ""


def joined(pairs):
    """(computed, right) of several arrays in one line each; empty where one of them has none."""
    if not all(wrong and right for wrong, right in pairs):
        return "", ""
    sides = [dict.fromkeys(text.partition("  #")[0] for text in side) for side in zip(*pairs, strict=True)]
    more = "  # g is the right gradient" if any("  #" in wrong for wrong, _ in pairs) else ""
    return "; ".join(sides[0]) + more, "; ".join(sides[1])


def gate_formulas(names, defect, facts):
    """(computed, right) for a slip of the activation, in its own terms; empty strings for another."""
    gate = _gate(names.dense.curve, defect.partition(":")[0], facts)
    return (f"d_z = {gate}", f"d_z = d_out * {slope_text(names.dense.curve)}") if gate else ("", "")


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
        "bias-wrong-axis": f"{d_z}.sum(axis={1 - axis}{', keepdims=True' if _is_flat(facts) else ''})",
        "gradient-zero": "None" if facts.get("missing") else f"np.zeros_like({names.called[piece]})",
        "bias-zero": "None" if facts.get("missing") else f"np.zeros_like({names.called[piece]})",
    }.get(defect, "")


def _is_flat(facts):
    """Whether a gradient came with an axis of one entry."""
    return len(facts.get("shape") or ()) == 2
