"""How people spell the arrays of a layer: which name means the weight, the bias, the input or a gradient."""

import dataclasses
import inspect
import re
from itertools import permutations

import numpy as np

FAMILIES = {
    "weight": {"w", "weight", "weights", "kernel", "theta", "wt", "mat", "matrix", "coef"},
    "bias": {"b", "bias", "biases", "beta", "intercept"},
    "augmented": {"augmented", "waug", "wb", "wa", "waugmented", "weightaugmented", "augmentedweight"},
    "x": {"x", "input", "inputs", "inp", "data", "aprev", "prev", "batch", "xs", "features", "in", "xin"},
    "z": {"z", "pre", "preactivation", "u", "zs", "logits", "linear", "net"},
    "out": {
        "out",
        "output",
        "outputs",
        "y",
        "yhat",
        "a",
        "act",
        "activation",
        "activated",
        "s",
        "h",
        "result",
    },
    "cache": {"cache", "caches", "saved", "ctx", "context", "memory", "tape", "stored", "kept", "state"},
    "params": {"params", "parameters", "ps"},
}
"""What a name may mean, without underscores and in small letters."""

RATES = {"lr", "learningrate", "eta", "stepsize", "rate"}
UPSTREAM = {
    "delta",
    "upstream",
    "grad",
    "g",
    "gradient",
    "gradoutput",
    "outputgrad",
    "gradout",
    "error",
    "gout",
}

_GRADIENT = re.compile(
    r"^(?:d(?:l|loss|j|e)?_?d?_?|grad(?:ient)?s?_?(?:of_)?|g_|nabla_|delta_)(?P<stem>.+)$", re.I
)
_MANGLED = re.compile(r"^_[^\W_]\w*?__(?=[^\W_])")
_SUFFIX = re.compile(r"^(?P<stem>.+?)_?(?:grads?|gradients?|d)$", re.I)


def plain(name):
    """A name in small letters without underscores.

    >>> plain("A_prev"), plain("_Dense__W")
    ('aprev', 'w')
    """
    return unmangled(name).replace("_", "").lower()


def unmangled(name):
    """A name as it stands in the class, where it begins with two underscores.

    >>> unmangled("_Dense__weight"), unmangled("_w"), unmangled("W")
    ('__weight', '_w', 'W')
    """
    return _MANGLED.sub("__", str(name))


def family(name):
    """What a name means, or "" if it is none of the usual ones; a number at the end is not looked at.

    >>> family("W1"), family("bias"), family("A_prev"), family("q")
    ('weight', 'bias', 'x', '')
    """
    word = plain(name).rstrip("0123456789")
    for meaning, words in FAMILIES.items():
        if word in words:
            return meaning
    return ""


def stems(name, usual=True):
    """The names that ``name`` may be a gradient of, in small letters without underscores.

    Args:
        name: such as ``"d_W1"``.
        usual: False for names that mean none of the usual things too.

    >>> sorted(stems("d_W1")), sorted(stems("weight_grad")), sorted(stems("beta"))
    (['w1'], ['weight'], [])
    """
    found = set()
    for pattern in (_GRADIENT, _SUFFIX):
        match = pattern.match(unmangled(name).lstrip("_"))
        if match:
            found.add(plain(match["stem"]))
    for head in ("d", "g"):
        if plain(name).startswith(head) and len(plain(name)) > 1:
            found.add(plain(name)[1:])
    return {stem for stem in found if family(stem)} if usual else found


def is_upstream(name):
    """Whether an argument of a backward pass is the gradient that comes from above.

    >>> is_upstream("dout"), is_upstream("grad_output"), is_upstream("x")
    (True, True, False)
    """
    return plain(name) in UPSTREAM or bool({family(stem) for stem in stems(name)} & {"out", "z", "x"})


def matches(name, parameter, parameters):
    """Whether ``name`` belongs to ``parameter``: the same name, or the only one of its family."""
    if plain(name) == plain(parameter.rpartition(".")[2]) or plain(name) == plain(parameter):
        return True
    meaning = family(name)
    same = [other for other in parameters if family(other) == meaning]
    numbered = plain(name)[-1:].isdigit()
    return bool(meaning) and not numbered and same == [parameter]


def gradient_matches(name, parameter, parameters):
    """Whether ``name`` can be the gradient of ``parameter``.

    >>> gradient_matches("dW", "weight", ("weight", "bias")), gradient_matches("db", "W", ("W", "b"))
    (True, False)
    """
    return any(matches(stem, parameter, parameters) for stem in stems(name, usual=False))


def is_input_gradient(name):
    """Whether an attribute holds the gradient of the input.

    >>> is_input_gradient("dinputs"), is_input_gradient("grad_input"), is_input_gradient("inputs")
    (True, True, False)
    """
    return not family(name) and "x" in {family(stem) for stem in stems(name)}


