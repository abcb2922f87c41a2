"""A person's pair of functions as a subject: finds out which argument is which, and how arrays are stored."""

import copy
import inspect
from itertools import product

import numpy as np

from .._validate import complaint
from ._objects import CannotExamineError, attempt, listed, quietly, resized
from ._spellings import family, is_upstream, matches, positional, read_returned, unread

SIZES = (4, 3, 5, 6, 7, 8)
"""Widths of the layers of a chain: input, output, and those between."""
SAMPLES = 9


class FunctionSubject:
    """Two functions, the arrays that they take, and the order in which they take them."""

    has_zero_grad = False
    single = False
    lost = frozenset()
    strays = ()
    layout = None

    def __init__(self, forward, backward, params, plan, shape, *, origin="two functions"):
        """Take over the functions; ``plan`` is the roles of the arguments of both."""
        self._functions = forward, backward
        self._params = {name: np.array(value) for name, value in params.items()}
        self._plan = plan
        self._origin = origin
        self.batch_axis, self.in_features = shape
        self.names = tuple(params)
        self._kept = {}
        self._keys = None
        self._dtype = None

    @property
    def description(self):
        return self._origin

    @property
    def storage(self):
        return None if self.layout is None else self.layout.storage

    def sources(self):
        """What may hold a learning rate: the functions."""
        return self._functions

    @property
    def dtype(self):
        floats = [array.dtype for array in self._params.values() if array.dtype.kind == "f"]
        return np.dtype(self._dtype or (floats[0] if floats else np.float64))

    def clone(self):
        """Another one with the same parameters, and nothing kept of an earlier call."""
        other = copy.copy(self)
        other._params = self.params()
        other._kept = {}
        return other

    another = clone

    def params(self):
        return {name: value.copy() for name, value in self._params.items()}

    def load(self, params):
        self._params |= {name: np.array(value) for name, value in params.items() if name in self._params}

    def draw_input(self, n, rng):
        shape = (n, self.in_features) if self.batch_axis == 0 else (self.in_features, n)
        return rng.standard_normal(shape).astype(self.dtype)

    def forward(self, x):
        returned = quietly(self._functions[0], *(self._argument(role, x) for role in self._plan[0]))
        out, cache = split_output(returned)
        self._kept = {"x": x, "out": out, "cache": cache}
        return out

    def _argument(self, role, x):
        if role == "x":
            return x
        return self._params if role == "params" else self._params[role]

    def backward(self, d_out):
        arguments = [self._kept_argument(role, d_out) for role in self._plan[1]]
        returned = listed(quietly(self._functions[1], *arguments))
        if self._keys is None:
            shapes = {name: value.shape for name, value in self._params.items()}
            self._keys = read_returned(returned, shapes, np.shape(self._kept["x"]))
        gradients = {name: _part(returned, key) for name, key in self._keys.items()}
        missing = {name for name in self.names if gradients.get(name) is None}
        self.lost = frozenset(missing if unread(returned, self._keys) else ())
        return {name: gradients.get(name) for name in ("x", *self.names)}

    def _kept_argument(self, role, d_out):
        if role == "d_out":
            return d_out
        if role == "z":
            return self._pre_activation()
        return self._kept[role] if role in self._kept else self._argument(role, self._kept["x"])

    def _pre_activation(self):
        """z as the forward pass returned it beside its output, or the affine map of the input."""
        out, cache, x = self._kept["out"], self._kept["cache"], self._kept["x"]
        if isinstance(cache, np.ndarray) and cache.shape == np.shape(out):
            return cache
        if not self._params:
            return x
        weight = next(value for value in self._params.values() if value.ndim == 2)
        bias = next((value for value in self._params.values() if value is not weight), 0.0)
        if self.batch_axis == 1:
            return (weight if weight.shape[1] == x.shape[0] else weight.T) @ x + bias
        return x @ (weight if weight.shape[0] == x.shape[1] else weight.T) + bias

    def zero_grad(self):
        """Functions keep no gradients."""

    def fresh(self, *, in_features=None, out_features=None, dtype=None):
        """The same functions with other random parameters; None if they do not run on them."""
        dtype = np.dtype(dtype or self.dtype)
        shapes = {name: value.shape for name, value in self._params.items()}
        sides = resized(shapes, self.layout, in_features, out_features)
        if sides is None:
            return None
        rng = np.random.default_rng(0)
        other = self.clone()
        other._dtype = dtype
        other.in_features = in_features or self.in_features
        other._params = {
            name: (0.7 * rng.standard_normal(side)).astype(dtype) for name, side in sides.items()
        }
        return other if attempt(other.clone().forward, other.draw_input(3, rng)) is not None else None

    def with_plan(self, backward_roles):
        """The same functions with other roles for the arguments of the backward pass."""
        other = self.clone()
        other._plan = (self._plan[0], tuple(backward_roles))
        return other


