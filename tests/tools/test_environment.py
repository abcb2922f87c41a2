"""The environment is made from pyproject.toml and constraints.txt and from nothing else."""

import ast
import os
import re
import signal
import subprocess
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


OLD = """
import runpy, sys
sys.modules["tomllib"] = None
sys.version_info = (3, 8, 18, "final", 0)
runpy.run_module("tools", run_name="__main__")
"""


@pytest.mark.parametrize("command", ["book", "test"])
def test_a_python_without_tomllib_gets_as_far_as_that_message(command):
    environ = {name: value for name, value in os.environ.items() if name != "DENSELAYER_VENV"}
    done = subprocess.run(
        [sys.executable, "-c", OLD, command],
        cwd=environment.ROOT,
        env=environ,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "too old: the book needs Python >= 3.11" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["__init__", "__main__", "environment", "errors"])
def test_what_an_old_python_reads_is_written_for_it(name):
    text = (environment.ROOT / "tools" / f"{name}.py").read_text(encoding="utf-8")
    assert ast.parse(text, feature_version=(3, 7))
    assert "->" not in text or "from __future__ import annotations" in text


def test_a_folder_that_holds_something_else_is_never_emptied(tmp_path):
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(BuildError, match="holds something else.*DENSELAYER_VENV"):
        environment.create(tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "precious"


PARENT = """
import os, sys
from tools import environment
sys.exit(environment.wait_for([sys.executable, "-c", sys.argv[1]], dict(os.environ)))
"""
CHILD = """
import sys, time
try:
    print("ready", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    time.sleep(1)
    print("tidied up", flush=True)
    sys.exit(130)
"""


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT to a process group")
def test_ctrl_c_leaves_the_command_the_time_to_tidy_up():
    command = [sys.executable, "-c", PARENT, CHILD]
    pipes = {"stdout": subprocess.PIPE, "text": True, "cwd": environment.ROOT, "start_new_session": True}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdout.readline() == "ready\n"
        os.killpg(process.pid, signal.SIGINT)
        assert process.communicate(timeout=30)[0] == "tidied up\n"
    assert process.returncode == 130


def test_the_code_of_the_command_is_passed_on():
    assert environment.wait_for([sys.executable, "-c", "raise SystemExit(7)"], dict(os.environ)) == 7


def test_a_failing_pip_says_what_to_do(tmp_path, monkeypatch):
    class Failed:
        returncode = 1

    monkeypatch.setattr(environment.subprocess, "run", lambda *_, **__: Failed())
    with pytest.raises(BuildError, match="PIP_FIND_LINKS"):
        environment.install(tmp_path, "book")
    assert not list(tmp_path.glob("*.stamp"))
