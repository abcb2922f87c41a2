"""Suites are run one after the other; each is a description that can be checked without running it."""

import ast
import importlib.util
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import run, targets
from denselayer import bench

SUITES = run.names()
WITH_JOBS = [name for name in SUITES if hasattr(run.suite(name), "jobs")]


def samples(name, **facts):
    return bench.Samples(name, {"cpu": "c"}, (bench.Case("one", {"a": [1.0]}, {}, **facts),))


def test_the_limits_come_first():
    assert SUITES[:3] == ["limits", "forward", "backward"]


def test_a_suite_that_cannot_be_run_does_not_stop_the_others(monkeypatch, tmp_path):
    def broken(progress):
        raise RuntimeError("no network")

    lost = {"jax": "failed: died", "onednn": "there is no float64"}
    made = {
        "one": SimpleNamespace(run=broken),
        "two": SimpleNamespace(run=lambda progress: samples("two", missing=lost)),
        "three": SimpleNamespace(run=lambda progress: bench.Samples("three", {}, ())),
    }
    monkeypatch.setattr(run, "suite", made.__getitem__)
    lines = []
    failed = run.measure_all(made, tmp_path / "new", lines.append)
    assert failed == {
        "one": "RuntimeError: no network",
        "two, one float32, 1 threads, jax": "failed: died",
        "three": "it gave no samples",
    }
    assert run.read(tmp_path / "new") == {"two": samples("two", missing=lost)}
    assert any(line.startswith("two: 1 cases in") for line in lines)


def test_control_c_writes_nothing_of_the_suite_that_it_stops(monkeypatch, tmp_path):
    def stopped(progress):
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "suite", lambda name: SimpleNamespace(run=stopped))
    with pytest.raises(KeyboardInterrupt):
        run.measure_all(["forward"], tmp_path, lambda text: None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", SUITES)
def test_a_suite_says_what_it_measures(name):
    module = run.suite(name)
    assert module.__doc__.splitlines()[0].endswith(".")
    assert hasattr(module, "jobs") or hasattr(module, "run")


@pytest.mark.parametrize("name", WITH_JOBS)
def test_the_jobs_of_a_suite_have_names_of_their_own_and_enough_rounds(name):
    jobs = run.jobs(name)
    keys = [(job.name, job.dtype, job.threads) for job in jobs]
    assert len(keys) == len(set(keys))
    judged = {target.suite for target in targets.TARGETS}
    for job in jobs:
        assert job.rounds >= (15 if name in judged else 5)
        names = [variant.name for variant in job.variants]
        assert names and len(names) == len(set(names))


@pytest.mark.parametrize("name", WITH_JOBS)
def test_every_variant_names_a_function_that_is_there(name):
    for module, function in {(v.module, v.function) for job in run.jobs(name) for v in job.variants}:
        assert function in functions_of(module), f"{module}.{function}"


def functions_of(module):
    """The functions that a module defines or imports, without importing what it imports."""
    tree = ast.parse(Path(importlib.util.find_spec(module).origin).read_text(encoding="utf-8"))
    found = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    return found | {alias.asname or alias.name for node in imports for alias in node.names}
