"""From explanations to findings: which arrays a slip shows in, and what it is called there."""

import numpy as np

from ._report import Finding
from ._shapes import harmless
from ._spellings import learning_rates
from ._wording import formulas, gate_formulas, joined, of_any_array

TWO = (2.0, 0.5)
CLOSE = 1e-3
WORDS = {"identity": "no activation", "the activation": "its own activation"}
"""What to call activations that have no name."""


class Names:
    """The arrays of a dense layer: what the person calls them, and how their gradients are read."""

    def __init__(self, subject, dense):
        """Take the names from the subject and the layout from what was recognised."""
        self.subject, self.dense, self.layout = subject, dense, dense.layout
        self.augmented = self.layout is not None and self.layout.place is not None
        self.called = {"x": "x"}
        if self.layout is not None:
            self.called["weight"] = self.layout.weight
            if self.layout.has_bias:
                self.called["bias"] = self.layout.bias or self.layout.weight
        self.pieces = [piece for piece in ("weight", "bias", "x") if piece in self.called]
        self.arrays = tuple(dict.fromkeys(self.called[piece] for piece in self.pieces))

    def shown(self, piece):
        """What a piece is called in a sentence."""
        if piece != "bias" or not self.augmented:
            return self.called[piece]
        word = "column" if self.layout.axis == 1 else "row"
        return f"{word} {0 if self.layout.place == 0 else '-1'} of {self.layout.weight}"

    def tag(self, word):
        """Weight and bias of an augmented weight are turned together or not at all."""
        return word if self.augmented else ""

    def raw(self, piece, case):
        """The gradient that came, or its part, or None; parts only where the shape tells them."""
        came = case.came.get(self.called[piece])
        if came is None or not self.augmented or piece == "x":
            return came
        for turned in (False, True, None):
            part = self.reader(piece, turned)(case)
            if part is not None:
                return part
        return came

    def reader(self, piece, turned):
        """A function of a case: the gradient in canonical shape if it fits.

        Args:
            piece: ``"weight"`` or ``"bias"``.
            turned: False to read it as it is, True as a transpose, None as the numbers in another shape.
        """
        index = ("weight", "bias").index(piece)

        def read(case):
            name = self.called[piece]
            came = case.came.get(name)
            if came is None:
                return None
            expected = case.shapes[name]
            if piece == "bias" and not self.augmented:
                fits = (
                    harmless(came.shape, expected) if turned is False else _other_shape(came.shape, expected)
                )
                return came.ravel() if fits else None
            if turned is None:
                came = came.reshape(expected) if _other_shape(came.shape, expected) else came
                return None if came is case.came[name] else self.layout.split(came)[index]
            came = came.T if turned else came
            if came.shape != expected:
                return None
            return self.layout.split(came)[index]

        return read

    def read_x(self, case):
        """The gradient of the input, a sample in each row."""
        came = case.came.get("x")
        return None if came is None or came.shape != case.shapes["x"] else self.dense.rows(came)

    def read_x_reshaped(self, case):
        """The gradient of the input where its numbers came in another shape."""
        came = case.came.get("x")
        if came is None or not _other_shape(came.shape, case.shapes["x"]):
            return None
        return self.dense.rows(came.reshape(case.shapes["x"]))

    def read_bias_as_weight(self, case):
        """The gradient of the bias where it came in the shape of a weight, as (out, in)."""
        came = case.came.get(self.called["bias"])
        if came is None or came.ndim != 2:
            return None
        shape = (case.sides[1], case.sides[2])
        return came if came.shape == shape else came.T if came.T.shape == shape else None

    def read_bias_as_batch(self, case):
        """The gradient of the bias where it came in the shape of the output, as (N, out)."""
        came = case.came.get(self.called["bias"])
        if came is None or came.size != case.d_out.size or came.ndim != 2:
            return None
        came = self.dense.rows(came)
        return came if came.shape == case.d_out.shape else None

    def read_bias_as_rows(self, case):
        """The gradient of the bias where it has one number for each sample."""
        came = case.came.get(self.called["bias"])
        return None if came is None or came.size != case.n else came.ravel()

    def d_z(self, case):
        """The right gradient of the pre-activation."""
        return case.d_out * self.dense.curve.slope(case.z)

    def truth(self, called, case):
        """The right gradient of an array, as it should be stored."""
        d_z = self.d_z(case)
        if called == "x":
            d_x = d_z @ case.weight
            if self.layout is not None:
                return self.layout.like(d_x, case.shapes["x"])
            return (d_x.T if self.dense.batch_axis else d_x).reshape(case.shapes["x"])
        return self.layout.join(d_z.T @ case.x, d_z.sum(axis=0), case.shapes)[called]


