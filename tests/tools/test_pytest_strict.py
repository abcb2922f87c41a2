"""A test run with an expected failure is red when the plugin is on, as for the notebooks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(folder, text, *options):
    (folder / "test_it.py").write_text(text)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tools.pytest_strict",
        "-p",
        "no:cacheprovider",
        *options,
        ".",
    ]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "text",
    [
        "import pytest\n\n@pytest.mark.xfail\ndef test_a():\n    assert False\n",
        "import pytest\n\n@pytest.mark.xfail\ndef test_a():\n    assert True\n",
        "import pytest\n\ndef test_a():\n    pytest.xfail('timeout')\n",
        "import pytest\n\n@pytest.mark.xfail(run=False)\ndef test_a():\n    assert False\n",
    ],
)
def test_any_expected_failure_fails_the_run(tmp_path, text):
    done = run(tmp_path, text)
    assert done.returncode == 1
    assert "expected failures count as failures" in done.stdout
    assert "test_it.py::test_a" in done.stdout


def test_a_run_without_any_stays_green(tmp_path):
    done = run(tmp_path, "import pytest\n\ndef test_a():\n    pass\n\ndef test_b():\n    pytest.skip('no')\n")
    assert done.returncode == 0
    assert "expected failures" not in done.stdout


def test_workers_report_too(tmp_path):
    done = run(tmp_path, "import pytest\n\n@pytest.mark.xfail\ndef test_a():\n    assert False\n", "-n", "1")
    assert done.returncode == 1


def test_a_failed_run_stays_failed(tmp_path):
    assert run(tmp_path, "def test_a():\n    assert False\n").returncode == 1
