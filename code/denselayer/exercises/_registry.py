"""All exercises by id, read chapter by chapter when one is wanted."""

import difflib
import importlib
from functools import lru_cache

from .._validate import complaint

CHAPTERS = {
    "neuron": "The neuron",
    "dense": "The dense layer",
    "between": "Between the layers",
    "backprop": "Backpropagation through a dense layer",
    "check": "Is my gradient right?",
    "train": "Training",
    "scale": "Scaling",
    "fused": "The fused GEMM",
}
"""Prefix of the ids to the name of the chapter, in the order of the book."""


def chapters() -> dict[str, str]:
    """The prefixes of the ids and the names of the chapters, in the order of the book.

    >>> next(iter(chapters()))
    'neuron'
    """
    return dict(CHAPTERS)


@lru_cache(maxsize=len(CHAPTERS))
def _chapter(prefix):
    answers = importlib.import_module(f".book.{prefix}.answers", __package__)
    return {exercise.id: exercise for exercise in answers.EXERCISES}


def ids(chapter=None) -> list[str]:
    """The ids of all exercises, or of those of one chapter, in the order of the book.

    Args:
        chapter: a prefix, one of `chapters`.

    Raises:
        ValueError: there is no such chapter.

    >>> "dense-count" in ids("dense")
    True
    """
    if chapter is not None and chapter not in CHAPTERS:
        advice = "Take the first word of an id."
        raise ValueError(complaint("ids", f"there is no chapter {chapter!r}", ", ".join(CHAPTERS), advice))
    return [name for prefix in ([chapter] if chapter else CHAPTERS) for name in _chapter(prefix)]


def get(identifier):
    """One exercise.

    Args:
        identifier: the id, as the book shows it.

    Raises:
        ValueError: there is no exercise of this id; the message names the ones that look like it.

    >>> get("dense-count").kind
    'number'
    """
    prefix = str(identifier).split("-")[0]
    if prefix in CHAPTERS and identifier in _chapter(prefix):
        return _chapter(prefix)[identifier]
    near = difflib.get_close_matches(str(identifier), ids(), n=3, cutoff=0.5)
    expected = f"one like {', '.join(near)}" if near else "an id as the book shows it, such as dense-count"
    came = f"there is no exercise {identifier!r}"
    raise ValueError(complaint("exercises", came, expected, "exercises.ids() lists them all."))
