"""Where the arrays of a person's object live: paths to parameters and to their gradients."""

import inspect
from dataclasses import dataclass, replace

import numpy as np

from ._spellings import family, gradient_matches, plain, stems, unmangled

HOLDERS = ("data", "value", "val", "array", "values")
"""Attributes under which an object that stands for a parameter may keep its array."""
GRADIENT_HOLDERS = ("grad", "gradient", "d", "diff", "delta")
DEPTH = 4
BY_STATEMENT = 1 << 9
"""The flag of types that a class statement made; code run by `exec` calls their module builtins too."""


@dataclass(frozen=True)
class Slot:
    """A place in an object: the steps that lead there, and the attribute that holds the array itself."""

    name: str
    path: tuple[tuple[str, object], ...]
    leaf: str = ""
    others: tuple = ()
    """Further paths to the same thing, where it is used in several places."""

    def holder(self, root):
        """What stands at the end of the path."""
        return follow(root, self.path)

    def get(self, root):
        """The array, as it is."""
        place = self.holder(root)
        return getattr(place, self.leaf) if self.leaf else place

    def set(self, root, value):
        """Put a copy of ``value`` there: into the same array if it fits, else a new one in its place."""
        current = self.get(root)
        if isinstance(current, float | int):
            put(root, self.path, float(value))
        elif _fits(current, value):
            current[...] = value
        elif not self.leaf:
            self._put(root, np.array(value))
        else:
            self._replace(root, np.array(value))

    def _replace(self, root, value):
        """A holder may insist on its shape and dtype; then a new one takes its place."""
        place = self.holder(root)
        try:
            setattr(place, self.leaf, value)
            if np.shape(self.get(root)) == value.shape and self.get(root).dtype == value.dtype:
                return
        except (TypeError, ValueError, AttributeError):
            pass
        self._put(root, type(place)(value))

    def _put(self, root, value):
        for path in (self.path, *self.others):
            put(root, path, value)


def _fits(current, value):
    same = isinstance(current, np.ndarray) and current.shape == np.shape(value)
    return same and current.dtype == np.asarray(value).dtype and current.flags.writeable


def follow(root, path):
    """Go along a path."""
    for kind, key in path:
        root = getattr(root, key) if kind == "attribute" else root[key]
    return root


def put(root, path, value):
    """Put a value at the end of a path."""
    *way, (kind, key) = path
    parent = follow(root, way)
    if kind == "attribute":
        setattr(parent, key, value)
    else:
        parent[key] = value


def parts_of(value):
    """The parts of an object, as (step, part)."""
    if isinstance(value, dict):
        return [(("item", key), part) for key, part in value.items()]
    if isinstance(value, list | tuple):
        return [(("item", position), part) for position, part in enumerate(value)]
    by_statement = type(value).__flags__ & BY_STATEMENT and type(value).__module__ != "numpy"
    if not by_statement or inspect.isroutine(value) or inspect.isclass(value):
        return []
    names = dict.fromkeys(vars(value)) if hasattr(value, "__dict__") else {}
    for kind in type(value).__mro__[:-1]:
        slots = vars(kind).get("__slots__", ())
        names |= dict.fromkeys([slots] if isinstance(slots, str) else slots)
        names |= {
            name: None
            for name, item in vars(kind).items()
            if isinstance(item, np.ndarray | dict) and not name.startswith("__")
        }
    return [(("attribute", name), getattr(value, name)) for name in names if hasattr(value, name)]


def is_array(value):
    """Whether a value is an array of numbers."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "fiu"


def array_slots(root):
    """All places in an object where an array of numbers stands, each array once."""
    found, seen = [], {}

    def add(value, slot):
        known = seen.get(id(value))
        if known is None:
            seen[id(value)] = len(found)
            found.append(slot)
        else:
            found[known] = replace(found[known], others=(*found[known].others, slot.path))

    def visit(value, path, depth):
        if is_array(value):
            add(value, Slot(_name_of(path), path))
            return
        if isinstance(value, float | int) and not isinstance(value, bool):
            if path and family(path[-1][1]) == "bias":
                found.append(Slot(_name_of(path), path))
            return
        leaf = next((name for name in HOLDERS if path and is_array(getattr(value, name, None))), "")
        if leaf:
            add(value, Slot(_name_of(path), path, leaf))
            return
        if id(value) in seen or depth > DEPTH:
            return
        seen[id(value)] = -1
        for step, part in parts_of(value):
            visit(part, (*path, step), depth + 1)

    visit(root, (), 0)
    return found


def _name_of(path):
    """The last names of a path, without the containers that only hold parameters."""
    keys = [key for _, key in path if plain(key) not in ("p", "param", "params", "parameters", "modules")]
    return ".".join(map(unmangled, keys)) or "array"


def looks_like_gradient(slot):
    """Whether the name of a place says that it holds a gradient or a running number."""
    keys = [str(key) for _, key in slot.path]
    running = any(plain(key).startswith(("running", "moving", "velocity", "moment")) for key in keys)
    return running or any("grad" in key.lower() or stems(key) for key in keys if not family(key))


def find_gradient(root, slot, names):
    """The place of the gradient of a parameter, or None if there is none that has such a name.

    Args:
        root: the object, after a backward pass.
        slot: the parameter.
        names: the names of all parameters.
    """
    if slot.leaf:
        holder = slot.holder(root)
        for name in GRADIENT_HOLDERS:
            if hasattr(holder, name):
                return Slot(slot.name, slot.path, name)
    *way, (kind, key) = slot.path
    return _beside(root, way, kind, key, slot.name, names) or (
        _beside(root, way[:-1], *way[-1], slot.name, names, key) if way else None
    )


def _beside(root, way, kind, key, name, names, inner=None):
    """Look among the neighbours of a place, and inside those that hold gradients."""
    way = tuple(way)
    local = [other.rpartition(".")[2] for other in names]
    candidates = []
    for step, part in parts_of(follow(root, way)):
        if inner is not None and isinstance(part, dict | list | tuple):
            if gradient_matches(step[1], str(key), (str(key),)) or _is_gradient_holder(step[1]):
                candidates += _inside(part, (*way, step), inner, local)
        elif inner is None and kind == "attribute" and step[1] != key:
            if gradient_matches(step[1], str(key), local):
                candidates.append((*way, step))
            elif _is_gradient_holder(step[1]) and isinstance(part, dict | list | tuple):
                candidates += _inside(part, (*way, step), key, local)
    return Slot(name, candidates[0]) if candidates else None


def find_named(root, fits):
    """The first array among the attributes of an object whose name fits, or None."""
    for (kind, name), part in parts_of(root):
        if kind == "attribute" and is_array(part) and fits(name):
            return part
    return None


def _is_gradient_holder(name):
    return plain(name) in ("grad", "grads", "gradient", "gradients", "d", "dparams", "deltas")


def _inside(part, path, key, names):
    """The place in a dict of gradients, or in a list, that belongs to ``key``."""
    if not isinstance(part, dict):
        if isinstance(key, int):
            return [(*path, ("item", key))] if key < len(part) else []
        position = names.index(str(key)) if str(key) in names else len(part)
        return [(*path, ("item", position))] if position < len(part) else []
    same = [item for item in part if plain(item) == plain(key)]
    close = [item for item in part if gradient_matches(item, str(key), names)]
    return [(*path, ("item", item)) for item in [*same, *close][:1]]
