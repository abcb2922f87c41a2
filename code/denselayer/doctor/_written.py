"""Find gradients by what the backward pass wrote, where their names do not tell."""

import numpy as np

from ._slots import array_slots
from ._spellings import family, is_upstream, plain, stems, unmangled

PASSING = {"x", "z", "out", "cache"}
"""What a layer keeps beside gradients of parameters."""


def snapshot(root):
    """Copies of all arrays of an object, by the paths to them."""
    return {
        path: np.array(slot.get(root)) for slot in array_slots(root) for path in (slot.path, *slot.others)
    }


def written(root, before):
    """The places of arrays that are not what they were, without those whose name says something else."""
    return [
        slot
        for slot in array_slots(root)
        if not slot.leaf and not _is_passing(slot) and _differs(slot.get(root), before.get(slot.path))
    ]


def _differs(now, then):
    return then is None or np.shape(then) != np.shape(now) or not np.array_equal(now, then, equal_nan=True)


def _is_passing(slot):
    """Whether a name means an input, an output, or the gradient of one."""
    names = [unmangled(key).lstrip("_") for kind, key in slot.path if isinstance(key, str)]
    meanings = {family(stem) for name in names for stem in stems(name)} | {family(name) for name in names}
    return bool(meanings & PASSING) or any(is_upstream(name) for name in names[-1:])


def assign(root, places, unfound, known):
    """Give each parameter without a gradient the place that can only be its own.

    Args:
        root: the object after a backward pass.
        places: what `written` found.
        unfound: the slots of the parameters without a gradient.
        known: paths of parameters and of gradients that are known.

    Returns:
        ``({parameter: Slot}, whether places are left that may hold other gradients)``.
    """
    left = [slot for slot in places if slot.path not in known]
    found = {}
    for fits in (_same_key, _same_shape, _turned_shape):
        for slot in [slot for slot in unfound if slot.name not in found]:
            mine = [place for place in left if fits(root, slot, place)]
            rivals = [
                other for other in unfound if other.name not in found and mine and fits(root, other, mine[0])
            ]
            if len(mine) == len(rivals) == 1:
                found[slot.name] = mine[0]
                left.remove(mine[0])
    return found, bool(left)


def _same_key(root, slot, place):
    return plain(slot.path[-1][1]) == plain(place.path[-1][1])


def _same_shape(root, slot, place):
    return np.shape(slot.get(root)) == np.shape(place.get(root))


def _turned_shape(root, slot, place):
    return np.shape(slot.get(root)) == np.shape(place.get(root))[::-1]


def value_at(root, place):
    """What stands at a place, or None if it is not there yet."""
    try:
        return place.get(root)
    except (AttributeError, LookupError, TypeError):
        return None


def strays(root):
    """Names of what looks like a gradient of a weight or a bias, where no parameter was found."""
    return tuple(
        name
        for name in getattr(root, "__dict__", {})
        if not family(name) and {family(stem) for stem in stems(name)} & {"weight", "bias", "augmented"}
    )
