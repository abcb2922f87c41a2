"""The harness: statistics against known answers, order and repetitions of samples, files, the machine."""

import gc
import json
import math
from pathlib import Path

import numpy as np
import pytest

from denselayer import _machine, _sample_files, _timing, bench
from denselayer._samples import paired_ratio

RESULTS = sorted((Path(__file__).resolve().parents[2] / "benchmarks" / "results").glob("*.json"))


def example(**changes):
    facts = {
        "name": "64,784,256",
        "seconds": {"plain": [2e-3, 4e-3, 9e-3], "fused": [1e-3, 2e-3, 3e-3]},
        "shape": {"batch": 64},
        "operations": 4_000_000,
        "traffic": 1_000_000,
    }
    return bench.Case(**(facts | changes))


# Statistics


def test_a_ratio_is_the_median_of_the_pairs_and_not_the_ratio_of_the_medians():
    case = example(seconds={"a": [1.0, 10.0, 6.0], "b": [1.0, 2.0, 3.0]})
    assert case.median("a") / case.median("b") == 3.0
    assert case.ratio("a", "b").median == 2.0


def test_a_ratio_is_the_same_in_each_run_and_turns_over_when_its_sides_do():
    times = np.random.default_rng(0).lognormal(size=(2, 15))
    case = example(seconds={"a": list(times[0]), "b": list(times[1])})
    one, other = case.ratio("a", "b"), case.ratio("b", "a")
    assert one == case.ratio("a", "b")
    assert one.low < one.median < one.high
    assert math.isclose(one.median * other.median, 1)


@pytest.mark.parametrize("rounds", [9, 15])
def test_the_interval_holds_the_true_ratio_about_nineteen_times_out_of_twenty(rounds):
    rng = np.random.default_rng(1)
    held = 0
    for number in range(1000):
        found = paired_ratio(list(1.5 * rng.lognormal(sigma=0.1, size=rounds)), number)
        held += found.low <= 1.5 <= found.high
    assert 0.9 < held / 1000 < 0.96


def test_fewer_than_five_rounds_have_a_ratio_and_no_interval():
    few, enough = paired_ratio([1.0, 3.0, 2.0, 4.0]), paired_ratio([1.0, 3.0, 2.0, 4.0, 5.0])
    assert few.median == 2.5 and math.isnan(few.low) and math.isnan(few.high) and str(few) == "2.50 (?)"
    assert enough.low < enough.median < enough.high


@pytest.mark.parametrize("values", [[], [2.0, 0.0], (1.0, -1.0)])
def test_a_geometric_mean_of_nothing_or_of_what_is_not_positive_is_refused(values):
    with pytest.raises(ValueError, match="geometric_mean: .*expected one number above 0 or more"):
        bench.geometric_mean(values)


def test_a_drift_that_meets_both_alike_cancels():
    drift = np.linspace(1, 3, 15)
    case = example(seconds={"a": list(2 * drift), "b": list(drift)})
    ratio = case.ratio("a", "b")
    assert (ratio.low, ratio.median, ratio.high) == (2.0, 2.0, 2.0)


def test_rate_and_fraction_belong_to_the_median():
    case = example()
    limits = bench.Limits(1, {"float32": 4e9}, "fma", {"DRAM": 1e12}, {"DRAM": math.inf})
    assert case.rate("fused") == 2e9
    assert case.bound(limits) == 1e-3
    assert case.fraction("fused", limits) == 0.5


def test_what_was_not_measured_is_answered_with_what_was_and_why():
    case = example(missing={"jax": "failed: it is not installed"})
    with pytest.raises(ValueError, match=r"'jax' \(failed: it is not installed\); expected one of 'plain'"):
        case.median("jax")
    with pytest.raises(ValueError, match="counts no operations"):
        example(operations=None).rate("plain")
    with pytest.raises(ValueError, match="no traffic"):
        example(traffic=None).bound(None)
    with pytest.raises(ValueError, match="no rounds"):
        paired_ratio([])


def test_only_reasons_that_are_failures_count_as_failed():
    case = example(missing={"jax": "failed: died", "onednn": "there is no float64"})
    assert case.failed == {"jax": "failed: died"}


def test_a_case_prints_as_a_table_and_shows_as_one():
    text = str(example(missing={"jax": "failed: died"}, others=(0.1, 0.3, 0.2)))
    assert "64,784,256, float32, 1 thread, 3 rounds, others took 20% of the processors" in text
    assert "2.00 ms" in text and "2.00 (?)" in text and "2.0 G/s" in text
    assert "failed: died" in text
    assert example()._repr_markdown_().startswith('<table class="measured">')
    assert "<caption>64,784,256, float32" in bench.Samples("s", {}, (example(),))._repr_markdown_()


