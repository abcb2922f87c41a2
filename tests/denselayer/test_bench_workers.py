"""Worker processes: their environment, their interleaved samples, and all the ways in which one is lost."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from denselayer import bench
from denselayer._runner import Stopped

HERE = "bench_variants"
JOB = bench.Job("demo", {"batch": 1}, (), rounds=4, min_seconds=0, timeout=20)


def variant(function, library="numpy", **options):
    return bench.Variant(options.pop("name", function), HERE, function, library, options)


def lost(function):
    return bench.Variant(function, HERE, function, function)


@pytest.fixture(scope="module")
def suite():
    """One run with variants that fail in all ways, and the lines that it reported."""
    failing = (
        "cannot_be_made",
        "is_not_supported",
        "raises_later",
        "exits",
        "is_killed_later",
        "talks_nonsense",
        "hangs",
    )
    variants = (variant("works"), *map(lost, failing))
    jobs = [replace(JOB, variants=variants, timeout=1.5), replace(JOB, variants=(variant("works"),))]
    lines = []
    return bench.run("suite", jobs, progress=lines.append), lines


def test_what_works_is_measured_beside_what_fails(suite):
    samples, _ = suite
    assert [case.variants for case in samples.cases] == [("works",), ("works",)]
    assert [case.rounds for case in samples.cases] == [4, 4]
    assert samples.machine["versions"]["python"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("cannot_be_made", "failed: ValueError: no such thing"),
        ("is_not_supported", "there is no float32 here"),
        ("raises_later", "failed: ZeroDivisionError: division by zero"),
        ("exits", "failed: the process ended with exit code 3: a last word"),
        ("is_killed_later", "failed: the process was ended by SIGTERM"),
        ("talks_nonsense", "failed: the answer 'hello' makes no sense, ended"),
        ("hangs", "failed: no answer for 1.5 s, ended"),
    ],
)
def test_what_fails_is_missing_with_the_reason(suite, name, reason):
    samples, lines = suite
    if os.name == "nt" and name == "is_killed_later":
        pytest.skip("processes end in another way here")
    assert samples.cases[0].missing[name] == reason
    assert f"  {name}: {reason}" in lines


def test_with_a_process_go_all_the_variants_that_it_held():
    variants = (variant("works", "shared"), variant("works"), replace(lost("exits"), library="shared"))
    [case] = bench.run(
        "suite", [replace(JOB, variants=(variants[0], replace(variants[1], name="alone"), variants[2]))]
    ).cases
    assert case.variants == ("alone",)
    assert "its process ended with 'exits'" in case.missing["works"]


def test_a_process_has_its_threads_and_its_own_environment_only(monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    plain = bench.Variant("plain", HERE, "tells_environment", "a")
    jobs = [
        replace(JOB, variants=(plain, replace(plain, name="more", environ={"EXTRA": "yes"})), threads=number)
        for number in (1, 2)
    ]
    notes = [case.notes for case in bench.run("suite", jobs).cases]
    assert notes[0] == {"plain": "1 1 1 None None", "more": "1 1 1 None yes"}
    assert notes[1] == {"plain": "2 2 2 None None", "more": "2 2 2 None yes"}


def test_rounds_are_interleaved_over_processes_in_random_order_and_no_process_is_left(tmp_path):
    diary = tmp_path / "diary"
    variants = tuple(
        variant("works", f"library {name}", name=name, diary=str(diary)) for name in ("a", "b", "c")
    )
    variants = tuple(replace(each, options={"name": each.name, "diary": str(diary)}) for each in variants)
    [case] = bench.run("suite", [replace(JOB, variants=variants, rounds=10)]).cases
    taken = diary.read_text().split()[-30:]
    rounds = ["".join(taken[start : start + 3]) for start in range(0, 30, 3)]
    assert {"".join(sorted(each)) for each in rounds} == {"abc"}
    assert len(set(rounds)) > 3
    processes = {int(note.split()[1]) for note in case.notes.values()}
    assert len(processes) == 3 and os.getpid() not in processes
    if Path("/proc/self").exists():
        assert not [number for number in processes if Path(f"/proc/{number}").exists()]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="Linux tells the state of a process")
def test_all_processes_but_the_one_at_work_are_stopped_and_those_of_other_threads_gone(tmp_path):
    options = {"folder": str(tmp_path)}
    variants = tuple(bench.Variant(name, HERE, "watches", name, options) for name in "abc")
    jobs = [replace(JOB, variants=variants, rounds=3, threads=number) for number in (1, 2)]
    bench.run("suite", jobs)
    one, two = ((tmp_path / f"diary {number}").read_text().splitlines()[-9:] for number in (1, 2))
    assert one == ["T"] * 9
    assert two == ["T gone"] * 9


def test_control_c_keeps_what_was_finished():
    def interrupt(text):
        if " 2/2" in text:
            raise KeyboardInterrupt

    jobs = [replace(JOB, variants=(variant("works"),), name=name) for name in ("one", "two")]
    with pytest.raises(Stopped) as caught:
        bench.run("suite", jobs, progress=interrupt)
    assert [case.name for case in caught.value.samples.cases] == ["one"]
    assert isinstance(caught.value, KeyboardInterrupt)


def test_a_job_that_has_had_its_time_ends_after_five_rounds():
    [case] = bench.run("suite", [replace(JOB, variants=(variant("works"),), rounds=40, limit=1e-9)]).cases
    assert case.rounds == 5
