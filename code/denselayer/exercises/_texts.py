"""The words of an exercise, and what all kinds of exercises have in common."""

import json
from functools import lru_cache
from importlib import resources


@lru_cache(maxsize=1)
def _texts():
    path = resources.files(__package__) / "book" / "texts.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


class Exercise:
    """An exercise of the book.

    Its words come from the book's text: ``title``, ``prompt``, ``hints`` and ``solution`` are Markdown, and
    ``plain`` has the last three for a terminal. ``starter`` is the source of the cell to write in,
    ``solved`` the same with a solution, ``entry`` the name or names that this cell binds.
    """

    kind = ""

    def __init__(self, identifier):
        self.id = identifier

    @property
    def chapter(self) -> str:
        """The prefix of the id: the chapter it belongs to."""
        return self.id.split("-")[0]

    @property
    def _words(self):
        return _texts().get(self.id, {})

    @property
    def title(self) -> str:
        return self._words.get("title", self.id)

    @property
    def prompt(self) -> str:
        return self._words.get("prompt", "")

    @property
    def hints(self) -> tuple[str, ...]:
        return tuple(self._words.get("hints", ()))

    @property
    def solution(self) -> str:
        return self._words.get("solution", "")

    @property
    def plain(self) -> dict:
        return self._words.get("plain", {"prompt": "", "hints": [], "solution": ""})

    def __repr__(self):
        return f"<{type(self).__name__} {self.id}>"
