"""What each process of a run says of itself, in a file that outlives it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

FOLDER = "DENSELAYER_NOTES"
"""The environment variable with the folder of the notes."""


class Note:
    """The note of one rank: its process, how far it came, its error or its report."""

    def __init__(self, folder: Path, rank: int):
        self.path = folder / f"rank-{rank}.json"
        self.content: dict[str, Any] = {"pid": os.getpid()}

    def write(self, **news: Any) -> None:
        """Add to the note; whoever reads it meets the old or the new one, and never half of it."""
        self.content |= news
        fresh = self.path.with_suffix(".new")
        fresh.write_text(json.dumps(self.content), encoding="utf-8")
        fresh.replace(self.path)


def read(folder: Path, ranks: int) -> list[dict[str, Any]]:
    """The notes of all ranks; an empty one for a rank that has written none."""
    paths = [folder / f"rank-{rank}.json" for rank in range(ranks)]
    return [json.loads(path.read_text(encoding="utf-8")) if path.exists() else {} for path in paths]