def split_output(returned):
    """The output of a forward pass, and what came with it."""
    if isinstance(returned, tuple) and returned:
        return returned[0], returned[1] if len(returned) == 2 else returned[1:]
    return returned, None


def _part(returned, key):
    if key is None:
        return returned
    if isinstance(key, str) and not isinstance(returned, dict):
        return getattr(returned, key)
    return returned[key]


def function_subject(forward, backward, params=None, x=None):
    """Make a subject of two functions, finding out by running them what they take.

    Args:
        forward: ``forward(x, weight, bias)``, in any order and under any usual name; returns the output, or
            the output and what the backward pass needs.
        backward: ``backward(d_out, ...)`` of the same arrays, of the output, or of what forward returned.
        params: the parameters, a dict, list or tuple; by default arrays are made that fit.
        x: an input that forward takes.

    Raises:
        CannotExamineError: no combination runs.
    """
    names = _argument_names(forward)
    choices = _given(names, params, x) if params is not None else list(_made(names, x))
    origin = f"the functions {_name(forward)} and {_name(backward)}"
    runs, reason, first = [], "", None
    for roles, arrays, shape in choices:
        subject = FunctionSubject(forward, backward, arrays, (roles, ()), shape, origin=origin)
        try:
            out = np.asarray(subject.forward(subject.draw_input(SAMPLES, np.random.default_rng(1))))
        except Exception as error:
            reason, first = reason or f"{type(error).__name__}: {error}", first or error
            continue
        if (
            out.dtype.kind in "fiu"
            and out.ndim in (1, 2)
            and out.shape[min(shape[0], out.ndim - 1)] == SAMPLES
        ):
            subject._plan = (roles, _backward_roles(subject, backward, names, roles))
            runs.append(subject)
    if not runs:
        came = f"{_name(forward)} ran on no input that was tried ({reason or 'it returned no batch'})"
        advice = "Pass its arrays: diagnose_layer(forward, backward, params={'W': W, 'b': b}, x=x)."
        message = complaint("diagnose_layer", came, "a function of x, weight and bias", advice)
        raise CannotExamineError(message, first)
    return _settled(max(runs, key=_shape_score), backward)


def _name(function):
    return getattr(function, "__name__", type(function).__name__)


def _argument_names(function):
    """The names of the arguments that are arrays."""
    arguments = positional(function)
    if not arguments:
        return ["x"]
    empty = inspect.Parameter.empty
    chosen = [
        argument.name
        for argument in arguments
        if argument.default is empty
        or (family(argument.name) in ("weight", "bias") and argument.default is None)
    ]
    return chosen or [arguments[0].name]


def _x_name(names):
    """Which argument is the input: by name, else the first that is neither weight nor bias."""
    for meanings in (("x",), ("z", "out", "")):
        for name in names:
            if family(name) in meanings:
                return name
    return names[0]


def _given(names, params, x):
    """The plans for parameters that a person passed."""
    if isinstance(params, list | tuple):
        others = [name for name in names if name != _x_name(names)]
        params = dict(
            zip(others if len(others) == len(params) else map(str, range(len(params))), params, strict=True)
        )
    arrays = {name: np.asarray(value) for name, value in params.items()}
    x_name = _x_name(names)
    if (len(names) == 2 and len(arrays) != 1) or any(family(name) == "params" for name in names):
        roles = tuple("x" if name == x_name and family(name) != "params" else "params" for name in names)
    else:
        rest = [name for name in names if name != x_name]
        fitting = {
            name: next((key for key in arrays if key == name or matches(name, key, tuple(arrays))), None)
            for name in rest
        }
        if None in fitting.values() or len(set(fitting.values())) < len(rest):
            fitting = dict(zip(rest, arrays, strict=False))
        roles = tuple("x" if name == x_name else fitting.get(name, "x") for name in names)
    sizes = dict.fromkeys(side for array in arrays.values() for side in array.shape[::-1])
    sizes |= dict.fromkeys(side - 1 for side in list(sizes) if side > 1)
    if x is not None and np.ndim(x) == 2:
        shapes = [(0, np.shape(x)[1]), (1, np.shape(x)[0])]
    else:
        shapes = [(axis, size) for axis in (0, 1) for size in sizes or [4]]
    return [(roles, arrays, shape) for shape in shapes]


