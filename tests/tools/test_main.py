"""The Makefile, the README and ``python -m tools`` name the same commands."""

import doctest
import importlib
import os
import re
import subprocess
import sys

import pytest

from tools.__main__ import COMMANDS
from tools.environment import ROOT

TARGETS = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)[1].split()


def tools(*arguments: str) -> subprocess.CompletedProcess:
    environ = {**os.environ, "DENSELAYER_VENV": "none"}
    command = [sys.executable, "-m", "tools", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True)


def test_every_make_target_is_a_command_and_the_other_way_round():
    assert set(TARGETS) == {*COMMANDS, "help"}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_its_module(name):
    module = importlib.import_module(f"tools.commands.{name}")
    assert callable(module.run) and callable(module.add_arguments)


@pytest.mark.parametrize(
    "document", ["README.md", "CONTRIBUTING.md", ".ci/run", ".github/workflows/book.yml"]
)
def test_every_make_command_that_a_document_names_exists(document):
    text = (ROOT / document).read_text(encoding="utf-8")
    named = set(re.findall(r"(?:`|^|run: )make ([a-z]+)", text, re.M))
    assert named <= set(TARGETS)


def test_ci_runs_the_test_command_of_the_readme():
    assert re.search(r"^make test$", (ROOT / "README.md").read_text(encoding="utf-8"), re.M)
    assert re.search(r"^make test$", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.M)


def test_help_lists_every_command():
    shown = tools("help")
    assert shown.returncode == 0
    assert all(name in shown.stdout for name in COMMANDS)


def test_an_unknown_command_is_answered_with_those_that_exist():
    answer = tools("bok")
    assert answer.returncode == 1
    assert "no command 'bok'" in answer.stderr and "notebooks" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_the_code_in_the_readme_gives_what_it_says():
    failed, tried = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert tried >= 5 and failed == 0
