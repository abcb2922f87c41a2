"""The limits of a machine from samples that are known, and the bound that they give."""

import math

import pytest

from denselayer import bench
from denselayer._limits import CALL, levels, limits_jobs, operations_of_peak, passes, product


def level(name, nbytes, threads, seconds, call=0.0, capacity=None):
    shape = {"nbytes": nbytes, "passes": 10, "capacity": capacity}
    times = {"read": [2 * seconds, seconds + call, 3 * seconds], CALL.format("read"): [call or 1e-9]}
    return bench.Case(name, times, shape, threads=threads, traffic=10 * nbytes)


def peak(threads, dtype="float32", **seconds):
    return bench.Case("peak", seconds, {}, dtype=dtype, threads=threads, operations=10**9)


SAMPLES = bench.Samples(
    "limits",
    {},
    (
        peak(1, fma=[0.02, 0.01], **{"gemm 256": [0.012], "gemm 512": [0.011, 0.013]}),
        peak(2, fma=[0.005], **{"gemm 256": [0.007]}),
        peak(1, "float64", fma=[0.02], **{"gemm 256": [0.03]}),
        level("L2", 10**5, 1, 1e-5, call=1e-6, capacity=2 * 10**5),
        level("L3", 10**6, 1, 1e-3, capacity=4 * 10**6),
        level("L3", 10**6, 2, 0.8e-3, capacity=4 * 10**6),
        level("DRAM", 10**8, 1, 0.1),
        level("DRAM", 10**8, 2, 0.08),
    ),
)


def test_the_peak_is_the_fastest_round_of_the_multiply_adds():
    assert bench.Limits.of(SAMPLES).peak == {"float32": 1e11, "float64": 5e10}
    assert bench.Limits.of(SAMPLES).source == "fma"


def test_without_multiply_adds_the_best_product_stands_for_the_peak():
    cases = tuple(
        bench.Case("peak", {"gemm 256": [0.012], "gemm 512": [0.011]}, {}, operations=10**9)
        if case.name == "peak"
        else case
        for case in SAMPLES.select(threads=1, dtype="float32")
    )
    limits = bench.Limits.of(bench.Samples("limits", {}, cases))
    assert limits.source == "gemm"
    assert math.isclose(limits.peak["float32"], 1e9 / 0.011)


def test_bandwidth_is_without_the_time_of_the_call_and_private_levels_add_up():
    one, two = bench.Limits.of(SAMPLES), bench.Limits.of(SAMPLES, 2)
    assert math.isclose(one.bandwidth["L2"], 1e6 / 1e-5)
    assert math.isclose(two.bandwidth["L2"], 2 * one.bandwidth["L2"])
    assert math.isclose(two.bandwidth["L3"], 1e7 / 0.8e-3, rel_tol=1e-4)
    assert two.capacity == {"L2": 4 * 10**5, "L3": 4 * 10**6, "DRAM": math.inf}


def test_the_bound_takes_the_level_that_holds_the_bytes():
    limits = bench.Limits.of(SAMPLES)
    assert [limits.level(n) for n in (1, 2 * 10**5, 3 * 10**5, 10**7)] == ["L2", "L2", "L3", "DRAM"]
    assert limits.bound(1e11, 1) == 1.0
    assert limits.bound(1e11, 1, "float64") == 2.0
    assert math.isclose(limits.bound(1, 10**9), 0.1, rel_tol=1e-6)


def test_threads_that_were_not_measured_are_named():
    with pytest.raises(ValueError, match=r"limits of 4 threads were not measured; expected one of 1, 2"):
        bench.Limits.of(SAMPLES, 4)
    with pytest.raises(ValueError, match=r"threads is \[0\]"):
        bench.limits(0)


def test_limits_print_as_a_table():
    text = str(bench.Limits.of(SAMPLES, 2))
    assert "peak float32 (fma)    200 G/s" in text and "2 threads" in text
    assert "<table" in bench.Limits.of(SAMPLES)._repr_markdown_()


def test_all_variants_of_the_peak_do_the_same_work():
    rates = [variant for job in limits_jobs([1]) if job.name == "peak" for variant in job.variants]
    for side in {variant.options["side"] for variant in rates}:
        assert operations_of_peak() % (2 * side**3) == 0
    assert product({"operations": 4 * 8**3}, "float32", 1, side=8)().shape == (8, 8)


def test_levels_are_measured_with_less_than_they_hold_and_memory_with_more_than_any():
    shapes = {name: shape for name, shape, _ in levels()}
    known = [shape["capacity"] for shape in shapes.values() if shape["capacity"]]
    assert all(shape["nbytes"] < shape["capacity"] for shape in shapes.values() if shape["capacity"])
    assert shapes["DRAM"]["nbytes"] > max(known)
    assert all(shape["nbytes"] % 384 == 0 for shape in shapes.values())


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", ["read", "copy", "add"])
def test_passes_run_on_threads_and_alone(kind, threads):
    for alone in (False, True):
        passes({"nbytes": 3840, "passes": 2}, "float32", threads, kind, alone)()