def _made(names, x):
    """The plans with arrays that are made to fit, the usual ones first."""
    x_name = _x_name(names)
    others = [name for name in names if name != x_name]
    meanings = [family(name) for name in others]
    if not set(meanings) <= {"weight", "bias", "augmented"} or "weight" not in meanings:
        meanings = (["weight", "bias"] * len(others))[: len(others)]
    roles = tuple("x" if name == x_name else name for name in names)
    count = sum(meaning != "bias" for meaning in meanings)
    sizes = [SIZES[0], *SIZES[2 : count + 1], SIZES[1]] if count else [SIZES[0]]
    if x is not None and np.ndim(x) == 2 and not others:
        yield from ((roles, {}, (axis, np.shape(x)[1 - axis])) for axis in (0, 1))
        return
    if not others:
        yield from ((roles, {}, (axis, size)) for size in (4, 1, 2, 3, 5, 8) for axis in (0, 1))
        return
    for axis, turned, ones in product((0, 1), (False, True), (0, 1, 2)):
        if ones and "bias" not in meanings:
            continue
        yield roles, _chain(others, meanings, sizes, turned, ones), (axis, SIZES[0])
    if len(others) == 1:
        for axis, turned in ((1, False), (0, True), (0, False), (1, True)):
            shape = (sizes[1], sizes[0] + 1)
            weight = np.random.default_rng(0).standard_normal(shape[::-1] if turned else shape)
            yield roles, {others[0]: weight}, (axis, SIZES[0])
        yield roles, {others[0]: np.random.default_rng(0).standard_normal(SIZES[0])}, (0, SIZES[0])
    if len(others) == 2:
        numbers = np.random.default_rng(0)
        yield roles, {others[0]: numbers.standard_normal(SIZES[0]), others[1]: np.array(0.3)}, (0, SIZES[0])


def _chain(names, meanings, sizes, turned, ones):
    """Random weights and biases of layers in a row; the bias as (n,), (1, n) or (n, 1)."""
    numbers = np.random.default_rng(0)
    arrays, layer, bias_layer = {}, 0, 0
    for name, meaning in zip(names, meanings, strict=True):
        if meaning == "bias":
            width = sizes[min(bias_layer + 1, len(sizes) - 1)]
            shape = ((width,), (1, width), (width, 1))[ones]
            bias_layer += 1
        else:
            shape = (sizes[layer + 1], sizes[layer])
            shape = shape[::-1] if turned else shape
            layer += 1
        arrays[name] = 0.7 * numbers.standard_normal(shape)
    return arrays


def _backward_roles(subject, backward, forward_names, forward_roles):
    """The role of each argument of the backward pass."""
    arguments = positional(backward)
    if arguments is None:
        return ("d_out", "x")
    empty = inspect.Parameter.empty
    names = [a.name for a in arguments if a.default is empty or (a.default is None and family(a.name))]
    by_name = dict(zip(forward_names, forward_roles, strict=False))
    upstream = next((name for name in names if name not in by_name and is_upstream(name)), None)
    if upstream is None:
        unknown = [name for name in names if name not in by_name and not family(name)]
        upstream = (unknown or names or [None])[0]
    roles = {}
    left = ["cache"] if subject._kept["cache"] is not None else ["x", *subject.names]
    for name in names:
        role = "d_out" if name == upstream else by_name.get(name) or _role(name, subject)
        if role is None or (role in roles.values() and role != "params"):
            role = next((one for one in left if one not in roles.values()), "x")
        roles[name] = role
    return tuple(roles.values())


def _role(name, subject):
    meaning = family(name)
    if meaning == "cache" and subject._kept["cache"] is not None:
        return "cache"
    if meaning in ("weight", "bias", "augmented"):
        return next((key for key in subject.names if matches(name, key, subject.names)), None)
    if meaning in ("z", "out", "params"):
        return meaning
    return "x" if meaning == "x" else None


def _shape_score(subject):
    """How well the gradients fit their arrays, and which part is which; of equals, `max` takes the first."""
    run, params = subject.clone(), subject.params()
    rng = np.random.default_rng(2)
    sides = {side for value in params.values() for side in value.shape}
    try:
        out = run.forward(run.draw_input(next(n for n in range(SAMPLES, 10**6) if n not in sides), rng))
        gradients = run.backward(rng.standard_normal(np.shape(out)).astype(run.dtype))
    except Exception:
        return -1
    subject._keys, subject.lost = run._keys, run.lost
    return sum(
        gradients[name] is not None and np.shape(gradients[name]) == params[name].shape for name in params
    )


def _settled(subject, backward):
    """For an activation: whether an argument without a telling name is the input or the output.

    The one with which the backward pass is right is meant; if it is right with neither, the input.
    """
    names = [argument.name for argument in positional(backward) or ()]
    roles = subject._plan[1]
    if subject.names or "x" not in roles or family(names[roles.index("x")]):
        return subject
    other = subject.with_plan("out" if role == "x" else role for role in roles)
    return other if not _follows(subject) and _follows(other) else subject


def _follows(subject):
    """Whether d_x is the slope of the output, by a difference along a random direction."""
    rng = np.random.default_rng(3)
    x, step = subject.draw_input(4, rng).astype(np.float64), 1e-5
    way = rng.standard_normal(x.shape)
    try:
        up, down = (np.array(subject.clone().forward(x + sign * step * way)) for sign in (1, -1))
        run = subject.clone()
        d_out = rng.standard_normal(np.shape(run.forward(x)))
        d_x = run.backward(d_out)["x"]
        slope = float((d_out * (up - down)).sum() / (2 * step))
        return bool(np.isclose(slope, float((d_x * way).sum()), rtol=1e-3))
    except Exception:
        return False
