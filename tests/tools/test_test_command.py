"""``make test``: what it runs, and that nothing that fails looks like success."""

import argparse
import subprocess
import sys
from pathlib import Path

import pytest

from tools.commands import test as command


def run(monkeypatch, codes, *given):
    """Run the command with processes that end with these codes; return its code and what it started."""
    started = []
    remaining = iter([0, *codes])

    class Done:
        def __init__(self, arguments, **options):
            started.append(arguments)
            self.returncode = next(remaining)

    monkeypatch.setattr(command.subprocess, "run", Done)
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return command.run(parser.parse_args(given)), started[1:]


@pytest.mark.parametrize(
    ("codes", "failed"), [((0, 0), 0), ((1, 0), 1), ((0, 1), 1), ((0, 5), 1), ((-9, 0), 1), ((0, -11), 1)]
)
def test_it_succeeds_only_when_both_runs_do(monkeypatch, codes, failed):
    assert run(monkeypatch, codes)[0] == failed


def test_it_runs_all_tests_and_then_every_cell_of_the_notebooks(monkeypatch):
    tests, cells = run(monkeypatch, (0, 0))[1]
    assert tests[:3] == [sys.executable, "-m", "pytest"] and tests[-1] == "tests"
    assert cells[-1] == "notebooks"
    assert {"--nbval", "--nbval-current-env"} <= set(cells) and "--nbval-lax" not in cells
    assert cells[cells.index("-p") + 1] == "tools.pytest_strict"


def test_named_files_are_run_alone(monkeypatch):
    [tests] = run(monkeypatch, (0,), "tests/tools")[1]
    assert tests[-1] == "tests/tools"


def test_processes_that_share_the_cores_use_one_thread_each():
    environ = command.environ("folder")
    assert {environ[name] for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")} == {"1"}


def test_what_the_tests_do_with_exercises_is_kept_in_a_folder_that_is_gone_afterwards(monkeypatch):
    folders = set()
    monkeypatch.setattr(command, "warm_font_cache", lambda: None)

    def start(arguments, *, cwd, env):
        folders.add(env["DENSELAYER_EXERCISES"])
        assert Path(env["DENSELAYER_EXERCISES"]).is_dir()
        return subprocess.CompletedProcess(arguments, 0)

    monkeypatch.setattr(command.subprocess, "run", start)
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    assert command.run(parser.parse_args([])) == 0
    assert len(folders) == 1 and not Path(*folders).exists()