def test_cases_are_found_by_name_dtype_threads_and_size():
    cases = (example(), example(threads=2), example(dtype="float64"), example(shape={"batch": 8}, name="x"))
    samples = bench.Samples("forward", {}, cases)
    assert samples.threads == (1, 2)
    assert samples.case("64,784,256", threads=2) is cases[1]
    assert samples.select(batch=8) == [cases[3]]
    assert len(samples.select(dtype="float32")) == 3
    with pytest.raises(ValueError, match=r"0 cases are called 'y'.*64,784,256 float64 1"):
        samples.case("y")


# Taking samples


class Watch:
    """A clock that only moves when somebody works."""

    def __init__(self, monkeypatch):
        self.now = 0
        monkeypatch.setattr(_timing, "CLOCKS", {"wall": lambda: self.now, "cpu": lambda: self.now // 2})

    def work(self, nanoseconds):
        def call():
            self.now += nanoseconds

        return call


def test_a_sample_is_long_enough_and_gives_the_time_of_one_call(monkeypatch):
    watch = Watch(monkeypatch)
    function = watch.work(700)
    loops = _timing.calibrate(function, 1e-4)
    assert 100_000 <= 700 * loops <= 200_000
    assert _timing.sample(function, loops) == 700
    assert _timing.sample(function, loops, "cpu") == 350
    assert _timing.calibrate(watch.work(10**9), 1e-4) == 1


def test_every_round_holds_every_callable_once_in_an_order_drawn_anew():
    diary = []
    functions = {name: (lambda name=name: diary.append(name)) for name in "abcd"}
    case = bench.compare(functions, rounds=12, min_seconds=0, seed=5)
    taken = diary[-48:]
    rounds = ["".join(taken[start : start + 4]) for start in range(0, 48, 4)]
    assert {"".join(sorted(each)) for each in rounds} == {"abcd"}
    assert len(set(rounds)) > 6
    assert len({each[0] for each in rounds}) == 4
    assert case.variants == ("a", "b", "c", "d")
    assert [len(times) for times in case.seconds.values()] == [12] * 4


def test_the_seed_decides_the_order():
    assert _timing.orders("abcdef", 3, 1) == _timing.orders("abcdef", 3, 1) != _timing.orders("abcdef", 3, 2)


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_is_off_while_a_sample_is_taken_and_as_before_afterwards(enabled):
    seen = []
    (gc.enable if enabled else gc.disable)()
    try:
        _timing.sample(lambda: seen.append(gc.isenabled()), 3)
        after = gc.isenabled()
        with pytest.raises(ZeroDivisionError):
            _timing.sample(lambda: 1 / 0, 1)
        assert gc.isenabled() is after is enabled
    finally:
        gc.enable()
    assert not any(seen)


def test_compare_says_what_the_case_needs():
    case = bench.compare({"one": lambda: None}, rounds=2, min_seconds=0, clock="cpu", operations=5, traffic=7)
    assert (case.operations, case.traffic, case.clock, case.rounds) == (5, 7, "cpu", 2)
    assert case.threads >= 1


@pytest.mark.parametrize(
    ("functions", "options", "error", "words"),
    [
        ([len], {}, TypeError, "functions is a list; expected a dict of callables"),
        ({"a": 1}, {}, TypeError, "a dict with other values"),
        ({}, {}, ValueError, "functions is empty"),
        ({"a": len}, {"clock": "sun"}, ValueError, "'wall', 'cpu'"),
        ({"a": len}, {"rounds": 0}, ValueError, "rounds is 0"),
        ({"a": len}, {"min_seconds": -1}, ValueError, "min_seconds is -1"),
    ],
)
def test_settings_that_make_no_sense_are_named(functions, options, error, words):
    with pytest.raises(error, match=words):
        bench.compare(functions, **options)


# Files


def test_samples_come_back_from_a_file_as_they_were(tmp_path):
    case = example(missing={"jax": "failed: died"}, notes={"fused": "plan"}, others=(0.0, 0.5, 0.25))
    samples = bench.Samples("forward", {"cpu": "small", "cores": 2}, (case, example(others=None)))
    bench.save(samples, tmp_path / "a.json")
    assert bench.load(tmp_path / "a.json") == samples
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_times_are_kept_in_whole_nanoseconds(tmp_path):
    bench.save(bench.Samples("s", {}, (example(seconds={"a": [1.23456789e-3]}),)), tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text())["cases"][0]["ns"] == {"a": [1234568]}


def test_a_file_is_replaced_only_on_request(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="is there already"):
        bench.save(bench.Samples("s", {}, ()), path, overwrite=False)
    assert path.read_text() == "mine"
    bench.save(bench.Samples("s", {}, ()), path)
    assert bench.load(path).cases == ()


def test_a_file_that_cannot_be_replaced_leaves_no_draft_behind(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError):
        bench.save(bench.Samples("s", {}, ()), tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def damaged(change):
    def make(text):
        content = json.loads(text)
        change(content)
        return json.dumps(content)

    return make


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda text: text[:-20], "is damaged"),
        (lambda text: "", "is damaged"),
        (lambda text: "[]", "has the format None"),
        (lambda text: '{"format": "other 3"}', "has the format 'other 3'"),
        (damaged(lambda content: content.pop("cases")), "is damaged"),
        (damaged(lambda content: content["cases"][0].pop("name")), "is damaged"),
        (damaged(lambda content: content["cases"][0].update(extra=1)), "is damaged"),
        (damaged(lambda content: content["cases"][0]["ns"].update(a=[1, -1])), "-1 is no time"),
        (damaged(lambda content: content["cases"][0]["ns"].update(a=["1"])), "'1' is no time"),
        (damaged(lambda content: content["cases"][0].update(ns=[1])), "is damaged"),
        (damaged(lambda content: content.update(cases=3)), "is damaged"),
    ],
)
def test_a_damaged_or_foreign_file_is_named_with_what_is_wrong(tmp_path, make, words):
    path = tmp_path / "a.json"
    bench.save(bench.Samples("s", {}, (example(),)), path)
    path.write_text(make(path.read_text()))
    with pytest.raises(ValueError, match=words) as caught:
        bench.load(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_and_a_binary_one_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*python -m denselayer bench"):
        bench.load(tmp_path / "none.json")
    (tmp_path / "a.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="is damaged"):
        bench.load(tmp_path / "a.json")


def test_an_unknown_suite_is_answered_with_those_that_are_stored():
    with pytest.raises(ValueError, match=r"called 'nothing'.*limits"):
        bench.stored("nothing")


def test_the_samples_of_the_installed_package_are_found_too(tmp_path, monkeypatch):
    monkeypatch.setattr(_sample_files, "__file__", str(tmp_path / "site" / "denselayer" / "_sample_files.py"))
    folder = tmp_path / "site" / "denselayer" / "results"
    folder.mkdir(parents=True)
    bench.save(bench.Samples("mine", {}, ()), folder / "mine.json")
    assert bench.stored("mine").suite == "mine"


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_the_stored_samples_are_whole_and_say_where_they_come_from(path):
    samples = bench.stored(path.stem)
    assert samples.suite == path.stem
    assert {"cpu", "cores", "caches", "blas", "kernel", "versions", "date"} <= set(samples.machine)
    assert path.stat().st_size < 400_000
    assert not [case.failed for case in samples.cases if case.failed]


# The machine


def test_caches_are_read_from_the_files_of_the_system(tmp_path, monkeypatch):
    sizes = [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "1M"), ("3", "Unified", "?")]
    for number, values in enumerate(sizes):
        place = tmp_path / f"index{number}"
        place.mkdir()
        for name, value in zip(("level", "type", "size"), values, strict=True):
            (place / name).write_text(f"{value}\n")
    monkeypatch.setattr(_machine, "CACHES", tmp_path)
    assert _machine.caches() == {"L1": 48 * 1024, "L2": 1024 * 1024}


def stat(busy):
    return f"cpu  {busy} 0 0 5000 100 0 0 0 0 0\ncpu0 1 2 3\n"


def test_what_others_took_is_what_was_busy_without_ones_own_part(tmp_path, monkeypatch):
    (tmp_path / "stat").write_text(stat(1000))
    times = iter([10.0, 11.0, 12.0])
    monkeypatch.setattr(_machine, "STAT", tmp_path / "stat")
    monkeypatch.setattr(_machine.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(_machine.os, "sysconf", lambda name: 100, raising=False)
    monkeypatch.setattr(_machine.time, "perf_counter", lambda: next(times))
    onlooker = _machine.Onlooker()
    (tmp_path / "stat").write_text(stat(1150))
    assert onlooker.look(1.0) == 0.25
    assert onlooker.look(1.0) == 0.0


@pytest.mark.parametrize("content", [None, "", "cpu 1 2\n", "nothing\n"])
def test_where_the_system_does_not_count_others_are_unknown(tmp_path, monkeypatch, content):
    if content is not None:
        (tmp_path / "stat").write_text(content)
    monkeypatch.setattr(_machine, "STAT", tmp_path / "stat")
    assert _machine.Onlooker().look(0.0) is None
    assert bench.compare({"a": lambda: None}, rounds=1, min_seconds=0).disturbed is None


def test_the_machine_is_described_in_plain_values():
    found = bench.machine()
    assert json.loads(json.dumps(found)) == found
    assert found["versions"]["numpy"] == np.__version__
    assert found["cores"] >= 1 and found["cpu"]
