"""A network as the sizes of its modules, without arrays, and which values they keep for the backward pass."""

from itertools import pairwise
from typing import NamedTuple

from . import nn
from ._validate import choice, complaint, describe

_ACTIVATIONS = {
    "relu": nn.ReLU,
    "sigmoid": nn.Sigmoid,
    "tanh": nn.Tanh,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "softplus": nn.Softplus,
    "leaky_relu": nn.LeakyReLU,
    "identity": nn.Identity,
}
_KEEPS_OUTPUT = (nn.ReLU, nn.Sigmoid, nn.Tanh)


class Part(NamedTuple):
    """Kind and sizes of one module, and the sizes of its parameters by identity."""

    kind: type
    ins: int | None
    outs: int | None
    bias: bool
    parameters: dict

    @property
    def name(self):
        """What a table calls it."""
        return f"Linear {self.ins:,} → {self.outs:,}" if self.kind is nn.Linear else self.kind.__name__


def parts_of_widths(widths, bias, activation):
    """Make the parts of dense layers in a row with one kind of activation between them.

    >>> [part.name for part in parts_of_widths([4, 3, 2], True, "relu")]
    ['Linear 4 → 3', 'ReLU', 'Linear 3 → 2']
    """
    choice("network", "activation", activation, tuple(_ACTIVATIONS))
    parts = []
    for at, (ins, outs) in enumerate(pairwise(widths)):
        parameters = {(at, "weight"): ins * outs} | ({(at, "bias"): outs} if bias else {})
        parts.append(Part(nn.Linear, ins, outs, bool(bias), parameters))
        parts.append(Part(_ACTIVATIONS[activation], outs, outs, False, {}))
    return parts[:-1]


def parts_of_module(module):
    """Make the parts of a layer or a Sequential; a parameter is known by its id, so a shared one is seen.

    >>> [part.name for part in parts_of_module(nn.Sequential(nn.Linear(4, 3, rng=0), nn.Tanh()))]
    ['Linear 4 → 3', 'Tanh']
    """
    parts = list(_flatten(module))
    layers = [part for part in parts if part.kind is nn.Linear]
    if not layers:
        raise ValueError(complaint("network", "there is no Linear", "at least one", "Add a layer."))
    for before, after in pairwise(layers):
        if before.outs != after.ins:
            came = f"{before.name} is followed by {after.name}"
            raise ValueError(complaint("network", came, "equal widths", "Make the two numbers equal."))
    return list(_sized(parts, layers[0].ins))


def _flatten(module):
    if type(module) is nn.Sequential:
        for child in module:
            yield from _flatten(child)
    elif type(module) is nn.Linear:
        parameters = {id(parameter): parameter.size for parameter in module.parameters()}
        outs, ins = module.weight.shape
        yield Part(nn.Linear, ins, outs, module.bias is not None, parameters)
    elif type(module) in _ACTIVATIONS.values():
        yield Part(type(module), None, None, False, {})
    else:
        expected = "Linear, an activation of nn, or a Sequential of them"
        advice = "Add up the costs of its parts by hand."
        raise TypeError(complaint("network", f"a module is {describe(module)}", expected, advice))


def _sized(parts, width):
    """Give every activation the width that it works on."""
    for part in parts:
        yield part if part.kind is nn.Linear else part._replace(ins=width, outs=width)
        width = width if part.outs is None else part.outs


def kept_widths(parts, input_gradient, library):
    """Values per row that each part keeps for the backward pass, every array counted once.

    An array that a layer and an activation need is counted at the layer.

    >>> parts = parts_of_widths([4, 3, 2], True, "relu")
    >>> kept_widths(parts, False, "pytorch"), kept_widths(parts, False, "denselayer")
    ([4, 0, 3], [4, 3, 3])
    """
    frugal = library == "pytorch"
    outputs = [0]
    for part in parts:
        passed_on = frugal and part.kind is nn.Identity
        outputs.append(outputs[-1] + (not passed_on))
    differentiable, wanted = bool(input_gradient), []
    for at, part in enumerate(parts):
        if part.kind is nn.Linear:
            differentiable = True
        idle = frugal and (part.kind is nn.Identity or not differentiable)
        by_output = frugal and part.kind in _KEEPS_OUTPUT
        wanted.append(None if idle else outputs[at + 1] if by_output else outputs[at])
    kept, held = [0] * len(parts), {None}
    for at in sorted(range(len(parts)), key=lambda at: parts[at].kind is not nn.Linear):
        if wanted[at] not in held:
            held.add(wanted[at])
            kept[at] = parts[at].ins
    return kept
