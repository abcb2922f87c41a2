"""Citations as plain text, for notebooks: "(Rumelhart et al., 1986)" and a list of references."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tools import pandoc


class Bibliography:
    """The entries of the book's bibliography files, read once with pandoc."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = tuple(paths)
        text = "\n".join(path.read_text(encoding="utf-8") for path in self.paths)
        items = json.loads(pandoc.run(["--from", "bibtex", "--to", "csljson"], text)) if text.strip() else []
        self.entries: dict[str, dict[str, Any]] = {item["id"]: item for item in items}

    def authors(self, key: str) -> str:
        """The authors as a citation names them.

        One: "Nielsen"; two: "Glorot and Bengio"; more: "Rumelhart et al."; none: the title.
        """
        entry = self.entries[key]
        people = entry.get("author") or entry.get("editor") or []
        names = [_family(person) for person in people]
        if not names:
            return str(entry.get("title", key))
        if len(names) > 2:
            return f"{names[0]} et al."
        return " and ".join(names)

    def year(self, key: str) -> str:
        """The year, or "n.d." for an entry without one; a letter is added where two would read the same."""
        year = _year(self.entries[key])
        same = [
            other
            for other in sorted(self.entries)
            if _year(self.entries[other]) == year and self.authors(other) == self.authors(key)
        ]
        return year + (chr(ord("a") + same.index(key)) if len(same) > 1 else "")

    def reference_list(self, keys: Iterable[str]) -> list[dict[str, Any]]:
        """The full references of the cited keys, as blocks of pandoc's syntax tree."""
        wanted = sorted(set(keys))
        if not wanted:
            return []
        header = json.dumps({"nocite": ", ".join(f"@{key}" for key in wanted)})
        options = [f"--bibliography={path}" for path in self.paths]
        arguments = ["--from", "markdown", "--to", "json", "--citeproc", *options]
        tree = json.loads(pandoc.run(arguments, f"---\n{header}\n---\n"))
        return [block for div in tree["blocks"] for entry in div["c"][1] for block in entry["c"][1]]


def _family(person: dict[str, str]) -> str:
    if "literal" in person:
        return person["literal"]
    particle = person.get("non-dropping-particle") or person.get("dropping-particle") or ""
    return f"{particle} {person.get('family') or person.get('given', '')}".strip()


def _year(entry: dict[str, Any]) -> str:
    parts = entry.get("issued", {}).get("date-parts") or [[]]
    return str(parts[0][0]) if parts[0] else "n.d."