def positional(function):
    """The parameters of a function that can be filled by position, or None if it does not say."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [parameter for parameter in signature.parameters.values() if parameter.kind in kinds]


def named_parts(value):
    """The parts of a result under their names, or None if they have none."""
    if isinstance(value, dict):
        return {str(key): part for key, part in value.items()}
    if hasattr(value, "_asdict"):
        return value._asdict()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: getattr(value, item.name) for item in dataclasses.fields(value)}
    return None


def read_returned(value, shapes, x_shape):
    """Sort what a backward pass returned: which part is the gradient of which array.

    Args:
        value: what came back: one array, a tuple, a dict, a named tuple or a dataclass.
        shapes: ``{parameter: shape}``.
        x_shape: the shape of the input.

    Returns:
        ``{"x" or parameter: key into value}``; the key is None for the value itself.
    """
    parts = named_parts(value)
    if parts is not None:
        return _by_name(parts, shapes)
    if isinstance(value, tuple) or (isinstance(value, list) and not is_nested_list(value)):
        return _by_shape(value, shapes, x_shape)
    if value is None or _shape(value) == (None,):
        return {}
    return {_closest(value, {"x": x_shape} | shapes): None} if np.ndim(value) else {"x": None}


def unread(value, keys):
    """Whether parts came back that were taken for no gradient.

    >>> unread({"dW": 1.0, "rest": 2.0}, {"W": "dW"}), unread((1.0, 2.0), {"x": 0, "W": 1})
    (True, False)
    """
    parts = named_parts(value)
    if parts is None:
        parts = dict(enumerate(value)) if isinstance(value, tuple) else {}
    return any(part is not None and key not in keys.values() for key, part in parts.items())


def is_nested_list(value):
    """Whether a list is an array written with lists alone.

    >>> is_nested_list([[1.0, 2.0], [3.0, 4.0]]), is_nested_list([np.ones(2), np.ones(2)])
    (True, False)
    """
    if not isinstance(value, list) or any(isinstance(part, np.ndarray) for part in value):
        return False
    try:
        return np.asarray(value).dtype.kind in "fiub"
    except ValueError:
        return False


def _by_name(parts, shapes):
    keys, parameters = {}, tuple(shapes)
    for key in parts:
        for parameter in parameters:
            if gradient_matches(key, parameter, parameters) or matches(key, parameter, parameters):
                keys.setdefault(parameter, key)
    taken = set(keys.values())
    for key in parts:
        meanings = {family(stem) for stem in stems(key)} | {family(key)}
        if key not in taken and meanings & {"x", "z", "out"}:
            keys.setdefault("x", key)
    return keys | _by_their_shape(parts, keys, shapes)


def _by_their_shape(parts, keys, shapes):
    """The parts under names that say nothing, where only one has the shape of only one array."""
    found = {}
    for parameter in shapes.keys() - keys.keys():
        alike = [other for other in shapes if other not in keys and shapes[other] == shapes[parameter]]
        fits = [
            key
            for key, part in parts.items()
            if key not in keys.values() and _shape(part) == shapes[parameter]
        ]
        if len(alike) == len(fits) == 1:
            found[parameter] = fits[0]
    return found


def _by_shape(parts, shapes, x_shape):
    """The assignment whose shapes fit best; x first, or x last, where two fit as well."""
    wanted = {"x": x_shape} | shapes
    names = list(wanted)
    best, chosen = -1.0, {}
    for order in _orders(names, len(parts)):
        score = sum(_fit(part, wanted[name]) for name, part in zip(order, parts, strict=False))
        if score > best + 1e-9:
            best, chosen = score, {name: position for position, name in enumerate(order)}
    return chosen


def _orders(names, length):
    usual = [names, [*names[1:], names[0]], names[1:]]
    yield from (order[:length] for order in usual if len(order) >= length)
    if len(names) <= 6:
        yield from permutations(names, min(length, len(names)))


def _fit(part, shape):
    """How well a gradient fits an array: its shape, the transpose, its size, its rank, a shared axis."""
    if part is None:
        return 0.5
    came = _shape(part)
    if came == (None,):
        return 0.0
    if came == shape:
        return 4.0
    if came == shape[::-1] or came == tuple(side for side in shape if side != 1):
        return 3.0
    if np.size(part) == np.prod(shape) and np.size(part) > 1:
        return 2.0
    shared = len(set(came) & set(shape)) / (1 + len(came))
    return shared + (0.5 if len(came) == len(shape) else 0.0)


def _shape(part):
    """The shape of a part; None for what is no array."""
    try:
        return np.shape(part)
    except ValueError:
        return (None,)


def _closest(value, wanted):
    return max(wanted, key=lambda name: (_fit(value, wanted[name]), name == "x"))


def is_rate(name):
    """Whether a name means a learning rate.

    >>> is_rate("lr"), is_rate("learning_rate"), is_rate("layer")
    (True, True, False)
    """
    return plain(name) in RATES


def learning_rates(subject):
    """The numbers that a person calls a learning rate: attributes, defaults, globals and closures."""
    places = []
    for thing in getattr(subject, "sources", tuple)():
        places.append(getattr(thing, "__dict__", {}))
        function = getattr(thing, "__func__", thing)
        code = getattr(function, "__code__", None)
        if code is not None:
            places.append(
                {name: function.__globals__[name] for name in code.co_names if name in function.__globals__}
            )
            cells = function.__closure__ or ()
            places.append(dict(zip(code.co_freevars, (_cell(cell) for cell in cells), strict=False)))
            defaults = function.__defaults__ or ()
            names = code.co_varnames[: code.co_argcount]
            places.append(dict(zip(names[len(names) - len(defaults) :], defaults, strict=True)))
    values = [value for place in places for name, value in place.items() if is_rate(name)]
    return [
        float(value)
        for value in values
        if isinstance(value, int | float) and not isinstance(value, bool) and value
    ]


def _cell(cell):
    try:
        return cell.cell_contents
    except ValueError:
        return None
