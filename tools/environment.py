"""Make the project's own virtual environment and run in it.

Standard library only: it runs before anything is installed, and on a Python that is too old far enough
to say so.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

from tools.errors import BuildError

ROOT = Path(__file__).resolve().parent.parent
MINIMUM = (3, 11)
GROUPS = ("book", "notebooks", "lint", "test")
INSIDE = "DENSELAYER_ENVIRONMENT"


def environment_folder() -> Path:
    """``.venv`` at the root, or the folder that ``DENSELAYER_VENV`` names."""
    return Path(os.environ.get("DENSELAYER_VENV", ROOT / ".venv"))


def interpreter(folder: Path) -> Path:
    """The Python of a virtual environment, on any platform."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def requirements(group: str) -> list[str]:
    """The requirements of one group of ``[dependency-groups]`` in pyproject.toml, those it includes first."""
    import tomllib

    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    if group not in groups:
        raise BuildError(f"pyproject.toml has no dependency group {group!r}; it has {', '.join(groups)}")
    lines: list[str] = []
    for entry in groups[group]:
        lines += requirements(entry["include-group"]) if isinstance(entry, dict) else [entry]
    return list(dict.fromkeys(lines))


def fingerprint(group: str) -> str:
    """What an installed group depends on: its requirements, the pins, and the Python that runs them."""
    digest = hashlib.sha256()
    digest.update("\n".join(requirements(group)).encode())
    digest.update((ROOT / "constraints.txt").read_bytes())
    digest.update(sys.version.encode())
    return digest.hexdigest()


def is_ready(folder: Path, group: str) -> bool:
    """Whether this group, or one that includes it, was installed from the same pins."""
    for candidate in GROUPS:
        stamp = folder / f"denselayer-{candidate}.stamp"
        includes = set(requirements(group)) <= set(requirements(candidate))
        if includes and stamp.is_file() and stamp.read_text() == fingerprint(candidate):
            return interpreter(folder).exists()
    return False


def create(folder: Path) -> None:
    if folder.is_dir() and any(folder.iterdir()) and not (folder / "pyvenv.cfg").is_file():
        raise BuildError(f"{folder} holds something else; let DENSELAYER_VENV name an empty folder")
    print(f"Making a virtual environment in {folder} ...", flush=True)
    try:
        venv.EnvBuilder(with_pip=True, clear=True).create(folder)
    except (OSError, subprocess.CalledProcessError) as error:
        raise BuildError(
            f"Could not make a virtual environment in {folder}: {error}\n"
            "On Debian and Ubuntu the module is a package of its own: apt-get install python3-venv."
        ) from error


def install(folder: Path, group: str) -> None:
    lines = requirements(group)
    print(f"Installing what `{group}` needs ({len(lines)} packages and what they need) ...", flush=True)
    command = [str(interpreter(folder)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--constraint", str(ROOT / "constraints.txt"), *lines]
    if subprocess.run(command).returncode:
        raise BuildError(
            "pip could not install the pinned packages (its message is above). With no network, give pip a "
            "folder of wheels in PIP_FIND_LINKS; behind a proxy, set HTTPS_PROXY. Then run the same command."
        )
    (folder / f"denselayer-{group}.stamp").write_text(fingerprint(group))


def enter(group: str) -> None:
    """Return when this process has what ``group`` needs; otherwise install it and run again in there.

    With ``DENSELAYER_VENV=none`` the running Python is used as it is, for people who manage their own.
    """
    if sys.version_info < MINIMUM:
        wanted = ".".join(map(str, MINIMUM))
        raise BuildError(
            f"Python {sys.version.split()[0]} is too old: the book needs Python >= {wanted}. "
            "Name another one with `make PYTHON=python3.12 ...`."
        )
    if os.environ.get("DENSELAYER_VENV") == "none" or os.environ.get(INSIDE) == group:
        return
    folder = environment_folder()
    if not interpreter(folder).exists():
        create(folder)
    if not is_ready(folder, group):
        install(folder, group)
    environ = {**os.environ, INSIDE: group, "PYTHONPATH": search_path()}
    command = [str(interpreter(folder)), "-m", "tools", *sys.argv[1:]]
    sys.exit(wait_for(command, environ))


def wait_for(command: list[str], environ: dict[str, str]) -> int:
    """Run a command to its own end and return its code.

    Ctrl-C reaches the command too, and it may need a moment to put things back in place.
    """
    with subprocess.Popen(command, env=environ, cwd=ROOT) as process:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:
                continue


def search_path() -> str:
    """PYTHONPATH for child processes: the two source roots, then what was there."""
    roots = [str(ROOT / "code"), str(ROOT / "figures")]
    before = [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
    return os.pathsep.join(roots + [place for place in before if place not in roots])