def _other_shape(came, expected):
    """Whether as many numbers came in another shape, one that is no transpose and does harm."""
    turned = len(came) == 2 and came[::-1] == expected
    return np.prod(came) == np.prod(expected) and not turned and not harmless(came, expected)


def findings_of(names, chosen, cases, spell=True):
    """The findings for explained arrays, each defect once with all arrays where it shows.

    Args:
        names: the arrays.
        chosen: ``{piece: Explanation or None}``.
        cases: what was run.
        spell: whether to write the formulas in the names of the layer.
    """
    found = {}
    for piece, explanation in chosen.items():
        if explanation is not None:
            for defect, facts in _slips(names, piece, explanation, chosen, cases):
                key = (defect, facts.get("factor"))
                pieces, first = found.get(key, ((), facts))
                found[key] = ((*pieces, piece), first)
    return [
        Finding(
            defect.partition(":")[0],
            _joined(names, [names.shown(piece) for piece in pieces]),
            facts,
            (formulas if spell else _of_a_network)(names, defect, pieces, facts),
        )
        for (defect, _), (pieces, facts) in found.items()
    ]


def _of_a_network(names, defect, pieces, facts):
    gate = gate_formulas(names, defect, facts)
    return gate if gate[0] else joined([of_any_array(defect, names.called[piece], facts) for piece in pieces])


def _joined(names, where):
    """The arrays of a finding, without a part of one that is named as a whole."""
    part = names.shown("bias") if names.augmented else ""
    kept = [name for name in where if name != part or names.layout.weight not in where]
    return tuple(dict.fromkeys(kept))


def _slips(names, piece, explanation, chosen, cases):
    """Yield (defect, facts) for one array."""
    shown = max(cases, key=lambda case: case.n)
    called = names.called[piece]
    came = shown.came.get(called)
    shapes = {"shape": None if came is None else came.shape, "expected": shown.shapes[called]}
    if explanation.gate == "epsilon-in-derivative":
        yield explanation.gate, {"factor": _plain(explanation.epsilon)}
    elif explanation.gate.startswith("other-derivative"):
        yield explanation.gate, _other(names, explanation)
    elif explanation.gate and explanation.gate != "batch-mixed":
        yield explanation.gate, {}
    if explanation.form:
        yield explanation.form, shapes
    law = explanation.law
    if law.constant < 0:
        yield "sign-flipped", {}
    yield from _factors(names, piece, law, chosen, shown)


def _other(names, explanation):
    """Which derivative came in place of which."""
    other = explanation.gate.partition(":")[2]
    if explanation.epsilon:
        below = explanation.epsilon + float(names.dense.curve.slope(-1.0))
        other = f"a leaky ReLU with the slope {below:.3g}"
    expected = names.dense.curve.name.replace("_", " ")
    return {"other": other, "expected": WORDS.get(names.dense.curve.name, expected)}


def _factors(names, piece, law, chosen, shown):
    """Yield what a factor is called: an average, a learning rate, a two, or a constant."""
    constant, power = abs(law.constant), law.powers[0]
    rest = abs(constant - 1) > CLOSE / 10
    averaged, bias = _averaged(chosen), chosen.get("bias")
    alone = piece == "weight" and (not names.layout.has_bias or (bias is not None and bias.silent))
    everywhere = {"weight", "bias"} <= averaged or alone
    named = everywhere or piece in ("weight", "bias") if power == -1 else piece == "bias"
    if law.powers[1:] != (0, 0) or abs(power) > 1 or (power and not named):
        rows = " (n is the number of rows)" if power else ""
        yield "factor", {"factor": f"{type(law)(constant, law.powers)}{rows}"}
        return
    facts = {"n": shown.n, "factor": _plain(float(shown.n) ** power)}
    if power == -1:
        yield ("all-averaged" if everywhere else f"{piece}-averaged"), facts
    elif power == 1:
        yield "bias-times-batch", facts
    if rest:
        yield name_constant(constant, learning_rates(names.subject))


def _averaged(chosen):
    return {piece for piece, one in chosen.items() if one is not None and one.law.powers[0] == -1}


def name_constant(constant, rates=()):
    """(defect, facts) for a constant factor.

    >>> name_constant(0.5)[0], name_constant(0.05, [0.05])[0], name_constant(0.3)[0]
    ('factor-two', 'learning-rate-inside', 'factor')
    """
    for rate in rates:
        if abs(constant - rate) <= CLOSE * rate:
            return "learning-rate-inside", {"factor": _plain(constant), "other": _plain(rate)}
    if any(abs(constant - two) <= CLOSE * two for two in TWO):
        return "factor-two", {"factor": _plain(constant)}
    return "factor", {"factor": _plain(constant)}


def _plain(number):
    return float(f"{number:.6g}")
