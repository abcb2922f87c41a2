"""Build the wheel of the package that the notebooks import."""

from __future__ import annotations

import os
from pathlib import Path

from tools.errors import BuildError

EPOCH = "1577836800"


def build(root: Path, folder: Path) -> Path | None:
    """Build the wheel of the project at `root` into `folder`; None when it is no Python project.

    The same sources give the same bytes: times in the archive are fixed.
    """
    if not (root / "pyproject.toml").is_file():
        return None
    from hatchling.builders.wheel import WheelBuilder

    before = os.environ.get("SOURCE_DATE_EPOCH")
    os.environ["SOURCE_DATE_EPOCH"] = EPOCH
    try:
        return Path(next(iter(WheelBuilder(str(root)).build(directory=str(folder), versions=["standard"]))))
    except (OSError, ValueError, TypeError) as error:
        raise BuildError(f"pyproject.toml: the wheel could not be built: {error}") from error
    finally:
        if before is None:
            del os.environ["SOURCE_DATE_EPOCH"]
        else:
            os.environ["SOURCE_DATE_EPOCH"] = before
