"""Samples that are known, held against the targets of the issue."""

import math

import pytest

from benchmarks import inputs, run, targets
from benchmarks.targets import EVERY, MEAN, Target
from denselayer import bench


def case(name, threads=1, **seconds):
    times = {variant.replace("_", " "): [each] * 15 for variant, each in seconds.items()}
    return bench.Case(name, times, {}, threads=threads, operations=10**9)


def suites(*cases, peak=0.001):
    limit = bench.Case("peak", {"fma": [peak]}, {}, operations=10**9)
    return {"forward": bench.Samples("forward", {}, cases), "limits": bench.Samples("limits", {}, (limit,))}


def shown(lines):
    return [
        (line.where, line.value if line.value is None else round(line.value, 9), line.reached)
        for line in lines
    ]


def evaluate(target, *cases, **options):
    return shown(targets.evaluate(suites(*cases, **options), [target]))


def test_a_shape_with_a_target_of_its_own_is_not_held_to_that_of_every_shape():
    target = Target("t", "fused", ("plain",), least={"a": 1.9, EVERY: 0.97, MEAN: 1.3})
    cases = [
        case("a", plain=1.8, fused=1.0),
        case("b", plain=0.98, fused=1.0),
        case("c", plain=0.5, fused=1.0),
    ]
    assert evaluate(target, *cases) == [
        ("a", 1.8, False),
        ("b", 0.98, True),
        ("c", 0.5, False),
        (MEAN, round(math.prod([1.8, 0.98, 0.5]) ** (1 / 3), 9), False),
    ]


def test_the_best_of_several_rivals_counts_and_is_named():
    target = Target("t", "numba", ("plain", "eager", "jax"), least={EVERY: 1.0})
    [line] = targets.evaluate(suites(case("a", plain=3.0, eager=2.0, numba=1.0)), [target])
    assert (line.value, line.note) == (2.0, "eager")
    assert "2.00x (2.00 to 2.00) eager" in targets.table([line])


def test_an_overhead_is_to_be_small():
    target = Target("t", "fused", ("gemm only",), kind="overhead", least={EVERY: 0.10})
    good, bad = case("a", gemm_only=1.0, fused=1.05), case("b", gemm_only=1.0, fused=1.2)
    assert evaluate(target, good, bad) == [("a", 0.05, True), ("b", 0.2, False)]
    text = targets.table(targets.evaluate(suites(good), [target]))
    assert "5.0% (5.0% to 5.0%)" in text and "< 10%" in text and "pass" in text


def test_too_few_rounds_for_an_interval_show_none():
    target = Target("t", "fused", ("plain",), least={EVERY: 1.5})
    few = bench.Case("a", {"plain": [2.0] * 4, "fused": [1.0] * 4}, {}, operations=1)
    text = targets.table(targets.evaluate(suites(few), [target]))
    assert "2.00x" in text and "nan" not in text and "pass" in text


def test_a_share_of_the_peak_needs_the_limits():
    target = Target("t", "numba", (), kind="peak", least={"a": 0.85})
    assert evaluate(target, case("a", numba=0.00125), peak=0.001) == [("a", 0.8, False)]
    only = {"forward": bench.Samples("forward", {}, (case("a", numba=0.1),))}
    [line] = targets.evaluate(only, [target])
    assert (line.reached, line.note) == (None, "the limits were not measured")


def test_what_was_not_measured_is_neither_reached_nor_missed():
    target = Target("t", "fused", ("eager",), least={"a": 1.0, "z": 1.0, MEAN: 1.0})
    lost = bench.Case("a", {"fused": [1.0]}, {}, missing={"eager": "failed: died"})
    lines = targets.evaluate(suites(lost), [target])
    assert shown(lines) == [("a", None, None), ("z", None, None), (MEAN, None, None)]
    assert "failed: died" in targets.table(lines) and "not measured" in targets.table(lines)
    assert targets.summary(lines) == "3 without samples"


def test_threads_dtypes_and_suites_are_kept_apart():
    target = Target("t", "fused", ("plain",), threads=2, least={EVERY: 1.0})
    other = bench.Case("c", {"plain": [9.0], "fused": [1.0]}, {}, dtype="float64", threads=2)
    cases = [case("a", plain=2.0, fused=1.0), case("b", threads=2, plain=0.5, fused=1.0), other]
    assert evaluate(target, *cases) == [("b", 0.5, False)]
    assert targets.evaluate({}, [target]) == []


def test_reached_and_missed_are_counted():
    target = Target("t", "fused", ("plain",), least={EVERY: 1.0})
    lines = targets.evaluate(
        suites(case("a", plain=2.0, fused=1.0), case("b", plain=0.5, fused=1.0)), [target]
    )
    assert targets.summary(lines) == "1 reached, 1 missed"
    assert "MISSED" in targets.table(lines)
    assert targets.summary([]) == "no targets here"


def test_the_table_of_the_issue_names_only_shapes_that_are_measured():
    named = {name for target in targets.TARGETS for name in (*target.least, *target.only)}
    assert named - {EVERY, MEAN} <= set(inputs.SHAPES)
    assert {target.kind for target in targets.TARGETS} == {"speed", "overhead", "peak"}


@pytest.mark.parametrize("suite", sorted({target.suite for target in targets.TARGETS}))
def test_every_target_speaks_of_variants_that_its_suite_measures(suite):
    known = {variant.name for job in run.jobs(suite) for variant in job.variants}
    for target in targets.TARGETS:
        if target.suite == suite:
            assert {target.variant, *target.against} <= known
