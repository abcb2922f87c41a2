"""A downloaded notebook runs in an empty folder with the wheel and the extras it names, and nothing else."""

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from tools.book import load_book

ROOT = Path(__file__).resolve().parents[2]
BOOK = load_book(ROOT)
REQUIREMENT = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(?:\[[^\]]*\])?[^;]*(?:;(?P<marker>.*))?$")
UNWANTED = {"torch", "IPython", "ipykernel", "tools", "pytest", "numba"}


@pytest.fixture(scope="module")
def environments(tmp_path_factory):
    """Virtual environments by extras: the wheel, what its metadata ask for with the extras, and no more."""
    made = {}

    def python(*extras):
        if extras not in made:
            made[extras] = environment(tmp_path_factory.mktemp("reader"), extras)
        return made[extras]

    return python


def environment(folder, extras):
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("denselayer-*-py3-none-any.whl")
    venv.EnvBuilder(with_pip=False, symlinks=os.name != "nt").create(folder / "venv")
    site = next((folder / "venv").rglob("site-packages"))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
        metadata = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        asked = archive.read(metadata).decode()
    for distribution in closure([name for extra in extras for name in required(asked, extra)]):
        link(distribution, site)
    return folder / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def extras_named(notebook):
    """The extras in the install command of the notebook's first cell."""
    first = "".join(json.loads(notebook.read_text(encoding="utf-8"))["cells"][0]["source"])
    return re.search(r"\.whl\[([a-z,]+)\]", first)[1].split(",")


def required(metadata, extra=None):
    """The names that a distribution's metadata ask for, with or without an extra."""
    lines = [
        line.split(":", 1)[1].strip() for line in metadata.split("\n") if line.startswith("Requires-Dist:")
    ]
    return applicable(lines, extra)


def applicable(lines, extra=None):
    names = []
    for line in lines:
        match = REQUIREMENT.match(line)
        marker = match["marker"] or ""
        of_extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)['\"]", marker)
        if not of_extra or of_extra[1] == extra:
            names.append(match["name"])
    return names


def closure(names):
    """The installed distributions that these names need; those of other platforms are not installed."""
    found = {}
    todo = list(names)
    while todo:
        name = re.sub(r"[-_.]+", "-", todo.pop()).lower()
        if name in found:
            continue
        try:
            found[name] = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        todo += applicable(found[name].requires or [])
    return found.values()


def link(distribution, site):
    """Make a distribution's files importable from another folder."""
    tops = {file.parts[0] for file in distribution.files if file.parts[0] not in ("..", "__pycache__")}
    for top in tops:
        source, target = Path(distribution.locate_file(top)), site / top
        if target.exists() or not source.exists():
            continue
        if os.name != "nt":
            target.symlink_to(source)
        elif source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy2(source, target)


def run(python, script, *arguments, folder):
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DENSELAYER"))
    }
    environ |= {
        "MPLBACKEND": "Agg",
        "MPLCONFIGDIR": str(ROOT / ".cache" / "matplotlib"),
        "OMP_NUM_THREADS": "1",
    }
    environ |= {"OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "PYTHONIOENCODING": "utf-8"}
    command = [str(python), "-I", "-X", "utf8", str(script), *map(str, arguments)]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, encoding="utf-8")


@pytest.mark.slow
def test_the_environment_has_the_extra_and_no_torch(environments, tmp_path):
    script = tmp_path / "look.py"
    script.write_text(
        "import importlib.util, sys\n"
        "print([name for name in sys.argv[1:] if importlib.util.find_spec(name)])\n"
    )
    wanted = ["denselayer", "denselayer_figures", "numpy", "matplotlib", "yaml"]
    absent = sorted(UNWANTED | {"sklearn", "scipy"})
    done = run(environments("figures"), script, *wanted, *absent, folder=tmp_path)
    assert done.stdout.strip() == str(wanted), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("page", BOOK.notebooks, ids=lambda page: page.source.stem)
def test_a_downloaded_notebook_runs_alone_and_prints_what_is_stored(environments, tmp_path, page):
    empty = tmp_path / "empty"
    empty.mkdir()
    notebook = Path(shutil.copy(page.notebook, empty))
    python = environments(*extras_named(notebook))
    done = run(python, Path(__file__).with_name("run_cells.py"), notebook.name, folder=empty)
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(done.stdout)
    assert not UNWANTED & set(result["modules"])
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        tags = cell["metadata"].get("tags", [])
        if cell["cell_type"] == "code" and "nbval-ignore-output" not in tags:
            streams = [out for out in cell["outputs"] if out.get("name") == "stdout"]
            assert result["written"][cell["id"]] == "".join("".join(out["text"]) for out in streams), cell[
                "id"
            ]
    assert [path.name for path in empty.iterdir()] == [notebook.name], "the notebook left files behind"
