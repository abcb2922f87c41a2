"""Parameters as people hold them: an array, or dicts, lists and tuples of such, in each other."""

import numpy as np


def leaves(tree, name="") -> dict:
    """The arrays of a tree under the way that leads to them.

    >>> list(leaves({"W": np.zeros(2), "layers": [np.ones(1), 0.5]}))
    ['W', 'layers[0]', 'layers[1]']
    """
    if isinstance(tree, dict):
        parts = {f"{name}.{key}" if name else str(key): part for key, part in tree.items()}
    elif isinstance(tree, list | tuple):
        parts = {f"{name or 'params'}[{position}]": part for position, part in enumerate(tree)}
    else:
        return {name or "params": tree}
    return {leaf: array for way, part in parts.items() for leaf, array in leaves(part, way).items()}


def rebuild(tree, values):
    """A tree of the same form whose arrays are copies of these values, in the order of `leaves`."""
    left = iter(values.values())

    def build(part):
        if isinstance(part, dict):
            return {key: build(item) for key, item in part.items()}
        if isinstance(part, list | tuple):
            items = [build(item) for item in part]
            return type(part)(*items) if hasattr(part, "_fields") else type(part)(items)
        return np.array(next(left))

    return build(tree)


def same_form(tree, other) -> bool:
    """Whether two trees have their arrays in the same places; the arrays may have other shapes.

    >>> same_form([np.zeros(2), np.zeros(3)], (np.zeros(2), np.zeros((2, 3))))
    True
    >>> same_form([np.zeros(2), np.zeros(3)], (np.zeros(2), 1.5))
    False
    """
    mine, theirs = leaves(tree), leaves(other)
    kinds = (isinstance(tree, dict), isinstance(tree, list | tuple))
    if kinds != (isinstance(other, dict), isinstance(other, list | tuple)) or set(mine) != set(theirs):
        return False
    arrays = all(isinstance(array, np.ndarray | np.generic | float) for array in theirs.values())
    return arrays and all(np.ndim(theirs[name]) >= np.ndim(mine[name]) for name in mine)
