"""What the book's package knows of its exercises: the cell to write in, its solution, what it binds.

`exercises:` in `_quarto.yml` names a module of the package with the functions `ids`, `get` and `check`.
It is asked in a process of its own, so that a change of the package is seen at once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.errors import BuildError

ASK = """
import importlib, json, sys
module = importlib.import_module(sys.argv[1])
names = ("id", "kind", "starter", "solved", "entry")
told = [{name: getattr(module.get(each), name) for name in names} for each in module.ids()]
print(json.dumps(told))
"""
HOW = (
    "*Below each exercise stands a cell to write in: put your answer in the place of `...`, run it, and the"
    ' cell after it says what is right and what is not. `ex.hint("ID")` gives a hint,'
    ' `ex.solution("ID")` the solution; `ex.progress()` tells what is done.*'
)


@dataclass(frozen=True)
class Exercise:
    """One exercise of the package.

    id       as in the book, without `exr-`
    kind     number, code or explain
    starter  the source of the cell to write in
    solved   the same with a solution
    entry    the name, or the names, that this cell binds and the check is given
    """

    id: str
    kind: str
    starter: str
    solved: str
    entry: str

    @property
    def check(self) -> str:
        """The source of the cell that checks."""
        return f'ex.check("{self.id}", {self.entry})'

    def passes(self, status: str, passed: bool) -> bool:
        """Whether this feedback is what a solution must get: a program cannot find an explanation right."""
        return status == "written" if self.kind == "explain" else passed


def module_of(config: Mapping[str, Any]) -> str:
    """The module that `exercises:` in the settings names; empty when there is none."""
    return str(config.get("exercises") or "")


def texts_path(root: Path, config: Mapping[str, Any]) -> Path | None:
    """Where the package keeps the words of the exercises, which the build writes; None without a module."""
    module = module_of(config)
    return root.joinpath("code", *module.split("."), "book", "texts.json") if module else None


def import_line(module: str) -> str:
    """The line that gives the module the name `ex`.

    >>> import_line("denselayer.exercises")
    'from denselayer import exercises as ex'
    """
    package, _, name = module.rpartition(".")
    return f"from {package} import {name} as ex" if package else f"import {name} as ex"


def load(root: Path, module: str) -> dict[str, Exercise]:
    """All exercises of the package by id; raises BuildError with Python's words when it cannot be asked."""
    if not module:
        return {}
    places = os.pathsep.join(str((root / name).resolve()) for name in ("code", "figures"))
    environ = {**os.environ, "PYTHONPATH": places, "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-c", ASK, module]
    done = subprocess.run(command, env=environ, cwd=root, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"Python ended with code {done.returncode}"])[-1]
        raise BuildError(f"_quarto.yml: `exercises: {module}` cannot be asked for its exercises: {reason}")
    return {told["id"]: Exercise(**told) for told in json.loads(done.stdout.splitlines()[-1])}
