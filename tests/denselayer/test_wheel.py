"""The wheel is pure Python, and the package in it runs on NumPy alone."""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import denselayer

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import importlib, importlib.util, json, pkgutil, sys
import numpy as np
import denselayer
from denselayer import agreement, bench, functional, gradcheck, layouts, nn, optim

names = [module.name for module in pkgutil.walk_packages(denselayer.__path__, "denselayer.")]
for name in names:
    importlib.import_module(name)

x = np.array([[2.0, 4.0, 1.0]])
weight = np.array([[0.5, -1.0, 2.0], [-0.25, 0.5, 1.0], [1.0, 0.25, -0.5]])
bias = np.array([3.0, -1.0, -4.0])
net = nn.Sequential(nn.Linear.from_arrays(weight, bias), nn.ReLU())
out = net(x)
net.backward(np.ones_like(out))
augmented = layouts.convert(weight, bias, "out_in", "augmented")
optim.SGD(net.parameters(), lr=0.1).step()
print(json.dumps({
    "file": denselayer.__file__,
    "modules": names,
    "out": out.tolist(),
    "moved": net[0].bias.data.tolist(),
    "augmented": layouts.forward(x[0], *augmented, "augmented").tolist(),
    "rounds": bench.stored("limits").cases[0].rounds,
    "gradients": gradcheck.check_module(nn.Linear(3, 2, rng=0), x).ok,
    "cases": {name: agreement.agreement(name).ok for name in agreement.cases()},
    "others": [name for name in ("torch", "matplotlib", "yaml") if importlib.util.find_spec(name)],
    "prefix": sys.prefix,
}))
"""


def run(*command, cwd, **options):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder), cwd=ROOT)
    [path] = folder.iterdir()
    return path


@pytest.fixture(scope="module")
def names(wheel):
    return zipfile.ZipFile(wheel).namelist()


def test_the_wheel_is_for_every_python_and_machine(wheel):
    assert wheel.name == f"denselayer-{denselayer.__version__}-py3-none-any.whl"


def test_the_wheel_holds_both_packages_and_nothing_compiled(names):
    assert {name.split("/")[0] for name in names} == {
        "denselayer",
        "denselayer_figures",
        f"denselayer-{denselayer.__version__}.dist-info",
    }
    assert not [name for name in names if name.endswith((".so", ".pyd", ".dylib", ".dll", ".c", ".pyc"))]
    assert "denselayer_figures/parameters.yml" in names


def test_every_source_file_and_fixture_is_in_the_wheel(names):
    for source in ("code/denselayer", "figures/denselayer_figures"):
        for path in (ROOT / source).rglob("*"):
            if path.suffix in (".py", ".npz", ".typed"):
                assert path.relative_to(ROOT / source).as_posix() in [
                    name.partition("/")[2] for name in names if name.startswith(f"{Path(source).name}/")
                ]


def test_the_samples_of_the_book_are_in_the_wheel(names):
    stored = {path.name for path in (ROOT / "benchmarks/results").glob("*.json")}
    assert "limits.json" in stored
    assert {Path(name).name for name in names if name.startswith("denselayer/results/")} == stored


def test_the_wheel_asks_for_numpy_and_for_more_only_in_an_extra(wheel, names):
    [metadata] = [name for name in names if name.endswith("METADATA")]
    lines = zipfile.ZipFile(wheel).read(metadata).decode().splitlines()
    requirements = [
        line.removeprefix("Requires-Dist: ") for line in lines if line.startswith("Requires-Dist: ")
    ]
    assert [line.split(">")[0] for line in requirements if "extra ==" not in line] == ["numpy"]
    optional = [line for line in requirements if not line.startswith("numpy")]
    assert all(re.search(r"extra == '(figures|digits)'$", line) for line in optional)


@pytest.mark.slow
def test_with_numpy_alone_every_module_imports_and_runs(wheel, tmp_path):
    environment = tmp_path / "environment"
    run(sys.executable, "-m", "venv", "--without-pip", str(environment), cwd=tmp_path)
    python = environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    install = (sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check")
    run(*install, "install", "--quiet", f"numpy=={np.__version__}", str(wheel), cwd=tmp_path)
    installed = json.loads(run(*install, "list", "--format", "json", cwd=tmp_path))
    assert sorted(package["name"] for package in installed) == ["denselayer", "numpy"]

    result = json.loads(run(str(python), "-I", "-c", PROGRAM, cwd=tmp_path))
    assert Path(result["file"]).is_relative_to(environment)
    package = ROOT / "code/denselayer"
    files = [path.relative_to(package).with_suffix("") for path in package.rglob("*.py")]
    sources = {".".join(file.parts).removesuffix(".__init__") for file in files} - {"__init__"}
    assert {name.removeprefix("denselayer.") for name in result["modules"]} == sources
    assert result["out"] == [[2.0, 1.5, 0.0]]
    assert result["augmented"] == [2.0, 1.5, -1.5]
    np.testing.assert_allclose(result["moved"], [2.9, -1.1, -4.0])
    assert result["gradients"]
    assert result["rounds"] >= 15
    assert tuple(result["cases"]) == denselayer.agreement.cases()
    assert all(result["cases"].values()), result["cases"]
    assert result["others"] == []
