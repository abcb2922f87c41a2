"""Messages that go round a ring of devices, one step after the other, with every byte counted.

``held[p, c]`` is what device p holds of piece c, as a flat row, padded with zeros to the longest piece. In a
step every device sends one piece to the next device of the ring, all at the same time.
"""

import numpy as np


def reduce_scatter(held, sizes):
    """Add up in place, until device p has the sum of piece p; numbers sent by each device, and steps."""
    devices = np.arange(len(held))
    sent = np.zeros(len(held), dtype=np.int64)
    for step in range(len(held) - 1):
        piece = (devices - step - 1) % len(held)
        held[(devices + 1) % len(held), piece] += held[devices, piece]
        sent += sizes[piece]
    return sent, len(held) - 1


def all_gather(held, sizes):
    """Hand round in place what device p has of piece p; numbers sent by each device, and steps."""
    devices = np.arange(len(held))
    sent = np.zeros(len(held), dtype=np.int64)
    for step in range(len(held) - 1):
        piece = (devices - step) % len(held)
        held[(devices + 1) % len(held), piece] = held[devices, piece]
        sent += sizes[piece]
    return sent, len(held) - 1


def broadcast(held, sizes, root):
    """Pass on all pieces of the root, the first piece ahead of the others; numbers sent, and steps.

    The device at distance k from the root sends piece c in step k + c, so that all but the last of the ring
    are at work while the pieces pass through.
    """
    count = len(held)
    sent = np.zeros(count, dtype=np.int64)
    steps = 2 * (count - 1)
    for step in range(steps):
        distance = np.arange(max(0, step - count + 1), min(step, count - 2) + 1)
        source, piece = (root + distance) % count, step - distance
        held[(source + 1) % count, piece] = held[source, piece]
        sent[source] += sizes[piece]
    return sent, steps


def pack(arrays, sizes):
    """The array ``held`` of devices that each have a whole array, cut into pieces of these sizes.

    >>> pack([np.arange(5.0), np.zeros(5)], np.array([3, 2]))[0]
    array([[0., 1., 2.],
           [3., 4., 0.]])
    """
    held = np.zeros((len(arrays), len(sizes), sizes.max()), arrays[0].dtype)
    held.reshape(len(arrays), -1)[:, places(sizes)] = [array.ravel() for array in arrays]
    return held


def unpack(held, sizes):
    """What each device holds, a row for each device, without the padding."""
    return held.reshape(len(held), -1)[:, places(sizes)]


def places(sizes):
    """Where the numbers of pieces stand in a row in which each piece takes the room of the longest.

    >>> places(np.array([3, 1, 2]))
    array([0, 1, 2, 3, 6, 7])
    """
    return np.flatnonzero(np.arange(sizes.max()) < sizes[:, None])


def piece_sizes(size, count):
    """Sizes of ``count`` pieces that differ by one at most, the longer ones first.

    >>> piece_sizes(10, 4)
    array([3, 3, 2, 2])
    """
    return size // count + (np.arange(count) < size % count)
