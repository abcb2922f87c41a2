"""``make bench``: what it runs, what it prints, when it fails."""

import pytest

from benchmarks import run, targets
from denselayer import bench as samples
from tools.__main__ import COMMANDS
from tools.commands import bench
from tools.errors import BuildError


@pytest.fixture
def measured(monkeypatch):
    """Replaces the measurement by one case that misses its target; the suites that were asked for."""
    asked = []
    slow = samples.Case("a", {"plain": [1.0] * 9, "fused": [2.0] * 9}, {})

    def measure_all(chosen, results, progress):
        asked.extend(chosen)
        results.mkdir(exist_ok=True)
        samples.save(samples.Samples("forward", {}, (slow,)), results / "forward.json")
        progress("at work")
        return measured_failures

    measured_failures = {}
    target = targets.Target("Fused", "fused", ("plain",), least={targets.EVERY: 1.0})
    monkeypatch.setattr(targets, "TARGETS", [target])
    monkeypatch.setattr(run, "measure_all", measure_all)
    return asked, measured_failures


def call(parse, tmp_path, *arguments):
    return bench.run(parse(bench, "--output", str(tmp_path / "results"), *arguments))


@pytest.fixture
def parse():
    import argparse

    def read(command, *arguments):
        parser = argparse.ArgumentParser()
        command.add_arguments(parser)
        return parser.parse_args(arguments)

    return read


def test_a_missed_target_is_shown_and_is_no_failure(measured, parse, tmp_path, capsys):
    assert call(parse, tmp_path) == 0
    shown = capsys.readouterr()
    assert "0.50x (0.50 to 0.50)" in shown.out and "MISSED" in shown.out and "1 missed" in shown.out
    assert "at work" in shown.err
    assert measured[0] == run.names()


def test_what_could_not_be_run_is_named_and_is_a_failure(measured, parse, tmp_path, capsys):
    measured[1]["forward, a, jax"] = "failed: died"
    assert call(parse, tmp_path) == 1
    assert "could not be run: forward, a, jax: failed: died" in capsys.readouterr().err


def test_one_suite_is_run_and_judged_alone(measured, parse, tmp_path, capsys):
    assert call(parse, tmp_path, "limits") == 0
    assert measured[0] == ["limits"]
    assert "no targets here" in capsys.readouterr().out


def test_the_table_of_stored_samples_needs_no_measurement(measured, parse, tmp_path, capsys):
    call(parse, tmp_path, "forward")
    measured[0].clear()
    capsys.readouterr()
    assert call(parse, tmp_path, "--table") == 0
    assert measured[0] == [] and "MISSED" in capsys.readouterr().out


def test_an_unknown_suite_is_answered_with_those_that_exist(parse, tmp_path):
    with pytest.raises(BuildError, match=r"no suite forwards\. The suites: limits, forward, backward"):
        call(parse, tmp_path, "forwards")


def test_it_runs_where_the_other_libraries_are_installed():
    assert COMMANDS["bench"][0] == "test"
