"""The environment is made from pyproject.toml and constraints.txt and from nothing else."""

import re
import sys

import pytest

from tools import environment
from tools.errors import BuildError


def pinned() -> dict[str, str]:
    lines = (environment.ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.lower().replace("_", "-").split("==") for line in lines if "==" in line)


def name_of(requirement: str) -> str:
    return re.match(r"[\w-]+", requirement)[0].lower().replace("_", "-")


@pytest.mark.parametrize("group", environment.GROUPS)
def test_every_requirement_of_a_group_is_pinned(group):
    missing = [line for line in environment.requirements(group) if name_of(line) not in pinned()]
    assert not missing


def test_rendering_needs_neither_numpy_nor_torch_nor_a_kernel():
    names = {name_of(line) for line in environment.requirements("book")}
    assert names.isdisjoint({"numpy", "torch", "ipykernel", "nbclient", "matplotlib"})


def test_a_group_contains_what_it_includes():
    assert set(environment.requirements("book")) < set(environment.requirements("notebooks"))
    assert set(environment.requirements("notebooks")) < set(environment.requirements("test"))


def test_an_unknown_group_is_named_in_the_error():
    with pytest.raises(BuildError, match="'chapter'.*it has book"):
        environment.requirements("chapter")


def test_the_fingerprint_follows_the_pins(tmp_path, monkeypatch):
    for name in ("pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_bytes((environment.ROOT / name).read_bytes())
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    before = environment.fingerprint("book")
    pins = tmp_path / "constraints.txt"
    pins.write_text(pins.read_text(encoding="utf-8").replace("rich==", "rich==0"), encoding="utf-8")
    assert environment.fingerprint("book") != before


def test_an_installed_larger_group_serves_a_smaller_one(tmp_path):
    python = environment.interpreter(tmp_path)
    python.parent.mkdir(parents=True)
    python.touch()
    (tmp_path / "denselayer-test.stamp").write_text(environment.fingerprint("test"))
    assert environment.is_ready(tmp_path, "book")
    assert environment.is_ready(tmp_path, "notebooks")
    (tmp_path / "denselayer-test.stamp").write_text("made from other pins")
    assert not environment.is_ready(tmp_path, "book")


def test_an_old_python_is_refused_with_what_to_do(monkeypatch):
    monkeypatch.setattr(environment, "MINIMUM", (sys.version_info.major, sys.version_info.minor + 1))
    with pytest.raises(BuildError, match="too old.*make PYTHON="):
        environment.enter("book")


def test_a_failing_pip_says_what_to_do(tmp_path, monkeypatch):
    class Failed:
        returncode = 1

    monkeypatch.setattr(environment.subprocess, "run", lambda *_, **__: Failed())
    with pytest.raises(BuildError, match="PIP_FIND_LINKS"):
        environment.install(tmp_path, "book")
    assert not list(tmp_path.glob("*.stamp"))
